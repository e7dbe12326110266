/* SPDX-License-Identifier: GPL-2.0 */
/* The scheduler for a machine with more CPUs than one lock can serve (domain.h). */
#define AN_DOMAINS
#include "sched.bpf.c"
