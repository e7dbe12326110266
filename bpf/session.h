/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Threads of sessions: what a program has declared of them (core/declared.h), and what they say in
 * the page that each shares with the scheduler (page.h of the library). Part of sched.bpf.c.
 *
 * The daemon declares a thread by a call (holders.h), and writes the address of the page, which it
 * has mapped itself, into the thread's storage; the program maps the same memory. Nothing in a page
 * is trusted, or read twice: whatever is there, the thread says something of itself.
 *
 *      deadline_ns   its own word of when the job is due that it does, or begins
 *      surges        more work than before is coming
 *      events        of a service one is pending if `raised` is not what it was when the thread ran
 *                    last; then the thread comes before its siblings, with whom it shares a
 *                    contract. The same contract pays, so it hurts nobody else.
 *
 * Whoever is in no session pays nothing: task_state.special and cpu_state.special, which are asked
 * anyway, are 0.
 */
#ifndef ANDANTE_BPF_SESSION_H
#define ANDANTE_BPF_SESSION_H

#include "events.h"
#include "holders.h"
#include "learnt.h"

struct thread_page {
	struct andante_page __uptr *page;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread_page);
} thread_pages SEC(".maps");

static __always_inline struct andante_page *session_page(struct task_struct *p)
{
	struct thread_page *of = bpf_task_storage_get(&thread_pages, p, 0, 0);

	return of ? of->page : NULL;
}

/* When the job in progress is due by the thread's own word [ns from now on]; 0: it does not say, or
 * nothing that makes sense. */
static __always_inline u64 session_due_ns(const struct andante_page *page, u64 now_ns)
{
	u64 deadline_ns = page ? an_once(page->deadline_ns) : 0;

	return deadline_ns > now_ns && deadline_ns - now_ns <= AN_MAX_PERIOD_NS
		       ? deadline_ns - now_ns
		       : 0;
}

/* When the first of the thread's events is to be delivered, or AN_NEVER. */
an_global u64 session_event_ns(struct task_struct *p __arg_trusted, struct task_state *ts)
{
	const struct andante_page *page = session_page(p);
	u64 first_ns = AN_NEVER;
	u32 service;

	if (!page || !ts)
		return first_ns;
	for (service = 0; service < ANDANTE_SERVICES; service++) {
		u64 deliver_ns = an_once(page->events[service].deliver_ns);

		if (an_once(page->events[service].raised) != ts->delivered[service] &&
		    deliver_ns < first_ns)
			first_ns = deliver_ns;
	}
	return first_ns;
}

/* The thread is put into service: all of its events that are due are delivered. */
an_global int session_delivers(struct task_struct *p __arg_trusted, struct task_state *ts,
			       u64 now_ns)
{
	struct andante_page *page = session_page(p);
	u32 service;

	if (!page || !ts)
		return 0;
	for (service = 0; service < ANDANTE_SERVICES; service++) {
		u32 raised = an_once(page->events[service].raised);

		if (raised != ts->delivered[service] &&
		    an_once(page->events[service].deliver_ns) <= now_ns)
			page->delivered[service] = ts->delivered[service] = raised;
	}
	page->read_ns = now_ns;
	return 0;
}

/* A job begins of a thread that takes part in a session. */
static __always_inline void session_job(struct task_struct *p, struct task_state *ts, u32 leaf,
					u64 now_ns)
{
	const struct andante_page *page = session_page(p);
	u32 index = learnt_contract(ts), part = an_declared_part(&ts->declared, &ts->learner);
	struct an_promise promise = {};

	if (learn_is_promised(leaf) || learn_is_background(p, ts)) {
		if (index)
			contract_unbind(ts);
		return;
	}
	ts->event = AN_EVENT_AWAITED;
	if (page && an_once(page->surges) != ts->surges) {
		ts->surges = an_once(page->surges);
		an_declared_surge(&ts->learner);
	}
	an_declared_promise(&ts->declared, &ts->learner, learn_bound, session_due_ns(page, now_ns),
			    &promise);
	if (index) {
		learn_offer(ts, index, part, &promise);
		if (nr_cpus > 1)
			learn_move(p, ts, index);
	} else if (learn_may(p, ts)) {
		learn_make(p, ts, part, &promise, now_ns);
	}
}

/* The same of one that takes part in a session, or is of a class with a policy of its own: where
 * somebody has said how tasks are ordered nothing is learnt. */
an_global int special_job(struct task_struct *p __arg_trusted, struct task_state *ts, u32 leaf,
			  u64 now_ns)
{
	if (!ts)
		return 0;
	if (!ts->policy && ts->declared.session)
		session_job(p, ts, leaf, now_ns);
	else if (learnt_contract(ts))
		contract_unbind(ts);
	return 0;
}

/* A task that comes before its siblings in the queue of their contract is so far ahead of them
 * [ns]: more than any of them can be behind another. */
#define SESSION_AHEAD_NS (1ULL << 50)

/* The key of a task of a contract that threads hold, in the contract's queue. */
an_global u64 special_key(struct task_struct *p __arg_trusted, struct task_state *ts, u32 leaf,
			  u64 now_ns, u64 enq_flags)
{
	if (!ts)
		return 0;
	if (ts->policy)
		return leaf_policy_wants(ts, leaf, enq_flags);
	ts->ahead = session_event_ns(p, ts) <= now_ns;
	return ts->ahead ? ts->sfq.start - SESSION_AHEAD_NS : ts->sfq.start;
}

static __always_inline u64 contract_key(struct task_struct *p, struct task_state *ts, u32 leaf,
					u64 now_ns, u64 enq_flags)
{
	if (!ts->special)
		return ts->sfq.start;
	return special_key(p, ts, leaf, now_ns, enq_flags);
}

/* The thread wants to run under its contract, or will when that may: the contract is the sink of
 * its first event, now or when it comes. */
static __always_inline void session_raises(struct task_struct *p, struct task_state *ts,
					   u32 contract, u64 now_ns)
{
	u64 event_ns = an_events_on && ts->special ? session_event_ns(p, ts) : AN_NEVER;

	if (event_ns != AN_NEVER)
		events_raise(contract, 0, event_ns, now_ns);
}

/* The thread, which runs on this CPU, may have said when its job is due. */
an_global int session_says(struct task_state *ts, u64 due_ns)
{
	struct bpf_spin_lock *lock = contracts_lock();
	u32 index = ts ? learnt_contract(ts) : AN_NONE;
	u64 now_ns = an_kclock_ns();

	if (!index)
		return 0;
	bpf_spin_lock(lock);
	if (contract_named(ts->contract) == index)
		an_contract_due_in(&contracts, index, due_ns, contracts_clock(now_ns));
	bpf_spin_unlock(lock);
	return 0;
}

/* The thread stops for now, and wants to go on. */
an_global int session_stops(struct task_struct *p __arg_trusted, struct task_state *ts, u64 now_ns)
{
	u64 due_ns = session_due_ns(session_page(p), now_ns);

	if (due_ns)
		session_says(ts, due_ns);
	return 0;
}

#endif
