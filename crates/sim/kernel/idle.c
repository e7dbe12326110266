/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which CPUs are idle, and the selection of one for a task that wakes: kernel/sched/ext/idle.c,
 * without hyperthreads and with one cache for all.
 */
#include "model.h"

/* __scx_update_idle(): on the way into idle and out of it, and when idle is picked again. */
void idle_update(struct rq *rq, bool idle)
{
	if (idle)
		mask_set(&m.idle_cpus, rq->cpu);
	else
		mask_clear(&m.idle_cpus, rq->cpu);
}

/* scx_idle_test_and_clear_cpu(): whoever gets true has the CPU for its task. */
static bool claim(u32 cpu)
{
	bool idle = mask_test(&m.idle_cpus, cpu);

	mask_clear(&m.idle_cpus, cpu);
	return idle;
}

static s32 claim_any(const struct cpumask *allowed)
{
	for (u32 cpu = 0; cpu < m.options.cpus; cpu++)
		if (mask_test(allowed, cpu) && mask_test(&m.idle_cpus, cpu) && claim(cpu))
			return cpu;
	return -16; /* EBUSY */
}

/* scx_select_cpu_dfl() */
s32 idle_select(struct task_struct *p, u32 prev_cpu, bool sync)
{
	bool prev_allowed = mask_test(p->cpus_ptr, prev_cpu);

	if (sync) {
		if (prev_allowed && claim(prev_cpu))
			return prev_cpu;
		/* The waker is about to sleep, and nobody waits here: where it is, it is warm. */
		if (!(this_rq()->curr->flags & PF_EXITING) && !this_rq()->local.count &&
		    !mask_empty(&m.idle_cpus) && mask_test(p->cpus_ptr, m.cpu)) {
			claim(m.cpu);
			return m.cpu;
		}
	}
	if (prev_allowed && claim(prev_cpu))
		return prev_cpu;
	return claim_any(p->cpus_ptr);
}

s32 scx_bpf_pick_idle_cpu(const struct cpumask *allowed, u64 flags)
{
	(void)flags;
	kernel_call();
	return claim_any(allowed);
}

const struct cpumask *scx_bpf_get_idle_cpumask(void)
{
	kernel_call();
	return &m.idle_cpus;
}

void scx_bpf_put_idle_cpumask(const struct cpumask *mask)
{
	(void)mask;
}

bool scx_bpf_test_and_clear_cpu_idle(s32 cpu)
{
	kernel_call();
	return cpu >= 0 && (u32)cpu < m.options.cpus && claim(cpu);
}

bool bpf_cpumask_empty(const struct cpumask *mask)
{
	return mask_empty(mask);
}

bool bpf_cpumask_intersects(const struct cpumask *one, const struct cpumask *other)
{
	u64 both = 0;

	for (u32 word = 0; word < MODEL_CPUS / 64; word++)
		both |= one->bits[word] & other->bits[word];
	return both;
}

bool bpf_cpumask_test_cpu(u32 cpu, const struct cpumask *mask)
{
	return cpu < m.options.cpus && mask_test(mask, cpu);
}
