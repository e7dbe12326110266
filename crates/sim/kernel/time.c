/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The event loop: time jumps to the next instant at which a CPU has something to do, and every CPU
 * does it, by number. A CPU that is busy in the kernel (busy_ns) first finishes that; then come its
 * interrupts, then a reschedule, then the work of its task.
 */
#include "model.h"

#include <string.h>

struct machine m;

u64 model_clock_ns(void)
{
	u64 share = m.options.shared_budget && m.busy_cpus > 1 ? m.busy_cpus : 1;

	return m.now_ns + this_rq()->busy_ns * share;
}

u64 an_kclock_ns(void)
{
	kernel_call(); /* who waits by the clock lets others go on */
	if (m.exiting)
		spend(1); /* or it never passes: an instruction, at least */
	return model_clock_ns();
}

/* scx_bpf_now() */
u64 scx_bpf_now(void)
{
	kernel_call();
	return this_rq()->clock_valid ? this_rq()->scx_clock_ns : model_clock_ns();
}

void update_rq_clock(struct rq *rq)
{
	u64 now_ns = model_clock_ns();

	rq->scx_clock_ns = now_ns; /* scx_rq_clock_update() */
	rq->clock_valid = true;

	/* Another CPU may have looked at it from the end of what it is in the middle of. */
	if (now_ns > rq->clock_ns)
		rq->clock_ns = now_ns;
}

/* ---- how time passes ---- */

static bool is_busy(const struct rq *rq)
{
	return rq->busy_ns || !task_is_idle(rq->curr);
}

static void count_busy(void)
{
	m.busy_cpus = 0;
	for (u32 cpu = 0; cpu < m.options.cpus; cpu++)
		m.busy_cpus += is_busy(&m.rqs[cpu]);
}

/* The instant at which a busy CPU will have done so much. */
static u64 done_at_ns(u64 instructions)
{
	if (!m.options.shared_budget || m.busy_cpus < 2)
		return m.now_ns + instructions;
	return m.now_ns + instructions * m.busy_cpus - m.retired_rest;
}

static void retire(struct rq *rq, u64 instructions)
{
	u64 kernel = instructions < rq->busy_ns ? instructions : rq->busy_ns;
	struct task_struct *p = rq->curr;

	rq->busy_ns -= kernel;
	instructions -= kernel;
	if (task_is_idle(p))
		return;
	p->worked_ns += instructions < p->work_ns ? instructions : p->work_ns;
	if (p->work_ns != MODEL_NEVER)
		p->work_ns -= instructions < p->work_ns ? instructions : p->work_ns;
}

void time_advance(u64 to_ns)
{
	u64 passed_ns = to_ns - m.now_ns, each = passed_ns;

	if (!passed_ns)
		return;
	if (m.options.shared_budget && m.busy_cpus > 1) {
		each = (passed_ns + m.retired_rest) / m.busy_cpus;
		m.retired_rest = (passed_ns + m.retired_rest) % m.busy_cpus;
	} else {
		m.retired_rest = 0;
	}
	for (u32 cpu = 0; cpu < m.options.cpus; cpu++) {
		struct rq *rq = &m.rqs[cpu];

		if (is_busy(rq))
			retire(rq, each);
		else
			rq->idle_ns += passed_ns;
	}
	m.now_ns = to_ns;
}

/* ---- what a CPU does next ---- */

/* It is stopped on its way to user space; whoever is pinned is in the kernel. */
static bool stops_now(const struct task_struct *p)
{
	return p->stopped && !p->migration_disabled;
}

static bool work_is_done(const struct task_struct *p)
{
	return !task_is_idle(p) && (!p->work_ns || stops_now(p) || p->killed);
}

/* The next of a CPU's own timers: the tick, HRTICK, the fair server's. */
static u64 alarm_ns(const struct rq *rq)
{
	u64 at_ns = rq->next_tick_ns < rq->hrtick_ns ? rq->next_tick_ns : rq->hrtick_ns;

	return rq->server.timer_ns < at_ns ? rq->server.timer_ns : at_ns;
}

static u64 next_of_cpu_ns(const struct rq *rq)
{
	u64 next_ns = MODEL_NEVER;

	if (rq->busy_ns)
		return done_at_ns(rq->busy_ns);
	if (hotplug_is_due(rq))
		return m.now_ns;
	if (rq->interrupts_off)
		return MODEL_NEVER;
	if (rq->pendings || rq->kicks || rq->stops || rq->need_resched || work_is_done(rq->curr))
		return m.now_ns;
	if (!task_is_idle(rq->curr) && rq->curr->work_ns != MODEL_NEVER)
		next_ns = done_at_ns(rq->curr->work_ns);
	return alarm_ns(rq) < next_ns ? alarm_ns(rq) : next_ns;
}

u64 time_next_ns(void)
{
	u64 next = interrupt_next_ns();

	count_busy();
	if (m.loaded && m.next_watch_ns < next)
		next = m.next_watch_ns;
	for (u32 cpu = 0; cpu < m.options.cpus; cpu++) {
		u64 at_ns = next_of_cpu_ns(&m.rqs[cpu]);

		if (at_ns < next)
			next = at_ns;
	}
	return next > m.now_ns ? next : m.now_ns;
}

/* True: user space is to say what the program does that has slept for this timer. */
static bool take_interrupt(struct rq *rq, struct sim_event *event)
{
	struct interrupt i = rq->pending[0];

	rq->pendings--;
	memmove(rq->pending, rq->pending + 1, rq->pendings * sizeof(i));
	this_rq()->in_interrupt = true;
	m.stats.interrupts++;
	if (i.kind == INTERRUPT_STEALS) {
		spend(i.token);
		rq->stolen_ns += i.token;
		return false;
	}
	spend(m.costs.interrupt + m.costs.timer);
	if (i.kind == INTERRUPT_USER_TIMER) {
		*event = (struct sim_event){.kind = SIM_TIMER, .cpu = rq->cpu, .token = i.token};
		return true;
	}
	timer_expires(i.timer, i.token);
	return false;
}

static void takes_alarm(struct rq *rq)
{
	this_rq()->in_interrupt = true;
	if (rq->next_tick_ns <= m.now_ns) {
		spend(m.costs.interrupt + m.costs.tick);
		rq_tick(rq);
		return;
	}
	spend(m.costs.interrupt + m.costs.timer);
	if (rq->hrtick_ns <= m.now_ns)
		fair_hrtick(rq);
	else
		server_timer(rq);
}

/* The CPU does one thing. True: user space has something to say. */
bool cpu_acts(struct rq *rq, struct sim_event *event)
{
	struct task_struct *p = rq->curr;

	m.cpu = rq->cpu;
	if (hotplug_is_due(rq)) {
		hotplug_acts(rq);
		return false;
	}
	if (rq->pendings)
		return take_interrupt(rq, event);
	if (alarm_ns(rq) <= m.now_ns) {
		takes_alarm(rq);
	} else if (rq->kicks) {
		this_rq()->in_interrupt = true;
		spend(m.costs.interrupt);
		kicks_run(rq);
	} else if (rq->stops) {
		stopper_acts(rq);
	} else if (rq->need_resched) {
		if (!task_is_idle(p))
			spend(m.costs.preempt);
		schedule(rq, true);
	} else if (p->killed && !task_is_idle(p)) {
		*event = (struct sim_event){
			.kind = SIM_STEP, .cpu = rq->cpu, .task = p->number, .token = 1};
		return true;
	} else if (stops_now(p)) {
		p->life = TASK_ASLEEP;
		p->wakes = true;
		schedule(rq, false);
	} else {
		*event = (struct sim_event){.kind = SIM_STEP, .cpu = rq->cpu, .task = p->number};
		return true;
	}
	return false;
}

bool cpu_has_something_to_do(const struct rq *rq)
{
	if (rq->busy_ns)
		return false;
	if (hotplug_is_due(rq))
		return true;
	if (rq->interrupts_off)
		return false;
	return rq->pendings || rq->kicks || rq->stops || rq->need_resched ||
	       alarm_ns(rq) <= m.now_ns || work_is_done(rq->curr);
}

/* What was under way when user space was asked is over. */
void cpu_ends_turn(void)
{
	struct rq *rq = this_rq();
	bool interrupt = this_rq()->in_interrupt;

	this_rq()->in_interrupt = false;
	if (rq->resched_when_in_kernel)
		rq->need_resched = true;
	/* Its task has said that it sleeps, or has ended: it calls schedule() itself. */
	if (!interrupt && rq->curr->life != TASK_RUNNABLE && rq->curr->on_rq)
		schedule(rq, false);
}

/* ---- the watchdog: scx_watchdog_workfn(), every half of its time ---- */

static bool has_waited_too_long(const struct task_struct *p)
{
	return p && p->class == CLASS_EXT && p->on_rq && task_rq(p)->curr != p &&
	       m.now_ns > p->scx.runnable_at_ns + model_ops->timeout_ms * 1000000ULL;
}

static void watch(void)
{
	m.next_watch_ns = m.now_ns + model_ops->timeout_ms * 500000ULL;
	for (u32 task = 0; task < m.task_count; task++)
		if (has_waited_too_long(m.tasks[task])) {
			model_ejects("runnable task stall", "a task failed to run in time");
			return;
		}
}

static bool tells_of_ejection(struct sim_event *event)
{
	if (!m.ejected)
		return false;
	m.ejected = false;
	*event = (struct sim_event){.kind = SIM_EJECTED};
	return true;
}

void sim_run(u64 until_ns, struct sim_event *event)
{
	cpu_ends_turn();
	for (;;) {
		exits();
		interrupts_arrive();
		if (m.loaded && m.next_watch_ns <= m.now_ns)
			watch();
		for (; m.turn < m.options.cpus; m.turn++) {
			struct rq *rq = &m.rqs[m.turn];

			while (cpu_has_something_to_do(rq)) {
				if (cpu_acts(rq, event))
					return;
				cpu_ends_turn();
			}
		}
		m.turn = 0;
		if (tells_of_ejection(event))
			return;
		u64 next = time_next_ns();

		if (next > until_ns) {
			time_advance(until_ns);
			*event = (struct sim_event){.kind = SIM_UNTIL};
			return;
		}
		time_advance(next);
	}
}

u64 sim_now_ns(void)
{
	return model_clock_ns();
}

void sim_spend(u64 ns)
{
	spend(ns);
}
