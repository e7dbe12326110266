/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Sinks are told: a thread of a session that has an event, and waits for just that, in epoll or
 * sigwaitinfo(), is woken by nothing that we decide. So it may ask to be told
 *
 *      by a ring     a BPF ring buffer of its own, which the program polls and maps. It is written
 *                    without waiting; if it is full that is counted, and the descriptor is readable
 *      by a signal   with the service in si_value
 *
 * or, as all others, not at all. Part of sched.bpf.c.
 *
 * It is told where an event becomes due: by the source that raises it (sources.h), by the call that
 * says it was raised (calls.h), and for one that is to come later by a timer of the sink's own,
 * which that call sets. Not by the CPU's timer, nor in session_order(): these look at threads that
 * wait for a CPU already, and go by contract and CPU; a thread that sleeps is on none. And not by
 * whoever puts it into service: then it is running.
 *
 * However often an event of one service is raised, one notice of it is pending until the thread has
 * been put into service (session_event_ns()): that is one bit for each in task_state.told. So
 * whoever has been told is to look at all that there is, not at one thing.
 *
 * A signal is sent only where whoever has asked could send it by kill(): a program that executes
 * another, with other rights, goes on with the session as long as its connection lasts.
 */
#ifndef ANDANTE_BPF_TELL_H
#define ANDANTE_BPF_TELL_H

#include "session.h"

/* Of one sink. The smallest that all machines' pages allow on most, and room for 256 notices. */
struct notices {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
};

/* By sink. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, AN_MAX_SINKS);
	__type(key, u32);
	__array(values, struct notices);
} rings SEC(".maps");

struct tell_timer {
	struct bpf_timer timer;
	u64 due_ns; /* when it fires; 0: it is not armed */
};

/* By sink, of those that are told. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, AN_MAX_SINKS);
	__type(key, u32);
	__type(value, struct tell_timer);
} tell_timers SEC(".maps");

/* When it is tried again to send a signal: the kernel takes one at a time from where it may not
 * send it at once, until an interrupt that comes as soon as it can. Chosen, not derived: it has to
 * be later than that interrupt, and no test is known to come here. The kernel test of signals
 * (calls_wake_who_asks_...) reports the same to the nanosecond with 10 us, 50 us and 1 ms, so it
 * says nothing of what is best. */
#define TELL_AGAIN_NS 50000

/* Sinks to whom the daemon is to send their signals. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} late SEC(".maps");

/* What has become of telling. */
enum told {
	TOLD,	    /* it is done, or never will be */
	TELL_AGAIN, /* in a moment */
	TELL_LATE,  /* the daemon does it */
};

static __always_inline enum told untold(void)
{
	__sync_fetch_and_add(&stats.untold, 1);
	return TOLD;
}

/* No signal is sent while a thread of the kernel's has the CPU, such as the idle one: the kernel
 * sends none for us then. The daemon does it, once however often it is asked meanwhile. */
static __always_inline enum told tell_late(struct an_sink *s, u32 sink)
{
	if (__sync_lock_test_and_set(&s->late, 1))
		return TELL_LATE;
	if (an_kring(&late, &sink, sizeof(sink)))
		return TELL_LATE;
	s->late = 0;
	return untold();
}

/* The thread is told of its event. */
static __always_inline enum told tell_of(struct task_struct *p, u32 sink, u32 service, u32 raised)
{
	struct andante_page_notice notice = {.service = service, .raised = raised};
	struct an_sink *s = an_sink(sink);
	u32 by = s->told_by;

	if (by == ANDANTE_TOLD_BY_RING) {
		void *ring = an_kring_of(&rings, &sink);

		return ring && an_kring(ring, &notice, sizeof(notice)) ? TOLD : untold();
	}
	if (!an_kmay_signal(p, s->asked_by_uid))
		return untold();
	if (bpf_get_current_task_btf()->flags & PF_KTHREAD)
		return tell_late(s, sink);
	return an_ksignal(p, by, service) ? TOLD : TELL_AGAIN;
}

/* Of all events of the thread's that are due now, and of which it was not told. When there is more
 * to tell [ns]; AN_NEVER. */
an_global u64 tell_all(struct task_struct *p __arg_trusted, u32 sink, u64 now_ns)
{
	struct task_state *ts = bpf_task_storage_get(&task_states, p, 0, 0);
	const struct andante_page *page = session_page(p);
	u64 next_ns = AN_NEVER;
	u32 service;

	if (!ts || !page || ts->sink != sink)
		return AN_NEVER;
	for (service = 0; service < ANDANTE_SERVICES; service++) {
		u32 raised = an_once(page->events[service].raised), bit = 1u << service;
		u64 due_ns = an_once(page->events[service].deliver_ns);
		enum told told = TOLD;

		if (raised == ts->delivered[service])
			continue;
		if (due_ns <= now_ns && !(__sync_fetch_and_or(&ts->told, bit) & bit))
			told = tell_of(p, sink, service, raised);
		if (told != TOLD)
			__sync_fetch_and_and(&ts->told, ~bit);
		if (told == TELL_AGAIN)
			due_ns = now_ns + TELL_AGAIN_NS;
		if (due_ns > now_ns && due_ns < next_ns)
			next_ns = due_ns;
	}
	return next_ns;
}

/* The sink, which is to be told, may have an event. */
an_global int sink_tell(u32 sink)
{
	struct task_struct *p = bpf_task_from_pid(an_sink(sink)->pid);
	u64 now_ns = an_kclock_ns(), next_ns;
	struct tell_timer *t;

	if (!p)
		return 0;
	next_ns = tell_all(p, sink, now_ns);
	bpf_task_release(p);
	t = next_ns == AN_NEVER ? NULL : bpf_map_lookup_elem(&tell_timers, &sink);
	if (t)
		timer_arm(&t->timer, &t->due_ns, now_ns, next_ns);
	return 0;
}

static int tell_is_due(void *map, u32 *sink, struct tell_timer *t)
{
	/* Before it is looked at, as in cpu_timer_fired(). */
	__sync_lock_test_and_set(&t->due_ns, 0);
	sink_tell(*sink);
	return 0;
}

/* The sink contract_call.sink is told so from now on, at the word of that user; or not any more. */
an_global s32 call_tell(void)
{
	u32 sink = contract_call.sink, by = contract_call.told_by;
	struct an_sink *s = an_sink(sink);
	struct tell_timer none = {}, *t;

	s->told_by = s->late = 0;
	bpf_map_delete_elem(&tell_timers, &sink);
	if (!by)
		return 0;
	if (by != ANDANTE_TOLD_BY_RING && !an_kmay_signal_at_all())
		return -95; /* EOPNOTSUPP */
	bpf_map_update_elem(&tell_timers, &sink, &none, 0);
	t = bpf_map_lookup_elem(&tell_timers, &sink);
	if (!t)
		return -28; /* ENOSPC */
	bpf_timer_init(&t->timer, &tell_timers, CLOCK_MONOTONIC);
	bpf_timer_set_callback(&t->timer, tell_is_due);
	s->asked_by_uid = contract_call.uid;
	s->told_by = by;
	return sink_tell(sink);
}

#endif
