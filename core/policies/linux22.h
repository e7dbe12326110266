/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The scheduler of Linux 2.2: epochs.
 *
 * A task may run for its *counter* in an epoch, in ticks of 10 ms. Of all that want to run, the one
 * of the greatest goodness does ([1], [2]):
 *
 *      goodness    0 if the counter is 0, else counter + priority
 *      priority    20 - nice, within 1 … 40: 20 ticks, about 200 ms, at nice 0
 *      tick        whoever is in service when the clock strikes loses one of its counter
 *      epoch       when all that want to run have none left, for every task, sleepers too,
 *                  counter = counter / 2 + priority
 *      wake-up     preempts if its counter is greater by more than three
 *      fork        halves the counter; the child has as much as the parent keeps
 *      real time   SCHED_FIFO and SCHED_RR, 1 … 99, before all of these
 *
 * So a film whose two processes wait for each other gets its 200 ms twice and then nothing until n
 * hogs have had theirs: 2 / (2 + n) of the CPU, and jerks ([2]).
 *
 * Keys are static though goodness grows with every epoch, because it grows only when nobody in the
 * queue has any left: the key is the epoch that a task will run in, then its goodness in that one.
 * Whoever has none left is queued under the next epoch, with what it will then have. To serve such
 * a key is to begin the epoch. What a sleeper missed is added when it is looked at.
 *
 * Choices. The rule for wake-ups is that of 2.2.1 (QLinux stood on 2.2.0, [2] on 2.2.5); 2.3
 * compares goodness. It is asked for goodness as well, since the pick that follows would choose the
 * one in service again. The quantum ends with the tick that empties the
 * counter, as [2] tells it; the kernel noticed one tick later (210 ms). Of equal tasks the last to
 * wake is first, as the kernel put it at the head of its list; among equal real-time ones POSIX's
 * order holds instead. Left out: the bonuses for the same CPU and the same address space, of
 * which the core knows nothing; sched_yield.
 *
 * [1] Linux 2.2.1, kernel/sched.c: what it does, not how.
 * [2] M. Alicherry, K. Gopinath: Predictable Management of System Resources for Linux. FREENIX
 * 2001, "Scheduling for Multimedia".
 */
#ifndef ANDANTE_CORE_LINUX22_H
#define ANDANTE_CORE_LINUX22_H

#include "../port.h"

#define AN_LINUX22_TICK_NS 10000000ULL
#define AN_LINUX22_PRIORITY 20 /* at nice 0 [ticks] */
#define AN_LINUX22_PRIORITY_MAX 40
#define AN_LINUX22_WAKE_LEAD 3 /* [ticks] */
#define AN_LINUX22_RT_MAX 99

/* counter = counter / 2 + priority stands still after so many epochs (2^7 > 2 * priority). */
#define AN_LINUX22_SETTLED 7

/*
 * The key: real time first, by priority and place, as in queue_order.h. Then, below the top bit,
 *
 *      28 bits of epoch | 7 bits, 127 - goodness | 28 bits of place
 *
 * Goodness is 120 at most. 2^28 epochs are a month of the shortest there can be (10 ms). Places
 * begin anew with each epoch and stop at their ends, where the task's id decides.
 */
#define AN_LINUX22_PLACE_BITS 28
#define AN_LINUX22_GOODNESS_BITS 7
#define AN_LINUX22_EPOCH_BITS 28
#define AN_LINUX22_PLACE_MIDDLE (1ULL << (AN_LINUX22_PLACE_BITS - 1))
#define AN_LINUX22_TIME_SHARING (1ULL << 63)

enum an_linux22_class {
	AN_LINUX22_OTHER = 0,
	AN_LINUX22_FIFO = 1,
	AN_LINUX22_RR = 2,
};

/* What the class keeps. */
struct an_linux22_epochs {
	u32 now;  /* the epoch that is being served */
	u32 tail; /* places given in the next epoch, in the order of arrival */
	u32 head; /* places given in this one, the last first */
};

struct an_linux22 {
	u32 class;   /* enum an_linux22_class */
	u32 rt;	     /* real-time priority, 1 … 99 */
	u32 base;    /* priority [ticks] */
	u32 counter; /* as of the epoch [ticks] */
	u32 epoch;   /* how far the counter has been brought */
};

an_inline u32 an_linux22_priority(s32 nice)
{
	s32 priority = AN_LINUX22_PRIORITY - nice;

	if (priority < 1)
		return 1;
	return priority > AN_LINUX22_PRIORITY_MAX ? AN_LINUX22_PRIORITY_MAX : priority;
}

/* Its counter as of the epoch that is being served. */
an_inline u32 an_linux22_counter(const struct an_linux22_epochs *e, const struct an_linux22 *l)
{
	u32 missed = e->now - l->epoch, counter = l->counter, i = 0;

	an_while(i < missed && i < AN_LINUX22_SETTLED) {
		counter = counter / 2 + l->base;
		i++;
	}
	return counter;
}

an_inline void an_linux22_catch_up(const struct an_linux22_epochs *e, struct an_linux22 *l)
{
	l->counter = an_linux22_counter(e, l);
	l->epoch = e->now;
}

an_inline u32 an_linux22_goodness(u32 counter, u32 base)
{
	return counter ? counter + base : 0;
}

an_inline void an_linux22_init(struct an_linux22_epochs *e)
{
	e->now = e->tail = e->head = 0;
}

/* rt: 1 … 99 for real time, what lies beyond is cut. */
an_inline void an_linux22_join(const struct an_linux22_epochs *e, struct an_linux22 *l, u32 class,
			       s32 rt, s32 nice)
{
	l->class = class;
	l->rt = rt < 1 ? 1 : rt > AN_LINUX22_RT_MAX ? AN_LINUX22_RT_MAX : rt;
	l->base = an_linux22_priority(nice);
	l->counter = l->base;
	l->epoch = e->now;
}

/* Another nice value: the counter stays, and grows by the new one from the next epoch on. */
an_inline void an_linux22_renice(const struct an_linux22_epochs *e, struct an_linux22 *l, s32 nice)
{
	an_linux22_catch_up(e, l);
	l->base = an_linux22_priority(nice);
}

/*
 * The child, which has just joined, was forked by the parent: nobody gains by forking within an
 * epoch. A parent left with nothing goes on until the next tick.
 */
an_inline void an_linux22_fork(const struct an_linux22_epochs *e, struct an_linux22 *parent,
			       struct an_linux22 *child)
{
	an_linux22_catch_up(e, parent);
	parent->counter /= 2;
	child->counter = parent->counter;
	child->epoch = parent->epoch;
}

an_inline bool an_linux22_real_time(const struct an_linux22 *l)
{
	return l->class != AN_LINUX22_OTHER;
}

/* Level of the queue of real time, for an_place_at_…(). */
an_inline u32 an_linux22_queue_level(const struct an_linux22 *l)
{
	return AN_LINUX22_RT_MAX - l->rt;
}

/* The key of a time-sharing task that wants to run. */
an_inline u64 an_linux22_key(struct an_linux22_epochs *e, struct an_linux22 *l)
{
	u64 epoch, goodness, place = AN_LINUX22_PLACE_MIDDLE;

	an_linux22_catch_up(e, l);
	if (l->counter) {
		epoch = e->now;
		goodness = an_linux22_goodness(l->counter, l->base);
		e->head += e->head < AN_LINUX22_PLACE_MIDDLE;
		place -= e->head;
	} else {
		epoch = e->now + 1;
		goodness = an_linux22_goodness(l->base, l->base);
		place += e->tail;
		e->tail += e->tail < AN_LINUX22_PLACE_MIDDLE - 1;
	}
	epoch &= (1ULL << AN_LINUX22_EPOCH_BITS) - 1;
	goodness = ((1ULL << AN_LINUX22_GOODNESS_BITS) - 1) - goodness;
	return AN_LINUX22_TIME_SHARING |
	       epoch << (AN_LINUX22_GOODNESS_BITS + AN_LINUX22_PLACE_BITS) |
	       goodness << AN_LINUX22_PLACE_BITS | place;
}

/* A task with this key is served: does an epoch begin with it? */
an_inline void an_linux22_serve(struct an_linux22_epochs *e, u64 key)
{
	u32 epoch = key >> (AN_LINUX22_GOODNESS_BITS + AN_LINUX22_PLACE_BITS);
	u32 ahead = (epoch - e->now) & ((1U << AN_LINUX22_EPOCH_BITS) - 1);

	if (!(key & AN_LINUX22_TIME_SHARING) || ahead != 1)
		return;
	e->now++;
	e->tail = e->head = 0;
}

/* The clock strikes while it is in service: true if it has none left. */
an_inline bool an_linux22_tick(const struct an_linux22_epochs *e, struct an_linux22 *l)
{
	if (l->class == AN_LINUX22_FIFO)
		return false;
	an_linux22_catch_up(e, l);
	if (l->counter)
		l->counter--;
	if (l->counter)
		return false;
	if (l->class == AN_LINUX22_RR)
		l->counter = l->base;
	return true;
}

an_inline bool an_linux22_preempts(const struct an_linux22_epochs *e,
				   const struct an_linux22 *woken, const struct an_linux22 *serving)
{
	u32 theirs, ours;

	if (an_linux22_real_time(woken) || an_linux22_real_time(serving)) {
		if (!an_linux22_real_time(woken))
			return false;
		return !an_linux22_real_time(serving) || woken->rt > serving->rt;
	}
	theirs = an_linux22_counter(e, woken);
	ours = an_linux22_counter(e, serving);
	return theirs > ours + AN_LINUX22_WAKE_LEAD &&
	       an_linux22_goodness(theirs, woken->base) > an_linux22_goodness(ours, serving->base);
}

#endif
