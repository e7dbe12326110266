// SPDX-License-Identifier: GPL-2.0
/* The order of ready children: who comes first is who a search through all of them finds. */
#include "fixture.h"
#include "random.h"

#define CPUS 4
#define STEPS 20000

static bool is_before(u32 index, u32 other)
{
	s64 ahead = an_tag_diff(an_expected_start(node(index)), an_expected_start(node(other)));

	return ahead < 0 || (ahead == 0 && index < other);
}

/* The first ready child that is usable by this CPU, 0: by anybody; or AN_NONE. */
static u32 first_of_all(u32 parent, u64 by)
{
	u32 first = AN_NONE;

	for (u32 i = AN_ROOT + 1; i < tree.unused; i++) {
		const struct an_node *n = node(i);

		if (n->ready && n->counted_by == parent && an_node_usable(n, by) &&
		    (!first || is_before(i, first)))
			first = i;
	}
	return first;
}

static void check_orders(void)
{
	an_settle(&tree);
	CHECK_INVARIANTS(&tree, &invariants);
	for (u32 i = AN_ROOT; i < tree.unused; i++) {
		if (node(i)->kind != AN_INNER)
			continue;
		CHECK_EQ(an_order_first(&tree, i), first_of_all(i, 0));
		if (!node(i)->place.top)
			continue;
		for (u32 cpu = 0; cpu < CPUS; cpu++)
			CHECK_EQ(an_order_usable(&tree, i, 1ULL << cpu),
				 first_of_all(i, 1ULL << cpu));
	}
}

static u32 random_leaf(struct random *r)
{
	u32 at;

	do
		at = AN_ROOT_LEAF + random_below(r, tree.unused - AN_ROOT_LEAF);
	while (node(at)->kind != AN_LEAF);
	return at;
}

/* The class of this leaf has used up its quota, or has something again. */
static void throttle(u32 index, u32 leaf)
{
	if (index == AN_ROOT)
		return;
	node(index)->bandwidth = leaf;
	if (an_is_held(node(index)))
		an_let_go(&tree, index);
	else
		an_hold(&tree, index);
}

/* A call on the tree, most of them changes of what its orders depend on. */
static void random_call(struct random *r, u32 *serving)
{
	u32 cpu = random_below(r, CPUS), leaf = random_leaf(r);

	switch (random_below(r, 14)) {
	case 0:
		if (tree.classes < 100)
			an_class_create(&tree, leaf, 0, random_scale(r, 13));
		break;
	case 1:
		if (random_chance(r, 20))
			an_class_remove(&tree, leaf);
		break;
	case 2:
		an_class_set_weight(&tree, leaf, random_scale(r, 13));
		break;
	case 3:
		an_queue_withdraw(&tree, leaf);
		break;
	case 4:
		an_unusable_by(&tree, leaf, 1ULL << cpu);
		break;
	case 5:
		throttle(an_class_node(&tree, leaf), leaf);
		break;
	case 6:
		an_debt_limit(&tree, leaf);
		break;
	case 7:
	case 8:
	case 9:
		an_usable_by(&tree, leaf, random_below(r, 1 << CPUS));
		an_queue_add(&tree, leaf);
		break;
	default:
		if (!serving[cpu]) {
			serving[cpu] = an_pick(&tree, 1ULL << cpu);
			break;
		}
		if (random_chance(r, 70))
			an_queue_add(&tree, serving[cpu]);
		an_stop(&tree, serving[cpu], random_below(r, 8 * MS));
		serving[cpu] = AN_NONE;
	}
}

TEST(the_order_finds_whom_a_search_finds)
{
	u32 serving[CPUS] = {};
	struct random r = {test_seed()};

	test_scenario(test_seed());
	begin(4 * MS, CPUS);
	for (u32 i = 0; i < STEPS; i++) {
		random_call(&r, serving);
		CHECK_INVARIANTS(&tree, &invariants);
		if (random_chance(&r, 20))
			check_orders();
	}
}

/* A class gets a child, and its leaf stands at the same place as the node that takes that. */
TEST(a_leaf_leaves_the_order_below_the_node_that_takes_its_place)
{
	u32 leaf[30];

	begin(4 * MS, 1);
	for (u32 i = 0; i < 30; i++) {
		leaf[i] = create(AN_ROOT_LEAF, 100);
		add(leaf[i]);
	}
	check_orders();
	for (u32 i = 0; i < 30; i++) {
		create(leaf[i], 100);
		check_orders();
	}
}

/* Children of an inner node that is gone are not compared with those of the next one in its slot:
 * tags of the two may be any distance apart. */
TEST(a_slot_forgets_the_order_of_its_children)
{
	u32 other, leaf, child, inner;

	begin(4 * MS, 1);
	other = create(AN_ROOT_LEAF, 100);
	leaf = create(AN_ROOT_LEAF, 100);
	child = create(leaf, 100);
	inner = an_class_node(&tree, leaf);
	node(inner)->vtime = (1ULL << 63) + 1;
	node(child)->start = (1ULL << 63) + 1;
	an_queue_add(&tree, child);
	an_settle(&tree);
	CHECK_EQ(node(inner)->place.top, child);
	an_queue_correct(&tree, child, 0);
	CHECK_EQ(an_class_remove(&tree, child), 0);
	CHECK_EQ(an_class_remove(&tree, leaf), 0);
	an_node_prefer(&tree, inner);
	an_node_prefer(&tree, leaf);
	CHECK_EQ(create(other, 100), leaf);
	CHECK_EQ(an_class_node(&tree, other), inner);
	node(leaf)->start = 2;
	add(leaf);
	add(other);
	check_orders();
}

static u32 depth(u32 at)
{
	u32 before, after;

	if (!at)
		return 0;
	before = depth(node(at)->place.before);
	after = depth(node(at)->place.after);
	return 1 + (before > after ? before : after);
}

/* 4,000 siblings in the order of their indices, in the reverse one, in steps and at random: a
 * search tree into which keys come at random is some 30 deep. */
TEST(an_order_is_shallow)
{
	struct random r = {test_seed()};
	u32 leaf[4000], deepest = 0;

	begin(4 * MS, CPUS);
	for (u32 i = 0; i < 4000; i++) {
		leaf[i] = an_class_create(&tree, AN_ROOT_LEAF, 0, 100);
		an_queue_add(&tree, leaf[i]);
	}
	for (u32 pattern = 0; pattern < 10; pattern++) {
		u32 deep;

		for (u32 i = 0; i < 4000; i++) {
			u64 start[] = {i, 4000 - i, i % 100, i % 64 * 64, random_below(&r, 4000)};

			node(leaf[i])->start = start[pattern % 5] * MS;
			an_unsettle(&tree, leaf[i]);
		}
		an_settle(&tree);
		deep = depth(node(AN_ROOT)->place.top);
		deepest = deep > deepest ? deep : deepest;
	}
	CHECK_INVARIANTS(&tree, &invariants);
	test_remark("the order of 4,000 siblings is %u deep", deepest);
	CHECK(deepest <= 40);
}
