// SPDX-License-Identifier: GPL-2.0
/* The constant bandwidth server: its golden schedule, soft and hard, and its wake-up rules. */
#include "machine.h"

static void check_segments(const struct machine_segment *golden, u32 count)
{
	for (u32 i = 0; i < count; i++) {
		const struct machine_segment *s = &machine.segment[i];

		CHECK(i < machine.segments);
		if (s->from_ns != golden[i].from_ns || s->to_ns != golden[i].to_ns ||
		    s->task != golden[i].task || s->cpu != golden[i].cpu)
			test_fail(__FILE__, __LINE__, "segment %u: task %u on CPU %u, %llu to %llu",
				  i, s->task, s->cpu, (unsigned long long)s->from_ns,
				  (unsigned long long)s->to_ns);
	}
	CHECK_EQ(machine.segments, count);
}

/*
 * Hard task C 4, T 7; server 3 every 8, whose jobs arrive at 3 (needing 4) and 13 (needing 3).
 * By hand, with the rules of [1]: a exhausts the budget at 7, b comes when c = 2 < (19 - 13) 3/8.
 */
TEST(cbs_golden)
{
	static const struct machine_segment golden[] = {
		{0, 4, 0, 0},	{4, 7, 0, 1},	{7, 11, 0, 0},	{11, 12, 0, 1},
		{13, 15, 0, 1}, {15, 19, 0, 0}, {19, 20, 0, 1}, {21, 25, 0, 0},
	};
	u32 task, server;

	machine_begin(1, 0);
	machine.checks = true;
	task = machine_task(create_server(4, 7, AN_EXHAUSTIVE));
	server = machine_task(create_server(3, 8, 0));
	for (u64 release = 0; release < 28; release += 7)
		machine_job(task, release, 4);
	machine_job(server, 3, 4);
	machine_job(server, 13, 3);
	machine_run(7);
	CHECK_EQ(contract(2)->deadline_ns, 19);
	machine_run(13);
	CHECK_EQ(contract(2)->left_ns, 2);
	CHECK_EQ(contract(2)->deadline_ns, 19);
	machine_run(15);
	CHECK_EQ(contract(2)->deadline_ns, 27);
	CHECK_EQ(contract(2)->left_ns, 3);
	machine_run(27);
	check_segments(golden, 8);
	CHECK_EQ(contract(1)->misses, 0);
	CHECK_EQ(contract(2)->exhaustions, 2);
}

/* One server alone in the set. */
static struct an_contract *lone_server(u64 budget_ns, u64 period_ns, u64 deadline_ns, u32 flags)
{
	struct an_promise promise = {budget_ns, period_ns, deadline_ns, 0, 0, flags, 0};

	an_contracts_init(&set, 0);
	CHECK_EQ(an_contract_create(&set, &promise), 1);
	return contract(1);
}

static u64 expire(u64 now_ns)
{
	u64 kick = 0, due_ns = an_contracts_expire(&set, 0, now_ns, &kick);

	check_contracts(1);
	return due_ns;
}

/* A job of 2 in the budget of 4 at 0; then the server sleeps. */
static void use_half(void)
{
	CHECK_EQ(an_contract_wake(&set, 1, 0), AN_RULE_RELEASED);
	CHECK_EQ(an_contract_charge(&set, 1, 2, 2), AN_RULE_NONE);
	an_contract_sleep(&set, 1, 2);
	CHECK_EQ(contract(1)->left_ns, 2);
	CHECK_EQ(contract(1)->deadline_ns, 10);
}

/* Rule 4 at r: c = 2 against (10 - r) 4/10, which is 2 at r = 5. */
TEST(cbs_rule_4)
{
	static const struct {
		u64 now_ns;
		u32 flags;
		enum an_rule rule;
		u64 deadline_ns;
		s64 left_ns;
	} known[] = {
		{4, 0, AN_RULE_KEPT, 10, 2},	       {5, 0, AN_RULE_RELEASED, 15, 4},
		{6, 0, AN_RULE_RELEASED, 16, 4},       {10, 0, AN_RULE_RELEASED, 20, 4},
		{4, AN_HARD, AN_RULE_KEPT, 10, 2},     {5, AN_HARD, AN_RULE_KEPT, 10, 2},
		{6, AN_HARD, AN_RULE_RELEASED, 16, 4}, {99, AN_HARD, AN_RULE_RELEASED, 109, 4},
	};

	for (u32 i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct an_contract *c = lone_server(4, 10, 0, known[i].flags);

		use_half();
		CHECK_EQ(an_contract_wake(&set, 1, known[i].now_ns), known[i].rule);
		CHECK_EQ(c->deadline_ns, known[i].deadline_ns);
		CHECK_EQ(c->left_ns, known[i].left_ns);
	}
}

/* Soft: one postponement for every budget used; a run beyond the end is paid by the next ones. */
TEST(cbs_soft_is_postponed)
{
	struct an_contract *c = lone_server(4, 10, 0, 0);

	an_contract_wake(&set, 1, 0);
	CHECK_EQ(an_contract_charge(&set, 1, 4, 4), AN_RULE_POSTPONED);
	CHECK_EQ(c->deadline_ns, 20);
	CHECK_EQ(c->left_ns, 4);
	CHECK_EQ(an_contract_charge(&set, 1, 9, 13), AN_RULE_POSTPONED);
	CHECK_EQ(c->deadline_ns, 40);
	CHECK_EQ(c->left_ns, 3);
	CHECK_EQ(an_contracts_due(&set, 0), AN_NEVER);
	CHECK_EQ(an_contract_charge(&set, 1, 3, 16), AN_RULE_POSTPONED);
	CHECK_EQ(c->exhaustions, 3);
	an_contract_sleep(&set, 1, 16);
	CHECK_EQ(c->misses, 1);
}

/* Hard: throttled until d, though the CPU is idle; a run beyond the end is paid by the next one. */
TEST(cbs_hard_is_throttled)
{
	struct an_contract *c = lone_server(4, 10, 0, AN_HARD);
	u32 rule;

	an_contract_wake(&set, 1, 0);
	CHECK_EQ(an_contract_run_ns(&set, 1, 0), 4);
	CHECK_EQ(an_contract_charge(&set, 1, 5, 5), AN_RULE_THROTTLED);
	CHECK_EQ(an_contracts_pick(&set, 0, 5, true, &rule), AN_NONE);
	CHECK_EQ(an_contract_preempts(&set, 1, AN_NONE), AN_RULE_NONE);
	CHECK_EQ(expire(9), 10);
	CHECK_EQ(expire(10), AN_NEVER);
	CHECK_EQ(c->left_ns, 3);
	CHECK_EQ(c->deadline_ns, 20);
	CHECK_EQ(an_contracts_pick(&set, 0, 10, false, &rule), 1);
	CHECK_EQ(c->replenishments, 1);
	/* Its timer comes late by more than a period: it starts anew. */
	CHECK_EQ(an_contract_charge(&set, 1, 3, 13), AN_RULE_THROTTLED);
	expire(45);
	CHECK_EQ(c->deadline_ns, 55);
	CHECK_EQ(c->left_ns, 4);
}

/* Hard, throttled: sleeping and waking do not bring the next budget nearer. */
TEST(cbs_hard_wakes_throttled)
{
	struct an_contract *c = lone_server(4, 10, 0, AN_HARD);

	an_contract_wake(&set, 1, 0);
	an_contract_charge(&set, 1, 4, 4);
	an_contract_sleep(&set, 1, 4);
	CHECK_EQ(an_contracts_due(&set, 0), AN_NEVER);
	CHECK_EQ(an_contract_wake(&set, 1, 6), AN_RULE_WAITS);
	CHECK_EQ(an_contracts_due(&set, 0), 10);
	an_contract_sleep(&set, 1, 7);
	CHECK_EQ(an_contract_wake(&set, 1, 12), AN_RULE_RELEASED);
	CHECK_EQ(c->deadline_ns, 22);
	CHECK_EQ(c->left_ns, 4);
}

/* D < T: 4 within 5, every 20. */
TEST(cbs_constrained_deadline)
{
	struct an_contract *c;

	/* Waking between d and the next release: soft runs early by that release's deadline. */
	c = lone_server(4, 20, 5, 0);
	an_contract_wake(&set, 1, 0);
	an_contract_charge(&set, 1, 1, 1);
	an_contract_sleep(&set, 1, 1);
	CHECK_EQ(an_contract_wake(&set, 1, 7), AN_RULE_RELEASED);
	CHECK_EQ(c->deadline_ns, 25);
	/* ... hard waits. */
	c = lone_server(4, 20, 5, AN_HARD);
	an_contract_wake(&set, 1, 0);
	an_contract_charge(&set, 1, 1, 1);
	an_contract_sleep(&set, 1, 1);
	CHECK_EQ(an_contract_wake(&set, 1, 7), AN_RULE_WAITS);
	CHECK_EQ(expire(19), 20);
	expire(20);
	CHECK_EQ(c->deadline_ns, 25);
	CHECK_EQ(c->left_ns, 4);
	/* Waking before d with more than the density allows: cut to 2 4/5. */
	c = lone_server(4, 20, 5, 0);
	an_contract_wake(&set, 1, 0);
	an_contract_charge(&set, 1, 1, 1);
	an_contract_sleep(&set, 1, 1);
	CHECK_EQ(an_contract_wake(&set, 1, 3), AN_RULE_REVISED);
	CHECK_EQ(c->left_ns, 1);
	CHECK_EQ(c->deadline_ns, 5);
	/* Exhausted: the next budget belongs to the release at 20. */
	c = lone_server(4, 20, 5, AN_HARD);
	an_contract_wake(&set, 1, 0);
	CHECK_EQ(an_contract_charge(&set, 1, 4, 4), AN_RULE_THROTTLED);
	CHECK_EQ(an_contracts_due(&set, 0), 20);
}

/* Plain EDF: the budget does nothing, every job has its own deadline. */
TEST(cbs_exhaustive)
{
	struct an_contract *c = lone_server(4, 10, 0, AN_EXHAUSTIVE);

	an_contract_wake(&set, 1, 0);
	CHECK_EQ(an_contract_run_ns(&set, 1, 0), AN_NEVER);
	CHECK_EQ(an_contract_charge(&set, 1, 4, 4), AN_RULE_OVERRAN);
	CHECK_EQ(an_contract_charge(&set, 1, 9, 13), AN_RULE_NONE);
	CHECK_EQ(c->deadline_ns, 10);
	CHECK_EQ(an_contract_next_job(&set, 1, 10, 13), AN_RULE_RELEASED);
	CHECK_EQ(c->deadline_ns, 20);
	CHECK_EQ(c->misses, 1);
	an_contract_sleep(&set, 1, 20);
	CHECK_EQ(c->misses, 1);
	CHECK_EQ(c->deadlines, 2);
	CHECK_EQ(c->exhaustions, 1);
}

/* A job that has run elsewhere is due when it would be, and has no more budget than it would have.
 */
TEST(cbs_job_was_elsewhere)
{
	struct an_contract *c = lone_server(4, 10, 0, AN_EXHAUSTIVE);

	CHECK_EQ(an_contract_wake_since(&set, 1, 2, 3, 5), AN_RULE_RELEASED);
	CHECK_EQ(c->deadline_ns, 12);
	CHECK_EQ(c->job_deadline_ns, 12);
	/* Of 4 in 10 what may be used in 5. */
	c = lone_server(4, 10, 0, AN_HARD);
	CHECK_EQ(an_contract_wake_since(&set, 1, 2, 3, 7), AN_RULE_REVISED);
	CHECK_EQ(c->deadline_ns, 12);
	CHECK_EQ(c->left_ns, 2);
	/* It has only waited for its CPU to hear of it. */
	c = lone_server(4, 10, 0, AN_HARD);
	CHECK_EQ(an_contract_wake_since(&set, 1, 2, 0, 7), AN_RULE_RELEASED);
	CHECK_EQ(c->deadline_ns, 12);
	CHECK_EQ(c->left_ns, 4);
	/* Another job of the contract has begun the budget since. */
	c = lone_server(4, 10, 0, 0);
	an_contract_wake(&set, 1, 5);
	an_contract_charge(&set, 1, 1, 6);
	an_contract_sleep(&set, 1, 6);
	CHECK_EQ(an_contract_wake_since(&set, 1, 3, 1, 8), AN_RULE_REVISED);
	CHECK_EQ(c->deadline_ns, 15);
	CHECK_EQ(c->left_ns, 2);
	/* When it is late already it begins anew. */
	c = lone_server(4, 10, 0, AN_HARD);
	CHECK_EQ(an_contract_wake_since(&set, 1, 2, 9, 13), AN_RULE_RELEASED);
	CHECK_EQ(c->deadline_ns, 23);
	CHECK_EQ(c->left_ns, 4);
}

/* Rule 5: the next job goes on with what there is. Its own deadline is its release + D. */
TEST(cbs_rule_5)
{
	struct an_contract *c = lone_server(4, 10, 0, 0);

	an_contract_wake(&set, 1, 0);
	CHECK_EQ(an_contract_wake(&set, 1, 1), AN_RULE_NONE); /* rule 3 */
	an_contract_charge(&set, 1, 3, 3);
	CHECK_EQ(an_contract_next_job(&set, 1, 1, 3), AN_RULE_KEPT);
	CHECK_EQ(c->left_ns, 1);
	CHECK_EQ(c->deadline_ns, 10);
	CHECK_EQ(c->job_deadline_ns, 11);
}

/* The longest period there is: no product overflows. */
TEST(cbs_longest_period)
{
	const u64 period_ns = AN_MAX_PERIOD_NS;
	struct an_contract *c = lone_server(period_ns - 1, period_ns, 0, 0);

	an_contract_wake(&set, 1, 5);
	an_contract_charge(&set, 1, 2, 7);
	an_contract_sleep(&set, 1, 7);
	CHECK_EQ(an_contract_wake(&set, 1, 7), AN_RULE_KEPT);
	CHECK_EQ(c->left_ns, period_ns - 3);
	an_contract_sleep(&set, 1, 7);
	CHECK_EQ(an_contract_wake(&set, 1, 8), AN_RULE_RELEASED);
	CHECK_EQ(c->deadline_ns, 8 + period_ns);
	CHECK_EQ(c->utilization, AN_UTILIZATION_ONE - 2);
}
