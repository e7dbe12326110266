// SPDX-License-Identifier: GPL-2.0
/*
 * DWCS: the schedules that are known to the last slot ([1] of dwcs.h: Table 2, Figure 4), the rules
 * of a window, and what the header decided where the paper is silent.
 */
#include <string.h>

#include "contract_fixture.h"
#include "golden/dwcs.h"

struct slot_task {
	const char *name;
	u64 budget_ns, period_ns;
	u32 x, y, flags;
};

static const struct slot_task *tasks;
static u32 task_count;

/* One slot is one ns; all tasks want to run at all times. Task i is contract i + 1. */
static void begin_slots(const struct slot_task *list, u32 count, u32 options)
{
	tasks = list;
	task_count = count;
	an_contracts_init(&set, options);
	for (u32 i = 0; i < count; i++)
		CHECK_EQ(create_window(list[i].budget_ns, list[i].period_ns, list[i].x, list[i].y,
				       list[i].flags),
			 i + 1);
	for (u32 i = 0; i < count; i++)
		an_contract_wake(&set, i + 1, 0);
	check_contracts(1);
}

static const char *task_name(u32 index)
{
	return index ? tasks[index - 1].name : "BE";
}

/* Runs one slot of one ns. Returns what ran. */
static u32 run_slot(u64 now)
{
	u32 rule, index = pick_contract(0, now, &rule);

	CHECK_EQ(rule == AN_RULE_NONE, index == AN_NONE);
	if (index)
		an_contract_charge(&set, index, 1, now + 1);
	check_contracts(1);
	return index;
}

static void check_windows(const struct golden_window *windows)
{
	for (u32 i = 0; i < GOLDEN_TASKS && windows[i].task; i++) {
		u32 index = 0;

		while (strcmp(tasks[index].name, windows[i].task))
			CHECK(++index < task_count);
		CHECK_EQ(contract(index + 1)->x, windows[i].x);
		CHECK_EQ(contract(index + 1)->y, windows[i].y);
		CHECK_EQ(contract(index + 1)->deadline_ns, windows[i].deadline);
	}
}

static void check_schedule(const struct golden_schedule *golden)
{
	const char *at = golden->ran;

	for (u32 slot = 0; slot < golden->slots; slot++) {
		size_t length = strcspn(at, " ");
		u32 index = run_slot(slot);

		if (strlen(task_name(index)) != length || strncmp(task_name(index), at, length))
			test_fail(__FILE__, __LINE__, "%s, slot %u: %s ran, not %.*s", golden->name,
				  slot, task_name(index), (int)length, at);
		if (slot < golden->states)
			check_windows(golden->state[slot].windows);
		at += length + (at[length] == ' ');
	}
	CHECK(!*at);
}

#define RUN_GOLDEN(list, options, golden)                                                          \
	do {                                                                                       \
		begin_slots(list, sizeof(list) / sizeof(list[0]), options);                        \
		check_schedule(golden);                                                            \
	} while (0)

static const struct slot_task scenario_1[] = {{"T1", 1, 4, 1, 2, 0}, {"T2", 1, 2, 1, 4, 0}};
static const struct slot_task scenario_1_wc[] = {
	{"T1", 1, 4, 1, 2, AN_WORK_CONSERVING},
	{"T2", 1, 2, 1, 4, AN_WORK_CONSERVING},
};
static const struct slot_task scenario_2_wc[] = {
	{"T1", 1, 3, 1, 2, AN_WORK_CONSERVING},
	{"T2", 1, 3, 1, 4, AN_WORK_CONSERVING},
};
static const struct slot_task scenario_2_server[] = {
	{"TS", 1, 2, 0, 5, AN_TASK_SERVER},
	{"T1", 1, 3, 1, 2, 0},
	{"T2", 1, 3, 1, 4, 0},
};

TEST(dwcs_golden_case_1)
{
	RUN_GOLDEN(scenario_1, 0, &golden_case_I);
}

TEST(dwcs_golden_case_2)
{
	RUN_GOLDEN(scenario_1_wc, 0, &golden_case_II);
}

TEST(dwcs_golden_case_3)
{
	RUN_GOLDEN(scenario_2_wc, 0, &golden_case_III);
}

TEST(dwcs_golden_case_4)
{
	RUN_GOLDEN(scenario_2_server, 0, &golden_case_IV_fcfs_T2_first);
	RUN_GOLDEN(scenario_2_server, AN_TIE_INDEX, &golden_case_IV_fcfs_T1_first);
}

TEST(dwcs_golden_unequal_periods)
{
	static const struct slot_task two[] = {{"A", 1, 1, 1, 4, 0}, {"B", 1, 3, 2, 4, 0}};
	static const struct slot_task three[] = {
		{"A", 1, 1, 3, 4, 0},
		{"B", 1, 6, 2, 3, 0},
		{"C", 1, 6, 1, 4, 0},
	};

	RUN_GOLDEN(two, AN_TIE_INDEX, &golden_unequal_T_counterexample);
	CHECK_EQ(contract(1)->violations, 0);
	CHECK_EQ(contract(2)->violations, 1);
	CHECK_EQ(contract(2)->misses, 4);
	RUN_GOLDEN(three, AN_TIE_INDEX, &golden_unequal_T_lowU);
	CHECK_EQ(contract(1)->violations, 0);
	CHECK_EQ(contract(2)->violations, 0);
	CHECK_EQ(contract(3)->violations, 1);
	CHECK_EQ(contract(3)->misses, 4);
}
