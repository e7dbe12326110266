// SPDX-License-Identifier: GPL-2.0
/*
 * Coordinated event scheduling: the five rules against the schedules of [1] of event.h (Table 2,
 * Figure 4), who pays, the pending events, the task server, and the two UNIX rules.
 */
#include "random.h"
#include "slots.h"

static void raise_at(u32 sink, u64 deliver_ns, u64 now_ns)
{
	CHECK(an_event_raise(&set, sink, 0, deliver_ns, now_ns));
}

/* An event for the sink after so many half slots. */
#define RUN_WITH_EVENT(list, options, sink, half_slots, golden)                                    \
	do {                                                                                       \
		begin_slots(list, sizeof(list) / sizeof(list[0]), options);                        \
		raise_at(sink, (half_slots) * SLOT / 2, 0);                                        \
		check_schedule(golden);                                                            \
		CHECK_EQ(events_pending(), 0);                                                     \
	} while (0)

#define PUBLISHED AN_EVENT_AS_PUBLISHED

TEST(event_golden_case_1)
{
	RUN_WITH_EVENT(scenario_1, PUBLISHED, T1, 5, &golden_case_I_event);
}

TEST(event_golden_case_2)
{
	RUN_WITH_EVENT(scenario_1_wc, PUBLISHED, T1, 5, &golden_case_II_event);
}

TEST(event_golden_case_3)
{
	RUN_WITH_EVENT(scenario_2_wc, PUBLISHED, T1, 5, &golden_case_III_event);
	RUN_WITH_EVENT(scenario_2_wc, 0, T1, 5, &golden_case_III_event);
}

TEST(event_golden_case_4)
{
	RUN_WITH_EVENT(scenario_2_server, PUBLISHED, T1 + 1, 9,
		       &golden_case_IV_fcfs_T2_first_event);
	RUN_WITH_EVENT(scenario_2_server, PUBLISHED | AN_TIE_INDEX, T1 + 1, 9,
		       &golden_case_IV_fcfs_T1_first_event);
}

static struct an_event_decision coordinate(u32 selected, u64 now_ns)
{
	struct an_event_decision decision;

	an_event_coordinate(&set, 0, selected, now_ns, &decision);
	return decision;
}

/* By which rule the four cases are decided, and how much earlier T1 learns of its event. */
TEST(event_rules_of_the_cases)
{
	static const struct {
		const struct slot_task *list;
		u32 count, sink, half_slots, rule, earlier, options;
	} cases[] = {
		{scenario_1, 2, T1, 5, AN_RULE_EVENT_2, 2, 0},
		{scenario_1_wc, 2, T1, 5, AN_RULE_EVENT_3, 2, 0},
		{scenario_2_wc, 2, T1, 5, AN_RULE_EVENT_4, 1, 0},
		{scenario_2_server, 3, T1 + 1, 9, AN_RULE_EVENT_5, 2, PUBLISHED},
	};

	for (u32 i = 0; i < 4; i++) {
		u32 slot_of[2] = {0}, from = (cases[i].half_slots + 1) / 2;

		for (u32 with = 0; with < 2; with++) {
			struct slot_result ran = {0};

			begin_slots(cases[i].list, cases[i].count, cases[i].options);
			if (with)
				raise_at(cases[i].sink, cases[i].half_slots * SLOT / 2, 0);
			for (u32 slot = 0; slot < from || ran.index != cases[i].sink; slot++) {
				ran = run_slot(slot);
				slot_of[with] = slot;
			}
			CHECK(!with || ran.rule == cases[i].rule);
		}
		CHECK_EQ(slot_of[0] - slot_of[1], cases[i].earlier);
	}
}

/* Rule 1: the sink was selected anyway. The schedule is the same, the event is delivered. */
TEST(event_rule_1)
{
	begin_slots(scenario_1, 2, 0);
	raise_at(T1 + 1, 0, 0);
	CHECK_EQ(events_pending(), 1);
	CHECK_EQ(run_slot(0).rule, AN_RULE_EVENT_1);
	CHECK_EQ(events_pending(), 0);
	check_windows(golden_case_I_states[0].windows);
}

/* As published nobody pays for rule 2, and the task server for rule 5. */
TEST(event_charges_as_published)
{
	struct an_event_decision d;
	u32 x, y, rule;

	begin_slots(scenario_2_server, 3, PUBLISHED);
	for (u32 slot = 0; slot < 3; slot++)
		run_slot(slot);
	pick_contract(0, 3 * SLOT, &rule);
	x = contract(2)->x;
	y = contract(2)->y;
	raise_at(2, 0, 3 * SLOT);
	d = coordinate(AN_NONE, 3 * SLOT);
	CHECK_EQ(d.rule, AN_RULE_EVENT_2);
	CHECK_EQ(d.run, 2);
	CHECK_EQ(d.run_ns, SLOT);
	CHECK_EQ(d.delivered, 1);
	an_contract_charge(&set, d.charge, SLOT, 4 * SLOT);
	CHECK_EQ(contract(2)->owes_ns, 0);
	CHECK_EQ(coordinate(1, 3 * SLOT).rule, AN_RULE_TASK_SERVER);
	CHECK_EQ(coordinate(1, 3 * SLOT).run, AN_NONE);
	CHECK_EQ(coordinate(1, 3 * SLOT).charge, 1);
	raise_at(2, 0, 3 * SLOT);
	d = coordinate(1, 3 * SLOT);
	CHECK_EQ(d.rule, AN_RULE_EVENT_5);
	CHECK_EQ(d.run, 2);
	an_contract_charge(&set, d.charge, SLOT, 4 * SLOT);
	CHECK_EQ(contract(1)->served, 1);
	CHECK_EQ(contract(2)->x, x);
	CHECK_EQ(contract(2)->y, y);
	CHECK_EQ(contract(2)->extra_ns, 2 * SLOT);
	CHECK_EQ(coordinate(AN_NONE, 0).run_ns, AN_NEVER);
}

/*
 * Case I with T1 as its own payer, and events all the time: it has the slot of its next period in
 * advance, and nothing more until that has come; T2 is served as if there were no event. So T1 has
 * one slot in four, and one more.
 */
TEST(event_paid_in_advance)
{
	static const char *const ran[] = {"T2", "T1", "T2", "T1*", "T2", "T1*",
					  "T2", "BE", "T2", "T1*", "T2", "BE"};

	begin_slots(scenario_1, 2, 0);
	raise_at(T1, 5 * SLOT / 2, 0);
	for (u32 slot = 0; slot < 12; slot++) {
		struct slot_result result = run_slot(slot);

		CHECK(!strncmp(result.name, ran[slot], 2));
		CHECK_EQ(result.event, ran[slot][2] == '*');
		if (slot >= 4)
			raise_at(T1, 0, (slot + 1) * SLOT);
		CHECK(contract(T1)->owes_ns <= SLOT);
	}
	CHECK_EQ(contract(T1)->violations + contract(T1 + 1)->violations, 0);
	CHECK_EQ(contract(T1)->service_ns, 4 * SLOT);
}

/* A contract that sleeps through a period has paid for all with it. */
TEST(event_debt_ends)
{
	begin_slots(scenario_1, 2, 0);
	for (u32 slot = 0; slot < 3; slot++)
		run_slot(slot);
	raise_at(T1, 0, 3 * SLOT);
	CHECK_EQ(run_slot(3).rule, AN_RULE_EVENT_2);
	CHECK_EQ(contract(T1)->owes_ns, SLOT);
	an_contract_sleep(&set, T1, 4 * SLOT);
	an_contract_wake(&set, T1, 8 * SLOT);
	CHECK_EQ(contract(T1)->owes_ns, 0);
	CHECK_EQ(contract(T1)->left_ns, SLOT);
}

/* Rule 3 is for those that asked for more than they were promised, not for learnt ones. */
TEST(event_rule_3_spares_learnt)
{
	struct an_promise promise = {SLOT, 4 * SLOT, 0, 0, 0, AN_LEARNT | AN_HARD, 0};

	for (u32 published = 0; published < 2; published++) {
		u32 learnt;

		begin_slots(scenario_1_wc, 2, published ? PUBLISHED : 0);
		learnt = an_contract_create(&set, &promise);
		an_contract_wake(&set, learnt, 0);
		CHECK_EQ(contract(learnt)->rank, AN_RANK_EXTRA);
		raise_at(T1, 0, 0);
		CHECK_EQ(coordinate(learnt, 0).rule, published ? AN_RULE_EVENT_3 : AN_RULE_NONE);
		CHECK(!an_event_raise(&set, learnt, 0, 0, 0)); /* and is no sink */
	}
}

/* Nobody pays for what work-conserving contracts have beyond their C, with an event or without. */
TEST(event_rule_3_is_free_among_its_like)
{
	struct an_event_decision d;

	begin_slots(scenario_1_wc, 2, 0);
	for (u32 slot = 0; slot < 3; slot++)
		run_slot(slot);
	raise_at(T1, 0, 3 * SLOT);
	d = coordinate(T1 + 1, 3 * SLOT);
	CHECK_EQ(d.rule, AN_RULE_EVENT_3);
	CHECK_EQ(d.run, T1);
	CHECK_EQ(d.run_ns, SLOT);
	an_contract_charge(&set, d.charge, SLOT, 4 * SLOT);
	CHECK_EQ(contract(T1)->owes_ns, 0);
	CHECK_EQ(events_pending(), 0);
}

/* An event is served until C has been run, also if somebody came between; or the sink sleeps. */
TEST(event_is_served_to_its_end)
{
	static const struct slot_task list[] = {{"T1", 3, 20, 1, 2, 0}, {"T2", 1, 10, 1, 4, 0}};
	struct an_event_decision d;

	begin_slots(list, 2, 0);
	for (u32 slot = 0; slot < 4; slot++)
		run_slot(slot);
	raise_at(T1, 0, 4 * SLOT);
	d = coordinate(AN_NONE, 4 * SLOT);
	CHECK_EQ(d.rule, AN_RULE_EVENT_2);
	CHECK_EQ(d.run_ns, 3 * SLOT);
	an_contract_charge(&set, d.charge, SLOT, 5 * SLOT);
	CHECK_EQ(contract(T1)->owes_ns, SLOT);
	/* T2 would have come here: then the rest. */
	CHECK_EQ(coordinate(2, 5 * SLOT).run, 2);
	d = coordinate(AN_NONE, 6 * SLOT);
	CHECK_EQ(d.run, T1);
	CHECK_EQ(d.delivered, 0);
	CHECK_EQ(d.run_ns, 2 * SLOT);
	an_contract_charge(&set, d.charge, 2 * SLOT, 8 * SLOT);
	CHECK_EQ(events_pending(), 0);
	CHECK_EQ(coordinate(AN_NONE, 8 * SLOT).run, AN_NONE);
	/* In debt: another one waits, and is delivered when the sink is served anyway. */
	raise_at(T1, 0, 8 * SLOT);
	CHECK_EQ(coordinate(AN_NONE, 8 * SLOT).run, AN_NONE);
	CHECK_EQ(coordinate(T1, 8 * SLOT).rule, AN_RULE_EVENT_1);
	CHECK_EQ(events_pending(), 0);
	check_contracts(1);
}

/* Where contracts are bounded, rule 2 keeps to the bound. */
TEST(event_rule_2_is_bounded)
{
	begin_slots(scenario_1, 2, 0);
	set.bound = 512;
	set.cpus[0].promised.left_ns = 0;
	raise_at(T1, 0, 0);
	CHECK_EQ(coordinate(AN_NONE, 0).rule, AN_RULE_NONE);
	set.cpus[0].promised.left_ns = SLOT;
	CHECK_EQ(coordinate(AN_NONE, 0).rule, AN_RULE_EVENT_2);
}

/* An event waits for its time, and for its sink; nobody waits for one that sleeps, or is gone. */
TEST(event_waits)
{
	begin_slots(scenario_1, 2, 0);
	raise_at(T1, 10, 0);
	CHECK_EQ(an_events_due(&set, 0), 10);
	CHECK_EQ(coordinate(AN_NONE, 9).rule, AN_RULE_NONE);
	an_contract_sleep(&set, T1, 10);
	CHECK_EQ(an_events_due(&set, 0), AN_NEVER);
	CHECK_EQ(coordinate(AN_NONE, 10).rule, AN_RULE_NONE);
	raise_at(T1 + 1, 0, 11);
	CHECK_EQ(coordinate(AN_NONE, 11).run, T1 + 1); /* not head of line */
	an_contract_charge(&set, T1 + 1, SLOT, 11 + SLOT);
	an_contract_wake(&set, T1, 20);
	CHECK_EQ(an_events_due(&set, 0), 10);
	/* Its events go along to another CPU. */
	an_contract_move(&set, T1, 5);
	CHECK_EQ(an_events_due(&set, 0), AN_NEVER);
	CHECK_EQ(an_events_due(&set, 5), 10);
	an_contract_park(&set, T1, true);
	CHECK_EQ(an_events_due(&set, 5), AN_NEVER);
	an_contract_park(&set, T1, false);
	an_contract_remove(&set, T1);
	CHECK_EQ(an_events_due(&set, 5), AN_NEVER);
	CHECK(!an_event_raise(&set, T1, 0, 0, 20));
	check_contracts(6);
}

/* One for each service, the last that was raised; none is due before it was raised. */
TEST(event_last_one_counts)
{
	begin_slots(scenario_1, 2, 0);
	raise_at(T1, 100, 0);
	raise_at(T1, 50, 0);
	CHECK_EQ(an_events_due(&set, 0), 50);
	raise_at(T1, 70, 0);
	CHECK_EQ(an_events_due(&set, 0), 70);
	CHECK(an_event_raise(&set, T1, 1, 60, 0));
	CHECK_EQ(an_events_due(&set, 0), 60);
	CHECK(!an_event_raise(&set, T1, AN_SERVICES, 0, 0));
	/* Nobody goes first by an old date, nor loses what is due by another raise. */
	CHECK(an_event_raise(&set, T1, 2, 0, 55));
	CHECK_EQ(an_events_due(&set, 0), 55);
	CHECK(an_event_raise(&set, T1, 2, 500, 56));
	CHECK_EQ(an_events_due(&set, 0), 55);
	CHECK_EQ(events_pending(), 1);
	CHECK_EQ(coordinate(T1, 65).delivered, 1u << 1 | 1u << 2); /* all that is due */
	CHECK_EQ(an_events_due(&set, 0), 70);
}

/* An event that was delivered to a sink of which nothing was found is pending again. */
TEST(event_comes_back)
{
	begin_slots(scenario_1, 2, 0);
	CHECK(an_event_raise(&set, T1, 3, 0, 0));
	CHECK_EQ(coordinate(AN_NONE, 10).run, T1);
	an_contract_park(&set, T1, true);
	an_event_undeliver(&set, T1, 12);
	CHECK_EQ(an_events_due(&set, 0), AN_NEVER);
	an_contract_park(&set, T1, false);
	CHECK_EQ(an_events_due(&set, 0), 12);
	CHECK_EQ(coordinate(T1, 12).delivered, 1u << 3);
	an_event_undeliver(&set, T1, 13); /* of rule 1 too */
	CHECK_EQ(coordinate(T1 + 1, 13).rule, AN_RULE_NONE);
	CHECK_EQ(an_events_due(&set, 0), 13);
	check_contracts(1);
}

/* Rule 4 does not swap when i has to run now, nor for a tie, nor across deadlines. */
TEST(event_rule_4_limits)
{
	static const struct slot_task tight[] = {{"T1", 2, 3, 1, 2, 0}, {"T2", 2, 3, 1, 4, 0}};
	static const struct slot_task tie[] = {{"T1", 1, 3, 1, 2, 0}, {"T2", 1, 3, 1, 2, 0}};
	static const struct slot_task apart[] = {{"T1", 1, 4, 1, 4, 0}, {"T2", 1, 3, 1, 4, 0}};
	static const struct {
		const struct slot_task *list;
		u32 selected, sink;
	} cases[] = {{tight, 2, 1}, {tie, 1, 2}, {apart, 2, 1}};

	for (u32 i = 0; i < 3; i++) {
		begin_slots(cases[i].list, 2, 0);
		raise_at(cases[i].sink, 0, 0);
		CHECK_EQ(coordinate(cases[i].selected, 0).rule, AN_RULE_NONE);
		CHECK_EQ(events_pending(), 1);
	}
}

/* T2 and T3 come before T1, which has an event: T3 would lose its period to T1. */
TEST(event_rule_4_asks_all)
{
	static const struct slot_task list[] = {
		{"T1", 1, 3, 2, 3, 0}, {"T2", 1, 3, 0, 1, 0}, {"T3", 2, 3, 1, 3, 0}};

	for (u32 published = 0; published < 2; published++) {
		begin_slots(list, 3, published ? PUBLISHED : 0);
		raise_at(T1, 0, 0);
		CHECK_EQ(coordinate(2, 0).rule, published ? AN_RULE_EVENT_4 : AN_RULE_NONE);
	}
	/* And of one that nobody can tell when it is done, nothing is known. */
	begin_slots(list, 2, 0);
	raise_at(T1, 0, 0);
	CHECK_EQ(coordinate(2, 0).rule, AN_RULE_EVENT_4);
	an_contract_wake(&set, create_on(0, 1, 3 * SLOT, 0, 0, AN_EXHAUSTIVE), 0);
	raise_at(T1, 0, 0);
	CHECK_EQ(an_event_all_can_wait(&set, 2, T1, 0), false);
}

/* The contracts before j are found whatever the shape of the heap: against all of them, one by one.
 */
TEST(event_rule_4_finds_all)
{
	struct random r = {test_seed()};
	u32 waits = 0;

	for (u32 round = 0; round < 2000; round++) {
		u32 count = 2 + random_below(&r, 6), j = 1 + random_below(&r, count), first;
		u64 busy_until_ns = 0;
		bool can;

		an_contracts_init(&set, 0);
		for (u32 i = 0; i < count; i++) {
			u32 y = 1 + random_below(&r, 6);

			create_window(1 + random_below(&r, 6), 60, random_below(&r, y + 1), y, 0);
			an_contract_wake(&set, i + 1, 0);
		}
		for (u32 i = 1; i <= count; i++)
			if (i == j || an_precedence(&set, i, j) > 0)
				busy_until_ns += contract(i)->left_ns;
		first = an_heap_first(an_contract_cpu(&set, 0), AN_READY);
		for (u64 now_ns = 0; first != j && now_ns < 60; now_ns += 7) {
			if (now_ns + contract(first)->left_ns + contract(j)->left_ns > 60)
				break; /* of these two it has been asked before */
			can = an_event_all_can_wait(&set, first, j, now_ns);
			CHECK_EQ(can, now_ns + busy_until_ns <= 60);
			waits += can;
		}
	}
	CHECK(waits > 1000);
}

/* Swaps by rule 4 among ten players of T = 20, C = 10 (units), events at random: [1], Table 5. */
static u32 rule_4_swaps(u32 options)
{
	static struct slot_task players[10];
	struct random r = {test_seed()};
	u32 swaps = 0;

	for (u32 i = 0; i < 10; i++)
		players[i] = (struct slot_task){"P", 1, 2, 1, 5, AN_WORK_CONSERVING};
	begin_slots(players, 10, options);
	for (u64 slot = 0; slot < 5000; slot++) {
		if (!events_pending() || random_chance(&r, 20))
			raise_at(1 + random_below(&r, 10), slot * SLOT, slot * SLOT);
		swaps += run_slot(slot).rule == AN_RULE_EVENT_4;
	}
	return swaps;
}

/* As printed, with > 0, rule 4 never fires in the experiment that reports its swaps. */
TEST(event_rule_4_as_printed)
{
	u32 swaps = rule_4_swaps(PUBLISHED);

	CHECK_EQ(rule_4_swaps(PUBLISHED | AN_EVENT_STRICT), 0);
	CHECK(swaps > 0);
	test_remark("event rule 4: %u swaps in 5000 slots, as printed none", swaps);
}

/* Sinks are ordered by their first event, whatever has been raised, served, or gone to sleep. */
TEST(event_order)
{
	struct random r = {test_seed()};
	u64 now_ns = 0;
	u32 sinks = 200;

	an_contracts_init(&set, 0);
	for (u32 i = 0; i < sinks; i++) {
		create_window(1, 1000, 1, 2, 0);
		an_contract_wake(&set, i + 1, 0);
	}
	for (u32 step = 0; step < 20000; step++) {
		u32 sink = 1 + random_below(&r, sinks),
		    first = an_heap_first(&set.cpus[0], AN_SINKS);
		u64 due_ns = an_events_due(&set, 0);

		now_ns += random_below(&r, 3);
		if (due_ns <= now_ns && random_chance(&r, 50)) {
			CHECK_EQ(coordinate(AN_NONE, now_ns).run, first);
			an_contract_charge(&set, first, 1, now_ns);
			contract(first)->owes_ns = 0;
		}
		if (random_chance(&r, 20))
			an_contract_sleep(&set, sink, now_ns);
		else if (!contract(sink)->runnable)
			an_contract_wake(&set, sink, now_ns);
		CHECK(an_event_raise(&set, sink, random_below(&r, AN_SERVICES),
				     now_ns + random_below(&r, 50), now_ns));
		due_ns = AN_NEVER;
		for (u32 i = 1; i <= sinks; i++)
			for (u32 k = 0; k < AN_SERVICES; k++)
				if (contract(i)->runnable && contract(i)->event_ns[k] < due_ns)
					due_ns = contract(i)->event_ns[k];
		CHECK_EQ(an_events_due(&set, 0), due_ns);
		if (step % 100 == 0)
			check_contracts(1);
	}
}

/* A task server for n players of T = 100, C = 10 (ms), 1/5, on a base of 10: [1], section 4. */
TEST(event_task_server)
{
	const u64 ms = 1000000;

	an_contracts_init(&set, 0);
	for (u32 n = 1; n <= 4; n++) {
		const struct an_promise *p;

		an_contract_wake(&set, create_window(10 * ms, 100 * ms, 1, 5, AN_WORK_CONSERVING),
				 0);
		CHECK(an_task_server_update(&set, 0, 10 * ms, 0));
		p = &contract(set.cpus[0].server)->promise;
		CHECK_EQ(p->budget_ns, 10 * ms);
		CHECK_EQ(p->period_ns, 20 * ms); /* 10.87, 11.90, 13.16, 14.71 */
		CHECK_EQ(p->x, 0);
		CHECK_EQ(p->y, 6);
		/* 8 % each, rounded down. */
		CHECK(set.cpus[0].utilization <= n * 8 * AN_UTILIZATION_ONE / 100);
		CHECK(set.cpus[0].utilization + 2 * n > n * 8 * AN_UTILIZATION_ONE / 100);
	}
	/* The first event's sink says how long the server serves, from its next period on. */
	an_contract_wake(&set, create_window(30 * ms, 300 * ms, 0, 1, 0), 0);
	raise_at(set.unused - 1, 0, 0);
	CHECK(an_task_server_update(&set, 0, 10 * ms, 0));
	CHECK_EQ(contract(set.cpus[0].server)->promise.budget_ns, 30 * ms);
	CHECK_EQ(contract(set.cpus[0].server)->promise.period_ns, 60 * ms); /* 30 / 0.58 = 51.7 */
	CHECK_EQ(contract(set.cpus[0].server)->left_ns, 10 * ms);
	/* Nothing left of the CPU: no server. */
	create_window(57 * ms, 100 * ms, 0, 1, 0);
	CHECK(an_task_server_update(&set, 0, 10 * ms, 0));
	CHECK_EQ(contract(set.cpus[0].server)->promise.period_ns, 3000 * ms);
	create_window(1 * ms, 100 * ms, 0, 1, 0);
	CHECK(!an_task_server_update(&set, 0, 10 * ms, 0));
	CHECK_EQ(set.cpus[0].server, AN_NONE);
	check_contracts(1);
}

/* Scenario II: U_r = 7/12, C = 1, so T = 12/7, which is 2. A third exactly stays a third. */
TEST(event_task_server_rounds_up)
{
	begin_slots(scenario_2_wc, 2, 0);
	CHECK(an_task_server_update(&set, 0, SLOT, 0));
	CHECK_EQ(contract(set.cpus[0].server)->promise.period_ns, 2 * SLOT);
	CHECK_EQ(contract(set.cpus[0].server)->promise.y, 5);
	an_contracts_init(&set, 0);
	create_window(1, 3, 0, 1, 0);
	create_window(2, 6, 0, 1, 0);
	CHECK(an_task_server_update(&set, 0, 10, 0));
	CHECK_EQ(contract(set.cpus[0].server)->promise.period_ns, 30);
}

/* The task server among its contracts: they are not violated, and events are served in its slots.
 */
TEST(event_task_server_serves)
{
	static const struct slot_task players[] = {{"A", 1, 10, 1, 5, 0}, {"B", 1, 10, 1, 5, 0}};
	u32 delivered = 0, raised = 0;

	begin_slots(players, 2, 0);
	CHECK(an_task_server_update(&set, 0, SLOT, 0));
	for (u64 slot = 0; slot < 1000; slot++) {
		struct an_event_decision d;
		u32 rule, index = pick_contract(0, slot * SLOT, &rule);

		if (slot % 7 == 0)
			raise_at(T1, slot * SLOT, slot * SLOT);
		d = coordinate(index, slot * SLOT);
		delivered += d.delivered != 0;
		raised += slot % 7 == 0;
		if (d.charge)
			an_contract_charge(&set, d.charge, SLOT, (slot + 1) * SLOT);
	}
	CHECK_EQ(contract(1)->violations + contract(2)->violations, 0);
	CHECK_EQ(contract(set.cpus[0].server)->violations, 0);
	CHECK(delivered >= raised - 1 && raised == 1000 / 7 + 1);
}

/* A sink that has its own C needs no server, and interrupts nobody; one that has had it is served.
 */
TEST(event_task_server_is_for_those_without)
{
	static const struct slot_task players[] = {{"A", 1, 10, 1, 5, 0}, {"B", 1, 10, 1, 5, 0}};

	begin_slots(players, 2, 0);
	CHECK(an_task_server_update(&set, 0, SLOT, 0));
	raise_at(T1, 0, 0);
	CHECK_EQ(coordinate(set.cpus[0].server, 0).rule, AN_RULE_TASK_SERVER);
	CHECK_EQ(an_heap_first(&set.cpus[0], AN_READY), set.cpus[0].server);
	CHECK(an_task_server_forfeits(&set, 0, 0));
	an_contract_charge(&set, T1, SLOT, SLOT);
	CHECK(contract(T1)->rank != AN_RANK_BUDGET);
	CHECK_EQ(coordinate(set.cpus[0].server, SLOT).rule, AN_RULE_EVENT_5);
	check_contracts(1);
}

TEST(event_unix_rules)
{
	/* Real-time sinks: the same or a lower class makes way, a higher one does not. */
	CHECK_EQ(an_event_unix(true, 5, true, 5), AN_RULE_UNIX_1);
	CHECK_EQ(an_event_unix(true, 5, true, 4), AN_RULE_UNIX_1);
	CHECK_EQ(an_event_unix(true, 5, true, 6), AN_RULE_NONE);
	CHECK_EQ(an_event_unix(true, 1, false, 90), AN_RULE_UNIX_1);
	/* Other sinks: only when nothing real-time can run. */
	CHECK_EQ(an_event_unix(false, 90, false, 1), AN_RULE_UNIX_2);
	CHECK_EQ(an_event_unix(false, 90, true, 1), AN_RULE_NONE);
}

/* Without its rule a case goes on as if there were no event; the sink's own slot delivers it. */
TEST(event_rules_left_out)
{
	RUN_WITH_EVENT(scenario_1, PUBLISHED | AN_EVENT_NO_RULE_2, T1, 5, &golden_case_I);
	RUN_WITH_EVENT(scenario_1_wc, PUBLISHED | AN_EVENT_NO_RULE_3, T1, 5, &golden_case_II);
	RUN_WITH_EVENT(scenario_2_wc, PUBLISHED | AN_EVENT_NO_RULE_4, T1, 5, &golden_case_III);
	RUN_WITH_EVENT(scenario_2_server, PUBLISHED | AN_EVENT_NO_RULE_5, T1 + 1, 9,
		       &golden_case_IV_fcfs_T2_first);
	/* The others stay. */
	RUN_WITH_EVENT(scenario_1,
		       PUBLISHED | AN_EVENT_NO_RULE_3 | AN_EVENT_NO_RULE_4 | AN_EVENT_NO_RULE_5, T1,
		       5, &golden_case_I_event);
}
