/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Start-time fair queueing of the tasks inside one leaf class, over their nice weights.
 *
 * The shell keeps the queue (the kernel's, ordered by start tag); the core says what the tags are.
 * v of the class is the start tag of the task last put into service, and the same rules hold as
 * between classes (hsfq.h).
 *
 * A task that is made begins as far ahead as the one that makes it, and one that ends leaves the
 * one that waits for it where it has been itself: a program that has each of its jobs done by
 * another process is one flow, and has the share of one.
 */
#ifndef ANDANTE_CORE_TASK_H
#define ANDANTE_CORE_TASK_H

#include "tag.h"

struct an_task {
	u64 start;   /* S, and F of the last quantum [tag] */
	u64 request; /* what a quantum will add to it: an_task_request() [tag] */
	u32 rem;     /* remainder of start [1/weight] */
	u64 owes;    /* of one that is fresh: how far it will begin ahead of v [tag] */
	u32 fresh;   /* has never been queued in its class: no tag of its own yet */
};

#define AN_USUAL_WEIGHT 1024u  /* of a task with nice value 0, as the kernel has it */
#define AN_IDLE_TASK_WEIGHT 3u /* of one under SCHED_IDLE [Linux: WEIGHT_IDLEPRIO] */

#define AN_NICE_WEIGHTS 64 /* room in the table, a power of two: nice -20 … 19, and no more */

/*
 * The weights of nice values [Linux: sched_prio_to_weight]: 1.25 to the power of -nice, as the
 * kernel rounds it. What it tells sched_ext instead is a hundredth of the usual weight at best, in
 * which nice 15 is 4, nice 19 is 1, and so is SCHED_IDLE.
 */
#define AN_WEIGHTS_OF_NICE                                                                         \
	{88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916,                     \
	 9548,	7620,  6100,  4904,  3906,  3121,  2501,  1991,	 1586,	1277,                      \
	 1024,	820,   655,   526,   423,   335,   272,	  215,	 172,	137,                       \
	 110,	87,    70,    56,    45,    36,	   29,	  23,	 18,	15}

/*
 * The weight of a task that has this one by its nice value. A thread of the kernel's own has the
 * usual one at least: it works for others, and may hold what they wait for (khugepaged, with nice
 * value 19, holds a program's memory map while it moves its pages), without anybody lending it the
 * share that it lacks.
 */
an_inline u32 an_task_weight(u32 weight, bool of_kernel)
{
	return of_kernel && weight < AN_USUAL_WEIGHT ? AN_USUAL_WEIGHT : weight;
}

/* What one quantum adds to the start tag of a task of this weight [tag]. */
an_inline u64 an_task_request(u64 quantum_ns, u32 weight)
{
	return an_tag_of(quantum_ns, weight);
}

/* The task becomes runnable, or enters the class. Call before queueing it under task->start. */
an_inline void an_task_wake(u64 vtime, struct an_task *task)
{
	if (task->fresh) {
		task->start = vtime + task->owes;
		task->rem = task->owes = 0;
		task->fresh = 0;
	} else {
		an_tag_wake(&task->start, &task->rem, vtime);
	}
}

/* The task is made by this one of the class, and is fresh. */
an_inline void an_task_made(u64 vtime, struct an_task *task, const struct an_task *maker)
{
	s64 ahead = an_tag_diff(maker->start, vtime);

	task->owes = !maker->fresh && ahead > 0 ? ahead : 0;
}

/* A task of the class ends with that start tag, and wakes the one that has waited for it. */
an_inline void an_task_ended(struct an_task *waiter, u64 start)
{
	if (!waiter->fresh)
		waiter->start = an_tag_max(waiter->start, start);
}

/* Quanta by which a task may be ahead of its classmates for what it was given before its turn. */
#define AN_TASK_DEBT_QUANTA 4

/*
 * The task has been charged for service that was not its turn (under a contract of its own, before
 * all shares). It owes that to its classmates, up to so many quanta on each CPU.
 */
an_inline void an_task_debt_limit(u64 vtime, struct an_task *task, u32 cpus)
{
	u64 owed_max = AN_TASK_DEBT_QUANTA * task->request * cpus;

	if (an_tag_diff(task->start, vtime) > (s64)owed_max)
		task->start = vtime + owed_max;
}

/*
 * The task is put into service in its turn: v of its class is its start tag. Service that is not
 * its turn leaves v alone, or all of its classmates would be taken to have had as much.
 */
an_inline void an_task_serve(u64 *vtime, const struct an_task *task)
{
	*vtime = an_tag_max(*vtime, task->start);
}

/* The task used service_ns; its start tag is now that of its next quantum. */
an_inline void an_task_charge(struct an_task *task, u64 service_ns, u32 weight)
{
	an_tag_charge(&task->start, &task->rem, service_ns, weight);
}

#endif
