/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The shell of the core in the kernel: sched_ext callbacks in, queue moves and kicks out.
 *
 * Every class has one queue of the kernel's (a DSQ, ordered by start tag), numbered as its leaf in
 * the tree; which class is served
 * next is the core's decision. The callbacks and what they make of it:
 *
 *      enqueue     the task is runnable: tag it, count it in its class, put it in the class's queue
 *      dispatch    a CPU wants work: the next task of the class whose quantum it is; when that is
 *                  over, charge the class, pick another, and take the first task of its queue
 *      running     a task starts: one we took, or one the kernel chose itself
 *      stopping    it stops: charge it; its class is charged when the quantum is over
 *      cgroup_*    a class comes, goes, changes its weight, or a task changes class (classes.h)
 *
 * Contracts come before the tree in every dispatch (contracts.h).
 *
 * With a runnable previous task the kernel calls dispatch, then stopping and enqueue for that
 * task; so dispatch settles its account, and stopping finds nothing left to do.
 *
 * The tree is guarded by one spin lock, under which nothing of the kernel's may be called: read
 * time and storage first, decide under the lock, act after it. Between decision and act another
 * CPU may have taken the task; then the pick is given back and the next made without that class.
 */
#include "kfuncs.h"

#include "../core/core.h"
#include "intf.h"
#include <bpf/bpf_tracing.h>

struct an_tree tree;
struct an_stats stats;
struct an_exit exit_info;

#include "cpu.h"

char _license[] SEC("license") = "GPL";

/* Knobs, set by user space before loading. */
const volatile u64 quantum_ns = 2000000;      /* service of one pick */
const volatile u64 in_class_wake_ns = 200000; /* service before a classmate may preempt */
const volatile u32 contract_bound = 819;      /* of each CPU, for contracts [1/1024] */
const volatile u32 learn_bound = 512;	      /* of each CPU, for learnt ones [1/1024] */
const volatile u32 bindings = 1;	      /* servers work with their clients\' shares */
const volatile u32 nr_cpus = 1;		      /* possible CPUs; at most AN_MAX_CPUS */
const volatile u32 nr_cpus_online = 1;

static struct bpf_spin_lock tree_lock SEC(".bss.lock");

/*
 * A function that the verifier looks at once, for any arguments, and not at every call. For the
 * large ones; it may not be called with the lock held.
 */
#define an_global __attribute__((noinline))

/* What is kept per task. */
struct task_state {
	struct an_task sfq;
	u32 leaf;	/* its class; AN_NONE: to be looked up */
	u32 generation; /* of the leaf, when it was looked up */
	u32 contract;	/* that the thread holds: contract_name(); 0: none */
	u32 counted;	/* as active under this one: contract_name(); 0: under none */
	u32 slept;	/* has not been seen to wake since it went to sleep */
	u32 home;	/* its own class, while it is bound to another (binding.h); AN_NONE */
	u32 home_generation;
	u32 asked_by; /* process that has woken it with a request, unanswered so far; 0: none */
	struct an_learner learner;
	struct an_binding binding; /* the classes that it has served lately */
	u64 binding_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_state);
} task_states SEC(".maps");

static __always_inline bool cpus_idle(void)
{
	const struct cpumask *idle = scx_bpf_get_idle_cpumask();
	bool any = !bpf_cpumask_empty(idle);

	scx_bpf_put_idle_cpumask(idle);
	return any;
}

#include "binding.h"

#include "contracts.h"
#include "learn.h"

#include "classes.h"

/* ---- a task is runnable ---- */

/*
 * Queues a task that has a contract; false: it is to be queued in its class like any other. The
 * contract's CPU is told if there is news for it.
 */
static __always_inline bool contract_enqueue(struct task_struct *p, struct task_state *ts,
					     u32 contract, u32 leaf, u64 enq_flags)
{
	bool of_class = an_holder(contract)->leaf, news;
	bool takes = contract_takes(p, contract, scx_bpf_now());
	u64 owed_max = AN_TASK_DEBT_QUANTA * (quantum_ns << AN_TAG_SHIFT) * nr_cpus_online /
		       (p->scx.weight ? p->scx.weight : 1);
	u64 vtime = an_node(&tree, leaf)->vtime;

	if (of_class)
		cpu_state(bpf_get_smp_processor_id())->inserting = leaf;
	bpf_spin_lock(&tree_lock);
	news = contract_count(ts, contract);
	if (an_holder(contract)->missed) {
		contract_note(contract);
		news = true;
	}
	an_task_wake(vtime, &ts->sfq);
	an_task_debt_limit(vtime, &ts->sfq, owed_max);
	if (!takes)
		an_holder(contract)->waits_in = leaf;
	if (takes && of_class)
		an_queue_add(&tree, leaf);
	bpf_spin_unlock(&tree_lock);
	if (!takes) {
		return false;
	}
	an_kqueue(p, contract_queue(contract), quantum_ns, ts->sfq.start, enq_flags);
	if (news)
		contract_tells(contract);
	return true;
}

/* How many CPUs are looked at for one whose task should make way for a woken one. */
#define WAKE_SCAN_CPUS 16

/*
 * When the task that runs on this CPU should make way for the one just queued: when that much of
 * its quantum is used [ns], all of it at most.
 */
static __noinline u64 makes_way_after(struct cpu_state *c, u32 serving, u32 leaf, u64 tag, u64 now)
{
	u64 after;

	if (serving == leaf) {
		u64 used = now - c->since_ns, served = c->start_tag;
		u32 rem = 0;

		if (used < in_class_wake_ns)
			return quantum_ns;
		an_tag_charge(&served, &rem, used, c->weight);
		return an_tag_diff(tag, served) <= 0 ? 0 : quantum_ns;
	}
	bpf_spin_lock(&tree_lock);
	after = an_preempt_after_ns(&tree, leaf, serving);
	bpf_spin_unlock(&tree_lock);
	return after < quantum_ns ? after : quantum_ns;
}

/* Kicks the CPU if its task should make way for the woken one now. */
static __always_inline bool preempt_now(s32 cpu, struct cpu_state *c, u32 leaf, u64 used, u64 after)
{
	if (used < after)
		return false;
	c->check_ns = 0;
	c->over |= c->serving != leaf;
	stats.wake_preemptions++;
	scx_bpf_kick_cpu(cpu, an_kconst(scx_kick_flags, SCX_KICK_PREEMPT));
	return true;
}

/* The other CPUs that the woken task may use: does one of them run something that should yield? */
static __noinline void preempt_elsewhere(struct task_struct *p, u32 leaf, u64 tag, u64 now)
{
	s32 cpu = scx_bpf_task_cpu(p);
	u32 left = nr_cpus - 1 < WAKE_SCAN_CPUS ? nr_cpus - 1 : WAKE_SCAN_CPUS;

	an_while(left) {
		struct cpu_state *c;
		u32 serving;
		u64 used;

		left--;
		if (++cpu >= (s32)nr_cpus)
			cpu = 0;
		c = cpu_state(cpu);
		serving = c->serving;
		if (!c->running || !serving || !bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			continue;
		used = c->used_ns + now - c->since_ns;
		if (preempt_now(cpu, c, leaf, used, makes_way_after(c, serving, leaf, tag, now)))
			return;
	}
}

/* Finds a CPU for a task that is being queued: an idle one, or one whose task should make way. */
static __always_inline void find_cpu(struct task_struct *p, u32 leaf, u64 tag, bool woken)
{
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_state *c = cpu_state(cpu);
	u32 serving = c->serving;
	u64 now, used, after;

	if (nr_cpus > 1) {
		s32 idle = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);

		if (idle >= 0) {
			scx_bpf_kick_cpu(idle, an_kconst(scx_kick_flags, SCX_KICK_IDLE));
			return;
		}
	}
	if (!c->running || !serving)
		return;
	now = scx_bpf_now();
	used = c->used_ns + now - c->since_ns;
	after = woken ? makes_way_after(c, serving, leaf, tag, now) : quantum_ns;
	if (preempt_now(cpu, c, leaf, used, after))
		return;
	cpu_check_at(cpu, now, now + (after - used));
	if (nr_cpus > 1 && woken)
		preempt_elsewhere(p, leaf, tag, now);
}

/*
 * A thread of the kernel that belongs to this CPU, and wakes: it runs at once, for the rest of the
 * system waits for it. When it has had a slice it competes like any other.
 */
static __always_inline bool is_of_cpu(const struct task_struct *p, u64 enq_flags)
{
	return p->nr_cpus_allowed == 1 && (p->flags & PF_KTHREAD) &&
	       (p->flags & PF_NO_SETAFFINITY) &&
	       (enq_flags & an_kconst(scx_enq_flags, SCX_ENQ_WAKEUP));
}

SEC("struct_ops/andante_enqueue")
void BPF_PROG(andante_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_state *ts = bpf_task_storage_get(&task_states, p, 0, 0);
	u32 leaf, contract;

	if (!ts || is_of_cpu(p, enq_flags)) {
		scx_bpf_dsq_insert(p, an_kconst(scx_dsq_id_flags, SCX_DSQ_LOCAL), quantum_ns,
				   enq_flags | an_kconst(scx_enq_flags, SCX_ENQ_PREEMPT));
		return;
	}
	if (ts->slept)
		learn_wake(p, ts);
	leaf = task_leaf(p, ts);
	if (bindings && tree.classes > 1 && enq_flags & an_kconst(scx_enq_flags, SCX_ENQ_WAKEUP))
		leaf = binding_wake(p, ts, leaf);
	else if (bindings && ts->asked_by && !ts->home)
		leaf = binding_awake(ts, leaf);
	contract = task_contract(ts, leaf);
	if (contract && contract_enqueue(p, ts, contract, leaf, enq_flags))
		return;
	/* Before it is counted, or queue_check() on another CPU would find it missing. */
	cpu_state(bpf_get_smp_processor_id())->inserting = leaf;
	bpf_spin_lock(&tree_lock);
	an_queue_add(&tree, leaf);
	an_task_wake(an_node(&tree, leaf)->vtime, &ts->sfq);
	bpf_spin_unlock(&tree_lock);
	an_kqueue(p, leaf, quantum_ns, ts->sfq.start, enq_flags);
	find_cpu(p, leaf, ts->sfq.start, enq_flags & an_kconst(scx_enq_flags, SCX_ENQ_WAKEUP));
}

/* ---- a CPU wants work ---- */

/* How far into a queue to look for a task that may run on a certain CPU. */
#define QUEUE_LOOK 8

/* Sets head_tag of the CPU to that of the first task in the queue that it may run; false: none. */
an_global bool queue_head(u32 cpu, u64 queue)
{
	struct bpf_iter_scx_dsq it;
	struct task_struct *p;
	u32 looks = QUEUE_LOOK;
	bool found = false;

	bpf_iter_scx_dsq_new(&it, queue, 0);
	an_while(looks--) {
		p = bpf_iter_scx_dsq_next(&it);
		if (!p)
			break;
		if (nr_cpus == 1 || bpf_cpumask_test_cpu(cpu, p->cpus_ptr)) {
			cpu_state(cpu)->head_tag = p->scx.dsq_vtime;
			found = true;
			break;
		}
	}
	bpf_iter_scx_dsq_destroy(&it);
	return found;
}

/*
 * While this CPU held the pick of a class it cannot serve, a CPU that can may have found nothing
 * and gone idle: wake it.
 */
an_global int kick_for_queue(u64 queue)
{
	struct bpf_iter_scx_dsq it;
	struct task_struct *p;
	u32 looks = QUEUE_LOOK;

	bpf_iter_scx_dsq_new(&it, queue, 0);
	an_while(looks--) {
		s32 idle;

		p = bpf_iter_scx_dsq_next(&it);
		if (!p)
			break;
		idle = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
		if (idle >= 0)
			scx_bpf_kick_cpu(idle, an_kconst(scx_kick_flags, SCX_KICK_IDLE));
	}
	bpf_iter_scx_dsq_destroy(&it);
	return 0;
}

/*
 * This CPU has taken a task, perhaps not the one it was woken for. If tasks are left and CPUs are
 * idle, wake those.
 */
an_global int kick_idle_cpus(void)
{
	bool any = cpus_idle();
	u32 cpu = 0;

	an_while(any && cpu < nr_cpus) {
		if (scx_bpf_test_and_clear_cpu_idle(cpu))
			scx_bpf_kick_cpu(cpu, an_kconst(scx_kick_flags, SCX_KICK_IDLE));
		cpu++;
	}
	return 0;
}

/*
 * A queue that looked non-empty gave no task. Either it holds only tasks that may not run here, or
 * tasks were taken out sideways (a change of class, of affinity, of scheduling policy) and its
 * length is wrong. It is put right when nobody can be in the middle of adding to it.
 */
an_global int queue_check(u32 leaf)
{
	struct an_node *n = an_node(&tree, leaf);
	u32 events = n->queue_events, cpu = 0;
	s32 queued = scx_bpf_dsq_nr_queued(leaf);

	if (queued < 0)
		return 0;
	an_while(cpu < nr_cpus) {
		if (cpu_state(cpu)->inserting == leaf)
			return 0;
		cpu++;
	}
	bpf_spin_lock(&tree_lock);
	if (events == n->queue_events && (u32)queued < n->queued) {
		an_queue_correct(&tree, leaf, queued);
		stats.corrected++;
	}
	bpf_spin_unlock(&tree_lock);
	return 0;
}

/* A task of the running one's own class takes its place in the same quantum, if there is one. */
static __always_inline bool take_classmate(struct cpu_state *c)
{
	u32 leaf = c->serving;
	bool queued;

	bpf_spin_lock(&tree_lock);
	queued = an_continue(&tree, leaf);
	bpf_spin_unlock(&tree_lock);
	if (!queued)
		return false;
	if (an_kmove_to_local(leaf))
		return true;
	bpf_spin_lock(&tree_lock);
	an_queue_add(&tree, leaf);
	bpf_spin_unlock(&tree_lock);
	queue_check(leaf);
	return false;
}

/*
 * The quantum in progress, if any, is over. Picks the next class; its quantum begins. A task of the
 * class wanting (if not AN_NONE) goes on wanting to run: it counts as queued in the competition.
 */
an_global u32 next_quantum(u32 cpu, u32 wanting)
{
	struct cpu_state *c = cpu_state(cpu);
	u32 leaf;

	bpf_spin_lock(&tree_lock);
	if (wanting)
		an_queue_add(&tree, wanting);
	if (c->serving)
		an_stop(&tree, c->serving, c->used_ns);
	leaf = an_pick(&tree, &c->excluded);
	if (wanting && leaf != wanting)
		an_queue_withdraw(&tree, wanting);
	bpf_spin_unlock(&tree_lock);
	c->serving = leaf;
	c->used_ns = 0;
	c->over = 0;
	if (contracts.count)
		c->tree_ns = scx_bpf_now();
	return leaf;
}

/*
 * Takes a task of the class that has been picked. If it has none that may run here, the pick is
 * given back and another one is made, until there is a task, the class wanting is picked (its task
 * goes on), or nothing is left to pick. True if a task was taken.
 */
an_global bool take_task(u32 cpu, u32 wanting)
{
	struct cpu_state *c = cpu_state(cpu);
	struct an_exclusion *x = &c->excluded;

	an_while(c->serving) {
		u32 leaf = c->serving;

		if (an_kmove_to_local(leaf)) {
			stats.picks++;
			if (nr_cpus > 1 && an_node(&tree, AN_ROOT)->ready)
				kick_idle_cpus();
			return true;
		}
		stats.missed_picks++;
		bpf_spin_lock(&tree_lock);
		an_unpick(&tree, leaf);
		bpf_spin_unlock(&tree_lock);
		c->serving = AN_NONE;
		queue_check(leaf);
		if (nr_cpus > 1)
			kick_for_queue(leaf);
		if (x->count >= AN_MAX_EXCLUDED)
			return false;
		x->leaf[an_bounded(x->count, AN_MAX_EXCLUDED)] = leaf;
		x->count++;
		if (next_quantum(cpu, wanting) == wanting)
			return false;
	}
	return false;
}

/* A task of the class whose quantum it is starts to run, or goes on. */
static __always_inline void service_begins(struct cpu_state *c, s32 cpu, struct task_struct *p,
					   const struct task_state *ts)
{
	u64 now = scx_bpf_now();

	c->since_ns = now;
	c->since_sum_ns = p->se.sum_exec_runtime;
	c->start_tag = ts->sfq.start;
	c->weight = p->scx.weight;
	c->running = 1;
	c->check_ns = 0;
	if (!contract_of_thread(c->contract))
		an_task_serve(&an_node(&tree, c->serving)->vtime, &ts->sfq);
	if (c->contract ? contract_shares(c) : an_node(&tree, AN_ROOT)->ready)
		cpu_check_at(cpu, now, now + quantum_ns - c->used_ns);
	if (contracts.count && c->contract_check_ns != AN_NEVER)
		cpu_check_at(cpu, now, c->contract_check_ns);
}

/* The running task stops, or its slice does: it is charged, and so is the quantum of its class. */
static __always_inline void service_ends(struct cpu_state *c, struct task_struct *p,
					 struct task_state *ts)
{
	u64 used = p->se.sum_exec_runtime - c->since_sum_ns;

	c->used_ns += used;
	if (c->contract) {
		c->contract_ns += used;
		c->charged = c->contract;
	}
	c->running = 0;
	c->check_ns = 0;
	an_task_charge(&ts->sfq, used, p->scx.weight);
	learn_ran(ts, used);
}

static __always_inline bool quantum_over(const struct cpu_state *c)
{
	return c->over || c->used_ns >= quantum_ns;
}

/* Does this task, which wants to go on, come before all of its class that are queued? */
static __always_inline bool comes_first(struct cpu_state *c, s32 cpu, u32 leaf,
					const struct task_state *ts)
{
	return !an_node(&tree, leaf)->queued || !queue_head(cpu, leaf) ||
	       an_tag_diff(ts->sfq.start, c->head_tag) <= 0;
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
static __always_inline enum slice_end slice_ends(struct cpu_state *c, s32 cpu, u32 leaf,
						 const struct task_state *ts)
{
	bool first = comes_first(c, cpu, leaf, ts);

	if (!quantum_over(c))
		return !first && take_classmate(c) ? REPLACED : GOES_ON;
	if (next_quantum(cpu, leaf) != leaf)
		return PICKED;
	if (first)
		return GOES_ON;
	/* The pick stands for the classmate; prev is queued when the kernel says so. */
	bpf_spin_lock(&tree_lock);
	an_queue_withdraw(&tree, leaf);
	bpf_spin_unlock(&tree_lock);
	return PICKED;
}

/* The task that runs on this CPU goes on. */
static __always_inline void keep(struct cpu_state *c, s32 cpu, struct task_struct *prev,
				 const struct task_state *ts)
{
	stats.kept++;
	an_kset_slice(prev, quantum_ns);
	service_begins(c, cpu, prev, ts);
}

enum contract_turn {
	CONTRACT_GOES_ON, /* prev runs on, under its contract */
	CONTRACT_TAKEN,	  /* a task has been taken under its contract */
	TREES_TURN,	  /* no contract has anything to run here */
};

/* The contracts of this CPU come first. A task of the leaf old wants to go on if ts says so. */
static __always_inline enum contract_turn contract_turn(struct cpu_state *c, s32 cpu, u32 old,
							const struct task_state *ts)
{
	u32 held = ts ? contract_named(ts->contract) : AN_NONE, goes_on = held, index;
	u32 wanting = AN_NONE;

	if (ts && (held || comes_first(c, cpu, old, ts)))
		wanting = old;
	if (wanting && !held)
		goes_on = task_contract(ts, old);
	index = contract_continues(c) ? contract_again(c, wanting, goes_on) : AN_NONE;
	an_while(index || (index = contract_pick(cpu, wanting, goes_on))) {
		if (index == goes_on)
			return CONTRACT_GOES_ON;
		if (an_kmove_to_local(contract_queue(index))) {
			stats.contract_picks++;
			if (nr_cpus > 1 && an_node(&tree, AN_ROOT)->ready)
				kick_idle_cpus();
			return CONTRACT_TAKEN;
		}
		contract_missed(cpu, index);
		index = AN_NONE;
	}
	return TREES_TURN;
}

SEC("struct_ops/andante_dispatch")
void BPF_PROG(andante_dispatch, s32 cpu, struct task_struct *prev)
{
	struct cpu_state *c = cpu_state(cpu);
	struct task_state *ts = NULL;
	u32 old = c->serving;

	c->inserting = AN_NONE;
	c->excluded.count = 0;
	if (old && prev && (prev->scx.flags & an_kconst(scx_ent_flags, SCX_TASK_QUEUED)))
		ts = bpf_task_storage_get(&task_states, prev, 0, 0);
	if (ts && c->running)
		service_ends(c, prev, ts);
	if (ts && an_node(&tree, old)->kind != AN_LEAF)
		ts = NULL; /* it was bound to a class that is no more: enqueue finds it another */
	if (contracts.count) {
		enum contract_turn turn = contract_turn(c, cpu, old, ts);

		if (turn == CONTRACT_GOES_ON)
			keep(c, cpu, prev, ts);
		if (turn != TREES_TURN)
			return;
	}
	if (ts) {
		enum slice_end end = slice_ends(c, cpu, old, ts);

		if (end == GOES_ON)
			keep(c, cpu, prev, ts);
		if (end != PICKED)
			return;
	} else {
		if (c->serving && !quantum_over(c) && take_classmate(c))
			return;
		if (!c->serving && !an_node(&tree, AN_ROOT)->ready) {
			if (contracts.count && c->contract_check_ns != AN_NEVER)
				cpu_check_at(cpu, scx_bpf_now(), c->contract_check_ns);
			return;
		}
		next_quantum(cpu, AN_NONE);
	}
	if (take_task(cpu, ts ? old : AN_NONE) || !ts)
		return;
	/* Its turn has come, or nothing else may run here; then the kernel goes on with it too. */
	if (c->serving != old) {
		bpf_spin_lock(&tree_lock);
		an_serve_unpicked(&tree, old);
		bpf_spin_unlock(&tree_lock);
		c->serving = old;
	}
	keep(c, cpu, prev, ts);
}

/* ---- a task starts and stops ---- */

SEC("struct_ops/andante_running")
void BPF_PROG(andante_running, struct task_struct *p)
{
	struct task_state *ts = bpf_task_storage_get(&task_states, p, 0, 0);
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_state *c = cpu_state(cpu);
	u32 leaf, contract, old = c->serving;

	if (!ts)
		return;
	if (ts->slept)
		learn_wake(p, ts);
	leaf = task_leaf(p, ts);
	contract = task_contract(ts, leaf);
	if (contract != (c->contract & 0xffff))
		c->contract = 0;
	if (old != leaf) {
		/* It runs under its contract, an idle CPU took it, or the kernel put it here. */
		bpf_spin_lock(&tree_lock);
		if (old) {
			an_stop(&tree, old, c->used_ns);
			if (contracts.count)
				an_debt_limit(&tree, old);
		}
		an_serve_unpicked(&tree, leaf);
		an_task_wake(an_node(&tree, leaf)->vtime, &ts->sfq);
		bpf_spin_unlock(&tree_lock);
		c->serving = leaf;
		c->used_ns = 0;
		c->over = !c->contract; /* it was given no quantum: the next choice is the tree's */
		stats.unpicked_runs += !c->contract;
		if (p->scx.slice > quantum_ns)
			an_kset_slice(p, quantum_ns);
	}
	if (contract && !c->contract)
		contract_unpicked(ts, cpu, contract);
	service_begins(c, cpu, p, ts);
}

SEC("struct_ops/andante_stopping")
void BPF_PROG(andante_stopping, struct task_struct *p, bool runnable)
{
	struct cpu_state *c = cpu_state(scx_bpf_task_cpu(p));
	struct task_state *ts;

	if (!c->running)
		return; /* dispatch has settled it */
	ts = bpf_task_storage_get(&task_states, p, 0, 0);
	if (!ts)
		return;
	service_ends(c, p, ts);
	if (!runnable) {
		ts->slept = 1;
		contract_uncount(ts);
	}
}

/* ---- the scheduler as a whole ---- */

SEC("struct_ops/andante_cpu_online")
void BPF_PROG(andante_cpu_online, s32 cpu)
{
	cpu_state(cpu)->gone = 0;
	bpf_spin_lock(&tree_lock);
	tree.cpus++;
	bpf_spin_unlock(&tree_lock);
}

SEC("struct_ops/andante_cpu_offline")
void BPF_PROG(andante_cpu_offline, s32 cpu)
{
	struct cpu_state *c = cpu_state(cpu);
	u32 serving = c->serving;

	c->serving = AN_NONE;
	c->running = 0;
	c->gone = 1;
	bpf_spin_lock(&tree_lock);
	if (tree.cpus > 1)
		tree.cpus--;
	if (serving)
		an_stop(&tree, serving, c->used_ns);
	bpf_spin_unlock(&tree_lock);
	if (contracts.count) {
		contracts_leave(cpu);
		kick_idle_cpus();
	}
}

SEC("struct_ops.s/andante_init")
s32 BPF_PROG(andante_init)
{
	u32 cpu = 0;
	s32 err;

	an_tree_init(&tree, quantum_ns, nr_cpus_online);
	err = contract_queues_create();
	if (err)
		return err;
	err = scx_bpf_create_dsq(AN_ROOT_LEAF, -1);
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
	bpf_probe_read_kernel_str(exit_info.reason, AN_EXIT_TEXT, info->reason);
	bpf_probe_read_kernel_str(exit_info.message, AN_EXIT_TEXT, info->msg);
	exit_info.code = info->exit_code;
	exit_info.left = 1;
}

SEC(".struct_ops.link")
struct sched_ext_ops andante_ops = {
	.enqueue = (void *)andante_enqueue,
	.dispatch = (void *)andante_dispatch,
	.running = (void *)andante_running,
	.stopping = (void *)andante_stopping,
	.init_task = (void *)andante_init_task,
	.exit_task = (void *)andante_exit_task,
	.enable = (void *)andante_enable,
	.disable = (void *)andante_disable,
	.cgroup_init = (void *)andante_cgroup_init,
	.cgroup_exit = (void *)andante_cgroup_exit,
	.cgroup_move = (void *)andante_cgroup_move,
	.cgroup_set_weight = (void *)andante_cgroup_set_weight,
	.cpu_online = (void *)andante_cpu_online,
	.cpu_offline = (void *)andante_cpu_offline,
	.init = (void *)andante_init,
	.exit = (void *)andante_exit,
	/* The kernel runs them at once otherwise, for the milliseconds that a large one needs. */
	.flags = SCX_OPS_ENQ_EXITING,
	.timeout_ms = 20000,
	.name = "andante",
};
