/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One CPU and a crowd that shares never serve: nobody waits for longer than overdue.h says, and the
 * crowd has no more than its part.
 */
#include "test.h"

#define MS 1000000ULL
#define SECOND (1000 * MS)
#define CROWD_MAX 40000
#define QUANTUM_NS (2 * MS)

static u64 since_ns[CROWD_MAX];
static u32 line[CROWD_MAX]; /* of those that are overdue, as they were found; a ring */

struct found {
	u64 longest_ns; /* that anybody has waited */
	u64 used_ns;	/* by their turns */
};

/* For `span_ns`, with a choice so often, and `count` tasks that nothing else serves. */
static struct found crowd(u32 count, u64 choice_ns, u64 span_ns)
{
	u64 now_ns = SECOND, look_ns = now_ns, next_ns = 0, turn_ns = 0;
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
			turn_ns = an_overdue_turn_ns(last - first, QUANTUM_NS);
		}
		while (first != last && an_overdue_takes(&next_ns, now_ns, turn_ns)) {
			u32 i = line[first++ % count];

			if (now_ns - since_ns[i] > f.longest_ns)
				f.longest_ns = now_ns - since_ns[i];
			now_ns += turn_ns;
			f.used_ns += turn_ns;
			since_ns[i] = now_ns;
		}
		now_ns += choice_ns;
	}
	return f;
}

static void check_crowd(u32 count, u64 choice_ns)
{
	const u64 span_ns = 100 * SECOND, least_ns = count * AN_OVERDUE_TURN_NS;
	const u64 turns_ns = AN_OVERDUE_TURNS_NS + least_ns;
	struct found f = crowd(count, choice_ns, span_ns);

	CHECK(f.longest_ns > AN_OVERDUE_NS);
	CHECK(f.longest_ns <=
	      AN_OVERDUE_NS + AN_OVERDUE_LOOK_NS + turns_ns * AN_OVERDUE_PART + 2 * choice_ns);
	CHECK(f.used_ns <= (span_ns / AN_OVERDUE_LOOK_NS + 1) * AN_OVERDUE_TURNS_NS +
				   (span_ns / AN_OVERDUE_NS + 1) * least_ns);
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

/* Few have a quantum each; more share what there is; very many have the least. */
TEST(turns_are_as_long_as_there_is_time_for)
{
	CHECK_EQ(an_overdue_turn_ns(0, QUANTUM_NS), QUANTUM_NS);
	CHECK_EQ(an_overdue_turn_ns(1, QUANTUM_NS), QUANTUM_NS);
	CHECK_EQ(an_overdue_turn_ns(100, QUANTUM_NS), AN_OVERDUE_TURNS_NS / 100);
	CHECK_EQ(an_overdue_turn_ns(100000, QUANTUM_NS), AN_OVERDUE_TURN_NS);
}

static void check_part(u64 turn_ns)
{
	u64 next_ns = 0, used_ns = 0, begin_ns = 5 * SECOND, now_ns = begin_ns;

	an_overdue_begins(&next_ns, now_ns);
	for (u32 i = 0; i < 100000; i++) {
		while (an_overdue_takes(&next_ns, now_ns, turn_ns)) {
			used_ns += turn_ns;
			now_ns += turn_ns;
		}
		CHECK(used_ns <= (now_ns - begin_ns) / AN_OVERDUE_PART + turn_ns);
		now_ns += i % 7 * 100000;
	}
	CHECK(used_ns > (now_ns - begin_ns) / AN_OVERDUE_PART - 2 * turn_ns);
	/* A second in which nobody was overdue is not saved up. */
	now_ns += SECOND;
	an_overdue_begins(&next_ns, now_ns);
	CHECK(an_overdue_takes(&next_ns, now_ns, turn_ns));
	CHECK(!an_overdue_takes(&next_ns, now_ns, turn_ns));
}

/* In no stretch of time do they take more than their part, and what was saved up. */
TEST(turns_of_the_overdue_take_no_more_than_their_part)
{
	check_part(AN_OVERDUE_TURN_NS);
	check_part(QUANTUM_NS);
}
