/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What must hold of a set of contracts between any two calls of the core.
 *
 *      slots        free ones and used ones are disjoint and complete, those of pieces too
 *      heaps        in order, both ways; a contract is in those that its state says, on its CPU
 *      counts       contracts, holders of budget, windows and utilisation are what a recount finds
 *      events       the first is the earliest, and none is before a contract that cannot run
 *      budgets      positive for whoever is served on them, and never above what was promised
 *      windows      0 <= x' <= x, x' <= y'
 *      residuals    in the order of deadlines, each of one that sleeps on this CPU and may leave
 *                   some, one each
 *      learnt       what they are sure of is no more than the bound, buckets hold what they can
 *
 * contract_broken() names the first that does not hold. It looks at every contract.
 */
#ifndef ANDANTE_TESTS_CONTRACT_INVARIANTS_H
#define ANDANTE_TESTS_CONTRACT_INVARIANTS_H

#include "../core.h"

#include <string.h>

/* What a recount finds of a CPU. */
struct contract_recount {
	u64 utilization;
	u32 in_heap[3], holders, urgent, strict, windows, window_max, sure;
};

static inline const char *broken_slots(struct an_contracts *cs)
{
	static bool seen[AN_MAX_CONTRACTS], split[AN_MAX_SPLITS];
	u32 used = 0, listed = 0, splits = 0, learnt = 0;

	memset(seen, 0, sizeof(seen));
	memset(split, 0, sizeof(split));
	for (u32 at = 1; at < cs->unused; at++) {
		const struct an_contract *c = &cs->contracts[at];

		used += c->used;
		learnt += c->used && an_has(c, AN_LEARNT);
		if (!c->used || !c->split)
			continue;
		splits++;
		if (c->split >= cs->split_unused || split[c->split])
			return "pieces are of one contract";
		split[c->split] = true;
	}
	for (u32 at = cs->free_next; at; at = cs->contracts[at].next_free, listed++) {
		if (at >= cs->unused || cs->contracts[at].used || seen[at])
			return "the list of free slots has free ones, each once";
		seen[at] = true;
	}
	if (used != cs->count || used + listed != cs->unused - 1)
		return "every slot is used or free";
	if (learnt != cs->learnt || learnt > cs->learnt_most || cs->learnt_most > AN_MAX_LEARNT)
		return "learnt ones are counted, and no more than may be";
	for (u32 at = cs->split_free; at; at = cs->splits[at].next_free, splits++) {
		if (at >= cs->split_unused || split[at])
			return "the list of free pieces has free ones, each once";
		split[at] = true;
	}
	return splits == cs->split_unused - 1 ? NULL : "all pieces are used or free";
}

/* Its rank, order and places are those that its state asks for. */
static inline const char *broken_place(struct an_contracts *cs, u32 index)
{
	struct an_contract *c = &cs->contracts[index], fresh = *c;

	if (c->rank != an_contract_rank(c))
		return "the rank is what the state says";
	an_contract_order(cs, &fresh);
	if (c->rank != AN_RANK_OUT && memcmp(fresh.order, c->order, sizeof(c->order)))
		return "the order is what the state says";
	if ((c->position[AN_READY] != 0) != (c->rank != AN_RANK_OUT))
		return "ready contracts, and no others, are in the heap of those ready";
	if ((c->position[AN_TIMERS] != 0) != (c->runnable && c->due_ns != AN_NEVER))
		return "what is due, and nothing else, is timed";
	if (c->runnable && c->throttled && !c->position[AN_TIMERS])
		return "a throttled one is timed";
	if (c->runnable && an_has(c, AN_WINDOW) && !c->position[AN_TIMERS])
		return "the end of a period is timed";
	if ((c->position[AN_SINKS] != 0) !=
	    (c->runnable && !c->parked && c->event_first_ns != AN_NEVER && !an_sink_is_ahead(c)))
		return "who has events, and wants to run, and no other, is among the sinks";
	if (c->event_first_ns != AN_NEVER && !an_contract_may_sink(c))
		return "sinks have windows";
	if (c->event_left_ns < 0 || c->event_left_ns > (s64)AN_MAX_PERIOD_NS)
		return "an event is served for no longer than one budget";
	fresh.event_left_ns = 0;
	an_sink_settle(&fresh);
	if (!c->event_left_ns && fresh.event_first_ns != c->event_first_ns)
		return "the first event is the earliest";
	if (!c->split && c->cpu != c->promise.cpu)
		return "it is on the CPU that was promised";
	if (c->split && c->piece >= cs->splits[c->split].count)
		return "the piece is one of those that there are";
	if (c->split && c->runnable && cs->splits[c->split].piece[c->piece].cpu != c->cpu)
		return "a split one is on the CPU of its piece";
	return NULL;
}

static inline const char *broken_budget(struct an_contracts *cs, u32 index)
{
	const struct an_contract *c = &cs->contracts[index];
	u64 most_ns = c->promise.budget_ns;

	if (c->split && c->started)
		most_ns = cs->splits[c->split].piece[c->piece].budget_ns;
	if (c->left_ns > (s64)most_ns)
		return "no more is left than was promised";
	if (an_contract_has_budget(c) && c->left_ns <= 0 && !an_has(c, AN_EXHAUSTIVE))
		return "who holds budget has some left";
	if (c->x > c->promise.x || c->x > c->y)
		return "of a window no more can be lost than tolerated, or than is left of it";
	if (c->runnable && !c->started)
		return "who has something to run has been woken";
	if (c->split && an_has(c, AN_RECLAIM | AN_CATCH_UP))
		return "a split one keeps track of itself";
	return NULL;
}

static inline void recount(struct an_contracts *cs, u32 index, struct contract_recount *recounts)
{
	const struct an_contract *c = &cs->contracts[index];
	struct contract_recount *home = &recounts[c->promise.cpu];
	struct an_split *split = &cs->splits[c->split];

	recounts[c->cpu].in_heap[AN_READY] += c->position[AN_READY] != 0;
	recounts[c->cpu].in_heap[AN_TIMERS] += c->position[AN_TIMERS] != 0;
	recounts[c->cpu].in_heap[AN_SINKS] += c->position[AN_SINKS] != 0;
	recounts[c->cpu].holders += c->rank == AN_RANK_BUDGET;
	recounts[c->cpu].urgent += c->rank == AN_RANK_BUDGET && !c->waits;
	if (an_has(c, AN_TASK_SERVER))
		return;
	for (u32 at = 0; c->split && at < split->count; at++)
		recounts[split->piece[at].cpu].utilization +=
			(split->piece[at].budget_ns << AN_UTILIZATION_SHIFT) / c->promise.period_ns;
	home->utilization += c->split ? 0 : c->utilization;
	for (u32 at = 0; c->split && at < split->count; at++)
		recounts[split->piece[at].cpu].strict++;
	home->strict += !c->split && an_promise_is_strict(&c->promise);
	home->sure += c->sure;
	home->windows += an_has(c, AN_WINDOW);
	if (an_has(c, AN_WINDOW) && home->window_max < c->promise.y)
		home->window_max = c->promise.y;
}

static inline const char *broken_heap(struct an_contracts *cs, u32 cpu, u32 heap, u32 *index)
{
	struct an_contract_cpu *q = &cs->cpus[cpu];

	for (u32 at = 1; at <= q->count[heap]; at++) {
		u32 above = *an_heap_slot(q, heap, at / 2);

		*index = *an_heap_slot(q, heap, at);
		if (!*index || *index >= cs->unused || !cs->contracts[*index].used)
			return "heaps have contracts";
		if (cs->contracts[*index].cpu != cpu || cs->contracts[*index].position[heap] != at)
			return "a contract knows where it is";
		if (at > 1 && !an_heap_before(cs, heap, above, *index))
			return "heaps are in order";
		if (at > 1 && heap == AN_READY && an_precedence(cs, above, *index) <= 0)
			return "the order in numbers is that of the rules";
	}
	return NULL;
}

static inline const char *broken_residuals(struct an_contracts *cs, u32 cpu, u32 *index)
{
	const struct an_contract_cpu *q = &cs->cpus[cpu];

	if (q->residuals > AN_MAX_RESIDUALS)
		return "the list of what is left over has an end";
	for (u32 at = 0; at < q->residuals; at++) {
		const struct an_residual *r = &q->residual[at];
		const struct an_contract *c = &cs->contracts[r->owner];

		*index = r->owner;
		if (!c->used || !an_has(c, AN_RECLAIM) || c->cpu != cpu || c->runnable)
			return "what is left over is of one that sleeps here";
		if (!r->left_ns || r->left_ns > c->promise.budget_ns)
			return "what is left over is a part of one budget";
		if (at && q->residual[at - 1].deadline_ns > r->deadline_ns)
			return "what is left over is in the order of deadlines";
		for (u32 other = 0; other < at; other++)
			if (q->residual[other].owner == r->owner)
				return "each has left over one thing";
	}
	return NULL;
}

static inline const char *broken_cpu(struct an_contracts *cs, u32 cpu,
				     const struct contract_recount *found, u32 *index)
{
	const struct an_contract_cpu *q = &cs->cpus[cpu];
	const char *broken;

	for (u32 heap = AN_READY; heap <= AN_SINKS; heap++) {
		if (q->count[heap] != found->in_heap[heap])
			return "a heap has all who think they are in it";
		broken = broken_heap(cs, cpu, heap, index);
		if (broken)
			return broken;
	}
	*index = cpu;
	if (q->holders != found->holders)
		return "holders are those that hold budget";
	if (q->urgent != found->urgent || q->strict != found->strict)
		return "those that wait for nobody are counted, and those that cannot";
	if (q->utilization != found->utilization)
		return "utilisation is the sum over the contracts";
	if (q->windows != found->windows || q->window_max < found->window_max)
		return "windows are counted, and none is longer than the longest";
	if (q->sure != found->sure || q->sure > cs->learn_bound)
		return "what learnt ones are sure of is counted, and within the bound";
	if (q->promised.left_ns > AN_BUCKET_NS || q->learnt.left_ns > AN_BUCKET_NS)
		return "a bucket holds so much";
	return broken_residuals(cs, cpu, index);
}

/* The first invariant that does not hold, in words, and the contract or CPU; NULL when all do. */
static inline const char *contract_broken(struct an_contracts *cs, u32 cpus, u32 *index)
{
	struct contract_recount recounts[AN_MAX_CONTRACT_CPUS];
	const char *broken = broken_slots(cs);

	memset(recounts, 0, sizeof(recounts));
	for (u32 at = 1; !broken && at < cs->unused; at++) {
		if (!cs->contracts[at].used)
			continue;
		*index = at;
		broken = broken_place(cs, at);
		if (!broken)
			broken = broken_budget(cs, at);
		recount(cs, at, recounts);
	}
	for (u32 cpu = 0; !broken && cpu < cpus; cpu++)
		broken = broken_cpu(cs, cpu, &recounts[cpu], index);
	return broken;
}

#endif
