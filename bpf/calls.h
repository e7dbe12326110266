/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A program that has raised an event calls: the scheduler looks at once whether the sink waits
 * behind its siblings (session.h), which it would not see before that thread is queued again. Part
 * of sched.bpf.c.
 *
 *      fast     prctl() of an option that the kernel does not know, which fails as it always does.
 *               It passes a hook that all kernels have, with the arguments typed, and containers
 *               allow it. Attached only while there is a session: others pay for it then
 *      general  bpf(BPF_PROG_RUN) of a program whose descriptor comes with the session: nobody else
 *               pays, but many filters forbid bpf(). Without a context, which would be copied both
 *               ways and cost as much again: the sink is named in the caller's own page
 *
 * Anybody may call, so a sink says whose threads may: those of its own process. Most calls are for
 * threads that sleep, or run. That is seen at once, by one word that says where the sink waits:
 * finding a task by its number takes more than the call may. Only for a thread that has asked to be
 * told of its events it is done (tell.h).
 */
#ifndef ANDANTE_BPF_CALLS_H
#define ANDANTE_BPF_CALLS_H

#include "tell.h"

/* The sink may have an event that is to be delivered then [ns]; 0: at once. Apart: what it keeps in
 * registers would be saved by all who call prctl(). */
static __noinline void call_for(u32 sink, u64 deliver_ns)
{
	const struct an_sink *s = an_sink(sink);
	u32 name = s->waits;
	u64 now_ns;

	if (!(name | s->told_by) || s->process != (u32)bpf_get_current_task_btf()->tgid)
		return;
	if (s->told_by)
		sink_tell(sink);
	if (!name)
		return;
	now_ns = an_kclock_ns();
	if (an_events_on)
		events_raise(contract_named(name), 0, deliver_ns, now_ns);
	sink_looks(name, deliver_ns, now_ns);
}

SEC("fentry/security_task_prctl")
int BPF_PROG(andante_fast_call, int option, unsigned long sink, unsigned long deliver_ns)
{
	if (option == ANDANTE_PRCTL_LOOK)
		call_for(sink, deliver_ns);
	return 0;
}

SEC("syscall")
int andante_call(void *ctx)
{
	const struct andante_page *page = session_page(bpf_get_current_task_btf());

	if (page)
		call_for(an_once(page->calls_for), an_once(page->calls_ns));
	return 0;
}

#endif
