/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * The page of a thread: memory that a thread of a session shares with the scheduler.
 *
 * The daemon makes one for each thread that joins a session, gives the scheduler access to it, and
 * passes it to the program, which maps it. To say something is a store; the scheduler reads it when
 * it next looks at the thread. Nothing in it is trusted: it says what the thread wants, and with
 * nonsense the thread harms itself alone.
 *
 * Each field has one writer, named below. Times are those of CLOCK_MONOTONIC [ns]. All fields are
 * naturally aligned, in the byte order of the machine, and written with one store each; those that
 * belong together have the field that tells of a change last (a release store).
 *
 * libandante does all of this: see andante.h. This header is for those who cannot use it.
 */
#ifndef ANDANTE_PAGE_H
#define ANDANTE_PAGE_H

#ifndef ANDANTE_KERNEL_TYPES /* the scheduler itself has them from elsewhere */
#include <linux/types.h>
#endif

#define ANDANTE_PAGE_MAGIC 0x646e4161u /* "aAnd" in memory on little-endian machines */
#define ANDANTE_PAGE_VERSION 1u
#define ANDANTE_PAGE_BYTES 4096u /* of what is mapped; what follows the structure is reserved */

/*
 * A call: after an event has been raised, the scheduler looks whether the thread waits behind
 * others with whom it shares a contract: at once, or when the event is to be delivered. Without one
 * that is seen when the thread is queued next. Threads of the process that has opened the session
 * may call, in one of two ways:
 *
 *	fast	 prctl(ANDANTE_PRCTL_LOOK, sink, deliver_ns), which fails whatever becomes of it,
 *		 for the kernel knows no such option. Not under a seccomp filter, which may end who
 *		 asks for that
 *	general	 bpf(BPF_PROG_RUN) of the program that comes with the answer to `open`, without a
 *		 context, by a thread with a page, where calls_for and calls_ns say the same
 *
 * or send {"op":"look","thread":NUMBER} to the daemon. Which of them there are is in that answer.
 */
#define ANDANTE_PRCTL_LOOK 0x416e6401

/* Services: kinds of events, of each of which one may be pending for a thread. */
#define ANDANTE_SERVICES 4u

/* An event for the thread. Written by any thread that has the page mapped: it is raised by adding
 * one to `raised`, after `deliver_ns` has been written. The last one raised counts. */
struct andante_page_event {
	__u64 deliver_ns; /* not before this instant; 0: at once */
	__u32 raised;	  /* how often, so far */
	__u32 reserved;
};

/*
 * What is written to a thread's ring, if it has asked to be told of its events so, by
 * {"op":"tell","thread":NUMBER,"by":"ring"}. The descriptor that comes with the answer is that of a
 * BPF ring buffer of one page of data, which polls as readable while there is something: see
 * libbpf's ring_buffer__new(), or linux/bpf.h.
 */
struct andante_page_notice {
	__u32 service;
	__u32 raised; /* how often, so far */
};

struct andante_page {
	/* Written by the daemon, before anybody else sees the page. */
	__u32 magic;   /* ANDANTE_PAGE_MAGIC */
	__u32 version; /* ANDANTE_PAGE_VERSION */
	__u32 session; /* number of the session */
	__u32 thread;  /* number of the thread within it, from 1 on */
	__u32 sink;    /* what calls name the thread by; 0: there are none for it */
	__u32 reserved_0[11];

	/* Written by the thread itself: the cycle in progress. */
	__u64 deadline_ns; /* when it is due; 0: between two cycles */
	__u64 begun_ns;	   /* when it began; 0: not said */
	__u64 worked_ns; /* what the last cycle took, by the program; 0: not said. Like `late` it is
			  * for people: the scheduler goes by the CPU time that it sees itself */
	__u32 cycles;	 /* that have begun; changes after the three fields above */
	__u32 surges;	 /* times that more work than before was announced */
	__u32 calls_for; /* sink of the thread that its next general call is for */
	__u32 reserved_1;
	__u64 calls_ns; /* when the event is to be delivered that it calls for; 0: at once */
	__u32 late;	/* cycles that have ended after their deadline, or begun after it */
	__u32 reserved_2[3];

	/* Events for the thread. */
	struct andante_page_event events[ANDANTE_SERVICES];

	/* Written by the scheduler. */
	__u32 delivered[ANDANTE_SERVICES]; /* `raised` when an event was last delivered */
	__u64 read_ns;			   /* when the scheduler last looked; 0: never */
	__u64 reserved_3[5];
};

#endif
