// SPDX-License-Identifier: GPL-2.0
/* The calls that schedule: pick, unpick, usable nodes, corrections, preemption, large trees. */
#include "fixture.h"

#define UNIT_NS(ns, weight) (((u64)(ns) << AN_TAG_SHIFT) / (weight))

TEST(ties_go_to_the_lower_index)
{
	u32 leaves[8];

	begin(4 * MS, 8);
	for (u32 i = 0; i < 8; i++)
		leaves[i] = create(AN_ROOT_LEAF, 100);
	for (u32 i = 8; i--;)
		add(leaves[i]);
	for (u32 i = 0; i < 8; i++)
		CHECK_EQ(pick(), leaves[i]);
	CHECK_EQ(pick(), AN_NONE);
	for (u32 i = 0; i < 8; i++)
		stop(leaves[i], 4 * MS);
}

/* A picked class is charged its expected quantum at once, so that two CPUs pick two classes. */
TEST(a_pick_is_charged_at_once)
{
	u32 a, b;

	begin(4 * MS, 4);
	a = create(AN_ROOT_LEAF, 300);
	b = create(AN_ROOT_LEAF, 100);
	for (u32 i = 0; i < 4; i++) {
		add(a);
		add(b);
	}
	CHECK_EQ(pick(), a);
	CHECK_EQ(an_expected_start(node(a)), UNIT_NS(4 * MS, 300));
	CHECK_EQ(pick(), b);
	CHECK_EQ(pick(), a);
	CHECK_EQ(pick(), a);
	CHECK_EQ(node(AN_ROOT)->serving, 4);
	/* What was expected is put right by what was used. */
	stop(a, 1 * MS);
	CHECK_EQ(node(a)->start, UNIT_NS(1 * MS, 300));
	stop(a, 4 * MS);
	stop(a, 4 * MS);
	stop(b, 4 * MS);
	CHECK_EQ(node(AN_ROOT)->service_ns, 13 * MS);
}

#define ONE 1ULL
#define OTHER 2ULL
#define BOTH (ONE | OTHER)

static void add_for(u32 leaf, u64 by)
{
	an_usable_by(&tree, leaf, by);
	add(leaf);
}

/* Nothing that the CPU may run has been found. */
static void gives_back(u32 leaf, u64 by)
{
	an_unpick(&tree, leaf);
	an_unusable_by(&tree, leaf, by);
	CHECK_INVARIANTS(&tree, &invariants);
}

TEST(a_cpu_passes_over_what_it_may_not_run)
{
	u32 a, b, inner_leaf, inner_child;

	begin(4 * MS, 3);
	a = create(AN_ROOT_LEAF, 100);
	b = create(AN_ROOT_LEAF, 100);
	inner_leaf = create(AN_ROOT_LEAF, 10000);
	inner_child = create(inner_leaf, 100);
	add_for(a, OTHER);
	add_for(b, BOTH);
	add_for(inner_leaf, OTHER);
	add_for(inner_child, ONE);
	CHECK_EQ(pick_by(ONE), b);
	/* One of the inner class's two leaves is left. */
	CHECK_EQ(pick_by(ONE), inner_child);
	CHECK_EQ(pick_by(ONE), AN_NONE);
	/* An inner node of whose leaves none is usable is not entered again. */
	CHECK(!an_node_usable(node(an_class_node(&tree, inner_leaf)), ONE));
	add_for(inner_child, OTHER);
	CHECK_EQ(pick_by(ONE), inner_child); /* it was usable, and nobody has said otherwise */
	gives_back(inner_child, ONE);
	CHECK_EQ(pick_by(ONE), AN_NONE);
	CHECK_EQ(pick_by(OTHER), a);
	stop(a, 4 * MS);
	stop(b, 4 * MS);
	stop(inner_child, 4 * MS);
	/* It is again, when something comes that the CPU may run. */
	add_for(inner_leaf, ONE);
	CHECK_EQ(pick_by(ONE), inner_leaf);
	stop(inner_leaf, 4 * MS);
}

/* However many hold nothing for a CPU, each is looked at once, and none hides what it may run. */
TEST(hundreds_of_classes_of_other_cpus)
{
	u32 leaf[700], own, picks = 0, got;

	begin(4 * MS, 2);
	for (u32 i = 0; i < 700; i++) {
		leaf[i] = create(i % 7 ? leaf[i - i % 7] : AN_ROOT_LEAF, 100);
		add_for(leaf[i], BOTH);
	}
	own = create(AN_ROOT_LEAF, 1);
	add_for(own, ONE);
	while ((got = pick_by(ONE)) != own && ++picks <= 700)
		gives_back(got, ONE);
	CHECK_EQ(picks, 700);
	for (u32 i = 0; i < 100; i++) {
		add_for(own, ONE);
		stop(own, 4 * MS);
		CHECK_EQ(pick_by(ONE), own);
	}
	stop(own, 4 * MS);
}

/* Leaves that hold nothing, or are gone, hide nobody. */
TEST(what_is_not_ready_hides_nothing)
{
	u32 parent, a, b;

	begin(4 * MS, 1);
	parent = create(AN_ROOT_LEAF, 100);
	a = create(parent, 100);
	b = create(parent, 100);
	add_for(b, ONE);
	CHECK_EQ(pick_by(ONE), b);
	stop(b, 1);
	CHECK_EQ(an_class_remove(&tree, a), 0);
	add_for(b, ONE);
	CHECK_EQ(pick_by(ONE), b);
	stop(b, 1);
}

/* The pick found nothing to run: as if it had not been. */
TEST(unpick_restores)
{
	u32 parent, a;
	u64 start;

	begin(4 * MS, 2);
	parent = create(AN_ROOT_LEAF, 100);
	a = create(parent, 100);
	add(a);
	CHECK_EQ(pick(), a);
	requeue(a, 3 * MS);
	start = node(a)->start;
	CHECK_EQ(pick(), a);
	CHECK_EQ(node(a)->queued, 0);
	an_unpick(&tree, a);
	CHECK_INVARIANTS(&tree, &invariants);
	CHECK_EQ(node(a)->start, start);
	CHECK_EQ(node(a)->queued, 1);
	CHECK_EQ(node(a)->serving, 0);
	CHECK_EQ(node(AN_ROOT)->serving, 0);
	CHECK_EQ(node(a)->service_ns, 3 * MS);
}

TEST(corrections_only_lower)
{
	u32 parent, a;

	begin(4 * MS, 1);
	parent = create(AN_ROOT_LEAF, 100);
	a = create(parent, 100);
	add(a);
	add(a);
	add(a);
	an_queue_correct(&tree, a, 5);
	CHECK_EQ(node(a)->queued, 3);
	an_queue_correct(&tree, a, 1);
	CHECK_INVARIANTS(&tree, &invariants);
	CHECK_EQ(node(a)->queued, 1);
	an_queue_correct(&tree, a, 0);
	CHECK_INVARIANTS(&tree, &invariants);
	CHECK_EQ(node(AN_ROOT)->ready, 0);
	CHECK_EQ(pick(), AN_NONE);
}

TEST(withdrawals_stop_at_none)
{
	u32 a;

	begin(4 * MS, 1);
	a = create(AN_ROOT_LEAF, 100);
	add(a);
	add(a);
	an_queue_withdraw(&tree, a);
	CHECK_EQ(node(a)->queued, 1);
	an_queue_withdraw(&tree, a);
	an_queue_withdraw(&tree, a);
	CHECK_INVARIANTS(&tree, &invariants);
	CHECK_EQ(node(a)->queued, 0);
	CHECK_EQ(pick(), AN_NONE);
}

/* A quantum is the class's: a classmate takes the place of a task that blocks. */
TEST(a_quantum_goes_on_with_a_classmate)
{
	u32 a, b;

	begin(4 * MS, 1);
	a = create(AN_ROOT_LEAF, 100);
	b = create(AN_ROOT_LEAF, 100);
	add(a);
	add(b);
	CHECK_EQ(pick(), a);
	CHECK(!an_continue(&tree, a));
	add(a);
	CHECK(an_continue(&tree, a));
	CHECK_INVARIANTS(&tree, &invariants);
	CHECK_EQ(node(a)->queued, 0);
	CHECK_EQ(node(a)->serving, 1);
	stop(a, 4 * MS);
	CHECK_EQ(node(a)->service_ns, 4 * MS);
	CHECK_EQ(pick(), b);
	stop(b, 4 * MS);
	CHECK_EQ(pick(), AN_NONE);
}

/* A waker of the class in service on the only CPU competes as soon as the quantum is over. */
TEST(wakers_of_the_class_in_service)
{
	u32 a, b;

	begin(4 * MS, 1);
	a = create(AN_ROOT_LEAF, 300);
	b = create(AN_ROOT_LEAF, 100);
	add(a);
	add(b);
	CHECK_EQ(pick(), a);
	add(a);
	add(a);
	stop(a, 4 * MS);
	CHECK_EQ(node(a)->ready, 1);
	CHECK_EQ(pick(), b);
	stop(b, 4 * MS);
	CHECK_EQ(pick(), a);
	stop(a, 4 * MS);
	CHECK_EQ(pick(), a);
	stop(a, 4 * MS);
	CHECK_EQ(pick(), AN_NONE);
}

/* A CPU that took a task by itself is charged like any other, and wakes the class first. */
TEST(service_without_a_pick)
{
	u32 a, b;

	begin(4 * MS, 2);
	a = create(AN_ROOT_LEAF, 100);
	b = create(AN_ROOT_LEAF, 100);
	add(a);
	for (u32 i = 0; i < 10; i++) {
		CHECK_EQ(pick(), a);
		requeue(a, 4 * MS);
	}
	CHECK_EQ(an_serve_unpicked(&tree, b), b);
	CHECK_INVARIANTS(&tree, &invariants);
	CHECK_EQ(node(b)->start, node(AN_ROOT)->vtime);
	CHECK_EQ(node(b)->serving, 1);
	stop(b, 4 * MS);
	CHECK_EQ(node(b)->start, node(AN_ROOT)->vtime + UNIT_NS(4 * MS, 100));
	CHECK_EQ(an_serve_unpicked(&tree, AN_ROOT), AN_NONE);
	CHECK_EQ(an_class_remove(&tree, b), 0);
	CHECK_EQ(an_serve_unpicked(&tree, b), AN_NONE);
	CHECK_EQ(node(AN_ROOT)->serving, 0);
	CHECK_INVARIANTS(&tree, &invariants);
}

/*
 * A class of an eleventh has a contract for a fifth of the CPU: what is in it beside the contract
 * has an eighth of the class's share, and the class no more than that above its contract.
 */
static void check_the_rest(u32 picks_between, bool loses_ties)
{
	const u32 all = 2000, quanta = 1 + AN_DEBT_QUANTA * 10;
	u32 owing, other, picks = 0;

	begin(4 * MS, 1);
	if (loses_ties)
		other = create(AN_ROOT_LEAF, 100);
	owing = create(AN_ROOT_LEAF, 10);
	if (!loses_ties)
		other = create(AN_ROOT_LEAF, 100);
	add(owing);
	add(other);
	for (u32 i = 0; i < all; i++) {
		u32 leaf;

		if (i % picks_between == 0) {
			an_serve_unpicked(&tree, owing);
			stop(owing, picks_between * MS);
			an_debt_limit(&tree, owing);
		}
		leaf = pick();
		picks += leaf == owing;
		requeue(leaf, 4 * MS);
		CHECK_INVARIANTS(&tree, &invariants);
	}
	/*
	 * One quantum of its own, and eight times those that the other has for each of it. The
	 * contract's turn may come between; or does not, and its share gives it one in eleven.
	 */
	CHECK(picks >= all / (quanta + picks_between));
	CHECK(picks <= all * (1 + picks_between / 11) / quanta + 2);
}

TEST(contracts_of_more_than_a_share_leave_the_rest_of_the_class_a_part)
{
	for (u32 picks_between = 1; picks_between <= 2 * AN_DEBT_QUANTA; picks_between++) {
		check_the_rest(picks_between, false);
		check_the_rest(picks_between, true);
	}
}

/* Between siblings: as long as the one in service needs to reach the waker's start tag. */
TEST(preemption_between_siblings)
{
	u32 a, b;

	begin(4 * MS, 1);
	a = create(AN_ROOT_LEAF, 100);
	b = create(AN_ROOT_LEAF, 300);
	add(a);
	add(b);
	CHECK_EQ(pick(), a);
	stop(a, 3 * MS);
	CHECK_EQ(pick(), b);
	/* a's tag is 3 ms / 100 ahead, which b reaches after 9 ms. */
	add(a);
	CHECK_EQ(an_preempt_after_ns(&tree, a, b), 9 * MS);
	/* The other way round the waker is behind: at once. */
	requeue(b, 12 * MS);
	CHECK_EQ(pick(), a);
	an_queue_correct(&tree, b, 0);
	requeue(a, 30 * MS);
	CHECK_EQ(pick(), a);
	CHECK_EQ(an_preempt_after_ns(&tree, b, a), 0);
	stop(a, 1);
}

/* Of two leaves of different depth the branches are compared where the paths part. */
TEST(preemption_where_the_paths_part)
{
	u32 shallow, top, middle, deep, cousin;

	begin(4 * MS, 1);
	shallow = create(AN_ROOT_LEAF, 100);
	top = create(AN_ROOT_LEAF, 200);
	middle = create(top, 100);
	deep = create(middle, 100);
	cousin = create(top, 100);
	add(shallow);
	add(deep);
	CHECK_EQ(pick(), shallow);
	stop(shallow, 5 * MS);
	CHECK_EQ(pick(), deep);
	add(shallow);
	CHECK_EQ(an_preempt_after_ns(&tree, shallow, deep), 10 * MS);
	/* Below top it is middle against cousin, both at v. */
	add(cousin);
	CHECK_EQ(an_preempt_after_ns(&tree, cousin, deep), 0);
	/* The tasks of an inner class itself are a leaf beside its children. */
	add(top);
	CHECK_EQ(an_preempt_after_ns(&tree, top, deep), 0);
	CHECK_EQ(an_preempt_after_ns(&tree, middle, deep), 0);
	an_queue_correct(&tree, top, 0);
	requeue(deep, 4 * MS);
	CHECK_EQ(pick(), cousin);
	CHECK_EQ(an_preempt_after_ns(&tree, deep, cousin), 4 * MS);
	stop(cousin, 1);
}

/* 1,024 siblings of three weights: everybody within one quantum of its share. */
TEST(a_thousand_siblings)
{
	static u32 served[AN_MAX_NODES];
	u32 leaves[1024], rounds = 20;

	memset(served, 0, sizeof(served));
	begin(4 * MS, 1);
	for (u32 i = 0; i < 1024; i++)
		leaves[i] = create(AN_ROOT_LEAF, 1 + i % 3);
	for (u32 i = 0; i < 1024; i++)
		add(leaves[i]);
	/* 342 + 2 * 341 + 3 * 341 quanta make a round. */
	for (u32 i = 0; i < 2047 * rounds; i++) {
		u32 leaf = an_pick(&tree, 0);

		served[leaf]++;
		an_queue_add(&tree, leaf);
		an_stop(&tree, leaf, 4 * MS);
	}
	CHECK_INVARIANTS(&tree, &invariants);
	for (u32 i = 0; i < 1024; i++)
		CHECK_EQ(served[leaves[i]], rounds * (1 + i % 3));
}

/* A comb 20 deep, a busy leaf on every level: each level halves what is left. */
TEST(a_deep_tree)
{
	u32 levels = 20, quanta = 1 << 20, branch = AN_ROOT_LEAF;
	u32 leaves[20], served[64] = {0};

	begin(4 * MS, 1);
	for (u32 i = 0; i < levels; i++) {
		leaves[i] = create(branch, 100);
		branch = create(branch, 100);
	}
	CHECK_EQ(node(branch)->depth, levels);
	for (u32 i = 0; i < levels; i++)
		add(leaves[i]);
	for (u32 i = 0; i < quanta; i++) {
		u32 leaf = an_pick(&tree, 0);

		served[leaf]++;
		an_queue_add(&tree, leaf);
		an_stop(&tree, leaf, 4 * MS);
	}
	CHECK_INVARIANTS(&tree, &invariants);
	for (u32 i = 0; i + 1 < levels; i++)
		CHECK_EQ(served[leaves[i]], quanta >> (i + 1));
}

/* Of three CPUs two serve others, and v goes on. A class that is behind stays behind. */
TEST(a_class_that_makes_way_has_not_slept)
{
	u32 behind;
	u64 start;

	begin(4 * MS, 3);
	behind = create(AN_ROOT_LEAF, 100);
	an_queue_add(&tree, behind);
	node(AN_ROOT)->vtime = node(behind)->start + 2 * node(behind)->step;
	start = node(behind)->start;
	an_queue_gives_way(&tree, behind);
	an_queue_add(&tree, behind);
	CHECK_EQ(node(behind)->start, start);
	/* That is true once: the next time it has slept. */
	an_queue_withdraw(&tree, behind);
	an_queue_add(&tree, behind);
	CHECK_EQ(node(behind)->start, node(AN_ROOT)->vtime);
	/* And not without a bound. */
	node(AN_ROOT)->vtime += 100 * node(behind)->step;
	an_queue_gives_way(&tree, behind);
	an_queue_add(&tree, behind);
	CHECK_EQ(node(behind)->start,
		 node(AN_ROOT)->vtime - an_owed_quanta(&tree) * node(behind)->step);
}
