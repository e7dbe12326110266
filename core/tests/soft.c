// SPDX-License-Identifier: GPL-2.0
/* Soft servers on a CPU that others have a part of: they keep to the bound. */
#include "contract_fixture.h"

#define MS 1000000ULL
#define BOUND 820u
#define STEP (MS / 10)
#define ENDLESS 0

/* A server of a task that wakes in every period and runs for job_ns, or never sleeps. */
struct task {
	u32 contract;
	u64 job_ns, period_ns;
	u64 next_ns, left_ns;
	u64 late;
};

static u64 others_ns;

static struct task task(u64 budget_ns, u64 period_ns, u64 job_ns, u32 flags)
{
	struct task t = {.job_ns = job_ns, .period_ns = period_ns};

	t.contract = create_on(0, budget_ns, period_ns, 0, 0, flags);
	return t;
}

static void arrive(struct task *t, u64 now_ns)
{
	if (t->next_ns > now_ns)
		return;
	t->next_ns = t->job_ns ? t->next_ns + t->period_ns : AN_NEVER;
	if (t->left_ns && t->job_ns) {
		t->late++;
		return;
	}
	t->left_ns = t->job_ns ? t->job_ns : AN_NEVER;
	an_contract_wake(&set, t->contract, now_ns);
}

/* As a shell does it, every tenth of a millisecond; others_ns is what contracts leave. */
static void serve(struct task *tasks, u32 count, u64 until_ns)
{
	u32 rule;

	others_ns = 0;
	for (u64 now_ns = 0; now_ns < until_ns; now_ns += STEP) {
		u64 kick = 0;
		u32 index;

		for (u32 i = 0; i < count; i++)
			arrive(&tasks[i], now_ns);
		an_contracts_expire(&set, 0, now_ns, &kick);
		while (an_contracts_overdrawn(&set, 0, now_ns))
			;
		index = an_contracts_pick(&set, 0, now_ns, false, &rule);
		others_ns += index ? 0 : STEP;
		for (u32 i = 0; i < count && index; i++) {
			if (tasks[i].contract != index)
				continue;
			CHECK(an_contract_run_ns(&set, index, now_ns) > 0);
			an_contract_charge(&set, index, STEP, now_ns + STEP);
			tasks[i].left_ns -= STEP;
			if (!tasks[i].left_ns)
				an_contract_sleep(&set, index, now_ns + STEP);
		}
		check_contracts(count);
	}
}

static u64 per_mille(u64 ns, u64 of_ns)
{
	return ns * 1000 / of_ns;
}

static void begin(void)
{
	an_contracts_init(&set, 0);
	set.bound = BOUND;
}

/* An endless one beside a hard one that keeps to its budget: 20 % for that, 60 % for it. */
static void endless_beside_hard(u32 flags)
{
	const u64 until_ns = 20000 * MS;
	struct task tasks[2];
	u64 soft;

	begin();
	tasks[0] = task(3 * MS, 10 * MS, ENDLESS, flags);
	tasks[1] = task(4 * MS, 20 * MS, 4 * MS, AN_HARD);
	serve(tasks, 2, until_ns);
	soft = per_mille(contract(tasks[0].contract)->service_ns, until_ns);
	CHECK(soft >= 595 && soft <= 615);
	CHECK(per_mille(others_ns, until_ns) >= 190);
	CHECK_EQ(tasks[1].late, 0);
	CHECK_EQ(contract(tasks[1].contract)->misses, 0);
}

TEST(endless_soft_servers_leave_others_their_part)
{
	endless_beside_hard(0);
	endless_beside_hard(AN_RECLAIM);
	endless_beside_hard(AN_CATCH_UP);
	endless_beside_hard(AN_RECLAIM | AN_BORROW | AN_CATCH_UP);
}

/* What each was promised it has, however greedy the other is. */
TEST(endless_soft_servers_have_at_least_their_promises)
{
	const u64 until_ns = 20000 * MS;
	struct task tasks[2];

	begin();
	tasks[0] = task(3 * MS, 10 * MS, ENDLESS, 0);
	tasks[1] = task(10 * MS, 20 * MS, ENDLESS, 0);
	serve(tasks, 2, until_ns);
	CHECK(per_mille(contract(tasks[0].contract)->service_ns, until_ns) >= 299);
	CHECK(per_mille(contract(tasks[1].contract)->service_ns, until_ns) >= 499);
	CHECK(per_mille(others_ns, until_ns) >= 190);
}

/* What they are for: jobs that now and then take more than the budget. */
TEST(a_job_beyond_its_budget_goes_on_if_there_is_room)
{
	struct task tasks[1];

	begin();
	tasks[0] = task(4 * MS, 20 * MS, 12 * MS, 0);
	serve(tasks, 1, 2000 * MS);
	CHECK_EQ(tasks[0].late, 0);
	/* A hard one would have had 4 of the 12 by then. */
	begin();
	tasks[0] = task(4 * MS, 20 * MS, 12 * MS, AN_HARD);
	serve(tasks, 1, 2000 * MS);
	CHECK(tasks[0].late > 0);
}

/* One that is held back has its promise again when that is due, or when it wakes. */
TEST(one_held_back_has_its_promise_when_that_is_due)
{
	u32 key, rule;

	begin();
	key = create_on(0, 5 * MS, 10 * MS, 0, 0, 0);
	an_contract_wake(&set, key, 0);
	an_contract_charge(&set, key, 6 * MS, 6 * MS); /* has 4 more, due from 10 on */
	an_contract_cpu(&set, 0)->promised.left_ns = -20 * (s64)MS;
	an_contract_cpu(&set, 0)->promised.filled_ns = 6 * MS;
	CHECK_EQ(an_contracts_overdrawn(&set, 0, 6 * MS), key);
	CHECK_EQ(pick_contract(0, 6 * MS, &rule), AN_NONE);
	CHECK_EQ(an_contracts_due(&set, 0), 10 * MS);
	CHECK_EQ(pick_contract(0, 10 * MS, &rule), key);
	CHECK_EQ(an_contracts_overdrawn(&set, 0, 10 * MS), AN_NONE);
	CHECK_EQ(contract(key)->left_ns, 4 * (s64)MS);
	check_contracts(1);
}

/* However long there was nothing but hard ones, which nobody holds back. */
TEST(what_hard_ones_used_long_ago_is_not_held_against_soft_ones)
{
	u32 hard, soft;

	begin();
	hard = create_on(0, 5 * MS, 10 * MS, 0, 0, AN_HARD);
	an_contract_wake(&set, hard, 0);
	for (u64 now_ns = 0; now_ns < 100000 * MS; now_ns += 10 * MS) {
		u64 kick = 0;

		an_contracts_expire(&set, 0, now_ns, &kick);
		an_contract_charge(&set, hard, 5 * MS, now_ns + 5 * MS);
	}
	an_contract_sleep(&set, hard, 100000 * MS);
	soft = create_on(0, 2 * MS, 10 * MS, 0, 0, 0);
	an_contract_wake(&set, soft, 100000 * MS);
	an_contract_charge(&set, soft, 3 * MS, 100003 * MS);
	CHECK(an_server_is_ahead(contract(soft), 100003 * MS));
	CHECK_EQ(an_contracts_overdrawn(&set, 0, 100003 * MS), AN_NONE);
}
