/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What comes from outside of what a CPU does: timers, the tick, kicks.
 *
 * A timer expires on the CPU that has started it. Of several at one instant the one that was
 * started first comes first. While a CPU is busy in the kernel its interrupts wait.
 */
#include "model.h"

#include <string.h>

/* ---- timers, in a binary heap by instant ---- */

static bool sooner(const struct interrupt *a, const struct interrupt *b)
{
	return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

void interrupt_at(u64 at_ns, u32 cpu, enum interrupt_kind kind, u32 timer, u64 token)
{
	u32 at = m.heap_count;

	model_room_for(m.heap, m.heap_count, m.heap_room);
	m.heap_count++;
	struct interrupt i = {.at_ns = at_ns,
			      .order = ++m.interrupts,
			      .token = token,
			      .cpu = cpu,
			      .timer = timer,
			      .kind = kind};
	while (at && sooner(&i, &m.heap[(at - 1) / 2])) {
		m.heap[at] = m.heap[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	m.heap[at] = i;
}

static void heap_pop(void)
{
	struct interrupt last = m.heap[--m.heap_count];
	u32 at = 0, child;

	while ((child = 2 * at + 1) < m.heap_count) {
		if (child + 1 < m.heap_count && sooner(&m.heap[child + 1], &m.heap[child]))
			child++;
		if (!sooner(&m.heap[child], &last))
			break;
		m.heap[at] = m.heap[child];
		at = child;
	}
	m.heap[at] = last;
}

/* Is it of a BPF timer that was started anew since, or stopped? */
static bool is_stale(const struct interrupt *i)
{
	return i->kind == INTERRUPT_BPF_TIMER && !timer_is_current(i->timer, i->token);
}

/* The instant of the next one; those that count no more are forgotten. */
u64 interrupt_next_ns(void)
{
	while (m.heap_count && is_stale(&m.heap[0]))
		heap_pop();
	return m.heap_count ? m.heap[0].at_ns : MODEL_NEVER;
}

/* Those whose instant has come wait for their CPU. */
void interrupts_arrive(void)
{
	while (interrupt_next_ns() <= m.now_ns) {
		struct rq *rq = rq_of(m.heap[0].cpu);

		model_room_for(rq->pending, rq->pendings, rq->pending_room);
		rq->pending[rq->pendings++] = m.heap[0];
		heap_pop();
	}
}

/* hrtimers_cpu_dying(): the CPU's timers are another one's. */
void interrupts_move(struct rq *from, u32 to)
{
	struct rq *rq = rq_of(to);

	for (u32 at = 0; at < m.heap_count; at++)
		if (m.heap[at].cpu == from->cpu)
			m.heap[at].cpu = to;
	for (u32 at = 0; at < from->pendings; at++) {
		model_room_for(rq->pending, rq->pendings, rq->pending_room);
		rq->pending[rq->pendings] = from->pending[at];
		rq->pending[rq->pendings++].cpu = to;
	}
	from->pendings = 0;
}

/* ---- BPF timers ---- */

static struct model_timer *timers;
static u32 timer_count, timer_room;

bool timer_is_current(u32 timer, u64 generation)
{
	return timers[timer].generation == generation;
}

int model_timer_init(struct bpf_timer *timer, void *map)
{
	model_room_for(timers, timer_count, timer_room);
	timers[timer_count] = (struct model_timer){.timer = timer, .map = map};
	timer->number = ++timer_count;
	return 0;
}

int model_timer_set_callback(struct bpf_timer *timer, model_timer_callback *callback)
{
	if (!timer->number)
		return -22; /* EINVAL */
	timers[timer->number - 1].callback = callback;
	return 0;
}

int bpf_timer_start(struct bpf_timer *timer, u64 ns, u64 flags)
{
	struct model_timer *t;

	(void)flags;
	kernel_call();
	if (!timer->number || !timers[timer->number - 1].callback)
		return -22; /* EINVAL */
	t = &timers[timer->number - 1];
	/* Asked for with interrupts off, it is put off until one of the CPU's own. */
	t->lost |= this_rq()->interrupts_off;
	if (t->lost)
		return 0;
	t->generation = ++t->generations;
	interrupt_at(model_clock_ns() + ns, m.cpu, INTERRUPT_BPF_TIMER, timer->number - 1,
		     t->generation);
	return 0;
}

/* Those of a scheduler that is gone do not fire any more. */
void timers_reset(void)
{
	for (u32 timer = 0; timer < timer_count; timer++)
		timers[timer].generation = 0;
}

void timer_expires(u32 timer, u64 generation)
{
	struct model_timer *t = &timers[timer];
	u32 key;

	if (t->generation != generation)
		return;
	t->generation = 0;
	key = model_map_key(t->map, t->timer);
	t->callback((void *)(unsigned long)t->map, &key, t->timer);
}

/* ---- the tick ---- */

void tick_restart(struct rq *rq)
{
	u64 tick_ns = m.options.tick_ns;

	rq->next_tick_ns = tick_ns ? (m.now_ns / tick_ns + 1) * tick_ns : MODEL_NEVER;
}

/* task_tick_scx() */
static void tick_ext(struct rq *rq, struct task_struct *curr)
{
	curr->scx.slice = 0;
	resched_curr(rq);
}

void rq_tick(struct rq *rq)
{
	struct task_struct *curr;

	rq_lock(rq);
	curr = rq->curr;
	tick_restart(rq);
	update_rq_clock(rq);
	update_curr(rq);
	if (curr->class == CLASS_REAL_TIME)
		rt_tick(rq, curr);
	else if (curr->class == CLASS_FAIR)
		fair_tick(curr);
	else if (curr->class == CLASS_EXT && (!curr->scx.slice || rq->bypassing))
		tick_ext(rq, curr);
	fair_balance_tick(rq);
	rq_unlock(rq);
}

/* ---- kicks ---- */

/* can_skip_idle_kick() */
static bool goes_through_a_cycle(const struct rq *rq)
{
	return !task_is_idle(rq->curr) && !rq->in_balance;
}

/* scx_kick_cpu(): done by an irq_work of this CPU's, when it has interrupts on again. */
void scx_bpf_kick_cpu(s32 cpu, u64 flags)
{
	struct rq *rq = this_rq();

	kernel_call();
	if (cpu < 0 || (u32)cpu >= m.options.cpus) {
		model_ejects("runtime error", "invalid CPU");
		return;
	}
	if (rq->bypassing)
		return;
	if (flags & SCX_KICK_IDLE) {
		/* Only if its lock can be had at once. */
		if (!rq_of(cpu)->locked && goes_through_a_cycle(rq_of(cpu)))
			return;
		mask_set(&rq->to_kick_if_idle, cpu);
	} else {
		mask_set(&rq->to_kick, cpu);
		if (flags & SCX_KICK_PREEMPT)
			mask_set(&rq->to_preempt, cpu);
	}
	/* irq_work_queue(): one that is pending is not raised again. */
	rq->irq_work_lost |= rq->interrupts_off;
	rq->kicks = !rq->irq_work_lost;
}

void an_kpreempt(s32 cpu)
{
	scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
}

/* kick_one_cpu(): nothing happens to a CPU that a task of a higher class has. */
static void kick_one(struct rq *this, u32 cpu)
{
	struct rq *rq = rq_of(cpu);
	bool ours = !rq->interrupts_off || rq == this; /* cpu_online() */

	rq_lock(rq);
	if (ours && rq->curr->class >= CLASS_EXT) {
		if (mask_test(&this->to_preempt, cpu) && rq->curr->class == CLASS_EXT)
			rq->curr->scx.slice = 0;
		resched_curr(rq);
	}
	mask_clear(&this->to_preempt, cpu);
	rq_unlock(rq);
}

/* kick_one_cpu_if_idle() */
static void kick_if_idle(const struct rq *this, u32 cpu)
{
	struct rq *rq = rq_of(cpu);

	rq_lock(rq);
	if (!goes_through_a_cycle(rq) && (!rq->interrupts_off || rq == this))
		resched_curr(rq);
	rq_unlock(rq);
}

/* kick_cpus_irq_workfn() */
void kicks_run(struct rq *rq)
{
	rq->kicks = false;
	for (u32 cpu = 0; cpu < m.options.cpus; cpu++) {
		if (mask_test(&rq->to_kick, cpu)) {
			mask_clear(&rq->to_kick, cpu);
			spend(m.costs.kick);
			kick_one(rq, cpu);
		} else if (mask_test(&rq->to_kick_if_idle, cpu)) {
			spend(m.costs.kick);
			kick_if_idle(rq, cpu);
		}
		mask_clear(&rq->to_kick, cpu);
		mask_clear(&rq->to_kick_if_idle, cpu);
	}
}
