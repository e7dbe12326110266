// SPDX-License-Identifier: GPL-2.0
/*
 * Fuzz target: bytes are a set of servers that one CPU has room for, and the jobs of each. Whatever
 * the others do, one that keeps to its budget and its period is never late.
 *
 * The first bytes say whether deadlines are shorter than periods. Of each server there follow its
 * promise, its flags and its jobs; the machine is that of the tests (tests/machine.h), with the
 * invariants after each step.
 */
#include "plain.h"

#include "../tests/contract_invariants.h"
#include "../tests/machine.h"

#define WHOLE 120 /* [ns]; multiple of every period */
#define HORIZON_NS (2 * WHOLE)
#define SERVERS 6

static bool honest[MACHINE_TASKS];

/* Of the CPU so much is left [1/WHOLE]; 0: no such server fits. */
static bool take_promise(struct an_promise *p, u64 *left)
{
	static const u64 periods[] = {4, 5, 6, 8, 10, 12, 15, 20, 24, 30};
	u64 period_ns = periods[take() % 10], most = *left * period_ns / WHOLE;

	if (!most)
		return false;
	*p = (struct an_promise){0};
	p->period_ns = period_ns;
	p->budget_ns = 1 + take() % most;
	p->flags = take() & (AN_HARD | AN_RECLAIM | AN_BORROW | AN_CATCH_UP);
	*left -= p->budget_ns * WHOLE / period_ns;
	return true;
}

/* Jobs: of at most C and at least T apart, or as it comes. */
static void take_jobs(u32 task, const struct an_promise *p)
{
	u64 release_ns = take() % (2 * p->period_ns);
	u32 jobs = take() % MACHINE_JOBS;

	for (u32 job = 0; job < jobs && release_ns < HORIZON_NS; job++) {
		u8 slack = take(), demand = take();

		if (honest[task]) {
			machine_job(task, release_ns, 1 + demand % p->budget_ns);
			release_ns += p->period_ns + slack % p->period_ns;
		} else {
			machine_job(task, release_ns, 1 + demand % (3 * p->budget_ns));
			release_ns += 1 + slack % (2 * p->period_ns);
		}
	}
}

static void check_set(void)
{
	u32 at = 0;
	const char *broken = contract_broken(&set, 1, &at);

	if (broken)
		test_fail(__FILE__, __LINE__, "at %llu: %u: not so: %s",
			  (unsigned long long)machine.now_ns, at, broken);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	u64 left = WHOLE;
	bool constrained;
	u32 servers = 0;

	input_begin(data, size);
	constrained = take() & 1;
	memset(set.contracts, 0, (set.unused ? set.unused : 1) * sizeof(set.contracts[0]));
	machine_begin(1, 0);
	while (input_left() && servers++ < SERVERS) {
		struct an_promise promise;
		u32 task;

		if (!take_promise(&promise, &left))
			continue;
		if (constrained) { /* the densities C/D are what adds up */
			promise.deadline_rel_ns = promise.period_ns;
			promise.period_ns += take() % 8;
		}
		task = machine_task(an_contract_create(&set, &promise));
		honest[task] = take() & 1;
		take_jobs(task, &promise);
	}
	for (u64 until_ns = 0; until_ns < HORIZON_NS + WHOLE; until_ns += 4) {
		machine_run(until_ns);
		check_set();
	}
	for (u32 task = 0; task < machine.tasks; task++) {
		for (u32 job = 0; honest[task] && job < machine.task[task].jobs; job++)
			CHECK_EQ(machine_lateness_ns(task, job), 0);
		CHECK(!honest[task] || !contract(machine.task[task].index)->misses);
	}
	return 0;
}
