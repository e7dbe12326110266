/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The stock scheduler's class: kernel/sched/fair.c of Linux 7.2.13 with its features at their
 * defaults and the configuration of Debian's kernel for virtual machines.
 *
 * Of that configuration these matter:
 *
 *      HRTICK           on (CONFIG_HRTIMER_REARM_DEFERRED): a timer expires when the task in
 * service has had its slice, so that this is not put off until the tick. PREEMPT_LAZY     another
 * CPU is not interrupted for the sake of who wakes there: it looks when it is in the kernel next,
 * at the tick at the latest. SCHED_AUTOGROUP  groups of sessions: the laboratory's programs begin
 * none of their own, so without weights all of them are in the root group. NEXT_BUDDY       off;
 * but who sleeps recommends its group (set_next_buddy() in dequeue_entities(), honoured by
 * PICK_BUDDY).
 *
 * Not here: bandwidth limits (cpu.max), core scheduling, slices of a task's own (sched_setattr()).
 */
#include "model.h"

/* sched_idle: weight 3, and it yields to whoever is not. */
static bool is_idle_policy(const struct fair_entity *e)
{
	return e->task && fair_has_idle_policy(e->task);
}

/* resched_curr_lazy() */
static void resched_lazily(struct rq *rq)
{
	if (rq->cpu == m.cpu || task_is_idle(rq->curr))
		resched_curr(rq);
	else
		rq->resched_when_in_kernel = true;
}

static void set_next_buddy(struct fair_entity *e)
{
	for (; e && e->on_rq && !is_idle_policy(e); e = fair_parent(e))
		e->queue->next = e;
}

/* clear_buddies() */
static void forget_buddy(struct fair_entity *e)
{
	for (; e && e->queue->next == e; e = fair_parent(e))
		e->queue->next = NULL;
}

static void set_delayed(struct fair_entity *e, bool delayed)
{
	e->delayed = delayed;
	if (e->task)
		e->queue->rq->fair_delayed += delayed ? 1 : -1;
}

/* ---- into the queues ---- */

/* enqueue_entity() */
static void enqueue_entity(struct fair_entity *e, bool is_new)
{
	struct fair_queue *q = e->queue;

	fair_group_reweighs(e);
	fair_place(q, e, is_new);
	fair_counts(q, e, true);
	if (q->curr != e)
		fair_waits(q, e);
	e->on_rq = true;
	fair_touch(e);
}

/* requeue_delayed_entity(): it wakes before it has made up for its lag. */
static void requeue_delayed(struct fair_entity *e)
{
	struct fair_queue *q = e->queue;

	if (fair_update_lag(q, e)) {
		q->queued--;
		if (q->curr != e)
			fair_waits_no_more(q, e);
		fair_place(q, e, false);
		if (q->curr != e)
			fair_waits(q, e);
		q->queued++;
	}
	set_delayed(e, false);
}

static void commit(struct rq *rq)
{
	if (rq->curr->class == CLASS_FAIR)
		update_curr(rq);
}

/* The entity of a task, with its weight as its nice value is now. */
static struct fair_entity *entity_of(struct task_struct *p)
{
	struct fair_entity *e = &p->fair;
	u64 weight = (u64)fair_weight(p) << FAIR_WEIGHT_SHIFT;

	if (!e->task) {
		e->task = p;
		e->weight = weight;
		e->is_new = true;
		e->recent_cpu = p->cpu;
	}
	if (e->weight != weight)
		fair_reweigh(e->queue, e, weight);
	return e;
}

/* enqueue_task_fair() */
void fair_enqueue(struct rq *rq, struct task_struct *p, bool woken)
{
	struct fair_entity *e = entity_of(p);
	bool is_new = e->is_new && !woken;

	commit(rq);
	fair_join(e, fair_queue_of(p->cgroup, rq));
	for (; e && !e->on_rq; e = fair_parent(e), is_new = false)
		enqueue_entity(e, is_new);
	if (e && e->delayed)
		requeue_delayed(e);
	for (; e; e = fair_parent(e))
		fair_group_reweighs(e);
	rq->fair_idles += fair_has_idle_policy(p);
	if (!rq->fair_tasks++)
		server_starts(rq);
	if (rq->curr->class == CLASS_FAIR && rq->hrtick_ns == MODEL_NEVER)
		fair_hrtick_starts(rq, rq->curr);
}

/* ttwu_runnable(): a task that was to sleep has stayed, and stays. */
bool fair_wakes_delayed(struct task_struct *p)
{
	struct rq *rq = task_rq(p);

	if (p->class != CLASS_FAIR || !p->fair.delayed)
		return false;
	p->life = TASK_RUNNABLE;
	p->on_rq = true;
	update_rq_clock(rq);
	commit(rq);
	requeue_delayed(&p->fair);
	wakeup_preempt(rq, p);
	return true;
}

/* ---- and out of them ---- */

struct leaving {
	bool sleeps;
	bool at_once; /* it exits or is stopped (DEQUEUE_SPECIAL): it is not delayed */
	bool delayed; /* it was delayed, and that is over */
};

/* dequeue_entity(). False: it sleeps, but has had more than its part, and stays to make up for it.
 */
static bool dequeue_entity(struct fair_entity *e, const struct leaving *how)
{
	struct fair_queue *q = e->queue;

	forget_buddy(e);
	if (how->sleeps && !how->at_once && !how->delayed && !fair_is_eligible(q, e)) {
		fair_update_lag(q, e);
		set_delayed(e, true);
		return false;
	}
	fair_update_lag(q, e);
	if (!how->sleeps) {
		e->deadline -= e->vruntime;
		e->deadline_is_relative = true;
	}
	if (q->curr != e)
		fair_waits_no_more(q, e);
	e->on_rq = false;
	fair_counts(q, e, false);
	if (how->delayed)
		set_delayed(e, false);
	return true;
}

/* dequeue_entities(). False: the task is delayed. */
static bool dequeue_entities(struct rq *rq, struct fair_entity *e, struct leaving how)
{
	struct task_struct *p = e->task;
	bool sleeps = how.sleeps;

	for (; e; e = fair_parent(e)) {
		if (!dequeue_entity(e, &how)) {
			if (e->task)
				return false;
			break;
		}
		if (e->queue->weight) {
			e = fair_parent(e);
			if (sleeps && e)
				set_next_buddy(e);
			break;
		}
		how = (struct leaving){.sleeps = true};
	}
	for (; e; e = fair_parent(e))
		fair_group_reweighs(e);
	if (p) {
		rq->fair_tasks--;
		rq->fair_idles -= fair_has_idle_policy(p);
	}
	return true;
}

/* dequeue_task_fair() */
void fair_dequeue(struct rq *rq, struct task_struct *p, bool sleeps)
{
	struct leaving how = {.sleeps = sleeps, .at_once = p->life == TASK_DEAD || p->stopped};

	commit(rq);
	dequeue_entities(rq, &p->fair, how);
}

/* What is delayed is so no more: it is gone. */
void fair_leaves(struct rq *rq, struct fair_entity *e)
{
	if (!e->delayed)
		return;
	update_rq_clock(rq);
	commit(rq);
	dequeue_entities(rq, e, (struct leaving){.sleeps = true, .delayed = true});
}

/* ---- who is next ---- */

/* pick_next_entity(): none: the one chosen only waited to be gone, and is. */
static struct fair_entity *pick_of(struct rq *rq, struct fair_queue *q, bool protect)
{
	struct fair_entity *e = fair_pick_of(q, protect);

	if (!e->delayed)
		return e;
	dequeue_entities(rq, e, (struct leaving){.sleeps = true, .delayed = true});
	return NULL;
}

/* pick_task_fair(), without what it does if there is nobody: fair_pull() */
struct task_struct *fair_pick(struct rq *rq)
{
	struct fair_queue *q = &rq->fair;
	struct fair_entity *e;

	commit(rq);
	while (q->queued) {
		e = pick_of(rq, q, true);
		if (e && e->task)
			return e->task;
		q = e ? e->own : &rq->fair;
	}
	return NULL;
}

static bool is_above(const struct fair_entity *e, const struct task_struct *p)
{
	const struct fair_entity *below = &p->fair;

	while (below && below != e)
		below = fair_parent(below);
	return below;
}

/* put_prev_task_fair(): groups that both are in stay in service. */
void fair_put_prev(struct task_struct *p, struct task_struct *next)
{
	if (!p->fair.queue)
		return; /* it was on its way out when the class took over */
	for (struct fair_entity *e = &p->fair; e; e = fair_parent(e)) {
		struct fair_queue *q = e->queue;

		if (next && next->class == CLASS_FAIR && is_above(e, next))
			break;
		if (q->curr != e)
			continue;
		q->curr = NULL;
		if (e->on_rq)
			fair_waits(q, e);
	}
}

/* set_next_task_fair(); first: it was chosen, and is protected from here on. */
void fair_set_next(struct rq *rq, struct task_struct *p, bool first)
{
	fair_touch(&p->fair);
	p->fair.is_new = false;
	for (struct fair_entity *e = &p->fair; e; e = fair_parent(e)) {
		struct fair_queue *q = e->queue;

		if (q->curr == e)
			break;
		model_assert(!q->curr);
		forget_buddy(e);
		if (e->on_rq) {
			fair_waits_no_more(q, e);
			if (first)
				e->protected_until = e->deadline;
		}
		q->curr = e;
	}
	if (first)
		fair_hrtick_starts(rq, p);
}

/* ---- may the one that has come have the CPU at once? ---- */

/* find_matching_se(): those of one queue that are the two tasks, or what they are in */
static void match(struct fair_entity **a, struct fair_entity **b)
{
	u32 depths[2] = {0, 0};

	for (struct fair_entity *e = *a; e; e = fair_parent(e))
		depths[0]++;
	for (struct fair_entity *e = *b; e; e = fair_parent(e))
		depths[1]++;
	for (; depths[0] > depths[1]; depths[0]--)
		*a = fair_parent(*a);
	for (; depths[1] > depths[0]; depths[1]--)
		*b = fair_parent(*b);
	while ((*a)->queue != (*b)->queue) {
		*a = fair_parent(*a);
		*b = fair_parent(*b);
	}
}

/* wakeup_preempt_fair() */
void fair_preempts(struct rq *rq, struct task_struct *p)
{
	struct fair_entity *curr = &rq->curr->fair, *e = &p->fair, *first = NULL;
	bool is_new = e->is_new;
	u64 slice_ends;

	e->is_new = false;
	if (rq->curr->class != CLASS_FAIR || rq->curr == p || rq->need_resched)
		return;
	match(&curr, &e);
	if (is_idle_policy(curr) && !is_idle_policy(e)) {
		if (fair_is_protected(curr))
			curr->protected_until = curr->vruntime;
		forget_buddy(curr);
		resched_lazily(rq);
		return;
	}
	if (is_idle_policy(curr) != is_idle_policy(e) || fair_has_idle_policy(p))
		return;
	commit(rq);
	if (is_new || e->delayed)
		return;
	while (!first && e->queue->queued)
		first = pick_of(rq, e->queue, true);
	if (first == e) {
		resched_lazily(rq);
		return;
	}
	/* update_protect_slice() */
	slice_ends = curr->vruntime + fair_virtual_ns(curr, fair_slice_ns());
	if ((s64)(slice_ends - curr->protected_until) < 0)
		curr->protected_until = slice_ends;
}

/* ---- while it is in service ---- */

/* update_curr(), of all levels */
void fair_update(struct rq *rq, struct task_struct *curr, u64 ran_ns)
{
	for (struct fair_entity *e = &curr->fair; e; e = fair_parent(e)) {
		struct fair_queue *q = e->queue;
		bool ends;

		if (!q || q->curr != e)
			return;
		e->vruntime += fair_virtual_ns(e, ran_ns);
		ends = (s64)(e->vruntime - e->deadline) >= 0;
		if (ends) /* update_deadline() */
			e->deadline = e->vruntime + fair_virtual_ns(e, fair_slice_ns());
		if (q->queued > 1 && (ends || !fair_is_protected(e))) {
			resched_lazily(rq);
			forget_buddy(e);
		}
	}
	server_counts(rq, ran_ns);
}

/* task_tick_fair(): entity_tick() has called update_curr() */
void fair_tick(struct task_struct *curr)
{
	for (struct fair_entity *e = &curr->fair; e; e = fair_parent(e))
		fair_group_reweighs(e);
}

/* yield_task_fair() */
void fair_yield(struct rq *rq, struct task_struct *p)
{
	struct fair_entity *e = &p->fair;

	if (rq->fair_tasks < 2)
		return;
	forget_buddy(e);
	update_rq_clock(rq);
	update_curr(rq);
	if (fair_is_eligible(e->queue, e)) {
		e->vruntime = e->deadline;
		e->deadline += fair_virtual_ns(e, fair_slice_ns());
	}
}

/* ---- HRTICK ---- */

#define HRTICK_LEAST_NS 10000ULL /* hrtick_start() */
#define HRTICK_NEAR_NS 5000ULL	 /* hrtick_needs_rearm(): as good as the same */

/* hrtick_start_fair(): when it will have had its slice, as if nobody else ran meanwhile. */
void fair_hrtick_starts(struct rq *rq, struct task_struct *p)
{
	struct fair_entity *e = &p->fair;
	s64 left = (s64)(e->deadline - e->vruntime);
	u64 ns, at_ns;

	if (rq->fair_tasks <= 1)
		return;
	if (left < 0) {
		if (rq->curr == p)
			resched_curr(rq);
		return;
	}
	ns = (u64)left * e->weight / (FAIR_NICE_0_WEIGHT << FAIR_WEIGHT_SHIFT);
	at_ns = model_clock_ns() + (ns > HRTICK_LEAST_NS ? ns : HRTICK_LEAST_NS);
	if (rq->hrtick_ns != MODEL_NEVER && at_ns + HRTICK_NEAR_NS >= rq->hrtick_ns &&
	    at_ns <= rq->hrtick_ns + HRTICK_NEAR_NS)
		return;
	rq->hrtick_ns = at_ns;
	if (rq->cpu != m.cpu)
		rq->busy_ns += m.costs.ipi;
}

/* hrtick() */
void fair_hrtick(struct rq *rq)
{
	rq->hrtick_ns = MODEL_NEVER;
	update_rq_clock(rq);
	update_curr(rq);
	if (rq->curr->class != CLASS_FAIR)
		return;
	fair_tick(rq->curr);
	resched_curr(rq);
}
