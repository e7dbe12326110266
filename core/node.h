/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The nodes of the class tree, which tree.h draws: what is known of each, and where they are kept.
 * One array has all of them, and they refer to each other by index; index 0 is nobody.
 */
#ifndef ANDANTE_CORE_NODE_H
#define ANDANTE_CORE_NODE_H

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

/* Where a node stands in the order of its siblings that are ready (order.h). */
struct an_place {
	u64 start;     /* the expected start that it stands at [tag] */
	u64 usable_by; /* CPUs that it, or any that stands below it, may be usable by */
	u16 before; /* the topmost of those below it that come before it; AN_NONE: there is none */
	u16 after;  /* of those that come after it */
	u16 up;	    /* whose link leads here; AN_NONE: it stands nowhere */
	u16 top;    /* the topmost of its own children */
};

struct an_node {
	u64 start;	/* S among the siblings, and F of the last quantum [tag] */
	u64 vtime;	/* v(t) of the children; of a leaf, of its tasks [tag] */
	u64 max_finish; /* largest F of any child: v when none is runnable [tag] */
	u64 step;	/* what one expected quantum adds to start [tag] */
	u64 owed_to;	/* how far service without a pick may take start [tag] */
	u64 service_ns; /* CPU time given to the subtree so far [ns] */
	u64 usable_by;	/* CPUs, a bit each, that may run what is queued here, or below (hsfq.h) */
	struct an_place place;
	u32 weight;	  /* among the siblings, AN_WEIGHT_MIN … AN_WEIGHT_MAX, or AN_WEIGHT_IDLE */
	u32 rem;	  /* remainder of start [1/weight] */
	u32 queued;	  /* leaf: tasks in its queue that no pick has claimed */
	u32 ready;	  /* inner: leaves below that may be picked; leaf: whether it may, 0 or 1 */
	u32 serving;	  /* CPUs that serve the subtree now */
	u32 queue_events; /* counts what enters the leaf's queue, to notice a race with it */
	u16 parent;
	u16 children;	/* number of children, own leaf included */
	u16 free_next;	/* the next free slot */
	u16 generation; /* counts the uses of this slot, so that a stale reference is noticed */
	u8 kind;	/* enum an_node_kind */
	u8 depth;	/* 0 for the root */
	u8 own;		/* this leaf holds the tasks of an inner node's class */
	u8 owes;	/* owed_to holds: it has not been picked since */
	u8 back;	/* it may be idle, but has not slept: an_node_wakes() says why */
	/* If its class has a quota (bandwidth.h): */
	u8 held_listed; /* the class of this leaf is listed as throttled */
	u16 counted_by; /* whose ready leaves those of this node are too: parent; AN_NONE: it is
			 * throttled, or the root */
	u16 bandwidth;	/* leaf of the class whose quota the subtree has; AN_NONE: it has none */
	u16 held_next;	/* the next throttled class */
	u16 unsettled;	/* the next node that is to be settled (order.h); AN_NONE: this is not */
};

/* One pick looks at many of them. */
_Static_assert(sizeof(struct an_node) == 128, "a node takes two cache lines");

/* A leaf's tasks, compared with classmates in another domain (an_mates_due()). */
struct an_mates {
	u64 forgotten; /* what they were behind beyond a bound [tag] */
	u64 vtime;     /* v of the leaf when that was last so [tag] */
};

/* A node that is behind its siblings, for few CPUs may run what is below it (confined.h). */
struct an_confined {
	u64 lead; /* which it is behind [tag of its parent's children] */
	u64 flat; /* its start as if it were a child of the root [tag of the root's children] */
	u64 charged_ns; /* its service_ns, as far as that is charged for it */
	u32 node;
	u32 generation;
};

/* A choice looks at all of them: as many as a domain has CPUs. Power of two. */
#define AN_CONFINED_MAX 16

struct an_tree {
	struct an_node nodes[AN_MAX_NODES];
	u64 quantum_ns; /* expected service of one pick */
	u32 cpus;	/* CPUs that may serve at once, at least 1 */
	u32 free_next;	/* head of the list of free nodes */
	u32 unsettled;	/* head of the list of nodes that are to be settled; its end is the root */
	u32 unused;	/* every index from here on has never been used */
	u32 classes;	/* classes in the tree */
	/* Whose class a node is; 0 of an inner node's own leaf. Nobody schedules by it. */
	u64 cgroup_id[AN_MAX_NODES];
	/* If it is one of several (domains.h): */
	u32 own_cpus;			   /* CPUs of this domain, at least 1 */
	u64 elsewhere_ns[AN_MAX_NODES];	   /* given elsewhere and charged here, by node */
	u64 elsewhere_vtime[AN_MAX_NODES]; /* v of the parent when it was charged for that last */
	struct an_mates mates[AN_MAX_NODES];
	/* Leaves of throttled classes, the oldest first (bandwidth.h): */
	u16 held_first;
	u16 held_last;
	u32 held_count;
	/* Those who are behind (confined.h): */
	u64 confined_by; /* CPUs that may run one of them, and perhaps others */
	u32 confined_count;
	u32 left_behind; /* one that is to be noted; AN_NONE */
	struct an_confined confined[AN_CONFINED_MAX];
	u32 counted;		   /* nodes before this one are counted, or published */
	u32 publishes;		   /* whether the count is complete */
	u32 weights[AN_MAX_NODES]; /* of the children that want or have a CPU, when last counted */
	u32 weights_counted[AN_MAX_NODES]; /* the same, so far */
};

an_inline struct an_node *an_node(struct an_tree *t, u32 index)
{
	return &t->nodes[an_bounded(index, AN_MAX_NODES)];
}

an_inline u64 *an_cgroup_id(struct an_tree *t, u32 index)
{
	return &t->cgroup_id[an_bounded(index, AN_MAX_NODES)];
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

/* Is this node throttled (bandwidth.h)? Not the root, which nobody counts. */
an_inline bool an_is_held(const struct an_node *n)
{
	return n->parent && !n->counted_by;
}

/* Is the class of this leaf (or node) throttled, or one around it? */
an_outline bool an_is_throttled(struct an_tree *t, u32 leaf)
{
	u32 index = leaf;

	an_while(index && !an_is_held(an_node(t, index)))
		index = an_node(t, index)->parent;
	return index != AN_NONE;
}

/* Does no class but that of this leaf want or have a CPU? */
an_inline bool an_leaf_is_alone(struct an_tree *t, u32 leaf)
{
	const struct an_node *n = an_node(t, leaf), *root = an_root(t);

	return root->ready <= n->ready && root->serving <= n->serving;
}

/* Up from two leaves, to the siblings where their paths part; to the leaf, if they are the same. */
an_inline void an_part(struct an_tree *t, u32 *a, u32 *b)
{
	an_while(an_node(t, *a)->depth > an_node(t, *b)->depth)
		*a = an_node(t, *a)->parent;
	an_while(an_node(t, *b)->depth > an_node(t, *a)->depth)
		*b = an_node(t, *b)->parent;
	an_while(an_node(t, *a)->parent != an_node(t, *b)->parent) {
		*a = an_node(t, *a)->parent;
		*b = an_node(t, *b)->parent;
	}
}

/* The node that stands for the class of this leaf among its siblings. */
an_inline u32 an_class_node(struct an_tree *t, u32 leaf)
{
	const struct an_node *n = an_node(t, leaf);

	return n->own ? n->parent : leaf;
}

#endif
