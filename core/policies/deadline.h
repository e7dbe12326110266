/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Earliest deadline first, of jobs that say nothing of themselves.
 *
 * A job begins when its task wakes, and is due a relative deadline later ([1]). Deadlines that were
 * all alike would be the order of arrival; so a nice value makes them differ:
 *
 *      D = the class's relative deadline * weight of nice 0 / weight of the task
 *
 * as a request of the same length is due under virtual deadlines ([2]): nice -5 has a third of it,
 * nice 5 three times as much.
 *
 * A task that computes without a pause is one job without an end, and would keep its deadline while
 * that passes. Who has run for D since its job began has missed its deadline for certain, and is
 * taken to begin another job now. So loops take turns of D, and no job waits for longer than one
 * such turn of each that was there before it. What is more than the CPU can do is late, and who is
 * late comes first, as under this order at large: it is for jobs that end.
 *
 * [1] C. L. Liu, J. Layland: Scheduling Algorithms for Multiprogramming in a Hard-Real-Time
 *     Environment. JACM 20(1), 1973.
 * [2] I. Stoica, H. Abdel-Wahab: Earliest Eligible Virtual Deadline First. Old Dominion University
 *     TR-95-22, 1995.
 */
#ifndef ANDANTE_CORE_DEADLINE_H
#define ANDANTE_CORE_DEADLINE_H

#include "../task.h"

/* The relative deadline of a task of this weight [ns]. Never 0. */
an_inline u64 an_deadline_relative_ns(u64 usual_ns, u32 weight)
{
	u64 relative_ns = usual_ns * AN_USUAL_WEIGHT / (weight ? weight : 1);

	return relative_ns ? relative_ns : 1;
}

#endif
