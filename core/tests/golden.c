// SPDX-License-Identifier: GPL-2.0
/*
 * Schedules that are known to the last quantum: worked examples of start-time fair queueing, and
 * the counts behind QLinux's first two experiments ([2] of tree.h), on one CPU.
 */
#include "fixture.h"

/* Serves count equal quanta to classes that never block; served[leaf] counts them. */
static void run_hogs(u32 count, u64 quantum_ns, u32 *served)
{
	while (count--) {
		u32 leaf = pick();

		served[leaf]++;
		requeue(leaf, quantum_ns);
	}
}

/* root { S1 w2 { a w1, b w3 }, S2 w6 { c w1 } }: 1/16, 3/16 and 12/16, exactly. */
TEST(golden_hierarchy)
{
	u32 served[16] = {0};
	u32 s1, s2, a, b, c;

	begin(4 * MS, 1);
	s1 = create(AN_ROOT_LEAF, 2);
	s2 = create(AN_ROOT_LEAF, 6);
	a = create(s1, 1);
	b = create(s1, 3);
	c = create(s2, 1);
	add(a);
	add(b);
	add(c);
	run_hogs(1600, 4 * MS, served);
	CHECK_EQ(served[a], 100);
	CHECK_EQ(served[b], 300);
	CHECK_EQ(served[c], 1200);
	CHECK_EQ(node(an_class_node(&tree, s1))->service_ns, 400 * 4 * MS);
}

/*
 * A w1 and B w2, quanta of 10 ns. A blocks at 40 and wakes at 110. A tag is ns << 16 / weight, and
 * 10 is divisible by both weights, so that tag >> 16 is the start tag on paper, without remainder.
 */
TEST(golden_trace)
{
	static const struct {
		char class;
		u32 start;
	} golden[] = {
		{'A', 0},  {'B', 0},  {'B', 5},	 {'A', 10}, {'B', 10}, {'B', 15},
		{'B', 20}, {'B', 25}, {'B', 30}, {'B', 35}, {'B', 40}, {'A', 40},
		{'B', 45}, {'A', 50}, {'B', 50}, {'B', 55}, {'A', 60}, {'B', 60},
	};
	u32 a, b, now = 0;

	begin(10, 1);
	a = create(AN_ROOT_LEAF, 1);
	b = create(AN_ROOT_LEAF, 2);
	add(a);
	add(b);
	for (u32 slot = 0; slot < sizeof(golden) / sizeof(golden[0]); slot++) {
		u32 leaf = pick();

		CHECK_EQ(leaf == a ? 'A' : 'B', golden[slot].class);
		CHECK_EQ(node(leaf)->start, (u64)golden[slot].start << AN_TAG_SHIFT);
		CHECK_EQ(node(leaf)->rem, 0);
		CHECK_EQ(node(AN_ROOT)->vtime, node(leaf)->start);
		now += 10;
		if (leaf == a && now == 40)
			stop(a, 10);
		else
			requeue(leaf, 10);
		if (now == 110)
			add(a);
	}
}

/* Two endless loops under weights 1:1, 1:2, 1:4, 30 000 quanta. */
TEST(experiment_1_counts)
{
	static const u32 wanted[][3] = {{1, 15000, 15000}, {2, 10000, 20000}, {4, 6000, 24000}};

	for (u32 i = 0; i < 3; i++) {
		u32 served[16] = {0};
		u32 a, b;

		begin(10 * MS, 1);
		a = create(AN_ROOT_LEAF, 1);
		b = create(AN_ROOT_LEAF, wanted[i][0]);
		add(a);
		add(b);
		run_hogs(30000, 10 * MS, served);
		CHECK_EQ(served[a], wanted[i][1]);
		CHECK_EQ(served[b], wanted[i][2]);
	}
}

/* Two loops 1:1; B is suspended from 250 s to 330 s. What it missed is not made up for. */
TEST(experiment_2_no_catch_up)
{
	const u64 quantum_ns = 10 * MS, second = 100; /* quanta in a second */
	bool suspended = false;
	u32 a, b;

	begin(quantum_ns, 1);
	a = create(AN_ROOT_LEAF, 100);
	b = create(AN_ROOT_LEAF, 100);
	add(a);
	add(b);
	for (u64 quantum = 0; quantum < 500 * second; quantum++) {
		u32 leaf;

		if (quantum == 250 * second) {
			CHECK_EQ(node(a)->service_ns, 125 * second * quantum_ns);
			CHECK_EQ(node(b)->service_ns, 125 * second * quantum_ns);
			an_queue_correct(&tree, b, 0);
			suspended = true;
		}
		if (quantum == 330 * second) {
			CHECK_EQ(node(a)->service_ns, 205 * second * quantum_ns);
			CHECK_EQ(node(b)->service_ns, 125 * second * quantum_ns);
			add(b);
			suspended = false;
		}
		leaf = pick();
		CHECK(leaf == a || !suspended);
		requeue(leaf, quantum_ns);
	}
	CHECK_EQ(node(a)->service_ns, 290 * second * quantum_ns);
	CHECK_EQ(node(b)->service_ns, 210 * second * quantum_ns);
}

/* Yields that use nothing are charged one ns, so that one class cannot be picked for ever. */
TEST(a_yield_is_charged)
{
	u32 served[16] = {0};
	u32 a, b;

	begin(4 * MS, 1);
	a = create(AN_ROOT_LEAF, 1);
	b = create(AN_ROOT_LEAF, 1);
	add(a);
	add(b);
	run_hogs(1000, 0, served);
	CHECK_EQ(served[a], 500);
	CHECK_EQ(served[b], 500);
}

/* When nothing is runnable v becomes the largest finish tag: all start the next round alike. */
TEST(the_idle_rule)
{
	u32 a, b;

	begin(10, 1);
	a = create(AN_ROOT_LEAF, 1);
	b = create(AN_ROOT_LEAF, 2);
	add(a);
	add(b);
	CHECK_EQ(pick(), a);
	stop(a, 100);
	CHECK_EQ(node(AN_ROOT)->vtime, 0);
	CHECK_EQ(pick(), b);
	stop(b, 10);
	CHECK_EQ(node(AN_ROOT)->vtime, 100ULL << AN_TAG_SHIFT);
	add(b);
	CHECK_EQ(node(b)->start, 100ULL << AN_TAG_SHIFT);
	CHECK_EQ(pick(), b);
}
