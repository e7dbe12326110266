/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The fairness theorem of start-time fair queueing, observed on one CPU:
 *
 *      |W_f(t1,t2) / r_f - W_g(t1,t2) / r_g|  <=  l_f / r_f + l_g / r_g
 *
 * for any two siblings f, g, leaves or inner nodes, and any interval in which both are runnable
 * and keep their weights ([1] of tree.h). It is checked for *every* such interval at once: with
 * D(t) = W_f(0,t) / r_f - W_g(0,t) / r_g over a maximal interval, the worst interval inside is the
 * one from D's lowest to its highest point, and D turns only where something happens.
 *
 * W is service really given, up to the moment, not what tags say. l / r is the largest charge of
 * the interval and the one before it, whose finish tag the interval begins with. All of it in
 * exact integers; as tags are rounded down to 2^-16 ns / weight, each side may be off by one.
 */
#ifndef ANDANTE_TESTS_FAIRNESS_H
#define ANDANTE_TESTS_FAIRNESS_H

#include "../core.h"

#include <string.h>

#define FAIR_NODES 64

typedef __int128 s128;

struct fair_node {
	u64 service_ns; /* W: what the subtree has been given */
	u64 quantum_ns; /* of which in the quantum that is running */
	u64 charge;	/* of the last whole quantum, rounded up [tag] */
};

/* An interval in which two siblings have been runnable under the same weights so far. */
struct fair_pair {
	bool open;
	u32 weight_f, weight_g;
	u64 from_f_ns, from_g_ns;
	u64 charge_f, charge_g; /* largest [tag] */
	s128 low, high;		/* of D * r_f * r_g [ns * weight] */
};

struct fairness {
	struct fair_node nodes[FAIR_NODES];
	struct fair_pair pairs[FAIR_NODES][FAIR_NODES];
	u64 intervals;
	u64 violations;
	u32 worst_permille; /* largest difference seen, of what was allowed */
};

static inline u64 charge_of(u64 service_ns, u32 weight)
{
	return ((service_ns << AN_TAG_SHIFT) + weight - 1) / weight;
}

static inline u64 largest_charge(const struct fair_node *f, u32 weight)
{
	u64 running = charge_of(f->quantum_ns, weight);

	return running > f->charge ? running : f->charge;
}

static inline void judge_pair(struct fairness *fair, const struct fair_pair *pair)
{
	s128 weights = (s128)pair->weight_f * pair->weight_g;
	s128 bound = ((s128)pair->charge_f + pair->charge_g + 2) * weights;
	s128 spread = (pair->high - pair->low) << AN_TAG_SHIFT;
	u32 permille = (u32)(spread * 1000 / bound);

	if (spread > bound)
		fair->violations++;
	if (permille > fair->worst_permille)
		fair->worst_permille = permille;
}

static inline void observe_pair(struct fairness *fair, const struct an_tree *t, u32 f, u32 g)
{
	const struct fair_node *nf = &fair->nodes[f], *ng = &fair->nodes[g];
	struct fair_pair *pair = &fair->pairs[f][g];
	u32 weight_f = t->nodes[f].weight, weight_g = t->nodes[g].weight;
	u64 charge;
	s128 d;

	if (!an_node_runnable(&t->nodes[f]) || !an_node_runnable(&t->nodes[g])) {
		pair->open = false;
		return;
	}
	if (!pair->open || pair->weight_f != weight_f || pair->weight_g != weight_g) {
		*pair = (struct fair_pair){.open = true,
					   .weight_f = weight_f,
					   .weight_g = weight_g,
					   .from_f_ns = nf->service_ns,
					   .from_g_ns = ng->service_ns};
		fair->intervals++;
	}
	charge = largest_charge(nf, weight_f);
	if (charge > pair->charge_f)
		pair->charge_f = charge;
	charge = largest_charge(ng, weight_g);
	if (charge > pair->charge_g)
		pair->charge_g = charge;
	d = (s128)(nf->service_ns - pair->from_f_ns) * weight_g -
	    (s128)(ng->service_ns - pair->from_g_ns) * weight_f;
	if (d < pair->low)
		pair->low = d;
	if (d > pair->high)
		pair->high = d;
	judge_pair(fair, pair);
}

/* To be called after every single thing that happens to the tree. */
static inline void fairness_observe(struct fairness *fair, const struct an_tree *t)
{
	for (u32 f = AN_ROOT + 1; f < t->unused; f++) {
		for (u32 g = f + 1; g < t->unused; g++) {
			const struct an_node *nf = &t->nodes[f], *ng = &t->nodes[g];

			if (nf->kind == AN_FREE || nf->kind == AN_DEAD || ng->kind == AN_FREE ||
			    ng->kind == AN_DEAD || nf->parent != ng->parent)
				fair->pairs[f][g].open = false;
			else
				observe_pair(fair, t, f, g);
		}
	}
}

/* The leaf has been served for so long. */
static inline void fairness_serve(struct fairness *fair, const struct an_tree *t, u32 leaf,
				  u64 service_ns)
{
	for (u32 at = leaf; at; at = t->nodes[at].parent) {
		fair->nodes[at].service_ns += service_ns;
		fair->nodes[at].quantum_ns += service_ns;
	}
}

/* Its quantum, of 1 ns at least, has ended: to be called just before an_stop(). */
static inline void fairness_stop(struct fairness *fair, const struct an_tree *t, u32 leaf)
{
	for (u32 at = leaf; at; at = t->nodes[at].parent) {
		struct fair_node *n = &fair->nodes[at];

		n->charge = charge_of(n->quantum_ns, t->nodes[at].weight);
		n->quantum_ns = 0;
	}
}

/* A class has come under this index: it starts at v, with no charge behind it. */
static inline void fairness_created(struct fairness *fair, u32 index)
{
	memset(&fair->nodes[index], 0, sizeof(fair->nodes[index]));
}

/* The leaf has become an own leaf: the inner node goes on in its place, it starts afresh below. */
static inline void fairness_became_inner(struct fairness *fair, u32 leaf, u32 inner)
{
	fair->nodes[inner] = fair->nodes[leaf];
	fair->nodes[leaf].charge = 0;
	for (u32 i = 0; i < FAIR_NODES; i++)
		fair->pairs[leaf][i].open = fair->pairs[i][leaf].open = false;
}

#endif
