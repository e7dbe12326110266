/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A CPU takes a task over from another domain, whose class is owed service here, or for want of
 * work. Part of sched.bpf.c; when that is due is core/domains.h.
 */
#ifndef ANDANTE_BPF_PULL_H
#define ANDANTE_BPF_PULL_H

#include "queue.h"

#ifdef AN_DOMAINS

/* Takes a task of this leaf, queued in another domain, that may run here, for this reason (enum
 * apart); false: there is none. */
an_global bool pull(u32 cpu, u32 from, u32 leaf, u32 apart)
{
	struct bpf_spin_lock *lock = lock_of(from);
	struct an_tree *there = tree_of(from);
	bool queued;

	if (!lock)
		return false;
	bpf_spin_lock(lock);
	queued = an_continue(there, leaf);
	bpf_spin_unlock(lock);
	if (!queued)
		return false;
	if (an_kmove_to_local(queue_of(from, leaf))) {
		cpu_state(cpu)->apart = apart;
		stats.pulled++;
		return true;
	}
	bpf_spin_lock(lock);
	an_queue_add(there, leaf);
	bpf_spin_unlock(lock);
	queue_check(queue_of(from, leaf));
	kick_for_queue(queue_of(from, leaf));
	return false;
}

/*
 * The leaf that comes next in this domain below that node, or AN_NONE; if a task of the leaf
 * wanting (AN_NONE: none) wants to go on there.
 */
an_global u32 next_below(u32 domain, u32 node, u32 wanting)
{
	struct bpf_spin_lock *lock = lock_of(domain);
	struct an_tree *t = tree_of(domain);
	u32 leaf = AN_NONE;

	if (!lock || (!wanting && !an_node(t, node)->ready))
		return AN_NONE;
	bpf_spin_lock(lock);
	if (wanting)
		domain_queue_add(t, wanting, 0);
	if (an_node(t, node)->ready)
		leaf = an_domain_next(t, &everywhere, node);
	if (wanting)
		an_queue_withdraw(t, wanting);
	bpf_spin_unlock(lock);
	return leaf;
}

/* Is a task of `leaf` to be pulled from the other domain, before one of `own` here? */
an_global bool pull_is_due(u32 domain, u32 own, u32 from, u32 leaf)
{
	bool mates = leaf == own;
	struct bpf_spin_lock *lock = lock_of(mates ? from : domain);
	bool due;

	if (!lock)
		return false;
	bpf_spin_lock(lock);
	due = mates ? an_mates_due(tree_of(from), leaf, tree_of(domain))
		    : an_pull_due(tree_of(domain), &everywhere, own, leaf);
	bpf_spin_unlock(lock);
	return due;
}

/*
 * None of the tasks of `leaf` in the other domain may run here, where one of the class wanting (if
 * not AN_NONE) wants to go on. So its class is to be served more there, and less here. False: that
 * cannot be, for this domain has nobody else to serve.
 */
an_global bool pull_failed(u32 domain, u32 own, u32 from, u32 leaf, u32 wanting)
{
	struct bpf_spin_lock *here = lock_of(domain), *there = lock_of(from);
	bool mates = leaf == own;
	u32 owed, top;

	if (!here || !there)
		return true;
	bpf_spin_lock(here);
	if (mates)
		owed = an_serves_others(tree_of(domain), own, wanting) ? own : AN_NONE;
	else
		owed = an_pull_failed(tree_of(domain), own, leaf, wanting);
	bpf_spin_unlock(here);
	if (!owed)
		return false;
	bpf_spin_lock(there);
	top = mates ? an_mates_here(tree_of(from), &everywhere, owed)
		    : an_move_here(tree_of(from), &everywhere, owed);
	bpf_spin_unlock(there);
	if (!top)
		return true;
	bpf_spin_lock(here);
	an_move_away(tree_of(domain), owed, top);
	bpf_spin_unlock(here);
	return true;
}

/* See an_child_towards(). */
an_global u32 towards(u32 domain, u32 node, u32 leaf)
{
	return an_child_towards(tree_of(domain), node, leaf);
}

/*
 * Takes over what is next in the other domain, of another class than `own`, so that there is
 * somebody here to serve instead (pull_failed()): it competes here from now on.
 */
an_global bool pull_another(u32 cpu, u32 own, u32 from)
{
	u32 leaf = next_below(from, AN_ROOT, AN_NONE);

	return leaf && towards(from, AN_ROOT, leaf) != towards(from, AN_ROOT, own) &&
	       pull(cpu, from, leaf, APART);
}

/*
 * A quantum begins: looks at one of the other domains, and takes a task over from there if that is
 * due. A task of the class wanting (if not AN_NONE) goes on wanting to run here.
 */
an_global bool pull_owed(u32 cpu, u32 wanting)
{
	u32 domain = cpu_domain(cpu), at = AN_ROOT;
	u32 own = next_below(domain, AN_ROOT, wanting);
	u32 from = an_looks_at(tree_of(domain), own, domain, nr_domains);

	if (!an_root(tree_of(from))->ready)
		return false;
	an_while(own && at) {
		u32 leaf = next_below(from, at, AN_NONE);

		if (!leaf)
			return false;
		if (pull_is_due(domain, own, from, leaf)) {
			if (pull(cpu, from, leaf, APART_OWED))
				return true;
			if (!pull_failed(domain, own, from, leaf, wanting))
				return pull_another(cpu, own, from);
		}
		at = towards(domain, at, own);
	}
	return false;
}

/* This CPU has nothing to do: what is next in any other domain? */
an_global bool pull_any(u32 cpu)
{
	u32 domain = 0;

	an_while(domain < nr_domains) {
		u32 leaf =
			domain == cpu_domain(cpu) ? AN_NONE : next_below(domain, AN_ROOT, AN_NONE);

		if (leaf && pull(cpu, domain, leaf, APART))
			return true;
		domain = domain_after(domain);
	}
	return false;
}

#else

static __always_inline bool pull_owed(u32 cpu, u32 wanting)
{
	return false;
}

static __always_inline bool pull_any(u32 cpu)
{
	return false;
}

#endif

#endif
