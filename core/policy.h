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
 *   - in service: an_policy_used() for what it has run before any other call about it, as often
 *     as the shell likes;
 *   - it may run for an_policy_quantum_ns() in one go, then an_policy_requeue(AN_USED_UP);
 *   - when another one wakes, an_policy_preempts() says whether the CPU should change hands; who
 *     loses it is requeued with AN_PREEMPTED;
 *   - policies built on a clock interrupt (an_policy_tick_ns() > 0) account by it: an_policy_tick()
 *     for whoever is in service when it strikes; true asks for a pick (AN_USED_UP). Their quantum
 *     is endless otherwise;
 *   - policies in which waiting changes a key (an_policy_age_ns() > 0): an_policy_age() so often
 *     for every task of the class that is queued or asleep; true says that its key changed.
 *
 * All of it under whatever lock guards the class. Times in ns.
 */
#ifndef ANDANTE_CORE_POLICY_H
#define ANDANTE_CORE_POLICY_H

#include "policies/fair.h"
#include "policies/queue_order.h"
#include "task.h"

enum an_policy_kind {
	AN_SFQ = 0,  /* start-time fair queueing over nice weights: task.h */
	AN_FIFO = 1, /* in order of arrival, until it blocks: POSIX SCHED_FIFO, one level */
	AN_RR = 2,   /* the same with a quantum: SCHED_RR, one level */
	AN_FAIR = 3, /* a model of the stock fair scheduler: policies/fair.h */
};

enum an_requeue {
	AN_USED_UP = 0,	  /* its quantum is over */
	AN_PREEMPTED = 1, /* another one came before it was */
};

#define AN_ENDLESS_NS (1ULL << 60) /* a quantum that ends only by blocking or preemption */
#define AN_RR_QUANTUM_NS 100000000ULL

/* What a class keeps for all of its tasks. */
struct an_policy {
	u32 kind; /* enum an_policy_kind */
	u32 pad;
	u64 quantum_ns; /* sfq, rr: longest run in one go */
	u64 vtime;	/* sfq, fair: start tag of the task last put into service [tag] */
	struct an_places places;
};

/* What it keeps for each. */
struct an_member {
	u64 key;     /* order among the queued, the least first */
	u64 left_ns; /* of the quantum */
	u32 weight;  /* sfq, fair: from the nice value */
	s32 nice;    /* -20 … 19 */
	union {
		struct an_task sfq;
		struct an_fair fair;
	};
};

an_inline void an_policy_init(struct an_policy *p, u32 kind, u64 quantum_ns)
{
	p->kind = kind;
	p->quantum_ns = quantum_ns ? quantum_ns : AN_RR_QUANTUM_NS;
	p->vtime = 0;
	p->places.tail = p->places.head = 0;
}

/* The task enters the class, asleep. weight and nice are set by the caller. */
an_inline void an_policy_join(const struct an_policy *p, struct an_member *m)
{
	m->key = m->left_ns = 0;
	if (p->kind == AN_SFQ) {
		m->sfq.start = m->sfq.rem = 0;
		m->sfq.fresh = 1;
	} else if (p->kind == AN_FAIR) {
		m->fair.vruntime = m->fair.deadline = m->fair.slice_ns = m->fair.rem = 0;
		m->fair.fresh = 1;
	}
}

/* It wants to run: sets its key. */
an_inline void an_policy_wake(struct an_policy *p, struct an_member *m)
{
	m->left_ns = p->quantum_ns;
	switch (p->kind) {
	case AN_SFQ:
		an_task_wake(p->vtime, &m->sfq);
		m->key = m->sfq.start;
		break;
	case AN_FAIR:
		an_fair_wake(p->vtime, &m->fair, m->weight);
		m->key = m->fair.deadline;
		break;
	default:
		m->key = an_place_at_tail(&p->places, 0);
	}
}

/* It had the least key and is put into service. */
an_inline void an_policy_serve(struct an_policy *p, const struct an_member *m)
{
	if (p->kind == AN_SFQ)
		an_task_serve(&p->vtime, &m->sfq);
	else if (p->kind == AN_FAIR)
		p->vtime = an_tag_max(p->vtime, m->fair.vruntime);
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

/* How long it may run in one go. Never 0. */
an_inline u64 an_policy_quantum_ns(const struct an_policy *p, const struct an_member *m)
{
	if (p->kind == AN_FIFO)
		return AN_ENDLESS_NS;
	if (p->kind == AN_FAIR)
		return m->fair.slice_ns ? m->fair.slice_ns : AN_FAIR_SLICE_NS;
	return m->left_ns ? m->left_ns : p->quantum_ns;
}

/* It leaves service and goes on wanting to run: sets its key. */
an_inline void an_policy_requeue(struct an_policy *p, struct an_member *m, u32 why)
{
	switch (p->kind) {
	case AN_SFQ:
		m->key = m->sfq.start;
		m->left_ns = p->quantum_ns;
		break;
	case AN_FAIR:
		m->key = m->fair.deadline;
		break;
	case AN_RR:
		if (why == AN_USED_UP) {
			m->left_ns = p->quantum_ns;
			m->key = an_place_at_tail(&p->places, 0);
			break;
		}
		m->key = an_place_at_head(&p->places, 0);
		break;
	default:
		m->key = an_place_at_head(&p->places, 0);
	}
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
	if (p->kind == AN_SFQ)
		return an_tag_diff(woken->sfq.start, serving->sfq.start) < 0;
	if (p->kind == AN_FAIR)
		return an_fair_preempts(&woken->fair, &serving->fair);
	return false;
}

/* Time between two clock interrupts that the policy accounts by, or 0. */
an_inline u64 an_policy_tick_ns(const struct an_policy *p)
{
	(void)p;
	return 0;
}

/* The clock strikes while the task is in service: true if its quantum is over. */
an_inline bool an_policy_tick(struct an_policy *p, struct an_member *m)
{
	(void)p;
	(void)m;
	return false;
}

/* Time between two ageings of every task that is not in service, or 0. */
an_inline u64 an_policy_age_ns(const struct an_policy *p)
{
	(void)p;
	return 0;
}

/* It has waited or slept for another an_policy_age_ns(): true if its key changed. */
an_inline bool an_policy_age(struct an_policy *p, struct an_member *m, bool queued)
{
	(void)p;
	(void)m;
	(void)queued;
	return false;
}

#endif
