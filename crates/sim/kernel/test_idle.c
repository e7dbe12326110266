/* SPDX-License-Identifier: GPL-2.0 */
/* Which idle CPU a task gets, on machines with threads, caches and nodes (idle.c, topology.c). */
#include "model.h"

#include <stdio.h>
#include <string.h>

static u32 failed;
static struct task_struct *task; /* that is to have a CPU */

#define expect(condition)                                                                          \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);             \
			failed++;                                                                  \
		}                                                                                  \
	} while (0)

/* A new machine, of which these CPUs are busy. */
static void machine(u32 cpus, u32 threads, u32 of_cache, u32 of_node, u64 busy)
{
	struct sim_options options = {.cpus = cpus,
				      .tick_ns = 4000000,
				      .threads_of_core = threads,
				      .cpus_of_cache = of_cache,
				      .cpus_of_node = of_node};
	struct sim_task how = {.process_of = ~0U, .affinity = {~0ULL}};
	struct sim_costs costs = {0};

	memset(&m, 0, sizeof(m));
	sim_begin(&options, &costs);
	m.loaded = true;
	for (u32 cpu = 0; cpu < cpus; cpu++)
		if (busy >> cpu & 1)
			idle_update(&m.rqs[cpu], false);
	task = task_of(sim_fork(&how));
}

static s32 selected(u32 prev)
{
	return idle_select(task, prev, false);
}

static void whole_cores_come_first(void)
{
	struct cpumask all = {{~0ULL}};

	/* Two cores of two threads; of the first one thread is busy. */
	machine(4, 2, 0, 0, 0x1);
	expect(selected(1) / 2 == 1);
	/* Of each core one: where it was; a sibling of that; any. */
	machine(4, 2, 0, 0, 0x5);
	expect(selected(1) == 1);
	machine(4, 2, 0, 0, 0x5);
	expect(selected(2) == 3);
	machine(4, 2, 0, 0, 0x7);
	expect(selected(0) == 3);
	expect(selected(0) < 0);
	/* Whoever wants a whole core has none else. */
	machine(4, 2, 0, 0, 0x1);
	expect(scx_bpf_pick_idle_cpu(&all, SCX_PICK_IDLE_CORE) >= 2);
	expect(scx_bpf_pick_idle_cpu(&all, SCX_PICK_IDLE_CORE) < 0);
	expect(scx_bpf_pick_idle_cpu(&all, 0) >= 0);
}

static void caches_and_nodes_come_next(void)
{
	machine(4, 1, 2, 0, 0x1);
	expect(m.by_cache && selected(0) == 1);
	expect(selected(0) >= 2);
	machine(8, 1, 2, 4, 0x3);
	expect(m.by_node && selected(0) / 4 == 0);
	machine(8, 1, 2, 4, 0xf);
	expect(selected(0) >= 4);
	/* Nodes that are caches too are looked at once. */
	machine(4, 1, 2, 2, 0x1);
	expect(m.by_cache && !m.by_node);
}

static void siblings_count_only_where_they_are(void)
{
	machine(4, 2, 0, 0, 0);
	expect(m.smt);
	for (u32 cpu = 1; cpu < 4; cpu += 2)
		m.rqs[cpu].active = false;
	topology_changes();
	expect(!m.smt);
}

/* On its way out it says that it is idle, and whoever looks next claims it: once. */
static void a_cpu_that_has_left_is_claimed_once(void)
{
	struct cpumask all = {{~0ULL}};

	machine(4, 2, 0, 0, 0xf);
	m.rqs[3].active = false;
	m.rqs[3].interrupts_off = true;
	idle_update(&m.rqs[3], true);
	expect(scx_bpf_pick_idle_cpu(&all, 0) == 3);
	expect(scx_bpf_pick_idle_cpu(&all, 0) < 0);
}

static void the_waker_is_as_good(void)
{
	machine(4, 1, 0, 0, 0x3);
	m.cpu = 1;
	expect(idle_select(task, 0, true) == 1);
	expect(idle_select(task, 2, true) == 2);
}

static void one_after_the_other(void)
{
	struct cpumask all = {{~0ULL}};

	machine(4, 1, 0, 0, 0);
	for (u32 cpu = 1; cpu <= 4; cpu++)
		expect(scx_bpf_pick_idle_cpu(&all, 0) == (s32)cpu % 4);
}

static void the_only_cpu(void)
{
	struct cpumask second = {{2}};
	bool idle;

	machine(4, 1, 0, 0, 0);
	task->migration_disabled = 1;
	task->cpu = 2;
	expect(scx_bpf_select_cpu_and(task, 2, 0, &second, 0) < 0);
	expect(scx_bpf_select_cpu_dfl(task, 2, 0, &idle) == 2 && idle);
	expect(scx_bpf_select_cpu_dfl(task, 2, 0, &idle) == 2 && !idle);
	task->migration_disabled = 0;
	expect(scx_bpf_select_cpu_and(task, 2, 0, &second, 0) == 1);
}

int main(void)
{
	whole_cores_come_first();
	caches_and_nodes_come_next();
	siblings_count_only_where_they_are();
	a_cpu_that_has_left_is_claimed_once();
	the_waker_is_as_good();
	one_after_the_other();
	the_only_cpu();
	if (!failed)
		printf("test_idle: passed\n");
	return failed != 0;
}
