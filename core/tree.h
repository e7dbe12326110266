/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The class tree: nodes, and the calls that shape it.
 *
 *      root (inner)                      A class starts as a leaf, which holds tasks. When its
 *       ├── own leaf of the root         first child comes, an inner node is put in the leaf's
 *       ├── a (leaf)                     place and the leaf becomes that node's first child, the
 *       └── b (inner)                    class's *own leaf*. The leaf's index therefore never
 *            ├── own leaf of b           changes while tasks, queues and CPUs refer to it, and
 *            └── c (leaf)                a class with children may hold tasks as well.
 *
 * A class is named by the index of its leaf; an_class_node() finds the node that stands for the
 * whole class among its siblings. The nodes themselves are node.h.
 *
 * The calls are QLinux's (hsfq_mknod, hsfq_rmnod, hsfq_admin; [2]) over the hierarchy of [1].
 * All of them, and those of hsfq.h, want the tree's lock held by the caller.
 *
 * Cost: an_class_create(), an_class_remove() and an_class_set_weight() are O(1), but for what the
 * first settles (order.h) when a class has its first child.
 *
 * [1] P. Goyal, X. Guo, H. Vin: A Hierarchical CPU Scheduler for Multimedia Operating Systems.
 *     OSDI 1996.
 * [2] V. Sundaram et al.: Application Performance in the QLinux Multimedia Operating System.
 *     ACM Multimedia 2000.
 */
#ifndef ANDANTE_CORE_TREE_H
#define ANDANTE_CORE_TREE_H

#include "order.h"

/* New weights hold from the next charge on; tags already given stay. */
an_inline void an_node_weigh(struct an_tree *t, struct an_node *n, u32 weight)
{
	if (weight < AN_WEIGHT_MIN)
		weight = AN_WEIGHT_MIN;
	if (weight > AN_WEIGHT_MAX)
		weight = AN_WEIGHT_MAX;
	n->weight = weight;
	n->rem = 0;
	n->step = (t->quantum_ns << AN_TAG_SHIFT) / weight;
}

an_inline u32 an_node_alloc(struct an_tree *t)
{
	u32 index = t->free_next;
	struct an_node *n;

	if (index) {
		t->free_next = an_node(t, index)->free_next;
	} else {
		if (t->unused >= AN_MAX_NODES)
			return AN_NONE;
		index = t->unused++;
	}
	n = an_node(t, index);
	n->start = n->vtime = n->max_finish = n->owed_to = n->service_ns = n->usable_by = 0;
	n->rem = n->queued = n->ready = n->serving = 0;
	n->parent = n->children = 0; /* its place in an order is a matter of an_settle() */
	n->depth = n->own = n->owes = n->back = 0;
	n->counted_by = n->bandwidth = 0; /* it may still be listed as throttled: bandwidth.h */
	n->generation++;
	return index;
}

an_inline void an_node_free(struct an_tree *t, u32 index)
{
	struct an_node *n = an_node(t, index);

	n->kind = AN_FREE;
	n->generation++;
	*an_cgroup_id(t, index) = 0;
	n->free_next = t->free_next;
	t->free_next = index;
}

/* Makes child the newest child of parent: it starts at v, as one that has just woken. */
an_inline void an_node_attach(struct an_tree *t, u32 child, u32 parent)
{
	struct an_node *n = an_node(t, child);
	struct an_node *p = an_node(t, parent);

	n->parent = n->counted_by = parent;
	n->depth = p->depth + 1;
	n->start = p->vtime;
	p->children++;
}

/*
 * An empty tree: the root and its own leaf. quantum_ns > 0 is what a pick is expected to use,
 * cpus >= 1 how many may be served at once.
 */
an_inline void an_tree_init(struct an_tree *t, u64 quantum_ns, u32 cpus)
{
	struct an_node *root, *leaf;

	t->quantum_ns = quantum_ns;
	t->cpus = cpus ? cpus : 1;
	t->unused = AN_ROOT;
	t->free_next = AN_NONE;
	t->classes = 1;
	t->confined_by = t->confined_count = t->left_behind = 0;
	t->counted = t->publishes = 0;
	an_node_alloc(t);
	an_node_alloc(t);
	root = an_root(t);
	root->kind = AN_INNER;
	root->unsettled = t->unsettled = AN_ROOT;
	an_node_weigh(t, root, AN_WEIGHT_DEFAULT);
	leaf = an_node(t, AN_ROOT_LEAF);
	leaf->kind = AN_LEAF;
	leaf->own = 1;
	an_node_weigh(t, leaf, AN_WEIGHT_DEFAULT);
	an_node_attach(t, AN_ROOT_LEAF, AN_ROOT);
}

/*
 * Puts an inner node in the place of a leaf that is to have children. The leaf goes on below it:
 * same index, same tasks, same CPUs serving it. Returns the inner node, or AN_NONE when there is
 * no room.
 */
an_inline u32 an_leaf_to_inner(struct an_tree *t, u32 leaf)
{
	struct an_node *l = an_node(t, leaf), *n;
	u32 inner;

	an_settle(t); /* children that it had in its last use stand below it no more */
	inner = an_node_alloc(t);
	if (!inner)
		return AN_NONE;
	n = an_node(t, inner);
	n->kind = AN_INNER;
	n->weight = l->weight;
	n->step = l->step;
	n->start = l->start;
	n->rem = l->rem;
	n->service_ns = l->service_ns;
	*an_cgroup_id(t, inner) = *an_cgroup_id(t, leaf);
	n->serving = l->serving;
	n->ready = l->ready;
	n->parent = l->parent;
	n->counted_by = l->counted_by;
	n->bandwidth = l->bandwidth;
	n->usable_by = l->usable_by;
	n->depth = l->depth;
	n->children = 1;
	an_unsettle(t, leaf);
	an_unsettle(t, inner);
	l->parent = l->counted_by = inner;
	l->bandwidth = AN_NONE;
	l->depth++;
	l->own = 1;
	*an_cgroup_id(t, leaf) = 0;
	l->start = l->rem = 0; /* the inner node's v starts at 0 */
	an_node_weigh(t, l, AN_WEIGHT_DEFAULT);
	return inner;
}

/*
 * hsfq_mknod: a class below the class of parent_leaf. Returns the new class (its leaf), or AN_NONE
 * when there is no room or the tree would get too deep. A weight out of range is clamped.
 */
an_outline u32 an_class_create(struct an_tree *t, u32 parent_leaf, u64 cgroup_id, u32 weight)
{
	const struct an_node *pl = an_node(t, parent_leaf);
	u32 parent, child;
	struct an_node *n;

	/* Beside the class's own leaf if it has one, else a level below the class. */
	if (pl->kind != AN_LEAF || pl->depth + !pl->own >= AN_MAX_DEPTH)
		return AN_NONE;
	child = an_node_alloc(t);
	if (!child)
		return AN_NONE;
	parent = pl->own ? pl->parent : an_leaf_to_inner(t, parent_leaf);
	if (!parent) {
		an_node_free(t, child);
		return AN_NONE;
	}
	n = an_node(t, child);
	n->kind = AN_LEAF;
	*an_cgroup_id(t, child) = cgroup_id;
	an_node_weigh(t, n, weight);
	an_node_attach(t, child, parent);
	t->classes++;
	return child;
}

/* Out of the tree at once, out of the array when no CPU refers to it any more. */
an_inline void an_node_retire(struct an_tree *t, u32 index)
{
	struct an_node *n = an_node(t, index);

	an_node(t, n->parent)->children--;
	if (n->serving)
		n->kind = AN_DEAD;
	else
		an_node_free(t, index);
}

/*
 * hsfq_rmnod: 0, or -1 when the class is the root's, has children, or has queued tasks. A class
 * that was inner stays inner with its own leaf alone; both go here.
 */
an_outline int an_class_remove(struct an_tree *t, u32 leaf)
{
	struct an_node *l = an_node(t, leaf);
	u32 inner = l->parent;

	if (leaf == AN_ROOT_LEAF || l->kind != AN_LEAF || l->queued)
		return -1;
	if (l->own && an_node(t, inner)->children > 1)
		return -1;
	t->classes--;
	an_node_retire(t, leaf);
	if (l->own)
		an_node_retire(t, inner);
	return 0;
}

/* The class gets what nobody else wants, and next to nothing beside others, from the next charge
 * on; until it is given a weight again. */
an_inline void an_class_set_idle(struct an_tree *t, u32 leaf)
{
	u32 index = an_class_node(t, leaf);
	struct an_node *n = an_node(t, index);

	an_unsettle(t, index);
	n->weight = AN_WEIGHT_IDLE;
	n->rem = 0;
	n->step = (t->quantum_ns << AN_IDLE_SHIFT) / AN_IDLE_PARTS;
}

/* hsfq_admin: the weight of a class among its siblings, from the next charge on. */
an_inline void an_class_set_weight(struct an_tree *t, u32 leaf, u32 weight)
{
	u32 index = an_class_node(t, leaf);
	struct an_node *n = an_node(t, index);
	bool was_idle = n->weight == AN_WEIGHT_IDLE;
	u64 vtime = an_node(t, n->parent)->vtime;

	an_unsettle(t, index);
	an_node_weigh(t, n, weight);
	/* A quantum of an idle class moves its tag by what others use in most of a second. */
	if (was_idle && an_tag_diff(n->start, vtime) > (s64)n->step)
		n->start = vtime + n->step;
}

#endif
