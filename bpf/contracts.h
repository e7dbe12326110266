/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Contracts in the kernel: who holds which, and how a CPU turns to them before the tree. Part of
 * sched.bpf.c; the rules themselves are core/contract_run.h.
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
 * class holds it is enough to look at its queue when a task is queued, and when one stops.
 *
 * Most of the core's calls are made when a CPU turns to its contracts (contract_pick()): they are
 * large, and the verifier looks at them anew in every program that makes them. What happens
 * elsewhere is noted: the contract is listed with its CPU, which is told.
 *
 * The contracts are guarded by the lock of the tree; if there are several, of the first domain's.
 */
#ifndef ANDANTE_BPF_CONTRACTS_H
#define ANDANTE_BPF_CONTRACTS_H

#include "binding.h"
#include "starving.h"

struct an_contracts contracts SEC(".bss.contracts");
struct an_holder holders[AN_MAX_CONTRACTS] SEC(".bss.contracts");
u16 leaf_contracts[AN_MAX_NODES] SEC(".bss.contracts"); /* that the class of a leaf holds */
u32 contracts_of_classes SEC(".bss.contracts");		/* how many those are */
u64 contracts_clock_ns SEC(".bss.contracts");
u32 contracts_heir SEC(".bss.contracts"); /* sees to the contracts of CPUs that are gone */

static __always_inline struct an_holder *an_holder(u32 index)
{
	return &holders[an_bounded(index, AN_MAX_CONTRACTS)];
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

/* The contract's CPU is to see to it: to wake it, or put it to sleep. With the lock held. */
static __always_inline void contract_note(u32 index)
{
	struct an_holder *h = an_holder(index);
	struct cpu_state *c = cpu_state(cpu_state(h->cpu)->gone ? contracts_heir : h->cpu);

	if (h->noted)
		return;
	h->noted = 1;
	h->next_noted = c->first_noted;
	c->first_noted = index;
	c->sees_to = 1;
}

/*
 * The task is active under this contract (AN_NONE: under none), and under no other. True if that
 * is news to the contract's CPU. With the lock held.
 */
static __always_inline bool contract_count(struct task_state *ts, u32 index)
{
	u32 name = index ? contract_name(index) : 0, old = ts->counted & 0xffff;
	struct an_holder *h = an_holder(old);

	if (ts->counted == name)
		return false;
	if (ts->counted && contract_name(old) == ts->counted && h->active && !--h->active)
		contract_note(old);
	ts->counted = name;
	if (index && !an_holder(index)->active++)
		contract_note(index);
	return index != AN_NONE;
}

/* A task of the class that holds this contract is active. True if that is news to the contract's
 * CPU. With the lock held. */
static __always_inline bool class_contract_begins(u32 index)
{
	struct an_holder *h = an_holder(index);

	if (h->active)
		return false;
	h->active = 1;
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
	contract_count(ts, AN_NONE);
	bpf_spin_unlock(lock);
}

static __always_inline void kick_contract_cpu(u32 cpu)
{
	cpu_state(cpu)->over = 1;
	cpu_state(cpu)->sees_to = 1;
	scx_bpf_kick_cpu(cpu, an_kconst(scx_kick_flags, SCX_KICK_PREEMPT));
}

/*
 * A task of the contract, which sleeps and would have no budget, is queued for its class's share:
 * the contract's CPU is to wake it when it has, or it would not learn of it before it has something
 * else to do. It hears of all others at once.
 */
static __always_inline void contract_wakes_later(u32 index, u64 now_ns)
{
	u32 cpu = an_holder(index)->cpu;
	u64 from_ns = an_contract_budget_from_ns(an_contract(&contracts, index), now_ns);

	if (from_ns > now_ns && from_ns != AN_NEVER)
		cpu_check_at(cpu_state(cpu), cpu, now_ns, from_ns);
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
	return an_contract_budget_from_ns(k, now_ns) <= now_ns;
}

/*
 * May a task of the contract that is queued now, and may run on the contract's CPU, wait in the
 * contract's queue? Not without budget, nor for a CPU that is gone, and not where it would wait for
 * another contract while a CPU has nothing to do.
 */
static __always_inline bool contract_takes(u32 index, bool served, u64 now_ns)
{
	if (!served && !contract_would_run(index, now_ns))
		return false;
	return nr_cpus == 1 || !cpu_state(an_holder(index)->cpu)->contract || !cpus_idle();
}

/* ---- a CPU turns to its contracts ---- */

/* Classes with contracts around one another that a contract is charged to. */
#define CONTRACT_DEPTH 8

/* What has run under this CPU's contract is charged to it; returned is which one that was. */
an_global u32 contract_charge(u32 cpu)
{
	struct bpf_spin_lock *lock = contracts_lock();
	struct cpu_state *c = cpu_state(cpu);
	u32 index = c->charged & 0xffff;
	u64 ran_ns = c->contract_ns, now_ns = an_kclock_ns();

	c->contract_ns = 0;
	bpf_spin_lock(lock);
	if (contract_name(index) == c->charged)
		an_contract_charge(&contracts, index, ran_ns, contracts_clock(now_ns));
	bpf_spin_unlock(lock);
	return index;
}

/*
 * What has run under this contract is charged to the one that it is nested in as well, which is
 * returned (AN_NONE: in none). If that has no budget left its CPU looks at it.
 */
an_global u32 contract_charge_around(u32 cpu, u32 index, u64 ran_ns)
{
	struct bpf_spin_lock *lock = contracts_lock();
	u64 now_ns = an_kclock_ns();
	u32 rule;

	index = contract_named(an_holder(index)->around);
	bpf_spin_lock(lock);
	rule = an_contract_charge_around(&contracts, index, ran_ns, contracts_clock(now_ns));
	bpf_spin_unlock(lock);
	if (rule && an_holder(index)->cpu != cpu)
		kick_contract_cpu(an_holder(index)->cpu);
	return index;
}

/* The contract that this CPU has noted last, which is returned, wakes or goes to sleep. */
an_global u32 contract_update(u32 cpu)
{
	struct bpf_spin_lock *lock = contracts_lock();
	struct cpu_state *c = cpu_state(cpu);
	u64 now_ns = an_kclock_ns();
	struct an_holder *h;
	u32 index;

	bpf_spin_lock(lock);
	index = c->first_noted;
	h = an_holder(index);
	c->first_noted = h->next_noted;
	h->noted = 0;
	now_ns = contracts_clock(now_ns);
	if (h->changed && !h->ended) {
		h->changed = 0;
		if (h->cpu != an_contract(&contracts, index)->cpu)
			an_contract_move(&contracts, index, h->cpu);
		an_contract_set(&contracts, index, &h->next);
		if (h->kind == AN_LEARNT_OF_THREAD)
			an_learnt_assure(&contracts, an_contract(&contracts, index), h->part);
	}
	/* What its CPU has waited for, in vain: it went another way. */
	if (an_contract(&contracts, index)->parked && h->leaf &&
	    !an_node(&trees[0], h->leaf)->queued)
		h->active = 0;
	if (h->ended)
		an_contract_end(&contracts, index, now_ns);
	else if (h->active)
		an_contract_wake(&contracts, index, now_ns);
	else
		an_contract_sleep(&contracts, index, now_ns);
	if (an_contract(&contracts, index)->parked)
		an_contract_park(&contracts, index, false);
	bpf_spin_unlock(lock);
	return index;
}

/* The first thing that is due for this CPU's contracts is done, to the contract returned. */
an_global u32 contract_expire(u32 cpu)
{
	struct bpf_spin_lock *lock = contracts_lock();
	u64 now_ns = an_kclock_ns();
	u32 index;

	bpf_spin_lock(lock);
	index = an_contracts_expire_one(&contracts, cpu, contracts_clock(now_ns));
	bpf_spin_unlock(lock);
	return index;
}

/* A learnt contract that would be next, but has used what it may, has it no more. */
an_global u32 contract_overdrawn(u32 cpu)
{
	struct bpf_spin_lock *lock = contracts_lock();
	u64 now_ns = an_kclock_ns();
	u32 index;

	bpf_spin_lock(lock);
	index = an_contracts_overdrawn(&contracts, cpu, contracts_clock(now_ns));
	bpf_spin_unlock(lock);
	return index;
}

/* How many tasks are moved between two queues at a time. */
#define CONTRACT_MOVES 64

/* Tasks in the contract's queue go to those of their classes. */
an_global int contract_lets_go(u32 index)
{
	struct bpf_iter_scx_dsq it;
	u32 left = CONTRACT_MOVES;

	bpf_iter_scx_dsq_new(&it, contract_queue(index), 0);
	an_while(left) {
		struct task_struct *p = bpf_iter_scx_dsq_next(&it);
		struct task_state *ts = p ? bpf_task_storage_get(&task_states, p, 0, 0) : NULL;
		u32 leaf;

		if (!ts)
			break;
		leaf = binding_queue(&it, ts);
		an_holder(index)->waits_in = leaf;
		an_holder(index)->waits = 1;
		queue_move(&it, p, 0, leaf);
		left = an_opaque(left - 1);
	}
	bpf_iter_scx_dsq_destroy(&it);
	return 0;
}

/* Tasks of the contract that wait in the queue of their class go to the contract's. */
an_global int contract_gathers(u32 index)
{
	struct bpf_spin_lock *lock = contracts_lock();
	u32 leaf = an_holder(index)->waits_in, name = contract_name(index);
	struct bpf_iter_scx_dsq it;
	u32 left = CONTRACT_MOVES;

	bpf_iter_scx_dsq_new(&it, leaf, 0);
	an_while(left) {
		struct task_struct *p = bpf_iter_scx_dsq_next(&it);
		struct task_state *ts = p ? bpf_task_storage_get(&task_states, p, 0, 0) : NULL;

		if (!ts)
			break;
		if (ts->counted == name &&
		    scx_bpf_dsq_move_vtime(&it, p, contract_queue(index), 0)) {
			bpf_spin_lock(lock);
			an_queue_withdraw(&trees[0], leaf);
			bpf_spin_unlock(lock);
		}
		left = an_opaque(left - 1);
	}
	bpf_iter_scx_dsq_destroy(&it);
	return 0;
}

/* This CPU has changed something about the contract: its tasks wait where they should. */
static __always_inline void contract_requeue(u32 cpu, u32 index)
{
	struct an_holder *h = an_holder(index);
	struct an_contract *k = an_contract(&contracts, index);
	bool budget = an_contract_has_budget(k);

	if (!index)
		return;
	if (!h->changed)
		h->cpu = k->cpu;
	if (cpu_state(k->cpu)->gone)
		return;
	if (k->cpu != cpu)
		kick_contract_cpu(k->cpu);
	if (h->leaf)
		return;
	if (!budget && scx_bpf_dsq_nr_queued(contract_queue(index)) > 0) {
		contract_lets_go(index);
	} else if (budget && h->waits) {
		h->waits = 0;
		contract_gathers(index);
	}
}

/* Tasks that wait for this CPU go to the queues of their classes; if learnt, those of learnt ones.
 */
an_global int contracts_let_go(u32 cpu, bool learnt)
{
	u32 index = 1, end = contracts.unused;

	an_while(index < end && index < AN_MAX_CONTRACTS) {
		struct an_holder *h = an_holder(index);

		if (h->cpu == cpu && !h->leaf && (!learnt || h->kind == AN_LEARNT_OF_THREAD) &&
		    scx_bpf_dsq_nr_queued(contract_queue(index)) > 0)
			contract_lets_go(index);
		index = an_opaque(index + 1);
	}
	return 0;
}

/*
 * The CPU is gone: another sees to its contracts, and nobody waits for it any more. User space will
 * move them.
 */
static __noinline void contracts_leave(u32 cpu)
{
	struct bpf_spin_lock *lock = contracts_lock();
	struct cpu_state *c = cpu_state(cpu);
	u32 index, heir = 0;

	an_while(heir < nr_cpus && cpu_state(heir)->gone)
		heir = an_opaque(heir + 1);
	bpf_spin_lock(lock);
	contracts_heir = heir;
	an_while((index = c->first_noted)) {
		struct an_holder *h = an_holder(index);

		c->first_noted = h->next_noted;
		h->noted = 0;
		contract_note(index);
	}
	bpf_spin_unlock(lock);
	kick_contract_cpu(heir);
	contracts_let_go(cpu, false);
}

/* When the CPU must turn to its contracts again, if it runs this one (or none). Needs no lock. */
static __always_inline u64 contract_check(u32 cpu, u32 index, u64 now_ns)
{
	u64 check_ns = an_contracts_due(&contracts, cpu);

	if (index) {
		u64 run_ns = an_contract_run_ns(&contracts, index, now_ns);

		if (run_ns != AN_NEVER && now_ns + run_ns < check_ns)
			check_ns = now_ns + run_ns;
	} else {
		u64 wait_ns = an_contracts_wait_ns(&contracts, cpu);

		if (wait_ns != AN_NEVER && now_ns + wait_ns < check_ns)
			check_ns = now_ns + wait_ns;
	}
	return check_ns;
}

/*
 * The CPU is to serve this class, for a contract. Its quantum in progress makes way if it is
 * another's, or over; a task of the class wanting (if not AN_NONE) wants to go on. With the lock
 * held.
 */
static __always_inline void contract_serves(struct cpu_state *c, u32 leaf, u32 wanting)
{
	if (c->serving == leaf && !c->over && c->used_ns < quantum_ns)
		return;
	/* A class must not look idle between two quanta. */
	if (wanting)
		domain_queue_add(&trees[0], wanting);
	quantum_ends(&trees[0], c);
	domain_serve_unpicked(&trees[0], leaf);
	if (wanting)
		an_queue_withdraw(&trees[0], wanting);
	c->serving = leaf;
	c->unpicked = 1;
	c->used_ns = 0;
	c->over = 0;
}

/*
 * How long the tree may have had something ready without being served. Admission leaves it its
 * part; this is for contracts that admission did not see, or saw wrongly: the kernel ejects a
 * scheduler that starves somebody.
 */
#define TREE_WAITS_NS 500000000ULL

/* How long tasks of learnt contracts wait behind promised ones; then they wait for their share. */
#define LEARNT_WAIT_NS 100000000ULL

/* What has happened to the contracts of this CPU, and what is due, is done. */
an_global int contracts_settle(u32 cpu)
{
	struct cpu_state *c = cpu_state(cpu);
	u32 index, left = CONTRACT_DEPTH;
	u64 ran_ns = c->contract_ns;

	if (ran_ns) {
		index = contract_charge(cpu);
		contract_requeue(cpu, index);
		an_while(left && an_holder(index)->around) {
			index = contract_charge_around(cpu, index, ran_ns);
			left--;
		}
	}
	an_while(c->first_noted)
		contract_requeue(cpu, contract_update(cpu));
	an_while((index = contract_expire(cpu)))
		contract_requeue(cpu, index);
	an_while((index = contract_overdrawn(cpu)))
		contract_requeue(cpu, index);
	return 0;
}

/*
 * When a contract that was parked is looked at again [ns]: the kernel queues a task when enqueue
 * has returned, so that the CPU may look for it before, and there is nobody to tell it after.
 */
#define PARKED_NS 100000

/*
 * The contract that is to run, or AN_NONE. Its class is being served then; if it is not goes_on,
 * the contract of the task that wants to go on, a task of its queue is to be taken.
 */
an_global u32 contract_pick(u32 cpu, u32 wanting, u32 goes_on)
{
	struct bpf_spin_lock *lock = contracts_lock();
	struct an_contract_cpu *q = an_contract_cpu(&contracts, cpu);
	struct cpu_state *c = cpu_state(cpu);
	u64 now_ns = an_kclock_ns();
	u32 index, leaf, rule;
	bool alone;

	bpf_spin_lock(lock);
	now_ns = contracts_clock(now_ns);
	index = AN_NONE;
	alone = !an_root(&trees[0])->ready && !starving && (!wanting || goes_on);
	if (!c->tree_ns)
		c->learnt_ns = now_ns;
	if (alone || !c->tree_ns)
		c->tree_ns = now_ns;
	if (now_ns - c->tree_ns < TREE_WAITS_NS)
		index = an_contracts_pick(&contracts, cpu, now_ns, alone, &rule);
	if (!q->holders || an_heap_count(q, AN_READY) == q->holders)
		c->learnt_ns = now_ns;
	leaf = an_holder(index)->leaf;
	if (index && index == goes_on) {
		contract_serves(c, wanting, wanting);
	} else if (index && leaf) {
		if (an_node(&trees[0], leaf)->queued) {
			contract_serves(c, leaf, wanting);
			an_queue_withdraw(&trees[0], leaf);
		} else { /* its task is on its way from another CPU, or has gone */
			an_contract_park(&contracts, index, true);
			contract_note(index);
			index = AN_NONE;
		}
	}
	bpf_spin_unlock(lock);
	c->over |= !index && c->contract;
	c->contract = index ? contract_name(index) : 0;
	c->contract_leaf = leaf;
	c->contract_check_ns = contract_check(cpu, index, now_ns);
	if (c->first_noted && c->contract_check_ns > now_ns + PARKED_NS)
		c->contract_check_ns = now_ns + PARKED_NS;
	if (now_ns - c->learnt_ns >= LEARNT_WAIT_NS) {
		c->learnt_ns = now_ns;
		contracts_let_go(cpu, true);
	}
	return index;
}

/*
 * Has this CPU nothing to do for contracts? Then it does not look again before one is noted, or it
 * is told.
 */
static __always_inline bool contracts_rest(struct cpu_state *c, u32 cpu)
{
	struct bpf_spin_lock *lock = contracts_lock();

	if (c->contract | c->first_noted | c->contract_ns || !an_contracts_quiet(&contracts, cpu))
		return false;
	bpf_spin_lock(lock);
	if (!c->first_noted && an_contracts_quiet(&contracts, cpu))
		c->sees_to = 0;
	bpf_spin_unlock(lock);
	c->tree_ns = 0;
	c->contract_check_ns = AN_NEVER;
	return true;
}

/*
 * Is the contract that this CPU has served last still the one to serve, as far as can be told
 * without looking? So it is until something is noted, the CPU's timer, set to when something is
 * due, has fired, or its quantum is over: then there is nothing to charge, to choose, or to compute
 * anew.
 */
static __always_inline bool contract_continues(const struct cpu_state *c)
{
	return c->contract && !c->first_noted && !c->over && c->used_ns < quantum_ns;
}

/*
 * Has no contract of this CPU anything to run, as far as can be told without looking? All that have
 * something wait for budget, and the CPU's timer for that.
 */
static __always_inline bool contracts_wait(const struct cpu_state *c, u32 cpu)
{
	return !(c->contract | c->first_noted | c->contract_ns) && !c->over &&
	       c->used_ns < quantum_ns &&
	       !an_heap_count(an_contract_cpu(&contracts, cpu), AN_READY);
}

/* The contract that continues, or AN_NONE if no task of it can be taken so simply. */
static __always_inline u32 contract_again(struct cpu_state *c, u32 wanting, u32 goes_on)
{
	struct bpf_spin_lock *lock = contracts_lock();
	u32 index = c->contract & 0xffff, leaf = c->contract_leaf;
	bool queued;

	if (index == goes_on)
		return wanting && c->serving == wanting ? index : AN_NONE;
	if (!leaf)
		return scx_bpf_dsq_nr_queued(contract_queue(index)) > 0 ? index : AN_NONE;
	if (c->serving != leaf)
		return AN_NONE;
	bpf_spin_lock(lock);
	queued = an_continue(&trees[0], leaf);
	bpf_spin_unlock(lock);
	return queued ? index : AN_NONE;
}

/* Does the contract that the CPU serves have more tasks, which take turns? */
static __always_inline bool contract_shares(const struct cpu_state *c)
{
	if (c->contract_leaf)
		return an_node(&trees[0], c->contract_leaf)->queued;
	return an_holder(c->contract & 0xffff)->active > 1;
}

/*
 * The queue of the contract gave no task: one is on its way to, or from, another CPU. It is parked,
 * and tried again in the next dispatch.
 */
an_global int contract_missed(u32 cpu, u32 index)
{
	struct bpf_spin_lock *lock = contracts_lock();
	struct cpu_state *c = cpu_state(cpu);
	u32 leaf = an_holder(index)->leaf;

	bpf_spin_lock(lock);
	if (leaf)
		an_unpick(&trees[0], leaf);
	an_contract_park(&contracts, index, true);
	contract_note(index);
	an_holder(index)->waits = 1; /* or it has just been queued where nobody looks */
	bpf_spin_unlock(lock);
	if (leaf)
		c->serving = AN_NONE;
	c->contract = 0;
	c->over = 1;
	stats.contract_misses++;
	return 0;
}

/*
 * A task of this contract (AN_NONE: of none) starts to run without having been picked for it. On
 * its contract's CPU, which then turns to its contracts at once, it is active; on another one the
 * contract sleeps.
 */
static __noinline void contract_unpicked(struct task_state *ts, u32 cpu, u32 index)
{
	struct bpf_spin_lock *lock = contracts_lock();
	struct an_holder *h = an_holder(index);
	bool here = index && h->cpu == cpu;
	bool news;

	if (h->leaf && !here)
		return class_contract_ends(h->leaf);
	if (h->leaf && h->active)
		return; /* as it always is while it has no budget */
	bpf_spin_lock(lock);
	news = h->leaf ? class_contract_begins(index) : contract_count(ts, here ? index : AN_NONE);
	bpf_spin_unlock(lock);
	if (news)
		kick_contract_cpu(cpu);
}

#endif
