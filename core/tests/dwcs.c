// SPDX-License-Identifier: GPL-2.0
/*
 * DWCS: the schedules that are known to the last slot ([1] of dwcs.h: Table 2, Figure 4), the rules
 * of a window, and what the header decided where the paper is silent.
 */
#include "slots.h"

#define RUN_GOLDEN(list, options, golden)                                                          \
	do {                                                                                       \
		begin_slots(list, sizeof(list) / sizeof(list[0]), options);                        \
		check_schedule(golden);                                                            \
	} while (0)

TEST(dwcs_golden_case_1)
{
	RUN_GOLDEN(scenario_1, 0, &golden_case_I);
}

TEST(dwcs_golden_case_2)
{
	RUN_GOLDEN(scenario_1_wc, 0, &golden_case_II);
}

TEST(dwcs_golden_case_3)
{
	RUN_GOLDEN(scenario_2_wc, 0, &golden_case_III);
}

TEST(dwcs_golden_case_4)
{
	RUN_GOLDEN(scenario_2_server, 0, &golden_case_IV_fcfs_T2_first);
	RUN_GOLDEN(scenario_2_server, AN_TIE_INDEX, &golden_case_IV_fcfs_T1_first);
}

TEST(dwcs_golden_unequal_periods)
{
	static const struct slot_task two[] = {{"A", 1, 1, 1, 4, 0}, {"B", 1, 3, 2, 4, 0}};
	static const struct slot_task three[] = {
		{"A", 1, 1, 3, 4, 0},
		{"B", 1, 6, 2, 3, 0},
		{"C", 1, 6, 1, 4, 0},
	};

	RUN_GOLDEN(two, AN_TIE_INDEX, &golden_unequal_T_counterexample);
	CHECK_EQ(contract(1)->violations, 0);
	CHECK_EQ(contract(2)->violations, 1);
	CHECK_EQ(contract(2)->misses, 4);
	RUN_GOLDEN(three, AN_TIE_INDEX, &golden_unequal_T_lowU);
	CHECK_EQ(contract(1)->violations, 0);
	CHECK_EQ(contract(2)->violations, 0);
	CHECK_EQ(contract(3)->violations, 1);
	CHECK_EQ(contract(3)->misses, 4);
}

/* Extra service that counts for the window gives another schedule, from slot 15 on. */
TEST(dwcs_extra_counts)
{
	const char *at = golden_case_II.ran;

	begin_slots(scenario_1_wc, 2, AN_EXTRA_COUNTS);
	for (u32 slot = 0; slot < 15; slot++, at += 3)
		CHECK(!strncmp(run_slot(slot).name, at, 2));
	CHECK(strncmp(run_slot(15).name, at, 2));
}

/* Rules a and b, every case of them. */
TEST(dwcs_rules_a_and_b)
{
	static const struct {
		u32 x, y, a_x, a_y, b_x, b_y;
		bool violated;
	} known[] = {
		{1, 3, 1, 2, 0, 2, false}, /* the usual */
		{2, 2, 1, 1, 1, 1, false}, /* y' = x': both go down together */
		{1, 1, 2, 5, 2, 5, false}, /* the end of a window: 2/5 again */
		{0, 1, 2, 5, 0, 2, true},  {0, 4, 0, 3, 0, 5, true},
	};

	for (u32 i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct an_contract c = {.promise = {.x = 2, .y = 5}};

		c.x = known[i].x;
		c.y = known[i].y;
		an_window_serve(&c);
		CHECK_EQ(c.x, known[i].a_x);
		CHECK_EQ(c.y, known[i].a_y);
		c.x = known[i].x;
		c.y = known[i].y;
		CHECK_EQ(an_window_lose(&c), known[i].violated);
		CHECK_EQ(c.x, known[i].b_x);
		CHECK_EQ(c.y, known[i].b_y);
	}
}

/* 0/0 is pure EDF: the rules leave it alone, every loss is a violation. */
TEST(dwcs_pure_edf)
{
	struct an_contract c = {0};

	an_window_serve(&c);
	CHECK_EQ(c.y, 0);
	CHECK(an_window_lose(&c));
	CHECK_EQ(c.x, 0);
	CHECK_EQ(c.y, 0);
}

/* A contract of T = 10 that wants to run from the start, and the rule by which it is picked. */
static u32 awake(u32 x, u32 y, u64 period_ns)
{
	u32 index = create_window(1, period_ns, x, y, 0);

	an_contract_wake(&set, index, 0);
	return index;
}

#define CHECK_PICK(wanted, wanted_rule)                                                            \
	do {                                                                                       \
		u32 index = wanted, rule;                                                          \
                                                                                                   \
		CHECK_EQ(pick_contract(0, 0, &rule), index);                                       \
		CHECK_EQ(rule, wanted_rule);                                                       \
	} while (0)

/* Which item of Table 1 decides is what the pick says. Each comes before those that were there. */
TEST(dwcs_reasons)
{
	an_contracts_init(&set, 0);
	CHECK_PICK(AN_NONE, AN_RULE_NONE);
	CHECK_PICK(awake(3, 4, 10), AN_RULE_EDF);
	CHECK_PICK(awake(2, 4, 10), AN_RULE_WINDOW);
	CHECK_PICK(awake(1, 2, 10), AN_RULE_NUMERATOR);
	CHECK_PICK(3, AN_RULE_NUMERATOR);
	awake(1, 2, 10);
	CHECK_PICK(3, AN_RULE_FCFS);
	CHECK_PICK(awake(0, 1, 10), AN_RULE_WINDOW);
	CHECK_PICK(awake(0, 3, 10), AN_RULE_DENOMINATOR);
	awake(0, 0, 10);
	CHECK_PICK(6, AN_RULE_DENOMINATOR);
	CHECK_PICK(awake(9, 10, 9), AN_RULE_EDF);
	check_contracts(1);
}

/* A contract of C = 3, T = 10, 1/4, on its own. */
static struct an_contract *lone_window(u32 flags)
{
	an_contracts_init(&set, 0);
	return contract(create_window(3, 10, 1, 4, flags));
}

static u64 expire(u64 now_ns)
{
	u64 kick = 0, due_ns = an_contracts_expire(&set, 0, now_ns, &kick);

	CHECK_EQ(kick & ~1ULL, 0);
	check_contracts(1);
	return due_ns;
}

/* C may be given in parts; once given, that is all for the period. */
TEST(dwcs_service_in_parts)
{
	struct an_contract *c = lone_window(0);
	u32 rule;

	CHECK_EQ(an_contract_wake(&set, 1, 0), AN_RULE_RELEASED);
	CHECK_EQ(an_contract_run_ns(&set, 1, 0), 3);
	CHECK_EQ(an_contract_charge(&set, 1, 1, 1), AN_RULE_NONE);
	CHECK_EQ(an_contract_charge(&set, 1, 1, 5), AN_RULE_NONE);
	CHECK_EQ(c->y, 4);
	CHECK_EQ(an_contract_run_ns(&set, 1, 5), 1);
	CHECK_EQ(an_contract_charge(&set, 1, 1, 6), AN_RULE_SERVED);
	CHECK_EQ(c->y, 3);
	CHECK_EQ(an_contracts_pick(&set, 0, 6, true, &rule), AN_NONE);
	CHECK_EQ(expire(9), 10);
	CHECK_EQ(expire(10), 20);
	CHECK_EQ(an_contracts_pick(&set, 0, 10, false, &rule), 1);
	CHECK_EQ(c->y, 3);
	CHECK_EQ(c->misses, 0);
	CHECK_EQ(c->deadlines, 1);
}

/* What is short of C at the end of the period is lost, and so is the period. */
TEST(dwcs_partial_service_is_lost)
{
	struct an_contract *c = lone_window(0);

	an_contract_wake(&set, 1, 0);
	an_contract_charge(&set, 1, 2, 10);
	CHECK_EQ(expire(10), 20);
	CHECK_EQ(c->left_ns, 3);
	CHECK_EQ(c->misses, 1);
	CHECK_EQ(c->violations, 0);
	CHECK_EQ(c->x, 0);
	/* Two whole periods without a look: two losses. */
	CHECK_EQ(expire(45), 50);
	CHECK_EQ(c->misses, 4);
	CHECK_EQ(c->violations, 3);
	CHECK_EQ(c->y, 3 + 3);
}

/* With AN_WORK_CONSERVING more is extra, with AN_BORROW it is for idle time; neither counts. */
TEST(dwcs_after_service)
{
	struct an_contract *c = lone_window(AN_WORK_CONSERVING);
	u32 rule;

	an_contract_wake(&set, 1, 0);
	an_contract_charge(&set, 1, 3, 3);
	CHECK_EQ(an_contracts_pick(&set, 0, 3, false, &rule), 1);
	CHECK_EQ(rule, AN_RULE_EXTRA);
	CHECK_EQ(an_contract_run_ns(&set, 1, 3), 7);
	CHECK_EQ(an_contract_charge(&set, 1, 7, 10), AN_RULE_NONE);
	CHECK_EQ(c->extra_ns, 7);
	CHECK_EQ(c->y, 3);

	c = lone_window(AN_BORROW);
	an_contract_wake(&set, 1, 0);
	an_contract_charge(&set, 1, 3, 3);
	CHECK_EQ(an_contracts_pick(&set, 0, 3, false, &rule), AN_NONE);
	CHECK_EQ(an_contracts_pick(&set, 0, 3, true, &rule), 1);
	CHECK_EQ(rule, AN_RULE_BORROWED);
	an_contract_charge(&set, 1, 7, 10);
	CHECK_EQ(c->borrowed_ns, 7);
	CHECK_EQ(c->y, 3);
}

/* Periods lie on multiples of T, whenever the contract began; the first part of one is not owed. */
TEST(dwcs_periods_are_aligned)
{
	struct an_contract *c = lone_window(0);

	an_contract_wake(&set, 1, 34);
	CHECK_EQ(c->deadline_ns, 40);
	CHECK_EQ(expire(40), 50);
	CHECK_EQ(c->deadlines, 0);
	CHECK_EQ(c->y, 4);
	expire(50);
	CHECK_EQ(c->misses, 1);
}

/* Nobody was promised anything for a period that it slept through. */
TEST(dwcs_sleeping_through_periods)
{
	struct an_contract *c = lone_window(0);

	an_contract_wake(&set, 1, 0);
	an_contract_charge(&set, 1, 3, 3);
	an_contract_sleep(&set, 1, 3);
	CHECK_EQ(an_contracts_due(&set, 0), AN_NEVER);
	CHECK_EQ(an_contract_wake(&set, 1, 57), AN_RULE_RELEASED);
	CHECK_EQ(c->deadline_ns, 60);
	CHECK_EQ(c->y, 3);
	CHECK_EQ(c->deadlines, 1);
	expire(60); /* came too late for a promise in that one */
	CHECK_EQ(c->y, 3);
	CHECK_EQ(c->deadlines, 1);
	expire(70);
	CHECK_EQ(c->misses, 1);
}

/* One that ran a little and sleeps at the end of the period had what it wanted. */
TEST(dwcs_less_than_c_wanted)
{
	struct an_contract *c = lone_window(0);

	an_contract_wake(&set, 1, 0);
	an_contract_charge(&set, 1, 1, 1);
	an_contract_sleep(&set, 1, 1);
	an_contract_wake(&set, 1, 10);
	CHECK_EQ(c->y, 3);
	CHECK_EQ(c->deadlines, 1);
	CHECK_EQ(c->misses, 0);
	CHECK_EQ(c->left_ns, 3);
	CHECK(c->owed); /* it woke with the period */
}

/* A process that sleeps within a period is owed it only while the rest still fits. */
TEST(dwcs_sleeping_within_a_period)
{
	struct an_contract *c = lone_window(0);

	an_contract_wake(&set, 1, 0);
	an_contract_charge(&set, 1, 1, 1);
	an_contract_sleep(&set, 1, 1);
	CHECK_EQ(an_contract_wake(&set, 1, 8), AN_RULE_KEPT);
	CHECK_EQ(c->left_ns, 2);
	expire(10);
	CHECK_EQ(c->misses, 1); /* 2 ns would have fitted */
	an_contract_charge(&set, 1, 1, 11);
	an_contract_sleep(&set, 1, 11);
	an_contract_wake(&set, 1, 19);
	expire(20);
	CHECK_EQ(c->misses, 1); /* they would not */
	CHECK_EQ(c->x, 0);
	CHECK_EQ(c->y, 3);
}

/* Looking does not change anything: a scheduler that is called twice in a slot picks twice. */
TEST(dwcs_picking_twice)
{
	begin_slots(scenario_1, 2, 0);
	for (u32 i = 0; i < 3; i++) {
		CHECK_PICK(2, AN_RULE_EDF);
		CHECK_EQ(contract(2)->y, 4);
	}
}

/* A run beyond C, by a timer that came late, is extra. */
TEST(dwcs_run_beyond_c)
{
	struct an_contract *c = lone_window(0);

	an_contract_wake(&set, 1, 0);
	CHECK_EQ(an_contract_charge(&set, 1, 5, 5), AN_RULE_SERVED);
	CHECK_EQ(c->extra_ns, 2);
	CHECK_EQ(c->left_ns, 3);
	CHECK_EQ(c->y, 3);
}
