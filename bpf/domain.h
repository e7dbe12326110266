/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The class trees and their locks. Part of sched.bpf.c.
 *
 * On a machine with a few CPUs there is one of each, and what follows is that tree's calls, to the
 * instruction. For more CPUs the scheduler is compiled a second time, with AN_DOMAINS: the CPUs are
 * divided into domains by their numbers, each with a tree and a lock of its own (core/domains.h).
 *
 * The first domain's lock guards the contracts too; so only CPUs of the first domain serve
 * contracts, and tasks that hold any are queued there. Which classes there are, all trees say
 * alike.
 */
#ifndef ANDANTE_BPF_DOMAIN_H
#define ANDANTE_BPF_DOMAIN_H

#include "base.h"

/* User space makes the section as long as it must be. */
struct an_tree trees[AN_TREES] SEC(".bss.trees");

/* No more than that. */
#define AN_MAX_DOMAINS 64

#ifdef AN_DOMAINS

struct an_everywhere everywhere SEC(".bss.everywhere");

const volatile u32 nr_domains SEC(".rodata.domains") = 2;
const volatile u32 domain_mask SEC(".rodata.domains") = 0;  /* their number, a power of two, - 1 */
const volatile u32 domain_shift SEC(".rodata.domains") = 0; /* CPUs of a domain, power of two */

struct domain_lock {
	struct bpf_spin_lock lock;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, AN_MAX_DOMAINS);
	__type(key, u32);
	__type(value, struct domain_lock);
} domain_locks SEC(".maps");

static __always_inline u32 cpu_domain(u32 cpu)
{
	return cpu >> domain_shift;
}

/* The one after it. Opaque, or the verifier goes through a loop over domains once for each. */
static __always_inline u32 domain_after(u32 domain)
{
	return an_opaque(domain + 1);
}

/* The CPUs of a domain are 64 at most, and a word of a mask of CPUs has them (loader). */
static __always_inline u32 domain_word(u32 domain)
{
	return (domain << domain_shift) / 64;
}

/* The bit of a CPU in the masks of its domain's tree [core/hsfq.h]. */
static __always_inline u64 cpu_bit(u32 cpu)
{
	return 1ULL << (cpu & 63);
}

/* Of each domain; of the only one it does not matter. */
static __always_inline u32 domain_cpus(void)
{
	return 1u << domain_shift;
}

static __always_inline struct an_tree *tree_of(u32 domain)
{
	return &trees[domain & domain_mask];
}

/* NULL for a domain that there is not. */
static __always_inline struct bpf_spin_lock *lock_of(u32 domain)
{
	struct domain_lock *lock = bpf_map_lookup_elem(&domain_locks, &domain);

	return lock ? &lock->lock : NULL;
}

/* The verifier knows that it is there. */
static __always_inline struct bpf_spin_lock *contracts_lock(void)
{
	u32 first = 0;

	return bpf_map_lookup_elem(&domain_locks, &first);
}

static __always_inline u32 queue_of(u32 domain, u32 leaf)
{
	return domain << 16 | leaf;
}

static __always_inline u32 queue_domain(u32 queue)
{
	return queue >> 16;
}

static __always_inline u32 queue_leaf(u32 queue)
{
	return queue & 0xffff;
}

static __always_inline void domain_queue_add(struct an_tree *t, u32 leaf, u64 by)
{
	an_domain_wakes(t, &everywhere, leaf);
	an_queue_add_by(t, leaf, by);
}

static __always_inline u32 domain_serve_unpicked(struct an_tree *t, u32 leaf)
{
	an_domain_wakes(t, &everywhere, leaf);
	return an_serve_unpicked(t, leaf);
}

static __always_inline u32 domain_serve_pulled(struct an_tree *t, u32 leaf)
{
	return an_serve_pulled(t, &everywhere, leaf);
}

static __always_inline u32 domain_pick(struct an_tree *t, u64 by)
{
	return an_domain_pick(t, &everywhere, by);
}

static __always_inline u64 domain_preempt_after_ns(struct an_tree *t, u32 woken, u32 serving)
{
	return an_domain_preempt_after_ns(t, &everywhere, woken, serving);
}

static __always_inline void domain_stop(struct an_tree *t, u32 leaf, u64 service_ns)
{
	an_everywhere_add(&everywhere, t, leaf, service_ns);
	an_stop(t, leaf, service_ns);
}

#else

static struct bpf_spin_lock tree_lock SEC(".bss.lock");

#define nr_domains 1u

static __always_inline u32 cpu_domain(u32 cpu)
{
	return 0;
}

static __always_inline u32 domain_after(u32 domain)
{
	return domain + 1;
}

static __always_inline u32 domain_word(u32 domain)
{
	return 0;
}

/* There may be room for more CPUs than 64, though there are no more in one domain; one that is
 * there all the same tries whatever is ready. The verifier does not see which it is, or it would go
 * through all that follows for each. */
static __always_inline u64 cpu_bit(u32 cpu)
{
	volatile u64 bit = cpu < 64 ? 1ULL << cpu : 0;

	return bit;
}

static __always_inline u32 domain_cpus(void)
{
	return 1;
}

static __always_inline struct an_tree *tree_of(u32 domain)
{
	return &trees[0];
}

static __always_inline struct bpf_spin_lock *lock_of(u32 domain)
{
	return &tree_lock;
}

static __always_inline struct bpf_spin_lock *contracts_lock(void)
{
	return &tree_lock;
}

static __always_inline u32 queue_of(u32 domain, u32 leaf)
{
	return leaf;
}

static __always_inline u32 queue_domain(u32 queue)
{
	return 0;
}

static __always_inline u32 queue_leaf(u32 queue)
{
	return queue;
}

static __always_inline void domain_queue_add(struct an_tree *t, u32 leaf, u64 by)
{
	an_queue_add_by(t, leaf, by);
}

static __always_inline u32 domain_serve_unpicked(struct an_tree *t, u32 leaf)
{
	return an_serve_unpicked(t, leaf);
}

/* There is nowhere to pull from. */
static __always_inline u32 domain_serve_pulled(struct an_tree *t, u32 leaf)
{
	return an_serve_unpicked(t, leaf);
}

static __always_inline u32 domain_pick(struct an_tree *t, u64 by)
{
	return an_pick(t, by);
}

static __always_inline u64 domain_preempt_after_ns(struct an_tree *t, u32 woken, u32 serving)
{
	return an_preempt_after_ns(t, woken, serving);
}

static __always_inline void domain_stop(struct an_tree *t, u32 leaf, u64 service_ns)
{
	an_stop(t, leaf, service_ns);
}

#endif

/* A domain: its tree, and the lock that guards it. */
struct place {
	u32 domain;
	struct an_tree *tree;
	struct bpf_spin_lock *lock;
};

/* False: there is no such domain. */
static __always_inline bool place_in(struct place *at, u32 domain)
{
	at->domain = domain;
	at->tree = tree_of(domain);
	at->lock = lock_of(domain);
	return at->lock != NULL;
}

/* That of this CPU; false: there is none, which cannot be. To be asked once in a program. */
static __always_inline bool place_of(struct place *at, u32 cpu)
{
	return place_in(at, cpu_domain(cpu));
}

#endif
