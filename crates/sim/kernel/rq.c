/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Run queues: tasks wake, are queued, chosen, put into service and taken out of it, with the
 * scheduler's callbacks where and in the order in which kernel/sched/core.c and ext/ext.c make
 * them:
 *
 *      wake-up      select_task_rq(): an idle CPU's local queue at once, without a callback; else
 *                   enqueue. A task that may run on one CPU only is never asked about.
 *      __schedule   the previous task, if it sleeps: stopping(false). If it is runnable, and its
 *                   slice is used up: dispatch, and if that leaves another in the local queue,
 *                   stopping(true) and enqueue for it, then running. If it goes on: no callback.
 *      a task of a higher class takes the CPU: stopping(true); it goes to the head of the local
 *                   queue, and on from there without dispatch: running.
 */
#include "model.h"

#include <string.h>

void rq_lock(struct rq *rq)
{
	model_assert(!rq->locked || rq->locked_by != m.cpu);
	if (m.may_switch)
		m.may_switch();
	while (rq->locked) {
		kernel_waits();
	}
	rq->locked = true;
	rq->locked_by = m.cpu;
}

void rq_unlock(struct rq *rq)
{
	model_assert(rq->locked && rq->locked_by == m.cpu);
	rq->locked = false;
	rq->clock_valid = false; /* rq_unpin_lock() */
	if (m.may_switch)
		m.may_switch();
}

struct rq *task_rq_lock(struct task_struct *p)
{
	for (;;) {
		struct rq *rq = task_rq(p);

		rq_lock(rq);
		if (rq == task_rq(p) && !p->migrating)
			return rq;
		rq_unlock(rq);
		while (p->migrating) {
			kernel_waits();
		}
	}
}

/* resched_curr(): the CPU looks when it returns to user space; another one is sent an interrupt. */
void resched_curr(struct rq *rq)
{
	if (rq->need_resched)
		return;
	rq->need_resched = true;
	if (rq->cpu != m.cpu)
		rq->busy_ns += m.costs.ipi;
}

void wakeup_preempt(struct rq *rq, struct task_struct *p)
{
	if (p->class == rq->next_class) {
		if (p->class == CLASS_REAL_TIME)
			rt_preempts(rq, p);
		else if (p->class == CLASS_FAIR)
			fair_preempts(rq, p);
		return; /* ext: whoever queued it has done what there is to do */
	}
	if (p->class < rq->next_class) {
		resched_curr(rq);
		rq->next_class = p->class;
	}
}

/* ---- CLASS_EXT: into and out of the scheduler's hands ---- */

static void insert_local(struct rq *rq, struct task_struct *p, u64 flags)
{
	dsq_insert(&rq->local, p, flags & ~SCX_ENQ_DSQ_PRIQ);
	dsq_local_post_insert(rq, p, flags);
}

/* direct_dispatch() */
static void direct_dispatch(struct rq *rq, struct task_struct *p, u64 flags)
{
	u64 id = p->scx.direct_dsq;

	flags |= p->scx.direct_flags;
	p->scx.direct_dsq = p->scx.direct_flags = 0;
	if (id == SCX_DSQ_LOCAL) {
		insert_local(rq, p, flags);
		return;
	}
	model_assert(dsq_find(id));
	dsq_insert(dsq_find(id), p, flags);
}

/* ---- what callbacks take, by what they decide ---- */

static void calls_enqueue(struct task_struct *p, u64 flags)
{
	u64 before = model_decisions(m.cpu).wake_preemptions;

	model_ops->enqueue(p, flags);
	spend(m.costs.enqueue +
	      m.costs.enqueue_preempts * (model_decisions(m.cpu).wake_preemptions - before));
}

/* A contract that goes on is not picked anew, and costs next to nothing over a classmate of a task.
 */
static void calls_dispatch(struct rq *rq, struct task_struct *prev)
{
	struct decisions before = model_decisions(rq->cpu), after;

	model_ops->dispatch(rq->cpu, prev);
	after = model_decisions(rq->cpu);
	rq->contract_picked =
		after.contract_picks > before.contract_picks && !before.contract_goes_on;
	spend(m.costs.dispatch + m.costs.dispatch_picks * (after.picks - before.picks) +
	      m.costs.dispatch_keeps * (after.keeps - before.keeps) +
	      (rq->contract_picked ? m.costs.dispatch_picks_contract : 0));
}

static void calls_running(struct rq *rq, struct task_struct *p)
{
	model_ops->running(p);
	spend(m.costs.running + (rq->contract_picked ? m.costs.running_contract : 0));
}

static void calls_stopping(struct rq *rq, struct task_struct *p, bool runnable)
{
	model_ops->stopping(p, runnable);
	spend(m.costs.stopping + (rq->contract_picked ? m.costs.stopping_contract : 0));
}

/* scx_rq_online() */
static bool rq_is_open(const struct rq *rq)
{
	return rq->online && rq->active;
}

/* do_enqueue_task(); sticky: it goes back to its CPU's local queue as it is. */
void do_enqueue_task_scx(struct rq *rq, struct task_struct *p, u64 flags, bool sticky)
{
	bool skips = (p->flags & PF_EXITING && !(model_ops->flags & SCX_OPS_ENQ_EXITING)) ||
		     p->migration_disabled;

	model_assert(p->scx.flags & SCX_TASK_QUEUED);
	if (sticky) {
		insert_local(rq, p, flags);
		return;
	}
	if (rq_is_open(rq) && rq->bypassing) {
		p->scx.slice = SCX_SLICE_DFL_NS;
		p->scx.direct_dsq = p->scx.direct_flags = 0;
		dsq_insert(&rq->bypass, p, flags & ~SCX_ENQ_DSQ_PRIQ);
		return;
	}
	if (rq_is_open(rq) && p->scx.direct_dsq) {
		direct_dispatch(rq, p, flags);
		return;
	}
	if (!rq_is_open(rq) || skips) {
		p->scx.slice = SCX_SLICE_DFL_NS;
		p->scx.direct_dsq = p->scx.direct_flags = 0;
		insert_local(rq, p, flags);
		return;
	}
	p->in_transit = true;
	this_rq()->enqueuing = p;
	m.stats.enqueues++;
	calls_enqueue(p, flags);
	this_rq()->enqueuing = NULL;
	p->in_transit = false;
	if (p->scx.direct_dsq)
		direct_dispatch(rq, p, flags);
}

/* scx_bpf_dsq_insert() in enqueue: noted, and done when that has returned. */
static void note_insert(struct task_struct *p, u64 dsq, u64 flags)
{
	kernel_call();
	model_assert(this_rq()->enqueuing == p);
	model_assert(!p->scx.direct_dsq);
	p->scx.direct_dsq = dsq;
	p->scx.direct_flags = flags;
}

void scx_bpf_dsq_insert(struct task_struct *p, u64 dsq, u64 slice, u64 flags)
{
	p->scx.slice = slice ? slice : p->scx.slice ? p->scx.slice : 1;
	note_insert(p, dsq, flags);
}

void an_kqueue(struct task_struct *p, u64 dsq, u64 slice, u64 tag, u64 flags)
{
	p->scx.slice = slice ? slice : p->scx.slice ? p->scx.slice : 1;
	p->scx.dsq_vtime = tag;
	note_insert(p, dsq, flags | SCX_ENQ_DSQ_PRIQ);
}

void an_kqueue_local(struct task_struct *p, u64 slice, u64 flags)
{
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice, flags | SCX_ENQ_PREEMPT);
}

void an_kset_slice(struct task_struct *p, u64 slice)
{
	kernel_call();
	p->scx.slice = slice;
}

/* set_task_runnable(): from when on the watchdog waits for it to run */
static void set_runnable(struct task_struct *p)
{
	if (p->scx.reset_runnable_at)
		p->scx.runnable_at_ns = m.now_ns;
	p->scx.reset_runnable_at = false;
}

static void enqueue_ext(struct rq *rq, struct task_struct *p, u64 flags)
{
	set_runnable(p);
	p->scx.flags |= SCX_TASK_QUEUED;
	rq->ext_tasks++;
	if (model_ops->runnable)
		model_ops->runnable(p, flags);
	do_enqueue_task_scx(rq, p, flags, rq->curr == p);
}

/* dequeue_task_scx() */
static void dequeue_ext(struct rq *rq, struct task_struct *p)
{
	if (rq->curr == p) {
		update_curr(rq);
		calls_stopping(rq, p, false);
	}
	p->scx.flags &= ~SCX_TASK_QUEUED;
	rq->ext_tasks--;
	if (p->scx.dsq)
		dsq_remove(p->scx.dsq, p);
	p->holding_cpu = -1; /* whoever is in the middle of taking it over has lost */
	p->scx.direct_dsq = p->scx.direct_flags = 0;
}

/* ---- all classes ---- */

void enqueue_task(struct rq *rq, struct task_struct *p, u64 flags)
{
	model_assert(!p->on_rq);
	p->on_rq = true;
	if (p->class == CLASS_EXT)
		enqueue_ext(rq, p, flags);
	else if (p->class == CLASS_FAIR)
		fair_enqueue(rq, p, flags & SCX_ENQ_WAKEUP);
	else
		rt_enqueue(rq, p);
}

void dequeue_task(struct rq *rq, struct task_struct *p, bool sleeps)
{
	model_assert(p->on_rq);
	p->on_rq = false;
	p->sleeps = sleeps;
	if (p->class == CLASS_EXT) {
		dequeue_ext(rq, p);
		return;
	}
	if (rq->curr == p)
		update_curr(rq);
	if (p->class == CLASS_FAIR)
		fair_dequeue(rq, p, sleeps);
	else
		rt_dequeue(rq, p);
}

void update_curr(struct rq *rq)
{
	struct task_struct *p = rq->curr;
	u64 ran_ns = rq->clock_ns - p->se.exec_start;

	if (rq->clock_ns <= p->se.exec_start)
		return;
	p->se.exec_start = rq->clock_ns;
	if (task_is_idle(p)) {
		server_counts_idle(rq, ran_ns);
		return;
	}
	p->se.sum_exec_runtime += ran_ns;
	if (p->class == CLASS_EXT) {
		if (p->scx.slice != ~0ULL) /* SCX_SLICE_INF */
			p->scx.slice -= ran_ns < p->scx.slice ? ran_ns : p->scx.slice;
	} else if (p->class == CLASS_FAIR) {
		fair_update(rq, p, ran_ns);
	}
}

void put_prev_task(struct rq *rq, struct task_struct *p, struct task_struct *next)
{
	update_curr(rq);
	if (task_is_idle(p)) {
		idle_update(rq, false);
		return;
	}
	if (p->class == CLASS_FAIR)
		fair_put_prev(p, next);
	if (p->class != CLASS_EXT || !(p->scx.flags & SCX_TASK_QUEUED))
		return;
	/* put_prev_task_scx() */
	calls_stopping(rq, p, true);
	set_runnable(p);
	if (p->scx.slice && !rq->bypassing) {
		dsq_insert(&rq->local, p, SCX_ENQ_HEAD);
		dsq_local_post_insert(rq, p, SCX_ENQ_HEAD);
	} else {
		do_enqueue_task_scx(rq, p, next && next->class > CLASS_EXT ? SCX_ENQ_LAST : 0,
				    false);
	}
}

void set_next_task(struct rq *rq, struct task_struct *p)
{
	p->se.exec_start = rq->clock_ns;
	if (task_is_idle(p)) {
		idle_update(rq, true);
		return;
	}
	if (p->class == CLASS_FAIR)
		fair_set_next(rq, p, rq->curr != p);
	if (p->class != CLASS_EXT)
		return;
	/* set_next_task_scx() */
	if (p->scx.dsq)
		dsq_remove(p->scx.dsq, p);
	if (p->scx.flags & SCX_TASK_QUEUED) {
		calls_running(rq, p);
	}
	p->scx.reset_runnable_at = true;
}

/* ---- __schedule() ---- */

/* SCX_DSP_MAX_LOOPS does not matter: nothing is inserted by dispatch. */
static bool dispatch_finds(struct rq *rq, struct task_struct *prev, bool *goes_on)
{
	bool prev_is_ext = prev->class == CLASS_EXT;
	struct task_struct *chosen;

	if (rq->bypassing)
		return dsq_consume(rq, &rq->bypass);
	if (!rq->online)
		return false;
	this_rq()->dispatching = true;
	m.stats.dispatches++;
	calls_dispatch(rq, prev_is_ext ? prev : NULL);
	this_rq()->dispatching = false;
	*goes_on = prev->scx.flags & SCX_TASK_QUEUED && prev->scx.slice;
	chosen = *goes_on ? prev : rq->local.count ? rq->local.task[0] : NULL;
	if (!chosen)
		return false;
	spend(m.costs.level * (u64)chosen->cgroup->level);
	return true;
}

/* balance_one() and do_pick_task_scx() */
static struct task_struct *pick_ext(struct rq *rq, struct task_struct *prev)
{
	bool prev_runs = prev->class == CLASS_EXT && prev->scx.flags & SCX_TASK_QUEUED;
	bool goes_on = false;
	struct task_struct *p;

	rq->in_balance = true;
	update_curr(rq);
	if (prev_runs && prev->scx.slice && !rq->bypassing)
		goes_on = true;
	else if (!rq->local.count && !dispatch_finds(rq, prev, &goes_on))
		/* nothing else: SCX_EV_DISPATCH_KEEP_LAST */
		goes_on = prev_runs && (!(model_ops->flags & SCX_OPS_ENQ_LAST) || rq->bypassing);
	rq->in_balance = false;
	p = goes_on ? prev : rq->local.count ? rq->local.task[0] : NULL;
	if (p && !p->scx.slice)
		p->scx.slice = SCX_SLICE_DFL_NS;
	return p;
}

static struct task_struct *pick_task(struct rq *rq, struct task_struct *prev)
{
	struct task_struct *p = rq->stopper.on_rq ? &rq->stopper : server_pick(rq);

	if (!p)
		p = rt_pick(rq);
	if (p)
		return p;
	p = fair_pick(rq);
	if (!p && !m.loaded)
		p = fair_pull(rq);
	if (p)
		return p;
	if (m.loaded) {
		p = pick_ext(rq, prev);
		if (p)
			return p;
	}
	/* pick_task_idle() */
	if (task_is_idle(prev))
		idle_update(rq, true);
	return &rq->idle;
}

static void trace_run(struct rq *rq, struct task_struct *p)
{
	struct sim_run *run;

	if (!m.options.trace || p->number == ~0U || p->ran_since_ns >= rq->clock_ns)
		return;
	model_room_for(m.runs, m.run_count, m.run_room);
	run = &m.runs[m.run_count++];
	*run = (struct sim_run){.start_ns = p->ran_since_ns,
				.length_ns = rq->clock_ns - p->ran_since_ns,
				.cpu = rq->cpu,
				.task = p->number};
	p->ran_since_ns = rq->clock_ns;
}

static void spend_on_change(const struct rq *rq, struct task_struct *next)
{
	if (task_is_idle(next))
		return;
	spend(m.costs.change);
	if (next->ran_on != rq->cpu && next->switches > 1)
		spend(m.costs.migration);
	next->ran_on = rq->cpu;
}

/* preempt: the task that runs has not said that it sleeps, it is interrupted. */
void schedule(struct rq *rq, bool preempt)
{
	struct task_struct *prev = rq->curr, *next;

	model_assert(m.cpu == rq->cpu && !this_rq()->in_interrupt && !this_rq()->under_lock);
	migrate_disable_switch(rq, prev);
	rq_lock(rq);
	update_rq_clock(rq);
	trace_run(rq, prev);
	if (!preempt && prev->life != TASK_RUNNABLE && prev->on_rq)
		dequeue_task(rq, prev, true);
	next = pick_task(rq, prev);
	rq->next_class = next->class;
	if (next != prev) {
		put_prev_task(rq, prev, next);
		set_next_task(rq, next);
		rq->curr = next;
		next->on_cpu = true;
		next->ran_since_ns = rq->clock_ns;
		m.stats.switches++;
		next->switches++;
		spend_on_change(rq, next);
		if (task_is_idle(prev))
			tick_restart(rq);
		else if (task_is_idle(next))
			rq->next_tick_ns = MODEL_NEVER;
	}
	rq->need_resched = false;
	rq->resched_when_in_kernel = false;
	if (task_is_idle(next))
		rq->hrtick_ns = MODEL_NEVER; /* hrtick_schedule_exit() */
	spend(m.costs.schedule);
	if (next == prev) {
		rq_unlock(rq);
		return;
	}
	/* finish_task_switch() */
	prev->on_cpu = false;
	rq_unlock(rq);
	if (prev->life == TASK_DEAD)
		task_dead(prev);
}
