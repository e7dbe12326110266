/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Coordinated CPU and event scheduling, ECalls [1]: the sink of an event may run in the place of
 * the contract that was selected, where that hurts no contract.
 *
 * After every pick the event scheduler looks at the first event of the CPU (sink.h). i is what was
 * selected, j the sink of that event ([1], section 3.2):
 *
 *                                                           runs     who pays
 *      rule 1   i has an event itself                       i        i, as ever
 *      rule 2   i is best effort, or runs on idle time      j        j, of its next budget
 *      rule 3   i is work-conserving and has had its C      j        nobody, if j is that too; else
 *                                                                    j, of its next budget
 *      rule 4   both unserved, deadlines equal, i won by    j        j: it is its normal service
 *               its window constraint, and all that come
 *               before j can wait for j
 *      rule 5   i is the task server, and j has had its C   j        the task server
 *      else                                                 i        i; the event stays
 *
 * Under rules 2 to 5 the event is served until j has run for C (rule 4: for what it is owed in this
 * period), or sleeps: who takes its place meanwhile by the rules of DWCS gives it back. The extra
 * service of rules 2, 3 and 5 does not count for the window of j.
 *
 * Who pays. Events cost nothing in [1], so whoever raises them has all the time that is left. Here
 * j runs ahead: what it has had comes out of its budget in the periods that follow (owes_ns,
 * an_window_pay()), and it has nothing more in advance until that is paid. So j has C in every
 * period, and once C more, with events or without; nobody else has less. And where contracts are
 * bounded (cs->bound), rule 2 keeps to that.
 *
 * Rule 3 is for those that asked for more than they were promised. Nobody pays for the time that
 * one of these has beyond its C, with an event or without: an event only says which is the next.
 * Learnt contracts have the rank of these, but run on what they were found to need.
 *
 * Rule 4. [1] asks whether i can still be served by its deadline after j: deadline - now - C_j -
 * C_i > 0. But a third contract may come between them, and lose its period to j. Of sets that DWCS
 * serves, though all together want more than there is, that violates three of five
 * (tests/event_random.c). Here all those that come before j must still fit behind it. Nobody with
 * another deadline notices: by that one as much has been done in either order. It is >= 0 here, for
 * then i is in time; with T = 20, C = 10, as in the experiment that reports 15 % swaps, > 0 can
 * never be. AN_EVENT_STRICT takes it at its word.
 *
 * The *task server* reserves for events what no contract has asked for: a contract with AN_WINDOW
 * and AN_TASK_SERVER, x/y = 0/(1 + largest y), C that of the first event's sink (one unit of the
 * time base, if there is none), T = C/U_r rounded up to the time base, U_r being what contracts may
 * have of the CPU less what they do. With no event to deliver, or if the sink has budget of its
 * own, so that no other contract need be interrupted for it, the server forfeits its slot
 * (an_task_server_forfeits()).
 *
 * AN_EVENT_AS_PUBLISHED is the paper to the letter: of rule 4 only i is asked; nobody pays under
 * rules 2 and 3, and under 3 learnt ones make way too; one pick serves an event, and only the first
 * is looked at; and best effort has the task server's slot.
 *
 * The shell's part: after an_contracts_pick() an_event_coordinate(), then it runs decision.run for
 * decision.run_ns, and charges decision.charge: the core knows who pays for that. It picks again
 * at an_events_due(), and calls an_event_undeliver() if it finds nothing to run.
 *
 * [1] C. Poellabauer, K. Schwan, R. West: Coordinated CPU and Event Scheduling for Distributed
 *     Multimedia Applications. ACM Multimedia 2001. Section 3.
 */
#ifndef ANDANTE_CORE_EVENT_H
#define ANDANTE_CORE_EVENT_H

#include "contract_pick.h"

/* Where as many as this come before the sink it does not go first: they are looked at one by one,
 * and a lock is held. Of each and of what is below it some 40 instructions are made, 600 in all of
 * a decision at most (tests/event_steps.c). With twice as many, or eight times, rule 4 serves no
 * more events of drawn sets (tests/event_random.c), and with half as many a sixth less. */
#define AN_MAX_WAITING 8u

/* What the event scheduler made of a pick. */
struct an_event_decision {
	u64 run_ns;    /* how long, from now on; AN_NEVER: no end */
	u32 run;       /* the contract to run; AN_NONE: best effort */
	u32 charge;    /* the contract to charge; the core knows who pays. AN_NONE: best effort */
	u32 rule;      /* AN_RULE_EVENT_1 ... 5, AN_RULE_TASK_SERVER, or AN_RULE_NONE: as picked */
	u32 delivered; /* services whose events are delivered with this pick, one bit each */
};

an_inline bool an_events_as_published(const struct an_contracts *cs)
{
	return cs->options & AN_EVENT_AS_PUBLISHED;
}

/* The contract whose event is looked at, if one is due on this CPU; else AN_NONE. */
an_inline u32 an_event_sink(struct an_contracts *cs, u32 cpu, u32 selected, u64 now_ns)
{
	if (selected && an_sink_is_due(an_contract(cs, selected), now_ns) &&
	    !an_events_as_published(cs))
		return selected;
	if (an_events_due(cs, cpu) > now_ns)
		return AN_NONE;
	return an_heap_first(an_contract_cpu(cs, cpu), AN_SINKS);
}

/* The slot after this one in a heap, if those below it are left out: up, until there is a right
 * neighbour. 1 is the end. */
an_inline u32 an_heap_beside(u32 at)
{
	u32 next = at + 1;

	return next / (next & -next);
}

/*
 * Would all that come before j, and j, be served by the earliest of their deadlines if j went
 * first? i, the first of them, would: that has been asked. In the heap they are a tree around the
 * first slot, where i is: what is behind j has nothing below it that is not.
 */
an_outline bool an_event_all_can_wait(struct an_contracts *cs, u32 i, u32 j, u64 now_ns)
{
	const struct an_contract *first = an_contract(cs, i), *c = an_contract(cs, j);
	struct an_contract_cpu *q = an_contract_cpu(cs, c->cpu);
	const u16 *row = an_heap_slot(q, AN_READY, 0);
	u64 deadline_ns = first->deadline_ns, busy_until_ns = now_ns + first->left_ns + c->left_ns;
	u32 at = 2, left = AN_MAX_WAITING - 1, count = an_heap_count(q, AN_READY);

	an_assert(row[1] == i);
	an_while(at != 1) {
		u32 k = row[an_bounded(at, AN_MAX_CONTRACTS)];
		const struct an_contract *before = an_contract(cs, k);

		if (at > count || !an_ready_before(cs, k, before, j, c)) {
			at = an_opaque(an_heap_beside(at));
			continue;
		}
		left = an_opaque(left - 1);
		if (!left || an_has(before, AN_EXHAUSTIVE)) /* nobody knows how long */
			return false;
		busy_until_ns += before->left_ns;
		if (before->deadline_ns < deadline_ns)
			deadline_ns = before->deadline_ns;
		at = an_opaque(2 * at);
	}
	return busy_until_ns <= deadline_ns;
}

/* Did i win over j by its window constraint alone, and has each to be served by the same time? Of
 * two such an_precedence() asks nothing else. */
an_inline bool an_event_by_constraint(const struct an_contract *i, const struct an_contract *j)
{
	return an_has(i, AN_WINDOW) && an_contract_level(i) == AN_RANK_BUDGET &&
	       an_contract_level(j) == AN_RANK_BUDGET && i->deadline_ns == j->deadline_ns &&
	       an_window_order(i->x, i->y, j->x, j->y) > 0;
}

/* Rule 4: may j go before i, which was selected? */
an_inline bool an_event_swaps(struct an_contracts *cs, u32 i, u32 j, u64 now_ns)
{
	const struct an_contract *p = an_contract(cs, i), *q = an_contract(cs, j);
	u64 both_until_ns = now_ns + p->left_ns + q->left_ns;

	if (!an_event_by_constraint(p, q) || both_until_ns > p->deadline_ns)
		return false;
	if (cs->options & AN_EVENT_STRICT && both_until_ns == p->deadline_ns)
		return false;
	return an_events_as_published(cs) || an_event_all_can_wait(cs, i, j, now_ns);
}

/* Rule 2: may j run in the place of best effort? Not beyond what all contracts may have. */
an_inline bool an_event_has_room(struct an_contracts *cs, u32 j, u64 now_ns)
{
	const struct an_bucket *promised = &an_contract_cpu(cs, an_contract(cs, j)->cpu)->promised;

	return !cs->bound || an_bucket_left_ns(promised, cs->bound, AN_BUCKET_NS, now_ns) > 0;
}

/* Rule 3: does i, of rank EXTRA, run beyond what it needs? */
an_inline bool an_event_makes_way(struct an_contracts *cs, u32 i)
{
	return !an_has(an_contract(cs, i), AN_LEARNT) || an_events_as_published(cs);
}

/* Rule 5: is the task server what j needs? Not if it has a budget of its own. */
an_inline bool an_event_needs_server(struct an_contracts *cs, u32 j)
{
	return an_contract(cs, j)->rank != AN_RANK_BUDGET || an_events_as_published(cs);
}

an_inline bool an_is_task_server(struct an_contracts *cs, u32 i)
{
	return i && an_contract_cpu(cs, an_contract(cs, i)->cpu)->server == i;
}

/* Which rule applies to i, selected, and j, the sink of the first event. */
an_inline u32 an_event_rule(struct an_contracts *cs, u32 i, u32 j, u64 now_ns)
{
	const struct an_contract *c = an_contract(cs, i);
	u32 without = cs->options;

	if (!j)
		return an_is_task_server(cs, i) ? AN_RULE_TASK_SERVER : AN_RULE_NONE;
	if (i == j)
		return AN_RULE_EVENT_1;
	if (!i || c->rank == AN_RANK_BORROW)
		return !(without & AN_EVENT_NO_RULE_2) && an_event_has_room(cs, j, now_ns)
			       ? AN_RULE_EVENT_2
			       : AN_RULE_NONE;
	if (c->rank == AN_RANK_EXTRA)
		return !(without & AN_EVENT_NO_RULE_3) && an_event_makes_way(cs, i)
			       ? AN_RULE_EVENT_3
			       : AN_RULE_NONE;
	if (!(without & AN_EVENT_NO_RULE_4) && an_event_swaps(cs, i, j, now_ns))
		return AN_RULE_EVENT_4;
	if (!an_is_task_server(cs, i))
		return AN_RULE_NONE;
	if (!an_event_needs_server(cs, j))
		return AN_RULE_TASK_SERVER;
	return without & AN_EVENT_NO_RULE_5 ? AN_RULE_TASK_SERVER : AN_RULE_EVENT_5;
}

/* The payer of what j runs by this rule. */
an_inline u32 an_event_payer(struct an_contracts *cs, u32 j, u32 rule)
{
	if (rule == AN_RULE_EVENT_3 && an_has(an_contract(cs, j), AN_WORK_CONSERVING))
		return AN_PAYS_NOBODY;
	if (rule == AN_RULE_EVENT_4)
		return AN_PAYS_ITS_BUDGET;
	if (rule == AN_RULE_EVENT_5)
		return AN_PAYS_SERVER;
	return an_events_as_published(cs) ? AN_PAYS_NOBODY : AN_PAYS_IN_ADVANCE;
}

/* j runs by one of rules 2 to 5. Its event is delivered, unless that has been served already. */
an_inline void an_event_serve(struct an_contracts *cs, u32 j, u64 now_ns,
			      struct an_event_decision *decision)
{
	struct an_contract *c = an_contract(cs, j);
	bool budget = decision->rule == AN_RULE_EVENT_4, more = c->event_left_ns > 0;
	s64 left_ns = budget ? c->left_ns : (s64)c->promise.budget_ns;

	if (!more)
		decision->delivered =
			an_sink_deliver(cs, j, an_events_as_published(cs) ? 0 : left_ns, now_ns);
	if (more || !an_events_as_published(cs))
		left_ns = c->event_left_ns;
	c->payer = an_event_payer(cs, j, decision->rule);
	decision->run = j;
	if (c->payer == AN_PAYS_SERVER)
		decision->run_ns =
			an_contract_run_ns(cs, an_contract_cpu(cs, c->cpu)->server, now_ns);
	else
		decision->run_ns = an_contract_run_ns(cs, j, now_ns);
	if ((u64)left_ns < decision->run_ns)
		decision->run_ns = left_ns;
}

/*
 * The pick of this CPU was selected (AN_NONE: no contract). What runs, by which rule, and who is
 * charged.
 */
an_inline void an_event_coordinate(struct an_contracts *cs, u32 cpu, u32 selected, u64 now_ns,
				   struct an_event_decision *decision)
{
	u32 sink = an_event_sink(cs, cpu, selected, now_ns);
	u32 rule = an_event_rule(cs, selected, sink, now_ns);

	decision->rule = rule;
	decision->run = decision->charge = selected;
	decision->delivered = 0;
	decision->run_ns = AN_NEVER;
	an_contract(cs, selected)->payer = AN_PAYS_AS_EVER;
	an_contract(cs, selected)->delivered = 0;
	if (rule >= AN_RULE_EVENT_2 && rule <= AN_RULE_EVENT_5) {
		an_event_serve(cs, sink, now_ns, decision);
		decision->charge = sink;
		return;
	}
	if (rule == AN_RULE_EVENT_1)
		decision->delivered = an_sink_deliver(cs, selected, 0, now_ns);
	else if (rule == AN_RULE_TASK_SERVER)
		decision->run = AN_NONE;
	if (selected)
		decision->run_ns = an_contract_run_ns(cs, selected, now_ns);
}

/* C of the first event's sink, due or not; one unit of the time base if there is none. */
an_inline u64 an_task_server_budget_ns(struct an_contracts *cs, u32 cpu, u64 base_ns)
{
	u32 first = an_heap_first(an_contract_cpu(cs, cpu), AN_SINKS);

	return first ? an_contract(cs, first)->promise.budget_ns : base_ns;
}

/* What the CPU's contracts leave of what contracts may have of it [2^-AN_UTILIZATION_SHIFT]. */
an_inline u64 an_task_server_rest(const struct an_contracts *cs, const struct an_contract_cpu *q)
{
	u64 all = AN_UTILIZATION_ONE;

	if (cs->bound)
		all = (u64)cs->bound << (AN_UTILIZATION_SHIFT - 10);
	return q->utilization < all ? all - q->utilization : 0;
}

/* The promise of the task server that this CPU should have; none if its period is 0. */
an_inline void an_task_server_promise(struct an_contracts *cs, u32 cpu, u64 base_ns,
				      struct an_promise *promise)
{
	const struct an_contract_cpu *q = an_contract_cpu(cs, cpu);
	u64 budget_ns = an_task_server_budget_ns(cs, cpu, base_ns);
	u64 rest = an_task_server_rest(cs, q);

	promise->budget_ns = budget_ns;
	promise->period_ns = promise->deadline_rel_ns = 0;
	promise->x = 0;
	promise->y = q->window_max < AN_MAX_WINDOW ? q->window_max + 1 : AN_MAX_WINDOW;
	promise->flags = AN_WINDOW | AN_TASK_SERVER;
	promise->cpu = cpu;
	if (base_ns && rest) {
		u64 units = ((budget_ns << AN_UTILIZATION_SHIFT) + rest - 1) / rest;

		promise->period_ns = (units + base_ns - 1) / base_ns * base_ns;
	}
}

/*
 * Gives the CPU its task server, or changes it to what contracts and the first event now ask for;
 * base_ns > 0 is the time base. Call it when either has changed; what is changed holds from the
 * next period of the server on. False, and there is none, if nothing of the CPU is left.
 */
an_outline bool an_task_server_update(struct an_contracts *cs, u32 cpu, u64 base_ns, u64 now_ns)
{
	struct an_contract_cpu *q = an_contract_cpu(cs, cpu);
	const struct an_promise *old = &an_contract(cs, q->server)->promise;
	struct an_promise promise;

	an_task_server_promise(cs, cpu, base_ns, &promise);
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
		/* Periods lie on a grid of T: the first of another T begins before the last of this
		 * one ends. It has no time in that, or others would have less. */
		if (old->period_ns != promise.period_ns && !an_events_as_published(cs))
			an_contract(cs, q->server)->owes_ns = promise.budget_ns;
		return !an_contract_set(cs, q->server, &promise);
	}
	q->server = an_contract_create(cs, &promise);
	if (q->server)
		an_contract_wake(cs, q->server, now_ns);
	return q->server != AN_NONE;
}

/*
 * The task server is the next on its CPU, and there is no event for it: it forfeits what it has in
 * this period, and others go on. True if so. Before every pick; it waits for no event, for then it
 * might want its time when others can spare it no more.
 */
an_inline bool an_task_server_forfeits(struct an_contracts *cs, u32 cpu, u64 now_ns)
{
	struct an_contract_cpu *q = an_contract_cpu(cs, cpu);
	struct an_contract *c = an_contract(cs, q->server);

	if (!q->server || an_heap_first(q, AN_READY) != q->server || c->rank != AN_RANK_BUDGET)
		return false;
	if (an_events_due(cs, cpu) <= now_ns &&
	    an_event_needs_server(cs, an_heap_first(q, AN_SINKS)))
		return false;
	an_window_charge(c, c->left_ns);
	an_contract_place(cs, q->server);
	return true;
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
