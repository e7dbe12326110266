/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which CPUs are idle, and the selection of one for a task that wakes: kernel/sched/ext/idle.c, for
 * a scheduler without update_idle and with one mask for all nodes (SCX_OPS_BUILTIN_IDLE_PER_NODE).
 *
 * The mask may name a CPU that has left: on its way out it picks its idle task for good, which says
 * so (__scx_update_idle() asks nobody whether the CPU is online), and nothing takes that back until
 * it returns, or somebody claims it. A scheduler that claims it kicks in vain
 * (kick_one_cpu_if_idle()), once; the kernel itself, which has claimed it for a task that wakes,
 * puts that into the local queue of any other CPU, busy or not (select_fallback_rq()).
 */
#include "model.h"

#define EBUSY 16

/* update_builtin_idle(): on the way into idle and out of it, and when idle is picked again. */
void idle_update(struct rq *rq, bool idle)
{
	struct cpumask siblings;

	if (!m.loaded) /* scx_update_idle() */
		return;
	if (idle)
		mask_set(&m.idle_cpus, rq->cpu);
	else
		mask_clear(&m.idle_cpus, rq->cpu);
	if (!m.smt)
		return;
	smt_mask(rq->cpu, &siblings);
	if (!idle)
		mask_and_not(&m.idle_cores, &siblings);
	else if (mask_subset(&siblings, &m.idle_cpus))
		mask_or(&m.idle_cores, &siblings);
}

/* reset_idle_masks(): as the scheduler is loaded. */
void idle_begins(void)
{
	m.idle_cpus = m.idle_cores = (struct cpumask){0};
	for (u32 cpu = 0; cpu < m.options.cpus; cpu++)
		if (!m.rqs[cpu].interrupts_off) {
			mask_set(&m.idle_cpus, cpu);
			mask_set(&m.idle_cores, cpu);
		}
}

/* scx_idle_test_and_clear_cpu(): whoever gets true has the CPU for its task. Its core is not wholly
 * idle either way. */
static bool claim(u32 cpu)
{
	bool idle = mask_test(&m.idle_cpus, cpu);
	struct cpumask siblings;

	if (m.smt) {
		smt_mask(cpu, &siblings);
		if (mask_intersects(&siblings, &m.idle_cores))
			mask_and_not(&m.idle_cores, &siblings);
		else
			mask_clear(&m.idle_cores, cpu);
	}
	mask_clear(&m.idle_cpus, cpu);
	return idle;
}

/* pick_idle_cpu_in_node(), where the node is that of all CPUs */
static s32 claim_any(const struct cpumask *allowed, u64 flags)
{
	s32 cpu;

	do {
		cpu = -1;
		if (m.smt)
			cpu = mask_any_distributed(&m.idle_cores, allowed);
		if (cpu < 0 && !(m.smt && flags & SCX_PICK_IDLE_CORE))
			cpu = mask_any_distributed(&m.idle_cpus, allowed);
		if (cpu < 0)
			return -EBUSY;
	} while (!claim((u32)cpu));
	return cpu;
}

/* What a selection goes by. */
struct selection {
	const struct cpumask *allowed;
	u32 prev;
	bool prev_allowed;
	bool has_llc, has_numa;
	struct cpumask llc, numa; /* near prev, of those allowed */
};

static void looks_near(struct selection *s)
{
	s->has_numa = m.by_node && numa_span(s->prev, &s->numa);
	s->has_llc = m.by_cache && llc_span(s->prev, &s->llc);
	s->has_numa = s->has_numa && mask_and(&s->numa, s->allowed);
	s->has_llc = s->has_llc && mask_and(&s->llc, s->allowed);
}

/* With the same cache, then of the same node, then any. */
static s32 claim_near(const struct selection *s, u64 flags)
{
	s32 cpu = -EBUSY;

	if (s->has_llc)
		cpu = claim_any(&s->llc, flags);
	if (cpu < 0 && s->has_numa)
		cpu = claim_any(&s->numa, flags);
	return cpu < 0 ? claim_any(s->allowed, flags) : cpu;
}

/* The waker is about to sleep: where the task was, if that is near; or, if nobody waits there,
 * where the waker is. */
static s32 claim_for_waker(const struct selection *s)
{
	if (s->prev_allowed && share_cache(m.cpu, s->prev) && claim(s->prev))
		return (s32)s->prev;
	if (this_rq()->curr->flags & PF_EXITING || this_rq()->local.count ||
	    mask_empty(&m.idle_cpus) || !mask_test(s->allowed, m.cpu))
		return -EBUSY;
	claim(m.cpu);
	return (s32)m.cpu;
}

static s32 claim_sibling(const struct selection *s)
{
	struct cpumask siblings;

	smt_mask(s->prev, &siblings);
	for (u32 cpu = 0; cpu < m.options.cpus; cpu++)
		if (cpu != s->prev && mask_test(&siblings, cpu) && mask_test(s->allowed, cpu) &&
		    claim(cpu))
			return (s32)cpu;
	return -EBUSY;
}

/* scx_select_cpu_dfl(): a core that is wholly idle before the CPU that the task had, that one, its
 * siblings, and whatever is near. */
static s32 select_dfl(struct selection *s, bool sync, u64 flags)
{
	s32 cpu = -EBUSY;

	s->prev_allowed = mask_test(s->allowed, s->prev);
	looks_near(s);
	if (sync)
		cpu = claim_for_waker(s);
	if (cpu < 0 && m.smt) {
		if (s->prev_allowed && mask_test(&m.idle_cores, s->prev) && claim(s->prev))
			return (s32)s->prev;
		cpu = claim_near(s, SCX_PICK_IDLE_CORE);
		if (flags & SCX_PICK_IDLE_CORE)
			return cpu;
	}
	if (cpu < 0 && s->prev_allowed && claim(s->prev))
		return (s32)s->prev;
	if (cpu < 0 && m.smt)
		cpu = claim_sibling(s);
	return cpu < 0 ? claim_near(s, flags) : cpu;
}

s32 idle_select(struct task_struct *p, u32 prev_cpu, bool sync)
{
	struct selection s = {.allowed = p->cpus_ptr, .prev = prev_cpu};

	return select_dfl(&s, sync, 0);
}

/* ---- what the scheduler may call ---- */

/* select_cpu_from_kfunc(): of these CPUs one that the task may use, which is the only one of a task
 * that may not be moved. */
s32 scx_bpf_select_cpu_and(struct task_struct *p, s32 prev_cpu, u64 wake_flags,
			   const struct cpumask *cpus_allowed, u64 flags)
{
	struct cpumask allowed = *p->cpus_ptr;
	struct selection s = {.allowed = &allowed, .prev = (u32)prev_cpu};
	u32 only = p->cpu;

	kernel_call();
	if (cpus_allowed && !mask_and(&allowed, cpus_allowed))
		return -EBUSY;
	if (p->nr_cpus_allowed > 1 && !p->migration_disabled)
		return select_dfl(&s, wake_flags & SCX_WAKE_SYNC, flags);
	for (u32 cpu = m.options.cpus; !p->migration_disabled && cpu--;)
		only = mask_test(p->cpus_ptr, cpu) ? cpu : only;
	return mask_test(&allowed, only) && claim(only) ? (s32)only : -EBUSY;
}

s32 scx_bpf_select_cpu_dfl(struct task_struct *p, s32 prev_cpu, u64 wake_flags, bool *is_idle)
{
	s32 cpu = scx_bpf_select_cpu_and(p, prev_cpu, wake_flags, NULL, 0);

	*is_idle = cpu >= 0;
	return cpu >= 0 ? cpu : prev_cpu;
}

s32 scx_bpf_pick_idle_cpu(const struct cpumask *allowed, u64 flags)
{
	kernel_call();
	return claim_any(allowed, flags);
}

const struct cpumask *scx_bpf_get_idle_cpumask(void)
{
	kernel_call();
	return &m.idle_cpus;
}

const struct cpumask *scx_bpf_get_idle_smtmask(void)
{
	kernel_call();
	return m.smt ? &m.idle_cores : &m.idle_cpus;
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
