// SPDX-License-Identifier: GPL-2.0
/*
 * Several CPUs, as the kernel drives them (smp.h): shares where the weights can be honoured,
 * progress for everybody where they cannot, and nobody starved when that ends.
 */
#include "smp.h"

#define SECOND (1000 * MS)

/* What a leaf is to get of one level: weight of this child over that of all. */
struct share {
	u32 leaf;
	u64 part, whole;
	u64 before_ns;
};

static void shares_begin(struct share *shares, u32 count)
{
	for (u32 i = 0; i < count; i++)
		shares[i].before_ns = node(shares[i].leaf)->service_ns;
}

/* Every leaf within permille / 1000 of its share of what all were given. */
static u32 worst_share_error(const struct share *shares, u32 count)
{
	u64 total_ns = 0;
	u32 worst = 0;

	for (u32 i = 0; i < count; i++)
		total_ns += node(shares[i].leaf)->service_ns - shares[i].before_ns;
	for (u32 i = 0; i < count; i++) {
		u64 got_ns = node(shares[i].leaf)->service_ns - shares[i].before_ns;
		u64 wanted_ns = total_ns / shares[i].whole * shares[i].part;
		u64 off_ns = got_ns > wanted_ns ? got_ns - wanted_ns : wanted_ns - got_ns;

		if (off_ns * 1000 / wanted_ns > worst)
			worst = off_ns * 1000 / wanted_ns;
	}
	return worst;
}

/* Two inner classes and a leaf of random weights, each leaf with work for every CPU. */
static u32 run_feasible(u64 seed, u32 cpus, u32 block_percent)
{
	u32 weight[7], inner[2];
	struct share shares[5];

	smp_begin(seed, cpus);
	for (u32 i = 0; i < 7; i++)
		weight[i] = 1 + random_below(&smp.random, 8);
	for (u32 i = 0; i < 2; i++)
		inner[i] = create(AN_ROOT_LEAF, weight[i]);
	for (u32 i = 0; i < 4; i++) {
		u32 siblings = weight[2 + i / 2 * 2] + weight[3 + i / 2 * 2];

		shares[i].leaf = create(inner[i / 2], weight[2 + i]);
		shares[i].part = weight[i / 2] * weight[2 + i];
		shares[i].whole = (weight[0] + weight[1] + weight[6]) * siblings;
	}
	shares[4] = (struct share){.leaf = create(AN_ROOT_LEAF, weight[6]),
				   .part = weight[6],
				   .whole = weight[0] + weight[1] + weight[6]};
	for (u32 i = 0; i < 5; i++)
		for (u32 tasks = 0; tasks < cpus + block_percent / 10; tasks++)
			smp_task(shares[i].leaf, ~0ULL, block_percent);
	smp_run(SECOND);
	shares_begin(shares, 5);
	smp_run(40 * SECOND / cpus);
	return worst_share_error(shares, 5);
}

/* The worst error over 2 to 8 CPUs, in thousandths of a share. */
static u32 worst_of_all_cpus(u32 block_percent)
{
	u32 worst = 0;

	for (u32 cpus = 2; cpus <= SMP_CPUS; cpus++) {
		u32 error = run_feasible(test_seed() + cpus, cpus, block_percent);

		worst = error > worst ? error : worst;
	}
	CHECK(worst <= 10);
	return worst;
}

TEST(smp_shares)
{
	u32 hogs = worst_of_all_cpus(0), blocking = worst_of_all_cpus(30);

	test_remark("2-8 CPUs: shares within 0.%u %%, with blocking 0.%u %%", hogs, blocking);
}

static void measure(void)
{
	memset(smp.longest_gap_ns, 0, sizeof(smp.longest_gap_ns));
	for (u32 i = AN_ROOT; i < tree.unused; i++) {
		node(i)->service_ns = 0;
		smp.served_until_ns[i] = smp.now_ns;
	}
}

/* Longest time that the leaf had to wait since measure(), to this moment [ms]. */
static u64 longest_gap_ms(u32 leaf)
{
	u64 gap_ns = smp.now_ns - smp.served_until_ns[leaf];

	if (node(leaf)->serving || smp.longest_gap_ns[leaf] > gap_ns)
		gap_ns = smp.longest_gap_ns[leaf];
	return gap_ns / MS;
}

/* The leaf has been given this part of one CPU since measure(), to 1 %. */
static void check_cpu(u32 leaf, u64 length_ns, u32 permille)
{
	u64 got = node(leaf)->service_ns * 10000 / length_ns;

	CHECK(got >= permille * 99ULL / 10 && got <= permille * 101ULL / 10);
}

/*
 * a is worth 8/11 of three CPUs and has one task. It gets the one CPU it can use; b and c share
 * the others by weight. What a could not use it is owed up to one quantum per CPU, no more: with a
 * second task its share is honoured at once, and b and c wait no longer than they do anyway.
 */
TEST(smp_one_task_worth_two_cpus)
{
	u32 a, b, c;

	smp_begin(test_seed(), 3);
	a = create(AN_ROOT_LEAF, 8);
	b = create(AN_ROOT_LEAF, 1);
	c = create(AN_ROOT_LEAF, 2);
	smp_task(a, ~0ULL, 0);
	for (u32 i = 0; i < 3; i++) {
		smp_task(b, ~0ULL, 0);
		smp_task(c, ~0ULL, 0);
	}
	smp_run(SECOND);
	measure();
	smp_run(20 * SECOND);
	check_cpu(a, 20 * SECOND, 1000);
	check_cpu(b, 20 * SECOND, 667);
	check_cpu(c, 20 * SECOND, 1333);
	smp_task(a, ~0ULL, 0);
	measure();
	smp_run(20 * SECOND);
	check_cpu(a, 20 * SECOND, 2000);
	check_cpu(b, 20 * SECOND, 333);
	check_cpu(c, 20 * SECOND, 667);
	CHECK(longest_gap_ms(b) <= 16);
	CHECK(longest_gap_ms(c) <= 8);
}

/*
 * a outweighs everybody but may use the first CPU only, where it always has another task queued;
 * the others share the second by weight, a newcomer among them, although v stays with a.
 */
TEST(smp_a_pinned_heavy_class)
{
	u32 a, b, c, d, first, second;

	smp_begin(test_seed(), 2);
	a = create(AN_ROOT_LEAF, 10000);
	b = create(AN_ROOT_LEAF, 1);
	c = create(AN_ROOT_LEAF, 3);
	d = create(AN_ROOT_LEAF, 10);
	first = smp_task(a, 1, 0);
	second = smp_task(a, 1, 0);
	for (u32 i = 0; i < 2; i++) {
		smp_task(b, ~0ULL, 0);
		smp_task(c, ~0ULL, 0);
	}
	measure();
	smp_run(20 * SECOND);
	check_cpu(a, 20 * SECOND, 1000);
	check_cpu(b, 20 * SECOND, 250);
	check_cpu(c, 20 * SECOND, 750);
	CHECK(longest_gap_ms(b) <= 16);
	/* One who comes late is ahead of the others by what they may owe, once. */
	smp_task(d, ~0ULL, 0);
	measure();
	smp_run(SECOND);
	CHECK(longest_gap_ms(b) <= 250);
	measure();
	smp_run(20 * SECOND);
	check_cpu(b, 20 * SECOND, 71);
	check_cpu(c, 20 * SECOND, 214);
	check_cpu(d, 20 * SECOND, 714);
	/* a may use both CPUs, at a weight that leaves something. */
	an_class_set_weight(&tree, a, 8);
	smp_allow(first, ~0ULL);
	smp_allow(second, ~0ULL);
	measure();
	smp_run(SECOND);
	CHECK(longest_gap_ms(b) <= 250);
}

/* Two groups of classes that share no CPU, at weights that no set of CPUs could honour. */
TEST(smp_disjoint_groups)
{
	u32 a, b, c;

	smp_begin(test_seed(), 2);
	a = create(AN_ROOT_LEAF, 100);
	b = create(AN_ROOT_LEAF, 300);
	c = create(AN_ROOT_LEAF, 1);
	smp_task(a, 1, 0);
	smp_task(b, 1, 0);
	smp_task(c, 2, 0);
	smp_task(c, 2, 0);
	measure();
	smp_run(20 * SECOND);
	check_cpu(a, 20 * SECOND, 250);
	check_cpu(b, 20 * SECOND, 750);
	check_cpu(c, 20 * SECOND, 1000);
}

/* Partial masks under which the weights can still be honoured do not disturb them. */
TEST(smp_feasible_masks)
{
	u32 a, b, c;

	smp_begin(test_seed(), 4);
	a = create(AN_ROOT_LEAF, 100);
	b = create(AN_ROOT_LEAF, 200);
	c = create(AN_ROOT_LEAF, 400);
	for (u32 i = 0; i < 4; i++) {
		smp_task(a, 1, 0);
		smp_task(b, 6, 0);
		smp_task(c, ~0ULL, 0);
	}
	measure();
	smp_run(20 * SECOND);
	check_cpu(a, 20 * SECOND, 571);
	check_cpu(b, 20 * SECOND, 1143);
	check_cpu(c, 20 * SECOND, 2286);
}

/*
 * Random weights, tasks and masks. Whatever cannot be honoured, nobody starves: a class whose fair
 * round is W / w quanta long waits for 16 of those per CPU, and 16 more, at most.
 */
static void run_random_masks(u64 seed, u32 *worst_percent)
{
	u32 classes, leaves[8], cpus = 2 + seed % 7, total = 0;

	smp_begin(seed, cpus);
	classes = 2 + random_below(&smp.random, 6);
	for (u32 i = 0; i < classes; i++) {
		u32 weight = random_scale(&smp.random, 8), tasks;

		leaves[i] = create(AN_ROOT_LEAF, weight);
		total += weight;
		tasks = 1 + random_below(&smp.random, 4);
		while (tasks--)
			smp_task(leaves[i], 1 + random_below(&smp.random, (1 << cpus) - 1), 0);
	}
	measure();
	smp_run(10 * SECOND);
	for (u32 i = 0; i < classes; i++) {
		u64 round_ms = total * QUANTUM_NS / node(leaves[i])->weight / MS;
		u64 bound_ms = 16 * (cpus + 1) * round_ms;
		u32 percent = longest_gap_ms(leaves[i]) * 100 / bound_ms;

		if (percent > *worst_percent)
			*worst_percent = percent;
		CHECK(percent <= 100);
	}
}

TEST(smp_nobody_starves_under_random_masks)
{
	u32 worst_percent = 0;

	for (u64 i = 0; i < 40; i++)
		run_random_masks(test_seed() + i, &worst_percent);
	test_remark("masks: longest wait %u %% of the bound", worst_percent);
}
