/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Contracts at run time: they wake and sleep, are charged for what they run, and what is due for
 * them is done. contract_pick.h chooses the one that runs now, and says for how long.
 *
 * The caller (simulator or kernel) knows the clock, the jobs and the timers. It holds the set's
 * lock in every call, and its now_ns never goes back. On each CPU it does, in this order:
 *
 *      when something stops, or a timer fires, on this CPU
 *          an_contract_charge(running, ran, now)      what has run, first of all
 *          an_contract_sleep() or _next_job()         if its job ended
 *          due = an_contracts_expire(cpu, now, &kick) then look likewise at every CPU in kick
 *          an_contracts_overdrawn(cpu, now)           until there is none, of learnt or soft ones
 *          c = an_contracts_pick(cpu, now, false, &rule)
 *          with events, an_event_coordinate()         says who runs instead [event.h]
 *          none: the class tree's turn; nothing there either: an_contracts_pick(…, true, …)
 *          run c, and set the timer to the earlier of due and now + an_contract_run_ns(c, now)
 *
 *      when a job arrives, or a task of the contract becomes runnable
 *          an_contract_wake(c, now)                   while c has something to run: queue it, no
 * call an_contract_preempts(c, running): then do the above on c's CPU (it may have changed); else
 * set its timer again, since an_contracts_due() may now be earlier
 *
 * A contract stays in the heap while it runs. Running it longer than an_contract_run_ns() is not
 * an error: the budget goes below zero, and the next one pays (of AN_WINDOW, whose budgets do not
 * add up, it is extra service). Jobs of one contract beyond the first are the caller's queue (rule
 * 3 of cbs.h); a kernel that knows of no jobs calls wake and sleep only. A task of the contract
 * that runs without it, on its class's share, is not charged.
 *
 * Every decision says by which rule it was taken (rule.h). All calls are O(log n); nothing is
 * scanned.
 */
#ifndef ANDANTE_CORE_CONTRACT_RUN_H
#define ANDANTE_CORE_CONTRACT_RUN_H

#include "cbs.h"
#include "contracts.h"
#include "dwcs.h"
#include "edfwm.h"
#include "fcbs.h"
#include "learnt.h"

/* Longest run charged in one go [ns]; 18 minutes. */
#define AN_MAX_RUN_NS (1ULL << 40)

/* Most that one call of an_contracts_expire() deals with. */
#define AN_MAX_EXPIRED 1024u

/*
 * The contract has something to run, and had nothing: a job that was released at released_ns <=
 * now_ns, and has run for ran_ns of the time since, elsewhere and without the contract. Of one that
 * has something already nothing changes. A split contract may now be on another CPU.
 *
 * The job is due when it would be had it never been away, and what it ran there does not come on
 * top of its budget. On this CPU nobody is worse off for it: everybody else has had the CPU
 * meanwhile, and what is left of the job is less than it would be, and due at the same time. So
 * where nobody is late if all jobs run where they are promised to, nobody is if some run elsewhere
 * for a while.
 */
an_outline enum an_rule an_contract_wake_since(struct an_contracts *cs, u32 index, u64 released_ns,
					       u64 ran_ns, u64 now_ns)
{
	struct an_contract *c = an_contract(cs, index);
	struct an_contract_cpu *q = an_contract_cpu(cs, c->cpu);
	enum an_rule rule = AN_RULE_CAUGHT_UP;

	if (!c->used || c->runnable)
		return AN_RULE_NONE;
	an_contracts_note_idle(cs, c->cpu, now_ns);
	c->overran = 0;
	c->job_deadline_ns = released_ns + c->job_rel_ns;
	if (an_has(c, AN_WINDOW)) {
		rule = an_window_wake(c, now_ns);
	} else if (c->split) {
		rule = an_split_wake(cs, c, released_ns, ran_ns, now_ns);
	} else {
		released_ns = an_server_released_ns(c, released_ns, now_ns);
		if (an_has(c, AN_RECLAIM))
			an_residual_take_back(q, c, index);
		if (an_has(c, AN_LEARNT))
			an_learnt_wake(cs, c, now_ns);
		else
			c->ran_ns = 0; /* on what learnt ones may use */
		c->throttled &= !an_server_is_held_back(c);
		if (an_server_catches_up(q, c, released_ns))
			an_server_renew(c, released_ns);
		else
			rule = an_server_wake(c, released_ns);
		if (ran_ns)
			rule = an_server_was_away(c, rule, now_ns);
	}
	c->started = c->runnable = 1;
	rule = an_opaque(rule);
	an_contract_place(cs, index);
	return rule;
}

/* The same of a job that arrives now. */
an_inline enum an_rule an_contract_wake(struct an_contracts *cs, u32 index, u64 now_ns)
{
	return an_contract_wake_since(cs, index, now_ns, 0, now_ns);
}

/* Counts a job that ends. Those of AN_WINDOW have no deadline of their own: periods count. */
an_inline void an_contract_job_end(struct an_contract *c, u64 now_ns)
{
	if (an_has(c, AN_WINDOW))
		return;
	c->deadlines++;
	c->misses += now_ns > c->job_deadline_ns;
}

/* The contract's job has ended at now_ns, and it has nothing more to run. Charge it before. */
an_outline void an_contract_sleep(struct an_contracts *cs, u32 index, u64 now_ns)
{
	struct an_contract *c = an_contract(cs, index);
	u32 cpu = c->cpu;

	if (!c->runnable)
		return;
	an_contract_job_end(c, now_ns);
	c->runnable = 0;
	an_contract_place(cs, index);
	if (an_has(c, AN_RECLAIM) && !c->split)
		an_residual_leave(an_contract_cpu(cs, c->cpu), c, index, now_ns);
	if (c->split)
		an_split_sleep(cs, c, now_ns);
	an_contracts_note_idle(cs, cpu, now_ns);
}

/*
 * Nobody holds the contract any more: it sleeps for good, and others may be sure of what it was
 * sure of. Its slot is taken until an_contract_remove(), for which a shell may have to wait.
 */
an_inline void an_contract_end(struct an_contracts *cs, u32 index, u64 now_ns)
{
	an_contract_sleep(cs, index, now_ns);
	if (an_has(an_contract(cs, index), AN_LEARNT))
		an_learnt_unsure(cs, an_contract(cs, index));
}

/* The job in service of the learnt contract is due in so many ns, by its task's own word. */
an_inline void an_contract_due_in(struct an_contracts *cs, u32 index, u64 due_ns, u64 now_ns)
{
	struct an_contract *c = an_contract(cs, index);

	if (!c->runnable || !an_has(c, AN_LEARNT))
		return;
	c->job_deadline_ns = now_ns + due_ns;
	an_contract_place(cs, index);
}

/*
 * The learnt contract's job, which has just arrived, was asked for by one that is likely to wait
 * for it: it inherits this deadline (an_learn_inherited_ns()), and is due then too if that is
 * earlier.
 */
an_inline void an_contract_inherit_deadline(struct an_contracts *cs, u32 index, u64 deadline_ns)
{
	struct an_contract *c = an_contract(cs, index);

	if (!c->runnable || !an_has(c, AN_LEARNT))
		return;
	c->inherited_ns = deadline_ns;
	if (deadline_ns >= c->job_deadline_ns)
		return;
	c->job_deadline_ns = deadline_ns;
	an_contract_place(cs, index);
}

/*
 * The contract's job has ended, and the next one, which arrived at released_ns <= now_ns while it
 * was in service, goes on with what budget there is (rule 5 of cbs.h).
 */
an_outline enum an_rule an_contract_next_job(struct an_contracts *cs, u32 index, u64 released_ns,
					     u64 now_ns)
{
	struct an_contract *c = an_contract(cs, index);
	enum an_rule rule = AN_RULE_KEPT;

	if (!c->runnable)
		return AN_RULE_NONE;
	if (c->split) { /* its pieces go by the clock, not by jobs */
		an_contract_sleep(cs, index, now_ns);
		rule = an_contract_wake(cs, index, now_ns);
	} else {
		an_contract_job_end(c, now_ns);
		c->overran = 0;
		if (an_has(c, AN_EXHAUSTIVE)) {
			an_server_renew(c, released_ns);
			an_contract_place(cs, index);
			rule = AN_RULE_RELEASED;
		}
	}
	c->job_deadline_ns = released_ns + c->job_rel_ns;
	if (c->waits || an_counts_as_learnt(c))
		an_contract_place(cs, index); /* it stands by that */
	return rule;
}

/* What was promised has run for ran_ns, until now_ns. What it has beyond its promise learnt ones
 * do not lose. */
an_outline void an_promised_charge(struct an_contracts *cs, struct an_contract_cpu *q, u64 ran_ns,
				   bool beyond, u64 now_ns)
{
	an_bucket_fill(&q->promised, cs->bound, AN_BUCKET_NS, now_ns);
	q->promised.left_ns -= ran_ns;
	if (cs->bound && !beyond)
		an_learnt_gives(cs, q, ran_ns, now_ns);
}

/* Ran in rank BUDGET. */
an_inline enum an_rule an_contract_charge_budget(struct an_contracts *cs, struct an_contract *c,
						 u64 ran_ns, u64 now_ns)
{
	struct an_contract_cpu *q = an_contract_cpu(cs, c->cpu);
	u64 free_ns = an_residual_run(q, c->deadline_ns, ran_ns, now_ns);

	if (an_counts_as_learnt(c)) {
		an_learnt_charge(cs, q, c, ran_ns, now_ns);
		return AN_RULE_NONE;
	}
	an_promised_charge(cs, q, ran_ns, an_server_is_ahead(c, now_ns), now_ns);
	if (an_has(c, AN_WINDOW))
		return an_window_charge(c, ran_ns);
	if (c->split)
		return an_split_charge(cs, c, ran_ns);
	return an_flexible_charge(q, c, ran_ns, free_ns, cs->bound && q->promised.left_ns <= 0,
				  now_ns);
}

/*
 * The contract ran for ran_ns for an event [event.h]. Returns who is charged for it as ever:
 * itself, the task server, or AN_NONE, for what it pays in advance, or nobody does.
 */
an_outline u32 an_contract_charge_event(struct an_contracts *cs, u32 index, u64 ran_ns, u64 now_ns)
{
	struct an_contract *c = an_contract(cs, index);
	struct an_contract_cpu *q = an_contract_cpu(cs, c->cpu);
	u32 payer = c->payer;

	if (payer == AN_PAYS_IN_ADVANCE) {
		c->owes_ns += ran_ns;
		an_promised_charge(cs, q, ran_ns, true, now_ns);
	}
	if (c->event_left_ns > 0) {
		c->event_left_ns -= ran_ns;
		if (c->event_left_ns <= 0) {
			an_sink_ends(c);
			an_sink_place(cs, index);
		}
	}
	if (payer == AN_PAYS_ITS_BUDGET)
		return index;
	c->service_ns += ran_ns;
	c->extra_ns += ran_ns;
	return payer == AN_PAYS_SERVER ? q->server : AN_NONE;
}

/*
 * The contract ran for ran_ns, until now_ns, by the last pick. Call it whenever it stops, and at
 * every boundary; in parts, if that suits. Returns what it came to: with anything but AN_RULE_NONE
 * pick again.
 */
an_outline enum an_rule an_contract_charge(struct an_contracts *cs, u32 index, u64 ran_ns,
					   u64 now_ns)
{
	struct an_contract *c = an_contract(cs, index);
	enum an_rule rule = AN_RULE_NONE;

	if (ran_ns > AN_MAX_RUN_NS)
		ran_ns = AN_MAX_RUN_NS;
	if (!c->runnable || !ran_ns)
		return AN_RULE_NONE;
	if (an_events_on && c->payer) {
		index = an_contract_charge_event(cs, index, ran_ns, now_ns);
		if (!index)
			return AN_RULE_NONE;
		c = an_contract(cs, index);
	}
	c->service_ns += ran_ns;
	if (an_contract_has_budget(c)) {
		rule = an_contract_charge_budget(cs, c, ran_ns, now_ns);
	} else if (c->rank == AN_RANK_EXTRA) {
		c->extra_ns += ran_ns;
		an_promised_charge(cs, an_contract_cpu(cs, c->cpu), ran_ns, true, now_ns);
		if (cs->options & AN_EXTRA_COUNTS)
			rule = an_window_charge_extra(c, ran_ns);
	} else {
		c->borrowed_ns += ran_ns;
	}
	rule = an_opaque(rule);
	if (rule) {
		an_contract_place(cs, index);
		an_contracts_note_idle(cs, c->cpu, now_ns);
	}
	return rule;
}

/*
 * The learnt contract ran for ran_ns, until now_ns, in turns of others that were handed on to it,
 * or of its own that it has handed on: it may sleep by now.
 */
an_inline void an_contract_charge_turn(struct an_contracts *cs, u32 index, u64 ran_ns, u64 now_ns)
{
	struct an_contract *c = an_contract(cs, index);

	if (ran_ns > AN_MAX_RUN_NS)
		ran_ns = AN_MAX_RUN_NS;
	c->service_ns += ran_ns;
	an_learnt_charge(cs, an_contract_cpu(cs, c->cpu), c, ran_ns, now_ns);
}

/* When an_contracts_expire() is to be called next for this CPU, or AN_NEVER. */
an_inline u64 an_contracts_due(struct an_contracts *cs, u32 cpu)
{
	u32 first = an_heap_first(an_contract_cpu(cs, cpu), AN_TIMERS);

	return first ? an_contract(cs, first)->due_ns : AN_NEVER;
}

/* What was due for this contract is done. */
an_outline enum an_rule an_contract_expire(struct an_contracts *cs, u32 index, u64 now_ns)
{
	struct an_contract *c = an_contract(cs, index);
	bool waited = c->waits;
	enum an_rule rule;

	an_contract_detach(cs, index); /* a split one may change its CPU */
	if (an_has(c, AN_WINDOW)) {
		rule = an_period_end(c);
		an_period_begin(c, c->deadline_ns);
	} else if (c->split) {
		rule = an_split_boundary(cs, c, now_ns);
	} else if (an_server_is_held_back(c)) {
		c->throttled = 0; /* it has had a budget all the time */
		rule = AN_RULE_REPLENISHED;
	} else if (waited) {
		/* If it has run since it waited, it may do so for longer. */
		if (an_server_urgent_ns(cs, an_contract_cpu(cs, c->cpu), c) <= now_ns)
			c->urgent_ns = c->deadline_ns;
		rule = AN_RULE_EDF;
	} else {
		rule = an_server_replenish(c, now_ns);
	}
	rule = an_opaque(rule);
	an_contract_place(cs, index);
	return rule;
}

/*
 * The first that is due on this CPU, if anything is, is done: the contract it was for, or AN_NONE.
 * What runs there has been charged. The contract may now be on another CPU, which has to look then.
 */
an_inline u32 an_contracts_expire_one(struct an_contracts *cs, u32 cpu, u64 now_ns)
{
	u32 index;

	if (an_contracts_due(cs, cpu) > now_ns)
		return AN_NONE;
	index = an_heap_first(an_contract_cpu(cs, cpu), AN_TIMERS);
	an_contract_expire(cs, index, now_ns);
	return index;
}

/*
 * All that is due on this CPU: replenishments, ends of periods, ends of windows, servers that
 * become urgent. Adds to *kick (bit n: CPU n) the CPUs on which another contract may now have to
 * run, or a timer is to be set again. Returns an_contracts_due(); that is not after now_ns only if
 * there was more to do than AN_MAX_EXPIRED: call again. A shell that cannot hold its lock for so
 * long calls an_contracts_expire_one().
 */
an_outline u64 an_contracts_expire(struct an_contracts *cs, u32 cpu, u64 now_ns, u64 *kick)
{
	u32 left = AN_MAX_EXPIRED;

	an_while(left) {
		u32 index = an_contracts_expire_one(cs, cpu, now_ns);

		if (!index)
			break;
		*kick |= 1ULL << (cpu & 63) | 1ULL << (an_contract(cs, index)->cpu & 63);
		left--;
	}
	return an_contracts_due(cs, cpu);
}

#endif
