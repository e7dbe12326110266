/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A disk as its scheduler sees it: the time that a request takes, at most and on average.
 *
 *      from the end of one request to the begin of the next      seek + stroke * sqrt(distance)
 *      then the sector turns up                                  turn / 2 on average, turn at most
 *      then the sectors pass                                     bytes / rate
 *
 * The root of the distance is the time of an arm that speeds up for half of its way and slows down
 * for the other ([1], for all but the longest seeks); distance is a part of the whole disk. A
 * request that begins where the last one ended has nothing of the first two. A disk without an arm
 * has a stroke and a turn of 0, and serves several at once.
 *
 * The angle of the platters is not known here, so that a wait for them is a turn at most. To
 * reckon with the average instead made 15 frames of 300 late, in probes.
 *
 * [1] C. Ruemmler, J. Wilkes: An Introduction to Disk Drive Modeling. IEEE Computer 27 (3), 1994.
 */
#ifndef ANDANTE_CORE_DISK_MODEL_H
#define ANDANTE_CORE_DISK_MODEL_H

#include "link.h"

#define AN_SECTOR_SHIFT 9 /* the kernel's sectors have 512 bytes */

struct an_disk_model {
	u64 sectors;   /* of the whole disk; > 0 */
	u64 rate;      /* [bytes/s]; > 0 */
	u64 seek_ns;   /* the shortest seek; without an arm, the time until the first byte */
	u64 stroke_ns; /* what a seek over the whole disk takes beyond that */
	u64 turn_ns;   /* of the platters; 0: there are none */
	u32 at_once;   /* requests that it serves side by side; >= 1 */
	u32 pad;
};

/* The largest integer whose square is not above n. */
an_inline u32 an_root_of(u64 n)
{
	u64 root = 0, bit = 1ULL << 62;

	an_while(bit > n)
		bit >>= 2;
	an_while(bit) {
		if (n >= root + bit) {
			n -= root + bit;
			root = (root >> 1) + bit;
		} else {
			root >>= 1;
		}
		bit >>= 2;
	}
	return root;
}

/* sqrt(a / b) for a <= b and b > 0 [2^-16]. */
an_inline u64 an_root_of_part(u64 a, u64 b)
{
	/* A disk of 2^48 sectors is one of 128 PiB. */
	an_while(b >> 32) {
		a >>= 1;
		b >>= 1;
	}
	return an_root_of((a << 32) / b);
}

/* From the end of one request to another sector: the arm, without the platters [ns]. */
an_inline u64 an_disk_seek_ns(const struct an_disk_model *m, u64 from, u64 to)
{
	u64 distance = from < to ? to - from : from - to;

	if (!distance)
		return 0;
	if (!m->stroke_ns)
		return m->seek_ns;
	if (distance > m->sectors)
		distance = m->sectors;
	return m->seek_ns + (m->stroke_ns * an_root_of_part(distance, m->sectors) >> 16);
}

/* The time that so many sectors take to pass [ns]. */
an_inline u64 an_disk_pass_ns(const struct an_disk_model *m, u32 sectors)
{
	return ((u64)sectors << AN_SECTOR_SHIFT) * AN_SECOND_NS / m->rate;
}

/* A request of so many sectors, after one that ended at `from`: at most [ns]. */
an_inline u64 an_disk_most_ns(const struct an_disk_model *m, u64 from, u64 sector, u32 sectors)
{
	u64 turn_ns = from == sector ? 0 : m->turn_ns;

	return an_disk_seek_ns(m, from, sector) + turn_ns + an_disk_pass_ns(m, sectors);
}

/* The time until the platters bring it, on average, and the arm: what is saved by not going there.
 */
an_inline u64 an_disk_positioning_ns(const struct an_disk_model *m, u64 from, u64 sector)
{
	return from == sector ? 0 : an_disk_seek_ns(m, from, sector) + m->turn_ns / 2;
}

#endif
