/* SPDX-License-Identifier: GPL-2.0 */
/*
 * User space in the search for races does the worst, at random. A task that has done its work
 * wakes, forks, ends, changes others, makes contracts and lets them go, and sleeps or works again.
 */
#include "race.h"

#include <string.h>

const char *const op_names[OP_KINDS] = {
	"work", "sleep",  "wake",   "wait",    "fork",	 "exit",  "yield",  "nice",    "affinity",
	"move", "cgroup", "weight", "promise", "socket", "rt",	  "stop",   "kthread", "exec",
	"cpu",	"freeze", "bypass", "pin",     "reload", "quota", "policy", "session",
};

#define CGROUPS 12
#define NAMES 16

static u32 cgroups[CGROUPS], names[NAMES];
static u32 alive;
static bool calling; /* the daemon is one process, and asks for one thing at a time */
static u32 sockets[NAMES];
static bool bypasses; /* while it is */
static bool frozen;   /* until the timer of this token: */
#define THAWS (~0ULL)

static struct task_struct *any_task(void)
{
	struct task_struct *p = m.tasks[chance(m.task_count)];

	return p->life == TASK_DEAD || p->flags & PF_EXITING || p->changing ? NULL : p;
}

static void forks(enum op kind)
{
	struct sim_task how = {.process_of = ~0U, .nice = may(OP_NICE) ? (int)chance(40) - 20 : 0};
	u32 task;

	if (alive >= trial.tasks)
		return;
	alive++;
	how.real_time = kind == OP_REAL_TIME ? 1 + chance(98) : 0;
	how.affinity[0] =
		may(OP_AFFINITY) && !chance(4) ? 1 + chance((1ULL << trial.cpus) - 1) : ~0ULL;
	if (kind == OP_KTHREAD) { /* half of them are a CPU's own */
		how.flags = chance(2) ? PF_KTHREAD : PF_KTHREAD | PF_NO_SETAFFINITY;
		if (how.flags & PF_NO_SETAFFINITY)
			how.affinity[0] = 1ULL << chance(trial.cpus);
	}
	how.cgroup = may(OP_MOVE) ? cgroups[chance(CGROUPS)] : 0;
	if (m.cgroups[how.cgroup]->gone)
		how.cgroup = 0;
	task = sim_fork(&how);
	m.tasks[task]->work_ns = chance(2 * MS);
	sim_wake_new(task);
}

static void sleeps(u32 task)
{
	u64 ns = chance(4) ? chance(5 * MS) : chance(40 * MS);

	sim_timer(m.now_ns + hold_shortens(ns), task);
	sim_block(task);
}

/* Another one is changed, which nobody else is in the middle of. */
static void changes_other(enum op op)
{
	struct task_struct *p = any_task();
	u64 mask[4] = {0};

	if (!p || p->class != CLASS_EXT || (op == OP_STOP && frozen))
		return;
	p->changing = true;
	if (op == OP_NICE) {
		sim_nice(p->number, (int)chance(40) - 20);
	} else if (op == OP_AFFINITY) {
		mask[0] = 1 + chance((1ULL << trial.cpus) - 1);
		sim_affinity(p->number, chance(2) ? (u64[4]){~0ULL} : mask);
	} else if (op == OP_MOVE) {
		u32 to = cgroups[chance(CGROUPS)];

		if (!m.cgroups[to]->gone && m.cgroups[to]->known)
			sim_move(p->number, to);
	} else {
		sim_stop(p->number, chance(2));
	}
	p->changing = false;
}

static bool giving; /* a cgroup a class of its own */

static void changes_cgroup(enum op op)
{
	u32 *at = &cgroups[chance(CGROUPS)], parent = cgroups[chance(CGROUPS)];
	u32 made;

	if (calling)
		return;
	calling = true;
	if (op == OP_QUOTA && *at && !m.cgroups[*at]->gone) {
		u64 period_us = (1 + chance(100)) * 1000;

		sim_cgroup_bandwidth(*at, chance(3) ? 1000 + chance(2 * period_us) : ~0ULL,
				     period_us, chance(2) * chance(period_us));
	} else if (op == OP_WEIGHT && *at && !m.cgroups[*at]->gone && !chance(8)) {
		sim_cgroup_idle(*at, !m.cgroups[*at]->idle);
	} else if (op == OP_WEIGHT && *at && !m.cgroups[*at]->gone && !m.cgroups[*at]->idle) {
		sim_cgroup_weight(*at, 1 + chance(chance(2) ? 10000 : 200));
	} else if (op == OP_POLICY && *at && !m.cgroups[*at]->gone) {
		/* Every one of them; a quantum, or relative deadline, or the policy's own. */
		sim_policy(*at, chance(8), chance(2) ? (1 + chance(50)) * MS : 0, chance(2));
	} else if (op == OP_CGROUP) {
		if (*at && !m.cgroups[*at]->gone)
			sim_cgroup_remove(*at);
		if (!*at || m.cgroups[*at]->gone) {
			made = sim_cgroup(m.cgroups[parent]->gone ? 0 : parent, 1 + chance(1000));
			*at = made == ~0U ? 0 : made;
		}
	}
	calling = false;
	/* The daemon is another process, and may come while a cgroup goes. */
	if (sim_classes_shared() && !giving) {
		giving = true;
		for (u32 number = 1; number < m.cgroup_count; number++)
			if (!m.cgroups[number]->gone)
				sim_class(number);
		giving = false;
	}
}

/* An event for a task that may hold a contract with a window, now or later. */
static void raises(u32 task)
{
	struct task_struct *p = chance(2) ? m.tasks[task] : any_task();

	if (p)
		sim_event_raise(p->number, (u32)chance(5), m.now_ns + chance(2) * chance(30 * MS));
}

/* An event for a thread of a session, and the call for it, as the library does both. The check
 * (shell_trees.h) looks for events that stay unseen though somebody has called. */
static void tells(u32 task)
{
	struct task_struct *p = m.tasks[task];
	u64 deliver_ns = m.now_ns + chance(2) * chance(5 * MS);

	if (p->gone || calling)
		return;
	calling = true;
	p->told = false;
	sim_raise(task, (u32)chance(4), deliver_ns);
	sim_call(task, deliver_ns);
	p->told = !p->gone;
	calling = false;
}

/* The task joins a session, or leaves it; and what it shares with the scheduler is full of
 * nonsense. */
static void declares(u32 task)
{
	if (!chance(2))
		return tells(chance(2) ? task : (u32)chance(m.task_count));
	if (calling)
		return;
	if (!chance(4)) {
		calling = true;
		m.tasks[task]->told = false;
		if (chance(3))
			sim_declare(task, chance(50 * MS), chance(50 * MS), chance(50 * MS));
		else
			sim_leave(task);
		m.tasks[task]->joined_ns = m.now_ns;
		calling = false;
	}
	for (u32 left = 1 + (u32)chance(8); left && !calling; left--) {
		u64 word = chance(2) ? m.now_ns + chance(40 * MS) : chance(~0ULL) >> chance(64);
		u32 whose = chance(2) ? task : (u32)chance(m.task_count);

		calling = true; /* nobody tells meanwhile */
		sim_scribble(whose, (u32)chance(64), word);
		m.tasks[whose]->told = false;
		calling = false;
	}
	sim_call(chance(2) ? task : (u32)chance(m.task_count),
		 chance(2) * (m.now_ns + chance(5 * MS)));
}

static void promises(u32 task)
{
	/* Only CPUs of the first domain do; so the daemon asks for no others. */
	u32 serves_contracts = trial.domain_cpus && trial.domain_cpus < trial.cpus
				       ? trial.domain_cpus
				       : trial.cpus;
	u32 *name = &names[chance(NAMES)];
	u64 period_ns = (1 + chance(20)) * MS;
	struct {
		u64 budget_ns, period_ns, deadline_ns;
		u32 x, y, flags, cpu;
	} promise = {period_ns / (2 + chance(20)), period_ns, period_ns, 0, 0, chance(2),
		     (u32)chance(serves_contracts)};

	if (calling || !m.rqs[promise.cpu].active)
		return;
	calling = true;
	if (may(OP_SESSION) && promise.flags && !chance(2))
		promise.flags |= 1 << 10; /* AN_SPILLS, of AN_HARD */
	if (trial.events) {
		for (u32 left = (u32)chance(4); left; left--)
			raises(task);
		promise.flags = 1 << 4 | (u32)chance(2) << 5; /* AN_WINDOW, AN_WORK_CONSERVING */
		promise.y = 1 + (u32)chance(4);
		promise.x = (u32)chance(promise.y);
	}
	if (*name && (!trial.events || !chance(4))) {
		sim_contract_remove(*name);
		*name = 0;
	} else if (!*name) {
		*name = sim_contract_create(&promise, NULL, 0, -1);
		if (*name)
			sim_contract_bind(task, *name);
		/* Threads of a session hold what it was promised together. */
		for (u32 left = may(OP_SESSION) ? 4 : 0; *name && left; left--) {
			struct task_struct *p = any_task();

			if (p)
				sim_contract_bind(p->number, *name);
		}
	}
	if (!chance(4))
		sim_contract_sweep();
	calling = false;
}

static void talks(u32 task)
{
	u32 *socket = &sockets[chance(NAMES)];
	struct task_struct *p = any_task();

	if (!*socket) {
		if (p)
			*socket = sim_socket(p->number, task) + 2;
		return;
	}
	if (chance(2))
		sim_data_ready(*socket - 2 + chance(2));
	else
		sim_received(*socket - 2);
}

/* ---- CPUs go and come, and the machine stands still ---- */

static bool switching; /* a CPU is: one at a time (cpu_hotplug_lock) */
static u32 switcher;   /* task that waits for it */
static u32 switched;   /* that CPU */

/* The first CPU stays, as on most machines. The task waits until it is done. */
static bool switches_cpu(u32 task)
{
	u32 cpu = 1 + (u32)chance(trial.cpus);

	if (switching || cpu >= trial.cpus || m.tasks[task]->class != CLASS_EXT ||
	    m.tasks[task]->changing || m.tasks[task]->migration_disabled)
		return false;
	switching = true;
	switcher = task;
	switched = cpu;
	m.tasks[task]->changing = true;
	if (m.rqs[cpu].active)
		sim_cpu_off(cpu, task);
	else
		sim_cpu_on(cpu, task);
	sim_block(task);
	return true;
}

/* try_to_freeze_tasks(), and what the kernel does without the scheduler until they go on. */
static void freezes(u32 by)
{
	if (frozen || chance(16))
		return;
	frozen = true;
	for (u32 task = 0; task < m.task_count; task++)
		if (task != by && m.tasks[task]->class == CLASS_EXT &&
		    !(m.tasks[task]->flags & PF_KTHREAD))
			sim_stop(task, true);
	bypasses = may(OP_BYPASS) && chance(2);
	if (bypasses)
		sim_bypass(true);
	sim_timer(m.now_ns + chance(5 * MS), THAWS);
}

static void thaws(void)
{
	if (bypasses)
		sim_bypass(false);
	for (u32 task = 0; task < m.task_count; task++)
		if (m.tasks[task]->stopped)
			sim_stop(task, false);
	frozen = false;
}

static void one_op(enum op op, u32 task)
{
	struct task_struct *p;

	switch (op) {
	case OP_WAKE:
	case OP_WAIT:
		p = any_task();
		if (p && p->life == TASK_ASLEEP)
			sim_wake(p->number, chance(2));
		break;
	case OP_FORK:
	case OP_REAL_TIME:
	case OP_KTHREAD:
		forks(op);
		break;
	case OP_NICE:
	case OP_AFFINITY:
	case OP_MOVE:
	case OP_STOP:
		changes_other(op);
		break;
	case OP_CGROUP:
	case OP_WEIGHT:
	case OP_QUOTA:
	case OP_POLICY:
		changes_cgroup(op);
		break;
	case OP_PROMISE:
		promises(task);
		break;
	case OP_SOCKET:
		talks(task);
		break;
	case OP_SESSION:
		declares(task);
		break;
	case OP_EXEC:
		m.tasks[task]->in_execve = 1; /* whom it wakes meanwhile has waited for a child */
		one_op(OP_WAKE, task);
		m.tasks[task]->in_execve = 0;
		break;
	case OP_FREEZE:
		freezes(task);
		break;
	default:
		break;
	}
}

/* The scheduler is let go, and a new one put in charge soon; its contracts are gone. */
static void reloads(void)
{
	static u64 loads_ns;

	/* Not while it waits for a CPU on its way out: comes_to_rest() gives that one no turn. */
	if (loads_ns && m.now_ns >= loads_ns && !switching) {
		loads_ns = 0;
		sim_load();
		m.next_watch_ns = MODEL_NEVER; /* check_task() is stricter */
		calling = false;
	} else if (m.root && !calling && !chance(256)) {
		calling = true;
		sim_unload();
		memset(names, 0, sizeof(names));
		loads_ns = m.now_ns + chance(5 * MS);
	}
}

/* A pinned task lets itself be moved again, at once or when it has worked or slept once more. */
static void releases(struct task_struct *p)
{
	if (p->killed || chance(2))
		sim_migrate_enable(p->number);
}

/* While CPUs are held (race_hold.c) it is one of those that there are. */
static enum op any_op(void)
{
	enum op op = chance(OP_KINDS);

	for (u32 left = 4 * OP_KINDS; trial.hold_at && !may(op) && left; left--)
		op = chance(OP_KINDS);
	return op;
}

/* The task has done what it had to do: something happens, then it works, sleeps, yields or ends. */
void user_step(u32 task)
{
	struct task_struct *p = m.tasks[task];

	if (switching && task == switcher && m.rqs[switched].hotplug) {
		sim_block(task); /* something else has woken it (wait_for_completion()) */
		return;
	}
	if (switching && task == switcher) {
		switching = false;
		p->changing = false;
	}
	if (p->migration_disabled)
		releases(p);
	else if (!p->killed && may(OP_PIN) && !chance(16))
		sim_migrate_disable(task);
	if (p->killed || (may(OP_EXIT) && !p->changing && !p->migration_disabled && !chance(16) &&
			  alive > trial.tasks / 2)) {
		alive--;
		sim_exiting(task);
		one_op(OP_WAKE, task);
		sim_exit(task);
		return;
	}
	if (may(OP_RELOAD))
		reloads();
	if (may(OP_CPU) && !chance(128) && switches_cpu(task))
		return;
	for (u32 left = chance(4); left; left--) {
		enum op op = any_op();

		if (may(op))
			one_op(op, task);
	}
	/* Real-time tasks come in bursts, and then sleep. */
	p->work_ns = hold_shortens(
		p->class == CLASS_REAL_TIME ? chance(MS) : chance(chance(4) ? 2 * MS : 20 * MS));
	if (p->class == CLASS_REAL_TIME || (may(OP_SLEEP) && chance(2)))
		sleeps(task);
	else if (may(OP_YIELD) && !chance(8))
		sim_yield(task);
	else if (!may(OP_WORK))
		sleeps(task);
}

void user_timer(u64 token)
{
	if (token == THAWS) {
		thaws();
		return;
	}
	if (m.tasks[token]->life == TASK_ASLEEP)
		sim_wake((u32)token, false);
}

void churn_begins(void)
{
	for (u32 at = 1; may(OP_MOVE) && at < CGROUPS; at++)
		cgroups[at] = sim_cgroup(cgroups[chance(at)], 1 + chance(500));
	for (u32 task = 0; task < trial.tasks / 2; task++)
		forks(OP_FORK);
}
