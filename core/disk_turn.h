/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Whose turn it is at a disk, of the classes: those without a contract, or whose budget is used up.
 *
 * The class that is owed most is next (hsfq.h). One that wants throughput then keeps the disk for a
 * quantum, of several requests: to go to and fro for each would take the arm longer than to read. A
 * quantum is so long that the arm takes a tenth of the time at most. A class in a hurry does not
 * wait for its end, but for the request that is being served.
 *
 * Most programs ask for one thing after the other, and a moment after they got it. Such a class has
 * nothing waiting when its request is done; to give the disk to another one at once would cost two
 * seeks, and the class its share, for it never has two requests to choose from. So it is *awaited*,
 * if it has come back soon so far: it competes as if it had a request, and the disk is idle when it
 * would have been that one's turn, for as long as going elsewhere takes the arm. To wait no longer
 * than what is saved costs no more than twice as much as what is best, whatever the class does then
 * (the rent for a pair of skis; waiting for reads: S. Iyer, P. Druschel, Anticipatory Scheduling,
 * SOSP 2001).
 */
#ifndef ANDANTE_CORE_DISK_TURN_H
#define ANDANTE_CORE_DISK_TURN_H

#include "disk_state.h"

/*
 * So many times as long as to get to another place a turn lasts: a tenth is lost. With 4 three
 * classes, two that read on and one that reads anywhere, get 13 % less, and with 18 6 % more;
 * shares, a film beside copies and random reads beside them are the same.
 */
#define AN_TURN_PARTS 9

/* Part of each new observation in the average of a class's thinking: a quarter, so that a class
 * that changes is known after a few requests. With a half or an eighth all that is the same too. */
#define AN_THINKS_SHIFT 2

/* The quantum of a disk. A third of the way is the average of all seeks [ns]. */
an_inline u64 an_disk_quantum_ns(const struct an_disk_model *m)
{
	if (!m->stroke_ns)
		return 0;
	return AN_TURN_PARTS * an_disk_positioning_ns(m, 0, m->sectors / 3);
}

/* As long a class is awaited: as it takes to get to another place, on average. */
an_inline u64 an_turn_awaits_ns(const struct an_disk *d)
{
	return d->quantum_ns / AN_TURN_PARTS;
}

/* One more observation of a time after which a class comes back. Beyond any wait it does not matter
 * how long that is. */
an_inline void an_turn_observe(const struct an_disk *d, u64 *average_ns, u64 ns)
{
	u64 most_ns = 2 * an_turn_awaits_ns(d);

	*average_ns -= *average_ns >> AN_THINKS_SHIFT;
	*average_ns += (ns < most_ns ? ns : most_ns) >> AN_THINKS_SHIFT;
}

/* The request that follows on the last one is there. */
an_inline void an_turn_follows(const struct an_disk *d, struct an_requests *c, u64 now_ns)
{
	an_turn_observe(d, &c->follows_ns, now_ns - c->done_ns);
	c->end = AN_NEVER;
}

/* A class in a hurry is one that is silent for longer than the disk would wait for it. */
an_inline void an_turn_class_is(const struct an_disk *d, struct an_requests *c)
{
	bool comes_back = c->thinks_ns < an_turn_awaits_ns(d);

	c->manner = c->wants;
	if (c->wants == AN_BY_USE)
		c->manner = comes_back ? AN_THROUGHPUT : AN_INTERACTIVE;
}

/* A class of which nothing is known: nobody waits for it. */
an_inline void an_turn_class_init(const struct an_disk *d, struct an_requests *c,
				  enum an_manner wants)
{
	*c = (struct an_requests){.wants = wants, .end = AN_NEVER};
	c->thinks_ns = c->follows_ns = 2 * an_turn_awaits_ns(d);
	an_turn_class_is(d, c);
}

/* A request of no contract comes to the leaf. */
an_inline void an_turn_request_comes(struct an_disk *d, u32 leaf, u64 sector, u64 now_ns)
{
	struct an_requests *c = an_disk_class(d, leaf);

	an_turn_observe(d, &c->thinks_ns, c->under_way++ ? 0 : now_ns - c->idle_ns);
	an_turn_class_is(d, c);
	if (sector == c->end)
		an_turn_follows(d, c, now_ns);
	if (c->awaited)
		c->awaited = 0;
	else
		an_queue_add(&d->tree, leaf);
}

/* A class that was awaited is so no more. */
an_inline void an_turn_awaits_no_more(struct an_disk *d, u32 leaf)
{
	if (!an_disk_class(d, leaf)->awaited)
		return;
	an_disk_class(d, leaf)->awaited = 0;
	an_queue_withdraw(&d->tree, leaf);
}

/* One is done, that took so much of the disk, and for which the class is charged [ns or bytes]. */
an_inline void an_turn_request_done(struct an_disk *d, u32 leaf, u64 end, u64 took_ns, u64 charge,
				    u64 now_ns)
{
	struct an_requests *c = an_disk_class(d, leaf);

	if (d->turn == leaf)
		d->turn_used_ns += took_ns;
	if (c->end != AN_NEVER)
		an_turn_observe(d, &c->follows_ns, AN_NEVER);
	c->end = end;
	c->done_ns = now_ns;
	if (an_request_that_follows(d->requests, c, end))
		an_turn_follows(d, c, now_ns);
	if (!--c->under_way) {
		c->idle_ns = now_ns;
		c->awaited = c->manner == AN_THROUGHPUT && c->thinks_ns < an_turn_awaits_ns(d);
		if (c->awaited)
			an_queue_add(&d->tree, leaf);
	}
	an_stop(&d->tree, leaf, charge);
}

/* It is another's turn, or nobody's. */
an_inline void an_turn_begins(struct an_disk *d, u32 leaf)
{
	bool keeps = d->quantum_ns && an_disk_class(d, leaf)->manner == AN_THROUGHPUT;

	d->turn = keeps ? leaf : AN_NONE;
	d->turn_used_ns = 0;
}

/* The leaf that is to have the disk, of those that have or are awaited, claimed as by an_pick(). */
an_inline u32 an_turn_claim(struct an_disk *d)
{
	u32 picked = an_pick(&d->tree, 0), turn = d->turn;
	bool keeps = turn && d->turn_used_ns < d->quantum_ns;

	if (!picked || (picked == turn && keeps))
		return picked;
	if (keeps && an_node(&d->tree, turn)->queued &&
	    an_disk_class(d, picked)->manner == AN_THROUGHPUT) {
		an_unpick(&d->tree, picked);
		an_queue_withdraw(&d->tree, turn);
		return an_serve_unpicked(&d->tree, turn);
	}
	an_turn_begins(d, picked);
	return picked;
}

/* Its turn lasts, and the request that follows on the last one has not come, but will soon? */
an_inline bool an_turn_waits_for_more(struct an_disk *d, u32 leaf, u64 now_ns)
{
	struct an_requests *c = an_disk_class(d, leaf);
	u64 until_ns = c->done_ns + an_turn_awaits_ns(d);

	if (leaf != d->turn || !d->turn_used_ns || c->end != d->arm || now_ns >= until_ns ||
	    c->follows_ns >= an_turn_awaits_ns(d))
		return false;
	d->waits_until_ns = until_ns;
	return true;
}

/*
 * The leaf whose request is next, which is claimed as by an_pick(); AN_NONE: there is none, or the
 * disk waits for one, until waits_until_ns.
 */
an_inline u32 an_turn_pick(struct an_disk *d, u64 now_ns)
{
	u32 leaf = an_turn_claim(d);

	if (leaf && an_turn_waits_for_more(d, leaf, now_ns)) {
		an_unpick(&d->tree, leaf);
		return AN_NONE;
	}
	an_while(leaf && !an_disk_class(d, leaf)->first) {
		u64 until_ns = an_disk_class(d, leaf)->idle_ns + an_turn_awaits_ns(d);

		an_unpick(&d->tree, leaf);
		if (now_ns < until_ns) {
			d->waits_until_ns = until_ns;
			return AN_NONE;
		}
		an_turn_awaits_no_more(d, leaf);
		leaf = an_turn_claim(d);
	}
	return leaf;
}

#endif
