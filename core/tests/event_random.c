// SPDX-License-Identifier: GPL-2.0
/*
 * Events hurt no contract: random sets that DWCS can serve, with events at random. Without events
 * none is violated, so with them none may be.
 */
#include "random.h"
#include "slots.h"

#define SETS 10000
#define TASKS_MAX 8

/* Utilisation 1, divisible by every y T with y, T <= 10. */
#define WHOLE (2520ULL * 2520)

static struct slot_task list[TASKS_MAX];
static u32 list_count;

static u64 demand(const struct slot_task *t)
{
	return WHOLE * (t->y - t->x) / t->y * t->budget / t->period;
}

static u32 random_flags(struct random *r)
{
	return random_chance(r, 50) ? AN_WORK_CONSERVING : 0;
}

/* One period, C = 1, and as many as fit by (1 - x/y) C/T: what DWCS guarantees. */
static void random_windows(struct random *r)
{
	u64 period = 2 + random_below(r, 7), sum = 0;

	list_count = 0;
	for (u32 tries = 0; tries < 16 && list_count < TASKS_MAX; tries++) {
		u32 y = 1 + random_below(r, 6);
		struct slot_task t = {"", 1, period, random_below(r, y + 1), y, random_flags(r)};

		if (sum + demand(&t) > WHOLE)
			continue;
		sum += demand(&t);
		list[list_count++] = t;
	}
}

/* Periods and budgets of any size, but no more in all than there is: what EDF guarantees. With a
 * task server, which has what is not promised for sure, all of it is. */
static void random_periods(struct random *r, bool server)
{
	u64 sum = 0;

	list_count = 0;
	for (u32 tries = 0; tries < 16 && list_count < TASKS_MAX; tries++) {
		u32 y = 1 + random_below(r, 6);
		u64 period = 2 + random_below(r, 9);
		struct slot_task t = {"",     1 + random_below(r, period / 2),
				      period, server ? 0 : random_below(r, y + 1),
				      y,      random_flags(r)};
		u64 all = WHOLE * t.budget / t.period;

		if (sum + all > WHOLE)
			continue;
		sum += all;
		list[list_count++] = t;
	}
}

/* Do all together want more than there is, though what they may not lose fits? */
static bool too_much(void)
{
	u64 all = 0;

	for (u32 i = 0; i < list_count; i++)
		all += WHOLE * list[i].budget / list[i].period;
	return all > WHOLE;
}

#define ONLY_RULE_4 (AN_EVENT_NO_RULE_2 | AN_EVENT_NO_RULE_3 | AN_EVENT_NO_RULE_5)

/* What became of a set. */
struct outcome {
	u64 violations, delivered[6];
};

/* The list under these options, for so many slots, an event in one of three if there are any. */
static void run_list(struct outcome *o, u64 seed, u32 options, bool events, bool server)
{
	struct random r = {seed};

	begin_slots(list, list_count, options);
	for (u64 slot = 0; slot < 300; slot++) {
		struct an_event_decision d;
		u32 rule, index, sink = 1 + random_below(&r, list_count);
		u64 now_ns = slot * SLOT;

		if (events && random_chance(&r, 33))
			CHECK(an_event_raise(&set, sink, random_below(&r, AN_SERVICES),
					     now_ns + random_below(&r, 4) * SLOT, now_ns));
		if (server)
			an_task_server_update(&set, 0, SLOT, now_ns);
		index = pick_contract(0, now_ns, &rule);
		if (an_task_server_forfeits(&set, 0, now_ns))
			index = pick_contract(0, now_ns, &rule);
		an_event_coordinate(&set, 0, index, now_ns, &d);
		if (d.delivered)
			o->delivered[d.rule - AN_RULE_EVENT_1 + 1]++;
		if (d.charge)
			an_contract_charge(&set, d.charge, SLOT, now_ns + SLOT);
	}
	check_contracts(1);
	for (u32 i = 1; i <= list_count; i++)
		o->violations += contract(i)->violations;
}

/* Sum (1 - x/y) C/T <= 1 < sum C/T: somebody loses his period all the time, and rule 4 chooses. */
TEST(event_hurts_nobody_in_need)
{
	struct outcome plain = {0}, coordinated = {0};
	u32 sets = 0, published = 0, violated = 0;

	for (u64 seed = test_seed(); sets < SETS; seed++) {
		struct random r = {seed};

		random_windows(&r);
		if (!too_much())
			continue;
		test_scenario(seed);
		sets++;
		run_list(&plain, seed, 0, false, false);
		run_list(&coordinated, seed, 0, true, false);
		CHECK_EQ(plain.violations + coordinated.violations, 0);
		if (sets % 10 == 0) {
			struct outcome o = {0};

			run_list(&o, seed, AN_EVENT_AS_PUBLISHED | ONLY_RULE_4, true, false);
			published++;
			violated += o.violations != 0;
		}
	}
	/* The test sees what it is for: rule 4 does swap, and as published it does harm. */
	CHECK(coordinated.delivered[4] > SETS);
	CHECK(violated > published / 3);
	test_remark("events: %llu swaps by rule 4 in %u sets that want too much, none violated; as "
		    "published it violates %u of %u",
		    (unsigned long long)coordinated.delivered[4], sets, violated, published);
}

/* Sum C/T <= 1, periods of all kinds: nobody loses a period, whatever the events; all rules act. */
TEST(event_hurts_nobody_at_ease)
{
	struct outcome coordinated = {0};

	for (u64 seed = test_seed(); seed < test_seed() + SETS; seed++) {
		struct random r = {seed};

		test_scenario(seed);
		random_periods(&r, seed & 1);
		run_list(&coordinated, seed, 0, true, seed & 1);
		CHECK_EQ(coordinated.violations, 0);
	}
	for (u32 rule = 1; rule <= 5; rule++)
		CHECK(coordinated.delivered[rule] > SETS / 100);
	test_remark("events: rules 1 to 5 delivered %llu %llu %llu %llu %llu of them at ease",
		    (unsigned long long)coordinated.delivered[1],
		    (unsigned long long)coordinated.delivered[2],
		    (unsigned long long)coordinated.delivered[3],
		    (unsigned long long)coordinated.delivered[4],
		    (unsigned long long)coordinated.delivered[5]);
}
