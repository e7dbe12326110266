/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Fair queueing of the tasks inside one leaf class, over their nice weights, in the order of
 * virtual deadlines.
 *
 * The shell keeps the queue (the kernel's); the core says what it is ordered by. Start tags S and
 * the virtual time v of the class are those of start-time fair queueing, as between classes
 * (hsfq.h); but the task that comes first is not the one with the least S. It is the one with the
 * least
 *
 *      virtual deadline     S + q / r, q a quantum, r its weight
 *
 * which is when that would have had the quantum if all shared the CPU as they go ([1] has that
 * order, by finish tags). By start tags a task waits until each of n others has had a quantum,
 * however light they are. By virtual deadlines a light one waits for as long as its weight says,
 * and one that wakes with R times the weight of the others is not behind them before it has had R
 * quanta. The order makes nobody's service any other in the long run: for two tasks that stay
 * runnable |W_f / r_f - W_g / r_g| is at most q / r_f + q / r_g, since S of neither passes the
 * virtual deadline of the other by more than its own quantum. Of one weight the order is that of
 * the start tags.
 *
 * [1] S. J. Golestani, A Self-Clocked Fair Queueing Scheme for Broadband Applications, INFOCOM
 * 1994.
 */
#ifndef ANDANTE_CORE_TASK_H
#define ANDANTE_CORE_TASK_H

#include "tag.h"

struct an_task {
	u64 start;   /* S, and F of the last quantum [tag] */
	u64 request; /* what a quantum will add to it: an_task_request() [tag] */
	u32 rem;     /* remainder of start [1/weight] */
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
	return (quantum_ns << AN_TAG_SHIFT) / (weight ? weight : 1);
}

/*
 * The task's virtual deadline, which its class's queue is ordered by [tag]: its start tag, and what
 * it asks for, a quantum, over its weight. (See the top.)
 */
an_inline u64 an_task_deadline(const struct an_task *task)
{
	return task->start + task->request;
}

/* The task becomes runnable, or enters the class. Call before queueing it under task->start. */
an_inline void an_task_wake(u64 vtime, struct an_task *task)
{
	if (task->fresh) {
		task->start = vtime;
		task->rem = 0;
		task->fresh = 0;
	} else {
		an_tag_wake(&task->start, &task->rem, vtime);
	}
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
