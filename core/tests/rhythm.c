// SPDX-License-Identifier: GPL-2.0
/* Whether something comes in a rhythm (rhythm.h). */
#include "random.h"
#include "test.h"

#define MS 1000000ULL

/* A beat, after a sleep that began at some time since the one before. */
static void comes(struct an_rhythm *r, u64 now_ns)
{
	u64 busy_ns = (now_ns - r->last_ns) * (1 + r->last_ns / MS % 3) / 4;

	an_rhythm_beat(r, r->last_ns + busy_ns, now_ns);
}

/* So many beats, so far apart, and every other one so much later. */
static u64 beats(struct an_rhythm *r, u64 now_ns, u32 count, u64 distance_ns, u64 later_ns)
{
	for (u32 beat = 0; beat < count; beat++)
		comes(r, (now_ns += distance_ns) + (beat % 2 ? later_ns : 0));
	return now_ns;
}

TEST(a_rhythm_is_heard_after_six_beats)
{
	struct an_rhythm r;
	u64 now_ns = 1000 * MS;

	an_rhythm_begin(&r, now_ns);
	now_ns = beats(&r, now_ns, AN_LEARN_ENOUGH - 1, 40 * MS, 0);
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
	now_ns = beats(&r, now_ns, 1, 1000 * MS, 0);
	CHECK_EQ(an_rhythm_ns(&r), 0);
	for (u32 part = 0; part < 3; part++) {
		now_ns = beats(&r, now_ns, AN_LEARN_AVERAGED, 40 * MS, 0);
		CHECK_EQ(an_rhythm_ns(&r), 40 * MS);
		now_ns = beats(&r, now_ns, 1, 1000 * MS, 0);
		CHECK_EQ(an_rhythm_ns(&r), 40 * MS);
	}
	/* One after the other, they are another rhythm, once that has been heard. */
	now_ns = beats(&r, now_ns, 4, 1000 * MS, 0);
	CHECK_EQ(an_rhythm_ns(&r), 0);
	beats(&r, now_ns, AN_LEARN_ENOUGH, 1000 * MS, 0);
	CHECK_EQ(an_rhythm_ns(&r), 1000 * MS);
}

/* A film that lacks the CPU sleeps only now and then until a frame is due, but then until it is. */
TEST(whoever_misses_beats_is_in_its_rhythm)
{
	struct random random = {test_seed()};
	struct an_rhythm r;
	u64 now_ns = 1000 * MS;

	test_scenario(random.state);
	an_rhythm_begin(&r, now_ns);
	for (u32 beat = 0; beat < 100; beat++) {
		u64 missed = beat < 8 ? 0 : random_below(&random, AN_LEARN_AVERAGED);

		comes(&r, now_ns += (missed + 1) * 41666667);
		CHECK(beat < 8 || an_rhythm_ns(&r));
	}
}

TEST(beats_may_be_a_little_early_or_late_or_one_missing)
{
	struct an_rhythm r;
	u64 now_ns = 1000 * MS;

	an_rhythm_begin(&r, now_ns);
	now_ns = beats(&r, now_ns, 100, 40 * MS, 2 * MS);
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
	/* Somebody types. */
	test_scenario(random.state);
	for (u32 key = 0; key < 1000; key++) {
		comes(&r, now_ns += 40 * MS + random_below(&random, 300) * MS);
		heard += an_rhythm_ns(&r) != 0;
	}
	CHECK(heard < 20); /* by chance */
	/* A disk answers. */
	an_rhythm_begin(&r, now_ns);
	for (u32 block = 0; block < 1000; block++) {
		comes(&r, now_ns += 2 * MS + random_below(&random, 12) * MS);
		heard += an_rhythm_ns(&r) != 0;
	}
	CHECK(heard < 40);
	/* Two wake-ups at one instant, or very long apart. */
	an_rhythm_begin(&r, now_ns);
	comes(&r, now_ns);
	comes(&r, now_ns);
	CHECK_EQ(an_rhythm_ns(&r), 0);
	beats(&r, now_ns, AN_LEARN_AVERAGED, 20000 * MS, 0);
	CHECK_EQ(an_rhythm_ns(&r), AN_LEARN_MEMORY_NS);
}

/* One that begins with a short distance, which its beat happens to be a multiple of. */
TEST(a_grid_is_no_fraction_of_the_beat)
{
	struct an_rhythm r;
	u64 now_ns = 1000 * MS;

	an_rhythm_begin(&r, now_ns);
	comes(&r, now_ns += 2 * MS);
	for (u32 beat = 0; beat < AN_LEARN_ENOUGH; beat++)
		comes(&r, now_ns += 14 * MS);
	CHECK_EQ(an_rhythm_ns(&r), 14 * MS);
	/* Some that are missed change nothing. */
	for (u32 beat = 0; beat < 20; beat++)
		comes(&r, now_ns += (1 + beat % 3) * 14 * MS);
	CHECK_EQ(an_rhythm_ns(&r), 14 * MS);
}

/* Works for 2 to 6 ms, and waits: for a clock until the next 20 ms are over, or each time for as
 * long as a disk takes, which is 20 ms and hardly ever more. */
TEST(a_closed_loop_has_no_rhythm_of_its_own)
{
	struct random random = {test_seed()};

	test_scenario(random.state);
	for (u32 closed = 0; closed < 2; closed++) {
		struct an_rhythm r;
		u64 now_ns = 1000 * MS;

		an_rhythm_begin(&r, now_ns);
		for (u32 beat = 0; beat < 200; beat++) {
			u64 slept_ns = now_ns + 2 * MS + random_below(&random, 4 * MS);
			u64 begin_ns = closed ? slept_ns : now_ns - now_ns % (20 * MS);

			now_ns = begin_ns + 20 * MS + random_below(&random, MS / 10);
			an_rhythm_beat(&r, slept_ns, now_ns);
			if (beat >= AN_LEARN_AVERAGED)
				CHECK_EQ(an_rhythm_ns(&r) != 0, !closed);
		}
	}
}

/* Sound, whose periods all take the same time: nothing but the clock varies. */
TEST(a_rhythm_may_have_even_rests_too)
{
	struct random random = {test_seed()};
	struct an_rhythm r;
	u64 due_ns = 1000 * MS, now_ns = due_ns;
	u32 heard = 0;

	test_scenario(random.state);
	an_rhythm_begin(&r, now_ns);
	for (u32 beat = 0; beat < 1000; beat++) {
		u64 slept_ns = now_ns + MS / 2;

		now_ns = (due_ns += 5 * MS) + random_below(&random, MS / 20);
		an_rhythm_beat(&r, slept_ns, now_ns);
		heard += an_rhythm_ns(&r) != 0;
	}
	CHECK(heard > 990);
}
