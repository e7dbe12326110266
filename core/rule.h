/* SPDX-License-Identifier: GPL-2.0 */
/*
 * By which rule a decision was taken: for traces, statistics and tests.
 *
 * Every decision of the core comes with one of these. The numbers and the names are part of the
 * traces' format: new ones go to the end of their group, old ones stay.
 */
#ifndef ANDANTE_CORE_RULE_H
#define ANDANTE_CORE_RULE_H

#include "port.h"

/* X(identifier, number, name in a trace) */
#define AN_RULES(X)                                                                                \
	X(NONE, 0, "none") /* nothing to run, nothing happened */                                  \
	/* Why this one runs. */                                                                   \
	X(EDF, 1, "edf")			/* earliest deadline, or the only one */           \
	X(WINDOW, 2, "window-constraint")	/* equal deadlines: tightest x'/y' */              \
	X(DENOMINATOR, 3, "window-denominator") /* ... both zero: highest y' */                    \
	X(NUMERATOR, 4, "window-numerator")	/* ... equal, not zero: lowest x' */               \
	X(FCFS, 5, "fcfs")			/* all of that equal: the tie rule */              \
	X(EXTRA, 6, "extra")			/* work-conserving, beyond its promise */          \
	X(RECLAIMED, 7, "reclaimed")		/* on what others left of their budgets */         \
	X(BORROWED, 8, "borrowed")		/* exhausted, in time that nobody else wants */    \
	X(SHARE, 9, "share")			/* no contract: the class tree's share */          \
	X(TASK_SERVER, 10, "task-server")	/* the task server's slot, no event pending */     \
	X(EVENT_1, 11, "event-rule-1")		/* the first event's sink, selected anyway */      \
	X(EVENT_2, 12, "event-rule-2")		/* the sink in place of best effort */             \
	X(EVENT_3, 13, "event-rule-3")		/* ... in place of extra service */                \
	X(EVENT_4, 14, "event-rule-4")		/* ... before one of its deadline that can wait */ \
	X(EVENT_5, 15, "event-rule-5")		/* ... in the task server's slot */                \
	X(UNIX_1, 16, "unix-rule-1")		/* a real-time sink, of no lower priority class */ \
	X(UNIX_2, 17, "unix-rule-2")		/* a sink, when only non-real-time ones can run */ \
	X(SAME_QUANTUM, 18, "same-quantum") /* a classmate of the one before, in its quantum */    \
	X(GOES_ON, 19, "goes-on")	    /* nobody else is to be preferred */                   \
	X(TURN, 20, "turn")		    /* its resource container's turn */                    \
	X(LEARNT, 21, "learnt")		    /* its contract is a learnt one [learn.h] */           \
	/* What became of a contract. */                                                           \
	X(RELEASED, 32, "released")	  /* woke: a new deadline and a full budget */             \
	X(KEPT, 33, "kept")		  /* woke: deadline and budget as they were */             \
	X(REVISED, 34, "revised")	  /* woke: the same deadline, the budget cut to fit it */  \
	X(WAITS, 35, "waits")		  /* woke: not before its next release */                  \
	X(CAUGHT_UP, 36, "caught-up")	  /* woke: the debts of earlier jobs are forgotten */      \
	X(SERVED, 37, "served")		  /* DWCS rule a: has had C in this period */              \
	X(MISSED, 38, "missed")		  /* DWCS rule b: the period passed without */             \
	X(VIOLATED, 39, "violated")	  /* ... and x' was 0 */                                   \
	X(POSTPONED, 40, "postponed")	  /* budget exhausted: a new one, a later deadline */      \
	X(THROTTLED, 41, "throttled")	  /* budget exhausted: waits for the next one */           \
	X(REPLENISHED, 42, "replenished") /* the next budget has come */                           \
	X(MIGRATED, 43, "migrated")	  /* the next piece of a split job, on another CPU */      \
	X(OVERRAN, 44, "overran")	  /* beyond its budget, which is not enforced */

#define AN_RULE_ENUM(identifier, number, name) AN_RULE_##identifier = number,
enum an_rule {
	AN_RULES(AN_RULE_ENUM)
};

/* The rule's name. Not for BPF programs, which write the number. */
#define AN_RULE_CASE(identifier, number, name)                                                     \
	case number:                                                                               \
		return name;
an_inline const char *an_rule_name(u32 rule)
{
	switch (rule) {
		AN_RULES(AN_RULE_CASE)
	}
	return "unknown";
}

#endif
