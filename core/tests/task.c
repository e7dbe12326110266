// SPDX-License-Identifier: GPL-2.0
/* Tasks inside one leaf: fair queueing over their nice weights (task.h). */
#include "fixture.h"

#define TASKS 4

/* The kernel's weights of nice -5, 0, 5 and 10. */
static const u32 nice_weight[TASKS] = {3121, 1024, 335, 110};

/* The queued task with the least tag; ties by id. */
static u32 queue_head(const struct an_task *tasks, const bool *queued)
{
	u32 best = TASKS;

	for (u32 i = 0; i < TASKS; i++) {
		if (queued[i] &&
		    (best == TASKS || an_tag_diff(tasks[i].start, tasks[best].start) < 0))
			best = i;
	}
	return best;
}

/* Four endless loops share by weight, within a quantum each. */
TEST(nice_weights_share_a_leaf)
{
	struct an_task tasks[TASKS] = {{.fresh = 1}, {.fresh = 1}, {.fresh = 1}, {.fresh = 1}};
	bool queued[TASKS] = {true, true, true, true};
	u32 served[TASKS] = {0}, quanta = 100000;
	u32 leaf, total = 0;

	begin(4 * MS, 1);
	leaf = create(AN_ROOT_LEAF, 100);
	for (u32 i = 0; i < TASKS; i++) {
		an_task_wake(an_node(&tree, leaf)->vtime, &tasks[i]);
		total += nice_weight[i];
	}
	for (u32 i = 0; i < quanta; i++) {
		u32 task = queue_head(tasks, queued);

		an_task_serve(&an_node(&tree, leaf)->vtime, &tasks[task]);
		CHECK_EQ(node(leaf)->vtime, tasks[task].start);
		an_task_charge(&tasks[task], 4 * MS, nice_weight[task]);
		served[task]++;
	}
	for (u32 i = 0; i < TASKS; i++) {
		s64 off = (s64)served[i] * total - (s64)quanta * nice_weight[i];

		CHECK(off <= (s64)total * 2 && -off <= (s64)total * 2);
	}
}

/* One that slept is put at v: ahead of nobody who waits there, behind nobody who has run. */
TEST(sleeping_tasks_start_at_v)
{
	struct an_task hog = {.fresh = 1}, sleeper = {.fresh = 1};
	u32 leaf;

	begin(4 * MS, 1);
	leaf = create(AN_ROOT_LEAF, 100);
	an_task_wake(an_node(&tree, leaf)->vtime, &hog);
	an_task_wake(an_node(&tree, leaf)->vtime, &sleeper);
	for (u32 i = 0; i < 100; i++) {
		an_task_serve(&an_node(&tree, leaf)->vtime, &hog);
		an_task_charge(&hog, 4 * MS, 1024);
	}
	an_task_wake(an_node(&tree, leaf)->vtime, &sleeper);
	CHECK_EQ(sleeper.start, node(leaf)->vtime);
	CHECK(an_tag_diff(sleeper.start, hog.start) < 0);
	/* Having run and slept within v's quantum, it keeps what it owes. */
	an_task_charge(&sleeper, 4 * MS, 1024);
	CHECK_EQ(sleeper.start, hog.start);
	an_task_wake(an_node(&tree, leaf)->vtime, &sleeper);
	CHECK_EQ(sleeper.start, hog.start);
}

/* A task that enters a class brings no tag of its old one. */
TEST(a_fresh_task_starts_at_v)
{
	struct an_task task = {.start = 1ULL << 63, .rem = 9, .fresh = 1};
	u32 leaf;

	begin(4 * MS, 1);
	leaf = create(AN_ROOT_LEAF, 100);
	node(leaf)->vtime = 12345;
	an_task_wake(an_node(&tree, leaf)->vtime, &task);
	CHECK_EQ(task.start, 12345);
	CHECK_EQ(task.rem, 0);
	CHECK_EQ(task.fresh, 0);
}

/* v of a leaf does not go back when a task is served out of order, as the kernel may do. */
TEST(v_of_a_leaf_never_goes_back)
{
	struct an_task early = {.start = 10}, late = {.start = 20};
	u32 leaf;

	begin(4 * MS, 1);
	leaf = create(AN_ROOT_LEAF, 100);
	an_task_serve(&an_node(&tree, leaf)->vtime, &late);
	an_task_serve(&an_node(&tree, leaf)->vtime, &early);
	CHECK_EQ(node(leaf)->vtime, 20);
}

/* Service out of turn is a debt, up to a bound, and no matter of the classmates' v. */
TEST(debts_of_tasks_are_bounded)
{
	u64 owed_max = 8ULL * MS << AN_TAG_SHIFT;
	struct an_task task = {.fresh = 1, .request = an_task_request(2 * MS, 1)};

	an_task_wake(0, &task);
	an_task_charge(&task, 4 * MS, 1);
	an_task_debt_limit(0, &task, 1);
	CHECK_EQ(task.start, 4ULL * MS << AN_TAG_SHIFT);
	an_task_charge(&task, 400 * MS, 1);
	an_task_debt_limit(0, &task, 1);
	CHECK_EQ(task.start, owed_max);
}

/* Programs wait for what a thread of the kernel's holds, whatever its nice value is. */
TEST(a_thread_of_the_kernel_has_the_usual_weight_at_least)
{
	CHECK_EQ(an_task_weight(3, true), AN_USUAL_WEIGHT);
	CHECK_EQ(an_task_weight(8867, true), 8867);
	CHECK_EQ(an_task_weight(3, false), 3);
	CHECK_EQ(an_task_weight(AN_USUAL_WEIGHT, false), AN_USUAL_WEIGHT);
}

/* A program that has each job done by another process has the share of one task. */
TEST(a_chain_of_processes_is_one_flow)
{
	struct an_task parent = {.fresh = 1};
	u64 vtime = 1000;

	an_task_wake(vtime, &parent);
	for (u32 job = 1; job <= 10; job++) {
		struct an_task child = {.fresh = 1};

		an_task_made(vtime, &child, &parent);
		an_task_wake(vtime, &child);
		CHECK_EQ(child.start, parent.start);
		an_task_charge(&child, 3 * MS, AN_USUAL_WEIGHT);
		an_task_ended(&parent, child.start);
		CHECK_EQ(parent.start, 1000 + job * an_tag_of(3 * MS, AN_USUAL_WEIGHT));
	}
}

TEST(nobody_is_behind_or_ahead_for_its_kin_s_past)
{
	struct an_task parent = {.start = 1000}, child = {.fresh = 1}, early = {.fresh = 1};

	/* Its parent has slept for long. */
	an_task_made(5000, &child, &parent);
	an_task_wake(5000, &child);
	CHECK_EQ(child.start, 5000);
	an_task_ended(&child, 4000);
	CHECK_EQ(child.start, 5000);
	/* Its parent has never been queued, and so has no tag. */
	an_task_made(0, &early, &(struct an_task){.start = 1000, .fresh = 1});
	an_task_wake(0, &early);
	CHECK_EQ(early.start, 0);
}
