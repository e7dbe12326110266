/* SPDX-License-Identifier: GPL-2.0 */
/* The historical policies, as they stand, on the model: no classes, contracts or sockets. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wparentheses" /* clang, which compiles it else, sees no fault */
#include "../../../bpf/historical.bpf.c"
#pragma GCC diagnostic pop
#include "seam.h"
#include "shell.h"

const char model_scheduler[] = "historical";
const bool model_has_domains = false;

struct sched_ext_ops *model_ops = &historical_ops;

/* As crates/sched/src/historical.rs sets them; of the quantum it says nothing. */
void model_knobs(void)
{
	bool real_time = m.options.nice_is_real_time;
	u64 quantum = m.options.quantum_ns;

	model_assert(!m.options.domain_cpus);
	model_assert(m.options.policy_kind <= AN_LINUX22);
	knob(&policy_kind, &m.options.policy_kind, sizeof(u32));
	knob(&nice_is_real_time, &real_time, sizeof(bool));
	if (quantum)
		knob(&quantum_ns, &quantum, sizeof(quantum));
	knob(&nr_cpus, &m.options.cpus, sizeof(u32));
}

bool model_shell_lies(const char *first, const char *last)
{
	return (char *)cpus > first && (char *)slots > first && (char *)cpus < last &&
	       (char *)slots < last;
}

u64 model_refilled_ns(u64 queue)
{
	(void)queue;
	return 0;
}

/* It counts none: its callbacks are taken to cost what the tree's do that decide nothing. */
struct decisions model_decisions(u32 cpu)
{
	(void)cpu;
	return (struct decisions){0};
}

/* ---- what must hold (race.c) ---- */

/* A slot that a CPU serves is a task's, in service, and no other CPU's. */
static const char *served_broken(u32 cpu)
{
	u32 slot = cpu_at(cpu)->slot;

	if (!slot)
		return NULL;
	if (slot >= slots_used || slot_at(slot)->standing != SERVED)
		return "whom a CPU serves is in service";
	for (u32 other = 0; other < cpu; other++)
		if (cpu_at(other)->slot == slot)
			return "a task is served by one CPU";
	return NULL;
}

/* The free slots are listed once each. */
static const char *free_broken(void)
{
	u32 listed = 0, there = 0;

	for (u32 slot = slot_free; slot; slot = slot_at(slot)->next)
		if (slot_at(slot)->standing != FREE || ++listed > slots_used)
			return "the list of free slots holds those, once each";
	for (u32 slot = 1; slot < slots_used; slot++)
		there += slot_at(slot)->standing == FREE;
	return listed == there ? NULL : "every free slot is listed";
}

const char *model_scheduler_broken(bool quiet)
{
	const char *broken = free_broken();

	for (u32 cpu = 0; quiet && !broken && cpu < m.options.cpus; cpu++)
		broken = served_broken(cpu);
	return broken;
}
