/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a task works for: an event from outside, handed on by who wakes whom and who makes whom
 * (core/learn.h). Part of sched.bpf.c.
 */
#ifndef ANDANTE_BPF_WORKS_FOR_H
#define ANDANTE_BPF_WORKS_FOR_H

#include "cpu.h"
#include "task_state.h"

/*
 * The task is woken: what does it work for from now on? An interrupt tells of an event, and so does
 * a thread of the kernel's (whose root_ns is 0), or one that we do not schedule. Any other thread
 * has it work for what it works for itself. One that has waited inside the kernel, for a page, a
 * file or a lock, goes on with what it worked for, unless a rhythm shows that it waits for a clock
 * there, as a display's driver may.
 */
static __always_inline void learn_event(struct task_state *ts, const struct cpu_state *here,
					u64 now_ns)
{
	if (here->running && here->root_ns && !an_kin_interrupt()) {
		ts->root_ns = here->root_ns;
		ts->event = an_learn_is_rooted(here->root_ns, now_ns) ? here->event : AN_EVENT_NONE;
		return;
	}
	if (an_kin_interrupt())
		an_rhythm_beat(&ts->learner.rhythm, ts->learner.slept_ns, now_ns);
	if (ts->waits_inside && !an_rhythm_ns(&ts->learner.rhythm))
		return;
	an_learn_slept(&ts->learner, now_ns);
	ts->root_ns = now_ns;
	ts->event = an_learn_evident(&ts->learner) ? AN_EVENT_AWAITED : AN_EVENT_UNAWAITED;
}

/* The task is watched from now on. One that has just been made works for what its parent does. */
static __always_inline void learn_begins(const struct task_struct *p, struct task_state *ts,
					 bool made)
{
	u64 now_ns = an_kclock_ns();

	an_learn_begin(&ts->learner, now_ns);
	if (p->flags & PF_KTHREAD)
		return;
	ts->root_ns = 1; /* no event has woken it yet */
	if (made) {
		learn_event(ts, cpu_state(bpf_get_smp_processor_id()), now_ns);
		if (ts->event)
			ts->event = AN_EVENT_UNAWAITED;
	}
}

#endif
