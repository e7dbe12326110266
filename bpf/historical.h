/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The state of the historical policies in the kernel: the policy, the table of tasks, the CPUs, and
 * how a task becomes a member of the policy. Part of historical.bpf.c.
 */
#ifndef ANDANTE_BPF_HISTORICAL_H
#define ANDANTE_BPF_HISTORICAL_H

#include "kfuncs.h"

#include "../core/core.h"
#include "exit.h"
#include "intf.h"

#define MAX_SLOTS 16384 /* power of two; slot 0 is nobody's */

/* Knobs, set by user space before loading. */
const volatile u32 policy_kind = AN_SVR4; /* enum an_policy_kind */
/* svr4: nice -1 … -20 are levels 2 … 59 of the class RT, not priorities of TS. */
const volatile bool nice_is_real_time = false;
const volatile u64 quantum_ns = AN_RR_QUANTUM_NS;
const volatile u32 nr_cpus = 1; /* possible CPUs; at most AN_MAX_CPUS */

/* Policies without a clock of their own are looked at as often. */
#define CLOCK_NS 10000000ULL
#define ENDLESS (~0ULL)

enum queue {
	QUEUE_KERNEL = 1, /* threads of the kernel, in order of arrival */
	QUEUE_USERS = 2,  /* everybody else, by key */
};

enum standing {
	FREE = 0,
	NEW,	/* has never wanted to run */
	ASLEEP, /* wants nothing */
	WAITING,
	SERVED,
};

/* A task. */
struct slot {
	struct an_member member;
	u32 standing; /* enum standing */
	u32 next;     /* FREE: the next free one */
	s32 pid;
	u32 moved; /* its key has changed since it was queued under it */
};

/* What a CPU does. */
struct cpu {
	u64 since_ns; /* the task in service has been charged up to here */
	u32 slot;     /* whose; AN_NONE: nobody's, or a thread of the kernel */
	bool over;    /* its quantum is */
	bool ousted;  /* its task, by a real-time one, and nobody has been chosen since */
	bool gone;    /* it is offline */
} __attribute__((aligned(64)));

struct an_policy policy;
struct slot slots[MAX_SLOTS];
u32 slots_used = 1; /* slots below have been given at some time */
u32 slot_free;	    /* the first of those that are free again */
struct cpu cpus[AN_MAX_CPUS];

static struct bpf_spin_lock policy_lock SEC(".bss.lock");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, u32);
} task_slots SEC(".maps");

struct clock {
	struct bpf_timer timer;
};

/* One for each CPU, and one for ageing. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, AN_MAX_CPUS + 1);
	__type(key, u32);
	__type(value, struct clock);
} clocks SEC(".maps");

static __always_inline struct slot *slot_at(u32 index)
{
	return &slots[an_bounded(index, MAX_SLOTS)];
}

static __always_inline struct cpu *cpu_at(s32 cpu)
{
	return &cpus[an_bounded(cpu, AN_MAX_CPUS)];
}

/* The slot of a task that the policy orders; AN_NONE: of the kernel's threads. */
static __always_inline u32 slot_of(struct task_struct *p)
{
	u32 *slot;

	if (p->flags & PF_KTHREAD)
		return AN_NONE;
	slot = bpf_task_storage_get(&task_slots, p, 0, 0);
	return slot ? *slot : AN_NONE;
}

/* The key as the kernel's queue compares it. */
static __always_inline u64 queue_key(const struct slot *s)
{
	return an_policy_queue_key(&policy, &s->member);
}

/* What the user asks for, by the nice value. */
static __always_inline void member_wants(struct an_member *m, s32 nice)
{
	an_policy_wants(m, nice, AN_USUAL_WEIGHT, nice_is_real_time);
}

#endif
