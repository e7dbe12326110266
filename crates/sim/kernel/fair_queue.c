/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One queue of the stock scheduler: EEVDF [1], as kernel/sched/fair.c of Linux 7.2 has it.
 *
 * Every member i has a weight w_i, and a virtual time v_i at which it has been served: ns over
 * weight. V is the mean of all v_i, by weight; w_i (V - v_i) is the lag of i, what it is owed. Who
 * is owed nothing is not served. Of the others the earliest virtual deadline is first: v_i, when
 * the request began, and a slice over w_i. Once in service it is protected until that deadline
 * (RUN_TO_PARITY; all slices are of one length here, so PREEMPT_SHORT never applies), or until it
 * is owed nothing.
 *
 * V and what depends on it take two sums, over those that wait, that are kept up to date; to choose
 * takes a look at each of those that wait, where the kernel has a tree.
 *
 * [1] I. Stoica, H. Abdel-Wahab, *Earliest Eligible Virtual Deadline First*, Old Dominion
 * University TR-95-22, 1995.
 */
#include "model.h"

/* sysctl_sched_base_slice, get_update_sysctl_factor(): 0.7 ms, times 1 + log2 of the CPUs, of at
 * most eight [ns]. */
u64 fair_slice_ns(void)
{
	u32 cpus = m.options.cpus < 8 ? m.options.cpus : 8, steps = 1;

	while (cpus >>= 1)
		steps++;
	return 700000ULL * steps;
}

/* calc_delta_fair() */
u64 fair_virtual_ns(const struct fair_entity *e, u64 ns)
{
	return (ns * FAIR_NICE_0_WEIGHT << FAIR_WEIGHT_SHIFT) / e->weight;
}

static s64 key_of(const struct fair_queue *q, const struct fair_entity *e)
{
	return (s64)(e->vruntime - q->zero);
}

/* Whoever is in service counts as well, as long as it has not left. */
static void sums_of(const struct fair_queue *q, s64 *sum, s64 *weights)
{
	*sum = q->sum;
	*weights = q->weights;
	if (q->curr && q->curr->on_rq) {
		*sum += key_of(q, q->curr) * (s64)q->curr->weight;
		*weights += (s64)q->curr->weight;
	}
}

static void move_zero(struct fair_queue *q, s64 by)
{
	q->sum -= q->weights * by;
	q->zero += (u64)by;
}

static s64 floor_div(s64 a, s64 b)
{
	return a / b - (a % b < 0);
}

/* avg_vruntime(): the mean, rounded so that it is owed service itself. */
u64 fair_mean(struct fair_queue *q)
{
	s64 sum, weights;

	sums_of(q, &sum, &weights);
	if (weights)
		move_zero(q, floor_div(sum, weights));
	return q->zero;
}

/* entity_eligible(): v <= V */
bool fair_is_eligible(const struct fair_queue *q, const struct fair_entity *e)
{
	s64 sum, weights;

	sums_of(q, &sum, &weights);
	return sum >= (__int128)key_of(q, e) * weights;
}

/* protect_slice() */
bool fair_is_protected(const struct fair_entity *e)
{
	return (s64)(e->vruntime - e->protected_until) < 0;
}

/* entity_lag(): within a slice and a tick, in both directions */
static s64 lag_of(const struct fair_entity *e, u64 mean)
{
	s64 most = (s64)fair_virtual_ns(e, fair_slice_ns() + m.options.tick_ns);
	s64 lag = (s64)(mean - e->vruntime);

	return lag > most ? most : lag < -most ? -most : lag;
}

/* update_entity_lag(); of one that is delayed it does not grow, and is not above zero (DELAY_ZERO).
 * True: it is not what its vruntime says any more. */
bool fair_update_lag(struct fair_queue *q, struct fair_entity *e)
{
	u64 mean = fair_mean(q);
	s64 lag = lag_of(e, mean);

	if (e->delayed) {
		lag = lag > e->lag ? lag : e->lag;
		lag = lag < 0 ? lag : 0;
	}
	e->lag = lag;
	return mean - (u64)lag != e->vruntime;
}

/* ---- those that wait ---- */

/* __enqueue_entity() */
void fair_waits(struct fair_queue *q, struct fair_entity *e)
{
	static u64 orders;

	q->sum += key_of(q, e) * (s64)e->weight;
	q->weights += (s64)e->weight;
	e->order = ++orders;
	e->place = q->waiting;
	model_room_for(q->entity, q->waiting, q->room);
	q->entity[q->waiting++] = e;
}

/* __dequeue_entity() */
void fair_waits_no_more(struct fair_queue *q, struct fair_entity *e)
{
	struct fair_entity *last = q->entity[--q->waiting];

	model_assert(e->queue == q && (last == e || q->entity[e->place] == e));
	q->sum -= key_of(q, e) * (s64)e->weight;
	q->weights -= (s64)e->weight;
	last->place = e->place;
	q->entity[e->place] = last;
}

/* place_entity(): it has the lag with which it left; a new one begins with half a slice. */
void fair_place(struct fair_queue *q, struct fair_entity *e, bool is_new)
{
	u64 mean = fair_mean(q), slice = fair_virtual_ns(e, fair_slice_ns());
	bool is_heavy = false;
	s64 sum, weights, lag = 0;

	if (q->queued && e->lag) {
		sums_of(q, &sum, &weights);
		weights = weights ? weights : 1;
		/* Its arrival moves the mean: the lag is to be what it was, after that. */
		lag = (s64)((__int128)e->lag * (weights + (s64)e->weight) / weights);
		is_heavy = (s64)e->weight > weights;
	}
	e->vruntime = mean - (u64)lag;
	if (is_heavy) /* the mean will be near it */
		move_zero(q, -lag);
	if (e->deadline_is_relative) {
		e->deadline += e->vruntime;
		e->deadline_is_relative = false;
		return;
	}
	e->deadline = e->vruntime + slice / (is_new ? 2 : 1);
}

static s64 rescaled(s64 virtual_ns, u64 from, u64 to)
{
	return (s64)((__int128)virtual_ns * (s64)from / (s64)to);
}

/* rescale_entity(): distances in virtual time are to be the same distances in time. */
static void rescale(struct fair_entity *e, u64 weight)
{
	e->lag = rescaled(e->lag, e->weight, weight);
	e->load.average = (u64)rescaled((s64)e->load.average, e->weight, weight);
	if (e->deadline_is_relative)
		e->deadline = (u64)rescaled((s64)e->deadline, e->weight, weight);
}

/* reweight_entity(). The caller has brought the one in service up to date. */
void fair_reweigh(struct fair_queue *q, struct fair_entity *e, u64 weight)
{
	bool in_service, is_protected;
	u64 mean;

	if (!e->on_rq) {
		rescale(e, weight);
		e->weight = weight;
		return;
	}
	in_service = q->curr == e;
	mean = fair_mean(q);
	is_protected = in_service && fair_is_protected(e);
	if (!in_service)
		fair_waits_no_more(q, e);
	fair_counts(q, e, false);
	e->lag = lag_of(e, mean);
	e->deadline -= mean;
	e->deadline_is_relative = true;
	if (is_protected)
		e->protected_until =
			mean + (u64)rescaled((s64)(e->protected_until - mean), e->weight, weight);
	rescale(e, weight);
	e->weight = weight;
	e->deadline += mean;
	e->deadline_is_relative = false;
	e->vruntime = mean - (u64)e->lag;
	fair_counts(q, e, true);
	if (!in_service)
		fair_waits(q, e);
}

/* ---- who is next ---- */

static bool comes_before(const struct fair_entity *a, const struct fair_entity *b)
{
	return !b || (s64)(a->deadline - b->deadline) < 0 ||
	       (a->deadline == b->deadline && a->order < b->order);
}

/* Of those that wait and are owed service, the earliest deadline. */
static struct fair_entity *earliest(const struct fair_queue *q)
{
	struct fair_entity *best = NULL;
	s64 sum, weights, most;

	sums_of(q, &sum, &weights);
	most = weights ? floor_div(sum, weights) : 0;
	for (u32 at = 0; at < q->waiting; at++)
		if (key_of(q, q->entity[at]) <= most && comes_before(q->entity[at], best))
			best = q->entity[at];
	return best;
}

/* pick_eevdf() */
struct fair_entity *fair_pick_of(struct fair_queue *q, bool protect)
{
	struct fair_entity *curr = q->curr && q->curr->on_rq ? q->curr : NULL, *best;

	if (q->queued == 1)
		return curr ? curr : q->entity[0];
	if (protect && q->next && fair_is_eligible(q, q->next))
		return q->next;
	if (curr && !fair_is_eligible(q, curr))
		curr = NULL;
	if (curr && protect && fair_is_protected(curr))
		return curr;
	best = earliest(q);
	if (!best || (curr && (s64)(curr->deadline - best->deadline) < 0))
		best = curr;
	model_assert(best);
	return best;
}
