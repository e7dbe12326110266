/* SPDX-License-Identifier: GPL-2.0 */
/* The queues of classes, and their quanta, in the trees of domains. Part of sched.bpf.c. */
#ifndef ANDANTE_BPF_QUEUE_H
#define ANDANTE_BPF_QUEUE_H

#include "bandwidth.h"
#include "cpu.h"
#include "domain.h"
#include "task_state.h"

/* How far into a queue to look for a task that may run on a certain CPU. */
#define QUEUE_LOOK 8

/* Sets head_key of the CPU to that of the first task in the queue that it may run; false: none. */
an_global bool queue_head(u32 cpu, u64 queue)
{
	struct bpf_iter_scx_dsq it;
	struct task_struct *p;
	u32 looks = QUEUE_LOOK;
	bool found = false;

	bpf_iter_scx_dsq_new(&it, queue, 0);
	an_while(looks--) {
		p = bpf_iter_scx_dsq_next(&it);
		if (!p)
			break;
		if (nr_cpus == 1 || bpf_cpumask_test_cpu(cpu, p->cpus_ptr)) {
			cpu_state(cpu)->head_key = p->scx.dsq_vtime;
			found = true;
			break;
		}
	}
	bpf_iter_scx_dsq_destroy(&it);
	return found;
}

/* The CPUs of this domain that may run the task, as the tree knows them. */
static __always_inline u64 task_cpus(const struct task_struct *p, u32 domain)
{
	return nr_cpus == 1 ? ~0ULL : an_kcpus(p, domain_word(domain));
}

/* The quantum in progress, if any, is over. With the tree's lock held. */
static __always_inline void quantum_ends(struct an_tree *t, struct cpu_state *c)
{
	if (!c->serving)
		return;
	domain_stop(t, c->serving, c->used_ns);
	if (c->unpicked) {
		if (c->unpicked & UNPICKED)
			an_debt_limit(t, c->serving);
		if (c->unpicked & SLICED)
			slice_settles(t, c);
	}
}

/*
 * Has the pick of this leaf been ended since? A move unlocks the run queue, and whoever changes the
 * task that runs here then (its weight, its class) puts it into service anew.
 */
static __always_inline bool pick_ended(const struct cpu_state *c, u32 leaf)
{
	return c->serving != leaf;
}

/* The task comes to this domain: in the one that it was in last, its classmates may have been
 * further on. */
static __always_inline void task_arrives(const struct task_struct *p, struct task_state *ts,
					 const struct place *at, u32 leaf)
{
	if (nr_domains == 1 || ts->domain == at->domain)
		return;
	ts->domain = at->domain;
	an_task_debt_limit(an_node(at->tree, leaf)->vtime, &ts->sfq, nr_cpus_online);
}

/*
 * Is a task perhaps on its way to this queue of a leaf? The CPU that puts it there says so, until
 * it makes its next choice. Returned is the number of that CPU, + 1; 0: no.
 */
an_global u32 queue_grows(u32 queue)
{
	u32 cpu = 0;

	an_while(cpu < nr_cpus && cpu_state(cpu)->inserting != queue)
		cpu = an_opaque(cpu + 1);
	return cpu < nr_cpus ? cpu + 1 : 0;
}

/* ---- leaves that hold nothing for a CPU ---- */

/*
 * A CPU that may have looked for a task too early looks again so soon [ns]: the kernel queues a
 * task when enqueue has returned, and there is nobody to tell the CPU after.
 */
#define LOOK_AGAIN_NS 100000

/*
 * The CPU has looked for a task of this leaf, and found none. Another may have been queued since,
 * or be on its way from a CPU (grows; 0: from none): then the leaf is unusable for now, and the CPU
 * will look again (usable_again()); and that one, if it is idle, makes its next choice. True: it is
 * the last that can be remembered.
 */
static __always_inline bool unsure_of(struct cpu_state *c, u32 leaf, u32 grows)
{
	u32 at = an_bounded(c->unsure, UNSURE_MAX);

	if (grows)
		scx_bpf_kick_cpu(grows - 1, an_kconst(scx_kick_flags, SCX_KICK_IDLE));
	c->unsure_of[at] = leaf;
	c->unsure = at + 1;
	return c->unsure >= UNSURE_MAX;
}

/* The leaves that this CPU was not sure of are usable by it once more. */
an_global int usable_again(u32 cpu)
{
	struct cpu_state *c = cpu_state(cpu);
	struct an_tree *t = tree_of(cpu_domain(cpu));
	struct bpf_spin_lock *lock = lock_of(cpu_domain(cpu));

	an_while(lock && c->unsure) {
		u32 leaf;

		c->unsure--;
		leaf = c->unsure_of[an_bounded(c->unsure, UNSURE_MAX)];
		bpf_spin_lock(lock);
		if (an_node(t, leaf)->kind == AN_LEAF)
			an_usable_by(t, leaf, cpu_bit(cpu));
		bpf_spin_unlock(lock);
	}
	return 0;
}

/*
 * The pick of this leaf found nothing that the CPU may run, and is given back. Returns whether
 * nothing has been queued there since it had so many events.
 */
an_global bool pick_given_back(u32 cpu, u32 leaf, u32 events)
{
	struct an_tree *t = tree_of(cpu_domain(cpu));
	struct bpf_spin_lock *lock = lock_of(cpu_domain(cpu));
	bool same;

	if (!lock)
		return false;
	bpf_spin_lock(lock);
	same = an_node(t, leaf)->queue_events == events;
	an_unpick(t, leaf);
	an_unusable_by(t, leaf, cpu_bit(cpu));
	bpf_spin_unlock(lock);
	return same;
}

/*
 * A task in the leaf's queue is about to be moved out of it. It is counted out before it moves: in
 * between, queue_check() on another CPU would find it missing, and count it out once more (race
 * --seed 436). False: every task of the queue is claimed, and whoever fails to take it counts anew.
 */
static __always_inline bool queue_leave(struct bpf_spin_lock *lock, struct an_tree *t, u32 leaf)
{
	bool counted;

	bpf_spin_lock(lock);
	counted = an_queue_withdraw(t, leaf);
	bpf_spin_unlock(lock);
	return counted;
}

/* It did not move: if it was counted out (queue_leave()) it is counted again. */
static __always_inline void queue_stay(struct bpf_spin_lock *lock, struct an_tree *t, u32 leaf,
				       bool counted)
{
	if (!counted)
		return;
	bpf_spin_lock(lock);
	an_queue_add(t, leaf);
	bpf_spin_unlock(lock);
}

/*
 * A task that these CPUs may run is counted in the leaf's queue, which it is about to be put in. A
 * function of its own for the verifier: whoever goes through a queue has a loop already.
 */
an_global bool queue_counts(u32 queue, u64 by)
{
	u32 domain = queue_domain(queue);
	struct bpf_spin_lock *lock = lock_of(domain);

	if (!lock)
		return false;
	bpf_spin_lock(lock);
	domain_queue_add(tree_of(domain), queue_leaf(queue), by);
	bpf_spin_unlock(lock);
	return true;
}

/*
 * The task, next in a queue that is gone through, moves to the queue of this leaf in this domain.
 * It is counted there first, and until it is there this CPU says so, for queue_check() on others.
 * Takes the lock.
 */
static __always_inline void queue_move(struct bpf_iter_scx_dsq *it, struct task_struct *p,
				       u32 domain, u32 leaf)
{
	struct cpu_state *here = cpu_state(bpf_get_smp_processor_id());
	struct bpf_spin_lock *lock = lock_of(domain);

	here->inserting = queue_of(domain, leaf);
	if (lock && queue_counts(queue_of(domain, leaf), task_cpus(p, domain)) &&
	    !scx_bpf_dsq_move_vtime(it, p, queue_of(domain, leaf), 0))
		queue_leave(lock, tree_of(domain), leaf);
	here->inserting = AN_NONE;
}

/*
 * A queue that looked non-empty gave no task. Either it holds only tasks that may not run here, or
 * tasks were taken out sideways (a change of class, of affinity, of scheduling policy) and its
 * length is wrong. It is put right when nobody can be in the middle of adding to it: asked before
 * the queue is counted, for a task that was counted in its class meanwhile would not be in it yet
 * (race --seed 132).
 */
an_global int queue_check(u32 queue)
{
	u32 domain = queue_domain(queue);
	struct an_tree *t = tree_of(domain);
	struct bpf_spin_lock *lock = lock_of(domain);
	struct an_node *n = an_node(t, queue_leaf(queue));
	u32 events = n->queue_events;
	s32 queued;

	if (!lock || queue_grows(queue))
		return 0;
	queued = scx_bpf_dsq_nr_queued(queue);
	if (queued < 0)
		return 0;
	bpf_spin_lock(lock);
	if (events == n->queue_events && (u32)queued < n->queued) {
		an_queue_correct(t, queue_leaf(queue), queued);
		stats.corrected++;
	}
	bpf_spin_unlock(lock);
	return 0;
}

/*
 * While this CPU had claimed a task of a class that it cannot serve, a CPU that can may have found
 * nothing and gone idle: wake it.
 */
an_global int kick_for_queue(u64 queue)
{
	struct bpf_iter_scx_dsq it;
	struct task_struct *p;
	u32 looks = QUEUE_LOOK;

	bpf_iter_scx_dsq_new(&it, queue, 0);
	an_while(looks--) {
		s32 idle;

		p = bpf_iter_scx_dsq_next(&it);
		if (!p)
			break;
		idle = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
		if (idle >= 0)
			scx_bpf_kick_cpu(idle, an_kconst(scx_kick_flags, SCX_KICK_IDLE));
	}
	bpf_iter_scx_dsq_destroy(&it);
	return 0;
}

#endif
