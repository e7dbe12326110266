// SPDX-License-Identifier: GPL-2.0
/* The constant bandwidth server: its golden schedule, soft and hard, and its wake-up rules. */
#include "machine.h"

static void check_segments(const struct machine_segment *golden, u32 count)
{
	for (u32 i = 0; i < count; i++) {
		const struct machine_segment *s = &machine.segment[i];

		CHECK(i < machine.segments);
		if (s->from_ns != golden[i].from_ns || s->to_ns != golden[i].to_ns ||
		    s->task != golden[i].task || s->cpu != golden[i].cpu)
			test_fail(__FILE__, __LINE__, "segment %u: task %u on CPU %u, %llu to %llu",
				  i, s->task, s->cpu, (unsigned long long)s->from_ns,
				  (unsigned long long)s->to_ns);
	}
	CHECK_EQ(machine.segments, count);
}

/*
 * Hard task C 4, T 7; server 3 every 8, whose jobs arrive at 3 (needing 4) and 13 (needing 3).
 * By hand, with the rules of [1]: a exhausts the budget at 7, b comes when c = 2 < (19 - 13) 3/8.
 */
TEST(cbs_golden)
{
	static const struct machine_segment golden[] = {
		{0, 4, 0, 0},	{4, 7, 0, 1},	{7, 11, 0, 0},	{11, 12, 0, 1},
		{13, 15, 0, 1}, {15, 19, 0, 0}, {19, 20, 0, 1}, {21, 25, 0, 0},
	};
	u32 task, server;

	machine_begin(1, 0);
	machine.checks = true;
	task = machine_task(create_server(4, 7, AN_EXHAUSTIVE));
	server = machine_task(create_server(3, 8, 0));
	for (u64 release = 0; release < 28; release += 7)
		machine_job(task, release, 4);
	machine_job(server, 3, 4);
	machine_job(server, 13, 3);
	machine_run(7);
	CHECK_EQ(contract(2)->deadline_ns, 19);
	machine_run(13);
	CHECK_EQ(contract(2)->left_ns, 2);
	CHECK_EQ(contract(2)->deadline_ns, 19);
	machine_run(15);
	CHECK_EQ(contract(2)->deadline_ns, 27);
	CHECK_EQ(contract(2)->left_ns, 3);
	machine_run(27);
	check_segments(golden, 8);
	CHECK_EQ(contract(1)->misses, 0);
	CHECK_EQ(contract(2)->exhaustions, 2);
}
