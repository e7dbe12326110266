/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The two heaps of a CPU: contracts that are ready, by precedence, and contracts that something is
 * due for, by instant.
 *
 * Binary heaps of 16-bit indices [1]; slot 1 has the first, the children of slot i are 2 i and
 * 2 i + 1. A contract knows its slots, so that it can be moved or taken out wherever it is.
 * Every operation is O(log n). Both orders are total (ties by index), so what comes out does not
 * depend on the order in which it was put in.
 *
 * [1] J. Williams: Algorithm 232, Heapsort. Communications of the ACM 7(6), 1964.
 */
#ifndef ANDANTE_CORE_HEAP_H
#define ANDANTE_CORE_HEAP_H

#include "contract.h"
#include "dwcs.h"

#define AN_READY 0u
#define AN_TIMERS 1u

an_inline u16 *an_heap_slot(struct an_contract_cpu *q, u32 heap, u32 at)
{
	return &q->heap[an_bounded(heap, 2)][an_bounded(at, AN_MAX_CONTRACTS)];
}

an_inline u32 an_heap_count(struct an_contract_cpu *q, u32 heap)
{
	return q->count[an_bounded(heap, 2)];
}

/* The contract that comes first, or AN_NONE. */
an_inline u32 an_heap_first(struct an_contract_cpu *q, u32 heap)
{
	return an_heap_count(q, heap) ? *an_heap_slot(q, heap, 1) : AN_NONE;
}

an_inline u16 *an_heap_position(struct an_contract *c, u32 heap)
{
	return &c->position[an_bounded(heap, 2)];
}

an_inline bool an_heap_before(struct an_contracts *cs, u32 heap, u32 a, u32 b)
{
	u64 a_ns, b_ns;

	if (heap == AN_READY)
		return an_precedence(cs, a, b) > 0;
	a_ns = an_contract(cs, a)->due_ns;
	b_ns = an_contract(cs, b)->due_ns;
	return a_ns < b_ns || (a_ns == b_ns && a < b);
}

an_inline void an_heap_put(struct an_contracts *cs, struct an_contract_cpu *q, u32 heap, u32 at,
			   u32 index)
{
	*an_heap_slot(q, heap, at) = index;
	*an_heap_position(an_contract(cs, index), heap) = at;
}

/* The contract in this slot is in the right place again, whichever way its key has changed. */
an_outline void an_heap_sift(struct an_contracts *cs, u32 cpu, u32 heap, u32 at)
{
	struct an_contract_cpu *q = an_contract_cpu(cs, cpu);
	u32 count = an_heap_count(q, heap);
	u32 moving = *an_heap_slot(q, heap, at);

	an_while(at > 1) {
		u32 above = *an_heap_slot(q, heap, at / 2);

		if (!an_heap_before(cs, heap, moving, above))
			break;
		an_heap_put(cs, q, heap, at, above);
		at /= 2;
	}
	an_while(2 * at <= count) {
		u32 below = 2 * at;
		u32 next = *an_heap_slot(q, heap, below);

		if (below < count) {
			u32 other = *an_heap_slot(q, heap, below + 1);

			if (an_heap_before(cs, heap, other, next)) {
				next = other;
				below++;
			}
		}
		if (!an_heap_before(cs, heap, next, moving))
			break;
		an_heap_put(cs, q, heap, at, next);
		at = below;
	}
	an_heap_put(cs, q, heap, at, moving);
}

/* Into the heap of the contract's CPU, or to its new place there after its key has changed. */
an_inline void an_heap_update(struct an_contracts *cs, u32 index, u32 heap)
{
	struct an_contract *c = an_contract(cs, index);
	struct an_contract_cpu *q = an_contract_cpu(cs, c->cpu);
	u32 at = *an_heap_position(c, heap);

	if (!at) {
		at = an_heap_count(q, heap) + 1;
		if (at >= AN_MAX_CONTRACTS)
			return;
		q->count[an_bounded(heap, 2)] = at;
		an_heap_put(cs, q, heap, at, index);
	}
	an_heap_sift(cs, c->cpu, heap, at);
}

/* Out of the heap, if it is there. */
an_inline void an_heap_remove(struct an_contracts *cs, u32 index, u32 heap)
{
	struct an_contract *c = an_contract(cs, index);
	struct an_contract_cpu *q = an_contract_cpu(cs, c->cpu);
	u32 at = *an_heap_position(c, heap);
	u32 count = an_heap_count(q, heap);

	if (!at)
		return;
	*an_heap_position(c, heap) = 0;
	q->count[an_bounded(heap, 2)] = count - 1;
	if (at == count)
		return;
	an_heap_put(cs, q, heap, at, *an_heap_slot(q, heap, count));
	an_heap_sift(cs, c->cpu, heap, at);
}

#endif
