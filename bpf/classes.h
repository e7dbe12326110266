/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Classes are cgroups: the tree of core/tree.h follows the cgroup v2 hierarchy, as far as the cpu
 * controller reaches. Part of sched.bpf.c.
 *
 * A cgroup that finds no room in the tree shares its parent's class, so that it can still be made.
 */
#ifndef ANDANTE_BPF_CLASSES_H
#define ANDANTE_BPF_CLASSES_H

#include "holders.h"

struct cgroup_state {
	u32 leaf;   /* the cgroup's class */
	u32 shared; /* it is the parent's */
};

struct {
	__uint(type, BPF_MAP_TYPE_CGRP_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct cgroup_state);
} cgroup_states SEC(".maps");

static __always_inline u32 cgroup_leaf(struct cgroup *cgrp)
{
	struct cgroup_state *cs = bpf_cgrp_storage_get(&cgroup_states, cgrp, 0, 0);

	return cs && cs->leaf ? cs->leaf : AN_ROOT_LEAF;
}

static __always_inline u32 parent_leaf(struct cgroup *cgrp)
{
	struct cgroup *parent = bpf_cgroup_ancestor(cgrp, cgrp->level - 1);
	u32 leaf = AN_ROOT_LEAF;

	if (parent) {
		leaf = cgroup_leaf(parent);
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

		domain = other > index ? 0 : domain + 1;
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
		domain++;
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
		domain++;
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
		domain++;
	}
	return err;
}

SEC("struct_ops.s/andante_cgroup_init")
s32 BPF_PROG(andante_cgroup_init, struct cgroup *cgrp, struct scx_cgroup_init_args *args)
{
	struct cgroup_state *cs;
	u64 id = cgrp->kn->id;
	u32 weight = args->weight;
	u32 parent, leaf;
	s32 err;

	cs = bpf_cgrp_storage_get(&cgroup_states, cgrp, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!cs)
		return -12; /* ENOMEM */
	if (!cgrp->level) {
		cs->leaf = AN_ROOT_LEAF;
		an_root(&trees[0])->cgroup_id = id;
		return 0;
	}
	parent = parent_leaf(cgrp);
	leaf = class_create(parent, id, weight);
	if (leaf) {
		err = class_queues_create(leaf);
		if (err) {
			class_remove(leaf);
			return err;
		}
		cs->leaf = leaf;
	} else {
		cs->leaf = parent;
		cs->shared = 1;
		__sync_fetch_and_add(&stats.classes_refused, 1);
	}
	return 0;
}

SEC("struct_ops/andante_cgroup_exit")
void BPF_PROG(andante_cgroup_exit, struct cgroup *cgrp)
{
	struct cgroup_state *cs = bpf_cgrp_storage_get(&cgroup_states, cgrp, 0, 0);
	u32 leaf, domain = 0;

	if (!cs || cs->shared || !cs->leaf || cs->leaf == AN_ROOT_LEAF)
		return;
	leaf = cs->leaf;
	cs->leaf = AN_NONE;
	an_while(bindings && domain < nr_domains) {
		binding_closes(domain, leaf);
		domain++;
	}
	class_remove(leaf);
	binding_closing = AN_NONE;
}

SEC("struct_ops/andante_cgroup_set_weight")
void BPF_PROG(andante_cgroup_set_weight, struct cgroup *cgrp, u32 weight)
{
	struct cgroup_state *cs = bpf_cgrp_storage_get(&cgroup_states, cgrp, 0, 0);
	u32 domain = 0, leaf = cs && !cs->shared ? cs->leaf : AN_NONE;
	struct place at;

	an_while(leaf && domain < nr_domains && place_in(&at, domain)) {
		bpf_spin_lock(at.lock);
		an_class_set_weight(at.tree, leaf, weight);
		bpf_spin_unlock(at.lock);
		domain++;
	}
}

/* The class of a task whose class is not known, or is known no more. */
static __noinline u32 task_find_leaf(struct task_struct *p, struct task_state *ts)
{
	struct cgroup *cgrp = scx_bpf_task_cgroup(p);
	u32 leaf = cgroup_leaf(cgrp);

	bpf_cgroup_release(cgrp);
	ts->leaf = leaf;
	ts->generation = an_node(&trees[0], leaf)->generation;
	ts->home = AN_NONE;
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

SEC("struct_ops.s/andante_init_task")
s32 BPF_PROG(andante_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	struct task_state *ts =
		bpf_task_storage_get(&task_states, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!ts)
		return -12; /* ENOMEM */
	an_learn_begin(&ts->learner, an_kclock_ns());
	if (args->fork)
		contract_inherit(p, ts);
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
		ts->charged_ns = p->se.sum_exec_runtime;
	}
}

#endif
