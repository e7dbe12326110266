/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Domains: several trees, each for a few CPUs, fair together.
 *
 * One tree under one lock serves a few CPUs, not a hundred. So the CPUs are divided into domains
 * (those that share a cache), each with a tree and a lock of its own. All have the same classes,
 * under the same indices; a task is queued in one of them. Three rules make one scheduler of them.
 *
 *      shares     What a class is given in one domain counts in all: its start tag in a domain is
 *                 charged for what it has been given elsewhere since (an_catch_up()),
 *
 *                         S = max(v, S + elsewhere / r)
 *
 *                 before it wakes there, and when it comes first in a pick. A class that was served
 *                 elsewhere lately has not slept, though: it may be some quanta behind v. These are
 *                 tags of distributed start-time fair queueing ([3], section 3: the delay of a
 *                 request is the cost of its flow's requests elsewhere), here on every level of a
 *                 hierarchy. Classes that want more than they are given in some common domain are
 *                 thus given CPU time in proportion to their weights, all domains taken together,
 *                 wherever else they run.
 *
 *      places     Classes of no common domain are not compared by that; nor are classmates. So a
 *                 CPU looks, at the end of a quantum, at what is next in another domain, and pulls
 *                 a task over if its class has not been served here but is owed service
 *                 (an_pull_due()), or if the classmates here are further on (an_mates_due()). That
 *                 is the round stealing of [4], between domains. If the task may not come, its
 *                 class is served more where it is, and less here (an_move_here()); for that there
 *                 has to be somebody else to serve here, and if there is not, a task of another
 *                 class is taken over. A CPU without work takes the next task of any other domain.
 *
 *      structure  Classes are created and removed in all trees, one after the other, under an index
 *                 that is free in all (an_first_free()): one that is removed, but still served in
 *                 one of them, is not.
 *
 * The bounds on what a class is owed, or owes, are so many quanta for each of the CPUs that may
 * serve it: a tree's `cpus` are those of all domains, and `own_cpus` those of its own.
 *
 * What has been given in all domains is a counter per class that is added to without a common lock.
 * What a domain reads too early is charged the next time.
 *
 * [1], [2]: see tree.h.
 * [3] Y. Wang, A. Merchant: Proportional-Share Scheduling for Distributed Storage Systems.
 *     FAST 2007.
 * [4] T. Li, D. Baumberger, S. Hahn: Efficient and Scalable Multiprocessor Fair Scheduling Using
 *     Distributed Weighted Round-Robin. PPoPP 2009.
 */
#ifndef ANDANTE_CORE_DOMAINS_H
#define ANDANTE_CORE_DOMAINS_H

#include "hsfq.h"
#include "task.h"

/* What the subtree of every node has been given in all domains together [ns]. */
struct an_everywhere {
	u64 service_ns[AN_MAX_NODES];
};

an_inline u64 *an_everywhere_ns(struct an_everywhere *e, u32 index)
{
	return &e->service_ns[an_bounded(index, AN_MAX_NODES)];
}

an_inline u64 *an_elsewhere_ns(struct an_tree *t, u32 index)
{
	return &t->elsewhere_ns[an_bounded(index, AN_MAX_NODES)];
}

an_inline u64 *an_elsewhere_vtime(struct an_tree *t, u32 index)
{
	return &t->elsewhere_vtime[an_bounded(index, AN_MAX_NODES)];
}

/* ---- shares ---- */

/* The leaf is about to be charged for a quantum in this domain (an_stop()): all are to know. */
an_inline void an_everywhere_add(struct an_everywhere *e, struct an_tree *t, u32 leaf,
				 u64 service_ns)
{
	u32 index = leaf;

	an_while(index) {
		__sync_fetch_and_add(an_everywhere_ns(e, index), service_ns);
		index = an_node(t, index)->parent;
	}
}

/*
 * Charges the node here for what it has been given elsewhere since that was done last: but no
 * further beyond v than service may take it here (an_child_picked()). What cannot be made good here
 * would otherwise be remembered for ever. False: there was nothing.
 */
an_inline bool an_catch_up(struct an_tree *t, struct an_everywhere *e, u32 index)
{
	struct an_node *n = an_node(t, index);
	u64 vtime = an_node(t, n->parent)->vtime, owing_max = 2 * n->step * t->cpus;
	u64 *elsewhere_ns = an_elsewhere_ns(t, index);
	s64 news = *an_everywhere_ns(e, index) - n->service_ns - *elsewhere_ns;

	if (news <= 0 || !n->parent)
		return false;
	*elsewhere_ns += news;
	*an_elsewhere_vtime(t, index) = vtime;
	an_tag_charge(&n->start, &n->rem, news, n->weight);
	if (an_tag_diff(n->start, vtime) > (s64)owing_max)
		n->start = vtime + owing_max;
	an_unsettle(t, index);
	return true;
}

/*
 * Call before the leaf is queued in, or served without a pick: it, and what is above it, may wake.
 * A class that has lately been given something elsewhere has not slept, and is owed service here
 * too.
 */
an_outline void an_domain_wakes(struct an_tree *t, struct an_everywhere *e, u32 leaf)
{
	u32 index = leaf;

	an_while(index && !an_node_runnable(an_node(t, index))) {
		struct an_node *n = an_node(t, index);
		u64 vtime = an_node(t, n->parent)->vtime;
		u64 owed_max = an_owed_quanta(t) * n->step;

		an_catch_up(t, e, index);
		n->back |= vtime - *an_elsewhere_vtime(t, index) <= owed_max;
		index = n->parent;
	}
}

/*
 * As an_descend(), in one domain of several.
 *
 * A child that comes first is charged for what it has been given elsewhere, and has its place anew;
 * so does who comes first then, until that one has been charged for everything. Charges take
 * children back, so none of the others would come before it if all of them were charged.
 */
an_inline u32 an_domain_descend(struct an_tree *t, struct an_everywhere *e, u32 from, u64 by)
{
	u32 index = from;

	an_while(index && an_node(t, index)->kind == AN_INNER) {
		u32 best;

		an_settle(t);
		if (an_catch_up(t, e, an_order_first(t, index)))
			continue;
		best = an_least_child(t, index, by);
		if (best && an_catch_up(t, e, best))
			continue;
		if (best)
			an_child_picked(t, index, best);
		index = best ? best : an_nothing_usable(t, index, by);
	}
	return index;
}

/* As an_pick(), in one domain of several. */
an_outline u32 an_domain_pick(struct an_tree *t, struct an_everywhere *e, u64 by)
{
	return an_claim(t, an_domain_descend(t, e, AN_ROOT, by));
}

/* As an_pick_behind(), in one domain of several. */
an_outline u32 an_domain_pick_behind(struct an_tree *t, struct an_everywhere *e, u32 leaf, u64 by)
{
	u32 first;

	an_unpick(t, leaf);
	first = an_confined_first(t, leaf, by);
	if (first)
		leaf = an_domain_descend(t, e, first, by);
	return an_claim(t, leaf);
}

/* As an_preempt_after_ns(), in one domain of several: what has woken may be of a class that has
 * been waiting here, and been given something elsewhere. */
an_outline u64 an_domain_preempt_after_ns(struct an_tree *t, struct an_everywhere *e, u32 woken,
					  u32 serving)
{
	an_part(t, &woken, &serving);
	an_catch_up(t, e, woken);
	return an_branch_preempts_after_ns(t, woken, serving);
}

/* ---- places ---- */

/*
 * The leaf that comes next in this domain below a ready node, or AN_NONE. Only a look: no virtual
 * time moves, for a task that runs and wants to go on is not queued, and must not be left behind.
 */
an_outline u32 an_domain_next(struct an_tree *t, struct an_everywhere *e, u32 below)
{
	u32 index = below;

	an_while(index && an_node(t, index)->kind == AN_INNER) {
		u32 first;

		an_settle(t);
		first = an_order_first(t, index);
		if (!an_catch_up(t, e, first))
			index = first;
	}
	return an_node(t, index)->ready ? index : AN_NONE;
}

/*
 * Which other domain does a CPU of this one look at, that would serve the leaf `own` next? With
 * each quantum that the class is given here it is another. A counter of the CPU's would get into
 * step with its classes, and show each of them the same domain for ever.
 */
an_inline u32 an_looks_at(struct an_tree *t, u32 own, u32 domain, u32 domains)
{
	u64 turn = an_node(t, own)->service_ns / t->quantum_ns;

	return (domain + 1 + turn % (domains - 1)) % domains;
}

/* The child of this inner node that is, or is above, the leaf; the leaf itself has none. */
an_inline u32 an_child_towards(struct an_tree *t, u32 index, u32 leaf)
{
	an_while(leaf && an_node(t, leaf)->parent != index)
		leaf = an_node(t, leaf)->parent;
	return leaf;
}

an_inline struct an_mates *an_mates(struct an_tree *t, u32 leaf)
{
	return &t->mates[an_bounded(leaf, AN_MAX_NODES)];
}

/* How far the leaf's tasks are, to be compared with that of its tasks in another domain [tag]. */
an_inline u64 an_mates_vtime(struct an_tree *t, u32 leaf)
{
	return an_node(t, leaf)->vtime + an_mates(t, leaf)->forgotten;
}

/*
 * Should a CPU of this domain, which would serve the leaf `own` next, rather take a task of the
 * class `leaf` from another domain? The shell asks this for what is next there below every node on
 * the path to `own` (an_domain_next(), an_child_towards()), for a class may be owed service within
 * one that is not. If that is `own` too it asks an_mates_due().
 *
 * It should if that class (its branch, where the paths of the two part) has nothing queued here,
 * and is behind v by some quanta. What is queued here competes already.
 */
an_outline bool an_pull_due(struct an_tree *t, struct an_everywhere *e, u32 own, u32 leaf)
{
	struct an_node *n;

	an_part(t, &leaf, &own);
	n = an_node(t, leaf);
	if (n->ready)
		return false;
	an_catch_up(t, e, leaf);
	return an_tag_diff(an_node(t, n->parent)->vtime, an_expected_start(n)) >
	       (s64)(AN_PULL_QUANTA * n->step);
}

/*
 * Of two domains with tasks of the leaf, this is that of the tasks that are behind, perhaps: is one
 * to be taken over to `to`, where the leaf is next? If the tasks there are further on, and fewer.
 * And if they are more, but twice as far on, and twice as fast: what a class is given in one domain
 * it is not given in the other (an_catch_up()), so that a task that is alone here may be given
 * nothing. (Not if they are only further on: a class of a large share needs tasks in all domains.)
 * Then so much is forgotten as AN_PULL_QUANTA are, whether they were behind for that or because
 * they slept: or all would be taken over that wake here.
 */
an_outline bool an_mates_due(struct an_tree *t, u32 leaf, struct an_tree *to)
{
	struct an_node *here = an_node(t, leaf), *there = an_node(to, leaf);
	struct an_mates *mates = an_mates(t, leaf);
	s64 behind = an_tag_diff(an_mates_vtime(to, leaf), an_mates_vtime(t, leaf));
	s64 lag = AN_PULL_QUANTA * (t->quantum_ns << AN_TAG_SHIFT) / AN_USUAL_WEIGHT;
	bool due = behind > lag && (here->queued + here->serving) * to->own_cpus >
					   (there->queued + there->serving) * t->own_cpus;

	if (behind > 2 * lag) {
		due |= an_tag_diff(here->vtime, mates->vtime) < lag;
		mates->forgotten += behind - lag;
		mates->vtime = here->vtime;
	}
	return due && here->queued;
}

/*
 * A task of the leaf is served here without a pick, because that was due. It has waited elsewhere
 * for what it is owed here: that is not forgotten, as it would be on waking. Returned is as
 * an_serve_unpicked() has it.
 */
an_outline u32 an_serve_pulled(struct an_tree *t, struct an_everywhere *e, u32 leaf)
{
	u32 index = leaf;

	if (an_node(t, leaf)->kind != AN_LEAF)
		return AN_NONE;
	an_while(index && !an_node_runnable(an_node(t, index))) {
		struct an_node *n = an_node(t, index);
		u64 owed_max = AN_PULL_QUANTA * n->step;

		an_catch_up(t, e, index);
		if (n->parent)
			an_tag_wake(&n->start, &n->rem, an_node(t, n->parent)->vtime - owed_max);
		index = n->parent;
	}
	an_serve(t, leaf, false);
	return leaf;
}

/* What a class is owed where none of its tasks may run is remembered up to so many quanta. */
#define AN_OWED_IN_VAIN_QUANTA (2 * AN_PULL_QUANTA)

/* And where they may run, so many are moved to at a time. */
#define AN_MOVED_QUANTA 2

/*
 * A pull was due, but none of the tasks of `leaf` may run in this domain. Returns the class that is
 * owed service (the branch of `leaf`), if this domain has somebody else to serve while the other
 * serves that (an_move_here()); or AN_NONE. A task of the leaf `wanting` (AN_NONE: none) wants to
 * go on here, and is not queued.
 */
an_outline u32 an_pull_failed(struct an_tree *t, u32 own, u32 leaf, u32 wanting)
{
	struct an_node *n;
	u64 vtime, owed_max;
	bool others;

	an_part(t, &leaf, &own);
	n = an_node(t, leaf);
	vtime = an_node(t, n->parent)->vtime;
	owed_max = AN_OWED_IN_VAIN_QUANTA * n->step;
	if (an_tag_diff(vtime, n->start) > (s64)owed_max)
		n->start = vtime - owed_max;
	an_unsettle(t, leaf);
	others = an_root(t)->ready > an_node(t, n->parent)->ready ||
		 (wanting && !an_child_towards(t, n->parent, wanting));
	return others ? leaf : AN_NONE;
}

/*
 * In the domain where those tasks wait: all above their class may have been served their shares by
 * the other domains, and owe everybody here. As long as they owe, a task that may run only here is
 * given nothing, though its siblings are. So a part of what they are given is moved: the class and
 * all above it are owed that much more here, and in the other domain that much less
 * (an_move_away()). Returned is the topmost of them, the root; AN_NONE: what is above the class is
 * owed that here already.
 */
an_outline u32 an_move_here(struct an_tree *t, struct an_everywhere *e, u32 index)
{
	struct an_node *within = an_node(t, an_node(t, index)->parent);
	s64 owed;

	an_catch_up(t, e, an_node(t, index)->parent);
	owed = an_tag_diff(an_node(t, within->parent)->vtime, within->start);
	if (!index || owed > (s64)(AN_MOVED_QUANTA * within->step))
		return AN_NONE;
	an_while(index) {
		struct an_node *n = an_node(t, index);
		u64 vtime = an_node(t, n->parent)->vtime;
		u64 least = vtime - AN_OWED_IN_VAIN_QUANTA * n->step;

		an_catch_up(t, e, index);
		if (n->parent)
			n->start = an_tag_max(n->start - AN_MOVED_QUANTA * n->step, least);
		an_unsettle(t, index);
		index = n->parent;
	}
	return AN_ROOT;
}

/* The classes from this one up to `top` are owed so much less here. */
an_outline void an_move_away(struct an_tree *t, u32 index, u32 top)
{
	an_while(index) {
		struct an_node *n = an_node(t, index);
		u64 vtime = an_node(t, n->parent)->vtime;
		u64 owing_max = 2 * n->step * t->cpus;

		if (n->parent) {
			n->start += AN_MOVED_QUANTA * n->step;
			if (an_tag_diff(n->start, vtime) > (s64)owing_max)
				n->start = vtime + owing_max;
		}
		an_unsettle(t, index);
		index = index == top ? AN_NONE : n->parent;
	}
}

/*
 * One of the leaf's tasks here was due in another domain (an_mates_due()), but none of them may run
 * there. If that domain has somebody else to serve (an_serves_others()) the leaf, and what is above
 * it and owes here, is owed so much more here. Returned is the topmost of them, for an_move_away()
 * in the other domain; AN_NONE: they owe nothing here.
 */
an_outline u32 an_mates_here(struct an_tree *t, struct an_everywhere *e, u32 leaf)
{
	u32 index = leaf, top = AN_NONE;

	an_while(an_node(t, index)->parent) {
		struct an_node *n = an_node(t, index);

		an_catch_up(t, e, index);
		if (an_tag_diff(n->start, an_node(t, n->parent)->vtime) < 0)
			break;
		n->start -= AN_MOVED_QUANTA * n->step;
		an_unsettle(t, index);
		top = index;
		index = n->parent;
	}
	return top;
}

/* Has this domain anybody else to serve while another serves the leaf? A task of the leaf `wanting`
 * (AN_NONE: none) wants to go on here, and is not queued. */
an_inline bool an_serves_others(struct an_tree *t, u32 leaf, u32 wanting)
{
	return an_root(t)->ready > an_node(t, leaf)->ready || (wanting && wanting != leaf);
}

/* ---- structure ---- */

/*
 * The first index above `after` that is free in this domain; AN_MAX_NODES: there is none. Needs no
 * lock, if classes come one at a time.
 */
an_outline u32 an_first_free(struct an_tree *t, u32 after)
{
	u32 index = an_opaque(after + 1);

	an_while(index < t->unused && an_node(t, index)->kind != AN_FREE)
		index = an_opaque(index + 1);
	return index;
}

/* Puts the free index where an_node_alloc() takes it next. */
an_outline void an_node_prefer(struct an_tree *t, u32 index)
{
	u32 at, previous = AN_NONE;

	an_while(t->unused <= index) {
		u32 fresh = t->unused++;

		an_node(t, fresh)->free_next = t->free_next;
		t->free_next = fresh;
	}
	at = t->free_next;
	an_while(at && at != index) {
		previous = at;
		at = an_node(t, at)->free_next;
	}
	if (!at || !previous)
		return;
	an_node(t, previous)->free_next = an_node(t, at)->free_next;
	an_node(t, at)->free_next = t->free_next;
	t->free_next = at;
}

/*
 * Before a class below that of parent_leaf is created in the domains, one after the other: what the
 * two indices are to say of service in all of them. Both are free in all; `inner` is for the node
 * that takes the place of a parent without children.
 */
an_inline void an_everywhere_create(struct an_everywhere *e, u32 parent_leaf, u32 child, u32 inner)
{
	*an_everywhere_ns(e, child) = 0;
	*an_everywhere_ns(e, inner) = *an_everywhere_ns(e, parent_leaf);
}

/* an_class_create() in one of the domains, under these indices. Returns child, or AN_NONE. */
an_inline u32 an_domain_create(struct an_tree *t, u32 parent_leaf, u64 cgroup_id, u32 weight,
			       u32 child, u32 inner)
{
	*an_elsewhere_ns(t, child) = 0;
	an_mates(t, child)->forgotten = an_mates(t, child)->vtime = 0;
	*an_elsewhere_ns(t, inner) = *an_elsewhere_ns(t, parent_leaf);
	an_node_prefer(t, inner);
	an_node_prefer(t, child);
	return an_class_create(t, parent_leaf, cgroup_id, weight);
}

#endif
