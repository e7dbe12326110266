// SPDX-License-Identifier: GPL-2.0
/*
 * Instructions of raising an event, and of the decision that the event scheduler makes after a
 * pick, with so many events queued on a CPU: counted one by one (ptrace), on x86-64.
 *
 * event_steps        a table; fails if more is taken than may be
 */
#include "../core.h"

#include <stdio.h>
#include <stdlib.h>

#ifdef __x86_64__
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define C_NS 100000ULL
#define T_NS 100000000ULL
#define LATER_NS 50000000ULL

static struct an_contracts set;
static struct an_event_decision decision;
static u32 queued;

enum operation {
	RAISED_FIRST,
	RAISED_LAST,
	NOTHING_DUE,
	RULE_2,
	RULE_4,
	TOO_MANY,
	OPERATIONS
};

static const char *const names[OPERATIONS] = {"raise, the first",    "raise, the last",
					      "decide, nothing due", "decide, rule 2",
					      "decide, rule 4",	     "decide, too many wait"};

/* What may be taken, whatever is queued. */
static const long bounds[OPERATIONS] = {350, 350, 150, 600, 600, 600};

/* Between two of these it is counted. */
static void __attribute__((noinline)) mark(void)
{
	__asm__ volatile("" ::: "memory");
}

/* How many of them come before the sink: under rule 4 as many as it may go first of. */
static u32 before_sink(enum operation operation)
{
	return operation == RULE_4 ? AN_MAX_WAITING - 1 : operation == TOO_MANY ? queued : 0;
}

/* All contracts of the CPU have an event queued, after one another, but for the first, the sink. */
static u32 build(enum operation operation)
{
	struct an_promise promise = {C_NS, T_NS, T_NS, 1, 2, AN_WINDOW, 0};
	u32 sink = AN_NONE;

	an_contracts_init(&set, 0);
	for (u32 number = 0; number <= queued; number++) {
		u32 index;

		/* Only by their windows do others come before the sink. The rest is due later. */
		promise.y = number && number <= before_sink(operation) ? 3 : 2;
		if (number > before_sink(operation) && operation == RULE_4)
			promise.period_ns = promise.deadline_rel_ns = 2 * T_NS;
		index = an_contract_create(&set, &promise);
		an_contract_wake(&set, index, 0);
		if (number == 0)
			sink = index;
		else
			an_event_raise(&set, index, 0, LATER_NS + number, 0);
	}
	if (operation == RULE_2 || operation == RULE_4 || operation == TOO_MANY)
		an_event_raise(&set, sink, 0, 0, 0);
	if (operation == NOTHING_DUE)
		an_event_raise(&set, sink, 0, LATER_NS, 0);
	return sink;
}

static void runs(enum operation operation)
{
	u32 sink = build(operation), selected = AN_NONE, rule;

	if (operation == RULE_4 || operation == TOO_MANY)
		selected = an_contracts_pick(&set, 0, 1, false, &rule);
	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	raise(SIGSTOP);
	mark();
	if (operation == RAISED_FIRST)
		an_event_raise(&set, sink, 0, 1, 1);
	else if (operation == RAISED_LAST)
		an_event_raise(&set, sink, 0, 2 * LATER_NS, 1);
	else
		an_event_coordinate(&set, 0, selected, 1, &decision);
	mark();
	/* It was what is counted. */
	if (operation == RULE_2 && decision.rule != AN_RULE_EVENT_2)
		_exit(1);
	if (operation == RULE_4 && queued && decision.rule != AN_RULE_EVENT_4)
		_exit(1);
	if (operation == TOO_MANY && queued >= AN_MAX_WAITING && decision.rule != AN_RULE_NONE)
		_exit(1);
	_exit(0);
}

static long counted(enum operation operation)
{
	long taken = -1;
	int status = 0;
	pid_t pid = fork();

	if (!pid)
		runs(operation);
	if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
		return -1;
	for (int marks = 0; WIFSTOPPED(status);) {
		struct user_regs_struct of;

		if (ptrace(PTRACE_GETREGS, pid, NULL, &of))
			return -1;
		if (of.rip == (unsigned long long)mark)
			marks++;
		taken += marks == 1;
		/* The rest is not looked at. */
		if (ptrace(marks < 2 ? PTRACE_SINGLESTEP : PTRACE_CONT, pid, NULL, NULL) ||
		    waitpid(pid, &status, 0) != pid)
			return -1;
	}
	return WEXITSTATUS(status) ? -1 : taken;
}

int main(void)
{
	static const u32 many[] = {0, 7, 10, 100, 254};
	u32 above = 0;

	printf("%-24s %6s %12s\n", "events of a CPU", "queued", "instructions");
	for (u32 operation = 0; operation < OPERATIONS; operation++)
		for (u32 i = 0; i < sizeof(many) / sizeof(many[0]); i++) {
			long taken;

			queued = many[i];
			taken = counted(operation);
			if (taken < 0)
				return fprintf(stderr, "event_steps: %s: cannot be counted here\n",
					       names[operation]),
				       1;
			printf("%-24s %6u %12ld\n", names[operation], queued, taken);
			above += taken > bounds[operation];
		}
	if (above)
		fprintf(stderr, "event_steps: above the bound in %u cases\n", above);
	return above != 0;
}
#else
int main(void)
{
	fprintf(stderr, "event_steps: instructions are counted on x86-64 only\n");
	return 1;
}
#endif
