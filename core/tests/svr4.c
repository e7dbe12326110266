// SPDX-License-Identifier: GPL-2.0
/*
 * System V Release 4 (policies/svr4.h): the tables, the rules, and what Nieh et al. saw them do to
 * a batch job and a window server.
 */
#include <stdio.h>

#include "one_cpu.h"

static struct one_cpu cpu;

/* Row by row as published, from golden/. */
TEST(renewed_table_is_solaris_2x)
{
	FILE *file = fopen("tests/golden/ts_dptbl_solaris2x.csv", "r");
	u32 level, quantum_ms, tqexp, slpret, maxwait_s, lwait, rows = 0;
	char line[128];

	CHECK(file);
	CHECK(fgets(line, sizeof(line), file));
	while (fgets(line, sizeof(line), file)) {
		CHECK_EQ(sscanf(line, "%u,%u,%u,%u,%u,%u", &level, &quantum_ms, &tqexp, &slpret,
				&maxwait_s, &lwait),
			 6);
		CHECK_EQ(level, rows);
		CHECK_EQ(an_svr4_quantum_ticks(AN_SVR4_RENEWED, level) * 10, quantum_ms);
		CHECK_EQ(an_svr4_tqexp(AN_SVR4_RENEWED, level), tqexp);
		CHECK_EQ(an_svr4_slpret(AN_SVR4_RENEWED, level), slpret);
		CHECK_EQ(an_svr4_maxwait_s(AN_SVR4_RENEWED, level), maxwait_s);
		CHECK_EQ(an_svr4_lwait(AN_SVR4_RENEWED, level), lwait);
		rows++;
	}
	fclose(file);
	CHECK_EQ(rows, AN_SVR4_LEVELS);
}

/* The reconstruction of Solaris 2.2's, decade by decade, and RT's quanta. */
TEST(original_table_and_rt_quanta)
{
	static const u32 ticks[] = {100, 80, 60, 40, 20, 10};

	for (u32 level = 0; level < AN_SVR4_LEVELS; level++) {
		CHECK_EQ(an_svr4_quantum_ticks(AN_SVR4_ORIGINAL, level), ticks[level / 10]);
		CHECK_EQ(an_svr4_rt_quantum_ticks(level), ticks[level / 10]);
		CHECK_EQ(an_svr4_tqexp(AN_SVR4_ORIGINAL, level),
			 level < 20 ? level / 2 : level - 10);
		CHECK_EQ(an_svr4_slpret(AN_SVR4_ORIGINAL, level), level < 49 ? level + 10 : 59);
		CHECK_EQ(an_svr4_lwait(AN_SVR4_ORIGINAL, level),
			 an_svr4_slpret(AN_SVR4_ORIGINAL, level));
		CHECK_EQ(an_svr4_maxwait_s(AN_SVR4_ORIGINAL, level), 5);
	}
}

static struct an_member time_sharing(s32 priority)
{
	return (struct an_member){.priority = priority};
}

static struct an_member real_time(s32 priority)
{
	return (struct an_member){.priority = priority, .real_time = true};
}

/* A job that runs for a tick, waits for its child and wakes, so many times. Its last level. */
static u32 after_sleeps(u32 kind, u32 sleeps, u32 *levels)
{
	struct an_member job = time_sharing(0);
	struct an_policy policy;

	an_policy_init(&policy, kind, 0);
	an_policy_join(&policy, &job);
	an_policy_wake(&policy, &job);
	for (u32 i = 0; i <= sleeps; i++) {
		levels[i] = job.svr4.level;
		an_policy_serve(&policy, &job);
		an_policy_used(&policy, &job, 10 * MS);
		CHECK(!an_policy_tick(&policy, &job));
		an_policy_block(&policy, &job);
		an_policy_wake(&policy, &job);
	}
	return levels[sleeps];
}

/* The pathology of [3]: batch work that forks and waits is taken for interactive. */
TEST(fork_and_wait_climbs_in_three_sleeps)
{
	u32 levels[8];

	CHECK_EQ(after_sleeps(AN_SVR4, 6, levels), 59);
	CHECK_EQ(levels[0], 29);
	CHECK_EQ(levels[1], 39);
	CHECK_EQ(levels[2], 49);
	CHECK_EQ(levels[3], 59);
	CHECK_EQ(levels[4], 59);
	/* The new class gives nothing for it. */
	CHECK_EQ(after_sleeps(AN_SVR4_NEW, 3, levels), 29);
}

/* What the parent climbed, its children need not: they begin where it is, with a quantum of their
 * own. */
TEST(children_begin_at_their_parents_level)
{
	struct an_member parent = time_sharing(5), child = time_sharing(5);
	struct an_policy policy;

	an_policy_init(&policy, AN_SVR4, 0);
	an_policy_join(&policy, &parent);
	an_policy_wake(&policy, &parent);
	an_policy_block(&policy, &parent);
	an_policy_wake(&policy, &parent); /* 39 */
	parent.svr4.left_ticks = 1;
	parent.svr4.waited_s = 3;
	an_policy_join(&policy, &child);
	an_policy_fork(&policy, &parent, &child);
	CHECK_EQ(child.svr4.level, 39);
	CHECK_EQ(an_svr4_global(&child.svr4), 44);
	CHECK_EQ(child.svr4.left_ticks, 40);
	CHECK_EQ(child.svr4.waited_s, 0);
	an_policy_wake(&policy, &child);
	CHECK_EQ(child.svr4.level, 39); /* a beginning is no sleep */
	/* Real-time levels are what was asked for. */
	parent = real_time(7);
	child = real_time(7);
	an_policy_join(&policy, &parent);
	an_policy_join(&policy, &child);
	an_policy_fork(&policy, &parent, &child);
	CHECK_EQ(an_svr4_global(&child.svr4), 107);
}

/* And over a minute: the job stays on top under the original, and sinks under the new class. */
static void fork_and_wait_for_a_minute(u32 kind, u32 *least_level, u32 *seconds_on_top)
{
	u32 job;

	cpu_begin(&cpu, kind, 0);
	job = cpu_add(&cpu, time_sharing(0), 45 * MS, 1 * MS);
	cpu_add_hog(&cpu);
	*least_level = 59;
	*seconds_on_top = 0;
	for (u64 second = 1; second <= 60; second++) {
		/* In the middle of the second, ageing lifts nobody. */
		cpu_run(&cpu, second * SECOND - 400 * MS);
		if (cpu_level(&cpu, job) < *least_level)
			*least_level = cpu_level(&cpu, job);
		*seconds_on_top += cpu_level(&cpu, job) == 59;
	}
}

TEST(fork_and_wait_stays_on_top_of_the_original_only)
{
	u32 least_level, seconds_on_top;

	fork_and_wait_for_a_minute(AN_SVR4, &least_level, &seconds_on_top);
	CHECK_EQ(least_level, 59);
	CHECK_EQ(seconds_on_top, 60);
	fork_and_wait_for_a_minute(AN_SVR4_NEW, &least_level, &seconds_on_top);
	CHECK(least_level <= 30);
	CHECK_EQ(seconds_on_top, 0);
}

/*
 * The window server: it burns quanta until it is at the bottom, and is then kept from the CPU by
 * one of the highest level. How long until it has climbed to 50?
 */
static u64 climb_s(u32 kind, u32 *quanta)
{
	struct an_member server = time_sharing(0);
	struct an_policy policy;
	u64 seconds = 0;

	an_policy_init(&policy, kind, 0);
	an_policy_join(&policy, &server);
	an_policy_wake(&policy, &server);
	an_policy_serve(&policy, &server);
	for (*quanta = 0; server.svr4.level; (*quanta)++) {
		while (!an_policy_tick(&policy, &server))
			;
		an_policy_requeue(&policy, &server, AN_USED_UP);
	}
	while (server.svr4.level < 50) {
		u64 before = server.key;
		bool changed = an_policy_age(&policy, &server, true);

		CHECK_EQ(changed, server.key != before);
		seconds++;
		CHECK(seconds < 1000);
	}
	return seconds;
}

TEST(a_window_server_recovers_slowly_under_the_original)
{
	u32 quanta;

	/* 29 → 19 → 9 → 4 → 2 → 1 → 0, then five steps of six seconds to 50. */
	CHECK_EQ(climb_s(AN_SVR4, &quanta), 30);
	CHECK_EQ(quanta, 6);
	CHECK_EQ(climb_s(AN_SVR4_NEW, &quanta), 1);
	CHECK_EQ(quanta, 3);
}

/*
 * The same with everything at work: a server at the bottom beside batch work that forks and waits,
 * at the top. What the server gets in the next half a minute [ms].
 */
static u64 server_gets_ms(u32 kind)
{
	u32 server, batch;
	u64 before_ns;

	cpu_begin(&cpu, kind, 0);
	server = cpu_add_hog(&cpu);
	cpu_run(&cpu, 9500 * MS); /* alone, it sinks */
	before_ns = cpu.jobs[server].got_ns;
	batch = cpu_add(&cpu, time_sharing(0), 45 * MS, 1 * MS);
	cpu.jobs[batch].member.svr4.level = 59;
	an_svr4_renew_quantum(an_policy_svr4_table(&cpu.policy), &cpu.jobs[batch].member.svr4);
	cpu_run(&cpu, 39500 * MS);
	return (cpu.jobs[server].got_ns - before_ns) / MS;
}

TEST(beside_batch_work_the_server_stands_still)
{
	u64 original_ms = server_gets_ms(AN_SVR4), renewed_ms = server_gets_ms(AN_SVR4_NEW);

	test_remark("server in 30 s: %llu ms, renewed %llu ms", (unsigned long long)original_ms,
		    (unsigned long long)renewed_ms);
	CHECK(original_ms <= 30000 / 46 + 1); /* the batch work's own pauses, and nothing else */
	CHECK(renewed_ms >= 10000);
}

/* Seconds of waiting: which count, and what sets them to zero. */
TEST(original_counts_waiting_in_the_queue_only)
{
	struct an_member job = time_sharing(0);
	struct an_policy policy;

	an_policy_init(&policy, AN_SVR4, 0);
	an_policy_join(&policy, &job);
	an_policy_wake(&policy, &job);
	for (u32 i = 0; i < 5; i++)
		CHECK(!an_policy_age(&policy, &job, true));
	CHECK(!an_policy_age(&policy, &job, false)); /* in service: does not count */
	CHECK_EQ(job.svr4.waited_s, 5);
	an_policy_requeue(&policy, &job, AN_PREEMPTED); /* does not reset */
	CHECK_EQ(job.svr4.waited_s, 5);
	CHECK(an_policy_age(&policy, &job, true)); /* six: more than five */
	CHECK_EQ(job.svr4.level, 39);
	CHECK_EQ(job.svr4.waited_s, 0);
	CHECK(!an_policy_age(&policy, &job, true));
	an_policy_block(&policy, &job);
	an_policy_wake(&policy, &job);
	CHECK_EQ(job.svr4.waited_s, 0);
}

TEST(new_class_lifts_sleepers_and_the_served)
{
	struct an_member job = time_sharing(0);
	struct an_policy policy;
	u64 key;

	an_policy_init(&policy, AN_SVR4_NEW, 0);
	an_policy_join(&policy, &job);
	an_policy_wake(&policy, &job);
	key = job.key;
	CHECK(!an_policy_age(&policy, &job, false)); /* lifted, but no key to change */
	CHECK_EQ(job.svr4.level, 52);
	CHECK_EQ(job.key, key);
	for (u32 i = 0; i < 12; i++)
		CHECK_EQ(an_policy_tick(&policy, &job), i == 11); /* the quantum is the old one */
	CHECK_EQ(job.svr4.level, 42);
	CHECK_EQ(job.svr4.left_ticks, 4);
}

/* slpret needs a second that began during the quantum; above 0 it never comes at 59. */
TEST(new_class_rewards_a_sleep_only_when_overdue)
{
	struct an_member job = time_sharing(0);
	struct an_policy policy;

	an_policy_init(&policy, AN_SVR4_NEW, 0);
	an_policy_join(&policy, &job);
	an_policy_wake(&policy, &job);
	job.svr4.waited_s = 1;
	an_policy_block(&policy, &job);
	an_policy_wake(&policy, &job);
	CHECK_EQ(job.svr4.level, 52);
	CHECK_EQ(job.svr4.waited_s, 0);
	job.svr4.level = 59;
	for (u32 i = 0; i < 100; i++)
		CHECK(!an_policy_age(&policy, &job, true));
	CHECK_EQ(job.svr4.level, 59);
}

/* What the user asks for moves the global priority; the rows are looked up without it. */
TEST(user_priorities_move_the_effective_level)
{
	struct an_member nice = time_sharing(20), mean = time_sharing(-20);
	struct an_policy policy;

	an_policy_init(&policy, AN_SVR4, 0);
	an_policy_join(&policy, &nice);
	an_policy_join(&policy, &mean);
	CHECK_EQ(an_svr4_global(&nice.svr4), 49);
	CHECK_EQ(an_svr4_global(&mean.svr4), 9);
	an_policy_wake(&policy, &mean);
	an_policy_wake(&policy, &nice);
	CHECK(nice.key < mean.key);
	CHECK(an_policy_preempts(&policy, &nice, &mean));
	CHECK(!an_policy_preempts(&policy, &mean, &nice));
	CHECK(!an_policy_preempts(&policy, &nice, &nice)); /* among equals, nobody */
	nice.svr4.level = 50;
	CHECK_EQ(an_svr4_global(&nice.svr4), 59);
	mean.svr4.level = 10;
	CHECK_EQ(an_svr4_global(&mean.svr4), 0);
	CHECK_EQ(nice.svr4.left_ticks, 60); /* row 29, not 49 */
	/* Beyond the range, the nearest. */
	nice = time_sharing(59);
	an_policy_join(&policy, &nice);
	CHECK_EQ(nice.svr4.user, 20);
}

/* maxwait is the effective level's: at 59 the new class is patient even if the level is 39. */
TEST(maxwait_goes_by_the_effective_level)
{
	struct an_member job = time_sharing(20);
	struct an_policy policy;

	an_policy_init(&policy, AN_SVR4_NEW, 0);
	an_policy_join(&policy, &job);
	an_policy_wake(&policy, &job);
	job.svr4.level = 39;
	CHECK(!an_policy_age(&policy, &job, true));
	CHECK_EQ(job.svr4.level, 39);
	CHECK_EQ(job.svr4.waited_s, 1);
}

/* Strict: a loop in RT leaves TS nothing at all, not even after a minute. */
TEST(real_time_starves_time_sharing)
{
	u32 loop, typing, second;

	cpu_begin(&cpu, AN_SVR4_NEW, 0);
	loop = cpu_add(&cpu, real_time(0), 0, 0);
	typing = cpu_add(&cpu, time_sharing(20), 5 * MS, 95 * MS);
	cpu_run(&cpu, 60 * SECOND);
	CHECK_EQ(cpu.jobs[typing].got_ns, 0);
	CHECK_EQ(cpu.jobs[loop].got_ns, 60 * SECOND);
	/* A higher level of RT takes the CPU from it; among equals, a quantum each. */
	second = cpu_add(&cpu, real_time(10), 100 * MS, 900 * MS);
	cpu_run(&cpu, 70 * SECOND);
	CHECK_EQ(cpu.jobs[second].got_ns, 10 * 100 * MS);
	CHECK_EQ(cpu.jobs[second].longest_wait_ns, 0);
}

TEST(real_time_takes_turns_within_a_level)
{
	cpu_begin(&cpu, AN_SVR4, 0);
	for (u32 i = 0; i < 3; i++)
		cpu_add(&cpu, real_time(45), 0, 0);
	for (u32 turn = 1; turn <= 30; turn++) {
		cpu_run(&cpu, turn * 200 * MS); /* the quantum of 40 … 49 */
		for (u32 i = 0; i < 3; i++)
			CHECK_EQ(cpu.jobs[i].got_ns, (turn + 2 - i) / 3 * 200 * MS);
	}
}

/* Everybody makes progress under the new class, and a typist is served in time. */
TEST(new_class_keeps_everybody_going)
{
	u32 hogs[3], typing;

	cpu_begin(&cpu, AN_SVR4_NEW, 0);
	for (u32 i = 0; i < 3; i++)
		hogs[i] = cpu_add_hog(&cpu);
	typing = cpu_add(&cpu, time_sharing(0), 5 * MS, 95 * MS);
	cpu_run(&cpu, 60 * SECOND);
	for (u32 i = 0; i < 3; i++) {
		CHECK(cpu.jobs[hogs[i]].got_ns > 15 * SECOND);
		CHECK(cpu.jobs[hogs[i]].longest_wait_ns < 2 * SECOND);
	}
	CHECK(cpu.jobs[typing].runs > 500);
}

/* Another nice value does not cost what was earned; another class does. */
TEST(a_change_of_priority_keeps_the_level)
{
	struct an_member job = time_sharing(0);
	struct an_policy policy;
	u64 key;

	an_policy_init(&policy, AN_SVR4, 0);
	an_policy_join(&policy, &job);
	for (u32 i = 0; i < 2; i++) {
		an_policy_wake(&policy, &job);
		an_policy_serve(&policy, &job);
		an_policy_block(&policy, &job);
	}
	an_policy_wake(&policy, &job);
	CHECK_EQ(job.svr4.level, AN_SVR4_FIRST + 20);
	key = job.key;
	job.priority = -15;
	an_policy_change(&policy, &job);
	CHECK_EQ(job.svr4.level, AN_SVR4_FIRST + 20);
	CHECK_EQ(an_svr4_effective(&job.svr4), AN_SVR4_FIRST + 5);
	CHECK_EQ(job.key, key);
	job.real_time = true;
	job.priority = 44;
	an_policy_change(&policy, &job);
	CHECK_EQ(an_svr4_global(&job.svr4), AN_SVR4_RT_BASE + 44);
	job.priority = 10;
	an_policy_change(&policy, &job);
	CHECK_EQ(an_svr4_global(&job.svr4), AN_SVR4_RT_BASE + 10);
	job.real_time = false;
	job.priority = 0;
	an_policy_change(&policy, &job);
	CHECK_EQ(an_svr4_global(&job.svr4), AN_SVR4_FIRST);
}
