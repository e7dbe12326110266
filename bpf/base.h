/* SPDX-License-Identifier: GPL-2.0 */
/* What every part of the scheduler stands on. Part of sched.bpf.c. */
#ifndef ANDANTE_BPF_BASE_H
#define ANDANTE_BPF_BASE_H

#include "kfuncs.h"

/*
 * Are events coordinated? Only the scheduler that is compiled with AN_EVENTS can (events.bpf.c): of
 * the others no instruction is there for them. The core asks too, so it is said here
 * [core/contract.h].
 */
#ifndef an_events_on
#ifdef AN_EVENTS
#define an_events_on true
#else
#define an_events_on false
#endif
#endif

#include "../core/core.h"
#include "../crates/app/include/andante/page.h"
#include "intf.h"

struct an_stats stats;

/* Knobs, set by user space before loading. */
const volatile u64 quantum_ns = 2000000;      /* service of one pick */
const volatile u64 in_class_wake_ns = 200000; /* service before a classmate may preempt */
const volatile u32 contract_bound = 819;      /* of each CPU, for contracts [1/1024] */
const volatile u32 learn_bound = 819;	      /* of each CPU, for learnt ones [1/1024] */
const volatile u32 bindings = 1;	      /* servers work with their clients' shares */
const volatile u32 nr_cpus = 1;		      /* possible CPUs; at most AN_MAX_CPUS */
const volatile u32 nr_cpus_online = 1;
#ifdef AN_EVENTS
const volatile u32
	event_options SEC(".rodata.events") = 0; /* enum an_contract_option: rules left out */
#else
static const u32 event_options = 0;
#endif

/* Memory that user space writes too is read once. */
#define an_once(value) (*(const volatile typeof(value) *)&(value))

/* Where the task runs, or ran last. With one CPU there is nothing to read. */
static __always_inline u32 task_cpu(const struct task_struct *p)
{
	return nr_cpus == 1 ? 0 : an_ktask_cpu(p);
}

#endif
