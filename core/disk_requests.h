/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Requests of a disk, and those of each class that wait: the next one of a class is its own choice.
 *
 *      an_request_arrives() --> waits, in its class --an_request_chosen()--> scheduled --> in
 * service
 *
 * A class in a hurry (interactive) takes its requests as they come. A class that wants throughput
 * takes the one that the arm comes to first on its way up the disk, and begins again below when
 * there is none ahead (C-SCAN). Requests that come during such a sweep are of the next one, or
 * those who read on where they are would keep the arm for ever (FSCAN: Coffman, Klimko, Ryan:
 * Analysis of Scanning Policies for Reducing Disk Seek Times. SIAM Journal on Computing 1(3),
 * 1972). So a request waits for two sweeps of its class at most.
 *
 * A request is named by its index, which is the caller's: 1 and up.
 */
#ifndef ANDANTE_CORE_DISK_REQUESTS_H
#define ANDANTE_CORE_DISK_REQUESTS_H

#include "disk_model.h"
#include "hsfq.h"

#ifndef AN_MAX_REQUESTS
#define AN_MAX_REQUESTS 1024 /* that are known at once, and one more; power of two */
#endif
_Static_assert((AN_MAX_REQUESTS & (AN_MAX_REQUESTS - 1)) == 0, "an_bounded() masks");
_Static_assert(AN_MAX_REQUESTS <= 65536, "indices are 16 bits wide");

/* How a class chooses among its requests, and when one goes before those of contracts. */
enum an_manner {
	AN_BY_USE = 0, /* one of these, as its requests come (disk_turn.h) */
	AN_INTERACTIVE = 1,
	AN_THROUGHPUT = 2,
};

struct an_request {
	u64 sector;	 /* the first */
	u64 deadline_ns; /* of its contract; AN_NEVER: it is in its class's turn */
	u64 begins_ns;	 /* scheduled: when it is served at the latest, as the queue stands */
	u64 most_ns;	 /* ... and is done */
	u64 slack_ns;	 /* ... by how much later those from here on may be */
	u64 shared_ns;	 /* in service: the disk's time that each had had when it began */
	u32 sectors;
	u32 sweep;
	u16 leaf;
	u16 before, after; /* of its class */
	u16 pad;
};

/* A class's requests. */
struct an_requests {
	u16 first, last; /* of those that wait, as they came */
	u32 sweep;	 /* the one that is under way */
	u64 expected;	 /* where the last one of its contract ended, and the next may begin */
	u64 idle_ns;	 /* when the last one was done, if it has none since */
	u64 thinks_ns;	 /* from there to the next, on average */
	u64 done_ns;	 /* when the last one of no contract was done */
	u64 end;	 /* ... and where it ended; AN_NEVER: what follows on it has come */
	u64 follows_ns;	 /* from there to what follows on it, on average */
	u32 under_way;	 /* that wait or are in service, and are of no contract */
	u8 wants;	 /* enum an_manner: what was said */
	u8 manner;	 /* what it is at present, one of the latter two */
	u8 awaited;	 /* it is queued for a request that will come soon (disk_turn.h) */
	u8 pad;
};

/* The end of a request [sectors]. */
an_inline u64 an_request_end(const struct an_request *r)
{
	return r->sector + r->sectors;
}

/* An index in a list of its class. */
an_inline struct an_request *an_request_of(struct an_request *all, u32 index)
{
	return &all[an_bounded(index, AN_MAX_REQUESTS)];
}

an_inline void an_request_arrives(struct an_request *all, struct an_requests *c, u32 index)
{
	struct an_request *r = an_request_of(all, index);

	r->before = c->last;
	r->after = AN_NONE;
	if (c->last)
		an_request_of(all, c->last)->after = index;
	else
		c->first = index;
	c->last = index;
	r->sweep = c->sweep + 1;
}

an_inline void an_request_chosen(struct an_request *all, struct an_requests *c, u32 index)
{
	struct an_request *r = an_request_of(all, index);

	if (r->before)
		an_request_of(all, r->before)->after = r->after;
	else
		c->first = r->after;
	if (r->after)
		an_request_of(all, r->after)->before = r->before;
	else
		c->last = r->before;
}

/* The first on the way up from this sector in that sweep, or AN_NONE: the sweep is over. Those of a
 * sweep came before those of the next, so that they are first. */
an_inline u32 an_request_on_the_way(struct an_request *all, const struct an_requests *c, u64 from)
{
	u32 at = c->first, best = AN_NONE;
	u64 nearest = AN_NEVER;

	an_while(at && an_request_of(all, at)->sweep == c->sweep) {
		const struct an_request *r = an_request_of(all, at);
		/* Below comes after all above: so far from here that no distance up is as far. */
		u64 distance = r->sector - from;

		if (distance < nearest) {
			nearest = distance;
			best = at;
		}
		at = r->after;
	}
	return best;
}

/* The request that begins where the arm stands, or AN_NONE. */
an_inline u32 an_request_that_follows(struct an_request *all, const struct an_requests *c, u64 arm)
{
	u32 at = c->first;

	an_while(at && an_request_of(all, at)->sector != arm)
		at = an_request_of(all, at)->after;
	return at;
}

/* The request that the class has served next, when the arm stands there. One waits. */
an_inline u32 an_request_next(struct an_request *all, struct an_requests *c, u64 from,
			      bool reads_on)
{
	u32 next = reads_on ? an_request_that_follows(all, c, from) : AN_NONE;

	if (next)
		return next;
	if (c->manner == AN_INTERACTIVE)
		return c->first;
	next = an_request_on_the_way(all, c, from);
	if (!next) {
		c->sweep = an_request_of(all, c->first)->sweep;
		next = an_request_on_the_way(all, c, from);
	}
	return next;
}

#endif
