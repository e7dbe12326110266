/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * libandante for programs that also run where it is not installed: include this in the place of
 * andante.h, and link with nothing (before glibc 2.34 with -ldl). The library is loaded by
 * andante_open(). Without it that returns ANDANTE_E_NO_DAEMON, and all other calls do nothing, as
 * without the daemon.
 *
 * What andante.h says of each function holds here. All of a program's files that include this
 * share one library; gcc or clang, C99 or C++11. Define ANDANTE_LIBRARY before to load another
 * file.
 */
#ifndef ANDANTE_OPTIONAL_H
#define ANDANTE_OPTIONAL_H

#ifdef ANDANTE_H
#error "include andante/optional.h in the place of andante.h, not after it"
#endif

#include "../andante.h"

#include <dlfcn.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#ifndef CLOCK_MONOTONIC
#error "define _POSIX_C_SOURCE as 200809L before all includes, or compile with -std=gnu99: for clock_gettime()"
#endif

#ifndef ANDANTE_LIBRARY
#define ANDANTE_LIBRARY "libandante.so.0"
#endif

#define ANDANTE_OPTIONAL_ABSENT                                                                    \
	"libandante is not installed: " ANDANTE_LIBRARY                                            \
	" is not found, or is older than this program"

/* All functions that return int: name, parameters, arguments. */
#define ANDANTE_OPTIONAL_EACH(X)                                                                   \
	X(close, (andante_session * session), (session))                                           \
	X(leave, (andante_thread * thread), (thread))                                              \
	X(begin, (andante_thread * thread, uint64_t deadline_ns), (thread, deadline_ns))           \
	X(end, (andante_thread * thread), (thread))                                                \
	X(report, (andante_thread * thread, uint64_t worked_ns), (thread, worked_ns))              \
	X(surge, (andante_thread * thread), (thread))                                              \
	X(sink_free, (andante_sink * sink), (sink))                                                \
	X(raise, (andante_sink * sink, uint32_t service, uint64_t deliver_ns),                     \
	  (sink, service, deliver_ns))                                                             \
	X(raise_now, (andante_sink * sink, uint32_t service, uint64_t deliver_ns),                 \
	  (sink, service, deliver_ns))                                                             \
	X(subscribe, (andante_thread * thread, int fd, uint32_t service, uint32_t bytes),          \
	  (thread, fd, service, bytes))                                                            \
	X(unsubscribe, (andante_thread * thread, int fd), (thread, fd))                            \
	X(tell, (andante_thread * thread, int by), (thread, by))                                   \
	X(told, (andante_thread * thread), (thread))                                               \
	X(pending, (andante_thread * thread, uint32_t service), (thread, service))                 \
	X(foreground, (andante_session * session, int on), (session, on))                          \
	X(promise,                                                                                 \
	  (andante_session * session, const struct andante_terms *terms,                           \
	   struct andante_answer *answer),                                                         \
	  (session, terms, answer))                                                                \
	X(withdraw, (andante_session * session), (session))                                        \
	X(calls, (andante_session * session), (session))                                           \
	X(fd, (andante_session * session), (session))                                              \
	X(next_notice, (andante_session * session, struct andante_notice * notice),                \
	  (session, notice))

struct andante_optional {
	int state; /* 0: not sought yet, 1: somebody seeks, 2: it is there, 3: it is not */
	int (*open)(const struct andante_wish *, andante_session **);
	int (*join)(andante_session *, const struct andante_cycle *, andante_thread **);
	andante_sink *(*sink_of)(andante_thread *);
	const char *(*strerror)(int);
	const char *(*last_message)(void);
#define ANDANTE_OPTIONAL_MEMBER(name, parameters, arguments) int(*name) parameters;
	ANDANTE_OPTIONAL_EACH(ANDANTE_OPTIONAL_MEMBER)
#undef ANDANTE_OPTIONAL_MEMBER
};

/*
 * One for all files of the program, or of a library that has some: hidden, so that others have
 * their own.
 */
#ifdef __cplusplus
extern "C" {
#endif
extern struct andante_optional andante_optional;
__attribute__((weak, visibility("hidden"))) struct andante_optional andante_optional;
#ifdef __cplusplus
}
#endif

/* The function of this name; a pointer to a function may not be cast from one to data. */
static inline int andante_optional_find(void *library, const char *name, void *where)
{
	void *found = dlsym(library, name);

	memcpy(where, &found, sizeof found);
	return found != NULL;
}

static inline int andante_optional_load(void)
{
	struct andante_optional *of = &andante_optional;
	void *library = dlopen(ANDANTE_LIBRARY, RTLD_NOW | RTLD_LOCAL);
	int all;

	if (library == NULL)
		return 0;
	all = andante_optional_find(library, "andante_open", &of->open) &&
	      andante_optional_find(library, "andante_join", &of->join) &&
	      andante_optional_find(library, "andante_sink_of", &of->sink_of) &&
	      andante_optional_find(library, "andante_strerror", &of->strerror) &&
	      andante_optional_find(library, "andante_last_message", &of->last_message);
#define ANDANTE_OPTIONAL_FIND(name, parameters, arguments)                                         \
	all = all && andante_optional_find(library, "andante_" #name, &of->name);
	ANDANTE_OPTIONAL_EACH(ANDANTE_OPTIONAL_FIND)
#undef ANDANTE_OPTIONAL_FIND
	return all; /* the library is not closed: what it has given may be in use */
}

/* The functions, if the library is there; it is sought when this is asked first. */
static inline struct andante_optional *andante_optional_there(int seek)
{
	struct andante_optional *of = &andante_optional;
	int state = 0;

	if (seek && __atomic_compare_exchange_n(&of->state, &state, 1, 0, __ATOMIC_ACQUIRE,
						__ATOMIC_ACQUIRE))
		__atomic_store_n(&of->state, andante_optional_load() ? 2 : 3, __ATOMIC_RELEASE);
	while ((state = __atomic_load_n(&of->state, __ATOMIC_ACQUIRE)) == 1)
		sched_yield();
	return state == 2 ? of : NULL;
}

static inline int andante_optional_open(const struct andante_wish *wish, andante_session **session)
{
	struct andante_optional *of = andante_optional_there(1);

	if (of != NULL)
		return of->open(wish, session);
	if (session != NULL)
		*session = NULL;
	return ANDANTE_E_NO_DAEMON;
}

static inline int andante_optional_join(andante_session *session, const struct andante_cycle *cycle,
					andante_thread **thread)
{
	if (session != NULL)
		return andante_optional.join(session, cycle, thread);
	if (thread != NULL)
		*thread = NULL;
	return ANDANTE_E_NO_SESSION;
}

static inline andante_sink *andante_optional_sink_of(andante_thread *thread)
{
	return thread != NULL ? andante_optional.sink_of(thread) : NULL;
}

static inline const char *andante_optional_strerror(int error)
{
	struct andante_optional *of = andante_optional_there(0);

	return of != NULL ? of->strerror(error) : error < 0 ? ANDANTE_OPTIONAL_ABSENT : "no error";
}

static inline const char *andante_optional_last_message(void)
{
	struct andante_optional *of = andante_optional_there(0);

	if (of != NULL)
		return of->last_message();
	/* That it is not there is all that can have gone wrong. */
	return andante_optional.state == 3 ? ANDANTE_OPTIONAL_ABSENT : "";
}

static inline uint64_t andante_optional_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The first argument is the handle, which only the library can have made. */
#define ANDANTE_OPTIONAL_HANDLE(handle, ...) (handle)
#define ANDANTE_OPTIONAL_FIRST(arguments) ANDANTE_OPTIONAL_FIRST_OF arguments
#define ANDANTE_OPTIONAL_FIRST_OF(...) ANDANTE_OPTIONAL_HANDLE(__VA_ARGS__, 0)
#define ANDANTE_OPTIONAL_CALL(name, parameters, arguments)                                         \
	static inline int andante_optional_##name parameters                                       \
	{                                                                                          \
		return ANDANTE_OPTIONAL_FIRST(arguments) != NULL ? andante_optional.name arguments \
								 : ANDANTE_E_NO_SESSION;           \
	}
ANDANTE_OPTIONAL_EACH(ANDANTE_OPTIONAL_CALL)
#undef ANDANTE_OPTIONAL_CALL
#undef ANDANTE_OPTIONAL_FIRST_OF
#undef ANDANTE_OPTIONAL_FIRST
#undef ANDANTE_OPTIONAL_HANDLE
#undef ANDANTE_OPTIONAL_EACH

#define andante_open andante_optional_open
#define andante_close andante_optional_close
#define andante_join andante_optional_join
#define andante_leave andante_optional_leave
#define andante_begin andante_optional_begin
#define andante_end andante_optional_end
#define andante_report andante_optional_report
#define andante_surge andante_optional_surge
#define andante_sink_of andante_optional_sink_of
#define andante_sink_free andante_optional_sink_free
#define andante_raise andante_optional_raise
#define andante_raise_now andante_optional_raise_now
#define andante_subscribe andante_optional_subscribe
#define andante_unsubscribe andante_optional_unsubscribe
#define andante_tell andante_optional_tell
#define andante_told andante_optional_told
#define andante_pending andante_optional_pending
#define andante_foreground andante_optional_foreground
#define andante_promise andante_optional_promise
#define andante_withdraw andante_optional_withdraw
#define andante_calls andante_optional_calls
#define andante_fd andante_optional_fd
#define andante_next_notice andante_optional_next_notice
#define andante_strerror andante_optional_strerror
#define andante_last_message andante_optional_last_message
#define andante_now_ns andante_optional_now_ns

#endif
