/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Trials: the benefit of the doubt, for those that never wait because they are late.
 *
 * A player that starts while a compiler runs is late from its first frame, and then has no time to
 * wait for the next one: it never sleeps, and looks like a compiler (learn.h watches who sleeps).
 * Only one thing tells the two apart, which is to let them run: the player has caught up after a
 * frame or two, and waits. So a task that has not slept for AN_TRIAL_AFTER_NS, and got less than
 * half of a CPU meanwhile, is put on trial: it is given a learnt contract as though it were
 * interactive, behind all that are known to be.
 *
 *      AN_TRIAL_RUNS    until it sleeps. If it has not after AN_TRIAL_NS of service it has failed.
 *      AN_TRIAL_WAITS   it has slept, and all that was learnt of it while it was late is forgotten.
 *                       After AN_LEARN_JOBS jobs it is judged like any other.
 *
 * Trials decide among the tasks of one class: where classes compete, the caller begins none, for
 * their shares stand. A task that has failed is not tried again before it has slept once more, nor
 * before a pause that doubles with every failure: an encoder that waits for its disk now and then
 * does not earn a trial with each of those waits. And trials together take no more than a part of
 * the time, 1/2^AN_TRIAL_PART_SHIFT of a CPU: the caller begins none before an_trial_pause_ns()
 * have passed since the one before.
 */
#ifndef ANDANTE_CORE_TRIAL_H
#define ANDANTE_CORE_TRIAL_H

#include "learn.h"

#define AN_TRIAL_AFTER_NS 200000000ULL
#define AN_TRIAL_NS 40000000ULL
#define AN_TRIAL_LASTS_NS 1000000000ULL /* at most, if it is not served */
#define AN_TRIAL_PART_SHIFT 3
#define AN_TRIAL_PAUSE_NS 2000000000u
#define AN_TRIAL_PAUSE_MAX_SHIFT 6 /* two minutes */

enum an_trial_state {
	AN_TRIAL_NONE,
	AN_TRIAL_RUNS,
	AN_TRIAL_WAITS,
};

struct an_trial {
	u64 after_ns; /* not before then */
	u32 failures; /* one after the other, up to AN_TRIAL_PAUSE_MAX_SHIFT */
	u32 state;    /* enum an_trial_state */
};

/*
 * Is the task, which has no contract and has just made way, to be put on trial? Not if it has had
 * so much that its service is not counted any further; nor before it has slept at least once, since
 * it began or was tried: a loop that never has is left with its share.
 */
an_inline bool an_trial_is_due(const struct an_trial *t, const struct an_learner *l, u64 now_ns)
{
	u64 since_ns = now_ns > l->woken_ns ? now_ns - l->woken_ns : 0;

	return l->jobs && since_ns >= AN_TRIAL_AFTER_NS && now_ns >= t->after_ns &&
	       l->service_ns < AN_LEARN_DISTANCE_MAX_NS && 2 * (u64)l->service_ns < since_ns;
}

/* The task has slept, until a child of its own ended: that is no job, but it does not lack the CPU.
 */
an_inline void an_trial_put_off(struct an_trial *t, u64 now_ns)
{
	if (t->after_ns < now_ns + AN_TRIAL_AFTER_NS)
		t->after_ns = now_ns + AN_TRIAL_AFTER_NS;
}

an_inline void an_trial_begin(struct an_trial *t, struct an_learner *l, u64 now_ns)
{
	an_learn_begin(l, now_ns);
	t->state = AN_TRIAL_RUNS;
}

/* What it is offered. */
an_inline void an_trial_promise(u32 bound, struct an_promise *p)
{
	const struct an_learner longest = {.largest_ns = AN_TRIAL_NS / 2};

	an_learn_promise(&longest, bound, p);
}

/* The task wakes. True if it has shown with that that it waits: what was learnt is forgotten. */
an_inline bool an_trial_waits(struct an_trial *t, struct an_learner *l, u64 now_ns)
{
	if (t->state != AN_TRIAL_RUNS)
		return false;
	an_learn_begin(l, now_ns);
	t->state = AN_TRIAL_WAITS;
	return true;
}

/* Is it still on trial, after the job that is over now? */
an_inline bool an_trial_goes_on(const struct an_trial *t, const struct an_learner *l)
{
	return t->state == AN_TRIAL_RUNS || (t->state == AN_TRIAL_WAITS && l->jobs < AN_LEARN_JOBS);
}

/* Has the task, which is on trial, run for so long without a pause that it has failed? */
an_inline bool an_trial_fails(const struct an_trial *t, const struct an_learner *l, u64 now_ns)
{
	u64 since_ns = now_ns > l->woken_ns ? now_ns - l->woken_ns : 0;

	if (t->state == AN_TRIAL_RUNS)
		return l->service_ns >= AN_TRIAL_NS || since_ns >= AN_TRIAL_LASTS_NS;
	return l->service_ns > AN_LEARN_SERVICE_MAX_NS;
}

/* The trial, if it is one, is over. */
an_inline void an_trial_end(struct an_trial *t, bool interactive, u64 now_ns)
{
	if (t->state == AN_TRIAL_NONE)
		return;
	t->state = AN_TRIAL_NONE;
	if (interactive) {
		t->failures = 0;
		return;
	}
	t->after_ns = now_ns + ((u64)AN_TRIAL_PAUSE_NS << t->failures);
	t->failures += t->failures < AN_TRIAL_PAUSE_MAX_SHIFT;
}

/* How long after one that ran for so long the next may begin, on so many CPUs [ns]. */
an_inline u64 an_trial_pause_ns(u64 service_ns, u32 cpus)
{
	return (service_ns << AN_TRIAL_PART_SHIFT) / (cpus ? cpus : 1);
}

#endif
