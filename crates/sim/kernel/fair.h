/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The stock scheduler's queues. Every group (cgroup with a weight) has one on each CPU; its members
 * are tasks and the groups below it, and it is itself a member of its parent's on that CPU.
 *
 *      fair_queue.c    one queue: EEVDF
 *      fair_group.c    groups: their weights on each CPU, and averages of loads
 *      fair.c          the sched class: tasks come, go and are chosen, through all levels
 *      fair_balance.c  which CPU: at a wake-up, at a fork, when one is idle, at the tick
 *      server.c        what tasks of this class have in spite of real-time ones
 *
 * Included by seam.h, before struct task_struct.
 */
#ifndef ANDANTE_SIM_FAIR_H
#define ANDANTE_SIM_FAIR_H

#define FAIR_NICE_0_WEIGHT 1024ULL
#define FAIR_WEIGHT_SHIFT 10 /* weights are kept in 1/1024, for those of small groups */
#define FAIR_NEVER (~0ULL)

struct rq;
struct cgroup;
struct task_struct;
struct fair_queue;

/* An average of a load that halves in 32 periods of 2^20 ns after it has ended (PELT). */
struct fair_load {
	u64 average; /* [weight], in 1/256 */
	u64 at_ns;
};

/* Who is served: a task, or a group on one CPU. */
struct fair_entity {
	struct fair_queue *queue; /* whose member it is, or was last */
	struct fair_queue *own;	  /* a group's members */
	struct task_struct *task; /* NULL: a group */
	u64 weight;		  /* [1/1024 of a weight of nice values] */
	u64 vruntime;
	u64 deadline;	     /* while deadline_is_relative: beyond vruntime */
	u64 protected_until; /* [vruntime] nobody preempts it before: vprot */
	s64 lag;	     /* [virtual ns] as it left, or was delayed */
	u64 order;	     /* of those with one deadline whoever was queued first comes first */
	u64 touched;  /* when it was queued or put into service last: the least is pulled first */
	u32 place;    /* in its queue's array */
	bool on_rq;   /* it competes, be it only to make up for its lag: */
	bool delayed; /* it sleeps, but has had more than its part, and stays so long */
	bool deadline_is_relative;
	bool is_new; /* it has not been queued so far */
	struct fair_load load;
	/* Whom it wakes (record_wakee()). */
	struct task_struct *last_woken;
	u64 flips, flips_halve_ns;
	u32 recent_cpu;
};

struct fair_queue {
	struct fair_entity **entity; /* those that wait, in no order */
	u32 waiting, room;
	u32 queued;		  /* these and the one in service */
	struct fair_entity *curr; /* in service: not among those that wait */
	struct fair_entity *next; /* to be preferred, if it is owed service */
	s64 sum;		  /* of those that wait: weight * (vruntime - zero) */
	s64 weights;		  /* of those that wait */
	u64 zero;		  /* [vruntime] near the mean */
	u64 weight;		  /* of all that are queued */
	struct fair_load load;
	struct fair_entity *entity_of; /* what it is in its parent's queue; NULL: the root */
	struct cgroup *group;
	struct rq *rq;
};

/* fair_queue.c */
u64 fair_slice_ns(void);
u64 fair_virtual_ns(const struct fair_entity *e, u64 ns);
u64 fair_mean(struct fair_queue *q);
bool fair_is_eligible(const struct fair_queue *q, const struct fair_entity *e);
bool fair_is_protected(const struct fair_entity *e);
bool fair_update_lag(struct fair_queue *q, struct fair_entity *e);
void fair_waits(struct fair_queue *q, struct fair_entity *e);
void fair_waits_no_more(struct fair_queue *q, struct fair_entity *e);
void fair_place(struct fair_queue *q, struct fair_entity *e, bool is_new);
void fair_reweigh(struct fair_queue *q, struct fair_entity *e, u64 weight);
struct fair_entity *fair_pick_of(struct fair_queue *q, bool protect);

/* fair_group.c */
u64 fair_load(struct fair_load *load, u64 weight, u64 now_ns);
void fair_join(struct fair_entity *e, struct fair_queue *q);
void fair_counts(struct fair_queue *q, struct fair_entity *e, bool queued);
void fair_group_reweighs(struct fair_entity *e);
struct fair_queue *fair_queue_of(struct cgroup *group, struct rq *rq);

static inline struct fair_entity *fair_parent(const struct fair_entity *e)
{
	return e->queue->entity_of;
}

#endif
