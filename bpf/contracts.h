/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Contracts in the kernel: which there are, and when they are active. Part of sched.bpf.c; how a
 * CPU turns to them before the tree is contract_turn.h, and the rules themselves are
 * core/contract_run.h.
 *
 * A contract is held by a class, or by threads. Its tasks wait
 *
 *      with budget      in the contract's queue: its CPU serves contracts by deadline, before the
 *                       tree. Held by a class, that is the queue of the class's leaf.
 *      without          in the queue of their class, for its share, like any other task, on any CPU
 *
 * Either way the class is charged, so that what a contract uses comes out of its class's share.
 *
 * A contract is runnable while a task of it is queued, or runs on its CPU; what another CPU has
 * taken runs there on its class's share. Of one that threads hold they are counted; of one that a
 * class holds it is enough to look at its queue when a task is queued, and when one stops. When a
 * thread that holds one comes back its job goes on as of when it woke (holder_of_job()).
 *
 * Most of the core's calls are made when a CPU turns to its contracts: they are large, and the
 * verifier looks at them anew in every program that makes them. What happens elsewhere is noted:
 * the contract is listed with its CPU, which is told.
 *
 * The contracts are guarded by the lock of the tree; if there are several, of the first domain's.
 */
#ifndef ANDANTE_BPF_CONTRACTS_H
#define ANDANTE_BPF_CONTRACTS_H

#include "binding.h"

/* With values, or they would lie as they are used first, and in each object otherwise. */
struct an_contracts contracts SEC(".bss.contracts") = {};
struct an_holder holders[AN_MAX_CONTRACTS] SEC(".bss.contracts") = {};
u16 leaf_contracts[AN_MAX_NODES] SEC(".bss.contracts") = {}; /* that the class of a leaf holds */
u32 contracts_of_classes SEC(".bss.contracts") = 0;	     /* how many those are */
u64 contracts_clock_ns SEC(".bss.contracts") = 0;
u32 contracts_heir SEC(".bss.contracts") = 0; /* sees to the contracts of CPUs that are gone */

static __always_inline struct an_holder *an_holder(u32 index)
{
	return &holders[an_bounded(index, AN_MAX_CONTRACTS)];
}

/* Is there something else to be promised by the contract? */
static __always_inline bool an_holder_changes(const struct an_holder *h)
{
	return h->changed && !h->ended;
}

static __always_inline u16 *leaf_contract(u32 leaf)
{
	return &leaf_contracts[an_bounded(leaf, AN_MAX_NODES)];
}

/* A contract and which use of its slot this is, in one word. */
static __always_inline u32 contract_name(u32 index)
{
	return index | (u32)an_contract(&contracts, index)->generation << 16;
}

/* The contract of this name, or AN_NONE if it is no more. */
static __always_inline u32 contract_named(u32 name)
{
	u32 index = name & 0xffff;

	return index && contract_name(index) == name && !an_holder(index)->ended ? index : AN_NONE;
}

/* The contract of a task whose class has this leaf, or AN_NONE. */
static __always_inline u32 task_contract(const struct task_state *ts, u32 leaf)
{
	u32 index = ts->contract ? contract_named(ts->contract) : AN_NONE;

	return index || !contracts_of_classes ? index : *leaf_contract(leaf);
}

/* The queue of those that hold a contract by themselves; queues of leaves come before. */
static __always_inline u64 contract_queue(u32 index)
{
	u32 leaf = an_holder(index)->leaf;

	return leaf ? leaf : AN_MAX_NODES + index;
}

/* Clocks of CPUs may differ by a little; the core's must not go back. */
static __always_inline u64 contracts_clock(u64 now_ns)
{
	if (now_ns > contracts_clock_ns)
		contracts_clock_ns = now_ns;
	return contracts_clock_ns;
}

/* ---- tasks come and go ---- */

/*
 * The contract's CPU is to see to it: to wake it, or put it to sleep; at once if that is news, or
 * else when its turn is over. With the lock held.
 */
static __always_inline void contract_note_as(u32 index, bool news)
{
	struct an_holder *h = an_holder(index);
	struct cpu_state *c = cpu_state(cpu_state(h->cpu)->gone ? contracts_heir : h->cpu);

	if (news)
		c->news = 1;
	if (h->noted)
		return;
	h->noted = 1;
	h->next_noted = c->first_noted;
	c->first_noted = index;
	__sync_fetch_and_or(&c->sees_to, SEES_TO_CONTRACTS);
}

static __always_inline void contract_note(u32 index)
{
	contract_note_as(index, true);
}

/* The task's job is that of the contract, whose CPU is told when it woke, and what it has run
 * elsewhere since, as far as that CPU has not charged it yet. */
static __always_inline void holder_of_job(struct an_holder *h, const struct task_state *ts)
{
	if (h->released_ns != ts->job_ns)
		h->ran_ns = 0;
	h->released_ns = ts->job_ns;
	if (ts->away_ns != AN_NEVER)
		h->ran_ns += ts->charged_ns - ts->away_ns;
}

/*
 * The task is active under this contract (AN_NONE: under none), and under no other. True if that
 * is news to the contract's CPU, which is told unless that is a step of a turn that is handed on.
 * With the lock held.
 */
static __always_inline bool contract_count(struct task_state *ts, u32 index, bool hands_on)
{
	u32 name = index ? contract_name(index) : 0, old = ts->counted & 0xffff;
	struct an_holder *h = an_holder(old);

	if (ts->counted == name)
		return false;
	if (ts->counted && contract_name(old) == ts->counted && h->active && !--h->active)
		contract_note_as(old, !hands_on);
	ts->counted = name;
	h = an_holder(index);
	if (index && !h->active++) {
		if (h->kind != AN_LEARNT_OF_THREAD)
			holder_of_job(h, ts);
		contract_note_as(index, !hands_on);
	}
	ts->away_ns = AN_NEVER;
	return index != AN_NONE;
}

/* A task that holds a contract has woken: a job begins. */
static __always_inline void job_begins(struct task_state *ts, u64 now_ns)
{
	ts->job_ns = now_ns;
	ts->away_ns = AN_NEVER;
}

/* A task of the class that holds this contract is active. True if that is news to the contract's
 * CPU. With the lock held. */
static __always_inline bool class_contract_begins(u32 index)
{
	struct an_holder *h = an_holder(index);

	if (h->active)
		return false;
	h->active = 1;
	h->released_ns = h->ran_ns = 0;
	contract_note(index);
	return true;
}

/*
 * A task of the class of this leaf has stopped, or runs where its contract, if there is one, does
 * not: is the contract active still? Takes the lock.
 */
static __always_inline void class_contract_ends(u32 leaf)
{
	struct bpf_spin_lock *lock = contracts_lock();
	u32 index;
	struct an_holder *h;
	struct cpu_state *c;

	if (!contracts_of_classes || an_node(&trees[0], leaf)->queued)
		return;
	index = *leaf_contract(leaf);
	h = an_holder(index);
	c = cpu_state(h->cpu);
	if (!index || !h->active || (c->running && c->contract == contract_name(index)))
		return;
	bpf_spin_lock(lock);
	if (!an_node(&trees[0], leaf)->queued) {
		h->active = 0;
		contract_note(index);
	}
	bpf_spin_unlock(lock);
}

/* The task is not active any more. Takes the lock. */
static __always_inline void contract_uncount(struct task_state *ts)
{
	struct bpf_spin_lock *lock = contracts_lock();

	if (!ts->counted)
		return;
	bpf_spin_lock(lock);
	contract_count(ts, AN_NONE, false);
	bpf_spin_unlock(lock);
}

/* The same of the task that ran on this CPU, and sleeps: its turn may have been handed on. */
static __always_inline void contract_sleeps(const struct cpu_state *c, struct task_state *ts)
{
	struct bpf_spin_lock *lock = contracts_lock();

	if (!ts->counted)
		return;
	bpf_spin_lock(lock);
	contract_count(ts, AN_NONE, c->handed && ts->counted == c->contract);
	bpf_spin_unlock(lock);
}

/*
 * The contract of a task of this leaf that is queued, or runs. While its class is throttled, or one
 * around it, the task waits for its quota, holds no contract, and is active under none. Takes the
 * lock.
 */
static __always_inline u32 task_contract_now(struct task_state *ts, u32 leaf)
{
	u32 index = task_contract(ts, leaf);

	if (!index || !throttled(&trees[0], leaf))
		return index;
	contract_uncount(ts);
	return AN_NONE;
}

static __always_inline void kick_contract_cpu(u32 cpu)
{
	struct cpu_state *c = cpu_state(cpu);

	c->over = 1;
	__sync_fetch_and_or(&c->sees_to, SEES_TO_CONTRACTS);
	cpu_ask(c, cpu);
}

/*
 * A task of the contract, which sleeps, is queued for its class's share: it would have no budget,
 * and the contract's CPU is to wake it when it has; or an idle CPU should take it, and the
 * contract's CPU is to look soon whether that has (a learnt one may wait). It would not learn of it
 * before it has something else to do. It hears of all others at once.
 */
static __always_inline void contract_wakes_later(u32 index, u64 now_ns)
{
	u32 cpu = an_holder(index)->cpu;
	u64 from_ns = an_contract_budget_from_ns(an_contract(&contracts, index), now_ns);

	if (an_events_on && an_sink_is_due(an_contract(&contracts, index), now_ns))
		from_ns = now_ns; /* it may run for that [events.h] */
	if (from_ns == AN_NEVER)
		return;
	if (from_ns > now_ns || an_holder(index)->kind != AN_LEARNT_OF_THREAD)
		cpu_check_at(cpu_state(cpu), cpu, now_ns, from_ns);
}

/* The contract is active from now on, and its CPU wakes it when it has budget. Takes the lock. */
static __noinline void class_contract_begins_later(u32 index, u64 now_ns)
{
	struct bpf_spin_lock *lock = contracts_lock();
	bool news;

	bpf_spin_lock(lock);
	news = class_contract_begins(index);
	bpf_spin_unlock(lock);
	if (news)
		contract_wakes_later(index, now_ns);
}

/*
 * A task of the class that holds the contract, if one does, has been counted as queued for the
 * class's share: from now on the contract, if it is active, stays so (class_contract_ends()).
 */
static __always_inline void class_contract_waits(u32 index, u64 now_ns)
{
	if (an_holder(index)->leaf && !an_holder(index)->active)
		class_contract_begins_later(index, now_ns);
}

/* Does its CPU serve it? Then it has budget, as far as is known. */
static __always_inline bool contract_is_served(u32 index)
{
	const struct an_holder *h = an_holder(index);
	const struct cpu_state *c = cpu_state(h->cpu);

	return c->contract == contract_name(index) && c->running && !h->noted;
}

/* May a task wait for the contract, which its CPU does not serve? */
static __always_inline bool contract_would_run(u32 index, u64 now_ns)
{
	struct an_contract *k = an_contract(&contracts, index);
	u32 cpu = an_holder(index)->cpu;
	struct an_contract_cpu *q = an_contract_cpu(&contracts, cpu);

	if (cpu_state(cpu)->gone)
		return false;
	if (an_has(k, AN_LEARNT) && !an_learnt_would_run(&contracts, q, k, now_ns))
		return false; /* a share is better */
	/* Its CPU is about to look for a task of it once more. */
	return k->parked || an_contract_budget_from_ns(k, now_ns) <= now_ns;
}

/*
 * May a task of the contract that is queued now, and may run on the contract's CPU, wait in the
 * contract's queue? Not without budget, nor for a CPU that is gone, and not where it would wait for
 * another contract while a CPU that it may use has nothing to do.
 */
static __always_inline bool contract_takes(const struct task_struct *p, u32 index, bool served,
					   u64 now_ns)
{
	if (!served && !contract_would_run(index, now_ns))
		return false;
	return nr_cpus == 1 || !cpu_state(an_holder(index)->cpu)->contract ||
	       !cpus_idle_among(p->cpus_ptr);
}

#endif
