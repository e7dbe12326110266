/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Who holds which contract: threads begin to hold one, inherit it and let it go, and user space
 * makes contracts, moves and ends them. Part of sched.bpf.c; what a contract does is contracts.h.
 */
#ifndef ANDANTE_BPF_HOLDERS_H
#define ANDANTE_BPF_HOLDERS_H

#include "sinks.h"

/* The contract ends. Tasks may be left in its queue, for call_sweep(). With the lock held. */
static __always_inline void contract_end(u32 index)
{
	struct an_holder *h = an_holder(index);

	h->ended = 1;
	if (h->leaf) {
		*leaf_contract(h->leaf) = AN_NONE;
		contracts_of_classes--;
	}
	contract_note(index);
}

/* The thread holds its contract no more. Takes the lock. */
static __always_inline void contract_unbind(struct task_state *ts)
{
	struct bpf_spin_lock *lock = contracts_lock();
	u32 index = contract_named(ts->contract);
	struct an_holder *h = an_holder(index);

	ts->contract = 0;
	ts->job_ns = 0; /* what it does now is no job of the next contract that it holds */
	bpf_spin_lock(lock);
	if (index && h->bound && !--h->bound) {
		cpu_state(h->cpu)->learnt -= h->part;
		contract_end(index);
	}
	bpf_spin_unlock(lock);
}

/* A new thread of a process that holds a contract holds it too. */
static __always_inline void contract_inherit(struct task_struct *p, struct task_state *ts)
{
	struct bpf_spin_lock *lock = contracts_lock();
	struct task_struct *parent = bpf_get_current_task_btf();
	struct task_state *from;
	u32 index;

	if (!contracts.count || parent->tgid != p->tgid)
		return;
	from = bpf_task_storage_get(&task_states, parent, 0, 0);
	if (!from || !from->contract)
		return;
	bpf_spin_lock(lock);
	index = contract_named(from->contract);
	if (index && an_holder(index)->kind == AN_HELD_BY_PROCESS) {
		an_holder(index)->bound++;
		ts->contract = from->contract;
	}
	bpf_spin_unlock(lock);
}

static __always_inline void holder_init(struct an_holder *h, u32 kind)
{
	h->bound = h->active = h->part = h->around = 0;
	h->released_ns = h->ran_ns = h->inherited_ns = h->turn_ns = 0;
	h->waits_in = AN_NONE;
	h->waits = h->ended = h->changed = h->looks = 0;
	h->kind = kind;
}

/* ---- room for more ---- */

/* Contracts that room is made for at a time, when it is for less than half as many; or a quarter of
 * those that there are, so that a thousand that are learnt of one program find room within seconds.
 */
#define CONTRACT_ROOM 32

/*
 * Makes room for more contracts if little is left: queues, for those that threads hold. Where one
 * is learnt no queue can be made, so room is made ahead: here, at first; whenever a thread is new;
 * before user space makes a contract; and every second. Not for all at once, for the kernel finds
 * every queue by its hash, and each makes that a little slower.
 */
an_global s32 contracts_make_room(void)
{
	struct bpf_spin_lock *lock = contracts_lock();
	u32 index = contracts.slots, end = index + CONTRACT_ROOM;
	s32 error = 0;

	if (index > 4 * CONTRACT_ROOM)
		end = index + index / 4;
	if (end > AN_MAX_CONTRACTS)
		end = AN_MAX_CONTRACTS;
	if (index - contracts.count > CONTRACT_ROOM / 2)
		return 0;
	an_while(index < end && !error) {
		error = scx_bpf_create_dsq(AN_MAX_NODES + index, -1);
		if (error == -17) /* EEXIST: another CPU is at it too */
			error = 0;
		index = an_opaque(index + 1);
	}
	if (error)
		return error;
	bpf_spin_lock(lock);
	if (contracts.slots < end)
		contracts.slots = end;
	bpf_spin_unlock(lock);
	return 0;
}

static __always_inline s32 contracts_begin(void)
{
	an_contracts_init(&contracts, event_options);
	contracts.bound = contract_bound;
	contracts.learn_bound = learn_bound;
	contracts.slots = 1; /* index 0 is nobody */
	return contracts_make_room();
}

/* ---- what user space asks for ---- */

struct an_contract_call contract_call SEC(".bss.contracts") = {};

static __always_inline s32 call_create(void)
{
	struct bpf_spin_lock *lock = contracts_lock();
	struct an_contract_call *call = &contract_call;
	u32 leaf = call->kind == AN_HELD_BY_CLASS ? call->leaf : AN_NONE, index = AN_NONE;
	s32 error = -28; /* ENOSPC */
	struct an_holder *h;

	contracts_make_room();
	bpf_spin_lock(lock);
	if (leaf && *leaf_contract(leaf))
		error = -17; /* EEXIST */
	else
		index = an_contract_create(&contracts, &call->promise);
	if (index && call->pieces && an_split_set(&contracts, index, call->piece, call->pieces)) {
		an_contract_remove(&contracts, index);
		index = AN_NONE;
	}
	if (index) {
		h = an_holder(index);
		h->leaf = leaf;
		h->cpu = an_contract(&contracts, index)->cpu;
		holder_init(h, call->kind);
		call->name = contract_name(index);
		if (leaf) {
			*leaf_contract(leaf) = index;
			contracts_of_classes++;
		}
	}
	bpf_spin_unlock(lock);
	return index ? 0 : error;
}

/* The contract is to be on another CPU. With the lock held. */
static __always_inline s32 call_move(u32 index, u32 cpu)
{
	struct an_contract *k = an_contract(&contracts, index);
	struct an_holder *h = an_holder(index);

	if (k->split)
		return -22; /* EINVAL: its pieces say where it runs */
	if (!h->changed)
		h->next = k->promise;
	h->next.cpu = h->cpu = cpu;
	h->changed = 1;
	contract_note(index);
	return 0;
}

static __always_inline s32 call_change(void)
{
	struct bpf_spin_lock *lock = contracts_lock();
	u32 index, cpu = an_bounded(contract_call.promise.cpu, AN_MAX_CONTRACT_CPUS), old = cpu;
	s32 error = -2; /* ENOENT */

	bpf_spin_lock(lock);
	index = contract_named(contract_call.name);
	if (index) {
		error = 0;
		old = an_contract(&contracts, index)->cpu;
		if (contract_call.op == AN_CALL_REMOVE)
			contract_end(index);
		else
			error = call_move(index, cpu);
	}
	bpf_spin_unlock(lock);
	if (index) {
		kick_contract_cpu(old);
		kick_contract_cpu(cpu);
	}
	return error;
}

/* The contract is nested in contract_call.around from now on, or in none. */
static __always_inline s32 call_nest(void)
{
	u32 index = contract_named(contract_call.name);

	if (!index)
		return -2; /* ENOENT */
	an_holder(index)->around = contract_call.around;
	return 0;
}

/* The thread contract_call.pid is to hold the contract, or none (name 0). */
static __always_inline s32 call_bind(void)
{
	struct bpf_spin_lock *lock = contracts_lock();
	struct task_struct *p = bpf_task_from_pid(contract_call.pid);
	struct task_state *ts;
	s32 error = -3; /* ESRCH */
	u32 index;

	if (!p)
		return error;
	ts = bpf_task_storage_get(&task_states, p, 0, 0);
	if (p->flags & PF_KTHREAD) {
		error = -1; /* EPERM */
	} else if (ts) {
		if (ts->contract && ts->contract != contract_call.name)
			contract_unbind(ts);
		error = 0;
		if (contract_call.name && !ts->contract) {
			bpf_spin_lock(lock);
			index = contract_named(contract_call.name);
			if (index) {
				an_holder(index)->bound++;
				ts->contract = contract_call.name;
			} else {
				error = -2; /* ENOENT */
			}
			bpf_spin_unlock(lock);
		}
	}
	bpf_task_release(p);
	return error;
}

/* A session begins for the thread: its page is a new one, in which nothing has been raised. */
static __always_inline void declared_anew(struct task_state *ts)
{
	u32 service;

	an_declared_begin(&ts->learner, an_kclock_ns());
	for (service = 0; service < ANDANTE_SERVICES; service++)
		ts->delivered[service] = 0;
	ts->surges = 0;
}

/* The thread contract_call.pid takes part in a session from now on, or in none. */
static __always_inline s32 call_declare(void)
{
	const struct an_contract_call *call = &contract_call;
	struct task_struct *p = bpf_task_from_pid(call->pid);
	struct task_state *ts;
	s32 error = -3; /* ESRCH */

	if (!p)
		return error;
	ts = bpf_task_storage_get(&task_states, p, 0, 0);
	if (p->flags & PF_KTHREAD) {
		error = -1; /* EPERM */
	} else if (ts && call->session && ts->declared.session) {
		error = -16; /* EBUSY */
	} else if (ts) {
		if (call->session)
			declared_anew(ts);
		ts->declared.period_ns = call->promise.period_ns;
		ts->declared.deadline_ns = call->promise.deadline_rel_ns;
		ts->declared.budget_ns = call->promise.budget_ns;
		ts->declared.session = call->session;
		sink_set(p, ts, call->sink);
		task_has_policy(ts, ts->policy);
		cpus_see_to(SEES_TO_SPECIAL, true);
		error = 0;
	}
	bpf_task_release(p);
	return error;
}

/* The daemon is asked by a program that may not call itself (calls.h). */
static __always_inline s32 call_look(void)
{
	u64 now_ns = an_kclock_ns();
	u32 sink = contract_call.sink;

	if (an_sink(sink)->told_by)
		sink_tell(sink);
	sink_looks(an_sink(sink)->waits, contract_call.deliver_ns, now_ns);
	return 0;
}

/* The learnt contract ends if its task has slept for long. True if it did. */
static __noinline bool learnt_ends(u32 index, u64 now_ns)
{
	struct bpf_spin_lock *lock = contracts_lock();
	struct an_holder *h = an_holder(index);
	u32 cpu = h->cpu;
	bool ends;

	bpf_spin_lock(lock);
	ends = !h->ended && !h->active && !h->noted &&
	       an_learnt_gives_way(&contracts, an_contract(&contracts, index), now_ns);
	if (ends) {
		cpu_state(cpu)->learnt -= h->part;
		contract_end(index);
	}
	bpf_spin_unlock(lock);
	if (ends)
		kick_contract_cpu(cpu);
	return ends;
}

/* Learnt contracts that have ended, and keep their slots until they have been seen to. */
an_global u32 learnt_going(void)
{
	u32 index = 1, end = contracts.unused, going = 0;

	an_while(index < end && index < AN_MAX_CONTRACTS) {
		struct an_holder *h = an_holder(index);

		if (h->ended && h->kind == AN_LEARNT_OF_THREAD &&
		    an_contract(&contracts, index)->used)
			going = an_opaque(going + 1);
		index = an_opaque(index + 1);
	}
	return going;
}

/* If little room is left for learnt contracts, some give way; their slots are freed by the next
 * sweep. */
an_global s32 learnt_make_room(void)
{
	u32 index = 1, end = contracts.unused, too_many = an_learnt_too_many(&contracts);
	u64 now_ns = an_kclock_ns();

	if (!too_many)
		return 0;
	too_many -= learnt_going();
	an_while((s32)too_many > 0 && index < end && index < AN_MAX_CONTRACTS) {
		if (learnt_ends(index, now_ns)) {
			too_many = an_opaque(too_many - 1);
			stats.learnt_gave_way++;
		}
		index = an_opaque(index + 1);
	}
	return 0;
}

/* Has it no task in its queue, and none on its way there? */
static __always_inline bool contract_is_empty(u32 index)
{
	u64 queue = contract_queue(index);

	return an_holder(index)->leaf || (!queue_grows(queue) && !scx_bpf_dsq_nr_queued(queue));
}

/* Slots of contracts that have ended, and have nothing queued, are freed. And queues are made for
 * what is learnt of threads that there are already. */
static __always_inline s32 call_sweep(void)
{
	struct bpf_spin_lock *lock = contracts_lock();
	u32 index = 1, end = contracts.unused;

	an_while(index < end && index < AN_MAX_CONTRACTS) {
		struct an_holder *h = an_holder(index);

		if (h->ended && contract_is_empty(index)) {
			bpf_spin_lock(lock);
			if (!h->noted)
				an_contract_remove(&contracts, index);
			bpf_spin_unlock(lock);
		}
		index = an_opaque(index + 1);
	}
	learnt_make_room();
	stats.learnt_held = contracts.learnt;
	return contracts_make_room();
}

SEC("syscall")
int andante_contract(void *ctx)
{
	switch (contract_call.op) {
	case AN_CALL_CREATE:
		return call_create();
	case AN_CALL_BIND:
		return call_bind();
	case AN_CALL_SWEEP:
		return call_sweep();
	case AN_CALL_NEST:
		return call_nest();
	case AN_CALL_DECLARE:
		return call_declare();
	case AN_CALL_LOOK:
		return call_look();
	case AN_CALL_TELL:
		return call_tell();
	case AN_CALL_TELL_LATE:
		an_sink(contract_call.sink)->late = 0;
		return sink_tell(contract_call.sink);
	default:
		return call_change();
	}
}

#endif
