/* SPDX-License-Identifier: GPL-2.0 */
/*
 * CPUs are held at one call of the kernel's: its virtual machine has lost the CPU just there. By
 * chance alone two CPUs seldom meet within the few instructions of a race, for what they do begins
 * milliseconds apart. Held, a CPU stays where it is while the clock and the others go on; and
 * works and sleeps are short, so that the others have something to do meanwhile.
 *
 * A race is between two things: its search names the one (race --hold-at), chance finds the other.
 */
#include "race.h"

#include <string.h>

#define HELD_NS 150000 /* at most: less than BINDING_QUEUEING_NS, for which the scheduler waits */
#define SHORTER 16     /* works and sleeps of some 5 ms: one of four CPUs' ends in HELD_NS */
#define ONE_OF 4       /* of so many times that a CPU is there, it is held */
#define CLOCK_NS 2000  /* while nobody else has anything to do, the clock goes on by so much */

static u32 held = MODEL_CPUS; /* that CPU, or none */
static u64 until_ns;
static bool has_been;

/* This CPU is in the middle of something: is it held here? */
bool hold_begins(void)
{
	const char *call = this_rq()->call;

	if (!trial.hold_at || held != MODEL_CPUS || this_rq()->under_lock || is_at_rest(m.cpu) ||
	    !call || strcmp(call, trial.hold_at) || chance(ONE_OF))
		return false;
	has_been = true;
	held = m.cpu;
	until_ns = m.now_ns + chance(HELD_NS);
	return true;
}

/* Has any CPU been held in this trial? */
bool hold_has_been(void)
{
	return has_been;
}

/* A CPU that is held has no turn. True: nobody else has, and the clock has gone on. */
bool hold_takes(u32 *ready, u32 *count)
{
	u32 kept = 0;
	u64 next_ns;

	if (held == MODEL_CPUS)
		return false;
	if (m.now_ns >= until_ns || is_at_rest(held)) { /* comes_to_rest() holds nobody */
		held = MODEL_CPUS;
		return false;
	}
	for (u32 at = 0; at < *count; at++)
		if (ready[at] != held)
			ready[kept++] = ready[at];
	*count = kept;
	if (kept)
		return false;
	next_ns = time_next_ns();
	if (next_ns <= m.now_ns) /* something of its own */
		next_ns = m.now_ns + CLOCK_NS;
	time_advance(next_ns < until_ns ? next_ns : until_ns);
	return true;
}

u64 hold_shortens(u64 ns)
{
	return trial.hold_at ? ns / SHORTER : ns;
}
