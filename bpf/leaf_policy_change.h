/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The policy of a class changes while its tasks run and wait, or waiting changes their keys. Part
 * of sched.bpf.c.
 *
 * andante_policy says what holds from now on. Whoever is queued next looks its class up anew
 * (tasks_look_again()), and joins. A CPU that serves the class is asked to look at its choice. Who
 * waits already is found by a timer, a little later: by then nobody is in the middle of queueing a
 * task by the rule of before. Once a second it goes through the queues of all classes with a
 * policy, for ageing, and for whoever was missed all the same.
 */
#ifndef ANDANTE_BPF_LEAF_POLICY_CHANGE_H
#define ANDANTE_BPF_LEAF_POLICY_CHANGE_H

#include "classes.h"

/* How long another CPU may be in the middle of queueing a task, at most: see binding_closes(). */
#define POLICY_SETTLES_NS BINDING_QUEUEING_NS
#define POLICY_LOOK_NS AN_SVR4_AGE_NS

/* How often the queue of a class that has another policy, or none any more, is gone through for
 * that: when those in the middle of queueing are done, and once more. */
#define POLICY_WALKS 2

/* Written by the one process that loaded the scheduler, before it runs andante_policy. */
struct an_policy_call policy_call SEC(".bss.policies");

u8 leaf_walks[AN_MAX_NODES] SEC(".bss.policies"); /* left, by leaf */
u64 leaf_ages_ns SEC(".bss.policies");		  /* when the next second is over */

struct policy_timer {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct policy_timer);
} policy_timers SEC(".maps");

static __always_inline u8 *leaf_walk(u32 leaf)
{
	return &leaf_walks[an_bounded(leaf, AN_MAX_NODES)];
}

/* ---- who waits ---- */

/* The task waits in the queue of this leaf, perhaps with a key that is right no more; if ages,
 * another second of that is over. True if it is to have another: task_new_key(). */
an_global bool task_moves(struct task_state *ts, u32 leaf, bool ages)
{
	struct an_leaf_policy *l = leaf_policy(leaf);
	u64 now_ns = an_kclock_ns();
	bool moves;

	if (!ts)
		return false;
	bpf_spin_lock(&leaf_policy_lock);
	if (!l->version) {
		moves = true;
	} else if (ts->member.version != l->version) {
		leaf_policy_knows(l, ts);
		an_leaf_wants(l, &ts->member, true, now_ns);
		moves = true;
	} else {
		moves = ages && ts->member.standing == AN_LEAF_WAITS && an_leaf_age(l, &ts->member);
	}
	bpf_spin_unlock(&leaf_policy_lock);
	return moves;
}

/* What the task knows of its class may be out of date, and is not changed here. */
static __always_inline u64 task_new_key(const struct task_state *ts, u32 leaf)
{
	return leaf_policy(leaf)->version ? ts->member.key : ts->sfq.start;
}

/* See queue_counts(): of a class that may have been removed since its queue was looked at. */
an_global bool queue_counts_still(u32 queue, u64 by)
{
	u32 domain = queue_domain(queue), leaf = queue_leaf(queue);
	struct bpf_spin_lock *lock = lock_of(domain);
	struct an_tree *t = tree_of(domain);
	bool is_class;

	if (!lock)
		return false;
	bpf_spin_lock(lock);
	is_class = an_node(t, leaf)->kind == AN_LEAF;
	if (is_class)
		domain_queue_add(t, leaf, by);
	bpf_spin_unlock(lock);
	return is_class;
}

/* See queue_leave(). */
an_global bool queue_forgets(u32 queue)
{
	u32 domain = queue_domain(queue);
	struct bpf_spin_lock *lock = lock_of(domain);

	return lock && queue_leave(lock, tree_of(domain), queue_leaf(queue));
}

/*
 * The task, next in the queue that is gone through, moves within it. Meanwhile it is counted twice,
 * and this CPU says that it is on its way: see queue_check().
 */
static __always_inline void queue_reorder(struct bpf_iter_scx_dsq *it, struct task_struct *p,
					  u32 queue, u64 key)
{
	struct cpu_state *here = cpu_state(bpf_get_smp_processor_id());

	here->inserting = queue;
	if (queue_counts_still(queue, task_cpus(p, queue_domain(queue)))) {
		scx_bpf_dsq_move_set_vtime(it, key);
		scx_bpf_dsq_move_vtime(it, p, queue, 0);
		queue_forgets(queue);
	}
	here->inserting = AN_NONE;
}

/* Those in this queue of a class's have the keys that they should have. */
an_global int leaf_policy_walk(u32 queue, bool ages)
{
	u32 leaf = queue_leaf(queue);
	struct bpf_iter_scx_dsq it;
	bool more = true;

	bpf_rcu_read_lock(); /* see overdue_in() */
	bpf_iter_scx_dsq_new(&it, queue, 0);
	an_while(more) {
		struct task_struct *p = bpf_iter_scx_dsq_next(&it);
		struct task_state *ts = p ? bpf_task_storage_get(&task_states, p, 0, 0) : NULL;

		more = p != NULL;
		if (ts && task_moves(ts, leaf, ages))
			queue_reorder(&it, p, queue, task_new_key(ts, leaf));
	}
	bpf_iter_scx_dsq_destroy(&it);
	bpf_rcu_read_unlock();
	return 0;
}

/* All classes that have a policy of their own, or have had one a moment ago. True: there are any.
 */
an_global bool leaf_policies_walk(u32 domain, bool ages)
{
	struct an_tree *t = tree_of(domain);
	u32 leaf = AN_ROOT_LEAF, end = domain < nr_domains ? t->unused : 0;
	bool any = false;

	an_while(leaf < end && leaf < AN_MAX_NODES) {
		if (leaf_policy(leaf)->version || *leaf_walk(leaf)) {
			any = true;
			if (an_node(t, leaf)->kind == AN_LEAF &&
			    scx_bpf_dsq_nr_queued(queue_of(domain, leaf)) > 0)
				leaf_policy_walk(queue_of(domain, leaf), ages);
		}
		leaf = an_opaque(leaf + 1);
	}
	return any;
}

/* Of each class one time less is left to go through its queue. */
an_global int leaf_walks_done(void)
{
	u32 leaf = AN_ROOT_LEAF;

	an_while(leaf < trees[0].unused && leaf < AN_MAX_NODES) {
		if (*leaf_walk(leaf))
			--*leaf_walk(leaf);
		leaf = an_opaque(leaf + 1);
	}
	return 0;
}

/* CPUs that serve a class with a policy and do not know it, or serve this one, look. */
an_global int leaf_policy_asks(u32 leaf)
{
	u32 cpu = 0;

	an_while(cpu < nr_cpus && cpu < AN_MAX_CPUS) {
		struct cpu_state *c = cpu_state(cpu);
		u32 serving = c->serving;

		if (c->running && serving &&
		    (serving == leaf || (leaf_policy(serving)->version && !cpu_policy(c)))) {
			c->special |= cpu_policy(c) ?: POLICY_UNKNOWN;
			cpu_ask(c, cpu);
		}
		cpu = an_opaque(cpu + 1);
	}
	return 0;
}

static int leaf_policies_look(void *map, u32 *key, struct policy_timer *t)
{
	u64 now_ns = an_kclock_ns();
	bool ages = now_ns >= leaf_ages_ns, any = false;
	u32 domain = 0;

	if (ages)
		leaf_ages_ns = now_ns + POLICY_LOOK_NS;
	an_while(domain < nr_domains) {
		any |= leaf_policies_walk(domain, ages);
		domain = domain_after(domain);
	}
	leaf_walks_done();
	leaf_policy_asks(AN_NONE);
	if (any)
		bpf_timer_start(&t->timer, leaf_ages_ns - now_ns, 0);
	return 0;
}

static __always_inline int leaf_policies_init(void)
{
	struct policy_timer *t;
	u32 key = 0;

	t = bpf_map_lookup_elem(&policy_timers, &key);
	if (!t)
		return -1;
	bpf_timer_init(&t->timer, &policy_timers, CLOCK_MONOTONIC);
	return bpf_timer_set_callback(&t->timer, leaf_policies_look);
}

/* ---- the policy ---- */

/* The class of this leaf has the policy that is called for from now on. */
static __noinline void leaf_policy_is(u32 leaf)
{
	struct an_leaf_policy *l = leaf_policy(leaf);
	struct policy_timer *t;
	u32 key = 0, version = 0;

	if (policy_call.kind != AN_SFQ)
		version = POLICY_UNKNOWN + ++leaf_versions;
	cpus_see_to(SEES_TO_SPECIAL, true);
	bpf_spin_lock(&leaf_policy_lock);
	an_leaf_policy_set(l, policy_call.kind, policy_call.quantum_ns,
			   policy_call.nice_is_real_time, version);
	bpf_spin_unlock(&leaf_policy_lock);
	tasks_look_again(leaf);
	leaf_policy_asks(leaf);
	*leaf_walk(leaf) = POLICY_WALKS;
	t = bpf_map_lookup_elem(&policy_timers, &key);
	if (t)
		bpf_timer_start(&t->timer, POLICY_SETTLES_NS, 0);
}

SEC("syscall")
int andante_policy(void *ctx)
{
	struct cgroup *cgrp = bpf_cgroup_from_id(policy_call.cgroup_id);
	struct cgroup_state *cs;
	s32 err = AN_POLICY_NO_CLASS;

	if (!cgrp)
		return err;
	cs = bpf_cgrp_storage_get(&cgroup_states, cgrp, 0, 0);
	if (cs && cs->leaf) {
		if (cs->shared != SHARES_NOT)
			err = AN_CLASS_PARENT_SHARES;
		else if (an_node(&trees[0], cs->leaf)->own)
			err = AN_POLICY_INNER;
		else
			err = 0;
		if (!err)
			leaf_policy_is(cs->leaf);
	}
	bpf_cgroup_release(cgrp);
	return err;
}

#endif
