/* SPDX-License-Identifier: GPL-2.0 */
/* The scheduler that users run, as it stands, on the model. */
/* With events or without: here that is no object of its own, but an option. */
#define AN_EVENTS
const volatile unsigned int events_on = 0;
#define an_events_on events_on
#include "../../../bpf/sched.bpf.c"
#include "seam.h"
#include "shell_trees.h"

const char model_scheduler[] = "sched";
const bool model_has_domains = false;

static void knobs_of_domains(void)
{
	model_assert(!m.options.domain_cpus);
}
