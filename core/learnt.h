/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Learnt contracts: what they may use of a CPU, and when their jobs are due. What is learnt of a
 * task, and offered to it, is learn.h's, which says why.
 */
#ifndef ANDANTE_CORE_LEARNT_H
#define ANDANTE_CORE_LEARNT_H

#include "contract.h"
#include "learn.h"

#define AN_LEARN_ROOM_NS (AN_BUCKET_NS / 2) /* while so much is left to all, there is room */

/* Does what it would be offered now differ so much from what it has that it matters? */
an_inline bool an_learnt_differs(const struct an_promise *p, const struct an_contract *c)
{
	return p->flags != c->promise.flags ||
	       an_apart(p->budget_ns, c->promise.budget_ns) >= c->promise.budget_ns / 8 ||
	       an_apart(p->deadline_rel_ns, c->job_rel_ns) >= c->job_rel_ns / 8;
}

/*
 * Part of this CPU that learnt contracts may be sure of: what is left of it for contracts when
 * those that were promised have all of theirs [1/1024]. They may use what those leave as well, but
 * not be sure of it.
 */
an_inline u32 an_learnt_bound(const struct an_contracts *cs, const struct an_contract_cpu *q)
{
	u64 promised = q->utilization >> (AN_UTILIZATION_SHIFT - 10);
	u32 left = cs->bound > promised ? cs->bound - promised : 0;

	return cs->bound && left < cs->learn_bound ? left : cs->learn_bound;
}

/* What all learnt contracts may use still of this CPU, by what they and those that were promised
 * have used [ns]. */
an_inline s64 an_learnt_common_ns(const struct an_contracts *cs, const struct an_contract_cpu *q,
				  u64 now_ns)
{
	return an_bucket_left_ns(&q->learnt, cs->learn_bound, AN_BUCKET_NS, now_ns);
}

/*
 * The contract is sure of what its task uses on average [1/1024], as far as others leave it that,
 * and at most of the level. That falls as long as somebody finds less left than it, so that those
 * who want most give way, each when it wakes.
 */
an_inline void an_learnt_assure(struct an_contracts *cs, struct an_contract *c, u32 part)
{
	struct an_contract_cpu *q = an_contract_cpu(cs, c->promise.cpu);
	u32 wanted = an_has(c, AN_UNAWAITED) ? 0 : an_learn_wanted(part), left;

	q->sure -= c->sure;
	c->part = part;
	left = an_learnt_bound(cs, q) > q->sure ? an_learnt_bound(cs, q) - q->sure : 0;
	if (wanted > q->level)
		wanted = q->level;
	c->sure = wanted < left ? wanted : left;
	q->sure += c->sure;
	if (c->sure < wanted)
		q->level -= q->level / AN_LEARN_AVERAGED;
	else if (q->level < 1024)
		q->level += q->level / AN_LEARN_AVERAGED + 1;
}

/* The contract is not sure of anything any more: others may be. */
an_inline void an_learnt_unsure(struct an_contracts *cs, struct an_contract *c)
{
	an_contract_cpu(cs, c->promise.cpu)->sure -= c->sure;
	c->sure = 0;
}

/*
 * One more contract is looked at, each in its turn: if it sleeps, and has for long (a compiler's
 * driver does, which waits for the compiler), others may be sure of what it was sure of. When it
 * wakes it has of that what is left then.
 */
an_inline void an_learnt_look_for_sleepers(struct an_contracts *cs, u64 now_ns)
{
	struct an_contract *c;

	cs->hand = cs->hand + 1 < cs->unused ? cs->hand + 1 : 1;
	c = an_contract(cs, cs->hand);
	if (!c->used || c->runnable || !an_has(c, AN_LEARNT) ||
	    now_ns < c->own.filled_ns + AN_LEARN_ASLEEP_NS)
		return;
	an_learnt_unsure(cs, c);
}

/*
 * How many learnt contracts have to give way, so that there is room for those of tasks that are
 * awake: a thousand threads that sleep would keep it all.
 */
an_inline u32 an_learnt_too_many(const struct an_contracts *cs)
{
	u32 most = cs->learnt_most - cs->learnt_free;

	return cs->learnt > most ? cs->learnt - most : 0;
}

/* May it give way? Its task gets another when it wakes, by what has been learnt of it. */
an_inline bool an_learnt_gives_way(const struct an_contracts *cs, const struct an_contract *c,
				   u64 now_ns)
{
	return c->used && an_has(c, AN_LEARNT) && c->started && !c->runnable &&
	       now_ns > c->own.filled_ns + cs->gives_way_ns;
}

/* A job of it arrives. Others may have left some of what it wants to be sure of. */
an_inline void an_learnt_wake(struct an_contracts *cs, struct an_contract *c, u64 now_ns)
{
	an_learnt_assure(cs, c, c->part);
	if (!an_has(c, AN_UNAWAITED) && c->sure < an_learn_wanted(c->part))
		an_learnt_look_for_sleepers(cs, now_ns);
	if (!c->started)
		c->own.filled_ns = now_ns;
	c->ran_ns = c->inherited_ns = 0;
}

/*
 * Is there room on that CPU for one more, which uses this part of it, where those that have been
 * taken used so much together, when they ran last [1/1024]? Some of them may have slept ever since,
 * as those do that wait for a compiler. So there is room as well while much is left in the bucket
 * that all may use: they use less than the bound.
 */
an_inline bool an_learnt_has_room(const struct an_contracts *cs, const struct an_contract_cpu *q,
				  u32 taken, u32 part, u64 now_ns)
{
	if (taken + part <= an_learnt_bound(cs, q))
		return true;
	return an_learnt_common_ns(cs, q, now_ns) > AN_LEARN_ROOM_NS;
}

/* What the bucket that all may use is left at by those that nobody seems to wait for [ns]. */
an_inline s64 an_learnt_leaves_ns(const struct an_contract *c)
{
	if (!an_has(c, AN_UNAWAITED))
		return 0;
	return c->part ? AN_LEARN_ROOM_NS : AN_LEARN_ROOM_NS + AN_LEARN_ROOM_NS / 2;
}

/* How long the contract may run, on what it is sure of or on what all may use [ns]. */
an_inline u64 an_learnt_left_ns(const struct an_contracts *cs, const struct an_contract_cpu *q,
				const struct an_contract *c, u64 now_ns)
{
	s64 own_ns = an_bucket_left_ns(&c->own, c->sure, c->promise.budget_ns, now_ns);
	s64 all_ns = an_learnt_common_ns(cs, q, now_ns) - an_learnt_leaves_ns(c);
	s64 left_ns = own_ns > all_ns ? own_ns : all_ns;

	return left_ns > 0 ? left_ns : 0;
}

/*
 * Could the contract run on that CPU now? What was promised there and cannot wait comes first, for
 * as long as it likes; and something must be left of what learnt ones may use, or of what this one
 * is sure of.
 */
an_inline bool an_learnt_would_run(const struct an_contracts *cs, const struct an_contract_cpu *q,
				   const struct an_contract *c, u64 now_ns)
{
	return !q->urgent && an_learnt_left_ns(cs, q, c, now_ns);
}

/* How long until either is worth running for, now that neither is [ns]. */
an_inline u64 an_learnt_wait_ns(const struct an_contracts *cs, const struct an_contract_cpu *q,
				const struct an_contract *c)
{
	u64 own_ns = an_bucket_wait_ns(&c->own, c->sure, AN_LEARN_REFILL_NS);
	u64 all_ns = an_bucket_wait_ns(&q->learnt, cs->learn_bound,
				       an_learnt_leaves_ns(c) + AN_LEARN_REFILL_NS);
	u64 wait_ns = own_ns < all_ns ? own_ns : all_ns;

	return wait_ns < AN_LEARN_WAIT_MAX_NS ? wait_ns : AN_LEARN_WAIT_MAX_NS;
}

/*
 * It has run for ran_ns, until now_ns. What it is not sure of it owes only when nothing is left
 * that all may use.
 */
an_inline void an_learnt_charge(const struct an_contracts *cs, struct an_contract_cpu *q,
				struct an_contract *c, u64 ran_ns, u64 now_ns)
{
	s64 own_ns = an_bucket_fill(&c->own, c->sure, c->promise.budget_ns, now_ns);
	s64 all_ns = an_bucket_fill(&q->learnt, cs->learn_bound, AN_BUCKET_NS, now_ns);

	c->ran_ns += ran_ns;
	q->learnt.left_ns = all_ns - (s64)ran_ns;
	own_ns -= ran_ns;
	if (own_ns < 0 && (all_ns > an_learnt_leaves_ns(c) || !c->sure))
		own_ns = 0;
	c->own.left_ns = own_ns;
}

/*
 * Promised contracts have had ran_ns of what they were promised, until now_ns: learnt ones may not
 * use that as well. Where these may use less than all contracts may (learn_bound, bound), the
 * difference is taken first.
 */
an_inline void an_learnt_gives(const struct an_contracts *cs, struct an_contract_cpu *q, u64 ran_ns,
			       u64 now_ns)
{
	u32 beside = cs->bound > cs->learn_bound ? cs->bound - cs->learn_bound : 0;
	s64 beside_ns = an_bucket_fill(&q->beside, beside, AN_BUCKET_NS, now_ns);
	s64 given_ns = (s64)ran_ns - beside_ns;

	if (given_ns <= 0) {
		q->beside.left_ns = -given_ns;
		return;
	}
	q->beside.left_ns = 0;
	an_bucket_fill(&q->learnt, cs->learn_bound, AN_BUCKET_NS, now_ns);
	q->learnt.left_ns -= given_ns;
	/* More than all of them may have is used only where nobody is held to it. */
	if (q->learnt.left_ns < -AN_BUCKET_NS)
		q->learnt.left_ns = -AN_BUCKET_NS;
}

/* The next power of two above so many, if these are fewer than 65,536. */
an_inline u64 an_doubled(u64 times)
{
	times |= times >> 1;
	times |= times >> 2;
	times |= times >> 4;
	times |= times >> 8;
	return times + 1;
}

/*
 * What the job in service is expected to need still [ns]. One that has taken longer than expected
 * is expected to take twice that, and so on: two such jobs would take the CPU from each other all
 * the time if what they need did not shrink while they run.
 */
an_inline u64 an_learnt_needs_ns(const struct an_contract *c)
{
	u64 job_ns = an_learn_job_ns(&c->promise);

	return an_doubled(c->ran_ns / job_ns) * job_ns - c->ran_ns;
}

/*
 * The deadline that the job in service has among learnt ones at this instant [ns]. With waiting it
 * comes nearer only as far as the contract is sure of what the job still needs: a job that lives on
 * what others leave is ordered as though that part of it had begun now, and so does not come before
 * shorter ones that keep to what they are sure of, however long it has waited for them. And it
 * comes no nearer than the job can be done: one long job that is late would make many short ones
 * late too, each of which can still be in time. What it has inherited stands until it has passed:
 * that deadline is of one that waits for this job, and was picked by it.
 */
an_inline u64 an_learnt_deadline_ns(const struct an_contract *c, u64 now_ns)
{
	s64 own_ns = an_bucket_left_ns(&c->own, c->sure, c->promise.budget_ns, now_ns);
	u64 needs_ns = an_learnt_needs_ns(c), least_ns = needs_ns, unsure_ns, deadline_ns;

	if (an_has(c, AN_UNAWAITED))
		return c->job_deadline_ns;
	/* A promised job that spills over, by no more than is expected, is as urgent as it was. */
	if (!an_has(c, AN_LEARNT) && c->ran_ns < an_learn_job_ns(&c->promise))
		return c->job_deadline_ns;
	if (own_ns < (s64)needs_ns) {
		unsure_ns = own_ns > 0 ? needs_ns - own_ns : needs_ns;
		unsure_ns = c->job_rel_ns * unsure_ns / an_learn_job_ns(&c->promise);
		if (unsure_ns > least_ns)
			least_ns = unsure_ns;
	}
	deadline_ns = now_ns + least_ns;
	if (c->job_deadline_ns > deadline_ns)
		deadline_ns = c->job_deadline_ns;
	if (c->inherited_ns > now_ns && c->inherited_ns < deadline_ns)
		deadline_ns = c->inherited_ns;
	return deadline_ns;
}

/*
 * How long the contract, which is served, keeps its place before those that wait now [ns]: up to
 * the end of the job as it is expected, for what that still needs shrinks at least as fast as time
 * goes on; and beyond it for as long again, but not for so short that looking is all that is done.
 * A deadline that is inherited is kept no longer than until it has passed.
 */
an_inline u64 an_learnt_keeps_ns(const struct an_contract *c, u64 now_ns)
{
	u64 keeps_ns = an_learnt_needs_ns(c);

	if (c->inherited_ns > now_ns && c->inherited_ns - now_ns < keeps_ns)
		keeps_ns = c->inherited_ns - now_ns;
	return keeps_ns > AN_LEARN_DISTANCE_MIN_NS ? keeps_ns : AN_LEARN_DISTANCE_MIN_NS;
}

#endif
