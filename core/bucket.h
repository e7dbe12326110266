/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A bucket: what a group of contracts may use of a CPU, as a whole, before others come first again.
 * It fills with a part of the time and holds so much (AN_BUCKET_NS of a whole CPU's contracts) that
 * bursts are no matter.
 *
 * Parts are of a CPU [1/1024]. Times are of one clock [ns].
 */
#ifndef ANDANTE_CORE_BUCKET_H
#define ANDANTE_CORE_BUCKET_H

#include "port.h"

#define AN_BUCKET_NS 150000000LL
/* Time that passed unseen counts up to this. */
#define AN_BUCKET_PASSED_MAX_NS 2000000000ULL

struct an_bucket {
	s64 left_ns;   /* below 0 after a run that went beyond it */
	u64 filled_ns; /* up to this instant */
};

/* What is in the bucket at this instant [ns]. */
an_inline s64 an_bucket_left_ns(const struct an_bucket *b, u32 part, s64 max_ns, u64 now_ns)
{
	u64 passed_ns = now_ns > b->filled_ns ? now_ns - b->filled_ns : 0;
	s64 left_ns;

	if (passed_ns > AN_BUCKET_PASSED_MAX_NS)
		passed_ns = AN_BUCKET_PASSED_MAX_NS;
	left_ns = b->left_ns + (s64)(passed_ns * part / 1024);
	return left_ns < max_ns ? left_ns : max_ns;
}

/* The same; what the time has added is in it now. */
an_inline s64 an_bucket_fill(struct an_bucket *b, u32 part, s64 max_ns, u64 now_ns)
{
	b->left_ns = an_bucket_left_ns(b, part, max_ns, now_ns);
	if (now_ns > b->filled_ns)
		b->filled_ns = now_ns;
	return b->left_ns;
}

/* How long the bucket takes until it holds that much [ns]. */
an_inline u64 an_bucket_wait_ns(const struct an_bucket *b, u32 part, u64 wanted_ns)
{
	s64 short_ns = (s64)wanted_ns - b->left_ns;

	return short_ns > 0 ? (u64)short_ns * 1024 / (part ? part : 1) : 0;
}

#endif
