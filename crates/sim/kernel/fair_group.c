/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Groups of the stock scheduler, and averages of loads.
 *
 * A group has its cpu.weight on the machine as a whole. On one CPU it weighs as much of that as is
 * queued for it there, of what is queued for it anywhere: kernel/sched/fair.c,
 * calc_group_shares(). What is queued on other CPUs the kernel knows as an average (PELT) of which
 * each tells the others once in a while; here it is as of now, and averages are exponential ones in
 * continuous time, where the kernel's go by periods. On one CPU a group weighs what it is given.
 */
#include "model.h"

#include <stdlib.h>

#define PERIOD_SHIFT 20		     /* 1024 * 1024 ns */
#define HALF_LIFE 32		     /* [periods] */
#define YEAR_1 4202936135ULL	     /* 2^(-1 / HALF_LIFE), in 2^-32 */
#define LN2_OF_HALF_LIFE 93032640ULL /* ln(2) / HALF_LIFE, in 2^-32 */
#define LOAD_SHIFT 8

/* 2^(-ns / half-life), in 2^-32; within 2^-12 of the exact number. */
static u64 decayed(u64 ns)
{
	u64 periods = ns >> PERIOD_SHIFT, rest = ns & ((1ULL << PERIOD_SHIFT) - 1);
	u64 left = (1ULL << 32) - (LN2_OF_HALF_LIFE * rest >> PERIOD_SHIFT);

	if (periods >= 32 * HALF_LIFE)
		return 0;
	for (u64 step = 0; step < periods % HALF_LIFE; step++)
		left = left * YEAR_1 >> 32;
	return left >> (periods / HALF_LIFE);
}

/* The average now, if the load has been `weight` since the last call. */
u64 fair_load(struct fair_load *load, u64 weight, u64 now_ns)
{
	s64 is = (s64)(weight << LOAD_SHIFT);

	if (now_ns > load->at_ns) {
		s64 above = (s64)load->average - is;

		above = (s64)((__int128)above * (s64)decayed(now_ns - load->at_ns) >> 32);
		load->average = (u64)(is + above);
		load->at_ns = now_ns;
	}
	return load->average >> LOAD_SHIFT;
}

static void add(struct fair_load *load, s64 average)
{
	s64 sum = (s64)load->average + average;

	load->average = sum > 0 ? (u64)sum : 0;
}

static void take_along(struct fair_entity *e, struct fair_queue *from, u64 now_ns)
{
	fair_load(&e->load, 0, now_ns);
	fair_load(&from->load, from->weight, from->rq->clock_ns);
	add(&from->load, -(s64)e->load.average);
}

/* attach_entity_load_avg(), detach_entity_load_avg(): its load goes along when it changes queues.
 */
void fair_join(struct fair_entity *e, struct fair_queue *q)
{
	struct fair_queue *from = e->queue;

	if (from == q)
		return;
	e->queue = q;
	fair_load(&q->load, q->weight, q->rq->clock_ns);
	if (from)
		take_along(e, from, q->rq->clock_ns);
	else if (e->load.at_ns)
		fair_load(&e->load, 0, q->rq->clock_ns);
	else
		e->load = (struct fair_load){e->weight << LOAD_SHIFT, q->rq->clock_ns};
	add(&q->load, (s64)e->load.average);
}

/* task_dead_fair(), detach_task_cfs_rq(): as it ends, or changes its class or its group. */
void fair_detach(struct task_struct *p)
{
	if (p->fair.queue)
		take_along(&p->fair, p->fair.queue, m.now_ns);
	p->fair.queue = NULL;
}

/* account_entity_enqueue(), account_entity_dequeue() */
void fair_counts(struct fair_queue *q, struct fair_entity *e, bool queued)
{
	fair_load(&q->load, q->weight, q->rq->clock_ns);
	fair_load(&e->load, queued ? 0 : e->weight, q->rq->clock_ns);
	q->weight += queued ? e->weight : -e->weight;
	q->queued += queued ? 1 : -1;
}

/* ---- groups ---- */

struct fair_group {
	u64 weight; /* tg->shares */
	struct fair_queue queue[MODEL_CPUS];
	struct fair_entity entity[MODEL_CPUS];
};

/* sched_weight_from_cgroup(): 100 is nice 0's. */
static u64 weight_from(const struct cgroup *c)
{
	if (c->idle)
		return 3 << FAIR_WEIGHT_SHIFT; /* WEIGHT_IDLEPRIO */
	return (c->weight * FAIR_NICE_0_WEIGHT + 50) / 100 << FAIR_WEIGHT_SHIFT;
}

static struct fair_group *group_of(struct cgroup *c)
{
	if (!c->fair) {
		c->fair = calloc(1, sizeof(*c->fair));
		model_assert(c->fair);
		c->fair->weight = weight_from(c);
	}
	return c->fair;
}

struct fair_queue *fair_queue_of(struct cgroup *c, struct rq *rq)
{
	struct fair_queue *q = &rq->fair;
	struct fair_group *group;

	q->rq = rq;
	if (!c->parent)
		return q;
	group = group_of(c);
	q = &group->queue[rq->cpu];
	if (!q->rq) {
		struct fair_entity *e = &group->entity[rq->cpu];

		*q = (struct fair_queue){.rq = rq, .group = c, .entity_of = e};
		*e = (struct fair_entity){.own = q, .weight = group->weight};
		e->queue = fair_queue_of(c->parent, rq);
	}
	return q;
}

/* calc_group_shares() */
static u64 weight_on_cpu(struct fair_queue *q)
{
	struct fair_group *group = q->group->fair;
	u64 here = fair_load(&q->load, q->weight, q->rq->clock_ns), all, weight;

	here = all = q->weight > here ? q->weight : here;
	for (u32 cpu = 0; cpu < m.options.cpus; cpu++) {
		struct fair_queue *other = &group->queue[cpu];

		if (other != q && other->rq)
			all += fair_load(&other->load, other->weight, m.now_ns);
	}
	weight = (u64)((__int128)group->weight * here / all);
	return weight < 2 ? 2 : weight < group->weight ? weight : group->weight;
}

/* update_cfs_group(): an empty one keeps its weight, it may be delayed. */
void fair_group_reweighs(struct fair_entity *e)
{
	u64 weight;

	if (!e->own || !e->own->weight)
		return;
	weight = weight_on_cpu(e->own);
	if (weight != e->weight)
		fair_reweigh(e->queue, e, weight);
}

/* cpu.weight was written: sched_group_set_shares() */
void fair_group_weight(struct cgroup *c)
{
	if (!c->fair)
		return;
	c->fair->weight = weight_from(c);
	for (u32 cpu = 0; cpu < m.options.cpus; cpu++) {
		if (!c->fair->queue[cpu].rq)
			continue;
		update_rq_clock(rq_of(cpu));
		update_curr(rq_of(cpu));
		for (struct fair_entity *e = &c->fair->entity[cpu]; e; e = fair_parent(e))
			fair_group_reweighs(e);
	}
}

/* The group has ended; nothing runs in it. */
void fair_group_gone(struct cgroup *c)
{
	for (u32 cpu = 0; c->fair && cpu < m.options.cpus; cpu++) {
		struct fair_entity *e = &c->fair->entity[cpu];

		if (e->on_rq)
			fair_leaves(rq_of(cpu), e);
		free(c->fair->queue[cpu].entity);
	}
	free(c->fair);
	c->fair = NULL;
}
