/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What each CPU is doing, and when that must be looked at again.
 *
 * sched_ext acts on slices at the tick only (4 ms on most kernels), so quanta are ended by a timer
 * per CPU. It is armed lazily: as long as an armed timer fires early enough it is left alone, and
 * when it fires too early it is armed anew. A CPU that switches tasks every few microseconds thus
 * touches its timer once a quantum.
 */
#ifndef ANDANTE_BPF_CPU_H
#define ANDANTE_BPF_CPU_H

#include "base.h"

/* Was the task to run next picked? */
enum apart {
	NOT_APART,
	APART,	    /* no: it starved, or was pulled over for want of work */
	APART_OWED, /* no: it was pulled over, because its class is owed service here */
};

struct cpu_state {
	u64 used_ns;	       /* service of the quantum in progress, but for the running task's */
	u64 since_ns;	       /* when the running task's service began */
	u64 since_sum_ns;      /* the task's sum_exec_runtime at that time */
	u64 start_tag;	       /* the task's start tag */
	u64 head_tag;	       /* start tag of the first classmate in the queue */
	u64 check_ns;	       /* when the choice must be looked at again; 0: not before the tick */
	u64 timer_ns;	       /* when the armed timer fires; 0: none is armed */
	u64 contract_ns;       /* service under a contract that has not been charged to it */
	u64 tree_ns;	       /* when the tree was served last, or had nothing ready; 0: now */
	u64 learnt_ns;	       /* when learnt contracts had their turn last, or none was ready */
	u64 contract_check_ns; /* when the CPU must turn to its contracts again; AN_NEVER */
	u32 contract;	   /* the contract under which the task runs: contract_name(); 0: none */
	u32 contract_leaf; /* of the class that holds it; AN_NONE if threads do */
	u32 charged;	   /* the one that contract_ns is to be charged to */
	u32 learnt;	   /* what its learnt contracts use on average [1/1024] */
	u32 first_noted;   /* of its contracts that wake or go to sleep */
	u32 awaited_by;	   /* the learnt contract queued last for it to serve: contract_name() */
	u32 sees_to;	   /* it has, or may have, something to do for its contracts */
	u32 serving;	   /* leaf whose quantum it is; AN_NONE: nobody's */
	u32 unpicked;	   /* it was not picked for that quantum: its debt for it is bounded */
	u32 apart;	   /* enum apart */
	u32 running;	   /* a task of that leaf is running */
	u32 over;	   /* the quantum is over before it is used up: another class should run */
	u32 asked;	   /* to look at its choice anew, which it has not done yet */
	u32 inserting;	   /* leaf whose queue may be about to get a task from here */
	u32 weight;	   /* nice weight of the running task */
	u32 held;	   /* that task holds a contract, or is active under one */
	u32 asks;	   /* thread that has sent a request from here, and woken nobody since */
	u32 gone;	   /* it is offline, and serves no contract */
	u32 at_once;	   /* a thread of the kernel's runs next, before everybody else */
	/* Of the dispatch in progress. Not on the stack, whose every value the verifier follows. */
	struct an_exclusion excluded;
} __attribute__((aligned(64)));

struct cpu_state cpus[AN_MAX_CPUS];

struct cpu_timer {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, AN_MAX_CPUS);
	__type(key, u32);
	__type(value, struct cpu_timer);
} cpu_timers SEC(".maps");

/* A check that would come sooner is put off until then: a timer is not free. */
#define AN_TIMER_MIN_NS 50000

static __always_inline struct cpu_state *cpu_state(u32 cpu)
{
	return &cpus[an_bounded(cpu, AN_MAX_CPUS)];
}

/* Sets the CPU's timer, whatever it was set to before. */
static __noinline void cpu_arm(u32 cpu, u64 now, u64 at)
{
	struct cpu_state *c = cpu_state(cpu);
	struct cpu_timer *t;
	u32 key = cpu;

	t = bpf_map_lookup_elem(&cpu_timers, &key);
	if (!t)
		return;
	c->timer_ns = at;
	bpf_timer_start(&t->timer, at > now ? at - now : 1, 0);
}

/* Look at the CPU's choice again at that time, if it was not to be looked at sooner. */
static __always_inline void cpu_check_at(struct cpu_state *c, u32 cpu, u64 now, u64 at)
{
	u64 soonest = now + AN_TIMER_MIN_NS;

	if (c->check_ns && c->check_ns <= at)
		return;
	/* The timer fires anyway, and tasks that switch more often must not put off every check. */
	if (c->timer_ns && c->timer_ns < soonest)
		soonest = c->timer_ns;
	if (at < soonest)
		at = soonest;
	c->check_ns = at;
	if (!c->timer_ns || c->timer_ns > at)
		cpu_arm(cpu, now, at);
}

/*
 * The CPU looks at its choice anew: whoever runs there makes way for that. Not so a real-time task:
 * when it is done the kernel goes on with the task that it has interrupted, for the rest of its
 * slice, and asks nobody. So that one is stopped when it runs again.
 */
static __always_inline void cpu_ask(struct cpu_state *c, u32 cpu)
{
	c->asked = 1;
	an_kpreempt(cpu);
}

/* A task runs, and the CPU has not looked yet. Once: while the kernel goes without us, as in
 * suspend, dispatch is not called at all. */
static __always_inline void cpu_ask_again(struct cpu_state *c, u32 cpu)
{
	c->asked = 0;
	an_kpreempt(cpu);
}

static int cpu_timer_fired(void *map, u32 *key, struct cpu_timer *t)
{
	u32 cpu = *key;
	struct cpu_state *c = cpu_state(cpu);
	u64 now = an_kclock_ns(), at = c->check_ns;

	c->timer_ns = 0;
	if (!at)
		return 0;
	if (now < at) {
		cpu_arm(cpu, now, at);
		return 0;
	}
	c->check_ns = 0;
	c->over = 1;
	stats.timer_preemptions++;
	cpu_ask(c, cpu);
	return 0;
}

static __always_inline int cpu_timer_init(u32 cpu)
{
	struct cpu_timer *t = bpf_map_lookup_elem(&cpu_timers, &cpu);

	if (!t)
		return -1;
	bpf_timer_init(&t->timer, &cpu_timers, CLOCK_MONOTONIC);
	return bpf_timer_set_callback(&t->timer, cpu_timer_fired);
}

static __always_inline bool cpus_idle(void)
{
	const struct cpumask *idle = scx_bpf_get_idle_cpumask();
	bool any = !bpf_cpumask_empty(idle);

	scx_bpf_put_idle_cpumask(idle);
	return any;
}

/*
 * Tasks are left, and CPUs may be idle: those look. A CPU that takes a task has perhaps not taken
 * the one that it was woken for.
 */
an_global int kick_idle_cpus(void)
{
	bool any = cpus_idle();
	u32 cpu = 0;

	an_while(any && cpu < nr_cpus) {
		if (scx_bpf_test_and_clear_cpu_idle(cpu))
			scx_bpf_kick_cpu(cpu, an_kconst(scx_kick_flags, SCX_KICK_IDLE));
		cpu++;
	}
	return 0;
}

/* Is a CPU idle that a task with this affinity may use? */
static __always_inline bool cpus_idle_among(const struct cpumask *allowed)
{
	const struct cpumask *idle = scx_bpf_get_idle_cpumask();
	bool any = bpf_cpumask_intersects(allowed, idle);

	scx_bpf_put_idle_cpumask(idle);
	return any;
}

#endif
