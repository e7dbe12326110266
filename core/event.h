/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Coordinated CPU and event scheduling, ECalls [1]: the sink of an event may run in the place of
 * the contract that was selected, where that hurts no contract.
 *
 * Events wait in a queue per CPU, ordered by the time at which they are to be delivered, those of
 * one time in the order they were raised. After every pick the event scheduler looks at the first
 * entry only. i is what was selected, j the sink of that event ([1], section 3.2):
 *
 *      rule 1   j is i                                              run i
 *      rule 2   i is best effort, or runs on idle time              run j, nobody is charged
 *      rule 3   i is work-conserving and has had its C              run j, nobody is charged
 *      rule 4   both unserved, deadlines equal, i won by its        run j, as its normal service
 *               window constraint, and i can wait for j
 *      rule 5   i is the task server                                run j, the server is charged
 *      else                                                         run i, the event stays
 *
 * Under rules 1 to 5 the event is delivered, and leaves the queue. (For rule 4 [1] does not say
 * so; if it stayed, the sink would be preferred twice for one event, and the schedule of Figure
 * 4(c) would be another.) The extra service of j under rules 2, 3 and 5 does not count for its
 * window. An event whose sink does not want to run stays and keeps those behind it waiting: raise
 * an event together with waking its sink.
 *
 * Rule 4 wants slack: with what i and j still need, deadline - now - C_j - C_i. [1] prints "> 0";
 * but i is in time with 0 as well, and with T = 20, C = 10, as in the experiment that reports 15 %
 * swaps, > 0 can never be. It is >= 0 here; AN_EVENT_STRICT takes the paper at its word.
 *
 * The *task server* reserves for events what no contract has asked for: a contract with AN_WINDOW
 * and AN_TASK_SERVER, x/y = 0/(1 + largest y), C that of the first event's sink (one unit of the
 * time base, if none is queued), T = C/U_r rounded up to the time base, U_r being 1 less the
 * utilisation of the CPU. With no event to deliver its slot goes to best effort.
 *
 * The shell's part, between an_contracts_pick() and running: an_event_coordinate(); then charge
 * decision.charge instead of what runs, and an_contract_charge_extra() what runs, if it is another.
 *
 * [1] C. Poellabauer, K. Schwan, R. West: Coordinated CPU and Event Scheduling for Distributed
 *     Multimedia Applications. ACM Multimedia 2001. Section 3.
 */
#ifndef ANDANTE_CORE_EVENT_H
#define ANDANTE_CORE_EVENT_H

#include "contract_run.h"

#define AN_MAX_EVENTS 256u /* per CPU, power of two; one less are usable */

_Static_assert((AN_MAX_EVENTS & (AN_MAX_EVENTS - 1)) == 0, "an_bounded() masks");

struct an_event {
	u64 deliver_ns; /* not before */
	u64 sequence;	/* in which order they were raised */
	u64 cookie;	/* the caller's */
	u32 sink;	/* contract */
	u32 generation; /* of the contract, when the event was raised */
};

/* The events of one CPU. In memory that is zero, or after an_events_init(). */
struct an_events {
	struct an_event heap[AN_MAX_EVENTS]; /* slot 1 has the first */
	u64 sequence;
	u64 lost; /* refused, the queue being full */
	u32 count;
	u32 cpu;
	u32 server; /* the task server, or AN_NONE */
	u32 pad;
};

/* What the event scheduler made of a pick. */
struct an_event_decision {
	u64 run_ns;  /* how long, from now on; AN_NEVER: no end */
	u64 cookie;  /* of the event that is delivered */
	u32 run;     /* the contract to run; AN_NONE: best effort */
	u32 charge;  /* the contract to charge for it; AN_NONE: nobody */
	u32 rule;    /* AN_RULE_EVENT_1 ... 5, AN_RULE_TASK_SERVER, or AN_RULE_NONE: as picked */
	u32 dropped; /* an event was delivered, and has left the queue */
};

an_inline void an_events_init(struct an_events *q, u32 cpu)
{
	q->sequence = q->lost = 0;
	q->count = 0;
	q->cpu = cpu;
	q->server = AN_NONE;
}

an_inline struct an_event *an_event(struct an_events *q, u32 at)
{
	return &q->heap[an_bounded(at, AN_MAX_EVENTS)];
}

an_inline bool an_event_before(const struct an_event *a, const struct an_event *b)
{
	if (a->deliver_ns != b->deliver_ns)
		return a->deliver_ns < b->deliver_ns;
	return a->sequence < b->sequence;
}

/* When the first event may be delivered, or AN_NEVER: an instant to pick at. */
an_inline u64 an_events_due(struct an_events *q)
{
	return q->count ? an_event(q, 1)->deliver_ns : AN_NEVER;
}

/* The contract has an event at deliver_ns. False, and nothing done, if the queue is full. */
an_outline bool an_event_raise(struct an_contracts *cs, struct an_events *q, u32 sink,
			       u64 deliver_ns, u64 cookie)
{
	u32 at = q->count + 1;
	struct an_event raised;

	if (at >= AN_MAX_EVENTS) {
		q->lost++;
		return false;
	}
	raised.deliver_ns = deliver_ns;
	raised.sequence = q->sequence++;
	raised.cookie = cookie;
	raised.sink = sink;
	raised.generation = an_contract(cs, sink)->generation;
	q->count = at;
	an_while(at > 1 && an_event_before(&raised, an_event(q, at / 2))) {
		*an_event(q, at) = *an_event(q, at / 2);
		at /= 2;
	}
	*an_event(q, at) = raised;
	return true;
}

/* The first event leaves the queue. */
an_outline void an_event_drop(struct an_events *q)
{
	struct an_event *last = an_event(q, q->count);
	u32 at = 1;

	if (!q->count)
		return;
	q->count--;
	an_while(2 * at <= q->count) {
		u32 below = 2 * at;

		if (below < q->count && an_event_before(an_event(q, below + 1), an_event(q, below)))
			below++;
		if (!an_event_before(an_event(q, below), last))
			break;
		*an_event(q, at) = *an_event(q, below);
		at = below;
	}
	*an_event(q, at) = *last;
}

/* The sink of the first event, if that is to be delivered now and wants to run; else AN_NONE. */
an_inline u32 an_event_sink(struct an_contracts *cs, struct an_events *q, u64 now_ns)
{
	an_while(an_events_due(q) <= now_ns) {
		const struct an_event *first = an_event(q, 1);
		const struct an_contract *c = an_contract(cs, first->sink);

		if (c->used && c->generation == first->generation)
			return c->runnable && c->cpu == q->cpu ? first->sink : AN_NONE;
		an_event_drop(q); /* its sink is gone */
	}
	return AN_NONE;
}

/* Rule 4: may j go before i, which was selected? */
an_inline bool an_event_swaps(struct an_contracts *cs, u32 i, u32 j, u64 now_ns)
{
	const struct an_contract *p = an_contract(cs, i), *q = an_contract(cs, j);
	u64 needed_ns = p->left_ns + q->left_ns;
	s32 order;

	if (!an_has(p, AN_WINDOW) || !an_has(q, AN_WINDOW) || p->rank != AN_RANK_BUDGET ||
	    q->rank != AN_RANK_BUDGET || p->deadline_ns != q->deadline_ns)
		return false;
	order = an_precedence(cs, i, j);
	if (order != AN_RULE_WINDOW && order != AN_RULE_DENOMINATOR && order != AN_RULE_NUMERATOR)
		return false;
	if (cs->options & AN_EVENT_STRICT)
		return p->deadline_ns > now_ns + needed_ns;
	return p->deadline_ns >= now_ns + needed_ns;
}

/* Which rule applies to i, selected, and j, the sink of the first event. */
an_inline enum an_rule an_event_rule(struct an_contracts *cs, u32 i, u32 j, u64 now_ns)
{
	const struct an_contract *c = an_contract(cs, i);

	if (!j)
		return i && an_has(c, AN_TASK_SERVER) ? AN_RULE_TASK_SERVER : AN_RULE_NONE;
	if (i == j)
		return AN_RULE_EVENT_1;
	if (!i || c->rank == AN_RANK_BORROW)
		return cs->options & AN_EVENT_NO_RULE_2 ? AN_RULE_NONE : AN_RULE_EVENT_2;
	if (c->rank == AN_RANK_EXTRA)
		return cs->options & AN_EVENT_NO_RULE_3 ? AN_RULE_NONE : AN_RULE_EVENT_3;
	if (!(cs->options & AN_EVENT_NO_RULE_4) && an_event_swaps(cs, i, j, now_ns))
		return AN_RULE_EVENT_4;
	if (!an_has(c, AN_TASK_SERVER))
		return AN_RULE_NONE;
	return cs->options & AN_EVENT_NO_RULE_5 ? AN_RULE_TASK_SERVER : AN_RULE_EVENT_5;
}

/*
 * The pick of this CPU was selected (AN_NONE: no contract). What runs, who is charged, and by
 * which rule; an event that is delivered leaves the queue.
 */
an_outline void an_event_coordinate(struct an_contracts *cs, struct an_events *q, u32 selected,
				    u64 now_ns, struct an_event_decision *decision)
{
	u32 sink = an_event_sink(cs, q, now_ns);
	u32 rule = an_event_rule(cs, selected, sink, now_ns);

	decision->rule = rule;
	decision->run = decision->charge = selected;
	decision->dropped = rule >= AN_RULE_EVENT_1 && rule <= AN_RULE_EVENT_5;
	decision->cookie = 0;
	if (rule == AN_RULE_TASK_SERVER)
		decision->run = AN_NONE;
	if (decision->dropped) {
		decision->run = sink;
		decision->cookie = an_event(q, 1)->cookie;
		an_event_drop(q);
	}
	if (rule == AN_RULE_EVENT_2 || rule == AN_RULE_EVENT_3)
		decision->charge = AN_NONE;
	else if (rule == AN_RULE_EVENT_4)
		decision->charge = sink;
	if (decision->charge)
		decision->run_ns = an_contract_run_ns(cs, decision->charge, now_ns);
	else if (decision->run)
		decision->run_ns = an_contract(cs, sink)->promise.budget_ns;
	else
		decision->run_ns = AN_NEVER;
}

/* C of the first event's sink, delivered or not; one unit of the time base if there is none. */
an_inline u64 an_task_server_budget_ns(struct an_contracts *cs, struct an_events *q, u64 base_ns)
{
	const struct an_contract *c;

	if (!q->count)
		return base_ns;
	c = an_contract(cs, an_event(q, 1)->sink);
	return c->used ? c->promise.budget_ns : base_ns;
}

/*
 * Gives the CPU its task server, or changes it to what contracts and the first event now ask for;
 * base_ns > 0 is the time base. Call it when either has changed; what is changed holds from the
 * next period of the server on. False, and there is none, if nothing of the CPU is left.
 */
an_outline bool an_task_server_update(struct an_contracts *cs, struct an_events *q, u64 base_ns,
				      u64 now_ns)
{
	struct an_contract_cpu *cpu = an_contract_cpu(cs, q->cpu);
	u64 budget_ns = an_task_server_budget_ns(cs, q, base_ns);
	u64 rest = AN_UTILIZATION_ONE - cpu->utilization;
	const struct an_promise *old = &an_contract(cs, q->server)->promise;
	struct an_promise promise = {0};

	if (base_ns && rest && cpu->utilization < AN_UTILIZATION_ONE) {
		u64 units = ((budget_ns << AN_UTILIZATION_SHIFT) + rest - 1) / rest;

		promise.period_ns = (units + base_ns - 1) / base_ns * base_ns;
	}
	promise.budget_ns = budget_ns;
	promise.y = cpu->window_max < AN_MAX_WINDOW ? cpu->window_max + 1 : AN_MAX_WINDOW;
	promise.flags = AN_WINDOW | AN_TASK_SERVER;
	promise.cpu = q->cpu;
	if (!an_promise_valid(&promise)) {
		if (q->server)
			an_contract_remove(cs, q->server);
		q->server = AN_NONE;
		return false;
	}
	if (q->server) {
		if (old->budget_ns == promise.budget_ns && old->period_ns == promise.period_ns &&
		    old->y == promise.y)
			return true;
		return !an_contract_set(cs, q->server, &promise);
	}
	q->server = an_contract_create(cs, &promise);
	an_contract_wake(cs, q->server, now_ns);
	return q->server != AN_NONE;
}

/*
 * ECalls beside a UNIX scheduler ([1], section 3.1): may the sink of an event run before what was
 * selected? Real-time means the FIFO and round-robin classes, with their priorities, higher first.
 *
 *      rule 1   a real-time sink goes before those of the same or a lower priority class
 *      rule 2   any sink does, if only non-real-time processes are schedulable
 */
an_inline enum an_rule an_event_unix(bool sink_realtime, u32 sink_priority, bool selected_realtime,
				     u32 selected_priority)
{
	if (sink_realtime && (!selected_realtime || sink_priority >= selected_priority))
		return AN_RULE_UNIX_1;
	return selected_realtime ? AN_RULE_NONE : AN_RULE_UNIX_2;
}

#endif
