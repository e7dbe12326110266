/* SPDX-License-Identifier: GPL-2.0 */
/* The parts of the search for races: race.c tries, race_churn.c is user space, race_check.c says
 * what must hold. */
#ifndef ANDANTE_SIM_RACE_H
#define ANDANTE_SIM_RACE_H

#include "model.h"

#define MS 1000000ULL

enum op {
	OP_WORK,
	OP_SLEEP,
	OP_WAKE,
	OP_WAIT,
	OP_FORK,
	OP_EXIT,
	OP_YIELD,
	OP_NICE,
	OP_AFFINITY,
	OP_MOVE,
	OP_CGROUP,
	OP_WEIGHT,
	OP_PROMISE,
	OP_SOCKET,
	OP_REAL_TIME,
	OP_STOP,
	OP_KTHREAD,
	OP_EXEC,
	OP_CPU,
	OP_FREEZE,
	OP_BYPASS,
	OP_PIN,
	OP_RELOAD,
	OP_QUOTA,
	OP_POLICY,
	OP_SESSION,
	OP_KINDS,
};

/* A trial. */
struct trial {
	u64 seed;
	u64 steps;
	u32 cpus;
	u32 domain_cpus;
	u32 threads_of_core, cpus_of_cache; /* 0: one thread, one cache */
	u32 events;			    /* contracts have windows, and events */
	u32 tasks;
	u32 ops; /* a bit each */
	const char *
		hold_at; /* NULL, or the call of the kernel's at which CPUs are held: race_hold.c */
};

extern struct trial trial;
extern u64 steps; /* turns taken so far */

/* race.c */
u64 chance(u64 below);
void race_runs(void);	  /* a trial, in this process */
bool is_at_rest(u32 cpu); /* it is in the middle of nothing */

static inline bool may(enum op op)
{
	return trial.ops >> op & 1;
}

/* race_hold.c */
bool hold_begins(void);
bool hold_has_been(void);
bool hold_takes(u32 *ready, u32 *count);
u64 hold_shortens(u64 ns);

/* race_bytes.c */
struct trial bytes_trial(const u8 *data, u64 size);
bool bytes_choose(u64 below, u64 *value);

/* race_churn.c */
extern const char *const op_names[OP_KINDS];
void churn_begins(void);
void user_step(u32 task);
void user_timer(u64 token);

/* race_check.c */
void check(void);

#endif
