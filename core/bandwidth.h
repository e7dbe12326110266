/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Bandwidth: a class may use no more than a quota of CPU time in every period, all below it and all
 * CPUs taken together. The rules and the names are those of the kernel's cpu.max ([1]), which
 * enforces nothing for tasks of sched_ext.
 *
 *      refill     as a period begins:    runtime = min(runtime + quota, quota + burst)
 *      hand out   a CPU that begins a quantum of a class takes as much as the quantum, and as every
 *                 class on its path still has:         runtime = runtime - slice
 *      settle     the quantum ends:                    runtime = runtime + slice - used
 *
 *          runtime > 0 ──── hand out, settle ────► runtime <= 0: the class is *throttled*
 *               ▲                                          │
 *               └──────── refill, settle ──────────────────┘
 *
 * Slices are handed out before they are used, as [1] does with those of 5 ms, so that CPUs need not
 * tell one another what they are using. A CPU that used more than its slice (the timer that ends it
 * is late) leaves runtime below 0: a debt, which the next refill pays. So in any n periods a class
 * uses at most
 *
 *      n * quota + burst + what its CPUs had been handed before + what they ran beyond the last
 * slice
 *
 * and over a long time exactly its quota, if it wants that much.
 *
 * A throttled class is ready for nobody: its ready leaves count for itself, and for none of its
 * ancestors (an_node.counted_by), as if they were empty. It is refilled when somebody looks (a CPU
 * begins a quantum of it) or, while it is throttled, by a timer of the shell's (an_held_next()).
 *
 * The kernel ejects a scheduler that lets a task wait for too long, however small its class's quota
 * is. So an overdue task (overdue.h) has its short turn though nothing is left. The class owes that
 * time, but no more than a period's quota of it, or it would owe for ever what ten thousand tasks
 * need; and such turns are counted (an_slice_exceed()).
 *
 * A quota is kept by the leaf of its class (tree.h), since that index never changes. In several
 * domains (domains.h) there is one for all trees, added to without a common lock; each tree knows
 * by itself whether the class is throttled there, and what a CPU gives back is known in its own
 * tree at once, in others when they are refilled. Calls want the lock of the tree that they are
 * about.
 *
 * Cost, d the depth of the leaf: an_slice_take() and an_slice_settle() O(d), where anybody has a
 * quota; the shell makes neither as long as nobody has.
 *
 * [1] Linux, Documentation/scheduler/sched-bwc.rst.
 */
#ifndef ANDANTE_CORE_BANDWIDTH_H
#define ANDANTE_CORE_BANDWIDTH_H

#include "hsfq.h"

/* No quota; and the slice of a quantum that none limits [ns]. */
#define AN_UNLIMITED_NS AN_ENDLESS_NS

struct an_bandwidth {
	s64 runtime_ns;	       /* left in this period, and not handed to any CPU */
	u64 quota_ns;	       /* 0: there is no limit */
	u64 period_ns;	       /* > 0, if there is a quota */
	u64 burst_ns;	       /* what may be left from earlier periods */
	u64 period_from_ns;    /* when this period began */
	u64 throttled_from_ns; /* since when it has nothing, and no CPU has a slice; 0: it has */
	u64 throttled_ns;      /* for how long altogether, up to that */
	u32 nr_periods;	       /* that have begun while somebody used it */
	u32 nr_throttled;      /* in which it was throttled */
	u32 nr_exceeded;       /* short turns of overdue tasks while nothing was left */
	u32 throttled;	       /* it was in this period */
};

/* By the leaf of the class. */
struct an_bandwidths {
	struct an_bandwidth of[AN_MAX_NODES];
	u32 count; /* classes that have a quota */
};

an_inline struct an_bandwidth *an_bandwidth(struct an_bandwidths *w, u32 leaf)
{
	return &w->of[an_bounded(leaf, AN_MAX_NODES)];
}

/* ---- a class is throttled, and is not any more ---- */

/* The leaves that are ready below this node are so for none of its ancestors. */
an_outline void an_hold(struct an_tree *t, u32 index)
{
	struct an_node *n = an_node(t, index);
	u32 ready = n->ready, at = n->counted_by;

	an_unsettle(t, index);
	n->counted_by = AN_NONE;
	an_while(at && ready) {
		struct an_node *p = an_node(t, at);

		p->ready -= ready;
		if (!p->ready)
			an_unsettle(t, at);
		at = p->counted_by;
	}
}

/* They are so for all of its ancestors again, up to one that is held itself. */
an_outline void an_let_go(struct an_tree *t, u32 index)
{
	struct an_node *n = an_node(t, index);
	u32 ready = n->ready, at = n->parent;
	u64 usable_by = n->usable_by;

	n->counted_by = at;
	if (!ready)
		return;
	an_node_ready(t, index);
	an_while(at) {
		struct an_node *p = an_node(t, at);
		bool was_ready = p->ready;

		p->ready += ready;
		if (usable_by & ~p->usable_by) {
			p->usable_by |= usable_by;
			an_unsettle(t, at);
		}
		usable_by = p->usable_by;
		if (!was_ready && p->counted_by)
			an_node_ready(t, at);
		at = p->counted_by;
	}
}

/* The last of the throttled classes. One that is listed still, for nobody has looked, stays where
 * it is. */
an_inline void an_held_list(struct an_tree *t, u32 leaf)
{
	struct an_node *n = an_node(t, leaf);

	if (n->held_listed)
		return;
	n->held_listed = 1;
	n->held_next = AN_NONE;
	if (t->held_last)
		an_node(t, t->held_last)->held_next = leaf;
	else
		t->held_first = leaf;
	t->held_last = leaf;
	t->held_count++;
}

/* The first of them, which is none any more; AN_NONE: there is none. */
an_inline u32 an_held_pop(struct an_tree *t)
{
	u32 leaf = t->held_first;
	struct an_node *n = an_node(t, leaf);

	if (!leaf)
		return AN_NONE;
	t->held_first = n->held_next;
	if (!t->held_first)
		t->held_last = AN_NONE;
	t->held_count--;
	n->held_listed = 0;
	return leaf;
}

/* The node whose class has this much runtime left is held in this tree, or let go. */
an_inline void an_hold_or_let_go(struct an_tree *t, u32 index, s64 runtime_ns)
{
	struct an_node *n = an_node(t, index);

	if (runtime_ns <= 0 && n->counted_by) {
		an_hold(t, index);
		an_held_list(t, n->bandwidth);
	} else if (runtime_ns > 0 && an_is_held(n)) {
		an_let_go(t, index);
	}
}

/* ---- runtime ---- */

an_inline void an_runtime_add(struct an_bandwidth *b, s64 ns)
{
	__sync_fetch_and_add(&b->runtime_ns, ns);
}

/* From this instant on the class has to wait. */
an_inline void an_throttled_begin(struct an_bandwidth *b, u64 now_ns)
{
	b->throttled = 1;
	if (!b->throttled_from_ns)
		b->throttled_from_ns = now_ns;
}

an_inline void an_throttled_end(struct an_bandwidth *b, u64 now_ns)
{
	u64 from_ns = b->throttled_from_ns;

	b->throttled_from_ns = 0;
	if (from_ns && now_ns > from_ns)
		b->throttled_ns += now_ns - from_ns;
}

/* The periods that have begun since somebody looked bring what they bring. */
an_outline void an_bandwidth_refill(struct an_bandwidth *b, u64 now_ns)
{
	u64 from_ns = b->period_from_ns, quota_ns = b->quota_ns, passed;
	u64 period_ns = b->period_ns ? b->period_ns : 1;
	s64 room_ns;

	if (now_ns < from_ns + period_ns)
		return;
	passed = (now_ns - from_ns) / period_ns;
	/* Of two domains that look at once, one does it. */
	if (!__sync_bool_compare_and_swap(&b->period_from_ns, from_ns,
					  from_ns + passed * period_ns))
		return;
	room_ns = (s64)(quota_ns + b->burst_ns) - b->runtime_ns;
	if (room_ns > 0 && quota_ns && passed <= (u64)room_ns / quota_ns)
		room_ns = passed * quota_ns;
	an_runtime_add(b, room_ns);
	b->nr_periods++;
	b->nr_throttled += b->throttled;
	b->throttled = 0;
	if (b->runtime_ns > 0)
		an_throttled_end(b, now_ns);
	else if (b->throttled_from_ns)
		b->throttled = 1;
}

/*
 * A CPU begins a quantum of this leaf: how much of it may be used [ns], AN_UNLIMITED_NS if there is
 * no limit; 0: none, for the class is throttled, or one around it. The CPU is to stop when it has
 * used that, and settle.
 */
an_outline u64 an_slice_take(struct an_bandwidths *w, struct an_tree *t, u32 leaf, u64 quantum_ns,
			     u64 now_ns)
{
	u64 slice_ns = AN_UNLIMITED_NS;
	u32 index = leaf;

	an_while(index) {
		u32 owner = an_node(t, index)->bandwidth;
		struct an_bandwidth *b = an_bandwidth(w, owner);

		if (owner) {
			s64 runtime_ns;

			an_bandwidth_refill(b, now_ns);
			runtime_ns = b->runtime_ns;
			if (slice_ns > quantum_ns)
				slice_ns = quantum_ns;
			if (runtime_ns <= 0) {
				an_throttled_begin(b, now_ns);
				slice_ns = 0;
			} else if ((u64)runtime_ns < slice_ns) {
				slice_ns = runtime_ns;
			}
		}
		index = an_node(t, index)->parent;
	}
	index = slice_ns == AN_UNLIMITED_NS ? AN_NONE : leaf;
	an_while(index) {
		u32 owner = an_node(t, index)->bandwidth;
		struct an_bandwidth *b = an_bandwidth(w, owner);

		if (owner) {
			an_runtime_add(b, -(s64)slice_ns);
			an_hold_or_let_go(t, index, b->runtime_ns);
		}
		index = an_node(t, index)->parent;
	}
	return slice_ns;
}

/*
 * An overdue task of this leaf has its turn though nothing is left. False: what it uses is not to
 * be settled, for its class, or one around it, owes a whole quota already.
 */
an_outline bool an_slice_exceed(struct an_bandwidths *w, struct an_tree *t, u32 leaf)
{
	bool owes = true;
	u32 index = leaf;

	an_while(index) {
		u32 owner = an_node(t, index)->bandwidth;
		struct an_bandwidth *b = an_bandwidth(w, owner);

		if (owner && b->runtime_ns <= 0) {
			b->nr_exceeded++;
			owes &= b->runtime_ns > -(s64)b->quota_ns;
		}
		index = an_node(t, index)->parent;
	}
	return owes;
}

/*
 * The quantum, of which a slice had been taken, is over, and so much of the slice is left (below 0:
 * it was overrun). A class that has something left is let go here; that one has nothing left is
 * found when the next slice is to be taken, by somebody who can see to it that the timer is set.
 */
an_outline void an_slice_settle(struct an_bandwidths *w, struct an_tree *t, u32 leaf, s64 left_ns,
				u64 now_ns)
{
	u32 index = leaf;

	an_while(index) {
		u32 owner = an_node(t, index)->bandwidth;
		struct an_bandwidth *b = an_bandwidth(w, owner);

		if (owner) {
			an_runtime_add(b, left_ns);
			if (b->runtime_ns > 0) {
				an_throttled_end(b, now_ns);
				an_hold_or_let_go(t, index, b->runtime_ns);
			} else if (an_node(t, index)->ready) {
				an_throttled_begin(b, now_ns);
			}
		}
		index = an_node(t, index)->parent;
	}
}

/* When a class around this leaf that is throttled is refilled [ns]; AN_NEVER: none is. */
an_outline u64 an_held_due(struct an_bandwidths *w, struct an_tree *t, u32 leaf)
{
	u64 due_ns = AN_NEVER;
	u32 index = leaf;

	an_while(index) {
		u32 owner = an_node(t, index)->bandwidth;
		const struct an_bandwidth *b = an_bandwidth(w, owner);

		if (owner && an_is_held(an_node(t, index)) &&
		    b->period_from_ns + b->period_ns < due_ns)
			due_ns = b->period_from_ns + b->period_ns;
		index = an_node(t, index)->parent;
	}
	return due_ns;
}

/*
 * Looks at the class that has been throttled for longest, and lets it go if it has been refilled.
 * Returns when it is to be looked at again [ns], or AN_NEVER: it is throttled no more. To be called
 * an_tree.held_count times, when the first of them is due.
 */
an_outline u64 an_held_next(struct an_bandwidths *w, struct an_tree *t, u64 now_ns)
{
	u32 leaf = an_held_pop(t), index = an_class_node(t, leaf);
	struct an_node *n = an_node(t, index);
	struct an_bandwidth *b = an_bandwidth(w, leaf);

	/* The slot may have another class since, which has no quota, or is not throttled. */
	if (!leaf || n->bandwidth != leaf || !an_is_held(n))
		return AN_NEVER;
	b->throttled |= n->ready > 0; /* or it woke only after its runtime was used up */
	an_bandwidth_refill(b, now_ns);
	an_hold_or_let_go(t, index, b->runtime_ns);
	if (!an_is_held(n))
		return AN_NEVER;
	an_held_list(t, leaf);
	return b->period_from_ns + b->period_ns;
}

/* ---- quotas come, change and go ---- */

/*
 * The class of this leaf may use so much in every period, and save so much up; quota 0: as much as
 * it wants. The trees are told after that: an_bandwidth_apply(), for each.
 *
 * It begins with a whole quota. One that is changed keeps what it has used: it has the difference
 * at once, if that is more, and no more than it may have now.
 */
an_inline void an_bandwidth_set(struct an_bandwidths *w, u32 leaf, u64 quota_ns, u64 period_ns,
				u64 burst_ns, u64 now_ns)
{
	struct an_bandwidth *b = an_bandwidth(w, leaf);
	u64 old_ns = b->quota_ns;

	w->count += (quota_ns != 0) - (old_ns != 0);
	b->quota_ns = quota_ns;
	b->period_ns = period_ns;
	b->burst_ns = burst_ns;
	if (!old_ns) {
		b->runtime_ns = quota_ns;
		b->period_from_ns = now_ns;
		b->throttled = b->nr_periods = b->nr_throttled = b->nr_exceeded = 0;
		b->throttled_ns = b->throttled_from_ns = 0;
		return;
	}
	if (quota_ns > old_ns)
		an_runtime_add(b, quota_ns - old_ns);
	if (b->runtime_ns > (s64)(quota_ns + burst_ns))
		b->runtime_ns = quota_ns + burst_ns;
	if (!quota_ns || b->runtime_ns > 0)
		an_throttled_end(b, now_ns);
}

/* This tree knows of it from now on. */
an_inline void an_bandwidth_apply(struct an_bandwidths *w, struct an_tree *t, u32 leaf)
{
	const struct an_bandwidth *b = an_bandwidth(w, leaf);
	u32 index = an_class_node(t, leaf);
	struct an_node *n = an_node(t, index);

	if (n->kind != AN_LEAF && n->kind != AN_INNER)
		return;
	n->bandwidth = b->quota_ns ? leaf : AN_NONE;
	if (n->parent)
		an_hold_or_let_go(t, index, b->quota_ns ? b->runtime_ns : 1);
}

#endif
