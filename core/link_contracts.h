/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Contracts of a link: a class's packets leave before others', within a budget.
 *
 * They are the contracts of a CPU (contracts.h), hard constant bandwidth servers, and the link is
 * that CPU: a packet of l bytes runs for l / rate. So C bytes in every period T are a budget of
 * C / rate, and what is known of servers holds here, but for three things:
 *
 *      - a packet is not preempted, so that a promise is kept one largest packet late;
 *      - a packet's length is known when it is picked, and it is charged at once;
 *      - a packet may be longer than what is left of the budget: it goes, and the next budget pays.
 *
 * A contract is awake while its class has packets waiting. Without budget the class has its share,
 * as without a contract. So nothing has to happen when a budget comes, but at the next pick.
 */
#ifndef ANDANTE_CORE_LINK_CONTRACTS_H
#define ANDANTE_CORE_LINK_CONTRACTS_H

#include "contract_pick.h"
#include "link.h"

#define AN_LINK_CPU 0

struct an_link_contracts {
	struct an_contracts set;
	u16 contract[AN_MAX_NODES]; /* by leaf; AN_NONE: its class has none */
	u16 leaf[AN_MAX_CONTRACTS]; /* by contract */
};

an_inline void an_link_contracts_init(struct an_link_contracts *l)
{
	an_contracts_init(&l->set, 0);
}

an_inline u16 *an_leaf_contract(struct an_link_contracts *l, u32 leaf)
{
	return &l->contract[an_bounded(leaf, AN_MAX_NODES)];
}

/* The class has none any more. */
an_inline void an_leaf_contract_end(struct an_link_contracts *l, u32 leaf)
{
	u16 *contract = an_leaf_contract(l, leaf);

	if (*contract)
		an_contract_remove(&l->set, *contract);
	*contract = AN_NONE;
}

/* ---- calls that a verifier looks at once each: l is never NULL ---- */

/* The contract's class has packets now. */
an_global int an_link_contract_wake(struct an_link_contracts *l, u32 contract, u64 now_ns)
{
	if (l)
		an_contract_wake(&l->set, contract, now_ns);
	return 0;
}

/* It has none any more. */
an_global int an_link_contract_sleep(struct an_link_contracts *l, u32 contract, u64 now_ns)
{
	if (l)
		an_contract_sleep(&l->set, contract, now_ns);
	return 0;
}

/* A packet of the contract that was picked takes the link for so long, from now on. */
an_global int an_link_contract_charge(struct an_link_contracts *l, u32 contract, u64 takes_ns,
				      u64 now_ns)
{
	if (l)
		an_contract_charge(&l->set, contract, takes_ns, now_ns);
	return 0;
}

/* A budget that is due comes, if there is one: false if not. */
an_global bool an_link_contract_expire(struct an_link_contracts *l, u64 now_ns)
{
	return l && an_contracts_expire_one(&l->set, AN_LINK_CPU, now_ns);
}

/* The contract that comes next, or AN_NONE. All that is due has come. */
an_global u32 an_link_contract_next(struct an_link_contracts *l, u64 now_ns)
{
	u32 rule;

	return l ? an_contracts_pick(&l->set, AN_LINK_CPU, now_ns, false, &rule) : AN_NONE;
}

/* ---- of classes ---- */

an_inline void an_leaf_contract_wake(struct an_link_contracts *l, u32 leaf, u64 now_ns)
{
	u32 contract = *an_leaf_contract(l, leaf);

	if (contract)
		an_link_contract_wake(l, contract, now_ns);
}

an_inline void an_leaf_contract_sleep(struct an_link_contracts *l, u32 leaf, u64 now_ns)
{
	u32 contract = *an_leaf_contract(l, leaf);

	if (contract)
		an_link_contract_sleep(l, contract, now_ns);
}

/*
 * The class may send so many bytes in every period before others: 0; or -1, and it has what it had.
 * The link must have a rate, for which the bytes are not too many. Whether others leave room for
 * it is not asked: admission is the caller's.
 */
an_inline int an_leaf_contract_set(struct an_link_contracts *l, u32 leaf, u64 rate, u32 bytes,
				   u64 period_ns)
{
	u16 *contract = an_leaf_contract(l, leaf);
	struct an_promise promise = {.period_ns = period_ns, .flags = AN_HARD, .cpu = AN_LINK_CPU};
	u32 made;

	if (!rate)
		return -1;
	promise.budget_ns = (bytes * AN_SECOND_NS + rate - 1) / rate;
	if (*contract) {
		const struct an_promise *now = &an_contract(&l->set, *contract)->promise;

		if (now->budget_ns == promise.budget_ns && now->period_ns == period_ns)
			return 0;
		return an_contract_set(&l->set, *contract, &promise);
	}
	made = an_contract_create(&l->set, &promise);
	if (!made)
		return -1;
	*contract = made;
	l->leaf[an_bounded(made, AN_MAX_CONTRACTS)] = leaf;
	return 0;
}

/* The leaf whose contract comes next; AN_NONE: it is the classes' turn. */
an_inline u32 an_link_contracts_pick(struct an_link_contracts *l, u64 now_ns)
{
	u32 contract;

	if (!l->set.count)
		return AN_NONE;
	an_while(an_link_contract_expire(l, now_ns))
		;
	contract = an_link_contract_next(l, now_ns);
	return contract ? l->leaf[an_bounded(contract, AN_MAX_CONTRACTS)] : AN_NONE;
}

/* The picked leaf sends so many bytes now. */
an_inline void an_link_contracts_charge(struct an_link_contracts *l, u32 leaf, u64 rate, u32 bytes,
					u64 now_ns)
{
	if (rate)
		an_link_contract_charge(l, *an_leaf_contract(l, leaf), bytes * AN_SECOND_NS / rate,
					now_ns);
}

#endif
