/* SPDX-License-Identifier: GPL-2.0 */
/* The invariants that hold at every step of the search for races. */
#include "race.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* How long a CPU may be idle while a task waits that it could run [ns]. What is parked is looked at
 * again after 0.1 ms, a contract's task waits for its CPU while others serve contracts. */
#define IDLE_BESIDE_WORK_NS (50 * MS)
/* How long anybody may wait [ns]: the watchdog's time is 20 s. */
#define WAITS_NS (10000 * MS)

static void fails(const char *what, u32 task)
{
	printf("race: %s (task %u) at step %llu, %.3f ms\n", what, task, (unsigned long long)steps,
	       (double)m.now_ns / 1e6);
	fflush(stdout);
#ifdef RACE_FUZZ
	abort();
#endif
	_exit(3);
}

static void check_task(struct task_struct *p)
{
	struct rq *rq = task_rq(p);
	bool runs = rq->curr == p;

	if (p->gone || p->class != CLASS_EXT || rq->locked || p->pi_locked)
		return;
	if (p->on_rq != !!(p->scx.flags & SCX_TASK_QUEUED))
		fails("a runnable task is known as such", p->number);
	if (p->on_rq && !runs && !p->in_transit && !p->scx.dsq)
		fails("a runnable task is in a queue or on a CPU", p->number);
	if (p->on_rq && p->cpus_ptr != &p->cpus_mask && !mask_test(p->cpus_ptr, p->cpu))
		fails("a pinned task keeps its CPU", p->number);
	if (runs && p->scx.dsq)
		fails("a task that runs is in no queue", p->number);
	if (p->on_rq && !runs && m.now_ns > p->scx.runnable_at_ns + WAITS_NS)
		fails("nobody waits for longer than the bound", p->number);
}

static u64 idle_since[MODEL_CPUS];

static bool waits_for(const struct task_struct *p, const struct rq *rq)
{
	return !p->gone && p->class == CLASS_EXT && p->on_rq && p->scx.dsq && !p->scx.dsq->local &&
	       p->scx.dsq != &task_rq(p)->bypass && task_allowed(p, rq->cpu) &&
	       model_refilled_ns(p->scx.dsq->id) + IDLE_BESIDE_WORK_NS < m.now_ns;
}

static void check_idle(struct rq *rq)
{
	bool waits = false;

	if (!rq->active || !task_is_idle(rq->curr) || cpu_has_something_to_do(rq) ||
	    !is_at_rest(rq->cpu)) {
		idle_since[rq->cpu] = 0;
		return;
	}
	for (u32 task = 0; !waits && task < m.task_count; task++)
		waits = waits_for(m.tasks[task], rq);
	if (!waits)
		idle_since[rq->cpu] = 0;
	else if (!idle_since[rq->cpu])
		idle_since[rq->cpu] = m.now_ns;
	else if (m.now_ns > idle_since[rq->cpu] + IDLE_BESIDE_WORK_NS)
		fails("no CPU is idle beside work that it may do", rq->cpu);
}

void check(void)
{
	bool quiet = true, under_lock = false;
	const char *broken;

	for (u32 cpu = 0; cpu < trial.cpus; cpu++) {
		quiet &= is_at_rest(cpu);
		under_lock |= m.rqs[cpu].under_lock;
		check_idle(&m.rqs[cpu]);
	}
	for (u32 task = 0; task < m.task_count; task++)
		check_task(m.tasks[task]);
	broken = under_lock || !m.loaded ? NULL : model_scheduler_broken(quiet);
	if (broken)
		fails(broken, 0);
	if (m.exits)
		fails(m.stats.message, 0);
}
