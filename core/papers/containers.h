/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Resource containers: a hierarchy of shares for activities, as RCLinux schedules it.
 *
 * A container is what pays ([1]): work is charged to it, whichever process does it. Containers form
 * a tree. One has a *fixed* share of what its parent is allotted, or *shares* by weight, with
 * siblings of its kind, what nobody else took; unlike in [1] it may hold tasks and containers
 * ([2]).
 *
 *      root, a round at a time             a container with an allotment gives it, in this order,
 *       ├── fixed 16 %                       1. to its fixed children, a turn each: their share of
 *       ├── fixed 32 %                          the whole allotment
 *       ├── tasks of its own                 2. to its own tasks, one after the other: the rest
 *       └── shared, weight 1                 3. to its shared children, a turn each: the rest by
 *            └── tasks                          weight
 *
 * and passes control up when it has used its allotment or nobody is left that has not had a turn
 * (rc_schedule() of [2, section 2.4]). Passing up adds what was used to the parent's account and
 * clears the child's (update()). At the root a new round begins (rc_root_schedule()).
 *
 * What was used is measured exactly; when the CPU changes hands is another matter. In *ticked*
 * mode, as published, an allotment ends at the first tick that finds it used up, so every turn is
 * of whole ticks; in *exact* mode it ends to the ns.
 *
 * Inferred, since [2] gives neither figures nor source for these. Together they come near all its
 * CPU experiments, with what tests/containers.c says it assumes of the workloads:
 *   - a round of 50 ms, five ticks. Then p % rounds up to 1 1 2 2 3 3 4 4 5 ticks for 10 … 90 %,
 *     which is Table 2's staircase: 4.7 5.2 10 10.4 15.1 15.5 19.9 20.7 25.3 frames/s;
 *   - work conserving: a turn given up is nobody's, the round just ends sooner. Two with 16 % each
 *     and nobody else got 49.5 % each;
 *   - a fixed child is allotted its share even if the rest is less (it is a guarantee), and shares
 *     are of all siblings, runnable or not (the parent keeps their sums);
 *   - who was left out when an allotment ended is first in the next: each list of children has a
 *     "next". Otherwise 48, 32 and 16 % in this order would starve the last.
 *
 * Left out: scheduling classes above time-sharing, loadable functions per container, other parents
 * for a container once created. One CPU.
 *
 * The shell keeps a queue of tasks for each container, and its part is:
 *
 *      a task wants to run      an_containers_queue_add(), and pick if the CPU idles
 *      it does no more          _charge(), an_containers_queue_remove(), pick
 *      pick                     an_containers_pick(): serve that container's first task, for
 *                               an_containers_slice_ns() at most
 *      the slice is over        _charge(), queue the task behind the others, pick
 *      the clock strikes        (ticked) _charge(); if an_containers_tick(), as if the slice were
 *                               over
 *
 * A task in service goes on counting as one that wants to run. All under the shell's lock.
 *
 * [1] G. Banga, P. Druschel, J. Mogul: Resource Containers: A New Facility for Resource Management
 *     in Server Systems. OSDI 1999.
 * [2] M. Alicherry, K. Gopinath: Predictable Management of System Resources for Linux. FREENIX
 * 2001.
 */
#ifndef ANDANTE_CORE_CONTAINERS_H
#define ANDANTE_CORE_CONTAINERS_H

#include "container_tree.h"

/* ---- who wants to run ---- */

/* A task of the container begins to want to run. */
an_outline void an_containers_queue_add(struct an_containers *cs, u32 id)
{
	struct an_container *c = an_container(cs, id);

	if (c->tasks++)
		return;
	an_while(++c->ready == 1 && c->parent)
		c = an_container(cs, c->parent);
}

/* A task of the container wants to run no more; it has been charged. */
an_outline void an_containers_queue_remove(struct an_containers *cs, u32 id)
{
	struct an_container *c = an_container(cs, id);

	an_assert(c->tasks);
	if (--c->tasks)
		return;
	an_while(--c->ready == 0 && c->parent)
		c = an_container(cs, c->parent);
}

/* ---- turns ---- */

/* The next child of a kind that is runnable and has not had its turn in this allotment. */
an_inline u32 an_container_next(struct an_containers *cs, struct an_container *c, u32 kind)
{
	struct an_container_list *l = an_container_children(c, kind);
	u32 at = l->next ? l->next : l->first, i = 0;

	an_while(i < l->count) {
		struct an_container *child = an_container(cs, at);

		if (child->served_turn != c->turn && an_container_runnable(child))
			return at;
		at = child->sibling ? child->sibling : l->first;
		i++;
	}
	return AN_CONTAINER_NONE;
}

/* Gives a child its turn: an allotment, never of nothing, since that could not be used up. */
an_inline void an_container_allot(struct an_containers *cs, struct an_container *c, u32 id)
{
	struct an_container *child = an_container(cs, id);
	struct an_container_list *l = an_container_children(c, child->kind);
	u64 of_ns = c->allotted_ns;
	u32 whole = AN_CONTAINER_WHOLE;

	if (child->kind == AN_CONTAINER_SHARED) {
		if (c->rest_turn != c->turn) {
			c->rest_turn = c->turn;
			c->rest_ns = c->allotted_ns - c->used_ns;
		}
		of_ns = c->rest_ns;
		whole = l->sum ? l->sum : 1;
	}
	child->allotted_ns = of_ns * child->share / whole;
	if (!child->allotted_ns)
		child->allotted_ns = 1;
	child->served_turn = c->turn;
	child->turn++;
	l->next = child->sibling;
	cs->current = id;
}

/* update() of [2], and control to the parent; at the root, a new round. */
an_inline void an_containers_leave(struct an_containers *cs)
{
	struct an_container *c = an_container(cs, cs->current);

	if (!c->parent) {
		c->used_ns = 0;
		c->allotted_ns = cs->round_ns;
		c->turn++;
		cs->current = AN_CONTAINER_ROOT;
		return;
	}
	an_container(cs, c->parent)->used_ns += c->used_ns;
	c->used_ns = c->allotted_ns = 0;
	cs->current = c->parent;
}

/*
 * The container whose first task is to be served, or AN_CONTAINER_NONE if nobody wants to run. All
 * that was used so far has been charged.
 */
an_outline u32 an_containers_pick(struct an_containers *cs)
{
	u32 steps = 0;

	(void)steps; /* BPF counts the steps itself and does not assert */
	an_while(an_container_runnable(an_container(cs, AN_CONTAINER_ROOT))) {
		struct an_container *c = an_container(cs, cs->current);
		u32 child = AN_CONTAINER_NONE;

		an_assert(++steps <= AN_CONTAINERS_STEPS);
		if (c->used_ns < c->allotted_ns) {
			child = an_container_next(cs, c, AN_CONTAINER_FIXED);
			if (!child && c->tasks)
				return cs->current;
			if (!child)
				child = an_container_next(cs, c, AN_CONTAINER_SHARED);
		}
		if (child)
			an_container_allot(cs, c, child);
		else
			an_containers_leave(cs);
	}
	return AN_CONTAINER_NONE;
}

/* ---- accounting ---- */

/*
 * The container pays for ran_ns. One whose turn it is not, for work done on its behalf, pays out of
 * its next turn; what exceeds that is forgiven, as update() clears the account.
 */
an_outline void an_containers_charge(struct an_containers *cs, u32 id, u64 ran_ns)
{
	struct an_container *c = an_container(cs, id);

	if (!an_container_exists(cs, id))
		return;
	c->used_ns += ran_ns;
	c->total_ns += ran_ns;
	an_while(c->parent) {
		c = an_container(cs, c->parent);
		c->total_ns += ran_ns;
	}
}

/* How long the container just picked may be served in one go. Never 0; ticked: until a tick ends
 * it. */
an_inline u64 an_containers_slice_ns(struct an_containers *cs, u32 id)
{
	const struct an_container *c = an_container(cs, id);

	if (cs->tick_ns)
		return AN_ENDLESS_NS;
	return c->used_ns < c->allotted_ns ? c->allotted_ns - c->used_ns : 1;
}

/* The clock strikes (ticked) while the container is served, charged to the instant: pick again? */
an_inline bool an_containers_tick(struct an_containers *cs, u32 id)
{
	const struct an_container *c = an_container(cs, id);

	return cs->tick_ns && c->used_ns >= c->allotted_ns;
}

/*
 * Removes a container. False if it is the root or the system's, has children, or has tasks that
 * want to run; the shell sees to it that no others are bound to it.
 */
an_outline bool an_containers_remove(struct an_containers *cs, u32 id)
{
	struct an_container *c = an_container(cs, id);

	if (!an_container_exists(cs, id) || id <= AN_CONTAINER_SYSTEM || c->tasks ||
	    c->children[AN_CONTAINER_FIXED].count || c->children[AN_CONTAINER_SHARED].count)
		return false;
	if (cs->current == id)
		an_containers_leave(cs);
	an_container_unlink(cs, id);
	an_container_clear(c, AN_CONTAINER_UNUSED, 0);
	cs->count--;
	return true;
}

#endif
