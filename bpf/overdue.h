/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A task that has waited for too long has a short turn (core/overdue.h). Part of sched.bpf.c.
 *
 * A timer goes through all queues, of classes and of contracts. Whoever is overdue goes to the
 * queue of its CPU's overdue tasks: of one queue for all CPUs, each would go through the tasks that
 * may not run on it.
 */
#ifndef ANDANTE_BPF_OVERDUE_H
#define ANDANTE_BPF_OVERDUE_H

#include "contracts.h"
#include "queue.h"

/* There may be tasks in the queues of those that are overdue. */
u32 overdue;

struct overdue_timer {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct overdue_timer);
} overdue_timers SEC(".maps");

static __always_inline u64 overdue_queue(u32 cpu)
{
	return AN_MAX_NODES + AN_MAX_CONTRACTS + cpu;
}

/* The task, which is gone through in a queue, goes to that of the overdue ones of its CPU, behind
 * those that have waited for longer. */
static __always_inline bool overdue_move(struct bpf_iter_scx_dsq *it, struct task_struct *p,
					 u64 since_ns)
{
	scx_bpf_dsq_move_set_vtime(it, since_ns);
	if (!scx_bpf_dsq_move_vtime(it, p, overdue_queue(an_ktask_cpu(p)), 0))
		return false;
	overdue = 1;
	__sync_fetch_and_add(&stats.overdue, 1);
	return true;
}

/* A task is about to leave this queue. If that is a class's it is counted out (queue_leave());
 * false: it is not, or not a class's but a contract's. */
an_global bool overdue_leaves(u32 queue)
{
	u32 domain = queue_domain(queue);
	struct bpf_spin_lock *lock = lock_of(domain);

	return lock && queue_leaf(queue) < AN_MAX_NODES &&
	       queue_leave(lock, tree_of(domain), queue_leaf(queue));
}

/* It did not leave. */
an_global int overdue_stays(u32 queue)
{
	u32 domain = queue_domain(queue);
	struct bpf_spin_lock *lock = lock_of(domain);

	if (lock)
		queue_stay(lock, tree_of(domain), queue_leaf(queue), true);
	return 0;
}

/*
 * Those in this queue.
 *
 * The loop compares no index, nor takes one to an array, which is why counting is done in functions
 * of their own. The verifier of 6.18.15 (Linux mended it by 2658a1720a19) refuses a loop over an
 * iterator with "verifier bug: backtracking call unexpected regs", -EFAULT, if the compiler leaves
 * a copy of such an index in a register.
 */
an_global int overdue_in(u64 queue)
{
	u64 now_ns = an_kclock_ns();
	struct bpf_iter_scx_dsq it;
	bool more = true;

	/* The verifier takes this for part of the initialisation, which may sleep. */
	bpf_rcu_read_lock();
	bpf_iter_scx_dsq_new(&it, queue, 0);
	an_while(more) {
		struct task_struct *p = bpf_iter_scx_dsq_next(&it);
		struct task_state *ts = p ? bpf_task_storage_get(&task_states, p, 0, 0) : NULL;
		bool counted;

		more = p != NULL;
		if (!ts || !an_overdue(ts->waits_ns, now_ns))
			continue;
		counted = overdue_leaves(queue);
		if (!overdue_move(&it, p, ts->waits_ns) && counted)
			overdue_stays(queue);
	}
	bpf_iter_scx_dsq_destroy(&it);
	bpf_rcu_read_unlock();
	return 0;
}

/*
 * Those of one domain's classes. The kernel's count of a queue is asked, not ours: this is what
 * keeps us in charge when a task has been lost from ours, which only the next of its class would
 * mend. Of a class whose count is right and 0 that is one look at an empty queue.
 */
an_global int overdue_among(u32 domain)
{
	struct an_tree *t = tree_of(domain);
	u32 leaf = AN_ROOT_LEAF, end = domain < nr_domains ? t->unused : 0;

	an_while(leaf < end && leaf < AN_MAX_NODES) {
		if (an_node(t, leaf)->kind == AN_LEAF &&
		    scx_bpf_dsq_nr_queued(queue_of(domain, leaf)) > 0)
			overdue_in(queue_of(domain, leaf));
		leaf = an_opaque(leaf + 1);
	}
	return 0;
}

/* Those of contracts that threads hold. */
an_global int overdue_among_contracts(void)
{
	u32 index = 1, end = contracts.unused;

	an_while(index < end && index < AN_MAX_CONTRACTS) {
		if (!an_holder(index)->leaf && scx_bpf_dsq_nr_queued(contract_queue(index)) > 0)
			overdue_in(contract_queue(index));
		index = an_opaque(index + 1);
	}
	return 0;
}

/* Those of a CPU that is gone have their turns on another. */
an_global int overdue_inherit(u32 cpu)
{
	struct bpf_iter_scx_dsq it;
	u32 heir = cpu_heir();
	bool more = true;

	bpf_rcu_read_lock();
	bpf_iter_scx_dsq_new(&it, overdue_queue(cpu), 0);
	an_while(more) {
		struct task_struct *p = bpf_iter_scx_dsq_next(&it);

		more = p && scx_bpf_dsq_move_vtime(&it, p, overdue_queue(heir), 0);
	}
	bpf_iter_scx_dsq_destroy(&it);
	bpf_rcu_read_unlock();
	return 0;
}

/* Are there any, on some CPU? */
an_global bool overdue_any(void)
{
	bool any = false;
	u32 cpu = 0;

	an_while(cpu < nr_cpus && cpu < AN_MAX_CPUS) {
		if (scx_bpf_dsq_nr_queued(overdue_queue(cpu)) > 0) {
			any = true;
			if (cpu_state(cpu)->gone)
				overdue_inherit(cpu);
		}
		cpu++;
	}
	return any;
}

static int overdue_look(void *map, u32 *key, struct overdue_timer *t)
{
	bool before = overdue_any();
	u64 now_ns = an_kclock_ns();
	u32 domain = 0, cpu = 0;

	overdue = before;
	an_while(domain < nr_domains) {
		overdue_among(domain);
		domain = domain_after(domain);
	}
	overdue_among_contracts();
	an_while(overdue && cpu < nr_cpus && cpu < AN_MAX_CPUS) {
		struct cpu_state *c = cpu_state(cpu);
		s32 tasks = scx_bpf_dsq_nr_queued(overdue_queue(cpu));

		if (!before)
			an_overdue_begins(&c->overdue_ns, now_ns);
		c->overdue_turn_ns = an_overdue_turn_ns(tasks > 0 ? tasks : 0, quantum_ns);
		cpu++;
	}
	if (overdue)
		kick_idle_cpus();
	bpf_timer_start(&t->timer, AN_OVERDUE_LOOK_NS, 0);
	return 0;
}

/*
 * The task is queued anew without having run (its affinity was changed, or its weight). If it is
 * overdue it keeps its place among those, however often that happens; false: it is not.
 */
static __noinline bool overdue_again(struct task_struct *p, struct task_state *ts, u64 now_ns,
				     u64 enq_flags)
{
	u32 cpu = an_ktask_cpu(p);

	if (!an_overdue(ts->waits_ns, now_ns))
		return false;
	an_kqueue(p, overdue_queue(cpu), quantum_ns, ts->waits_ns, enq_flags);
	overdue = 1;
	scx_bpf_kick_cpu(cpu, an_kconst(scx_kick_flags, SCX_KICK_IDLE));
	return true;
}

/* This CPU takes a task that is overdue, if it may now: with nothing else to do it always may. */
static __always_inline bool overdue_take(struct cpu_state *c, u32 cpu, bool else_idle)
{
	if (!overdue)
		return false;
	if (!an_overdue_takes(&c->overdue_ns, an_kclock_ns(), c->overdue_turn_ns) && !else_idle)
		return false;
	if (!an_kmove_to_local(overdue_queue(cpu)))
		return false;
	c->apart = APART_OVERDUE;
	return true;
}

/* Its turn begins: the shortest that there is, if its class is throttled, which will owe it. */
static __noinline void overdue_runs(struct cpu_state *c, u32 cpu)
{
	u64 now_ns = an_kclock_ns(), turn_ns = c->overdue_turn_ns;

	if (throttled(tree_of(cpu_domain(cpu)), c->serving))
		turn_ns = AN_OVERDUE_TURN_NS;
	cpu_check_by(c, cpu, now_ns, now_ns + turn_ns);
}

static __always_inline int overdue_init(void)
{
	struct overdue_timer *t;
	u32 key = 0, cpu = 0;
	int err = 0;

	an_while(cpu < nr_cpus && cpu < AN_MAX_CPUS && !err) {
		err = scx_bpf_create_dsq(overdue_queue(cpu), -1);
		cpu_state(cpu)->overdue_turn_ns = AN_OVERDUE_TURN_NS;
		cpu++;
	}
	if (err)
		return err;
	t = bpf_map_lookup_elem(&overdue_timers, &key);
	if (!t)
		return -1;
	bpf_timer_init(&t->timer, &overdue_timers, CLOCK_MONOTONIC);
	bpf_timer_set_callback(&t->timer, overdue_look);
	return bpf_timer_start(&t->timer, AN_OVERDUE_LOOK_NS, 0);
}

#endif
