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

#include "domain.h"

/* Was the task to run next picked? */
enum apart {
	NOT_APART,
	APART,	       /* no: it was pulled over for want of work */
	APART_OWED,    /* no: it was pulled over, because its class is owed service here */
	APART_OVERDUE, /* no: it was overdue */
};

/* Was the class picked for the quantum, and does it end before that? Bits. */
enum {
	UNPICKED = 1, /* no: its debt for it is bounded */
	SLICED = 2,   /* a slice has been taken of what quotas leave: slice_ns */
	OVERDUE = 4,  /* it is the short turn of a task that was overdue */
};

/* Things that a CPU sees to beside the tree. Bits, which other CPUs set too. */
enum {
	SEES_TO_CONTRACTS = 1, /* it has, or may have, something to do for its contracts */
	SEES_TO_QUOTAS = 2,    /* there are classes with a quota */
	SEES_TO_SPECIAL = 4, /* there are, or have been, tasks in sessions, or classes with a policy
			      * of their own */
};

#define POLICY_UNKNOWN 1

/* As many CPUs as may be in the middle of queueing at once; a power of two. */
#define UNSURE_MAX 16

struct cpu_state {
	u64 used_ns;	  /* service of the quantum in progress, but for the running task's */
	u64 since_ns;	  /* when the running task's service began */
	u64 since_sum_ns; /* the task's sum_exec_runtime at that time */
	u64 start_tag;	  /* the task's start tag */
	u64 head_key;	  /* key of the first classmate in the queue: task_key() */
	u64 check_ns;	  /* when the choice must be looked at again; 0: not before the tick */
	u64 timer_ns;	  /* when the armed timer fires; 0: none is armed */
	u64 contract_ns;  /* service under a contract that has not been charged to it */
	u64 tree_ns;	  /* when the tree was served last, or had nothing ready; 0: now */
	u64 learnt_ns;	  /* when learnt contracts had their turn last, or none was ready */
	u64 overdue_ns;	  /* up to when overdue tasks have had their part: an_overdue_takes() */
	u64 contract_check_ns; /* when the CPU must turn to its contracts again; AN_NEVER */
	u64 overdue_turn_ns;   /* how long an overdue task's turn is */
	u64 slice_ns;	       /* what quotas leave of the quantum, if that is SLICED */
	u64 root_ns;	       /* when the event came that the task works for: task_state */
	u32 contract;	   /* the contract under which the task runs: contract_name(); 0: none */
	u32 contract_leaf; /* of the class that holds it; AN_NONE if threads do */
	u32 charged;	   /* the one that contract_ns is to be charged to */
	u32 learnt;	   /* what its learnt contracts use on average [1/1024] */
	u32 first_noted;   /* of its contracts that wake or go to sleep */
	u32 news;	   /* one of them is more than a step of a turn that is handed on */
	u32 handed;	   /* contract that the turn goes to next: contract_name() */
	u32 awaited_by;	   /* the learnt contract queued last for it to serve: contract_name() */
	u32 sees_to;	   /* SEES_TO_CONTRACTS, SEES_TO_QUOTAS, SEES_TO_SPECIAL */
	u32 serving;	   /* leaf whose quantum it is; AN_NONE: nobody's */
	u32 unpicked;	   /* of that quantum: UNPICKED, SLICED, OVERDUE */
	u32 apart;	   /* enum apart */
	u32 running;	   /* a task of that leaf is running */
	u32 over;	   /* the quantum is over before it is used up: another class should run */
	u32 alone;	   /* contracts are: the tree has been found to have nothing for this CPU */
	u32 asked;	   /* to look at its choice anew, which it has not done yet */
	u32 inserting;	   /* queue that may be about to get a task from here */
	u32 weight;	   /* nice weight of the running task */
	u32 held;	   /* that task is looked at when it goes to sleep: it holds a contract, is
			    * active under one, works for an event, or its class has a
			    * policy of its own */
	u32 asks;	   /* thread that has sent a request from here, and woken nobody since */
	u32 event;	   /* what that task works for: enum an_learn_event */
	/* Of the task: version of the policy that its class has of its own; POLICY_UNKNOWN: it has
	 * one since lately, or has another; SPECIAL_IN_SESSION: it takes part in one; 0: neither */
	u32 special;
	u32 classmate_ns; /* service before a classmate that wakes may preempt */
	u32 gone;	  /* it is offline, and serves no contract */
	u32 at_once;	  /* a thread of the kernel's runs next, before everybody else */
	/* Leaves in which it has found no task, and is not sure that there is none: unsure_of() */
	u32 unsure;
	u16 unsure_of[UNSURE_MAX];
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

/* A check that would come sooner is put off until then. */
#define AN_TIMER_MIN_NS 50000

static __always_inline struct cpu_state *cpu_state(u32 cpu)
{
	return &cpus[an_bounded(cpu, AN_MAX_CPUS)];
}

/* The instant, which other CPUs set too, is this one, if it is not earlier already; 0: never. */
static __always_inline bool made_earlier(u64 *instant, u64 at)
{
	u64 was = *instant;

	an_while(!was || was > at) {
		u64 seen = __sync_val_compare_and_swap(instant, was, at);

		if (seen == was)
			return true;
		was = seen;
	}
	return false;
}

/*
 * The timer fires at this instant, or at *due_ns if that is earlier, which says when it fires. Of
 * two CPUs that start it at once, the one that starts it last may mean the later instant (race
 * --seed 5044).
 */
static __always_inline void timer_arm(struct bpf_timer *timer, u64 *due_ns, u64 now, u64 at)
{
	u64 due;

	if (!made_earlier(due_ns, at))
		return;
	bpf_timer_start(timer, at > now ? at - now : 1, 0);
	due = *due_ns;
	if (due && due < at)
		bpf_timer_start(timer, due > now ? due - now : 1, 0);
}

/* The CPU's timer fires by this instant. */
static __noinline void cpu_arm(u32 cpu, u64 now, u64 at)
{
	struct cpu_timer *t;
	u32 key = cpu;

	t = bpf_map_lookup_elem(&cpu_timers, &key);
	if (t)
		timer_arm(&t->timer, &cpu_state(cpu)->timer_ns, now, at);
}

/* All CPUs see to these things beside the tree, if there are any, or not any more. */
static __noinline void cpus_see_to(u32 things, bool any)
{
	u32 cpu = 0;

	an_while(cpu < nr_cpus && cpu < AN_MAX_CPUS) {
		if (any)
			__sync_fetch_and_or(&cpu_state(cpu)->sees_to, things);
		else
			__sync_fetch_and_and(&cpu_state(cpu)->sees_to, ~things);
		cpu = an_opaque(cpu + 1); /* one turn to the verifier */
	}
}

/* The CPU's choice is looked at again then, or sooner if that was said before. */
static __always_inline void cpu_check_by(struct cpu_state *c, u32 cpu, u64 now, u64 at)
{
	if (made_earlier(&c->check_ns, at) && (!c->timer_ns || c->timer_ns > at))
		cpu_arm(cpu, now, at);
}

/* The same; not too soon, for a timer is not free. */
static __always_inline void cpu_check_at(struct cpu_state *c, u32 cpu, u64 now, u64 at)
{
	u64 soonest = now + AN_TIMER_MIN_NS;

	if (c->check_ns && c->check_ns <= at)
		return;
	/* The timer fires anyway, and tasks that switch more often must not put off every check. */
	if (c->timer_ns && c->timer_ns < soonest)
		soonest = c->timer_ns;
	cpu_check_by(c, cpu, now, at < soonest ? soonest : at);
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
	u64 now, at;

	/* Before what is to be done is read: a CPU that says so after that sets the timer anew. */
	__sync_lock_test_and_set(&c->timer_ns, 0);
	at = c->check_ns;
	now = an_kclock_ns();
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

/* The first CPU that is there, which does what others leave behind. */
static __always_inline u32 cpu_heir(void)
{
	u32 heir = 0;

	an_while(heir < nr_cpus && cpu_state(heir)->gone)
		heir = an_opaque(heir + 1);
	return heir;
}

static __always_inline bool cpus_idle(void)
{
	const struct cpumask *idle = scx_bpf_get_idle_cpumask();
	bool any = !bpf_cpumask_empty(idle);

	scx_bpf_put_idle_cpumask(idle);
	return any;
}

/* Idle CPUs look, those of these bits (cpu_bit()). */
an_global int kick_idle_among(u64 by)
{
	bool any = cpus_idle();
	u32 cpu = 0;

	an_while(any && cpu < nr_cpus) {
		if ((by & cpu_bit(cpu)) == cpu_bit(cpu) && scx_bpf_test_and_clear_cpu_idle(cpu))
			scx_bpf_kick_cpu(cpu, an_kconst(scx_kick_flags, SCX_KICK_IDLE));
		cpu++;
	}
	return 0;
}

static __always_inline void kick_idle_cpus(void)
{
	kick_idle_among(~0ULL);
}

/*
 * Tasks are left in this tree, and CPUs may be idle: those look that may run some of it. A CPU that
 * takes a task has perhaps not taken the one that it was woken for.
 */
static __always_inline void kick_for_the_rest(struct an_tree *t)
{
	if (nr_cpus > 1 && an_root(t)->ready)
		kick_idle_among(nr_domains > 1 ? ~0ULL : an_root(t)->usable_by);
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
