/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A set of contracts, and what must hold of it between any two calls. Every file that includes
 * this has a set of its own.
 */
#ifndef ANDANTE_TESTS_CONTRACT_FIXTURE_H
#define ANDANTE_TESTS_CONTRACT_FIXTURE_H

#include "test.h"

static struct an_contracts set;

static inline struct an_contract *contract(u32 index)
{
	return &set.contracts[index];
}

/* A heap is in order, and its contracts know where they are. */
static inline void check_heap(u32 cpu, u32 heap)
{
	struct an_contract_cpu *q = &set.cpus[cpu];

	for (u32 at = 1; at <= q->count[heap]; at++) {
		u32 index = *an_heap_slot(q, heap, at);

		CHECK(contract(index)->used && contract(index)->runnable);
		CHECK_EQ(contract(index)->cpu, cpu);
		CHECK_EQ(contract(index)->position[heap], at);
		if (at == 1)
			continue;
		CHECK(an_heap_before(&set, heap, *an_heap_slot(q, heap, at / 2), index));
		CHECK(heap != AN_READY ||
		      an_precedence(&set, *an_heap_slot(q, heap, at / 2), index) > 0);
		CHECK(heap != AN_TIMERS ||
		      contract(*an_heap_slot(q, heap, at / 2))->due_ns <= contract(index)->due_ns);
	}
}

static inline void check_contracts(u32 cpus)
{
	u32 used = 0, ready[AN_MAX_CONTRACT_CPUS] = {0}, holders[AN_MAX_CONTRACT_CPUS] = {0};
	u32 sinks[AN_MAX_CONTRACT_CPUS] = {0};
	u64 utilization[AN_MAX_CONTRACT_CPUS] = {0};

	for (u32 index = 1; index < set.unused; index++) {
		struct an_contract *c = contract(index);

		if (!c->used)
			continue;
		used++;
		CHECK_EQ(c->rank, an_contract_rank(c));
		CHECK_EQ(c->position[AN_READY] != 0, c->rank != AN_RANK_OUT);
		ready[c->cpu] += c->rank != AN_RANK_OUT;
		holders[c->cpu] += c->rank == AN_RANK_BUDGET;
		CHECK(c->rank != AN_RANK_BUDGET || c->left_ns > 0 || an_has(c, AN_EXHAUSTIVE));
		CHECK(!c->throttled || !c->runnable || c->position[AN_TIMERS]);
		sinks[c->cpu] += c->position[AN_SINKS] != 0;
		if (!c->split && !an_has(c, AN_TASK_SERVER))
			utilization[c->cpu] += c->utilization;
	}
	CHECK_EQ(used, set.count);
	for (u32 cpu = 0; cpu < cpus; cpu++) {
		struct an_contract_cpu *q = &set.cpus[cpu];

		CHECK_EQ(q->count[AN_READY], ready[cpu]);
		CHECK_EQ(q->holders, holders[cpu]);
		CHECK(q->utilization >= utilization[cpu]); /* and pieces */
		check_heap(cpu, AN_READY);
		check_heap(cpu, AN_TIMERS);
		CHECK_EQ(q->count[AN_SINKS], sinks[cpu]);
		check_heap(cpu, AN_SINKS);
		for (u32 at = 1; at < q->residuals; at++)
			CHECK(q->residual[at - 1].deadline_ns <= q->residual[at].deadline_ns);
	}
}

/* A contract on this CPU, D = T. */
static inline u32 create_on(u32 cpu, u64 budget_ns, u64 period_ns, u32 x, u32 y, u32 flags)
{
	struct an_promise promise = {budget_ns, period_ns, 0, x, y, flags, cpu};
	u32 index = an_contract_create(&set, &promise);

	CHECK(index != AN_NONE);
	return index;
}

static inline u32 create_server(u64 budget_ns, u64 period_ns, u32 flags)
{
	return create_on(0, budget_ns, period_ns, 0, 0, flags);
}

static inline u32 create_window(u64 budget_ns, u64 period_ns, u32 x, u32 y, u32 flags)
{
	return create_on(0, budget_ns, period_ns, x, y, flags | AN_WINDOW);
}

/* What is to run on this CPU, by which rule; not in the background. */
static inline u32 pick_contract(u32 cpu, u64 now_ns, u32 *rule)
{
	u64 kick = 0;

	an_contracts_expire(&set, cpu, now_ns, &kick);
	return an_contracts_pick(&set, cpu, now_ns, false, rule);
}

#endif
