/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Contracts, and classes, of a scheduler that has none: it refuses them all. One that has them says
 * itself what becomes of them, in the place of these (shell_trees.h).
 */
#include "model.h"

#define OTHERWISE __attribute__((weak))
#define REFUSED (-95) /* EOPNOTSUPP */

OTHERWISE uint32_t sim_contract_create(const void *promise, const void *pieces, uint32_t count,
				       int cgroup)
{
	(void)promise, (void)pieces, (void)count, (void)cgroup;
	return 0;
}

OTHERWISE int sim_contract_bind(uint32_t task, uint32_t name)
{
	(void)task, (void)name;
	return REFUSED;
}

OTHERWISE int sim_declare(uint32_t task, uint64_t period_ns, uint64_t deadline_ns,
			  uint64_t budget_ns)
{
	(void)task, (void)period_ns, (void)deadline_ns, (void)budget_ns;
	return REFUSED;
}

OTHERWISE int sim_leave(uint32_t task)
{
	(void)task;
	return REFUSED;
}

OTHERWISE void sim_call(uint32_t task, uint64_t deliver_ns)
{
	(void)task, (void)deliver_ns;
}

OTHERWISE void sim_scribble(uint32_t task, uint32_t word, uint64_t value)
{
	(void)task, (void)word, (void)value;
}

OTHERWISE void sim_raise(uint32_t task, uint32_t service, uint64_t deliver_ns)
{
	(void)task, (void)service, (void)deliver_ns;
}

OTHERWISE void sim_cycle(uint32_t task, uint64_t deadline_ns)
{
	(void)task, (void)deadline_ns;
}

OTHERWISE int sim_contract_remove(uint32_t name)
{
	(void)name;
	return REFUSED;
}

OTHERWISE int sim_contract_sweep(void)
{
	return 0;
}

OTHERWISE int sim_event_raise(uint32_t task, uint32_t service, uint64_t deliver_ns)
{
	(void)task, (void)service, (void)deliver_ns;
	return REFUSED;
}

OTHERWISE void sim_contract_scarce(uint32_t learnt_most)
{
	(void)learnt_most;
}

OTHERWISE int sim_class(uint32_t cgroup)
{
	(void)cgroup;
	return REFUSED;
}

OTHERWISE int sim_policy(uint32_t cgroup, uint32_t kind, uint64_t quantum_ns,
			 uint32_t nice_is_real_time)
{
	(void)cgroup, (void)kind, (void)quantum_ns, (void)nice_is_real_time;
	return REFUSED;
}

OTHERWISE uint32_t sim_classes_shared(void)
{
	return 0;
}

OTHERWISE void sim_contracts_learnt(struct sim_learnt *learnt)
{
	*learnt = (struct sim_learnt){};
}

OTHERWISE void sim_contract_kept(uint32_t name, struct sim_kept *kept)
{
	(void)name;
	*kept = (struct sim_kept){};
}
