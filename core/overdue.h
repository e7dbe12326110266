/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Everybody runs at least once in a bounded time, whatever the shares are and however many there
 * are.
 *
 * Shares alone bound nobody's wait: with a share s of a CPU, n equal tasks of a class and quanta
 * l, each waits for n l / s. The kernel ejects a scheduler under which a task waits for 30 s. So a
 * task that has waited for AN_OVERDUE_NS is *overdue*. Once in AN_OVERDUE_LOOK_NS the shell looks
 * for those, and lines them up behind the ones that it has found before, in a queue of the CPU that
 * they are on. From there they have a *short turn* each, out of their order, before the tree's next
 * choice, while those turns take no more than their part of the time (an_overdue_takes()).
 *
 * A turn is as long as a quantum if few are overdue: a task that was preempted while the kernel
 * waits for it (a reader under RCU) must get somewhere with its turn, on a slow machine too. All
 * that one look finds have AN_OVERDUE_TURNS_NS together, each the same part of it. If they are so
 * many that a part would be less than AN_OVERDUE_TURN_NS, each has that (an_overdue_turn_ns()).
 *
 * With n tasks of a CPU, nobody therefore waits for longer than
 *
 *      AN_OVERDUE_NS + AN_OVERDUE_LOOK_NS            until it is found
 *      + T AN_OVERDUE_PART                           until those before it have had their turns,
 *                                                    T = AN_OVERDUE_TURNS_NS + n AN_OVERDUE_TURN_NS
 *
 * which is 12 s for 10,000 tasks, and less than the watchdog's 30 s for 100,000. If contracts leave
 * less than a part of the CPU, what they leave counts instead.
 *
 * Shares stay what they are: a short turn is charged like any other, to the task and to all its
 * classes, and none of their tags is set back for it. A class whose share is less than its short
 * turns has them nevertheless. All that others may lose to it is AN_OVERDUE_TURNS_NS in
 * AN_OVERDUE_LOOK_NS, so 1 % of a CPU, or n AN_OVERDUE_TURN_NS in AN_OVERDUE_NS, 2.5 % for 10,000
 * tasks; that debt is bounded as any other (an_debt_limit()).
 *
 * Nothing of this costs anything while nobody is overdue, but one look at each queued task in
 * AN_OVERDUE_LOOK_NS.
 */
#ifndef ANDANTE_CORE_OVERDUE_H
#define ANDANTE_CORE_OVERDUE_H

#include "port.h"

/*
 * A quarter of the watchdog's 30 s, about: half of that is left to the turns of those that are
 * overdue, and a quarter to what is not scheduled by us (real-time tasks, a virtual machine's
 * host). Shorter takes more from others: the bound on their loss is inverse to it.
 */
#ifndef AN_OVERDUE_NS /* the search for races has shorter ones */
#define AN_OVERDUE_NS 8000000000ULL
/* A quarter of that, so that it counts for little in the bound, and the look costs next to nothing.
 */
#define AN_OVERDUE_LOOK_NS 2000000000ULL
#endif
/* Some ten times what two switches and a timer cost. */
#define AN_OVERDUE_TURN_NS 20000ULL
/* A hundredth of the time: shares are to be kept within 2 %. */
#define AN_OVERDUE_TURNS_NS (AN_OVERDUE_LOOK_NS / 100)
/* One in so many parts of the time, at most, for turns of those that are overdue. */
#define AN_OVERDUE_PART 8
/*
 * What was not used of that is saved up to so much time. More than a quantum, or it would be lost
 * between two choices; and as long as contracts, which come first, usually hold a CPU for.
 */
#define AN_OVERDUE_SAVED_NS 100000000ULL

/* Has a task that has been runnable since then [ns] waited for too long? */
an_inline bool an_overdue(u64 since_ns, u64 now_ns)
{
	return since_ns && since_ns + AN_OVERDUE_NS < now_ns;
}

/* How long a turn of each is, if so many tasks of a CPU wait for one [ns]. */
an_inline u64 an_overdue_turn_ns(u32 tasks, u64 quantum_ns)
{
	u64 turn_ns = AN_OVERDUE_TURNS_NS / (tasks ? tasks : 1);

	if (turn_ns > quantum_ns)
		turn_ns = quantum_ns;
	return turn_ns > AN_OVERDUE_TURN_NS ? turn_ns : AN_OVERDUE_TURN_NS;
}

/*
 * May this CPU give an overdue task a turn of this length now? Then that is counted in *next_ns, up
 * to which instant its part of the time is used up (the virtual scheduling algorithm of a leaky
 * bucket).
 */
an_inline bool an_overdue_takes(u64 *next_ns, u64 now_ns, u64 turn_ns)
{
	if (*next_ns > now_ns)
		return false;
	if (*next_ns + AN_OVERDUE_SAVED_NS < now_ns)
		*next_ns = now_ns - AN_OVERDUE_SAVED_NS;
	*next_ns += turn_ns * AN_OVERDUE_PART;
	return true;
}

/* Those that are overdue now were not before: nothing is saved up for them. */
an_inline void an_overdue_begins(u64 *next_ns, u64 now_ns)
{
	if (*next_ns < now_ns)
		*next_ns = now_ns;
}

#endif
