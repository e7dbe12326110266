/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A CPU wants work: which contract or class is served next, and which of its tasks is taken. Part
 * of sched.bpf.c.
 */
#ifndef ANDANTE_BPF_DISPATCH_H
#define ANDANTE_BPF_DISPATCH_H

#include "pull.h"
#include "service.h"

/* A task of the running one's own class takes its place in the same quantum, if there is one. */
static __always_inline bool take_classmate(struct cpu_state *c, const struct place *at)
{
	u32 leaf = c->serving, queue = queue_of(at->domain, leaf);
	bool queued;

	bpf_spin_lock(at->lock);
	queued = an_continue(at->tree, leaf);
	bpf_spin_unlock(at->lock);
	if (!queued)
		return false;
	if (an_kmove_to_local(queue))
		return true;
	bpf_spin_lock(at->lock);
	an_queue_add(at->tree, leaf);
	bpf_spin_unlock(at->lock);
	queue_check(queue);
	if (nr_cpus > 1)
		kick_for_queue(queue);
	return false;
}

/*
 * The quantum in progress, if any, is over. Picks the next class; its quantum begins. A task of the
 * class wanting (if not AN_NONE) goes on wanting to run: it counts as queued in the competition.
 */
an_global u32 next_quantum(u32 cpu, u32 wanting)
{
	struct cpu_state *c = cpu_state(cpu);
	struct an_tree *t = tree_of(cpu_domain(cpu));
	struct bpf_spin_lock *lock = lock_of(cpu_domain(cpu));
	u32 leaf;

	if (!lock)
		return AN_NONE;
	bpf_spin_lock(lock);
	domain_queue_add(t, wanting, cpu_bit(cpu)); /* nothing, if it is AN_NONE */
	quantum_ends(t, c);
	leaf = domain_pick(t, cpu_bit(cpu));
	if (wanting && leaf != wanting)
		an_queue_gives_way(t, wanting);
	bpf_spin_unlock(lock);
	c->serving = leaf;
	c->unpicked = 0;
	c->used_ns = 0;
	c->over = 0;
	if (c->sees_to & SEES_TO_CONTRACTS)
		c->tree_ns = an_kclock_ns();
	return leaf;
}

static __always_inline bool task_taken(struct an_tree *t)
{
	stats.picks++;
	kick_for_the_rest(t);
	return true;
}

/*
 * Takes a task of the class that has been picked. If it has none that may run here the pick is
 * given back, for it is not usable by this CPU, and another one is made, until there is a task, the
 * class wanting is picked (its task goes on), or nothing is left to pick. True if a task was taken.
 */
an_global bool take_task(u32 cpu, u32 wanting)
{
	struct cpu_state *c = cpu_state(cpu);
	u32 domain = cpu_domain(cpu);
	struct an_tree *t = tree_of(domain);

	an_while(c->serving) {
		u32 leaf = c->serving, queue = queue_of(domain, leaf);
		u32 events, grows;
		bool sure;

		if (an_kmove_to_local(queue))
			return task_taken(t);
		stats.missed_picks++;
		if (pick_ended(c, leaf))
			return false;
		/* It looks once more, so that a task queued before the events were read is found.
		 */
		events = an_node(t, leaf)->queue_events;
		grows = queue_grows(queue);
		if (an_kmove_to_local(queue))
			return task_taken(t);
		if (pick_ended(c, leaf))
			return false;
		c->serving = AN_NONE;
		sure = pick_given_back(cpu, leaf, events) && !grows;
		queue_check(queue);
		if (nr_cpus > 1)
			kick_for_queue(queue);
		if (!cpu_bit(cpu) || (!sure && unsure_of(c, leaf, grows)))
			return false;
		if (next_quantum(cpu, wanting) == wanting)
			return false;
	}
	return false;
}

static __always_inline bool quantum_over(const struct cpu_state *c)
{
	return c->over || c->used_ns >= quantum_ns;
}

/* Does this task, which wants to go on, come before all of its class that are queued? */
static __always_inline bool comes_first(struct cpu_state *c, u32 cpu, const struct place *at,
					u32 leaf, const struct task_state *ts)
{
	return !an_node(at->tree, leaf)->queued || !queue_head(cpu, queue_of(at->domain, leaf)) ||
	       an_tag_diff(task_key(ts), c->head_key) <= 0;
}

enum slice_end {
	GOES_ON,  /* the task runs on */
	REPLACED, /* a classmate has been taken */
	PICKED,	  /* a class has been picked, its task is to be taken */
};

/*
 * The slice of a task of this leaf that wants to go on has ended: it competes with its classmates,
 * and when the quantum is over, its class with the others.
 */
static __always_inline enum slice_end slice_ends(struct cpu_state *c, u32 cpu,
						 const struct place *at, u32 leaf,
						 const struct task_state *ts)
{
	bool first = comes_first(c, cpu, at, leaf, ts);

	if (!quantum_over(c))
		return !first && take_classmate(c, at) ? REPLACED : GOES_ON;
	if (nr_domains > 1 && pull_owed(cpu, leaf))
		return REPLACED;
	if (next_quantum(cpu, leaf) != leaf)
		return PICKED;
	if (first)
		return GOES_ON;
	/* The pick stands for the classmate; prev is queued when the kernel says so. */
	bpf_spin_lock(at->lock);
	an_queue_withdraw(at->tree, leaf);
	bpf_spin_unlock(at->lock);
	return PICKED;
}

/*
 * Nothing was found for the CPU, but something may be due for its contracts later. The task that it
 * has, if it has one, is none of ours any more, for it was bound to a class that is no more: it
 * goes on.
 */
static __always_inline void stays(struct cpu_state *c, u32 cpu, struct task_struct *prev)
{
	u64 now_ns = an_kclock_ns();

	if (c->sees_to & SEES_TO_CONTRACTS && c->contract_check_ns != AN_NEVER)
		cpu_check_at(c, cpu, now_ns, c->contract_check_ns);
	if (c->unsure)
		cpu_check_at(c, cpu, now_ns, now_ns + LOOK_AGAIN_NS);
	if (prev && (prev->scx.flags & an_kconst(scx_ent_flags, SCX_TASK_QUEUED)))
		an_kset_slice(prev, quantum_ns);
}

/*
 * The task that runs on this CPU goes on. If the CPU was asked since it began to look: what it was
 * asked for came after its look, and the kick is lost, for the kernel takes it to be done when a
 * choice has been made (a task that is moved has the run queue unlocked meanwhile).
 */
static __always_inline void keep(struct cpu_state *c, u32 cpu, const struct place *at,
				 struct task_struct *prev, struct task_state *ts)
{
	u32 counted = c->contract ? AN_NONE : contract_named(ts->counted);

	if (counted && an_holder(counted)->cpu != cpu &&
	    an_holder(counted)->kind != AN_LEARNT_OF_THREAD)
		contract_unpicked(ts, cpu, counted); /* its contract has changed CPUs */
	stats.kept++;
	an_kset_slice(prev, quantum_ns);
	task_served(c, at, ts);
	service_begins(c, cpu, at, prev, ts);
	if (c->asked)
		cpu_ask_again(c, cpu);
}

/* Does this task, which holds that contract and wants to go on, come before all others of the
 * contract that are queued? */
static __always_inline bool comes_first_of_contract(struct cpu_state *c, u32 cpu, u32 contract,
						    const struct task_state *ts)
{
	if (an_holder(contract)->active <= 1)
		return true;
	if (an_holder(contract)->looks)
		session_order(cpu, contract);
	return !queue_head(cpu, contract_queue(contract)) ||
	       an_tag_diff(task_key(ts), c->head_key) <= 0;
}

/* The contracts of this CPU come first. A task of the leaf old wants to go on if ts says so. */
static __always_inline u32 contract_turn(struct cpu_state *c, u32 cpu, const struct place *at,
					 u32 old, struct task_state *ts)
{
	u32 held = ts ? contract_named(ts->contract) : AN_NONE, goes_on = held, index;
	u32 wanting = AN_NONE;

	if (contracts_wait(c, cpu) && !learn_awaited())
		return TREES_TURN;
	if (ts && (held || comes_first(c, cpu, at, old, ts)))
		wanting = old;
	if (wanting && !held)
		goes_on = task_contract(ts, old);
	else if (held && !comes_first_of_contract(c, cpu, held, ts))
		goes_on = AN_NONE; /* threads of one contract take turns */
	index = contract_continues(c) ? contract_again(c, cpu, wanting, goes_on) : AN_NONE;
	if (!index) {
		if (goes_on && throttled(at->tree, old)) {
			contract_uncount(ts);
			goes_on = AN_NONE;
		}
		contracts_settle(cpu);
		index = contract_pick(cpu, wanting, goes_on);
	}
	if (!index && learn_awaited() && learn_pulls(cpu)) {
		contracts_settle(cpu);
		index = contract_pick(cpu, wanting, goes_on);
	}
	return contract_take(cpu, index, wanting, goes_on);
}

/*
 * No class that was picked has a task for this CPU. Its own of the leaf old goes on, if ts says
 * that it has one: its turn has come, or nothing else may run here; but not if its class is
 * throttled. True if it does.
 */
static __always_inline bool nothing_found(struct cpu_state *c, u32 cpu, const struct place *at,
					  struct task_struct *prev, struct task_state *ts, u32 old)
{
	bool declines = ts && c->serving != old && throttled(at->tree, old);

	if (!ts || declines) {
		if (overdue_take(c, cpu, true))
			return false;
		if (c->sees_to & SEES_TO_CONTRACTS && contract_alone(cpu))
			return false;
		if (nr_domains > 1 && pull_any(cpu))
			return false;
	}
	if (!ts)
		stays(c, cpu, prev);
	if (declines)
		cpu_declines(cpu);
	if (!ts || declines)
		return false;
	if (c->serving != old) {
		bpf_spin_lock(at->lock);
		quantum_ends(at->tree, c); /* one that was begun meanwhile: see pick_ended() */
		c->serving = domain_serve_unpicked(at->tree, old);
		bpf_spin_unlock(at->lock);
	}
	return true;
}

/* The CPU's next task is taken, if there is one. True if the one that it has, of the leaf old,
 * goes on instead: ts says that it has one. */
static __always_inline bool next_goes_on(struct cpu_state *c, u32 cpu, const struct place *at,
					 struct task_struct *prev, struct task_state *ts, u32 old)
{
	if ((c->sees_to & SEES_TO_CONTRACTS && !contracts_rest(c, cpu)) || learn_awaited()) {
		u32 turn = contract_turn(c, cpu, at, old, ts);

		if (turn != TREES_TURN)
			return turn == CONTRACT_GOES_ON;
	}
	if (overdue_take(c, cpu, !ts && !an_root(at->tree)->ready))
		return false;
	if (ts) {
		enum slice_end end = slice_ends(c, cpu, at, old, ts);

		if (end != PICKED)
			return end == GOES_ON;
	} else {
		if (c->serving && !quantum_over(c) && take_classmate(c, at))
			return false;
		if (nr_domains > 1 && pull_owed(cpu, AN_NONE))
			return false;
		if (!c->serving && !an_root(at->tree)->ready) {
			if (nr_domains <= 1 || !pull_any(cpu))
				stays(c, cpu, prev);
			return false;
		}
		next_quantum(cpu, AN_NONE);
	}
	if (take_task(cpu, ts ? old : AN_NONE))
		return false;
	return nothing_found(c, cpu, at, prev, ts, old);
}

SEC("struct_ops/andante_dispatch")
void BPF_PROG(andante_dispatch, s32 cpu, struct task_struct *prev)
{
	struct cpu_state *c = cpu_state(cpu);
	struct task_state *ts = NULL;
	u32 old = c->serving;
	struct place at;

	if (!place_of(&at, cpu))
		return;

	c->asked = 0;
	if (nr_cpus > 1)
		c->inserting = AN_NONE;
	if (c->unsure)
		usable_again(cpu);
	if (old && prev && (prev->scx.flags & an_kconst(scx_ent_flags, SCX_TASK_QUEUED)))
		ts = bpf_task_storage_get(&task_states, prev, 0, 0);
	if (ts && c->running) {
		service_ends(c, prev);
		task_settles(prev, ts);
	}
	if (ts && an_node(at.tree, old)->kind != AN_LEAF)
		ts = NULL; /* it was bound to a class that is no more: enqueue finds it another */
	if (ts && c->special)
		special_stops(c, prev, ts, old);
	/* Asked in one place, or what follows would be verified for each: with ts for the verifier.
	 */
	if (next_goes_on(c, cpu, &at, prev, ts, old) && ts)
		keep(c, cpu, &at, prev, ts);
}

#endif
