/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A tree, and the core's calls on it with the invariants checked after each. For tests of a few
 * steps; every file that includes this has a tree of its own.
 */
#ifndef ANDANTE_TESTS_FIXTURE_H
#define ANDANTE_TESTS_FIXTURE_H

#include "invariants.h"
#include "test.h"

#define MS 1000000ULL

static struct an_tree tree;
static struct invariants invariants;

static inline void begin(u64 quantum_ns, u32 cpus)
{
	fresh_tree(&tree, &invariants, quantum_ns, cpus);
	CHECK_INVARIANTS(&tree, &invariants);
}

static inline struct an_node *node(u32 index)
{
	return &tree.nodes[index];
}

static inline u32 create(u32 parent, u32 weight)
{
	u32 leaf = an_class_create(&tree, parent, 0, weight);

	CHECK(leaf != AN_NONE);
	CHECK_INVARIANTS(&tree, &invariants);
	return leaf;
}

static inline void add(u32 leaf)
{
	an_queue_add(&tree, leaf);
	CHECK_INVARIANTS(&tree, &invariants);
}

static inline u32 pick_by(u64 by)
{
	u32 leaf = an_pick(&tree, by);

	CHECK_INVARIANTS(&tree, &invariants);
	return leaf;
}

static inline u32 pick(void)
{
	return pick_by(0);
}

static inline void stop(u32 leaf, u64 service_ns)
{
	an_stop(&tree, leaf, service_ns);
	CHECK_INVARIANTS(&tree, &invariants);
}

/* The task in service has used its quantum and goes on wanting to run. */
static inline void requeue(u32 leaf, u64 service_ns)
{
	add(leaf);
	stop(leaf, service_ns);
}

#endif
