/* SPDX-License-Identifier: GPL-2.0 */
/*
 * SCHED_FIFO, as far as experiments need it: kernel/sched/rt.c. The highest priority first, in one
 * priority whoever came first; a CPU takes over what waits elsewhere before it turns to less
 * (pull_rt_task()). What they leave to others is server.c's.
 */
#include "model.h"

#include <string.h>

void rt_enqueue(struct rq *rq, struct task_struct *p)
{
	model_room_for(rq->rt, rq->rts, rq->rt_room);
	rq->rt[rq->rts++] = p;
	p->rt_order = ++m.rt_orders;
}

void rt_dequeue(struct rq *rq, struct task_struct *p)
{
	u32 at = 0;

	while (at < rq->rts && rq->rt[at] != p)
		at++;
	model_assert(at < rq->rts);
	rq->rt[at] = rq->rt[--rq->rts];
}

static bool comes_before(const struct task_struct *a, const struct task_struct *b)
{
	return !b || a->rt_prio > b->rt_prio ||
	       (a->rt_prio == b->rt_prio && a->rt_order < b->rt_order);
}

/* The most urgent task that waits on another CPU and may run here. */
static struct task_struct *pulls(struct rq *rq)
{
	struct task_struct *best = NULL;

	for (u32 cpu = 0; cpu < m.options.cpus; cpu++) {
		struct rq *other = &m.rqs[cpu];

		/* double_lock_balance(), but for waiting: who is in the middle of it is not asked.
		 */
		for (u32 at = 0; other != rq && !other->locked && at < other->rts; at++) {
			struct task_struct *p = other->rt[at];

			if (other->curr != p && task_allowed(p, rq->cpu) && comes_before(p, best))
				best = p;
		}
	}
	if (best) {
		u64 order = best->rt_order;

		rt_dequeue(task_rq(best), best);
		set_task_cpu(best, rq->cpu);
		rt_enqueue(rq, best);
		best->rt_order = order;
	}
	return best;
}

struct task_struct *rt_pick(struct rq *rq)
{
	struct task_struct *best = NULL;

	for (u32 at = 0; at < rq->rts; at++)
		if (comes_before(rq->rt[at], best))
			best = rq->rt[at];
	return best || m.options.cpus == 1 ? best : pulls(rq);
}

void rt_preempts(struct rq *rq, struct task_struct *p)
{
	if (p->rt_prio > rq->curr->rt_prio)
		resched_curr(rq);
}

void rt_tick(struct rq *rq, struct task_struct *curr)
{
	(void)rq;
	(void)curr;
}

/* find_lowest_rq(): where it is, if it may run at once there, or where that takes the least away.
 */
u32 rt_select_cpu(struct task_struct *p, u32 cpu)
{
	u32 best = cpu, least = ~0U;

	for (u32 step = 0; step < m.options.cpus; step++) {
		u32 at = (cpu + step) % m.options.cpus, taken = 0;
		struct task_struct *curr = rq_of(at)->curr;

		if (!task_allowed(p, at))
			continue;
		if (curr->class == CLASS_REAL_TIME)
			taken = 2 + curr->rt_prio;
		else if (!task_is_idle(curr))
			taken = 1;
		if (taken < least) {
			least = taken;
			best = at;
		}
	}
	return best;
}
