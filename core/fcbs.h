/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Flexible CBS: what constant bandwidth servers may take beyond their budgets.
 *
 * RECONSTRUCTION. AIRS [1] has a flexible CBS, but its rules are not in the text that we have.
 * What is known: a budget of the average frame is too small for a plain CBS, since frames vary;
 * its authors' code has a catch-up that is on by default. The rules below are ours, each behind a
 * flag, built so that the isolation of CBS stays whole: with sum C/T <= 1 on a CPU a task that
 * keeps to its contract is never late, whatever those with these flags do.
 *
 * AN_RECLAIM. A job that ends early leaves (c, d) as a *residual*: budget c to be used by d. As in
 * CASH [2], time is taken from the earliest residual first: whatever runs with a deadline of at
 * least d uses residuals up, and so does the CPU when it is idle or runs something without a
 * contract. Only those with the flag run on them, uncharged; for others that time is lost, as it
 * would have been had the job not ended early. Without this draining a residual could be spent so
 * late that the time it stood for is gone: A 10/100 ends after 1, L 100/1000 runs until 90, then
 * E 1/10 (in need of 10) and K 7/10 come; if E had the residual of 9 now, K would be late. Only
 * those with the flag leave residuals. One that wakes again before d takes back what is left of
 * its own; if that is nothing, a new budget comes with a deadline T later, as in [2], or when that
 * is due (AN_HARD). A throttled server is not woken by a residual.
 *
 * AN_BORROW. An exhausted AN_HARD server runs in the background, behind all that hold budget,
 * uncharged. A soft one always holds a budget; once its job has exhausted one, time in which
 * nobody else on its CPU holds one costs it no more than it must: of c what C/T allows from now to
 * d may stay, since more could be used at a higher rate than C/T when others come back. Once
 * contracts have used up what all of them may have of the CPU, such time costs what it costs: d
 * would stand still else, and the budgets of all that time come at once, before others' deadlines.
 *
 * AN_CATCH_UP. A soft server that overran owes: its deadline is far off, and its next jobs will be
 * late though they overrun no more. When all others have had what they asked for (no contract on
 * the CPU holds budget, no residual is left) debts mean nothing any more: the schedule begins
 * anew. The first job released after that gets d = r + D, and a full budget. This pays in full or
 * not at all, where the specification we had speaks of what (a) or (b) have paid for.
 *
 * With these a server is late less often, and less, but not never more: with more budget left rule
 * 4 of CBS may give a job a new, later deadline where it would have kept an early one.
 *
 * [1] S. Kato, Y. Ishikawa, R. Rajkumar: CPU Scheduling and Memory Management for Interactive
 *     Real-Time Applications. Real-Time Systems 47(5), 2011. Section 1.
 * [2] M. Caccamo, G. Buttazzo, L. Sha: Capacity Sharing for Overrun Control. RTSS 2000. Section 3.
 */
#ifndef ANDANTE_CORE_FCBS_H
#define ANDANTE_CORE_FCBS_H

#include "cbs.h"
#include "contract.h"

an_inline struct an_residual *an_residual(struct an_contract_cpu *q, u32 at)
{
	return &q->residual[an_bounded(at, AN_MAX_RESIDUALS)];
}

/* Takes one out of the list; those behind move up. */
an_inline void an_residual_remove(struct an_contract_cpu *q, u32 at)
{
	q->residuals--;
	an_while(at < q->residuals && at + 1 < AN_MAX_RESIDUALS) {
		*an_residual(q, at) = *an_residual(q, at + 1);
		at = an_opaque(at + 1);
	}
}

/*
 * A job of this contract has ended with budget left: others may have it. Not if the job has
 * exhausted a budget: what it has then is that of a later period, and its next job needs it. With
 * the list full the latest one is lost, or this contract keeps its own.
 */
an_inline void an_residual_leave(struct an_contract_cpu *q, struct an_contract *c, u32 owner,
				 u64 now_ns)
{
	u32 at = q->residuals;
	struct an_residual *r;

	if (c->left_ns <= 0 || c->deadline_ns <= now_ns || c->overran)
		return;
	if (at < AN_MAX_RESIDUALS)
		q->residuals++;
	else if (an_residual(q, --at)->deadline_ns <= c->deadline_ns)
		return;
	an_while(at > 0 && an_residual(q, at - 1)->deadline_ns > c->deadline_ns) {
		*an_residual(q, at) = *an_residual(q, at - 1);
		at = an_opaque(at - 1);
	}
	r = an_residual(q, at);
	r->left_ns = c->left_ns;
	r->deadline_ns = c->deadline_ns;
	r->owner = owner;
	c->left_ns = 0;
	c->debt_ns = now_ns + 1; /* being idle now forgives nothing of what others will use */
}

/* The contract wakes: what is left of the residual that it left is its budget again. */
an_inline void an_residual_take_back(struct an_contract_cpu *q, struct an_contract *c, u32 owner)
{
	u32 at = 0;

	an_while(at < q->residuals && at < AN_MAX_RESIDUALS) {
		if (an_residual(q, at)->owner == owner) {
			c->left_ns += an_residual(q, at)->left_ns;
			an_residual_remove(q, at);
			return;
		}
		at = an_opaque(at + 1);
	}
}

/*
 * From from_ns on something with this deadline ran for ran_ns: residuals that are due no later are
 * used up by it, the earliest first. Returns how much they gave [ns]. Those past their deadlines
 * give nothing and go.
 */
an_outline u64 an_residual_use(struct an_contract_cpu *q, u64 deadline_ns, u64 from_ns, u64 ran_ns)
{
	u64 used_ns = 0;

	an_while(q->residuals && used_ns < ran_ns) {
		struct an_residual *r = an_residual(q, 0);
		u64 start_ns = from_ns + used_ns;
		u64 usable_ns = r->deadline_ns > start_ns ? r->deadline_ns - start_ns : 0;
		u64 wanted_ns = ran_ns - used_ns;

		if (r->deadline_ns > deadline_ns)
			break;
		if (usable_ns > r->left_ns)
			usable_ns = r->left_ns;
		if (usable_ns > wanted_ns) {
			r->left_ns -= wanted_ns;
			used_ns = ran_ns;
		} else {
			used_ns += usable_ns;
			an_residual_remove(q, 0);
		}
	}
	return used_ns;
}

/* Up to now_ns no contract was charged: idle time and the like drain what is left over. */
an_inline void an_residual_settle(struct an_contract_cpu *q, u64 now_ns)
{
	if (now_ns <= q->settled_ns)
		return;
	if (q->residuals)
		an_residual_use(q, AN_NEVER, q->settled_ns, now_ns - q->settled_ns);
	q->settled_ns = now_ns;
}

/* Residuals that the contract could run on [ns]: those due no later than it is. */
an_inline u64 an_residual_for(struct an_contract_cpu *q, u64 deadline_ns)
{
	u64 sum_ns = 0;
	u32 at = 0;

	an_while(at < q->residuals && at < AN_MAX_RESIDUALS) {
		if (an_residual(q, at)->deadline_ns > deadline_ns)
			break;
		sum_ns += an_residual(q, at)->left_ns;
		at = an_opaque(at + 1);
	}
	return sum_ns;
}

/* No contract holds budget now; if nothing is left over either, this is where debts end. */
an_inline void an_contracts_note_idle(struct an_contracts *cs, u32 cpu, u64 now_ns)
{
	struct an_contract_cpu *q = an_contract_cpu(cs, cpu);

	if (q->holders)
		return;
	an_residual_settle(q, now_ns);
	if (!q->residuals)
		q->idle_ns = now_ns;
}

/* AN_CATCH_UP: may a job released at now_ns start without its contract's debts? */
an_inline bool an_server_catches_up(const struct an_contract_cpu *q, const struct an_contract *c,
				    u64 now_ns)
{
	return an_has(c, AN_CATCH_UP) && !an_has(c, AN_HARD) && c->started &&
	       c->deadline_ns > now_ns + c->promise.deadline_rel_ns && q->idle_ns >= c->debt_ns;
}

/* AN_BORROW, soft: has this run been in time that nobody else holds budget for, nor is to have? */
an_inline bool an_server_borrows(const struct an_contract_cpu *q, const struct an_contract *c,
				 bool overdrawn)
{
	return an_has(c, AN_BORROW) && !an_has(c, AN_HARD) && c->overran && q->holders == 1 &&
	       !overdrawn;
}

/*
 * ... then it has cost as much of the budget as leaves what the bandwidth allows by d, from now on,
 * and not more than any run costs. A budget kept whole through idle time could be used at a higher
 * rate than C/T.
 */
an_inline enum an_rule an_server_borrow(struct an_contract *c, u64 ran_ns, u64 now_ns)
{
	u64 ahead_ns = c->deadline_ns > now_ns ? c->deadline_ns - now_ns : 0;
	u64 allowed_ns = c->left_ns;

	if (ahead_ns < c->promise.deadline_rel_ns)
		allowed_ns = ahead_ns * c->promise.budget_ns / c->promise.deadline_rel_ns;
	if ((s64)allowed_ns >= c->left_ns)
		return AN_RULE_BORROWED;
	c->left_ns = c->left_ns - (s64)ran_ns > (s64)allowed_ns ? c->left_ns - (s64)ran_ns
								: (s64)allowed_ns;
	if (c->left_ns <= 0)
		an_server_exhaust(c);
	return AN_RULE_BORROWED;
}

/*
 * Something with this deadline ran for ran_ns until now_ns, and time without a contract before
 * that. Returns how much of the run residuals can pay for [ns].
 */
an_inline u64 an_residual_run(struct an_contract_cpu *q, u64 deadline_ns, u64 ran_ns, u64 now_ns)
{
	u64 from_ns = now_ns > ran_ns ? now_ns - ran_ns : 0;

	an_residual_settle(q, from_ns);
	if (now_ns > q->settled_ns)
		q->settled_ns = now_ns;
	return q->residuals ? an_residual_use(q, deadline_ns, from_ns, ran_ns) : 0;
}

/*
 * The server ran for ran_ns until now_ns in rank BUDGET, of which residuals could pay for free_ns:
 * it is charged for the rest, or for nothing. Overdrawn: contracts have used up what they may.
 */
an_inline enum an_rule an_flexible_charge(struct an_contract_cpu *q, struct an_contract *c,
					  u64 ran_ns, u64 free_ns, bool overdrawn, u64 now_ns)
{
	if (an_server_borrows(q, c, overdrawn)) {
		c->borrowed_ns += ran_ns;
		return an_server_borrow(c, ran_ns, now_ns);
	}
	if (!an_has(c, AN_RECLAIM))
		free_ns = 0;
	c->reclaimed_ns += free_ns;
	if (free_ns >= ran_ns)
		return AN_RULE_NONE;
	c->debt_ns = now_ns;
	return an_server_charge(c, ran_ns - free_ns);
}

#endif
