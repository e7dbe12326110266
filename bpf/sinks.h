/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Sinks: threads of sessions that can be called for (calls.h). Each has a number, which the daemon
 * gives it, and a word that says under which contract it waits. So a call need not find the task of
 * its sink, which would take more than the call itself. Part of sched.bpf.c.
 */
#ifndef ANDANTE_BPF_SINKS_H
#define ANDANTE_BPF_SINKS_H

#include "contracts.h"

/* By number: index 0 is nobody. */
struct an_sink sinks[AN_MAX_SINKS] SEC(".bss.sinks") = {};

static __always_inline struct an_sink *an_sink(u32 sink)
{
	return &sinks[an_bounded(sink, AN_MAX_SINKS)];
}

/* The thread waits in the queue of the contract of this name, or is about to; 0: it does not, or
 * not any more. An event that is not seen after this was raised by somebody who sees it: hence an
 * exchange, which no processor puts off. */
static __always_inline void sink_waits(const struct task_state *ts, u32 name)
{
	if (ts->sink)
		__sync_lock_test_and_set(&an_sink(ts->sink)->waits, name);
}

/* The thread is this sink from now on; 0: none. Nobody has asked to be told then (tell.h). */
static __always_inline void sink_set(const struct task_struct *p, struct task_state *ts, u32 sink)
{
	struct an_sink *s = an_sink(sink);

	sink_waits(ts, 0);
	if (ts->sink)
		an_sink(ts->sink)->process = an_sink(ts->sink)->told_by = 0;
	ts->sink = sink;
	ts->told = 0;
	sink_waits(ts, 0);
	if (!sink)
		return;
	s->told_by = 0;
	s->pid = p->pid;
	s->process = p->tgid;
}

/* See tell.h. */
an_global int sink_tell(u32 sink);
an_global s32 call_tell(void);

/*
 * Threads that wait under the contract of this name may have an event at due_ns, or now if that is
 * past. They are put in front when a task of the contract is taken; if one of them runs, it makes
 * way for that. So nobody else is disturbed, however often this is asked for.
 */
an_global int sink_looks(u32 name, u64 due_ns, u64 now_ns)
{
	u32 index = contract_named(name), cpu = an_holder(index)->cpu;
	struct cpu_state *c = cpu_state(cpu);

	if (!index)
		return 0;
	an_holder(index)->looks = 1;
	if (c->contract != name)
		return 0;
	if (due_ns > now_ns) {
		cpu_check_at(c, cpu, now_ns, due_ns);
		return 0;
	}
	/* Not asked while it runs: who calls is often the one that is to make way. The kernel takes
	 * it out and puts it back, for it is within a program that was called, and to be asked once
	 * more then would stop the sink. */
	c->asked |= !c->running;
	an_kpreempt(cpu);
	return 0;
}

#endif
