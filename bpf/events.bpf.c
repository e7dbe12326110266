/* SPDX-License-Identifier: GPL-2.0 */
/* The scheduler with coordinated events (events.h). */
#define AN_EVENTS
#include "sched.bpf.c"
