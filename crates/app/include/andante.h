/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * For applications that say what they wait for: sessions, deadlines and events with Andante.
 *
 *	struct andante_wish wish = {.size = sizeof wish, .role = ANDANTE_ROLE_GAME};
 *	andante_session *session;
 *	andante_thread *thread;
 *
 *	wish.period_ns = 16666667;
 *	andante_open(&wish, &session);		stores NULL without Andante
 *	andante_join(session, NULL, &thread);	in the thread that draws
 *	while (wait_for_frame()) {
 *		andante_begin(thread, andante_now_ns() + 16666667);
 *		draw();
 *		andante_end(thread);
 *	}
 *	andante_leave(thread);
 *	andante_close(session);
 *
 * Errors. Functions return 0, or a value above 0 where they say so, or one of ANDANTE_E_*, which
 * are negative. None of them keeps a program from going on without Andante. A NULL handle is no
 * mistake: the call returns ANDANTE_E_NO_SESSION, and does nothing else. No call raises SIGPIPE,
 * or ends the program.
 *
 * Units. Times are in nanoseconds; instants are those of CLOCK_MONOTONIC, as andante_now_ns()
 * returns them.
 *
 * Time taken. begin, end, report, surge, raise and pending are a few loads and stores in memory
 * that is shared with the scheduler, and beginning and ending read the clock. Those that succeed
 * make no system call, take no lock and allocate nothing, and may be called where sound is made.
 * Those that fail do no more in a thread that has joined, but for freeing what is kept of an older
 * error. All others may ask the daemon and wait for its answer, for two seconds at most.
 *
 * Threads. Each function says who may call it. No handle may be used any more once it was freed,
 * or while it is.
 *
 * fork and exec. A child of fork() leaves its parent's session alone: calls with its handles
 * return ANDANTE_E_FORKED, and closing them frees the child's memory. It may open a session of its
 * own. (Children of a bare clone() are not noticed by begin, end, report, surge, raise and
 * pending.) Nothing is left open by exec.
 *
 * Growth. Structures begin with their size, to be set to sizeof by the caller; fields that are 0
 * are not said. So fill them with zeros first. Later versions add fields at the end, and what was
 * compiled before goes on to work.
 */
#ifndef ANDANTE_H
#define ANDANTE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef ANDANTE_SERVICES
/* Kinds of events, numbered from 0 on, of each of which one may be pending for a thread. */
#define ANDANTE_SERVICES 4u
#endif

/* The results of a call that has failed. */
enum andante_error {
	ANDANTE_E_NO_SESSION = -1, /* the handle is NULL */
	ANDANTE_E_NO_DAEMON = -2,  /* Andante does not run here, or the library is not installed */
	ANDANTE_E_LOST = -3,   /* the connection has ended: another session may be opened later */
	ANDANTE_E_LATE = -4,   /* no answer within two seconds; the session is lost after that */
	ANDANTE_E_FORKED = -5, /* the handle is this process's parent's */
	ANDANTE_E_PAST_DEADLINE = -6, /* the deadline has passed already */
	ANDANTE_E_NO_CYCLE = -7,      /* no cycle was begun */
	ANDANTE_E_NO_SERVICE = -8,    /* there is no service of this number */
	ANDANTE_E_BAD_PAGE = -9,      /* the daemon's pages are laid out otherwise */
	ANDANTE_E_INVALID = -10,      /* an argument makes no sense: a size, a NULL */
	ANDANTE_E_SYSTEM = -11,	      /* the system has refused something */
	ANDANTE_E_INTERNAL = -12,     /* a fault of this library */
	ANDANTE_E_NO_ROLE = -13,      /* there is no such role */
	ANDANTE_E_NOT_ENDED = -14,    /* the cycle before was not ended; this one has begun */
	/* The daemon has refused it: */
	ANDANTE_E_REFUSED = -20,     /* for a reason that this version does not know */
	ANDANTE_E_BAD_REQUEST = -21, /* it does not understand the request */
	ANDANTE_E_VERSION = -22,     /* it speaks another version */
	ANDANTE_E_BAD_TERMS = -23, /* numbers that make no sense: a budget longer than its period */
	ANDANTE_E_NO_THREAD = -24, /* no thread has joined, or there is no such thread */
	ANDANTE_E_NOT_YOURS = -25, /* the thread is another process's */
	ANDANTE_E_TAKEN = -26,	   /* the thread takes part already */
	ANDANTE_E_NOT_PERMITTED = -27, /* the caller may not ask for this */
	ANDANTE_E_UNSCHEDULABLE = -28, /* Andante does not schedule it: it has real-time priority */
	ANDANTE_E_FULL = -29,	       /* there is no room for more */
	ANDANTE_E_BUSY = -30,	       /* too much is asked for at once: try later */
	ANDANTE_E_FAILED = -31	       /* the kernel did not do what it was told */
};

/* The sort of program. It is shown to people; how threads are served goes by their cycles. */
enum andante_role {
	ANDANTE_ROLE_AUDIO = 1,	     /* sound: a period that is late is heard at once */
	ANDANTE_ROLE_GAME = 2,	     /* frames at an even pace, and answers to its player */
	ANDANTE_ROLE_VIDEO = 3,	     /* a film, a stream, a call */
	ANDANTE_ROLE_INTERACTIVE = 4 /* answers people, at no pace of its own */
};

/* How andante_raise_now() calls the scheduler, the slowest first. */
enum andante_call {
	ANDANTE_CALL_SOCKET = 1,  /* the daemon is asked, and does it */
	ANDANTE_CALL_GENERAL = 2, /* bpf(); a thread that has not joined asks the daemon */
	ANDANTE_CALL_FAST = 3	  /* prctl() */
};

/* How andante_tell() has a thread told of its events; or the number of a signal. */
enum andante_tell {
	ANDANTE_TELL_FD = -1, /* by a descriptor that is readable then */
	ANDANTE_TELL_NOT = 0  /* not at all: it is scheduled as one that has an event */
};

/* A connection to Andante. */
typedef struct andante_session andante_session;
/* A thread that takes part in a session. */
typedef struct andante_thread andante_thread;
/* Through which events are raised for a thread. */
typedef struct andante_sink andante_sink;

/* The purpose of a session, and the work of its threads unless they say otherwise. */
struct andante_wish {
	uint32_t size;	      /* sizeof(struct andante_wish) */
	uint32_t role;	      /* enum andante_role */
	uint64_t period_ns;   /* from the beginning of one cycle to the next; 0: at no pace */
	uint64_t deadline_ns; /* from a cycle's beginning; 0: the period */
	uint64_t budget_ns;   /* CPU time of a cycle; 0: the scheduler finds out */
	const char *name;     /* 1 to 64 bytes of UTF-8 without spaces; NULL: after the process */
};

/* The work of one thread. */
struct andante_cycle {
	uint32_t size;	   /* sizeof(struct andante_cycle) */
	uint32_t reserved; /* 0 */
	uint64_t period_ns;
	uint64_t deadline_ns;
	uint64_t budget_ns; /* all three as above */
};

/*
 * A promise: so much CPU time in every period, of which in any `window` periods at most
 * `losses` fail.
 */
struct andante_terms {
	uint32_t size;	   /* sizeof(struct andante_terms) */
	uint32_t losses;   /* 0: none */
	uint32_t window;   /* 0, if none may be lost */
	uint32_t reserved; /* 0 */
	uint64_t budget_ns;
	uint64_t period_ns;
	uint64_t deadline_ns; /* from the period's beginning; 0: its end */
};

#define ANDANTE_NAME_BYTES 128u
#define ANDANTE_REASON_BYTES 512u

/*
 * The answer to a promise that was asked for. Texts are UTF-8, end with a 0, and are cut to their
 * length.
 */
struct andante_answer {
	uint32_t size;	  /* sizeof(struct andante_answer), set by the caller */
	uint32_t granted; /* 1: yes; 0: no */
	uint32_t nearest; /* 1: not granted, but the terms below could be; else 0 */
	uint32_t losses;
	uint32_t window;
	uint32_t reserved;
	uint64_t budget_ns; /* the terms that are promised, or the nearest that could be; or 0 */
	uint64_t period_ns;
	uint64_t deadline_ns;
	char name[ANDANTE_NAME_BYTES]; /* of the promise, in `andante reserve --list` too; or "" */
	char reason[ANDANTE_REASON_BYTES]; /* what stands in the way, or should be known; or "" */
};

/* News of a promise. */
enum andante_notice_kind {
	ANDANTE_NOTICE_NONE = 0,      /* nothing new */
	ANDANTE_NOTICE_WEAKENED = 1,  /* it is promised less firmly: its CPU has left, say */
	ANDANTE_NOTICE_EXHAUSTED = 2, /* the budget was used up before the work was done */
	ANDANTE_NOTICE_ENDED = 3      /* it is no more; the session goes on without */
};

struct andante_notice {
	uint32_t size;	/* sizeof(struct andante_notice), set by the caller */
	uint32_t kind;	/* enum andante_notice_kind; others may come: pass over those */
	uint64_t times; /* EXHAUSTED: how often since this was last said; else 0 */
	char reason[ANDANTE_REASON_BYTES]; /* why, in a sentence; or "" */
};

/*
 * Opens a session and stores it in *session, or NULL if that fails. Andante is sought at
 * $ANDANTE_SOCKET, or /run/andante.sock. Any thread may call it. *wish is not needed any more
 * afterwards. Errors: NO_DAEMON, which is none to tell anybody of; NO_ROLE; INVALID; LATE; SYSTEM;
 * what the daemon refuses.
 */
int andante_open(const struct andante_wish *wish, andante_session **session);

/*
 * Frees the handle. The session ends, and with it its promise, once all its threads have left as
 * well, whatever children of the process have the connection open still. Any thread, once, after
 * all other calls with this handle have returned. Errors: NO_SESSION.
 */
int andante_close(andante_session *session);

/*
 * The calling thread takes part from now on, with this cycle or, with NULL, the session's; stores
 * a handle for it in *thread, or NULL. It is valid until andante_leave, even when the session's
 * was closed before. Errors: NO_SESSION; LOST; LATE; FORKED; BAD_PAGE; INVALID; SYSTEM; TAKEN,
 * UNSCHEDULABLE, FULL, BAD_TERMS.
 */
int andante_join(andante_session *session, const struct andante_cycle *cycle,
		 andante_thread **thread);

/*
 * The thread takes part no more; frees the handle. Any thread, once, after all other calls with
 * this handle have returned; a thread that ends without it takes part no more either, but leaks
 * the handle. Errors: NO_SESSION.
 */
int andante_leave(andante_thread *thread);

/*
 * A cycle begins, which is to be done by this instant. The thread that has joined alone. Errors:
 * NO_SESSION; FORKED; PAST_DEADLINE: then the scheduler is told that a cycle begins, and of no
 * deadline, and there is none to end; whoever is late already may leave a cycle out, or give a
 * later deadline; NOT_ENDED: one was in progress, and this one has begun in its place.
 */
int andante_begin(andante_thread *thread, uint64_t deadline_ns);

/*
 * The cycle is done; what it took is told, and whether it is late. The thread that has joined
 * alone. Errors: NO_SESSION; FORKED; NO_CYCLE.
 */
int andante_end(andante_thread *thread);

/*
 * The time that the last cycle took, where the program knows better than from its beginning to its
 * end: after andante_end. It is shown by `andante status`; the scheduler goes by the CPU time that
 * it sees itself. The thread that has joined alone. Errors: NO_SESSION; FORKED.
 */
int andante_report(andante_thread *thread, uint64_t worked_ns);

/*
 * The next cycles take more work than those before: the longest of late counts as twice as long,
 * from the next one on that begins with a wake-up, until others have been seen. The thread that has
 * joined alone. Errors: NO_SESSION; FORKED.
 */
int andante_surge(andante_thread *thread);

/*
 * Through which any thread of the process raises events for this one; NULL for NULL, or if there
 * is no memory. To be freed with andante_sink_free; it may be used after the thread has left,
 * which then has no effect. Any thread.
 */
andante_sink *andante_sink_of(andante_thread *thread);

/*
 * Frees it. Any thread, once, after all other calls with this handle have returned. Errors:
 * NO_SESSION.
 */
int andante_sink_free(andante_sink *sink);

/*
 * Raises an event of this service, to be delivered at this instant; 0: at once. One that is
 * pending still is replaced. Raise it before the thread is woken, or it comes too late for that.
 * Any thread, several at once. Errors: NO_SESSION; FORKED; NO_SERVICE.
 */
int andante_raise(andante_sink *sink, uint32_t service, uint64_t deliver_ns);

/*
 * Raises it as andante_raise does, and calls the scheduler, which sees the event at once, or when
 * it is to be delivered, though the thread has been woken before and waits: it comes before those
 * with whom it shares a promise, and nobody else is disturbed. A system call, which andante_calls
 * names: a fast one takes some two getppid(), a general one three; asking the daemon takes longer,
 * and may wait for its answer. Any thread, several at once. Errors: NO_SESSION; FORKED; NO_SERVICE;
 * where the daemon is asked: LOST; LATE; SYSTEM; FAILED. After these the event is raised
 * nevertheless.
 */
int andante_raise_now(andante_sink *sink, uint32_t service, uint64_t deliver_ns);

/*
 * From now on the thread has an event of this service whenever so many bytes have come to the
 * socket since the last, a frame's worth; 0: whenever anything comes. Or whenever somebody writes
 * to the eventfd, whatever bytes says; what the kernel itself signals there is not seen. What was
 * subscribed to it before, by anybody, ends; so does this with the socket or the eventfd, with
 * andante_unsubscribe, and when the thread leaves. The descriptor is passed to the daemon, which
 * does not keep it. Any thread. Errors: NO_SESSION; LOST; LATE; FORKED; NO_SERVICE; INVALID: it is
 * below 0; BAD_TERMS: it is neither; SYSTEM: it may not be passed on; FAILED: the kernel cannot
 * tell what comes there, or there is no room for this eventfd: another one may do.
 */
int andante_subscribe(andante_thread *thread, int fd, uint32_t service, uint32_t bytes);

/* What comes there is nobody's event any more. Any thread. Errors: as above. */
int andante_unsubscribe(andante_thread *thread, int fd);

/*
 * From now on the thread is told that it has an event in this way, enum andante_tell or a signal,
 * in the place of how it was told before; at first it is not told. For threads that wait for events
 * and nothing else, in epoll or sigwaitinfo: as soon as a source raises one, or andante_raise_now
 * does, or when that one is to be delivered; not for andante_raise, which calls nobody. Until the
 * thread has run it is told once of each service, however many events there are, so whoever is
 * told is to look at all that has come. A signal goes to the thread, with the service in
 * si_value.sival_ptr, where the user who has opened the session may send it one.
 *
 * Returns the descriptor with ANDANTE_TELL_FD, which stays the library's: not to be read or closed,
 * and valid until this is called again or the thread leaves. Otherwise returns 0. Any thread.
 * Errors: NO_SESSION; LOST; LATE; FORKED; INVALID; BAD_TERMS: there is no such signal; FULL;
 * SYSTEM; FAILED: the kernel cannot do it.
 */
int andante_tell(andante_thread *thread, int by);

/*
 * Returns of which services the thread has been told by its descriptor since this was last asked,
 * the sum of 1 << service; 0: none. The descriptor is silent then. No system call. Any thread.
 * Errors: NO_SESSION; FORKED.
 */
int andante_told(andante_thread *thread);

/*
 * Returns 1 if an event of this service waits for the thread to be put into service, else 0. Any
 * thread. Errors: NO_SESSION; FORKED; NO_SERVICE.
 */
int andante_pending(andante_thread *thread, uint32_t service);

/*
 * Whether the program has its user's attention, is in front: 0 or 1. What may be promised to a
 * user's sessions is for those in front, and for those that never say. One that says 0 keeps its
 * promise until another session of its user asks for what could not be promised otherwise; then it
 * gets a notice, ENDED, and may ask again when it is in front. Until it is, it is promised
 * something new only while the sessions of its user hold no more than `andante reserve` would
 * grant that user. Any thread. Errors: NO_SESSION; LOST; LATE; FORKED.
 */
int andante_foreground(andante_session *session, int on);

/*
 * Asks for a promise for all threads of the session together, in the place of the one that it has.
 * Returns 0 if that was answered, with yes or no: *answer says which. After a refusal, or an error
 * but for LOST and LATE, the session has the promise that it had before. Any thread. *terms is not
 * needed any more afterwards. Errors: NO_SESSION; LOST; LATE; FORKED; INVALID; BAD_TERMS;
 * NO_THREAD, NOT_PERMITTED, FULL.
 */
int andante_promise(andante_session *session, const struct andante_terms *terms,
		    struct andante_answer *answer);

/* The promise is needed no more. Any thread. Errors: NO_SESSION; LOST; LATE; FORKED. */
int andante_withdraw(andante_session *session);

/*
 * Returns how andante_raise_now calls, enum andante_call: the fastest that there is. With a seccomp
 * filter on when the session is opened the daemon is asked, for a filter may end who calls; a
 * program that installs one later is to allow the calls that it makes. ANDANTE_CALL in the
 * environment, as "fast", "general" or "socket", says which one is to be used where it is there.
 * Any thread. Errors: NO_SESSION.
 */
int andante_calls(andante_session *session);

/*
 * A file descriptor that is readable when there may be a notice, for poll and epoll; it stays the
 * library's: not to be read or closed, and valid while the session lasts. Any thread. Errors:
 * NO_SESSION.
 */
int andante_fd(andante_session *session);

/*
 * Returns 1 and fills *notice if there is one, else 0 with kind NONE. Neither asks the daemon nor
 * waits: while another thread's call does, there is nothing new. What comes meanwhile is kept here:
 * ask after such calls as well, for the descriptor is silent about it then. Any thread. Errors:
 * NO_SESSION; FORKED; INVALID; LOST once all has been told.
 */
int andante_next_notice(andante_session *session, struct andante_notice *notice);

/* The meaning of an error, in a sentence, never NULL; for the program's lifetime. Any thread. */
const char *andante_strerror(int error);

/*
 * The last error of a call of this thread, with its particulars, in a sentence; "" if there was
 * none. Never NULL; valid until the thread's next call. Calls that succeed, or are given NULL
 * handles, leave it as it was.
 */
const char *andante_last_message(void);

/*
 * Now, of CLOCK_MONOTONIC. Any thread; no system call, on machines whose clock can be read without
 * one.
 */
uint64_t andante_now_ns(void);

#ifdef __cplusplus
}
#endif

#endif
