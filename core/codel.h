/* SPDX-License-Identifier: GPL-2.0 */
/*
 * CoDel: which packets of a queue are dropped so that it does not stand [1].
 *
 * A queue is good while it empties within a round trip, however long it gets, and bad if even its
 * shortest wait of a round trip is longer than need be. So a packet is dropped when every packet
 * for an *interval* has waited more than the *target*, and then more and more often, at the n-th
 * time after interval / sqrt(n): a sender whose rate falls with the root of its losses then slows
 * down steadily.
 *
 *                     waited too long for an interval: drop one, count = 1
 *      watching -----------------------------------------------------------> dropping --.
 *          ^                                                                    |  ^     |
 * drop_next:
 *          `--------------------------------------------------------------------'  `-----' drop
 * one, one waited for the target at most, or one packet is left              count + 1
 *
 * The interval is a usual long round trip, 100 ms, the target a twentieth of it, where a sender's
 * rate has lost next to nothing (both: [1], 4.3). On a slow queue a packet alone takes longer than
 * the target, and would be dropped for nothing that its sender did; so the target is never less
 * than the time from one departure of the queue to the next, which is what one packet takes at the
 * rate that the queue has (the same of a slow link: [1], 4.4).
 *
 * A frame of a film comes at once, and may take longer than an interval at the rate that its queue
 * has among others, though the film sends less than that in the long run. Its queue does not stand:
 * it was empty before, and will be again. So the time for which a queue was empty is spare: it
 * may have packets for as long beyond the interval, and then again when it has been empty again.
 * Its sender has had its rate at most then, in all the time since. A new queue has been empty
 * before as well. Nobody talks over more than 400 ms ([2]): the first packet is dropped when the
 * queue has stood for as long at the latest.
 *
 * Departures from the pseudocode of [1]: it takes out several packets in one call; here the caller
 * asks about each as it comes to the head, so that the state is left one packet earlier when a wait
 * was short, and drop_next is one step later then.
 *
 * Cost: O(1), and a square root of 32 turns for a packet that is dropped.
 *
 * [1] K. Nichols, V. Jacobson, A. McGregor, J. Iyengar: Controlled Delay Active Queue Management.
 *     RFC 8289, 2018.
 * [2] One-way transmission time. ITU-T G.114, 2003.
 */
#ifndef ANDANTE_CORE_CODEL_H
#define ANDANTE_CORE_CODEL_H

#include "port.h"

#define AN_CODEL_INTERVAL_NS 100000000ULL
#define AN_CODEL_TARGET_NS (AN_CODEL_INTERVAL_NS / 20)

/* The longest that a queue was empty, as far as it counts. */
#define AN_CODEL_SPARE_NS (400000000ULL - AN_CODEL_INTERVAL_NS)

/* Dropping that begins again so soon goes on where it was ([1], 5.5: 16 intervals). */
#define AN_CODEL_REMEMBERED_NS (16 * AN_CODEL_INTERVAL_NS)

struct an_codel {
	u64 above_ns;	  /* if all wait too long until then, one is dropped; 0: the last did not */
	u64 drop_next_ns; /* while dropping: when the next one is */
	u32 count;	  /* dropped since dropping began */
	u32 last_count;	  /* what count began with */
	u32 dropping;
	u64 turned_ns; /* when it last had a first packet, or none any more; 0: never */
	u64 spare_ns;  /* it has been empty for so much longer than not, lately, as of then */
};

/* A packet is there, which was none. */
an_inline void an_codel_begins(struct an_codel *c, u64 now_ns)
{
	c->spare_ns += now_ns - c->turned_ns;
	if (!c->turned_ns || c->spare_ns > AN_CODEL_SPARE_NS)
		c->spare_ns = AN_CODEL_SPARE_NS;
	c->turned_ns = now_ns;
}

/* No packet is there any more. */
an_inline void an_codel_ends(struct an_codel *c, u64 now_ns)
{
	u64 had_ns = now_ns - c->turned_ns;

	c->spare_ns -= had_ns < c->spare_ns ? had_ns : c->spare_ns;
	c->turned_ns = now_ns;
}

/* The root of n, rounded down. */
an_inline u64 an_square_root(u64 n)
{
	u32 shift = 64;
	u64 root = 0;

	/* A digit of the root in each turn; opaque, or the verifier goes both ways in each. */
	an_while(shift) {
		u64 bit;

		shift = an_opaque(shift - 2);
		bit = 1ULL << (shift & 63);
		if (n >= root + bit) {
			n -= root + bit;
			root = (root >> 1) + bit;
		} else {
			root >>= 1;
		}
	}
	return root;
}

/* interval / sqrt(count) for count > 0 [ns]. */
an_inline u64 an_codel_step_ns(u32 count)
{
	return an_square_root(AN_CODEL_INTERVAL_NS * AN_CODEL_INTERVAL_NS / count);
}

/* Have all packets waited too long for an interval? */
an_inline bool an_codel_stands(struct an_codel *c, u64 now_ns, bool too_long)
{
	if (!too_long) {
		c->above_ns = 0;
		return false;
	}
	if (!c->above_ns) {
		u64 spare_until_ns = c->turned_ns + c->spare_ns;

		c->above_ns =
			AN_CODEL_INTERVAL_NS + (now_ns > spare_until_ns ? now_ns : spare_until_ns);
		return false;
	}
	return now_ns >= c->above_ns;
}

/*
 * To be asked of every packet that leaves the queue: is it dropped? It has
 * waited so long; the queue's last packet went gap_ns ago; more_than_one says whether more bytes
 * are left than a largest packet has.
 */
an_inline bool an_codel_drops(struct an_codel *c, u64 now_ns, u64 waited_ns, u64 gap_ns,
			      bool more_than_one)
{
	u64 target_ns = gap_ns > AN_CODEL_TARGET_NS ? gap_ns : AN_CODEL_TARGET_NS;
	u32 before = c->count - c->last_count;

	if (!an_codel_stands(c, now_ns, more_than_one && waited_ns > target_ns)) {
		c->dropping = false;
		return false;
	}
	if (c->dropping) {
		if (now_ns < c->drop_next_ns)
			return false;
		c->count++;
		c->drop_next_ns += an_codel_step_ns(c->count);
		return true;
	}
	c->dropping = true;
	c->count = 1;
	if (before > 1 && now_ns - c->drop_next_ns < AN_CODEL_REMEMBERED_NS)
		c->count = before;
	c->last_count = c->count;
	c->drop_next_ns = now_ns + an_codel_step_ns(c->count);
	return true;
}

#endif
