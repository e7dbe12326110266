/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One CPU and a crowd that shares never serve: nobody waits for longer than overdue.h says, and the
 * crowd has no more than its part.
 */
#include "test.h"

#define MS 1000000ULL
#define SECOND (1000 * MS)
#define CROWD_MAX 40000

static u64 since_ns[CROWD_MAX];
static u32 line[CROWD_MAX]; /* of those that are overdue, as they were found; a ring */

struct found {
	u64 longest_ns; /* that anybody has waited */
	u64 used_ns;	/* by their turns */
};

/* For `span_ns`, with a choice every quantum, and `count` tasks that nothing else serves. */
static struct found crowd(u32 count, u64 quantum_ns, u64 span_ns)
{
	u64 now_ns = SECOND, look_ns = now_ns, next_ns = 0;
	u32 first = 0, last = 0, found = 0; /* of the crowd, in the order of their waiting */
	struct found f = {0};

	for (u32 i = 0; i < count; i++)
		since_ns[i] = now_ns;
	while (now_ns < SECOND + span_ns) {
		if (now_ns >= look_ns) {
			look_ns += AN_OVERDUE_LOOK_NS;
			if (first == last)
				an_overdue_begins(&next_ns, now_ns);
			while (last - first < count && an_overdue(since_ns[found], now_ns)) {
				line[last++ % count] = found;
				found = (found + 1) % count;
			}
		}
		while (first != last && an_overdue_takes(&next_ns, now_ns)) {
			u32 i = line[first++ % count];

			if (now_ns - since_ns[i] > f.longest_ns)
				f.longest_ns = now_ns - since_ns[i];
			now_ns += AN_OVERDUE_TURN_NS;
			f.used_ns += AN_OVERDUE_TURN_NS;
			since_ns[i] = now_ns;
		}
		now_ns += quantum_ns;
	}
	return f;
}

static void check_crowd(u32 count, u64 quantum_ns)
{
	const u64 span_ns = 100 * SECOND, turns_ns = count * AN_OVERDUE_TURN_NS;
	struct found f = crowd(count, quantum_ns, span_ns);

	CHECK(f.longest_ns > AN_OVERDUE_NS);
	CHECK(f.longest_ns <=
	      AN_OVERDUE_NS + AN_OVERDUE_LOOK_NS + turns_ns * AN_OVERDUE_PART + 2 * quantum_ns);
	CHECK(f.used_ns <= (span_ns / AN_OVERDUE_NS + 1) * turns_ns);
	CHECK(f.used_ns <= span_ns / AN_OVERDUE_PART + AN_OVERDUE_SAVED_NS);
}

TEST(nobody_waits_for_longer_than_the_bound)
{
	const u32 counts[] = {1, 100, 1000, 10000, CROWD_MAX};

	for (u32 i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
		check_crowd(counts[i], 2 * MS);
		check_crowd(counts[i], 90 * MS); /* a contract has the CPU for so long */
	}
}

/* In no stretch of time do they take more than their part, and what was saved up. */
TEST(turns_of_the_overdue_take_no_more_than_their_part)
{
	u64 next_ns = 0, used_ns = 0, begin_ns = 5 * SECOND, now_ns = begin_ns;

	an_overdue_begins(&next_ns, now_ns);
	for (u32 i = 0; i < 100000; i++) {
		while (an_overdue_takes(&next_ns, now_ns)) {
			used_ns += AN_OVERDUE_TURN_NS;
			now_ns += AN_OVERDUE_TURN_NS;
		}
		CHECK(used_ns <= (now_ns - begin_ns) / AN_OVERDUE_PART + AN_OVERDUE_TURN_NS);
		now_ns += i % 7 * 100000;
	}
	CHECK(used_ns > (now_ns - begin_ns) / AN_OVERDUE_PART - 2 * AN_OVERDUE_TURN_NS);
	/* A second in which nobody was overdue is not saved up. */
	now_ns += SECOND;
	an_overdue_begins(&next_ns, now_ns);
	CHECK(an_overdue_takes(&next_ns, now_ns));
	CHECK(!an_overdue_takes(&next_ns, now_ns));
}
