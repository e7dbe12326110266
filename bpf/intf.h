/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What user space reads of the scheduler: the class tree itself (core/tree.h) and the counters
 * below. crates/sched reads both by the object's own BTF.
 */
#ifndef ANDANTE_BPF_INTF_H
#define ANDANTE_BPF_INTF_H

#define AN_MAX_CPUS 1024 /* power of two */
#define AN_EXIT_TEXT 256

/* Why the kernel let the scheduler go. */
struct an_exit {
	s64 code;
	u32 left; /* set last: the rest is valid */
	u32 pad;
	char reason[AN_EXIT_TEXT];
	char message[AN_EXIT_TEXT];
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
};

#endif
