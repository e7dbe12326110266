/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The set of all contracts: making, changing, moving and removing them, and keeping each in the
 * right place in the heaps of its CPU. What happens while they run is in contract_run.h.
 *
 * All calls want the set's lock held; there is one for the set. Nothing is scanned: all is
 * O(log n) in the number of contracts of a CPU.
 */
#ifndef ANDANTE_CORE_CONTRACTS_H
#define ANDANTE_CORE_CONTRACTS_H

#include "cbs.h"
#include "contract.h"
#include "fcbs.h"
#include "heap.h"
#include "sink.h"

/* No contracts; options of enum an_contract_option. Before anything else. */
an_inline void an_contracts_init(struct an_contracts *cs, u32 options)
{
	u32 cpu = 0;

	cs->options = options;
	cs->bound = cs->learn_bound = cs->hand = 0;
	cs->free_next = cs->split_free = AN_NONE;
	cs->unused = cs->split_unused = 1;
	cs->slots = AN_MAX_CONTRACTS;
	cs->count = cs->learnt = 0;
	cs->learnt_most = AN_MAX_LEARNT;
	cs->learnt_free = AN_MAX_LEARNT / 8;
	cs->kernel = AN_KERNEL_PART;
	cs->gives_way_ns = AN_MAX_PERIOD_NS; /* what sleeps for longer has no rhythm to be served */
	an_while(cpu < AN_MAX_CONTRACT_CPUS) {
		struct an_contract_cpu *q = an_contract_cpu(cs, cpu);

		q->count[AN_READY] = q->count[AN_TIMERS] = q->count[AN_SINKS] = 0;
		q->holders = q->urgent = q->strict = q->windows = q->window_max = q->residuals = 0;
		q->utilization = q->settled_ns = q->idle_ns = 0;
		q->held = q->sure = 0;
		q->level = 1024;
		q->server = AN_NONE;
		q->promised.left_ns = q->learnt.left_ns = q->beside.left_ns = 0;
		q->promised.filled_ns = q->learnt.filled_ns = q->beside.filled_ns = 0;
		cpu = an_opaque(cpu + 1);
	}
}

/* Where a contract stands among those that are ready. */
an_inline enum an_rank an_contract_rank(const struct an_contract *c)
{
	if (!c->runnable || c->parked || an_server_is_held_back(c))
		return AN_RANK_OUT;
	if (c->throttled && an_has(c, AN_SPILLS))
		return c->dry ? AN_RANK_OUT : AN_RANK_EXTRA;
	if (c->throttled)
		return an_has(c, AN_BORROW) ? AN_RANK_BORROW : AN_RANK_OUT;
	if (an_has(c, AN_LEARNT))
		return AN_RANK_EXTRA;
	if (!c->served)
		return AN_RANK_BUDGET;
	if (an_has(c, AN_WORK_CONSERVING))
		return AN_RANK_EXTRA;
	return an_has(c, AN_BORROW) ? AN_RANK_BORROW : AN_RANK_OUT;
}

/* Is it ready, with budget? */
an_inline bool an_contract_has_budget(const struct an_contract *c)
{
	return c->rank == AN_RANK_BUDGET || (c->rank == AN_RANK_EXTRA && an_counts_as_learnt(c));
}

an_inline void an_contract_set_rank(struct an_contract_cpu *q, struct an_contract *c, u32 rank,
				    bool waits)
{
	bool holds = rank == AN_RANK_BUDGET, held = c->rank == AN_RANK_BUDGET;

	q->holders += holds - held;
	q->urgent += (holds && !waits) - (held && !c->waits);
	c->rank = rank;
	c->waits = waits;
}

/* Something about the contract has changed: into the heaps of its CPU, to its place, or out. */
an_outline void an_contract_place(struct an_contracts *cs, u32 index)
{
	struct an_contract *c = an_contract(cs, index);
	struct an_contract_cpu *q = an_contract_cpu(cs, c->cpu);
	u32 rank = an_contract_rank(c);

	an_contract_set_rank(q, c, rank, rank == AN_RANK_BUDGET && an_server_can_wait(cs, q, c));
	an_contract_order(cs, c);
	an_heap_set(cs, index, AN_READY, c->rank != AN_RANK_OUT);
	if (an_has(c, AN_WINDOW)) {
		c->due_ns = c->deadline_ns;
		if (an_events_on)
			an_sink_changed(cs, index);
	} else if (!c->split && !c->throttled) {
		c->due_ns = c->waits ? an_server_urgent_ns(cs, q, c) : AN_NEVER;
	}
	an_heap_set(cs, index, AN_TIMERS, c->runnable && c->due_ns != AN_NEVER);
}

/*
 * A shell that finds nothing of a runnable contract to run (it is on its way from another CPU)
 * parks it, or others would wait behind it. Time goes on for it: nothing ends, nothing begins.
 */
an_inline void an_contract_park(struct an_contracts *cs, u32 index, bool parked)
{
	an_contract(cs, index)->parked = parked;
	an_contract_place(cs, index);
}

/* Out of the heaps, so that its CPU may be changed; an_contract_place() puts it back. */
an_outline void an_contract_detach(struct an_contracts *cs, u32 index)
{
	struct an_contract *c = an_contract(cs, index);

	an_contract_set_rank(an_contract_cpu(cs, c->cpu), c, AN_RANK_OUT, false);
	an_heap_set(cs, index, AN_READY, false);
	an_heap_set(cs, index, AN_TIMERS, false);
	if (an_events_on)
		an_heap_set(cs, index, AN_SINKS, false);
}

/* What the pieces of a split contract ask of their CPUs, added or taken off. */
an_outline void an_split_weigh(struct an_contracts *cs, const struct an_contract *c, bool add)
{
	u32 at = 0, count = an_split(cs, c->split)->count;
	u64 period_ns = c->promise.period_ns ? c->promise.period_ns : 1;

	an_while(at < count && at < AN_MAX_PIECES) {
		const struct an_piece *piece = an_piece(cs, c->split, at);
		u64 utilization = (piece->budget_ns << AN_UTILIZATION_SHIFT) / period_ns;

		an_contract_cpu(cs, piece->cpu)->utilization += add ? utilization : -utilization;
		an_contract_cpu(cs, piece->cpu)->strict += add ? 1 : -1;
		at = an_opaque(at + 1);
	}
}

/* Adds the contract to what is known of its CPU as a whole. The task server lives on the rest. */
an_inline void an_contract_enter(struct an_contracts *cs, struct an_contract *c)
{
	struct an_contract_cpu *q = an_contract_cpu(cs, c->promise.cpu);

	cs->learnt += an_has(c, AN_LEARNT);
	if (an_has(c, AN_TASK_SERVER))
		return;
	if (c->split)
		an_split_weigh(cs, c, true);
	else
		q->utilization += c->utilization;
	q->sure += c->sure;
	q->strict += !c->split && an_promise_is_strict(&c->promise);
	if (!an_has(c, AN_WINDOW))
		return;
	q->windows++;
	if (q->window_max < c->promise.y)
		q->window_max = c->promise.y;
}

/* A maximum of those left would take a scan: the bound stands until no window is left. */
an_inline void an_contract_exit(struct an_contracts *cs, struct an_contract *c)
{
	struct an_contract_cpu *q = an_contract_cpu(cs, c->promise.cpu);

	cs->learnt -= an_has(c, AN_LEARNT);
	if (an_has(c, AN_TASK_SERVER))
		return;
	if (c->split)
		an_split_weigh(cs, c, false);
	else
		q->utilization -= c->utilization;
	q->sure -= c->sure;
	q->strict -= !c->split && an_promise_is_strict(&c->promise);
	if (an_has(c, AN_WINDOW) && !--q->windows)
		q->window_max = 0;
}

an_inline void an_contract_promise(struct an_contracts *cs, struct an_contract *c,
				   const struct an_promise *promise)
{
	c->promise = *promise;
	if (!c->promise.deadline_rel_ns)
		c->promise.deadline_rel_ns = c->promise.period_ns;
	c->job_rel_ns = c->promise.deadline_rel_ns;
	if (an_has(c, AN_LEARNT)) /* its budget is kept by periods, its jobs are ordered by D */
		c->promise.deadline_rel_ns = c->promise.period_ns;
	c->x = c->promise.x;
	c->y = c->promise.y;
	c->utilization = an_has(c, AN_LEARNT) ? 0 : an_promise_utilization(promise);
	an_contract_enter(cs, c);
}

an_inline void an_contract_clear(struct an_contract *c)
{
	c->deadline_ns = c->urgent_ns = c->due_ns = c->job_rel_ns = c->job_deadline_ns =
		c->release_ns = c->debt_ns = 0;
	c->left_ns = 0;
	c->owes_ns = 0;
	c->ran_ns = c->inherited_ns = c->service_ns = c->extra_ns = c->borrowed_ns =
		c->reclaimed_ns = 0;
	c->deadlines = c->misses = c->violations = c->exhaustions = c->replenishments = 0;
	c->position[AN_READY] = c->position[AN_TIMERS] = c->position[AN_SINKS] = 0;
	if (an_events_on)
		an_sink_clear(c);
	c->own.left_ns = c->own.filled_ns = c->sure = c->part = 0;
	c->split = c->piece = 0;
	c->rank = AN_RANK_OUT;
	c->started = c->runnable = c->throttled = c->served = c->owed = c->overran = 0;
	c->parked = 0;
}

/*
 * A new contract, asleep. AN_NONE when it may not be promised (an_promise_valid()) or there is no
 * room in the set: for learnt ones there is less, so that what is promised finds room whatever has
 * been learnt. Whether there is room on the CPU is not asked: admission is the caller's.
 */
an_outline u32 an_contract_create(struct an_contracts *cs, const struct an_promise *promise)
{
	u32 index = cs->free_next;
	struct an_contract *c;

	if (!an_promise_valid(promise))
		return AN_NONE;
	if (promise->flags & AN_LEARNT && cs->learnt >= cs->learnt_most)
		return AN_NONE;
	if (index) {
		cs->free_next = an_contract(cs, index)->next_free;
	} else {
		if (cs->unused >= cs->slots)
			return AN_NONE;
		index = cs->unused++;
	}
	c = an_contract(cs, index);
	an_contract_clear(c);
	c->used = 1;
	c->generation++;
	c->cpu = promise->cpu;
	an_contract_promise(cs, c, promise);
	cs->count++;
	return index;
}

/* What it left over is its own again. */
an_inline void an_contract_forget_residual(struct an_contracts *cs, u32 index)
{
	struct an_contract *c = an_contract(cs, index);

	if (an_has(c, AN_RECLAIM))
		an_residual_take_back(an_contract_cpu(cs, c->cpu), c, index);
}

/* Of what was promised before, no more is left than one budget of what is now. The deadline stays.
 */
an_inline void an_contract_cut(struct an_contract *c)
{
	if (c->left_ns > (s64)c->promise.budget_ns)
		c->left_ns = c->promise.budget_ns;
}

/*
 * Another promise for a contract that goes on: 0, or -1 when it may not be promised, or would be
 * of another kind (AN_WINDOW, AN_TASK_SERVER, split) or on another CPU. What is in use stays: the
 * deadline, and of the budget what the new one is not below (an_contract_cut()). The window begins
 * anew.
 */
an_outline int an_contract_set(struct an_contracts *cs, u32 index, const struct an_promise *promise)
{
	struct an_contract *c = an_contract(cs, index);
	u32 changed = c->promise.flags ^ promise->flags;

	if (!c->used || c->split || promise->cpu != c->promise.cpu ||
	    changed & (AN_WINDOW | AN_TASK_SERVER) || !an_promise_valid(promise))
		return -1;
	an_contract_forget_residual(cs, index);
	an_contract_exit(cs, c);
	an_contract_promise(cs, c, promise);
	an_contract_cut(c);
	if (c->throttled && !an_has(c, AN_HARD)) {
		c->throttled = 0;
		an_server_refill(c);
	}
	an_contract_place(cs, index);
	return 0;
}

/*
 * To another CPU, as it is: 0, or -1 for a split contract, whose pieces say where it runs, or no
 * such CPU. The caller has stopped and charged it if it ran, and looks at both CPUs after it.
 */
an_outline int an_contract_move(struct an_contracts *cs, u32 index, u32 cpu)
{
	struct an_contract *c = an_contract(cs, index);

	if (!c->used || c->split || cpu >= AN_MAX_CONTRACT_CPUS)
		return -1;
	an_contract_detach(cs, index);
	an_contract_forget_residual(cs, index);
	an_contract_exit(cs, c);
	c->cpu = c->promise.cpu = cpu;
	an_contract_enter(cs, c);
	an_contract_place(cs, index);
	return 0;
}

/* The contract is no more: 0, or -1 if there was none. If it ran the caller stops it first. */
an_outline int an_contract_remove(struct an_contracts *cs, u32 index)
{
	struct an_contract *c = an_contract(cs, index);

	if (!c->used)
		return -1;
	an_contract_detach(cs, index);
	an_contract_forget_residual(cs, index);
	an_contract_exit(cs, c);
	if (c->split) {
		an_split(cs, c->split)->next_free = cs->split_free;
		cs->split_free = c->split;
	}
	c->used = 0;
	c->generation++;
	c->next_free = cs->free_next;
	cs->free_next = index;
	cs->count--;
	return 0;
}

#endif
