// SPDX-License-Identifier: GPL-2.0
/* The calls that shape the tree: create, remove, set weight; alone and while tasks are served. */
#include "fixture.h"

TEST(an_empty_tree)
{
	begin(4 * MS, 1);
	CHECK_EQ(tree.classes, 1);
	CHECK_EQ(pick(), AN_NONE);
	CHECK_EQ(an_class_node(&tree, AN_ROOT_LEAF), AN_ROOT);
	add(AN_ROOT_LEAF);
	CHECK_EQ(pick(), AN_ROOT_LEAF);
	stop(AN_ROOT_LEAF, 1);
	CHECK_EQ(pick(), AN_NONE);
}

TEST(a_class_is_alone_while_no_other_wants_or_has_a_cpu)
{
	u32 a, b;

	begin(4 * MS, 2);
	a = create(AN_ROOT_LEAF, 100);
	b = create(a, 100);
	add(AN_ROOT_LEAF);
	CHECK(an_leaf_is_alone(&tree, AN_ROOT_LEAF));
	add(b);
	CHECK(!an_leaf_is_alone(&tree, AN_ROOT_LEAF));
	CHECK(!an_leaf_is_alone(&tree, b));
	CHECK_EQ(pick(), AN_ROOT_LEAF);
	CHECK(!an_leaf_is_alone(&tree, b)); /* it is served */
	CHECK(!an_leaf_is_alone(&tree, AN_ROOT_LEAF));
	stop(AN_ROOT_LEAF, 1);
	CHECK(an_leaf_is_alone(&tree, b));
	CHECK_EQ(pick(), b);
	CHECK(an_leaf_is_alone(&tree, b));
}

TEST(bad_calls_are_refused)
{
	u32 a, b;

	begin(4 * MS, 1);
	CHECK_EQ(an_class_create(&tree, AN_NONE, 0, 100), AN_NONE);
	CHECK_EQ(an_class_create(&tree, AN_ROOT, 0, 100), AN_NONE);
	CHECK_EQ(an_class_remove(&tree, AN_ROOT), -1);
	CHECK_EQ(an_class_remove(&tree, AN_ROOT_LEAF), -1);
	CHECK_EQ(an_class_remove(&tree, 100), -1);
	a = create(AN_ROOT_LEAF, 100);
	b = create(a, 100);
	CHECK_EQ(an_class_remove(&tree, a), -1); /* has a child */
	add(b);
	CHECK_EQ(an_class_remove(&tree, b), -1); /* holds a task */
	an_queue_add(&tree, AN_ROOT);		 /* holds no tasks itself */
	an_queue_correct(&tree, AN_ROOT, 0);
	CHECK_EQ(tree.classes, 3);
	CHECK_INVARIANTS(&tree, &invariants);
}

TEST(weights_are_clamped)
{
	u32 a, b;

	begin(4 * MS, 1);
	a = create(AN_ROOT_LEAF, 0);
	b = create(AN_ROOT_LEAF, 1000000);
	CHECK_EQ(node(a)->weight, AN_WEIGHT_MIN);
	CHECK_EQ(node(b)->weight, AN_WEIGHT_MAX);
	an_class_set_weight(&tree, a, 77);
	CHECK_EQ(node(a)->weight, 77);
	CHECK_EQ(node(a)->step, (4 * MS << AN_TAG_SHIFT) / 77);
}

/* The class keeps its index, its place among its siblings and its tasks. */
TEST(a_leaf_becomes_inner_while_queued_and_served)
{
	u32 a, b, inner, child;

	begin(4 * MS, 2);
	a = create(AN_ROOT_LEAF, 200);
	b = create(AN_ROOT_LEAF, 100);
	add(a);
	add(a);
	add(b);
	CHECK_EQ(pick(), a);
	child = create(a, 300);
	inner = an_class_node(&tree, a);
	CHECK(inner != a);
	CHECK_EQ(node(inner)->weight, 200);
	CHECK_EQ(node(inner)->serving, 1);
	CHECK_EQ(node(inner)->ready, 1);
	CHECK_EQ(node(a)->queued, 1);
	CHECK_EQ(node(a)->own, 1);
	CHECK_EQ(node(child)->parent, inner);
	stop(a, 6 * MS);
	CHECK_EQ(node(inner)->service_ns, 6 * MS);
	CHECK_EQ(node(inner)->start, (6 * MS << AN_TAG_SHIFT) / 200);
	CHECK_EQ(node(a)->start, (6 * MS << AN_TAG_SHIFT) / AN_WEIGHT_DEFAULT);
	CHECK_EQ(pick(), b);
	CHECK_EQ(pick(), a);
	stop(a, 1);
	stop(b, 1);
}

/* Only the inner node stands for a cgroup: a reader that walks the nodes must not meet it twice. */
TEST(an_own_leaf_has_no_cgroup)
{
	u32 a, inner;

	begin(4 * MS, 1);
	a = an_class_create(&tree, AN_ROOT_LEAF, 4711, 100);
	CHECK_EQ(*an_cgroup_id(&tree, a), 4711);
	create(a, 100);
	inner = an_class_node(&tree, a);
	CHECK_EQ(*an_cgroup_id(&tree, inner), 4711);
	CHECK_EQ(*an_cgroup_id(&tree, a), 0);
}

/* An inner class's tasks compete with its children, as one more child of the default weight. */
TEST(an_own_leaf_competes)
{
	u32 served[16] = {0};
	u32 a, child;

	begin(4 * MS, 1);
	a = create(AN_ROOT_LEAF, 100);
	child = create(a, 300);
	add(a);
	add(child);
	for (u32 i = 0; i < 400; i++) {
		u32 leaf = pick();

		served[leaf]++;
		requeue(leaf, 4 * MS);
	}
	CHECK_EQ(served[a], 100);
	CHECK_EQ(served[child], 300);
}

TEST(an_inner_class_without_children_goes_as_a_whole)
{
	u32 a, child, inner, free_before;

	begin(4 * MS, 1);
	a = create(AN_ROOT_LEAF, 100);
	free_before = tree.unused;
	child = create(a, 100);
	inner = an_class_node(&tree, a);
	CHECK_EQ(an_class_remove(&tree, child), 0);
	CHECK_INVARIANTS(&tree, &invariants);
	CHECK_EQ(an_class_node(&tree, a), inner);
	CHECK_EQ(an_class_remove(&tree, a), 0);
	CHECK_INVARIANTS(&tree, &invariants);
	CHECK_EQ(node(inner)->kind, AN_FREE);
	CHECK_EQ(node(AN_ROOT)->children, 1);
	CHECK_EQ(tree.classes, 1);
	CHECK_EQ(tree.unused, free_before + 2);
}

/* A removed slot is used again, and whoever still holds the old reference can tell. */
TEST(indices_are_reused_under_a_new_generation)
{
	u32 a, b, generation;

	begin(4 * MS, 1);
	a = create(AN_ROOT_LEAF, 100);
	generation = node(a)->generation;
	CHECK_EQ(an_class_remove(&tree, a), 0);
	CHECK(node(a)->generation != generation);
	b = create(AN_ROOT_LEAF, 100);
	CHECK_EQ(b, a);
	CHECK(node(a)->generation != generation);
	CHECK_EQ(node(b)->service_ns, 0);
	CHECK_EQ(node(b)->start, node(AN_ROOT)->vtime);
}

/* Removed while served: gone from the tree at once, from the array when the CPU stops. */
TEST(removal_of_a_class_being_served)
{
	u32 a, b, generation;

	begin(4 * MS, 2);
	a = create(AN_ROOT_LEAF, 100);
	add(a);
	add(a);
	CHECK_EQ(pick(), a);
	CHECK_EQ(pick(), a);
	generation = node(a)->generation;
	CHECK_EQ(an_class_remove(&tree, a), 0);
	CHECK_INVARIANTS(&tree, &invariants);
	CHECK_EQ(node(a)->kind, AN_DEAD);
	CHECK_EQ(tree.classes, 1);
	CHECK_EQ(an_class_remove(&tree, a), -1);
	CHECK_EQ(an_class_create(&tree, a, 0, 100), AN_NONE);
	an_queue_add(&tree, a);
	CHECK_EQ(node(a)->queued, 0);
	b = create(AN_ROOT_LEAF, 100);
	CHECK(b != a);
	stop(a, 4 * MS);
	CHECK_EQ(node(a)->kind, AN_DEAD);
	stop(a, 4 * MS);
	CHECK_EQ(node(a)->kind, AN_FREE);
	CHECK(node(a)->generation != generation);
	CHECK_EQ(node(AN_ROOT)->serving, 0);
	CHECK_EQ(node(AN_ROOT)->service_ns, 8 * MS);
}

/* The whole branch goes while its last leaf is served; the inner node lives as long as that. */
TEST(removal_of_a_branch_being_served)
{
	u32 a, child, inner;

	begin(4 * MS, 1);
	a = create(AN_ROOT_LEAF, 100);
	child = create(a, 100);
	inner = an_class_node(&tree, a);
	add(child);
	CHECK_EQ(pick(), child);
	CHECK_EQ(an_class_remove(&tree, child), 0);
	CHECK_EQ(an_class_remove(&tree, a), 0);
	CHECK_INVARIANTS(&tree, &invariants);
	CHECK_EQ(node(a)->kind, AN_FREE);
	CHECK_EQ(node(inner)->kind, AN_DEAD);
	an_unpick(&tree, child);
	CHECK_INVARIANTS(&tree, &invariants);
	CHECK_EQ(node(child)->kind, AN_FREE);
	CHECK_EQ(node(inner)->kind, AN_FREE);
}

/* The quantum in service is charged at the new weight; tags given before stay. */
TEST(weights_change_live)
{
	u32 served[16] = {0};
	u32 a, b;

	begin(4 * MS, 1);
	a = create(AN_ROOT_LEAF, 100);
	b = create(AN_ROOT_LEAF, 100);
	add(a);
	add(b);
	CHECK_EQ(pick(), a);
	an_class_set_weight(&tree, a, 400);
	CHECK_INVARIANTS(&tree, &invariants);
	requeue(a, 4 * MS);
	CHECK_EQ(node(a)->start, (4 * MS << AN_TAG_SHIFT) / 400);
	for (u32 i = 0; i < 500; i++) {
		u32 leaf = pick();

		served[leaf]++;
		requeue(leaf, 4 * MS);
	}
	CHECK(served[a] >= 399 && served[a] <= 401);
	CHECK(served[b] >= 99 && served[b] <= 101);
}

/* 3 beside 1024, as under the kernel's own scheduler; as whole classes, too. */
TEST(an_idle_class_gets_what_is_left)
{
	u64 served_ns[16] = {0};
	u32 a, b, c;

	begin(4 * MS, 1);
	a = create(AN_ROOT_LEAF, 100);
	b = create(AN_ROOT_LEAF, 100);
	an_class_set_idle(&tree, b);
	c = create(b, 100);
	add(a);
	add(c);
	for (u32 i = 0; i < 40000; i++) {
		u32 leaf = pick();

		served_ns[leaf] += 4 * MS;
		requeue(leaf, 4 * MS);
	}
	CHECK(served_ns[c] * 1024 > served_ns[a] * 29 / 10);
	CHECK(served_ns[c] * 1024 < served_ns[a] * 31 / 10);
	/* Whoever wakes takes its place. */
	CHECK_EQ(pick(), a);
	stop(a, 4 * MS);
	CHECK_EQ(pick(), c);
	add(a);
	CHECK_EQ(an_preempt_after_ns(&tree, a, c), 0);
	stop(c, 4 * MS);
	/* With a weight again it owes nobody what it has had as an idle one. */
	add(c);
	an_class_set_weight(&tree, b, 100);
	CHECK_INVARIANTS(&tree, &invariants);
	CHECK_EQ(node(an_class_node(&tree, b))->weight, 100);
	served_ns[a] = served_ns[c] = 0;
	for (u32 i = 0; i < 20; i++) {
		u32 leaf = pick();

		served_ns[leaf] += 4 * MS;
		requeue(leaf, 4 * MS);
	}
	CHECK(served_ns[c] >= 9 * 4 * MS && served_ns[a] >= 9 * 4 * MS);
}

/* A failed creation leaves nothing behind, not even the inner node it would have needed. */
TEST(the_array_fills_up)
{
	u32 last = AN_NONE, next, classes;

	begin(4 * MS, 1);
	while ((next = an_class_create(&tree, AN_ROOT_LEAF, 0, 100)))
		last = next;
	CHECK_EQ(tree.classes, AN_MAX_NODES - AN_ROOT_LEAF);
	CHECK_INVARIANTS(&tree, &invariants);
	CHECK_EQ(an_class_remove(&tree, last), 0);
	classes = tree.classes;
	CHECK_EQ(an_class_create(&tree, last - 1, 0, 100), AN_NONE); /* needs two */
	CHECK_EQ(tree.classes, classes);
	CHECK_EQ(node(last - 1)->own, 0);
	CHECK_INVARIANTS(&tree, &invariants);
	CHECK_EQ(create(AN_ROOT_LEAF, 100), last);
}

/* However a class came to lie at its depth, it can have children or cannot: any number of them. */
TEST(the_depth_limit)
{
	u32 path[AN_MAX_DEPTH + 2] = {AN_ROOT_LEAF}, depth = 0, next;

	begin(4 * MS, 1);
	while ((next = an_class_create(&tree, path[depth], 0, 100))) {
		CHECK(depth < AN_MAX_DEPTH);
		path[++depth] = next;
		CHECK_INVARIANTS(&tree, &invariants);
	}
	CHECK(depth >= AN_MAX_DEPTH - 1);
	CHECK(an_class_create(&tree, path[depth - 1], 0, 100) != AN_NONE);
	add(path[depth]);
	CHECK_EQ(pick(), path[depth]);
	stop(path[depth], 4 * MS);
}
