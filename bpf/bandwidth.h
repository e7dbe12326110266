/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Quotas of classes (cpu.max): the kernel says what they are, and enforces nothing for our tasks.
 * Part of sched.bpf.c; the rules are core/bandwidth.h.
 *
 *      a quantum begins    the CPU takes a slice of what the classes on the path have left, and its
 *                          timer ends the quantum when that is used (slice_begins())
 *      a quantum ends      what was used is settled where the class is charged (quantum_ends())
 *      nothing is left     the class is in no pick, and a task of it that runs all the same, for an
 *                          idle CPU took it as it woke, is stopped at once. If nothing else is to
 *                          run on the CPU it goes idle: the dispatch declines to keep the task, and
 *                          the kernel, which would keep it, queues it (SCX_OPS_ENQ_LAST)
 *      a period begins     one timer for all throttled classes lets those go that have something
 *                          again, and CPUs look
 *
 * Contracts come out of the quota of their class: while that is throttled its tasks hold none.
 *
 * As long as nobody has a quota no CPU sees to any (SEES_TO_QUOTAS), and a switch takes the same
 * instructions as without this.
 */
#ifndef ANDANTE_BPF_BANDWIDTH_H
#define ANDANTE_BPF_BANDWIDTH_H

#include "cpu.h"
#include "domain.h"

struct an_bandwidths bandwidths SEC(".bss.bandwidths");
u32 quotas;	   /* classes that have one */
u64 quotas_due_ns; /* when the timer fires; 0: it is not set */

struct quota_timer {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct quota_timer);
} quota_timers SEC(".maps");

/* Is the class of this leaf throttled, or one around it? */
static __always_inline bool throttled(struct an_tree *t, u32 leaf)
{
	return quotas && an_is_throttled(t, leaf);
}

/* The timer fires by this instant. */
an_global int quotas_arm(u64 at_ns)
{
	struct quota_timer *t;
	u32 key = 0;

	t = bpf_map_lookup_elem(&quota_timers, &key);
	if (t && at_ns != AN_NEVER)
		timer_arm(&t->timer, &quotas_due_ns, an_kclock_ns(), at_ns);
	return 0;
}

/* An overdue task has its short turn though its class has nothing left. */
static __noinline void slice_overdue(struct cpu_state *c, struct an_tree *t,
				     struct bpf_spin_lock *lock)
{
	bpf_spin_lock(lock);
	if (!an_slice_exceed(&bandwidths, t, c->serving))
		c->slice_ns = AN_UNLIMITED_NS;
	bpf_spin_unlock(lock);
}

/*
 * A task of the class that this CPU serves starts to run, or goes on. If its quantum has just
 * begun, a slice is taken for it; the timer ends what is left of that. There may be none: then the
 * CPU makes another choice at once.
 */
an_global int slice_begins(u32 cpu)
{
	struct cpu_state *c = cpu_state(cpu);
	u32 domain = cpu_domain(cpu);
	struct an_tree *t = tree_of(domain);
	struct bpf_spin_lock *lock = lock_of(domain);
	u64 now_ns = an_kclock_ns(), due_ns;

	if (!lock)
		return 0;
	if (!(c->unpicked & SLICED)) {
		bpf_spin_lock(lock);
		c->slice_ns = an_slice_take(&bandwidths, t, c->serving, quantum_ns, now_ns);
		due_ns = an_held_due(&bandwidths, t, c->serving);
		bpf_spin_unlock(lock);
		c->unpicked |= SLICED;
		quotas_arm(due_ns);
	}
	if (c->slice_ns == AN_UNLIMITED_NS)
		return 0;
	if (c->used_ns < c->slice_ns) {
		cpu_check_at(c, cpu, now_ns, now_ns + (c->slice_ns - c->used_ns));
		return 0;
	}
	if (c->unpicked & OVERDUE) { /* it ends by itself */
		slice_overdue(c, t, lock);
		return 0;
	}
	c->over = 1;
	cpu_ask_again(c, cpu);
	return 0;
}

/* The quantum is over. With the tree's lock held. */
static __always_inline void slice_settles(struct an_tree *t, struct cpu_state *c)
{
	if (c->slice_ns != AN_UNLIMITED_NS)
		an_slice_settle(&bandwidths, t, c->serving, (s64)c->slice_ns - (s64)c->used_ns,
				c->since_ns + c->used_ns);
	c->unpicked &= ~SLICED;
}

/*
 * The task that runs here, and would go on, is of a throttled class, and nothing else may run: the
 * kernel queues it. Then the CPU looks once more, for the class may have been refilled in between;
 * and a task that may not be moved the kernel puts aside for this CPU, which would not look.
 */
static __always_inline void cpu_declines(u32 cpu)
{
	stats.throttled++;
	scx_bpf_kick_cpu(cpu, an_kconst(scx_kick_flags, SCX_KICK_IDLE));
}

/* ---- classes are let go ---- */

/*
 * Classes have something to run again. Idle CPUs look, also those that are about to be idle, which
 * a test for idle CPUs would miss. One that runs, and is not to look within its quantum, for nobody
 * was ready when that began, is asked: it goes on, and looks then. Its timer is its own to set.
 */
an_global int quotas_tell(void)
{
	u32 cpu = 0;

	an_while(cpu < nr_cpus) {
		struct cpu_state *c = cpu_state(cpu);

		if (c->running && !c->check_ns)
			cpu_ask(c, cpu);
		else if (!c->gone)
			scx_bpf_kick_cpu(cpu, an_kconst(scx_kick_flags, SCX_KICK_IDLE));
		cpu++;
	}
	return 0;
}

/* The throttled class that has waited longest in this domain: see an_held_next(). */
an_global u64 quota_expires(u32 domain)
{
	struct bpf_spin_lock *lock = lock_of(domain);
	u64 now_ns = an_kclock_ns(), due_ns;

	if (!lock || domain >= nr_domains)
		return AN_NEVER;
	bpf_spin_lock(lock);
	due_ns = an_held_next(&bandwidths, tree_of(domain), now_ns);
	bpf_spin_unlock(lock);
	return due_ns;
}

static int quotas_refill(void *map, u32 *key, struct quota_timer *t)
{
	u64 next_ns = AN_NEVER;
	u32 domain = 0;

	quotas_due_ns = 0;
	an_while(domain < nr_domains) {
		u32 left = tree_of(domain)->held_count;

		an_while(left) {
			u64 due_ns = quota_expires(domain);

			if (due_ns < next_ns)
				next_ns = due_ns;
			left = an_opaque(left - 1);
		}
		domain = domain_after(domain);
	}
	quotas_arm(next_ns);
	quotas_tell();
	return 0;
}

/* ---- quotas are set ---- */

/* The kernel's for "max": RUNTIME_INF. */
#define QUOTA_MAX_US (~0ULL)

/* A quota of more than a century is none; times stay within 63 bits. */
#define QUOTA_LONGEST_US (1ULL << 51)

/* The class of this leaf has this quota from now on; QUOTA_MAX_US: none. */
static __noinline void class_limits(u32 leaf, u64 quota_us, u64 period_us, u64 burst_us)
{
	u64 quota_ns = quota_us < QUOTA_LONGEST_US ? quota_us * 1000 : 0, now_ns = an_kclock_ns();
	u64 burst_ns = burst_us < QUOTA_LONGEST_US ? burst_us * 1000 : 0;
	u64 period_ns = period_us < QUOTA_LONGEST_US ? period_us * 1000 : 0;
	u32 domain = 0;
	struct place at;

	if (!quota_ns && !an_bandwidth(&bandwidths, leaf)->quota_ns)
		return;
	an_while(domain < nr_domains && place_in(&at, domain)) {
		bpf_spin_lock(at.lock);
		if (!domain)
			an_bandwidth_set(&bandwidths, leaf, quota_ns, period_ns, burst_ns, now_ns);
		an_bandwidth_apply(&bandwidths, at.tree, leaf);
		bpf_spin_unlock(at.lock);
		domain = domain_after(domain);
	}
	quotas = bandwidths.count;
	cpus_see_to(SEES_TO_QUOTAS, quotas);
	quotas_tell();
}

static __always_inline int quotas_init(void)
{
	struct quota_timer *t;
	u32 key = 0;

	t = bpf_map_lookup_elem(&quota_timers, &key);
	if (!t)
		return -1;
	bpf_timer_init(&t->timer, &quota_timers, CLOCK_MONOTONIC);
	return bpf_timer_set_callback(&t->timer, quotas_refill);
}

#endif
