/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Contracts nested in others: around those of a class's tasks, and of the classes below it, is the
 * class's own. What was promised to that outer one is for all that is in it. So what runs under an
 * inner contract is charged twice: to that one, by its own rules, and to the outer one here, which
 * may sleep, be without budget, or be served by another CPU at that time.
 *
 *      the outer one          the run comes out of
 *
 *      holds budget           its budget, as if it had run itself
 *      sleeps                 its budget; one whose period is over is renewed first, from the
 *                             beginning of the run, as if it had woken with it [cbs.h]
 *      is throttled, or       its next budgets (owes_ns, an_server_pay()), unless a whole period
 *      has too little         passes in which it uses none
 *      is one of windows,     the period, or the piece, that is being served; these come and go
 *      or split               with the clock
 *
 * As long as inner budgets add up to no more than the outer one, which admission sees to, all of
 * them together get what the outer one promises, and each inner one its own part of that.
 */
#ifndef ANDANTE_CORE_NESTED_H
#define ANDANTE_CORE_NESTED_H

#include "contracts.h"
#include "dwcs.h"
#include "edfwm.h"
#include "fcbs.h"

/* Of such a run it owes what it has no budget for. Returns what it has for it [ns]. */
an_inline u64 an_contract_owe(struct an_contract *c, u64 ran_ns)
{
	u64 left_ns = c->throttled || c->left_ns < 0 ? 0 : c->left_ns;

	if (ran_ns <= left_ns)
		return ran_ns;
	c->owes_ns += ran_ns - left_ns;
	return left_ns;
}

/* One that sleeps: a budget whose period is over is none; the run begins another one. */
an_inline void an_contract_charge_asleep(struct an_contracts *cs, u32 index, u64 ran_ns,
					 u64 began_ns)
{
	struct an_contract *c = an_contract(cs, index);

	if (!c->started || an_server_release_ns(c) <= began_ns) {
		an_contract_forget_residual(cs, index);
		an_server_renew(c, began_ns);
		c->started = 1;
	}
	c->left_ns -= an_contract_owe(c, ran_ns);
}

/*
 * A contract nested in this one ran for ran_ns, until now_ns, on whichever CPU. Returns what that
 * came to for this one: with anything but AN_RULE_NONE pick again on its CPU.
 */
an_outline enum an_rule an_contract_charge_around(struct an_contracts *cs, u32 index, u64 ran_ns,
						  u64 now_ns)
{
	struct an_contract *c = an_contract(cs, index);
	bool by_clock = an_has(c, AN_WINDOW) || c->split;
	enum an_rule rule = AN_RULE_NONE;

	if (!c->used || ran_ns > AN_MAX_RUN_NS || ran_ns > now_ns)
		return AN_RULE_NONE;
	if (!by_clock && !c->runnable)
		an_contract_charge_asleep(cs, index, ran_ns, now_ns - ran_ns);
	else if (!by_clock)
		ran_ns = an_contract_owe(c, ran_ns);
	if (c->rank != AN_RANK_BUDGET)
		return AN_RULE_NONE;
	if (c->split)
		rule = an_split_charge(cs, c, ran_ns);
	else if (by_clock)
		rule = an_window_charge(c, ran_ns);
	else
		rule = an_server_charge(c, ran_ns);
	rule = an_opaque(rule);
	if (rule) {
		an_contract_place(cs, index);
		an_contracts_note_idle(cs, c->cpu, now_ns);
	}
	return rule;
}

#endif
