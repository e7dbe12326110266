/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A CPU in slots of one unit, on which every task always wants to run: how the DWCS papers draw
 * their schedules. Task i is contract i + 1.
 */
#ifndef ANDANTE_TESTS_SLOTS_H
#define ANDANTE_TESTS_SLOTS_H

#include <string.h>

#include "contract_fixture.h"
#include "golden/dwcs.h"

#define SLOT 2ULL /* [ns]; even, for events at half a slot */

/* Times in slots. */
struct slot_task {
	const char *name;
	u64 budget, period;
	u32 x, y, flags;
};

struct slot_result {
	const char *name; /* who ran */
	u32 index;	  /* its contract */
	u32 rule;
	bool event; /* in the place of another, for an event */
};

/* [1] of event.h, Table 2; _wc: work-conserving; with the task server of Figure 4(d). */
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

#define T1 1

static const struct slot_task *slot_tasks;
static u32 slot_count;

static inline u32 events_pending(void)
{
	return set.cpus[0].count[AN_SINKS];
}

static inline void begin_slots(const struct slot_task *list, u32 count, u32 options)
{
	slot_tasks = list;
	slot_count = count;
	an_contracts_init(&set, options);
	for (u32 i = 0; i < count; i++)
		CHECK_EQ(create_window(list[i].budget * SLOT, list[i].period * SLOT, list[i].x,
				       list[i].y, list[i].flags),
			 i + 1);
	for (u32 i = 0; i < count; i++) {
		an_contract_wake(&set, i + 1, 0);
		if (list[i].flags & AN_TASK_SERVER)
			set.cpus[0].server = i + 1;
	}
	check_contracts(1);
}

/* Runs the slot of this number. */
static inline struct slot_result run_slot(u64 slot)
{
	u64 now_ns = slot * SLOT;
	struct an_event_decision decision;
	struct slot_result result;
	u32 rule, index = pick_contract(0, now_ns, &rule);

	CHECK_EQ(rule == AN_RULE_NONE, index == AN_NONE);
	an_event_coordinate(&set, 0, index, now_ns, &decision);
	if (decision.rule == AN_RULE_NONE || decision.rule == AN_RULE_TASK_SERVER) {
		CHECK_EQ(decision.charge, index);
		CHECK(!decision.delivered);
	} else {
		index = decision.run;
		rule = decision.rule;
	}
	CHECK(decision.run_ns >= SLOT);
	if (decision.charge)
		an_contract_charge(&set, decision.charge, SLOT, now_ns + SLOT);
	check_contracts(1);
	result.name = index ? slot_tasks[index - 1].name : "BE";
	result.index = index;
	result.rule = rule;
	result.event = rule >= AN_RULE_EVENT_2 && rule <= AN_RULE_EVENT_5;
	return result;
}

static inline void check_windows(const struct golden_window *windows)
{
	for (u32 i = 0; i < GOLDEN_TASKS && windows[i].task; i++) {
		u32 at = 0;

		while (strcmp(slot_tasks[at].name, windows[i].task))
			CHECK(++at < slot_count);
		CHECK_EQ(contract(at + 1)->x, windows[i].x);
		CHECK_EQ(contract(at + 1)->y, windows[i].y);
		CHECK_EQ(contract(at + 1)->deadline_ns, windows[i].deadline * SLOT);
	}
}

/* Slot for slot as in the table, states included. */
static inline void check_schedule(const struct golden_schedule *golden)
{
	const char *at = golden->ran;

	for (u32 slot = 0; slot < golden->slots; slot++) {
		size_t length = strcspn(at, " ");
		struct slot_result ran = run_slot(slot);
		char got[16];

		CHECK(strlen(ran.name) < sizeof(got) - 1);
		strcpy(got, ran.name);
		if (ran.event)
			strcat(got, "*");
		if (strlen(got) != length || strncmp(got, at, length))
			test_fail(__FILE__, __LINE__, "%s, slot %u: %s ran, not %.*s", golden->name,
				  slot, got, (int)length, at);
		if (slot < golden->states)
			check_windows(golden->state[slot].windows);
		at += length + (at[length] == ' ');
	}
	CHECK(!*at);
}

#endif
