/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Contracts in the kernel: who holds which, and how a CPU turns to them before the tree. Part of
 * sched.bpf.c; the rules themselves are core/contract_run.h.
 *
 * A contract is held by a class or by threads. Held by a class it is that class's leaf that runs
 * under it; threads that hold one get a leaf of their own below their class, so that either way a
 * contract is one leaf of the tree:
 *
 *      with budget     its CPU takes tasks from the leaf's queue first, by deadline
 *      without         the leaf competes in the tree for its class's share, on any CPU
 *
 * The leaf is charged for both, so that what a contract uses comes out of its class's share.
 *
 * A contract is runnable while tasks of it are queued, or run on its CPU. One that another CPU has
 * taken runs there on its class's share, and the contract sleeps until it is queued again.
 *
 * The contracts are guarded by the tree's lock.
 */
#ifndef ANDANTE_BPF_CONTRACTS_H
#define ANDANTE_BPF_CONTRACTS_H

struct an_contracts contracts SEC(".bss.contracts");
struct an_holder holders[AN_MAX_CONTRACTS] SEC(".bss.contracts");
u16 leaf_contracts[AN_MAX_NODES] SEC(".bss.contracts"); /* the contract of each leaf */
u64 contracts_clock_ns SEC(".bss.contracts");

static __always_inline struct an_holder *an_holder(u32 index)
{
	return &holders[an_bounded(index, AN_MAX_CONTRACTS)];
}

/* The contract that this leaf stands for, though it may have ended, or AN_NONE. */
static __always_inline u16 *leaf_contract_of(u32 leaf)
{
	return &leaf_contracts[an_bounded(leaf, AN_MAX_NODES)];
}

/* The contract under which tasks of this leaf run, or AN_NONE. */
static __always_inline u32 leaf_contract(u32 leaf)
{
	u32 index = contracts.count ? *leaf_contract_of(leaf) : AN_NONE;

	return index && !an_holder(index)->ended ? index : AN_NONE;
}

/*
 * The queue of a leaf. Queues are numbered as the leaves they belong to; those of contracts that
 * threads hold come after them.
 */
static __always_inline u64 contract_queue(u32 index)
{
	return AN_MAX_NODES + index;
}

static __always_inline u64 queue_of(u32 leaf)
{
	u32 index = contracts.count ? *leaf_contract_of(leaf) : AN_NONE;

	return index && an_holder(index)->kind != AN_HELD_BY_CLASS ? contract_queue(index) : leaf;
}

/* A contract and which use of its slot this is, in one word. */
static __always_inline u32 contract_name(u32 index)
{
	return index | (u32)an_contract(&contracts, index)->generation << 16;
}

static __always_inline bool contract_is(u32 index, u32 name)
{
	return name && contract_name(index) == name;
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
 * Most of the core's calls are made when a CPU turns to its contracts, for they are large and the
 * verifier looks at them anew in every program that makes them. What changes elsewhere is noted:
 * the contract is listed with its CPU. With the lock held.
 */
static __always_inline void contract_note(u32 index)
{
	struct an_holder *h = an_holder(index);
	struct cpu_state *c = cpu_state(an_contract(&contracts, index)->cpu);

	if (h->noted)
		return;
	h->noted = 1;
	h->next_noted = c->first_noted;
	c->first_noted = index;
}

/* One active task less for the contract of this name, if it is still there. With the lock held. */
static __always_inline void contract_less(u32 name)
{
	u32 index = name & 0xffff;
	struct an_holder *h = an_holder(index);

	if (contract_is(index, name) && h->active && !--h->active)
		contract_note(index);
}

/*
 * The task is active under this contract (AN_NONE: under none), and under no other. True if that
 * is news. With the lock held.
 */
static __always_inline bool contract_count(struct task_state *ts, u32 index)
{
	u32 name = index ? contract_name(index) : 0;

	if (ts->counted == name)
		return false;
	if (ts->counted)
		contract_less(ts->counted);
	ts->counted = name;
	if (index && !an_holder(index)->active++)
		contract_note(index);
	return index != AN_NONE;
}

/* The same for a task that is active no more. Takes the lock. */
static __always_inline void contract_uncount(struct task_state *ts)
{
	if (!ts->counted)
		return;
	bpf_spin_lock(&tree_lock);
	contract_count(ts, AN_NONE);
	bpf_spin_unlock(&tree_lock);
}

static __always_inline void kick_contract_cpu(u32 cpu)
{
	cpu_state(cpu)->over = 1;
	scx_bpf_kick_cpu(cpu, an_kconst(scx_kick_flags, SCX_KICK_PREEMPT));
}

/*
 * A task of the contract has been queued, which is news: its CPU is told. False where the task's
 * affinity is against it; then the contract waits.
 */
static __always_inline bool contract_queued(struct task_struct *p, u32 index)
{
	u32 cpu = an_contract(&contracts, index)->cpu;

	if (!bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
		return false;
	stats.contract_preemptions++;
	kick_contract_cpu(cpu);
	return true;
}

/* ---- a CPU turns to its contracts ---- */

/* What has run under this CPU's contract is charged to it. */
an_global int contract_charge(u32 cpu)
{
	struct cpu_state *c = cpu_state(cpu);
	u32 index = c->charged & 0xffff;
	u64 ran_ns = c->contract_ns, now_ns = scx_bpf_now();

	c->contract_ns = 0;
	bpf_spin_lock(&tree_lock);
	if (contract_is(index, c->charged))
		an_contract_charge(&contracts, index, ran_ns, contracts_clock(now_ns));
	bpf_spin_unlock(&tree_lock);
	return 0;
}

/* The contract noted last wakes or goes to sleep. */
an_global int contract_update(u32 cpu)
{
	struct cpu_state *c = cpu_state(cpu);
	u64 now_ns = scx_bpf_now();
	struct an_holder *h;
	u32 index;

	bpf_spin_lock(&tree_lock);
	index = c->first_noted;
	h = an_holder(index);
	c->first_noted = h->next_noted;
	h->noted = 0;
	now_ns = contracts_clock(now_ns);
	if (h->active && !h->ended)
		an_contract_wake(&contracts, index, now_ns);
	else
		an_contract_sleep(&contracts, index, now_ns);
	bpf_spin_unlock(&tree_lock);
	return 0;
}

/* The first thing that is due for this CPU's contracts is done; the CPUs to tell, 0: nothing. */
an_global u64 contract_expire(u32 cpu)
{
	u64 kick = 0, now_ns = scx_bpf_now();

	bpf_spin_lock(&tree_lock);
	an_contracts_expire_one(&contracts, cpu, contracts_clock(now_ns), &kick);
	bpf_spin_unlock(&tree_lock);
	return kick;
}

static __noinline void kick_contract_cpus(u64 mask)
{
	u32 cpu = 0;

	an_while(mask && cpu < AN_MAX_CONTRACT_CPUS) {
		if (mask & 1)
			kick_contract_cpu(cpu);
		mask >>= 1;
		cpu++;
	}
}

/* When the CPU must turn to its contracts again, if it runs this one (or none). Needs no lock. */
static __always_inline u64 contract_check(u32 cpu, u32 index, u64 now_ns)
{
	u64 check_ns = an_contracts_due(&contracts, cpu);

	if (index) {
		u64 run_ns = an_contract_run_ns(&contracts, index, now_ns);

		if (run_ns != AN_NEVER && now_ns + run_ns < check_ns)
			check_ns = now_ns + run_ns;
	}
	return check_ns;
}

/*
 * The quantum in progress makes way for the leaf, whose contract has been picked. A task of the
 * class wanting (if not AN_NONE) wants to go on. With the lock held.
 */
static __always_inline void contract_takes_over(struct cpu_state *c, u32 leaf, u32 wanting)
{
	if (c->serving != leaf || c->over || c->used_ns >= quantum_ns) {
		/* A class must not look idle between two quanta. */
		if (wanting)
			an_queue_add(&tree, wanting);
		if (c->serving)
			an_stop(&tree, c->serving, c->used_ns);
		an_serve_unpicked(&tree, leaf);
		if (wanting)
			an_queue_withdraw(&tree, wanting);
		c->serving = leaf;
		c->used_ns = 0;
		c->over = 0;
	}
	if (leaf != wanting)
		an_queue_withdraw(&tree, leaf);
}

/*
 * First in every dispatch on a machine with contracts: what is due is done, and the leaf returned
 * whose contract is to run, or AN_NONE. The leaf is being served then; if it is not wanting, a task
 * of its queue is to be taken.
 */
an_global u32 contract_pick(u32 cpu, u32 wanting)
{
	struct cpu_state *c = cpu_state(cpu);
	u64 now_ns = scx_bpf_now(), kick = 0, told;
	u32 index, leaf = AN_NONE, rule;

	if (c->contract_ns)
		contract_charge(cpu);
	an_while(c->first_noted)
		contract_update(cpu);
	an_while((told = contract_expire(cpu)))
		kick |= told;
	bpf_spin_lock(&tree_lock);
	now_ns = contracts_clock(now_ns);
	index = an_contracts_pick(&contracts, cpu, now_ns, false, &rule);
	if (index) {
		leaf = an_holder(index)->leaf;
		if (leaf != wanting && !an_node(&tree, leaf)->queued)
			leaf = index = AN_NONE; /* on its way to, or from, another CPU */
	}
	if (leaf)
		contract_takes_over(c, leaf, wanting);
	bpf_spin_unlock(&tree_lock);
	if (!leaf)
		c->over |= c->contract != 0;
	c->contract = leaf ? contract_name(index) : 0;
	c->contract_check_ns = contract_check(cpu, index, now_ns);
	kick &= ~(1ULL << (cpu & 63));
	if (kick)
		kick_contract_cpus(kick);
	return leaf;
}

/* The queue of the leaf that contract_pick() returned gave no task: the tree's turn. */
an_global int contract_missed(u32 cpu, u32 leaf)
{
	struct cpu_state *c = cpu_state(cpu);

	bpf_spin_lock(&tree_lock);
	an_unpick(&tree, leaf);
	bpf_spin_unlock(&tree_lock);
	c->serving = AN_NONE;
	c->contract = 0;
	c->over = 1;
	stats.contract_misses++;
	return 0;
}

/*
 * A task of this contract (AN_NONE: of none) starts to run without contract_pick(): an idle CPU
 * took it, or the kernel put it here. On its contract's CPU that turns to its contracts at once; on
 * another one the contract sleeps.
 */
static __noinline void contract_unpicked(struct cpu_state *c, u32 cpu, struct task_state *ts,
					 u32 index)
{
	bool here = index && an_contract(&contracts, index)->cpu == cpu;
	bool news;

	bpf_spin_lock(&tree_lock);
	news = contract_count(ts, here ? index : AN_NONE);
	bpf_spin_unlock(&tree_lock);
	if (news)
		kick_contract_cpu(cpu);
}

/* ---- who holds a contract ---- */

/*
 * The contract ends. Its slot is free once nothing is queued in its leaf; call_sweep() sees to that
 * if something is. With the lock held.
 */
static __noinline void contract_end(u32 index)
{
	struct an_holder *h = an_holder(index);
	u32 leaf = h->leaf;

	h->ended = 1;
	if (leaf && h->kind != AN_HELD_BY_CLASS && an_class_remove(&tree, leaf))
		return;
	if (leaf)
		*leaf_contract_of(leaf) = AN_NONE;
	h->leaf = AN_NONE;
	an_contract_remove(&contracts, index);
}

/* The thread holds its contract no more. Takes the lock. */
static __noinline void contract_unbind(struct task_state *ts)
{
	u32 name = ts->contract, index = name & 0xffff;
	struct an_holder *h = an_holder(index);

	bpf_spin_lock(&tree_lock);
	ts->contract = 0;
	if (contract_is(index, name) && h->bound && !--h->bound && !h->ended)
		contract_end(index);
	bpf_spin_unlock(&tree_lock);
	ts->leaf = AN_NONE;
}

static __always_inline void contract_bind(struct task_state *ts, u32 index)
{
	an_holder(index)->bound++;
	ts->contract = contract_name(index);
	ts->leaf = AN_NONE;
}

/* A new thread of a process that holds a contract holds it too. */
static __always_inline void contract_inherit(struct task_struct *p, struct task_state *ts)
{
	struct task_struct *parent = bpf_get_current_task_btf();
	struct task_state *from;
	u32 index;

	if (!contracts.count || parent->tgid != p->tgid)
		return;
	from = bpf_task_storage_get(&task_states, parent, 0, 0);
	if (!from || !from->contract)
		return;
	index = from->contract & 0xffff;
	bpf_spin_lock(&tree_lock);
	if (contract_is(index, from->contract) && an_holder(index)->kind == AN_HELD_BY_PROCESS)
		contract_bind(ts, index);
	bpf_spin_unlock(&tree_lock);
}

/* The leaf of a contract that threads hold, below their class; the class's where there is no room.
 */
static __noinline u32 contract_leaf(u32 name, u32 class_leaf)
{
	u32 index = name & 0xffff, leaf = class_leaf;
	struct an_holder *h = an_holder(index);

	bpf_spin_lock(&tree_lock);
	if (contract_is(index, name) && !h->ended) {
		if (!h->leaf) {
			h->leaf = an_class_create(&tree, class_leaf, 0, AN_WEIGHT_DEFAULT);
			*leaf_contract_of(h->leaf) = h->leaf ? index : AN_NONE;
		} else {
			an_class_move(&tree, h->leaf, class_leaf);
		}
		if (h->leaf)
			leaf = h->leaf;
	}
	bpf_spin_unlock(&tree_lock);
	return leaf;
}

/* ---- what user space asks for ---- */

struct an_contract_call contract_call SEC(".bss.contracts");

/* Is this the contract that the call means? */
static __always_inline bool call_means(u32 index)
{
	return contract_is(index, contract_call.name) && !an_holder(index)->ended;
}

static __always_inline s32 call_create(void)
{
	struct an_contract_call *call = &contract_call;
	u32 leaf = call->leaf, index = AN_NONE;
	struct an_holder *h;

	bpf_spin_lock(&tree_lock);
	if (call->kind != AN_HELD_BY_CLASS || !*leaf_contract_of(leaf))
		index = an_contract_create(&contracts, &call->promise);
	if (index) {
		h = an_holder(index);
		h->leaf = AN_NONE;
		h->bound = h->active = h->ended = 0;
		h->kind = call->kind;
		if (call->kind == AN_HELD_BY_CLASS) {
			h->leaf = leaf;
			*leaf_contract_of(leaf) = index;
		}
		call->name = contract_name(index);
		if (call->pieces && an_split_set(&contracts, index, call->piece, call->pieces)) {
			contract_end(index);
			index = AN_NONE;
		}
	}
	bpf_spin_unlock(&tree_lock);
	return index ? 0 : -28; /* ENOSPC */
}

static __always_inline s32 call_change(void)
{
	u32 index = contract_call.name & 0xffff;
	s32 error = -2; /* ENOENT */

	bpf_spin_lock(&tree_lock);
	if (call_means(index)) {
		error = 0;
		if (contract_call.op == AN_CALL_REMOVE)
			contract_end(index);
		else if (contract_call.op == AN_CALL_MOVE)
			error = an_contract_move(&contracts, index, contract_call.promise.cpu);
		else
			error = an_contract_set(&contracts, index, &contract_call.promise);
	}
	bpf_spin_unlock(&tree_lock);
	return error;
}

/* The thread contract_call.pid is to hold the contract, or none (name 0). */
static __always_inline s32 call_bind(void)
{
	u32 index = contract_call.name & 0xffff;
	struct task_struct *p = bpf_task_from_pid(contract_call.pid);
	struct task_state *ts;
	s32 error = -3; /* ESRCH */

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
			bpf_spin_lock(&tree_lock);
			if (call_means(index))
				contract_bind(ts, index);
			else
				error = -2;
			bpf_spin_unlock(&tree_lock);
		}
	}
	bpf_task_release(p);
	return error;
}

/* Ended contracts whose queues were not empty then are freed. */
static __always_inline s32 call_sweep(void)
{
	u32 index = 1, end = contracts.unused;

	an_while(index < end && index < AN_MAX_CONTRACTS) {
		bpf_spin_lock(&tree_lock);
		if (an_holder(index)->ended && an_contract(&contracts, index)->used)
			contract_end(index);
		bpf_spin_unlock(&tree_lock);
		index = an_opaque(index + 1);
	}
	return 0;
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
	default:
		return call_change();
	}
}

/* The queues of contracts that threads hold. A leaf may be made where no queue can be. */
static __always_inline s32 contract_queues_create(void)
{
	u32 index = 1;
	s32 error;

	an_contracts_init(&contracts, 0);
	an_while(index < AN_MAX_CONTRACTS) {
		error = scx_bpf_create_dsq(contract_queue(index), -1);
		if (error)
			return error;
		index = an_opaque(index + 1);
	}
	return 0;
}

#endif
