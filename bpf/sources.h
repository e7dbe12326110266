/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Sources: a thread of a session has an event when a frame's worth of data has come to a socket, or
 * somebody writes to an eventfd, though nobody raises it. Part of sched.bpf.c.
 *
 * A program that has a socket's descriptor passes it to the daemon, which notes with the socket
 * itself whose event that is; it ends with the socket, and counts for nothing once the thread has
 * left its session. Data is counted that has come since the last frame, not data that is unread: a
 * reader who takes it as it comes would never have a frame before it.
 *
 * An eventfd has no room for that. The kernel numbers them, and gives the number of one that is
 * gone to another: so its end is looked at too.
 *
 * The programs are attached only while somebody has subscribed, for all that receive, or write to
 * an eventfd, pay for it. They run before the reader is woken, who is therefore queued with the
 * event.
 */
#ifndef ANDANTE_BPF_SOURCES_H
#define ANDANTE_BPF_SOURCES_H

#include "tell.h"

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct an_source);
} sources SEC(".maps");

/* A frame has come: the thread that has subscribed has an event. */
static __noinline void source_raises(struct an_source *s)
{
	struct task_struct *p = bpf_task_from_pid(s->pid);
	struct andante_page *page;
	struct task_state *ts;
	u64 now_ns = an_kclock_ns();
	u32 sink = 0;

	if (!p)
		return;
	page = session_page(p);
	ts = bpf_task_storage_get(&task_states, p, 0, 0);
	if (page && ts && ts->declared.session == s->session) {
		struct andante_page_event *event =
			&page->events[an_bounded(s->service, ANDANTE_SERVICES)];

		event->deliver_ns = 0;
		__sync_fetch_and_add(&event->raised, 1);
		sink = ts->sink;
		sink_looks(an_sink(sink)->waits, 0, now_ns);
	}
	bpf_task_release(p);
	if (an_sink(sink)->told_by)
		sink_tell(sink);
}

SEC("tp_btf/sk_data_ready")
int BPF_PROG(andante_data_comes, struct sock *sk)
{
	struct an_source *s = bpf_sk_storage_get(&sources, sk, 0, 0);

	if (!s)
		return 0;
	s->came += an_kcame(sk, &s->seen);
	if (s->came < s->bytes)
		return 0;
	/* The rest of a piece counts towards the next frame, but no frame is counted twice. */
	s->came = s->bytes ? s->came % s->bytes : 0;
	source_raises(s);
	return 0;
}

/* By the last digits of their numbers, which are small: whoever writes to an eventfd that is no
 * source is not to wait for a search. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, AN_MAX_EVENTFDS);
	__type(key, u32);
	__type(value, struct an_source);
} eventfds SEC(".maps");

/* What is noted of it; NULL: it is no source. */
static __always_inline struct an_source *eventfd_source(const struct file *file)
{
	u32 id = an_keventfd(file), at = an_bounded(id, AN_MAX_EVENTFDS);
	struct an_source *s = bpf_map_lookup_elem(&eventfds, &at);

	return s && s->pid && s->eventfd == id ? s : NULL;
}

SEC("fentry/eventfd_write")
int BPF_PROG(andante_eventfd, struct file *file)
{
	struct an_source *s = eventfd_source(file);

	if (s)
		source_raises(s);
	return 0;
}

SEC("fentry/eventfd_release")
int BPF_PROG(andante_eventfd_ends, struct inode *inode, struct file *file)
{
	struct an_source *s = eventfd_source(file);

	if (s)
		s->pid = 0;
	return 0;
}

#endif
