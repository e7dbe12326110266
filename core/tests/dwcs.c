// SPDX-License-Identifier: GPL-2.0
/*
 * DWCS: the schedules that are known to the last slot ([1] of dwcs.h: Table 2, Figure 4), the rules
 * of a window, and what the header decided where the paper is silent.
 */
#include "slots.h"

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
