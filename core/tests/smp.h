/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A model of how the kernel drives the core on several CPUs, event by event, with the gaps in
 * which things go wrong:
 *
 *      enqueue     the class is told first (an_queue_add()); the task is in the kernel's queue only
 *                  some time after. A CPU that picks in between finds nothing.
 *      dispatch    a CPU claims a class (an_pick()) and takes the task some time after. Other CPUs
 *                  pick in between.
 *      goes on     with a runnable previous task, dispatch charges it and lets its class compete in
 *                  every pick; only when another task has been taken is it enqueued.
 *      blocks      a classmate takes over within the quantum, if there is one (an_continue()).
 *      no task     for this CPU in the class picked: the pick is given back, and the next made
 *                  without that class. A new arrival makes the CPU look again.
 *
 * An idle CPU is called when a task arrives that it may run, and again after every claim of
 * another CPU that may have come in between. smp_check(), after every event:
 * the tree's invariants; no CPU idles beside a queued task that it may run, for longer than a
 * dispatch may take (another CPU may be on its way for that task); the counts of the tree
 * are those of the queues.
 */
#ifndef ANDANTE_TESTS_SMP_H
#define ANDANTE_TESTS_SMP_H

#include "fixture.h"
#include "random.h"

#define SMP_CPUS 8
#define SMP_TASKS 64
#define SMP_NOBODY SMP_TASKS
#define SMP_NEVER (~0ULL)
#define QUANTUM_NS (4 * MS)
#define JITTER_NS 2000 /* between what the tree is told and what the queue holds, at most */
#define DISPATCH_MAX_NS (SMP_CPUS * (AN_MAX_EXCLUDED + 1) * JITTER_NS)

enum smp_state {
	SMP_BLOCKED,   /* until event_ns */
	SMP_INSERTING, /* counted in its class, in the queue from event_ns on */
	SMP_QUEUED,
	SMP_RUNNING,
};

struct smp_task {
	enum smp_state state;
	u32 leaf;
	u32 block_percent; /* quanta that end early by blocking */
	u64 allowed;	   /* CPUs, one bit each */
	u64 event_ns;
	struct an_task sfq;
};

struct smp_cpu {
	u32 task;  /* running; while claiming, the previous one if it is still runnable */
	u32 claim; /* leaf picked and not yet taken from */
	bool blocks;
	bool kicked; /* something arrived during a dispatch */
	bool called; /* no longer idle: it will dispatch */
	u64 since_ns;
	u64 used_ns;		 /* of the quantum of the class */
	u64 event_ns;		 /* end of the quantum or of the claim */
	u64 idle_beside_work_ns; /* since when */
	struct an_exclusion passed_over;
};

struct smp {
	struct random random;
	u64 now_ns;
	u32 cpus, tasks;
	bool exact; /* the tree's queue lengths are never too large */
	struct smp_cpu cpu[SMP_CPUS];
	struct smp_task task[SMP_TASKS];
	u64 served_until_ns[AN_MAX_NODES]; /* when a task of the leaf last stopped */
	u64 longest_gap_ns[AN_MAX_NODES];  /* without service, of the leaf */
};

static struct smp smp;

static void smp_dispatch(u32 cpu);

static inline bool smp_may_run(const struct smp_task *task, u32 cpu)
{
	return task->allowed >> cpu & 1;
}

static inline bool smp_is_idle(const struct smp_cpu *c)
{
	return c->task == SMP_NOBODY && !c->claim && !c->called;
}

static void smp_begin(u64 seed, u32 cpus)
{
	test_scenario(seed);
	memset(&smp, 0, sizeof(smp));
	smp.random.state = seed;
	smp.cpus = cpus;
	smp.exact = true;
	for (u32 cpu = 0; cpu < cpus; cpu++)
		smp.cpu[cpu] = (struct smp_cpu){.task = SMP_NOBODY,
						.event_ns = SMP_NEVER,
						.idle_beside_work_ns = SMP_NEVER};
	begin(QUANTUM_NS, cpus);
}

/* A task that wakes at once. Returns its number. */
static u32 smp_task(u32 leaf, u64 allowed, u32 block_percent)
{
	CHECK(smp.tasks < SMP_TASKS);
	smp.task[smp.tasks] = (struct smp_task){.state = SMP_BLOCKED,
						.leaf = leaf,
						.allowed = allowed,
						.block_percent = block_percent,
						.event_ns = smp.now_ns,
						.sfq.fresh = 1};
	return smp.tasks++;
}

/* ---- a task arrives ---- */

static void smp_enqueue(struct smp_task *task)
{
	an_queue_add(&tree, task->leaf);
	an_task_wake(an_node(&tree, task->leaf)->vtime, &task->sfq);
	task->state = SMP_INSERTING;
	task->event_ns = smp.now_ns + random_below(&smp.random, JITTER_NS);
}

/* Sends an idle CPU for the task, if there is one. */
static bool smp_call_idle(const struct smp_task *task)
{
	for (u32 cpu = 0; cpu < smp.cpus; cpu++) {
		struct smp_cpu *c = &smp.cpu[cpu];

		if (smp_is_idle(c) && smp_may_run(task, cpu)) {
			c->called = true;
			c->event_ns = smp.now_ns + random_below(&smp.random, JITTER_NS);
			return true;
		}
	}
	return false;
}

/* In the queue at last. If all CPUs are busy, one that is just looking must look again. */
static void smp_inserted(struct smp_task *task)
{
	task->state = SMP_QUEUED;
	task->event_ns = SMP_NEVER;
	if (smp_call_idle(task))
		return;
	for (u32 cpu = 0; cpu < smp.cpus; cpu++)
		smp.cpu[cpu].kicked |= smp_may_run(task, cpu);
}

/* The CPUs a task may use change. One that is queued is put in again, behind the tree's back. */
static void smp_allow(u32 number, u64 allowed)
{
	struct smp_task *task = &smp.task[number];

	task->allowed = allowed;
	smp.exact = false;
	if (task->state == SMP_QUEUED)
		smp_enqueue(task);
}

/* ---- a CPU runs a task ---- */

/* The task runs for what is left of its class's quantum, unless it blocks before. */
static void smp_serve(u32 cpu, u32 number)
{
	struct smp_cpu *c = &smp.cpu[cpu];
	struct smp_task *task = &smp.task[number];
	u64 length_ns = QUANTUM_NS - c->used_ns;

	CHECK(node(task->leaf)->serving > 0);
	an_task_serve(&an_node(&tree, task->leaf)->vtime, &task->sfq);
	task->state = SMP_RUNNING;
	task->event_ns = SMP_NEVER;
	c->blocks = random_chance(&smp.random, task->block_percent);
	if (c->blocks)
		length_ns = 1 + random_below(&smp.random, length_ns);
	c->task = number;
	c->claim = AN_NONE;
	c->since_ns = smp.now_ns;
	c->event_ns = smp.now_ns + length_ns;
}

/* The task begins a quantum of its class, which the CPU has been counted for. */
static void smp_quantum(u32 cpu, u32 number)
{
	u32 leaf = smp.task[number].leaf;
	u64 gap_ns = smp.now_ns - smp.served_until_ns[leaf];

	if (node(leaf)->serving == 1 && gap_ns > smp.longest_gap_ns[leaf])
		smp.longest_gap_ns[leaf] = gap_ns;
	smp.cpu[cpu].used_ns = 0;
	smp_serve(cpu, number);
}

static void smp_charge(struct smp_cpu *c)
{
	struct smp_task *task = &smp.task[c->task];
	u64 used_ns = smp.now_ns - c->since_ns;

	c->used_ns += used_ns;
	an_task_charge(&task->sfq, used_ns, 1024);
	smp.served_until_ns[task->leaf] = smp.now_ns;
}

/* The first task in the leaf's queue, by start tag, that this CPU may run. */
static u32 smp_queue_head(u32 leaf, u32 cpu)
{
	u32 best = SMP_NOBODY;

	for (u32 i = 0; i < smp.tasks; i++) {
		const struct smp_task *task = &smp.task[i];

		if (task->state != SMP_QUEUED || task->leaf != leaf || !smp_may_run(task, cpu))
			continue;
		if (best == SMP_NOBODY ||
		    an_tag_diff(task->sfq.start, smp.task[best].sfq.start) < 0)
			best = i;
	}
	return best;
}

/* ---- a CPU looks for work ---- */

static void smp_claim(u32 cpu, u32 leaf)
{
	smp.cpu[cpu].claim = leaf;
	smp.cpu[cpu].event_ns = smp.now_ns + random_below(&smp.random, JITTER_NS);
}

/* Nothing to run but the previous task, if any. */
static void smp_found_nothing(u32 cpu)
{
	struct smp_cpu *c = &smp.cpu[cpu];

	c->claim = AN_NONE;
	c->event_ns = SMP_NEVER;
	if (c->task != SMP_NOBODY) {
		an_serve_unpicked(&tree, smp.task[c->task].leaf);
		smp_quantum(cpu, c->task);
	} else if (c->kicked) {
		smp_dispatch(cpu);
	}
}

/* The queue gave nothing: is it shorter than the tree believes? */
static void smp_check_queue(u32 leaf)
{
	u32 queued = 0;

	for (u32 i = 0; i < smp.tasks; i++) {
		if (smp.task[i].leaf == leaf && smp.task[i].state == SMP_INSERTING)
			return;
		queued += smp.task[i].leaf == leaf && smp.task[i].state == SMP_QUEUED;
	}
	an_queue_correct(&tree, leaf, queued);
}

/*
 * Picks with the previous task, still runnable, in the competition. If its class wins, and it is
 * the first of its class, it goes on; otherwise it is not to be picked before it is enqueued.
 */
static void smp_pick(u32 cpu)
{
	struct smp_cpu *c = &smp.cpu[cpu];
	const struct smp_task *task = &smp.task[c->task];
	u32 rival = AN_NONE, picked;
	bool first;

	if (c->task == SMP_NOBODY) {
		picked = an_pick(&tree, &c->passed_over);
	} else {
		/* Queued, but picked by another CPU already, is no rival. */
		rival = node(task->leaf)->queued ? smp_queue_head(task->leaf, cpu) : SMP_NOBODY;
		first = rival == SMP_NOBODY ||
			an_tag_diff(task->sfq.start, smp.task[rival].sfq.start) <= 0;
		an_queue_add(&tree, task->leaf);
		if (!c->claim)
			an_stop(&tree, task->leaf, c->used_ns);
		picked = an_pick(&tree, &c->passed_over);
		if (picked == task->leaf && first) {
			smp_quantum(cpu, c->task);
			return;
		}
		an_queue_withdraw(&tree, task->leaf);
	}
	if (picked)
		smp_claim(cpu, picked);
	else
		smp_found_nothing(cpu);
}

static void smp_dispatch(u32 cpu)
{
	smp.cpu[cpu].kicked = smp.cpu[cpu].called = false;
	smp.cpu[cpu].passed_over.count = 0;
	smp_pick(cpu);
}

/* The claim has found nothing that may run here. */
static void smp_claim_fails(u32 cpu)
{
	struct smp_cpu *c = &smp.cpu[cpu];

	an_unpick(&tree, c->claim);
	smp_check_queue(c->claim);
	if (c->passed_over.count == AN_MAX_EXCLUDED) {
		smp_found_nothing(cpu);
		return;
	}
	c->passed_over.leaf[c->passed_over.count++] = c->claim;
	smp_pick(cpu);
}

/*
 * The CPU may have been called for another task than it took, or have held the claim on a task
 * that a CPU called for it could then not find. Both are called for again.
 */
static void smp_claim_ends(u32 cpu)
{
	struct smp_cpu *c = &smp.cpu[cpu];
	u32 number = smp_queue_head(c->claim, cpu);

	if (number == SMP_NOBODY) {
		smp_claim_fails(cpu);
	} else {
		if (c->task != SMP_NOBODY)
			smp_enqueue(&smp.task[c->task]);
		smp_quantum(cpu, number);
	}
	for (u32 i = 0; i < smp.tasks; i++)
		if (smp.task[i].state == SMP_QUEUED)
			smp_call_idle(&smp.task[i]);
}

/* A task of the same leaf takes over within the quantum. */
static bool smp_classmate(u32 cpu, u32 leaf)
{
	u32 number = smp_queue_head(leaf, cpu);

	if (smp.cpu[cpu].used_ns >= QUANTUM_NS || !an_continue(&tree, leaf))
		return false;
	if (number == SMP_NOBODY) {
		an_queue_add(&tree, leaf);
		smp_check_queue(leaf);
		return false;
	}
	smp_serve(cpu, number);
	return true;
}

static void smp_blocks(u32 cpu)
{
	struct smp_cpu *c = &smp.cpu[cpu];
	struct smp_task *task = &smp.task[c->task];

	task->state = SMP_BLOCKED;
	task->event_ns = smp.now_ns + random_below(&smp.random, 2 * QUANTUM_NS);
	c->task = SMP_NOBODY;
	if (smp_classmate(cpu, task->leaf))
		return;
	an_stop(&tree, task->leaf, c->used_ns);
	smp_dispatch(cpu);
}

/* The running task's time is up. */
static void smp_service_ends(u32 cpu)
{
	struct smp_cpu *c = &smp.cpu[cpu];

	smp_charge(c);
	if (c->blocks)
		smp_blocks(cpu);
	else
		smp_dispatch(cpu);
}

/* ---- time ---- */

static void smp_check_leaf(u32 leaf)
{
	u32 queued = 0, serving = 0, claims = 0;
	const struct an_node *n = node(leaf);

	for (u32 i = 0; i < smp.tasks; i++) {
		const struct smp_task *task = &smp.task[i];

		queued += task->leaf == leaf &&
			  (task->state == SMP_QUEUED || task->state == SMP_INSERTING);
	}
	for (u32 i = 0; i < smp.cpus; i++) {
		const struct smp_cpu *c = &smp.cpu[i];

		claims += c->claim == leaf;
		serving += !c->claim && c->task != SMP_NOBODY && smp.task[c->task].leaf == leaf;
	}
	CHECK_EQ(n->serving, serving + claims);
	CHECK(n->queued + claims >= queued);
	if (smp.exact)
		CHECK_EQ(n->queued + claims, queued);
}

/* An idle CPU beside a task that it may run, for longer than another CPU needs to come for it? */
static void smp_check_work(u32 cpu)
{
	struct smp_cpu *c = &smp.cpu[cpu];
	bool beside_work = false;

	for (u32 i = 0; i < smp.tasks; i++)
		beside_work |= smp.task[i].state == SMP_QUEUED && smp_may_run(&smp.task[i], cpu);
	if (!smp_is_idle(c) || !beside_work)
		c->idle_beside_work_ns = SMP_NEVER;
	else if (c->idle_beside_work_ns == SMP_NEVER)
		c->idle_beside_work_ns = smp.now_ns;
	else
		CHECK(smp.now_ns - c->idle_beside_work_ns <= DISPATCH_MAX_NS);
}

static void smp_check(void)
{
	CHECK_INVARIANTS(&tree, &invariants);
	for (u32 leaf = AN_ROOT_LEAF; leaf < tree.unused; leaf++)
		if (node(leaf)->kind == AN_LEAF)
			smp_check_leaf(leaf);
	for (u32 cpu = 0; cpu < smp.cpus; cpu++)
		smp_check_work(cpu);
}

/* Handles the next event not after until_ns; false if there is none. */
static bool smp_step(u64 until_ns)
{
	struct smp_task *task = NULL;
	u64 next_ns = SMP_NEVER;
	u32 cpu = SMP_CPUS;

	for (u32 i = 0; i < smp.cpus; i++) {
		if (smp.cpu[i].event_ns < next_ns) {
			next_ns = smp.cpu[i].event_ns;
			cpu = i;
		}
	}
	for (u32 i = 0; i < smp.tasks; i++) {
		if (smp.task[i].event_ns < next_ns) {
			next_ns = smp.task[i].event_ns;
			task = &smp.task[i];
		}
	}
	if (next_ns > until_ns)
		return false;
	smp.now_ns = next_ns;
	if (task && task->state == SMP_BLOCKED)
		smp_enqueue(task);
	else if (task)
		smp_inserted(task);
	else if (smp.cpu[cpu].called)
		smp_dispatch(cpu);
	else if (smp.cpu[cpu].claim)
		smp_claim_ends(cpu);
	else
		smp_service_ends(cpu);
	return true;
}

static void smp_run(u64 length_ns)
{
	u64 until_ns = smp.now_ns + length_ns;

	while (smp_step(until_ns))
		smp_check();
	smp.now_ns = until_ns;
}

#endif
