/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The shell of the packet scheduler in the kernel: a queueing discipline of ours.
 *
 * One instance is on one queue of a device: the root of a device with a single queue, or a child of
 * mq. Which packet goes, and which is dropped, is core/packets.h; this classifies packets
 * (qdisc_classes.h) and keeps them, by the core's index:
 *
 *      enqueue     drop what must make room, hand the packet over
 *      dequeue     the next packet, or a timer for when the link is free
 *      reset       the device goes down, or the discipline goes: nothing waits any more
 *
 * The kernel holds the queue's lock in all of them.
 */
#include "qdisc_classes.h"

char _license[] SEC("license") = "GPL";

/* ---- the core's calls, each looked at once ---- */

an_global u32 link_sheds(struct link_state *s, u32 held, u64 now_ns)
{
	return s ? an_packets_shed(&s->q, held, now_ns) : AN_NONE;
}

an_global u32 link_takes(struct link_state *s, const struct an_arrival *a)
{
	return s && a ? an_packets_arrive(&s->q, a) : AN_NONE;
}

/* The packet, and above 16 bits what becomes of it. */
an_global u32 link_next(struct link_state *s, u64 now_ns)
{
	enum an_fate fate;
	u32 packet;

	if (!s)
		return AN_WAITS << 16;
	fate = an_packets_next(&s->q, now_ns, &packet);
	return fate << 16 | packet;
}

an_global int link_begins(struct link_state *s, u64 rate, u32 largest)
{
	if (s)
		an_packets_init(&s->q, rate, largest, an_packets_held_max(largest));
	return 0;
}

/* ---- packets ---- */

/* The packet's index has no packet any more. */
static __always_inline struct sk_buff *slot_empty(struct Qdisc *sch, u32 link, u32 packet)
{
	struct slot *slot = slot_of(link, packet);
	struct sk_buff *skb = slot ? bpf_kptr_xchg(&slot->skb, NULL) : NULL;

	if (skb) {
		sch->q.qlen--;
		sch->qstats.backlog -= skb->len;
	}
	return skb;
}

/* Packets of others, or of the same flow, make room. */
static __always_inline void make_room(struct link_state *s, u32 link, struct Qdisc *sch,
				      const struct an_arrival *a, struct bpf_sk_buff_ptr *to_free)
{
	u32 packet;

	an_while((packet = link_sheds(s, a->held, a->now_ns))) {
		struct sk_buff *skb = slot_empty(sch, link, packet);

		sch->qstats.drops++;
		if (skb)
			bpf_qdisc_skb_drop(skb, to_free);
	}
}

SEC("struct_ops/andante_enqueue")
int BPF_PROG(andante_enqueue, struct sk_buff *skb, struct Qdisc *sch,
	     struct bpf_sk_buff_ptr *to_free)
{
	struct an_arrival a = {
		.now_ns = bpf_ktime_get_ns(),
		.bytes = skb->len,
		.held = skb->truesize,
		.hash = bpf_skb_get_hash(skb),
	};
	u32 link, packet;
	struct link_state *s = link_of(sch, &link);
	struct sk_buff *old;
	struct slot *slot;

	if (!s)
		goto drop;
	a.leaf = packet_leaf(s, link, skb->sk, a.now_ns);
	make_room(s, link, sch, &a, to_free);
	packet = link_takes(s, &a);
	slot = slot_of(link, packet);
	if (!packet || !slot)
		goto drop;
	old = bpf_kptr_xchg(&slot->skb, skb);
	if (old)
		bpf_qdisc_skb_drop(old, to_free);
	sch->q.qlen++;
	sch->qstats.backlog += a.bytes;
	return NET_XMIT_SUCCESS;
drop:
	sch->qstats.drops++;
	bpf_qdisc_skb_drop(skb, to_free);
	return NET_XMIT_DROP;
}

SEC("struct_ops/andante_dequeue")
struct sk_buff *BPF_PROG(andante_dequeue, struct Qdisc *sch)
{
	u64 now_ns = bpf_ktime_get_ns();
	u32 link, next;
	struct link_state *s = link_of(sch, &link);
	struct sk_buff *skb;

	if (!s || !s->q.waiting)
		return NULL;
	an_while((next = link_next(s, now_ns))) {
		skb = slot_empty(sch, link, next & 0xffff);
		if (!skb)
			continue;
		if (next >> 16 != AN_DROPPED) {
			bpf_qdisc_bstats_update(sch, skb);
			return skb;
		}
		sch->qstats.drops++;
		bpf_kfree_skb(skb);
	}
	if (s->q.waiting)
		bpf_qdisc_watchdog_schedule(sch, s->q.link.next_ns, 0);
	return NULL;
}

SEC("struct_ops/andante_reset")
void BPF_PROG(andante_reset, struct Qdisc *sch)
{
	u64 now_ns = bpf_ktime_get_ns();
	u32 link, packet;
	struct link_state *s = link_of(sch, &link);

	if (!s)
		return;
	an_while((packet = link_sheds(s, AN_ALL_HELD, now_ns))) {
		struct sk_buff *skb = slot_empty(sch, link, packet);

		if (skb)
			bpf_kfree_skb(skb);
	}
}

/* A link that is free, or -1. */
static __always_inline s32 take_link(void)
{
	u32 number = 0;

	an_while(number < AN_MAX_LINKS) {
		struct link_state *s = bpf_map_lookup_elem(&links, &number);

		if (!s)
			return -1;
		if (!__sync_val_compare_and_swap(&s->used, 0, 1))
			return number;
		number = an_opaque(number + 1);
	}
	return -1;
}

SEC("struct_ops/andante_init")
int BPF_PROG(andante_init, struct Qdisc *sch, struct nlattr *options,
	     struct netlink_ext_ack *extack)
{
	struct net_device *dev = sch->dev_queue->dev;
	u32 ifindex = dev->ifindex, largest = dev->mtu + dev->hard_header_len;
	u64 *given = bpf_map_lookup_elem(&rates, &ifindex);
	u64 rate = given ? *given : 0;
	u32 number = take_link();
	struct link_state *s = bpf_map_lookup_elem(&links, &number);

	sch->limit = 0;
	if (!s)
		return -ENOSPC;
	link_begins(s, rate, largest);
	s->ifindex = ifindex;
	s->parent = sch->parent;
	s->at = AN_ROOT_LEAF + 1;
	s->looked_ns[AN_ROOT_LEAF] = 0;
	sch->limit = number + 1;
	return 0;
}

/* After reset. Also of one whose beginning failed. */
SEC("struct_ops/andante_destroy")
void BPF_PROG(andante_destroy, struct Qdisc *sch)
{
	u32 link, index = AN_ROOT_LEAF + 1;
	struct link_state *s = link_of(sch, &link);

	if (!s)
		return;
	an_while(index < AN_MAX_NODES) {
		struct class_key key = {.cgroup_id = *an_cgroup_id(&s->q.tree, index),
					.link = link};

		if (key.cgroup_id)
			bpf_map_delete_elem(&leaves, &key);
		*an_cgroup_id(&s->q.tree, index) = 0;
		index = an_opaque(index + 1);
	}
	__sync_lock_test_and_set(&s->used, 0);
}

SEC(".struct_ops.link")
struct Qdisc_ops andante_qdisc = {
	.enqueue = (void *)andante_enqueue,
	.dequeue = (void *)andante_dequeue,
	.init = (void *)andante_init,
	.reset = (void *)andante_reset,
	.destroy = (void *)andante_destroy,
	.id = "andante",
};
