// SPDX-License-Identifier: GPL-2.0
/*
 * Shares of classes that may not use every CPU (confined.h), on a machine as simple as that of
 * domains.c: endless loops, quanta of any length, nothing takes time but service.
 *
 * What each should be given is found by progressive filling [1]: all rates grow from nothing, those
 * of siblings by their weights, until some classes have filled all CPUs that they may use, or have
 * one for each task; these stay as they are, and their siblings have what is left of the parent's.
 *
 * [1] D. Bertsekas, R. Gallager: Data Networks, section 6.5.2. Prentice Hall 1992.
 */
#include <string.h>

#include "invariants.h"
#include "random.h"
#include "test.h"

#define MS 1000000ULL
#define SECOND (1000 * MS)
#define QUANTUM_NS (4 * MS)
#define CPUS 8
#define CLASSES 16
#define NOBODY CLASSES
#define ANYWHERE (~0ULL)

/* A class; its tasks are loops, or it has children. */
struct class
{
	u32 leaf, weight, parent; /* parent: NOBODY, the root */
	u32 tasks, queued;
	u64 mask;
	bool inner, frozen;
	double rate; /* that it should have [CPUs] */
	u64 service_ns;
};

static struct an_tree tree;
static struct invariants invariants;
static struct random chance;
static struct class class[CLASSES];
static u32 classes, cpus;
static struct {
	u32 class;
	u64 since_ns, until_ns;
} cpu[CPUS];
static u64 now_ns;
static bool idled; /* a CPU has had nothing to do */

static void begin(u64 seed, u32 of_cpus)
{
	test_scenario(seed);
	chance.state = seed;
	cpus = of_cpus;
	classes = 0;
	now_ns = 0;
	idled = false;
	fresh_tree(&tree, &invariants, QUANTUM_NS, cpus);
	for (u32 i = 0; i < cpus; i++)
		cpu[i].class = NOBODY;
}

/* tasks == 0: it is to have children. */
static u32 create(u32 parent, u32 weight, u32 tasks, u64 mask)
{
	u32 above = parent == NOBODY ? AN_ROOT_LEAF : class[parent].leaf;

	CHECK(classes < CLASSES);
	class[classes] = (struct class){
		.leaf = an_class_create(&tree, above, 0, weight),
		.weight = weight,
		.parent = parent,
		.tasks = tasks,
		.mask = mask & ((1ULL << cpus) - 1),
		.inner = !tasks,
	};
	return classes++;
}

/* ---- what each should have ---- */

/* Do these leaves, by bits, fill all CPUs that they may use? */
static bool is_full(u32 set)
{
	double rate = 0;
	u64 mask = 0;

	for (u32 i = 0; i < classes; i++) {
		if (!(set >> i & 1))
			continue;
		rate += class[i].rate;
		mask |= class[i].mask;
	}
	return rate >= __builtin_popcountll(mask) - 1e-9;
}

/* Is the class, or all that is below it, frozen? */
static bool is_frozen(u32 index)
{
	if (!class[index].inner)
		return class[index].frozen;
	for (u32 i = 0; i < classes; i++)
		if (class[i].parent == index && !is_frozen(i))
			return false;
	return true;
}

static void fill(u32 parent, double more)
{
	u32 weights = 0;

	for (u32 i = 0; i < classes; i++)
		if (class[i].parent == parent && !is_frozen(i))
			weights += class[i].weight;
	for (u32 i = 0; i < classes; i++) {
		if (class[i].parent != parent || is_frozen(i))
			continue;
		if (class[i].inner)
			fill(i, more * class[i].weight / weights);
		else
			class[i].rate += more * class[i].weight / weights;
	}
}

static bool freeze(void)
{
	u32 leaves = 0;
	bool all = true;

	for (u32 i = 0; i < classes; i++) {
		if (class[i].inner)
			continue;
		leaves |= 1u << i;
		class[i].frozen |= class[i].rate >= class[i].tasks - 1e-9;
	}
	for (u32 set = leaves; set; set = (set - 1) & leaves) {
		if (!is_full(set))
			continue;
		for (u32 i = 0; i < classes; i++)
			class[i].frozen |= set >> i & 1;
	}
	for (u32 i = 0; i < classes; i++)
		all &= class[i].inner || class[i].frozen;
	return all;
}

#define STEPS 500

static void fill_all(void)
{
	for (u32 i = 0; i < classes; i++) {
		class[i].rate = 0;
		class[i].frozen = false;
	}
	while (!freeze())
		fill(NOBODY, (double)1 / STEPS);
}

/* ---- what they are given ---- */

static u32 class_of(u32 leaf)
{
	u32 i = 0;

	while (i < classes && class[i].leaf != leaf)
		i++;
	return i;
}

/* The CPU makes a choice; its class of before, if it has one, wants to go on. */
static void choose(u32 at)
{
	u32 before = cpu[at].class;
	u64 by = 1ULL << at;

	if (before != NOBODY) {
		class[before].queued++;
		class[before].service_ns += now_ns - cpu[at].since_ns;
		an_queue_add_by(&tree, class[before].leaf, class[before].mask);
		an_stop(&tree, class[before].leaf, now_ns - cpu[at].since_ns);
	}
	for (;;) {
		u32 leaf = an_pick(&tree, by), picked;

		if (leaf && tree.confined_by & by)
			leaf = an_pick_behind(&tree, leaf, by);
		picked = class_of(leaf);
		cpu[at].class = leaf ? picked : NOBODY;
		if (!leaf)
			return;
		CHECK(picked < classes);
		if (class[picked].mask & by)
			break;
		an_unpick(&tree, leaf);
		an_unusable_by(&tree, leaf, by);
	}
	class[cpu[at].class].queued--;
	cpu[at].since_ns = now_ns;
	cpu[at].until_ns = now_ns + QUANTUM_NS - random_below(&chance, QUANTUM_NS / 4);
}

/* Somebody may have been queued that an idle CPU may run. */
static void wake_idle(void)
{
	for (u32 i = 0; i < cpus; i++)
		if (cpu[i].class == NOBODY)
			choose(i);
}

static void start(void)
{
	for (u32 i = 0; i < classes; i++) {
		for (u32 n = 0; n < class[i].tasks; n++) {
			class[i].queued++;
			an_queue_add_by(&tree, class[i].leaf, class[i].mask);
		}
	}
	wake_idle();
}

static void run(u64 until_ns)
{
	while (now_ns < until_ns) {
		u32 next = NOBODY;

		for (u32 i = 0; i < cpus; i++)
			if (cpu[i].class != NOBODY &&
			    (next == NOBODY || cpu[i].until_ns < cpu[next].until_ns))
				next = i;
		CHECK(next != NOBODY);
		now_ns = cpu[next].until_ns;
		choose(next);
		wake_idle();
		for (u32 i = 0; i < cpus; i++)
			idled |= cpu[i].class == NOBODY;
	}
	CHECK_INVARIANTS(&tree, &invariants);
}

/* The least part of what it should have had that any class has had, in a while. */
static double least_part(u64 length_ns)
{
	u64 before[CLASSES];
	double least = 2;

	fill_all();
	run(now_ns + SECOND);
	for (u32 i = 0; i < classes; i++)
		before[i] = class[i].service_ns;
	run(now_ns + length_ns);
	for (u32 i = 0; i < classes; i++) {
		double part = (class[i].service_ns - before[i]) / class[i].rate / length_ns;

		if (!class[i].inner && part < least)
			least = part;
	}
	return least;
}

/* Would all have the same if they might use every CPU, with a task for each? */
static bool is_possible(void)
{
	double rate[CLASSES];
	bool same = true;

	fill_all();
	for (u32 i = 0; i < classes; i++)
		rate[i] = class[i].rate;
	for (u32 i = 0; i < classes; i++) {
		struct class had = class[i];

		class[i].mask = (1ULL << cpus) - 1;
		class[i].tasks = had.inner ? 0 : cpus;
	}
	fill_all();
	for (u32 i = 0; i < classes; i++)
		same &= class[i].rate <= rate[i] + 0.01;
	return same;
}

/* A third of four CPUs is 1.33, half of that is two thirds of one; with the parent's share of the
 * CPU that it is bound to alone the class would have one third. */
TEST(a_share_of_the_parent_may_be_had_of_one_cpu)
{
	u32 parent;

	begin(1, 4);
	parent = create(NOBODY, 1, 0, 0);
	create(parent, 1, 1, 1);
	create(parent, 1, 4, ANYWHERE);
	create(NOBODY, 2, 4, ANYWHERE);
	start();
	CHECK(least_part(20 * SECOND) >= 0.99);
	CHECK_EQ(tree.confined_by & ~1ULL, 0);
}

/* Two classes of different levels are bound to the first CPU, which cannot give both what they are
 * worth: it is divided as they are worth of the machine, 2 : 1. */
TEST(a_crowded_cpu_is_shared_by_what_each_is_worth)
{
	u32 parent;

	begin(1, 2);
	parent = create(NOBODY, 1, 0, 0);
	create(parent, 1, 1, 1);
	create(parent, 1, 2, ANYWHERE);
	create(NOBODY, 1, 2, 1);
	start();
	CHECK(least_part(20 * SECOND) >= 0.98);
}

/* The same of two parents, and both are below. */
TEST(children_of_two_parents_share_a_cpu)
{
	u32 first, second;

	begin(1, 3);
	first = create(NOBODY, 1, 0, 0);
	create(first, 3, 1, 1);
	create(first, 1, 2, ANYWHERE);
	second = create(NOBODY, 1, 0, 0);
	create(second, 1, 1, 1);
	create(second, 1, 2, ANYWHERE);
	create(NOBODY, 1, 3, ANYWHERE);
	start();
	CHECK(least_part(20 * SECOND) >= 0.98);
}

/* A single thread that is worth three quarters of a CPU, within a class that has two of four. */
TEST(a_single_thread_is_not_left_behind)
{
	u32 parent;

	begin(1, 4);
	parent = create(NOBODY, 1, 0, 0);
	create(parent, 3, 1, ANYWHERE);
	create(parent, 5, 4, ANYWHERE);
	create(NOBODY, 1, 4, ANYWHERE);
	start();
	CHECK(least_part(20 * SECOND) >= 0.98);
}

/* Who is behind is forgotten when he is not any more, or has gone. */
TEST(nobody_is_noted_who_is_not_behind)
{
	u32 parent, bound, at = 0;

	begin(1, 2);
	parent = create(NOBODY, 3, 0, 0);
	bound = create(parent, 1, 1, 1);
	create(parent, 1, 2, ANYWHERE);
	create(NOBODY, 1, 2, ANYWHERE);
	start();
	run(SECOND);
	while (tree.confined[at].node != class[bound].leaf)
		CHECK(at++ < AN_CONFINED_MAX);
	class[bound].mask = 3; /* it may run anywhere now */
	run(2 * SECOND);
	CHECK_EQ(tree.confined_count, 0);
	CHECK_EQ(tree.confined_by, 0);
}

/* Who is behind, and throttled, has no turn. */
TEST(who_is_behind_waits_while_throttled)
{
	u32 parent, bound;
	u64 before;

	begin(1, 2);
	parent = create(NOBODY, 3, 0, 0);
	bound = create(parent, 1, 1, 1);
	create(parent, 1, 2, ANYWHERE);
	create(NOBODY, 1, 2, ANYWHERE);
	start();
	while (!tree.confined_count)
		run(now_ns + 1);
	CHECK_EQ(tree.confined[0].node, class[bound].leaf);
	an_node(&tree, class[bound].leaf)->bandwidth = class[bound].leaf; /* it has a quota */
	before = class[bound].service_ns;
	an_hold(&tree, class[bound].leaf);
	run(now_ns + SECOND);
	CHECK_EQ(class[bound].service_ns, before);
	an_let_go(&tree, class[bound].leaf);
	run(now_ns + SECOND);
	CHECK(class[bound].service_ns > before);
}

/* Two to four classes, some with two or three children, of which one in two may use some CPUs only.
 */
static void draw(u64 seed)
{
	begin(seed, 2 + seed % 5);
	for (u32 top = 2 + random_below(&chance, 3); top; top--) {
		u32 weight = 1 + random_below(&chance, 8);
		u32 below = random_chance(&chance, 40) ? 0 : 2 + random_below(&chance, 2);
		u32 parent = below ? create(NOBODY, weight, 0, 0) : NOBODY;

		for (u32 n = below ? below : 1; n; n--) {
			u64 mask = 1 + random_below(&chance, (1 << cpus) - 1);

			create(parent, below ? 1 + random_below(&chance, 8) : weight,
			       1 + random_below(&chance, cpus),
			       random_chance(&chance, 50) ? ANYWHERE : mask);
		}
	}
	start();
}

#define DRAWS 100

/*
 * Of drawn trees, weights, masks and numbers of tasks. Where all can have what their weights say,
 * nobody has less than four fifths of it; where not, nobody has less than an eighth of what
 * progressive filling gives him, and in nine draws of ten nobody less than nine tenths. (Left out
 * are those in which a CPU idles, for the only task that it may run is on another one that has more
 * to do.)
 */
TEST(shares_are_had_as_far_as_cpus_can_honour_them)
{
	double least[2] = {2, 2};
	u32 draws = 0, low = 0;

	for (u64 seed = test_seed(); draws < DRAWS; seed++) {
		double part;
		bool possible;

		draw(seed);
		part = least_part(30 * SECOND);
		possible = is_possible();
		if (idled)
			continue;
		draws++;
		low += part < 0.9;
		if (part < least[possible])
			least[possible] = part;
		CHECK(part >= (possible ? 0.8 : 0.125));
	}
	CHECK(low * 10 <= draws);
	test_remark(
		"confined: %.0f %% of what is due at least, %.0f where it cannot be had; less than "
		"90 in %u of %u draws",
		100 * least[1], 100 * least[0], low, draws);
}
