/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shares that few CPUs must honour.
 *
 * Every CPU asks the tree from its root, so that each of them gives a class its share of that CPU,
 * and what is in the class a part of it. That is too little for a child that may use few CPUs (or
 * has fewer tasks than its weight asks for): it is *behind* its siblings, which other CPUs serve,
 * though its parent, which is charged for them all, has what it should. Weights that no allocation
 * can honour are *readjusted* in [1], for threads of one level that may use all CPUs; here CPUs
 * differ, and levels. What each should have is found by progressive filling [2]: the rates of all
 * grow from nothing, of siblings by their weights; who has filled the CPUs that he may use stays as
 * he is, and his siblings have what is left of the parent's.
 *
 * No rate is computed here. Two rules approach them by tags alone:
 *
 *      behind     A child that a CPU has passed over, since it may not run it, for a sibling with a
 *                 later tag is noted, with that tag: the *lead* (an_passed_over()). So is one whose
 *                 tasks all ran while v went by (hsfq.h: an_node_ready()). Until its own tag has
 *                 reached the lead it has its turn on the CPUs that it may use before whatever is
 *                 next there, and all above it are charged as ever: what it is given more of one
 *                 CPU, its parent is given less of the others. Its parent's share stands,
 *
 *                     S_child < lead,  and  S_top - S_next <= a quantum of top,
 *
 *                 top and next being the siblings where its path parts from that of what is next.
 *
 *      crowded    If the second is not so, its CPUs are wanted for more than they have: by
 *                 progressive filling all who must share them have the same rate, by the weight
 *                 that each has of the whole. So it competes there as if it were a child of the
 *                 root, with the weight that it has through its parents, w_top times w / sum of
 *                 the siblings' w on each level:
 *
 *                     S_flat = S_flat + l / that weight,  S_flat < S of the root's next child.
 *
 * The sums are of the children that want or have a CPU. They are recounted a few nodes with every
 * choice of a CPU that somebody noted may use, so that they are as old as 2 n / AN_COUNTED_AT_ONCE
 * such choices, n being the nodes in use: for that long the share of who is crowded may be wrong.
 * The first rule needs none of them.
 *
 * Nothing of this costs anything where nobody is noted, but for a test with every pick
 * (confined_by); and on one CPU nobody is. Cost of a pick where there are: O(AN_CONFINED_MAX d), d
 * being the depth.
 *
 * [1] A. Chandra, M. Adler, P. Goyal, P. Shenoy: Surplus Fair Scheduling. OSDI 2000.
 * [2] D. Bertsekas, R. Gallager: Data Networks, section 6.5.2. Prentice Hall 1992.
 */
#ifndef ANDANTE_CORE_CONFINED_H
#define ANDANTE_CORE_CONFINED_H

#include "tree.h"

/* Nodes counted with a choice: of the order of what it looks at anyway, those noted and what is
 * above them. 8192 are counted, and published, in 512 choices: two seconds of one CPU. */
#define AN_COUNTED_AT_ONCE (2 * AN_CONFINED_MAX)

/* Service that can be multiplied by a sum of weights [ns]. */
#define AN_FLAT_MAX_NS (1ULL << 36)

_Static_assert(~0ULL / AN_FLAT_MAX_NS / AN_WEIGHT_MAX >= AN_MAX_NODES, "it fits in 64 bits");

an_inline struct an_confined *an_confined(struct an_tree *t, u32 place)
{
	return &t->confined[an_bounded(place, AN_CONFINED_MAX)];
}

an_inline u32 *an_weights(struct an_tree *t, u32 index)
{
	return &t->weights[an_bounded(index, AN_MAX_NODES)];
}

an_inline u32 *an_weights_counted(struct an_tree *t, u32 index)
{
	return &t->weights_counted[an_bounded(index, AN_MAX_NODES)];
}

/*
 * Goes on counting the weights of the children of every node that want or have a CPU; when all are
 * counted that is what they are, node by node, while the next count begins.
 */
an_inline void an_count_weights(struct an_tree *t)
{
	u32 left = an_opaque(AN_COUNTED_AT_ONCE);

	an_while(left) {
		u32 index = an_opaque(t->counted);
		const struct an_node *n = an_node(t, index);

		if (index >= t->unused) {
			t->counted = AN_NONE;
			t->publishes = !t->publishes;
		} else if (t->publishes) {
			*an_weights(t, index) = *an_weights_counted(t, index);
			*an_weights_counted(t, index) = 0;
		} else if (an_node_runnable(n)) {
			*an_weights_counted(t, n->parent) += n->weight;
		}
		t->counted = an_opaque(t->counted + (index < t->unused));
		left = an_opaque(left - 1);
	}
}

/* Service to the node, as it would move the tag of a child of the root with the weight that the
 * node has of the whole [tag]. */
an_inline u64 an_flat_tag(struct an_tree *t, u32 index, u64 service_ns)
{
	const struct an_node *n = an_node(t, index);

	an_while(n->parent != AN_ROOT && n->parent) {
		u64 weight = n->weight ? n->weight : 1, sum = *an_weights(t, n->parent);

		if (service_ns > AN_FLAT_MAX_NS)
			service_ns = AN_FLAT_MAX_NS;
		if (sum > weight)
			service_ns = service_ns * sum / weight;
		n = an_node(t, n->parent);
	}
	if (service_ns > AN_CHARGE_MAX_NS)
		service_ns = AN_CHARGE_MAX_NS;
	return (service_ns << AN_TAG_SHIFT) / (n->weight ? n->weight : 1);
}

/* Notes that the node is behind this tag of its siblings'; not if there is no room: until somebody
 * noted has made good what he was behind. */
an_inline void an_confine(struct an_tree *t, u32 index, u64 lead)
{
	const struct an_node *n = an_node(t, index);
	struct an_confined *c;
	u32 at = 0;

	an_while(at < t->confined_count && an_confined(t, at)->node != index)
		at = an_opaque(at + 1);
	if (at >= AN_CONFINED_MAX)
		return;
	c = an_confined(t, at);
	if (at >= t->confined_count) {
		t->confined_count = at + 1;
		c->node = index;
		c->generation = n->generation;
		c->flat = an_root(t)->vtime;
		c->charged_ns = n->service_ns;
	}
	c->lead = lead;
	t->confined_by |= n->usable_by;
}

/* The children from `first` on, which come before `best`, are passed over for it. Those are behind
 * that come before it by more than a quantum of its own. */
an_outline void an_passed_over(struct an_tree *t, u32 parent, u32 first, u32 best)
{
	u32 at = first, left = an_opaque(parent == AN_ROOT ? 0 : AN_CONFINED_MAX);
	u64 lead = an_node(t, best)->place.start - an_node(t, best)->step;

	an_while(left && at && at != best) {
		left = an_opaque(left - 1);
		if (an_tag_diff(an_expected_start(an_node(t, at)), lead) < 0)
			an_confine(t, at, lead);
		at = an_opaque(an_order_next(t, parent, at));
	}
}

/* All tasks of the node ran while v went by: it is to be noted. */
an_outline void an_was_left_behind(struct an_tree *t, u32 index)
{
	const struct an_node *n = an_node(t, index);

	if (n->parent == AN_ROOT)
		return;
	t->left_behind = index;
	t->confined_by |= n->usable_by;
}

/* Is the node that was noted still behind? Not if it is throttled, for it counts for nobody above.
 */
an_inline bool an_is_behind(struct an_tree *t, const struct an_confined *c)
{
	const struct an_node *n = an_node(t, c->node);
	u64 start = an_expected_start(n);

	return n->generation == c->generation && an_node_runnable(n) &&
	       (an_tag_diff(start, c->lead) < 0 ||
		an_tag_diff(start, an_node(t, n->parent)->vtime) < 0) &&
	       !an_is_throttled(t, c->node);
}

/* How far its share of the whole takes it beyond this start tag of a child of the root [tag]. */
an_inline s64 an_flat_ahead(struct an_tree *t, struct an_confined *c, u64 start)
{
	const struct an_node *n = an_node(t, c->node);

	c->flat += an_flat_tag(t, c->node, n->service_ns - c->charged_ns);
	c->charged_ns = n->service_ns;
	return an_tag_diff(c->flat + an_flat_tag(t, c->node, t->quantum_ns) * n->serving, start);
}

/* Is what is above the node not ahead, where its path parts from that of the leaf: by no more than
 * a quantum, as those are who take turns? */
an_inline bool an_is_uncrowded(struct an_tree *t, u32 index, u32 leaf)
{
	const struct an_node *top, *next;

	an_part(t, &index, &leaf);
	top = an_node(t, index);
	next = an_node(t, leaf);
	return an_tag_diff(an_expected_start(top), an_expected_start(next)) <= (s64)top->step;
}

/* Who is noted may be owed so much of his share of the whole; those who compete with him for these
 * CPUs are forgiven alike. */
an_inline void an_flat_limit(struct an_tree *t, const struct an_confined *c, u64 by)
{
	u64 owed_max = 2 * t->cpus * an_flat_tag(t, c->node, t->quantum_ns);
	s64 excess = an_tag_diff(an_root(t)->vtime - owed_max, c->flat);
	u32 at = 0;

	an_while(excess > 0 && at < t->confined_count) {
		struct an_confined *other = an_confined(t, at);

		if (an_node(t, other->node)->usable_by & by)
			other->flat += excess + owed_max / 2;
		at = an_opaque(at + 1);
	}
}

/* The start tag of the root's child that is, or is above, the leaf [tag]. */
an_inline u64 an_top_start(struct an_tree *t, u32 leaf)
{
	const struct an_node *n = an_node(t, leaf);

	an_while(n->depth > 1)
		n = an_node(t, n->parent);
	return an_expected_start(n);
}

/*
 * A CPU would serve this leaf next. Returns the node that has its turn before it,
 * or AN_NONE. Who is behind no more is noted no more.
 */
an_outline u32 an_confined_first(struct an_tree *t, u32 leaf, u64 by)
{
	u32 at = 0, first = AN_NONE, first_at = 0;
	u64 start = an_top_start(t, leaf);
	s64 least = 0;

	an_count_weights(t);
	if (t->left_behind)
		an_confine(t, t->left_behind,
			   an_node(t, an_node(t, t->left_behind)->parent)->vtime);
	t->left_behind = AN_NONE;
	t->confined_by &= ~by;
	an_while(at < t->confined_count) {
		struct an_confined *c = an_confined(t, at);
		struct an_node *n = an_node(t, c->node);
		s64 ahead;

		if (!an_is_behind(t, c)) {
			*c = *an_confined(t, --t->confined_count);
			continue;
		}
		t->confined_by |= n->usable_by;
		ahead = an_flat_ahead(t, c, start);
		if (n->ready && an_node_usable(n, by) && (!first || ahead < least) &&
		    (ahead < 0 || an_is_uncrowded(t, c->node, leaf))) {
			first = c->node;
			first_at = at;
			least = ahead;
		}
		at = an_opaque(at + 1);
	}
	if (first)
		an_flat_limit(t, an_confined(t, first_at), by);
	return first;
}

#endif
