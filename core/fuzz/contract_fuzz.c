// SPDX-License-Identifier: GPL-2.0
/*
 * Fuzz target: bytes are what happens to a machine with contracts, the invariants are asserted
 * after each call.
 *
 * The first bytes say how many CPUs there are, under which options and bounds, and how long a unit
 * of time is. Each further byte is a call, which takes its operands from those behind it. The
 * shell's duties (contract_run.h) are kept: the clock never goes back, what runs is charged before
 * anything else happens to it, and what is learnt is assured where it goes. All else may come in
 * any order, and late: timers, charges, looks at a CPU.
 *
 * With clang -fsanitize=fuzzer this is a libFuzzer target, with -DPLAIN a program [plain.h].
 */
#include "plain.h"

#include "../tests/contract_invariants.h"

#define FUZZ_CPUS 4
#define FUZZ_CONTRACTS 24 /* keeps a run fast */
#define FUZZ_LEARNERS 4
#define NOBODY 0

/*
 * Faults that are known and not mended yet; who mends one sets it to 0, and the check holds.
 *
 *      NESTED_EXTRA   an_contract_charge_around() on one with AN_WINDOW counts extra_ns beyond
 *                     service_ns
 *      LEARNT_JOB     an_contract_next_job() of a learnt one moves its deadline, but not its place
 *                     in the heap
 *      PARKED_FREE    an_contract_charge_around() on one that is parked, and has budget, costs it
 *                     nothing
 *      SET_REFILLS    an_contract_set() gives one that is throttled, though it has budget left,
 *                     another budget on top
 *      SET_SPENT      an_contract_set() takes AN_EXHAUSTIVE off one whose budget is below zero, and
 *                     it holds that; an_contract_run_ns() then has no end
 *      SOFT_WRAPS     an_server_refill() puts the deadline off without end: what a soft one of
 *                     50 us in 4.29 s runs in 15 hours takes it beyond the 62 bits that the order
 *                     has for it, four times as much around. So here C/T is 1/1024 at least.
 */
#define KNOWN_NESTED_EXTRA 1
#define KNOWN_LEARNT_JOB 1
#define KNOWN_PARKED_FREE 1
#define KNOWN_SET_REFILLS 1
#define KNOWN_SET_SPENT 1
#define KNOWN_SOFT_WRAPS 1

static struct an_contracts set;

/* What a CPU runs, since when, and who is charged for it. */
struct fuzz_cpu {
	u32 run, charge;
	u64 since_ns;
};

/* What is remembered of a contract from one call to the next. */
struct seen {
	u64 deadline_ns, release_ns, service_ns;
	u16 generation;
};

static struct {
	u64 now_ns;
	u32 cpus, shift; /* a unit of time is 2^shift ns */
	bool forfeits;	 /* the task server, where there is no event */
	struct fuzz_cpu cpu[FUZZ_CPUS];
	struct seen seen[AN_MAX_CONTRACTS];
	u64 charged_ns[AN_MAX_CONTRACTS]; /* by us, since the contract was made */
	struct an_learner learner[FUZZ_LEARNERS];
	u32 jumps; /* the contract whose deadline may go back in this call */
} shell;

static u64 units(u64 number)
{
	return number << shell.shift;
}

static u64 take_time(void)
{
	return units(take());
}

/* A contract; with none, NOBODY. The task server is the event scheduler's own. */
static u32 take_contract(void)
{
	u32 at = 1 + take() % (set.unused > 1 ? set.unused - 1 : 1);

	for (u32 turn = 1; turn < set.unused; turn++) {
		if (set.contracts[at].used && at != set.cpus[0].server)
			return at;
		at = at + 1 < set.unused ? at + 1 : 1;
	}
	return NOBODY;
}

static struct an_contract *contract(u32 index)
{
	return &set.contracts[index];
}

/* ---- duties ---- */

static void charge(u32 index, u64 ran_ns)
{
	u64 counted_ns = ran_ns < AN_MAX_RUN_NS ? ran_ns : AN_MAX_RUN_NS;

	if (contract(index)->runnable && contract(index)->payer == AN_PAYS_SERVER)
		shell.charged_ns[set.cpus[contract(index)->cpu].server] += counted_ns;
	if (contract(index)->runnable)
		shell.charged_ns[index] += counted_ns;
	an_contract_charge(&set, index, ran_ns, shell.now_ns);
}

/* What runs on this CPU has run until now. */
static void settle(u32 cpu)
{
	struct fuzz_cpu *c = &shell.cpu[cpu];
	u64 ran_ns = shell.now_ns - c->since_ns;

	c->since_ns = shell.now_ns;
	if (c->charge)
		charge(c->charge, ran_ns);
}

/* It does not run any more, and was charged. */
static void stop(u32 index)
{
	for (u32 cpu = 0; index && cpu < shell.cpus; cpu++) {
		struct fuzz_cpu *c = &shell.cpu[cpu];

		if (c->run != index && c->charge != index)
			continue;
		settle(cpu);
		c->run = c->charge = NOBODY;
	}
}

/* What is due is done; each thing that is takes its contract on, or out of the heap. */
static u64 expire(u32 cpu)
{
	u64 kick = 0;

	for (u32 left = 64; left; left--) {
		u64 due_ns = an_contracts_due(&set, cpu);
		u32 index = an_contracts_expire_one(&set, cpu, shell.now_ns);

		if (!index)
			break;
		CHECK(due_ns <= shell.now_ns);
		CHECK(!contract(index)->position[AN_TIMERS] || contract(index)->due_ns > due_ns);
	}
	/* Of short periods that were slept through there may be more than one call deals with. */
	return an_contracts_expire(&set, cpu, shell.now_ns, &kick);
}

/* The pick may be served. */
static void check_picked(u32 cpu, u32 index, bool alone)
{
	u64 run_ns = an_contract_run_ns(&set, index, shell.now_ns);

	CHECK(contract(index)->used && contract(index)->runnable && !contract(index)->parked);
	CHECK_EQ(contract(index)->cpu, cpu);
	CHECK_EQ(index, an_heap_first(&set.cpus[cpu], AN_READY));
	CHECK(alone || contract(index)->rank <= AN_RANK_EXTRA);
	CHECK(run_ns > 0); /* or the CPU would turn and turn */
	CHECK(run_ns == AN_NEVER || contract(index)->rank != AN_RANK_BUDGET ||
	      run_ns <= (AN_MAX_RESIDUALS + 1) * AN_MAX_PERIOD_NS);
}

/* The event scheduler has its say. */
static void coordinate(u32 cpu, u32 index)
{
	struct an_event_decision decision = {0};
	struct fuzz_cpu *c = &shell.cpu[cpu];

	an_event_coordinate(&set, cpu, index, shell.now_ns, &decision);
	CHECK(decision.run_ns > 0);
	CHECK_EQ(decision.run != index, decision.rule >= AN_RULE_TASK_SERVER &&
						decision.rule <= AN_RULE_EVENT_5 &&
						decision.rule != AN_RULE_EVENT_1);
	CHECK(!decision.delivered || contract(decision.run)->runnable);
	c->run = decision.run;
	c->charge = decision.charge;
}

/* The CPU turns to its contracts, as contract_run.h wants it done. */
static void turn(u32 cpu, bool alone)
{
	struct fuzz_cpu *c = &shell.cpu[cpu];
	u32 rule, index, throttled = 0;
	u64 due_ns;

	settle(cpu);
	due_ns = expire(cpu);
	while (an_contracts_overdrawn(&set, cpu, shell.now_ns))
		CHECK(++throttled <= set.count);
	if (shell.forfeits)
		an_task_server_forfeits(&set, cpu, shell.now_ns);
	index = an_contracts_pick(&set, cpu, shell.now_ns, alone, &rule);
	CHECK_EQ(index == NOBODY, rule == AN_RULE_NONE);
	c->run = c->charge = index;
	if (due_ns <= shell.now_ns)
		return;
	if (index)
		check_picked(cpu, index, alone);
	coordinate(cpu, index);
}

/* ---- promises ---- */

/* Of a kind, with numbers that fit; the last kind may be nonsense. */
static void take_promise(struct an_promise *p)
{
	static const u32 server = AN_HARD | AN_RECLAIM | AN_BORROW | AN_CATCH_UP;
	u32 kind = take() % 8;

	memset(p, 0, sizeof(*p));
	p->period_ns = units(1 + take() % 255);
	p->budget_ns = 1 + p->period_ns * take() / 257;
	if (KNOWN_SOFT_WRAPS && p->budget_ns <= p->period_ns / 1024)
		p->budget_ns += p->period_ns / 1024;
	p->cpu = take() % shell.cpus;
	if (kind < 4) {
		p->flags = take() & server;
	} else if (kind < 6) {
		p->flags = AN_WINDOW | (take() & (AN_WORK_CONSERVING | AN_BORROW));
		p->y = take() % 16;
		p->x = p->y ? take() % (p->y + 1) : 0;
	} else if (kind < 7) {
		p->flags = AN_EXHAUSTIVE;
	} else {
		p->flags = take() << 1 & AN_CONTRACT_FLAGS & ~AN_LEARNT;
		p->x = take();
		p->y = take();
	}
	if (!(p->flags & AN_WINDOW) && take() & 1)
		p->deadline_rel_ns = p->budget_ns + (p->period_ns - p->budget_ns) * take() / 256;
}

static void forget(u32 index)
{
	memset(&shell.seen[index], 0, sizeof(shell.seen[index]));
	shell.charged_ns[index] = 0;
}

static void create(void)
{
	struct an_promise promise;
	u32 index;

	take_promise(&promise);
	if (set.count >= FUZZ_CONTRACTS)
		return;
	index = an_contract_create(&set, &promise);
	CHECK_EQ(index != NOBODY, an_promise_valid(&promise));
	if (index)
		forget(index);
}

/* What a task of this part would be learnt to need, on this CPU. */
static void learnt_promise(struct an_promise *p, u32 *part)
{
	struct an_learner *l = &shell.learner[take() % FUZZ_LEARNERS];

	an_learn_promise_for(l, take() % (AN_EVENT_AWAITED + 1), set.learn_bound, p);
	*part = an_learn_part(l);
	p->cpu = take() % shell.cpus;
	CHECK(an_promise_valid(p));
}

static void create_learnt(void)
{
	struct an_promise promise = {0};
	u32 index, part;

	if (set.count >= FUZZ_CONTRACTS || !set.learn_bound)
		return;
	learnt_promise(&promise, &part);
	index = an_contract_create(&set, &promise);
	CHECK(index);
	forget(index);
	an_learnt_assure(&set, contract(index), part);
}

/* As the kernel's shell does it: to its CPU, then the promise, then what it is sure of. */
static void change_learnt(void)
{
	struct an_promise promise = {0};
	u32 index = take_contract(), part;

	if (!index || !an_has(contract(index), AN_LEARNT))
		return;
	learnt_promise(&promise, &part);
	stop(index);
	shell.jumps = index;
	if (promise.cpu != contract(index)->cpu)
		CHECK_EQ(an_contract_move(&set, index, promise.cpu), 0);
	CHECK_EQ(an_contract_set(&set, index, &promise), 0);
	an_learnt_assure(&set, contract(index), part);
}

static void change(void)
{
	u32 index = take_contract();
	struct an_promise promise;

	take_promise(&promise);
	if (!index || an_has(contract(index), AN_LEARNT))
		return;
	promise.cpu = contract(index)->promise.cpu;
	stop(index);
	if (KNOWN_SET_REFILLS && contract(index)->throttled && contract(index)->left_ns > 0)
		return;
	if (KNOWN_SET_SPENT && an_has(contract(index), AN_EXHAUSTIVE) &&
	    contract(index)->left_ns <= 0)
		return;
	shell.jumps = index;
	an_contract_set(&set, index, &promise);
}

static void split(void)
{
	u32 index = take_contract(), count = 2 + take() % 3;
	struct an_piece pieces[AN_MAX_PIECES] = {0};
	const struct an_promise *p = &contract(index)->promise;
	u64 window_ns = p->deadline_rel_ns / count, left_ns = p->budget_ns;

	if (!index || shell.cpus < 2)
		return;
	for (u32 at = 0; at < count; at++) {
		u64 budget_ns = at + 1 < count ? p->budget_ns * (1 + take()) / 257 : left_ns;

		if (budget_ns > left_ns)
			budget_ns = left_ns;
		left_ns -= budget_ns;
		pieces[at].budget_ns = budget_ns;
		pieces[at].offset_ns = at * window_ns;
		pieces[at].window_ns = window_ns - window_ns * (take() % 4) / 16;
		pieces[at].cpu = (p->cpu + at) % shell.cpus;
	}
	shell.jumps = index;
	if (!an_split_set(&set, index, pieces, count))
		CHECK(an_split_valid(p, pieces, count));
}

static void move(void)
{
	u32 index = take_contract();
	u32 cpu = take() % shell.cpus;

	if (!index)
		return;
	stop(index);
	if (!an_contract_move(&set, index, cpu) && an_has(contract(index), AN_LEARNT))
		an_learnt_assure(&set, contract(index), contract(index)->part);
}

static void remove_contract(void)
{
	u32 index = take_contract();
	u16 generation = contract(index)->generation;

	if (!index)
		return;
	stop(index);
	CHECK_EQ(an_contract_remove(&set, index), 0);
	CHECK(contract(index)->generation != generation);
	CHECK_EQ(an_contract_remove(&set, index), -1);
}

/* ---- jobs ---- */

static void wake(void)
{
	u32 index = take_contract();
	enum an_rule rule;

	if (!index)
		return;
	an_contract_budget_from_ns(contract(index), shell.now_ns); /* a hint; it may be past */
	if (!contract(index)->started) /* split after it had been: it begins anew */
		shell.jumps = index;
	if (shell.now_ns & 4) { /* it has run elsewhere since */
		u64 ago_ns = shell.now_ns / 2 % (contract(index)->promise.period_ns * 2);

		if (ago_ns > shell.now_ns)
			ago_ns = shell.now_ns;
		rule = an_contract_wake_since(&set, index, shell.now_ns - ago_ns,
					      shell.now_ns & 8 ? ago_ns : 0, shell.now_ns);
	} else {
		rule = an_contract_wake(&set, index, shell.now_ns);
	}
	if (rule == AN_RULE_RELEASED && an_has(contract(index), AN_WINDOW))
		CHECK_EQ(contract(index)->deadline_ns % contract(index)->promise.period_ns, 0);
	if (rule == AN_RULE_CAUGHT_UP || an_has(contract(index), AN_EXHAUSTIVE))
		shell.jumps = index;
	for (u32 cpu = 0; cpu < shell.cpus; cpu++)
		if (shell.cpu[cpu].run && contract(index)->cpu == cpu)
			an_contract_preempts(&set, index, shell.cpu[cpu].run);
}

static void sleep_contract(void)
{
	u32 index = take_contract();

	stop(index);
	if (index)
		an_contract_sleep(&set, index, shell.now_ns);
}

static void next_job(void)
{
	u32 index = take_contract();
	u64 before_ns = take_time();

	stop(index);
	if (!index || (KNOWN_LEARNT_JOB && an_has(contract(index), AN_LEARNT)))
		return;
	shell.jumps = an_has(contract(index), AN_EXHAUSTIVE) ? index : NOBODY;
	an_contract_next_job(&set, index, before_ns < shell.now_ns ? shell.now_ns - before_ns : 0,
			     shell.now_ns);
}

static void end(void)
{
	u32 index = take_contract();

	stop(index);
	if (index)
		an_contract_end(&set, index, shell.now_ns);
}

static void park(void)
{
	u32 index = take_contract();
	bool parked = take() & 1;

	stop(index);
	if (index)
		an_contract_park(&set, index, parked);
}

static void inherit(void)
{
	u32 index = take_contract();

	if (index)
		an_contract_inherit_deadline(&set, index, shell.now_ns + take_time());
}

/*
 * One nested in this one ran. Where neither a clock nor a new budget has a part in it, what was run
 * comes out of what is left or is owed.
 */
static void charge_around(void)
{
	u32 index = take_contract();
	u64 ran_ns = take_time(), accounted_ns;
	struct an_contract *c = contract(index), before = *c;
	enum an_rule rule;

	if (!index || an_has(c, AN_LEARNT) || ran_ns > shell.now_ns)
		return;
	if (an_has(c, AN_EXHAUSTIVE))
		shell.jumps = index;
	rule = an_contract_charge_around(&set, index, ran_ns, shell.now_ns);
	if (rule != AN_RULE_NONE || an_has(c, AN_WINDOW) || c->split ||
	    before.deadline_ns != c->deadline_ns || !before.started ||
	    (KNOWN_PARKED_FREE && before.parked))
		return;
	accounted_ns = before.left_ns - c->left_ns + c->owes_ns - before.owes_ns;
	CHECK_EQ(accounted_ns, ran_ns);
}

/* ---- time ---- */

static void look(void)
{
	u8 operand = take();

	turn(operand % shell.cpus, operand & 0x80);
}

static void look_everywhere(void)
{
	for (u32 cpu = 0; cpu < shell.cpus; cpu++)
		turn(cpu, false);
}

static void wait(void)
{
	shell.now_ns += take_time();
}

static void wait_long(void)
{
	shell.now_ns += take_time() << 8;
}

/* Until the next instant that matters to this CPU, which then looks. */
static void wait_for_next(void)
{
	u32 cpu = take() % shell.cpus;
	u64 next_ns = an_contracts_due(&set, cpu);

	if (shell.cpu[cpu].charge) {
		u64 run_ns = an_contract_run_ns(&set, shell.cpu[cpu].charge, shell.now_ns);

		if (run_ns < AN_NEVER - shell.now_ns && shell.now_ns + run_ns < next_ns)
			next_ns = shell.now_ns + run_ns;
	} else {
		u64 wait_ns = an_contracts_wait_ns(&set, cpu);

		if (wait_ns < AN_NEVER - shell.now_ns && shell.now_ns + wait_ns < next_ns)
			next_ns = shell.now_ns + wait_ns;
	}
	if (next_ns != AN_NEVER && next_ns > shell.now_ns)
		shell.now_ns = next_ns;
	turn(cpu, false);
}

/* ---- events ---- */

static void raise_event(void)
{
	u32 sink = take_contract(), later;

	if (!sink)
		return;
	later = take();
	CHECK_EQ(an_event_raise(&set, sink, later % AN_SERVICES, shell.now_ns + units(later),
				shell.now_ns),
		 an_contract_may_sink(contract(sink)));
}

static void update_server(void)
{
	settle(0);
	shell.cpu[0].run = shell.cpu[0].charge = NOBODY;
	shell.jumps = set.cpus[0].server;
	an_task_server_update(&set, 0, units(1 + take() % 4), shell.now_ns);
	if (set.cpus[0].server != shell.jumps)
		forget(set.cpus[0].server);
	shell.jumps = set.cpus[0].server;
}

/* ---- learners ---- */

static void learn(void)
{
	u8 operand = take();
	struct an_learner *l = &shell.learner[operand % FUZZ_LEARNERS];
	u64 ran_ns = take_time();

	switch (operand >> 2 & 7) {
	case 0:
		an_learn_service(l, ran_ns);
		break;
	case 1:
		an_learn_answered(l, take(), shell.now_ns);
		break;
	case 2:
		an_rhythm_beat(&l->rhythm, l->slept_ns, shell.now_ns);
		break;
	case 3:
		l->slept_ns = shell.now_ns;
		break;
	case 4:
		an_learn_slept(l, shell.now_ns);
		break;
	default:
		if (!an_learn_goes_on_soon(l, shell.now_ns))
			an_learn_wake(l, shell.now_ns);
	}
	CHECK(l->jobs <= AN_LEARN_AVERAGED);
	CHECK(l->largest_ns <= AN_LEARN_SERVICE_MAX_NS);
	CHECK(l->service_ns <= AN_LEARN_MEMORY_NS && l->mean_ns <= AN_LEARN_MEMORY_NS);
	CHECK(l->window_jobs < AN_LEARN_WINDOW_JOBS && l->window_ns < AN_LEARN_MEMORY_NS);
	CHECK(l->distance_ns <= AN_LEARN_MEMORY_NS && l->woken_ns <= shell.now_ns);
	CHECK(an_rhythm_ns(&l->rhythm) <= AN_LEARN_MEMORY_NS);
	CHECK(l->events <= AN_LEARN_ENOUGH + 1);
}

/* ---- what is asserted ---- */

/* Deadlines and releases never go back, service is what was charged. */
static void check_progress(const char *call, u32 index)
{
	const struct an_contract *c = contract(index);
	struct seen *seen = &shell.seen[index];
	const char *broken = NULL;

	if (!c->used)
		return;
	if (seen->generation == c->generation && index != shell.jumps && !an_has(c, AN_LEARNT)) {
		if (c->deadline_ns < seen->deadline_ns)
			broken = "a deadline never goes back";
		if (c->split && c->release_ns < seen->release_ns)
			broken = "a release never goes back";
	}
	if (c->service_ns != shell.charged_ns[index])
		broken = "service is what was charged";
	if (!(KNOWN_NESTED_EXTRA && an_has(c, AN_WINDOW)) &&
	    c->extra_ns + c->borrowed_ns + c->reclaimed_ns > c->service_ns)
		broken = "service of one kind is no more than all";
	if (c->misses > c->deadlines || c->violations > c->misses)
		broken = "who misses a deadline had one";
	if (broken)
		test_fail(__FILE__, __LINE__, "%s: contract %u: not so: %s", call, index, broken);
	*seen = (struct seen){c->deadline_ns, c->release_ns, c->service_ns, c->generation};
}

static void check(const char *call)
{
	u32 at = 0;
	const char *broken = contract_broken(&set, shell.cpus, &at);

	if (broken)
		test_fail(__FILE__, __LINE__, "%s: %u: not so: %s", call, at, broken);
	for (u32 index = 1; index < set.unused; index++)
		check_progress(call, index);
}

static const struct {
	const char *name;
	void (*call)(void);
} calls[] = {
	{"create", create},
	{"create_learnt", create_learnt},
	{"change", change},
	{"change_learnt", change_learnt},
	{"split", split},
	{"move", move},
	{"remove", remove_contract},
	{"wake", wake},
	{"wake", wake},
	{"wake", wake},
	{"sleep", sleep_contract},
	{"next_job", next_job},
	{"end", end},
	{"park", park},
	{"inherit", inherit},
	{"charge_around", charge_around},
	{"look", look},
	{"look", look},
	{"look_everywhere", look_everywhere},
	{"wait", wait},
	{"wait", wait},
	{"wait_long", wait_long},
	{"wait_for_next", wait_for_next},
	{"wait_for_next", wait_for_next},
	{"raise_event", raise_event},
	{"update_server", update_server},
	{"learn", learn},
	{"learn", learn},
};

/* As fresh as the kernel's .bss, in storage that may hold an earlier set. */
static void begin(void)
{
	static const u32 shifts[] = {0, 10, 20, 24};
	u8 bounds = take();

	memset(set.contracts, 0, (set.unused ? set.unused : 1) * sizeof(set.contracts[0]));
	memset(&shell, 0, sizeof(shell));
	shell.cpus = 1 + take() % FUZZ_CPUS;
	shell.shift = shifts[take() % 4];
	shell.now_ns = take_time();
	an_contracts_init(&set, take());
	/* The shell's smallest: 2 % [1/1024]. */
	set.bound = bounds & 1 ? 20 + take() * 1000 / 255 : 0;
	set.learn_bound = bounds & 2 ? 20 + take() * 900 / 255 : 0;
	set.options |= bounds & 4 ? AN_EVENT_AS_PUBLISHED : 0;
	shell.forfeits = bounds & 8;
	for (u32 at = 0; at < FUZZ_LEARNERS; at++)
		an_learn_begin(&shell.learner[at], shell.now_ns);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	input_begin(data, size);
	begin();
	while (input_left()) {
		u32 call = take() % (sizeof(calls) / sizeof(calls[0]));

		shell.jumps = NOBODY;
		calls[call].call();
		check(calls[call].name);
	}
	return 0;
}
