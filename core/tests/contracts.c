// SPDX-License-Identifier: GPL-2.0
/* The set of contracts: what may be promised, the heaps, moving, changing and removing. */
#include <string.h>

#include "contract_fixture.h"
#include "random.h"

TEST(contract_promises)
{
	static const struct {
		struct an_promise promise;
		bool valid;
	} known[] = {
		{{1, 1, 0, 0, 0, 0, 0}, true},
		{{1, AN_MAX_PERIOD_NS, 0, 0, 0, 0, 63}, true},
		{{0, 10, 0, 0, 0, 0, 0}, false}, /* nothing promised */
		{{11, 10, 0, 0, 0, 0, 0}, false},
		{{1, AN_MAX_PERIOD_NS + 1, 0, 0, 0, 0, 0}, false},
		{{1, 10, 0, 0, 0, 0, 64}, false},
		{{5, 10, 5, 0, 0, AN_HARD, 0}, true},
		{{5, 10, 4, 0, 0, 0, 0}, false},  /* C > D */
		{{5, 10, 11, 0, 0, 0, 0}, false}, /* D > T */
		{{1, 10, 0, 1, 2, AN_WINDOW | AN_WORK_CONSERVING | AN_BORROW, 0}, true},
		{{1, 10, 0, 3, 2, AN_WINDOW, 0}, false},
		{{1, 10, 0, 1, AN_MAX_WINDOW + 1, AN_WINDOW, 0}, false},
		{{1, 10, 5, 1, 2, AN_WINDOW, 0}, false}, /* D < T */
		{{1, 10, 0, 1, 2, AN_WINDOW | AN_HARD, 0}, false},
		{{1, 10, 0, 1, 2, 0, 0}, false}, /* a window for one without windows */
		{{1, 10, 0, 0, 0, AN_WORK_CONSERVING, 0}, false},
		{{1, 10, 0, 0, 0, AN_EXHAUSTIVE, 0}, true},
		{{1, 10, 0, 0, 0, AN_EXHAUSTIVE | AN_RECLAIM, 0}, false},
		{{1, 10, 0, 0, 0, 1 << 20, 0}, false},
	};

	an_contracts_init(&set, 0);
	for (u32 i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		CHECK_EQ(an_promise_valid(&known[i].promise), known[i].valid);
		CHECK_EQ(an_contract_create(&set, &known[i].promise) != AN_NONE, known[i].valid);
	}
	check_contracts(64);
}

/* As many as there is room for, and their slots again when they are gone. */
TEST(contract_room)
{
	struct an_promise promise = {1, 10, 0, 0, 0, 0, 0};
	u32 generation;

	an_contracts_init(&set, 0);
	set.slots = 8; /* the shell has room for so many, and makes more */
	for (u32 i = 1; i < 8; i++)
		CHECK_EQ(an_contract_create(&set, &promise), i);
	CHECK_EQ(an_contract_create(&set, &promise), AN_NONE);
	set.slots = AN_MAX_CONTRACTS;
	for (u32 i = 8; i < AN_MAX_CONTRACTS; i++)
		CHECK_EQ(an_contract_create(&set, &promise), i);
	CHECK_EQ(an_contract_create(&set, &promise), AN_NONE);
	generation = contract(500)->generation;
	CHECK_EQ(an_contract_remove(&set, 500), 0);
	CHECK_EQ(an_contract_remove(&set, 500), -1);
	CHECK_EQ(an_contract_create(&set, &promise), 500);
	CHECK(contract(500)->generation != generation);
	CHECK_EQ(set.count, AN_MAX_CONTRACTS - 1);
}

/* The first of the ready, looked for one by one. */
static u32 first_ready(u32 cpu)
{
	u32 best = AN_NONE;

	for (u32 index = 1; index < set.unused; index++) {
		struct an_contract *c = contract(index);

		if (!c->used || c->cpu != cpu || c->rank == AN_RANK_OUT)
			continue;
		if (!best || an_precedence(&set, index, best) > 0)
			best = index;
	}
	return best;
}

static struct an_promise any_promise(struct random *r, u32 cpus)
{
	static const u32 flags[] = {
		0, AN_HARD, AN_HARD | AN_BORROW, AN_RECLAIM, AN_BORROW | AN_CATCH_UP, AN_EXHAUSTIVE,
	};
	struct an_promise p = {0};

	p.period_ns = 1 + random_below(r, 50);
	p.budget_ns = 1 + random_below(r, p.period_ns);
	p.cpu = random_below(r, cpus);
	if (random_chance(r, 50)) {
		p.flags = AN_WINDOW | (random_chance(r, 50) ? AN_WORK_CONSERVING : 0);
		p.y = 1 + random_below(r, 4);
		p.x = random_below(r, p.y + 1);
	} else {
		p.flags = flags[random_below(r, 6)];
	}
	return p;
}

/* One call that the caller may make, whatever its state. */
static void any_call(struct random *r, u32 cpus, u64 now_ns)
{
	struct an_promise p = any_promise(r, cpus);
	u32 index = 1 + random_below(r, set.unused), cpu = random_below(r, cpus), rule;
	struct an_contract *c = contract(index);
	u64 kick = 0;

	if (index >= set.unused || !c->used) {
		an_contract_create(&set, &p);
		return;
	}
	switch (random_below(r, 10)) {
	case 0:
		p.flags = c->promise.flags;
		p.cpu = c->promise.cpu;
		if (!(p.flags & AN_WINDOW))
			p.x = p.y = 0;
		else if (!p.y)
			p.y = 1;
		CHECK_EQ(an_contract_set(&set, index, &p), 0);
		break;
	case 1:
		CHECK_EQ(an_contract_move(&set, index, cpu), 0);
		break;
	case 2:
		if (random_chance(r, 50))
			an_contract_remove(&set, index);
		break;
	case 3:
		an_contract_sleep(&set, index, now_ns);
		break;
	case 4:
		an_contract_next_job(&set, index, now_ns, now_ns);
		break;
	case 5:
		an_contracts_expire(&set, cpu, now_ns, &kick);
		CHECK(an_contracts_due(&set, cpu) > now_ns);
		break;
	case 6:
	case 7:
		index = an_contracts_pick(&set, cpu, now_ns, true, &rule);
		CHECK_EQ(index, first_ready(cpu));
		an_contract_charge(&set, index, random_below(r, 20), now_ns);
		break;
	default:
		an_contract_wake(&set, index, now_ns);
	}
}

/* Any calls in any order, on two CPUs: the heaps are heaps, and what is first is first. */
TEST(contract_any_calls)
{
	for (u64 seed = test_seed(); seed < test_seed() + 200; seed++) {
		struct random r = {seed};
		u64 now_ns = 0;

		test_scenario(seed);
		an_contracts_init(&set, random_below(&r, 8));
		for (u32 step = 0; step < 500; step++) {
			now_ns += random_below(&r, 4);
			any_call(&r, 2, now_ns);
			check_contracts(2);
		}
	}
}

/* The heaps filled to the brim, on the last CPU. */
TEST(contract_full_heaps)
{
	struct random r = {test_seed()};
	u64 last_ns = 0, kick = 0;

	an_contracts_init(&set, 0);
	for (u32 i = 1; i < AN_MAX_CONTRACTS; i++) {
		u32 index = create_on(63, 1, 1 + random_below(&r, 100000), 1, 2, AN_WINDOW);

		an_contract_wake(&set, index, 0);
	}
	check_contracts(64);
	CHECK_EQ(set.cpus[63].count[AN_READY], AN_MAX_CONTRACTS - 1);
	while (set.cpus[63].count[AN_READY]) {
		u32 rule, index = an_contracts_pick(&set, 63, last_ns, false, &rule);

		CHECK(contract(index)->deadline_ns >= last_ns);
		last_ns = contract(index)->deadline_ns;
		an_contract_sleep(&set, index, 0);
	}
	check_contracts(64);
	CHECK_EQ(an_contracts_expire(&set, 63, 1000000, &kick), AN_NEVER);
	CHECK_EQ(kick, 0);
}

/* More due at once than one call deals with: it says so. */
TEST(contract_expire_is_bounded)
{
	u64 kick = 0;

	an_contracts_init(&set, 0);
	create_on(3, 1, 1, 0, 1, AN_WINDOW);
	an_contract_wake(&set, 1, 0);
	CHECK_EQ(an_contracts_expire(&set, 3, 5000, &kick), AN_MAX_EXPIRED + 1);
	CHECK_EQ(contract(1)->misses, AN_MAX_EXPIRED);
	CHECK_EQ(kick, 1 << 3);
}

/* A woken contract takes the CPU from one behind it, from extra service, from no contract. */
TEST(contract_preempts)
{
	u32 early, late, extra, rule;

	an_contracts_init(&set, 0);
	late = create_server(2, 20, 0);
	early = create_server(2, 10, 0);
	extra = create_window(1, 10, 0, 1, AN_WORK_CONSERVING);
	an_contract_wake(&set, late, 0);
	CHECK_EQ(an_contract_preempts(&set, late, AN_NONE), AN_RULE_EDF);
	an_contract_wake(&set, early, 0);
	CHECK_EQ(an_contract_preempts(&set, early, late), AN_RULE_EDF);
	CHECK_EQ(an_contract_preempts(&set, late, early), AN_RULE_NONE);
	CHECK_EQ(an_contract_preempts(&set, early, early), AN_RULE_NONE);
	an_contract_wake(&set, extra, 0);
	CHECK_EQ(an_contract_preempts(&set, extra, early), AN_RULE_DENOMINATOR);
	an_contract_charge(&set, extra, 1, 1);
	CHECK_EQ(an_contract_preempts(&set, extra, late), AN_RULE_NONE);
	CHECK_EQ(an_contract_preempts(&set, extra, AN_NONE), AN_RULE_EXTRA);
	CHECK(an_contract_preempts(&set, late, extra) != AN_RULE_NONE);
	CHECK_EQ(an_contracts_pick(&set, 0, 1, false, &rule), early);
}

/* What is known of a CPU as a whole follows its contracts. */
TEST(contract_utilization)
{
	struct an_promise half = {5, 10, 0, 0, 0, 0, 0};
	u32 a, b;

	an_contracts_init(&set, 0);
	a = create_on(0, 5, 10, 0, 0, 0);
	b = create_on(0, 5, 10, 1, 2, AN_WINDOW);
	CHECK_EQ(set.cpus[0].utilization, AN_UTILIZATION_ONE / 4 * 3);
	CHECK_EQ(set.cpus[0].window_max, 2);
	CHECK_EQ(an_contract_set(&set, b, &half), -1); /* of another kind */
	half.budget_ns = 2;
	half.period_ns = 8;
	CHECK_EQ(an_contract_set(&set, a, &half), 0);
	CHECK_EQ(set.cpus[0].utilization, AN_UTILIZATION_ONE / 2);
	CHECK_EQ(an_contract_move(&set, b, 7), 0);
	CHECK_EQ(set.cpus[0].utilization, AN_UTILIZATION_ONE / 4);
	CHECK_EQ(set.cpus[7].utilization, AN_UTILIZATION_ONE / 4);
	CHECK_EQ(set.cpus[0].window_max, 0);
	an_contract_remove(&set, a);
	an_contract_remove(&set, b);
	CHECK_EQ(set.cpus[0].utilization + set.cpus[7].utilization, 0);
}

/* A promise that is changed in use: less budget at once, more with the next. */
TEST(contract_set_in_use)
{
	struct an_promise more = {6, 12, 0, 0, 0, AN_HARD, 0}, less = {2, 12, 0, 0, 0, AN_HARD, 0};
	struct an_promise soft = {2, 12, 0, 0, 0, 0, 0};
	struct an_contract *c;

	an_contracts_init(&set, 0);
	c = contract(create_server(4, 10, AN_HARD));
	an_contract_wake(&set, 1, 0);
	CHECK_EQ(an_contract_set(&set, 1, &more), 0);
	CHECK_EQ(c->left_ns, 4);
	CHECK_EQ(c->deadline_ns, 10);
	CHECK_EQ(an_contract_set(&set, 1, &less), 0);
	CHECK_EQ(c->left_ns, 2);
	CHECK_EQ(an_contract_charge(&set, 1, 2, 2), AN_RULE_THROTTLED);
	CHECK_EQ(an_contract_set(&set, 1, &soft), 0);
	CHECK_EQ(c->left_ns, 2); /* soft servers do not wait */
	CHECK_EQ(c->deadline_ns, 22);
	check_contracts(1);
}

/* Would it hold budget if it woke then? The set is as it was after that. */
static bool holds_budget_at(u32 index, u64 now_ns)
{
	static struct an_contracts before;
	bool holds;

	before = set;
	an_contract_wake(&set, index, now_ns);
	holds = an_contract_has_budget(contract(index));
	set = before;
	return holds;
}

/* What a shell is told of a contract that sleeps is what comes of it when it wakes. */
TEST(when_there_will_be_budget_is_foretold)
{
	const u32 flags[] = {0, AN_HARD, AN_EXHAUSTIVE, AN_WINDOW};
	u32 later = 0;

	for (u64 seed = test_seed(); seed < test_seed() + 2000; seed++) {
		struct random r = {seed};
		u64 now_ns = 1000, from_ns, budget_ns = 1 + random_below(&r, 10);
		u64 period_ns = budget_ns + random_below(&r, 20);
		u32 kind = flags[random_below(&r, 4)], jobs = random_below(&r, 5), index;

		test_scenario(seed);
		an_contracts_init(&set, 0);
		index = kind == AN_WINDOW ? create_window(budget_ns, period_ns, 1, 2, kind)
					  : create_server(budget_ns, period_ns, kind);
		while (jobs--) {
			u64 ran_ns = random_below(&r, 2 * budget_ns), kick = 0;

			an_contract_wake(&set, index, now_ns);
			now_ns += ran_ns;
			an_contract_charge(&set, index, ran_ns, now_ns);
			an_contract_sleep(&set, index, now_ns);
			now_ns += random_below(&r, budget_ns);
			an_contracts_expire(&set, 0, now_ns, &kick);
		}
		from_ns = an_contract_budget_from_ns(contract(index), now_ns);
		CHECK(from_ns != AN_NEVER);
		if (from_ns <= now_ns) {
			CHECK(holds_budget_at(index, now_ns));
			continue;
		}
		later++;
		CHECK(!holds_budget_at(index, now_ns));
		CHECK(!holds_budget_at(index, from_ns - 1));
		CHECK(holds_budget_at(index, from_ns));
	}
	CHECK(later > 200);
}

/* Every rule has a name of its own. */
TEST(rule_names)
{
	u32 named = 0;

	for (u32 a = 0; a < 64; a++) {
		if (!strcmp(an_rule_name(a), "unknown"))
			continue;
		named++;
		for (u32 b = 0; b < a; b++)
			CHECK(strcmp(an_rule_name(a), an_rule_name(b)));
	}
	CHECK_EQ(named, 22 + 13);
	CHECK(!strcmp(an_rule_name(AN_RULE_EVENT_4), "event-rule-4"));
}
