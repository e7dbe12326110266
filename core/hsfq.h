/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Hierarchical start-time fair queueing ([1], H-SFQ), on one CPU and on several.
 *
 * Every inner node shares what it gets among its children in proportion to their weights. With
 * start tag S, weight r and virtual time v (the start tag of the child in service):
 *
 *      becomes runnable       S = max(v, S)                     an_queue_add()
 *      pick                   child with the least S; v = S      an_pick()
 *      stops after using l    S = S + l / r                      an_stop()
 *      nothing runnable       v = the largest finish tag         an_stop()
 *
 * so that for any two children f, g that stay runnable, |W_f/r_f - W_g/r_g| never exceeds
 * l_f/r_f + l_g/r_g, l being the longest quantum of each ([1], theorem 1).
 *
 * What a class is given at a pick is a *quantum*: it ends when it is used up, when the class has
 * nothing more to run, or when another class that has woken should have the CPU. A task that
 * blocks does not end the quantum of its class if another one of the same class is queued;
 * an_continue() takes that one, at a cost that does not depend on the depth.
 *
 * On several CPUs a pick is made while earlier quanta still last. Each CPU that serves a node
 * counts as one expected quantum on top of its start tag (an_expected_start()); otherwise every
 * CPU would pick the same class. On one CPU that term is always nothing at the time of a pick, and
 * the rules are those of [1] to the letter. Two bounds keep a class that cannot use its share, or
 * gets more because others may not use a CPU, from being owed or owing without limit
 * (an_node_ready(), an_child_picked()); on one CPU neither ever acts.
 *
 * The life of a pick, as the shell drives it, under the tree's lock:
 *
 *      an_queue_add(leaf) --> an_pick() --> [the kernel gives us a task] --> an_stop(leaf, l)
 *                                |                    |         ^
 *                                |                    `---------' an_continue(leaf)
 *                                `--> [none this CPU may run] --> an_unpick(leaf),
 * an_unusable_by(); pick again
 *
 * Cost, d the depth of the leaf and k the ready siblings on each level: everything O(d), and
 * an_pick() besides O(log k) on each level, and for each node that has changed since the last one
 * (order.h). an_continue() is O(1), and an_queue_add() to a leaf that is ready, or is served on the
 * only CPU. an_forgive() is O(k log k), but acts at most once in k quanta, unless some siblings are
 * much heavier than most.
 *
 * Ties go to the lower index. [1]: see tree.h.
 */
#ifndef ANDANTE_CORE_HSFQ_H
#define ANDANTE_CORE_HSFQ_H

#include "confined.h"

/*
 * CPUs that may not run whatever is queued pick among the nodes that are usable by them: a bit for
 * each CPU (an_node.usable_by), set where a task is queued that it may run, and taken back when it
 * has found none. So each is wrong for one pick at most, however many leaves hold nothing for a
 * CPU. An argument `by` is one of these bits, or several where somebody is queued; 0: whatever is
 * ready is usable.
 */

/* The leaf, and what is above it, is usable by these CPUs: a task that they may run is queued. */
an_inline void an_usable_by(struct an_tree *t, u32 leaf, u64 by)
{
	u32 index = leaf;

	an_while(index && (an_node(t, index)->usable_by & by) != by) {
		struct an_node *n = an_node(t, index);

		n->usable_by |= by;
		an_unsettle(t, index);
		index = n->counted_by;
	}
}

/* Those CPUs have found nothing in the leaf, and nothing has been queued since they looked. */
an_inline void an_unusable_by(struct an_tree *t, u32 leaf, u64 by)
{
	an_node(t, leaf)->usable_by &= ~by;
}

/* Quanta that a class must be owed in a domain before a task of it is pulled there. */
#define AN_PULL_QUANTA 4

/* Quanta that a class is owed at most: one for each CPU, and with several domains at least as many
 * as make that one of its tasks is pulled. */
an_inline u32 an_owed_quanta(const struct an_tree *t)
{
	return t->cpus > t->own_cpus && t->cpus < AN_PULL_QUANTA ? AN_PULL_QUANTA : t->cpus;
}

/*
 * A node that is idle wakes: it is owed nothing, for it has slept; unless it only makes way
 * (an_queue_gives_way()), or has been served in another domain lately (an_domain_wakes()).
 */
an_inline void an_node_wakes(struct an_tree *t, struct an_node *n)
{
	u64 vtime = an_node(t, n->parent)->vtime;

	an_tag_wake(&n->start, &n->rem, n->back ? vtime - an_owed_quanta(t) * n->step : vtime);
	n->back = 0;
}

/*
 * A node that had nothing queued has again. If CPUs serve it already (some, but not as many as its
 * weight asks for) what it could not use is forgotten, up to some quanta.
 */
an_inline void an_node_ready(struct an_tree *t, u32 index)
{
	struct an_node *n = an_node(t, index);
	u64 vtime = an_node(t, n->parent)->vtime;
	u64 owed_max = n->step * an_owed_quanta(t);

	n->owes = 0;
	if (!n->serving)
		an_node_wakes(t, n);
	else if (an_tag_diff(vtime, an_expected_start(n)) > (s64)owed_max) {
		n->start = vtime - owed_max - n->step * n->serving;
		an_was_left_behind(t, index);
	}
	an_unsettle(t, index);
}

/* The leaf may be picked from now on; every ancestor counts it, up to one that is throttled. */
an_outline void an_leaf_ready(struct an_tree *t, u32 leaf)
{
	u32 index = leaf;
	u64 usable_by = 0; /* by whom what is below is */

	an_while(index) {
		struct an_node *n = an_node(t, index);

		if (usable_by & ~n->usable_by) {
			n->usable_by |= usable_by;
			an_unsettle(t, index);
		}
		usable_by = n->usable_by;
		if (!n->ready++ && n->counted_by)
			an_node_ready(t, index);
		index = n->counted_by;
	}
}

/* The leaf's queue is empty: it may not be picked any more. */
an_outline void an_leaf_unready(struct an_tree *t, u32 leaf)
{
	u32 index = leaf;

	an_while(index) {
		struct an_node *n = an_node(t, index);

		if (!--n->ready)
			an_unsettle(t, index);
		index = n->counted_by;
	}
}

/* One more task is queued in the leaf, which is n. */
an_inline void an_queue_grow(struct an_tree *t, u32 leaf, struct an_node *n)
{
	if (n->kind != AN_LEAF)
		return;
	n->queue_events++;
	n->queued++;
	if (!n->ready && !(n->serving && t->cpus == 1))
		an_leaf_ready(t, leaf);
}

/*
 * A task has been queued in the leaf: on waking, or after its quantum. While the only CPU serves
 * the leaf nobody can pick it, so that its ancestors need not know before an_stop().
 */
an_inline void an_queue_add(struct an_tree *t, u32 leaf)
{
	an_queue_grow(t, leaf, an_node(t, leaf));
}

/* The same of a task that these CPUs may run. */
an_inline void an_queue_add_by(struct an_tree *t, u32 leaf, u64 by)
{
	struct an_node *n = an_node(t, leaf);

	if (!an_node_usable(n, by))
		an_usable_by(t, leaf, by);
	an_queue_grow(t, leaf, n);
}

/* The leaf, which is n, has only so many tasks queued. */
an_inline void an_queue_shrink(struct an_tree *t, u32 leaf, struct an_node *n, u32 queued)
{
	n->queued = queued;
	if (!queued && n->ready)
		an_leaf_unready(t, leaf);
}

/*
 * Corrects the number of tasks queued in the leaf, when the shell knows better. Never more than
 * was believed.
 */
an_inline void an_queue_correct(struct an_tree *t, u32 leaf, u32 queued)
{
	struct an_node *n = an_node(t, leaf);

	if (queued < n->queued)
		an_queue_shrink(t, leaf, n, queued);
}

/*
 * A task that was queued and not picked is queued no more: it left, or it never really was. False
 * if there was none.
 */
an_inline bool an_queue_withdraw(struct an_tree *t, u32 leaf)
{
	struct an_node *n = an_node(t, leaf);

	if (!n->queued)
		return false;
	an_queue_shrink(t, leaf, n, n->queued - 1);
	return true;
}

/*
 * The task of the leaf that runs here has to make way, after it competed as if it were queued. It
 * will be queued in a moment. The leaf, and the nodes above it, may be idle until then, but they
 * have not slept: when they wake they are owed what they are owed now (an_node_wakes()).
 */
an_outline void an_queue_gives_way(struct an_tree *t, u32 leaf)
{
	u32 index = leaf;

	an_queue_withdraw(t, leaf);
	an_while(index && !an_node_runnable(an_node(t, index))) {
		an_node(t, index)->back = 1;
		index = an_node(t, index)->parent;
	}
}

/*
 * Takes so much off what children owe to those that a CPU may not serve: off all who owe as much,
 * whether that CPU may serve them or not. So what they owe each other stays, or the lightest of
 * them would never be picked, and who is given as much elsewhere would fall behind.
 */
an_outline void an_forgive(struct an_tree *t, u32 parent, u64 excess)
{
	u64 vtime = an_node(t, parent)->vtime;
	u32 at;

	an_order_dissolve(t, parent);
	at = t->unsettled;
	an_while(at != AN_ROOT) {
		struct an_node *n = an_node(t, at);

		if (an_tag_diff(n->place.start, vtime) >= (s64)excess)
			n->start -= excess;
		at = n->unsettled;
	}
}

/*
 * The usable child with the least expected start tag, or AN_NONE. v of the parent becomes the
 * least of *all* ready children, usable or not: a CPU that only some may use must not drive v past
 * those that wait for the others.
 */
an_inline u32 an_least_child(struct an_tree *t, u32 parent, u64 by)
{
	struct an_node *p = an_node(t, parent);
	u32 first = an_order_first(t, parent), best;

	if (!first)
		return AN_NONE;
	p->vtime = an_tag_max(p->vtime, an_node(t, first)->place.start);
	if (an_node_usable(an_node(t, first), by))
		return first;
	best = an_order_usable(t, parent, by);
	if (best)
		an_passed_over(t, parent, first, best);
	return best;
}

/*
 * That child is picked. If it owes more than two quanta for each CPU, all who owe as much are
 * forgiven down to one: all must be looked at for that, which is not to happen with every pick.
 */
an_inline void an_child_picked(struct an_tree *t, u32 parent, u32 child)
{
	struct an_node *n = an_node(t, child);
	u64 owing_max = 2 * n->step * t->cpus;
	s64 excess = an_tag_diff(n->place.start, an_node(t, parent)->vtime) - (s64)owing_max;

	n->owes = 0;
	if (excess > 0)
		an_forgive(t, parent, excess + owing_max / 2);
}

/* One more CPU serves the leaf and everything above it. If it has claimed the last task queued
 * there, the leaf is ready no more. */
an_inline void an_serve(struct an_tree *t, u32 leaf, bool last)
{
	u32 index = leaf, less = last;

	an_while(index) {
		struct an_node *n = an_node(t, index);

		n->serving++;
		n->ready -= less;
		less = n->counted_by ? less : 0;
		an_unsettle(t, index);
		index = n->parent;
	}
}

/* One task of the leaf's queue is taken to be gone, and one CPU to be serving it. */
an_inline u32 an_claim(struct an_tree *t, u32 leaf)
{
	struct an_node *n = an_node(t, leaf);

	if (!leaf || !n->queued)
		return AN_NONE;
	an_serve(t, leaf, !--n->queued);
	return leaf;
}

/*
 * No ready child of this inner node is usable by them, so that it is not either: the pick goes on
 * in the one above, which is returned, or AN_NONE.
 */
an_inline u32 an_nothing_usable(struct an_tree *t, u32 index, u64 by)
{
	struct an_node *n = an_node(t, index);

	n->usable_by &= ~by;
	return n->parent;
}

/* Down from this node to the leaf that is next. AN_NONE: none that is usable has a task queued. */
an_inline u32 an_descend(struct an_tree *t, u32 from, u64 by)
{
	u32 index = from;

	an_while(index && an_node(t, index)->kind == AN_INNER) {
		u32 best;

		an_settle(t);
		best = an_least_child(t, index, by);
		if (best)
			an_child_picked(t, index, best);
		index = best ? best : an_nothing_usable(t, index, by);
	}
	return index;
}

/*
 * The leaf whose task is to run next, or AN_NONE if none that is usable has a task queued. It is
 * claimed, until an_stop() or an_unpick().
 */
an_outline u32 an_pick(struct an_tree *t, u64 by)
{
	return an_claim(t, an_descend(t, AN_ROOT, by));
}

/*
 * Takes another task of the leaf that this CPU serves already, within the same quantum. False if
 * there is none: then the quantum is over.
 */
an_inline bool an_continue(struct an_tree *t, u32 leaf)
{
	return an_queue_withdraw(t, leaf);
}

/*
 * A task of the leaf runs without having been picked: on an idle CPU, or by the kernel's order.
 * Returned is the leaf that is served now: AN_NONE if this is one no more.
 */
an_outline u32 an_serve_unpicked(struct an_tree *t, u32 leaf)
{
	u32 index = leaf;

	if (an_node(t, leaf)->kind != AN_LEAF)
		return AN_NONE;
	an_while(index) {
		struct an_node *n = an_node(t, index);

		if (!an_node_runnable(n) && n->parent)
			an_node_wakes(t, n);
		n->serving++;
		an_unsettle(t, index);
		index = n->parent;
	}
	return leaf;
}

/*
 * One CPU stops serving the leaf. With charge, every node on the path is charged service_ns
 * (at least 1). Nodes that end up with nothing to run go idle; those removed meanwhile are freed.
 */
an_inline void an_leave(struct an_tree *t, u32 leaf, u64 service_ns, bool charge)
{
	u32 index = leaf;

	an_while(index) {
		struct an_node *n = an_node(t, index);
		u32 parent = n->parent;
		struct an_node *p = an_node(t, parent);

		n->serving--;
		an_unsettle(t, index);
		if (charge) {
			n->service_ns += service_ns;
			if (parent) {
				an_tag_charge(&n->start, &n->rem, service_ns, n->weight);
				p->max_finish = an_tag_max(p->max_finish, n->start);
			}
		}
		if (n->kind == AN_INNER && !an_node_runnable(n))
			n->vtime = an_tag_max(n->vtime, n->max_finish);
		if (n->kind == AN_DEAD && !n->serving)
			an_node_free(t, index);
		index = parent;
	}
}

/*
 * The quantum that the CPU was picked for is over, after service_ns. If a task of the leaf goes on
 * wanting to run, queue it first (an_queue_add()): a class must not look idle between two quanta,
 * or the idle rule would move v.
 */
an_outline void an_stop(struct an_tree *t, u32 leaf, u64 service_ns)
{
	struct an_node *n = an_node(t, leaf);

	if (n->queued && !n->ready)
		an_leaf_ready(t, leaf);
	an_leave(t, leaf, service_ns, true);
}

/* Quanta by which a class may be ahead of its siblings for what it was given without a pick. */
#define AN_DEBT_QUANTA 8

/*
 * Service that was not picked (under a contract, before all shares) has been charged to the leaf
 * and to everything above it. They owe it to their siblings, but no more than so much at a time: it
 * grows only from one pick to the next. What is in a class beside a contract of more than the
 * class's share would never have its turn otherwise; so it has an eighth of that share.
 */
an_outline void an_debt_limit(struct an_tree *t, u32 leaf)
{
	u32 index = leaf;

	an_while(index) {
		struct an_node *n = an_node(t, index);
		u64 vtime = an_node(t, n->parent)->vtime;
		u64 owed_max = AN_DEBT_QUANTA * n->step * t->cpus;
		s64 left = an_tag_diff(n->owed_to, vtime);

		if (n->parent && n->kind != AN_FREE) {
			an_unsettle(t, index);
			/* It has been picked since, or had nothing to be picked for; if v has come
			 * as far and it has not, it is still the next one. */
			if (!n->owes || left > (s64)owed_max)
				n->owed_to = vtime + owed_max;
			n->owes = 1;
			if (an_tag_diff(n->start, n->owed_to) > 0)
				n->start = n->owed_to;
		}
		index = n->parent;
	}
}

/* The pick found no task to run on this CPU: as if it had not been. */
an_outline void an_unpick(struct an_tree *t, u32 leaf)
{
	struct an_node *n = an_node(t, leaf);

	an_queue_add(t, leaf);
	if (n->queued && !n->ready) /* one removed meanwhile takes nothing back */
		an_leaf_ready(t, leaf);
	an_leave(t, leaf, 0, false);
}

/*
 * This CPU, of those in confined_by, has picked that leaf. Returned is the one that it serves
 * instead: of a class that is behind, or the same. Apart from an_pick(), which so is as quick to
 * verify for the kernel as to run.
 */
an_outline u32 an_pick_behind(struct an_tree *t, u32 leaf, u64 by)
{
	u32 first;

	an_unpick(t, leaf);
	first = an_confined_first(t, leaf, by);
	if (first)
		leaf = an_descend(t, first, by);
	return an_claim(t, leaf);
}

/* As an_preempt_after_ns() has it, of the two siblings where the paths part. */
an_inline u64 an_branch_preempts_after_ns(struct an_tree *t, u32 woken, u32 serving)
{
	const struct an_node *w = an_node(t, woken), *s = an_node(t, serving);
	s64 ahead;

	/* Its own service is known, not expected: leave one quantum out of its expected start. */
	ahead = an_tag_diff(an_expected_start(w), an_expected_start(s) - s->step);
	return ahead <= 0 ? 0 : an_tag_service_ns(ahead, s->weight);
}

/*
 * How much longer the task in service must have run before the one that has just woken should
 * take its place [ns since the service began]: when the start tag of its branch, charged for what
 * it has used, reaches that of the waker's branch. Branches are compared where the paths of the
 * two leaves part. Not for two of the same leaf: their order is a matter of an_task.
 */
an_outline u64 an_preempt_after_ns(struct an_tree *t, u32 woken, u32 serving)
{
	an_part(t, &woken, &serving);
	return an_branch_preempts_after_ns(t, woken, serving);
}

#endif
