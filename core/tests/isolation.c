// SPDX-License-Identifier: GPL-2.0
/*
 * The promise of every contract: whatever others on its CPU do, one that keeps to its budget and
 * its period is never late. Random sets that fill the CPU to 100 % at most, soft and hard servers,
 * flexible ones, windows, and overruns wherever somebody does not keep to it.
 */
#include "machine.h"
#include "random.h"

#define SETS 10000
#define WHOLE 120 /* multiple of every period */
#define HORIZON_NS (2 * WHOLE)

static bool honest[MACHINE_TASKS];
static bool constrained;   /* D < T, and the densities C/D add up to 1 at most */
static s32 waiting_kernel; /* what is left to the kernel then: here there is none */
static u32 waiting_bound;  /* beside learnt contracts, with that as the bound [1/1024]; 0: alone */

/* Budgets and periods that add up to WHOLE/WHOLE at most, mostly to exactly that. */
static u32 random_promises(struct random *r, struct an_promise *promises)
{
	static const u64 periods[] = {4, 5, 6, 8, 10, 12, 15, 20, 24, 30};
	u64 left = WHOLE;
	u32 count = 0;

	while (left && count < 6) {
		u64 period_ns = periods[random_below(r, 10)];
		u64 most = left * period_ns / WHOLE;

		if (!most) {
			if (random_chance(r, 30))
				break;
			continue;
		}
		promises[count] = (struct an_promise){0};
		promises[count].period_ns = period_ns;
		promises[count].budget_ns =
			random_chance(r, 30) ? most : 1 + random_below(r, (most + 1) / 2);
		left -= promises[count++].budget_ns * WHOLE / period_ns;
	}
	return count;
}

/* Jobs of at most C, at least T apart. */
static void honest_jobs(struct random *r, u32 task, const struct an_promise *p)
{
	u64 release_ns = random_below(r, 2 * p->period_ns);

	while (release_ns < HORIZON_NS && machine.task[task].jobs < MACHINE_JOBS) {
		u64 slack_ns = random_chance(r, 60) ? 0 : random_below(r, p->period_ns);
		u64 demand_ns =
			random_chance(r, 50) ? p->budget_ns : 1 + random_below(r, p->budget_ns);

		machine_job(task, release_ns, demand_ns);
		release_ns += p->period_ns + slack_ns;
	}
}

/* Any jobs, at any time. */
static void wild_jobs(struct random *r, u32 task, const struct an_promise *p)
{
	u64 release_ns = random_below(r, p->period_ns);

	while (release_ns < HORIZON_NS && machine.task[task].jobs < MACHINE_JOBS) {
		machine_job(task, release_ns, 1 + random_below(r, 3 * p->budget_ns));
		release_ns += 1 + random_below(r, 2 * p->period_ns);
	}
}

/* Tasks whose contracts were learnt, and that have something to do most of the time. */
static void learnt_tasks(struct random *r)
{
	for (u32 i = 0; i < 3; i++) {
		struct an_promise p = {2, WHOLE, 1 + random_below(r, 12), 0, 0, 0, 0};
		u32 task;

		p.flags = AN_LEARNT | AN_HARD;
		task = machine_task(an_contract_create(&set, &p));
		honest[task] = false;
		wild_jobs(r, task, &(struct an_promise){3, 8, 0, 0, 0, 0, 0});
	}
}

/* A set of servers; those not honest have some of these flags, and honest ones too. */
static void random_set(struct random *r, u32 flags)
{
	struct an_promise promises[MACHINE_TASKS];
	u32 count = random_promises(r, promises);

	machine_begin(1, 0);
	machine.checks = random_chance(r, 5);
	set.bound = set.learn_bound = waiting_bound;
	set.kernel = waiting_kernel;
	for (u32 i = 0; i < count; i++) {
		struct an_promise *p = &promises[i];
		u32 task;

		p->flags = random_next(r) & flags;
		if (p->flags & AN_SPILLS)
			p->flags |= AN_HARD;
		if (constrained) {
			p->deadline_rel_ns = p->period_ns;
			p->period_ns += random_below(r, 8);
		}
		task = machine_task(an_contract_create(&set, p));
		honest[task] = random_chance(r, 50);
		if (honest[task])
			honest_jobs(r, task, p);
		else
			wild_jobs(r, task, p);
	}
	if (waiting_bound)
		learnt_tasks(r);
}

static u32 honest_jobs_late(void)
{
	u32 late = 0;

	for (u32 task = 0; task < machine.tasks; task++)
		for (u32 job = 0; honest[task] && job < machine.task[task].jobs; job++)
			late += machine_lateness_ns(task, job) > 0;
	return late;
}

static void check_isolation(u32 flags, bool tight)
{
	u32 full = 0;

	constrained = tight;
	for (u64 seed = test_seed(); seed < test_seed() + SETS; seed++) {
		struct random r = {seed};

		test_scenario(seed);
		random_set(&r, flags);
		full += set.cpus[0].utilization >= AN_UTILIZATION_ONE / 100 * 99;
		machine_run(HORIZON_NS + WHOLE);
		CHECK_EQ(honest_jobs_late(), 0);
		for (u32 task = 0; task < machine.tasks; task++)
			CHECK(!honest[task] || !contract(machine.task[task].index)->misses);
	}
	CHECK(constrained || full > SETS / 2); /* or it would be no test */
}

TEST(isolation_soft)
{
	check_isolation(0, false);
}

TEST(isolation_soft_and_hard)
{
	check_isolation(AN_HARD, false);
}

TEST(isolation_reclaim)
{
	check_isolation(AN_RECLAIM, false);
}

TEST(isolation_borrow)
{
	check_isolation(AN_BORROW | AN_HARD, false);
}

TEST(isolation_soft_borrow)
{
	check_isolation(AN_BORROW, false);
}

TEST(isolation_catch_up)
{
	check_isolation(AN_CATCH_UP, false);
}

TEST(isolation_flexible)
{
	check_isolation(AN_HARD | AN_RECLAIM | AN_BORROW | AN_CATCH_UP, false);
}

TEST(isolation_constrained)
{
	check_isolation(AN_HARD | AN_RECLAIM | AN_BORROW | AN_CATCH_UP, true);
}

/* Nor does it harm to wait for learnt ones that are due earlier. */
TEST(isolation_waiting)
{
	waiting_bound = 2048; /* so that they never run out of it */
	check_isolation(0, false);
	check_isolation(AN_HARD | AN_SPILLS, false);
	check_isolation(AN_HARD, true);
	waiting_bound = 0;
}

/* A test of that one: who waits for longer than it says is late. */
TEST(isolation_waiting_needs_its_end)
{
	u32 late = 0;

	waiting_bound = 2048;
	waiting_kernel = -512; /* urgent half a CPU's part of the period too late */
	constrained = false;
	for (u64 seed = test_seed(); seed < test_seed() + SETS / 20; seed++) {
		struct random r = {seed};

		random_set(&r, 0);
		machine_run(HORIZON_NS + WHOLE);
		late += honest_jobs_late() > 0;
	}
	waiting_bound = 0;
	waiting_kernel = 0;
	CHECK(late > SETS / 100);
}

/* A test of the tests above: with budgets that are not enforced they would not pass. */
TEST(isolation_needs_budgets)
{
	u32 late = 0;

	constrained = false;
	for (u64 seed = test_seed(); seed < test_seed() + SETS / 20; seed++) {
		struct random r = {seed};

		random_set(&r, AN_EXHAUSTIVE);
		machine_run(HORIZON_NS + WHOLE);
		late += honest_jobs_late() > 0;
	}
	CHECK(late > SETS / 20 / 10);
	test_remark("isolation: without budgets %u of %u sets are late", late, SETS / 20);
}
