/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A CPU settles its contracts before it picks one (contracts_settle()): they are charged for what
 * has run, changes that were noted elsewhere take effect, and what is due is done. Tasks go to the
 * queues where they should wait. Then the CPU picks (contract_turn.h). Part of sched.bpf.c.
 */
#ifndef ANDANTE_BPF_CONTRACT_SETTLE_H
#define ANDANTE_BPF_CONTRACT_SETTLE_H

#include "contracts.h"
#include "events.h"
#include "overdue.h"
#include "session.h"

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

/* Something else is promised by this contract, or another CPU is to see to it. */
an_global int contract_change(u32 index)
{
	struct bpf_spin_lock *lock = contracts_lock();
	struct an_holder *h = an_holder(index);

	bpf_spin_lock(lock);
	if (an_holder_changes(h)) {
		h->changed = 0;
		if (h->cpu != an_contract(&contracts, index)->cpu)
			an_contract_move(&contracts, index, h->cpu);
		an_contract_set(&contracts, index, &h->next);
		if (h->kind == AN_LEARNT_OF_THREAD)
			an_learnt_assure(&contracts, an_contract(&contracts, index), h->part);
	}
	bpf_spin_unlock(lock);
	return 0;
}

/*
 * The contract that this CPU has noted last, which is returned, wakes or goes to sleep. AN_NONE: it
 * is to be changed first.
 */
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
	if (an_holder_changes(h)) { /* since its CPU has looked last */
		bpf_spin_unlock(lock);
		return AN_NONE;
	}
	c->first_noted = h->next_noted;
	h->noted = 0;
	now_ns = contracts_clock(now_ns);
	if (h->turn_ns)
		an_contract_charge_turn(&contracts, index, h->turn_ns, now_ns);
	h->turn_ns = 0;
	/* What its CPU has waited for, in vain: it went another way. */
	if (an_contract(&contracts, index)->parked && h->leaf &&
	    (!an_node(&trees[0], h->leaf)->queued || throttled(&trees[0], h->leaf)))
		h->active = 0;
	if (h->ended)
		an_contract_end(&contracts, index, now_ns);
	else if (!h->active || h->ran_ns) /* or it has been away, and is back */
		an_contract_sleep(&contracts, index, now_ns);
	if (h->active && !h->ended) {
		u64 released_ns = h->released_ns ? h->released_ns : now_ns;

		an_contract_wake_since(&contracts, index,
				       released_ns < now_ns ? released_ns : now_ns, h->ran_ns,
				       now_ns);
		h->ran_ns = 0;
	}
	if (h->inherited_ns)
		an_contract_inherit_deadline(&contracts, index, h->inherited_ns);
	h->inherited_ns = 0;
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

/* Tasks in the contract's queue go to those of their classes. */
an_global int contract_lets_go(u32 index)
{
	struct bpf_iter_scx_dsq it;

	bpf_iter_scx_dsq_new(&it, contract_queue(index), 0);
	an_while(true) {
		struct task_struct *p = bpf_iter_scx_dsq_next(&it);
		struct task_state *ts = p ? bpf_task_storage_get(&task_states, p, 0, 0) : NULL;
		u32 leaf;

		if (!ts)
			break;
		leaf = binding_queue(&it, ts);
		an_holder(index)->waits_in = leaf;
		an_holder(index)->waits = 1;
		queue_move(&it, p, 0, leaf);
	}
	bpf_iter_scx_dsq_destroy(&it);
	return 0;
}

/* The task, if it waits in the queue of its class that is gone through, goes to the contract's. */
static __always_inline void contract_gather(struct bpf_iter_scx_dsq *it, struct task_struct *p,
					    u32 index)
{
	struct bpf_spin_lock *lock = contracts_lock();
	u32 leaf = an_holder(index)->waits_in;
	bool counted = queue_leave(lock, &trees[0], leaf);

	if (!scx_bpf_dsq_move_vtime(it, p, contract_queue(index), 0))
		queue_stay(lock, &trees[0], leaf, counted);
}

/* How many tasks of a queue are looked at, at most, for those of a contract. */
#define CONTRACT_LOOKS 4096

/* Tasks of the contract that wait in the queue of their class go to the contract's. */
an_global int contract_gathers(u32 index)
{
	u32 name = contract_name(index), left = CONTRACT_LOOKS;
	struct bpf_iter_scx_dsq it;

	bpf_iter_scx_dsq_new(&it, an_holder(index)->waits_in, 0);
	an_while(left) {
		struct task_struct *p = bpf_iter_scx_dsq_next(&it);
		struct task_state *ts = p ? bpf_task_storage_get(&task_states, p, 0, 0) : NULL;

		if (!ts)
			break;
		if (ts->counted == name) {
			contract_gather(&it, p, index);
			sink_waits(ts, name);
			an_holder(index)->looks |= ts->declared.session != 0;
		}
		left = an_opaque(left - 1);
	}
	bpf_iter_scx_dsq_destroy(&it);
	return 0;
}

/* The same for a learnt one: its only task is known, and the queue may be long. */
an_global int contract_gathers_one(u32 index)
{
	struct task_struct *p = bpf_task_from_pid(an_holder(index)->pid);
	struct bpf_iter_scx_dsq it;

	if (!p)
		return 0;
	bpf_iter_scx_dsq_new(&it, an_holder(index)->waits_in, 0);
	contract_gather(&it, p, index);
	bpf_iter_scx_dsq_destroy(&it);
	bpf_task_release(p);
	return 0;
}

/* Tasks of the contract may wait in the queue of their class: if so, true, and in the contract's
 * now.
 */
an_global bool contract_finds(u32 index)
{
	struct an_holder *h = an_holder(index);

	if (h->leaf || !h->waits)
		return false;
	h->waits = 0;
	if (h->kind == AN_LEARNT_OF_THREAD)
		contract_gathers_one(index);
	else
		contract_gathers(index);
	return true;
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
	if (budget)
		contract_finds(index);
	else if (scx_bpf_dsq_nr_queued(contract_queue(index)) > 0)
		contract_lets_go(index);
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
	u32 index, heir = cpu_heir();

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

/* What has happened to the contracts of this CPU, and what is due, is done. */
an_global int contracts_settle(u32 cpu)
{
	struct cpu_state *c = cpu_state(cpu);
	u32 index, left = CONTRACT_DEPTH;
	u64 ran_ns = c->contract_ns;

	c->news = c->handed = 0;
	if (ran_ns) {
		index = contract_charge(cpu);
		contract_requeue(cpu, index);
		an_while(left && an_holder(index)->around) {
			index = contract_charge_around(cpu, index, ran_ns);
			left--;
		}
	}
	an_while((index = c->first_noted)) {
		if (an_holder(index)->changed)
			contract_change(index);
		contract_requeue(cpu, contract_update(cpu));
	}
	an_while((index = contract_expire(cpu)))
		contract_requeue(cpu, index);
	an_while((index = contract_overdrawn(cpu)))
		contract_requeue(cpu, index);
	if (an_events_on)
		events_settle(cpu);
	return 0;
}

#endif
