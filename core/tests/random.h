/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Random numbers that a seed brings back: splitmix64 [1].
 *
 * [1] G. Steele, D. Lea, C. Flood: Fast Splittable Pseudorandom Number Generators. OOPSLA 2014.
 */
#ifndef ANDANTE_TESTS_RANDOM_H
#define ANDANTE_TESTS_RANDOM_H

#include "../port.h"

struct random {
	u64 state;
};

static inline u64 random_next(struct random *r)
{
	u64 z = r->state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

/* 0 … bound - 1; the bias of the modulo does not matter here. */
static inline u64 random_below(struct random *r, u64 bound)
{
	return random_next(r) % bound;
}

/* 1 … 2^bits, small numbers as likely as large ones. */
static inline u64 random_scale(struct random *r, u32 bits)
{
	return 1 + random_below(r, 1ULL << random_below(r, bits + 1));
}

static inline bool random_chance(struct random *r, u32 percent)
{
	return random_below(r, 100) < percent;
}

#endif
