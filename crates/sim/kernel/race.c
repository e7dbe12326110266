/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A search for races: every CPU of the machine is a coroutine, and at every lock and every call of
 * the kernel's another one may have its turn, chosen by a seed. User space does what is worst: it
 * wakes, forks, exits, changes weights, masks and classes, makes contracts and lets them go, all at
 * random. After every turn what must hold is looked at.
 *
 *      race --seed 1 --seeds 100 --cpus 4 --steps 1000000
 *      race-domains --cpus 4 --domain-cpus 2
 *
 * A failure is made smaller (fewer CPUs, fewer tasks, fewer kinds of operations) and printed as one
 * line that replays it.
 */
#include "model.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define MS 1000000ULL
#define STACK_BYTES (256 << 10)
#define SECONDS_MAX 300 /* of a trial, on the clock of the wall: longer, and it hangs */

enum op {
	OP_WORK,
	OP_SLEEP,
	OP_WAKE,
	OP_WAIT,
	OP_FORK,
	OP_EXIT,
	OP_YIELD,
	OP_NICE,
	OP_AFFINITY,
	OP_MOVE,
	OP_CGROUP,
	OP_WEIGHT,
	OP_PROMISE,
	OP_SOCKET,
	OP_REAL_TIME,
	OP_STOP,
	OP_KINDS,
};

static const char *const op_names[OP_KINDS] = {
	"work",	    "sleep", "wake",   "wait",	 "fork",    "exit",   "yield", "nice",
	"affinity", "move",  "cgroup", "weight", "promise", "socket", "rt",    "stop",
};

/* What is tried. */
struct trial {
	u64 seed;
	u64 steps;
	u32 cpus;
	u32 domain_cpus;
	u32 tasks;
	u32 ops; /* a bit each */
};

static struct trial trial;
static bool tells; /* what a trial came to */

/* ---- chance ---- */

static u64 state;

/* splitmix64 */
static u64 chance(u64 below)
{
	u64 z = state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return (z ^ z >> 31) % below;
}

static bool may(enum op op)
{
	return trial.ops >> op & 1;
}

/* ---- CPUs as coroutines ---- */

static ucontext_t chooser, cpus[MODEL_CPUS];
static bool at_rest[MODEL_CPUS]; /* it is in the middle of nothing */
static u64 steps;

static void gives_way(void)
{
	u32 cpu = m.cpu;

	swapcontext(&cpus[cpu], &chooser);
	m.cpu = cpu;
}

/* At a lock, or a call of the kernel's. */
static void may_switch(void)
{
	steps++;
	/* A lock that is waited for comes here again and again: somebody else must have a turn. */
	if (this_rq()->waits || !chance(8))
		gives_way();
}

static void user_step(u32 task);
static void user_timer(u64 token);

static void cpu_runs(u32 cpu)
{
	struct rq *rq = &m.rqs[cpu];
	struct sim_event event;

	for (;;) {
		m.cpu = cpu;
		at_rest[cpu] = true;
		gives_way();
		at_rest[cpu] = false;
		if (!cpu_has_something_to_do(rq))
			continue;
		if (cpu_acts(rq, &event)) {
			if (event.kind == SIM_STEP)
				user_step(event.task);
			else
				user_timer(event.token);
		}
		cpu_ends_turn();
	}
}

/* ---- what must hold ---- */

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
	if (runs && p->scx.dsq)
		fails("a task that runs is in no queue", p->number);
	if (p->on_rq && !runs && m.now_ns > p->scx.runnable_at_ns + WAITS_NS)
		fails("nobody waits for longer than the bound", p->number);
}

static u64 idle_since[MODEL_CPUS];

static bool waits_for(const struct task_struct *p, const struct rq *rq)
{
	return !p->gone && p->class == CLASS_EXT && p->on_rq && p->scx.dsq && !p->scx.dsq->local &&
	       task_allowed(p, rq->cpu);
}

static void check_idle(struct rq *rq)
{
	bool waits = false;

	if (!task_is_idle(rq->curr) || cpu_has_something_to_do(rq) || !at_rest[rq->cpu]) {
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

static void check(void)
{
	bool quiet = true, under_lock = false;
	const char *broken;

	for (u32 cpu = 0; cpu < trial.cpus; cpu++) {
		quiet &= at_rest[cpu];
		under_lock |= m.rqs[cpu].under_lock;
		check_idle(&m.rqs[cpu]);
	}
	for (u32 task = 0; task < m.task_count; task++)
		check_task(m.tasks[task]);
	broken = under_lock ? NULL : model_scheduler_broken(quiet);
	if (broken)
		fails(broken, 0);
	if (!m.loaded)
		fails(m.stats.message, 0);
}

/* ---- user space ---- */

#define CGROUPS 12
#define NAMES 16

static u32 cgroups[CGROUPS], names[NAMES];
static u32 alive;
static bool calling; /* the daemon is one process, and asks for one thing at a time */
static u32 sockets[NAMES];

static struct task_struct *any_task(void)
{
	struct task_struct *p = m.tasks[chance(m.task_count)];

	return p->life == TASK_DEAD || p->flags & PF_EXITING || p->changing ? NULL : p;
}

static void forks(bool real_time)
{
	struct sim_task how = {.process_of = ~0U, .nice = may(OP_NICE) ? (int)chance(40) - 20 : 0};
	u32 task;

	if (alive >= trial.tasks)
		return;
	alive++;
	how.real_time = real_time ? 1 + chance(98) : 0;
	how.affinity[0] =
		may(OP_AFFINITY) && !chance(4) ? 1 + chance((1ULL << trial.cpus) - 1) : ~0ULL;
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

	sim_timer(m.now_ns + ns, task);
	sim_block(task);
}

/* Another one is changed, which nobody else is in the middle of. */
static void changes_other(enum op op)
{
	struct task_struct *p = any_task();
	u64 mask[4] = {0};

	if (!p || p->class != CLASS_EXT)
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

static void changes_cgroup(enum op op)
{
	u32 *at = &cgroups[chance(CGROUPS)], parent = cgroups[chance(CGROUPS)];
	u32 made;

	if (calling)
		return;
	calling = true;
	if (op == OP_WEIGHT && *at && !m.cgroups[*at]->gone) {
		sim_cgroup_weight(*at, 1 + chance(chance(2) ? 10000 : 200));
	} else if (op == OP_CGROUP) {
		if (*at && !m.cgroups[*at]->gone)
			sim_cgroup_remove(*at);
		if (!*at || m.cgroups[*at]->gone) {
			made = sim_cgroup(m.cgroups[parent]->gone ? 0 : parent, 1 + chance(1000));
			*at = made == ~0U ? 0 : made;
		}
	}
	calling = false;
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

	if (calling)
		return;
	calling = true;
	if (*name) {
		sim_contract_remove(*name);
		*name = 0;
	} else {
		*name = sim_contract_create(&promise, NULL, 0, -1);
		if (*name)
			sim_contract_bind(task, *name);
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
		forks(false);
		break;
	case OP_REAL_TIME:
		forks(true);
		break;
	case OP_NICE:
	case OP_AFFINITY:
	case OP_MOVE:
	case OP_STOP:
		changes_other(op);
		break;
	case OP_CGROUP:
	case OP_WEIGHT:
		changes_cgroup(op);
		break;
	case OP_PROMISE:
		promises(task);
		break;
	case OP_SOCKET:
		talks(task);
		break;
	default:
		break;
	}
}

/* The task has done what it had to do: something happens, then it works, sleeps, yields or ends. */
static void user_step(u32 task)
{
	struct task_struct *p = m.tasks[task];

	if (p->killed || (may(OP_EXIT) && !p->changing && !chance(16) && alive > trial.tasks / 2)) {
		alive--;
		sim_exiting(task);
		one_op(OP_WAKE, task);
		sim_exit(task);
		return;
	}
	for (u32 left = chance(4); left; left--) {
		enum op op = chance(OP_KINDS);

		if (may(op))
			one_op(op, task);
	}
	/* Real-time tasks come in bursts, and then sleep. */
	p->work_ns =
		p->class == CLASS_REAL_TIME ? chance(MS) : chance(chance(4) ? 2 * MS : 20 * MS);
	if (p->class == CLASS_REAL_TIME || (may(OP_SLEEP) && chance(2)))
		sleeps(task);
	else if (may(OP_YIELD) && !chance(8))
		sim_yield(task);
	else if (!may(OP_WORK))
		sleeps(task);
}

static void user_timer(u64 token)
{
	if (m.tasks[token]->life == TASK_ASLEEP)
		sim_wake((u32)token, false);
}

/* ---- a trial ---- */

static void begin(void)
{
	struct sim_options options = {
		.cpus = trial.cpus,
		.load = 1,
		.tick_ns = 4 * MS,
		.quantum_ns = 2 * MS,
		.in_class_wake_ns = 200000,
		.contract_bound = 819,
		.learn_bound = 512,
		.bindings = 1,
		.domain_cpus = trial.domain_cpus,
	};
	struct sim_costs costs = {0};

	sim_begin(&options, &costs);
	state = trial.seed;
	for (u32 at = 1; may(OP_MOVE) && at < CGROUPS; at++)
		cgroups[at] = sim_cgroup(cgroups[chance(at)], 1 + chance(500));
	for (u32 task = 0; task < trial.tasks / 2; task++)
		forks(false);
	m.may_switch = may_switch;
	m.next_watch_ns = MODEL_NEVER; /* check_task() is stricter */
	for (u32 cpu = 0; cpu < trial.cpus; cpu++) {
		getcontext(&cpus[cpu]);
		cpus[cpu].uc_stack.ss_sp = malloc(STACK_BYTES);
		cpus[cpu].uc_stack.ss_size = STACK_BYTES;
		at_rest[cpu] = true;
		makecontext(&cpus[cpu], (void (*)(void))cpu_runs, 1, cpu);
		swapcontext(&chooser, &cpus[cpu]);
	}
}

/* Has this CPU a turn to take: in the middle of something, or something to do? */
static bool may_go_on(u32 cpu)
{
	return !at_rest[cpu] || cpu_has_something_to_do(&m.rqs[cpu]);
}

static void run(void)
{
	u64 checked = 0;

	begin();
	while (steps < trial.steps) {
		u32 ready[MODEL_CPUS], count = 0;

		interrupts_arrive();
		for (u32 cpu = 0; cpu < trial.cpus; cpu++)
			if (may_go_on(cpu))
				ready[count++] = cpu;
		if (!count) {
			u64 next_ns = time_next_ns();

			model_assert(next_ns != MODEL_NEVER);
			time_advance(next_ns);
			continue;
		}
		m.cpu = ready[chance(count)];
		steps++;
		swapcontext(&chooser, &cpus[m.cpu]);
		/* What it did took some time, during which the others went on. */
		time_next_ns();
		time_advance(m.now_ns + chance(300));
		if (steps >= checked + 64) {
			checked = steps;
			check();
		}
	}
}

/* In a process of its own: what fails there stays there. Its exit status. */
static int tries(const struct trial *t, bool quietly)
{
	int status;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (!child) {
		trial = *t;
		if (quietly &&
		    (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr)))
			_exit(2);
		alarm(SECONDS_MAX);
		run();
		if (!quietly && tells) {
			printf("race: seed %llu: %.3f s, %llu switches, %llu wake-ups, %llu "
			       "dispatches, %u tasks\n",
			       (unsigned long long)t->seed, (double)m.now_ns / 1e9,
			       (unsigned long long)m.stats.switches,
			       (unsigned long long)m.stats.wakeups,
			       (unsigned long long)m.stats.dispatches, m.task_count);
			fflush(stdout);
		}
		_exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) < 0) {
		perror("race");
		exit(2);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void smaller(struct trial *best, struct trial t)
{
	if (tries(&t, true))
		*best = t;
}

/* Fewer kinds of operations, tasks and CPUs, as long as it fails. */
static struct trial shrink(struct trial t)
{
	for (u32 op = OP_SLEEP; op < OP_KINDS; op++) {
		struct trial fewer = t;

		fewer.ops &= ~(1U << op);
		if (fewer.ops != t.ops)
			smaller(&t, fewer);
	}
	for (u32 tasks = t.tasks / 2; tasks >= 2; tasks /= 2) {
		struct trial fewer = t;

		fewer.tasks = tasks;
		smaller(&t, fewer);
	}
	while (t.cpus > 1) {
		struct trial fewer = t;

		fewer.cpus--;
		if (!tries(&fewer, true))
			break;
		t = fewer;
	}
	return t;
}

static void print_replay(const struct trial *t)
{
	printf("race%s --seed %llu --seeds 1 --steps %llu --cpus %u --tasks %u ",
	       model_has_domains ? "-domains" : "", (unsigned long long)t->seed,
	       (unsigned long long)t->steps, t->cpus, t->tasks);
	if (t->domain_cpus)
		printf("--domain-cpus %u ", t->domain_cpus);
	printf("--ops ");
	for (u32 op = 0, first = 1; op < OP_KINDS; op++)
		if (t->ops >> op & 1) {
			printf("%s%s", first ? "" : ",", op_names[op]);
			first = 0;
		}
	printf("\n");
}

static u32 ops_named(char *list)
{
	u32 ops = 0;

	for (char *name = strtok(list, ","); name; name = strtok(NULL, ",")) {
		u32 op = 0;

		while (op < OP_KINDS && strcmp(name, op_names[op]))
			op++;
		if (op == OP_KINDS) {
			fprintf(stderr, "race: there is no operation `%s`\n", name);
			exit(2);
		}
		ops |= 1U << op;
	}
	return ops;
}

/* Is the scheduler compiled with this search one for such domains? */
static bool domains_fit(const struct trial *t)
{
	if (!model_has_domains && t->domain_cpus)
		fprintf(stderr, "race: this scheduler has one tree: --domain-cpus is for "
				"race-domains\n");
	else if (model_has_domains && (!t->domain_cpus || t->domain_cpus & (t->domain_cpus - 1)))
		fprintf(stderr, "race: --domain-cpus must be a power of two, such as 2\n");
	else
		return true;
	return false;
}

int main(int argc, char **argv)
{
	struct trial t = {.seed = 1, .steps = 200000, .cpus = 4, .tasks = 24, .ops = ~0U};
	u64 seeds = 100;

	t.domain_cpus = model_has_domains ? 2 : 0;
	for (int at = 1; at + 1 < argc; at += 2) {
		const char *option = argv[at];
		u64 number = strtoull(argv[at + 1], NULL, 10);

		if (!strcmp(option, "--seed"))
			t.seed = number;
		else if (!strcmp(option, "--seeds"))
			seeds = number;
		else if (!strcmp(option, "--steps"))
			t.steps = number;
		else if (!strcmp(option, "--cpus"))
			t.cpus = (u32)number;
		else if (!strcmp(option, "--domain-cpus"))
			t.domain_cpus = (u32)number;
		else if (!strcmp(option, "--tasks"))
			t.tasks = (u32)number;
		else if (!strcmp(option, "--tell"))
			tells = number;
		else if (!strcmp(option, "--ops"))
			t.ops = ops_named(argv[at + 1]);
		else
			return fprintf(stderr, "race: there is no option `%s`\n", option), 2;
	}
	if (!domains_fit(&t))
		return 2;
	for (u64 end = t.seed + seeds; t.seed < end; t.seed++) {
		int status = tries(&t, false);

		if (!status)
			continue;
		printf("race: seed %llu fails (%d); looking for less\n", (unsigned long long)t.seed,
		       status);
		fflush(stdout);
		if (seeds > 1)
			t = shrink(t);
		print_replay(&t);
		return 1;
	}
	printf("race: %llu seeds, %llu steps each, %u CPUs: nothing found\n",
	       (unsigned long long)seeds, (unsigned long long)t.steps, t.cpus);
	return 0;
}
