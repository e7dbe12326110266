/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What user space reads of the scheduler: the class tree itself (core/tree.h), the contracts
 * (core/contract.h), and what is below. crates/sched reads both by the object's own BTF.
 */
#ifndef ANDANTE_BPF_INTF_H
#define ANDANTE_BPF_INTF_H

#define AN_MAX_CPUS 1024 /* power of two */

/* Threads of sessions that can be called for, but one; a power of two. */
#define AN_MAX_SINKS 8192
#define AN_EXIT_TEXT 256

/* Eventfds that are sources at a time, of which no two have the same number modulo this; a power of
 * two. The kernel gives the least number that is free: so none is refused while no more than these
 * are open on the machine, sources or not. A place takes 28 bytes, all of them 112 KiB, and how
 * many there are costs no instruction. */
#define AN_MAX_EVENTFDS 4096

/* Why the kernel let the scheduler go. */
struct an_exit {
	s64 code;
	u32 left; /* set last: the rest is valid */
	u32 pad;
	char reason[AN_EXIT_TEXT];
	char message[AN_EXIT_TEXT];
};

/* Who holds a contract. */
enum an_held_by {
	AN_HELD_BY_CLASS = 1,	 /* the tasks of one class */
	AN_HELD_BY_THREAD = 2,	 /* one thread */
	AN_HELD_BY_PROCESS = 3,	 /* threads of one process, and those that they start */
	AN_LEARNT_OF_THREAD = 4, /* one thread, which has not been asked */
};

/* Beside each contract (core/contract.h), by index. */
struct an_holder {
	u32 leaf;	/* of the class that holds it; AN_NONE if threads do */
	u32 waits_in;	/* leaf in whose queue tasks without budget have waited last */
	u32 bound;	/* threads that hold it */
	u32 active;	/* tasks that are queued, or run on its CPU; of a class: is there any? */
	u16 next_noted; /* of the contracts that the same CPU is to see to */
	u16 cpu;	/* that serves it, or will once it has been seen to */
	u8 noted;
	u8 kind;    /* enum an_held_by */
	u8 ended;   /* the slot is freed when nothing is left in its queue */
	u8 waits;   /* some may wait there still */
	u8 looks;   /* threads of it that wait may have events: see session_order() */
	u8 changed; /* next is to be its promise, unless it has ended, once it has been seen to */
	u32 part;   /* learnt: of its CPU's bound [1/1024] */
	u32 pid;    /* learnt: the thread that holds it */
	u32 around; /* the contract that this one is nested in: contract_name(); 0: in none */
	u64 released_ns;  /* when the job woke that makes it active; 0: now */
	u64 ran_ns;	  /* what that has run elsewhere since */
	u64 turn_ns;	  /* learnt: what it has run in turns handed on, not charged yet */
	u64 inherited_ns; /* learnt: deadline for its job to inherit, once seen to; 0: none */
	struct an_promise next;
};

/* In the place of a signal's number: the sink's ring. */
#define ANDANTE_TOLD_BY_RING 256

/* A thread that can be called for. */
struct an_sink {
	u32 process; /* whose threads may call; 0: there is none */
	u32 waits;   /* contract in whose queue it waits: contract_name(); 0: it does not */
	u32 pid;
	u32 told_by; /* of its events (tell.h): a signal, or ANDANTE_TOLD_BY_RING; 0: nothing */
	u32 asked_by_uid; /* who wants it to be told by a signal */
	u32 late;	  /* the daemon has been asked to tell it */
};

/* With a socket, or an eventfd: the thread pid of the session has an event when so much has come.
 */
struct an_source {
	s32 pid; /* 0: of an eventfd that is no source */
	u32 session;
	u32 service;
	u32 bytes;   /* of a frame; 0: with whatever comes, as of eventfds always */
	u32 came;    /* since the last frame */
	u32 seen;    /* an_kcame() */
	u32 eventfd; /* its number */
};

/* What the program andante_contract is to do. */
enum an_call {
	AN_CALL_CREATE = 1,	/* promise, kind, leaf of a class, pieces if split -> name */
	AN_CALL_MOVE = 2,	/* name, promise.cpu */
	AN_CALL_REMOVE = 3,	/* name */
	AN_CALL_BIND = 4,	/* pid holds name from now on; name 0: none */
	AN_CALL_SWEEP = 5,	/* frees what has ended; every second or so */
	AN_CALL_NEST = 6,	/* what name runs is charged to around as well; around 0: to none */
	AN_CALL_DECLARE = 7,	/* pid takes part in session, with this cycle: promise's budget_ns,
				 * period_ns, deadline_rel_ns, 0 each if not said; session 0: in none;
				 * it can be called for as sink, if that is not 0 */
	AN_CALL_LOOK = 8,	/* at the thread that can be called for as sink, at deliver_ns */
	AN_CALL_TELL = 9,	/* sink of its events by told_by, as this uid asks */
	AN_CALL_TELL_LATE = 10, /* sink, which is in the ring of those */
};

/* What the program andante_class answers, beside 0. */
#define AN_CLASS_PARENT_SHARES (-11) /* EAGAIN: its parent has to get a class first */
#define AN_CLASS_NO_ROOM (-28)	     /* ENOSPC */

/* What the program andante_policy answers, beside 0 and AN_CLASS_PARENT_SHARES. */
#define AN_POLICY_NO_CLASS (-2) /* ENOENT */
#define AN_POLICY_INNER (-21)	/* EISDIR: the class has children */

/* What the program andante_policy is to do: the class of this cgroup has that policy. */
struct an_policy_call {
	u64 cgroup_id;
	u64 quantum_ns; /* rr: quantum, deadline: relative deadline; 0: the policy's own */
	u32 kind;	/* enum an_policy_kind; AN_SFQ: none of its own */
	u32 nice_is_real_time;
};

/* What the program andante_event is to do. */
enum an_event_op {
	AN_EVENT_RAISE = 1,   /* the contract name, or that of the thread pid, has an event */
	AN_EVENT_SERVERS = 2, /* task servers are what contracts leave; every second or so */
};

/* Written by the one process that loaded the scheduler, before it runs andante_event. */
struct an_event_call {
	u32 op;	     /* enum an_event_op */
	u32 name;    /* of the contract: contract_name(); 0: the one that the thread holds */
	s32 pid;     /* of that thread */
	u32 service; /* below AN_SERVICES: the last that was raised of one is the one that counts */
	u64 deliver_ns; /* not before; CLOCK_MONOTONIC; 0: now */
};

/* Written by the one process that loaded the scheduler, before it runs andante_contract. */
struct an_contract_call {
	u32 op;	  /* enum an_call */
	u32 name; /* index in the low half, generation in the high one */
	u32 kind; /* enum an_held_by */
	u32 leaf;
	s32 pid;
	u32 pieces;
	u32 around;
	u32 session;
	u32 sink;
	u32 told_by;
	u32 uid;
	u32 pad;
	u64 deliver_ns;
	u64 cgroup_id; /* of andante_class: that is to get a class of its own */
	struct an_promise promise;
	struct an_piece piece[AN_MAX_PIECES];
};

/* What happened since the scheduler was loaded; all counts. */
struct an_stats {
	u64 picks;	  /* tasks taken from a class's queue */
	u64 kept;	  /* a quantum ended and the same task went on */
	u64 missed_picks; /* the picked class held nothing this CPU could run */
	u64 corrected;	  /* queue lengths put right after a task was taken out sideways */
	u64 wake_preemptions;
	u64 timer_preemptions;
	u64 unpicked_runs;   /* tasks that ran without a pick: idle CPU, per-CPU kernel threads */
	u64 classes_refused; /* cgroups that share their parent's class: the tree was full */
	u64 contract_picks;  /* tasks taken under a contract */
	u64 contract_handed; /* of these, in a turn that another contract handed on */
	u64 contract_preemptions;
	u64 learnt;	     /* contracts that were learnt */
	u64 bound;	     /* wake-ups of a server by a client whose class pays for it */
	u64 overdue;	     /* tasks that had a short turn, for they had waited for too long */
	u64 pulled;	     /* tasks that were taken over from another domain */
	u64 learnt_pulled;   /* learnt contracts that a CPU took over from another */
	u64 contract_misses; /* a contract's queue held nothing its CPU could run */
	u64 classes_shared;  /* cgroups that share their parent's class now */
	u64 learnt_held;     /* learnt contracts that there were when it was last looked */
	u64 learnt_refused;  /* ... that were not made, for there was no room for more */
	u64 learnt_gave_way; /* ... of tasks that slept for long, which made room for others */
	u64 throttled; /* CPUs that went idle though a task would go on, whose class is throttled */
	u64 events_raised;
	u64 event_rule_1; /* events delivered by each rule [core/event.h] */
	u64 event_rule_2;
	u64 event_rule_3;
	u64 event_rule_4;
	u64 event_rule_5;
	u64 event_forfeits; /* slots of task servers that had no event */
	u64 untold;	    /* notices that a sink could not be given (tell.h) */
};

#endif
