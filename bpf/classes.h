/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Classes are cgroups: the tree of core/tree.h follows the cgroup v2 hierarchy, as far as the cpu
 * controller reaches. Part of sched.bpf.c.
 *
 * A cgroup that finds no room in the tree shares its parent's class, so that it can still be made.
 */
#ifndef ANDANTE_BPF_CLASSES_H
#define ANDANTE_BPF_CLASSES_H

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
		an_node(&tree, AN_ROOT)->cgroup_id = id;
		return 0;
	}
	parent = parent_leaf(cgrp);
	bpf_spin_lock(&tree_lock);
	leaf = an_class_create(&tree, parent, id, weight);
	bpf_spin_unlock(&tree_lock);
	if (leaf) {
		/* The queue of a slot that was used before is still there. */
		err = scx_bpf_create_dsq(leaf, -1);
		if (err && err != -17 /* EEXIST */) {
			bpf_spin_lock(&tree_lock);
			an_class_remove(&tree, leaf);
			bpf_spin_unlock(&tree_lock);
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
	u32 leaf;

	if (!cs || cs->shared || !cs->leaf || cs->leaf == AN_ROOT_LEAF)
		return;
	leaf = cs->leaf;
	cs->leaf = AN_NONE;
	if (bindings)
		binding_closes(leaf);
	bpf_spin_lock(&tree_lock);
	if (*leaf_contract(leaf))
		contract_end(*leaf_contract(leaf));
	an_queue_correct(&tree, leaf, 0); /* the kernel says that it is empty */
	an_class_remove(&tree, leaf);
	bpf_spin_unlock(&tree_lock);
	binding_closing = AN_NONE;
}

SEC("struct_ops/andante_cgroup_set_weight")
void BPF_PROG(andante_cgroup_set_weight, struct cgroup *cgrp, u32 weight)
{
	struct cgroup_state *cs = bpf_cgrp_storage_get(&cgroup_states, cgrp, 0, 0);

	if (!cs || cs->shared || !cs->leaf)
		return;
	bpf_spin_lock(&tree_lock);
	an_class_set_weight(&tree, cs->leaf, weight);
	bpf_spin_unlock(&tree_lock);
}

/* The class of a task whose class is not known, or is known no more. */
static __noinline u32 task_find_leaf(struct task_struct *p, struct task_state *ts)
{
	struct cgroup *cgrp = scx_bpf_task_cgroup(p);
	u32 leaf = cgroup_leaf(cgrp);

	bpf_cgroup_release(cgrp);
	ts->leaf = leaf;
	ts->generation = an_node(&tree, leaf)->generation;
	ts->home = AN_NONE;
	ts->sfq.fresh = 1;
	return leaf;
}

/* The task's class. Only in callbacks about that task, while its run queue is locked. */
static __always_inline u32 task_leaf(struct task_struct *p, struct task_state *ts)
{
	u32 leaf = ts->leaf;

	if (leaf && (u16)ts->generation == an_node(&tree, leaf)->generation &&
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
	an_learn_begin(&ts->learner, bpf_ktime_get_ns());
	if (args->fork)
		contract_inherit(p, ts);
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
