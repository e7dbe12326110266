/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is changed about tasks and classes: weights, affinity, moves; cgroups come and go. What user
 * space may call is in sim.h.
 */
#include "model.h"

#include <string.h>

/* The kernel's weights of nice values: sched_prio_to_weight; the last is SCHED_IDLE's. */
static const u32 weights[41] = {
	88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548,
	7620,  6100,  4904,  3906,  3121,  2501,  1991,	 1586,	1277,  1024,  820,
	655,   526,   423,   335,   272,   215,	  172,	 137,	110,   87,    70,
	56,    45,    36,    29,    23,	   18,	  15,	 3,
};

u32 scx_weight(const struct task_struct *p)
{
	/* sched_weight_to_cgroup() */
	u64 weight = (weights[p->static_prio - 100] * 100ULL + 512) / 1024;

	return weight < 1 ? 1 : weight > 10000 ? 10000 : (u32)weight;
}

/* Of one that is not a group: its nice value's. */
u32 fair_weight(const struct task_struct *p)
{
	return weights[p->static_prio - 100];
}

/* ---- what is changed about a task ---- */

void pi_lock(struct task_struct *p)
{
	while (p->pi_locked) {
		kernel_waits();
	}
	p->pi_locked = true;
}

/* sched_change_begin() and _end(): a task is taken out, changed and put back. With the lock of its
 * run queue. */
struct change change_begins(struct task_struct *p)
{
	struct change c = {.rq = task_rq_lock(p)};

	c.queued = p->on_rq;
	c.running = c.rq->curr == p && p->on_rq;
	update_rq_clock(c.rq);
	fair_leaves(c.rq, &p->fair);
	if (c.queued)
		dequeue_task(c.rq, p, false);
	if (c.running)
		put_prev_task(c.rq, p, NULL);
	return c;
}

void change_ends(struct task_struct *p, const struct change *c)
{
	if (c->queued)
		enqueue_task(c->rq, p, 0);
	if (c->running)
		set_next_task(c->rq, p);
}

void sim_nice(u32 number, int32_t nice)
{
	struct task_struct *p = task_of(number);
	struct change c = change_begins(p);

	p->static_prio = AN_NICE_0_PRIO + nice;
	p->scx.weight = scx_weight(p); /* reweight_task_scx() */
	if (p->scx.state == SCX_TASK_ENABLED && model_ops->set_weight)
		model_ops->set_weight(p, p->scx.weight);
	change_ends(p, &c);
	rq_unlock(c.rq);
}

/* sched_move_task() */
void sim_move(u32 number, u32 cgroup)
{
	struct task_struct *p = task_of(number);
	struct cgroup *from, *to = cgroup_of(cgroup);
	struct change c;

	lock_waits(&m.cgroups_locked); /* cgroup_attach_lock() */
	from = p->cgroup;
	if (to->gone) {
		m.cgroups_locked = 0;
		return;
	}
	c = change_begins(p);
	from->tasks--;
	to->tasks++;
	fair_detach(p);
	p->cgroup = to;
	if (m.cgroups_known && from != to && model_ops->cgroup_move)
		model_ops->cgroup_move(p, from, to);
	if (c.running)
		resched_curr(c.rq);
	else if (c.queued)
		wakeup_preempt(c.rq, p);
	change_ends(p, &c);
	rq_unlock(c.rq);
	m.cgroups_locked = 0;
}

/* ---- cgroups ---- */

struct cgroup *cgroup_new(struct cgroup *parent, u32 weight)
{
	struct cgroup *c = calloc(1, sizeof(*c));

	model_assert(c);
	model_room_for(m.cgroups, m.cgroup_count, m.cgroup_room);
	m.cgroups[m.cgroup_count++] = c;
	c->parent = parent;
	c->level = parent ? parent->level + 1 : 0;
	c->node.id = m.cgroup_count;
	c->kn = &c->node;
	c->weight = weight;
	c->quota_us = ~0ULL; /* scx_tg_init() */
	c->period_us = 100000;
	return c;
}

bool cgroup_begins(struct cgroup *c)
{
	struct scx_cgroup_init_args args = {
		.weight = c->weight,
		.bw_period_us = c->period_us,
		.bw_quota_us = c->quota_us,
		.bw_burst_us = c->burst_us,
	};

	c->known =
		m.cgroups_known && (!model_ops->cgroup_init || !model_ops->cgroup_init(c, &args));
	return !m.cgroups_known || c->known;
}

u32 sim_cgroup(u32 parent, u32 weight)
{
	struct cgroup *c;
	u32 number;

	lock_waits(&m.cgroups_locked); /* cgroup_lock() */
	number = m.cgroup_count;
	c = cgroup_new(cgroup_of(parent), weight);
	c->parent->children++;
	number = cgroup_begins(c) ? number : ~0U;
	m.cgroups_locked = 0;
	return number;
}

void sim_cgroup_weight(u32 cgroup, u32 weight)
{
	struct cgroup *c = cgroup_of(cgroup);

	lock_waits(&m.cgroups_locked);
	c->weight = weight;
	fair_group_weight(c);
	if (c->known && model_ops->cgroup_set_weight)
		model_ops->cgroup_set_weight(c, weight);
	m.cgroups_locked = 0;
}

/* cpu_idle_write_s64() */
void sim_cgroup_idle(u32 cgroup, u32 idle)
{
	struct cgroup *c = cgroup_of(cgroup);

	lock_waits(&m.cgroups_locked);
	if (c->idle != !!idle) {
		c->idle = idle;
		c->weight = 100;
		fair_group_weight(c);
		if (c->known && model_ops->cgroup_set_idle)
			model_ops->cgroup_set_idle(c, idle);
	}
	m.cgroups_locked = 0;
}

/* scx_group_set_bandwidth(): quota ~0 is max. The model of the stock scheduler enforces none. */
void sim_cgroup_bandwidth(u32 cgroup, uint64_t quota_us, uint64_t period_us, uint64_t burst_us)
{
	struct cgroup *c = cgroup_of(cgroup);
	bool same = c->quota_us == quota_us && c->period_us == period_us && c->burst_us == burst_us;

	lock_waits(&m.cgroups_locked);
	c->quota_us = quota_us;
	c->period_us = period_us;
	c->burst_us = burst_us;
	if (!same && c->known && model_ops->cgroup_set_bandwidth)
		model_ops->cgroup_set_bandwidth(c, period_us, quota_us, burst_us);
	m.cgroups_locked = 0;
}

int sim_cgroup_remove(u32 cgroup)
{
	struct cgroup *c = cgroup_of(cgroup);

	lock_waits(&m.cgroups_locked);
	if (!cgroup || c->gone || c->tasks || c->children) {
		m.cgroups_locked = 0;
		return -16; /* EBUSY */
	}
	if (c->known && model_ops->cgroup_exit)
		model_ops->cgroup_exit(c);
	fair_group_gone(c);
	c->gone = true;
	c->parent->children--;
	/* Its storage stays: a program may have the cgroup still (css_free_rwork_fn() frees it). */
	m.cgroups_locked = 0;
	return 0;
}
