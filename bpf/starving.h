/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Nobody starves. Part of sched.bpf.c.
 *
 * Shares may ask a task to wait for longer than the kernel's watchdog lets it: a class of weight 1
 * beside one of weight 10000 has its turn every twenty seconds, and a dozen tasks in it have theirs
 * after minutes. So a timer goes through the queues now and then, and who has waited for too long
 * is put in a queue of its own, from which every CPU takes before it turns to the tree. What it
 * uses is charged as ever, so that in the long run nobody has more than a share for it.
 */
#ifndef ANDANTE_BPF_STARVING_H
#define ANDANTE_BPF_STARVING_H

#include "queue.h"

#define STARVING_NS 5000000000ULL
#define STARVING_LOOK_NS 1000000000ULL
#define STARVING_QUEUE (AN_MAX_NODES + AN_MAX_CONTRACTS)
/* How many of one queue are helped at a time. */
#define STARVING_MOVES 64

u32 starving; /* there may be tasks in the queue of those that starve */

struct starving_timer {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct starving_timer);
} starving_timers SEC(".maps");

/* The task, which is gone through in the queue of this leaf, goes to the queue of those that
 * starve; false: it has just been taken from there. */
static __always_inline bool starving_move(struct bpf_iter_scx_dsq *it, struct task_struct *p,
					  struct bpf_spin_lock *lock, struct an_tree *t, u32 leaf)
{
	bool counted = queue_leave(lock, t, leaf);

	if (scx_bpf_dsq_move(it, p, STARVING_QUEUE, 0))
		return true;
	queue_stay(lock, t, leaf, counted);
	return false;
}

/* Those in the queue of this leaf that have waited too long; the last in the queue come first. */
an_global int starving_in(u32 queue)
{
	u32 domain = queue_domain(queue), leaf = queue_leaf(queue);
	struct an_tree *t = tree_of(domain);
	struct bpf_spin_lock *lock = lock_of(domain);
	u64 now_ns = an_kclock_ns(), vtime = an_node(t, leaf)->vtime;
	struct bpf_iter_scx_dsq it;
	u32 left = STARVING_MOVES;

	if (!lock)
		return 0;

	/* The verifier takes this for part of the initialisation, which may sleep. */
	bpf_rcu_read_lock();
	bpf_iter_scx_dsq_new(&it, queue, an_kconst(scx_dsq_iter_flags, SCX_DSQ_ITER_REV));
	an_while(left) {
		struct task_struct *p = bpf_iter_scx_dsq_next(&it);
		struct task_state *ts = p ? bpf_task_storage_get(&task_states, p, 0, 0) : NULL;

		if (!ts)
			break;
		if (ts->queued_ns + STARVING_NS < now_ns && starving_move(&it, p, lock, t, leaf)) {
			/* Its turn comes now, and is not to be where the others' is yet to come. */
			if (an_tag_diff(ts->sfq.start, vtime) > 0)
				ts->sfq.start = vtime;
			starving = 1;
			stats.starving++;
		}
		left = an_opaque(left - 1);
	}
	bpf_iter_scx_dsq_destroy(&it);
	bpf_rcu_read_unlock();
	return 0;
}

/* Those of one domain. */
an_global int starving_among(u32 domain)
{
	struct an_tree *t = tree_of(domain);
	u32 leaf = AN_ROOT_LEAF, end = domain < nr_domains ? t->unused : 0;

	an_while(leaf < end && leaf < AN_MAX_NODES) {
		if (an_node(t, leaf)->kind == AN_LEAF && an_node(t, leaf)->queued)
			starving_in(queue_of(domain, leaf));
		leaf = an_opaque(leaf + 1);
	}
	return 0;
}

static int starving_look(void *map, u32 *key, struct starving_timer *t)
{
	u32 domain = 0;

	starving = scx_bpf_dsq_nr_queued(STARVING_QUEUE) > 0;
	an_while(domain < nr_domains) {
		starving_among(domain);
		domain++;
	}
	if (starving)
		kick_idle_cpus();
	bpf_timer_start(&t->timer, STARVING_LOOK_NS, 0);
	return 0;
}

static __always_inline int starving_init(void)
{
	struct starving_timer *t;
	u32 key = 0;
	int err = scx_bpf_create_dsq(STARVING_QUEUE, -1);

	if (err)
		return err;
	t = bpf_map_lookup_elem(&starving_timers, &key);
	if (!t)
		return -1;
	bpf_timer_init(&t->timer, &starving_timers, CLOCK_MONOTONIC);
	bpf_timer_set_callback(&t->timer, starving_look);
	return bpf_timer_start(&t->timer, STARVING_LOOK_NS, 0);
}

#endif
