/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Packets in their flows, and the flows of a class in turn.
 *
 * A flow is what one connection sends: its packets have the same hash. The flows of a class get
 * alike, by start-time fair queueing of bytes ([1]; the rules are in hsfq.h, all weights being
 * one), so that between two flows that have packets waiting |W_f - W_g| never exceeds l_f + l_g,
 * the largest packets of the two. Other than in [2] no two flows share a queue unless their whole
 * hashes are the same.
 *
 * There are as many flows as packets, so one is to be had for every packet that there is room for.
 * One without packets is kept, for its tag and for what CoDel knows of it, until it is the one that
 * has been so for longest and another is wanted.
 *
 *           first packet               the last one leaves
 *      free ------------> waiting, in its class's heap ----> idle, in the list of these
 *                               ^---------------------------'  |
 *                                 another packet               `--> another flow
 *
 * The heap is a skew heap [3]: O(log k) amortized for k flows, of two links each.
 *
 * [1] P. Goyal, H. Vin, H. Cheng: Start-time Fair Queuing. SIGCOMM 1996.
 * [2] P. McKenney: Stochastic Fairness Queueing. INFOCOM 1990.
 * [3] D. Sleator, R. Tarjan: Self-Adjusting Heaps. SIAM Journal on Computing 15(1), 1986.
 */
#ifndef ANDANTE_CORE_FLOW_H
#define ANDANTE_CORE_FLOW_H

#include "codel.h"
#include "hsfq.h"

#ifndef AN_MAX_PACKETS
#define AN_MAX_PACKETS 4096 /* that wait at once, and one more; power of two */
#endif
_Static_assert((AN_MAX_PACKETS & (AN_MAX_PACKETS - 1)) == 0, "an_bounded() masks");
_Static_assert(AN_MAX_PACKETS <= 65536, "indices are 16 bits wide");

struct an_packet {
	u64 arrived_ns;
	u32 bytes; /* on the link */
	u32 held;  /* in memory [bytes] */
	u16 next;  /* of its flow; of a free one, the next free one */
	u16 flow;
};

struct an_flow {
	u64 start;   /* S of its next packet; F of its last, if none waits [bytes] */
	u64 left_ns; /* when its last packet left */
	struct an_codel codel;
	u32 hash;
	u32 bytes; /* of its packets that wait */
	u32 held;
	u32 generation; /* of its leaf's use */
	u16 leaf;
	u16 packets;
	u16 first, last;
	u16 before, after; /* in the heap: those below it; idle: those idle for longer, and less */
	u16 chain;	   /* the next of its bucket; of a free one, the next free one */
};

/* The packets of a leaf, and what became of those before. */
struct an_crowd {
	u64 vtime;	   /* v of the flows [bytes] */
	u64 max_finish;	   /* largest F of any flow [bytes] */
	u32 held;	   /* by its packets [bytes] */
	u16 top;	   /* of the heap of its flows */
	u16 longest;	   /* a flow that held much when it was looked at */
	u16 before, after; /* neighbours in the list of its band (packets.h) */
	u32 band;
};

struct an_flows {
	struct an_packet packets[AN_MAX_PACKETS];
	struct an_flow flows[AN_MAX_PACKETS]; /* before and after of the first: ends of the idle */
	u16 buckets[AN_MAX_PACKETS];
	u32 packet_free, packet_unused;
	u32 flow_unused;
	u32 waiting; /* flows that have packets */
};

an_inline struct an_packet *an_packet(struct an_flows *s, u32 index)
{
	return &s->packets[an_bounded(index, AN_MAX_PACKETS)];
}

an_inline struct an_flow *an_flow(struct an_flows *s, u32 index)
{
	return &s->flows[an_bounded(index, AN_MAX_PACKETS)];
}

an_inline void an_flows_init(struct an_flows *s)
{
	u32 bucket = 0;

	an_while(bucket < AN_MAX_PACKETS) {
		s->buckets[an_bounded(bucket, AN_MAX_PACKETS)] = AN_NONE;
		bucket = an_opaque(bucket + 1);
	}
	s->packet_free = AN_NONE;
	s->packet_unused = s->flow_unused = 1;
	s->waiting = 0;
	s->flows[AN_NONE].before = s->flows[AN_NONE].after = AN_NONE;
}

/* ---- those that are idle ---- */

an_inline void an_flow_idles(struct an_flows *s, u32 index)
{
	struct an_flow *f = an_flow(s, index), *ends = &s->flows[AN_NONE];

	f->after = AN_NONE;
	f->before = ends->before;
	an_flow(s, ends->before)->after = index;
	ends->before = index;
}

an_inline void an_flow_wakes(struct an_flows *s, const struct an_flow *f)
{
	u32 before = f->before, after = f->after;

	an_flow(s, before)->after = after;
	an_flow(s, after)->before = before;
}

/* ---- which is which ---- */

an_inline u16 *an_flow_bucket(struct an_flows *s, u32 leaf, u32 hash)
{
	/* The flows of two classes that have one hash are not to meet. */
	u32 mixed = (hash ^ leaf * 0x85ebca6bu) * 0x9e3779b1u;

	return &s->buckets[an_bounded(mixed >> 16, AN_MAX_PACKETS)];
}

/* Out of its bucket, to be another's. */
an_inline void an_flow_forget(struct an_flows *s, u32 index, const struct an_flow *f)
{
	u16 *link = an_flow_bucket(s, f->leaf, f->hash);

	an_while(*link && *link != index)
		link = &an_flow(s, *link)->chain;
	*link = f->chain;
}

/* One that nobody has: never used, or idle for longest. There is one. */
an_inline u32 an_flow_alloc(struct an_flows *s)
{
	u32 index = s->flows[AN_NONE].after;

	if (s->flow_unused < AN_MAX_PACKETS)
		return s->flow_unused++;
	an_assert(index);
	an_flow_wakes(s, an_flow(s, index));
	an_flow_forget(s, index, an_flow(s, index));
	return index;
}

/* The flow of that hash in the leaf, waiting or idle; if there is none, a new one that is neither
 * yet: no packet waits in it. */
an_inline u32 an_flow_find(struct an_flows *s, u32 leaf, u32 generation, u32 hash, u64 vtime)
{
	u16 *bucket = an_flow_bucket(s, leaf, hash);
	u32 index = *bucket;
	struct an_flow *f;

	an_while(index) {
		f = an_flow(s, index);
		if (f->hash == hash && f->leaf == leaf && f->generation == generation) {
			if (!f->packets)
				an_flow_wakes(s, f);
			return index;
		}
		index = f->chain;
	}
	index = an_flow_alloc(s);
	f = an_flow(s, index);
	f->start = vtime;
	f->left_ns = 0;
	f->codel = (struct an_codel){0};
	f->hash = hash;
	f->leaf = leaf;
	f->generation = generation;
	f->bytes = f->held = f->packets = f->first = f->last = 0;
	f->chain = *bucket;
	*bucket = index;
	return index;
}

/* ---- the heap of a crowd ---- */

an_inline bool an_flow_before(struct an_flows *s, u32 a, u32 b)
{
	s64 ahead = an_tag_diff(an_flow(s, a)->start, an_flow(s, b)->start);

	return ahead < 0 || (ahead == 0 && a < b);
}

/* Two heaps become one, of which *link is the top. */
an_outline void an_flows_merge(struct an_flows *s, u16 *link, u32 a, u32 b)
{
	an_while(a && b) {
		struct an_flow *f;
		u32 first = an_flow_before(s, a, b) ? a : b;

		b ^= a ^ first; /* the other */
		*link = first;
		f = an_flow(s, first);
		a = f->after;
		f->after = f->before;
		link = &f->before;
	}
	*link = a | b;
}

an_inline void an_flow_enter(struct an_flows *s, struct an_crowd *c, u32 index)
{
	struct an_flow *f = an_flow(s, index);

	s->waiting++;
	f->before = f->after = AN_NONE;
	an_flows_merge(s, &c->top, c->top, index);
}

/* The top leaves. */
an_inline void an_flow_leave(struct an_flows *s, struct an_crowd *c)
{
	const struct an_flow *f = an_flow(s, c->top);

	s->waiting--;
	an_flows_merge(s, &c->top, f->before, f->after);
}

/* ---- packets ---- */

an_inline bool an_packet_has_room(const struct an_flows *s)
{
	return s->packet_free || s->packet_unused < AN_MAX_PACKETS;
}

/* There is room for it. */
an_inline u32 an_packet_alloc(struct an_flows *s)
{
	u32 index = s->packet_free;

	if (!index)
		return s->packet_unused++;
	s->packet_free = an_packet(s, index)->next;
	return index;
}

/* What it says stands until another is allocated. */
an_inline void an_packet_free(struct an_flows *s, u32 index)
{
	an_packet(s, index)->next = s->packet_free;
	s->packet_free = index;
}

/* It is the last of the flow. */
an_inline void an_packet_append(struct an_flows *s, u32 flow, u32 index)
{
	struct an_flow *f = an_flow(s, flow);
	struct an_packet *p = an_packet(s, index);

	p->next = AN_NONE;
	p->flow = flow;
	if (f->packets)
		an_packet(s, f->last)->next = index;
	else
		f->first = index;
	f->last = index;
	f->packets++;
	f->bytes += p->bytes;
	f->held += p->held;
}

/* The first of the flow, which has one, leaves it and is free. */
an_inline u32 an_packet_take(struct an_flows *s, u32 flow)
{
	struct an_flow *f = an_flow(s, flow);
	u32 index = f->first;
	const struct an_packet *p = an_packet(s, index);

	f->first = p->next;
	f->packets--;
	f->bytes -= p->bytes;
	f->held -= p->held;
	an_packet_free(s, index);
	return index;
}

#endif
