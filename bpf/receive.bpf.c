/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The shell of packets in: drops what a full socket would refuse, before any protocol has seen it.
 *
 * Which that is says core/receive.h. Two hooks, of which a device has one: in its driver, before
 * there is a packet of the kernel's (early_xdp), or at its ingress (early_tc). Datagrams by IPv4
 * and IPv6 alone; what is in a VLAN or a tunnel, has options, or is a fragment, to more than one,
 * or to another host goes on untouched, and so do connections. The kernel's own refusals (late) say
 * when it is worth looking.
 */
#include "receive.h"

char _license[] SEC("license") = "GPL";

/* ---- what a socket has, and when that is too much ---- */

/* To be counted for the class of the socket. */
static __always_inline void count(u64 cgroup_id, u32 datagrams, u32 bytes)
{
	struct an_drops *drops = bpf_map_lookup_elem(&dropped, &cgroup_id);
	const struct an_drops none = {};

	if (!drops) {
		bpf_map_update_elem(&dropped, &cgroup_id, &none, BPF_NOEXIST);
		drops = bpf_map_lookup_elem(&dropped, &cgroup_id);
	}
	if (drops) {
		drops->packets += datagrams;
		drops->bytes += bytes;
	}
}

/* A program of the user's chooses among sockets that share a port, by the packet that we have not
 * got. */
static __always_inline bool chosen_by_program(const struct sock___receive *sk)
{
	return sk->sk_reuseport_cb && sk->sk_reuseport_cb->prog;
}

static __always_inline bool has_no_room(const struct sock___receive *sk, u32 size, u32 datagrams)
{
	u32 at = 0;
	struct an_through *t = bpf_map_lookup_elem(&through, &at);

	return t && !chosen_by_program(sk) &&
	       an_receive_refuses(t, (u64)sk, sk->sk_backlog.rmem_alloc.counter, (u32)sk->sk_rcvbuf,
				  size, datagrams);
}

/* The place of packets of so many bytes among the sizes. */
static __always_inline u32 of_length(u32 bytes)
{
	u32 at = 0;

	for (u32 rest = bytes; rest && at < AN_LENGTHS - 1; rest >>= 1)
		at++;
	return at;
}

/* What a packet of so many bytes took in memory when one was last refused; what it takes at least.
 */
static __always_inline u32 size_of(u32 bytes)
{
	u32 least = bytes + bpf_core_type_size(struct sk_buff) +
		    bpf_core_type_size(struct skb_shared_info);
	u32 at = of_length(bytes), *seen = bpf_map_lookup_elem(&sizes, &at);

	return seen && *seen > least ? *seen : least;
}

/* Sockets refuse packets by themselves: it is worth looking. */
SEC("tp_btf/udp_fail_queue_rcv_skb")
int late(u64 *ctx)
{
	struct sk_buff *skb = (struct sk_buff *)ctx[2];
	u32 at = of_length(skb->len + AN_HEADERS), size = skb->truesize;

	refused_ns = bpf_ktime_get_ns();
	bpf_map_update_elem(&sizes, &at, &size, 0);
	return 0;
}

/* ---- what a packet is ---- */

/* A datagram, and whom it is for. */
struct datagram {
	struct bpf_sock_tuple ends;
	u32 ends_size;
	u8 family;
};

static __always_inline bool is_ipv4(const void *at, const void *end, struct datagram *d)
{
	const struct ipv4_header *ip = at;
	const struct udp_header *udp = (const void *)(ip + 1);

	if ((const void *)(udp + 1) > end || ip->version_and_length != IPV4_PLAIN ||
	    ip->protocol != IPPROTO_UDP || ip->fragment & bpf_htons(IPV4_FRAGMENT))
		return false;
	d->ends.ipv4.saddr = ip->from;
	d->ends.ipv4.daddr = ip->to;
	d->ends.ipv4.sport = udp->from;
	d->ends.ipv4.dport = udp->to;
	d->ends_size = sizeof(d->ends.ipv4);
	d->family = AF_INET;
	return true;
}

static __always_inline bool is_ipv6(const void *at, const void *end, struct datagram *d)
{
	const struct ipv6_header *ip = at;
	const struct udp_header *udp = (const void *)(ip + 1);

	if ((const void *)(udp + 1) > end || ip->next != IPPROTO_UDP)
		return false;
	__builtin_memcpy(d->ends.ipv6.saddr, ip->from, sizeof(ip->from));
	__builtin_memcpy(d->ends.ipv6.daddr, ip->to, sizeof(ip->to));
	d->ends.ipv6.sport = udp->from;
	d->ends.ipv6.dport = udp->to;
	d->ends_size = sizeof(d->ends.ipv6);
	d->family = AF_INET6;
	return true;
}

static __always_inline bool is_datagram(const void *at, const void *end, struct datagram *d)
{
	const struct ethhdr *frame = at;
	const void *rest = frame + 1;

	if (rest > end)
		return false;
	if (frame->h_proto == bpf_htons(ETH_P_IP))
		return is_ipv4(rest, end, d);
	return frame->h_proto == bpf_htons(ETH_P_IPV6) && is_ipv6(rest, end, d);
}

/* Is it for this host? A socket that is bound to a port alone is found for any address. What would
 * be forwarded has a route that is not ours. */
static __always_inline bool is_ours(void *ctx, const struct datagram *d, u32 ifindex)
{
	struct bpf_fib_lookup route = {
		.family = d->family, .l4_protocol = IPPROTO_UDP, .ifindex = ifindex};
	long found;

	if (d->family == AF_INET) {
		route.from[0] = d->ends.ipv4.saddr;
		route.to[0] = d->ends.ipv4.daddr;
	} else {
		__builtin_memcpy(route.from, d->ends.ipv6.saddr, sizeof(route.from));
		__builtin_memcpy(route.to, d->ends.ipv6.daddr, sizeof(route.to));
	}
	found = bpf_fib_lookup(ctx, &route, sizeof(route), 0);
	return found == BPF_FIB_LKUP_RET_NOT_FWDED || found == BPF_FIB_LKUP_RET_FWD_DISABLED;
}

/* ---- the hooks ---- */

/* What the device has, in the kernel's memory and on the wire. */
struct arrival {
	u64 now_ns;
	u32 ifindex;
	u32 bytes;
	u32 datagrams; /* more than one: they are put together */
	u32 size;      /* of one [bytes of memory] */
};

/* Has the datagram's socket no room for it? Then it is counted. */
static __always_inline bool is_refused(void *ctx, const struct datagram *d, const struct arrival *a)
{
	struct bpf_sock *found = bpf_sk_lookup_udp(ctx, (struct bpf_sock_tuple *)&d->ends,
						   d->ends_size, BPF_F_CURRENT_NETNS, 0);
	const struct sock___receive *sk;
	u64 cgroup_id;
	bool full;

	if (!found)
		return false;
	sk = bpf_rdonly_cast(found, bpf_core_type_id_kernel(struct sock));
	full = has_no_room(sk, a->size, a->datagrams);
	cgroup_id = sk->sk_cgrp_data.cgroup->kn->id;
	bpf_sk_release(found);
	if (!full || !is_ours(ctx, d, a->ifindex))
		return false;
	refused_ns = a->now_ns;
	count(cgroup_id, a->datagrams, a->bytes);
	return true;
}

/* Of the device itself, as nothing else is on it (crates/net/src/receive.rs sees to that). */
const volatile u8 own_address[6] = {};

SEC("xdp")
int early_xdp(struct xdp_md *ctx)
{
	const void *at = (void *)(u64)ctx->data, *end = (void *)(u64)ctx->data_end;
	const struct ethhdr *frame = at;
	struct datagram d = {};
	struct arrival a = {.now_ns = bpf_ktime_get_ns(),
			    .ifindex = ctx->ingress_ifindex,
			    .bytes = end - at,
			    .datagrams = 1};

	if (!an_receive_looks(refused_ns, a.now_ns) || !is_datagram(at, end, &d))
		return XDP_PASS;
	for (u32 i = 0; i < sizeof(own_address); i++)
		if (frame->h_dest[i] != own_address[i])
			return XDP_PASS;
	a.size = size_of(a.bytes);
	return is_refused(ctx, &d, &a) ? XDP_DROP : XDP_PASS;
}

SEC("tcx/ingress")
int early_tc(struct __sk_buff *ctx)
{
	const void *at = (void *)(u64)ctx->data, *end = (void *)(u64)ctx->data_end;
	const struct sk_buff *skb = bpf_cast_to_kern_ctx(ctx);
	struct datagram d = {};
	struct arrival a = {.now_ns = bpf_ktime_get_ns(),
			    .ifindex = ctx->ifindex,
			    .bytes = ctx->len,
			    .datagrams = 1};

	if (!an_receive_looks(refused_ns, a.now_ns) || ctx->pkt_type != PACKET_HOST ||
	    ctx->vlan_present || !is_datagram(at, end, &d))
		return TCX_NEXT;
	a.size = skb->truesize;
	if (ctx->gso_segs > 1) {
		a.datagrams = ctx->gso_segs;
		a.size = size_of(a.bytes / a.datagrams);
	}
	return is_refused(ctx, &d, &a) ? TC_ACT_SHOT : TCX_NEXT;
}
