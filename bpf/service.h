/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A task's service: it begins, it ends, and is charged. Part of sched.bpf.c.
 *
 * The quantum of its class, and the contract that it runs under, are charged when the service ends,
 * for somebody else is chosen next. The task itself is charged when it matters to it: at once if it
 * wants to go on, or is active under a contract; otherwise when it wakes, which saves looking up
 * its state when it goes to sleep.
 */
#ifndef ANDANTE_BPF_SERVICE_H
#define ANDANTE_BPF_SERVICE_H

#include "contract_turn.h"
#include "leaf_policy.h"
#include "learn.h"

/* A task is put into service in its turn. */
static __always_inline void task_served(struct cpu_state *c, const struct place *at,
					const struct task_state *ts)
{
	if (!c->contract || c->contract_leaf)
		an_task_serve(&an_node(at->tree, c->serving)->vtime, &ts->sfq);
}

/*
 * The task's class has a policy of its own, which is asked again when it says so, and says itself
 * who makes way; or the task takes part in a session, and hears of events; or either was so of the
 * task before. The place is not handed over: clang would keep it in memory for all others then.
 */
static __noinline void special_begins(struct cpu_state *c, u32 cpu, struct task_struct *p,
				      struct task_state *ts, u64 now)
{
	u64 run_ns = AN_ENDLESS_NS;

	if (ts->policy | cpu_policy(c))
		run_ns = leaf_policy_serves(ts, c->serving, cpu);
	if (ts->declared.session) {
		sink_waits(ts, 0);
		session_event_ns(p, ts, now, true);
	}
	ts->ahead = 0;
	c->special = ts->special;
	c->held |= ts->policy;
	c->classmate_ns = ts->policy ? 0 : in_class_wake_ns;
	if (run_ns < quantum_ns && an_node(tree_of(cpu_domain(cpu)), c->serving)->queued)
		cpu_check_at(c, cpu, now, now + run_ns);
}

/* A task of the class whose quantum it is starts to run, or goes on. */
static __always_inline void service_begins(struct cpu_state *c, u32 cpu, const struct place *at,
					   struct task_struct *p, struct task_state *ts)
{
	u64 now = an_kclock_ns();

	c->since_ns = now;
	c->since_sum_ns = p->se.sum_exec_runtime;
	c->start_tag = ts->sfq.start;
	c->weight = ts->weight;
	c->running = 1;
	c->held = ts->contract | ts->counted;
	if (learn_bound) {
		c->root_ns = ts->root_ns;
		c->event = ts->event;
		c->held |= ts->event;
	}
	if (c->contract ? contract_shares(c) : an_root(at->tree)->ready)
		cpu_check_at(c, cpu, now, now + quantum_ns - c->used_ns);
	if (c->sees_to) {
		if (c->sees_to & SEES_TO_SPECIAL && (ts->special | c->special))
			special_begins(c, cpu, p, ts, now);
		if (c->sees_to & SEES_TO_CONTRACTS && c->contract_check_ns != AN_NEVER)
			cpu_check_at(c, cpu, now, c->contract_check_ns);
		if (c->sees_to & SEES_TO_QUOTAS)
			slice_begins(cpu);
	}
}

/* The task, of this leaf, has run and wants to go on: its class's policy, or what it says in a
 * session, may want it otherwise. */
static __noinline void special_stops(const struct cpu_state *c, struct task_struct *p,
				     struct task_state *ts, u32 leaf)
{
	if (cpu_policy(c))
		leaf_policy_wants(ts, leaf, 0);
	if (ts->declared.session)
		session_stops(p, ts, an_kclock_ns());
}

/*
 * How long a thread of the kernel's goes before everybody else when it wakes. Then it competes like
 * any other: sound in periods of 64 samples cannot wait for one that frees what compilers leave.
 */
#define AT_ONCE_NS 500000

/* The task that starts to run was put before all others. */
static __noinline void at_once_begins(struct cpu_state *c, u32 cpu)
{
	u64 now = an_kclock_ns();

	c->at_once = 0;
	cpu_check_at(c, cpu, now, now + AT_ONCE_NS);
}

/* The running task stops, or its slice does: the quantum of its class is charged. */
static __always_inline void service_ends(struct cpu_state *c, const struct task_struct *p)
{
	u64 used = p->se.sum_exec_runtime - c->since_sum_ns;

	c->used_ns += used;
	if (c->contract) {
		c->contract_ns += used;
		c->charged = c->contract;
	}
	c->running = 0;
	c->check_ns = 0;
}

/* The task is charged for its service since it was charged last. */
static __always_inline void task_settles(const struct task_struct *p, struct task_state *ts)
{
	u64 used = p->se.sum_exec_runtime - ts->charged_ns;

	if (!used)
		return;
	ts->charged_ns += used;
	an_task_charge(&ts->sfq, used, ts->weight);
	learn_ran(ts, used);
}

#endif
