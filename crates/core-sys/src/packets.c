// SPDX-License-Identifier: GPL-2.0
/*
 * The packet scheduler's functions, which are inline, with names that Rust can link. Apart from
 * core_sys.c, for a link has fewer classes and contracts than a machine: as many as in bpf/qdisc.h.
 */
#include <stddef.h>

#define AN_MAX_NODES 1024
#define AN_MAX_CONTRACTS 128
#define AN_MAX_CONTRACT_CPUS 4
#define AN_MAX_SPLITS 2
#define an_events_on false
#include "packets.h"

size_t an_sys_packets_size(void)
{
	return sizeof(struct an_packets);
}

void an_sys_packets_init(struct an_packets *q, u64 rate, u32 largest)
{
	an_packets_init(q, rate, largest, an_packets_held_max(largest));
}

u32 an_sys_packets_class(struct an_packets *q, u32 parent, u32 weight)
{
	return an_packets_class(q, parent, 0, weight);
}

int an_sys_packets_promise(struct an_packets *q, u32 leaf, u32 bytes, u64 period_ns, u64 now_ns)
{
	return an_packets_promise(q, leaf, bytes, period_ns, now_ns);
}

u32 an_sys_packets_shed(struct an_packets *q, u32 held, u64 now_ns)
{
	return an_packets_shed(q, held, now_ns);
}

u32 an_sys_packets_arrive(struct an_packets *q, const struct an_arrival *a)
{
	return an_packets_arrive(q, a);
}

u32 an_sys_packets_next(struct an_packets *q, u64 now_ns, u32 *index)
{
	return an_packets_next(q, now_ns, index);
}

/* When to ask again, if packets wait. */
u64 an_sys_packets_next_ns(const struct an_packets *q)
{
	return q->waiting ? q->link.next_ns : AN_NEVER;
}
