/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The scheduler is put in charge of a machine that runs, and let go: scx_root_enable_workfn() and
 * scx_root_disable() of kernel/sched/ext/ext.c. Whatever its tasks do meanwhile:
 *
 *      put in charge   init; bypass; under the locks of forks and cgroups each cgroup and each task
 *                      is told of (cgroup_init, init_task), awake or not; then each task changes
 *                      its class, on its CPU or in a queue (enable, enqueue); bypass ends
 *      let go          bypass; cgroup_exit; each task changes its class and is told of for the last
 *                      time (disable, exit_task); when no CPU is in the middle of a callback
 *                      (synchronize_rcu()), exit; bypass ends
 *
 * A scheduler that is put in charge again is a new one: what its programs and maps held is gone
 * (shell_resets()).
 */
#include "model.h"

#include <stdio.h>
#include <string.h>

extern char shell_first_zero[64], shell_last_zero[64];
extern char shell_first_data[64], shell_last_data[64];

/* ---- what a scheduler keeps ---- */

/* A compiler may take it that nothing lies behind an array. */
static char *placed(char *at)
{
	__asm__("" : "+r"(at));
	return at;
}

/*
 * What is in the scheduler's maps and variables as it is loaded, knobs apart: what the compiler has
 * put between the two files, zero or as it was when the machine began. The linker keeps the order
 * in which it was given them.
 */
static void shell_resets(void)
{
	static char *begun;
	char *data = placed(shell_first_data), *data_end = placed(shell_last_data);
	char *zero = placed(shell_first_zero), *zero_end = placed(shell_last_zero);

	model_assert(data < data_end && zero < zero_end);
	model_assert(model_shell_lies(zero, zero_end));
	if (!begun) {
		begun = malloc((u64)(data_end - data));
		model_assert(begun);
		memcpy(begun, data, (u64)(data_end - data));
		return;
	}
	memcpy(data, begun, (u64)(data_end - data));
	memset(zero, 0, (u64)(zero_end - zero));
	storage_resets();
	dsqs_reset();
	timers_reset();
}

/* ---- locks that tasks sleep for: one CPU has each, the others go on ---- */

void lock_waits(u32 *held_by)
{
	this_rq()->waits_to_load = true;
	while (*held_by) {
		kernel_waits();
	}
	this_rq()->waits_to_load = false;
	*held_by = m.cpu + 1;
}

/* percpu_down_write(&scx_fork_rwsem): forks under way end, and none begins. */
static void forks_wait(void)
{
	lock_waits(&m.forks_locked);
	while (m.forks) {
		kernel_waits();
	}
}

/* percpu_down_read() */
void fork_begins(void)
{
	this_rq()->waits_to_load = true;
	while (m.forks_locked) {
		kernel_waits();
	}
	this_rq()->waits_to_load = false;
	m.forks++;
}

void fork_ends(void)
{
	m.forks--;
}

/* ---- scx_bypass() ---- */

/* All queued tasks of a CPU are taken out and put back, as what has changed has them now. */
static void requeues(struct rq *rq)
{
	for (u32 task = m.task_count; task--;) {
		struct task_struct *p = m.tasks[task];
		bool running = rq->curr == p;

		if (p->class != CLASS_EXT || !p->on_rq || task_rq(p) != rq || p->migrating)
			continue;
		dequeue_task(rq, p, false);
		if (running)
			put_prev_task(rq, p, NULL);
		enqueue_task(rq, p, 0);
		if (running)
			set_next_task(rq, p);
	}
}

/*
 * All tasks wait in a queue of each CPU's, first in, first out, or in the scheduler's again.
 * Meanwhile it is not asked: not in enqueue, not in dispatch, and kicks are not done. It nests.
 */
void sim_bypass(u32 on)
{
	bool changes;

	lock_waits(&m.bypass_locked);
	changes = on ? !m.bypass_depth++ : !--m.bypass_depth;
	for (u32 cpu = 0; changes && cpu < m.options.cpus; cpu++) {
		struct rq *rq = rq_of(cpu);

		rq_lock(rq);
		update_rq_clock(rq);
		rq->bypassing = on;
		if (m.loaded) {
			requeues(rq);
			if (!rq->interrupts_off || cpu == m.cpu)
				resched_curr(rq);
		}
		rq_unlock(rq);
	}
	if (changes)
		m.bypass_ended_ns = on ? MODEL_NEVER : m.now_ns;
	m.bypass_locked = 0;
}

/* ---- what the scheduler is told of a task ---- */

/* __scx_init_task() */
void scx_init_task(struct task_struct *p, bool fork)
{
	struct scx_init_task_args args = {.fork = fork, .cgroup = p->cgroup};

	p->scx.state = SCX_TASK_INIT_BEGIN;
	if (model_ops->init_task && model_ops->init_task(p, &args))
		model_ejects("runtime error", "init_task failed");
	p->scx.reset_runnable_at = true;
	spend(m.costs.init_task);
}

/* scx_enable_task(), with the lock of its run queue */
void scx_enable_task(struct task_struct *p)
{
	p->scx.weight = scx_weight(p);
	if (model_ops->enable)
		model_ops->enable(p);
	if (model_ops->set_weight)
		model_ops->set_weight(p, p->scx.weight);
	spend(m.costs.enable);
	p->scx.state = SCX_TASK_ENABLED;
}

/* scx_disable_task() */
static void scx_disable_task(struct task_struct *p)
{
	p->scx.direct_dsq = p->scx.direct_flags = 0;
	if (model_ops->disable)
		model_ops->disable(p);
	p->scx.state = SCX_TASK_READY;
	p->scx.dsq_vtime = p->scx.slice = 0;
}

/* scx_disable_and_exit_task(), with the lock of its run queue */
static void scx_exit_task(struct task_struct *p)
{
	struct scx_exit_task_args args = {};

	if (p->scx.state == SCX_TASK_NONE)
		return;
	if (p->scx.state == SCX_TASK_ENABLED)
		scx_disable_task(p);
	if (model_ops->exit_task)
		model_ops->exit_task(p, &args);
	p->scx.state = SCX_TASK_NONE;
}

/* sched_ext_dead(): it has been switched out for the last time. */
void scx_task_dead(struct task_struct *p)
{
	struct rq *rq;

	p->scx.unlisted = true;
	if (p->scx.state == SCX_TASK_NONE)
		return;
	rq = task_rq_lock(p);
	if (p->scx.state != SCX_TASK_INIT_BEGIN)
		scx_exit_task(p);
	p->scx.state = SCX_TASK_DEAD; /* or whoever is initialising it sees to that */
	spend(m.costs.exit_task);
	rq_unlock(rq);
}

/* scx_task_iter_next_locked() */
static bool is_listed(const struct task_struct *p)
{
	return p && !p->scx.unlisted;
}

/* task_dead_and_done(): nobody changes its class any more. */
static bool is_done(const struct task_struct *p)
{
	return p->life == TASK_DEAD && !p->on_cpu;
}

/* sched_change of another class, with the locks of both. */
static void changes_class(struct change *c, struct task_struct *p, enum sched_class class)
{
	enum sched_class old = p->class;

	if (old == CLASS_EXT && class != old && !is_done(p))
		scx_disable_task(p); /* switched_from_scx() */
	if (old == CLASS_FAIR && class != old)
		fair_detach(p); /* switched_from_fair() */
	p->class = class;
	if (class == CLASS_EXT && class != old && !is_done(p))
		scx_enable_task(p); /* switching_to_scx() */
	change_ends(p, c);
	if (class == old)
		return;
	if (c->queued)
		wakeup_preempt(c->rq, p);
	if (c->running && old < class)
		resched_curr(c->rq);
}

/* Real-time tasks stay what they are (scx_setscheduler_class()). */
static void joins(struct task_struct *p)
{
	struct change c;

	pi_lock(p);
	if (is_listed(p) && p->scx.state == SCX_TASK_READY) {
		c = change_begins(p);
		p->scx.slice = SCX_SLICE_DFL_NS;
		changes_class(&c, p, p->class == CLASS_FAIR ? CLASS_EXT : p->class);
		rq_unlock(c.rq);
	}
	p->pi_locked = false;
}

static void leaves(struct task_struct *p)
{
	struct change c;

	pi_lock(p);
	if (is_listed(p)) {
		c = change_begins(p);
		changes_class(&c, p, p->class == CLASS_EXT ? CLASS_FAIR : p->class);
		scx_exit_task(p);
		rq_unlock(c.rq);
	}
	p->pi_locked = false;
}

/* ---- it is put in charge ---- */

/* Of each task that there is, with nobody's lock while the scheduler is told. */
static void inits_tasks(void)
{
	struct scx_exit_task_args cancelled = {.cancelled = true};

	for (u32 task = 0; task < m.task_count; task++) {
		struct task_struct *p = m.tasks[task];

		if (!is_listed(p))
			continue;
		scx_init_task(p, false);
		pi_lock(p);
		rq_unlock(task_rq_lock(p));
		if (p->scx.state == SCX_TASK_DEAD) { /* scx_sub_init_cancel_task() */
			if (model_ops->exit_task)
				model_ops->exit_task(p, &cancelled);
		} else {
			p->scx.state = SCX_TASK_READY;
		}
		p->pi_locked = false;
	}
}

static bool inits_cgroups(void)
{
	bool all = true;

	m.cgroups_known = true;
	for (u32 at = 0; at < m.cgroup_count; at++)
		if (!m.cgroups[at]->gone)
			all &= cgroup_begins(m.cgroups[at]);
	return all;
}

/* No CPU comes or goes until m.cpus_locked is no more (cpus_read_lock()). */
static void waits_for_hotplug(void)
{
	for (u32 cpu = 0; cpu < m.options.cpus; cpu++)
		while (m.rqs[cpu].hotplug) {
			kernel_waits();
			cpu = 0;
		}
	m.cpus_locked = true;
}

/* Of a machine that begins everything is told before there is anything. */
void sim_load(void)
{
	model_assert(!m.root);
	waits_for_hotplug(); /* else user space's count of CPUs is an old one (check_hotplug_seq())
			      */
	shell_resets();
	model_knobs();
	m.root = true;
	idle_begins();
	if (model_ops->init())
		model_ejects("runtime error", "init failed");
	topology_changes();
	m.cpus_locked = false;
	sim_bypass(true);
	forks_wait();
	lock_waits(&m.cgroups_locked);
	m.inits = true;
	if (!inits_cgroups())
		model_ejects("runtime error", "cgroup_init failed");
	inits_tasks();
	m.cgroups_locked = m.forks_locked = 0;
	m.switching_all = m.loaded = true;
	forks_wait();
	for (u32 task = 0; task < m.task_count; task++)
		if (is_listed(m.tasks[task]))
			joins(m.tasks[task]);
	m.forks_locked = 0;
	sim_bypass(false);
	m.next_watch_ns = m.now_ns + model_ops->timeout_ms * 500000ULL;
}

/* ---- it is let go ---- */

/* synchronize_rcu(): whatever CPUs are in the middle of now ends. */
static void synchronizes(void)
{
	for (u32 cpu = 0; m.at_rest && cpu < m.options.cpus; cpu++)
		while (cpu != m.cpu && !m.at_rest(cpu) && !m.rqs[cpu].waits_to_load) {
			kernel_waits();
		}
}

static void exits_cgroups(void)
{
	m.cgroups_known = false;
	for (u32 at = m.cgroup_count; at--;) {
		struct cgroup *c = m.cgroups[at];

		if (c->known && model_ops->cgroup_exit)
			model_ops->cgroup_exit(c);
		c->known = false;
	}
}

void sim_unload(void)
{
	struct scx_exit_info info = {.reason = m.stats.reason, .msg = m.stats.message};

	model_assert(m.root);
	sim_bypass(true);
	m.switching_all = false;
	lock_waits(&m.cgroups_locked);
	exits_cgroups();
	m.cgroups_locked = 0;
	forks_wait();
	m.inits = false;
	for (u32 task = 0; task < m.task_count; task++)
		if (is_listed(m.tasks[task]))
			leaves(m.tasks[task]);
	m.forks_locked = 0;
	m.loaded = false;
	m.next_watch_ns = MODEL_NEVER;
	synchronizes();
	if (model_ops->exit)
		model_ops->exit(&info);
	m.root = false;
	timers_reset();
	sim_bypass(false);
}

/* scx_exit(): the kernel's own scheduler has all tasks as soon as somebody sees to that: exits().
 */
void model_ejects(const char *reason, const char *message)
{
	if (!m.root || m.exits)
		return;
	m.exits = true;
	snprintf(m.stats.reason, sizeof(m.stats.reason), "%s", reason);
	snprintf(m.stats.message, sizeof(m.stats.message), "%s", message);
}

/* scx_disable_workfn(), of a thread of the kernel's. */
void exits(void)
{
	if (!m.exits)
		return;
	m.exits = false;
	m.cpu = 0; /* which does not leave */
	m.exiting = true;
	sim_unload();
	m.exiting = false;
	m.ejected = true;
}
