/* SPDX-License-Identifier: GPL-2.0 */
/* The scheduler that users run, as it stands, on the model. */
#include "../../../bpf/sched.bpf.c"
#include "seam.h"
#include "shell_trees.h"

const char model_scheduler[] = "sched";
const bool model_has_domains = false;

static void knobs_of_domains(void)
{
	model_assert(!m.options.domain_cpus);
}
