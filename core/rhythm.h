/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Does something come in a rhythm, and in which? A rhythm is a grid of instants: whoever misses
 * some beats, as a film does that lacks the CPU, is in it all the same. Kept are exponential
 * averages, of how long a beat is over the last six, and over some sixteen of how far each was
 * from the grid.
 *
 * A clock's beats are an open loop: they come when they are due, however long the work between them
 * took. A task that waits for as long after each piece of work, or for a disk that always takes as
 * long, is a closed loop, and its beats are the faster, the sooner it is served: a rhythm of our
 * own making, which tells nothing. Of an open loop the beats are steadier than the sleeps before
 * them, since the work varies; of a closed loop it is the sleeps. So both are kept, and compared.
 * Where the work does not vary, as of sound, the two deviations are one and the same clock's, and
 * it is chance which is the smaller: only sleeps that are twice as steady tell of a closed loop,
 * and only where the beats are far from even.
 */
#ifndef ANDANTE_CORE_RHYTHM_H
#define ANDANTE_CORE_RHYTHM_H

#include "learn_constants.h"
#include "port.h"

struct an_rhythm {
	u64 last_ns;	    /* when the last beat was */
	u32 beats;	    /* so far, at most AN_LEARN_AVERAGED */
	u32 beat_ns;	    /* of one beat from the next, on average */
	u32 uneven_ns;	    /* mean deviation of that */
	u32 rest_ns;	    /* of the sleep that a beat ends, on average over as many as that */
	u32 rest_uneven_ns; /* mean deviation of that */
	u16 times;	    /* so many beats long was the last distance */
	u16 in_a_row;	    /* as were so many before it, up to AN_LEARN_ENOUGH */
};

an_inline u32 an_rhythm_distance_ns(u64 from_ns, u64 to_ns)
{
	return to_ns - from_ns < AN_LEARN_MEMORY_NS ? to_ns - from_ns : AN_LEARN_MEMORY_NS;
}

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
	r->beats = r->beat_ns = r->uneven_ns = r->times = r->in_a_row = 0;
	r->rest_ns = r->rest_uneven_ns = 0;
}

/* A beat ends a sleep of this length. */
an_inline void an_rhythm_rests(struct an_rhythm *r, u32 rest_ns)
{
	if (r->beats > 1)
		r->rest_uneven_ns =
			an_average(r->rest_uneven_ns, an_apart(rest_ns, r->rest_ns), r->beats);
	r->rest_ns = an_average(r->rest_ns, rest_ns, r->beats);
}

/*
 * A distance was so many beats long. If as many in a row were as makes a rhythm, that is the beat:
 * one short distance, as at a start, would make the grid a fraction of it for ever.
 */
an_inline void an_rhythm_counts(struct an_rhythm *r, u32 times)
{
	r->in_a_row = times == r->times ? r->in_a_row + 1 : 1;
	r->times = times;
	if (r->in_a_row < AN_LEARN_ENOUGH)
		return;
	r->beat_ns *= times;
	r->times = 1;
	r->in_a_row = 0;
}

/*
 * Something comes, and ends a sleep that began at slept_ns. If that is too soon for a beat it
 * begins another rhythm; if AN_LEARN_AVERAGED beats and more have been missed it was a pause, which
 * makes the rhythm less sure.
 */
an_inline void an_rhythm_beat(struct an_rhythm *r, u64 slept_ns, u64 now_ns)
{
	u32 distance_ns = an_rhythm_distance_ns(r->last_ns, now_ns);
	u32 times = r->beat_ns ? (distance_ns + r->beat_ns / 2) / r->beat_ns : 0;

	if (times > AN_LEARN_AVERAGED && r->beats > 1) {
		r->last_ns = now_ns;
		r->beats /= 2;
		return;
	}
	if (distance_ns < r->beat_ns - r->beat_ns / 4 || !times || times > AN_LEARN_AVERAGED) {
		an_rhythm_begin(r, now_ns);
		r->beats = 1;
		r->beat_ns = distance_ns;
		an_rhythm_rests(r, an_rhythm_distance_ns(slept_ns, now_ns));
		return;
	}
	r->last_ns = now_ns;
	if (r->beats < AN_LEARN_AVERAGED)
		r->beats++;
	an_rhythm_rests(r, an_rhythm_distance_ns(slept_ns, now_ns));
	r->uneven_ns =
		an_average(r->uneven_ns, an_apart(distance_ns, times * r->beat_ns), r->beats);
	r->beat_ns = an_average(r->beat_ns, distance_ns / times,
				r->beats < AN_LEARN_ENOUGH ? r->beats : AN_LEARN_ENOUGH);
	an_rhythm_counts(r, times);
}

/*
 * How far the beats are from one another [ns]; 0: they come at any time, or are a closed loop's.
 * Events at any time are a quarter of a beat away from the grid on average. A quarter of that
 * tells the two apart: a clock's beats are far nearer, and keys or a disk's answers seem to be that
 * even once in ten thousand times. (With half of it they did once in a thousand, which is one of
 * twenty typists in ten seconds; and a task with a rhythm is due later.) A quarter of the sixteenth
 * leaves no doubt: the clock of a virtual machine is less even than the work of sound that waits
 * for it.
 */
an_inline u32 an_rhythm_ns(const struct an_rhythm *r)
{
	u32 even_ns = r->beat_ns / 16, sure_ns = even_ns / 4;
	bool open = r->uneven_ns <= sure_ns || r->uneven_ns / 2 <= r->rest_uneven_ns;

	return r->beats >= AN_LEARN_ENOUGH && r->uneven_ns <= even_ns && open ? r->beat_ns : 0;
}

#endif
