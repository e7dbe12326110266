/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What packets in have of the kernel, and where it keeps what. Part of receive.bpf.c.
 */
#ifndef ANDANTE_BPF_RECEIVE_H
#define ANDANTE_BPF_RECEIVE_H

#include "kfuncs.h"
#include <bpf/bpf_endian.h>

#include "../core/receive.h"

/* ---- as user space sees it: include/uapi/linux ---- */

struct xdp_md {
	u32 data;
	u32 data_end;
	u32 data_meta;
	u32 ingress_ifindex;
};

struct __sk_buff {
	u32 len;
	u32 pkt_type;
	u32 mark;
	u32 queue_mapping;
	u32 protocol;
	u32 vlan_present;
	u32 vlan_tci;
	u32 vlan_proto;
	u32 priority;
	u32 ingress_ifindex;
	u32 ifindex;
	u32 tc_index;
	u32 cb[5];
	u32 hash;
	u32 tc_classid;
	u32 data;
	u32 data_end;
	u32 of_sockets[14];
	u32 data_meta;
	u64 flow_keys;
	u64 tstamp;
	u32 wire_len;
	u32 gso_segs;
};
_Static_assert(__builtin_offsetof(struct __sk_buff, gso_segs) == 164, "as the kernel has it");

struct ethhdr {
	u8 h_dest[6];
	u8 h_source[6];
	__be16 h_proto;
};

struct ipv4_header {
	u8 version_and_length;
	u8 tos;
	__be16 length;
	__be16 id;
	__be16 fragment;
	u8 ttl;
	u8 protocol;
	u16 check;
	__be32 from;
	__be32 to;
};

struct ipv6_header {
	__be32 version_class_flow;
	__be16 length;
	u8 next;
	u8 hops;
	__be32 from[4];
	__be32 to[4];
};

struct udp_header {
	__be16 from;
	__be16 to;
	__be16 length;
	u16 check;
};

struct bpf_sock_tuple {
	union {
		struct {
			__be32 saddr;
			__be32 daddr;
			__be16 sport;
			__be16 dport;
		} ipv4;
		struct {
			__be32 saddr[4];
			__be32 daddr[4];
			__be16 sport;
			__be16 dport;
		} ipv6;
	};
};

struct bpf_fib_lookup {
	u8 family;
	u8 l4_protocol;
	__be16 sport;
	__be16 dport;
	u16 tot_len;
	u32 ifindex;
	u32 tos_or_flow;
	__be32 from[4];
	__be32 to[4];
	__be16 vlan[2];
	u8 macs[12];
};
_Static_assert(sizeof(struct bpf_fib_lookup) == 64, "as the kernel has it");

#define XDP_DROP 1
#define XDP_PASS 2
#define TC_ACT_SHOT 2
#define TCX_NEXT -1
#define PACKET_HOST 0 /* to our own address */
#define ETH_P_IP 0x0800
#define ETH_P_IPV6 0x86dd
#define IPPROTO_UDP 17
#define AF_INET 2
#define AF_INET6 10
#define IPV4_PLAIN 0x45	     /* a header without options */
#define IPV4_FRAGMENT 0x3fff /* more fragments, or not the first */
#define BPF_NOEXIST 1
#define BPF_F_CURRENT_NETNS (-1L)
#define BPF_FIB_LKUP_RET_NOT_FWDED 4
#define BPF_FIB_LKUP_RET_FWD_DISABLED 5
#define BPF_MAP_TYPE_PERCPU_ARRAY 6
#define BPF_MAP_TYPE_LRU_PERCPU_HASH 10

/* ---- the kernel's own ---- */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct receive_counter {
	int counter;
};

struct sock_reuseport {
	void *prog;
};

/* More of struct sock. */
struct sock___receive {
	struct {
		struct receive_counter rmem_alloc;
	} sk_backlog;
	int sk_rcvbuf;
	struct sock_cgroup_data sk_cgrp_data;
	struct sock_reuseport *sk_reuseport_cb;
};

struct skb_shared_info {
	u8 nr_frags;
};

#pragma clang attribute pop

void *bpf_rdonly_cast(const void *object, u32 btf_id) __ksym;
void *bpf_cast_to_kern_ctx(void *ctx) __ksym;

/* ---- what user space reads ---- */

struct an_drops {
	u64 packets;
	u64 bytes;
};

/* Dropped early, by the cgroup of the socket. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_PERCPU_HASH);
	__uint(max_entries, 8192);
	__type(key, u64);
	__type(value, struct an_drops);
} dropped SEC(".maps");

/* ---- ours ---- */

/* Lengths, by their highest bit. */
#define AN_LENGTHS 17
/* What is before a datagram's header on the wire. */
#define AN_HEADERS (sizeof(struct ethhdr) + sizeof(struct ipv4_header))

/* What packets that were refused took in memory, the last one of each length. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, AN_LENGTHS);
	__type(key, u32);
	__type(value, u32);
} sizes SEC(".maps");

/* Of each CPU. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct an_through);
} through SEC(".maps");

/* When a packet was last refused. */
u64 refused_ns = AN_NEVER;

#endif
