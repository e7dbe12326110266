/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A CPU turns to its contracts before the tree: once what has happened to them is settled
 * (contract_settle.h), the contract to run is picked (contract_pick()), and a task of it is taken.
 * Part of sched.bpf.c.
 *
 * As long as there is no news and nothing is due the contract served last goes on, and none of this
 * is looked at (contract_continues()). A task of a learnt one that wakes another's and then sleeps,
 * as threads do that make a frame together, hands its turn on (contract_handed()): that both have
 * slept and woken is noted, but is no news. When the turn is over it is settled, and each is
 * charged for what it has run.
 */
#ifndef ANDANTE_BPF_CONTRACT_TURN_H
#define ANDANTE_BPF_CONTRACT_TURN_H

#include "contract_settle.h"

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
 * another's, or over; a task of the class wanting (if not AN_NONE), which these CPUs may run, wants
 * to go on. With the lock held.
 */
static __always_inline void contract_serves(struct cpu_state *c, u64 by, u32 leaf, u32 wanting)
{
	if (c->serving == leaf && !c->over && c->used_ns < quantum_ns)
		return;
	/* A class must not look idle between two quanta. Of AN_NONE there is nothing to be queued,
	 * nor to be taken out: to ask first would have the verifier see all of this twice. */
	domain_queue_add(&trees[0], wanting, by);
	quantum_ends(&trees[0], c);
	c->serving = domain_serve_unpicked(&trees[0], leaf);
	an_queue_withdraw(&trees[0], wanting);
	c->unpicked = UNPICKED;
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

/* The first of this CPU's contracts, or who goes before it for an event. With the lock held, which
 * events_pick() wants to take itself: what it does is verified once. */
static __always_inline u32 contract_first(struct cpu_state *c, u32 cpu, u64 now_ns, bool alone,
					  struct bpf_spin_lock *lock)
{
	u32 index, rule;

	if (!an_events_on)
		return an_contracts_pick(&contracts, cpu, now_ns, alone, &rule);
	bpf_spin_unlock(lock);
	index = events_pick(cpu, alone);
	bpf_spin_lock(lock);
	return index;
}

/*
 * The contract that is to run, or AN_NONE. Its class is being served then; if it is not goes_on,
 * the contract of the task that wants to go on, a task of its queue is to be taken.
 */
an_global u32 contract_pick(u32 cpu, u32 wanting, u32 goes_on)
{
	struct bpf_spin_lock *lock = contracts_lock();
	struct an_contract_cpu *q = an_contract_cpu(&contracts, cpu);
	struct cpu_state *c = cpu_state(cpu);
	u64 now_ns = an_kclock_ns(), events_ns;
	u32 index, leaf, serves;
	bool alone, parks = false;

	bpf_spin_lock(lock);
	now_ns = contracts_clock(now_ns);
	index = AN_NONE;
	if (an_events_on)
		c->contract_check_ns = AN_NEVER;
	alone = (!an_root(&trees[0])->ready && !overdue && (!wanting || goes_on)) || c->alone;
	if (!c->tree_ns)
		c->learnt_ns = now_ns;
	if (alone || !c->tree_ns)
		c->tree_ns = now_ns;
	if (now_ns - c->tree_ns < TREE_WAITS_NS)
		index = contract_first(c, cpu, now_ns, alone, lock);
	if (!q->holders || an_heap_count(q, AN_READY) == q->holders)
		c->learnt_ns = now_ns;
	if (index && an_holder(index)->noted && an_holder(index)->cpu != cpu) {
		/* Another CPU has taken it over, and has yet to see to it. */
		an_contract_park(&contracts, index, true);
		parks = true;
		index = AN_NONE;
	}
	leaf = an_holder(index)->leaf;
	serves = an_opaque(index && index == goes_on ? wanting : leaf);
	if (index && leaf && index != goes_on &&
	    (!an_node(&trees[0], leaf)->queued || throttled(&trees[0], leaf))) {
		/* Its task is on its way from another CPU, or has gone. */
		an_contract_park(&contracts, index, true);
		contract_note(index);
		parks = true;
		index = AN_NONE;
	}
	index = an_opaque(index);
	if (index && serves) { /* in one place: it is most of what the verifier sees here */
		contract_serves(c, cpu_bit(cpu), serves, wanting);
		if (index != goes_on)
			an_queue_withdraw(&trees[0], serves);
	}
	c->over |= !index && c->contract;
	c->contract = index ? contract_name(index) : 0; /* with the lock held: see learn_pull() */
	bpf_spin_unlock(lock);
	c->contract_leaf = leaf;
	events_ns = c->contract_check_ns;
	c->contract_check_ns = contract_check(cpu, index, now_ns);
	if (an_events_on && events_ns < c->contract_check_ns)
		c->contract_check_ns = events_ns;
	if ((parks || c->first_noted) && c->contract_check_ns > now_ns + LOOK_AGAIN_NS)
		c->contract_check_ns = now_ns + LOOK_AGAIN_NS;
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
		__sync_fetch_and_and(&c->sees_to, ~SEES_TO_CONTRACTS);
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
	return c->contract && !c->news && !c->over && c->used_ns < quantum_ns;
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

/*
 * The task of the contract that this CPU serves sleeps, and may have handed its turn on: the
 * contract that takes it over, or AN_NONE. Each is charged for its own part when the turn is over.
 */
static __always_inline u32 contract_handed(struct cpu_state *c, u32 cpu)
{
	struct an_holder *from = an_holder(c->contract & 0xffff);
	u32 to = contract_named(c->handed);

	c->handed = 0;
	if (!to || an_holder(to)->cpu != cpu || scx_bpf_dsq_nr_queued(contract_queue(to)) <= 0)
		return AN_NONE;
	from->turn_ns += c->contract_ns;
	c->contract_ns = 0;
	c->contract = contract_name(to);
	stats.contract_handed++;
	return to;
}

/* The contract that continues, or AN_NONE if no task of it can be taken so simply. */
static __always_inline u32 contract_again(struct cpu_state *c, u32 cpu, u32 wanting, u32 goes_on)
{
	struct bpf_spin_lock *lock = contracts_lock();
	u32 index = c->contract & 0xffff, leaf = c->contract_leaf;
	bool queued;

	if (index == goes_on)
		return wanting && c->serving == wanting ? index : AN_NONE;
	if (!leaf && scx_bpf_dsq_nr_queued(contract_queue(index)) > 0)
		return index;
	if (!leaf)
		return contract_handed(c, cpu);
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

	if (pick_ended(c, leaf))
		leaf = AN_NONE;
	bpf_spin_lock(lock);
	if (leaf)
		an_unpick(&trees[0], leaf);
	an_contract_park(&contracts, index, true);
	if (an_events_on)
		an_event_undeliver(&contracts, index, contracts_clock_ns);
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

enum contract_turn {
	CONTRACT_GOES_ON, /* prev runs on, under its contract */
	CONTRACT_TAKEN,	  /* a task has been taken under its contract */
	TREES_TURN,	  /* no contract has anything to run here */
};

/* The same once more, for tasks have come into the queue. */
static __always_inline bool contract_gives(u32 cpu, u32 index)
{
	if (an_holder(index)->looks)
		session_order(cpu, index);
	return an_kmove_to_local(contract_queue(index));
}

/*
 * A task is taken of this contract, which has been picked, or of those that are picked after it if
 * it has none. Of the contract goes_on a task is running, and wants to go on. Returns an enum
 * contract_turn.
 */
an_global u32 contract_take(u32 cpu, u32 index, u32 wanting, u32 goes_on)
{
	an_while(index) {
		if (an_holder(index)->looks)
			session_order(cpu, index);
		if (index == goes_on)
			return CONTRACT_GOES_ON;
		/* One that was to run on a CPU that was idle, and is not any more, waits for its
		 * share. */
		if (an_kmove_to_local(contract_queue(index)) ||
		    (contract_finds(index) && contract_gives(cpu, index))) {
			stats.contract_picks++;
			kick_for_the_rest(&trees[0]);
			return CONTRACT_TAKEN;
		}
		contract_missed(cpu, index);
		index = contract_pick(cpu, wanting, goes_on);
	}
	return TREES_TURN;
}

/* The tree has nothing for this CPU: then its contracts may have all of the time. */
static __always_inline bool contract_alone(u32 cpu)
{
	struct cpu_state *c = cpu_state(cpu);
	u32 index;

	c->alone = 1;
	index = contract_pick(cpu, AN_NONE, AN_NONE);
	c->alone = 0;
	return contract_take(cpu, index, AN_NONE, AN_NONE) == CONTRACT_TAKEN;
}

/* The contract is a class's, served by this CPU, and active already: as it always is while it has
 * no budget, and its tasks run for their share. */
static __always_inline bool contract_knows(u32 cpu, u32 index)
{
	const struct an_holder *h = an_holder(index);

	return h->leaf && h->active && h->cpu == cpu;
}

/*
 * A task of this contract (AN_NONE: of none) starts to run without having been picked for it. On
 * its contract's CPU, which then turns to its contracts at once, it is active; on another one the
 * contract sleeps. Not if that is known (contract_knows()).
 */
static __noinline void contract_unpicked(struct task_state *ts, u32 cpu, u32 index)
{
	struct bpf_spin_lock *lock = contracts_lock();
	struct an_holder *h = an_holder(index);
	bool here = index && h->cpu == cpu;
	bool news;

	if (!ts->job_ns)
		job_begins(ts, an_kclock_ns()); /* it woke here, without having been queued */
	if (h->leaf && !here)
		return class_contract_ends(h->leaf);
	bpf_spin_lock(lock);
	news = h->leaf ? class_contract_begins(index)
		       : contract_count(ts, here ? index : AN_NONE, false);
	bpf_spin_unlock(lock);
	if (!here && ts->away_ns == AN_NEVER)
		ts->away_ns = ts->charged_ns;
	if (news)
		kick_contract_cpu(cpu);
}

#endif
