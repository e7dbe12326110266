/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Policies: how a class orders its own tasks.
 *
 * A policy gives every queued task a *key* that stays as it is while the task waits; the shell
 * keeps the queue (the kernel's, or a tree of its own) and serves the least key first, equal keys
 * by the task's id. So a queue costs what the shell's queue costs, and a policy O(1).
 *
 * The life of a task, and what the shell owes the policy:
 *
 *      an_policy_join() --> [asleep] --an_policy_wake()--> [queued under member->key]
 *                              ^                             |             ^
 *                              |                      an_policy_serve()    |
 *                              |                             v             |
 *                       an_policy_block() <--------- [in service] --an_policy_requeue()
 *
 *   - a task forked by another of the class: an_policy_fork() after an_policy_join();
 *   - in service: an_policy_used() for what it has run before any other call about it, as often
 *     as the shell likes;
 *   - it may run for an_policy_quantum_ns() in one go, then an_policy_requeue(AN_USED_UP);
 *   - when another one wakes, an_policy_preempts() says whether the CPU should change hands; who
 *     loses it is requeued with AN_PREEMPTED;
 *   - policies built on a clock interrupt (an_policy_tick_ns() > 0) account by it: an_policy_tick()
 *     for whoever is in service when it strikes; true asks for a pick (AN_USED_UP). Their quantum
 *     is endless otherwise;
 *   - policies in which waiting changes a key (an_policy_age_ns() > 0): an_policy_age() so often
 *     for every task of the class, in service too; true says that the key of a queued one changed:
 *     it is to be queued anew, and an_policy_preempts() asked as if it had woken;
 *   - weight, nice, priority, real_time and round_robin of a member are the shell's to set before
 *     an_policy_join(), or an_policy_wants() does. sfq, fair and deadline take a new weight at any
 *     time; of the rest, an_policy_change() is to be told;
 *   - now_ns of a deadline policy is the shell's to set before an_policy_wake() and
 *     an_policy_requeue().
 *
 * All of it under whatever lock guards the class. Times in ns.
 */
#ifndef ANDANTE_CORE_POLICY_H
#define ANDANTE_CORE_POLICY_H

#include "policies/deadline.h"
#include "policies/fair.h"
#include "policies/linux22.h"
#include "policies/queue_order.h"
#include "policies/svr4.h"
#include "task.h"

enum an_policy_kind {
	AN_SFQ = 0,	 /* start-time fair queueing over nice weights: task.h */
	AN_FIFO = 1,	 /* in order of arrival, until it blocks: POSIX SCHED_FIFO, one level */
	AN_RR = 2,	 /* the same with a quantum: SCHED_RR, one level */
	AN_FAIR = 3,	 /* a model of the stock fair scheduler: policies/fair.h */
	AN_SVR4 = 4,	 /* System V Release 4 as Solaris 2.2 ran it: policies/svr4.h */
	AN_SVR4_NEW = 5, /* the time-sharing class of Solaris 2.3 and after: the same */
	AN_LINUX22 = 6,	 /* epochs, as in Linux 2.2: policies/linux22.h */
	AN_DEADLINE = 7, /* earliest deadline first: policies/deadline.h */
};

enum an_requeue {
	AN_USED_UP = 0,	  /* its quantum is over */
	AN_PREEMPTED = 1, /* another one came before it was */
};

#define AN_RR_QUANTUM_NS 100000000ULL

/* What a class keeps for all of its tasks. */
struct an_policy {
	u32 kind; /* enum an_policy_kind */
	u32 pad;
	u64 quantum_ns; /* sfq, rr: longest run in one go; deadline: relative, at nice 0 */
	u64 vtime;	/* sfq, fair: start tag of the task last put into service [tag] */
	u64 now_ns;	/* deadline: the instant */
	struct an_places places;
	struct an_linux22_epochs epochs; /* linux22 */
	u32 pad2;
};

/* What it keeps for each. */
struct an_member {
	u64 key;     /* order among the queued, the least first */
	u64 left_ns; /* of the quantum */
	u32 weight;  /* sfq, fair, deadline: from the nice value */
	s32 nice;    /* -20 … 19: linux22 */
	/* svr4: of a TS task -20 … 20, of an RT task 0 … 59; linux22: real time, 1 … 99. 0 if
	 * unused */
	s32 priority;
	bool real_time;	  /* svr4: the class RT; linux22: SCHED_FIFO */
	bool round_robin; /* linux22, real time: SCHED_RR instead */
	u16 pad;
	union {
		struct an_task sfq;
		struct an_fair fair;
		struct an_svr4 svr4;
		struct an_linux22 linux22;
	};
};

an_inline bool an_policy_is_svr4(const struct an_policy *p)
{
	return p->kind == AN_SVR4 || p->kind == AN_SVR4_NEW;
}

an_inline u32 an_policy_svr4_table(const struct an_policy *p)
{
	return p->kind == AN_SVR4_NEW ? AN_SVR4_RENEWED : AN_SVR4_ORIGINAL;
}

an_inline void an_policy_init(struct an_policy *p, u32 kind, u64 quantum_ns)
{
	p->kind = kind;
	p->quantum_ns = quantum_ns ? quantum_ns : AN_RR_QUANTUM_NS;
	p->vtime = p->now_ns = 0;
	p->places.tail = p->places.head = 0;
	an_linux22_init(&p->epochs);
	p->pad = p->pad2 = 0;
}

/* What a task asks for by its nice value, where that is all that it can say. A real-time class of
 * SVR4 (nice_is_real_time) has nice -1 … -20 as its levels 2 … 59. */
an_inline void an_policy_wants(struct an_member *m, s32 nice, u32 weight, bool nice_is_real_time)
{
	m->weight = weight;
	m->nice = nice;
	m->real_time = nice_is_real_time && nice < 0;
	m->priority = m->real_time ? -nice * 3 - 1 : -nice;
	m->round_robin = false;
}

/*
 * The key for a queue that compares by signed difference, as the kernel's does. The keys of Linux
 * 2.2 differ by less than 2^37, but for the top bit, which is set in all of them where nobody is
 * real-time, and the wrap of the epoch below it: shifted, both work out.
 */
an_inline u64 an_policy_queue_key(const struct an_policy *p, const struct an_member *m)
{
	return p->kind == AN_LINUX22 ? m->key << 1 : m->key;
}

an_inline void an_policy_join_linux22(const struct an_policy *p, struct an_member *m)
{
	u32 class = AN_LINUX22_OTHER;

	if (m->real_time)
		class = m->round_robin ? AN_LINUX22_RR : AN_LINUX22_FIFO;
	an_linux22_join(&p->epochs, &m->linux22, class, m->priority, m->nice);
}

/* The task enters the class, asleep. What the shell sets (see above) has been set. */
an_inline void an_policy_join(const struct an_policy *p, struct an_member *m)
{
	m->key = m->left_ns = 0;
	switch (p->kind) {
	case AN_SFQ:
		m->sfq.start = m->sfq.rem = 0;
		m->sfq.fresh = 1;
		break;
	case AN_FAIR:
		m->fair.vruntime = m->fair.deadline = m->fair.slice_ns = m->fair.rem = 0;
		m->fair.fresh = 1;
		break;
	case AN_SVR4:
	case AN_SVR4_NEW:
		an_svr4_join(an_policy_svr4_table(p), &m->svr4, m->real_time, m->priority);
		break;
	case AN_LINUX22:
		an_policy_join_linux22(p, m);
		break;
	}
}

/* The child has just joined, asleep; the parent, in service and of this class, forked it. */
an_inline void an_policy_fork(const struct an_policy *p, struct an_member *parent,
			      struct an_member *child)
{
	if (an_policy_is_svr4(p))
		an_svr4_fork(an_policy_svr4_table(p), &parent->svr4, &child->svr4);
	else if (p->kind == AN_LINUX22)
		an_linux22_fork(&p->epochs, &parent->linux22, &child->linux22);
}

/*
 * The user asks for something else: what the shell sets has been set anew. What the task has earned
 * so far stays, unless it goes over to real time or comes back from there; its key stays until it
 * is queued again.
 */
an_inline void an_policy_change(const struct an_policy *p, struct an_member *m)
{
	if (an_policy_is_svr4(p))
		an_svr4_change(an_policy_svr4_table(p), &m->svr4, m->real_time, m->priority);
	else if (p->kind == AN_LINUX22 && !m->real_time && !an_linux22_real_time(&m->linux22))
		an_linux22_renice(&p->epochs, &m->linux22, m->nice);
	else if (p->kind == AN_LINUX22)
		an_policy_join_linux22(p, m);
}

/* The key of one that joins its queue, at the tail of its level or at the head. */
an_inline u64 an_policy_place(struct an_policy *p, struct an_member *m, bool at_tail)
{
	u32 level = 0;

	if (p->kind == AN_LINUX22 && !an_linux22_real_time(&m->linux22))
		return an_linux22_key(&p->epochs, &m->linux22);
	if (p->kind == AN_LINUX22)
		level = an_linux22_queue_level(&m->linux22);
	else if (an_policy_is_svr4(p))
		level = an_svr4_queue_level(&m->svr4);
	return at_tail ? an_place_at_tail(&p->places, level) : an_place_at_head(&p->places, level);
}

/* Its job begins now, or is taken to. */
an_inline void an_policy_deadline(const struct an_policy *p, struct an_member *m)
{
	m->left_ns = an_deadline_relative_ns(p->quantum_ns, m->weight);
	m->key = p->now_ns + m->left_ns;
}

/* It wants to run: sets its key. */
an_inline void an_policy_wake(struct an_policy *p, struct an_member *m)
{
	m->left_ns = p->quantum_ns;
	switch (p->kind) {
	case AN_SFQ:
		an_task_wake(p->vtime, &m->sfq);
		m->key = m->sfq.start;
		return;
	case AN_FAIR:
		an_fair_wake(p->vtime, &m->fair, m->weight);
		m->key = m->fair.deadline;
		return;
	case AN_SVR4:
	case AN_SVR4_NEW:
		an_svr4_wake(an_policy_svr4_table(p), &m->svr4);
		break;
	case AN_DEADLINE:
		an_policy_deadline(p, m);
		return;
	}
	m->key = an_policy_place(p, m, true);
}

/* It had the least key and is put into service. */
an_inline void an_policy_serve(struct an_policy *p, const struct an_member *m)
{
	if (p->kind == AN_SFQ)
		an_task_serve(&p->vtime, &m->sfq);
	else if (p->kind == AN_FAIR)
		p->vtime = an_tag_max(p->vtime, m->fair.vruntime);
	else if (p->kind == AN_LINUX22)
		an_linux22_serve(&p->epochs, m->key);
}

/* In service, it has run for so long since the last such call, or since it was put there. */
an_inline void an_policy_used(const struct an_policy *p, struct an_member *m, u64 ran_ns)
{
	m->left_ns -= ran_ns < m->left_ns ? ran_ns : m->left_ns;
	if (!ran_ns)
		return;
	if (p->kind == AN_SFQ)
		an_task_charge(&m->sfq, ran_ns, m->weight);
	else if (p->kind == AN_FAIR)
		an_fair_used(&m->fair, ran_ns, m->weight);
}

/* Time between two clock interrupts that the policy accounts by, or 0. */
an_inline u64 an_policy_tick_ns(const struct an_policy *p)
{
	if (an_policy_is_svr4(p))
		return AN_SVR4_TICK_NS;
	return p->kind == AN_LINUX22 ? AN_LINUX22_TICK_NS : 0;
}

/* How long it may run in one go. Never 0. */
an_inline u64 an_policy_quantum_ns(const struct an_policy *p, const struct an_member *m)
{
	if (p->kind == AN_FIFO || an_policy_tick_ns(p))
		return AN_ENDLESS_NS;
	if (p->kind == AN_FAIR)
		return m->fair.slice_ns ? m->fair.slice_ns : AN_FAIR_SLICE_NS;
	return m->left_ns ? m->left_ns : p->quantum_ns;
}

/* It leaves service and goes on wanting to run: sets its key. */
an_inline void an_policy_requeue(struct an_policy *p, struct an_member *m, u32 why)
{
	bool at_tail = why == AN_USED_UP && p->kind != AN_FIFO;

	switch (p->kind) {
	case AN_SFQ:
		m->key = m->sfq.start;
		m->left_ns = p->quantum_ns;
		return;
	case AN_FAIR:
		m->key = m->fair.deadline;
		return;
	case AN_DEADLINE:
		if (why == AN_USED_UP)
			an_policy_deadline(p, m);
		return;
	case AN_RR:
		if (at_tail)
			m->left_ns = p->quantum_ns;
		break;
	}
	m->key = an_policy_place(p, m, at_tail);
}

/* It leaves service and wants to run no more. */
an_inline void an_policy_block(const struct an_policy *p, struct an_member *m)
{
	(void)p;
	m->left_ns = 0;
}

/*
 * Should the one that has just been queued take the CPU of one in service, which has been charged
 * to the instant?
 */
an_inline bool an_policy_preempts(const struct an_policy *p, const struct an_member *woken,
				  const struct an_member *serving)
{
	switch (p->kind) {
	case AN_SFQ:
		return an_tag_diff(woken->sfq.start, serving->sfq.start) < 0;
	case AN_FAIR:
		return an_fair_preempts(&woken->fair, &serving->fair);
	case AN_SVR4:
	case AN_SVR4_NEW:
		return an_svr4_preempts(&woken->svr4, &serving->svr4);
	case AN_DEADLINE:
		return (s64)(woken->key - serving->key) < 0;
	case AN_LINUX22:
		return an_linux22_preempts(&p->epochs, &woken->linux22, &serving->linux22);
	}
	return false;
}

/* The clock strikes while the task is in service: true if its quantum is over. */
an_inline bool an_policy_tick(struct an_policy *p, struct an_member *m)
{
	if (an_policy_is_svr4(p))
		return an_svr4_tick(an_policy_svr4_table(p), &m->svr4);
	return p->kind == AN_LINUX22 && an_linux22_tick(&p->epochs, &m->linux22);
}

/* Time between two ageings of every task, or 0. */
an_inline u64 an_policy_age_ns(const struct an_policy *p)
{
	return an_policy_is_svr4(p) ? AN_SVR4_AGE_NS : 0;
}

/*
 * Another an_policy_age_ns() is over. queued: it waits for the CPU; else it sleeps or is in
 * service. True if it is queued and its key changed.
 */
an_inline bool an_policy_age(struct an_policy *p, struct an_member *m, bool queued)
{
	if (!an_policy_is_svr4(p) || !an_svr4_age(an_policy_svr4_table(p), &m->svr4, queued))
		return false;
	if (queued)
		m->key = an_policy_place(p, m, true);
	return queued;
}

#endif
