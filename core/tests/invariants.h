/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What must hold of a tree between any two calls of the core.
 *
 *      structure    every live node hangs below a live inner node, one level deeper; an inner node
 *                   has exactly one own leaf; free slots and live ones are disjoint and complete
 *      counts       children, ready leaves, serving CPUs and classes are what a recount finds
 *      orders       in each stand exactly the ready children that are not throttled, at their
 *                   expected starts; but for what is listed to be settled (order.h)
 *      usable       whatever is ready is usable by no CPU that what is above it is not usable by
 *      tags         v never goes back; no ready child lies farther behind v than it may
 *
 * invariant_broken() costs O(nodes * depth) and names the first one that does not hold.
 */
#ifndef ANDANTE_TESTS_INVARIANTS_H
#define ANDANTE_TESTS_INVARIANTS_H

#include "../core.h"

#include <string.h>

/* What was seen of the tree last time, and the recount; one per tree under test. */
struct invariants {
	bool gives_way; /* an idle node may only make way: a quantum behind v when it wakes */
	u32 cpus;	/* the most that there have been: what came of that stays for a while */
	struct {
		u64 vtime;
		u64 step_max; /* largest step the node has had: tags given under it stay */
		u64 cgroup_id;
		u16 generation;
	} seen[AN_MAX_NODES];
	struct {
		u32 children;
		u32 own_leaves;
		u32 ready_leaves;
		u32 settled_children; /* that are ready, and not listed */
		u32 serving;
	} recount[AN_MAX_NODES];
};

static inline bool node_is_live(const struct an_node *n)
{
	return n->kind == AN_INNER || n->kind == AN_LEAF;
}

static inline void recount_leaf(struct an_tree *t, struct invariants *v, u32 leaf)
{
	for (u32 at = leaf; at; at = t->nodes[at].parent) {
		u32 parent = t->nodes[at].parent;

		if (!t->nodes[at].counted_by)
			return; /* a throttled class counts for nobody */
		if (t->nodes[leaf].ready && parent)
			v->recount[parent].ready_leaves++;
	}
}

static inline const char *broken_placement(struct an_tree *t, struct invariants *v, u32 index)
{
	const struct an_node *n = &t->nodes[index], *p = &t->nodes[n->parent];

	if (index == AN_ROOT)
		return n->kind != AN_INNER || n->parent || n->depth ? "the root is the root" : NULL;
	v->recount[n->parent].serving += n->serving;
	if (n->kind == AN_DEAD) {
		if (n->ready || n->queued || !n->serving)
			return "a dead node is served and holds nothing";
		return p->kind == AN_INNER || p->kind == AN_DEAD ? NULL
								 : "dead below inner or dead";
	}
	if (p->kind != AN_INNER)
		return "a live node hangs below an inner node";
	if (n->depth != p->depth + 1 || n->depth > AN_MAX_DEPTH)
		return "depth is one more than the parent's";
	if (n->kind == AN_LEAF ? n->children : n->queued)
		return "a leaf has no children, an inner node no queue";
	if (n->own && n->kind != AN_LEAF)
		return "only leaves hold tasks";
	v->recount[n->parent].children++;
	v->recount[n->parent].own_leaves += n->own;
	if (n->counted_by && n->counted_by != n->parent)
		return "a node counts for its parent, or for nobody";
	if (an_is_held(n) && !n->bandwidth)
		return "only a class with a quota is throttled";
	v->recount[n->parent].settled_children += n->ready && n->counted_by && !n->unsettled;
	if (n->ready && n->counted_by && n->usable_by & ~p->usable_by)
		return "what is above is usable by whom a ready child is usable by";
	if (n->kind == AN_LEAF)
		recount_leaf(t, v, index);
	return NULL;
}

/* A walk through the order of a node's children, and how many it has found. */
struct order_walk {
	u32 standing, settled;
	u32 previous;
};

static inline const char *broken_place(struct an_tree *t, u32 index, u32 at,
				       const struct order_walk *walk)
{
	const struct an_node *n = &t->nodes[at], *above = &t->nodes[n->place.up];
	const struct an_place *previous = &t->nodes[walk->previous].place;

	if (n->place.up != index && an_order_priority(at) > an_order_priority(n->place.up))
		return "the order has higher priorities above lower ones";
	if (n->place.up != index && n->place.usable_by & ~above->place.usable_by)
		return "a CPU that may use what stands below is noted above";
	if (walk->previous && !an_order_before(previous->start, walk->previous, &n->place, at))
		return "the order is one";
	if (n->unsettled)
		return NULL;
	if (!node_is_live(n) || n->counted_by != index || !n->ready)
		return "ready children stand in the order only";
	if (n->place.start != an_expected_start(n))
		return "each stands at its expected start";
	if (n->usable_by & ~n->place.usable_by)
		return "each stands with the CPUs that it is usable by";
	return NULL;
}

/* Of what stands at this link and below. */
static inline const char *broken_order(struct an_tree *t, u32 index, u32 up, u32 at,
				       struct order_walk *walk)
{
	const struct an_place *p = &t->nodes[at].place;
	const char *broken;

	if (!at)
		return NULL;
	if (p->up != up || ++walk->standing > t->unused)
		return "the order's links lead back";
	broken = broken_order(t, index, at, p->before, walk);
	if (!broken)
		broken = broken_place(t, index, at, walk);
	walk->previous = at;
	walk->settled += !t->nodes[at].unsettled;
	return broken ? broken : broken_order(t, index, at, p->after, walk);
}

/* Of the children of all nodes, also of those that are free. */
static inline const char *broken_orders(struct an_tree *t, struct invariants *v, u32 *index)
{
	u32 standing = 0, listed = 0;

	for (u32 i = AN_ROOT; i < t->unused; i++) {
		struct order_walk walk = {};
		const char *broken = broken_order(t, i, i, t->nodes[i].place.top, &walk);

		*index = i;
		if (broken)
			return broken;
		if (walk.settled != v->recount[i].settled_children)
			return "every ready child stands in the order, or is listed";
		standing += walk.standing;
	}
	for (u32 i = AN_ROOT; i < t->unused; i++) {
		standing -= t->nodes[i].place.up > 0;
		listed += t->nodes[i].unsettled > 0;
	}
	if (standing)
		return "what stands anywhere is found there";
	for (u32 at = t->unsettled; at != AN_ROOT; at = t->nodes[at].unsettled)
		if (!at || !listed--)
			return "the list of what is to be settled ends at the root";
	return listed == 1 ? NULL : "whatever says that it is listed is";
}

/* A leaf is ready when it holds tasks; on the only CPU, when it has been served. */
static inline const char *broken_leaf(const struct an_tree *t, const struct an_node *n)
{
	if (n->ready > 1)
		return "a leaf is one ready leaf";
	if (n->ready && !n->queued)
		return "a ready leaf holds tasks";
	if (n->queued && !n->ready && !(n->serving && t->cpus == 1))
		return "a leaf that holds tasks is ready";
	return NULL;
}

static inline const char *broken_counts(struct an_tree *t, struct invariants *v, u32 index)
{
	const struct an_node *n = &t->nodes[index];

	if (n->serving > v->cpus)
		return "no more CPUs serve than there are";
	if (n->kind == AN_LEAF)
		return NULL;
	/* A dead leaf looks like a dead inner node that has nobody left to sum over. */
	if (n->serving != v->recount[index].serving &&
	    (n->kind == AN_INNER || v->recount[index].serving))
		return "serving is the sum over the children";
	if (n->kind != AN_INNER)
		return NULL;
	if (n->children != v->recount[index].children)
		return "children is what a recount finds";
	if (v->recount[index].own_leaves != 1)
		return "an inner node has one own leaf";
	if (n->ready != v->recount[index].ready_leaves)
		return "ready is the number of ready leaves below";
	return NULL;
}

/*
 * A ready child lies at most so far behind v: on one CPU, not at all. On several, v passes a child
 * while all its tasks run; on return it may be owed cpus quanta (an_node_ready()), and as many
 * again when the quanta it is being charged for in advance turn out shorter.
 */
static inline const char *broken_tags(struct an_tree *t, struct invariants *v, u32 index)
{
	const struct an_node *n = &t->nodes[index];
	u64 lag_max;

	if (v->seen[index].generation != n->generation) {
		v->seen[index].generation = n->generation;
		v->seen[index].vtime = n->vtime;
		/* An inner node goes on with the tag of a leaf that may have had any weight. And
		 * the class may be the same, whose tasks were told to look it up anew. */
		if (n->kind == AN_INNER)
			v->seen[index].step_max = t->quantum_ns << AN_TAG_SHIFT;
		else if (!t->cgroup_id[index] || v->seen[index].cgroup_id != t->cgroup_id[index])
			v->seen[index].step_max = 0;
		v->seen[index].cgroup_id = t->cgroup_id[index];
	}
	if (an_tag_diff(n->vtime, v->seen[index].vtime) < 0)
		return "v never goes back";
	v->seen[index].vtime = n->vtime;
	if (n->step > v->seen[index].step_max)
		v->seen[index].step_max = n->step;
	lag_max = an_owed_quanta(t) > v->cpus ? an_owed_quanta(t) : v->cpus;
	lag_max = v->cpus > 1 ? 2 * lag_max * v->seen[index].step_max : 0;
	if (v->gives_way)
		lag_max = v->seen[index].step_max;
	if (n->ready && n->counted_by &&
	    an_tag_diff(t->nodes[n->parent].vtime, an_expected_start(n)) > (s64)lag_max)
		return "a ready child is not left behind v";
	return NULL;
}

static inline const char *broken_free_list(struct an_tree *t)
{
	u32 free_slots = 0, classes = 0, listed = 0;

	for (u32 i = AN_ROOT; i < t->unused; i++) {
		free_slots += t->nodes[i].kind == AN_FREE;
		classes += t->nodes[i].kind == AN_LEAF;
	}
	for (u32 at = t->free_next; at; at = t->nodes[at].free_next)
		if (at >= t->unused || t->nodes[at].kind != AN_FREE || ++listed > free_slots)
			return "the free list links free slots only";
	if (listed != free_slots)
		return "every free slot is on the free list";
	return classes == t->classes ? NULL : "classes is the number of leaves";
}

/* The first invariant that does not hold, in words, and the node; NULL when all do. */
static inline const char *invariant_broken(struct an_tree *t, struct invariants *v, u32 *index)
{
	const char *broken = broken_free_list(t);

	if (v->cpus < t->cpus)
		v->cpus = t->cpus;
	memset(v->recount, 0, t->unused * sizeof(v->recount[0]));
	for (u32 i = AN_ROOT; !broken && i < t->unused; i++) {
		*index = i;
		if (t->nodes[i].kind != AN_FREE)
			broken = broken_placement(t, v, i);
	}
	for (u32 i = AN_ROOT; !broken && i < t->unused; i++) {
		*index = i;
		if (t->nodes[i].kind == AN_FREE)
			continue;
		broken = broken_counts(t, v, i);
		if (!broken)
			broken = broken_tags(t, v, i);
	}
	return broken ? broken : broken_orders(t, v, index);
}

/* An empty tree in storage that may hold an earlier one; as fresh as the kernel's .bss. */
static inline void fresh_tree(struct an_tree *t, struct invariants *v, u64 quantum_ns, u32 cpus)
{
	v->cpus = 0;
	memset(t->nodes, 0, (t->unused ? t->unused : 1) * sizeof(t->nodes[0]));
	memset(v->seen, 0, (t->unused ? t->unused : 1) * sizeof(v->seen[0]));
	t->held_first = t->held_last = t->held_count = 0;
	an_tree_init(t, quantum_ns, cpus);
}

/* For tests; test.h must have been included. */
#define CHECK_INVARIANTS(t, v)                                                                     \
	do {                                                                                       \
		u32 at_ = 0;                                                                       \
		const char *broken_ = invariant_broken(t, v, &at_);                                \
		if (broken_)                                                                       \
			test_fail(__FILE__, __LINE__, "node %u: not so: %s", at_, broken_);        \
	} while (0)

#endif
