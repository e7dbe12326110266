// SPDX-License-Identifier: GPL-2.0
/*
 * The packet scheduler compiled as BPF: every entry point is called from a program, so that
 * whatever clang cannot turn into BPF fails `make -C core bpf-test`. Loaded by nobody.
 */
#include "bpf_types.h"

#include "../packets.h"

struct an_packets q;
struct an_arrival arrival;
u32 leaf, hash, bytes, held, packet, fate;
u64 now_ns;

PROGRAM int call_begin(void *context)
{
	(void)context;
	an_packets_init(&q, now_ns, bytes, held);
	leaf = an_packets_class(&q, leaf, now_ns, hash);
	an_packets_promise(&q, leaf, bytes, now_ns, now_ns);
	an_packets_class_remove(&q, leaf);
	return 0;
}

PROGRAM int call_packets(void *context)
{
	(void)context;
	packet = an_packets_shed(&q, held, now_ns);
	packet = an_packets_arrive(&q, &arrival);
	fate = an_packets_next(&q, now_ns, &packet);
	return 0;
}
