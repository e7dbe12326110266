/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A machine that runs jobs under contracts, as contract_run.h wants it done: what a simulator is,
 * as small as can be. Time is exact; nothing costs anything.
 */
#ifndef ANDANTE_TESTS_MACHINE_H
#define ANDANTE_TESTS_MACHINE_H

#include <string.h>

#include "contract_fixture.h"

#define MACHINE_TASKS 12
#define MACHINE_JOBS 64
#define MACHINE_CPUS 8
#define MACHINE_SEGMENTS 256

/* A task of one contract, with its jobs in the order of their releases. */
struct machine_task {
	u32 index; /* its contract */
	u32 jobs, released, done;
	u64 release_ns[MACHINE_JOBS];
	u64 demand_ns[MACHINE_JOBS];
	u64 end_ns[MACHINE_JOBS]; /* result: when the job was done; AN_NEVER: it was not */
	u64 left_ns;		  /* of the job in service */
};

/* What ran on a CPU without a break. */
struct machine_segment {
	u64 from_ns, to_ns;
	u32 cpu, task;
};

struct machine {
	struct machine_task task[MACHINE_TASKS];
	u32 tasks, cpus;
	u64 now_ns;
	u64 share_ns; /* time that no contract wanted, not even in the background */
	struct machine_segment segment[MACHINE_SEGMENTS]; /* the first ones */
	u32 segments;
	bool checks; /* the invariants, at every step */
};

static struct machine machine;

static inline void machine_begin(u32 cpus, u32 options)
{
	an_contracts_init(&set, options);
	machine.tasks = machine.segments = 0;
	machine.cpus = cpus;
	machine.now_ns = machine.share_ns = 0;
	machine.checks = false;
}

/* A task of this contract, without jobs yet. Returns its number. */
static inline u32 machine_task(u32 index)
{
	struct machine_task *t = &machine.task[machine.tasks];

	CHECK(machine.tasks < MACHINE_TASKS);
	t->index = index;
	t->jobs = t->released = t->done = 0;
	t->left_ns = 0;
	return machine.tasks++;
}

static inline void machine_job(u32 task, u64 release_ns, u64 demand_ns)
{
	struct machine_task *t = &machine.task[task];

	CHECK(t->jobs < MACHINE_JOBS);
	t->release_ns[t->jobs] = release_ns;
	t->demand_ns[t->jobs] = demand_ns;
	t->end_ns[t->jobs++] = AN_NEVER;
}

/* The jobs that arrive now; a contract that had none in service wakes. */
static inline void machine_release(void)
{
	for (u32 i = 0; i < machine.tasks; i++) {
		struct machine_task *t = &machine.task[i];

		while (t->released < t->jobs && t->release_ns[t->released] <= machine.now_ns) {
			if (t->released++ == t->done) {
				t->left_ns = t->demand_ns[t->done];
				an_contract_wake(&set, t->index, machine.now_ns);
			}
		}
	}
}

static inline void machine_end_job(struct machine_task *t)
{
	t->end_ns[t->done++] = machine.now_ns;
	if (t->done < t->released) {
		t->left_ns = t->demand_ns[t->done];
		an_contract_next_job(&set, t->index, t->release_ns[t->done], machine.now_ns);
	} else {
		an_contract_sleep(&set, t->index, machine.now_ns);
	}
}

static inline struct machine_task *machine_find(u32 index)
{
	for (u32 i = 0; i < machine.tasks; i++)
		if (machine.task[i].index == index)
			return &machine.task[i];
	return NULL;
}

/* Which contract runs on this CPU now; in the background if nothing else does. */
static inline u32 machine_pick(u32 cpu)
{
	u32 rule, index = an_contracts_pick(&set, cpu, machine.now_ns, false, &rule);

	if (!index)
		index = an_contracts_pick(&set, cpu, machine.now_ns, true, &rule);
	CHECK_EQ(index == AN_NONE, rule == AN_RULE_NONE);
	return index;
}

static inline void machine_record(u32 cpu, u32 index, u64 to_ns)
{
	struct machine_segment *s = &machine.segment[machine.segments];
	u32 task = machine_find(index) - machine.task;

	for (struct machine_segment *last = s; last-- > machine.segment;) {
		if (last->cpu != cpu)
			continue;
		if (last->task == task && last->to_ns == machine.now_ns) {
			last->to_ns = to_ns;
			return;
		}
		break;
	}
	if (machine.segments < MACHINE_SEGMENTS) {
		*s = (struct machine_segment){machine.now_ns, to_ns, cpu, task};
		machine.segments++;
	}
}

static inline u64 earlier(u64 a_ns, u64 b_ns)
{
	return a_ns < b_ns ? a_ns : b_ns;
}

/* When something happens next, with these contracts running. */
static inline u64 machine_next(const u32 *running, u64 until_ns)
{
	for (u32 i = 0; i < machine.tasks; i++) {
		struct machine_task *t = &machine.task[i];

		if (t->released < t->jobs)
			until_ns = earlier(until_ns, t->release_ns[t->released]);
	}
	for (u32 cpu = 0; cpu < machine.cpus; cpu++) {
		u64 run_ns;

		until_ns = earlier(until_ns, an_contracts_due(&set, cpu));
		if (!running[cpu])
			continue;
		run_ns = an_contract_run_ns(&set, running[cpu], machine.now_ns);
		run_ns = earlier(run_ns, machine_find(running[cpu])->left_ns);
		CHECK(run_ns > 0);
		until_ns = earlier(until_ns, machine.now_ns + run_ns);
	}
	CHECK(until_ns > machine.now_ns);
	return until_ns;
}

/* Runs until then. */
static inline void machine_run(u64 until_ns)
{
	while (machine.now_ns < until_ns) {
		u32 running[MACHINE_CPUS];
		u64 next_ns, ran_ns, kick = 0;

		machine_release();
		for (u32 cpu = 0; cpu < machine.cpus; cpu++)
			an_contracts_expire(&set, cpu, machine.now_ns, &kick);
		for (u32 cpu = 0; cpu < machine.cpus; cpu++)
			running[cpu] = machine_pick(cpu);
		if (machine.checks)
			check_contracts(machine.cpus);
		next_ns = machine_next(running, until_ns);
		for (u32 cpu = 0; cpu < machine.cpus; cpu++) {
			if (running[cpu])
				machine_record(cpu, running[cpu], next_ns);
			else
				machine.share_ns += next_ns - machine.now_ns;
		}
		ran_ns = next_ns - machine.now_ns;
		machine.now_ns = next_ns;
		for (u32 cpu = 0; cpu < machine.cpus; cpu++) {
			struct machine_task *t = machine_find(running[cpu]);

			if (!running[cpu])
				continue;
			an_contract_charge(&set, running[cpu], ran_ns, next_ns);
			t->left_ns -= ran_ns;
			if (!t->left_ns)
				machine_end_job(t);
		}
	}
}

/* How much too late this job was done, or would be if it were done now [ns]. */
static inline u64 machine_lateness_ns(u32 task, u32 job)
{
	const struct machine_task *t = &machine.task[task];
	u64 deadline_ns = t->release_ns[job] + contract(t->index)->promise.deadline_rel_ns;
	u64 end_ns = earlier(t->end_ns[job], machine.now_ns);

	return end_ns > deadline_ns ? end_ns - deadline_ns : 0;
}

#endif
