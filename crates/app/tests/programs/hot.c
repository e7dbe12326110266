/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What may be called where sound is made: hot quiet | steps. Quiet makes every such call, also
 * wrongly, where any system call ends the program, and counts what is allocated. Steps says how
 * many instructions each takes.
 */
#include <andante.h>

#include "check.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned allocations;

/* The C library's, under its other names. */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);

void *malloc(size_t size)
{
	allocations++;
	return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	allocations++;
	return __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
	allocations++;
	return __libc_realloc(old, size);
}

static andante_thread *thread;
static andante_sink *sink;

static void join(void)
{
	struct andante_wish wish;
	andante_session *session;

	memset(&wish, 0, sizeof wish);
	wish.size = sizeof wish;
	wish.role = ANDANTE_ROLE_AUDIO;
	RETURNS(0, andante_open(&wish, &session));
	RETURNS(0, andante_join(session, NULL, &thread));
	sink = andante_sink_of(thread);
}

/* Without words: nothing may be printed here. The first call that returns something else; 0: none.
 */
static int wrong(void)
{
	uint64_t now_ns = andante_now_ns(), soon_ns = now_ns + 1000000000;

	if (andante_begin(thread, soon_ns) != 0 ||
	    andante_begin(thread, soon_ns) != ANDANTE_E_NOT_ENDED)
		return 1;
	if (andante_begin(thread, now_ns) != ANDANTE_E_PAST_DEADLINE)
		return 2;
	if (andante_end(thread) != ANDANTE_E_NO_CYCLE || andante_begin(thread, soon_ns) != 0 ||
	    andante_end(thread) != 0)
		return 3;
	if (andante_report(thread, 1) != 0 || andante_surge(thread) != 0)
		return 4;
	if (andante_raise(sink, 1, soon_ns) != 0)
		return 5;
	if (andante_raise(sink, ANDANTE_SERVICES, 0) != ANDANTE_E_NO_SERVICE)
		return 6;
	if (andante_pending(thread, 1) != 1)
		return 7;
	return andante_pending(thread, ANDANTE_SERVICES) == ANDANTE_E_NO_SERVICE ? 0 : 8;
}

/* From now on every system call but the last ends the program. Strict mode would take the clock
 * away as well. */
static int forbid_system_calls(void)
{
	struct sock_filter steps[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = {sizeof steps / sizeof *steps, steps};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static int quiet(void)
{
	int i, status = 0;

	join();
	if (!forbid_system_calls())
		return 77;
	allocations = 0;
	for (i = 0; i < 1000 && status == 0; i++)
		status = wrong();
	if (status == 0 && allocations != 0)
		status = 9;
	_exit(status);
}

enum {
	CALLS = 5,
	ROUNDS = 20
};

/* Between two of these the calls are counted. */
static void __attribute__((noinline)) mark(void)
{
	__asm__ volatile("" ::: "memory");
}

static void child(void)
{
	uint64_t soon_ns = andante_now_ns() + 1000000000000;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		mark();
		andante_now_ns();
		mark();
		andante_begin(thread, soon_ns);
		mark();
		andante_end(thread);
		mark();
		andante_raise(sink, 1, 0);
		mark();
		andante_surge(thread);
	}
	mark();
	_exit(0);
}

#ifdef __x86_64__
static void traced(void)
{
	join();
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
		_exit(77);
	raise(SIGSTOP);
	child();
}

/* The least of some rounds: the kernel sets its clock meanwhile, and whoever reads it begins again.
 */
static int steps(void)
{
	static const char *const names[CALLS] = {"now", "begin", "end", "raise", "surge"};
	unsigned least[CALLS] = {-1u, -1u, -1u, -1u, -1u}, taken = 0;
	struct user_regs_struct of;
	int status, i, marks = 0;
	pid_t pid = fork();

	if (pid == 0)
		traced();
	CHECK(waitpid(pid, &status, 0) == pid);
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	for (; WIFSTOPPED(status); taken++) {
		CHECK(ptrace(PTRACE_GETREGS, pid, NULL, &of) == 0);
		if (of.rip == (unsigned long long)(size_t)mark) {
			unsigned *found = &least[(marks + CALLS - 1) % CALLS];

			*found = marks > 0 && taken < *found ? taken : *found;
			marks++;
			taken = 0;
		}
		CHECK(ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) == 0);
		CHECK(waitpid(pid, &status, 0) == pid);
	}
	CHECK(marks == CALLS * ROUNDS + 1);
	for (i = 0; i < CALLS; i++)
		printf("%s %u\n", names[i], least[i]);
	return WEXITSTATUS(status);
}
#else
static int steps(void)
{
	(void)child;
	return 77;
}
#endif

int main(int argc, char **argv)
{
	CHECK(argc == 2);
	return strcmp(argv[1], "quiet") == 0 ? quiet() : steps();
}
