/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Events whose sinks are contracts with windows (core/event.h): they are raised, and a CPU that has
 * picked a contract lets the event scheduler have its say. Part of sched.bpf.c.
 *
 * `andante run --events` loads an object of its own, which is compiled with AN_EVENTS. In the
 * others an_events_on is false, and the compiler drops what that rules out.
 */
#ifndef ANDANTE_BPF_EVENTS_H
#define ANDANTE_BPF_EVENTS_H

#include "holders.h"

/* The time base of task servers: what one has if no event says more. */
#define EVENT_SERVER_BASE_NS 2000000

/*
 * The contract has an event of this service at deliver_ns, or now if that is past; now_ns is the
 * kernel's clock. Its CPU is told if that is its first event now, and looks at once or when it is
 * due. False: it is no sink. Takes the lock. Many events for one sink are one: so who raises
 * without end disturbs its CPU once, until that has been served.
 */
static __noinline bool events_raise(u32 index, u32 service, u64 deliver_ns, u64 now_ns)
{
	struct bpf_spin_lock *lock = contracts_lock();
	u64 was_ns, due_ns;
	bool raised;
	u32 cpu;

	if (!an_events_on)
		return false;
	bpf_spin_lock(lock);
	now_ns = contracts_clock(now_ns);
	cpu = an_contract(&contracts, index)->cpu;
	was_ns = an_events_due(&contracts, cpu);
	raised = an_event_raise(&contracts, index, service, deliver_ns, now_ns);
	due_ns = an_events_due(&contracts, cpu);
	bpf_spin_unlock(lock);
	stats.events_raised += raised;
	if (due_ns >= was_ns)
		return raised;
	if (due_ns <= now_ns) {
		kick_contract_cpu(cpu);
	} else {
		__sync_fetch_and_or(&cpu_state(cpu)->sees_to, SEES_TO_CONTRACTS);
		cpu_state(cpu)->over = 1; /* a pick that comes before that is to know of it */
		cpu_check_by(cpu_state(cpu), cpu, now_ns, due_ns);
	}
	return raised;
}

/* How often each rule delivered an event. */
static __always_inline void event_counts(const struct an_event_decision *decision)
{
	if (!decision->delivered)
		return;
	if (decision->rule == AN_RULE_EVENT_1)
		stats.event_rule_1++;
	else if (decision->rule == AN_RULE_EVENT_2)
		stats.event_rule_2++;
	else if (decision->rule == AN_RULE_EVENT_3)
		stats.event_rule_3++;
	else if (decision->rule == AN_RULE_EVENT_4)
		stats.event_rule_4++;
	else
		stats.event_rule_5++;
}

/*
 * The contract to run, or AN_NONE: what was picked, or the sink of an event in its place. Until
 * when that stands is left in contract_check_ns.
 */
an_global u32 events_pick(u32 cpu, bool alone)
{
	struct bpf_spin_lock *lock = contracts_lock();
	struct an_event_decision decision;
	u64 now_ns = an_kclock_ns(), until_ns;
	u32 selected, rule;

	bpf_spin_lock(lock);
	now_ns = contracts_clock(now_ns);
	selected = an_contracts_pick(&contracts, cpu, now_ns, alone, &rule);
	an_event_coordinate(&contracts, cpu, selected, now_ns, &decision);
	until_ns = an_events_due(&contracts, cpu);
	bpf_spin_unlock(lock);
	event_counts(&decision);
	if (until_ns <= now_ns)
		until_ns = AN_NEVER; /* it has been looked at, and is with every pick */
	if (decision.run_ns < until_ns - now_ns)
		until_ns = now_ns + decision.run_ns;
	cpu_state(cpu)->contract_check_ns = until_ns;
	return decision.run;
}

/* The task server of this CPU, if it is next, has no event to serve. */
an_global int events_settle(u32 cpu)
{
	struct bpf_spin_lock *lock = contracts_lock();
	u64 now_ns = an_kclock_ns();

	bpf_spin_lock(lock);
	if (an_task_server_forfeits(&contracts, cpu, contracts_clock(now_ns)))
		stats.event_forfeits++;
	bpf_spin_unlock(lock);
	return 0;
}

/* ---- what user space asks for ---- */

struct an_event_call event_call SEC(".bss.contracts") = {};

#ifdef AN_EVENTS

/* Its task server is what the contracts of this CPU leave. */
an_global int event_server(u32 cpu)
{
	struct bpf_spin_lock *lock = contracts_lock();
	u32 index, old = an_contract_cpu(&contracts, cpu)->server;
	u64 now_ns = an_kclock_ns();

	bpf_spin_lock(lock);
	an_task_server_update(&contracts, cpu, EVENT_SERVER_BASE_NS, contracts_clock(now_ns));
	index = an_contract_cpu(&contracts, cpu)->server;
	if (index && index != old) {
		an_holder(index)->leaf = AN_NONE;
		an_holder(index)->cpu = cpu;
		holder_init(an_holder(index), 0);
	}
	bpf_spin_unlock(lock);
	return 0;
}

static __always_inline s32 event_servers(void)
{
	u32 cpu = 0;

	contracts_make_room();
	an_while(cpu < nr_cpus && cpu < AN_MAX_CONTRACT_CPUS) {
		if (an_contract_cpu(&contracts, cpu)->windows)
			event_server(cpu);
		cpu = an_opaque(cpu + 1);
	}
	return 0;
}

/* The name of the contract that the call is about, by its own, or by a thread that holds it. */
static __always_inline u32 event_sink(void)
{
	struct task_struct *p;
	struct task_state *ts;
	u32 name = event_call.name;

	if (name)
		return name;
	p = bpf_task_from_pid(event_call.pid);
	if (!p)
		return 0;
	ts = bpf_task_storage_get(&task_states, p, 0, 0);
	if (ts)
		name = ts->contract;
	bpf_task_release(p);
	return name;
}

SEC("syscall")
int andante_event(void *ctx)
{
	u32 index;

	if (event_call.op == AN_EVENT_SERVERS)
		return event_servers();
	index = contract_named(event_sink());
	if (!index)
		return -2; /* ENOENT */
	return events_raise(index, event_call.service, event_call.deliver_ns, an_kclock_ns()) ? 0
											      : -22;
}

#endif

#endif
