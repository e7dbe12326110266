/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One CPU that serves the jobs of one class as policy.h asks for, for tests of policies.
 *
 * A job runs for run_ns at a time; then it sleeps for sleep_ns, or wakes its partner and waits to
 * be woken, or, if it has neither, goes on for ever. What happens at one instant happens in this
 * order: the tick, the end of a run or quantum, the second of ageing, wake-ups.
 */
#ifndef ANDANTE_TESTS_ONE_CPU_H
#define ANDANTE_TESTS_ONE_CPU_H

#include "test.h"

#define MS 1000000ULL
#define SECOND (1000 * MS)
#define JOBS_MAX 16
#define NOBODY JOBS_MAX
#define NEVER (~0ULL)

enum job_state {
	ASLEEP,
	QUEUED,
	IN_SERVICE,
};

struct job {
	struct an_member member;
	enum job_state state;
	u64 run_ns;   /* between two sleeps; 0: for ever */
	u64 sleep_ns; /* then; 0: until somebody wakes it */
	u32 partner;  /* it wakes this one before it sleeps, or NOBODY */
	u64 wake_ns;  /* instant, or NEVER */
	u64 left_ns;  /* of the run */
	/* findings */
	u64 got_ns, runs, longest_wait_ns, queued_ns;
};

struct one_cpu {
	struct an_policy policy;
	struct job jobs[JOBS_MAX];
	u32 count, serving;
	u64 now_ns, quantum_end_ns, next_tick_ns, next_age_ns;
};

static inline void cpu_begin(struct one_cpu *c, u32 kind, u64 quantum_ns)
{
	*c = (struct one_cpu){.serving = NOBODY};
	an_policy_init(&c->policy, kind, quantum_ns);
	c->next_tick_ns = an_policy_tick_ns(&c->policy) ? an_policy_tick_ns(&c->policy) : NEVER;
	c->next_age_ns = an_policy_age_ns(&c->policy) ? an_policy_age_ns(&c->policy) : NEVER;
}

/* A job with the member's parameters of like; it wakes at once. */
static inline u32 cpu_add(struct one_cpu *c, struct an_member like, u64 run_ns, u64 sleep_ns)
{
	struct job *j = &c->jobs[c->count];

	CHECK(c->count < JOBS_MAX);
	j->member = like;
	if (!j->member.weight)
		j->member.weight = 1024;
	j->run_ns = run_ns;
	j->sleep_ns = sleep_ns;
	j->partner = NOBODY;
	j->wake_ns = c->now_ns;
	an_policy_join(&c->policy, &j->member);
	return c->count++;
}

static inline u32 cpu_add_hog(struct one_cpu *c)
{
	return cpu_add(c, (struct an_member){.nice = 0}, 0, 0);
}

static inline u32 cpu_level(const struct one_cpu *c, u32 job)
{
	return c->jobs[job].member.svr4.level;
}

static inline void cpu_requeue(struct one_cpu *c, u32 why)
{
	struct job *j = &c->jobs[c->serving];

	c->policy.now_ns = c->now_ns;
	an_policy_requeue(&c->policy, &j->member, why);
	j->state = QUEUED;
	j->queued_ns = c->now_ns;
	c->serving = NOBODY;
}

/* One has been queued, or its key has changed: does it take the CPU? */
static inline void cpu_contend(struct one_cpu *c, u32 job)
{
	if (c->serving != NOBODY &&
	    an_policy_preempts(&c->policy, &c->jobs[job].member, &c->jobs[c->serving].member))
		cpu_requeue(c, AN_PREEMPTED);
}

static inline void cpu_wake(struct one_cpu *c, u32 job)
{
	struct job *j = &c->jobs[job];

	if (j->state != ASLEEP)
		return;
	j->wake_ns = NEVER;
	j->left_ns = j->run_ns ? j->run_ns : NEVER;
	c->policy.now_ns = c->now_ns;
	an_policy_wake(&c->policy, &j->member);
	j->state = QUEUED;
	j->queued_ns = c->now_ns;
	cpu_contend(c, job);
}

/* The least key is served; equal keys by id. */
static inline void cpu_pick(struct one_cpu *c)
{
	struct job *j;
	u32 best = NOBODY;

	for (u32 i = 0; i < c->count; i++) {
		if (c->jobs[i].state == QUEUED &&
		    (best == NOBODY || c->jobs[i].member.key < c->jobs[best].member.key))
			best = i;
	}
	c->serving = best;
	if (best == NOBODY)
		return;
	j = &c->jobs[best];
	if (c->now_ns - j->queued_ns > j->longest_wait_ns)
		j->longest_wait_ns = c->now_ns - j->queued_ns;
	j->state = IN_SERVICE;
	an_policy_serve(&c->policy, &j->member);
	c->quantum_end_ns = c->now_ns + an_policy_quantum_ns(&c->policy, &j->member);
}

static inline u64 least(u64 a, u64 b)
{
	return a < b ? a : b;
}

static inline u64 cpu_next_event_ns(const struct one_cpu *c, u64 until_ns)
{
	u64 next_ns = least(until_ns, least(c->next_tick_ns, c->next_age_ns));

	for (u32 i = 0; i < c->count; i++)
		if (c->jobs[i].state == ASLEEP)
			next_ns = least(next_ns, c->jobs[i].wake_ns);
	if (c->serving == NOBODY)
		return next_ns;
	next_ns = least(next_ns, c->quantum_end_ns);
	if (c->jobs[c->serving].left_ns != NEVER)
		next_ns = least(next_ns, c->now_ns + c->jobs[c->serving].left_ns);
	return next_ns;
}

static inline void cpu_advance(struct one_cpu *c, u64 to_ns)
{
	u64 ran_ns = to_ns - c->now_ns;

	c->now_ns = to_ns;
	if (c->serving == NOBODY)
		return;
	an_policy_used(&c->policy, &c->jobs[c->serving].member, ran_ns);
	c->jobs[c->serving].got_ns += ran_ns;
	if (c->jobs[c->serving].left_ns != NEVER)
		c->jobs[c->serving].left_ns -= ran_ns;
}

/* The one in service has come to the end of its run. */
static inline void cpu_block(struct one_cpu *c)
{
	struct job *j = &c->jobs[c->serving];

	j->runs++;
	j->state = ASLEEP;
	j->wake_ns = j->sleep_ns ? c->now_ns + j->sleep_ns : NEVER;
	an_policy_block(&c->policy, &j->member);
	c->serving = NOBODY;
	if (j->partner != NOBODY)
		cpu_wake(c, j->partner);
}

static inline void cpu_age(struct one_cpu *c)
{
	for (u32 i = 0; i < c->count; i++) {
		struct job *j = &c->jobs[i];

		if (an_policy_age(&c->policy, &j->member, j->state == QUEUED)) {
			CHECK(j->state == QUEUED);
			cpu_contend(c, i);
		}
	}
}

static inline void cpu_run(struct one_cpu *c, u64 until_ns)
{
	while (c->now_ns < until_ns) {
		bool over = false;

		for (u32 i = 0; i < c->count; i++)
			if (c->jobs[i].state == ASLEEP && c->jobs[i].wake_ns <= c->now_ns)
				cpu_wake(c, i);
		if (c->serving == NOBODY)
			cpu_pick(c);
		cpu_advance(c, cpu_next_event_ns(c, until_ns));
		if (c->now_ns == c->next_tick_ns) {
			c->next_tick_ns += an_policy_tick_ns(&c->policy);
			if (c->serving != NOBODY)
				over = an_policy_tick(&c->policy, &c->jobs[c->serving].member);
		}
		if (c->serving != NOBODY) {
			if (!c->jobs[c->serving].left_ns)
				cpu_block(c);
			else if (over || c->now_ns == c->quantum_end_ns)
				cpu_requeue(c, AN_USED_UP);
		}
		if (c->now_ns == c->next_age_ns) {
			c->next_age_ns += an_policy_age_ns(&c->policy);
			cpu_age(c);
		}
	}
}

#endif
