/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Contracts: promises of CPU time, and what is kept of each.
 *
 * A contract promises a budget C in every period T, by a deadline D after the release, perhaps
 * with x losses in every y periods. Contracts are flat: on each CPU one order by earliest deadline
 * (EDF), looked at before the class tree. Which papers' server a contract is, its flags say:
 *
 *      none                       constant bandwidth server, soft: on exhaustion the deadline is
 *                                 postponed by T and the budget is full again [cbs.h]; with a bound
 *                                 on what contracts may have of a CPU, as far as that goes
 *      AN_HARD                    hard: on exhaustion throttled until the next release
 *      AN_RECLAIM, AN_BORROW,     flexible CBS: uses what others leave, runs on in idle time,
 *      AN_CATCH_UP                is forgiven its debts when the CPU has been idle [fcbs.h]
 *      AN_WINDOW                  DWCS: served C once in every period of a fixed grid, x in y
 *      AN_WORK_CONSERVING         periods may be lost; with this flag more than once [dwcs.h]
 *      AN_EXHAUSTIVE              the budget is not enforced: plain EDF
 *      AN_LEARNT                  hard, and behind what was promised and cannot wait [learn.h]
 *      and an_split_set()         split over several CPUs in time windows, EDF-WM [edfwm.h]
 *
 * The life of a contract; "ready" is what an_contracts_pick() chooses from, by rank:
 *
 *                     an_contract_create()
 *                              |
 *                              v      wake                            soft: postponed
 *            .------------> asleep ----------> READY, rank BUDGET <---------------.
 *            |                                   |            ^                   |
 *            |                            charge |            | expire            |
 *            | sleep                             v            |                   |
 *            |                            budget used up -----+-------------------'
 *            |                                   |            |
 *            |    hard, or the piece of a split: v            |
 *            |<---------------------------- throttled --------+      AN_BORROW: rank BORROW
 *            |    AN_WINDOW:                     v            |
 *            `------------------------------- served ---------'      AN_BORROW: rank BORROW
 *                                                                    AN_WORK_CONSERVING: EXTRA
 *
 * The calls are in contracts.h, with what they want of the caller. This header has the data, and
 * the rules of what may be promised.
 *
 * Contracts are named by index; index 0 is nobody. A slot that was freed is used again: keep the
 * generation beside the index, where the index may outlive the contract.
 */
#ifndef ANDANTE_CORE_CONTRACT_H
#define ANDANTE_CORE_CONTRACT_H

#include "bucket.h"
#include "rule.h"

#ifndef AN_MAX_CONTRACTS
#define AN_MAX_CONTRACTS 2048	/* power of two; one less are usable */
#define AN_MAX_CONTRACT_CPUS 64 /* power of two; a set of CPUs is one word */
#endif
/* So many of them may be learnt, 16 for each CPU. The rest is for those that are promised, whatever
 * has been learnt. */
#define AN_MAX_LEARNT (16 * AN_MAX_CONTRACT_CPUS)
#define AN_MAX_RESIDUALS 16 /* per CPU, power of two */
#ifndef AN_MAX_SPLITS
#define AN_MAX_SPLITS 128 /* contracts that are split at a time; power of two, one less usable */
#endif
#define AN_MAX_PIECES 16 /* of one split contract; power of two */
#define AN_SERVICES 4	 /* whose events a contract can wait for at a time; power of two */

/* A shell that may be loaded without events has a constant of its own for that [event.h]. */
#ifndef an_events_on
#define an_events_on true
#endif

/* Longest period [ns], 4.29 s: a budget times a relative deadline fits in 64 bits. */
#define AN_MAX_PERIOD_NS 0xffffffffULL
/* Largest y: keeps x * y' within 64 bits and windows within hours. */
#define AN_MAX_WINDOW 65535u

/* Utilisation: CPUs, as a fixed-point number with this many fractional bits. 0 ... 2 in use. */
#define AN_UTILIZATION_SHIFT 32
#define AN_UTILIZATION_ONE (1ULL << AN_UTILIZATION_SHIFT)

_Static_assert((AN_MAX_CONTRACTS & (AN_MAX_CONTRACTS - 1)) == 0, "an_bounded() masks");
_Static_assert(AN_MAX_CONTRACTS <= 65536, "indices are 16 bits wide");
_Static_assert(AN_MAX_CONTRACTS == 2 * AN_MAX_LEARNT, "as many may be promised, but for index 0");
_Static_assert((AN_MAX_CONTRACT_CPUS & (AN_MAX_CONTRACT_CPUS - 1)) == 0, "an_bounded() masks");
_Static_assert(AN_MAX_CONTRACT_CPUS <= 64, "a set of CPUs is one word");
_Static_assert((AN_MAX_RESIDUALS & (AN_MAX_RESIDUALS - 1)) == 0, "an_bounded() masks");
_Static_assert((AN_MAX_SPLITS & (AN_MAX_SPLITS - 1)) == 0, "an_bounded() masks");
_Static_assert((AN_MAX_PIECES & (AN_MAX_PIECES - 1)) == 0, "an_bounded() masks");
_Static_assert((AN_SERVICES & (AN_SERVICES - 1)) == 0 && AN_SERVICES <= 16, "bits of delivered");

enum an_contract_flag {
	AN_HARD = 1 << 0,
	AN_RECLAIM = 1 << 1,
	AN_BORROW = 1 << 2,
	AN_CATCH_UP = 1 << 3,
	AN_WINDOW = 1 << 4,
	AN_WORK_CONSERVING = 1 << 5,
	AN_EXHAUSTIVE = 1 << 6,
	AN_TASK_SERVER = 1 << 7, /* the ECalls task server of its CPU [event.h] */
	AN_LEARNT = 1 << 8,	 /* nobody asked for it; D is after its waking [learn.h] */
	AN_UNAWAITED = 1 << 9,	 /* AN_LEARNT: nobody seems to wait for what it does */
	AN_SPILLS = 1 << 10,	 /* AN_HARD: without budget it counts as learnt [cbs.h] */
};
#define AN_CONTRACT_FLAGS 0x7ffu

/* What is promised. */
struct an_promise {
	u64 budget_ns;	     /* C > 0 */
	u64 period_ns;	     /* T, C <= D <= T <= AN_MAX_PERIOD_NS */
	u64 deadline_rel_ns; /* D; 0 for D = T; AN_LEARNT: of its jobs, any */
	u32 x;		     /* of every y periods x may be lost; AN_WINDOW only */
	u32 y;		     /* 0/0: none may, and the constraint plays no part in the order */
	u32 flags;	     /* enum an_contract_flag */
	u32 cpu;	     /* below AN_MAX_CONTRACT_CPUS */
};

/* Rank of a contract among those ready; a lower one always runs first. */
enum an_rank {
	AN_RANK_BUDGET = 0, /* holds budget */
	AN_RANK_EXTRA = 1,  /* served in this period, and work-conserving; or learnt, with budget */
	AN_RANK_BORROW = 2, /* exhausted, and may run in idle time */
	AN_RANK_OUT = 3,    /* not ready */
};

/* The payer of what a contract runs, where it runs for an event [event.h]. */
enum an_payer {
	AN_PAYS_AS_EVER = 0,	/* there is no event */
	AN_PAYS_ITS_BUDGET = 1, /* it does, as ever */
	AN_PAYS_IN_ADVANCE = 2, /* it does, of its next budget */
	AN_PAYS_SERVER = 3,	/* the task server of its CPU */
	AN_PAYS_NOBODY = 4,
};

struct an_contract {
	struct an_promise promise;

	u64 deadline_ns;     /* absolute; of AN_WINDOW, the end of the period */
	u64 due_ns;	     /* when an_contracts_expire() has to look at it, if it is timed */
	u64 job_deadline_ns; /* of the job in service: its release + D */
	u64 job_rel_ns;	     /* that D */
	u64 release_ns;	     /* split: release of the job in service, or to come */
	u64 debt_ns;	     /* AN_CATCH_UP: once the CPU is idle at or after this, debts end;
			      * split: when the last job ended */
	s64 left_ns;	     /* budget left; negative when a run went beyond the end */
	u64 owes_ns;	     /* that contracts nested in it ran for while it had no budget;
			      * AN_WINDOW: that it ran for events, in advance */
	u64 ran_ns;	     /* AN_WINDOW: served in this period, extra service aside; AN_LEARNT: of
			      * the job in service */
	u32 x;		     /* x', y': what is left of the window */
	u32 y;
	u64 utilization;      /* (1 - x/y) C/T [2^-AN_UTILIZATION_SHIFT CPU] */
	u64 order[4];	      /* among those that are ready: the least goes first [dwcs.h] */
	u64 urgent_ns;	      /* the deadline for which it waits for nobody any more [cbs.h] */
	u64 inherited_ns;     /* AN_LEARNT: deadline of the job that has woken this one; 0: none */
	struct an_bucket own; /* AN_LEARNT: what it is sure of */
	u32 sure;	      /* ... which is this part of the CPU [1/1024] */
	u32 part;	      /* ... of what its task uses on average [1/1024] */
	u64 event_ns[AN_SERVICES]; /* AN_WINDOW: when to deliver an event; AN_NEVER: there is none
				    */
	u64 event_first_ns;	   /* the earliest of these, or of the one that is being served */
	s64 event_left_ns;	   /* what is left to run for that one; 0: none is being served */

	/* Statistics, since the contract was made. */
	u64 service_ns;	    /* run under the contract, whatever it was charged to */
	u64 extra_ns;	    /* ... of that beyond the promise: rank EXTRA, or for an event */
	u64 borrowed_ns;    /* ... in idle time, uncharged */
	u64 reclaimed_ns;   /* ... on residuals of others */
	u64 deadlines;	    /* jobs ended, or periods that counted (dwcs.h) */
	u64 misses;	    /* ... of those too late, or without C */
	u64 violations;	    /* misses when x' was 0 */
	u64 exhaustions;    /* times the budget ran out */
	u64 replenishments; /* budgets that came by timer */

	u16 position[4]; /* in the heaps of its CPU, 1 and up; 0: not there */
	u16 cpu;	 /* whose heaps; of a split contract, where its piece runs */
	u16 generation;	 /* counts the uses of this slot */
	u16 split;	 /* index of its pieces; 0: not split */
	u16 next_free;
	u8 piece;      /* split: which piece is served, 0 and up */
	u8 rank;       /* enum an_rank */
	u8 used;       /* the slot holds a contract */
	u8 started;    /* has been woken once: the deadline means something */
	u8 runnable;   /* has something to run */
	u8 throttled;  /* has no budget until due_ns */
	u8 waits;      /* has budget, and lets learnt ones go first until due_ns [cbs.h] */
	u8 dry;	       /* AN_SPILLS: nor has it anything that learnt ones may use */
	u8 served;     /* AN_WINDOW: has had C in this period */
	u8 owed;       /* AN_WINDOW: this period counts as missed unless it is served */
	u8 overran;    /* this job has exhausted a budget */
	u8 parked;     /* runnable, but nothing of it can be had at present */
	u8 payer;      /* enum an_payer */
	u16 delivered; /* services whose events were delivered with the last pick, one bit each */
};

/* One part of a split contract [edfwm.h]. */
struct an_piece {
	u64 budget_ns;
	u64 offset_ns; /* of the release, since the job's release */
	u64 window_ns; /* the deadline, since the piece's release */
	u32 cpu;
	u32 pad;
};

struct an_split {
	struct an_piece piece[AN_MAX_PIECES];
	u32 count;
	u32 next_free;
};

/* Budget that a job left over, to be used before its deadline [fcbs.h]. */
struct an_residual {
	u64 left_ns;
	u64 deadline_ns;
	u32 owner;
	u32 pad;
};

struct an_contract_cpu {
	u16 heap[3 * AN_MAX_CONTRACTS]; /* AN_READY, AN_TIMERS, AN_SINKS; slot 0 of each unused */
	u32 count[4];
	u32 holders;	 /* of the ready: how many hold budget */
	u32 urgent;	 /* ... and wait for nobody */
	u32 strict;	 /* contracts that cannot wait, nor can others beside them [cbs.h] */
	u32 windows;	 /* contracts with AN_WINDOW, the task server aside */
	u32 window_max;	 /* no y on this CPU is above this, nor was since the first of them came */
	u32 residuals;	 /* in use of residual[] */
	u64 utilization; /* sum over the contracts, the task server aside */
	u64 settled_ns;	 /* residuals are drained up to here */
	u64 idle_ns;	 /* last time that no contract held budget, and nothing was left over */
	u32 held;	 /* those with AN_WINDOW are held back until the bucket has enough */
	u32 sure;	 /* what learnt contracts are sure of, in all [1/1024] */
	u32 level;	 /* ... and each of them at most [1/1024] */
	u32 server;	 /* the task server, or AN_NONE [event.h] */
	u32 pad;
	struct an_bucket promised; /* what all that were promised may use */
	struct an_bucket learnt;   /* what all that were learnt may */
	struct an_bucket beside;   /* ... those may beside all that learnt ones may */
	struct an_residual residual[AN_MAX_RESIDUALS]; /* earliest deadline first */
};

enum an_contract_option {
	AN_WINDOW_FIRST = 1 << 0, /* precedence of 1999: window constraint before deadline */
	AN_TIE_INDEX = 1 << 1,	  /* ties to the lower index, whatever the constraint was */
	AN_EXTRA_COUNTS = 1 << 2, /* rule a for every C of extra service too */
	AN_EVENT_STRICT = 1 << 3, /* event rule 4 with > as printed, not >= */
	/* Event rules left out, to see the others' effect; rule n is 1 << (n + 2). */
	AN_EVENT_NO_RULE_2 = 1 << 4,
	AN_EVENT_NO_RULE_3 = 1 << 5,
	AN_EVENT_NO_RULE_4 = 1 << 6,
	AN_EVENT_NO_RULE_5 = 1 << 7,
	AN_EVENT_AS_PUBLISHED = 1 << 8, /* nobody pays, and of rule 4 only i is asked [event.h] */
};

/* All contracts of a machine. In memory that is zero, or after an_contracts_init(). */
struct an_contracts {
	struct an_contract contracts[AN_MAX_CONTRACTS];
	struct an_split splits[AN_MAX_SPLITS];
	struct an_contract_cpu cpus[AN_MAX_CONTRACT_CPUS];
	u32 options;	 /* enum an_contract_option */
	u32 bound;	 /* part of each CPU for all that were promised, which overload does not
			  * exceed [1/1024]; 0: no bound */
	u32 learn_bound; /* part of each CPU that learnt contracts may use [1/1024] */
	u32 hand;	 /* the one that was looked at last for what it is sure of */
	u32 free_next;	 /* list of free slots */
	u32 unused;	 /* every index from here on has never been used */
	u32 slots;	 /* indices from here on may not be used; at most AN_MAX_CONTRACTS */
	u32 count;
	u32 learnt;	 /* of those, how many are AN_LEARNT */
	u32 learnt_most; /* ... and how many may be; at most AN_MAX_LEARNT */
	u32 learnt_free; /* ... of which are kept free for tasks that are awake */
	s32 kernel;	 /* part of each CPU that is left to the kernel [1/1024; cbs.h] */
	u32 split_free;
	u32 split_unused;
	u64 gives_way_ns; /* a task that has slept for so long may lose its learnt contract */
};

an_inline struct an_contract *an_contract(struct an_contracts *cs, u32 index)
{
	return &cs->contracts[an_bounded(index, AN_MAX_CONTRACTS)];
}

an_inline struct an_contract_cpu *an_contract_cpu(struct an_contracts *cs, u32 cpu)
{
	return &cs->cpus[an_bounded(cpu, AN_MAX_CONTRACT_CPUS)];
}

an_inline struct an_split *an_split(struct an_contracts *cs, u32 split)
{
	return &cs->splits[an_bounded(split, AN_MAX_SPLITS)];
}

an_inline struct an_piece *an_piece(struct an_contracts *cs, u32 split, u32 at)
{
	return &an_split(cs, split)->piece[an_bounded(at, AN_MAX_PIECES)];
}

/* Are all of these flags set? */
an_inline bool an_has(const struct an_contract *c, u32 flags)
{
	return (c->promise.flags & flags) == flags;
}

/* May this be promised, leaving aside whether there is room for it? */
an_inline bool an_promise_valid(const struct an_promise *p)
{
	const u32 server = AN_HARD | AN_RECLAIM | AN_CATCH_UP;
	u64 deadline_rel_ns = p->deadline_rel_ns ? p->deadline_rel_ns : p->period_ns;

	if (p->flags & ~AN_CONTRACT_FLAGS || p->cpu >= AN_MAX_CONTRACT_CPUS)
		return false;
	if (!p->budget_ns || p->budget_ns > p->period_ns || p->period_ns > AN_MAX_PERIOD_NS)
		return false;
	if (p->flags & AN_LEARNT)
		return (p->flags & ~AN_UNAWAITED) == (AN_LEARNT | AN_HARD) && !p->y &&
		       deadline_rel_ns <= AN_MAX_PERIOD_NS;
	if (p->budget_ns > deadline_rel_ns || deadline_rel_ns > p->period_ns)
		return false;
	if (p->flags & AN_UNAWAITED)
		return false;
	if (p->flags & AN_SPILLS && (p->flags & (AN_HARD | AN_WINDOW | AN_RECLAIM)) != AN_HARD)
		return false;
	if (p->x > p->y || p->y > AN_MAX_WINDOW)
		return false;
	if (p->flags & AN_WINDOW)
		return !(p->flags & (server | AN_EXHAUSTIVE)) && deadline_rel_ns == p->period_ns;
	if (p->y || p->flags & (AN_WORK_CONSERVING | AN_TASK_SERVER))
		return false;
	return !(p->flags & AN_EXHAUSTIVE) || !(p->flags & (server | AN_BORROW));
}

/* Is it one of learnt ones at present: was it learnt, or is what was promised used up, and spills
 * over? */
an_inline bool an_counts_as_learnt(const struct an_contract *c)
{
	return an_has(c, AN_LEARNT) || (c->throttled && an_has(c, AN_SPILLS));
}

/* (1 - x/y) C/T, rounded down. */
an_inline u64 an_promise_utilization(const struct an_promise *p)
{
	u64 utilization;

	if (!p->period_ns)
		return 0;
	utilization = (p->budget_ns << AN_UTILIZATION_SHIFT) / p->period_ns;
	return p->y ? utilization * (p->y - p->x) / p->y : utilization;
}

#endif
