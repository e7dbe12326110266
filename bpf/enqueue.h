/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A task is runnable: into the queue of its class, or of its contract, and a CPU is found that
 * should turn to it. Part of sched.bpf.c.
 */
#ifndef ANDANTE_BPF_ENQUEUE_H
#define ANDANTE_BPF_ENQUEUE_H

#include "classes.h"
#include "learn.h"
#include "service.h"

/* Has the task that runs there used so much that a classmate with this start tag comes first? */
static __noinline bool classmate_comes_first(const struct cpu_state *c, u64 tag, u64 now)
{
	u64 served = c->start_tag;
	u32 rem = 0;

	an_tag_charge(&served, &rem, now - c->since_ns, c->weight);
	return an_tag_diff(tag, served) <= 0;
}

/* How long a task that has woken another may go on: often it waits for the answer. */
#define WAKER_GRACE_NS 100000

/* The contract's CPU, which serves it already or does not, is told that a task of it, of this start
 * tag, has woken. */
static __always_inline void contract_tells(u32 index, bool served, u64 tag, bool ahead, u64 now_ns)
{
	u32 cpu = an_holder(index)->cpu;
	struct cpu_state *c = cpu_state(cpu);

	if (served) {
		/* Its tasks take turns, as classmates do. */
		if (!ahead && (now_ns - c->since_ns < in_class_wake_ns ||
			       !classmate_comes_first(c, tag, now_ns))) {
			cpu_check_at(c, cpu, now_ns, now_ns + quantum_ns);
			return;
		}
		stats.wake_preemptions++;
		cpu_ask(c, cpu);
	} else if (cpu == bpf_get_smp_processor_id() && c->running && !an_kin_interrupt()) {
		cpu_check_at(c, cpu, now_ns, now_ns + WAKER_GRACE_NS);
	} else {
		kick_contract_cpu(cpu);
	}
}

/* May the task, whose contract or whose class's this is, wait for the CPU of the contract? */
static __always_inline bool contract_is_for(const struct task_struct *p, u32 contract)
{
	u32 cpu = an_holder(contract)->cpu;

	return nr_cpus == 1 || bpf_cpumask_test_cpu(cpu, p->cpus_ptr);
}

/*
 * Queues a task whose class holds a contract, into the class's queue, for the contract's CPU;
 * false: for anyone, as any other task.
 */
static __always_inline bool class_contract_enqueue(struct task_struct *p, struct task_state *ts,
						   u32 contract, u32 leaf, u64 now_ns,
						   u64 enq_flags)
{
	struct bpf_spin_lock *lock = contracts_lock();
	bool served = contract_is_served(contract), news;
	u64 by = task_cpus(p, 0);

	if (!contract_is_for(p, contract) || !contract_takes(p, contract, served, now_ns))
		return false;
	cpu_state(bpf_get_smp_processor_id())->inserting = leaf;
	bpf_spin_lock(lock);
	news = class_contract_begins(contract) | an_contract(&contracts, contract)->parked;
	an_task_wake(an_node(&trees[0], leaf)->vtime, &ts->sfq);
	domain_queue_add(&trees[0], leaf, by);
	bpf_spin_unlock(lock);
	an_kqueue(p, leaf, quantum_ns, task_wants(ts, leaf, enq_flags), enq_flags);
	if (news || (enq_flags & an_kconst(scx_enq_flags, SCX_ENQ_WAKEUP)))
		contract_tells(contract, served && !news, ts->sfq.start, false, now_ns);
	return true;
}

/*
 * A task is queued because the one that runs on this CPU has woken it, for a learnt job: the
 * deadline of that job [ns]. 0: it is not woken, or not by a learnt job.
 */
static __always_inline u64 waker_deadline_ns(const struct cpu_state *c, u64 enq_flags)
{
	const struct an_holder *h = an_holder(c->contract & 0xffff);

	if (!c->contract || !c->running || !(enq_flags & an_kconst(scx_enq_flags, SCX_ENQ_WAKEUP)))
		return 0;
	if (h->kind != AN_LEARNT_OF_THREAD || an_kin_interrupt())
		return 0;
	if (h->noted && h->inherited_ns)
		return h->inherited_ns; /* the turn has been handed on to it */
	return an_contract(&contracts, c->contract & 0xffff)->job_deadline_ns;
}

/*
 * A learnt job that runs on this CPU has woken a task of the contract, which is due then. Does the
 * woken task take over the turn when the waker sleeps? It does if it would be picked next anyway.
 * A turn is handed on to one task at a time.
 */
static __always_inline bool contract_hands_on(const struct cpu_state *c, u32 contract, u64 due_ns)
{
	const struct an_holder *h = an_holder(contract);
	const struct an_contract *k = an_contract(&contracts, contract);

	return due_ns && !c->handed && c == cpu_state(h->cpu) && c->used_ns < quantum_ns &&
	       h->kind == AN_LEARNT_OF_THREAD && !k->parked && !h->changed &&
	       an_learnt_comes_next(&contracts, contract, c->contract & 0xffff, due_ns);
}

/*
 * Queues a task that holds a contract by itself, into the contract's queue; false: it is to be
 * queued in its class like any other. The contract's CPU is told if there is news for it.
 */
static __always_inline bool contract_enqueue(struct task_struct *p, struct task_state *ts,
					     u32 contract, u32 leaf, u64 now_ns, u64 enq_flags)
{
	struct bpf_spin_lock *lock = contracts_lock();
	bool here = contract_is_for(p, contract), served = contract_is_served(contract), news;
	bool takes = here && contract_takes(p, contract, served, now_ns);
	struct cpu_state *c = cpu_state(bpf_get_smp_processor_id());
	u64 turn_ns = waker_deadline_ns(c, enq_flags), inherited_ns = 0;
	u64 vtime = an_node(&trees[0], leaf)->vtime;
	bool hands_on;

	/* Until the kernel has queued it, which it does later: whoever looks for the contract's
	 * tasks meanwhile knows that there may be one more. */
	if (nr_cpus > 1)
		c->inserting = contract_queue(contract);
	if (!ts->job_ns || enq_flags & an_kconst(scx_enq_flags, SCX_ENQ_WAKEUP))
		job_begins(ts, now_ns);
	if (turn_ns)
		inherited_ns = an_learn_inherited_ns(&ts->learner, turn_ns, now_ns);
	session_raises(p, ts, contract, now_ns);
	bpf_spin_lock(lock);
	hands_on = takes && contract_hands_on(c, contract, inherited_ns);
	news = contract_count(ts, here ? contract : AN_NONE, hands_on);
	if (news)
		an_holder(contract)->inherited_ns = inherited_ns;
	news |= an_contract(&contracts, contract)->parked | an_holder(contract)->noted;
	an_task_wake(vtime, &ts->sfq);
	an_task_debt_limit(vtime, &ts->sfq, nr_cpus_online);
	if (!takes) {
		an_holder(contract)->waits_in = leaf;
		an_holder(contract)->waits = 1;
	}
	bpf_spin_unlock(lock);
	if (news && !takes)
		contract_wakes_later(contract, now_ns);
	if (!takes)
		return false;
	an_kqueue(p, contract_queue(contract), quantum_ns,
		  contract_key(p, ts, leaf, now_ns, enq_flags), enq_flags);
	if (nr_cpus > 1 && !served)
		learn_awaits(contract);
	if (hands_on) {
		c->handed = contract_name(contract);
		cpu_check_at(c, an_holder(contract)->cpu, now_ns, now_ns + quantum_ns);
	} else if (news) {
		contract_tells(contract, contract_is_served(contract), ts->sfq.start, ts->ahead,
			       now_ns);
	}
	return true;
}

/* Queues a task that has a contract, its own or its class's; false: as any other task. */
static __always_inline bool enqueue_under_contract(struct task_struct *p, struct task_state *ts,
						   u32 contract, u32 leaf, u64 now_ns,
						   u64 enq_flags)
{
	if (an_holder(contract)->leaf)
		return class_contract_enqueue(p, ts, contract, leaf, now_ns, enq_flags);
	return contract_enqueue(p, ts, contract, leaf, now_ns, enq_flags);
}

/* How many CPUs are looked at for one whose task should make way for a woken one. */
#define WAKE_SCAN_CPUS 16

/* When a quantum makes way for the one of a class that has just woken: when that much is used [ns].
 */
an_global u64 class_makes_way_after(u32 domain, u32 serving, u32 leaf)
{
	struct bpf_spin_lock *lock = lock_of(domain);
	u64 after;

	/* With one tree nothing else asks for the domain: clang would leave anything in its
	 * register, and the verifier refuses what is no number. */
	if (!lock || domain >= nr_domains)
		return quantum_ns;
	bpf_spin_lock(lock);
	after = domain_preempt_after_ns(tree_of(domain), leaf, serving);
	if (!after && throttled(tree_of(domain), leaf))
		after = quantum_ns; /* nobody makes way for it */
	bpf_spin_unlock(lock);
	return after < quantum_ns ? after : quantum_ns;
}

/*
 * When the task that runs on this CPU should make way for the one just queued: when that much of
 * its quantum is used [ns], all of it at most.
 */
static __always_inline u64 makes_way_after(const struct cpu_state *c, u32 cpu, u32 serving,
					   struct task_struct *p, u32 leaf, u64 tag, u64 now)
{
	if (serving != leaf)
		return class_makes_way_after(cpu_domain(cpu), serving, leaf);
	if (now - c->since_ns < c->classmate_ns)
		return quantum_ns;
	if (c->special && cpu_policy(c))
		return member_preempts(p, leaf, cpu) ? 0 : quantum_ns;
	return classmate_comes_first(c, tag, now) ? 0 : quantum_ns;
}

/* Kicks the CPU if its task should make way for the woken one now. */
static __always_inline bool preempt_now(u32 cpu, struct cpu_state *c, u32 leaf, u64 used, u64 after)
{
	if (used < after)
		return false;
	c->check_ns = 0;
	c->over |= c->serving != leaf;
	stats.wake_preemptions++;
	cpu_ask(c, cpu);
	return true;
}

/* The other CPUs of its domain that the woken task may use: does one of them run something that
 * should yield? */
static __noinline void preempt_elsewhere(struct task_struct *p, u32 leaf, u64 tag, u64 now)
{
	u32 cpu = task_cpu(p);
	u32 domain = cpu_domain(cpu);
	u32 left = an_opaque(nr_cpus - 1 < WAKE_SCAN_CPUS ? nr_cpus - 1 : WAKE_SCAN_CPUS);

	an_while(left) {
		struct cpu_state *c;
		u32 serving;
		u64 used;

		/* Opaque, or the verifier goes through the loop once for every CPU: that of 6.18
		 * gives up where there are 32. */
		left = an_opaque(left - 1);
		cpu = an_opaque(cpu + 1);
		if (cpu >= nr_cpus)
			cpu = 0;
		c = cpu_state(cpu);
		serving = c->serving;
		if (!c->running || !serving || cpu_domain(cpu) != domain ||
		    !bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			continue;
		used = c->used_ns + now - c->since_ns;
		if (preempt_now(cpu, c, leaf, used,
				makes_way_after(c, cpu, serving, p, leaf, tag, now)))
			return;
	}
}

/* Finds a CPU for a task that is being queued in this domain: an idle one of any, or one of this
 * whose task should make way. */
static __always_inline void find_cpu(struct task_struct *p, u32 domain, u32 leaf, u64 tag, u64 now,
				     bool woken)
{
	u32 cpu = task_cpu(p);
	struct cpu_state *c = cpu_state(cpu);
	u32 serving = c->serving;
	u64 used, after;

	if (nr_cpus > 1) {
		s32 idle = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);

		if (idle >= 0) {
			scx_bpf_kick_cpu(idle, an_kconst(scx_kick_flags, SCX_KICK_IDLE));
			return;
		}
	}
	if (!c->running) {
		c->asked |= woken; /* a real-time task has the CPU */
		return;
	}
	if (!serving || cpu_domain(cpu) != domain)
		return;
	used = c->used_ns + now - c->since_ns;
	after = woken ? makes_way_after(c, cpu, serving, p, leaf, tag, now) : quantum_ns;
	/* The task that runs here, if it has woken this one of another class, may wait for it right
	 * away. Classmates have classmate_ns. */
	if (woken && serving != leaf && after < used + WAKER_GRACE_NS &&
	    cpu == bpf_get_smp_processor_id() && !an_kin_interrupt())
		after = used + WAKER_GRACE_NS;
	if (preempt_now(cpu, c, leaf, used, after))
		return;
	cpu_check_at(c, cpu, now, now + (after - used));
	if (nr_cpus > 1 && woken)
		preempt_elsewhere(p, leaf, tag, now);
}

/*
 * A thread of the kernel that belongs to this CPU, and wakes: it runs at once, for the rest of the
 * system waits for it, for AT_ONCE_NS at most.
 */
static __always_inline bool is_of_cpu(const struct task_struct *p, u64 enq_flags)
{
	const u32 of_cpu = PF_KTHREAD | PF_NO_SETAFFINITY;

	return (p->flags & of_cpu) == of_cpu && p->nr_cpus_allowed == 1 &&
	       (enq_flags & an_kconst(scx_enq_flags, SCX_ENQ_WAKEUP));
}

/* A process that ends, a child of this task's in most cases, wakes it: if both are of this leaf it
 * goes on where that one has been. */
static __noinline void child_ended(const struct task_struct *p, struct task_state *ts,
				   const struct cpu_state *here, u32 leaf, u64 now)
{
	struct task_struct *child = bpf_get_current_task_btf();
	const struct task_state *ended = bpf_task_storage_get(&task_states, child, 0, 0);

	if (ended && child->tgid != p->tgid && ended->leaf == leaf && ended->domain == ts->domain &&
	    here->running && !an_kin_interrupt())
		an_task_ended(&ts->sfq,
			      here->start_tag + an_tag_of(now - here->since_ns, here->weight));
}

SEC("struct_ops/andante_enqueue")
void BPF_PROG(andante_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_state *ts = bpf_task_storage_get(&task_states, p, 0, 0);
	struct cpu_state *here = cpu_state(bpf_get_smp_processor_id());
	u64 now = an_kclock_ns();
	bool woken = enq_flags & an_kconst(scx_enq_flags, SCX_ENQ_WAKEUP);
	bool for_contract = false;
	u32 leaf, contract;
	struct place at;
	u64 by;

	if (!ts || here->gone || is_of_cpu(p, enq_flags)) {
		cpu_state(task_cpu(p))->at_once = 1;
		an_kqueue_local(p, quantum_ns, enq_flags);
		return;
	}
	if (!ts->waits_ns)
		ts->waits_ns = now;
	else if (overdue_again(p, ts, now, enq_flags))
		return;
	task_settles(p, ts);
	leaf = task_leaf(p, ts);
	if (here->asks | clients_seen | ts->asked_by | ts->home)
		leaf = binding_leaf(p, ts, leaf, here, woken);
	if (woken && bpf_get_current_task_btf()->flags & PF_EXITING)
		child_ended(p, ts, here, leaf, now);
	learn_queued(p, ts, here, leaf, now, woken);
	contract = task_contract_now(ts, leaf);
	if (contract) {
		if (enqueue_under_contract(p, ts, contract, leaf, now, enq_flags))
			return;
		for_contract = contract_is_for(p, contract);
	}
	/* Those that may be served under a contract stay where it is. */
	if (!place_of(&at, for_contract ? 0 : task_cpu(p)))
		return;
	task_arrives(p, ts, &at, leaf);
	/* Before it is counted, or queue_check() on another CPU would find it missing. */
	if (nr_cpus > 1)
		here->inserting = queue_of(at.domain, leaf);
	by = task_cpus(p, at.domain);
	bpf_spin_lock(at.lock);
	an_task_wake(an_node(at.tree, leaf)->vtime, &ts->sfq);
	domain_queue_add(at.tree, leaf, by);
	bpf_spin_unlock(at.lock);
	if (for_contract)
		class_contract_waits(contract, now);
	an_kqueue(p, queue_of(at.domain, leaf), quantum_ns, task_wants(ts, leaf, enq_flags),
		  enq_flags);
	find_cpu(p, at.domain, leaf, ts->sfq.start, now, woken);
}

#endif
