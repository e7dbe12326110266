/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Contracts at run time: the one that a CPU runs now, for how long, and the one that makes way for
 * another. contract_run.h says which call belongs where.
 */
#ifndef ANDANTE_CORE_CONTRACT_PICK_H
#define ANDANTE_CORE_CONTRACT_PICK_H

#include "contract_run.h"

/*
 * When the contract would hold budget if it woke at now_ns, or from when on; if it is runnable, now
 * or, for all that is known, AN_NEVER. A shell's hint, not a decision.
 */
an_inline u64 an_contract_budget_from_ns(const struct an_contract *c, u64 now_ns)
{
	if (c->runnable)
		return an_contract_has_budget(c) ? now_ns : AN_NEVER;
	if (!c->started || an_has(c, AN_EXHAUSTIVE))
		return now_ns;
	if (an_has(c, AN_WINDOW))
		return c->served ? c->deadline_ns : now_ns;
	if (an_has(c, AN_SPILLS))
		return now_ns;
	if (c->split)
		return c->throttled ? c->due_ns : now_ns;
	if (!an_has(c, AN_HARD) || (c->deadline_ns > now_ns && c->left_ns > 0))
		return now_ns;
	return an_server_release_ns(c);
}

/* Why the first of the ready is the first: what sets it apart from the next in line. */
an_inline enum an_rule an_contracts_reason(struct an_contracts *cs, struct an_contract_cpu *q)
{
	u32 first = *an_heap_slot(q, AN_READY, 1), next;

	if (an_heap_count(q, AN_READY) < 2)
		return AN_RULE_EDF;
	next = *an_heap_slot(q, AN_READY, 2);
	if (an_heap_count(q, AN_READY) > 2) {
		u32 other = *an_heap_slot(q, AN_READY, 3);

		if (an_precedence(cs, other, next) > 0)
			next = other;
	}
	return an_precedence(cs, first, next);
}

/* What the bucket must hold again before contracts that were held back go on [ns]: worth a switch.
 */
#define AN_HELD_UNTIL_NS 1000000 /* admission counts on it (crates/admission/src/dwcs.rs) */

/*
 * Are contracts with AN_WINDOW to stand back on this CPU? In overload they would use all of it, for
 * each takes every period that it gets; what they were promised is that they lose no more than they
 * tolerate. So once contracts have used up what all of them together may have, those whose turn it
 * is with a window wait a little. Servers share no CPU with an overload; soft ones that are ahead
 * of what they were promised are throttled (an_contracts_overdrawn()).
 */
an_inline bool an_contracts_hold(struct an_contracts *cs, struct an_contract_cpu *q, u64 now_ns)
{
	s64 left_ns = an_bucket_fill(&q->promised, cs->bound, AN_BUCKET_NS, now_ns);

	if (left_ns <= 0) {
		q->held = 1;
		/* It was nobody's loss if nobody else wanted the CPU. */
		if (left_ns < -AN_HELD_UNTIL_NS)
			q->promised.left_ns = -AN_HELD_UNTIL_NS;
		if (q->learnt.left_ns < -AN_HELD_UNTIL_NS)
			q->learnt.left_ns = -AN_HELD_UNTIL_NS;
	} else if (left_ns >= AN_HELD_UNTIL_NS) {
		q->held = 0;
	}
	return q->held;
}

/* May work-conserving contracts go on that have had their C? All of them use what contracts may
 * have together, and those that have theirs to come are to find enough of it left. */
an_inline bool an_extra_has_room(struct an_contracts *cs, struct an_contract_cpu *q, u64 now_ns)
{
	return !cs->bound ||
	       an_bucket_left_ns(&q->promised, cs->bound, AN_BUCKET_NS, now_ns) > AN_LEARN_ROOM_NS;
}

/* For so long a soft server that is ahead may run at least [ns]: worth a switch. */
#define AN_AHEAD_MIN_NS 100000

/* Most that one pick may find to be behind others that wait. */
#define AN_MAX_DEFERRED 32u

/* The first of the ready on this CPU, among learnt ones by the deadlines that they have now. */
an_outline u32 an_contracts_first(struct an_contracts *cs, u32 cpu, u64 now_ns)
{
	struct an_contract_cpu *q = an_contract_cpu(cs, cpu);
	u32 left = AN_MAX_DEFERRED, index = an_heap_first(q, AN_READY);

	an_while(left && an_heap_count(q, AN_READY) > 1) {
		struct an_contract *c = an_contract(cs, index);
		u64 deadline_ns;

		if (!an_counts_as_learnt(c))
			break;
		deadline_ns = an_learnt_deadline_ns(c, now_ns);
		if (deadline_ns == c->job_deadline_ns)
			break;
		c->job_deadline_ns = deadline_ns;
		an_contract_place(cs, index);
		index = an_heap_first(q, AN_READY);
		left = an_opaque(left - 1);
	}
	return index;
}

/* A learnt contract that is next, but has used what it may: until when that is so, or 0. */
an_inline u64 an_learnt_overdrawn_until_ns(const struct an_contracts *cs, struct an_contract_cpu *q,
					   struct an_contract *c, u64 now_ns)
{
	if (an_learnt_left_ns(cs, q, c, now_ns))
		return 0;
	c->exhaustions++;
	an_learnt_charge(cs, q, c, 0, now_ns);
	return now_ns + an_learnt_wait_ns(cs, q, c);
}

/*
 * The same of a soft server that is ahead of its promise, where contracts have used up what all of
 * them together may have of the CPU. What it was promised it has when that is due, in any case.
 */
an_inline u64 an_soft_overdrawn_until_ns(struct an_contracts *cs, struct an_contract_cpu *q,
					 const struct an_contract *c, u64 now_ns)
{
	u64 until_ns, due_ns = an_server_begin_ns(c);

	if (!cs->bound || !an_server_is_ahead(c, now_ns) ||
	    an_bucket_fill(&q->promised, cs->bound, AN_BUCKET_NS, now_ns) > 0)
		return 0;
	until_ns = now_ns + an_bucket_wait_ns(&q->promised, cs->bound, AN_HELD_UNTIL_NS);
	return due_ns > now_ns && due_ns < until_ns ? due_ns : until_ns;
}

/*
 * If the next one on this CPU was learnt, or is soft and ahead, and has used what it may, it is
 * throttled until there is more of that: the contract, or AN_NONE. Before every pick, until it is
 * AN_NONE.
 */
an_inline u32 an_contracts_overdrawn(struct an_contracts *cs, u32 cpu, u64 now_ns)
{
	struct an_contract_cpu *q = an_contract_cpu(cs, cpu);
	u32 index = an_contracts_first(cs, cpu, now_ns);
	struct an_contract *c = an_contract(cs, index);
	u64 until_ns;

	if (!index)
		return AN_NONE;
	if (c->throttled && an_has(c, AN_SPILLS)) { /* it has its share, until its next budget */
		if (an_learnt_left_ns(cs, q, c, now_ns))
			return AN_NONE;
		c->dry = 1;
		an_contract_place(cs, index);
		return index;
	}
	until_ns = an_has(c, AN_LEARNT) ? an_learnt_overdrawn_until_ns(cs, q, c, now_ns)
					: an_soft_overdrawn_until_ns(cs, q, c, now_ns);
	if (!until_ns)
		return AN_NONE;
	an_server_throttle(c, until_ns);
	an_contract_place(cs, index);
	return index;
}

/*
 * The contract to run on this CPU, or AN_NONE, and the rule. Everything that ran has been charged,
 * everything due expired, and an_contracts_overdrawn() has had its say. Without background those
 * that hold budget, and behind them work-conserving ones that have had it (AN_RULE_EXTRA); with a
 * bound, those with AN_WINDOW within it. With background, when nobody else wants the CPU, without
 * the bound, and exhausted ones with AN_BORROW too, by deadline and uncharged.
 */
an_outline u32 an_contracts_pick(struct an_contracts *cs, u32 cpu, u64 now_ns, bool background,
				 u32 *rule)
{
	struct an_contract_cpu *q = an_contract_cpu(cs, cpu);
	u32 index = an_heap_first(q, AN_READY);
	struct an_contract *c = an_contract(cs, index);

	*rule = AN_RULE_NONE;
	an_residual_settle(q, now_ns);
	an_contracts_note_idle(cs, cpu, now_ns);
	if (!index || (c->rank == AN_RANK_BORROW && !background))
		return AN_NONE;
	if (an_has(c, AN_WINDOW) && cs->bound && an_contracts_hold(cs, q, now_ns) && !background)
		return AN_NONE;
	if (an_counts_as_learnt(c)) {
		if (!an_learnt_left_ns(cs, q, c, now_ns))
			return AN_NONE;
		*rule = AN_RULE_LEARNT;
		return index;
	}
	if (c->rank == AN_RANK_EXTRA && !background && !an_extra_has_room(cs, q, now_ns))
		return AN_NONE;
	if (c->rank == AN_RANK_BORROW)
		*rule = AN_RULE_BORROWED;
	else if (c->rank == AN_RANK_EXTRA)
		*rule = AN_RULE_EXTRA;
	else if (an_has(c, AN_RECLAIM) && an_residual_for(q, c->deadline_ns))
		*rule = AN_RULE_RECLAIMED;
	else
		*rule = an_contracts_reason(cs, q);
	return index;
}

/* Is nothing ready on this CPU, nor timed? Then there is nothing to pick until a contract wakes. */
an_inline bool an_contracts_quiet(struct an_contracts *cs, u32 cpu)
{
	struct an_contract_cpu *q = an_contract_cpu(cs, cpu);

	return !(q->count[AN_READY] | q->count[AN_TIMERS]);
}

/* How long it takes until one that is ready, but was not picked, may be worth another pick [ns]. */
an_inline u64 an_contracts_wait_ns(struct an_contracts *cs, u32 cpu)
{
	struct an_contract_cpu *q = an_contract_cpu(cs, cpu);

	if (!an_heap_count(q, AN_READY))
		return AN_NEVER;
	if (q->held)
		return an_bucket_wait_ns(&q->promised, cs->bound, AN_HELD_UNTIL_NS);
	return AN_LEARN_WAIT_MAX_NS;
}

/*
 * How long the contract may run from now_ns until something about it changes: its budget ends,
 * with what residuals add to it, or its own timer is due [ns]; AN_NEVER for no end.
 */
an_inline u64 an_contract_run_ns(struct an_contracts *cs, u32 index, u64 now_ns)
{
	struct an_contract *c = an_contract(cs, index);
	u64 run_ns = AN_NEVER, until_ns;

	if (an_contract_has_budget(c) && !an_counts_as_learnt(c) &&
	    (c->split || !an_has(c, AN_EXHAUSTIVE))) {
		run_ns = c->left_ns;
		if (an_has(c, AN_RECLAIM))
			run_ns += an_residual_for(an_contract_cpu(cs, c->cpu), c->deadline_ns);
	} else if (c->rank == AN_RANK_EXTRA && cs->options & AN_EXTRA_COUNTS) {
		run_ns = c->left_ns;
	}
	if (an_counts_as_learnt(c)) {
		u64 left_ns = an_learnt_left_ns(cs, an_contract_cpu(cs, c->cpu), c, now_ns);

		if (left_ns < run_ns)
			run_ns = left_ns;
		if (an_heap_count(an_contract_cpu(cs, c->cpu), AN_READY) > 1 &&
		    an_learnt_keeps_ns(c, now_ns) < run_ns)
			run_ns = an_learnt_keeps_ns(c, now_ns);
	}
	if (cs->bound && an_server_is_ahead(c, now_ns)) {
		s64 left_ns = an_bucket_left_ns(&an_contract_cpu(cs, c->cpu)->promised, cs->bound,
						AN_BUCKET_NS, now_ns);

		if (left_ns < AN_AHEAD_MIN_NS)
			left_ns = AN_AHEAD_MIN_NS;
		if (left_ns < (s64)run_ns)
			run_ns = left_ns;
	}
	if (*an_heap_position(c, AN_TIMERS)) {
		until_ns = c->due_ns > now_ns ? c->due_ns - now_ns : 0;
		if (until_ns < run_ns)
			run_ns = until_ns;
	}
	return run_ns;
}

/*
 * Would the learnt contract be the next on its CPU, once the learnt one that is served there
 * sleeps, with a job that is due then? So it is if it comes before all others that are ready: those
 * that wait stand by deadlines that are none too late (an_contracts_first()).
 */
an_inline bool an_learnt_comes_next(struct an_contracts *cs, u32 index, u32 served, u64 deadline_ns)
{
	struct an_contract *c = an_contract(cs, index);
	struct an_contract_cpu *q = an_contract_cpu(cs, c->cpu);
	u64 order = (u64)an_contract(cs, served)->rank << 62 | (u64)an_has(c, AN_UNAWAITED) << 61 |
		    deadline_ns;
	u32 at = 1;

	an_while(at <= 3 && at <= an_heap_count(q, AN_READY)) {
		u32 other = *an_heap_slot(q, AN_READY, at);

		if (other != served && other != index && an_contract(cs, other)->order[0] <= order)
			return false;
		at = an_opaque(at + 1);
	}
	return true;
}

/*
 * Should the woken contract take the CPU from the running one (AN_NONE: from something without a
 * contract)? Both are of one CPU. The rule by which, or AN_RULE_NONE.
 */
an_inline enum an_rule an_contract_preempts(struct an_contracts *cs, u32 woken, u32 running)
{
	u32 rank = an_contract(cs, woken)->rank;
	s32 order;

	if (woken == running || rank == AN_RANK_OUT || rank == AN_RANK_BORROW)
		return AN_RULE_NONE;
	if (!running)
		return rank == AN_RANK_EXTRA ? AN_RULE_EXTRA : AN_RULE_EDF;
	order = an_precedence(cs, woken, running);
	return order > 0 ? (enum an_rule)order : AN_RULE_NONE;
}

#endif
