/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The shell of the core in the kernel: sched_ext callbacks in, queue moves and kicks out.
 *
 * Every class has one queue of the kernel's (a DSQ, ordered by start tag), numbered as its leaf in
 * the tree; which class is served next is the core's decision. The callbacks and what they make of
 * it:
 *
 *      enqueue     the task is runnable: tag it, count it in its class, put it in the class's queue
 *                  (enqueue.h)
 *      dispatch    a CPU wants work: the next task of the class whose quantum it is; when that is
 *                  over, charge the class, pick another, and take the first task of its queue
 *                  (dispatch.h)
 *      running     a task starts: one we took, or one the kernel chose itself
 *      stopping    it stops: that counts towards its class's quantum, and it is charged for it, now
 *                  or when it wakes (service.h)
 *      cgroup_*    a class comes, goes, changes its weight, or a task changes class (classes.h)
 *
 * Contracts come before the tree in every dispatch (contracts.h): promised ones, held by classes or
 * threads (holders.h), and learnt ones (learn.h). A server works in the class of the client that it
 * answers (binding.h).
 *
 * With a runnable previous task the kernel calls dispatch, then stopping and enqueue for that
 * task; so dispatch settles its account, and stopping finds nothing left to do.
 *
 * The tree is guarded by one spin lock, under which nothing of the kernel's may be called: read
 * time and storage first, decide under the lock, act after it. Between decision and act another
 * CPU may have taken the task; then the pick is given back and the next made without that class.
 */
#include "kfuncs.h"

#include "../core/core.h"
#include "exit.h"
#include "intf.h"
#include <bpf/bpf_tracing.h>

struct an_stats stats;

#include "domain.h"

#include "cpu.h"

char _license[] SEC("license") = "GPL";

/* Knobs, set by user space before loading. */
const volatile u64 quantum_ns = 2000000;      /* service of one pick */
const volatile u64 in_class_wake_ns = 200000; /* service before a classmate may preempt */
const volatile u32 contract_bound = 819;      /* of each CPU, for contracts [1/1024] */
const volatile u32 learn_bound = 512;	      /* of each CPU, for learnt ones [1/1024] */
const volatile u32 bindings = 1;	      /* servers work with their clients' shares */
const volatile u32 nr_cpus = 1;		      /* possible CPUs; at most AN_MAX_CPUS */
const volatile u32 nr_cpus_online = 1;

/*
 * A function that the verifier looks at once, for any arguments, and not at every call. For the
 * large ones; it may not be called with the lock held.
 */
#define an_global __attribute__((noinline))

/* What is kept per task. */
struct task_state {
	struct an_task sfq;
	u32 leaf;	/* its class; AN_NONE: to be looked up */
	u32 generation; /* of the leaf, when it was looked up */
	u32 contract;	/* that the thread holds: contract_name(); 0: none */
	u32 counted;	/* as active under this one: contract_name(); 0: under none */
	u64 charged_ns; /* its sum_exec_runtime, as far as it is charged for it (service.h) */
	u64 queued_ns;	/* when it was queued last */
	u32 home;	/* its own class, while it is bound to another (binding.h); AN_NONE */
	u32 home_generation;
	u32 asked_by; /* process that has woken it with a request, unanswered so far; 0: none */
	u32 domain;   /* where it was queued, or ran, last */
	struct an_learner learner;
	struct an_binding binding; /* the classes that it has served lately */
	u64 binding_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_state);
} task_states SEC(".maps");

static __always_inline bool cpus_idle(void)
{
	const struct cpumask *idle = scx_bpf_get_idle_cpumask();
	bool any = !bpf_cpumask_empty(idle);

	scx_bpf_put_idle_cpumask(idle);
	return any;
}

/* The quantum in progress, if any, is over. With the tree's lock held. */
static __always_inline void quantum_ends(struct an_tree *t, const struct cpu_state *c)
{
	if (!c->serving)
		return;
	domain_stop(t, c->serving, c->used_ns);
	if (c->unpicked)
		an_debt_limit(t, c->serving);
}

/* The task comes to this domain: in the one that it was in last, its classmates may have been
 * further on. */
static __always_inline void task_arrives(const struct task_struct *p, struct task_state *ts,
					 const struct place *at, u32 leaf)
{
	if (nr_domains == 1 || ts->domain == at->domain)
		return;
	ts->domain = at->domain;
	an_task_debt_limit(an_node(at->tree, leaf)->vtime, &ts->sfq, quantum_ns, p->scx.weight,
			   nr_cpus_online);
}

/* Is a task perhaps on its way to this queue of a leaf? */
an_global bool queue_grows(u32 queue)
{
	u32 cpu = 0;

	an_while(cpu < nr_cpus) {
		if (cpu_state(cpu)->inserting == queue)
			return true;
		cpu++;
	}
	return false;
}

/* The task, next in a queue that is gone through, moves to the queue of this leaf in this domain.
 * Takes the lock. */
static __always_inline void queue_move(struct bpf_iter_scx_dsq *it, struct task_struct *p,
				       u32 domain, u32 leaf)
{
	struct bpf_spin_lock *lock = lock_of(domain);
	struct an_tree *t = tree_of(domain);

	if (!lock)
		return;
	bpf_spin_lock(lock);
	domain_queue_add(t, leaf);
	bpf_spin_unlock(lock);
	if (!scx_bpf_dsq_move_vtime(it, p, queue_of(domain, leaf), 0)) {
		bpf_spin_lock(lock);
		an_queue_withdraw(t, leaf);
		bpf_spin_unlock(lock);
	}
}

/* Each part uses those before it. */
#include "starving.h"

#include "binding.h"

#include "contracts.h"

#include "holders.h"

#include "learn.h"

#include "classes.h"

#include "service.h"

#include "enqueue.h"

#include "dispatch.h"

/* ---- a task starts and stops ---- */

SEC("struct_ops/andante_running")
void BPF_PROG(andante_running, struct task_struct *p)
{
	struct task_state *ts = bpf_task_storage_get(&task_states, p, 0, 0);
	s32 cpu = an_ktask_cpu(p);
	struct cpu_state *c = cpu_state(cpu);
	u32 leaf, contract, old = c->serving;
	struct place at;

	if (!ts || !place_of(&at, cpu))
		return;
	task_settles(p, ts);
	leaf = task_leaf(p, ts);
	contract = task_contract(ts, leaf);
	if (contract != (c->contract & 0xffff))
		c->contract = 0;
	if (old != leaf || c->apart) {
		/* It runs under its contract, an idle CPU took it, or the kernel put it here. */
		task_arrives(p, ts, &at, leaf);
		bpf_spin_lock(at.lock);
		quantum_ends(at.tree, c);
		domain_serve_unpicked(at.tree, leaf);
		an_task_wake(an_node(at.tree, leaf)->vtime, &ts->sfq);
		bpf_spin_unlock(at.lock);
		c->serving = leaf;
		c->apart = 0;
		c->unpicked = contracts.count > 0;
		c->used_ns = 0;
		c->over = !c->contract; /* it was given no quantum: the next choice is the tree's */
		stats.unpicked_runs += !c->contract;
		if (p->scx.slice > quantum_ns)
			an_kset_slice(p, quantum_ns);
	}
	if (contract && !c->contract)
		contract_unpicked(ts, cpu, contract);
	service_begins(c, cpu, &at, p, ts);
}

SEC("struct_ops/andante_stopping")
void BPF_PROG(andante_stopping, struct task_struct *p, bool runnable)
{
	struct cpu_state *c = cpu_state(an_ktask_cpu(p));
	struct task_state *ts;

	if (!c->running)
		return; /* dispatch has settled it */
	service_ends(c, p);
	if (!runnable)
		class_contract_ends(c->serving);
	if (!runnable && !c->held)
		return; /* it is settled when it wakes */
	ts = bpf_task_storage_get(&task_states, p, 0, 0);
	if (!ts)
		return;
	task_settles(p, ts);
	if (!runnable)
		contract_uncount(ts);
}

/* ---- the scheduler as a whole ---- */

/* So many more CPUs, of this domain. */
static __noinline void cpus_change(u32 of_domain, s32 more)
{
	u32 domain = 0;
	struct place at;

	an_while(domain < nr_domains && place_in(&at, domain)) {
		bpf_spin_lock(at.lock);
		if (at.tree->cpus + more)
			at.tree->cpus += more;
		if (domain == of_domain && at.tree->own_cpus + more)
			at.tree->own_cpus += more;
		bpf_spin_unlock(at.lock);
		domain++;
	}
}

SEC("struct_ops/andante_cpu_online")
void BPF_PROG(andante_cpu_online, s32 cpu)
{
	cpu_state(cpu)->gone = 0;
	cpus_change(cpu_domain(cpu), 1);
}

SEC("struct_ops/andante_cpu_offline")
void BPF_PROG(andante_cpu_offline, s32 cpu)
{
	struct cpu_state *c = cpu_state(cpu);
	struct place at;

	c->running = 0;
	c->gone = 1;
	cpus_change(cpu_domain(cpu), -1);
	if (!place_of(&at, cpu))
		return;
	bpf_spin_lock(at.lock);
	quantum_ends(at.tree, c);
	bpf_spin_unlock(at.lock);
	c->serving = AN_NONE;
	if (contracts.count) {
		contracts_leave(cpu);
		kick_idle_cpus();
	}
}

static __always_inline s32 trees_create(void)
{
	u32 domain = 0;
	s32 err = 0;

	an_while(domain < nr_domains && !err) {
		struct an_tree *t = tree_of(domain);

		an_tree_init(t, quantum_ns, nr_cpus_online);
		t->own_cpus = domain_cpus();
		err = scx_bpf_create_dsq(queue_of(domain, AN_ROOT_LEAF), -1);
		domain++;
	}
	return err;
}

SEC("struct_ops.s/andante_init")
s32 BPF_PROG(andante_init)
{
	u32 cpu = 0;
	s32 err;

	err = trees_create();
	if (err)
		return err;
	err = contract_queues_create();
	if (err)
		return err;
	err = starving_init();
	if (err)
		return err;
	an_while(cpu < nr_cpus && cpu < AN_MAX_CPUS) {
		err = cpu_timer_init(cpu);
		if (err)
			return err;
		cpu++;
	}
	return 0;
}

SEC("struct_ops.s/andante_exit")
void BPF_PROG(andante_exit, struct scx_exit_info *info)
{
	exit_note(info);
}

SEC(".struct_ops.link")
struct sched_ext_ops andante_ops = {
	.enqueue = (void *)andante_enqueue,
	.dispatch = (void *)andante_dispatch,
	.running = (void *)andante_running,
	.stopping = (void *)andante_stopping,
	.init_task = (void *)andante_init_task,
	.exit_task = (void *)andante_exit_task,
	.enable = (void *)andante_enable,
	.disable = (void *)andante_disable,
	.cgroup_init = (void *)andante_cgroup_init,
	.cgroup_exit = (void *)andante_cgroup_exit,
	.cgroup_move = (void *)andante_cgroup_move,
	.cgroup_set_weight = (void *)andante_cgroup_set_weight,
	.cpu_online = (void *)andante_cpu_online,
	.cpu_offline = (void *)andante_cpu_offline,
	.init = (void *)andante_init,
	.exit = (void *)andante_exit,
	/* The kernel runs them at once otherwise, for the milliseconds that a large one needs. */
	.flags = SCX_OPS_ENQ_EXITING,
	.timeout_ms = 20000,
	.name = "andante",
};
