// SPDX-License-Identifier: GPL-2.0
/*
 * Random lives of a packet scheduler: classes that come, go and change their weights, packets of
 * any size and flow, pauses and floods, with every packet accounted for.
 */
#include "packets_fixture.h"
#include "random.h"

#define MAX_CLASSES 24u

struct life {
	struct random r;
	u32 leaves[MAX_CLASSES];
	u32 count;
	u32 next_of_flow[MAX_CLASSES * 8]; /* the number of its last packet that left */
};

static u32 any_leaf(struct life *l)
{
	return l->leaves[random_below(&l->r, l->count)];
}

static void change(struct life *l)
{
	u32 at = random_below(&l->r, l->count);

	if (l->count < MAX_CLASSES && random_chance(&l->r, 50)) {
		u32 leaf = an_packets_class(&q, any_leaf(l), 0, random_scale(&l->r, 13));

		CHECK(leaf);
		l->leaves[l->count++] = leaf;
	} else if (random_chance(&l->r, 50)) {
		an_class_set_weight(&q.tree, l->leaves[at], random_scale(&l->r, 13));
	} else if (random_chance(&l->r, 50)) {
		an_packets_promise(&q, l->leaves[at], random_below(&l->r, 20000),
				   random_scale(&l->r, 28), now_ns);
	} else if (!an_packets_class_remove(&q, l->leaves[at])) {
		l->leaves[at] = l->leaves[--l->count];
	}
}

static void step(struct life *l)
{
	u32 kind = random_below(&l->r, 100);

	if (kind < 50) {
		arrive(any_leaf(l), random_below(&l->r, 8), 60 + random_below(&l->r, 1455));
	} else if (kind < 96) {
		bool waiting = q.waiting, is_free = an_link_is_free(&q.link, now_ns);

		CHECK_EQ(next() != AN_WAITS, waiting && is_free); /* nothing waits for nothing */
	} else if (kind < 98) {
		now_ns += random_scale(&l->r, 26);
	} else {
		change(l);
	}
}

/* Until nothing waits: every packet left, and every list is empty. */
static void drain(void)
{
	for (u32 n = 0; q.waiting; n++) {
		CHECK(n < 3 * AN_MAX_PACKETS);
		if (next() == AN_WAITS)
			now_ns = q.link.next_ns;
	}
	check_memory();
	CHECK_EQ(q.held, 0);
	CHECK_EQ(q.used_bands, 0);
	CHECK_EQ(q.tree.nodes[AN_ROOT].ready, 0);
	CHECK_EQ(an_heap_count(an_contract_cpu(&q.contracts.set, AN_LINK_CPU), AN_READY), 0);
}

TEST(packets_random_lives)
{
	for (u32 run = 0; run < 60; run++) {
		u64 seed = test_seed() + run;
		static struct life l;

		test_scenario(seed);
		l = (struct life){.r = {seed}, .leaves = {AN_ROOT_LEAF}, .count = 1};
		begin_packets(random_chance(&l.r, 50) ? 1 + random_below(&l.r, 10000000) : 0,
			      2000 + random_below(&l.r, 100000));
		for (u32 n = 0; n < 8000; n++) {
			step(&l);
			if (n % 64)
				continue;
			check_memory();
			CHECK_INVARIANTS(&q.tree, &invariants);
		}
		drain();
	}
}

/* ---- shares ---- */

struct pair {
	u64 sent[2]; /* in the interval [bytes] */
	u32 leaves[2];
	u32 weights[2];
	u32 hashes[2];
};

/* Both have packets waiting all the time; other classes come and go. The bound of start-time fair
 * queueing, in whole numbers: |W_f r_g - W_g r_f| <= l (r_f + r_g). */
static void check_pair(const struct pair *p, u32 largest)
{
	s64 ahead = (s64)(p->sent[0] * p->weights[1]) - (s64)(p->sent[1] * p->weights[0]);
	s64 bound = (s64)largest * (p->weights[0] + p->weights[1]);

	CHECK(ahead <= bound && ahead >= -bound);
}

/* The other classes' packets are those of classes[]. */
static void send_pair(struct random *r, struct pair *p, const u32 *classes, u32 count)
{
	u32 largest = 0;

	for (u32 n = 0; n < 2000; n++) {
		for (u32 i = 0; i < 2; i++)
			while (an_crowd(&q, p->leaves[i])->held < 4000 ||
			       packets_of(p->leaves[i]) < 3) {
				u32 bytes = 60 + random_below(r, 1455);

				largest = largest > bytes ? largest : bytes;
				arrive(p->leaves[i], 0, bytes);
			}
		if (count && random_chance(r, 40))
			arrive(classes[random_below(r, count)], 0, 60 + random_below(r, 1455));
		next();
		for (u32 i = 0; i < 2; i++)
			p->sent[i] += last.leaf == p->leaves[i] ? last.bytes : 0;
		check_pair(p, largest);
	}
}

TEST(packets_keep_the_fairness_bound)
{
	for (u32 run = 0; run < 40; run++) {
		struct random r = {test_seed() + run};
		struct pair p = {0};
		u32 others[5], parent = AN_ROOT_LEAF;

		test_scenario(test_seed() + run);
		begin_packets(0, 1000000);
		/* At any depth the same. */
		for (u32 depth = random_below(&r, 4); depth; depth--)
			parent = class_below(parent, random_scale(&r, 13));
		for (u32 i = 0; i < 2; i++) {
			p.weights[i] = random_scale(&r, 10);
			p.leaves[i] = class_below(parent, p.weights[i]);
		}
		for (u32 i = 0; i < 5; i++)
			others[i] =
				class_below(i < 2 ? parent : AN_ROOT_LEAF, random_scale(&r, 10));
		send_pair(&r, &p, others, 5);
	}
}

/* A flood of one class, for as long as it likes, takes no packet of those that are within their
 * part of the memory; and all are served. */
TEST(a_flood_costs_nobody_else_a_packet)
{
	for (u32 run = 0; run < 10; run++) {
		struct random r = {test_seed() + run};
		u32 flood, quiet[7];

		test_scenario(test_seed() + run);
		begin_packets(1250000, 128 * 1024);
		flood = class_below(AN_ROOT_LEAF, 10000);
		for (u32 i = 0; i < 7; i++)
			quiet[i] = class_below(AN_ROOT_LEAF, 1 + random_below(&r, 100));
		for (u32 n = 0; n < 20000; n++) {
			u32 at = quiet[random_below(&r, 7)];

			for (u32 i = 0; i < 3; i++)
				arrive(flood, random_below(&r, 100), 1000);
			/* Half of an eighth: 8 KB. */
			if (an_crowd(&q, at)->held < 7000)
				arrive(at, 1, 60 + random_below(&r, 940));
			now_ns += MS;
			while (next() != AN_WAITS)
				;
		}
		check_memory();
		for (u32 i = 0; i < 7; i++) {
			CHECK_EQ(counts(quiet[i])->crowded, 0);
			CHECK(counts(quiet[i])->packets > 0);
		}
		CHECK(counts(flood)->crowded + counts(flood)->late > 10000);
	}
}
