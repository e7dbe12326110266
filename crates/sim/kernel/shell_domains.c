/* SPDX-License-Identifier: GPL-2.0 */
/* The scheduler of machines with many CPUs, as it stands, on the model. */
#undef AN_TREES
#define AN_TREES 64 /* AN_MAX_DOMAINS: user space gives it as many as there are domains */
#include "../../../bpf/domains.bpf.c"
#include "seam.h"
#include "shell_trees.h"

_Static_assert(AN_TREES == AN_MAX_DOMAINS, "a tree for every domain that there may be");

const char model_scheduler[] = "domains";
const bool model_has_domains = true;

/* As crates/sched/src/loader.rs sets them. */
static void knobs_of_domains(void)
{
	u32 each = m.options.domain_cpus, count, slots = 1, shift = 0, mask;

	model_assert(each && !(each & (each - 1)));
	count = (m.options.cpus + each - 1) / each;
	model_assert(count <= AN_MAX_DOMAINS);
	while (slots < count)
		slots *= 2;
	while (1U << shift < each)
		shift++;
	mask = slots - 1;
	knob(&nr_domains, &count, sizeof(u32));
	knob(&domain_mask, &mask, sizeof(u32));
	knob(&domain_shift, &shift, sizeof(u32));
}
