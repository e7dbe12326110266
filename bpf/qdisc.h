/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the queueing discipline has of the kernel, and where it keeps what. Part of qdisc.bpf.c.
 */
#ifndef ANDANTE_BPF_QDISC_H
#define ANDANTE_BPF_QDISC_H

#include "kfuncs.h"

/* Of one link: a tree of a few hundred classes, not of all that a machine may have; contracts of
 * 127, on what is its one CPU. */
#define AN_MAX_NODES 1024
#define AN_MAX_CONTRACTS 128
#define AN_MAX_CONTRACT_CPUS 4 /* as many as the core wants for so many contracts */
#define AN_MAX_SPLITS 2
#define an_events_on false
#include "../core/packets.h"

/* Links that there is room for, unless user space says so before loading; at most. */
#define AN_LINKS 4
#define AN_MAX_LINKS 1024

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct net_device {
	int ifindex;
	unsigned int mtu;
	unsigned short hard_header_len;
};

struct netdev_queue {
	struct net_device *dev;
};

struct qdisc_skb_head {
	u32 qlen;
};

struct gnet_stats_queue {
	u32 backlog;
	u32 drops;
};

struct Qdisc {
	u32 limit; /* nobody's but ours: the number of its link, from 1; 0: it has none */
	u32 parent;
	struct netdev_queue *dev_queue;
	struct qdisc_skb_head q;
	struct gnet_stats_queue qstats;
};

struct bpf_sk_buff_ptr {
	struct sk_buff *skb;
};

#pragma clang attribute pop

struct nlattr;
struct netlink_ext_ack;

/* Matched to the kernel's by member name. */
struct Qdisc_ops {
	char id[16];
	int (*enqueue)(struct sk_buff *skb, struct Qdisc *sch, struct bpf_sk_buff_ptr *to_free);
	struct sk_buff *(*dequeue)(struct Qdisc *sch);
	int (*init)(struct Qdisc *sch, struct nlattr *options, struct netlink_ext_ack *extack);
	void (*reset)(struct Qdisc *sch);
	void (*destroy)(struct Qdisc *sch);
};

void *bpf_rdonly_cast(const void *object, u32 type) __ksym;
u32 bpf_skb_get_hash(struct sk_buff *skb) __ksym;
void bpf_kfree_skb(struct sk_buff *skb) __ksym;
void bpf_qdisc_skb_drop(struct sk_buff *skb, struct bpf_sk_buff_ptr *to_free) __ksym;
void bpf_qdisc_watchdog_schedule(struct Qdisc *sch, u64 expire_ns, u64 slack_ns) __ksym;
void bpf_qdisc_bstats_update(struct Qdisc *sch, const struct sk_buff *skb) __ksym;

/* include/net/tcp_states.h; not in BTF */
#define TCP_TIME_WAIT 6
#define TCP_NEW_SYN_RECV 12

#define NET_XMIT_SUCCESS 0
#define NET_XMIT_DROP 1
#define ENOSPC 28

/* ---- what user space says ---- */

/* The rate of a device [bytes/s], by ifindex, before the discipline is put on it. Of one that is
 * not here the driver holds packets back (BQL). */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, AN_MAX_LINKS);
	__type(key, u32);
	__type(value, u64);
} rates SEC(".maps");

/* Weights that classes have here other than cpu.weight, by cgroup id. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, u64);
	__type(value, u32);
} own_weights SEC(".maps");

struct promise_key {
	u64 cgroup_id;
	u64 ifindex;
};

/* So many bytes leave before others' in every period. crates/net/src/contract.rs writes them. */
struct net_promise {
	u64 period_ns;
	u64 bytes;
	u64 pid;     /* of the process that it ends with; 0: it ends when it is released */
	u64 started; /* when that began, for numbers come again [1/100 s since boot] */
};

/* What classes are promised on a device. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, struct promise_key);
	__type(value, struct net_promise);
} promises SEC(".maps");

/* ---- links ---- */

/* One queue of a device, which has its own lock: the kernel holds it whenever we are called. */
struct link_state {
	struct an_packets q;
	u64 looked_ns[AN_MAX_NODES]; /* when the weights of the leaf's path were read, by leaf */
	u32 used;
	u32 ifindex;
	u32 parent; /* the discipline that it is a child of, as tc writes it */
	u32 at;	    /* the leaf that is looked at next for a class that is gone */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, AN_LINKS);
	__type(key, u32);
	__type(value, struct link_state);
} links SEC(".maps");

/* The packet of each index of each link. Whatever is in here is freed with the map. */
struct slot {
	struct sk_buff __kptr *skb;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, AN_LINKS *AN_MAX_PACKETS);
	__type(key, u32);
	__type(value, struct slot);
} slots SEC(".maps");

struct class_key {
	u64 cgroup_id;
	u64 link;
};

/* The leaf of a class in a link. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, AN_LINKS *AN_MAX_NODES);
	__type(key, struct class_key);
	__type(value, u32);
} leaves SEC(".maps");

/* The link of the discipline, which is numbered *number; NULL: it has none. */
static __always_inline struct link_state *link_of(const struct Qdisc *sch, u32 *number)
{
	*number = sch->limit - 1;
	return bpf_map_lookup_elem(&links, number);
}

static __always_inline struct slot *slot_of(u32 link, u32 packet)
{
	u32 at = link * AN_MAX_PACKETS + packet;

	return bpf_map_lookup_elem(&slots, &at);
}

#endif
