// SPDX-License-Identifier: GPL-2.0
/*
 * Quotas: what is handed out, throttled, refilled and changed; and random trees on several CPUs, in
 * which no class ever uses more than it may, nor is held while it has runtime.
 */
#include "fixture.h"
#include "random.h"

static struct an_bandwidths bandwidths;

static void begin_limited(u32 cpus)
{
	for (u32 i = 0; i < AN_MAX_NODES; i++)
		bandwidths.of[i] = (struct an_bandwidth){0};
	bandwidths.count = 0;
	begin(2 * MS, cpus);
}

static void limit(u32 leaf, u64 quota_ns, u64 period_ns, u64 burst_ns, u64 now_ns)
{
	an_bandwidth_set(&bandwidths, leaf, quota_ns, period_ns, burst_ns, now_ns);
	an_bandwidth_apply(&bandwidths, &tree, leaf);
	CHECK_INVARIANTS(&tree, &invariants);
}

static u64 take(u32 leaf, u64 now_ns)
{
	u64 slice_ns = an_slice_take(&bandwidths, &tree, leaf, 2 * MS, now_ns);

	CHECK_INVARIANTS(&tree, &invariants);
	return slice_ns;
}

static void settle(u32 leaf, u64 slice_ns, u64 used_ns, u64 now_ns)
{
	stop(leaf, used_ns);
	if (slice_ns != AN_UNLIMITED_NS)
		an_slice_settle(&bandwidths, &tree, leaf, (s64)slice_ns - (s64)used_ns, now_ns);
	CHECK_INVARIANTS(&tree, &invariants);
}

/* The leaf is served from 0 on until it has used this, which is all that it may; and wants more. */
static void uses_up(u32 leaf, u64 quota_ns)
{
	add(leaf);
	CHECK_EQ(pick(), leaf);
	CHECK_EQ(take(leaf, 0), quota_ns);
	add(leaf);
	settle(leaf, quota_ns, quota_ns, quota_ns);
	CHECK_EQ(pick(), AN_NONE);
}

/* As the shell's timer does. When it is next due. */
static u64 expire(u64 now_ns)
{
	u64 next_ns = AN_NEVER;

	for (u32 left = tree.held_count; left; left--) {
		u64 due_ns = an_held_next(&bandwidths, &tree, now_ns);

		CHECK_INVARIANTS(&tree, &invariants);
		if (due_ns < next_ns)
			next_ns = due_ns;
	}
	return next_ns;
}

static s64 runtime(u32 leaf)
{
	return an_bandwidth(&bandwidths, leaf)->runtime_ns;
}

TEST(without_a_quota_there_is_no_limit)
{
	u32 a;

	begin_limited(1);
	a = create(AN_ROOT_LEAF, 100);
	add(a);
	CHECK_EQ(pick(), a);
	CHECK_EQ(take(a, 0), AN_UNLIMITED_NS);
	stop(a, 2 * MS);
}

/* 20 % of a CPU: a loop has it for 20 ms in 100, and what it overruns comes off the next period. */
TEST(a_loop_has_its_quota_and_no_more)
{
	u64 now_ns = 0, used_ns = 0;
	u32 a;

	begin_limited(1);
	a = create(AN_ROOT_LEAF, 100);
	limit(a, 20 * MS, 100 * MS, 0, 0);
	add(a);
	while (now_ns < 10000 * MS) {
		u64 slice_ns;

		if (pick() == AN_NONE) {
			now_ns = expire(now_ns);
			expire(now_ns);
			continue;
		}
		slice_ns = take(a, now_ns);
		CHECK(slice_ns > 0 && slice_ns <= 2 * MS);
		slice_ns += slice_ns < 2 * MS ? 60000 : 0; /* the timer is late */
		now_ns += slice_ns;
		used_ns += slice_ns;
		add(a);
		settle(a, slice_ns < 2 * MS ? slice_ns - 60000 : slice_ns, slice_ns, now_ns);
	}
	CHECK(used_ns >= 1998 * MS && used_ns <= 2000 * MS);
	CHECK_EQ(bandwidths.of[a].nr_periods, 100);
	CHECK(bandwidths.of[a].nr_throttled >= 99);
	CHECK(bandwidths.of[a].throttled_ns >= 7900 * MS);
	CHECK(bandwidths.of[a].throttled_ns <= 8000 * MS);
}

/* Slices of all CPUs come from one quota; what one gives back, another may have. */
TEST(cpus_share_a_quota)
{
	u32 a;

	begin_limited(4);
	a = create(AN_ROOT_LEAF, 100);
	limit(a, 5 * MS, 100 * MS, 0, 0);
	for (u32 i = 0; i < 4; i++)
		add(a);
	for (u32 i = 0; i < 3; i++) {
		CHECK_EQ(pick(), a);
		CHECK_EQ(take(a, 0), i < 2 ? 2 * MS : 1 * MS);
	}
	CHECK_EQ(pick(), AN_NONE);
	CHECK_EQ(node(a)->queued, 1);
	settle(a, 2 * MS, 1 * MS, 1 * MS);
	CHECK_EQ(runtime(a), 1 * MS);
	CHECK_EQ(pick(), a);
	CHECK_EQ(take(a, 1 * MS), 1 * MS);
	settle(a, 1 * MS, 1 * MS, 2 * MS);
	settle(a, 2 * MS, 2 * MS, 2 * MS);
	settle(a, 1 * MS, 1 * MS, 2 * MS);
	CHECK_EQ(runtime(a), 0);
}

/* What is around a class limits it, and is charged; siblings of the throttled one go on. */
TEST(quotas_nest)
{
	u32 outer, inner, other, beside;

	begin_limited(1);
	outer = create(AN_ROOT_LEAF, 100);
	inner = create(outer, 100);
	other = create(outer, 100);
	beside = create(AN_ROOT_LEAF, 100);
	limit(outer, 3 * MS, 100 * MS, 0, 0);
	limit(inner, 1 * MS, 50 * MS, 0, 0);
	uses_up(inner, 1 * MS);
	CHECK(an_is_throttled(&tree, inner));
	CHECK(!an_is_throttled(&tree, other));
	add(other);
	CHECK_EQ(pick(), other);
	CHECK_EQ(take(other, 1 * MS), 2 * MS);
	CHECK_EQ(an_held_due(&bandwidths, &tree, other), 100 * MS);
	add(other);
	settle(other, 2 * MS, 2 * MS, 3 * MS);
	CHECK_EQ(pick(), AN_NONE);
	add(beside);
	CHECK_EQ(pick(), beside);
	CHECK_EQ(take(beside, 3 * MS), AN_UNLIMITED_NS);
	stop(beside, 1 * MS);
	/* The inner one is refilled first, and waits for the outer one all the same. */
	CHECK_EQ(expire(50 * MS), 100 * MS);
	CHECK(!an_is_held(node(inner)));
	CHECK(an_is_throttled(&tree, inner));
	CHECK_EQ(pick(), AN_NONE);
	CHECK_EQ(expire(100 * MS), AN_NEVER);
	CHECK_EQ(pick(), inner);
	stop(inner, 1);
}

/* What wakes, sleeps or becomes an inner node while it is throttled. */
TEST(a_throttled_class_changes)
{
	u32 a, child;

	begin_limited(2);
	a = create(AN_ROOT_LEAF, 100);
	limit(a, 1 * MS, 100 * MS, 0, 0);
	CHECK_EQ(an_serve_unpicked(&tree, a), a);
	CHECK_EQ(take(a, 0), 1 * MS);
	add(a);
	settle(a, 1 * MS, 1 * MS, 1 * MS);
	add(a);
	CHECK_EQ(node(AN_ROOT)->ready, 0);
	child = create(a, 100);
	add(child);
	CHECK_EQ(node(AN_ROOT)->ready, 0);
	CHECK_EQ(pick(), AN_NONE);
	an_queue_correct(&tree, a, 0);
	CHECK_INVARIANTS(&tree, &invariants);
	/* One that is run all the same gets nothing, and owes what it has used. */
	CHECK_EQ(an_serve_unpicked(&tree, child), child);
	CHECK_EQ(take(child, 2 * MS), 0);
	settle(child, 0, 1 * MS, 3 * MS);
	CHECK_EQ(runtime(a), -1 * (s64)MS);
	CHECK_EQ(expire(100 * MS), 200 * MS);
	CHECK_EQ(expire(200 * MS), AN_NEVER);
	CHECK_EQ(pick(), child);
	CHECK_EQ(take(child, 200 * MS), 1 * MS);
	settle(child, 1 * MS, 0, 200 * MS);
}

TEST(what_is_saved_up_is_a_burst_at_most)
{
	u32 a;

	begin_limited(1);
	a = create(AN_ROOT_LEAF, 100);
	limit(a, 10 * MS, 100 * MS, 15 * MS, 0);
	an_serve_unpicked(&tree, a);
	CHECK_EQ(take(a, 150 * MS), 2 * MS);
	CHECK_EQ(runtime(a), 18 * MS);
	settle(a, 2 * MS, 2 * MS, 152 * MS);
	an_serve_unpicked(&tree, a);
	CHECK_EQ(take(a, 1000000 * MS), 2 * MS);
	CHECK_EQ(runtime(a), 23 * MS);
	settle(a, 2 * MS, 2 * MS, 1000002 * MS);
}

TEST(quotas_change_live)
{
	u32 a;

	begin_limited(1);
	a = create(AN_ROOT_LEAF, 100);
	limit(a, 1 * MS, 100 * MS, 0, 0);
	uses_up(a, 1 * MS);
	limit(a, 3 * MS, 100 * MS, 0, 1 * MS); /* the difference is there at once */
	CHECK_EQ(pick(), a);
	CHECK_EQ(take(a, 1 * MS), 2 * MS);
	add(a);
	settle(a, 2 * MS, 2 * MS, 3 * MS);
	CHECK_EQ(pick(), AN_NONE);
	limit(a, 2 * MS, 100 * MS, 0, 3 * MS); /* less, and nothing is owed for it */
	CHECK_EQ(runtime(a), 0);
	CHECK_EQ(pick(), AN_NONE);
	CHECK_EQ(bandwidths.count, 1);
	limit(a, 0, 100 * MS, 0, 4 * MS); /* max */
	CHECK_EQ(bandwidths.count, 0);
	CHECK_EQ(pick(), a);
	CHECK_EQ(take(a, 4 * MS), AN_UNLIMITED_NS);
	stop(a, 1 * MS);
	CHECK_EQ(expire(5 * MS), AN_NEVER);
}

/* A class of an empty tree that has used up its quota of 1 ms in such a period, at 1 ms. */
static u32 create_used_up(u64 period_ns)
{
	u32 leaf;

	begin_limited(1);
	leaf = create(AN_ROOT_LEAF, 100);
	limit(leaf, 1 * MS, period_ns, 0, 0);
	an_serve_unpicked(&tree, leaf);
	CHECK_EQ(take(leaf, 0), 1 * MS);
	settle(leaf, 1 * MS, 1 * MS, 1 * MS);
	return leaf;
}

/* Removed while it is listed as throttled: its slot's next class is not taken for it. */
TEST(a_throttled_class_is_removed)
{
	u32 a = create_used_up(100 * MS), b;

	CHECK(an_is_held(node(a)));
	limit(a, 0, 0, 0, 1 * MS);
	CHECK_EQ(an_class_remove(&tree, a), 0);
	b = create(AN_ROOT_LEAF, 100);
	CHECK_EQ(b, a);
	limit(b, 1 * MS, 100 * MS, 0, 2 * MS);
	CHECK_EQ(tree.held_count, 1);
	CHECK_EQ(expire(3 * MS), AN_NEVER);
	CHECK_EQ(tree.held_count, 0);
	CHECK(!an_is_held(node(b)));
}

/* A class owes what overdue tasks of it use beyond its quota, up to a quota, so that it waits for
 * two periods at most when they are gone. */
TEST(overdue_tasks_have_their_turns_beyond_a_quota)
{
	const u64 turn_ns = MS / 10;
	u32 a = create_used_up(1000 * MS);

	for (u32 turn = 0; turn < 30; turn++) {
		an_serve_unpicked(&tree, a);
		CHECK_EQ(take(a, 2 * MS), 0);
		if (an_slice_exceed(&bandwidths, &tree, a))
			settle(a, 0, turn_ns, 2 * MS);
		else
			an_stop(&tree, a, turn_ns);
	}
	CHECK_EQ(bandwidths.of[a].nr_exceeded, 30);
	CHECK_EQ(runtime(a), -(s64)MS);
	CHECK(expire(1000 * MS) != AN_NEVER);
	CHECK_EQ(expire(2000 * MS), AN_NEVER);
	CHECK_EQ(runtime(a), 1 * MS);
}

/* ---- random trees ---- */

#define CLASSES 12
#define STEP_NS 100000ULL /* the latest that a CPU notices that its slice is used up */

struct cpu {
	u32 leaf;
	u64 slice_ns, used_ns;
};

static struct trial {
	struct random random;
	u32 cpus, classes;
	u64 now_ns, due_ns;
	u32 leaf[CLASSES];
	/* Of each: tasks that run or sleep, what it has used, and the least of that less its quota
	 * at any time before. */
	u32 asleep[CLASSES];
	u64 used_ns[CLASSES];
	s64 least_ns[CLASSES];
	struct cpu cpu[4];
} trial;

static u32 trial_class(u32 leaf)
{
	u32 at = 0;

	while (trial.leaf[at] != leaf)
		at++;
	return at;
}

static void trial_limits(u32 at)
{
	u64 period_ns = (10 + random_below(&trial.random, 100)) * MS;
	u64 quota_ns = 1 * MS + random_below(&trial.random, 2 * period_ns);
	u64 burst_ns = random_chance(&trial.random, 30) ? random_below(&trial.random, quota_ns) : 0;

	if (random_chance(&trial.random, 70))
		limit(trial.leaf[at], quota_ns, period_ns, burst_ns, trial.now_ns);
	trial.least_ns[at] = trial.used_ns[at] = 0;
}

static void trial_begins(u64 seed)
{
	trial = (struct trial){.random = {seed}};
	trial.cpus = 1 + random_below(&trial.random, 4);
	begin_limited(trial.cpus);
	trial.leaf[0] = AN_ROOT_LEAF;
	trial.classes = 2 + random_below(&trial.random, CLASSES - 1);
	trial.asleep[0] = 1;
	for (u32 i = 1; i < trial.classes; i++) {
		u32 above = trial.leaf[random_below(&trial.random, i)];

		trial.leaf[i] = create(above, random_scale(&trial.random, 10));
		trial.asleep[i] = random_below(&trial.random, 5);
		trial_limits(i);
	}
	trial.due_ns = AN_NEVER;
}

static void trial_ends(struct cpu *c, bool goes_on)
{
	u32 leaf = c->leaf;

	if (goes_on)
		add(leaf);
	else
		trial.asleep[trial_class(leaf)]++;
	c->leaf = AN_NONE;
	settle(leaf, c->slice_ns, c->used_ns, trial.now_ns);
}

static void trial_serves(struct cpu *c)
{
	u32 at = random_below(&trial.random, trial.classes);
	bool picked = true;

	c->leaf = pick();
	c->used_ns = 0;
	if (!c->leaf && trial.asleep[at] && random_chance(&trial.random, 10)) {
		/* The kernel runs one that has just woken. */
		trial.asleep[at]--;
		c->leaf = an_serve_unpicked(&tree, trial.leaf[at]);
		picked = false;
	}
	if (!c->leaf)
		return;
	c->slice_ns = take(c->leaf, trial.now_ns);
	CHECK(c->slice_ns || an_is_throttled(&tree, c->leaf));
	/* Denied what it was picked for: a quantum has overrun by more than was left. */
	if (!c->slice_ns && picked)
		trial_ends(c, true);
}

/* What a class has used up to now, and whether it is held if, and only if, it has nothing left. */
static void trial_judges(u32 at)
{
	const struct an_bandwidth *b = an_bandwidth(&bandwidths, trial.leaf[at]);
	s64 beyond_ns, most_ns;

	if (!b->quota_ns)
		return;
	CHECK(!an_is_held(node(an_class_node(&tree, trial.leaf[at]))) || b->runtime_ns <= 0);
	beyond_ns = (s64)trial.used_ns[at] -
		    (s64)((double)trial.now_ns / (double)b->period_ns * (double)b->quota_ns);
	if (beyond_ns < trial.least_ns[at])
		trial.least_ns[at] = beyond_ns;
	/* A period's quota may come right before, and one right before the end. */
	most_ns = 2 * b->quota_ns + b->burst_ns + trial.cpus * (2 * MS + STEP_NS);
	CHECK(beyond_ns - trial.least_ns[at] <= most_ns);
}

static void trial_charges(u32 leaf)
{
	for (u32 index = leaf; index; index = node(index)->parent)
		for (u32 at = 0; at < trial.classes; at++)
			if (an_class_node(&tree, trial.leaf[at]) == index)
				trial.used_ns[at] += STEP_NS;
}

static void trial_steps(void)
{
	u32 at = random_below(&trial.random, trial.classes);

	trial.now_ns += STEP_NS;
	for (u32 i = 0; i < trial.cpus; i++) {
		struct cpu *c = &trial.cpu[i];

		if (c->leaf) {
			c->used_ns += STEP_NS;
			trial_charges(c->leaf);
			if (random_chance(&trial.random, 3))
				trial_ends(c, false);
			else if (c->used_ns >= 2 * MS || c->used_ns >= c->slice_ns)
				trial_ends(c, true);
		}
	}
	if (trial.asleep[at] && random_chance(&trial.random, 20)) {
		trial.asleep[at]--;
		add(trial.leaf[at]);
	}
	if (tree.held_count && trial.now_ns >= trial.due_ns)
		trial.due_ns = expire(trial.now_ns);
	for (u32 i = 0; i < trial.cpus; i++)
		if (!trial.cpu[i].leaf)
			trial_serves(&trial.cpu[i]);
	/* As the shell does when a class is throttled: the timer is for the first that is due. */
	for (u32 i = tree.held_first; i; i = node(i)->held_next) {
		const struct an_bandwidth *b = an_bandwidth(&bandwidths, i);

		if (b->quota_ns && b->period_from_ns + b->period_ns < trial.due_ns)
			trial.due_ns = b->period_from_ns + b->period_ns;
	}
	for (u32 i = 0; i < trial.classes; i++)
		trial_judges(i);
}

TEST(no_class_uses_more_than_its_quota)
{
	for (u32 i = 0; i < 150; i++) {
		u64 seed = test_seed() + i;

		test_scenario(seed);
		trial_begins(seed);
		for (u32 step = 0; step < 5000; step++)
			trial_steps();
	}
}
