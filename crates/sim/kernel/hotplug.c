/* SPDX-License-Identifier: GPL-2.0 */
/*
 * CPUs leave and come back.
 *
 * A CPU that leaves does so itself, in its hotplug thread and its stopper:
 *
 *      sched_cpu_deactivate()  it takes no new tasks; those that wait for it go to its local queue
 *                              (rq_offline_scx()); ops.cpu_offline
 *      balance_push()          one after the other goes to another CPU, as if it had been woken;
 *                              a task that may not be moved (migrate.c) goes on here first
 *      take_cpu_down()         its irq_work is done, its timers go to another CPU, its interrupt
 *                              controller is off
 *      multi_cpu_stop()        it wakes whoever waits for it to leave
 *
 * What the scheduler asks for at the end that needs an interrupt of the CPU's own, kicks
 * (kick_cpus_irq_work) and timers (bpf_async_schedule_op()), is not done; and since the kernel
 * takes that interrupt to be pending, nor is any later one: irq_work_queue() and llist_add() do not
 * raise another.
 *
 * Not modelled: threads that are parked, cpusets.
 */
#include "model.h"

/* As the CPU's stopper, or its hotplug thread, when it next has a turn. */
static void asks(u32 cpu, u32 waiter, enum hotplug what)
{
	struct rq *rq = rq_of(cpu);

	model_assert(rq->hotplug == HOTPLUG_NONE);
	model_assert(rq->active == (what == HOTPLUG_LEAVES));
	rq->hotplug_waiter = waiter;
	rq->hotplug = what;
}

void sim_cpu_off(u32 cpu, u32 waiter)
{
	asks(cpu, waiter, HOTPLUG_LEAVES);
}

void sim_cpu_on(u32 cpu, u32 waiter)
{
	asks(cpu, waiter, HOTPLUG_RETURNS);
}

/* synchronize_rcu() of sched_cpu_deactivate(): whoever has chosen this CPU for a task has queued
 * it. */
static void waits_for_wakers(const struct rq *rq)
{
	for (u32 task = 0; task < m.task_count; task++)
		while (m.tasks[task]->pi_locked && m.tasks[task]->cpu == rq->cpu) {
			kernel_waits();
		}
}

/* rq_offline_scx() */
static void goes_offline(struct rq *rq)
{
	rq_lock(rq);
	update_rq_clock(rq);
	rq->online = false;
	for (u32 task = m.task_count; task--;) {
		struct task_struct *p = m.tasks[task];

		if (p->class != CLASS_EXT || !p->on_rq || task_rq(p) != rq || p->migrating ||
		    p->scx.dsq == &rq->local)
			continue;
		dequeue_task(rq, p, false);
		enqueue_task(rq, p, 0);
	}
	rq_unlock(rq);
}

/* Whoever balance_push() sends away. */
static bool is_movable(const struct rq *rq, const struct task_struct *p)
{
	return p->on_rq && task_rq(p) == rq && !p->migration_disabled;
}

static struct task_struct *any_movable(const struct rq *rq)
{
	for (u32 task = 0; task < m.task_count; task++)
		if (is_movable(rq, m.tasks[task]))
			return m.tasks[task];
	return NULL;
}

/* take_cpu_down(): smpcfd_dying_cpu(), tick_cpu_dying(), hrtimers_cpu_dying() */
static void dies(struct rq *rq)
{
	u32 heir = 0;

	while (!rq_of(heir)->active)
		heir++;
	if (rq->kicks && !rq->irq_work_lost)
		kicks_run(rq);
	interrupts_move(rq, heir);
	rq->next_tick_ns = rq->hrtick_ns = MODEL_NEVER;
	rq->server.timer_ns = MODEL_NEVER;
	rq->interrupts_off = true;
	/* It picks its idle task for good, which says so (__scx_update_idle()). */
	rq->stopper.on_rq = false;
	schedule(rq, true);
	rq->need_resched = rq->resched_when_in_kernel = false;
}

/* sched_cpu_deactivate() */
static void deactivates(struct rq *rq)
{
	rq->active = false;
	stopper_begins(rq);
	waits_for_wakers(rq);
	goes_offline(rq);
	topology_changes(); /* scx_rq_deactivate(), sched_smt_present_dec() */
	if (m.root && model_ops->cpu_offline)
		model_ops->cpu_offline((s32)rq->cpu);
}

/* balance_hotplug_wait(): all are sent away but those that are pinned, which go on here until they
 * are not. */
static bool empties(struct rq *rq)
{
	struct task_struct *p;

	if (!rq->stopper.on_rq)
		stopper_begins(rq);
	while ((p = any_movable(rq)))
		push_task(rq, p);
	if (!rq->pinned)
		return true;
	stopper_ends(rq);
	return false;
}

/* sched_cpu_activate() */
static void returns(struct rq *rq)
{
	rq->interrupts_off = false;
	rq->active = true;
	topology_changes(); /* cpuset_cpu_active(), scx_rq_activate() */
	if (m.root && model_ops->cpu_online)
		model_ops->cpu_online((s32)rq->cpu);
	rq_lock(rq);
	rq->online = true;
	idle_update(rq, true);
	resched_curr(rq);
	rq_unlock(rq);
}

/* It is the machine's own, and changes; as a copy here, whose CPU has asked. */
const struct cpumask *scx_bpf_get_online_cpumask(void)
{
	static struct cpumask online[MODEL_CPUS];
	struct cpumask *mask = &online[m.cpu];

	kernel_call();
	*mask = (struct cpumask){0};
	for (u32 cpu = 0; cpu < m.options.cpus; cpu++)
		if (!m.rqs[cpu].interrupts_off)
			mask_set(mask, cpu);
	return mask;
}

void scx_bpf_put_cpumask(const struct cpumask *mask)
{
	(void)mask;
}

/* Is it to leave or return now? A CPU that waits for pinned tasks goes on otherwise. */
bool hotplug_is_due(const struct rq *rq)
{
	if (rq->hotplug != HOTPLUG_EMPTIES)
		return rq->hotplug && !m.cpus_locked;
	return !rq->pinned || is_movable(rq, rq->curr);
}

/* What was asked of this CPU is done, and whoever waits for that is woken from here. */
void hotplug_acts(struct rq *rq)
{
	if (rq->hotplug == HOTPLUG_RETURNS) {
		returns(rq);
	} else {
		if (rq->hotplug == HOTPLUG_LEAVES)
			deactivates(rq);
		rq->hotplug = HOTPLUG_EMPTIES;
		if (!empties(rq))
			return;
		stopper_works(rq);
		dies(rq);
	}
	rq->hotplug = HOTPLUG_NONE;
	sim_wake(rq->hotplug_waiter, false);
}
