/* SPDX-License-Identifier: GPL-2.0 */
/*
 * All that andante.h has, from several threads. Compiled as C and as C++, with and without
 * optional.h.
 */
#ifdef OPTIONAL
#include <andante/optional.h>
#else
#include <andante.h>
#endif

#include "check.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

static const uint64_t period_ns = 16666667;

static void one_cycle(andante_thread *thread)
{
	uint64_t now_ns = andante_now_ns();

	CHECK(now_ns > 0);
	RETURNS(ANDANTE_E_PAST_DEADLINE, andante_begin(thread, now_ns));
	CHECK(strstr(andante_last_message(), "deadline") != NULL);
	RETURNS(ANDANTE_E_NO_CYCLE, andante_end(thread));
	RETURNS(0, andante_begin(thread, now_ns + 1000000000));
	RETURNS(0, andante_end(thread));
	RETURNS(0, andante_begin(thread, now_ns + 1000000000));
	RETURNS(ANDANTE_E_NOT_ENDED, andante_begin(thread, now_ns + 2000000000));
	CHECK(strstr(andante_last_message(), "end()") != NULL);
	RETURNS(0, andante_end(thread)); /* it has begun */
	RETURNS(ANDANTE_E_NO_CYCLE, andante_end(thread));
	RETURNS(0, andante_report(thread, 123));
	RETURNS(0, andante_surge(thread));
}

/* A thread of its own, with a cycle of its own. */
static void *audio(void *session)
{
	struct andante_cycle cycle;
	andante_thread *thread;
	int i;

	memset(&cycle, 0, sizeof cycle);
	cycle.size = sizeof cycle;
	cycle.period_ns = 5333333;
	RETURNS(0, andante_join((andante_session *)session, &cycle, &thread));
	for (i = 0; i < 100; i++)
		one_cycle(thread);
	RETURNS(0, andante_leave(thread));
	return NULL;
}

static void *raises(void *sink)
{
	uint32_t i;

	for (i = 0; i < 1000; i++)
		RETURNS(0, andante_raise((andante_sink *)sink, i % ANDANTE_SERVICES, i));
	RETURNS(ANDANTE_E_NO_SERVICE, andante_raise((andante_sink *)sink, ANDANTE_SERVICES, 0));
	RETURNS(0, andante_raise_now((andante_sink *)sink, 3, 0));
	RETURNS(ANDANTE_E_NO_SERVICE, andante_raise_now((andante_sink *)sink, ANDANTE_SERVICES, 0));
	return NULL;
}

static void events(andante_session *session, andante_thread *thread)
{
	andante_sink *sink = andante_sink_of(thread);
	pthread_t threads[3];
	int i;

	CHECK(sink != NULL);
	RETURNS(0, andante_pending(thread, 3));
	RETURNS(ANDANTE_E_NO_SERVICE, andante_pending(thread, ANDANTE_SERVICES));
	for (i = 0; i < 3; i++)
		CHECK(pthread_create(&threads[i], NULL, raises, sink) == 0);
	for (i = 0; i < 3; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	RETURNS(1, andante_pending(thread, 3));
	if (getenv("ANDANTE_CALL") != NULL)
		RETURNS(ANDANTE_CALL_SOCKET, andante_calls(session));
	CHECK(andante_calls(session) >= ANDANTE_CALL_SOCKET);
	RETURNS(0, andante_sink_free(sink));
}

static void sources(andante_thread *thread)
{
	int ends[2], other[2];

	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0 && pipe(other) == 0);
	RETURNS(0, andante_subscribe(thread, ends[0], 1, 30000));
	RETURNS(0, andante_unsubscribe(thread, ends[0]));
	RETURNS(ANDANTE_E_NO_SERVICE, andante_subscribe(thread, ends[0], ANDANTE_SERVICES, 0));
	RETURNS(ANDANTE_E_INVALID, andante_subscribe(thread, -1, 0, 0));
	RETURNS(ANDANTE_E_BAD_TERMS, andante_subscribe(thread, other[0], 0, 0));
	close(ends[0]);
	RETURNS(ANDANTE_E_SYSTEM, andante_subscribe(thread, ends[0], 0, 0));
	RETURNS(0, andante_subscribe(thread, ends[1], 0, 0));
	close(ends[1]);
	close(other[0]);
	close(other[1]);
}

static void tells(andante_thread *thread)
{
	struct pollfd polled;

	RETURNS(0, andante_told(thread));
	polled.fd = andante_tell(thread, ANDANTE_TELL_FD);
	polled.events = POLLIN;
	CHECK(polled.fd > 0 && fcntl(polled.fd, F_GETFD) == FD_CLOEXEC);
	RETURNS(0, andante_told(thread));
	RETURNS(0, andante_tell(thread, SIGUSR1));
	CHECK(fcntl(polled.fd, F_GETFD) < 0);
	RETURNS(0, andante_tell(thread, ANDANTE_TELL_NOT));
	RETURNS(ANDANTE_E_BAD_TERMS, andante_tell(thread, 65));
	RETURNS(ANDANTE_E_INVALID, andante_tell(thread, -2));
	CHECK(andante_tell(thread, ANDANTE_TELL_FD) > 0);
}

static void promises(andante_session *session)
{
	struct andante_terms terms;
	struct andante_answer answer;
	struct andante_notice notice;

	memset(&terms, 0, sizeof terms);
	memset(&answer, 0, sizeof answer);
	memset(&notice, 0, sizeof notice);
	terms.size = sizeof terms;
	terms.period_ns = period_ns;
	terms.budget_ns = 16000000;
	RETURNS(ANDANTE_E_INVALID, andante_promise(session, &terms, &answer));
	answer.size = sizeof answer;
	RETURNS(0, andante_promise(session, &terms, &answer));
	CHECK(!answer.granted && answer.nearest && answer.reason[0] != '\0');
	CHECK(answer.budget_ns > 0 && answer.budget_ns < 16000000);
	terms.budget_ns = answer.budget_ns;
	RETURNS(0, andante_promise(session, &terms, &answer));
	CHECK(answer.granted && answer.size == sizeof answer && answer.name[0] != '\0');
	CHECK(answer.budget_ns == terms.budget_ns && answer.period_ns == period_ns);
	terms.budget_ns = 2 * period_ns;
	RETURNS(ANDANTE_E_BAD_TERMS, andante_promise(session, &terms, &answer));
	CHECK(andante_last_message()[0] != '\0');
	RETURNS(0, andante_withdraw(session));
	notice.size = sizeof notice;
	RETURNS(0, andante_next_notice(session, &notice));
	CHECK(notice.kind == ANDANTE_NOTICE_NONE);
}

static void arguments(andante_session *session)
{
	struct andante_wish wish;
	struct andante_cycle cycle;
	andante_session *none = session;
	andante_thread *thread;

	memset(&wish, 0, sizeof wish);
	memset(&cycle, 0, sizeof cycle);
	RETURNS(ANDANTE_E_INVALID, andante_open(&wish, &none));
	CHECK(none == NULL);
	RETURNS(ANDANTE_E_INVALID, andante_open(NULL, &none));
	wish.size = sizeof wish;
	RETURNS(ANDANTE_E_NO_ROLE, andante_open(&wish, &none));
	wish.role = ANDANTE_ROLE_INTERACTIVE + 1;
	RETURNS(ANDANTE_E_NO_ROLE, andante_open(&wish, &none));
	CHECK(strstr(andante_last_message(), "role 5") != NULL);
	wish.role = ANDANTE_ROLE_GAME;
	RETURNS(ANDANTE_E_INVALID, andante_open(&wish, NULL));
	wish.name = "\xff";
	RETURNS(ANDANTE_E_INVALID, andante_open(&wish, &none));
	wish.name = "two words";
	RETURNS(ANDANTE_E_BAD_TERMS, andante_open(&wish, &none));
	RETURNS(ANDANTE_E_INVALID, andante_join(session, &cycle, &thread));
	cycle.size = sizeof cycle;
	cycle.reserved = 1;
	RETURNS(ANDANTE_E_INVALID, andante_join(session, &cycle, &thread));
	CHECK(thread == NULL);
}

static void nulls(void)
{
	struct andante_terms terms;
	struct andante_answer answer;
	struct andante_notice notice;
	andante_thread *thread;

	RETURNS(ANDANTE_E_NO_SESSION, andante_join(NULL, NULL, &thread));
	CHECK(thread == NULL);
	RETURNS(ANDANTE_E_NO_SESSION, andante_join(NULL, NULL, NULL));
	RETURNS(ANDANTE_E_NO_SESSION, andante_close(NULL));
	RETURNS(ANDANTE_E_NO_SESSION, andante_leave(NULL));
	RETURNS(ANDANTE_E_NO_SESSION, andante_begin(NULL, 1));
	RETURNS(ANDANTE_E_NO_SESSION, andante_end(NULL));
	RETURNS(ANDANTE_E_NO_SESSION, andante_report(NULL, 1));
	RETURNS(ANDANTE_E_NO_SESSION, andante_surge(NULL));
	CHECK(andante_sink_of(NULL) == NULL);
	RETURNS(ANDANTE_E_NO_SESSION, andante_sink_free(NULL));
	RETURNS(ANDANTE_E_NO_SESSION, andante_raise(NULL, 0, 0));
	RETURNS(ANDANTE_E_NO_SESSION, andante_raise_now(NULL, 0, 0));
	RETURNS(ANDANTE_E_NO_SESSION, andante_calls(NULL));
	RETURNS(ANDANTE_E_NO_SESSION, andante_subscribe(NULL, 0, 0, 0));
	RETURNS(ANDANTE_E_NO_SESSION, andante_unsubscribe(NULL, 0));
	RETURNS(ANDANTE_E_NO_SESSION, andante_tell(NULL, 0));
	RETURNS(ANDANTE_E_NO_SESSION, andante_told(NULL));
	RETURNS(ANDANTE_E_NO_SESSION, andante_pending(NULL, 0));
	RETURNS(ANDANTE_E_NO_SESSION, andante_foreground(NULL, 1));
	RETURNS(ANDANTE_E_NO_SESSION, andante_promise(NULL, &terms, &answer));
	RETURNS(ANDANTE_E_NO_SESSION, andante_withdraw(NULL));
	RETURNS(ANDANTE_E_NO_SESSION, andante_fd(NULL));
	RETURNS(ANDANTE_E_NO_SESSION, andante_next_notice(NULL, &notice));
}

/* Every error has a sentence, and two have different ones. */
static void sentences(void)
{
	int i, j;

	for (i = ANDANTE_E_NO_SESSION; i >= ANDANTE_E_FAILED; i--) {
		if (i < ANDANTE_E_NOT_ENDED && i > ANDANTE_E_REFUSED)
			continue;
		CHECK(strlen(andante_strerror(i)) > 10);
		for (j = ANDANTE_E_NO_SESSION; j > i; j--)
			CHECK(strcmp(andante_strerror(i), andante_strerror(j)) != 0);
	}
	CHECK(strcmp(andante_strerror(0), "no error") == 0);
}

int main(int argc, char **argv)
{
	struct andante_wish wish;
	andante_session *session;
	andante_thread *thread, *again;
	struct pollfd polled;
	pthread_t other[2];
	int i;

	nulls();
	CHECK(andante_last_message()[0] == '\0');
	if (argc > 1) { /* nobody listens, or there is no library */
		memset(&wish, 0, sizeof wish);
		wish.size = sizeof wish;
		wish.role = ANDANTE_ROLE_AUDIO;
		session = (andante_session *)&wish;
		RETURNS(ANDANTE_E_NO_DAEMON, andante_open(&wish, &session));
		CHECK(strstr(andante_last_message(),
			     strcmp(argv[1], "absent") == 0 ? "not installed" : "nobody listens") !=
		      NULL);
		CHECK(session == NULL && andante_now_ns() > 0);
		return 0;
	}
	session = opened("everything", 4000000);
	sentences();
	arguments(session);
	RETURNS(0, andante_foreground(session, 1));
	RETURNS(0, andante_join(session, NULL, &thread));
	RETURNS(ANDANTE_E_TAKEN, andante_join(session, NULL, &again));
	CHECK(again == NULL);
	for (i = 0; i < 2; i++)
		CHECK(pthread_create(&other[i], NULL, audio, session) == 0);
	one_cycle(thread);
	for (i = 0; i < 2; i++)
		CHECK(pthread_join(other[i], NULL) == 0);
	events(session, thread);
	sources(thread);
	tells(thread);
	promises(session);
	polled.fd = andante_fd(session);
	polled.events = POLLIN;
	CHECK(polled.fd >= 0 && poll(&polled, 1, 0) == 0);
	RETURNS(0, andante_close(session));
	one_cycle(thread); /* lasts beyond the session's handle */
	RETURNS(0, andante_leave(thread));
	return 0;
}
