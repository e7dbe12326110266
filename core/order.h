/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The order of a node's ready children: by expected start tag, ties by index.
 *
 * A treap [1]: from left to right in that order, and from the top down by priorities, which are a
 * hash of the indices. So it is as deep as a random search tree, O(log k) for k children, whatever
 * comes and goes. A child is put in as in [2]: what stands below its place parts into those before
 * and those after it.
 *
 *                p                   top of p is b; before of b is a, after is d; up leads back.
 *                ┊
 *                b                   usable_by of b has every CPU that any of a … d is usable by,
 *              ╱   ╲                 and perhaps some that none is usable by any more: a search
 *             a     d                below b in vain takes them back (an_order_usable()).
 *                 ╱
 *                c
 *
 * Keys change with every quantum, on all of a path, but only a pick wants the order. So whoever
 * changes what it depends on just lists the node (an_unsettle()), and the next pick settles what is
 * listed. A node stands by a copy of its key, which changes with its place only.
 *
 *      Invariant: a node that is not listed stands in its parent's order, at its expected start, if
 *      it is ready and its parent counts it; if not, nowhere. One that is listed may stand where it
 *      stood before, though it may be another's child since, or free.
 *
 * Cost, k being the ready siblings: an_unsettle() O(1); an_settle() O(log k) for each node listed;
 * an_order_first() O(log k); an_order_usable() O(log k), what it takes back being counted to those
 * that have entered; an_order_dissolve() O(k).
 *
 * [1] C. Aragon, R. Seidel: Randomized Search Trees. FOCS 1989.
 * [2] R. Tarjan, C. Levy, S. Timmel: Zip Trees. ACM Transactions on Algorithms 17(4), 2021.
 */
#ifndef ANDANTE_CORE_ORDER_H
#define ANDANTE_CORE_ORDER_H

#include "node.h"

/* The start tag the next pick of this node would have: one expected quantum per CPU serving it. */
an_inline u64 an_expected_start(const struct an_node *n)
{
	return n->start + n->step * n->serving;
}

an_inline bool an_node_usable(const struct an_node *n, u64 by)
{
	return (n->usable_by & by) == by;
}

/*
 * To be said of a node when its expected start, or whether it is ready for its parent, or by whom
 * it is usable has changed, or is about to: the next pick puts it where it belongs.
 */
an_inline void an_unsettle(struct an_tree *t, u32 index)
{
	struct an_node *n = an_node(t, index);

	if (n->unsettled)
		return;
	n->unsettled = t->unsettled;
	t->unsettled = index;
}

/* No two indices have the same. */
an_inline u32 an_order_priority(u32 index)
{
	return index * 0x85ebca6bu;
}

/* Does a node with this key come before the other, which stands somewhere? */
an_inline bool an_order_before(u64 start, u32 index, const struct an_place *other, u32 other_index)
{
	s64 ahead = an_tag_diff(start, other->start);

	return ahead < 0 || (ahead == 0 && index < other_index);
}

/* Out of the order that it stands in, if it does: those below it close up. */
an_inline void an_order_leave(struct an_tree *t, u32 index, struct an_node *n)
{
	u32 before = n->place.before, after = n->place.after, up = n->place.up;
	struct an_place *above = &an_node(t, up)->place;
	u16 *link = &above->after;

	if (!up)
		return;
	n->place.up = AN_NONE;
	if (above->top == index)
		link = &above->top;
	else if (above->before == index)
		link = &above->before;
	an_while(before && after) {
		struct an_place *b = &an_node(t, before)->place, *a = &an_node(t, after)->place;

		if (an_order_priority(before) > an_order_priority(after)) {
			b->usable_by |= a->usable_by;
			b->up = up;
			*link = up = before;
			link = &b->after;
			before = *link;
		} else {
			a->usable_by |= b->usable_by;
			a->up = up;
			*link = up = after;
			link = &a->before;
			after = *link;
		}
	}
	before |= after;
	*link = before;
	an_node(t, before)->place.up = up;
}

/* Into its parent's order, if it is ready: down to those of a lower priority, which part. */
an_inline void an_order_enter(struct an_tree *t, u32 index, struct an_node *n)
{
	u32 up = n->counted_by, at, up_before = index, up_after = index;
	u16 *before = &n->place.before, *after = &n->place.after;
	u16 *link = &an_node(t, up)->place.top;
	u64 start = an_expected_start(n);

	if (!n->ready || !up)
		return;
	at = *link;
	an_while(at && an_order_priority(at) > an_order_priority(index)) {
		struct an_place *other = &an_node(t, at)->place;

		other->usable_by |= n->usable_by;
		up = at;
		link = an_order_before(start, index, other, at) ? &other->before : &other->after;
		at = *link;
	}
	*link = index;
	n->place.up = up;
	n->place.start = start;
	n->place.usable_by = n->usable_by | an_node(t, at)->place.usable_by;
	an_while(at) {
		struct an_place *other = &an_node(t, at)->place;

		if (an_order_before(start, index, other, at)) {
			other->up = up_after;
			*after = up_after = at;
			after = &other->before;
			at = *after;
		} else {
			other->up = up_before;
			*before = up_before = at;
			before = &other->after;
			at = *before;
		}
	}
	*before = *after = AN_NONE;
}

/* Was it alone in its parent's order, and is to be there still? */
an_inline bool an_order_stays(struct an_tree *t, u32 index, const struct an_node *n)
{
	return n->ready && n->place.up && n->place.up == n->counted_by &&
	       !(n->place.before | n->place.after) && an_node(t, n->counted_by)->place.top == index;
}

/* Whatever is listed is put where it belongs. */
an_outline void an_settle(struct an_tree *t)
{
	an_while(t->unsettled != AN_ROOT) {
		u32 index = t->unsettled;
		struct an_node *n = an_node(t, index);

		t->unsettled = n->unsettled;
		n->unsettled = AN_NONE;
		if (an_order_stays(t, index, n)) {
			n->place.start = an_expected_start(n);
			n->place.usable_by = n->usable_by;
		} else {
			an_order_leave(t, index, n);
			an_order_enter(t, index, n);
		}
	}
}

/* ---- of a node whose children are settled ---- */

/* The first of its ready children, or AN_NONE. */
an_inline u32 an_order_first(struct an_tree *t, u32 parent)
{
	u32 at = an_node(t, parent)->place.top, next = at;

	an_while(next) {
		at = next;
		next = an_node(t, at)->place.before;
	}
	return at;
}

/* The one that comes after this one, or AN_NONE. */
an_inline u32 an_order_next(struct an_tree *t, u32 parent, u32 at)
{
	u32 next = an_node(t, at)->place.after;

	if (next) {
		an_while(an_node(t, next)->place.before)
			next = an_node(t, next)->place.before;
		return next;
	}
	next = an_node(t, at)->place.up;
	an_while(next != parent && an_node(t, next)->place.after == at) {
		at = next;
		next = an_node(t, at)->place.up;
	}
	return next == parent ? AN_NONE : next;
}

/* May any be usable by this CPU, a bit, that stands here or below? */
an_inline bool an_order_may_use(struct an_tree *t, u32 at, u64 by)
{
	return at && an_node(t, at)->place.usable_by & by;
}

/* The first of them, which there are, that is usable by this CPU, or AN_NONE. */
an_outline u32 an_order_usable(struct an_tree *t, u32 parent, u64 by)
{
	u32 at = an_node(t, parent)->place.top;

	an_while(at != parent) {
		struct an_node *n = an_node(t, at);

		if (an_order_may_use(t, n->place.before, by)) {
			at = n->place.before;
		} else if (an_node_usable(n, by)) {
			return at;
		} else if (an_order_may_use(t, n->place.after, by)) {
			at = n->place.after;
		} else {
			n->place.usable_by &= ~by;
			at = n->place.up;
		}
	}
	return AN_NONE;
}

/* All of them, which there are, leave, and are listed; nothing else is. */
an_outline void an_order_dissolve(struct an_tree *t, u32 parent)
{
	struct an_place *p = &an_node(t, parent)->place;
	u32 at = p->top, last = at;

	t->unsettled = at;
	p->top = AN_NONE;
	/* Each appends those right below it. */
	an_while(at) {
		struct an_node *n = an_node(t, at);

		n->place.up = AN_NONE;
		if (n->place.before)
			last = an_node(t, last)->unsettled = n->place.before;
		if (n->place.after)
			last = an_node(t, last)->unsettled = n->place.after;
		at = n->unsettled;
	}
	an_node(t, last)->unsettled = AN_ROOT;
}

#endif
