/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A packet scheduler: what waits to leave by a link, which goes next, and which never does.
 *
 *      an_packets_shed() --> an_packets_arrive() --> [waits] --> an_packets_next() --> on the link
 *            |                                                        |
 *            `-> there is no room: one is dropped                     `-> it waited too long:
 *                                                                         dropped by CoDel
 *
 * Whose packet goes next is decided twice. The class: H-SFQ as for a CPU (hsfq.h, unchanged), with
 * bytes for nanoseconds; it has one CPU, which is the link. The flow in the class: flow.h. A
 * packet's length is known when it is picked, and it is charged at once.
 *
 * A class that sends a packet now and then, and less than its share, is not to wait behind all that
 * have queues: that would be a packet of each. So a class, and a flow, whose queue was empty comes
 * back with S = max(F, v - q), q being a largest packet at its weight (an_queue_gives_way()): its
 * packet is the next if it has sent less than its share by that much, as those of new flows are in
 * [2]. It has its share and no more, for F counts all that it sent. So at every level, for any two
 * that have packets waiting, |W_f/r_f - W_g/r_g| <= 2 (q_f + q_g), W being bytes sent; and <=
 * l_f/r_f + l_g/r_g in the long run, l being the largest packets of the two.
 *
 * Before the classes' turn comes that of contracts: a class's packets go before others' as far as
 * its budget reaches, and are not charged to the class then (link_contracts.h).
 *
 * Memory is bounded: AN_MAX_PACKETS - 1 packets, and held_max bytes. When either is used up the
 * class that holds most loses a packet, and in it the flow that holds most: who is within his part
 * of the memory loses nothing to others ([1]; the oldest packet of all would be that of the class
 * with the least weight, which waits longest by right). Of that flow it is the oldest packet, of
 * which the sender learns soonest [2]. "Most" is meant within a factor of two, so that finding it
 * is O(1): classes are listed in bands by the power of two that they hold. So a class that holds
 * less than half of held_max / n, n being the classes with packets, loses nothing for want of
 * bytes. Of the flows of a class the longest is the longest of those looked at lately, as in [1].
 *
 * Most packets come to a link that is free, and go before the next one comes. Such a packet is
 * alone: it is in no queue and is not charged. That is no loss to anybody: when nothing waits all
 * classes are alike (hsfq.h), and so are all flows, whatever they sent before.
 *
 * One instance is one link, with a lock of its caller's, who has one packet's data for each index
 * that is handed out here.
 *
 * Cost, d being the depth and k the siblings that are ready: of a packet that is alone O(1), else
 * an_packets_arrive() O(d), if the class
 * had no packet, else O(1), and O(log k) for a flow that had none, amortized;
 * an_packets_next() as an_pick() and an_stop().
 *
 * [1] B. Suter, T. Lakshman, D. Stiliadis, A. Choudhury: Design Considerations for Supporting TCP
 *     with Per-flow Queueing. INFOCOM 1998.
 * [2] T. Hoeiland-Joergensen et al.: The Flow Queue CoDel Packet Scheduler and Active Queue
 *     Management Algorithm. RFC 8290, 2018.
 */
#ifndef ANDANTE_CORE_PACKETS_H
#define ANDANTE_CORE_PACKETS_H

#include "flow.h"
#include "link_contracts.h"

#define AN_BANDS 32u

enum an_fate {
	AN_WAITS = 0,	/* nothing goes: no packet is there, or the link is not free */
	AN_SENT = 1,	/* it goes */
	AN_DROPPED = 2, /* it does not go: ask again */
};

/* What became of a class's packets. */
struct an_packet_counts {
	u64 packets;	      /* sent */
	u64 bytes;	      /* sent */
	u64 promised;	      /* ... of these, by contract */
	u64 late;	      /* dropped by CoDel */
	u64 crowded;	      /* dropped for want of room */
	u64 waited[AN_BANDS]; /* sent after 2^i … 2^(i+1) - 1 us; the first also after less */
};

struct an_packets {
	struct an_tree tree;
	struct an_flows flows;
	struct an_crowd crowds[AN_MAX_NODES]; /* by leaf */
	struct an_packet_counts counts[AN_MAX_NODES];
	struct an_link link;
	struct an_link_contracts contracts;
	u16 bands[AN_BANDS]; /* the first leaf of each that holds 2^i … 2^(i+1) - 1 bytes */
	u32 used_bands;	     /* a bit for each that has any */
	u32 held;
	u32 held_max;
	u32 largest; /* bytes of an ordinary packet, at most */
	u32 waiting; /* packets */
	u32 alone;   /* the only one that waits, if it is in no queue */
	u32 alone_leaf, alone_hash;
};

an_inline struct an_crowd *an_crowd(struct an_packets *q, u32 leaf)
{
	return &q->crowds[an_bounded(leaf, AN_MAX_NODES)];
}

an_inline struct an_packet_counts *an_packet_counts(struct an_packets *q, u32 leaf)
{
	return &q->counts[an_bounded(leaf, AN_MAX_NODES)];
}

/* The power of two in n > 0. */
an_inline u32 an_power_of_two(u32 n)
{
	return 31 - __builtin_clz(n);
}

an_inline void an_crowd_init(struct an_packets *q, u32 leaf)
{
	*an_crowd(q, leaf) = (struct an_crowd){.band = AN_BANDS};
	*an_packet_counts(q, leaf) = (struct an_packet_counts){0};
	*an_leaf_contract(&q->contracts, leaf) = AN_NONE;
}

/* More than all memory, which is less than half of this: whatever waits is shed. */
#define AN_ALL_HELD (1u << 31)

/*
 * The memory that a link's packets may hold: as much as ordinary ones do when there are as many as
 * there is room for; a packet takes about twice its bytes. So bytes are short only where packets
 * are larger than the link's, and a class among n may have AN_MAX_PACKETS / 2n waiting, which is
 * more than a frame of a film, and more than a socket of Linux holds (92) with 22 classes or less.
 */
an_inline u32 an_packets_held_max(u32 largest)
{
	u64 held = 2ULL * largest * AN_MAX_PACKETS;

	return held < AN_ALL_HELD / 2 ? held : AN_ALL_HELD / 2;
}

/*
 * No class but the root's, no packet. The link's rate is in bytes a second, or 0: somebody else
 * holds packets back, and asks for the next one when it may go. What was here before is forgotten;
 * no packet may be waiting.
 */
an_inline void an_packets_init(struct an_packets *q, u64 rate, u32 largest, u32 held_max)
{
	u32 i = 0;

	an_while(i < AN_MAX_NODES) {
		*an_node(&q->tree, i) = (struct an_node){0};
		i = an_opaque(i + 1);
	}
	an_tree_init(&q->tree, largest, 1);
	q->tree.own_cpus = 1;
	an_flows_init(&q->flows);
	an_link_contracts_init(&q->contracts);
	an_crowd_init(q, AN_ROOT_LEAF);
	i = 0;
	an_while(i < AN_BANDS) {
		q->bands[an_bounded(i, AN_BANDS)] = AN_NONE;
		i = an_opaque(i + 1);
	}
	q->link = (struct an_link){.rate = rate};
	q->used_bands = q->held = q->waiting = q->alone = 0;
	q->held_max = held_max;
	q->largest = largest;
}

/*
 * The memory that a packet takes: its place among AN_MAX_PACKETS at least. So bytes and places
 * run out together, and who has many small packets waiting has much, as who has a few large ones.
 */
an_inline u32 an_packet_takes(const struct an_packets *q, u32 held)
{
	u32 place = q->held_max / AN_MAX_PACKETS;

	return held > place ? held : place;
}

/* Is there room for a packet that holds so much? */
an_inline bool an_packets_have_room(const struct an_packets *q, u32 held)
{
	return an_packet_has_room(&q->flows) && q->held + an_packet_takes(q, held) <= q->held_max;
}

/* As an_class_create(), of tree.h. */
an_inline u32 an_packets_class(struct an_packets *q, u32 parent_leaf, u64 cgroup_id, u32 weight)
{
	u32 leaf = an_class_create(&q->tree, parent_leaf, cgroup_id, weight);

	if (leaf)
		an_crowd_init(q, leaf);
	return leaf;
}

/* As an_class_remove(), of tree.h, and -1 too if a packet is alone in it; its contract goes with
 * it.
 */
an_inline int an_packets_class_remove(struct an_packets *q, u32 leaf)
{
	if ((q->alone && q->alone_leaf == leaf) || an_class_remove(&q->tree, leaf))
		return -1;
	an_leaf_contract_end(&q->contracts, leaf);
	return 0;
}

/*
 * The class is promised so many bytes in every period, from now on; none: it has its share alone.
 * 0, or -1: that cannot be promised on this link, and what there was stands.
 */
an_outline int an_packets_promise(struct an_packets *q, u32 leaf, u32 bytes, u64 period_ns,
				  u64 now_ns)
{
	if (!bytes) {
		an_leaf_contract_end(&q->contracts, leaf);
		return 0;
	}
	if (an_leaf_contract_set(&q->contracts, leaf, q->link.rate, bytes, period_ns))
		return -1;
	if (an_node(&q->tree, leaf)->queued)
		an_leaf_contract_wake(&q->contracts, leaf, now_ns);
	return 0;
}

/* ---- who holds how much ---- */

an_inline void an_band_leave(struct an_packets *q, const struct an_crowd *c)
{
	u16 *first = &q->bands[an_bounded(c->band, AN_BANDS)];

	if (c->before)
		an_crowd(q, c->before)->after = c->after;
	else
		*first = c->after;
	if (c->after)
		an_crowd(q, c->after)->before = c->before;
	if (!*first)
		q->used_bands &= ~(1u << (c->band & 31));
}

/* Behind nobody: of those of a band it does not matter who comes first. */
an_inline void an_band_enter(struct an_packets *q, u32 leaf, struct an_crowd *c)
{
	u16 *first = &q->bands[an_bounded(c->band, AN_BANDS)];

	c->before = AN_NONE;
	c->after = *first;
	if (*first)
		an_crowd(q, *first)->before = leaf;
	*first = leaf;
	q->used_bands |= 1u << (c->band & 31);
}

/* The leaf holds so much more, or less. */
an_outline void an_crowd_holds(struct an_packets *q, u32 leaf, s32 more)
{
	struct an_crowd *c = an_crowd(q, leaf);
	u32 band;

	q->held += more;
	c->held += more;
	band = c->held ? an_power_of_two(c->held) : AN_BANDS;
	if (band == c->band)
		return;
	if (c->band < AN_BANDS)
		an_band_leave(q, c);
	c->band = band;
	if (band < AN_BANDS)
		an_band_enter(q, leaf, c);
}

/* A flow of the leaf that holds much, and has packets. */
an_inline u32 an_crowd_longest(struct an_packets *q, u32 leaf, const struct an_crowd *c)
{
	const struct an_flow *f = an_flow(&q->flows, c->longest);

	/* Not the only packet of a flow that is not at the top: it would have to leave the heap. */
	return f->leaf == leaf && f->packets > 1 ? c->longest : c->top;
}

/* ---- packets leave ---- */

/* The first packet of the flow, out of memory. The flow goes on waiting, if it is to. */
an_inline u32 an_packets_take(struct an_packets *q, u32 leaf, u32 flow)
{
	u32 index = an_packet_take(&q->flows, flow);

	q->waiting--;
	an_crowd_holds(q, leaf, -(s32)an_packet(&q->flows, index)->held);
	return index;
}

/* The top flow of the leaf has changed its tag, or has no packet any more. */
an_inline void an_crowd_turns(struct an_packets *q, struct an_crowd *c, u64 now_ns)
{
	u32 top = c->top;
	struct an_flow *f = an_flow(&q->flows, top);

	an_flow_leave(&q->flows, c);
	if (f->packets) {
		an_flow_enter(&q->flows, c, top);
	} else {
		an_codel_ends(&f->codel, now_ns);
		an_flow_idles(&q->flows, top);
	}
	if (!c->top)
		c->vtime = c->max_finish;
}

/* A packet of the leaf has gone. If it was the last the class is idle, but has not slept. */
an_inline void an_packets_gone(struct an_packets *q, u32 leaf, u64 now_ns)
{
	if (an_node(&q->tree, leaf)->queued)
		return;
	an_queue_gives_way(&q->tree, leaf);
	an_leaf_contract_sleep(&q->contracts, leaf, now_ns);
}

/* It has, and not in its class's turn. */
an_inline void an_packets_withdraw(struct an_packets *q, u32 leaf, u64 now_ns)
{
	an_queue_withdraw(&q->tree, leaf);
	an_packets_gone(q, leaf, now_ns);
}

/* ---- packets come ---- */

/* A packet comes. */
struct an_arrival {
	u64 now_ns;
	u32 leaf;  /* of its class */
	u32 hash;  /* of its flow */
	u32 bytes; /* on the link */
	u32 held;  /* in memory [bytes] */
};

/* The packet, which has come to this leaf, is the last of its flow. */
an_inline void an_packets_join(struct an_packets *q, u32 leaf, u32 hash, u32 index)
{
	struct an_crowd *c = an_crowd(q, leaf);
	const struct an_packet *p = an_packet(&q->flows, index);
	u32 flow =
		an_flow_find(&q->flows, leaf, an_node(&q->tree, leaf)->generation, hash, c->vtime);
	struct an_flow *f = an_flow(&q->flows, flow);

	if (!f->packets) {
		f->start = an_tag_max(f->start, c->vtime - q->largest);
		an_codel_begins(&f->codel, p->arrived_ns);
		an_flow_enter(&q->flows, c, flow);
	}
	an_packet_append(&q->flows, flow, index);
	an_crowd_holds(q, leaf, p->held);
	if (f->held > an_flow(&q->flows, an_crowd_longest(q, leaf, c))->held)
		c->longest = flow;
	an_queue_add(&q->tree, leaf);
	an_leaf_contract_wake(&q->contracts, leaf, p->arrived_ns);
}

/* The packet that was alone is so no more. */
an_inline void an_packets_join_alone(struct an_packets *q)
{
	u32 index = q->alone;

	q->alone = AN_NONE;
	q->held -= an_packet(&q->flows, index)->held; /* it counts as it joins */
	an_packets_join(q, q->alone_leaf, q->alone_hash, index);
}

/*
 * Returns its index, by which it will be named when it goes or is dropped; AN_NONE: there is no
 * room even now (an_packets_shed()), it is dropped.
 */
an_inline u32 an_packets_arrive(struct an_packets *q, const struct an_arrival *a)
{
	struct an_packet *p;
	u32 index;

	if (!an_packets_have_room(q, a->held) || !a->held) {
		an_packet_counts(q, a->leaf)->crowded++;
		return AN_NONE;
	}
	index = an_packet_alloc(&q->flows);
	p = an_packet(&q->flows, index);
	p->bytes = a->bytes;
	p->held = an_packet_takes(q, a->held);
	p->arrived_ns = a->now_ns;
	if (!q->waiting++) {
		q->alone = index;
		q->alone_leaf = a->leaf;
		q->alone_hash = a->hash;
		q->held = p->held;
		return index;
	}
	if (q->alone)
		an_packets_join_alone(q);
	an_packets_join(q, a->leaf, a->hash, index);
	return index;
}

/*
 * The packet that is to be dropped before one that will hold so much may arrive; AN_NONE: there is
 * room, or nothing to be dropped. To be asked until there is.
 */
an_inline u32 an_packets_shed(struct an_packets *q, u32 held, u64 now_ns)
{
	u32 leaf, flow, index;
	struct an_crowd *c;

	if (!q->waiting || an_packets_have_room(q, held))
		return AN_NONE;
	if (q->alone)
		an_packets_join_alone(q);
	leaf = q->bands[an_bounded(an_power_of_two(q->used_bands), AN_BANDS)];
	c = an_crowd(q, leaf);
	flow = an_crowd_longest(q, leaf, c);
	index = an_packets_take(q, leaf, flow);
	if (!an_flow(&q->flows, flow)->packets)
		an_crowd_turns(q, c, now_ns);
	an_packet_counts(q, leaf)->crowded++;
	an_packets_withdraw(q, leaf, now_ns);
	return index;
}

/* ---- the next one ---- */

/* The first packet of the top flow leaves the leaf now. What is to become of it? */
an_inline enum an_fate an_packet_fate(struct an_packets *q, struct an_flow *f,
				      const struct an_packet *p, u64 now_ns)
{
	u64 waited_ns = now_ns - p->arrived_ns;

	bool drops = an_codel_drops(&f->codel, now_ns, waited_ns, now_ns - f->left_ns,
				    f->bytes > q->largest);

	return drops ? AN_DROPPED : AN_SENT;
}

an_inline void an_packet_counted(struct an_packets *q, u32 leaf, const struct an_packet *p,
				 enum an_fate fate, u64 now_ns)
{
	struct an_packet_counts *n = an_packet_counts(q, leaf);
	u64 waited_us = (now_ns - p->arrived_ns) / 1000;
	u32 us = waited_us > 0x7fffffff ? 0x7fffffff : waited_us;

	if (fate == AN_DROPPED) {
		n->late++;
		return;
	}
	n->packets++;
	n->bytes += p->bytes;
	n->waited[us ? an_bounded(an_power_of_two(us), AN_BANDS) : 0]++;
}

/* The packet goes: by the class's contract, or in its turn. */
an_inline void an_packets_charge(struct an_packets *q, u32 leaf, bool promised, u32 bytes,
				 u64 now_ns)
{
	if (promised) {
		an_link_contracts_charge(&q->contracts, leaf, q->link.rate, bytes, now_ns);
		an_packet_counts(q, leaf)->promised += bytes;
		an_packets_withdraw(q, leaf, now_ns);
		return;
	}
	an_stop(&q->tree, leaf, bytes);
	an_packets_gone(q, leaf, now_ns);
}

/* The packet that is alone goes. */
an_inline u32 an_packets_send_alone(struct an_packets *q, u64 now_ns)
{
	u32 index = q->alone;
	const struct an_packet *p = an_packet(&q->flows, index);

	an_packet_counted(q, q->alone_leaf, p, AN_SENT, now_ns);
	an_link_send(&q->link, now_ns, p->bytes);
	an_packet_free(&q->flows, index);
	q->alone = q->waiting = q->held = 0;
	return index;
}

/*
 * What is next, now. *index is the packet, which waits no more, unless AN_WAITS. Then, if any wait,
 * link.next_ns says when to ask again; they go by themselves if the link has no rate.
 */
an_inline enum an_fate an_packets_next(struct an_packets *q, u64 now_ns, u32 *index)
{
	enum an_fate fate;
	struct an_packet *p;
	struct an_crowd *c;
	struct an_flow *f;
	bool promised;
	u32 leaf;

	*index = AN_NONE;
	if (!an_link_is_free(&q->link, now_ns))
		return AN_WAITS;
	if (q->alone) {
		*index = an_packets_send_alone(q, now_ns);
		return AN_SENT;
	}
	leaf = an_link_contracts_pick(&q->contracts, now_ns);
	promised = leaf;
	if (!promised)
		leaf = an_pick(&q->tree, 0);
	if (!leaf)
		return AN_WAITS;
	c = an_crowd(q, leaf);
	f = an_flow(&q->flows, c->top);
	c->vtime = an_tag_max(c->vtime, f->start);
	*index = an_packets_take(q, leaf, c->top);
	p = an_packet(&q->flows, *index);
	fate = an_packet_fate(q, f, p, now_ns);
	an_packet_counted(q, leaf, p, fate, now_ns);
	if (fate == AN_DROPPED) { /* more wait in the flow, which keeps its turn */
		if (!promised)
			an_unpick(&q->tree, leaf);
		an_packets_withdraw(q, leaf, now_ns);
		return fate;
	}
	f->start += p->bytes;
	f->left_ns = now_ns;
	c->max_finish = an_tag_max(c->max_finish, f->start);
	an_crowd_turns(q, c, now_ns);
	an_packets_charge(q, leaf, promised, p->bytes, now_ns);
	an_link_send(&q->link, now_ns, p->bytes);
	return fate;
}

#endif
