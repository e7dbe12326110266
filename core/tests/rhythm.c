// SPDX-License-Identifier: GPL-2.0
/* Whether something comes in a rhythm (rhythm.h). */
#include "random.h"
#include "test.h"

#define MS 1000000ULL

/* So many beats, so far apart, and every other one so much later. */
static u64 beats(struct an_rhythm *r, u64 now_ns, u32 count, u64 distance_ns, u64 later_ns)
{
	for (u32 beat = 0; beat < count; beat++)
		an_rhythm_beat(r, (now_ns += distance_ns) + (beat % 2 ? later_ns : 0));
	return now_ns;
}

TEST(a_rhythm_is_heard_after_sixteen_beats)
{
	struct an_rhythm r;
	u64 now_ns = 1000 * MS;

	an_rhythm_begin(&r, now_ns);
	now_ns = beats(&r, now_ns, AN_RHYTHM_BEATS - 1, 40 * MS, 0);
	CHECK_EQ(an_rhythm_ns(&r), 0);
	beats(&r, now_ns, 1, 40 * MS, 0);
	CHECK_EQ(an_rhythm_ns(&r), 40 * MS);
}

/* A player waits for a second before its first frame; a film is halted, and goes on. */
TEST(pauses_belong_to_no_rhythm)
{
	struct an_rhythm r;
	u64 now_ns = 1000 * MS;

	an_rhythm_begin(&r, now_ns);
	for (u32 part = 0; part < 3; part++) {
		now_ns = beats(&r, now_ns, 1, 1000 * MS, 0);
		CHECK_EQ(an_rhythm_ns(&r), 0);
		now_ns = beats(&r, now_ns, AN_RHYTHM_BEATS, 40 * MS, 0);
		CHECK_EQ(an_rhythm_ns(&r), 40 * MS);
	}
}

TEST(beats_may_be_a_little_early_or_late_or_one_missing)
{
	struct an_rhythm r;
	u64 now_ns = 1000 * MS;

	an_rhythm_begin(&r, now_ns);
	now_ns = beats(&r, now_ns, 100, 40 * MS, 4 * MS);
	CHECK(an_rhythm_ns(&r) > 39 * MS && an_rhythm_ns(&r) < 41 * MS);
	now_ns = beats(&r, now_ns, 1, 80 * MS, 0);
	CHECK(an_rhythm_ns(&r) > 39 * MS && an_rhythm_ns(&r) < 44 * MS);
}

TEST(what_comes_at_any_time_has_no_rhythm)
{
	struct an_rhythm r;
	struct random random = {test_seed()};
	u64 now_ns = 1000 * MS;
	u32 heard = 0;

	an_rhythm_begin(&r, now_ns);
	beats(&r, now_ns, 100, 40 * MS, 20 * MS); /* 60 ms, 20 ms, … */
	CHECK_EQ(an_rhythm_ns(&r), 0);
	/* Somebody types. */
	test_scenario(random.state);
	for (u32 key = 0; key < 1000; key++) {
		an_rhythm_beat(&r, now_ns += 40 * MS + random_below(&random, 300) * MS);
		heard += an_rhythm_ns(&r) != 0;
	}
	CHECK(heard < 20); /* by chance */
	/* Two wake-ups at one instant, or very long apart. */
	an_rhythm_begin(&r, now_ns);
	an_rhythm_beat(&r, now_ns);
	an_rhythm_beat(&r, now_ns);
	CHECK_EQ(an_rhythm_ns(&r), 0);
	beats(&r, now_ns, AN_RHYTHM_BEATS, 20000 * MS, 0);
	CHECK_EQ(an_rhythm_ns(&r), AN_RHYTHM_MAX_NS);
}
