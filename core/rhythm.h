/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Does something come in a rhythm, and in which? Kept are exponential averages, over some sixteen
 * beats, of how far one is from the next, and of how far that is from the average.
 */
#ifndef ANDANTE_CORE_RHYTHM_H
#define ANDANTE_CORE_RHYTHM_H

#include "port.h"

#define AN_RHYTHM_BEATS 16u	       /* that make one, and that averages are over */
#define AN_RHYTHM_MAX_NS 2000000000ULL /* between two beats */

struct an_rhythm {
	u64 last_ns;   /* when the last beat was */
	u32 beats;     /* so far, at most AN_RHYTHM_BEATS */
	u32 beat_ns;   /* of one beat from the next, on average */
	u32 uneven_ns; /* mean deviation of that */
};

/* The average over so many samples, of which this is the last. */
an_inline u32 an_average(u32 average, u32 sample, u32 samples)
{
	if (sample >= average)
		return average + (sample - average) / samples;
	return average - (average - sample) / samples;
}

/* How far they are from each other. */
an_inline u64 an_apart(u64 a, u64 b)
{
	return a > b ? a - b : b - a;
}

an_inline void an_rhythm_begin(struct an_rhythm *r, u64 now_ns)
{
	r->last_ns = now_ns;
	r->beats = r->beat_ns = r->uneven_ns = 0;
}

/*
 * A beat. One that is more than twice as far from the last, or as near, as they are on average
 * belongs to another rhythm, if to any: that is counted anew, so that neither a pause nor what was
 * before the first beat makes a rhythm look uneven.
 */
an_inline void an_rhythm_beat(struct an_rhythm *r, u64 now_ns)
{
	u64 since_ns = now_ns - r->last_ns;
	u32 distance_ns = since_ns < AN_RHYTHM_MAX_NS ? since_ns : AN_RHYTHM_MAX_NS;

	if (distance_ns < r->beat_ns / 2 || distance_ns / 2 > r->beat_ns) {
		an_rhythm_begin(r, now_ns);
		r->beats = 1;
		r->beat_ns = distance_ns;
		return;
	}
	r->last_ns = now_ns;
	if (r->beats < AN_RHYTHM_BEATS)
		r->beats++;
	r->uneven_ns = an_average(r->uneven_ns, an_apart(distance_ns, r->beat_ns), r->beats);
	r->beat_ns = an_average(r->beat_ns, distance_ns, r->beats);
}

/* How far the beats are from one another [ns]; 0: they come at any time. */
an_inline u32 an_rhythm_ns(const struct an_rhythm *r)
{
	return r->beats >= AN_RHYTHM_BEATS && r->uneven_ns <= r->beat_ns / 4 ? r->beat_ns : 0;
}

#endif
