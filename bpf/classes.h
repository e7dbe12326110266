/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Classes are cgroups: the tree of core/tree.h follows the cgroup v2 hierarchy, as far as the cpu
 * controller reaches. Part of sched.bpf.c.
 *
 * A cgroup that finds no room in the tree shares its parent's class, so that it can still be made;
 * and so do those below it, or they would be beside it. When there is room again, the daemon has
 * andante_class give each a class of its own, parents first:
 *
 *             cgroup_init, no room             andante_class
 *      (new) ─────────────────────► SHARES ─────────────────► SHARES_YET ──► SHARES_NOT
 *                                      │                           │ no room: back to SHARES
 *                                      └──── cgroup_exit ──────────┴──► SHARES_GONE
 *
 * The kernel holds no lock of its own around that program, so that the cgroup may go meanwhile.
 */
#ifndef ANDANTE_BPF_CLASSES_H
#define ANDANTE_BPF_CLASSES_H

#include "holders.h"
#include "leaf_policy.h"
#include "works_for.h"

enum {
	SHARES_NOT = 0,
	SHARES = 1,	 /* the class is the parent's */
	SHARES_YET = 2,	 /* it is about to get one of its own */
	SHARES_GONE = 3, /* the cgroup has ended */
};

struct cgroup_state {
	u32 leaf;   /* the cgroup's class */
	u32 shared; /* SHARES_NOT … */
	/* Of the class, or of that which it is to get: */
	u32 weight; /* or AN_WEIGHT_IDLE */
	u64 quota_us, period_us, burst_us;
};

struct {
	__uint(type, BPF_MAP_TYPE_CGRP_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct cgroup_state);
} cgroup_states SEC(".maps");

/* Those that share their parent's class, by id: eight times as many as there may be classes. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, u64);
	__type(value, u8);
} class_sharing SEC(".maps");

static __always_inline u32 cgroup_leaf(struct cgroup *cgrp)
{
	struct cgroup_state *cs = bpf_cgrp_storage_get(&cgroup_states, cgrp, 0, 0);

	return cs && cs->leaf ? cs->leaf : AN_ROOT_LEAF;
}

/* The class that the cgroup's is below, and whether the parent has that from its own parent. */
static __always_inline u32 parent_leaf(struct cgroup *cgrp, bool *shares)
{
	struct cgroup *parent = bpf_cgroup_ancestor(cgrp, cgrp->level - 1);
	struct cgroup_state *cs;
	u32 leaf = AN_ROOT_LEAF;

	*shares = false;
	if (parent) {
		cs = bpf_cgrp_storage_get(&cgroup_states, parent, 0, 0);
		if (cs && cs->leaf) {
			leaf = cs->leaf;
			*shares = cs->shared != SHARES_NOT;
		}
		bpf_cgroup_release(parent);
	}
	return leaf;
}

#ifdef AN_DOMAINS

/* The first index above this one that is free in all domains. */
static __always_inline u32 free_in_all(u32 after)
{
	u32 index = an_first_free(tree_of(0), after), domain = 1;

	an_while(domain < nr_domains && index < AN_MAX_NODES) {
		u32 other = an_first_free(tree_of(domain), index - 1);

		domain = other > index ? 0 : domain_after(domain);
		index = other;
	}
	return index;
}

/* A class in all domains, under the same index; AN_NONE: there is no room. */
an_global u32 class_create(u32 parent, u64 id, u32 weight)
{
	u32 child = free_in_all(AN_ROOT_LEAF), inner = free_in_all(child), domain = 0, leaf = child;
	struct place at;

	if (inner >= AN_MAX_NODES)
		return AN_NONE;
	an_everywhere_create(&everywhere, parent, child, inner);
	an_while(leaf && domain < nr_domains && place_in(&at, domain)) {
		bpf_spin_lock(at.lock);
		leaf = an_domain_create(at.tree, parent, id, weight, child, inner);
		bpf_spin_unlock(at.lock);
		domain = domain_after(domain);
	}
	return leaf;
}

#else

static __always_inline u32 class_create(u32 parent, u64 id, u32 weight)
{
	struct bpf_spin_lock *lock = contracts_lock();
	u32 leaf;

	bpf_spin_lock(lock);
	leaf = an_class_create(&trees[0], parent, id, weight);
	bpf_spin_unlock(lock);
	return leaf;
}

#endif

/* The kernel says that its queues are empty. */
static __noinline void class_remove(u32 leaf)
{
	u32 domain = 0;
	struct place at;

	an_while(domain < nr_domains && place_in(&at, domain)) {
		bpf_spin_lock(at.lock);
		if (!domain && *leaf_contract(leaf))
			contract_end(*leaf_contract(leaf));
		an_queue_correct(at.tree, leaf, 0);
		an_class_remove(at.tree, leaf);
		bpf_spin_unlock(at.lock);
		domain = domain_after(domain);
	}
}

/* The queues of a slot that was used before are still there. */
static __always_inline s32 class_queues_create(u32 leaf)
{
	u32 domain = 0;
	s32 err = 0;

	an_while(domain < nr_domains && !err) {
		err = scx_bpf_create_dsq(queue_of(domain, leaf), -1);
		if (err == -17 /* EEXIST */)
			err = 0;
		domain = domain_after(domain);
	}
	return err;
}

/* A class and its queues; AN_NONE: there is no room for one of them. */
static __noinline u32 class_with_queues(u32 parent, u64 id, u32 weight)
{
	u32 leaf = class_create(parent, id, weight);

	if (leaf && class_queues_create(leaf)) {
		class_remove(leaf);
		return AN_NONE;
	}
	leaf_policy(leaf)->version = 0; /* whose it was before has gone */
	return leaf;
}

/* The class of this leaf has this weight from now on, or is idle. */
static __noinline void class_weighs(u32 leaf, u32 weight)
{
	u32 domain = 0;
	struct place at;

	an_while(domain < nr_domains && place_in(&at, domain)) {
		bpf_spin_lock(at.lock);
		if (weight == AN_WEIGHT_IDLE)
			an_class_set_idle(at.tree, leaf);
		else
			an_class_set_weight(at.tree, leaf, weight);
		bpf_spin_unlock(at.lock);
		domain = domain_after(domain);
	}
}

/* So often the cgroup may be written to while its class begins; each time takes a system call. */
#define APPLIES_MAX 8

/* The class begins with the weight and the quota that its cgroup has. */
static __noinline void class_applies(u32 leaf, const struct cgroup_state *cs)
{
	u32 left = APPLIES_MAX;
	bool changed = true;

	an_while(left && changed) {
		struct cgroup_state as = *cs;

		class_weighs(leaf, as.weight);
		class_limits(leaf, as.quota_us, as.period_us, as.burst_us);
		/* Or it would be undone here. */
		changed = cs->weight != as.weight || cs->quota_us != as.quota_us ||
			  cs->period_us != as.period_us || cs->burst_us != as.burst_us;
		left = an_opaque(left - 1);
	}
}

SEC("struct_ops.s/andante_cgroup_init")
s32 BPF_PROG(andante_cgroup_init, struct cgroup *cgrp, struct scx_cgroup_init_args *args)
{
	struct cgroup_state *cs;
	u64 id = cgrp->kn->id;
	u32 weight = args->weight;
	u32 parent, leaf = AN_NONE;
	u8 shares = 1;
	bool below;

	cs = bpf_cgrp_storage_get(&cgroup_states, cgrp, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	/* When Andante begins, some are just being removed: no task comes to them any more. */
	if (!cs)
		return an_kclass_is_removed(cgrp) ? 0 : -12; /* ENOMEM */
	if (!cgrp->level) {
		cs->leaf = AN_ROOT_LEAF;
		*an_cgroup_id(&trees[0], AN_ROOT) = id;
		return 0;
	}
	cs->weight = an_kclass_is_idle(cgrp) ? AN_WEIGHT_IDLE : weight;
	an_kquota(args, &cs->quota_us, &cs->period_us, &cs->burst_us);
	parent = parent_leaf(cgrp, &below);
	if (!below)
		leaf = class_with_queues(parent, id, weight);
	if (leaf) {
		cs->leaf = leaf;
		class_applies(leaf, cs);
	} else {
		cs->leaf = parent;
		cs->shared = SHARES;
		__sync_fetch_and_add(&stats.classes_refused, 1);
		__sync_fetch_and_add(&stats.classes_shared, 1);
		/* One that finds no place there either shares for good, and is counted. */
		bpf_map_update_elem(&class_sharing, &id, &shares, 0);
	}
	return 0;
}

static __noinline void class_shares_no_more(u64 id)
{
	__sync_fetch_and_add(&stats.classes_shared, -1);
	bpf_map_delete_elem(&class_sharing, &id);
}

SEC("struct_ops/andante_cgroup_exit")
void BPF_PROG(andante_cgroup_exit, struct cgroup *cgrp)
{
	struct cgroup_state *cs = bpf_cgrp_storage_get(&cgroup_states, cgrp, 0, 0);
	u32 leaf, domain = 0, shared;

	if (!cs || !cs->leaf)
		return;
	shared = __sync_lock_test_and_set(&cs->shared, SHARES_GONE);
	if (shared == SHARES)
		class_shares_no_more(cgrp->kn->id);
	leaf = cs->leaf;
	if (shared != SHARES_NOT || leaf == AN_ROOT_LEAF)
		return;
	cs->leaf = AN_NONE;
	an_while(bindings && domain < nr_domains) {
		binding_closes(domain, leaf);
		domain = domain_after(domain);
	}
	class_limits(leaf, QUOTA_MAX_US, 0, 0);
	class_remove(leaf);
	binding_closing = AN_NONE;
}

/*
 * The new weight is kept before it is seen whether the class is the cgroup's own yet: class_own()
 * looks in the other order.
 */
static __noinline void class_weight_is(struct cgroup *cgrp, u32 weight)
{
	struct cgroup_state *cs = bpf_cgrp_storage_get(&cgroup_states, cgrp, 0, 0);

	if (!cs)
		return;
	cs->weight = weight;
	if (cs->shared == SHARES_NOT)
		class_weighs(cs->leaf, weight);
}

SEC("struct_ops/andante_cgroup_set_weight")
void BPF_PROG(andante_cgroup_set_weight, struct cgroup *cgrp, u32 weight)
{
	class_weight_is(cgrp, weight);
}

/* One that is idle no more has the usual weight, as cpu.weight says then. */
SEC("struct_ops/andante_cgroup_set_idle")
void BPF_PROG(andante_cgroup_set_idle, struct cgroup *cgrp, bool idle)
{
	class_weight_is(cgrp, idle ? AN_WEIGHT_IDLE : AN_WEIGHT_DEFAULT);
}

SEC("struct_ops/andante_cgroup_set_bandwidth")
void BPF_PROG(andante_cgroup_set_bandwidth, struct cgroup *cgrp, u64 period_us, u64 quota_us,
	      u64 burst_us)
{
	struct cgroup_state *cs = bpf_cgrp_storage_get(&cgroup_states, cgrp, 0, 0);

	if (!cs)
		return;
	cs->quota_us = quota_us;
	cs->period_us = period_us;
	cs->burst_us = burst_us;
	if (cs->shared == SHARES_NOT)
		class_limits(cs->leaf, quota_us, period_us, burst_us);
}

/*
 * The tasks of this class look their class up anew, each when it is queued or begins to run next:
 * some are another cgroup's, which has a class of its own now. Parity is kept; it says nothing, but
 * to a reader.
 */
static __always_inline void tasks_look_again(u32 leaf)
{
	struct bpf_spin_lock *lock = contracts_lock();

	bpf_spin_lock(lock);
	an_node(&trees[0], leaf)->generation += 2;
	bpf_spin_unlock(lock);
}

/* The cgroup, which shares its parent's class, gets one of its own if there is room. */
static __noinline s32 class_own(struct cgroup *cgrp, struct cgroup_state *cs)
{
	u32 old = cs->leaf, parent, leaf;
	u64 id = cgrp->kn->id;
	bool below;

	parent = parent_leaf(cgrp, &below);
	if (below)
		return AN_CLASS_PARENT_SHARES;
	if (__sync_val_compare_and_swap(&cs->shared, SHARES, SHARES_YET) != SHARES)
		return 0;
	leaf = class_with_queues(parent, id, cs->weight);
	/* Without one it shares that of its parent, which may have got one since. */
	cs->leaf = leaf ?: parent;
	if (__sync_val_compare_and_swap(&cs->shared, SHARES_YET, leaf ? SHARES_NOT : SHARES) !=
	    SHARES_YET) {
		/* It has ended meanwhile, and has no tasks. */
		class_shares_no_more(id);
		if (leaf)
			class_remove(leaf);
		return 0;
	}
	if (old != cs->leaf)
		tasks_look_again(old);
	if (!leaf)
		return AN_CLASS_NO_ROOM;
	class_applies(leaf, cs);
	class_shares_no_more(id);
	return 0;
}

SEC("syscall")
int andante_class(void *ctx)
{
	struct cgroup *cgrp = bpf_cgroup_from_id(contract_call.cgroup_id);
	struct cgroup_state *cs;
	s32 err = 0;

	if (!cgrp)
		return 0;
	cs = bpf_cgrp_storage_get(&cgroup_states, cgrp, 0, 0);
	if (cs)
		err = class_own(cgrp, cs);
	bpf_cgroup_release(cgrp);
	return err;
}

/* The class of a task whose class is not known, or is known no more. */
static __noinline u32 task_find_leaf(struct task_struct *p, struct task_state *ts)
{
	struct cgroup *cgrp = scx_bpf_task_cgroup(p);
	u32 leaf = cgroup_leaf(cgrp), generation = an_node(&trees[0], leaf)->generation;

	/* It may have got another class since: that is known before the generation changes. */
	if (leaf != cgroup_leaf(cgrp)) {
		leaf = cgroup_leaf(cgrp);
		generation = an_node(&trees[0], leaf)->generation;
	}
	bpf_cgroup_release(cgrp);
	ts->leaf = leaf;
	ts->generation = generation;
	ts->home = AN_NONE;
	leaf_policy_found(ts, leaf);
	ts->sfq.fresh = 1;
	return leaf;
}

/* The task's class. Only in callbacks about that task, while its run queue is locked. */
static __always_inline u32 task_leaf(struct task_struct *p, struct task_state *ts)
{
	u32 leaf = ts->leaf;

	if (leaf && (u16)ts->generation == an_node(&trees[0], leaf)->generation &&
	    (!ts->home || binding_holds(leaf, ts->generation)))
		return leaf;
	return task_find_leaf(p, ts);
}

/* The task is not of its class any more. It does not run now. */
static __always_inline void task_leaves(struct task_state *ts)
{
	ts->leaf = ts->home = AN_NONE;
	contract_uncount(ts);
}

/* The running task makes this one, of a process of its own. */
static __always_inline void task_made(struct task_state *ts)
{
	const struct task_state *maker =
		bpf_task_storage_get(&task_states, bpf_get_current_task_btf(), 0, 0);

	if (maker && maker->leaf)
		an_task_made(an_node(tree_of(maker->domain), maker->leaf)->vtime, &ts->sfq,
			     &maker->sfq);
}

SEC("struct_ops.s/andante_init_task")
s32 BPF_PROG(andante_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	struct task_state *ts =
		bpf_task_storage_get(&task_states, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!ts)
		return -12; /* ENOMEM */
	learn_begins(p, ts, args->fork);
	if (args->fork) {
		leaf_policy_forks(ts);
		if (p->pid == p->tgid)
			task_made(ts);
		contract_inherit(p, ts);
	}
	contracts_make_room();
	return 0;
}

SEC("struct_ops/andante_exit_task")
void BPF_PROG(andante_exit_task, struct task_struct *p, struct scx_exit_task_args *args)
{
	struct task_state *ts = bpf_task_storage_get(&task_states, p, 0, 0);

	if (ts)
		task_leaves(ts);
	if (ts && ts->contract)
		contract_unbind(ts);
}

SEC("struct_ops/andante_cgroup_move")
void BPF_PROG(andante_cgroup_move, struct task_struct *p, struct cgroup *from, struct cgroup *to)
{
	struct task_state *ts = bpf_task_storage_get(&task_states, p, 0, 0);

	if (ts)
		task_leaves(ts);
}

/* The task goes to another scheduling class. */
SEC("struct_ops/andante_disable")
void BPF_PROG(andante_disable, struct task_struct *p)
{
	struct task_state *ts = bpf_task_storage_get(&task_states, p, 0, 0);

	if (ts)
		task_leaves(ts);
}

/* The task comes (back) from another scheduling class: its old tag means nothing. */
SEC("struct_ops/andante_enable")
void BPF_PROG(andante_enable, struct task_struct *p)
{
	struct task_state *ts = bpf_task_storage_get(&task_states, p, 0, 0);

	if (ts) {
		ts->leaf = AN_NONE;
		ts->waits_ns = 0;
		ts->charged_ns = p->se.sum_exec_runtime;
		task_weighs(p, ts);
	}
}

/* The weight that the kernel names is a rounded one: task_weighs() has the exact one. */
SEC("struct_ops/andante_set_weight")
void BPF_PROG(andante_set_weight, struct task_struct *p, u32 weight)
{
	struct task_state *ts = bpf_task_storage_get(&task_states, p, 0, 0);

	if (!ts)
		return;
	task_weighs(p, ts);
	if (ts->policy)
		leaf_policy_reniced(ts);
}

#endif
