/* SPDX-License-Identifier: GPL-2.0 */
/* What is kept per task. Part of sched.bpf.c. */
#ifndef ANDANTE_BPF_TASK_STATE_H
#define ANDANTE_BPF_TASK_STATE_H

#include "base.h"

struct task_state {
	struct an_task sfq;
	u32 leaf;	/* its class; AN_NONE: to be looked up */
	u32 generation; /* of the leaf, when it was looked up */
	u32 contract;	/* that the thread holds: contract_name(); 0: none */
	u32 counted;	/* as active under this one: contract_name(); 0: under none */
	u64 charged_ns; /* its sum_exec_runtime, as far as it is charged for it (service.h) */
	u64 waits_ns;	/* since when it wants to run; 0: it has run since it was queued */
	u64 job_ns;	/* of one that holds a contract: when it woke; 0: it sleeps */
	u64 away_ns;	/* its charged_ns when it went to run without that; AN_NEVER: it has not */
	u32 home;	/* its own class, while it is bound to another (binding.h); AN_NONE */
	u32 home_generation;
	u32 asked_by; /* process that has woken it with a request, unanswered so far; 0: none */
	u32 domain;   /* where it was queued, or ran, last */
	u32 stranger; /* process that has woken it and is no client of its process's (binding.h), */
	u32 stranger_of; /* as of so many clients; 0: none known */
	u32 weight;	 /* by its nice value: task_weighs() */
	u32 answers; /* that it has given as a server since it has woken, or they were counted */
	u32 event;   /* what it works for: enum an_learn_event */
	bool waits_inside; /* it sleeps, or last slept, inside the kernel: an_kwaits_inside() */
	u64 root_ns;	   /* when that came; 0: it is a thread of the kernel's */
	u32 special;	   /* policy, or SPECIAL_IN_SESSION: not 0 if either is to be asked */
	u32 policy;	   /* version of its class's own policy; 0: it has none (leaf_policy.h) */
	s32 nice;
	struct an_learner learner;
	struct an_binding binding; /* the classes that it has served lately */
	u64 binding_ns;
	struct an_leaf_member member;	 /* of its class's policy, if that has one of its own */
	u64 told_ns;			 /* its charged_ns, as far as that policy has been told */
	struct an_declared declared;	 /* in a session, if it takes part in one (session.h) */
	u32 delivered[ANDANTE_SERVICES]; /* events: how many had been raised */
	u64 cycles;			 /* that it had begun when it stopped last, and CYCLES_READ;
					  * 0: it has just woken */
	u32 surges;			 /* that have been seen */
	u32 ahead;			 /* it was queued before its siblings, for an event */
	u32 sink;			 /* what it is called for as; 0: it is not */
	u32 told;			 /* of events that are pending: a bit for each service */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_state);
} task_states SEC(".maps");

const u32 weights_of_nice[AN_NICE_WEIGHTS] SEC(".rodata.weights") = AN_WEIGHTS_OF_NICE;

/* The task takes part in a session. */
#define SPECIAL_IN_SESSION (1u << 31)

/* Its class's policy is of this version; 0: it has none. */
static __always_inline void task_has_policy(struct task_state *ts, u32 version)
{
	ts->policy = version;
	ts->special = version | (ts->declared.session ? SPECIAL_IN_SESSION : 0);
}

/* The task's nice value, or whether it is under SCHED_IDLE, is another. */
static __always_inline void task_weighs(const struct task_struct *p, struct task_state *ts)
{
	u32 nice = an_bounded(p->static_prio - AN_NICE_0_PRIO + 20, AN_NICE_WEIGHTS);
	u32 weight = an_kis_idle(p) ? AN_IDLE_TASK_WEIGHT : weights_of_nice[nice];

	ts->nice = p->static_prio - AN_NICE_0_PRIO;
	ts->weight = an_task_weight(weight ? weight : AN_USUAL_WEIGHT,
				    p->flags & PF_KTHREAD && !an_kreceives(p));
	ts->sfq.request = an_task_request(quantum_ns, ts->weight);
}

#endif
