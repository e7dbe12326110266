/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Every task is watched: those that are interactive (core/learn.h) get a learnt contract, those
 * that may be late are put on trial (core/trial.h). Part of sched.bpf.c.
 */
#ifndef ANDANTE_BPF_LEARN_H
#define ANDANTE_BPF_LEARN_H

#include "learnt.h"

u64 trials_from_ns SEC(".bss.contracts"); /* the next trial begins then, or later [core/trial.h] */

/*
 * Is the task to have no more than what others leave? So it is if it was niced, or put under
 * SCHED_IDLE or SCHED_BATCH: nothing that is learnt of it lifts it above that.
 */
static __always_inline bool learn_is_background(const struct task_struct *p,
						const struct task_state *ts)
{
	return ts->weight < AN_USUAL_WEIGHT || an_kis_batch(p);
}

static __always_inline bool learn_may(const struct task_struct *p, const struct task_state *ts)
{
	return !contract_named(ts->contract) && !(p->flags & (PF_KTHREAD | PF_EXITING)) &&
	       !learn_is_background(p, ts);
}

/* Was its class promised something? That is better than anything learnt, which comes behind it. */
static __always_inline bool learn_is_promised(u32 leaf)
{
	return contracts_of_classes && *leaf_contract(leaf);
}

/*
 * The task, of this leaf, which has not slept for long and lacks the CPU, is put on trial, unless
 * it is niced. It is its classmates that it lacks the CPU for: where classes compete their shares
 * stand, which a trial would upset until it is paid for.
 */
static __noinline void learn_tries(struct task_struct *p, struct task_state *ts, u32 leaf,
				   u64 now_ns)
{
	if (now_ns < trials_from_ns || !learn_may(p, ts))
		return;
	if (nr_domains > 1 || !an_leaf_is_alone(&trees[0], leaf))
		return;
	trials_from_ns = now_ns + an_trial_pause_ns(AN_TRIAL_NS, nr_cpus);
	an_trial_begin(&ts->trial, &ts->learner, now_ns);
	learn_contract(p, ts, now_ns);
	stats.trials++;
}

/* The learnt contract of the task ends, and its trial, if it is on one. */
static __noinline void learn_ends(struct task_state *ts)
{
	contract_unbind(ts);
	an_trial_end(&ts->trial, false, an_kclock_ns());
}

/* The task, of this leaf, has done a job, and begins another. */
static __always_inline void learn_job(struct task_struct *p, struct task_state *ts, u32 leaf,
				      u64 now_ns)
{
	bool promised = learn_is_promised(leaf);
	u32 index = learnt_contract(ts);

	if (index && !promised && an_trial_goes_on(&ts->trial, &ts->learner))
		return;
	if (promised || !an_learn_interactive(&ts->learner, learn_bound) ||
	    learn_is_background(p, ts)) {
		if (index)
			learn_ends(ts);
		return;
	}
	an_trial_end(&ts->trial, true, now_ns);
	if (index) {
		learn_adjust(ts, index);
		if (nr_cpus > 1)
			learn_move(p, ts, index);
	} else if (learn_may(p, ts)) {
		learn_contract(p, ts, now_ns);
	}
}

/*
 * Is the task woken by a child of its own, in most cases, which ends or executes a program? Then it
 * has had work done, and has not waited for anything else: its job goes on [core/learn.h].
 */
static __always_inline bool learn_child_wakes(void)
{
	return an_kends(bpf_get_current_task_btf()) && !an_kin_interrupt();
}

/* The task is queued, after a sleep (woken) or because it had to make way. */
static __always_inline void learn_queued(struct task_struct *p, struct task_state *ts, u32 leaf,
					 u64 now_ns, bool woken)
{
	u32 answers, service_ns;

	if (!learn_bound)
		return;
	if (woken && an_learn_talks_on(&ts->learner, now_ns)) {
		ts->answers = 0;
		return;
	}
	answers = ts->answers;
	service_ns = ts->learner.service_ns;
	if (woken && learn_child_wakes())
		return an_trial_put_off(&ts->trial, now_ns);
	if (woken && an_kin_interrupt())
		an_rhythm_beat(&ts->learner.rhythm, now_ns);
	if (woken || answers) {
		ts->answers = 0;
		if (an_trial_waits(&ts->trial, &ts->learner, now_ns)) {
			trials_from_ns = now_ns + an_trial_pause_ns(service_ns, nr_cpus);
			return;
		}
		if (woken)
			an_learn_wake(&ts->learner, now_ns);
		if (woken || an_learn_answered(&ts->learner, answers, now_ns))
			return learn_job(p, ts, leaf, now_ns);
	}
	ts->answers = answers; /* they belong to the job in progress */
	if (!ts->contract && an_trial_is_due(&ts->trial, &ts->learner, now_ns) &&
	    !learn_is_promised(leaf))
		learn_tries(p, ts, leaf, now_ns);
	else if (nr_cpus > 1 && ts->contract)
		learn_makes_way(p, ts);
}

/* Has the task run for so long, under this learnt contract, that it may not be what it seemed? */
static __noinline bool learn_too_long(const struct task_state *ts, u32 index)
{
	u64 now_ns = an_kclock_ns();

	if (ts->trial.state)
		return an_trial_fails(&ts->trial, &ts->learner, now_ns);
	return an_learn_overran(&ts->learner, &an_contract(&contracts, index)->promise) &&
	       !an_learn_late(&ts->learner, now_ns);
}

/* The task has run. */
static __always_inline void learn_ran(struct task_state *ts, u64 ran_ns)
{
	u32 index;

	if (!learn_bound)
		return;
	an_learn_service(&ts->learner, ran_ns);
	index = learnt_contract(ts);
	if (index && !ts->answers && learn_too_long(ts, index))
		learn_ends(ts);
}

#endif
