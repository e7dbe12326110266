/* SPDX-License-Identifier: GPL-2.0 */
/* What user space sees of the scheduler compiled with the model: its knobs, its programs. */
#include "model.h"

#include <string.h>
#include <sys/mman.h>

struct sched_ext_ops *model_ops = &andante_ops;

/* Knobs are constants to the scheduler; before it begins user space writes them, as libbpf does. */
static void knob(const volatile void *at, const void *value, unsigned long size)
{
	unsigned long page = (unsigned long)at & ~4095UL;
	unsigned long length = (unsigned long)at + size - page;

	model_assert(!mprotect((void *)page, length, PROT_READ | PROT_WRITE));
	memcpy((void *)at, value, size);
}

void model_knobs(void)
{
	u64 quantum = m.options.quantum_ns, in_class = m.options.in_class_wake_ns;

	knob(&quantum_ns, &quantum, sizeof(quantum));
	knob(&in_class_wake_ns, &in_class, sizeof(in_class));
	knob(&contract_bound, &m.options.contract_bound, sizeof(u32));
	knob(&learn_bound, &m.options.learn_bound, sizeof(u32));
	knob(&bindings, &m.options.bindings, sizeof(u32));
	knob(&nr_cpus, &m.options.cpus, sizeof(u32));
	knob(&nr_cpus_online, &m.options.cpus, sizeof(u32));
}

int model_data_ready(struct sock *sk)
{
	return andante_data_ready(sk);
}

int model_received(struct sock *sk, int length)
{
	return andante_received(sk, length);
}

struct an_contract_call *sim_contract_call(void)
{
	return &contract_call;
}

int sim_contract(void)
{
	return andante_contract(NULL);
}

const struct an_stats *sim_scheduler_stats(void)
{
	return &stats;
}
