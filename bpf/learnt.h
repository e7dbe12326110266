/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Learnt contracts in the kernel: each is on a CPU that has room for it, and goes to another when
 * that one is taken (core/learn.h). bpf/learn.h says which tasks get one. Part of sched.bpf.c.
 */
#ifndef ANDANTE_BPF_LEARNT_H
#define ANDANTE_BPF_LEARNT_H

#include "holders.h"

/* The contract that has been learnt of the task, or AN_NONE: it holds none, or was promised one. */
static __always_inline u32 learnt_contract(const struct task_state *ts)
{
	u32 index = ts->contract ? contract_named(ts->contract) : AN_NONE;

	return index && an_holder(index)->kind == AN_LEARNT_OF_THREAD ? index : AN_NONE;
}

/*
 * Is the task to have no more than what others leave? So it is if it was niced, or put under
 * SCHED_IDLE or SCHED_BATCH: nothing that is learnt of it lifts it above that.
 */
static __always_inline bool learn_is_background(const struct task_struct *p,
						const struct task_state *ts)
{
	return ts->weight < AN_USUAL_WEIGHT || an_kis_batch(p);
}

static __always_inline bool learn_may(const struct task_struct *p, const struct task_state *ts)
{
	return !contract_named(ts->contract) && !(p->flags & (PF_KTHREAD | PF_EXITING)) &&
	       !learn_is_background(p, ts);
}

/* Was its class promised something? That is better than anything learnt, which comes behind it. */
static __always_inline bool learn_is_promised(u32 leaf)
{
	return contracts_of_classes && *leaf_contract(leaf);
}

/* How many CPUs are looked at for room. */
#define LEARN_SCAN_CPUS 16

static __always_inline bool serves_contracts(u32 cpu)
{
	return cpu < AN_MAX_CONTRACT_CPUS && !cpu_domain(cpu);
}

/* The CPU with the most room for this part of one; -1: none has any. Needs no lock. */
static __noinline s32 learn_cpu(struct task_struct *p, u32 part, u64 now_ns)
{
	u32 cpu = an_ktask_cpu(p);
	s32 best = -1;
	u32 left = nr_cpus < LEARN_SCAN_CPUS ? nr_cpus : LEARN_SCAN_CPUS;
	u32 least = ~0u;

	an_while(left) {
		u32 taken = cpu_state(cpu)->learnt;

		if (serves_contracts(cpu) && taken < least && !cpu_state(cpu)->gone &&
		    bpf_cpumask_test_cpu(cpu, p->cpus_ptr) &&
		    an_learnt_has_room(&contracts, an_contract_cpu(&contracts, cpu), taken, part,
				       now_ns)) {
			least = taken;
			best = cpu;
		}
		cpu = an_opaque(cpu + 1);
		if (cpu >= nr_cpus)
			cpu = 0;
		left = an_opaque(left - 1);
	}
	return best;
}

/* The task, which uses this part of a CPU, is given this contract. */
an_global int learn_make(struct task_struct *p __arg_trusted, struct task_state *ts, u32 part,
			 struct an_promise *promise, u64 now_ns)
{
	struct bpf_spin_lock *lock = contracts_lock();
	u32 pid = p->pid, index;
	s32 cpu = learn_cpu(p, part, now_ns);

	if (cpu < 0 || !ts || !promise)
		return 0;
	promise->cpu = cpu;
	bpf_spin_lock(lock);
	index = an_contract_create(&contracts, promise);
	if (index) {
		struct an_holder *h = an_holder(index);

		holder_init(h, AN_LEARNT_OF_THREAD);
		h->leaf = AN_NONE;
		h->cpu = cpu;
		h->bound = 1;
		h->pid = pid;
		h->part = part;
		cpu_state(cpu)->learnt += part;
		an_learnt_assure(&contracts, an_contract(&contracts, index), part);
		ts->contract = contract_name(index);
	}
	bpf_spin_unlock(lock);
	stats.learnt += index != AN_NONE;
	stats.learnt_refused += index == AN_NONE;
	return 0;
}

/* The same, by what is known of it. */
static __noinline void learn_contract(struct task_struct *p, struct task_state *ts, u64 now_ns)
{
	struct an_promise promise = {};

	an_learn_promise_for(&ts->learner, ts->event, learn_bound, &promise);
	learn_make(p, ts, an_learn_part(&ts->learner), &promise, now_ns);
}

/* The promise follows what the task is offered now, and the part that it uses, once either has
 * changed by so much that it matters. */
static __always_inline void learn_offer(struct task_state *ts, u32 index, u32 part,
					struct an_promise *promise)
{
	struct bpf_spin_lock *lock = contracts_lock();
	struct an_contract *k = an_contract(&contracts, index);
	struct an_holder *h = an_holder(index);

	/* What it is sure of is an eighth above what it used then: it may not use much more. */
	if (!an_learnt_differs(promise, k) && part <= h->part + h->part / 16 &&
	    part >= h->part - h->part / 4)
		return;
	promise->cpu = h->cpu;
	bpf_spin_lock(lock);
	/* It may just have given way to others, or to what was promised to the task. */
	if (contract_named(ts->contract) == index) {
		cpu_state(h->cpu)->learnt += part - h->part;
		h->part = part;
		h->next = *promise;
		h->changed = 1;
	}
	bpf_spin_unlock(lock);
}

/* The same, by what is learnt. */
static __noinline void learn_adjust(struct task_state *ts, u32 index)
{
	struct an_promise promise = {};

	an_learn_promise_for(&ts->learner, ts->event, learn_bound, &promise);
	learn_offer(ts, index, an_learn_part(&ts->learner), &promise);
}

/* The contract is that CPU's from now on, and notes it there. With the lock held, not noted yet. */
static __always_inline void learn_goes_to(u32 index, u32 cpu)
{
	struct an_holder *h = an_holder(index);

	if (!h->changed)
		h->next = an_contract(&contracts, index)->promise;
	cpu_state(h->cpu)->learnt -= h->part;
	cpu_state(cpu)->learnt += h->part;
	h->cpu = cpu;
	h->next.cpu = cpu;
	h->changed = 1;
	contract_note(index);
}

/* The CPU of the contract serves another one, or is gone: if there is a CPU that serves none, it
 * goes there. */
static __noinline void learn_move(struct task_struct *p, const struct task_state *ts, u32 index)
{
	struct bpf_spin_lock *lock = contracts_lock();
	struct an_holder *h = an_holder(index);
	u32 cpu = h->cpu, left = nr_cpus < LEARN_SCAN_CPUS ? nr_cpus : LEARN_SCAN_CPUS;
	u32 serves = cpu_state(cpu)->contract;

	if (h->noted)
		return;
	if ((!serves || serves == contract_name(index)) && !cpu_state(cpu)->gone)
		return;
	an_while(left) {
		cpu = an_opaque(cpu + 1);
		if (cpu >= nr_cpus || !serves_contracts(cpu))
			cpu = 0;
		if (!cpu_state(cpu)->contract && !cpu_state(cpu)->first_noted &&
		    !cpu_state(cpu)->gone && bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			break;
		left = an_opaque(left - 1);
	}
	if (!left)
		return;
	bpf_spin_lock(lock);
	if (contract_named(ts->contract) == index)
		learn_goes_to(index, cpu);
	bpf_spin_unlock(lock);
}

/* ---- a CPU that would turn to its tree takes over what waits for another ---- */

u64 cpus_awaited SEC(".bss.contracts") = 0; /* bit n: learnt contracts may wait for CPU n */

/* May a learnt contract wait for another CPU? */
static __always_inline bool learn_awaited(void)
{
	return nr_cpus > 1 && cpus_awaited;
}

/* The task of this contract, if learnt, has been queued for a CPU that does not serve it. */
static __always_inline void learn_awaits(u32 index)
{
	u32 cpu = an_holder(index)->cpu;

	if (an_holder(index)->kind != AN_LEARNT_OF_THREAD)
		return;
	cpu_state(cpu)->awaited_by = contract_name(index);
	__sync_fetch_and_or(&cpus_awaited, 1ULL << (cpu & 63));
}

/* Takes the contract that waits for the CPU from over to this one, if there is one and it may. */
static __always_inline bool learn_pull(u32 cpu, u32 from, u64 now_ns)
{
	struct bpf_spin_lock *lock = contracts_lock();
	struct an_contract_cpu *q = an_contract_cpu(&contracts, cpu);
	struct cpu_state *its = cpu_state(from);
	u32 index = contract_named(its->awaited_by);
	struct an_holder *h = an_holder(index);
	bool pulls;

	if (from == cpu || !index || h->cpu != from || !h->active || contract_is_served(index)) {
		__sync_fetch_and_and(&cpus_awaited, ~(1ULL << (from & 63)));
		return false;
	}
	if (!queue_head(cpu, contract_queue(index)) ||
	    !an_learnt_would_run(&contracts, q, an_contract(&contracts, index), now_ns))
		return false;
	bpf_spin_lock(lock);
	/* Not if another has been quicker, nor if that CPU has picked it: its task goes there. */
	pulls = h->cpu == from && !h->ended && its->contract != contract_name(index) &&
		(!h->noted || its->first_noted == index);
	if (pulls && h->noted) {
		its->first_noted = h->next_noted;
		h->noted = 0;
	}
	if (pulls)
		learn_goes_to(index, cpu);
	bpf_spin_unlock(lock);
	return pulls;
}

/*
 * The CPU has no contract to serve: a learnt one that waits for another CPU, which serves an
 * earlier one or has yet to hear of it, is its own from now on. True if there is one.
 */
an_global bool learn_pulls(u32 cpu)
{
	u64 awaited = cpus_awaited, now_ns = an_kclock_ns();
	u32 from = 0;

	if (!serves_contracts(cpu))
		return false;
	an_while(from < nr_cpus && from < AN_MAX_CONTRACT_CPUS) {
		if (awaited >> from & 1 && learn_pull(cpu, from, now_ns)) {
			stats.learnt_pulled++;
			return true;
		}
		from = an_opaque(from + 1);
	}
	return false;
}

/* The task, which has had to make way, is queued again. */
static __always_inline void learn_makes_way(struct task_struct *p, const struct task_state *ts)
{
	u32 index = learnt_contract(ts);

	if (index)
		learn_move(p, ts, index);
}

#endif
