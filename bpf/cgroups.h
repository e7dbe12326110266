/* SPDX-License-Identifier: GPL-2.0 */
/*
 * cgroups, as memory of the kernel's that is read, not followed: for programs that are told of work
 * and not of its class.
 */
#ifndef ANDANTE_BPF_CGROUPS_H
#define ANDANTE_BPF_CGROUPS_H

#include "kfuncs.h"

#include "../core/node.h"

/* Reads of it are plain loads, which give 0 where there is nothing: a call for each would be most
 * of what a packet costs. */
static __always_inline const struct cgroup *cgroup_at(u64 address)
{
	return bpf_rdonly_cast((const void *)address, bpf_core_type_id_kernel(struct cgroup));
}

/* NULL if it has no cpu controller. */
static __always_inline const struct task_group *cgroup_group(const struct cgroup *cgrp)
{
	u64 at = bpf_core_field_offset(cgrp->subsys) +
		 an_kconst(cgroup_subsys_id, cpu_cgrp_id) * sizeof(void *);
	const struct cgroup_subsys_state *state =
		*(struct cgroup_subsys_state *const *)((const char *)cgrp + at);

	return bpf_rdonly_cast(state, bpf_core_type_id_kernel(struct task_group));
}

/* A cgroup begins with its own state, so that its parent's is its parent. NULL of the root. */
static __always_inline const struct cgroup *cgroup_above(const struct cgroup *cgrp)
{
	return cgroup_at((u64)cgrp->self.parent);
}

static __always_inline u64 cgroup_id(const struct cgroup *cgrp)
{
	return cgrp->kn->id;
}

/* The nearest that has the cpu controller; the root if none has. */
static __always_inline const struct cgroup *class_cgroup(const struct cgroup *cgrp)
{
	const struct cgroup *above;

	an_while(!cgroup_group(cgrp) && (above = cgroup_above(cgrp)))
		cgrp = above;
	return cgrp;
}

/* Where it is, as a number: the verifier passes no such pointer on to a function that it looks at
 * once. */
static __always_inline u64 cgroup_address(const struct cgroup *cgrp)
{
	const struct cgroup *volatile kept = cgrp;
	u64 address = 0;

	bpf_probe_read_kernel(&address, sizeof(address), (const void *)&kept);
	return address;
}

/* The weight that the kernel's own scheduler gives it (cpu.weight, cpu.idle). */
static __always_inline u32 cgroup_cpu_weight(const struct cgroup *cgrp)
{
	const struct task_group *group = cgroup_group(cgrp);

	if (!group || !bpf_core_field_exists(group->scx))
		return AN_WEIGHT_DEFAULT;
	return BPF_CORE_READ(group, idle) ? AN_WEIGHT_IDLE : BPF_CORE_READ(group, scx.weight);
}

#endif
