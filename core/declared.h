/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The declaration of a program about one of its threads, in a session: a scheduler can learn much
 * by watching, but not that a program has just begun, nor how much it is about to need.
 *
 * A declaration takes the place of what is not known yet, and nothing else. The thread gets a
 * learnt contract [learn.h] from its first cycle on, and is waited for whatever it works for; but
 * what all learnt contracts use together stays bounded, and what one of them is sure of is what it
 * uses on average, once that has been seen. So a program needs no privilege to declare anything,
 * and takes from others no more than it could by behaving like a film.
 *
 *      is it waited for?           yes, the program says so
 *      what does a job take?       what is declared, until AN_LEARN_AVERAGED jobs have been seen;
 *                                  then the largest of late, as of any other. Of a job that takes
 *                                  longer than is declared it is at least the largest seen
 *      when is it due?             by the rules of learn.h, with what is declared in the place of
 *                                  half a beat of the rhythm, which is what a thread has for its
 *                                  own when nothing is known; and never later than is declared
 *      what is it sure of?         what is declared, until that has been seen
 *      when is it none any more?   when a job takes longer than the period, if one is declared
 *
 * The shape is that of ADPF's sessions (Android) and os_workgroup's intervals (macOS): threads, a
 * period, the work of a cycle. Neither of them says what becomes of others.
 */
#ifndef ANDANTE_CORE_DECLARED_H
#define ANDANTE_CORE_DECLARED_H

#include "learn.h"

/* Of one thread [ns]. In memory that is zero: nothing. */
struct an_declared {
	u32 period_ns;	 /* from one cycle to the next; 0: at no pace */
	u32 deadline_ns; /* from the beginning of a cycle; 0: not said */
	u32 budget_ns;	 /* CPU time of a cycle; 0: not said */
	u32 session;	 /* in which; 0: none */
};

/* The thread takes part from now on: what was seen of it before, while its program was loaded, says
 * nothing of its cycles. When it wakes next, though that be at once, a job begins. */
an_inline void an_declared_begin(struct an_learner *l, u64 now_ns)
{
	an_learn_begin(l,
		       now_ns > AN_LEARN_DISTANCE_MIN_NS ? now_ns - AN_LEARN_DISTANCE_MIN_NS : 0);
}

/* How much one cycle takes at most [ns]. */
an_inline u64 an_declared_service_ns(const struct an_declared *d, const struct an_learner *l)
{
	if (l->long_ns && l->long_ns <= d->period_ns)
		return l->long_ns;
	if (l->jobs >= AN_LEARN_AVERAGED)
		return l->largest_ns;
	if (d->budget_ns)
		return d->budget_ns > l->largest_ns ? d->budget_ns : l->largest_ns;
	if (l->jobs >= AN_LEARN_ENOUGH || !d->deadline_ns)
		return l->largest_ns;
	return d->deadline_ns / 2;
}

/* Part of a CPU that the thread uses on average, as far as is known [1/1024]. */
an_inline u32 an_declared_part(const struct an_declared *d, const struct an_learner *l)
{
	u32 seen = an_learn_part(l), declared = 0;

	if (d->period_ns)
		declared = (u64)d->budget_ns * 1024 / d->period_ns;
	return l->jobs < AN_LEARN_AVERAGED && declared > seen ? declared : seen;
}

/* The contract that the thread is offered; due_ns is when the job is due that it begins, by its own
 * word [ns from now on]; 0: it has not said. */
an_inline void an_declared_promise(const struct an_declared *d, const struct an_learner *l,
				   u32 bound, u64 due_ns, struct an_promise *p)
{
	u64 own_ns = due_ns ? due_ns : d->deadline_ns;

	an_learn_promise_of(an_declared_service_ns(d, l), own_ns, bound, p);
	if (own_ns && p->deadline_rel_ns > own_ns)
		p->deadline_rel_ns = own_ns;
}

/* Does the job in progress take longer than it can have been meant to? */
an_inline bool an_declared_goes_on(const struct an_declared *d, const struct an_learner *l)
{
	return an_learn_goes_on(l) && l->service_ns > d->period_ns;
}

/* The thread announces more work than before: its largest job is taken to be twice as long, as far
 * as anybody waits. The next window forgets that, if it does not come. */
an_inline void an_declared_surge(struct an_learner *l)
{
	u64 surge_ns = 2 * (u64)l->largest_ns;

	if (surge_ns > AN_LEARN_SERVICE_MAX_NS)
		surge_ns = AN_LEARN_SERVICE_MAX_NS;
	l->within_ns = l->largest_ns = surge_ns;
}

#endif
