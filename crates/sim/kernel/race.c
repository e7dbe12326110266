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
 * Each seed has its own kinds of operations and number of tasks, unless --ops names them: what many
 * kinds together hardly ever do, few do soon (A. Groce et al., "Swarm testing", ISSTA 2012).
 *
 * A race of a few instructions is hardly ever met by chance: --hold-at names a call of the kernel's
 * in the middle of them, where CPUs are held (race_hold.c).
 *
 *      race --hold-at dsq_move --ops work,sleep,wake,promise
 *
 * A fuzzer chooses instead of chance, in fuzz/target.c.
 *
 * A failure is made smaller (fewer CPUs, fewer tasks, fewer kinds of operations) and printed as one
 * line that replays it.
 */
#include "race.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define STACK_BYTES (256 << 10)
#define SECONDS_MAX 300 /* of a trial, on the clock of the wall: longer, and it hangs */

struct trial trial;
u64 steps;
static bool tells; /* what a trial came to */

/* ---- chance ---- */

static u64 state;

/* splitmix64 */
u64 chance(u64 below)
{
	u64 z;

	if (bytes_choose(below, &z))
		return z;
	z = state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return (z ^ z >> 31) % below;
}

/* ---- CPUs as coroutines ---- */

static ucontext_t chooser, cpus[MODEL_CPUS];
static bool at_rest[MODEL_CPUS]; /* it is in the middle of nothing */

bool is_at_rest(u32 cpu)
{
	return at_rest[cpu];
}

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
	if (this_rq()->waits || hold_begins() || !chance(8))
		gives_way();
}

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
		.learn_bound = 819,
		.bindings = 1,
		.domain_cpus = trial.domain_cpus,
		.threads_of_core = trial.threads_of_core,
		.cpus_of_cache = trial.cpus_of_cache,
		.events = trial.events ? 2 : 0,
	};
	struct sim_costs costs = {0};

	sim_begin(&options, &costs);
	if (trial.seed % 4 == 3) /* as no machine with so few tasks would have it */
		sim_contract_scarce(8);
	state = trial.seed;
	churn_begins();
	m.may_switch = may_switch;
	m.at_rest = is_at_rest;
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

static void turn_of(u32 cpu)
{
	m.cpu = cpu;
	steps++;
	swapcontext(&chooser, &cpus[cpu]);
	/* What it did took some time, during which the others went on. */
	time_next_ns();
	time_advance(m.now_ns + chance(300));
}

/*
 * Now and then one CPU hardly has a turn: its virtual machine has lost it, or firmware holds it.
 * Whatever it is in the middle of, the others go on for long, which turns by chance alone would
 * give them once in 2 to the power of their number.
 */
#define STANDS_TURNS                                                                               \
	400 /* on average as many as a CPU needs for some dozen calls of the kernel's */

static u32 stands;	 /* that CPU */
static u64 stands_until; /* turn */

static u32 chosen(const u32 *ready, u32 count)
{
	u32 cpu = ready[chance(count)];

	if (steps >= stands_until && !chance(200)) {
		stands = (u32)chance(trial.cpus);
		stands_until = steps + chance(2 * STANDS_TURNS);
	}
	while (cpu == stands && steps < stands_until && count > 1 && chance(64))
		cpu = ready[chance(count)];
	return cpu;
}

#define REST_TURNS 10000 /* for some hundred calls of the kernel's on each CPU */

/* All CPUs end what they are in the middle of, and none begins anything: then what must hold while
 * nobody is in the middle of changing it can be looked at. Not if one waits for something that
 * another has yet to begin. */
static void comes_to_rest(void)
{
	u32 ready[MODEL_CPUS], count, left = REST_TURNS;

	do {
		count = 0;
		for (u32 cpu = 0; cpu < trial.cpus; cpu++)
			if (!at_rest[cpu])
				ready[count++] = cpu;
		if (count)
			turn_of(ready[chance(count)]);
	} while (count && --left);
}

#define CHECK_STEPS 64 /* between two looks at what must hold */
#define REST_CHECKS 16 /* of these, one is of a machine at rest */

static void checks(void)
{
	static u64 checked, count;

	if (steps < checked + CHECK_STEPS)
		return;
	checked = steps;
	if (!(++count % REST_CHECKS))
		comes_to_rest();
	check();
}

/* All tasks have been stopped, or wait for one another: nothing happens any more, and whoever waits
 * for a CPU all the same waits for ever. */
#define FOR_EVER_NS (60000 * MS)

static void ends(void)
{
	check();
	time_advance(m.now_ns + FOR_EVER_NS);
	check();
}

void race_runs(void)
{
	begin();
	check(); /* before a CPU leaves: what comes of there having been more stays for a while */
	while (steps < trial.steps) {
		u32 ready[MODEL_CPUS], count = 0;

		interrupts_arrive();
		for (u32 cpu = 0; cpu < trial.cpus; cpu++)
			if (may_go_on(cpu))
				ready[count++] = cpu;
		if (!count) {
			u64 next_ns = time_next_ns();

			if (next_ns == MODEL_NEVER) {
				ends();
				return;
			}
			time_advance(next_ns);
			continue;
		}
		if (hold_takes(ready, &count))
			continue;
		turn_of(chosen(ready, count));
		checks();
	}
}

#define NOBODY_HELD 5 /* exit status: --hold-at names a call that nobody has made */

/* Into pages of sessions, in all trials: they end one after the other. */
static u64 *looks;

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
		race_runs();
		if (!quietly && tells) {
			printf("race: seed %llu: %.3f s, %llu switches, %llu wake-ups, %llu "
			       "dispatches, %u tasks\n",
			       (unsigned long long)t->seed, (double)m.now_ns / 1e9,
			       (unsigned long long)m.stats.switches,
			       (unsigned long long)m.stats.wakeups,
			       (unsigned long long)m.stats.dispatches, m.task_count);
			fflush(stdout);
		}
		*looks += m.looks;
		_exit(t->hold_at && !hold_has_been() ? NOBODY_HELD : 0);
	}
	if (child < 0 || waitpid(child, &status, 0) < 0) {
		perror("race");
		exit(2);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static bool fails(const struct trial *t)
{
	int status = tries(t, true);

	return status && status != NOBODY_HELD;
}

static void smaller(struct trial *best, struct trial t)
{
	if (fails(&t))
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
		if (!fails(&fewer))
			break;
		t = fewer;
	}
	return t;
}

static void print_replay(const struct trial *t)
{
	bool plain = !strcmp(model_scheduler, "sched");

	printf("race%s%s --seed %llu --seeds 1 --steps %llu --cpus %u --tasks %u ",
	       plain ? "" : "-", plain ? "" : model_scheduler, (unsigned long long)t->seed,
	       (unsigned long long)t->steps, t->cpus, t->tasks);
	if (t->domain_cpus)
		printf("--domain-cpus %u ", t->domain_cpus);
	if (t->threads_of_core)
		printf("--threads-of-core %u ", t->threads_of_core);
	if (t->cpus_of_cache)
		printf("--cpus-of-cache %u ", t->cpus_of_cache);
	if (t->events)
		printf("--events 1 ");
	if (t->hold_at)
		printf("--hold-at %s ", t->hold_at);
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

/* Of every other seed each kind of operations with a chance of a half; few tasks as often as many.
 */
static struct trial drawn(struct trial t)
{
	if (t.seed % 2)
		return t;
	state = ~t.seed;
	for (u32 op = OP_SLEEP + 1; op < OP_KINDS; op++)
		if (chance(2))
			t.ops &= ~(1U << op);
	t.tasks >>= chance(4);
	t.tasks = t.tasks < 4 ? 4 : t.tasks;
	return t;
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

#ifndef RACE_FUZZ /* fuzz/target.c has its own */

/* What a fuzzer has kept, once. */
static int runs_file(const char *path)
{
	static u8 bytes[1 << 20];
	FILE *file = fopen(path, "rb");
	u64 size;

	if (!file)
		return perror(path), 2;
	size = fread(bytes, 1, sizeof(bytes), file);
	fclose(file);
	trial = bytes_trial(bytes, size);
	tells = true;
	race_runs();
	printf("race: %s: nothing found\n", path);
	return 0;
}

int main(int argc, char **argv)
{
	struct trial t = {
		.seed = 1, .steps = 200000, .cpus = 4, .tasks = 24, .ops = (1U << OP_KINDS) - 1};
	u64 seeds = 100;
	bool shrinks = true, draws = true, held = false;

	looks = mmap(NULL, sizeof(*looks), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (looks == MAP_FAILED)
		return perror("race"), 2;

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
		else if (!strcmp(option, "--threads-of-core"))
			t.threads_of_core = (u32)number;
		else if (!strcmp(option, "--cpus-of-cache"))
			t.cpus_of_cache = (u32)number;
		else if (!strcmp(option, "--events"))
			t.events = number;
		else if (!strcmp(option, "--tasks"))
			t.tasks = (u32)number;
		else if (!strcmp(option, "--tell"))
			tells = number;
		else if (!strcmp(option, "--hold-at"))
			t.hold_at = argv[at + 1];
		else if (!strcmp(option, "--shrink"))
			shrinks = number;
		else if (!strcmp(option, "--bytes"))
			return runs_file(argv[at + 1]);
		else if (!strcmp(option, "--ops"))
			t.ops = ops_named(argv[at + 1]), draws = false;
		else
			return fprintf(stderr, "race: there is no option `%s`\n", option), 2;
	}
	if (!domains_fit(&t))
		return 2;
	for (u64 end = t.seed + seeds; t.seed < end; t.seed++) {
		struct trial one = draws ? drawn(t) : t;
		int status = tries(&one, false);

		held |= status != NOBODY_HELD;
		if (!status || status == NOBODY_HELD)
			continue;
		printf("race: seed %llu fails (%d)%s\n", (unsigned long long)t.seed, status,
		       seeds > 1 && shrinks ? "; looking for less" : "");
		fflush(stdout);
		if (seeds > 1 && shrinks)
			one = shrink(one);
		print_replay(&one);
		return 1;
	}
	if (t.hold_at && seeds && !held) {
		fprintf(stderr,
			"race: no CPU was held: `%s` is no function of crates/sim/kernel "
			"that calls kernel_call(), or nobody calls it\n",
			t.hold_at);
		return 2;
	}
	printf("race: %llu seeds, %llu steps each, %u CPUs: nothing found (%llu looks into pages "
	       "of "
	       "sessions)\n",
	       (unsigned long long)seeds, (unsigned long long)t.steps, t.cpus,
	       (unsigned long long)*looks);
	return 0;
}

#endif
