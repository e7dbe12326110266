/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Dynamic window-constrained scheduling [1, 2]: the order of contracts, and the rules of a window.
 *
 * A process with AN_WINDOW is to be served C in every period T, and may lose x of every y periods.
 * x'/y' says what is left of the present window; it starts at x/y. Service relaxes it (rule a), a
 * lost period tightens it (rule b), and when both are zero the next window begins. While nothing
 * is violated every period takes one off y', so windows are y periods long, aligned, and do not
 * overlap; the guarantee is per such window, never for a sliding one.
 *
 *      period begins: served = false, C left           boundary, unserved
 *           |                                              |
 *           |--- C used up: rule a, served ---> ...        |--- runnable and owed: rule b
 *           |    (then rank EXTRA, or out)                 |    (x' was 0: violation)
 *           |                                              |--- asleep, ran a little: rule a
 *           '--- asleep all of it: nothing                 '--- else: nothing
 *
 * What the paper leaves open and we decided:
 *  - Periods lie on the multiples of T of the caller's clock. So all contracts of one T have their
 *    deadlines together whenever they were made, and the guarantee of [1] (C = k, T = nk for all,
 *    sum of (1 - x/y) C/T <= 1: no violation) holds for programs that come and go.
 *  - A process that slept all through a period was promised nothing in it: the period is not
 *    counted and the window stands still. One that ran and is asleep at the end had what it wanted:
 *    rule a. A period is owed to one that was runnable when it began; to one that slept in it only
 *    if, when it last woke, the rest of C still fitted before the end. One that came later and is
 *    unserved at the end is neither missed nor served.
 *  - First come first served (the last item of Table 1) is decided for the tighter *original*
 *    constraint, then for the lower index. [1] promises in Figure 4(d) a schedule in which T2 (1/4)
 *    goes before T1 (1/2) at t = 7, at equal deadlines and both at 1/2; neither the order of the
 *    table nor "least recently served first" gives it. AN_TIE_INDEX is the index alone.
 *  - 0/0 is pure EDF: among equal deadlines as tight as 0/y', but after any 0/y' with y' > 0, and
 *    rules a and b never touch it. So are contracts without AN_WINDOW.
 *  - Rule b is printed as three flat lines, the last an "else if (x' = 0)". Bound to the second
 *    "if", as written, a legal loss that takes x' from 1 to 0 also raises y', and sets that can be
 *    scheduled are violated. It is nested here.
 *  - A contract served in its period ranks behind all that were not; extra service does not count
 *    for the window (AN_EXTRA_COUNTS: it does). A deadline moved on at every service, as the loop
 *    in [1] reads, would let extra service go before the first service of others.
 *
 * The guarantee is for one common period. With unequal ones contracts can be violated at any
 * utilisation (A. Mok, W. Wang, RTSS 2001); AN_WINDOW_FIRST, the precedence of [3], does better.
 *
 * [1] C. Poellabauer, K. Schwan, R. West: Coordinated CPU and Event Scheduling for Distributed
 *     Multimedia Applications. ACM Multimedia 2001. Table 1, rules a and b.
 * [2] R. West, C. Poellabauer: Analysis of a Window-Constrained Scheduler for Real-Time and
 *     Best-Effort Packet Streams. RTSS 2000.
 * [3] R. West, K. Schwan: Dynamic Window-Constrained Scheduling for Multimedia Applications.
 *     ICMCS 1999.
 */
#ifndef ANDANTE_CORE_DWCS_H
#define ANDANTE_CORE_DWCS_H

#include "contract.h"

/*
 * Items 2 to 4 of Table 1, for the constraints ax/ay and bx/by: the deciding rule if a goes first,
 * minus the rule if b does, 0 if they are equal. Fractions are compared crosswise.
 */
an_inline s32 an_window_order(u64 ax, u64 ay, u64 bx, u64 by)
{
	if (!ax != !bx)
		return ax ? -AN_RULE_WINDOW : AN_RULE_WINDOW;
	if (!ax) {
		if (ay == by)
			return 0;
		return ay > by ? AN_RULE_DENOMINATOR : -AN_RULE_DENOMINATOR;
	}
	if (ax * by != bx * ay)
		return ax * by < bx * ay ? AN_RULE_WINDOW : -AN_RULE_WINDOW;
	if (ax == bx)
		return 0;
	return ax < bx ? AN_RULE_NUMERATOR : -AN_RULE_NUMERATOR;
}

an_inline s32 an_deadline_order(const struct an_contract *a, const struct an_contract *b)
{
	if (a->deadline_ns == b->deadline_ns)
		return 0;
	return a->deadline_ns < b->deadline_ns ? AN_RULE_EDF : -AN_RULE_EDF;
}

/* Item 5 of Table 1, as decided above. Never 0 for two different contracts. */
an_inline s32 an_tie_order(struct an_contracts *cs, u32 a, u32 b)
{
	const struct an_promise *p = &an_contract(cs, a)->promise;
	const struct an_promise *q = &an_contract(cs, b)->promise;
	s32 order = 0;

	if (!(cs->options & AN_TIE_INDEX))
		order = an_window_order(p->x, p->y, q->x, q->y);
	if (order)
		return order > 0 ? AN_RULE_FCFS : -AN_RULE_FCFS;
	return a < b ? AN_RULE_FCFS : -AN_RULE_FCFS;
}

/* Table 1 for two that hold budget; 0 for a tie. */
an_inline s32 an_table_order(u32 options, const struct an_contract *a, const struct an_contract *b)
{
	s32 window = an_window_order(a->x, a->y, b->x, b->y);
	s32 deadline = an_deadline_order(a, b);

	if (!(options & AN_WINDOW_FIRST))
		return deadline ? deadline : window;
	/* [3]: the constraint, then EDF; the lower x' of equal constraints comes last. */
	if (window == AN_RULE_NUMERATOR || window == -AN_RULE_NUMERATOR)
		return deadline ? deadline : window;
	return window ? window : deadline;
}

/* Among whom the contract stands: those of its rank; one that waits, among learnt ones [cbs.h]. */
an_inline enum an_rank an_contract_level(const struct an_contract *c)
{
	return c->waits ? AN_RANK_EXTRA : c->rank;
}

/*
 * The instant by which it stands there. Among learnt ones that is when its job is due, which of a
 * server that is ahead of its promise is before the deadline that goes with its budget. Learnt ones
 * that nobody waits for come later than all else.
 */
an_inline u64 an_contract_stands_ns(const struct an_contract *c)
{
	if (an_counts_as_learnt(c))
		return (u64)an_has(c, AN_UNAWAITED) << 61 | c->job_deadline_ns;
	if (c->waits && c->job_deadline_ns < c->deadline_ns)
		return c->job_deadline_ns;
	return c->rank == AN_RANK_EXTRA ? 0 : c->deadline_ns;
}

/*
 * Which of two contracts goes first, and by which rule: the rule if a, minus the rule if b. A
 * total order, for a != b.
 */
an_outline s32 an_precedence(struct an_contracts *cs, u32 a, u32 b)
{
	const struct an_contract *p = an_contract(cs, a), *q = an_contract(cs, b);
	s32 order;

	if (an_contract_level(p) != an_contract_level(q))
		return an_contract_level(p) < an_contract_level(q) ? AN_RULE_EDF : -AN_RULE_EDF;
	if (an_contract_level(p) == AN_RANK_EXTRA &&
	    an_contract_stands_ns(p) != an_contract_stands_ns(q))
		return an_contract_stands_ns(p) < an_contract_stands_ns(q) ? AN_RULE_EDF
									   : -AN_RULE_EDF;
	if (an_counts_as_learnt(p) != an_counts_as_learnt(q))
		return an_counts_as_learnt(p) ? AN_RULE_EDF : -AN_RULE_EDF;
	if (an_contract_level(p) == AN_RANK_BUDGET)
		order = an_table_order(cs->options, p, q);
	else if (an_contract_level(p) == AN_RANK_EXTRA)
		order = an_window_order(p->x, p->y, q->x, q->y);
	else
		order = an_deadline_order(p, q);
	return order ? order : an_tie_order(cs, a, b);
}

/* The place of a constraint x/y among others, equal ratios aside; a lower one goes first. */
an_inline u64 an_window_ratio(u32 x, u32 y)
{
	if (!x)
		return AN_MAX_WINDOW - y;
	/* Ratios of numbers below 2^16 that differ do so by more than 2^-32. */
	return AN_MAX_WINDOW + 1 + ((u64)x << 32) / (y ? y : 1);
}

/*
 * The order of an_precedence() in numbers, so that heaps need not look into the rules: of two
 * contracts the one goes first that has the lesser order[], or the lower index if they are equal.
 */
an_outline void an_contract_order(struct an_contracts *cs, struct an_contract *c)
{
	u64 ratio = an_window_ratio(c->x, c->y), first = an_contract_stands_ns(c), second = ratio,
	    x = c->x;

	if (an_counts_as_learnt(c) || (c->rank != AN_RANK_EXTRA && c->rank != AN_RANK_BUDGET)) {
		second = x = 0;
	} else if (an_contract_level(c) == AN_RANK_BUDGET && cs->options & AN_WINDOW_FIRST) {
		first = ratio;
		second = c->deadline_ns;
	}
	c->order[0] = (u64)an_contract_level(c) << 62 | first;
	c->order[1] = second;
	c->order[2] = x;
	c->order[3] = 0;
	if (!(cs->options & AN_TIE_INDEX))
		c->order[3] = an_window_ratio(c->promise.x, c->promise.y) << 16 | c->promise.x;
}

/* A window has run out: the next begins. */
an_inline void an_window_renew(struct an_contract *c)
{
	if (!c->x && !c->y) {
		c->x = c->promise.x;
		c->y = c->promise.y;
	}
}

/* Rule a: the contract was served C within its period. */
an_inline void an_window_serve(struct an_contract *c)
{
	if (c->y > c->x) {
		c->y--;
	} else if (c->x) {
		c->x--;
		c->y--;
	}
	an_window_renew(c);
}

/*
 * Rule b: the contract reached its deadline unserved. True if that is a violation: x' was 0. Of
 * 0/0 every loss is one.
 */
an_inline bool an_window_lose(struct an_contract *c)
{
	if (c->x) {
		c->x--;
		c->y--;
		an_window_renew(c);
		return false;
	}
	if (c->y && c->y < ~0u)
		c->y++;
	return true;
}

/* Ran, in rank BUDGET. */
an_inline enum an_rule an_window_charge(struct an_contract *c, u64 ran_ns)
{
	c->ran_ns += ran_ns;
	c->left_ns -= ran_ns;
	if (c->left_ns > 0)
		return AN_RULE_NONE;
	c->extra_ns += -c->left_ns;
	c->left_ns = c->promise.budget_ns; /* for AN_EXTRA_COUNTS, which counts in C too */
	c->served = 1;
	c->deadlines++;
	an_window_serve(c);
	return AN_RULE_SERVED;
}

/* What it has run in advance, for events, is a part of what it is to have in this period. */
an_inline void an_window_pay(struct an_contract *c)
{
	u64 pays_ns = c->owes_ns < (u64)c->left_ns ? c->owes_ns : (u64)c->left_ns;

	c->owes_ns -= pays_ns;
	an_window_charge(c, pays_ns);
}

/* The period in which now_ns lies begins, for a contract that is runnable or not. */
an_inline void an_period_begin(struct an_contract *c, u64 now_ns)
{
	u64 period_ns = c->promise.period_ns;

	c->deadline_ns = period_ns ? (now_ns / period_ns + 1) * period_ns : AN_NEVER;
	c->left_ns = c->promise.budget_ns;
	c->ran_ns = 0;
	c->served = 0;
	c->owed = c->runnable;
	if (an_events_on && c->owes_ns)
		an_window_pay(c);
}

/* The period is over: what is to be said of it. */
an_inline enum an_rule an_period_end(struct an_contract *c)
{
	if (c->served)
		return AN_RULE_NONE; /* was said when it was served */
	if (c->runnable && c->owed) {
		bool violated = an_window_lose(c);

		c->deadlines++;
		c->misses++;
		c->violations += violated;
		return violated ? AN_RULE_VIOLATED : AN_RULE_MISSED;
	}
	if (!c->runnable && c->ran_ns) {
		c->deadlines++;
		an_window_serve(c);
		return AN_RULE_SERVED;
	}
	return AN_RULE_NONE;
}

/* Ran, in rank EXTRA, under AN_EXTRA_COUNTS. */
an_inline enum an_rule an_window_charge_extra(struct an_contract *c, u64 ran_ns)
{
	c->left_ns -= ran_ns;
	if (c->left_ns > 0)
		return AN_RULE_NONE;
	c->left_ns = c->promise.budget_ns;
	an_window_serve(c);
	return AN_RULE_SERVED;
}

/* Wakes: the grid may have gone on while it slept. */
an_inline enum an_rule an_window_wake(struct an_contract *c, u64 now_ns)
{
	enum an_rule rule = AN_RULE_KEPT;

	if (!c->started || now_ns >= c->deadline_ns) {
		if (c->started)
			an_period_end(c);
		if (an_events_on && now_ns >= c->deadline_ns + c->promise.period_ns)
			c->owes_ns = 0; /* a period that it has not used has paid for all */
		an_period_begin(c, now_ns);
		c->owed = c->deadline_ns - now_ns == c->promise.period_ns;
		rule = AN_RULE_RELEASED;
	} else if (c->deadline_ns - now_ns < (u64)c->left_ns) {
		c->owed = 0;
	}
	c->runnable = 1;
	return rule;
}

#endif
