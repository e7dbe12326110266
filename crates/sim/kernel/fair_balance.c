/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which CPU a task of the stock scheduler's class has: kernel/sched/fair.c, for CPUs that are all
 * the same, share a cache and have no hyperthreads: one domain whose groups are single CPUs.
 *
 *      wake-up   the waker's CPU or where it was, by wake_affine(); if that one is not idle, one
 * that is (select_idle_sibling()) fork      an idle CPU, else the least loaded by far
 * (sched_balance_find_dst_cpu()) idle      a CPU that would be idle takes one task over
 * (sched_balance_newidle()) tick      once in a while a CPU takes over what it has less than the
 * mean (sched_balance_rq())
 *
 * Simpler than there: the search for an idle CPU never gives up early (SIS_UTIL), a CPU about to be
 * idle always looks (avg_idle, NI_RANDOM), no task that runs is moved (active balance), and no CPU
 * is preferred for its cache (SCHED_CACHE) or memory (NUMA).
 */
#include "model.h"

#define MIGRATION_COST_NS 500000ULL /* sysctl_sched_migration_cost: it is hot so long */
#define IMBALANCE_PERCENT 117U	    /* sd->imbalance_pct */
#define BUSY_FACTOR 16U		    /* sd->busy_factor */
#define NICE_TRIES 1U		    /* sd->cache_nice_tries */
#define NS_PER_MS 1000000ULL

void fair_touch(struct fair_entity *e)
{
	static u64 touches;

	e->touched = ++touches;
}

static u32 running(const struct rq *rq)
{
	return rq->fair_tasks + rq->rts;
}

/* available_idle_cpu() */
static bool is_idle(u32 cpu)
{
	return task_is_idle(rq_of(cpu)->curr) && !running(rq_of(cpu));
}

/* choose_idle_cpu(): or it has nothing but SCHED_IDLE tasks */
static bool is_free(const struct task_struct *p, u32 cpu)
{
	const struct rq *rq = rq_of(cpu);

	return is_idle(cpu) ||
	       (rq->fair_idles && running(rq) == rq->fair_idles && !fair_has_idle_policy(p));
}

/* cpu_load() */
static u64 load_of(struct rq *rq)
{
	return fair_load(&rq->fair.load, rq->fair.weight, m.now_ns);
}

/* task_h_load(): its load as part of its CPU's, where its groups have less of that */
static u64 load_of_task(struct task_struct *p)
{
	struct fair_entity *e = &p->fair;
	u64 load, all;

	if (!e->queue)
		return (u64)fair_weight(p) << FAIR_WEIGHT_SHIFT;
	load = fair_load(&e->load, e->on_rq ? e->weight : 0, m.now_ns);
	for (; fair_parent(e); e = fair_parent(e)) {
		all = fair_load(&e->queue->load, e->queue->weight, m.now_ns);
		load = (u64)((__int128)load * fair_parent(e)->weight / (all ? all : 1));
	}
	return load;
}

/* ---- at a wake-up ---- */

/* record_wakee(): how often it wakes another one than the last time; halved every second */
static void records(struct fair_entity *waker, struct task_struct *woken)
{
	if (m.now_ns > waker->flips_halve_ns) {
		waker->flips >>= 1;
		waker->flips_halve_ns = m.now_ns + 1000 * NS_PER_MS;
	}
	if (waker->last_woken != woken) {
		waker->last_woken = woken;
		waker->flips++;
	}
}

/* wake_wide(): partners are more than there are CPUs */
static bool is_of_many(const struct fair_entity *a, const struct fair_entity *b)
{
	u64 more = a->flips > b->flips ? a->flips : b->flips;
	u64 less = a->flips + b->flips - more;

	return less >= m.options.cpus && more >= less * m.options.cpus;
}

/* wake_affine_weight(): is there less to do here, with it, than there without it? */
static bool weighs_less_here(struct task_struct *p, u32 prev, bool sync)
{
	u64 task = load_of_task(p), here = load_of(this_rq()), there = load_of(rq_of(prev)), leaves;

	if (sync) {
		leaves = load_of_task(this_rq()->curr);
		if (leaves > here)
			return true;
		here -= leaves;
	}
	there = there > task ? there - task : 0;
	there = there * (100 + (IMBALANCE_PERCENT - 100) / 2) + sync;
	return (here + task) * 100 < there;
}

/* wake_affine() */
static u32 affine(struct task_struct *p, u32 prev, bool sync)
{
	const struct rq *rq = this_rq();

	if (is_idle(m.cpu))
		return is_idle(prev) ? prev : m.cpu;
	if (sync && running(rq) - rq->fair_delayed == 1)
		return m.cpu;
	if (is_idle(prev))
		return prev;
	return weighs_less_here(p, prev, sync && rq->curr->class == CLASS_FAIR) ? m.cpu : prev;
}

/* select_idle_sibling() */
static u32 idle_sibling(struct task_struct *p, u32 prev, u32 target)
{
	u32 recent = p->fair.recent_cpu;

	if (is_free(p, target))
		return target;
	if (task_allowed(p, prev) && is_free(p, prev))
		return prev;
	p->fair.recent_cpu = prev;
	if (recent != prev && task_allowed(p, recent) && is_free(p, recent))
		return recent;
	for (u32 step = 1; step <= m.options.cpus; step++) {
		u32 cpu = (target + step) % m.options.cpus;

		if (task_allowed(p, cpu) && is_free(p, cpu))
			return cpu;
	}
	return target;
}

/* ---- at a fork ---- */

/* sched_balance_find_dst_cpu() */
static u32 least_loaded(struct task_struct *p)
{
	u64 least = ~0ULL, here = load_of(this_rq());
	u32 best = m.cpu;

	for (u32 step = 0; step < m.options.cpus; step++) {
		u32 cpu = (m.cpu + step) % m.options.cpus;

		if (!task_allowed(p, cpu))
			continue;
		if (is_free(p, cpu))
			return cpu;
		if (load_of(rq_of(cpu)) < least) {
			least = load_of(rq_of(cpu));
			best = cpu;
		}
	}
	if (task_allowed(p, m.cpu) && least * IMBALANCE_PERCENT >= here * 100)
		return m.cpu;
	return best;
}

/* select_task_rq_fair() */
u32 fair_select_cpu(struct task_struct *p, u32 prev, bool sync)
{
	struct task_struct *curr = this_rq()->curr;
	u32 target = prev;

	if (!p->fair.task)
		return least_loaded(p);
	records(&curr->fair, p);
	if (!is_of_many(&curr->fair, &p->fair) && task_allowed(p, m.cpu) && m.cpu != prev)
		target = affine(p, prev, sync && !(curr->flags & PF_EXITING));
	return idle_sibling(p, prev, target);
}

/* ---- from CPU to CPU ---- */

/* can_migrate_task() */
static bool may_move(const struct task_struct *p, const struct rq *to, bool hot_ones)
{
	const struct rq *from = task_rq(p);

	return p->on_rq && p->class == CLASS_FAIR && from->curr != p && task_allowed(p, to->cpu) &&
	       (hot_ones || from->clock_ns >= p->se.exec_start + MIGRATION_COST_NS);
}

/* The one that has waited longest of those that may be moved, and are no more than so much. */
static struct task_struct *movable(struct fair_queue *q, const struct rq *to, bool hot_ones,
				   u64 load, struct task_struct *best)
{
	for (u32 at = 0; at < q->waiting + 1; at++) {
		struct fair_entity *e = at < q->waiting ? q->entity[at] : q->curr;

		if (!e || !e->on_rq)
			continue;
		if (e->own)
			best = movable(e->own, to, hot_ones, load, best);
		else if (may_move(e->task, to, hot_ones) &&
			 (!best || e->touched < best->fair.touched) &&
			 load_of_task(e->task) <= load)
			best = e->task;
	}
	return best;
}

/* detach_task(), attach_task() */
static void move(struct task_struct *p, struct rq *to)
{
	struct rq *from = task_rq(p);

	update_rq_clock(from);
	update_rq_clock(to);
	dequeue_task(from, p, false);
	set_task_cpu(p, to->cpu);
	enqueue_task(to, p, 0);
	wakeup_preempt(to, p);
}

static struct rq *busiest(const struct rq *to, bool by_load)
{
	struct rq *best = NULL;
	u64 most = 0;

	for (u32 step = 1; step < m.options.cpus; step++) {
		struct rq *rq = rq_of((to->cpu + step) % m.options.cpus);
		u64 has = by_load ? load_of(rq) : rq->fair_tasks - rq->fair_delayed;

		if (running(rq) > 1 && rq->fair_tasks && has > most) {
			most = has;
			best = rq;
		}
	}
	return best;
}

/* sched_balance_newidle(): one task, of whoever has most of them */
struct task_struct *fair_pull(struct rq *rq)
{
	struct rq *from = m.options.cpus > 1 ? busiest(rq, false) : NULL;
	struct task_struct *p = from ? movable(&from->fair, rq, false, ~0ULL, NULL) : NULL;

	if (!p)
		return NULL;
	move(p, rq);
	return fair_pick(rq);
}

/* calculate_imbalance(): what would bring both of them nearer to the mean */
static u64 imbalance(struct rq *to, struct rq *from)
{
	u64 here = load_of(to), there = load_of(from), mean = 0;

	for (u32 cpu = 0; cpu < m.options.cpus; cpu++)
		mean += load_of(rq_of(cpu));
	mean /= m.options.cpus;
	if (here >= mean || there <= mean || there * 100 <= here * IMBALANCE_PERCENT)
		return 0;
	return there - mean < mean - here ? there - mean : mean - here;
}

/* sched_balance_rq(); no task is taken of more load than is to be moved, but every time that this
 * came to nothing it may be twice that. */
static void balance(struct rq *rq)
{
	struct rq *from = busiest(rq, true);
	u64 left = from ? imbalance(rq, from) : 0;
	u32 moved = 0;

	if (!left) {
		rq->balance_failed = 0;
		rq->balance_interval = 2; /* max_interval */
		return;
	}
	while (left && running(from) > 1) {
		u64 least = left << (rq->balance_failed < 16 ? rq->balance_failed : 16);
		struct task_struct *p =
			movable(&from->fair, rq, rq->balance_failed > NICE_TRIES, least, NULL);
		u64 load = p ? load_of_task(p) : 0;

		if (!p)
			break;
		move(p, rq);
		moved++;
		left -= load < left ? load : left;
	}
	rq->balance_failed = moved ? 0 : rq->balance_failed + 1;
	rq->balance_interval = 1; /* min_interval */
}

/* nohz_balancer_kick(): tasks wait here, and a CPU is idle: it has one of them. */
static void kicks_idle(struct rq *rq)
{
	for (u32 cpu = 0; running(rq) > 1 && cpu < m.options.cpus; cpu++) {
		struct task_struct *p;

		if (!is_idle(cpu) || !rq_of(cpu)->online)
			continue;
		p = movable(&rq->fair, rq_of(cpu), false, ~0ULL, NULL);
		if (p)
			move(p, rq_of(cpu));
		return;
	}
}

/* sched_balance_trigger(), sched_balance_domains() of a busy CPU */
void fair_balance_tick(struct rq *rq)
{
	u32 cpus = m.options.cpus;
	u64 interval_ns;

	if (cpus == 1 || m.loaded)
		return;
	kicks_idle(rq);
	/* get_sd_balance_interval(): a ms for each CPU, in ticks, less one */
	interval_ns = cpus * NS_PER_MS * BUSY_FACTOR * (rq->balance_interval ?: 1);
	interval_ns = (interval_ns + m.options.tick_ns - 1) / m.options.tick_ns - 1;
	interval_ns *= m.options.tick_ns;
	if (m.now_ns < rq->balanced_ns + interval_ns)
		return;
	rq->balanced_ns = m.now_ns;
	balance(rq);
}
