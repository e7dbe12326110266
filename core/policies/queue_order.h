/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Keys for policies that queue by level and, within a level, in order: 16 bits of level above 48
 * bits of place. Places count up from the middle for those that join at the tail, and down for
 * those put back at the head, so that neither meets the other in 2^46 steps.
 */
#ifndef ANDANTE_CORE_QUEUE_ORDER_H
#define ANDANTE_CORE_QUEUE_ORDER_H

#include "../port.h"

#define AN_PLACE_BITS 48
#define AN_PLACE_MIDDLE (1ULL << (AN_PLACE_BITS - 1))

/* Distance of the last place given from the middle, at either end. Starts at 0. */
struct an_places {
	u64 tail;
	u64 head;
};

/* Behind everybody of the level. Level 0 is served first. */
an_inline u64 an_place_at_tail(struct an_places *p, u32 level)
{
	return ((u64)level << AN_PLACE_BITS) | (AN_PLACE_MIDDLE + p->tail++);
}

/* Before everybody of the level. */
an_inline u64 an_place_at_head(struct an_places *p, u32 level)
{
	return ((u64)level << AN_PLACE_BITS) | (AN_PLACE_MIDDLE - ++p->head);
}

an_inline u32 an_place_level(u64 key)
{
	return key >> AN_PLACE_BITS;
}

#endif
