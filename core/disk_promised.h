/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Requests of contracts that are scheduled, in the order in which the disk serves them, and whether
 * one of no contract may go before them ([1], the class-specific schedulers).
 *
 * Such a request has a deadline. Its slack is by how much later it may be done than it will be at
 * the latest, as the queue stands (disk_model.h). A place in the queue is *admissible* if all from
 * there on have slack for the newcomer, and it is itself in time. Then:
 *
 *      of a contract   where it costs the arm least, of the admissible places: earliest deadline
 *                      first, and by the arm (SCAN) where deadlines leave a choice. If there is
 *                      none, behind those whose deadlines are no later
 *      interactive     before all of them, if that is admissible: it steals the slack of contracts
 *      throughput      before all of them, if that is admissible and no other place costs the arm
 *                      less
 *
 * In [1] those of no contract are in the same queue, some of them ahead. But whatever is scheduled
 * is served before a request of a contract that comes later, and before a class that is owed more:
 * here the next one alone is looked at, when the disk can take it.
 *
 * Cost: O(n) for n that are scheduled.
 *
 * [1] P. Shenoy, H. Vin: Cello: A Disk Scheduling Framework for Next Generation Operating Systems.
 *     SIGMETRICS 1998.
 */
#ifndef ANDANTE_CORE_DISK_PROMISED_H
#define ANDANTE_CORE_DISK_PROMISED_H

#include "disk_requests.h"

#define AN_MAX_PROMISED 64 /* scheduled at once; power of two */

struct an_promised {
	u16 request[AN_MAX_PROMISED]; /* in the order in which they are served */
	u32 count;
	u32 pad;
};

/* The places for a request, as they were looked at one after the other. */
struct an_openings {
	u64 least_ns;	 /* what the cheapest admissible one costs; AN_NEVER: there is none */
	u32 cheapest;	 /* that one */
	u32 by_deadline; /* behind those whose deadlines are no later */
	bool first;	 /* the first is admissible */
};

an_inline u16 *an_promised_at(struct an_promised *s, u32 at)
{
	return &s->request[an_bounded(at, AN_MAX_PROMISED)];
}

/* How much longer those behind a request wait: a disk that serves several at once goes on with the
 * others. */
an_inline u64 an_disk_delays_ns(const struct an_disk_model *m, u64 takes_ns)
{
	return m->at_once > 1 ? takes_ns / m->at_once : takes_ns;
}

/* When each is done at the latest, the first beginning now where the arm is, and how much later all
 * from there on may be. */
an_inline void an_promised_forecast(const struct an_disk_model *m, struct an_request *all,
				    struct an_promised *s, u64 arm, u64 now_ns)
{
	u64 from = arm, at_ns = now_ns, slack_ns = AN_NEVER;
	u32 i = 0;

	an_while(i < s->count) {
		struct an_request *r = an_request_of(all, *an_promised_at(s, i));
		u64 takes_ns = an_disk_most_ns(m, from, r->sector, r->sectors);

		r->begins_ns = at_ns;
		r->most_ns = at_ns + takes_ns;
		at_ns += an_disk_delays_ns(m, takes_ns);
		from = an_request_end(r);
		i++;
	}
	an_while(i) {
		struct an_request *r = an_request_of(all, *an_promised_at(s, --i));
		u64 own_ns = r->deadline_ns > r->most_ns ? r->deadline_ns - r->most_ns : 0;

		if (own_ns < slack_ns)
			slack_ns = own_ns;
		r->slack_ns = slack_ns;
	}
}

/* The extra cost of a request that is served between two others, the second of which may be none.
 */
an_inline u64 an_request_costs_ns(const struct an_disk_model *m, u64 from,
				  const struct an_request *r, const struct an_request *next)
{
	u64 ns = an_disk_most_ns(m, from, r->sector, r->sectors), direct_ns;

	if (!next)
		return ns;
	ns += an_disk_most_ns(m, an_request_end(r), next->sector, next->sectors);
	direct_ns = an_disk_most_ns(m, from, next->sector, next->sectors);
	return ns > direct_ns ? ns - direct_ns : 0; /* a turn less, where it leads on to the next */
}

/* Looks at all places for a request. */
an_inline void an_promised_places(const struct an_disk_model *m, struct an_request *all,
				  struct an_promised *s, const struct an_request *r, u64 arm,
				  u64 now_ns, struct an_openings *places)
{
	u64 from = arm, last_ns = now_ns;
	u32 i = 0;

	*places = (struct an_openings){.least_ns = AN_NEVER};
	an_promised_forecast(m, all, s, arm, now_ns);
	an_while(i <= s->count) {
		bool last = i == s->count;
		struct an_request *next = last ? 0 : an_request_of(all, *an_promised_at(s, i));
		u64 costs_ns = an_request_costs_ns(m, from, r, next);
		u64 own_ns = an_disk_most_ns(m, from, r->sector, r->sectors);
		u64 begins_ns = next ? next->begins_ns : last_ns;
		bool in_time = !next || an_disk_delays_ns(m, costs_ns) <= next->slack_ns;

		if (r->deadline_ns != AN_NEVER && begins_ns + own_ns > r->deadline_ns)
			in_time = false;
		if (in_time && costs_ns < places->least_ns) {
			places->least_ns = costs_ns;
			places->cheapest = i;
		}
		if (in_time && !i)
			places->first = true;
		if (next) {
			if (next->deadline_ns <= r->deadline_ns)
				places->by_deadline = i + 1;
			last_ns = next->begins_ns +
				  an_disk_delays_ns(m, next->most_ns - next->begins_ns);
			from = an_request_end(next);
		}
		i++;
	}
}

/* A request of a contract is scheduled. There is room. */
an_inline void an_promised_add(const struct an_disk_model *m, struct an_request *all,
			       struct an_promised *s, u32 index, u64 arm, u64 now_ns)
{
	struct an_openings places;
	u32 at, i = s->count;

	an_promised_places(m, all, s, an_request_of(all, index), arm, now_ns, &places);
	at = places.least_ns == AN_NEVER ? places.by_deadline : places.cheapest;
	an_while(i > at) {
		*an_promised_at(s, i) = *an_promised_at(s, i - 1);
		i--;
	}
	*an_promised_at(s, at) = index;
	s->count++;
}

/* May a request of no contract go before all of them, as its class would have it? */
an_inline bool an_promised_let(const struct an_disk_model *m, struct an_request *all,
			       struct an_promised *s, u32 index, enum an_manner manner, u64 arm,
			       u64 now_ns)
{
	struct an_openings places;

	an_promised_places(m, all, s, an_request_of(all, index), arm, now_ns, &places);
	return places.first && (manner == AN_INTERACTIVE || !places.cheapest);
}

/* The first of them goes to the disk. There is one. */
an_inline u32 an_promised_take(struct an_promised *s)
{
	u32 index = *an_promised_at(s, 0), i = 1;

	an_while(i < s->count) {
		*an_promised_at(s, i - 1) = *an_promised_at(s, i);
		i++;
	}
	s->count--;
	return index;
}

#endif
