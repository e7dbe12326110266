// SPDX-License-Identifier: GPL-2.0
/*
 * Coordinated event scheduling: the five rules against the schedules of [1] of event.h (Table 2,
 * Figure 4), the queue, the task server, and the two UNIX rules.
 */
#include "random.h"
#include "slots.h"

/* An event for T1 at two and a half slots. */
#define RUN_WITH_EVENT(list, options, sink, half_slots, golden)                                    \
	do {                                                                                       \
		begin_slots(list, sizeof(list) / sizeof(list[0]), options);                        \
		CHECK(an_event_raise(&set, &events, sink, (half_slots) * SLOT / 2, 0));            \
		check_schedule(golden);                                                            \
		CHECK_EQ(events.count, 0);                                                         \
	} while (0)

TEST(event_golden_case_1)
{
	RUN_WITH_EVENT(scenario_1, 0, T1, 5, &golden_case_I_event);
}

TEST(event_golden_case_2)
{
	RUN_WITH_EVENT(scenario_1_wc, 0, T1, 5, &golden_case_II_event);
}

TEST(event_golden_case_3)
{
	RUN_WITH_EVENT(scenario_2_wc, 0, T1, 5, &golden_case_III_event);
}

TEST(event_golden_case_4)
{
	RUN_WITH_EVENT(scenario_2_server, 0, T1 + 1, 9, &golden_case_IV_fcfs_T2_first_event);
	RUN_WITH_EVENT(scenario_2_server, AN_TIE_INDEX, T1 + 1, 9,
		       &golden_case_IV_fcfs_T1_first_event);
}

/* Without its rule a case goes on as if there were no event; the sink's own slot delivers it. */
TEST(event_rules_left_out)
{
	RUN_WITH_EVENT(scenario_1, AN_EVENT_NO_RULE_2, T1, 5, &golden_case_I);
	RUN_WITH_EVENT(scenario_1_wc, AN_EVENT_NO_RULE_3, T1, 5, &golden_case_II);
	RUN_WITH_EVENT(scenario_2_wc, AN_EVENT_NO_RULE_4, T1, 5, &golden_case_III);
	RUN_WITH_EVENT(scenario_2_server, AN_EVENT_NO_RULE_5, T1 + 1, 9,
		       &golden_case_IV_fcfs_T2_first);
	/* The others stay. */
	RUN_WITH_EVENT(scenario_1, AN_EVENT_NO_RULE_3 | AN_EVENT_NO_RULE_4 | AN_EVENT_NO_RULE_5, T1,
		       5, &golden_case_I_event);
}
