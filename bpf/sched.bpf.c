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
 *      cgroup_*    a class comes, goes, changes its weight or quota, or a task changes class
 *                  (classes.h, bandwidth.h)
 *
 * Contracts come before the tree in every dispatch (contract_turn.h): promised ones, held by
 * classes or threads (holders.h), and learnt ones (learn.h). A server works in the class of the
 * client that it answers (binding.h).
 *
 * With a runnable previous task the kernel calls dispatch, then stopping and enqueue for that
 * task; so dispatch settles its account, and stopping finds nothing left to do.
 *
 * The tree is guarded by a spin lock (domain.h; many CPUs have several of both), under which
 * nothing of the kernel's may be called: read time and storage first, decide under the lock, act
 * after it. Between decision and act another CPU may have taken the task; then the pick is given
 * back and the next made without that class.
 */
#include "calls.h"
#include "classes.h"
#include "dispatch.h"
#include "enqueue.h"
#include "exit.h"
#include "leaf_policy_change.h"
#include "sources.h"

char _license[] SEC("license") = "GPL";

/* ---- a task starts and stops ---- */

SEC("struct_ops/andante_running")
void BPF_PROG(andante_running, struct task_struct *p)
{
	struct task_state *ts = bpf_task_storage_get(&task_states, p, 0, 0);
	u32 cpu = task_cpu(p);
	struct cpu_state *c = cpu_state(cpu);
	u32 leaf, contract, old = c->serving, apart = c->apart;
	struct place at;

	if (!ts || !place_of(&at, cpu))
		return;
	ts->waits_ns = 0;
	task_settles(p, ts);
	if (c->gone) {
		/* It may not be moved, and the CPU waits for it before it leaves: nobody would end
		 * a quantum that began now (race --seed 246). */
		contract_uncount(ts);
		c->contract = 0;
		c->since_sum_ns = p->se.sum_exec_runtime;
		c->running = 1; /* stopping() is to look */
		return;
	}
	leaf = task_leaf(p, ts);
	contract = task_contract_now(ts, leaf);
	if (c->contract && contract != (c->contract & 0xffff))
		c->contract = 0;
	if (old != leaf || apart || (c->contract && !c->contract_leaf && quantum_over(c))) {
		/* It runs under its contract, an idle CPU took it, or the kernel put it here; or
		 * its contract goes on, and the class's quantum is used up. */
		task_arrives(p, ts, &at, leaf);
		bpf_spin_lock(at.lock);
		quantum_ends(at.tree, c);
		/* Or none, if its class has been removed since it was looked up. */
		if (nr_domains > 1 && apart == APART_OWED)
			c->serving = domain_serve_pulled(at.tree, leaf);
		else
			c->serving = domain_serve_unpicked(at.tree, leaf);
		an_task_wake(an_node(at.tree, leaf)->vtime, &ts->sfq);
		bpf_spin_unlock(at.lock);
		c->apart = NOT_APART;
		c->unpicked = contracts.count > 0 ? UNPICKED : 0;
		if (apart == APART_OVERDUE)
			c->unpicked = UNPICKED | OVERDUE;
		c->used_ns = 0;
		c->over = !c->contract; /* it was given no quantum: the next choice is the tree's */
		stats.unpicked_runs += !c->contract;
		if (p->scx.slice > quantum_ns)
			an_kset_slice(p, quantum_ns);
	}
	if (contract && !c->contract && !contract_knows(cpu, contract))
		contract_unpicked(ts, cpu, contract);
	if (apart != APART_OVERDUE)
		task_served(c, &at, ts);
	service_begins(c, cpu, &at, p, ts);
	if (apart == APART_OVERDUE)
		overdue_runs(c, cpu);
	if (c->at_once)
		at_once_begins(c, cpu);
	else if (c->asked)
		cpu_ask_again(c, cpu);
}

SEC("struct_ops/andante_stopping")
void BPF_PROG(andante_stopping, struct task_struct *p, bool runnable)
{
	struct cpu_state *c = cpu_state(task_cpu(p));
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
	if (!runnable && an_ksleeps(p)) {
		ts->learner.slept_ns = an_kclock_ns();
		ts->waits_inside = an_kwaits_inside(p);
		ts->job_ns = 0;
		contract_sleeps(c, ts);
		if (c->special && cpu_policy(c))
			leaf_policy_sleeps(ts);
	} else if (c->gone) {
		/* The kernel puts it aside for a CPU that looks no more: see cpu_declines(). */
		scx_bpf_kick_cpu(task_cpu(p), an_kconst(scx_kick_flags, SCX_KICK_IDLE));
	}
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
		domain = domain_after(domain);
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
	c->inserting = AN_NONE; /* what it queues from now on is in no queue of a class's */
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
		domain = domain_after(domain);
	}
	return err;
}

/* CPUs that are offline as we begin, or are none yet, serve nobody until they come (cpu_online).
 * The kernel sees to it that none does meanwhile. */
static __noinline void cpus_begin(void)
{
	const struct cpumask *online = scx_bpf_get_online_cpumask();
	u32 cpu = 0;

	an_while(cpu < nr_cpus && cpu < AN_MAX_CPUS) {
		struct an_tree *t = tree_of(cpu_domain(cpu));

		cpu_state(cpu)->classmate_ns = in_class_wake_ns;
		if (!bpf_cpumask_test_cpu(cpu, online)) {
			cpu_state(cpu)->gone = 1;
			if (t->own_cpus > 1)
				t->own_cpus--;
		}
		cpu++;
	}
	scx_bpf_put_cpumask(online);
}

SEC("struct_ops.s/andante_init")
s32 BPF_PROG(andante_init)
{
	u32 cpu = 0;
	s32 err;

	pages_described();
	err = trees_create();
	if (err)
		return err;
	cpus_begin();
	err = contracts_begin();
	if (err)
		return err;
	err = overdue_init();
	if (err)
		return err;
	err = leaf_policies_init();
	if (err)
		return err;
	err = quotas_init();
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
	.set_weight = (void *)andante_set_weight,
	.init_task = (void *)andante_init_task,
	.exit_task = (void *)andante_exit_task,
	.enable = (void *)andante_enable,
	.disable = (void *)andante_disable,
	.cgroup_init = (void *)andante_cgroup_init,
	.cgroup_exit = (void *)andante_cgroup_exit,
	.cgroup_move = (void *)andante_cgroup_move,
	.cgroup_set_weight = (void *)andante_cgroup_set_weight,
	.cgroup_set_idle = (void *)andante_cgroup_set_idle,
	.cgroup_set_bandwidth = (void *)andante_cgroup_set_bandwidth,
	.cpu_online = (void *)andante_cpu_online,
	.cpu_offline = (void *)andante_cpu_offline,
	.init = (void *)andante_init,
	.exit = (void *)andante_exit,
	/* The kernel runs them at once otherwise, for the milliseconds that a large one needs; and
	 * would keep a task of a throttled class, where there is no other. */
	.flags = SCX_OPS_ENQ_EXITING | SCX_OPS_ENQ_LAST,
	/* The longest that the kernel allows: core/overdue.h counts on it. */
	.timeout_ms = 30000,
	.name = "andante",
};
