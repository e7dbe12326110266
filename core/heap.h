/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The heaps of a CPU: contracts that are ready, by precedence, contracts that something is due for,
 * by instant, and those that have events [sink.h], by the instant of the first.
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
#define AN_SINKS 2u

/* Of how many heaps one is asked for, a power of two; the last of four there is not. */
#define AN_HEAPS (an_events_on ? 4 : 2)

/* With events the heap is a constant where it is named, and the verifier knows which of the three.
 */
an_inline u16 *an_heap_slot(struct an_contract_cpu *q, u32 heap, u32 at)
{
	if (an_events_on)
		return &q->heap[heap * AN_MAX_CONTRACTS + an_bounded(at, AN_MAX_CONTRACTS)];
	return &q->heap[an_bounded(heap * AN_MAX_CONTRACTS + at, 2 * AN_MAX_CONTRACTS)];
}

an_inline u32 an_heap_count(struct an_contract_cpu *q, u32 heap)
{
	return q->count[an_bounded(heap, AN_HEAPS)];
}

/* The contract that comes first, or AN_NONE. */
an_inline u32 an_heap_first(struct an_contract_cpu *q, u32 heap)
{
	return an_heap_count(q, heap) ? *an_heap_slot(q, heap, 1) : AN_NONE;
}

an_inline u16 *an_heap_position(struct an_contract *c, u32 heap)
{
	return &c->position[an_bounded(heap, AN_HEAPS)];
}

/* Does the contract a, which is p, come before b, which is q: by when something is due for it
 * (timers), or by its order among those that are ready? */
an_inline bool an_contract_before(u32 a, const struct an_contract *p, u32 b,
				  const struct an_contract *q, bool timers)
{
	u64 first = timers ? p->due_ns : p->order[0], other = timers ? q->due_ns : q->order[0];

	if (first != other)
		return first < other;
	if (!timers && p->order[1] != q->order[1])
		return p->order[1] < q->order[1];
	if (!timers && p->order[2] != q->order[2])
		return p->order[2] < q->order[2];
	if (!timers && p->order[3] != q->order[3])
		return p->order[3] < q->order[3];
	return a < b;
}

/* The same of sinks, by their first events. */
an_inline bool an_sink_before(u32 a, const struct an_contract *p, u32 b,
			      const struct an_contract *q)
{
	return p->event_first_ns != q->event_first_ns ? p->event_first_ns < q->event_first_ns
						      : a < b;
}

/* Does a come before b in this heap, whichever it is? */
an_outline bool an_heap_before_in(struct an_contracts *cs, u32 heap, u32 a, u32 b)
{
	const struct an_contract *p = an_contract(cs, a), *q = an_contract(cs, b);

	if (an_events_on && heap == AN_SINKS)
		return an_sink_before(a, p, b, q);
	return an_contract_before(a, p, b, q, heap == AN_TIMERS);
}

/* The same of contracts that are ready, asked where it is needed; not where all is verified. */
an_inline bool an_ready_before(struct an_contracts *cs, u32 a, const struct an_contract *p, u32 b,
			       const struct an_contract *q)
{
	return an_verified ? an_heap_before_in(cs, AN_READY, a, b)
			   : an_contract_before(a, p, b, q, false);
}

/* The same, of sinks likewise. */
an_inline bool an_heap_before(struct an_contracts *cs, u32 heap, u32 a, u32 b)
{
	return an_verified || heap != AN_SINKS
		       ? an_heap_before_in(cs, heap, a, b)
		       : an_sink_before(a, an_contract(cs, a), b, an_contract(cs, b));
}

an_inline void an_heap_put(struct an_contracts *cs, struct an_contract_cpu *q, u32 heap, u32 at,
			   u32 index)
{
	*an_heap_slot(q, heap, at) = index;
	*an_heap_position(an_contract(cs, index), heap) = at;
}

/* The contract moves up from this slot, as far as it comes before what is above. Returns its place.
 */
an_inline u32 an_heap_rise(struct an_contracts *cs, struct an_contract_cpu *q, u32 heap, u32 at,
			   u32 moving)
{
	an_while(at > 1) {
		u32 above = *an_heap_slot(q, heap, at / 2);

		if (!an_heap_before(cs, heap, moving, above))
			break;
		an_heap_put(cs, q, heap, at, above);
		at = an_opaque(at / 2);
	}
	return an_opaque(at); /* from wherever it comes here, the rest is verified once */
}

/* The contract in this slot is in the right place again, whichever way its key has changed. */
an_inline void an_heap_sift(struct an_contracts *cs, u32 cpu, u32 heap, u32 at)
{
	struct an_contract_cpu *q = an_contract_cpu(cs, cpu);
	u32 count = an_heap_count(q, heap);
	u32 moving = *an_heap_slot(q, heap, at);

	at = an_heap_rise(cs, q, heap, at, moving);
	an_while(2 * at <= count) {
		u32 below = an_opaque(2 * at);
		u32 next = *an_heap_slot(q, heap, below);

		if (below < count) {
			u32 other = *an_heap_slot(q, heap, below + 1);

			if (an_heap_before(cs, heap, other, next)) {
				next = other;
				below = an_opaque(below + 1);
			}
		}
		if (!an_heap_before(cs, heap, next, moving))
			break;
		an_heap_put(cs, q, heap, at, next);
		at = below;
	}
	an_heap_put(cs, q, heap, at, moving);
}

/* Into this heap, to its place there, or out. */
an_inline void an_heap_set_in(struct an_contracts *cs, u32 index, u32 heap, bool in)
{
	struct an_contract *c = an_contract(cs, index);
	struct an_contract_cpu *q = an_contract_cpu(cs, c->cpu);
	u32 at = *an_heap_position(c, heap), count = an_heap_count(q, heap);

	if (in && !at) {
		at = count + 1;
		if (at >= AN_MAX_CONTRACTS)
			return;
		q->count[an_bounded(heap, AN_HEAPS)] = at;
		an_heap_put(cs, q, heap, at, index);
	} else if (!in) {
		if (!at)
			return;
		*an_heap_position(c, heap) = 0;
		q->count[an_bounded(heap, AN_HEAPS)] = count - 1;
		if (at == count)
			return;
		/* The last takes its place. */
		an_heap_put(cs, q, heap, at, *an_heap_slot(q, heap, count));
	}
	an_heap_sift(cs, c->cpu, heap, at);
}

an_outline void an_heap_set_any(struct an_contracts *cs, u32 index, u32 heap, bool in)
{
	an_heap_set_in(cs, index, heap, in);
}

an_outline void an_heap_set_sink(struct an_contracts *cs, u32 index, bool in)
{
	an_heap_set_in(cs, index, AN_SINKS, in);
}

/*
 * Into the heap of the contract's CPU, or to its new place there after its key has changed; or out
 * of the heap, if it is there. For sinks, whose events are raised from anywhere, there is code of
 * its own, if it is not verified: no level of the heap asks which heap it is.
 */
an_inline void an_heap_set(struct an_contracts *cs, u32 index, u32 heap, bool in)
{
	if (heap == AN_SINKS && !an_verified)
		an_heap_set_sink(cs, index, in);
	else
		an_heap_set_any(cs, index, heap, in);
}

/* A sink, whose first event is due earlier than it was, if it had one: into its heap, or up in it.
 */
an_outline void an_heap_rise_sink(struct an_contracts *cs, u32 index)
{
	struct an_contract *c = an_contract(cs, index);
	struct an_contract_cpu *q = an_contract_cpu(cs, c->cpu);
	u32 at = *an_heap_position(c, AN_SINKS);

	if (!at) {
		at = an_heap_count(q, AN_SINKS) + 1;
		if (at >= AN_MAX_CONTRACTS)
			return;
		q->count[AN_SINKS] = at;
	}
	an_heap_put(cs, q, AN_SINKS, an_heap_rise(cs, q, AN_SINKS, at, index), index);
}

#endif
