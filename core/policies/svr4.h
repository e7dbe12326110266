/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The time-sharing and real-time classes of UNIX System V Release 4, in one run queue.
 *
 * Every task has a global priority, and the highest runs: 0 … 59 time-sharing (TS), 100 … 159
 * real-time (RT). RT is strict, with round robin within a level. TS moves a task between its sixty
 * levels by what it does, as a table says ([1], [2]), with one row for each level:
 *
 *      quantum     how long it runs before it sinks      tqexp     the level it then sinks to
 *      slpret      the level it gets after a sleep       lwait     the level it gets when it has
 *      maxwait     [s]                                             waited for more than maxwait
 *
 * Tables and rules come as two:
 *
 *   original     SVR4 as Solaris 2.2 ran it, which [3] measured: quanta of 1 s to 100 ms, and
 *                *every* sleep ends in slpret. So a batch job that forks and waits climbs to the
 *                top in three sleeps, and a window server that burns its quanta sinks to the bottom
 *                and comes back by lwait only, one step in six seconds. The table is a
 *                reconstruction from these figures and from the manual's sample [1].
 *   renewed      the default table of Solaris 2.3 and after [2], whose class is "based on this
 *                work" [3, section 5.3]: quanta of 200 to 20 ms, a sleep ends in slpret only if a
 *                second has begun meanwhile, and after a second everybody is lifted to 50 or more.
 *
 * The rows are looked up by the level itself; only maxwait is that of the effective level, which is
 * the level plus what the user asked for (-20 … 20), within 0 … 59. Seconds of waiting
 * (ts_dispwait) are counted
 *
 *   original     in the run queue only; from zero at the end of a quantum and on wake-up, but not
 *                after a preemption;
 *   renewed      always, asleep and in service too; from zero at the end of a quantum and when a
 *                task is lifted.
 *
 * Accounting is by the clock's tick: whoever is in service pays for all of it. A child begins at
 * its parent's level, with a quantum of its own: what a parent climbed its children need not climb.
 *
 * Left out: the priorities 60 … 99 that a TS task has in the kernel between its wake-up and its
 * return to user mode, since the core sees tasks only in user mode. A sleeper so waits for the CPU
 * at slpret's level from the start.
 *
 * [1] UNIX System V Release 4 manuals, ts_dptbl(4) and rt_dptbl(4).
 * [2] Solaris 2.x manuals, the same pages.
 * [3] J. Nieh, J. Hanko, J. Northcutt, G. Wall: SVR4 UNIX Scheduler Unacceptable for Multimedia
 *     Applications. NOSSDAV 1993.
 */
#ifndef ANDANTE_CORE_SVR4_H
#define ANDANTE_CORE_SVR4_H

#include "../port.h"

#define AN_SVR4_LEVELS 60
#define AN_SVR4_TOP (AN_SVR4_LEVELS - 1)
#define AN_SVR4_FIRST (AN_SVR4_TOP / 2) /* of a new TS task */
#define AN_SVR4_USER_MAX 20		/* user priorities are -20 … 20 */
#define AN_SVR4_RT_BASE 100		/* global priority of RT level 0 */
#define AN_SVR4_GLOBAL_MAX (AN_SVR4_RT_BASE + AN_SVR4_TOP)

#define AN_SVR4_TICK_NS 10000000ULL
#define AN_SVR4_AGE_NS 1000000000ULL
#define AN_SVR4_PATIENT_S 32000 /* the longest maxwait: for ever */

enum an_svr4_table {
	AN_SVR4_ORIGINAL = 0,
	AN_SVR4_RENEWED = 1,
};

struct an_svr4 {
	u32 level;	/* TS: ts_cpupri, before the user's priority; RT: its level. 0 … 59 */
	s32 user;	/* TS: what the user asked for, -20 … 20 */
	u32 left_ticks; /* of the quantum */
	u32 waited_s;	/* ts_dispwait */
	u16 real_time;
	u16 fresh; /* has never run: its first wake-up ends no sleep */
};

/* Rows of the tables, by level 0 … 59. [ticks] are of 10 ms. */

an_inline u32 an_svr4_rt_quantum_ticks(u32 level)
{
	u32 decade = level / 10;

	return decade < 5 ? 100 - 20 * decade : 10;
}

an_inline u32 an_svr4_quantum_ticks(u32 table, u32 level)
{
	u32 decade = level / 10;

	if (table == AN_SVR4_ORIGINAL) /* the same figures as those of RT */
		return an_svr4_rt_quantum_ticks(level);
	if (level == AN_SVR4_TOP)
		return 2;
	return decade < 5 ? 20 - 4 * decade : 4;
}

an_inline u32 an_svr4_tqexp(u32 table, u32 level)
{
	if (table == AN_SVR4_ORIGINAL && level < 20)
		return level / 2;
	return level < 10 ? 0 : level - 10;
}

an_inline u32 an_svr4_slpret(u32 table, u32 level)
{
	if (table == AN_SVR4_ORIGINAL)
		return level + 10 < AN_SVR4_TOP ? level + 10 : AN_SVR4_TOP;
	if (level < 35)
		return 50 + level / 10;
	if (level < 40)
		return 54;
	if (level < 45)
		return 55;
	if (level < 48)
		return level + 11;
	return level < AN_SVR4_TOP ? 58 : 59;
}

an_inline u32 an_svr4_maxwait_s(u32 table, u32 level)
{
	if (table == AN_SVR4_ORIGINAL)
		return 5;
	return level == AN_SVR4_TOP ? AN_SVR4_PATIENT_S : 0;
}

an_inline u32 an_svr4_lwait(u32 table, u32 level)
{
	if (table == AN_SVR4_RENEWED && level > 48)
		return 59;
	return an_svr4_slpret(table, level);
}

an_inline s32 an_svr4_clamp(s32 value, s32 least, s32 most)
{
	if (value < least)
		return least;
	return value > most ? most : value;
}

/* The level with what the user asked for, 0 … 59. */
an_inline u32 an_svr4_effective(const struct an_svr4 *s)
{
	return an_svr4_clamp((s32)s->level + s->user, 0, AN_SVR4_TOP);
}

/* Global priority: the highest runs. */
an_inline u32 an_svr4_global(const struct an_svr4 *s)
{
	return s->real_time ? AN_SVR4_RT_BASE + s->level : an_svr4_effective(s);
}

/* Level of the queue, for an_place_at_…(): the least is served first. */
an_inline u32 an_svr4_queue_level(const struct an_svr4 *s)
{
	return AN_SVR4_GLOBAL_MAX - an_svr4_global(s);
}

an_inline void an_svr4_renew_quantum(u32 table, struct an_svr4 *s)
{
	s->left_ticks = s->real_time ? an_svr4_rt_quantum_ticks(s->level)
				     : an_svr4_quantum_ticks(table, s->level);
}

/* priority: RT 0 … 59, TS what the user asks for, -20 … 20; what lies beyond is cut. */
an_inline void an_svr4_join(u32 table, struct an_svr4 *s, bool real_time, s32 priority)
{
	s->real_time = real_time;
	s->fresh = 1;
	s->waited_s = 0;
	s->user = 0;
	s->level = AN_SVR4_FIRST;
	if (real_time)
		s->level = an_svr4_clamp(priority, 0, AN_SVR4_TOP);
	else
		s->user = an_svr4_clamp(priority, -AN_SVR4_USER_MAX, AN_SVR4_USER_MAX);
	an_svr4_renew_quantum(table, s);
}

/* The user asks for another priority, or another class. Within a class the quantum goes on. */
an_inline void an_svr4_change(u32 table, struct an_svr4 *s, bool real_time, s32 priority)
{
	u32 fresh = s->fresh;

	if (s->real_time != real_time) {
		an_svr4_join(table, s, real_time, priority);
		s->fresh = fresh;
	} else if (real_time) {
		s->level = an_svr4_clamp(priority, 0, AN_SVR4_TOP);
	} else {
		s->user = an_svr4_clamp(priority, -AN_SVR4_USER_MAX, AN_SVR4_USER_MAX);
	}
}

/*
 * The child, which has just joined, was forked by the parent. It asked for the same as the parent
 * did, if anything, and goes on from the parent's level.
 */
an_inline void an_svr4_fork(u32 table, const struct an_svr4 *parent, struct an_svr4 *child)
{
	if (parent->real_time || child->real_time)
		return;
	child->level = parent->level;
	an_svr4_renew_quantum(table, child);
}

/* Has it waited longer than its row has patience for? */
an_inline bool an_svr4_overdue(u32 table, const struct an_svr4 *s)
{
	return s->waited_s > an_svr4_maxwait_s(table, an_svr4_effective(s));
}

/* It comes back from a sleep. */
an_inline void an_svr4_wake(u32 table, struct an_svr4 *s)
{
	bool fresh = s->fresh;

	s->fresh = 0;
	if (s->real_time) {
		an_svr4_renew_quantum(table, s);
		return;
	}
	if (fresh)
		return;
	/* Renewed: sleep alone earns nothing, not even a new quantum. */
	if (table == AN_SVR4_RENEWED && !an_svr4_overdue(table, s))
		return;
	s->level = an_svr4_slpret(table, s->level);
	s->waited_s = 0;
	an_svr4_renew_quantum(table, s);
}

/* The clock strikes while it is in service: true if its quantum is over. */
an_inline bool an_svr4_tick(u32 table, struct an_svr4 *s)
{
	if (s->left_ticks > 1) {
		s->left_ticks--;
		return false;
	}
	if (!s->real_time) {
		s->level = an_svr4_tqexp(table, s->level);
		s->waited_s = 0;
	}
	an_svr4_renew_quantum(table, s);
	return true;
}

/* A second is over: true if its global priority changed. */
an_inline bool an_svr4_age(u32 table, struct an_svr4 *s, bool queued)
{
	u32 before = an_svr4_effective(s);

	if (s->real_time || (table == AN_SVR4_ORIGINAL && !queued))
		return false;
	s->waited_s++;
	if (!an_svr4_overdue(table, s))
		return false;
	s->level = an_svr4_lwait(table, s->level);
	s->waited_s = 0;
	return an_svr4_effective(s) != before;
}

an_inline bool an_svr4_preempts(const struct an_svr4 *woken, const struct an_svr4 *serving)
{
	return an_svr4_global(woken) > an_svr4_global(serving);
}

#endif
