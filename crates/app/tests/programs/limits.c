/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Where programs come to an end of something: limits files | busy | ends | copy | twice | fds |
 * filtered.
 */
#include <andante.h>

#include "check.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	ENDED = 20
};

static int told(andante_session *session)
{
	struct andante_notice notice;

	memset(&notice, 0, sizeof notice);
	notice.size = sizeof notice;
	return andante_next_notice(session, &notice);
}

/* No descriptor is left for the page: that is said, and costs the thread nothing but another try.
 */
static int files(void)
{
	andante_session *session = opened(NULL, 0);
	andante_thread *thread;
	int last = -1, next;

	while ((next = dup(0)) >= 0)
		last = next;
	CHECK(last >= 0);
	RETURNS(ANDANTE_E_SYSTEM, andante_join(session, NULL, &thread));
	CHECK(thread == NULL && strstr(andante_last_message(), "too many files") != NULL);
	close(last);
	RETURNS(0, andante_join(session, NULL, &thread));
	CHECK(dup(0) == last); /* the page needs none any more */
	RETURNS(0, andante_leave(thread));
	return andante_close(session);
}

static void *asks(void *session)
{
	RETURNS(ANDANTE_E_LATE, andante_foreground((andante_session *)session, 1));
	return NULL;
}

/* While another thread waits for a daemon that is stuck, asking for notices does not wait. */
static int busy(void)
{
	andante_session *session = opened(NULL, 0);
	uint64_t begun_ns = andante_now_ns();
	pthread_t thread;

	CHECK(pthread_create(&thread, NULL, asks, session) == 0);
	usleep(200000);
	RETURNS(0, told(session));
	CHECK(andante_now_ns() - begun_ns < 1500000000); /* of the two seconds of the other */
	CHECK(pthread_join(thread, NULL) == 0);
	RETURNS(ANDANTE_E_LOST, told(session));
	return andante_close(session);
}

static void *joins(void *session)
{
	andante_thread *thread;

	RETURNS(0, andante_join((andante_session *)session, NULL, &thread));
	RETURNS(0, andante_begin(thread, andante_now_ns() + 1000000000));
	return thread;
}

static int promised(andante_session *session)
{
	struct andante_terms terms;
	struct andante_answer answer;
	int error;

	memset(&terms, 0, sizeof terms);
	memset(&answer, 0, sizeof answer);
	terms.size = sizeof terms;
	terms.budget_ns = 1000000;
	terms.period_ns = 16666667;
	answer.size = sizeof answer;
	error = andante_promise(session, &terms, &answer);
	CHECK(error < 0 || answer.granted);
	return error;
}

/* Threads end in the middle of a cycle, without a word; others free what they have left. */
static int ends(void)
{
	andante_session *session = opened(NULL, 0);
	andante_thread *own;
	void *left[ENDED];
	pthread_t thread;
	int i;

	for (i = 0; i < ENDED; i++) {
		CHECK(pthread_create(&thread, NULL, joins, session) == 0);
		CHECK(pthread_join(thread, &left[i]) == 0);
		/* It is seen to have ended a moment after others have been told. */
		while (promised(session) != ANDANTE_E_NO_THREAD)
			usleep(1000);
	}
	RETURNS(0, andante_join(session, NULL, &own));
	RETURNS(0, promised(session));
	for (i = 0; i < ENDED; i++)
		RETURNS(0, andante_leave((andante_thread *)left[i]));
	RETURNS(0, andante_leave(own));
	return andante_close(session);
}

/* Whoever has the descriptor too, as children do, does not keep the session alive. */
static int copied(void)
{
	andante_session *session = opened(NULL, 0);
	struct pollfd copy;

	copy.fd = dup(andante_fd(session));
	copy.events = POLLIN;
	CHECK(copy.fd >= 0 && poll(&copy, 1, 0) == 0);
	RETURNS(0, andante_close(session));
	CHECK(poll(&copy, 1, 10000) == 1 && (copy.revents & POLLHUP) != 0);
	return 0;
}

/* A thread takes part in one session at a time. */
static int twice(void)
{
	andante_session *session = opened(NULL, 0), *other = opened(NULL, 0);
	andante_thread *thread, *again;

	RETURNS(0, andante_join(session, NULL, &thread));
	RETURNS(ANDANTE_E_TAKEN, andante_join(other, NULL, &again));
	RETURNS(0, andante_leave(thread));
	RETURNS(0, andante_join(other, NULL, &again));
	RETURNS(0, andante_leave(again));
	RETURNS(0, andante_close(other));
	return andante_close(session);
}

/* A daemon that passes more than anybody asked for: none of it stays. */
static int flooded(void)
{
	andante_session *session = opened(NULL, 0);
	int before = dup(0);

	close(before);
	CHECK(told(session) == 0 || told(session) == ANDANTE_E_LOST);
	RETURNS(ANDANTE_E_LOST, andante_foreground(session, 1));
	RETURNS(0, andante_close(session));
	CHECK(dup(0) < before); /* the connection's is free, and none after it is taken */
	CHECK(dup(0) == before);
	return 0;
}

#define ENDS_WHO_CALLS(number)                                                                     \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),                                         \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

/* Under a filter that ends who makes one of the calls to the scheduler, none is made, though the
 * daemon offers both: it is asked instead. */
static int filtered(void)
{
	struct sock_filter lines[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		ENDS_WHO_CALLS(SYS_prctl),
		ENDS_WHO_CALLS(SYS_bpf),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof lines / sizeof *lines, lines};
	andante_session *before = opened(NULL, 0), *session;
	andante_thread *thread;
	andante_sink *sink;

	RETURNS(ANDANTE_CALL_FAST, andante_calls(before));
	RETURNS(0, andante_close(before));
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0)
		return 77;
	session = opened(NULL, 0);
	RETURNS(ANDANTE_CALL_SOCKET, andante_calls(session));
	RETURNS(0, andante_join(session, NULL, &thread));
	sink = andante_sink_of(thread);
	RETURNS(0, andante_raise_now(sink, 1, 0));
	RETURNS(1, andante_pending(thread, 1));
	RETURNS(0, andante_sink_free(sink));
	RETURNS(0, andante_leave(thread));
	return andante_close(session);
}

int main(int argc, char **argv)
{
	CHECK(argc == 2);
	if (strcmp(argv[1], "files") == 0)
		return files();
	if (strcmp(argv[1], "busy") == 0)
		return busy();
	if (strcmp(argv[1], "ends") == 0)
		return ends();
	if (strcmp(argv[1], "copy") == 0)
		return copied();
	if (strcmp(argv[1], "twice") == 0)
		return twice();
	if (strcmp(argv[1], "filtered") == 0)
		return filtered();
	CHECK(strcmp(argv[1], "fds") == 0);
	return flooded();
}
