// SPDX-License-Identifier: GPL-2.0
/*
 * Random trees under random workloads on one CPU: the fairness bound between all siblings, and the
 * invariants after every step. And the test of the test: schedulers with a fault are caught.
 */
#include "fairness.h"
#include "fixture.h"
#include "random.h"

#define SCENARIOS 10000
#define STEPS 300
#define QUANTUM_NS (4 * MS)

enum fault {
	FAULT_NONE,
	FAULT_SLEEPERS_GET_CREDIT, /* a waker starts before v */
	FAULT_WEIGHT_IGNORED,	   /* all are charged at the default weight */
	FAULT_INNER_NOT_CHARGED,   /* only leaves are charged */
};

/* One scenario: its temper, and which leaf is in service. */
struct workload {
	struct random random;
	enum fault fault;
	u32 serving;
	u32 block_percent;  /* quanta that end by blocking */
	u32 change_percent; /* steps that change the tree or a weight */
	u32 weight_bits;
	u32 quantum_bits;
};

static struct fairness fair;

/* After every call: nothing that happens may break an invariant, or hide from the observer. */
static void observe(const struct workload *w)
{
	if (!w->fault)
		CHECK_INVARIANTS(&tree, &invariants);
	fairness_observe(&fair, &tree);
}

static u32 random_leaf(struct workload *w)
{
	u32 at = AN_ROOT_LEAF + random_below(&w->random, tree.unused - AN_ROOT_LEAF);

	while (node(at)->kind != AN_LEAF)
		at = at + 1 < tree.unused ? at + 1 : AN_ROOT_LEAF;
	return at;
}

static void wake_one(struct workload *w)
{
	u32 leaf = random_leaf(w);
	bool slept = !an_node_runnable(node(leaf));

	an_queue_add(&tree, leaf);
	if (slept && w->fault == FAULT_SLEEPERS_GET_CREDIT)
		node(leaf)->start -= charge_of(100 * MS, node(leaf)->weight);
	observe(w);
}

static void create_one(struct workload *w)
{
	u32 parent = random_leaf(w), leaf;
	bool was_leaf = !node(parent)->own;

	if (tree.unused + 2 > FAIR_NODES && !tree.free_next)
		return;
	leaf = an_class_create(&tree, parent, 0, random_scale(&w->random, w->weight_bits));
	if (!leaf)
		return;
	CHECK(tree.unused <= FAIR_NODES);
	fairness_created(&fair, leaf);
	if (was_leaf)
		fairness_became_inner(&fair, parent, node(parent)->parent);
	observe(w);
}

/* Creates, removes, weighs, or takes a class's queued tasks away. */
static void change_something(struct workload *w)
{
	u32 leaf = random_leaf(w);

	switch (random_below(&w->random, 4)) {
	case 0:
		create_one(w);
		break;
	case 1:
		an_class_remove(&tree, leaf);
		break;
	case 2:
		an_class_set_weight(&tree, leaf, random_scale(&w->random, w->weight_bits));
		break;
	case 3:
		an_queue_correct(&tree, leaf, 0);
		break;
	}
	observe(w);
}

/* an_stop(), as the scheduler with the fault would do it. */
static void stop_faultily(const struct workload *w, u32 leaf, u64 used_ns)
{
	u64 start[FAIR_NODES];

	for (u32 i = 0; i < tree.unused; i++)
		start[i] = node(i)->start;
	an_stop(&tree, leaf, used_ns);
	for (u32 at = leaf; at; at = node(at)->parent) {
		if (w->fault == FAULT_WEIGHT_IGNORED)
			node(at)->start = start[at] + charge_of(used_ns, AN_WEIGHT_DEFAULT);
		if (w->fault == FAULT_INNER_NOT_CHARGED && at != leaf)
			node(at)->start = start[at];
	}
}

static void end_quantum(struct workload *w)
{
	u32 leaf = w->serving;
	u64 used_ns = fair.nodes[leaf].quantum_ns;
	bool removed = node(leaf)->kind == AN_DEAD;

	if (!random_chance(&w->random, w->block_percent))
		an_queue_add(&tree, leaf);
	fairness_stop(&fair, &tree, leaf);
	w->serving = AN_NONE;
	if (w->fault)
		stop_faultily(w, leaf, used_ns);
	else
		an_stop(&tree, leaf, used_ns);
	if (!removed)
		CHECK_EQ(node(leaf)->service_ns, fair.nodes[leaf].service_ns);
	CHECK_EQ(node(AN_ROOT)->service_ns, fair.nodes[AN_ROOT].service_ns);
	observe(w);
}

static void begin_quantum(struct workload *w)
{
	u32 first = an_pick(&tree, 0);

	w->serving = first;
	observe(w);
	if (!first || random_chance(&w->random, 90))
		return;
	an_unpick(&tree, first);
	observe(w);
	w->serving = an_pick(&tree, 0);
	CHECK(w->serving == first || w->fault);
	observe(w);
}

static void step(struct workload *w)
{
	if (random_chance(&w->random, w->change_percent))
		change_something(w);
	if (!w->serving)
		begin_quantum(w);
	if (!w->serving || random_chance(&w->random, 20)) {
		wake_one(w);
		return;
	}
	fairness_serve(&fair, &tree, w->serving, random_scale(&w->random, w->quantum_bits));
	observe(w);
	if (random_chance(&w->random, 70))
		end_quantum(w);
}

static void run_scenario(u64 seed, enum fault fault)
{
	struct workload w = {.random = {seed}, .fault = fault};
	u32 classes;

	test_scenario(seed);
	memset(fair.nodes, 0, sizeof(fair.nodes));
	memset(fair.pairs, 0, sizeof(fair.pairs));
	w.block_percent = random_below(&w.random, 60);
	w.change_percent = random_below(&w.random, 2) * random_below(&w.random, 20);
	w.weight_bits = random_below(&w.random, 14);
	w.quantum_bits = 1 + random_below(&w.random, 24);
	fresh_tree(&tree, &invariants, QUANTUM_NS, 1);
	classes = 1 + random_below(&w.random, 12);
	while (classes--)
		create_one(&w);
	for (u32 i = 0; i < STEPS; i++)
		step(&w);
}

TEST(fairness_bound_over_random_trees)
{
	memset(&fair, 0, sizeof(fair));
	for (u64 i = 0; i < SCENARIOS; i++) {
		run_scenario(test_seed() + i, FAULT_NONE);
		CHECK_EQ(fair.violations, 0);
	}
	CHECK(fair.worst_permille > 500); /* or nothing has been tried */
	test_remark("fairness: worst %u.%03u of the bound in %llu intervals",
		    fair.worst_permille / 1000, fair.worst_permille % 1000,
		    (unsigned long long)fair.intervals);
}

static void check_caught(enum fault fault)
{
	u32 caught = 0;

	for (u64 i = 0; i < 100; i++) {
		memset(&fair, 0, sizeof(fair));
		run_scenario(test_seed() + i, fault);
		caught += fair.violations > 0;
	}
	CHECK(caught >= 10);
}

TEST(credit_for_sleepers_is_caught)
{
	check_caught(FAULT_SLEEPERS_GET_CREDIT);
}

TEST(ignored_weights_are_caught)
{
	check_caught(FAULT_WEIGHT_IGNORED);
}

TEST(uncharged_inner_nodes_are_caught)
{
	check_caught(FAULT_INNER_NOT_CHARGED);
}
