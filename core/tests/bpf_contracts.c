// SPDX-License-Identifier: GPL-2.0
/*
 * Every entry point of the contract layer, called from a BPF program: does clang accept the core's
 * dialect for BPF? Compiled by make -C core test where there is a clang; loaded by nobody.
 */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int s32;
typedef long long s64;
typedef _Bool bool;
#define true 1
#define false 0
#define NULL ((void *)0)

#include "../core.h"

struct an_contracts contracts;
struct an_promise promise;
struct an_piece pieces[AN_MAX_PIECES];
struct an_event_decision decision;
u64 kick, due_ns;
u32 picked, rule;

#define PROGRAM(name) __attribute__((section("syscall"), used)) int name(const u64 *args)

PROGRAM(bpf_set)
{
	u32 index = args[0];

	an_contracts_init(&contracts, args[1]);
	picked = an_contract_create(&contracts, &promise);
	rule = an_contract_set(&contracts, index, &promise);
	rule |= an_split_set(&contracts, index, pieces, args[1]);
	rule |= an_contract_move(&contracts, index, args[1]);
	return rule | an_contract_remove(&contracts, index);
}

PROGRAM(bpf_jobs)
{
	u32 index = args[0];
	u64 now_ns = args[1];

	rule = an_contract_wake(&contracts, index, now_ns);
	an_contract_inherit_deadline(&contracts, index, now_ns);
	an_contract_sleep(&contracts, index, now_ns);
	return an_contract_next_job(&contracts, index, args[2], now_ns);
}

PROGRAM(bpf_run)
{
	u32 cpu = args[0];
	u64 now_ns = args[1];

	rule = an_contract_charge(&contracts, picked, args[2], now_ns);
	an_contract_charge_turn(&contracts, picked, args[2], now_ns);
	due_ns = an_contracts_expire(&contracts, cpu, now_ns, &kick);
	picked = an_contracts_pick(&contracts, cpu, now_ns, args[3], &rule);
	due_ns += an_contract_run_ns(&contracts, picked, now_ns);
	if (an_learnt_comes_next(&contracts, args[2], picked, now_ns))
		return AN_RULE_LEARNT;
	return an_contract_preempts(&contracts, args[2], picked);
}

PROGRAM(bpf_events)
{
	u32 sink = args[0];
	u64 now_ns = args[1];

	due_ns = an_events_due(&contracts, args[2]);
	an_event_raise(&contracts, sink, args[2], args[3], now_ns);
	an_event_coordinate(&contracts, args[2], picked, now_ns, &decision);
	an_event_undeliver(&contracts, sink, now_ns);
	if (an_task_server_forfeits(&contracts, args[2], now_ns))
		return 0;
	rule = an_event_unix(args[0], args[1], args[2], args[3]);
	return an_task_server_update(&contracts, args[2], args[3], now_ns);
}

char licence_text[] __attribute__((section("license"), used)) = "GPL";
