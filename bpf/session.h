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
 * An event is seen when its thread is queued. One that is raised for a thread that waits already is
 * seen when the scheduler is called for that (calls.h), and one that is to be delivered later, when
 * it is due: the contract is marked (an_holder.looks), and before its CPU takes a task of it those
 * that have events are put in front (session_order()). A thread without a contract, or whose
 * contract has no budget left, waits for its turn in its class: there others would pay.
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

/* The kernel keeps a page only of a type that the object describes. clang 19 describes a structure
 * by its name alone if nothing but a member of another one points to it; whose type is asked for is
 * described. */
static __always_inline void pages_described(void)
{
#ifdef __bpf__
	asm volatile("" ::"r"(__builtin_btf_type_id(*(struct andante_page *)0, 0)));
#endif
}

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

/* When the first event that is pending for the thread is due [ns]; AN_NEVER: none is. All that are
 * due are delivered, if it is put into service. */
an_global u64 session_event_ns(struct task_struct *p __arg_trusted, struct task_state *ts,
			       u64 now_ns, bool delivers)
{
	struct andante_page *page = session_page(p);
	u64 first_ns = AN_NEVER;
	u32 service;

	if (!page || !ts)
		return AN_NEVER;
	if (delivers)
		ts->told = 0; /* before it is read what there is: of what comes now it is told */
	for (service = 0; service < ANDANTE_SERVICES; service++) {
		u32 raised = an_once(page->events[service].raised);
		u64 due_ns = an_once(page->events[service].deliver_ns);

		if (raised == ts->delivered[service])
			continue;
		if (due_ns < first_ns)
			first_ns = due_ns;
		if (delivers && due_ns <= now_ns)
			page->delivered[service] = ts->delivered[service] = raised;
	}
	if (delivers)
		page->read_ns = now_ns;
	return first_ns;
}

/* Threads of a contract that are looked at for events: as many as there are in a session. */
#define SESSION_LOOKS 1024

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
			  u64 now_ns, bool slept)
{
	if (!ts)
		return 0;
	if (slept)
		ts->cycles = 0; /* the one that it begins now is this job */
	if (!ts->policy && ts->declared.session)
		session_job(p, ts, leaf, now_ns);
	else if (learnt_contract(ts))
		contract_unbind(ts);
	return 0;
}

/* A task that comes before its siblings in the queue of their contract is so far ahead of them
 * [ns]: more than any of them can be behind another. */
#define SESSION_AHEAD_NS (1ULL << 50)

/* Those that wait in the queue of the contract, and have events, come first from now on. Called by
 * its CPU, which looks again when the next event is due. */
an_global int session_order(u32 cpu, u32 index)
{
	u64 queue = contract_queue(index), now_ns = an_kclock_ns(), next_ns = AN_NEVER;
	u32 left = SESSION_LOOKS, grows;
	struct bpf_iter_scx_dsq it;

	an_holder(index)->looks = 0;
	bpf_iter_scx_dsq_new(&it, queue, 0);
	an_while(left) {
		struct task_struct *p = bpf_iter_scx_dsq_next(&it);
		struct task_state *ts = p ? bpf_task_storage_get(&task_states, p, 0, 0) : NULL;
		u64 due_ns = AN_NEVER;

		if (!ts)
			break;
		if (ts->declared.session && !ts->policy && !ts->ahead)
			due_ns = session_event_ns(p, ts, now_ns, false);
		if (due_ns <= now_ns) {
			ts->ahead = 1;
			scx_bpf_dsq_move_set_vtime(&it, ts->sfq.start - SESSION_AHEAD_NS);
			scx_bpf_dsq_move_vtime(&it, p, queue, 0);
		} else if (due_ns < next_ns) {
			next_ns = due_ns;
		}
		left = an_opaque(left - 1);
	}
	bpf_iter_scx_dsq_destroy(&it);
	/* One that is on its way to the queue has not been looked at. */
	grows = nr_cpus > 1 ? queue_grows(queue) : 0;
	if (grows) {
		scx_bpf_kick_cpu(grows - 1, an_kconst(scx_kick_flags, SCX_KICK_IDLE));
		if (next_ns > now_ns + LOOK_AGAIN_NS)
			next_ns = now_ns + LOOK_AGAIN_NS;
	}
	if (next_ns == AN_NEVER)
		return 0;
	an_holder(index)->looks = 1;
	if (next_ns < cpu_state(cpu)->contract_check_ns)
		cpu_state(cpu)->contract_check_ns = next_ns;
	return 0;
}

/* The key of a task of a contract that threads hold, in the contract's queue. */
an_global u64 special_key(struct task_struct *p __arg_trusted, struct task_state *ts, u32 leaf,
			  u64 now_ns, u64 enq_flags)
{
	u64 due_ns;

	if (!ts)
		return 0;
	if (ts->policy)
		return leaf_policy_wants(ts, leaf, enq_flags);
	/* Before its events are read, or one that is raised meanwhile would be seen by nobody: not
	 * here, and not by a call, for which it does not wait yet. */
	sink_waits(ts, ts->contract);
	due_ns = session_event_ns(p, ts, now_ns, false);
	ts->ahead = due_ns <= now_ns;
	if (due_ns > now_ns && due_ns != AN_NEVER)
		sink_looks(ts->contract, due_ns, now_ns);
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
	u64 event_ns =
		an_events_on && ts->special ? session_event_ns(p, ts, now_ns, false) : AN_NEVER;

	if (event_ns != AN_NEVER)
		events_raise(contract, 0, event_ns, now_ns);
}

/* Beside a count of cycles: it has been read. */
#define CYCLES_READ (1ULL << 32)

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

/*
 * The thread stops for now, and wants to go on. One that is late does not sleep between its cycles:
 * those that it has begun since it stopped last are jobs of their own, as a server's answers are,
 * or all would be one that is longer and longer, and end its contract for good.
 */
an_global int session_stops(struct task_struct *p __arg_trusted, struct task_state *ts, u64 now_ns)
{
	const struct andante_page *page = session_page(p);
	u64 due_ns = session_due_ns(page, now_ns),
	    cycles = page ? CYCLES_READ | an_once(page->cycles) : 0;

	if (ts && ts->cycles != cycles) {
		ts->answers += ts->cycles ? (u32)(cycles - ts->cycles) : 0;
		ts->cycles = cycles;
	}
	if (due_ns)
		session_says(ts, due_ns);
	return 0;
}

#endif
