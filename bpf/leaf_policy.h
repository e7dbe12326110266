/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Classes whose tasks are ordered by a policy of their own. Part of sched.bpf.c; the rules are
 * core/leaf_policy.h, and what changes while tasks wait is leaf_policy_change.h.
 *
 * Start tags are kept all the same, for the tree and its domains ask them how far a class is; what
 * a policy changes is the key of the class's queue (task_key()), who is preempted by a classmate,
 * and that service is told to it.
 *
 * Most classes have none, and their tasks pay for one test of task_state.policy, which is found
 * with their class, when they are queued (task_wants()). The rest hangs on what is tested anyway:
 * CPUs see to policies by a bit beside those for contracts and quotas; how long a classmate that
 * wakes has to wait is 0 of a CPU that serves a member, which is then asked; a member is looked at
 * when it goes to sleep, as are those that hold a contract; and what it was served it tells its
 * policy when it has to do with that next (leaf_policy_knows()), not when it is charged.
 *
 * One lock guards all of them: the policies, and what tasks are to them. It is never held together
 * with a tree's.
 */
#ifndef ANDANTE_BPF_LEAF_POLICY_H
#define ANDANTE_BPF_LEAF_POLICY_H

#include "cpu.h"
#include "task_state.h"

/* By leaf. User space reads them. */
struct an_leaf_policy leaf_policies[AN_MAX_NODES] SEC(".bss.policies");

/* How many have been given. Versions begin behind POLICY_UNKNOWN. */
u32 leaf_versions SEC(".bss.policies");

static struct bpf_spin_lock leaf_policy_lock SEC(".bss.order_lock");

/* Of each CPU that serves a member, what that was when its service began: others compare. */
struct an_member leaf_served[AN_MAX_CPUS];

static __always_inline struct an_leaf_policy *leaf_policy(u32 leaf)
{
	return &leaf_policies[an_bounded(leaf, AN_MAX_NODES)];
}

/* Version of the policy of the class whose task runs on the CPU; 0: it has none of its own. */
static __always_inline u32 cpu_policy(const struct cpu_state *c)
{
	return c->special & ~SPECIAL_IN_SESSION;
}

/* What the queue of the task's class is ordered by. */
static __always_inline u64 task_key(const struct task_state *ts)
{
	return ts->policy ? ts->member.key : ts->sfq.start;
}

/* The task's class is the one of this leaf, whose policy hears of what it is served from now on. */
static __always_inline void leaf_policy_found(struct task_state *ts, u32 leaf)
{
	task_has_policy(ts, leaf_policy(leaf)->version);
	ts->told_ns = ts->charged_ns;
}

/*
 * The task is a member of this version of the class's policy, which is told how long the task has
 * been served since it was told last. With the lock held.
 */
static __always_inline void leaf_policy_knows(struct an_leaf_policy *l, struct task_state *ts)
{
	u64 used = ts->charged_ns - ts->told_ns;

	ts->told_ns = ts->charged_ns;
	if (ts->member.version != l->version)
		an_leaf_join(l, &ts->member, ts->nice, ts->weight);
	else if (used)
		an_leaf_used(l, &ts->member, used);
}

/*
 * The task wants to run in the class of this leaf, after a sleep or because its turn is over: it
 * has a key from now on, which is returned. It may be that the policy is another than when its
 * class was looked up.
 */
an_global u64 leaf_policy_wants(struct task_state *ts, u32 leaf, u64 enq_flags)
{
	bool woken = enq_flags & an_kconst(scx_enq_flags, SCX_ENQ_WAKEUP);
	struct an_leaf_policy *l = leaf_policy(leaf);
	u64 now_ns = an_kclock_ns();

	if (!ts)
		return 0;
	bpf_spin_lock(&leaf_policy_lock);
	task_has_policy(ts, l->version);
	if (ts->policy) {
		leaf_policy_knows(l, ts);
		an_leaf_wants(l, &ts->member, woken, now_ns);
	}
	bpf_spin_unlock(&leaf_policy_lock);
	return task_key(ts);
}

/* The key of a task that is about to be queued in the class of this leaf, whether that has a policy
 * of its own or not. */
static __always_inline u64 task_wants(struct task_state *ts, u32 leaf, u64 enq_flags)
{
	if (!ts->policy)
		return ts->sfq.start;
	return leaf_policy_wants(ts, leaf, enq_flags);
}

/* The task is put into service on this CPU, or goes on. Returns after how much of that its policy
 * is to be asked again [ns]. */
an_global u64 leaf_policy_serves(struct task_state *ts, u32 leaf, u32 cpu)
{
	struct an_leaf_policy *l = leaf_policy(leaf);
	u64 now_ns = an_kclock_ns(), run_ns = AN_ENDLESS_NS;

	if (!ts)
		return run_ns;
	bpf_spin_lock(&leaf_policy_lock);
	task_has_policy(ts, l->version);
	if (ts->policy) {
		leaf_policy_knows(l, ts);
		an_leaf_serves(l, &ts->member, now_ns);
		leaf_served[an_bounded(cpu, AN_MAX_CPUS)] = ts->member.member;
		run_ns = an_leaf_run_ns(l, &ts->member);
	}
	bpf_spin_unlock(&leaf_policy_lock);
	return run_ns;
}

/* It goes to sleep, and has been charged. */
an_global int leaf_policy_sleeps(struct task_state *ts)
{
	struct an_leaf_policy *l;

	if (!ts)
		return 0;
	l = leaf_policy(ts->leaf);
	bpf_spin_lock(&leaf_policy_lock);
	if (l->version)
		leaf_policy_knows(l, ts);
	ts->member.standing = AN_LEAF_ASLEEP;
	bpf_spin_unlock(&leaf_policy_lock);
	return 0;
}

/* Should the task, which has just woken in the class of this leaf, take the CPU of the classmate
 * that runs there? */
an_global bool leaf_policy_preempts(struct task_state *ts, u32 leaf, u32 cpu)
{
	struct an_leaf_policy *l = leaf_policy(leaf);
	struct cpu_state *c = cpu_state(cpu);
	u64 now_ns = an_kclock_ns();
	struct an_member serving;
	bool preempts = false;

	if (!ts)
		return false;
	bpf_spin_lock(&leaf_policy_lock);
	if (l->version && cpu_policy(c) == l->version && ts->member.version == l->version) {
		serving = leaf_served[an_bounded(cpu, AN_MAX_CPUS)];
		preempts = an_leaf_preempts(l, &ts->member, &serving, now_ns - c->since_ns);
	}
	bpf_spin_unlock(&leaf_policy_lock);
	return preempts;
}

/* The same. The task's state is looked up here, for callers keep it for no other reason. */
static __noinline bool member_preempts(struct task_struct *p, u32 leaf, u32 cpu)
{
	struct task_state *ts = bpf_task_storage_get(&task_states, p, 0, 0);

	return ts && leaf_policy_preempts(ts, leaf, cpu);
}

/* Its nice value is another. */
an_global int leaf_policy_reniced(struct task_state *ts)
{
	struct an_leaf_policy *l;

	if (!ts)
		return 0;
	l = leaf_policy(ts->leaf);
	bpf_spin_lock(&leaf_policy_lock);
	if (l->version && ts->member.version == l->version)
		an_leaf_renice(l, &ts->member, ts->nice, ts->weight);
	bpf_spin_unlock(&leaf_policy_lock);
	return 0;
}

/* The child is forked by the parent, and comes into its class. */
an_global int leaf_policy_forked(struct task_state *parent, struct task_state *child)
{
	struct an_leaf_policy *l;

	if (!parent || !child)
		return 0;
	l = leaf_policy(parent->leaf);
	bpf_spin_lock(&leaf_policy_lock);
	if (l->version && parent->member.version == l->version)
		an_leaf_fork(l, &parent->member, &child->member);
	bpf_spin_unlock(&leaf_policy_lock);
	return 0;
}

/* This task is made by the one that runs, which may be of a class with a policy. */
static __noinline void leaf_policy_forks(struct task_state *ts)
{
	struct task_struct *parent = bpf_get_current_task_btf();
	struct task_state *from = bpf_task_storage_get(&task_states, parent, 0, 0);

	if (from && from->policy && !from->home)
		leaf_policy_forked(from, ts);
}

#endif
