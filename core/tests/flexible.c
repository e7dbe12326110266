// SPDX-License-Identifier: GPL-2.0
/*
 * The flexible CBS: what each of its three flags gives, and the cases for which its rules are as
 * they are. That isolation stays whole under all of them is isolation.c's.
 */
#include "machine.h"
#include "random.h"

#define SETS 3000

/* A server on CPU 0 as a task of the machine; returns the task. */
static u32 server(u64 budget_ns, u64 period_ns, u32 flags)
{
	return machine_task(create_server(budget_ns, period_ns, flags));
}

static struct an_contract *of(u32 task)
{
	return contract(machine.task[task].index);
}

struct lateness {
	u64 plain_ns, flexible_ns; /* of all jobs of all sets */
	u32 sets_worse, sets_better;
};

/*
 * One server whose jobs need its budget on average, and often more, beside two that keep to theirs;
 * returns how late its jobs are in sum.
 */
static u64 lateness_of_set(u64 seed, u32 flags)
{
	struct random r = {seed};
	u64 late_ns = 0;
	u32 task;

	machine_begin(1, 0);
	task = server(3, 10, flags);
	for (u64 at = 0; at < 300; at += 10) {
		u64 release_ns = at + random_below(&r, 3), demand_ns = 1 + random_below(&r, 6);

		machine_job(task, release_ns, demand_ns);
	}
	for (u32 i = 0; i < 2; i++) {
		u64 period_ns = 5 + random_below(&r, 20), budget_ns = period_ns / 3;
		u32 other = server(budget_ns, period_ns, flags & AN_RECLAIM);

		for (u64 at = random_below(&r, period_ns); at < 300; at += period_ns)
			machine_job(other, at, 1 + random_below(&r, budget_ns));
	}
	machine_run(600);
	for (u32 job = 0; job < machine.task[task].jobs; job++)
		late_ns += machine_lateness_ns(task, job);
	for (task = 1; task < 3; task++)
		CHECK_EQ(of(task)->misses, 0);
	return late_ns;
}

static struct lateness compare_lateness(u32 flags)
{
	struct lateness sum = {0};

	for (u64 seed = test_seed(); seed < test_seed() + SETS; seed++) {
		u64 plain_ns, flexible_ns;

		test_scenario(seed);
		plain_ns = lateness_of_set(seed, 0);
		flexible_ns = lateness_of_set(seed, flags);
		sum.plain_ns += plain_ns;
		sum.flexible_ns += flexible_ns;
		sum.sets_worse += flexible_ns > plain_ns;
		sum.sets_better += flexible_ns < plain_ns;
	}
	return sum;
}

/* With slack on the CPU, an overrunning server is less late than under a plain CBS. */
TEST(flexible_is_less_late)
{
	static const struct {
		const char *name;
		u32 flags;
	} kinds[] = {
		{"reclaim", AN_RECLAIM},
		{"borrow", AN_BORROW},
		{"catch-up", AN_CATCH_UP},
		{"all", AN_RECLAIM | AN_BORROW | AN_CATCH_UP},
	};

	for (u32 i = 0; i < 4; i++) {
		struct lateness l = compare_lateness(kinds[i].flags);

		CHECK(l.flexible_ns < l.plain_ns);
		CHECK(l.sets_worse * 20 < l.sets_better);
		test_remark("%s: %u %% of a plain CBS's lateness (more in %u of %u sets)",
			    kinds[i].name, (u32)(l.flexible_ns * 100 / l.plain_ns), l.sets_worse,
			    SETS);
	}
}

/* A leaves 3 of its 4; B, which needs 3 more than it has, runs on them and is not postponed. */
TEST(reclaim_runs_on_residuals)
{
	u32 a, b;

	machine_begin(1, 0);
	machine.checks = true;
	a = server(4, 10, AN_RECLAIM);
	b = server(2, 10, AN_RECLAIM);
	machine_job(a, 0, 1);
	machine_job(b, 0, 5);
	machine_run(1);
	CHECK_EQ(set.cpus[0].residuals, 1);
	CHECK_EQ(an_contract_run_ns(&set, 2, 1), 3 + 2);
	machine_run(10);
	CHECK_EQ(machine.task[b].end_ns[0], 6);
	CHECK_EQ(of(b)->reclaimed_ns, 3);
	CHECK_EQ(of(b)->exhaustions, 1); /* exactly used up, at the end */
	CHECK_EQ(of(a)->left_ns, 0);

	machine_begin(1, 0);
	a = server(4, 10, 0);
	b = server(2, 10, AN_RECLAIM);
	machine_job(a, 0, 1);
	machine_job(b, 0, 5);
	machine_run(10);
	CHECK_EQ(of(b)->reclaimed_ns, 0); /* nobody left anything */
	CHECK_EQ(of(b)->exhaustions, 2);
}

/* A residual is for those whose deadlines are no earlier than its own. */
TEST(reclaim_keeps_the_deadline)
{
	u32 a, b;

	machine_begin(1, 0);
	a = server(4, 20, AN_RECLAIM);
	b = server(2, 10, AN_RECLAIM | AN_HARD);
	machine_job(a, 0, 1);
	machine_job(b, 1, 4);
	machine_run(13);
	CHECK_EQ(of(b)->reclaimed_ns, 0);
	CHECK_EQ(of(b)->replenishments, 1);
}

/*
 * What fcbs.h tells of draining: while L runs, and while the CPU is idle, the residual of A goes.
 * Had E all of it at 90, K would be late.
 */
TEST(reclaim_drains)
{
	u32 a, l, e, k;

	machine_begin(1, 0);
	machine.checks = true;
	a = server(10, 100, AN_RECLAIM);
	l = server(100, 1000, 0);
	e = server(1, 10, AN_RECLAIM);
	k = server(7, 10, 0);
	machine_job(a, 0, 1);
	machine_job(l, 0, 90);
	machine_job(e, 90, 11);
	machine_job(k, 90, 7);
	machine_run(120);
	CHECK_EQ(of(k)->misses, 0);
	CHECK_EQ(of(e)->reclaimed_ns, 0);
	CHECK_EQ(of(l)->service_ns, 90);

	machine_begin(1, 0);
	a = server(10, 100, AN_RECLAIM);
	e = server(1, 10, AN_RECLAIM);
	machine_job(a, 0, 1);
	machine_job(e, 95, 5);
	machine_run(94);
	CHECK_EQ(set.cpus[0].residuals, 1); /* not looked at since */
	machine_run(120);
	CHECK_EQ(of(e)->reclaimed_ns, 0);
}

/* A server that wakes early has what is left of its residual; if nothing is, its next budget. */
TEST(reclaim_takes_back)
{
	u32 a, b;

	machine_begin(1, 0);
	machine.checks = true;
	a = server(6, 20, AN_RECLAIM);
	b = server(2, 20, AN_RECLAIM);
	machine_job(a, 0, 1);
	machine_job(a, 4, 1);
	machine_job(b, 1, 3);
	machine_run(4);
	CHECK_EQ(set.cpus[0].residual[0].left_ns, 2);
	machine_run(5);
	CHECK_EQ(of(a)->deadline_ns, 20);
	CHECK_EQ(set.cpus[0].residual[0].left_ns, 1); /* 6 - 1 - 3 - 1 */

	machine_begin(1, 0);
	a = server(6, 20, AN_RECLAIM);
	b = server(2, 20, AN_RECLAIM);
	machine_job(a, 0, 1);
	machine_job(a, 6, 1);
	machine_job(b, 1, 9);
	machine_run(6);
	CHECK_EQ(set.cpus[0].residuals, 0);
	machine_run(7);
	CHECK_EQ(of(a)->deadline_ns, 40);
}

/* The list is bounded: when it is full, those due first stay. */
TEST(reclaim_list_is_bounded)
{
	struct an_contract_cpu *q = &set.cpus[0];

	an_contracts_init(&set, 0);
	for (u64 i = 1; i <= AN_MAX_RESIDUALS; i++) {
		struct an_contract c = {.left_ns = i, .deadline_ns = 1000 * i};

		an_residual_leave(q, &c, i, 0);
		CHECK_EQ(c.left_ns, 0);
	}
	for (u64 i = 0; i < 2; i++) {
		struct an_contract c = {.left_ns = 99, .deadline_ns = i ? 99999 : 1500};

		an_residual_leave(q, &c, 99, 0);
		CHECK_EQ(c.left_ns, i ? 99 : 0);
		CHECK_EQ(q->residuals, AN_MAX_RESIDUALS);
		CHECK_EQ(q->residual[1].deadline_ns, 1500);
		CHECK_EQ(q->residual[15].deadline_ns, 15000);
	}
	CHECK_EQ(an_residual_for(q, 2000), 1 + 99 + 2);
	CHECK_EQ(an_residual_use(q, 2000, 0, 1000), 1 + 99 + 2);
	CHECK_EQ(q->residuals, AN_MAX_RESIDUALS - 3);
	CHECK_EQ(an_residual_use(q, AN_NEVER, 2999, 10), 1 + 4 + 5); /* 3 ns, but due in 1 */
	CHECK_EQ(q->residual[0].deadline_ns, 6000);
}

/* An exhausted hard server has the idle time, for nothing, and is throttled when others come. */
TEST(borrow_hard)
{
	u32 a, b, rule;

	machine_begin(1, 0);
	machine.checks = true;
	a = server(2, 10, AN_HARD | AN_BORROW);
	b = server(3, 10, 0);
	machine_job(a, 0, 9);
	machine_job(b, 4, 3);
	machine_run(3);
	CHECK_EQ(an_contracts_pick(&set, 0, 3, false, &rule), AN_NONE);
	CHECK_EQ(an_contracts_pick(&set, 0, 3, true, &rule), 1);
	CHECK_EQ(rule, AN_RULE_BORROWED);
	machine_run(20);
	CHECK_EQ(machine.task[b].end_ns[0], 7);
	CHECK_EQ(of(a)->borrowed_ns, 5); /* 2 to 4, 7 to 10 */
	CHECK_EQ(machine.task[a].end_ns[0], 12);
	CHECK_EQ(of(a)->replenishments, 1);

	machine_begin(1, 0);
	a = server(2, 10, AN_HARD);
	machine_job(a, 0, 5);
	machine_run(30);
	CHECK_EQ(machine.task[a].end_ns[0], 21); /* throttled, though nobody else is there */
	CHECK_EQ(machine.share_ns, 30 - 5);
}

/* A soft server alone goes on at its deadline instead of piling up debts. */
TEST(borrow_soft)
{
	u64 deadline_ns[2];

	for (u32 borrow = 0; borrow < 2; borrow++) {
		u32 a;

		machine_begin(1, 0);
		machine.checks = true;
		a = server(2, 10, borrow ? AN_BORROW : 0);
		machine_job(a, 0, 20);
		machine_run(20);
		deadline_ns[borrow] = of(a)->deadline_ns;
	}
	CHECK_EQ(deadline_ns[0], 110);
	CHECK_EQ(deadline_ns[1], 30);
}

/* The next job after an overrun: late under a plain CBS, forgiven once the CPU was idle. */
TEST(catch_up)
{
	for (u32 flags = 0; flags <= AN_CATCH_UP; flags += AN_CATCH_UP) {
		u32 a, b;

		machine_begin(1, 0);
		machine.checks = true;
		a = server(2, 10, flags);
		b = server(5, 16, 0);
		machine_job(a, 0, 8);
		machine_job(a, 20, 2);
		machine_job(b, 19, 5);
		machine_run(20);
		CHECK_EQ(of(a)->deadline_ns, 50);
		machine_run(40);
		CHECK_EQ(machine.task[a].end_ns[1], flags ? 22 : 26);
		CHECK_EQ(machine.task[b].end_ns[0], flags ? 26 : 24);
	}
}

/* While others have not had theirs, a debt stands. */
TEST(catch_up_not_before_idle)
{
	u32 a, b;

	machine_begin(1, 0);
	a = server(2, 10, AN_CATCH_UP);
	b = server(60, 100, 0);
	machine_job(a, 0, 8);
	machine_job(b, 1, 40);
	machine_job(a, 20, 2);
	machine_run(21);
	CHECK_EQ(of(a)->deadline_ns, 50);
}

/*
 * Idle is not enough while a residual is left: it is time that is promised still. S, forgiven at
 * 64, and X, which runs on A's residual of 19, would together make K late.
 */
TEST(catch_up_not_with_residuals)
{
	u32 a, s, x, k;

	machine_begin(1, 0);
	machine.checks = true;
	a = server(20, 100, AN_RECLAIM);
	s = server(7, 10, AN_CATCH_UP);
	x = server(1, 37, AN_RECLAIM);
	k = server(2, 37, 0);
	machine_job(a, 0, 1);
	machine_job(s, 1, 63);
	machine_job(s, 64, 7);
	machine_job(s, 74, 7);
	machine_job(s, 84, 7);
	machine_job(x, 64, 30);
	machine_job(k, 64, 2);
	machine_run(64);
	CHECK_EQ(set.cpus[0].residuals, 1);
	CHECK_EQ(of(s)->deadline_ns, 101);
	machine_run(200);
	CHECK_EQ(of(k)->misses, 0);
}

/*
 * What a server has left over is used by others after an idle instant, though it was left at that
 * very instant: no reason to give it a new budget at an earlier deadline.
 */
TEST(catch_up_not_of_what_it_left)
{
	an_contracts_init(&set, 0);
	create_server(5, 10, AN_RECLAIM | AN_CATCH_UP);
	create_server(2, 30, AN_RECLAIM);
	an_contract_wake(&set, 1, 0);
	an_contract_sleep(&set, 1, 0);
	an_contract_wake(&set, 2, 0);
	an_contract_charge(&set, 2, 5, 5);
	CHECK_EQ(contract(2)->reclaimed_ns, 5);
	an_contract_sleep(&set, 2, 5);
	an_residual_take_back(&set.cpus[0], contract(2), 2);
	an_contracts_note_idle(&set, 0, 5);
	CHECK_EQ(set.cpus[0].idle_ns, 5);
	CHECK_EQ(an_contract_wake(&set, 1, 5), AN_RULE_POSTPONED);
	an_contract_sleep(&set, 1, 5);
	CHECK_EQ(set.cpus[0].residual[0].deadline_ns, 20);
	an_contract_wake(&set, 2, 5);
	an_contract_charge(&set, 2, 3, 8);
	CHECK_EQ(an_contract_wake(&set, 1, 8), AN_RULE_KEPT);
	CHECK_EQ(contract(1)->left_ns, 2);
	CHECK_EQ(contract(1)->deadline_ns, 20);
}
