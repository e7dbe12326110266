// SPDX-License-Identifier: GPL-2.0
/* CoDel: its published control law, when it begins and when it ends; and a link's rate. */
#include "../codel.h"
#include "../link.h"
#include "test.h"

#define MS 1000000ULL

static struct an_codel codel;

/* Of packets that leave once a millisecond after they have waited so long, a few more behind: when
 * the next one is dropped [ms]; the bound if none is. */
static u64 next_drop_ms(u64 *now_ms, u64 waited_ms, u64 until_ms)
{
	while (++*now_ms < until_ms)
		if (an_codel_drops(&codel, *now_ms * MS, waited_ms * MS, MS, true))
			return *now_ms;
	return until_ms;
}

/* interval / sqrt(n), rounded down [ns]. */
TEST(codel_control_law)
{
	static const u64 steps[] = {100000000, 70710678, 57735026, 50000000, 44721359,
				    40824829,  37796447, 35355339, 33333333, 31622776};

	for (u32 n = 1; n <= 10; n++)
		CHECK_EQ(an_codel_step_ns(n), steps[n - 1]);
	CHECK_EQ(an_codel_step_ns(10000), 1000000);
	CHECK(an_codel_step_ns(~0u) > 0);
}

TEST(square_roots_are_rounded_down)
{
	for (u64 n = 0; n < 70000; n++) {
		u64 root = an_square_root(n);

		CHECK(root * root <= n && (root + 1) * (root + 1) > n);
	}
	CHECK_EQ(an_square_root(~0ULL), 0xffffffffULL);
}

/* A queue that stands: the first is dropped an interval after it began to, then by the law. */
TEST(codel_drops_by_the_law)
{
	/* 101 + 100, + 70.71, + 57.74, + 50, + 44.72: each at the next departure. */
	static const u64 drops_ms[] = {101, 201, 272, 330, 380, 425};
	u64 now_ms = 0;

	codel = (struct an_codel){0};
	for (u32 n = 0; n < 6; n++)
		CHECK_EQ(next_drop_ms(&now_ms, 20, 1000), drops_ms[n]);
	CHECK_EQ(codel.count, 6);
}

TEST(codel_leaves_a_queue_that_empties)
{
	u64 now_ms = 0;

	codel = (struct an_codel){0};
	/* Not above the target. */
	CHECK_EQ(next_drop_ms(&now_ms, 5, 1000), 1000);
	/* Once in an interval it is short. */
	for (u32 n = 0; n < 50; n++) {
		CHECK_EQ(next_drop_ms(&now_ms, 90, now_ms + 99), now_ms);
		now_ms++;
		CHECK(!an_codel_drops(&codel, now_ms * MS, MS, MS, true));
	}
	/* One packet is no queue, however long it waits. */
	for (u32 n = 0; n < 1000; n++)
		CHECK(!an_codel_drops(&codel, (now_ms + n) * MS, 900 * MS, MS, false));
}

/* Where one packet takes 40 ms, two behind each other are no queue that stands; four are. */
TEST(codel_target_of_a_slow_queue)
{
	u32 dropped = 0;

	codel = (struct an_codel){0};
	for (u32 n = 1; n < 100; n++)
		CHECK(!an_codel_drops(&codel, n * 40 * MS, 40 * MS, 40 * MS, true));
	for (u32 n = 100; n < 200; n++)
		dropped += an_codel_drops(&codel, n * 40 * MS, 160 * MS, 40 * MS, true);
	CHECK(dropped > 20);
}

/* Dropping that ended lately goes on with the count that it came to; if long ago, anew. */
TEST(codel_remembers_for_16_intervals)
{
	for (u32 late = 0; late < 2; late++) {
		u64 now_ms = 0;

		codel = (struct an_codel){0};
		for (u32 n = 0; n < 6; n++)
			next_drop_ms(&now_ms, 20, 1000);
		CHECK_EQ(next_drop_ms(&now_ms, 1, now_ms + 10), now_ms);
		now_ms += late ? 1700 : 100;
		next_drop_ms(&now_ms, 20, now_ms + 200);
		CHECK_EQ(codel.count, late ? 1 : 5);
	}
}

/* When the first packet of a queue is dropped that begins now and then stands [ms after]. */
static u64 first_drop_ms(u64 begins_ms)
{
	u64 now_ms = begins_ms;

	an_codel_begins(&codel, begins_ms * MS);
	return next_drop_ms(&now_ms, 20, begins_ms + 2000) - begins_ms;
}

/* A queue may have packets for as long as it had none before, and for an interval: a new one for
 * 400 ms, and one that had none for 60 ms, of 400, for 100 + 60. */
TEST(codel_gives_back_what_was_spare)
{
	codel = (struct an_codel){0};
	CHECK_EQ(first_drop_ms(1000), 400);
	an_codel_ends(&codel, 2000 * MS);
	codel.above_ns = codel.dropping = 0;
	CHECK_EQ(first_drop_ms(2060), 160);
	/* However long it had none: as a new one. */
	an_codel_ends(&codel, 3000 * MS);
	codel.above_ns = codel.dropping = 0;
	CHECK_EQ(first_drop_ms(9000), 400);
}

/* ---- a link's rate ---- */

static u64 link_bytes(struct an_link *l, u64 from_ns, u64 to_ns, u64 late_ns, u32 size)
{
	u64 bytes = 0;

	for (u64 now = from_ns; now < to_ns;) {
		if (an_link_is_free(l, now)) {
			an_link_send(l, now, size);
			bytes += size;
		} else {
			now = l->next_ns + late_ns;
		}
	}
	return bytes;
}

/* 10 Mbit/s for ten seconds, to one packet and the slack, though every timer is half a ms late. */
TEST(a_link_keeps_its_rate)
{
	for (u32 late_ns = 0; late_ns <= 500000; late_ns += 250000) {
		struct an_link l = {.rate = 1250000};
		u64 bytes = link_bytes(&l, 10 * AN_SECOND_NS, 20 * AN_SECOND_NS, late_ns, 1442);

		CHECK(bytes + 1442 >= 12500000);
		CHECK(bytes <= 12500000 + 1250 + 1442);
	}
}

TEST(a_link_carries_the_remainder)
{
	struct an_link l = {.rate = 3};

	l.next_ns = 5 * AN_SECOND_NS;
	for (u32 n = 0; n < 3000; n++)
		an_link_send(&l, l.next_ns, 1);
	CHECK_EQ(l.next_ns, 1005 * AN_SECOND_NS);
}

/* After a pause, or late, it may catch up by the slack, and no more. */
TEST(a_link_has_its_slack)
{
	struct an_link l = {.rate = 1250000};

	an_link_send(&l, 5 * AN_SECOND_NS, 1250);
	CHECK(an_link_is_free(&l, 5 * AN_SECOND_NS));
	an_link_send(&l, 5 * AN_SECOND_NS, 1250);
	CHECK(!an_link_is_free(&l, 5 * AN_SECOND_NS));
	CHECK_EQ(l.next_ns, 5 * AN_SECOND_NS + MS);
}

TEST(a_link_without_a_rate_is_free)
{
	struct an_link l = {0};

	an_link_send(&l, 7, 1000000);
	CHECK(an_link_is_free(&l, 0));
}
