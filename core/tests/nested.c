// SPDX-License-Identifier: GPL-2.0
/* A contract nested in another: what it runs comes out of both. Budgets 2 in 10 within 5 in 10. */
#include "contract_fixture.h"
#include "random.h"

#define C 5
#define T 10

static u32 outer, inner;

static void nested_begin(u32 flags)
{
	an_contracts_init(&set, 0);
	outer = create_server(C, T, flags);
	inner = create_server(2, T, AN_HARD);
}

/* The inner one has run. */
static enum an_rule inner_ran(u64 ran_ns, u64 now_ns)
{
	enum an_rule rule = an_contract_charge_around(&set, outer, ran_ns, now_ns);

	check_contracts(1);
	return rule;
}

TEST(nested_run_is_a_job_of_the_one_around_that_sleeps)
{
	nested_begin(AN_HARD);
	CHECK_EQ(inner_ran(2, 2), AN_RULE_NONE);
	CHECK_EQ(contract(outer)->left_ns, 3);
	CHECK_EQ(contract(outer)->deadline_ns, 10);
	CHECK(!contract(outer)->runnable);
	/* It wakes with what is left, and by the same deadline. */
	CHECK_EQ(an_contract_wake(&set, outer, 2), AN_RULE_KEPT);
	CHECK_EQ(an_contract_charge(&set, outer, 3, 5), AN_RULE_THROTTLED);
	CHECK_EQ(contract(outer)->due_ns, 10);
	/* A budget long past is not what the run comes out of. */
	an_contract_sleep(&set, outer, 5);
	CHECK_EQ(inner_ran(1, 101), AN_RULE_NONE);
	CHECK_EQ(contract(outer)->left_ns, 4);
	CHECK_EQ(contract(outer)->deadline_ns, 110);
}

TEST(nested_run_may_end_the_budget_around_it)
{
	u32 rule;

	nested_begin(AN_HARD);
	an_contract_wake(&set, outer, 0);
	an_contract_charge(&set, outer, 4, 4);
	CHECK_EQ(inner_ran(1, 5), AN_RULE_THROTTLED);
	CHECK_EQ(pick_contract(0, 5, &rule), AN_NONE);
	/* Without budget it owes: at 10 it has two less. */
	CHECK_EQ(inner_ran(2, 7), AN_RULE_NONE);
	CHECK_EQ(pick_contract(0, 10, &rule), outer);
	CHECK_EQ(contract(outer)->left_ns, 3);
	/* A soft one has its deadline put off. */
	nested_begin(0);
	an_contract_wake(&set, outer, 0);
	CHECK_EQ(inner_ran(6, 6), AN_RULE_POSTPONED);
	CHECK_EQ(contract(outer)->left_ns, 4);
	CHECK_EQ(contract(outer)->deadline_ns, 20);
}

TEST(nested_run_is_owed_by_one_that_left_its_budget_to_others)
{
	nested_begin(AN_HARD | AN_RECLAIM);
	an_contract_wake(&set, outer, 0);
	an_contract_charge(&set, outer, 1, 1);
	an_contract_sleep(&set, outer, 1);
	CHECK_EQ(inner_ran(2, 3), AN_RULE_NONE);
	CHECK_EQ(set.cpus[0].residual[0].left_ns, 4);
	an_contract_wake(&set, outer, 12);
	CHECK_EQ(contract(outer)->left_ns, 3);
	/* Once a whole budget has not been used nothing is owed any more. */
	an_contract_charge(&set, outer, 3, 15);
	inner_ran(2, 17);
	an_contract_sleep(&set, outer, 17);
	an_contract_wake(&set, outer, 32);
	CHECK_EQ(contract(outer)->left_ns, C);
}

TEST(nested_run_takes_of_windows_and_pieces_what_is_being_served)
{
	const struct an_piece pieces[] = {{2, 0, 5, 0, 0}, {3, 5, 5, 1, 0}};

	an_contracts_init(&set, 0);
	outer = create_window(C, T, 1, 2, 0);
	CHECK_EQ(inner_ran(2, 2), AN_RULE_NONE);
	an_contract_wake(&set, outer, 2);
	CHECK_EQ(contract(outer)->left_ns, C);
	CHECK_EQ(inner_ran(2, 4), AN_RULE_NONE);
	CHECK_EQ(inner_ran(3, 7), AN_RULE_SERVED);

	an_contracts_init(&set, 0);
	outer = create_server(C, T, AN_HARD);
	CHECK_EQ(an_split_set(&set, outer, pieces, 2), 0);
	CHECK_EQ(inner_ran(2, 2), AN_RULE_NONE);
	an_contract_wake(&set, outer, 10);
	CHECK_EQ(contract(outer)->left_ns, 2);
	CHECK_EQ(inner_ran(2, 12), AN_RULE_THROTTLED);
}

/* Runs, sleeps and wakes, an instant at a time; how long each ran. */
static void run_both(struct random *r, u64 until_ns, u64 *outer_ns, u64 *inner_ns)
{
	u32 rule;

	*outer_ns = *inner_ns = 0;
	for (u64 now_ns = 0; now_ns < until_ns; now_ns++) {
		u32 index;

		for (u32 each = outer; each <= inner; each++) {
			if (r && random_chance(r, 20))
				an_contract_sleep(&set, each, now_ns);
			if (!r || random_chance(r, 30))
				an_contract_wake(&set, each, now_ns);
		}
		index = pick_contract(0, now_ns, &rule);
		if (!index)
			continue;
		an_contract_charge(&set, index, 1, now_ns + 1);
		*(index == inner ? inner_ns : outer_ns) += 1;
		if (index == inner)
			inner_ran(1, now_ns + 1);
	}
}

TEST(nested_contracts_have_no_more_together_than_the_one_around)
{
	u64 outer_ns, inner_ns;

	nested_begin(AN_HARD);
	run_both(NULL, 1000 * T, &outer_ns, &inner_ns);
	CHECK_EQ(inner_ns, 2000);
	CHECK(outer_ns + inner_ns <= 1000 * C + C);
	CHECK(outer_ns + inner_ns >= 1000 * C - C);
}

TEST(nested_contracts_that_come_and_go_have_no_more_than_the_one_around)
{
	struct random r = {test_seed()};

	for (u32 round = 0; round < 200; round++) {
		u64 outer_ns, inner_ns;

		nested_begin(round % 2 ? AN_HARD : AN_HARD | AN_RECLAIM);
		run_both(&r, 20 * T, &outer_ns, &inner_ns);
		/* The last budget of each may be used at once. */
		CHECK(outer_ns + inner_ns <= 20 * C + 2 * C);
	}
}
