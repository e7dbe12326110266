/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The stock scheduler, EEVDF [1], as far as a comparison needs it: kernel/sched/fair.c without
 * groups. Among the tasks that are owed service (whose vruntime is not beyond the weighted mean)
 * the earliest virtual deadline is served first; who sleeps keeps its lag, within a slice; the task
 * that runs is protected until it has had its slice or is not owed any more (RUN_TO_PARITY).
 *
 * [1] I. Stoica, H. Abdel-Wahab, *Earliest Eligible Virtual Deadline First*, Old Dominion
 * University TR-95-22, 1995.
 */
#include "model.h"

#include <string.h>

#define NICE_0_WEIGHT 1024

static u64 weight_of(const struct task_struct *p)
{
	return (u64)p->fair_weight;
}

/* sysctl_sched_base_slice: 0.7 ms, times 1 + log2 of the CPUs, of at most eight [ns]. */
static u64 base_slice_ns(void)
{
	u32 cpus = m.options.cpus < 8 ? m.options.cpus : 8, steps = 1;

	while (cpus >>= 1)
		steps++;
	return 700000ULL * steps;
}

static u64 virtual_ns(const struct task_struct *p, u64 ns)
{
	return ns * NICE_0_WEIGHT / weight_of(p);
}

/* avg_vruntime(): the weighted mean. */
static u64 mean_vruntime(const struct rq *rq)
{
	s64 sum = 0, weights = 0;

	for (u32 at = 0; at < rq->fairs; at++) {
		const struct task_struct *p = rq->fair[at];

		sum += (s64)(p->vruntime - rq->fair_min_vruntime) * (s64)weight_of(p);
		weights += (s64)weight_of(p);
	}
	return rq->fair_min_vruntime + (weights ? (u64)(sum / weights) : 0);
}

static void move_min(struct rq *rq)
{
	u64 least = rq->fairs ? rq->fair[0]->vruntime : rq->fair_min_vruntime;

	for (u32 at = 1; at < rq->fairs; at++)
		if ((s64)(rq->fair[at]->vruntime - least) < 0)
			least = rq->fair[at]->vruntime;
	if ((s64)(least - rq->fair_min_vruntime) > 0)
		rq->fair_min_vruntime = least;
}

/* place_entity(): it has the lag that it had when it left; a new one begins with half a slice. */
void fair_enqueue(struct rq *rq, struct task_struct *p, bool woken)
{
	u64 mean = mean_vruntime(rq), load = 0;
	s64 lag;

	for (u32 at = 0; at < rq->fairs; at++)
		load += weight_of(rq->fair[at]);
	if (!p->fair_weight) {
		extern u32 fair_weight(const struct task_struct *p);

		p->fair_weight = fair_weight(p);
	}
	lag = p->fair_lag;
	/* Its arrival moves the mean: the lag is to be what it was, after that. */
	if (load)
		lag = lag * (s64)(load + weight_of(p)) / (s64)load;
	p->vruntime = mean - (u64)lag;
	p->vdeadline = p->vruntime + virtual_ns(p, base_slice_ns()) / (woken ? 1 : 2);
	model_room_for(rq->fair, rq->fairs, rq->fair_room);
	rq->fair[rq->fairs++] = p;
	p->fair_protected_ns = 0;
}

void fair_dequeue(struct rq *rq, struct task_struct *p)
{
	s64 lag = (s64)(mean_vruntime(rq) - p->vruntime), most;
	u32 at = 0;

	/* update_entity_lag(): within two slices, and a tick */
	most = (s64)virtual_ns(p, 2 * base_slice_ns() + m.options.tick_ns);
	p->fair_lag = lag > most ? most : lag < -most ? -most : lag;
	while (at < rq->fairs && rq->fair[at] != p)
		at++;
	model_assert(at < rq->fairs);
	rq->fair[at] = rq->fair[--rq->fairs];
	move_min(rq);
}

static bool is_eligible(const struct rq *rq, const struct task_struct *p)
{
	return (s64)(p->vruntime - mean_vruntime(rq)) <= 0;
}

static bool is_protected(const struct rq *rq, const struct task_struct *p)
{
	return p->on_rq && p->fair_protected_ns && p->vruntime != p->vdeadline &&
	       (s64)(p->vruntime - p->fair_protected_ns) < 0 && is_eligible(rq, p);
}

struct task_struct *fair_pick(struct rq *rq)
{
	struct task_struct *best = NULL, *curr = rq->curr;
	u64 mean;

	if (!rq->fairs)
		return NULL;
	if (curr->class == CLASS_FAIR && is_protected(rq, curr))
		return curr;
	mean = mean_vruntime(rq);
	for (u32 at = 0; at < rq->fairs; at++) {
		struct task_struct *p = rq->fair[at];

		if ((s64)(p->vruntime - mean) > 0)
			continue;
		if (!best || (s64)(p->vdeadline - best->vdeadline) < 0 ||
		    (p->vdeadline == best->vdeadline && p->number < best->number))
			best = p;
	}
	/* The mean is rounded: somebody is always owed. */
	for (u32 at = 0; !best && at < rq->fairs; at++)
		if (rq->fair[at]->vruntime == rq->fair_min_vruntime || at + 1 == rq->fairs)
			best = rq->fair[at];
	/* set_protect_slice() */
	if (best != curr)
		best->fair_protected_ns = best->vdeadline;
	return best;
}

void fair_preempts(struct rq *rq, struct task_struct *p)
{
	struct task_struct *curr = rq->curr;

	if (curr->class != CLASS_FAIR || !curr->on_rq)
		return;
	update_rq_clock(rq);
	update_curr(rq);
	if (is_protected(rq, curr))
		return;
	if (is_eligible(rq, p) && (s64)(p->vdeadline - curr->vdeadline) < 0)
		resched_curr(rq);
}

void fair_update(struct rq *rq, struct task_struct *curr, u64 ran_ns)
{
	curr->vruntime += virtual_ns(curr, ran_ns);
	move_min(rq);
	/* update_deadline() */
	if ((s64)(curr->vruntime - curr->vdeadline) < 0)
		return;
	curr->vdeadline = curr->vruntime + virtual_ns(curr, base_slice_ns());
	curr->fair_protected_ns = 0;
	if (rq->fairs > 1)
		resched_curr(rq);
}

void fair_tick(struct rq *rq, struct task_struct *curr)
{
	(void)rq;
	(void)curr; /* update_curr() has seen to it */
}

void fair_put_prev(struct rq *rq, struct task_struct *p)
{
	(void)rq;
	(void)p;
}

u32 fair_select_cpu(struct task_struct *p, u32 cpu)
{
	u32 best = cpu;

	for (u32 step = 0; step < m.options.cpus; step++) {
		u32 at = (cpu + step) % m.options.cpus;

		if (task_allowed(p, at) && task_is_idle(rq_of(at)->curr) &&
		    !rq_of(at)->need_resched)
			return at;
		if (task_allowed(p, at) &&
		    (!task_allowed(p, best) || rq_of(at)->fairs + 1 < rq_of(best)->fairs))
			best = at;
	}
	return best;
}

struct task_struct *fair_pull(struct rq *rq)
{
	for (u32 step = 1; step < m.options.cpus; step++) {
		struct rq *other = rq_of((rq->cpu + step) % m.options.cpus);

		for (u32 at = 0; at < other->fairs; at++) {
			struct task_struct *p = other->fair[at];

			if (other->curr == p || !task_allowed(p, rq->cpu))
				continue;
			fair_dequeue(other, p);
			set_task_cpu(p, rq->cpu);
			fair_enqueue(rq, p, true);
			return p;
		}
	}
	return NULL;
}
