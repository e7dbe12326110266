// SPDX-License-Identifier: GPL-2.0
/*
 * Shares of classes that may not use every CPU (hsfq.h: turns that are owed), on a machine as simple
 * as that of domains.c: endless loops, quanta of any length, nothing takes time but service.
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

/* A class; its tasks are loops, or it has children. */
struct class {
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

static void begin(u64 seed, u32 of_cpus)
{
	test_scenario(seed);
	chance.state = seed;
	cpus = of_cpus;
	classes = 0;
	now_ns = 0;
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

#define STEPS 4000

/* Weights of the root's children that are left grow together, whoever is left. */
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
		u32 leaf = an_pick(&tree, by), picked = class_of(leaf);

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

static bool idled;
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

/* Runs for a while; the least part of what it should have had that any class has had. */
static double least_part(u64 length_ns)
{
	u64 before[CLASSES];
	double least = 2;

	fill_all();
	for (u32 i = 0; i < classes; i++)
		before[i] = class[i].service_ns;
	length_ns += now_ns;
	for (u64 from_ns = now_ns; now_ns < length_ns;) {
		run(length_ns);
		for (u32 i = 0; i < classes; i++) {
			double got = class[i].service_ns - before[i];

			if (!class[i].inner && got / (now_ns - from_ns) / class[i].rate < least)
				least = got / (now_ns - from_ns) / class[i].rate;
		}
	}
	return least;
}

#include <stdio.h>
#include <stdlib.h>
static void show(void)
{
	for (u32 i = 0; i < classes; i++)
		printf("  class %u in %d: weight %u tasks %u mask %llx rate %.3f got %.3f\n", i,
		       class[i].parent == NOBODY ? -1 : (int)class[i].parent, class[i].weight,
		       class[i].tasks, (unsigned long long)class[i].mask, class[i].rate,
		       (double)class[i].service_ns / now_ns);
}

static void draw(u64 seed, bool flat)
{
	begin(seed, 2 + random_below(&(struct random){seed}, 5));
	for (u32 top = 2 + random_below(&chance, 3); top; top--) {
		u32 weight = 1 + random_below(&chance, 8);
		u32 below = flat || random_chance(&chance, 40) ? 0 : 2 + random_below(&chance, 2);
		u32 parent = below ? create(NOBODY, weight, 0, 0) : NOBODY;

		for (u32 n = below ? below : 1; n; n--) {
			u64 mask = 1 + random_below(&chance, (1 << cpus) - 1);

			create(parent, below ? 1 + random_below(&chance, 8) : weight,
			       1 + random_below(&chance, cpus),
			       random_chance(&chance, 50) ? ~0ULL : mask);
		}
	}
	start();
}

/* Would all have the same if they might use every CPU? */
static bool is_feasible(void)
{
	struct class had[CLASSES];
	bool same = true;

	fill_all();
	memcpy(had, class, sizeof(had));
	for (u32 i = 0; i < classes; i++) {
		class[i].mask = (1ULL << cpus) - 1;
		class[i].tasks = class[i].inner ? 0 : cpus;
	}
	fill_all();
	for (u32 i = 0; i < classes; i++)
		same &= class[i].inner || (class[i].rate - had[i].rate < 0.001 && had[i].rate - class[i].rate < 0.001);
	memcpy(class, had, sizeof(had));
	return same;
}

static int by_size(const void *a, const void *b)
{
	double d = *(double *)a - *(double *)b;
	return d < 0 ? -1 : d > 0;
}

TEST(survey)
{
	for (int flat = 1; flat >= 0; flat--) {
		double part[1000];
		u32 n = 0;
		double fpart[1000]; u32 f = 0;
		double bar = getenv("BAR") ? atof(getenv("BAR")) : 0;

		for (u64 seed = test_seed(); n < 400; seed++) {
			draw(seed, flat);
			idled = false;
			part[n] = least_part(60 * SECOND);
			if (idled)
				continue;
			bool feas = is_feasible();
			if (feas)
				fpart[f++] = part[n];
			if (part[n] < bar || (feas && part[n] < bar + .1)) {
				printf("feasible %d ", feas);
				printf("flat %d seed %llu cpus %u: %.3f\n", flat,
				       (unsigned long long)seed, cpus, part[n]);
				show();
			}
			n++;
		}
		qsort(fpart, f, sizeof(part[0]), by_size);
		printf("flat %d: FEASIBLE %u: %.3f %.3f %.3f %.3f\n", flat, f, fpart[0], fpart[1], fpart[2], fpart[f / 10]);
		qsort(part, n, sizeof(part[0]), by_size);
		printf("flat %d: least part: worst %.3f, 1%% %.3f 5%% %.3f, 10%% %.3f, 20%% %.3f, median %.3f\n",
		       flat, part[0], part[n / 100], part[n / 20], part[n / 10], part[n / 5], part[n / 2]);
	}
}

/* P, a third of four CPUs, has a (bound) and b: a is worth 67 % of a CPU. */
TEST(the_issue)
{
	u32 p;

	begin(1, 4);
	p = create(NOBODY, 1, 0, 0);
	create(p, 1, 1, 1);
	create(p, 1, 4, ~0ULL);
	create(NOBODY, 2, 4, ~0ULL);
	start();
	least_part(20 * SECOND);
	show();
}
/* both bound to CPU 0, at different levels. */
TEST(infeasible)
{
	u32 p;

	begin(1, 2);
	p = create(NOBODY, 1, 0, 0);
	create(p, 1, 1, 1);
	create(p, 1, 2, ~0ULL);
	create(NOBODY, 1, 2, 1);
	start();
	least_part(20 * SECOND);
	show();
}
TEST(two_parents)
{
	u32 p, q;

	begin(1, 3);
	p = create(NOBODY, 1, 0, 0);
	create(p, 3, 1, 1);
	create(p, 1, 2, ~0ULL);
	q = create(NOBODY, 1, 0, 0);
	create(q, 1, 1, 1);
	create(q, 1, 2, ~0ULL);
	create(NOBODY, 1, 3, ~0ULL);
	start();
	least_part(20 * SECOND);
	show();
}
