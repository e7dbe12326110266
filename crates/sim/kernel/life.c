/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Machines and tasks come and go: fork, wake-ups, exit; what user space may call (sim.h). What is
 * changed about tasks and classes is change.c's and migrate.c's.
 */
#include "model.h"

#include <stdio.h>
#include <string.h>

/* ---- a machine begins ---- */

static void rq_init(u32 cpu)
{
	struct rq *rq = &m.rqs[cpu];

	rq->cpu = cpu;
	rq->active = rq->online = true;
	rq->local.local = true;
	rq->next_tick_ns = rq->hrtick_ns = MODEL_NEVER;
	rq->fair.rq = rq;
	server_init(rq);
	rq->next_class = CLASS_IDLE;
	rq->idle = (struct task_struct){.class = CLASS_IDLE,
					.life = TASK_RUNNABLE,
					.number = ~0U,
					.cpu = cpu,
					.flags = PF_KTHREAD,
					.work_ns = MODEL_NEVER};
	rq->stopper = (struct task_struct){.class = CLASS_DEADLINE,
					   .life = TASK_RUNNABLE,
					   .number = ~0U,
					   .cpu = cpu,
					   .ran_on = cpu,
					   .flags = PF_KTHREAD,
					   .work_ns = MODEL_NEVER};
	rq->curr = &rq->idle;
	mask_set(&rq->mask_of_cpu, cpu);
	rq->idle.cpus_ptr = rq->stopper.cpus_ptr = &rq->mask_of_cpu;
}

void sim_begin(const struct sim_options *options, const struct sim_costs *costs)
{
	m.options = *options;
	m.costs = *costs;
	model_assert(options->cpus && options->cpus <= MODEL_CPUS);
	for (u32 cpu = 0; cpu < options->cpus; cpu++)
		rq_init(cpu);
	topology_begins();
	idle_begins();
	cgroup_new(NULL, 100);
	if (!options->load)
		return;
	sim_load();
}

/* ---- fork and exit ---- */

static u32 task_place(void)
{
	model_room_for(m.tasks, m.task_count, m.task_room);
	return m.task_count++;
}

/* copy_process(): scx_fork(), scx_post_fork() */
u32 sim_fork(const struct sim_task *how)
{
	struct task_struct *p = calloc(1, sizeof(*p));

	model_assert(p);
	fork_begins();
	p->number = task_place();
	m.tasks[p->number] = p;
	p->pid = (int)p->number + 1;
	p->tgid = how->process_of == ~0U ? p->pid : task_of(how->process_of)->tgid;
	p->own_pid.numbers[0].nr = p->pid;
	p->thread_pid = &p->own_pid;
	p->flags = how->flags;
	p->static_prio = AN_NICE_0_PRIO + how->nice;
	p->rt_prio = how->real_time;
	p->class = how->real_time		 ? CLASS_REAL_TIME
		   : m.loaded && m.switching_all ? CLASS_EXT
						 : CLASS_FAIR; /* task_should_scx() */
	p->life = TASK_ASLEEP;
	p->is_new = true;
	p->cpu = m.cpu;
	p->cgroup = cgroup_of(cgroup_of(how->cgroup)->gone ? 0 : how->cgroup);
	p->cgroup->tasks++;
	p->holding_cpu = -1;
	set_affinity(p, how->affinity);
	if (m.inits) {
		scx_init_task(p, true);
		p->scx.state = SCX_TASK_READY;
		if (p->class == CLASS_EXT) {
			struct rq *rq = task_rq_lock(p);

			scx_enable_task(p);
			rq_unlock(rq);
		}
	}
	fork_ends();
	return p->number;
}

/* Its run queue is the one of p->cpu from here on; p's pi_lock is held. */
static void activate(struct task_struct *p, u64 flags)
{
	struct rq *rq = task_rq(p);

	rq_lock(rq);
	p->life = TASK_RUNNABLE;
	update_rq_clock(rq);
	enqueue_task(rq, p, flags);
	wakeup_preempt(rq, p);
	rq_unlock(rq);
}

/* ttwu_runnable(): it has not got round to sleeping, and does not. */
static bool stays(struct task_struct *p)
{
	struct rq *rq;
	bool stays;

	if (!p->on_rq)
		return false;
	rq = task_rq_lock(p);
	stays = p->on_rq;
	if (stays)
		p->life = TASK_RUNNABLE;
	rq_unlock(rq);
	return stays;
}

/* wake_up_new_task() */
void sim_wake_new(u32 number)
{
	struct task_struct *p = task_of(number);

	spend(m.costs.wake);
	pi_lock(p);
	p->is_new = false;
	set_task_cpu(p, select_task_rq(p, p->cpu, false));
	activate(p, 0);
	p->pi_locked = false;
}

/* try_to_wake_up() */
void sim_wake(u32 number, u32 sync)
{
	struct task_struct *p = task_of(number);

	pi_lock(p);
	if (p->life == TASK_ASLEEP && p->stopped && !p->migration_disabled) {
		p->wakes = true;
	} else if (p->life == TASK_ASLEEP && !p->is_new) {
		m.stats.wakeups++;
		spend(m.costs.wake);
		if (!fair_wakes_delayed(p) && !stays(p)) {
			while (p->on_cpu) { /* its CPU has yet to finish with it */
				kernel_waits();
			}
			set_task_cpu(p, select_task_rq(p, p->cpu, sync));
			activate(p, SCX_ENQ_WAKEUP);
		}
	}
	p->pi_locked = false;
}

void sim_block(u32 number)
{
	struct task_struct *p = task_of(number);

	model_assert(this_rq()->curr == p && !this_rq()->in_interrupt);
	p->life = TASK_ASLEEP;
}

void sim_exiting(u32 number)
{
	task_of(number)->flags |= PF_EXITING;
}

/* begin_new_exec() */
void sim_executes(u32 number, u32 in_execve)
{
	task_of(number)->in_execve = in_execve != 0;
}

void sim_exit(u32 number)
{
	struct task_struct *p = task_of(number);

	model_assert(this_rq()->curr == p && !this_rq()->in_interrupt);
	model_assert(!p->migration_disabled);
	p->flags |= PF_EXITING;
	p->life = TASK_DEAD;
}

/* finish_task_switch(): it has been switched out for the last time. */
void task_dead(struct task_struct *p)
{
	scx_task_dead(p);
	fair_detach(p);
	p->cgroup->tasks--;
	model_storage_free(&p->storage);
	p->gone = true;
}

/* SIGKILL: it is woken, and ends when it has the CPU. */
void sim_kill(u32 number)
{
	struct task_struct *p = task_of(number);

	if (p->life == TASK_DEAD)
		return;
	p->killed = true;
	p->stopped = false;
	sim_wake(number, false);
}

void sim_stop(u32 number, u32 stopped)
{
	struct task_struct *p = task_of(number);
	bool wakes = p->wakes;

	if (stopped) {
		p->stopped = p->life != TASK_DEAD;
		return;
	}
	p->stopped = p->wakes = false;
	if (wakes)
		sim_wake(number, false);
}

void sim_work(u32 number, u64 ns)
{
	task_of(number)->work_ns = ns;
}

/* sched_yield(): yield_task_scx() */
void sim_yield(u32 number)
{
	struct task_struct *p = task_of(number);

	if (p->class == CLASS_EXT)
		p->scx.slice = 0;
	else if (p->class == CLASS_FAIR)
		fair_yield(this_rq(), p);
	this_rq()->need_resched = true;
}

struct cgroup *scx_bpf_task_cgroup(struct task_struct *p)
{
	kernel_call();
	return p->cgroup;
}

struct cgroup *bpf_cgroup_ancestor(struct cgroup *c, int level)
{
	while (c && c->level > level)
		c = c->parent;
	return c && c->level == level ? c : NULL;
}

void bpf_cgroup_release(struct cgroup *c)
{
	(void)c;
}

/* Those that are removed are found no more. */
struct cgroup *bpf_cgroup_from_id(u64 id)
{
	kernel_call();
	if (!id || id > m.cgroup_count || m.cgroups[id - 1]->gone)
		return NULL;
	return m.cgroups[id - 1];
}

/* ---- who is who ---- */

struct task_struct *bpf_task_from_pid(s32 pid)
{
	struct task_struct *p;

	kernel_call();
	if (pid < 1 || (u32)pid > m.task_count)
		return NULL;
	p = m.tasks[pid - 1];
	return p && !p->gone ? p : NULL;
}

void bpf_task_release(struct task_struct *p)
{
	(void)p;
}

u32 bpf_get_smp_processor_id(void)
{
	return m.cpu;
}

struct task_struct *bpf_get_current_task_btf(void)
{
	return this_rq()->curr;
}

bool an_kin_interrupt(void)
{
	return this_rq()->in_interrupt;
}

bool an_kends(const struct task_struct *task)
{
	return task->flags & PF_EXITING || task->in_execve;
}

/* ---- interrupts ---- */

void sim_timer(u64 at_ns, u64 token)
{
	interrupt_at(at_ns, m.cpu, INTERRUPT_USER_TIMER, 0, token);
}

void sim_interrupt(u64 at_ns, u32 cpu, u64 token)
{
	interrupt_at(at_ns, cpu, INTERRUPT_USER_TIMER, 0, token);
}

void sim_steal(u32 cpu, u64 ns)
{
	interrupt_at(m.now_ns, cpu, INTERRUPT_STEALS, 0, ns);
}

/* ---- what it has come to ---- */

u64 sim_used_ns(u32 number)
{
	const struct task_struct *p = task_of(number);
	const struct rq *rq = task_rq(p);
	u64 used_ns = p->se.sum_exec_runtime;

	if (rq->curr == p && p->life != TASK_DEAD && m.now_ns > p->se.exec_start)
		used_ns += m.now_ns - p->se.exec_start;
	return used_ns;
}

/* Of that, for its own work. */
u64 sim_worked_ns(u32 number)
{
	return task_of(number)->worked_ns;
}

int sim_cpu_of(u32 number)
{
	const struct task_struct *p = task_of(number);

	return task_rq(p)->curr == p ? (int)p->cpu : -1;
}

u64 sim_idle_ns(void)
{
	u64 idle_ns = 0;

	for (u32 cpu = 0; cpu < m.options.cpus; cpu++)
		idle_ns += m.rqs[cpu].idle_ns;
	return idle_ns;
}

u64 sim_stolen_ns(void)
{
	u64 stolen_ns = 0;

	for (u32 cpu = 0; cpu < m.options.cpus; cpu++)
		stolen_ns += m.rqs[cpu].stolen_ns;
	return stolen_ns;
}

const struct sim_run *sim_runs(u32 *count)
{
	*count = m.run_count;
	m.run_count = 0;
	return m.runs;
}

const struct sim_stats *sim_stats(void)
{
	return &m.stats;
}
