/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Every task is watched: those that are interactive (core/learn.h) get a learnt contract. Part of
 * sched.bpf.c.
 */
#ifndef ANDANTE_BPF_LEARN_H
#define ANDANTE_BPF_LEARN_H

#include "session.h"
#include "works_for.h"

/* The task, of this leaf, has done a job, and begins another, perhaps after it has slept. */
static __always_inline void learn_job(struct task_struct *p, struct task_state *ts, u32 leaf,
				      u64 now_ns, bool slept)
{
	u32 index;

	if (ts->special) {
		special_job(p, ts, leaf, now_ns, slept);
		return;
	}
	index = learnt_contract(ts);
	if (learn_is_promised(leaf) || learn_is_background(p, ts) ||
	    !an_learn_may_be_interactive(&ts->learner, ts->event, learn_bound)) {
		if (index)
			contract_unbind(ts);
		return;
	}
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
static __always_inline void learn_queued(struct task_struct *p, struct task_state *ts,
					 const struct cpu_state *here, u32 leaf, u64 now_ns,
					 bool woken)
{
	u32 answers;

	if (!learn_bound)
		return;
	if (woken && ts->root_ns)
		learn_event(ts, here, now_ns);
	if (woken && (an_learn_goes_on_soon(&ts->learner, now_ns) || learn_child_wakes()))
		return;
	answers = ts->answers;
	ts->answers = 0;
	if (woken)
		an_learn_wake(&ts->learner, now_ns);
	if (woken || (answers && an_learn_answered(&ts->learner, answers, now_ns)) ||
	    (ts->event && an_learn_is_untried(&ts->learner)))
		return learn_job(p, ts, leaf, now_ns, woken);
	ts->answers = answers; /* they belong to the job in progress */
	if (nr_cpus > 1 && ts->contract)
		learn_makes_way(p, ts);
}

/*
 * The task has run. One that runs for so long without a pause is not what it seemed to be, and has
 * its share from now on: of what it was given before its turn it owes nothing, or it would stand
 * still until all of its classmates had had as much.
 */
static __always_inline void learn_ran(struct task_state *ts, u64 ran_ns)
{
	if (!learn_bound)
		return;
	an_learn_service(&ts->learner, ran_ns);
	if (!an_learn_goes_on(&ts->learner) || ts->answers || !learnt_contract(ts))
		return;
	if (ts->declared.session && !an_declared_goes_on(&ts->declared, &ts->learner))
		return;
	contract_unbind(ts);
	ts->sfq.fresh = 1;
}

#endif
