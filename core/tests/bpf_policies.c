// SPDX-License-Identifier: GPL-2.0
/*
 * Policies, containers and bindings compiled as BPF: every entry point is called from a program, so
 * that whatever clang cannot turn into BPF (division with a sign, a structure by value, too deep a
 * stack, a call of memset) fails `make -C core bpf-test`.
 */
#include "bpf_types.h"

#include "../binding.h"
#include "../papers/containers.h"
#include "../policy.h"

struct an_policy policy;
struct an_member members[2];
struct an_containers containers;
struct an_binding binding;
u64 results[16]; /* power of two */

/* Inputs that clang knows nothing about. */
u32 kind, why, id, share, container;
u64 ran_ns, now_ns;
bool queued;

static void result(u32 i, u64 value)
{
	results[an_bounded(i, 16)] = value;
}

PROGRAM int call_policy(void *context)
{
	(void)context;
	an_policy_init(&policy, kind, ran_ns);
	an_policy_join(&policy, &members[0]);
	an_policy_join(&policy, &members[1]);
	an_policy_fork(&policy, &members[0], &members[1]);
	an_policy_change(&policy, &members[0]);
	return 0;
}

PROGRAM int call_policy_queue(void *context)
{
	(void)context;
	an_policy_wake(&policy, &members[0]);
	an_policy_serve(&policy, &members[0]);
	an_policy_used(&policy, &members[0], ran_ns);
	result(0, an_policy_quantum_ns(&policy, &members[0]));
	an_policy_requeue(&policy, &members[0], why);
	an_policy_block(&policy, &members[0]);
	result(1, an_policy_preempts(&policy, &members[1], &members[0]));
	return 0;
}

PROGRAM int call_policy_clock(void *context)
{
	(void)context;
	result(2, an_policy_tick_ns(&policy));
	result(3, an_policy_tick(&policy, &members[0]));
	result(4, an_policy_age_ns(&policy));
	result(5, an_policy_age(&policy, &members[0], queued));
	return 0;
}

PROGRAM int call_containers_tree(void *context)
{
	(void)context;
	an_containers_init(&containers, ran_ns, now_ns);
	result(6, an_containers_create(&containers, id, kind, share));
	result(7, an_containers_set(&containers, id, kind, share));
	result(8, an_containers_remove(&containers, id));
	return 0;
}

PROGRAM int call_containers_run(void *context)
{
	(void)context;
	an_containers_queue_add(&containers, id);
	result(9, an_containers_pick(&containers));
	result(10, an_containers_slice_ns(&containers, id));
	an_containers_charge(&containers, id, ran_ns);
	result(11, an_containers_tick(&containers, id));
	an_containers_queue_remove(&containers, id);
	return 0;
}

PROGRAM int call_binding(void *context)
{
	(void)context;
	an_binding_init(&binding, container, now_ns);
	an_binding_bind(&binding, container, now_ns);
	result(12, an_binding_payer(&binding));
	result(13, an_binding_charge(&binding, ran_ns, now_ns));
	result(14, an_binding_share(&binding, id));
	an_binding_prune(&binding, now_ns);
	an_binding_forget(&binding, container, id, now_ns);
	an_binding_reset(&binding, now_ns);
	result(15, an_binding_ask(&binding, container, now_ns));
	an_binding_answer(&binding);
	an_binding_vouch(&binding);
	return 0;
}
