/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Where a task may run, which CPU it gets when it wakes, and how it is moved: kernel/sched/core.c.
 *
 *      affinity   whoever waits where it may not is moved at once; whoever runs there is moved by
 *                 that CPU's stopper (affine_move_task(), migration_cpu_stop())
 *      pinned     a task that runs may forbid that it is moved (migrate_disable()). It keeps its
 *                 CPU from then on, awake or not: when it is next switched out, its mask becomes
 *                 that CPU's (migrate_disable_switch()). It is not put into the scheduler's hands
 *                 (do_enqueue_task()), and a CPU does not leave before it (balance_hotplug_wait())
 *      any        of several CPUs the next one after that which this CPU has picked last
 *                 (cpumask_any_and_distribute())
 *
 * Not modelled: whoever changes the mask of a pinned task does not wait until that is moved, nor
 * are masks of user_cpus_ptr and cpusets kept apart.
 */
#include "model.h"

#include <string.h>

/* ---- masks ---- */

/* It may be moved there; task_allowed_on_cpu() of a CPU that takes tasks. */
bool task_allowed(const struct task_struct *p, u32 cpu)
{
	return mask_test(p->cpus_ptr, cpu) && rq_of(cpu)->active;
}

/* is_cpu_allowed(): whoever is pinned may go on where it is, until that CPU is off. */
static bool is_cpu_allowed(const struct task_struct *p, u32 cpu)
{
	if (!p->migration_disabled)
		return task_allowed(p, cpu);
	return mask_test(p->cpus_ptr, cpu) && !rq_of(cpu)->interrupts_off;
}

/* set_cpus_allowed_common(): of a pinned task's two masks the one that holds later. */
void set_affinity(struct task_struct *p, const u64 *mask)
{
	memcpy(p->cpus_mask.bits, mask, sizeof(p->cpus_mask.bits));
	p->nr_cpus_allowed = 0;
	for (u32 cpu = 0; cpu < MODEL_CPUS; cpu++) {
		if (cpu >= m.options.cpus)
			mask_clear(&p->cpus_mask, cpu);
		p->nr_cpus_allowed += mask_test(&p->cpus_mask, cpu);
	}
	model_assert(p->nr_cpus_allowed);
	if (!p->cpus_ptr)
		p->cpus_ptr = &p->cpus_mask;
}

s32 mask_any_distributed(const struct cpumask *a, const struct cpumask *b)
{
	struct rq *rq = this_rq();
	u32 cpu = rq->distributed;

	for (u32 left = m.options.cpus; left; left--) {
		if (++cpu >= m.options.cpus)
			cpu = 0;
		if (mask_test(a, cpu) && mask_test(b, cpu)) {
			rq->distributed = cpu;
			return (s32)cpu;
		}
	}
	return -1;
}

/* Of a mask, any CPU that takes tasks; -1: none does. */
static s32 any_active(const struct cpumask *mask)
{
	struct cpumask active = {0};

	for (u32 cpu = 0; cpu < m.options.cpus; cpu++)
		if (m.rqs[cpu].active)
			mask_set(&active, cpu);
	return mask_any_distributed(&active, mask);
}

/* ---- which CPU for a task that wakes ---- */

void set_task_cpu(struct task_struct *p, u32 cpu)
{
	p->cpu = cpu;
}

/* Any that it may use; if all of those are gone, any, from then on
 * (cpuset_cpus_allowed_fallback()).
 */
u32 select_fallback_rq(struct task_struct *p)
{
	u64 all[MODEL_CPUS / 64];

	for (u32 cpu = 0; cpu < m.options.cpus; cpu++)
		if (is_cpu_allowed(p, cpu))
			return cpu;
	model_assert(!p->migration_disabled); /* its CPU waits for it */
	memset(all, 0xff, sizeof(all));
	set_affinity(p, all);
	return select_fallback_rq(p);
}

/* select_task_rq() */
u32 select_task_rq(struct task_struct *p, u32 cpu, bool sync)
{
	s32 idle;

	if (p->nr_cpus_allowed > 1 && !p->migration_disabled) {
		if (p->class == CLASS_EXT) {
			/* select_task_rq_scx(), without a select_cpu of the scheduler's */
			idle = idle_select(p, cpu, sync);
			if (idle >= 0) {
				p->scx.slice = SCX_SLICE_DFL_NS;
				p->scx.direct_dsq = SCX_DSQ_LOCAL;
				cpu = idle;
			}
		} else if (p->class == CLASS_REAL_TIME) {
			cpu = rt_select_cpu(p, cpu);
		} else if (p->class == CLASS_FAIR) {
			cpu = fair_select_cpu(p, cpu, sync);
		}
	} else {
		for (cpu = 0; cpu + 1 < m.options.cpus && !mask_test(p->cpus_ptr, cpu);)
			cpu++;
	}
	return is_cpu_allowed(p, cpu) ? cpu : select_fallback_rq(p);
}

/* ---- one that waits is moved ---- */

/* move_queued_task(), with the lock of its run queue, and then with that of the other one. */
static struct rq *move_queued_task(struct rq *rq, struct task_struct *p, u32 cpu)
{
	struct rq *to = rq_of(cpu);

	update_rq_clock(rq);
	dequeue_task(rq, p, false);
	p->migrating = true;
	set_task_cpu(p, cpu);
	rq_unlock(rq);
	rq_lock(to);
	update_rq_clock(to);
	p->migrating = false;
	enqueue_task(to, p, 0);
	wakeup_preempt(to, p);
	return to;
}

/* ---- the stopper: a thread of the CPU's own, before everybody else ---- */

void stopper_begins(struct rq *rq)
{
	rq->stopper.on_rq = true;
	schedule(rq, true);
	model_assert(rq->curr == &rq->stopper);
}

void stopper_ends(struct rq *rq)
{
	rq->stopper.on_rq = false;
	rq->need_resched = true;
}

/* __balance_push_cpu_stop() */
void push_task(struct rq *rq, struct task_struct *p)
{
	u32 cpu;

	pi_lock(p);
	cpu = select_fallback_rq(p);
	rq_lock(rq);
	if (!p->migrating && p->on_rq && task_rq(p) == rq && !p->migration_disabled)
		rq = move_queued_task(rq, p, cpu);
	rq_unlock(rq);
	p->pi_locked = false;
}

static void stopper_asked(struct rq *rq, struct task_struct *p)
{
	p->stop_pending = true;
	p->stop_cpu = rq->cpu;
	rq->stops++;
	if (rq->cpu != m.cpu)
		rq->busy_ns += m.costs.ipi;
}

/* migration_cpu_stop() */
static void migration_cpu_stop(struct rq *rq, struct task_struct *p)
{
	s32 cpu;

	pi_lock(p);
	rq_lock(rq);
	p->stop_pending = false;
	if (task_rq(p) != rq) {
		/* It was moved before the stopper ran: perhaps to where it may be. */
		if (!mask_test(p->cpus_ptr, p->cpu))
			stopper_asked(task_rq(p), p);
		else
			p->moves = false;
	} else if (!p->migration_disabled) {
		p->moves = false;
		cpu = any_active(&p->cpus_mask);
		if (p->on_rq && !mask_test(&p->cpus_mask, p->cpu) && cpu >= 0)
			rq = move_queued_task(rq, p, (u32)cpu);
	}
	rq_unlock(rq);
	p->pi_locked = false;
}

/* What the CPU's stopper was asked for. */
void stopper_works(struct rq *rq)
{
	for (u32 task = 0; rq->stops && task < m.task_count; task++)
		if (m.tasks[task]->stop_pending && m.tasks[task]->stop_cpu == rq->cpu) {
			rq->stops--;
			migration_cpu_stop(rq, m.tasks[task]);
		}
}

void stopper_acts(struct rq *rq)
{
	stopper_begins(rq);
	stopper_works(rq);
	stopper_ends(rq);
}

/* ---- a mask is changed ---- */

/* affine_move_task(), with the lock of its run queue, and then with that of where it is. */
static struct rq *affine_move(struct rq *rq, struct task_struct *p, u32 cpu)
{
	if (mask_test(&p->cpus_mask, p->cpu)) {
		p->moves = p->stop_pending;
		return rq;
	}
	p->moves = true;
	if (p->on_cpu) {
		if (!p->stop_pending)
			stopper_asked(rq, p);
	} else if (!p->migration_disabled) {
		if (p->on_rq)
			rq = move_queued_task(rq, p, cpu);
		p->moves = p->stop_pending;
	}
	return rq;
}

/* set_cpus_allowed_ptr(), of sched_setaffinity(): not to where no CPU takes tasks, nor of threads
 * of the kernel's that belong where they are (EINVAL); a pinned task does not drive itself away
 * (EBUSY). */
void sim_affinity(u32 number, const u64 mask[4])
{
	struct task_struct *p = task_of(number);
	struct cpumask wanted;
	struct change c;
	s32 cpu;

	memcpy(wanted.bits, mask, sizeof(wanted.bits));
	cpu = any_active(&wanted);
	if (cpu < 0 || p->flags & PF_NO_SETAFFINITY)
		return;
	pi_lock(p);
	if (p->migration_disabled && this_rq()->curr == p && !mask_test(&wanted, p->cpu)) {
		p->pi_locked = false;
		return;
	}
	c = change_begins(p);
	set_affinity(p, mask);
	change_ends(p, &c);
	rq_unlock(affine_move(c.rq, p, (u32)cpu));
	p->pi_locked = false;
}

/* ---- a task is pinned, and let go ---- */

/* migrate_disable(), by the task that runs */
void sim_migrate_disable(u32 number)
{
	struct task_struct *p = task_of(number);

	model_assert(this_rq()->curr == p && !this_rq()->in_interrupt);
	if (!p->migration_disabled++)
		this_rq()->pinned++;
}

/* do_set_cpus_allowed(): nothing is moved */
static void takes_mask(struct task_struct *p, const struct cpumask *mask)
{
	struct change c = change_begins(p);

	p->cpus_ptr = mask;
	change_ends(p, &c);
	rq_unlock(c.rq);
}

void migrate_disable_switch(struct rq *rq, struct task_struct *p)
{
	if (p->migration_disabled && p->cpus_ptr == &p->cpus_mask)
		takes_mask(p, &rq->mask_of_cpu);
}

/* ___migrate_enable() */
static void migrates_again(struct task_struct *p)
{
	struct change c;
	s32 cpu;

	pi_lock(p);
	cpu = any_active(&p->cpus_mask);
	c = change_begins(p);
	p->cpus_ptr = &p->cpus_mask;
	change_ends(p, &c);
	rq_unlock(affine_move(c.rq, p, cpu < 0 ? p->cpu : (u32)cpu));
	p->pi_locked = false;
}

void sim_migrate_enable(u32 number)
{
	struct task_struct *p = task_of(number);

	model_assert(this_rq()->curr == p && !this_rq()->in_interrupt);
	model_assert(p->migration_disabled);
	if (p->migration_disabled == 1 && p->cpus_ptr != &p->cpus_mask)
		migrates_again(p);
	if (!--p->migration_disabled)
		this_rq()->pinned--;
}
