// SPDX-License-Identifier: GPL-2.0
/* Policies of single classes (leaf_policy.h), and the one that only they have
 * (policies/deadline.h). */
#include "one_cpu.h"

static struct one_cpu cpu;

/* Who is due first comes first, and takes the CPU when it wakes. */
TEST(deadline_serves_the_earliest)
{
	u32 usual, urgent;

	cpu_begin(&cpu, AN_DEADLINE, 20 * MS);
	usual = cpu_add(&cpu, (struct an_member){.weight = 1024}, 6 * MS, 34 * MS);
	urgent = cpu_add(&cpu, (struct an_member){.weight = 3121}, 2 * MS, 11 * MS); /* nice -5 */
	cpu_run(&cpu, 10 * SECOND);
	CHECK_EQ(cpu.jobs[urgent].longest_wait_ns, 0);
	CHECK(cpu.jobs[usual].longest_wait_ns <= 2 * MS);
}

/* One that never sleeps is late in the end, and first then, until it has run for its own relative
 * deadline. */
TEST(deadline_bounds_who_is_late)
{
	u32 hog, urgent;

	cpu_begin(&cpu, AN_DEADLINE, 20 * MS);
	hog = cpu_add(&cpu, (struct an_member){.weight = 110}, 0, 0); /* nice 10: 186 ms */
	urgent = cpu_add(&cpu, (struct an_member){.weight = 3121}, 2 * MS, 11 * MS);
	cpu_run(&cpu, 10 * SECOND);
	CHECK(cpu.jobs[urgent].longest_wait_ns <= 60 * MS);
	CHECK(cpu.jobs[hog].got_ns >= 8 * SECOND);
}

/* Loops take turns of a relative deadline, so that who waits does so for one of each at most. */
TEST(deadline_of_loops_is_a_turn)
{
	u32 light;

	cpu_begin(&cpu, AN_DEADLINE, 20 * MS);
	for (u32 i = 0; i < 3; i++)
		cpu_add_hog(&cpu);
	light = cpu_add(&cpu, (struct an_member){.weight = 1024}, 1 * MS, 99 * MS);
	cpu_run(&cpu, 30 * SECOND);
	CHECK(cpu.jobs[light].longest_wait_ns <= 3 * 20 * MS);
	for (u32 i = 0; i < 3; i++) {
		s64 off_ns = cpu.jobs[i].got_ns - (30 * SECOND - cpu.jobs[light].got_ns) / 3;

		CHECK(off_ns <= (s64)(20 * MS) && -off_ns <= (s64)(20 * MS));
	}
}

static struct an_leaf_policy leaf;
static u32 versions;

static void leaf_begins(u32 kind, u64 quantum_ns)
{
	an_leaf_policy_set(&leaf, kind, quantum_ns, false, ++versions);
}

static struct an_leaf_member joined(s32 nice)
{
	struct an_leaf_member m = {.key = 0};

	an_leaf_join(&leaf, &m, nice, AN_USUAL_WEIGHT);
	return m;
}

/* The clock goes by the class's service, in whatever pieces, and whoever is served pays for all of
 * a tick. */
TEST(leaf_ticks_strike_by_service)
{
	struct an_leaf_member one, other;

	leaf_begins(AN_SVR4, 0);
	one = joined(0);
	other = joined(0);
	an_leaf_wants(&leaf, &one, true, 0);
	an_leaf_wants(&leaf, &other, true, 0);
	CHECK_EQ(one.member.svr4.left_ticks, 60);
	an_leaf_serves(&leaf, &one, 0);
	CHECK_EQ(an_leaf_run_ns(&leaf, &one), 10 * MS);
	an_leaf_used(&leaf, &one, 7 * MS);
	CHECK_EQ(an_leaf_run_ns(&leaf, &one), 3 * MS);
	CHECK_EQ(one.member.svr4.left_ticks, 60);
	an_leaf_wants(&leaf, &one, false, 0); /* another class has the CPU: it keeps its place */
	CHECK(one.key < other.key);
	an_leaf_serves(&leaf, &one, 1000 * SECOND);
	an_leaf_used(&leaf, &one, 2 * MS);
	an_leaf_serves(&leaf, &other, 0);
	an_leaf_used(&leaf, &other, 1 * MS);
	CHECK_EQ(one.member.svr4.left_ticks, 60);
	CHECK_EQ(other.member.svr4.left_ticks, 59);
	an_leaf_used(&leaf, &one, 595 * MS);
	CHECK(!one.over);
	an_leaf_used(&leaf, &one, 5 * MS);
	CHECK(one.over);
	an_leaf_wants(&leaf, &one, false, 0);
	CHECK(one.key > other.key);
	CHECK_EQ(one.member.svr4.level, 19);
}

/* An hour of service is no hour of ticks to go through, and leaves the clock right. */
TEST(leaf_ticks_are_bounded)
{
	struct an_leaf_member m;

	leaf_begins(AN_SVR4, 0);
	m = joined(0);
	an_leaf_serves(&leaf, &m, 0);
	CHECK_EQ(m.standing, AN_LEAF_SERVED);
	an_leaf_used(&leaf, &m, 3600 * SECOND + 4 * MS);
	CHECK(m.over);
	CHECK_EQ(an_leaf_run_ns(&leaf, &m), 6 * MS);
}

/* Each policy's quantum, and that a task which has had it is queued behind the others. */
TEST(leaf_quanta_end)
{
	static const struct {
		u32 kind;
		u64 quantum_ns, ends_ns;
	} of[] = {
		{AN_RR, 0, 100 * MS},	{AN_RR, 30 * MS, 30 * MS}, {AN_DEADLINE, 20 * MS, 20 * MS},
		{AN_SVR4, 0, 600 * MS}, {AN_LINUX22, 0, 200 * MS},
	};

	for (u32 i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		struct an_leaf_member one, other;

		leaf_begins(of[i].kind, of[i].quantum_ns);
		one = joined(0);
		other = joined(0);
		an_leaf_wants(&leaf, &one, true, 0);
		an_leaf_wants(&leaf, &other, true, 1);
		an_leaf_serves(&leaf, &one, 2);
		an_leaf_used(&leaf, &one, of[i].ends_ns - 1);
		CHECK(!one.over);
		an_leaf_used(&leaf, &one, 1);
		CHECK(one.over);
		an_leaf_wants(&leaf, &one, false, of[i].ends_ns + 2);
		CHECK((s64)(one.key - other.key) > 0);
		CHECK(!one.over);
	}
	leaf_begins(AN_FIFO, 0);
	CHECK_EQ(an_leaf_run_ns(&leaf, &(struct an_leaf_member){}), AN_ENDLESS_NS);
}

/* A member of the policy before joins anew, and nothing is left of what it had. */
TEST(leaf_policies_change)
{
	struct an_leaf_member m;

	leaf_begins(AN_SVR4, 0);
	m = joined(0);
	an_leaf_serves(&leaf, &m, 0);
	an_leaf_used(&leaf, &m, 5 * SECOND);
	CHECK(m.member.svr4.level < AN_SVR4_FIRST);
	leaf_begins(AN_SVR4, 0);
	CHECK(m.version != leaf.version);
	an_leaf_join(&leaf, &m, 0, AN_USUAL_WEIGHT);
	CHECK_EQ(m.member.svr4.level, AN_SVR4_FIRST);
	CHECK_EQ(m.standing, AN_LEAF_ASLEEP);
	CHECK_EQ(m.version, leaf.version);
}

/* What a parent climbed its children need not climb; and who waits long enough is lifted. */
TEST(leaf_members_fork_and_age)
{
	struct an_leaf_member parent, child = {.key = 0};
	u64 before;
	u32 seconds = 0;

	leaf_begins(AN_SVR4, 0);
	parent = joined(0);
	an_leaf_wants(&leaf, &parent, true, 0);
	an_leaf_wants(&leaf, &parent, true, 0); /* it has slept */
	CHECK_EQ(parent.member.svr4.level, AN_SVR4_FIRST + 10);
	an_leaf_fork(&leaf, &parent, &child);
	CHECK_EQ(child.member.svr4.level, parent.member.svr4.level);
	an_leaf_wants(&leaf, &child, false, 0);
	before = child.key;
	while (!an_leaf_age(&leaf, &child))
		seconds++;
	CHECK_EQ(seconds, 5);
	CHECK(child.key < before);
}

/* Under Linux 2.2 the one in service has lost a tick for every 10 ms of it, charged or not. */
TEST(leaf_preemption_sees_what_has_run)
{
	struct an_leaf_member woken, serving;
	struct an_member copy;

	leaf_begins(AN_LINUX22, 0);
	woken = joined(0);
	serving = joined(0);
	an_leaf_serves(&leaf, &serving, 0);
	an_leaf_wants(&leaf, &woken, true, 0);
	copy = serving.member;
	CHECK(!an_leaf_preempts(&leaf, &woken, &copy, 35 * MS));
	copy = serving.member;
	CHECK(an_leaf_preempts(&leaf, &woken, &copy, 55 * MS));
}
