/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A packet scheduler, a clock, and a record of every packet that it was given; after each call it
 * must account for all of them. Every file that includes this has its own.
 *
 *      conservation   every packet is waiting, sent or dropped, once; bytes likewise
 *      memory         what is held is the sum over the packets that wait, within the bounds
 *      order          the packets of a flow go in the order in which they came
 */
#ifndef ANDANTE_TESTS_PACKETS_FIXTURE_H
#define ANDANTE_TESTS_PACKETS_FIXTURE_H

#include "../packets.h"
#include "invariants.h"
#include "test.h"

#define MS 1000000ULL

struct record {
	u32 leaf;
	u32 hash;
	u32 bytes;
	u32 number; /* counts arrivals */
	bool waits;
};

static struct an_packets q;
static struct invariants invariants;
static u64 now_ns;
static struct record records[AN_MAX_PACKETS]; /* by index */
static struct record last;		      /* that went, or was dropped by CoDel */
static u64 bytes_in, bytes_out, bytes_lost;
static u32 arrivals;

static inline struct an_packet_counts *counts(u32 leaf)
{
	return an_packet_counts(&q, leaf);
}

static inline u32 packets_of(u32 leaf)
{
	return q.tree.nodes[leaf].queued + (q.alone && q.alone_leaf == leaf);
}

static inline void check_memory(void)
{
	u64 held = 0, packets = 0, bytes = 0;

	for (u32 i = 1; i < AN_MAX_PACKETS; i++) {
		packets += records[i].waits;
		bytes += records[i].waits ? records[i].bytes : 0;
	}
	for (u32 leaf = 1; leaf < q.tree.unused; leaf++)
		held += q.tree.nodes[leaf].kind == AN_LEAF ? q.crowds[leaf].held : 0;
	held += q.alone ? an_packet(&q.flows, q.alone)->held : 0;
	CHECK_EQ(held, q.held);
	CHECK_EQ(bytes, q.held); /* the tests' packets hold their bytes */
	CHECK_EQ(packets, q.waiting);
	CHECK_EQ(bytes_in, bytes_out + bytes_lost + bytes);
}

static inline void begin_packets(u64 rate, u32 held_max)
{
	static struct an_packets none;

	q = none;
	now_ns = 1000 * MS;
	memset(records, 0, sizeof(records));
	memset(&last, 0, sizeof(last));
	memset(&invariants, 0, sizeof(invariants));
	invariants.gives_way = true;
	bytes_in = bytes_out = bytes_lost = arrivals = 0;
	an_packets_init(&q, rate, 1514, held_max);
}

static inline u32 class_below(u32 parent, u32 weight)
{
	u32 leaf = an_packets_class(&q, parent, 0, weight);

	CHECK(leaf != AN_NONE);
	return leaf;
}

static inline struct record *gone(u32 index)
{
	CHECK(index && records[index].waits);
	records[index].waits = false;
	return &records[index];
}

static inline void arrive(u32 leaf, u32 hash, u32 bytes)
{
	struct an_arrival a = {now_ns, leaf, hash, bytes, bytes};
	u32 index;

	while ((index = an_packets_shed(&q, bytes, now_ns)))
		bytes_lost += gone(index)->bytes;
	index = an_packets_arrive(&q, &a);
	CHECK(index && !records[index].waits);
	records[index] = (struct record){leaf, hash, bytes, arrivals++, true};
	bytes_in += bytes;
	CHECK(q.alone || q.held <= q.held_max);
}

/* There is no room for it, and nothing has been shed. */
static inline bool refused(u32 held)
{
	struct an_arrival a = {now_ns, AN_ROOT_LEAF, 1, held, held};

	return an_packets_arrive(&q, &a) == AN_NONE;
}

static inline enum an_fate next(void)
{
	enum an_fate fate;
	u32 index;

	fate = an_packets_next(&q, now_ns, &index);
	CHECK_EQ(fate == AN_WAITS, index == AN_NONE);
	if (!index)
		return fate;
	last = *gone(index);
	*(fate == AN_DROPPED ? &bytes_lost : &bytes_out) += last.bytes;
	return fate;
}

/* The next packet, of which this must become. */
static inline struct record sending(enum an_fate fate)
{
	CHECK_EQ(next(), fate);
	return last;
}

#endif
