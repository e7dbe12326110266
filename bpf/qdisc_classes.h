/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The class of a packet, and its weight. Part of qdisc.bpf.c.
 *
 * A packet is of the class of the cgroup that its socket is in: the nearest one, upwards, that has
 * the cpu controller, as for the CPU. A link knows the classes that have sent something by it, and
 * what is above them. Forwarded packets and the kernel's own are of the root's class.
 *
 * Weights are the kernel's own (cpu.weight, cpu.idle), or those that user space gave. The kernel
 * tells nobody when one changes while no sched_ext scheduler is in charge; so they are read, where
 * it keeps them for one, as packets come: of a class and of all above it, at most once in a tick.
 * What the class is promised is looked at with them.
 */
#ifndef ANDANTE_BPF_QDISC_CLASSES_H
#define ANDANTE_BPF_QDISC_CLASSES_H

#include "qdisc.h"

#include "cgroups.h"

/* The kernel's own schedulers take a weight within a tick; of the slowest usual clock (250 Hz). */
#define AN_LOOK_NS 4000000ULL

/* Of an idle class, and of one whose weight cannot be read, see core/tag.h. */
static __always_inline u32 cgroup_weight(const struct cgroup *cgrp)
{
	u64 id = cgroup_id(cgrp);
	u32 *own = bpf_map_lookup_elem(&own_weights, &id);

	return own ? *own : cgroup_cpu_weight(cgrp);
}

/* ---- classes ---- */

/* The leaf of the cgroup's class; AN_NONE: the link does not know it. */
static __always_inline u32 known_leaf(u32 link, const struct cgroup *cgrp)
{
	struct class_key key = {.cgroup_id = cgroup_id(cgrp), .link = link};
	u32 *leaf = bpf_map_lookup_elem(&leaves, &key);

	if (!cgroup_above(cgrp))
		return AN_ROOT_LEAF;
	return leaf ? *leaf : AN_NONE;
}

static __always_inline void class_weigh(struct an_tree *t, u32 leaf, u32 weight)
{
	if (leaf == AN_ROOT_LEAF || an_node(t, an_class_node(t, leaf))->weight == weight)
		return;
	if (weight == AN_WEIGHT_IDLE)
		an_class_set_idle(t, leaf);
	else
		an_class_set_weight(t, leaf, weight);
}

/* A class below the other, which the link knows. AN_NONE: there is no room for it. */
an_global u32 class_begins(struct link_state *s, u32 link, u32 above, u64 address)
{
	const struct cgroup *cgrp = cgroup_at(address);
	struct class_key key = {.cgroup_id = cgroup_id(cgrp), .link = link};
	u32 leaf;

	if (!s)
		return AN_NONE;
	leaf = an_packets_class(&s->q, above, key.cgroup_id, AN_WEIGHT_DEFAULT);
	if (!leaf)
		return AN_NONE;
	if (bpf_map_update_elem(&leaves, &key, &leaf, 0)) {
		an_packets_class_remove(&s->q, leaf);
		return AN_NONE;
	}
	class_weigh(&s->q.tree, leaf, cgroup_weight(cgrp));
	s->looked_ns[an_bounded(leaf, AN_MAX_NODES)] = 0;
	return leaf;
}

/* The leaf of the cgroup's class, which the link comes to know, from the top down; or of the
 * nearest above it that there is room for. */
an_global u32 class_leaf(struct link_state *s, u32 link, u64 address)
{
	u32 turns = AN_MAX_DEPTH, leaf = AN_ROOT_LEAF;

	if (!s)
		return leaf;
	an_while(turns) {
		const struct cgroup *cgrp = cgroup_at(address), *missing = NULL;

		turns = an_opaque(turns - 1);
		an_while(cgrp && !(leaf = known_leaf(link, cgrp))) {
			missing = cgrp;
			cgrp = cgroup_above(cgrp);
		}
		if (!missing || !leaf || !class_begins(s, link, leaf, cgroup_address(missing)))
			break;
	}
	return leaf ? leaf : AN_ROOT_LEAF;
}

/* A class whose cgroup is gone leaves, if no packet of it waits and nothing is below it. One leaf
 * is looked at. */
an_global int class_ends(struct link_state *s, u32 link)
{
	struct class_key key = {.link = link};
	struct cgroup *cgrp;
	struct an_node *n;
	u32 leaf;

	if (!s)
		return 0;
	leaf = s->at;
	n = an_node(&s->q.tree, leaf);
	s->at = leaf + 1 < s->q.tree.unused ? leaf + 1 : AN_ROOT_LEAF + 1;
	if (leaf <= AN_ROOT_LEAF || n->kind != AN_LEAF || n->queued)
		return 0;
	key.cgroup_id = *an_cgroup_id(&s->q.tree, an_class_node(&s->q.tree, leaf));
	cgrp = bpf_cgroup_from_id(key.cgroup_id);
	if (cgrp) {
		bpf_cgroup_release(cgrp);
		return 0;
	}
	if (!an_packets_class_remove(&s->q, leaf))
		bpf_map_delete_elem(&leaves, &key);
	return 0;
}

/* /proc has times in hundredths of a second (USER_HZ). */
#define AN_PROC_TICK_NS 10000000ULL

/* The process that the promise ends with has ended. Nobody need be there to take it back. */
static __always_inline bool promise_ended(const struct net_promise *promise)
{
	struct task_struct *holder;
	bool ended;

	if (!promise->pid)
		return false;
	holder = bpf_task_from_pid(promise->pid);
	if (!holder)
		return true;
	ended = holder->start_boottime / AN_PROC_TICK_NS != promise->started ||
		!holder->signal->live.counter;
	bpf_task_release(holder);
	return ended;
}

/* The class is promised what it is now. A promise that this link cannot give is none. */
an_global int class_promises(struct link_state *s, u32 leaf, u64 cgroup, u64 now_ns)
{
	struct promise_key key = {.cgroup_id = cgroup};
	struct net_promise *promise;

	if (!s)
		return 0;
	key.ifindex = s->ifindex;
	promise = bpf_map_lookup_elem(&promises, &key);
	if (!promise || promise_ended(promise) ||
	    an_packets_promise(&s->q, leaf, promise->bytes, promise->period_ns, now_ns))
		an_packets_promise(&s->q, leaf, 0, 0, now_ns);
	return 0;
}

/* The weights of the class and of those above it, and what it is promised, are what they are now.
 */
an_global int class_looks(struct link_state *s, u32 link, u64 address)
{
	const struct cgroup *cgrp = cgroup_at(address);

	if (!s)
		return 0;
	an_while(cgrp) {
		u32 leaf = known_leaf(link, cgrp);

		if (leaf)
			class_weigh(&s->q.tree, leaf, cgroup_weight(cgrp));
		cgrp = cgroup_above(cgrp);
	}
	return 0;
}

/* The cgroup of the socket; NULL: it has none. Not every socket that a packet has is a whole one:
 * a connection that is asked for is its listener's, and one that is over is nobody's. */
static __always_inline const struct cgroup *socket_cgroup(const struct sock *sk)
{
	u8 state = sk->__sk_common.skc_state;

	if (state == TCP_TIME_WAIT)
		return NULL;
	if (state == TCP_NEW_SYN_RECV) {
		const struct sock *listener = BPF_CORE_READ(sk, __sk_common.skc_listener);

		return cgroup_at((u64)BPF_CORE_READ(listener, sk_cgrp_data.cgroup));
	}
	return sk->sk_cgrp_data.cgroup;
}

/* What is not known of the class, or may have changed since it was looked at; its leaf. */
static __always_inline u32 class_updates(struct link_state *s, u32 link, u32 leaf,
					 const struct cgroup *cgrp, u64 now_ns)
{
	u64 address = cgroup_address(cgrp);
	bool own = true;

	if (!leaf) {
		leaf = class_leaf(s, link, address);
		own = known_leaf(link, cgrp) == leaf; /* or that of a class above it */
	}
	s->looked_ns[an_bounded(leaf, AN_MAX_NODES)] = now_ns;
	class_looks(s, link, address);
	if (own)
		class_promises(s, leaf, cgroup_id(cgrp), now_ns);
	class_ends(s, link);
	return leaf;
}

/* The leaf that the socket's packets wait in. */
static __always_inline u32 packet_leaf(struct link_state *s, u32 link, const struct sock *sk,
				       u64 now_ns)
{
	const struct cgroup *cgrp = sk ? socket_cgroup(sk) : NULL;
	u32 leaf;

	if (!cgrp)
		return AN_ROOT_LEAF;
	cgrp = class_cgroup(cgrp);
	leaf = known_leaf(link, cgrp);
	if (leaf && now_ns - s->looked_ns[an_bounded(leaf, AN_MAX_NODES)] < AN_LOOK_NS)
		return leaf;
	return class_updates(s, link, leaf, cgrp, now_ns);
}

#endif
