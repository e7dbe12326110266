/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The constant bandwidth server [1]: a contract that can never take more than C/T of the CPU from
 * others, whatever its jobs do.
 *
 * A server has a budget c and a deadline d, and competes by d. Its rules, numbered as in [1]:
 *
 *      1  running takes c down                                      an_contract_charge()
 *      2  c = 0: at once c = C, d = d + T. Soft: it never waits.    an_server_exhaust()
 *      3  a job arrives while one is in service: it queues          the caller's
 *      4  a job arrives at r, nothing in service: if c >= (d - r) C/T then d = r + T, c = C,
 *         else both stay as they are                                an_server_wake()
 *      5  a job ends: the next one goes on with (c, d)              an_contract_next_job()
 *
 * If the C/T of the servers on a CPU add up to 1 at most, a task that never needs more than C, nor
 * wakes more often than every T, is always done by its release + T (theorem 1 of [1]).
 *
 * AN_HARD is Linux's SCHED_DEADLINE [2]: on c <= 0 throttled until the next release (d, if D = T),
 * then c = c + C, d = d + T. Its wake-up rule is 4 with a strict >, and it knows D < T: there the
 * bandwidth in the comparison is the density C/D; a server that would have got a new deadline
 * before d is left with d, and with c cut to (d - r) C/D (Linux's "revised wake-up rule"); and one
 * that wakes after d waits for the release after it. A soft server with D < T that wakes in that
 * gap need not wait, but gets the deadline of that release. With D < T isolation asks for
 * densities that add up to 1, or for tasks that do not sleep within a job and an exact test.
 *
 * AN_SPILLS, of a hard one: while it is throttled it counts as learnt [learnt.h], and runs on what
 * all learnt ones may use together, behind what is promised and urgent. When that is empty (dry) it
 * has its share, as other hard ones do, until its next budget. So to be promised something is never
 * worse than not to be, for a thread that would have a learnt contract otherwise.
 *
 * A server that is in time waits for learnt contracts whose jobs are due before its deadline: a
 * promise is for its deadline, not for being first. So it waits until D' before d, and is urgent
 * from then on, until d: it comes before all that is learnt [3]. With D' = T U c/C, where U is the
 * sum of all C/T on the CPU, what each has left to do takes C/(T U) of the time from then on to d.
 * That adds up to 1, so that all are done by d (EDF, by density). Of the CPU the kernel takes a
 * part, so U is more by that (AN_KERNEL_PART). A server that has done some of its job may wait for
 * longer than one that has done nothing, and one with U = 1 waits for nobody. Where a contract's
 * own deadlines are nearer than its period, or are no servers', the sum says too little, and what
 * flexible ones may use of others' budgets is known of EDF alone: nobody waits where there is one
 * of these (strict).
 *
 * AN_EXHAUSTIVE is none of this: d = r + D, and c is not looked at.
 *
 * These functions change one contract and nothing else; the heaps are contracts.h's.
 *
 * [1] L. Abeni, G. Buttazzo: Integrating Multimedia Applications in Hard Real-Time Systems.
 *     RTSS 1998. Section 3.
 * [2] Linux, Documentation/scheduler/sched-deadline.rst, section 2.
 * [3] R. Davis, A. Wellings: Dual Priority Scheduling. RTSS 1995.
 */
#ifndef ANDANTE_CORE_CBS_H
#define ANDANTE_CORE_CBS_H

#include "contract.h"

/* The release that the present budget belongs to. */
an_inline u64 an_server_begin_ns(const struct an_contract *c)
{
	return c->deadline_ns - c->promise.deadline_rel_ns;
}

/* Is this more than a plain server, whose deadlines are a period apart? */
an_inline bool an_promise_is_strict(const struct an_promise *p)
{
	const u32 others = AN_WINDOW | AN_EXHAUSTIVE | AN_TASK_SERVER | AN_RECLAIM | AN_CATCH_UP;

	return p->flags & others || (p->deadline_rel_ns && p->deadline_rel_ns < p->period_ns);
}

/*
 * The part of a CPU that waiting servers leave to the kernel, for its interrupts and switches
 * [1/1024]. Beside a compiler those take 4: so much no class gets in the scenario film-make. Half
 * of 32 would do, or twice as much: of 300 draws of the family promises, all of them promised, 260,
 * 258, 254 and 247 are in time with 16, 32, 64 and 128.
 */
#define AN_KERNEL_PART 32

/* The server, which has budget, is urgent from then on [ns]. */
an_inline u64 an_server_urgent_ns(const struct an_contracts *cs, const struct an_contract_cpu *q,
				  const struct an_contract *c)
{
	u64 part = q->utilization + (s64)cs->kernel * (s64)(AN_UTILIZATION_ONE / 1024);
	u64 full_ns;
	u64 budget_ns = c->promise.budget_ns ? c->promise.budget_ns : 1;
	u64 left_ns = c->left_ns > 0 ? c->left_ns : 0;

	if (part >= AN_UTILIZATION_ONE)
		part = AN_UTILIZATION_ONE - 1;
	full_ns = c->promise.period_ns * part >> AN_UTILIZATION_SHIFT;
	if (left_ns > budget_ns)
		left_ns = budget_ns;
	return c->deadline_ns - full_ns * left_ns / budget_ns - 1;
}

/* May it wait for learnt ones, up to then? */
an_inline bool an_server_can_wait(const struct an_contracts *cs, const struct an_contract_cpu *q,
				  const struct an_contract *c)
{
	return cs->learn_bound && cs->bound && !q->strict && !an_has(c, AN_LEARNT) && !c->split &&
	       c->urgent_ns != c->deadline_ns &&
	       an_server_urgent_ns(cs, q, c) > an_server_begin_ns(c);
}

/*
 * The release that the next full budget belongs to: that of the present one, if nothing of it has
 * been used, else the one a period later.
 */
an_inline u64 an_server_release_ns(const struct an_contract *c)
{
	bool untouched = c->left_ns == (s64)c->promise.budget_ns;

	return an_server_begin_ns(c) + (untouched ? 0 : c->promise.period_ns);
}

/* Of the budget that has come, what contracts nested in this one have had already is used. */
an_inline void an_server_pay(struct an_contract *c)
{
	u64 most_ns = c->left_ns - 1; /* a budget that cannot be used is worth no case of its own */
	u64 pays_ns = c->owes_ns < most_ns ? c->owes_ns : most_ns;

	c->left_ns -= pays_ns;
	c->owes_ns -= pays_ns;
}

/* A full budget, and the deadline that goes with a release at this instant. */
an_inline void an_server_renew(struct an_contract *c, u64 release_ns)
{
	c->deadline_ns = release_ns + c->promise.deadline_rel_ns;
	c->left_ns = c->promise.budget_ns;
	c->throttled = 0;
	an_server_pay(c);
}

/* As many budgets, each a period later than the one before, as make c positive. */
an_inline void an_server_refill(struct an_contract *c)
{
	u64 budget_ns = c->promise.budget_ns ? c->promise.budget_ns : 1;
	u64 short_ns = c->left_ns > 0 ? 0 : -c->left_ns;
	u64 budgets = short_ns / budget_ns + 1;

	c->left_ns += budgets * budget_ns;
	c->deadline_ns += budgets * c->promise.period_ns;
	an_server_pay(c);
}

/* No budget until that instant, when an_contracts_expire() replenishes it. */
an_inline void an_server_throttle(struct an_contract *c, u64 until_ns)
{
	c->throttled = 1;
	c->dry = 0;
	c->due_ns = until_ns;
}

/* Rule 2, or throttling: c <= 0. */
an_inline enum an_rule an_server_exhaust(struct an_contract *c)
{
	c->overran = 1;
	c->exhaustions++;
	if (an_has(c, AN_HARD)) {
		an_server_throttle(c, an_server_release_ns(c));
		return AN_RULE_THROTTLED;
	}
	an_server_refill(c);
	return AN_RULE_POSTPONED;
}

/* Does it run on a budget that is not due yet? So a soft one does that has used up the one before.
 */
an_inline bool an_server_is_ahead(const struct an_contract *c, u64 now_ns)
{
	const u32 others = AN_HARD | AN_WINDOW | AN_EXHAUSTIVE | AN_TASK_SERVER;

	if (c->promise.flags & others || c->split)
		return false;
	return an_server_begin_ns(c) > now_ns;
}

/*
 * Is it throttled although it has budget? A soft one is, that is ahead, and a learnt one, for want
 * of what contracts may use of the CPU as a whole (an_contracts_overdrawn()).
 */
an_inline bool an_server_is_held_back(const struct an_contract *c)
{
	if (!c->throttled || c->split)
		return false;
	return !an_has(c, AN_HARD) || (an_has(c, AN_LEARNT) && c->left_ns > 0);
}

/* The throttled server's next budget. One that is far behind starts anew [2]. */
an_inline enum an_rule an_server_replenish(struct an_contract *c, u64 now_ns)
{
	c->throttled = 0;
	c->replenishments++;
	an_server_refill(c);
	if (c->deadline_ns <= now_ns)
		an_server_renew(c, now_ns);
	return AN_RULE_REPLENISHED;
}

/*
 * Rule 4's question, while d is ahead: could c, used by d, be more than the bandwidth allows?
 * c <= C, so beyond d - r = D it could not; below, both products fit.
 */
an_inline bool an_server_exceeds(const struct an_contract *c, u64 now_ns)
{
	u64 ahead_ns = c->deadline_ns - now_ns;
	u64 has, allowed;

	if (ahead_ns > c->promise.deadline_rel_ns)
		return false;
	has = (u64)c->left_ns * c->promise.deadline_rel_ns;
	allowed = ahead_ns * c->promise.budget_ns;
	return an_has(c, AN_HARD) ? has > allowed : has >= allowed;
}

/* Wakes after d, or for the first time. */
an_inline enum an_rule an_server_wake_late(struct an_contract *c, u64 now_ns)
{
	u64 release_ns = c->started ? an_server_release_ns(c) : now_ns;

	if (now_ns - c->deadline_ns >= c->promise.period_ns)
		c->owes_ns = 0; /* a budget that it has not used pays for all */
	if (release_ns <= now_ns) {
		an_server_renew(c, now_ns);
		return AN_RULE_RELEASED;
	}
	if (!an_has(c, AN_HARD)) {
		an_server_renew(c, release_ns);
		return AN_RULE_RELEASED;
	}
	c->left_ns = 0;
	an_server_throttle(c, release_ns);
	return AN_RULE_WAITS;
}

/* Of c it keeps what it may use by d, which is ahead, at C/D from now on. */
an_inline void an_server_revise(struct an_contract *c, u64 now_ns)
{
	u64 ahead_ns = c->deadline_ns - now_ns;

	c->left_ns = ahead_ns * c->promise.budget_ns / c->promise.deadline_rel_ns;
	if (!c->left_ns)
		c->left_ns = 1; /* nothing that a CPU can run is worth throttling for */
}

/* Rule 4: a job arrives and none is in service. */
an_inline enum an_rule an_server_wake(struct an_contract *c, u64 now_ns)
{
	if (an_has(c, AN_EXHAUSTIVE)) {
		an_server_renew(c, now_ns);
		return AN_RULE_RELEASED;
	}
	if (!c->started || c->deadline_ns <= now_ns)
		return an_server_wake_late(c, now_ns);
	if (c->left_ns <= 0) { /* throttled, or has given its budget away */
		if (!an_has(c, AN_HARD)) {
			an_server_refill(c);
			return AN_RULE_POSTPONED;
		}
		if (an_server_release_ns(c) <= now_ns)
			return an_server_replenish(c, now_ns);
		an_server_throttle(c, an_server_release_ns(c));
		return AN_RULE_WAITS;
	}
	if (!an_server_exceeds(c, now_ns))
		return AN_RULE_KEPT;
	if (c->promise.deadline_rel_ns == c->promise.period_ns ||
	    c->left_ns >=
		    (s64)c->promise.budget_ns) { /* or: its release is past, and all is left */
		an_server_renew(c, now_ns);
		return AN_RULE_RELEASED;
	}
	an_server_revise(c, now_ns);
	return AN_RULE_REVISED;
}

/*
 * When the job of a contract that wakes counts as released: not before the release that its present
 * budget belongs to, for it has been here since.
 */
an_inline u64 an_server_released_ns(const struct an_contract *c, u64 released_ns, u64 now_ns)
{
	u64 begin_ns = an_server_begin_ns(c);

	if (c->started && released_ns < begin_ns)
		released_ns = begin_ns;
	return released_ns < now_ns ? released_ns : now_ns;
}

/*
 * A job that rule 4 has let begin in the past has been elsewhere until now. Of its budget it keeps
 * what it may use by d at C/D from now on [2]: no less than a job needs that has been running, and
 * needs C in all. After d it begins anew.
 */
an_inline enum an_rule an_server_was_away(struct an_contract *c, enum an_rule rule, u64 now_ns)
{
	if (an_has(c, AN_EXHAUSTIVE) || c->throttled)
		return rule;
	if (c->deadline_ns <= now_ns)
		return an_server_wake_late(c, now_ns);
	if (!an_server_exceeds(c, now_ns))
		return rule;
	an_server_revise(c, now_ns);
	return rule == AN_RULE_CAUGHT_UP ? rule : AN_RULE_REVISED;
}

/* Rule 1, and what follows when the budget is used up. */
an_inline enum an_rule an_server_charge(struct an_contract *c, u64 ran_ns)
{
	c->left_ns -= ran_ns;
	if (c->left_ns > 0)
		return AN_RULE_NONE;
	if (!an_has(c, AN_EXHAUSTIVE))
		return an_server_exhaust(c);
	if (c->overran)
		return AN_RULE_NONE;
	c->overran = 1;
	c->exhaustions++;
	return AN_RULE_OVERRAN;
}

#endif
