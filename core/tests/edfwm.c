// SPDX-License-Identifier: GPL-2.0
/* EDF-WM at run time, on splits made by hand. */
#include "machine.h"
#include "random.h"

/* A contract of C = 6, D = T = 12 in two pieces: 4 of the first 6 on CPU 0, 2 of the next on 1. */
static const struct an_promise whole = {6, 12, 0, 0, 0, 0, 0};
static const struct an_piece halves[AN_MAX_PIECES] = {{4, 0, 6, 0, 0}, {2, 6, 6, 1, 0}};

static u32 split(const struct an_promise *promise, const struct an_piece *pieces, u32 count)
{
	u32 index = an_contract_create(&set, promise);

	CHECK_EQ(an_split_set(&set, index, pieces, count), 0);
	check_contracts(MACHINE_CPUS);
	return machine_task(index);
}

static struct an_contract *of(u32 task)
{
	return contract(machine.task[task].index);
}

static void check_segment(u32 at, u32 task, u32 cpu, u64 from_ns, u64 to_ns)
{
	CHECK(at < machine.segments);
	CHECK_EQ(machine.segment[at].task, task);
	CHECK_EQ(machine.segment[at].cpu, cpu);
	CHECK_EQ(machine.segment[at].from_ns, from_ns);
	CHECK_EQ(machine.segment[at].to_ns, to_ns);
}

/* The job migrates at the end of its window, not when the budget of its piece is used up. */
TEST(edfwm_migrates_at_the_window)
{
	u32 task;

	machine_begin(2, 0);
	machine.checks = true;
	task = split(&whole, halves, 2);
	machine_job(task, 0, 6);
	machine_job(task, 12, 6);
	machine_run(24);
	check_segment(0, task, 0, 0, 4);
	check_segment(1, task, 1, 6, 8);
	check_segment(2, task, 0, 12, 16);
	check_segment(3, task, 1, 18, 20);
	CHECK_EQ(machine.segments, 4);
	CHECK_EQ(of(task)->misses, 0);
	CHECK_EQ(of(task)->deadlines, 2);
}

/* A job that is done early cancels its other pieces; the next one starts on the first CPU. */
TEST(edfwm_completion_cancels)
{
	u32 task;

	machine_begin(2, 0);
	machine.checks = true;
	task = split(&whole, halves, 2);
	machine_job(task, 0, 3);
	machine_job(task, 12, 5);
	machine_job(task, 24, 1);
	machine_run(36);
	check_segment(0, task, 0, 0, 3);
	check_segment(1, task, 0, 12, 16);
	check_segment(2, task, 1, 18, 19);
	check_segment(3, task, 0, 24, 25);
	CHECK_EQ(machine.segments, 4);
	CHECK_EQ(of(task)->cpu, 0);
	CHECK_EQ(an_contracts_due(&set, 0), AN_NEVER);
	CHECK_EQ(an_contracts_due(&set, 1), AN_NEVER);
}

/* A job that overruns its last piece goes on with the pieces of the next release. */
TEST(edfwm_overrun_waits)
{
	u32 task;

	machine_begin(2, 0);
	machine.checks = true;
	task = split(&whole, halves, 2);
	machine_job(task, 0, 9);
	machine_job(task, 12, 2);
	machine_run(36);
	check_segment(0, task, 0, 0, 4);
	check_segment(1, task, 1, 6, 8);
	check_segment(2, task, 0, 12, 16); /* 3 for the first job, and 1 of the second */
	check_segment(3, task, 1, 18, 19);
	CHECK_EQ(machine.segments, 4);
	CHECK_EQ(machine.task[task].end_ns[0], 15);
	CHECK_EQ(of(task)->misses, 1);
	CHECK_EQ(of(task)->exhaustions, 1);
	CHECK_EQ(of(task)->replenishments, 1);
}

/* With AN_BORROW idle time is used meanwhile, on the CPU where the job is; never both CPUs. */
TEST(edfwm_overrun_borrows)
{
	struct an_promise borrower = whole;
	u32 task;

	borrower.flags = AN_BORROW;
	machine_begin(2, 0);
	machine.checks = true;
	task = split(&borrower, halves, 2);
	machine_job(task, 0, 12);
	machine_run(24);
	check_segment(0, task, 0, 0, 6);
	check_segment(1, task, 1, 6, 12);
	CHECK_EQ(machine.segments, 2);
	CHECK_EQ(of(task)->borrowed_ns, 6);
}

/* AN_EXHAUSTIVE: the last piece is not enforced; each budget used takes the deadline on by D. */
TEST(edfwm_exhaustive)
{
	struct an_promise promise = whole;
	u32 task;

	promise.flags = AN_EXHAUSTIVE;
	machine_begin(2, 0);
	machine.checks = true;
	task = split(&promise, halves, 2);
	machine_job(task, 0, 9);
	machine_run(11);
	check_segment(0, task, 0, 0, 4);
	check_segment(1, task, 1, 6, 11);
	CHECK_EQ(of(task)->deadline_ns, 12 + 2 * 12);
}

/* On each of its CPUs a piece is an EDF task like any other, with its window's deadline. */
TEST(edfwm_pieces_compete_by_edf)
{
	u32 task, early, late;

	machine_begin(2, 0);
	machine.checks = true;
	task = split(&whole, halves, 2);
	early = machine_task(create_on(0, 1, 5, 0, 0, 0));
	late = machine_task(create_on(1, 4, 8, 0, 0, 0));
	machine_job(task, 0, 6);
	machine_job(early, 0, 1);
	machine_job(late, 5, 4);
	machine_run(14);
	check_segment(0, early, 0, 0, 1);
	check_segment(1, task, 0, 1, 5);
	check_segment(2, late, 1, 5, 6);
	check_segment(3, task, 1, 6, 8); /* deadline 12 before 13 */
	check_segment(4, late, 1, 8, 11);
	CHECK_EQ(machine.segments, 5);
	CHECK_EQ(of(late)->misses, 0);
}

/* Three pieces with room between the windows, and back to a CPU visited before. */
TEST(edfwm_three_pieces)
{
	static const struct an_promise promise = {6, 30, 24, 0, 0, 0, 2};
	static const struct an_piece pieces[AN_MAX_PIECES] = {
		{2, 0, 4, 2, 0},
		{2, 8, 4, 5, 0},
		{2, 20, 4, 2, 0},
	};
	u32 task;

	machine_begin(6, 0);
	machine.checks = true;
	task = split(&promise, pieces, 3);
	machine_job(task, 3, 6);
	machine_run(40);
	check_segment(0, task, 2, 3, 5);
	check_segment(1, task, 5, 11, 13);
	check_segment(2, task, 2, 23, 25);
	CHECK_EQ(of(task)->misses, 0);
}

/* Waking before the next release: what was slept is charged as if it had run. */
TEST(edfwm_sleeping_is_charged)
{
	struct an_contract *c;

	machine_begin(2, 0);
	c = of(split(&whole, halves, 2));
	an_contract_wake(&set, 1, 0);
	an_contract_charge(&set, 1, 1, 1);
	an_contract_sleep(&set, 1, 1);
	CHECK_EQ(an_contract_wake(&set, 1, 3), AN_RULE_KEPT);
	CHECK_EQ(c->left_ns, 1); /* 4 - 1 - 2 */
	an_contract_sleep(&set, 1, 3);
	CHECK_EQ(an_contract_wake(&set, 1, 5), AN_RULE_KEPT);
	CHECK(c->throttled); /* nothing left of this piece */
	an_contract_sleep(&set, 1, 5);
	CHECK_EQ(an_contract_wake(&set, 1, 7), AN_RULE_KEPT);
	CHECK_EQ(c->cpu, 1);
	CHECK_EQ(c->left_ns, 1); /* 2 - 1 */
	an_contract_sleep(&set, 1, 7);
	CHECK_EQ(an_contract_wake(&set, 1, 9), AN_RULE_WAITS);
	CHECK_EQ(an_contracts_due(&set, 0), 12);
	CHECK_EQ(c->cpu, 0);
	an_contract_sleep(&set, 1, 10);
	CHECK_EQ(an_contract_wake(&set, 1, 11), AN_RULE_WAITS);
	CHECK_EQ(an_contracts_due(&set, 0), 12);
	an_contract_sleep(&set, 1, 11);
	CHECK_EQ(an_contract_wake(&set, 1, 20), AN_RULE_RELEASED); /* it did not come at 12 */
	CHECK_EQ(c->cpu, 0);
	CHECK_EQ(c->deadline_ns, 26);
}

/* So is what has run elsewhere; pieces go by the clock from when the job woke, and those of the
 * next. */
TEST(edfwm_job_was_elsewhere)
{
	struct an_contract *c;

	machine_begin(2, 0);
	c = of(split(&whole, halves, 2));
	CHECK_EQ(an_contract_wake_since(&set, 1, 0, 3, 5), AN_RULE_KEPT);
	CHECK_EQ(c->left_ns, 1);
	CHECK_EQ(c->deadline_ns, 6);
	an_contract_charge(&set, 1, 1, 6);
	an_contract_sleep(&set, 1, 6);
	CHECK_EQ(an_contract_wake(&set, 1, 12), AN_RULE_RELEASED);
	CHECK_EQ(c->deadline_ns, 18);
	an_contract_sleep(&set, 1, 13);
	/* It comes back in the second window, of which it can have used 1 at most. */
	CHECK_EQ(an_contract_wake_since(&set, 1, 24, 7, 31), AN_RULE_KEPT);
	CHECK_EQ(c->cpu, 1);
	CHECK_EQ(c->left_ns, 1);
	CHECK_EQ(c->deadline_ns, 36);
}

/* An end of a window concerns two CPUs, and the caller is told. */
TEST(edfwm_kicks_both_cpus)
{
	u64 kick = 0;

	machine_begin(2, 0);
	split(&whole, halves, 2);
	an_contract_wake(&set, 1, 0);
	CHECK_EQ(an_contracts_expire(&set, 0, 6, &kick), AN_NEVER);
	CHECK_EQ(kick, 3);
	CHECK_EQ(contract(1)->cpu, 1);
	CHECK_EQ(contract(1)->deadline_ns, 12);
	check_contracts(2);
}

/* What cannot be a split. */
TEST(edfwm_valid_splits)
{
	static const struct {
		struct an_piece pieces[3];
		u32 count;
	} wrong[] = {
		{{{6, 0, 12, 0, 0}}, 1},		     /* one piece is none */
		{{{4, 0, 6, 0, 0}, {1, 6, 6, 1, 0}}, 2},     /* not C in sum */
		{{{4, 0, 6, 0, 0}, {2, 5, 6, 1, 0}}, 2},     /* windows overlap */
		{{{4, 0, 6, 0, 0}, {2, 6, 7, 1, 0}}, 2},     /* beyond D */
		{{{4, 0, 3, 0, 0}, {2, 6, 6, 1, 0}}, 2},     /* more than the window */
		{{{4, 0, 6, 0, 0}, {2, 6, 6, 0, 0}}, 2},     /* no migration */
		{{{4, 0, 6, 1, 0}, {2, 6, 6, 0, 0}}, 2},     /* does not begin at home */
		{{{4, 1, 5, 0, 0}, {2, 6, 6, 1, 0}}, 2},     /* nor at the release */
		{{{4, 0, 6, 0, 0}, {2, 6, 6, 64, 0}}, 2},    /* no such CPU */
		{{{4, 0, 6, 0, 0}, {2, ~5ULL, 6, 1, 0}}, 2}, /* wraps */
	};
	struct an_piece pieces[AN_MAX_PIECES];

	machine_begin(2, 0);
	an_contract_create(&set, &whole);
	for (u32 i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		memset(pieces, 0, sizeof(pieces));
		memcpy(pieces, wrong[i].pieces, sizeof(wrong[i].pieces));
		CHECK_EQ(an_split_set(&set, 1, pieces, wrong[i].count), -1);
	}
	CHECK_EQ(set.cpus[0].utilization, AN_UTILIZATION_ONE / 2);
	CHECK_EQ(an_split_set(&set, 1, halves, 2), 0);
	CHECK_EQ(an_split_set(&set, 1, halves, 2), -1); /* is split */
	CHECK_EQ(set.cpus[0].utilization, AN_UTILIZATION_ONE / 3);
	CHECK_EQ(set.cpus[1].utilization, AN_UTILIZATION_ONE / 6);
	CHECK_EQ(an_contract_move(&set, 1, 1), -1);
	CHECK_EQ(an_contract_set(&set, 1, &whole), -1);
	CHECK_EQ(an_contract_remove(&set, 1), 0);
	CHECK_EQ(set.cpus[0].utilization + set.cpus[1].utilization, 0);
	/* The pieces' room is used again. */
	for (u32 i = 0; i < 2 * AN_MAX_SPLITS; i++) {
		CHECK_EQ(an_contract_create(&set, &whole), 1);
		CHECK_EQ(an_split_set(&set, 1, halves, 2), 0);
		CHECK_EQ(an_contract_remove(&set, 1), 0);
	}
}

#define SETS 3000
#define SET_CPUS 3
#define HYPERPERIOD 60
#define HORIZON (2 * HYPERPERIOD)

static const u64 periods[] = {4, 5, 6, 10, 12, 15, 20, 30};
static u64 load[SET_CPUS][HORIZON + 1]; /* demand within any L, in 1/HYPERPERIOD ns */
static bool honest[MACHINE_TASKS];

/*
 * Adds a task to the demand of the CPU if it still fits: a piece by its demand bound function, a
 * server that others may overrun by its bandwidth.
 */
static bool fits(u32 cpu, u64 budget_ns, u64 deadline_ns, u64 period_ns, bool server)
{
	u64 sum[HORIZON + 1];

	for (u64 length = 0; length <= HORIZON; length++) {
		u64 jobs = length < deadline_ns ? 0 : (length - deadline_ns) / period_ns + 1;

		sum[length] = load[cpu][length];
		if (server)
			sum[length] += budget_ns * length * HYPERPERIOD / period_ns;
		else
			sum[length] += budget_ns * jobs * HYPERPERIOD;
		if (sum[length] > length * HYPERPERIOD)
			return false;
	}
	memcpy(load[cpu], sum, sizeof(sum));
	return true;
}

static void random_jobs(struct random *r, u32 task, const struct an_promise *p)
{
	u64 release_ns = random_below(r, p->period_ns);

	while (release_ns < HORIZON) {
		u64 most = honest[task] ? p->budget_ns : 3 * p->budget_ns;
		u64 apart = honest[task] ? p->period_ns + random_below(r, 2) * 3
					 : 1 + random_below(r, 2 * p->period_ns);

		machine_job(task, release_ns,
			    random_chance(r, 60) ? most : 1 + random_below(r, most));
		release_ns += apart;
	}
}

/* Two or three windows of one length on CPUs that follow each other, as long as they fit. */
static void random_split(struct random *r)
{
	u32 count = 2 + random_below(r, 2), first = random_below(r, SET_CPUS);
	struct an_promise p = {.period_ns = periods[3 + random_below(r, 5)], .cpu = first};
	struct an_piece pieces[AN_MAX_PIECES] = {0};
	u64 window_ns = p.period_ns / count, before[SET_CPUS][HORIZON + 1];
	u32 task;

	memcpy(before, load, sizeof(load));
	for (u32 i = 0; i < count; i++) {
		struct an_piece *piece = &pieces[i];

		*piece = (struct an_piece){1 + random_below(r, window_ns), i * window_ns, window_ns,
					   (first + i) % SET_CPUS, 0};
		p.budget_ns += piece->budget_ns;
		if (fits(piece->cpu, piece->budget_ns, window_ns, p.period_ns, false))
			continue;
		memcpy(load, before, sizeof(load));
		return;
	}
	p.flags = random_chance(r, 30) ? AN_BORROW : 0;
	task = split(&p, pieces, count);
	honest[task] = random_chance(r, 70);
	random_jobs(r, task, &p);
}

static void random_server(struct random *r)
{
	u64 period_ns = periods[random_below(r, 8)];
	struct an_promise p = {.period_ns = period_ns, .cpu = random_below(r, SET_CPUS)};
	u32 task;

	p.budget_ns = 1 + random_below(r, period_ns / 2);
	p.flags = random_below(r, 16);
	if (!fits(p.cpu, p.budget_ns, period_ns, period_ns, true))
		return;
	task = machine_task(an_contract_create(&set, &p));
	honest[task] = random_chance(r, 50);
	random_jobs(r, task, &p);
}

/* No piece's CPU overloaded: a job that keeps to its contract is in time, split or not. */
TEST(edfwm_isolation)
{
	u32 splits = 0;

	for (u64 seed = test_seed(); seed < test_seed() + SETS; seed++) {
		struct random r = {seed};

		test_scenario(seed);
		machine_begin(SET_CPUS, 0);
		machine.checks = seed % 20 == 0;
		memset(load, 0, sizeof(load));
		for (u32 i = 0; i < MACHINE_TASKS; i++) {
			if (random_chance(&r, 40))
				random_split(&r);
			else
				random_server(&r);
		}
		machine_run(HORIZON + HYPERPERIOD);
		for (u32 task = 0; task < machine.tasks; task++) {
			if (!honest[task])
				continue;
			splits += of(task)->split != 0;
			for (u32 job = 0; job < machine.task[task].jobs; job++)
				CHECK_EQ(machine_lateness_ns(task, job), 0);
		}
	}
	CHECK(splits > SETS / 2);
	test_remark("EDF-WM: %u split contracts in %u sets in time", splits, SETS);
}
