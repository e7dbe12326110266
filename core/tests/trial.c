// SPDX-License-Identifier: GPL-2.0
/* Trials: who is late all the time is told from who computes all the time (trial.h). */
#include "contract_fixture.h"

#define MS 1000000ULL
#define BOUND 512u

/* A task that gets this part of a CPU [1/1024] never sleeps, until it is to be put on trial. */
static u64 computes(struct an_trial *t, struct an_learner *l, u64 now_ns, u32 part, u64 until_ns)
{
	l->jobs = 1; /* it has slept once */
	while (now_ns < until_ns && !an_trial_is_due(t, l, now_ns)) {
		now_ns += 10 * MS;
		an_learn_service(l, 10 * MS * part / 1024);
	}
	return now_ns;
}

TEST(who_lacks_the_cpu_and_never_sleeps_is_put_on_trial)
{
	struct an_trial t = {0};
	struct an_learner l;

	an_learn_begin(&l, 1000 * MS);
	CHECK_EQ(computes(&t, &l, 1000 * MS, 100, 9000 * MS), 1000 * MS + AN_TRIAL_AFTER_NS);
	/* Who has half of a CPU or more may be a film that shows every frame. */
	an_learn_begin(&l, 1000 * MS);
	CHECK_EQ(computes(&t, &l, 1000 * MS, 512, 9000 * MS), 9000 * MS);
}

/* A film that starts beside ten compilers: one frame after the other, each late. */
TEST(a_film_that_is_late_passes)
{
	struct an_promise promise = {0};
	struct an_trial t = {.failures = 3};
	struct an_learner l;
	u64 now_ns = 1000 * MS;

	an_learn_begin(&l, now_ns);
	now_ns = computes(&t, &l, now_ns, 93, 9000 * MS);
	an_trial_begin(&t, &l, now_ns);
	an_trial_promise(BOUND, &promise);
	CHECK(an_promise_valid(&promise));
	CHECK_EQ(promise.budget_ns, AN_TRIAL_NS);
	an_learn_service(&l, 30 * MS); /* it catches up */
	CHECK(an_trial_goes_on(&t, &l) && !an_trial_fails(&t, &l, now_ns + 40 * MS));
	now_ns += 60 * MS;
	CHECK(an_trial_waits(&t, &l, now_ns));
	for (u32 frame = 0; frame < AN_LEARN_JOBS; frame++) {
		CHECK(an_trial_goes_on(&t, &l));
		an_learn_service(&l, (frame % 12 ? 6 : 16) * MS);
		CHECK(!an_trial_fails(&t, &l, now_ns + 16 * MS));
		now_ns += 33 * MS;
		CHECK(!an_trial_waits(&t, &l, now_ns));
		an_learn_wake(&l, now_ns);
	}
	CHECK(!an_trial_goes_on(&t, &l));
	CHECK(an_learn_interactive(&l, BOUND));
	CHECK_EQ(l.largest_ns, 16 * MS); /* not what it did while it was late */
	an_trial_end(&t, true, now_ns);
	CHECK_EQ(t.failures, 0);
}

/* A compiler fails, and is tried again ever more seldom: five times in its first two minutes. */
TEST(a_compiler_fails_and_is_left_alone)
{
	struct an_trial t = {0};
	struct an_learner l;
	u64 now_ns = 0, pause_ns = 0, trials = 0;

	an_learn_begin(&l, 0);
	while (now_ns < 120000 * MS) {
		u64 began_ns = now_ns = computes(&t, &l, now_ns, 93, 120000 * MS);

		if (now_ns >= 120000 * MS)
			break;
		trials++;
		an_trial_begin(&t, &l, now_ns);
		while (!an_trial_fails(&t, &l, now_ns)) {
			now_ns += MS;
			an_learn_service(&l, MS);
		}
		CHECK_EQ(now_ns - began_ns, AN_TRIAL_NS);
		an_trial_end(&t, false, now_ns);
		CHECK(t.after_ns - now_ns > pause_ns);
		pause_ns = t.after_ns - now_ns;
	}
	CHECK_EQ(trials, 5);
}

/* Who has never slept is no late player: players wait for their first frame. */
TEST(who_has_never_slept_is_not_tried)
{
	struct an_trial t = {0};
	struct an_learner l;

	an_learn_begin(&l, 0);
	an_learn_service(&l, 10 * MS);
	CHECK(!an_trial_is_due(&t, &l, 1000 * MS));
	l.jobs = 1;
	CHECK(an_trial_is_due(&t, &l, 1000 * MS));
}

/* One that cannot be served is not on trial for ever. */
/* Nor is one that forks and waits, once more before each trial would be due. */
TEST(who_waits_for_a_child_is_not_tried)
{
	struct an_trial t = {0};
	struct an_learner l;
	u64 now_ns = 1000 * MS;

	an_learn_begin(&l, now_ns);
	l.jobs = 1;
	for (u32 child = 0; child < 20; child++) {
		an_trial_put_off(&t, now_ns);
		now_ns += 190 * MS;
		an_learn_service(&l, MS);
		CHECK(!an_trial_is_due(&t, &l, now_ns));
	}
	CHECK(an_trial_is_due(&t, &l, now_ns + 10 * MS));
	t.after_ns = now_ns + 4000 * MS; /* it has failed once: that stands */
	an_trial_put_off(&t, now_ns);
	CHECK_EQ(t.after_ns, now_ns + 4000 * MS);
}

TEST(a_trial_without_the_cpu_ends)
{
	struct an_trial t = {0};
	struct an_learner l;

	an_trial_begin(&t, &l, 1000 * MS);
	CHECK(!an_trial_fails(&t, &l, 1000 * MS + AN_TRIAL_LASTS_NS - 1));
	CHECK(an_trial_fails(&t, &l, 1000 * MS + AN_TRIAL_LASTS_NS));
}

/* One that sleeps once, and then computes. */
TEST(who_slept_once_is_still_on_trial)
{
	struct an_trial t = {0};
	struct an_learner l;

	an_trial_begin(&t, &l, 0);
	an_learn_service(&l, 5 * MS);
	CHECK(an_trial_waits(&t, &l, 6 * MS));
	an_learn_service(&l, AN_LEARN_SERVICE_MAX_NS);
	CHECK(!an_trial_fails(&t, &l, 50 * MS));
	an_learn_service(&l, 1);
	CHECK(an_trial_fails(&t, &l, 50 * MS));
}

TEST(trials_take_an_eighth_of_a_cpu_at_most)
{
	CHECK_EQ(an_trial_pause_ns(AN_TRIAL_NS, 1), 8 * AN_TRIAL_NS);
	CHECK_EQ(an_trial_pause_ns(AN_TRIAL_NS, 4), 2 * AN_TRIAL_NS);
	CHECK_EQ(an_trial_pause_ns(0, 1), 0);
}
