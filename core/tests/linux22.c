// SPDX-License-Identifier: GPL-2.0
/* Linux 2.2's epochs (policies/linux22.h). */
#include "one_cpu.h"

static struct one_cpu cpu;

static struct an_member other(s32 nice)
{
	return (struct an_member){.nice = nice};
}

static u64 abs_diff(u64 a, u64 b)
{
	return a > b ? a - b : b - a;
}

/* Hogs have 200 ms each in an epoch, exactly. */
TEST(hogs_have_an_epoch_each)
{
	cpu_begin(&cpu, AN_LINUX22, 0);
	for (u32 i = 0; i < 3; i++)
		cpu_add_hog(&cpu);
	for (u64 epoch = 1; epoch <= 50; epoch++) {
		cpu_run(&cpu, epoch * 600 * MS);
		for (u32 i = 0; i < 3; i++)
			CHECK_EQ(cpu.jobs[i].got_ns, epoch * 200 * MS);
		CHECK_EQ(cpu.policy.epochs.now, epoch - 1);
	}
	CHECK_EQ(cpu.jobs[0].longest_wait_ns, 400 * MS);
}

/* Shares go by priority, 20 - nice: 30, 20 and 1 tick an epoch. */
TEST(nice_sets_the_ticks_of_an_epoch)
{
	static const s32 nice[] = {-10, 0, 19};
	static const u64 ticks[] = {30, 20, 1};

	CHECK_EQ(an_linux22_priority(-20), 40);
	CHECK_EQ(an_linux22_priority(20), 1);
	cpu_begin(&cpu, AN_LINUX22, 0);
	for (u32 i = 0; i < 3; i++)
		cpu_add(&cpu, other(nice[i]), 0, 0);
	cpu_run(&cpu, 100 * 51 * 10 * MS);
	for (u32 i = 0; i < 3; i++)
		CHECK_EQ(cpu.jobs[i].got_ns, 100 * ticks[i] * 10 * MS);
}

/* A film of two processes that wait for each other, beside n hogs. Its share [1/10000]. */
static u32 film_share(u32 hogs, u64 *longest_wait_ns)
{
	u32 player, server;

	cpu_begin(&cpu, AN_LINUX22, 0);
	player = cpu_add(&cpu, other(0), 17 * MS, 0);
	server = cpu_add(&cpu, other(0), 16 * MS, 0);
	cpu.jobs[player].partner = server;
	cpu.jobs[server].partner = player;
	for (u32 i = 0; i < hogs; i++)
		cpu_add_hog(&cpu);
	cpu_run(&cpu, 300 * SECOND);
	*longest_wait_ns = cpu.jobs[player].longest_wait_ns > cpu.jobs[server].longest_wait_ns
				   ? cpu.jobs[player].longest_wait_ns
				   : cpu.jobs[server].longest_wait_ns;
	return (cpu.jobs[player].got_ns + cpu.jobs[server].got_ns) * 10000 / (300 * SECOND);
}

/* [2], "Scheduling for Multimedia": 2 / (2 + n), and a pause in which every hog has its turn. */
TEST(two_halves_of_a_film_get_two_shares)
{
	u32 share[4];

	for (u32 i = 0; i < 4; i++) {
		u32 hogs = 1 + 2 * i, wanted = 20000 / (2 + hogs);
		u64 wait_ns;

		share[i] = film_share(hogs, &wait_ns);
		/* The seed's frame rates fit the rule within 6 %. */
		CHECK(abs_diff(share[i], wanted) * 100 <= wanted * 6);
		CHECK(wait_ns >= hogs * 200 * MS);
	}
	test_remark("2.2: film beside 1, 3, 5, 7 hogs: %u, %u, %u, %u of 10000", share[0], share[1],
		    share[2], share[3]);
}

/* A sleeper is given what the epochs meanwhile brought, and no more than twice its priority. */
TEST(sleepers_save_up_to_a_bound)
{
	struct an_linux22_epochs epochs;
	struct an_linux22 sleeper;
	u32 counter = 20;

	an_linux22_init(&epochs);
	an_linux22_join(&epochs, &sleeper, AN_LINUX22_OTHER, 0, 0);
	CHECK_EQ(sleeper.counter, 20);
	for (u32 i = 0; i < 100; i++) {
		epochs.now++;
		counter = counter / 2 + 20;
		CHECK_EQ(an_linux22_counter(&epochs, &sleeper), counter);
	}
	CHECK_EQ(counter, 39);
	/* Every priority settles within the bound, from every counter it can have. */
	for (s32 nice = -20; nice <= 19; nice++) {
		u32 base = an_linux22_priority(nice);

		for (u32 start = 0; start < 2 * base; start++) {
			counter = start;
			for (u32 i = 0; i < 100; i++)
				counter = counter / 2 + base;
			sleeper = (struct an_linux22){.base = base, .counter = start};
			epochs.now = 100;
			CHECK_EQ(an_linux22_counter(&epochs, &sleeper), counter);
		}
	}
}

/* Keys: the epoch first, then goodness, then who woke last; the used-up in order of arrival. */
TEST(keys_go_by_epoch_then_goodness)
{
	struct an_member early = other(0), late = other(0), keen = other(-5), spent = other(-20);
	struct an_policy policy;

	an_policy_init(&policy, AN_LINUX22, 0);
	an_policy_join(&policy, &early);
	an_policy_join(&policy, &late);
	an_policy_join(&policy, &keen);
	an_policy_join(&policy, &spent);
	an_policy_wake(&policy, &keen);
	an_policy_wake(&policy, &early);
	an_policy_wake(&policy, &late);
	CHECK(keen.key < late.key && late.key < early.key);
	spent.linux22.counter = 0;
	an_policy_wake(&policy, &spent);
	CHECK(early.key < spent.key); /* next epoch, however good it will be in it */
	an_policy_serve(&policy, &early);
	CHECK_EQ(policy.epochs.now, 0);
	an_policy_serve(&policy, &spent);
	CHECK_EQ(policy.epochs.now, 1);
	an_linux22_catch_up(&policy.epochs, &spent.linux22);
	CHECK_EQ(spent.linux22.counter, 40);
}

/* Those that have used up their counters are served in this order, whatever their ids. */
TEST(the_used_up_keep_their_order)
{
	struct an_member jobs[4];
	struct an_policy policy;
	u64 place_bits = (1ULL << AN_LINUX22_PLACE_BITS) - 1;

	an_policy_init(&policy, AN_LINUX22, 0);
	for (u32 i = 4; i-- > 0;) {
		jobs[i] = other(0);
		an_policy_join(&policy, &jobs[i]);
		an_policy_wake(&policy, &jobs[i]);
		jobs[i].linux22.counter = 1;
		an_policy_serve(&policy, &jobs[i]);
		CHECK(an_policy_tick(&policy, &jobs[i]));
		an_policy_requeue(&policy, &jobs[i], AN_USED_UP);
	}
	for (u32 i = 0; i < 3; i++)
		CHECK(jobs[i].key > jobs[i + 1].key);
	CHECK_EQ(policy.epochs.tail, 4);
	CHECK_EQ(policy.epochs.head, 4);
	an_policy_serve(&policy, &jobs[3]);
	CHECK_EQ(policy.epochs.tail, 0); /* places begin anew */
	CHECK_EQ(policy.epochs.head, 0);
	/* At their ends places stand still and do not spill into goodness. */
	policy.epochs.head = AN_LINUX22_PLACE_MIDDLE;
	an_policy_requeue(&policy, &jobs[3], AN_PREEMPTED);
	CHECK_EQ(jobs[3].key & place_bits, 0);
	jobs[3].linux22.counter = 0;
	policy.epochs.tail = AN_LINUX22_PLACE_MIDDLE - 1;
	an_policy_requeue(&policy, &jobs[3], AN_USED_UP);
	an_policy_requeue(&policy, &jobs[3], AN_USED_UP);
	CHECK_EQ(jobs[3].key & place_bits, place_bits);
}

/* The rule of early 2.2: more than three ticks ahead, and not less good. */
TEST(wake_up_preempts_when_three_ticks_ahead)
{
	struct an_member serving = other(0), woken = other(0);
	struct an_policy policy;

	an_policy_init(&policy, AN_LINUX22, 0);
	an_policy_join(&policy, &serving);
	an_policy_join(&policy, &woken);
	CHECK(!an_policy_preempts(&policy, &woken, &serving));
	serving.linux22.counter = 17;
	CHECK(!an_policy_preempts(&policy, &woken, &serving));
	serving.linux22.counter = 16;
	CHECK(an_policy_preempts(&policy, &woken, &serving));
	woken.linux22.base = 10; /* goodness 30 against 36: the pick would go back */
	CHECK(!an_policy_preempts(&policy, &woken, &serving));
}

/* SCHED_FIFO and SCHED_RR come before all others, by their priority. */
TEST(real_time_is_above)
{
	struct an_member fifo = {.real_time = true, .priority = 10};
	struct an_member rr = {.real_time = true, .round_robin = true, .priority = 10};
	u32 hog, film, first, second;

	cpu_begin(&cpu, AN_LINUX22, 0);
	hog = cpu_add_hog(&cpu);
	film = cpu_add(&cpu, fifo, 10 * MS, 30 * MS);
	cpu_run(&cpu, 40 * SECOND);
	CHECK_EQ(cpu.jobs[film].runs, 1000);
	CHECK_EQ(cpu.jobs[film].longest_wait_ns, 0);
	CHECK_EQ(cpu.jobs[hog].got_ns, 30 * SECOND);

	/* Two of SCHED_RR take turns of 200 ms, one of SCHED_FIFO of the same level keeps the CPU.
	 */
	cpu_begin(&cpu, AN_LINUX22, 0);
	first = cpu_add(&cpu, rr, 0, 0);
	second = cpu_add(&cpu, rr, 0, 0);
	hog = cpu_add_hog(&cpu);
	cpu_run(&cpu, 4 * SECOND);
	CHECK_EQ(cpu.jobs[first].got_ns, 2 * SECOND);
	CHECK_EQ(cpu.jobs[second].got_ns, 2 * SECOND);
	CHECK_EQ(cpu.jobs[hog].got_ns, 0);
	cpu_add(&cpu, fifo, 0, 0);
	CHECK(!an_policy_preempts(&cpu.policy, &cpu.jobs[3].member, &cpu.jobs[first].member));
	CHECK(an_policy_preempts(&cpu.policy, &cpu.jobs[3].member, &cpu.jobs[hog].member));
	CHECK(!an_policy_preempts(&cpu.policy, &cpu.jobs[hog].member, &cpu.jobs[3].member));
	cpu_run(&cpu, 8 * SECOND);
	CHECK_EQ(cpu.jobs[3].got_ns, 4 * SECOND - 400 * MS);
}

/* The tick charges whoever is in service: who is gone by then runs for nothing. */
TEST(ticks_miss_those_that_dodge_them)
{
	u32 dodger;

	cpu_begin(&cpu, AN_LINUX22, 0);
	cpu_add_hog(&cpu);
	dodger = cpu_add(&cpu, other(-20), 9 * MS, 1 * MS);
	cpu_run(&cpu, 10 * SECOND);
	CHECK(cpu.jobs[dodger].got_ns > 8 * SECOND);
}

/* Forking wins nothing: parent and child share what the parent had, whatever it slept before. */
TEST(fork_halves_the_counter)
{
	struct an_member parent = other(0), child = other(0), bystander = other(0);
	struct an_policy policy;

	an_policy_init(&policy, AN_LINUX22, 0);
	an_policy_join(&policy, &parent);
	policy.epochs.now = 1;
	an_policy_join(&policy, &child);
	an_policy_fork(&policy, &parent, &child);
	CHECK_EQ(parent.linux22.counter, 15); /* (20 / 2 + 20) / 2 */
	CHECK_EQ(child.linux22.counter, 15);
	for (u32 forks = 0; forks < 4; forks++) {
		an_policy_join(&policy, &child);
		an_policy_fork(&policy, &parent, &child);
	}
	CHECK_EQ(parent.linux22.counter, 0);
	CHECK_EQ(child.linux22.counter, 0);
	/* The parent goes on until the tick, the last child waits for the next epoch. */
	CHECK(an_policy_tick(&policy, &parent));
	an_policy_join(&policy, &bystander);
	an_policy_wake(&policy, &child);
	an_policy_wake(&policy, &bystander);
	CHECK(bystander.key < child.key);
}

/* Another nice value leaves the counter as it is; the next epoch adds the new priority. */
TEST(a_change_of_nice_holds_from_the_next_epoch)
{
	struct an_member job = other(0);
	struct an_policy policy;
	u64 key;

	an_policy_init(&policy, AN_LINUX22, 0);
	an_policy_join(&policy, &job);
	an_policy_wake(&policy, &job);
	an_policy_serve(&policy, &job);
	an_policy_tick(&policy, &job);
	key = job.key;
	job.nice = -10;
	an_policy_change(&policy, &job);
	CHECK_EQ(job.linux22.counter, 19);
	CHECK_EQ(job.key, key);
	policy.epochs.now++;
	CHECK_EQ(an_linux22_counter(&policy.epochs, &job.linux22), 9 + 30);
	job.real_time = true;
	job.priority = 7;
	an_policy_change(&policy, &job);
	CHECK(an_linux22_real_time(&job.linux22));
	CHECK_EQ(job.linux22.rt, 7);
}
