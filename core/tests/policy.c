// SPDX-License-Identifier: GPL-2.0
/* Policies through the calls that all of them share (policy.h): sfq, fifo, rr and fair. */
#include "one_cpu.h"

static struct one_cpu cpu;

static struct an_member weighing(u32 weight)
{
	return (struct an_member){.weight = weight};
}

/* Endless jobs of weights 1, 2, 5 stay within a quantum of their shares, at every moment. */
TEST(sfq_shares_by_weight)
{
	static const u64 weight[3] = {512, 1024, 2560};

	cpu_begin(&cpu, AN_SFQ, 4 * MS);
	for (u32 i = 0; i < 3; i++)
		cpu_add(&cpu, weighing(weight[i]), 0, 0);
	for (u64 until_ns = 100 * MS; until_ns <= 10 * SECOND; until_ns += 100 * MS) {
		cpu_run(&cpu, until_ns);
		for (u32 i = 0; i < 3; i++) {
			s64 off_ns = cpu.jobs[i].got_ns - until_ns * weight[i] / 4096;

			CHECK(off_ns <= (s64)(8 * MS) && -off_ns <= (s64)(8 * MS));
		}
	}
}

/* One that sleeps most of the time takes the CPU when it wakes, and only what it needs. */
TEST(sfq_lets_a_sleeper_in_at_once)
{
	u32 sleeper;

	cpu_begin(&cpu, AN_SFQ, 4 * MS);
	cpu_add(&cpu, weighing(1024), 0, 0);
	sleeper = cpu_add(&cpu, weighing(1024), 1 * MS, 20 * MS + 1);
	cpu_run(&cpu, 10 * SECOND);
	CHECK(cpu.jobs[sleeper].runs >= 470);
	CHECK(cpu.jobs[sleeper].longest_wait_ns <= 4 * MS);
}

/* The second waits until the first blocks, whatever wakes meanwhile. */
TEST(fifo_serves_to_the_end)
{
	u32 first, second;

	cpu_begin(&cpu, AN_FIFO, 0);
	first = cpu_add(&cpu, weighing(0), 700 * MS, 100 * MS);
	second = cpu_add(&cpu, weighing(0), 300 * MS, 100 * MS);
	CHECK_EQ(an_policy_quantum_ns(&cpu.policy, &cpu.jobs[first].member), AN_ENDLESS_NS);
	cpu_run(&cpu, 700 * MS);
	CHECK_EQ(cpu.jobs[first].got_ns, 700 * MS);
	CHECK_EQ(cpu.jobs[second].got_ns, 0);
	cpu_run(&cpu, 1000 * MS);
	CHECK_EQ(cpu.jobs[second].got_ns, 300 * MS);
	CHECK_EQ(cpu.jobs[first].got_ns, 700 * MS);
}

/* Told to give way, it comes back before those that arrived after it. */
TEST(fifo_keeps_its_place_when_preempted)
{
	struct an_member first = {.key = 0}, second = {.key = 0};
	struct an_policy policy;

	an_policy_init(&policy, AN_FIFO, 0);
	an_policy_join(&policy, &first);
	an_policy_join(&policy, &second);
	an_policy_wake(&policy, &first);
	an_policy_serve(&policy, &first);
	an_policy_wake(&policy, &second);
	CHECK(!an_policy_preempts(&policy, &second, &first));
	an_policy_requeue(&policy, &first, AN_PREEMPTED);
	CHECK(first.key < second.key);
	an_policy_requeue(&policy, &first, AN_USED_UP); /* a shell's own limit is no quantum */
	CHECK(first.key < second.key);
}

/* A quantum each, in turn; three fit their 100 ms into every 300. */
TEST(rr_takes_turns)
{
	cpu_begin(&cpu, AN_RR, 0);
	for (u32 i = 0; i < 3; i++)
		cpu_add(&cpu, weighing(0), 0, 0);
	for (u32 turn = 1; turn <= 30; turn++) {
		cpu_run(&cpu, turn * AN_RR_QUANTUM_NS);
		for (u32 i = 0; i < 3; i++)
			CHECK_EQ(cpu.jobs[i].got_ns, (turn + 2 - i) / 3 * AN_RR_QUANTUM_NS);
	}
}

/* Preempted in its quantum it goes first, with the rest of it; used up, last, with a new one. */
TEST(rr_keeps_the_rest_of_a_quantum)
{
	struct an_member one = {.key = 0}, other = {.key = 0};
	struct an_policy policy;

	an_policy_init(&policy, AN_RR, 50 * MS);
	an_policy_join(&policy, &one);
	an_policy_join(&policy, &other);
	an_policy_wake(&policy, &one);
	an_policy_wake(&policy, &other);
	CHECK(one.key < other.key);
	an_policy_serve(&policy, &one);
	an_policy_used(&policy, &one, 20 * MS);
	an_policy_requeue(&policy, &one, AN_PREEMPTED);
	CHECK(one.key < other.key);
	CHECK_EQ(an_policy_quantum_ns(&policy, &one), 30 * MS);
	an_policy_used(&policy, &one, 30 * MS);
	an_policy_requeue(&policy, &one, AN_USED_UP);
	CHECK(one.key > other.key);
	CHECK_EQ(an_policy_quantum_ns(&policy, &one), 50 * MS);
}

/* The model of the stock scheduler: shares by weight, a slice at a time. */
TEST(fair_shares_by_weight)
{
	u32 heavy, light;

	cpu_begin(&cpu, AN_FAIR, 0);
	heavy = cpu_add(&cpu, weighing(1024), 0, 0);
	light = cpu_add(&cpu, weighing(335), 0, 0);
	cpu_run(&cpu, 10 * SECOND);
	CHECK_EQ(cpu.jobs[heavy].got_ns + cpu.jobs[light].got_ns, 10 * SECOND);
	CHECK(cpu.jobs[heavy].got_ns / MS >= 7535 - 12 && cpu.jobs[heavy].got_ns / MS <= 7535 + 12);
}

/* Run to parity: the one in service keeps the CPU until its slice is over. */
TEST(fair_runs_to_parity)
{
	struct an_member serving = {.weight = 1024}, woken = {.weight = 4096};
	struct an_policy policy;

	an_policy_init(&policy, AN_FAIR, 0);
	an_policy_join(&policy, &serving);
	an_policy_join(&policy, &woken);
	an_policy_wake(&policy, &serving);
	an_policy_serve(&policy, &serving);
	an_policy_used(&policy, &serving, AN_FAIR_SLICE_NS / 2);
	an_policy_wake(&policy, &woken);
	CHECK(woken.key < serving.fair.deadline);
	CHECK(!an_policy_preempts(&policy, &woken, &serving));
	an_policy_used(&policy, &serving, AN_FAIR_SLICE_NS / 2);
	CHECK(an_policy_preempts(&policy, &woken, &serving));
}

/* Policies without a clock have neither ticks nor ageing. */
TEST(only_historical_policies_have_ticks)
{
	static const u32 with_ticks[] = {AN_SVR4, AN_SVR4_NEW, AN_LINUX22};
	struct an_policy policy;

	for (u32 kind = AN_SFQ; kind <= AN_FAIR; kind++) {
		struct an_member member = {.weight = 1024};

		an_policy_init(&policy, kind, 0);
		an_policy_join(&policy, &member);
		CHECK_EQ(an_policy_tick_ns(&policy), 0);
		CHECK_EQ(an_policy_age_ns(&policy), 0);
		CHECK(!an_policy_tick(&policy, &member));
		CHECK(!an_policy_age(&policy, &member, true));
	}
	for (u32 i = 0; i < 3; i++) {
		struct an_member member = {.weight = 1024};

		an_policy_init(&policy, with_ticks[i], 0);
		an_policy_join(&policy, &member);
		CHECK_EQ(an_policy_tick_ns(&policy), 10 * MS);
		CHECK_EQ(an_policy_quantum_ns(&policy, &member), AN_ENDLESS_NS);
	}
}
