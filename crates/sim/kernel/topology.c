/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which CPUs are threads of one core, share the last cache, belong to one node: as numbers follow
 * one another, as QEMU's do (-smp …,cores=,threads=). What the kernel makes of it for sched_ext:
 *
 *      smt    cpu_smt_mask(): siblings that are online, of a CPU that is
 *      llc    llc_span(): those of sd_llc that take tasks; none, if that is the CPU alone
 *      numa   numa_span(): the first group of sd_numa, which is the node's; none, if there is one
 *
 * Not modelled: that siblings slow one another down, and any of it for the stock scheduler
 * (fair_balance.c).
 */
#include "model.h"

static u32 or_all(u32 cpus)
{
	return cpus ? cpus : m.options.cpus;
}

static u32 threads_of_core(void)
{
	return m.options.threads_of_core ? m.options.threads_of_core : 1;
}

void topology_begins(void)
{
	if (m.options.cpus_of_cache)
		model_assert(m.options.cpus_of_cache % threads_of_core() == 0);
	if (m.options.cpus_of_cache && m.options.cpus_of_node)
		model_assert(m.options.cpus_of_node % m.options.cpus_of_cache == 0);
	topology_changes();
}

/* Of the CPUs numbered like this one, in parts of so many, those that are so. How many? */
static u32 part_of(u32 cpu, u32 each, bool (*is_so)(const struct rq *rq), struct cpumask *part)
{
	u32 count = 0, first = cpu - cpu % each;

	*part = (struct cpumask){0};
	for (u32 at = first; at < first + each && at < m.options.cpus; at++)
		if (is_so(&m.rqs[at])) {
			mask_set(part, at);
			count++;
		}
	return count;
}

static bool is_online(const struct rq *rq)
{
	return !rq->interrupts_off;
}

static bool is_active(const struct rq *rq)
{
	return rq->active;
}

/* cpu_smt_mask(): of a CPU that has left none, not even itself */
u32 smt_mask(u32 cpu, struct cpumask *siblings)
{
	*siblings = (struct cpumask){0};
	if (!is_online(&m.rqs[cpu]))
		return 0;
	return part_of(cpu, threads_of_core(), is_online, siblings);
}

/* llc_span(), llc_weight() */
u32 llc_span(u32 cpu, struct cpumask *span)
{
	u32 count = part_of(cpu, or_all(m.options.cpus_of_cache), is_active, span);

	return is_active(&m.rqs[cpu]) && count > 1 ? count : 0;
}

/* numa_span(), numa_weight() */
u32 numa_span(u32 cpu, struct cpumask *span)
{
	u32 all = 0, count = part_of(cpu, or_all(m.options.cpus_of_node), is_active, span);

	for (u32 at = 0; at < m.options.cpus; at++)
		all += is_active(&m.rqs[at]);
	return is_active(&m.rqs[cpu]) && count < all ? count : 0;
}

/* cpus_share_cache() */
bool share_cache(u32 a, u32 b)
{
	u32 each = or_all(m.options.cpus_of_cache);

	return a / each == b / each;
}

/* llc_weight() and numa_weight() at the time of an update: domains are made anew after a CPU has
 * left (cpuset_cpu_inactive()), so that they are those of the CPUs that are online still. */
static u32 llc_weight(u32 cpu)
{
	struct cpumask part;
	u32 count = part_of(cpu, or_all(m.options.cpus_of_cache), is_online, &part);

	return count > 1 ? count : 0;
}

static u32 numa_weight(u32 cpu, u32 online)
{
	struct cpumask part;
	u32 count = part_of(cpu, or_all(m.options.cpus_of_node), is_online, &part);

	return count < online ? count : 0;
}

/* llc_numa_mismatch() */
static bool caches_are_not_nodes(u32 online)
{
	for (u32 cpu = 0; cpu < m.options.cpus; cpu++)
		if (is_online(&m.rqs[cpu]) && llc_weight(cpu) != numa_weight(cpu, online))
			return true;
	return false;
}

/*
 * What the selection of an idle CPU looks at: sched_smt_active(), for as long as two threads of a
 * core take tasks (sched_smt_present_inc()), and scx_idle_update_selcpu_topology(), which is asked
 * as a CPU comes or goes (handle_hotplug()), and as the scheduler is loaded.
 */
void topology_changes(void)
{
	struct cpumask part;
	u32 online = 0, first = 0;

	m.smt = false;
	for (u32 cpu = m.options.cpus; cpu--;) {
		if (is_online(&m.rqs[cpu])) {
			online++;
			first = cpu;
		}
		m.smt |= part_of(cpu, threads_of_core(), is_active, &part) > 1;
	}
	m.by_cache = llc_weight(first) && llc_weight(first) < online;
	m.by_node = numa_weight(first, online) && caches_are_not_nodes(online);
}
