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
 * whole class among its siblings. Nodes are kept in one array and refer to each other by index;
 * index 0 is nobody.
 *
 * The calls are QLinux's (hsfq_mknod, hsfq_rmnod, hsfq_admin; [2]) over the hierarchy of [1].
 * All of them, and those of hsfq.h, want the tree's lock held by the caller.
 *
 * Cost: an_class_create(), an_class_remove() and an_class_set_weight() are O(1).
 *
 * [1] P. Goyal, X. Guo, H. Vin: A Hierarchical CPU Scheduler for Multimedia Operating Systems.
 *     OSDI 1996.
 * [2] V. Sundaram et al.: Application Performance in the QLinux Multimedia Operating System.
 *     ACM Multimedia 2000.
 */
#ifndef ANDANTE_CORE_TREE_H
#define ANDANTE_CORE_TREE_H

#include "tag.h"

#ifndef AN_MAX_NODES	  /* the search for races has a small one, that is full */
#define AN_MAX_NODES 8192 /* a class takes one, and one more if it has children; power of two */
#endif
#define AN_MAX_DEPTH 64 /* levels below the root */

#define AN_ROOT 1u	/* the root, an inner node always */
#define AN_ROOT_LEAF 2u /* its own leaf: the class of everything unclassified */

#define AN_WEIGHT_MIN 1u
#define AN_WEIGHT_MAX 10000u
#define AN_WEIGHT_DEFAULT 100u

_Static_assert((AN_MAX_NODES & (AN_MAX_NODES - 1)) == 0, "an_bounded() masks");
_Static_assert(AN_MAX_NODES <= 65536, "indices are 16 bits wide");

enum an_node_kind {
	AN_FREE = 0,
	AN_INNER = 1,
	AN_LEAF = 2,
	AN_DEAD = 3, /* a removed leaf that some CPU still serves; freed when the last one stops */
};

struct an_node {
	u64 start;	/* S among the siblings, and F of the last quantum [tag] */
	u64 vtime;	/* v(t) of the children; of a leaf, of its tasks [tag] */
	u64 max_finish; /* largest F of any child: v when none is runnable [tag] */
	u64 step;	/* what one expected quantum adds to start [tag] */
	u64 owed_to;	/* how far service without a pick may take start [tag] */
	u64 service_ns; /* CPU time given to the subtree so far [ns] */
	u64 usable_by;	/* CPUs, a bit each, that may run what is queued here, or below (hsfq.h) */
	u64 cgroup_id;	/* whose class this is; 0 in an inner node's own leaf */
	u32 weight;	/* among the siblings, AN_WEIGHT_MIN … AN_WEIGHT_MAX, or AN_WEIGHT_IDLE */
	u32 rem;	/* remainder of start [1/weight] */
	u32 queued;	/* leaf: tasks in its queue that no pick has claimed */
	u32 ready;	/* inner: leaves below that may be picked; leaf: whether it may, 0 or 1 */
	u32 serving;	/* CPUs that serve the subtree now */
	u32 queue_events; /* counts what enters the leaf's queue, to notice a race with it */
	u16 parent;
	u16 ready_first; /* the children that are ready, linked in no order */
	u16 ready_next;
	u16 ready_prev;
	u16 children;	/* number of children, own leaf included */
	u16 generation; /* counts the uses of this slot, so that a stale reference is noticed */
	u8 kind;	/* enum an_node_kind */
	u8 depth;	/* 0 for the root */
	u8 own;		/* this leaf holds the tasks of an inner node's class */
	u8 owes;	/* owed_to holds: it has not been picked since */
	/* If its class has a quota (bandwidth.h): */
	u8 held_listed; /* the class of this leaf is listed as throttled */
	u16 counted_by; /* whose ready leaves those of this node are too: parent; AN_NONE: it is
			 * throttled, or the root */
	u16 bandwidth;	/* leaf of the class whose quota the subtree has; AN_NONE: it has none */
	u16 held_next;	/* the next throttled class */
};

/* A leaf's tasks, compared with classmates in another domain (an_mates_due()). */
struct an_mates {
	u64 forgotten; /* what they were behind beyond a bound [tag] */
	u64 vtime;     /* v of the leaf when that was last so [tag] */
};

struct an_tree {
	struct an_node nodes[AN_MAX_NODES];
	u64 quantum_ns; /* expected service of one pick */
	u32 cpus;	/* CPUs that may serve at once, at least 1 */
	u32 free_next;	/* head of the list of free nodes, linked through ready_next */
	u32 unused;	/* every index from here on has never been used */
	u32 classes;	/* classes in the tree */
	/* If it is one of several (domains.h): */
	u32 own_cpus;			/* CPUs of this domain, at least 1 */
	u64 elsewhere_ns[AN_MAX_NODES]; /* given elsewhere and charged here, by node */
	struct an_mates mates[AN_MAX_NODES];
	/* Leaves of throttled classes, the oldest first (bandwidth.h): */
	u16 held_first;
	u16 held_last;
	u32 held_count;
};

an_inline struct an_node *an_node(struct an_tree *t, u32 index)
{
	return &t->nodes[an_bounded(index, AN_MAX_NODES)];
}

an_inline struct an_node *an_root(struct an_tree *t)
{
	return &t->nodes[AN_ROOT];
}

/* Does anything below this node want or have a CPU? */
an_inline bool an_node_runnable(const struct an_node *n)
{
	return n->ready || n->serving;
}

/* Does no class but that of this leaf want or have a CPU? */
an_inline bool an_leaf_is_alone(struct an_tree *t, u32 leaf)
{
	const struct an_node *n = an_node(t, leaf), *root = an_root(t);

	return root->ready <= n->ready && root->serving <= n->serving;
}

/* The node that stands for the class of this leaf among its siblings. */
an_inline u32 an_class_node(struct an_tree *t, u32 leaf)
{
	const struct an_node *n = an_node(t, leaf);

	return n->own ? n->parent : leaf;
}

an_inline void an_ready_link(struct an_tree *t, u32 index)
{
	struct an_node *n = an_node(t, index);
	struct an_node *p = an_node(t, n->parent);

	n->ready_prev = AN_NONE;
	n->ready_next = p->ready_first;
	if (p->ready_first)
		an_node(t, p->ready_first)->ready_prev = index;
	p->ready_first = index;
}

an_inline void an_ready_unlink(struct an_tree *t, u32 index)
{
	struct an_node *n = an_node(t, index);

	if (n->ready_prev)
		an_node(t, n->ready_prev)->ready_next = n->ready_next;
	else
		an_node(t, n->parent)->ready_first = n->ready_next;
	if (n->ready_next)
		an_node(t, n->ready_next)->ready_prev = n->ready_prev;
}

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
		t->free_next = an_node(t, index)->ready_next;
	} else {
		if (t->unused >= AN_MAX_NODES)
			return AN_NONE;
		index = t->unused++;
	}
	n = an_node(t, index);
	n->start = n->vtime = n->max_finish = n->owed_to = n->service_ns = n->cgroup_id =
		n->usable_by = 0;
	n->rem = n->queued = n->ready = n->serving = 0;
	n->parent = n->ready_first = n->ready_next = n->ready_prev = n->children = 0;
	n->depth = n->own = n->owes = 0;
	n->counted_by = n->bandwidth = 0; /* it may still be listed as throttled: bandwidth.h */
	n->generation++;
	return index;
}

an_inline void an_node_free(struct an_tree *t, u32 index)
{
	struct an_node *n = an_node(t, index);

	n->kind = AN_FREE;
	n->generation++;
	n->cgroup_id = 0;
	n->ready_next = t->free_next;
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
	an_node_alloc(t);
	an_node_alloc(t);
	root = an_root(t);
	root->kind = AN_INNER;
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
	u32 inner = an_node_alloc(t);

	if (!inner)
		return AN_NONE;
	n = an_node(t, inner);
	n->kind = AN_INNER;
	n->weight = l->weight;
	n->step = l->step;
	n->start = l->start;
	n->rem = l->rem;
	n->service_ns = l->service_ns;
	n->cgroup_id = l->cgroup_id;
	n->serving = l->serving;
	n->ready = l->ready;
	n->parent = l->parent;
	n->counted_by = l->counted_by;
	n->bandwidth = l->bandwidth;
	n->usable_by = l->usable_by;
	n->depth = l->depth;
	n->children = 1;
	if (l->ready && l->counted_by) {
		an_ready_unlink(t, leaf);
		an_ready_link(t, inner);
	}
	l->parent = l->counted_by = inner;
	l->bandwidth = AN_NONE;
	l->depth++;
	l->own = 1;
	l->cgroup_id = 0;
	l->start = l->rem = 0; /* the inner node's v starts at 0 */
	an_node_weigh(t, l, AN_WEIGHT_DEFAULT);
	if (l->ready)
		an_ready_link(t, leaf);
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
	n->cgroup_id = cgroup_id;
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
	struct an_node *n = an_node(t, an_class_node(t, leaf));

	n->weight = AN_WEIGHT_IDLE;
	n->rem = 0;
	n->step = (t->quantum_ns << AN_IDLE_SHIFT) / AN_IDLE_PARTS;
}

/* hsfq_admin: the weight of a class among its siblings, from the next charge on. */
an_inline void an_class_set_weight(struct an_tree *t, u32 leaf, u32 weight)
{
	struct an_node *n = an_node(t, an_class_node(t, leaf));
	bool was_idle = n->weight == AN_WEIGHT_IDLE;
	u64 vtime = an_node(t, n->parent)->vtime;

	an_node_weigh(t, n, weight);
	/* A quantum of an idle class moves its tag by what others use in most of a second. */
	if (was_idle && an_tag_diff(n->start, vtime) > (s64)n->step)
		n->start = vtime + n->step;
}

#endif
