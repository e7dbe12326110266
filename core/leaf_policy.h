/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A class of the tree whose tasks are ordered by a policy of its own (policy.h), as in QLinux every
 * leaf had one. What the class gets is the tree's decision (hsfq.h), and nothing here is charged to
 * it; the policy says which of its tasks comes first, how long that one may run in one go, and
 * whether one that wakes takes its place.
 *
 * Seen from such a class, its share is all the machine that there is. So its clock goes only while
 * the class is served: a tick strikes after every an_policy_tick_ns() of service that its tasks
 * have had, whoever is in service pays, and a quantum of 100 ms is one of service. Beside the clock
 * on the wall a class with a seventh of the CPU would be struck by one tick in seven, at instants
 * that may beat with its own quanta; on the average both charge the same. Waiting (an_policy_age())
 * is by the clock on the wall, for who waits does so in real time.
 *
 * Ticks are counted when service is charged, not by an interrupt: an_leaf_run_ns() says when the
 * next one that matters strikes.
 *
 *      [asleep] --an_leaf_wants(woken)--> [waits] --an_leaf_serves()--> [served] --> [asleep]
 *                                            ^                             |
 *                                            '-- an_leaf_wants(!woken) ----'
 *
 * A member belongs to one version of one class's policy. Of another version it joins anew when it
 * is queued next, so that a policy may change while tasks run and wait.
 */
#ifndef ANDANTE_CORE_LEAF_POLICY_H
#define ANDANTE_CORE_LEAF_POLICY_H

#include "policy.h"

struct an_leaf_policy {
	struct an_policy policy;
	u64 clock_ns; /* service since the last tick [ns] */
	u32 version;  /* of all policies of classes a different one; 0: the class has none */
	u32 nice_is_real_time; /* svr4: see an_policy_wants() */
};

enum an_leaf_standing {
	AN_LEAF_ASLEEP = 0, /* or has never run */
	AN_LEAF_WAITS = 1,
	AN_LEAF_SERVED = 2,
};

/* A task, as such a class knows it. */
struct an_leaf_member {
	struct an_member member;
	u64 key;      /* for a queue that compares by signed difference */
	u32 version;  /* of the policy that it has joined; 0: none */
	u16 standing; /* enum an_leaf_standing */
	u16 over;     /* served: its quantum is used up */
};

/*
 * Ticks after which further ones change nothing: SVR4 takes a task from the top to the bottom in
 * 10 + 20 + 40 + 60 + 80 + 100, and Linux 2.2 gives 80 at most.
 */
#define AN_LEAF_TICKS_MAX 310u

/* The class has this policy from now on. version: not 0, and never given before. */
an_inline void an_leaf_policy_set(struct an_leaf_policy *l, u32 kind, u64 quantum_ns,
				  bool nice_is_real_time, u32 version)
{
	an_policy_init(&l->policy, kind, quantum_ns);
	l->clock_ns = 0;
	l->version = version;
	l->nice_is_real_time = nice_is_real_time;
}

/* The task enters the class, of this nice value and its weight. */
an_inline void an_leaf_join(const struct an_leaf_policy *l, struct an_leaf_member *m, s32 nice,
			    u32 weight)
{
	an_policy_wants(&m->member, nice, weight, l->nice_is_real_time);
	an_policy_join(&l->policy, &m->member);
	m->version = l->version;
	m->standing = AN_LEAF_ASLEEP;
	m->over = 0;
}

/* The child, of the same nice value, was forked by the parent, of this class. */
an_inline void an_leaf_fork(const struct an_leaf_policy *l, struct an_leaf_member *parent,
			    struct an_leaf_member *child)
{
	an_leaf_join(l, child, parent->member.nice, parent->member.weight);
	an_policy_fork(&l->policy, &parent->member, &child->member);
}

/* Another nice value, and its weight. */
an_inline void an_leaf_renice(const struct an_leaf_policy *l, struct an_leaf_member *m, s32 nice,
			      u32 weight)
{
	bool other = m->member.nice != nice;

	an_policy_wants(&m->member, nice, weight, l->nice_is_real_time);
	if (other)
		an_policy_change(&l->policy, &m->member);
}

/* The task, which is a member, wants to run: after a sleep (woken), or because its turn is over.
 * Sets its key. */
an_inline void an_leaf_wants(struct an_leaf_policy *l, struct an_leaf_member *m, bool woken,
			     u64 now_ns)
{
	l->policy.now_ns = now_ns;
	if (woken || m->standing == AN_LEAF_ASLEEP)
		an_policy_wake(&l->policy, &m->member);
	else if (m->standing == AN_LEAF_SERVED)
		an_policy_requeue(&l->policy, &m->member, m->over ? AN_USED_UP : AN_PREEMPTED);
	m->standing = AN_LEAF_WAITS;
	m->over = 0;
	m->key = an_policy_queue_key(&l->policy, &m->member);
}

/* The task is put into service, or goes on; it may have come without having been queued. */
an_inline void an_leaf_serves(struct an_leaf_policy *l, struct an_leaf_member *m, u64 now_ns)
{
	if (m->standing == AN_LEAF_ASLEEP)
		an_leaf_wants(l, m, true, now_ns);
	if (m->standing == AN_LEAF_WAITS)
		an_policy_serve(&l->policy, &m->member);
	m->standing = AN_LEAF_SERVED;
}

/* Ticks that strike within so much service of the class, from now on. */
an_inline u32 an_leaf_ticks(const struct an_leaf_policy *l, u64 ran_ns)
{
	u64 tick_ns = an_policy_tick_ns(&l->policy), ticks;

	if (!tick_ns)
		return 0;
	ticks = (l->clock_ns + ran_ns) / tick_ns;
	return ticks < AN_LEAF_TICKS_MAX ? ticks : AN_LEAF_TICKS_MAX;
}

an_inline bool an_leaf_tick(struct an_leaf_policy *l, struct an_member *m, u32 ticks)
{
	bool over = false;

	an_while(ticks) {
		over |= an_policy_tick(&l->policy, m);
		ticks = an_opaque(ticks - 1);
	}
	return over;
}

/* Has it had what it may have in one go? Of policies that do not account by ticks. */
an_inline bool an_leaf_used_up(const struct an_policy *p, const struct an_member *m)
{
	return (p->kind == AN_RR || p->kind == AN_DEADLINE) && !m->left_ns;
}

/* The task has been served for so long: since the last such call, or since it was put there. */
an_inline void an_leaf_used(struct an_leaf_policy *l, struct an_leaf_member *m, u64 ran_ns)
{
	u64 tick_ns = an_policy_tick_ns(&l->policy);

	an_policy_used(&l->policy, &m->member, ran_ns);
	if (tick_ns) {
		m->over |= an_leaf_tick(l, &m->member, an_leaf_ticks(l, ran_ns));
		l->clock_ns = (l->clock_ns + ran_ns) % tick_ns;
	} else {
		m->over |= an_leaf_used_up(&l->policy, &m->member);
	}
}

/* When the class is to be asked again whether the task goes on, if others of it wait: after so much
 * service [ns]. */
an_inline u64 an_leaf_run_ns(const struct an_leaf_policy *l, const struct an_leaf_member *m)
{
	u64 tick_ns = an_policy_tick_ns(&l->policy);

	return tick_ns ? tick_ns - l->clock_ns : an_policy_quantum_ns(&l->policy, &m->member);
}

/* Should the one that has just been queued take the place of this one, a copy of which has been in
 * service for so long since it was charged? */
an_inline bool an_leaf_preempts(struct an_leaf_policy *l, const struct an_leaf_member *woken,
				struct an_member *serving, u64 ran_ns)
{
	if (l->policy.kind == AN_LINUX22)
		an_leaf_tick(l, serving, an_leaf_ticks(l, ran_ns));
	return an_policy_preempts(&l->policy, &woken->member, serving);
}

/* Another an_policy_age_ns() is over for one that waits: true if its key changed. */
an_inline bool an_leaf_age(struct an_leaf_policy *l, struct an_leaf_member *m)
{
	if (!an_policy_age(&l->policy, &m->member, true))
		return false;
	m->key = an_policy_queue_key(&l->policy, &m->member);
	return true;
}

#endif
