/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A link of a known rate: when the next packet may go.
 *
 * A packet takes bytes / rate; the next one may go when the one before has gone. Who sends is
 * called late at times, and would never make good what it lost; so it may be behind by up to a
 * slack, and as much may go at once after a pause. What goes in any time t is at most
 * rate * (t + slack) and one packet; the remainder of the division is carried, so that the rate is
 * exact.
 */
#ifndef ANDANTE_CORE_LINK_H
#define ANDANTE_CORE_LINK_H

#include "port.h"

#define AN_SECOND_NS 1000000000ULL

/* The slack: no longer than what the largest segments take that a shaped device is given, which are
 * to wait for one another no longer than this. */
#define AN_LINK_SLACK_NS 1000000ULL

struct an_link {
	u64 rate;    /* [bytes/s]; 0: nobody holds packets back here */
	u64 next_ns; /* when the next packet may go */
	u64 rem;     /* remainder of next_ns [ns/rate] */
};

/* May a packet go now? If not, at next_ns. */
an_inline bool an_link_is_free(const struct an_link *l, u64 now_ns)
{
	return !l->rate || now_ns >= l->next_ns;
}

/* A packet of less than 16 MB goes now. */
an_inline void an_link_send(struct an_link *l, u64 now_ns, u32 bytes)
{
	u64 units;

	if (!l->rate)
		return;
	if (l->next_ns + AN_LINK_SLACK_NS < now_ns) {
		l->next_ns = now_ns - AN_LINK_SLACK_NS;
		l->rem = 0;
	}
	units = bytes * AN_SECOND_NS + l->rem;
	l->next_ns += units / l->rate;
	l->rem = units % l->rate;
}

#endif
