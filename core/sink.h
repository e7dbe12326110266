/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Events that wait for a contract, their sink [event.h]. Only contracts with AN_WINDOW are sinks.
 *
 * A sink has one pending event for each of its few services, and the last that was raised is the
 * one that counts. So there is no queue that could be full: who raises a thousand events has one,
 * and nobody else has one less. An event that is due stays due, however often it is raised again;
 * and none is due before it was raised, so that nobody goes first for ever.
 *
 * The sinks that want to run on a CPU, and have events, are in one more heap of that CPU
 * (AN_SINKS), by the earliest time at which one is to be delivered. A sink that sleeps, is parked,
 * has run in advance already, or goes to another CPU leaves the heap, and takes its events along.
 * So the first of the heap can be served, now or when its time comes, and nobody waits behind one
 * that cannot.
 *
 *              raise                       coordinate                  C has been run, or asleep
 *      (none) -------> pending (event_ns) ------------> being served -------------------------->
 * ... ^                              (event_left_ns)
 *                        '--- no task of it was found ---'
 */
#ifndef ANDANTE_CORE_SINK_H
#define ANDANTE_CORE_SINK_H

#include "heap.h"

/* Is it one whose events are coordinated? */
an_inline bool an_contract_may_sink(const struct an_contract *c)
{
	return c->used && an_has(c, AN_WINDOW) && !an_has(c, AN_TASK_SERVER);
}

an_inline u64 *an_event_of(struct an_contract *c, u32 service)
{
	return &c->event_ns[an_bounded(service, AN_SERVICES)];
}

/* Has it an event that is due, or is being served? */
an_inline bool an_sink_is_due(const struct an_contract *c, u64 now_ns)
{
	return c->event_first_ns <= now_ns;
}

/* It has no events. */
an_inline void an_sink_clear(struct an_contract *c)
{
	u32 service = 0;

	an_while(service < AN_SERVICES) {
		*an_event_of(c, service) = AN_NEVER;
		service = an_opaque(service + 1);
	}
	c->event_first_ns = AN_NEVER;
	c->event_left_ns = 0;
	c->payer = AN_PAYS_AS_EVER;
	c->delivered = 0;
}

/* The earliest of its events, unless one is being served: then that keeps its place. */
an_inline void an_sink_settle(struct an_contract *c)
{
	u64 first_ns = AN_NEVER;
	u32 service = 0;

	if (c->event_left_ns > 0)
		return;
	an_while(service < AN_SERVICES) {
		u64 deliver_ns = *an_event_of(c, service);

		if (deliver_ns < first_ns)
			first_ns = deliver_ns;
		service = an_opaque(service + 1);
	}
	c->event_first_ns = first_ns;
}

/* The event that is being served, if one is, is over. */
an_inline void an_sink_ends(struct an_contract *c)
{
	c->event_left_ns = 0;
	c->payer = AN_PAYS_AS_EVER;
	an_sink_settle(c);
}

/* Has it had the budget of its next period already, or a part of it? Then its events wait for that.
 */
an_inline bool an_sink_is_ahead(const struct an_contract *c)
{
	return c->owes_ns && c->served && c->event_left_ns <= 0;
}

/* Is it to be in the heap of its CPU? */
an_inline bool an_sink_stands(const struct an_contract *c)
{
	return c->runnable && !c->parked && c->event_first_ns != AN_NEVER && !an_sink_is_ahead(c);
}

/* Into the heap of its CPU, to its place there, or out. */
an_outline void an_sink_place(struct an_contracts *cs, u32 index)
{
	struct an_contract *c = an_contract(cs, index);
	bool in = an_sink_stands(c);

	if (in || *an_heap_position(c, AN_SINKS))
		an_heap_set(cs, index, AN_SINKS, in);
}

/* Something about the contract has changed. What sleeps has had what its event was for. */
an_inline void an_sink_changed(struct an_contracts *cs, u32 index)
{
	struct an_contract *c = an_contract(cs, index);

	if (!c->runnable && c->event_left_ns > 0)
		an_sink_ends(c);
	an_sink_place(cs, index);
}

/*
 * The contract is to have an event of this service at deliver_ns, or now if that is past. False,
 * and nothing done, if it is no sink, or has no such service.
 */
an_outline bool an_event_raise(struct an_contracts *cs, u32 index, u32 service, u64 deliver_ns,
			       u64 now_ns)
{
	struct an_contract *c = an_contract(cs, index);

	if (!an_contract_may_sink(c) || service >= AN_SERVICES)
		return false;
	if (*an_event_of(c, service) <= now_ns)
		return true; /* it is due already */
	if (deliver_ns < now_ns)
		deliver_ns = now_ns;
	*an_event_of(c, service) = deliver_ns;
	if (deliver_ns < c->event_first_ns) {
		/* Its others need not be looked at, nor what is below it in the heap; and one that
		 * is being served is past. */
		c->event_first_ns = deliver_ns;
		if (an_sink_stands(c))
			an_heap_rise_sink(cs, index);
	} else {
		an_sink_settle(c);
		an_sink_place(cs, index);
	}
	return true;
}

/*
 * The events of the sink that are due are delivered: it is to run for left_ns for them, or for
 * nothing more than it runs anyway (0). Which they were, one bit for each service.
 */
an_outline u32 an_sink_deliver(struct an_contracts *cs, u32 index, s64 left_ns, u64 now_ns)
{
	struct an_contract *c = an_contract(cs, index);
	u32 service = 0, delivered = 0;

	an_while(service < AN_SERVICES) {
		if (*an_event_of(c, service) <= now_ns) {
			*an_event_of(c, service) = AN_NEVER;
			delivered = an_opaque(delivered | 1u << (service & 31));
		}
		service = an_opaque(service + 1);
	}
	c->delivered = delivered;
	c->event_left_ns = left_ns;
	if (left_ns <= 0) { /* else it keeps its place */
		an_sink_settle(c);
		an_sink_place(cs, index);
	}
	return delivered;
}

/*
 * The shell has found no task of the sink to run: what was delivered is pending again, as of now.
 */
an_inline void an_event_undeliver(struct an_contracts *cs, u32 index, u64 now_ns)
{
	struct an_contract *c = an_contract(cs, index);
	u32 service = 0;

	if (!c->delivered)
		return;
	an_while(service < AN_SERVICES) {
		if (c->delivered >> (service & 31) & 1 && *an_event_of(c, service) > now_ns)
			*an_event_of(c, service) = now_ns;
		service = an_opaque(service + 1);
	}
	an_sink_ends(c);
	an_sink_place(cs, index);
}

/*
 * When the first event of this CPU is to be delivered, or AN_NEVER: an instant to pick at. One that
 * is past has been looked at, and is again at every pick.
 */
an_inline u64 an_events_due(struct an_contracts *cs, u32 cpu)
{
	u32 first = an_heap_first(an_contract_cpu(cs, cpu), AN_SINKS);

	return first ? an_contract(cs, first)->event_first_ns : AN_NEVER;
}

#endif
