// SPDX-License-Identifier: GPL-2.0
/* Learnt contracts (learn.h), and what groups of contracts may use of a CPU (bucket.h). */
#include "contract_fixture.h"
#include "random.h"

#define MS 1000000ULL

#define BOUND 512u /* half of the CPU */

/* So many jobs of this service, one after the other, so far apart. */
static u64 watch(struct an_learner *l, u64 now_ns, u32 jobs, u64 service_ns, u64 distance_ns)
{
	while (jobs--) {
		an_learn_service(l, service_ns);
		now_ns += distance_ns;
		if (!an_learn_goes_on_soon(l, now_ns))
			an_learn_wake(l, now_ns);
	}
	return now_ns;
}

static bool is_interactive(u32 jobs, u64 service_ns, u64 distance_ns)
{
	struct an_learner l;

	an_learn_begin(&l, 1000 * MS);
	watch(&l, 1000 * MS, jobs, service_ns, distance_ns);
	return an_learn_interactive(&l, BOUND);
}

TEST(who_waits_more_than_it_works_is_interactive)
{
	CHECK(is_interactive(AN_LEARN_ENOUGH, 7 * MS, 33 * MS));  /* a film */
	CHECK(is_interactive(AN_LEARN_ENOUGH, 2 * MS, 120 * MS)); /* somebody types */
	CHECK(is_interactive(AN_LEARN_ENOUGH, MS, 2667000)); /* 128 frames of sound at 48 kHz */
	CHECK(!is_interactive(AN_LEARN_ENOUGH - 1, 7 * MS, 33 * MS)); /* too little is known */
	CHECK(!is_interactive(16, 20 * MS, 33 * MS));		      /* works more than it waits */
	CHECK(!is_interactive(16, 50 * MS, 500 * MS)); /* nobody waits for so long a job */
	CHECK(!is_interactive(16, 10000, 100000));     /* talks all the time */
}

TEST(what_keeps_a_task_from_being_interactive_is_named)
{
	const struct {
		struct an_learner seen;
		enum an_learn_obstacle obstacle;
	} cases[] = {
		{{.jobs = 16, .distance_ns = 33 * MS, .mean_ns = 7 * MS}, AN_LEARN_NONE},
		{{.jobs = 16, .distance_ns = 100000, .mean_ns = 10000}, AN_LEARN_TALKS},
		{{.jobs = 16, .distance_ns = 500 * MS, .long_ns = 50 * MS}, AN_LEARN_LONG},
		{{.jobs = 16, .distance_ns = 33 * MS, .mean_ns = 20 * MS}, AN_LEARN_MUCH},
		{{.jobs = 2, .distance_ns = 33 * MS, .mean_ns = 7 * MS}, AN_LEARN_NEW},
		{{.jobs = 0}, AN_LEARN_NEW},
	};

	for (u32 i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		CHECK_EQ(an_learn_obstacle(&cases[i].seen, BOUND), cases[i].obstacle);
}

/* A film's group of twelve frames: the expensive one is remembered until it comes again. */
TEST(the_expensive_frame_of_each_group_is_remembered)
{
	struct an_promise promise = {0};
	struct an_learner l;
	u64 now_ns = 1000 * MS;

	an_learn_begin(&l, now_ns);
	for (u32 group = 0; group < 10; group++) {
		now_ns = watch(&l, now_ns, 1, 16 * MS, 33 * MS);
		now_ns = watch(&l, now_ns, 11, 6 * MS, 33 * MS);
	}
	CHECK(l.largest_ns <= 16 * MS && l.largest_ns >= 15 * MS);
	CHECK(l.mean_ns >= 6 * MS && l.mean_ns <= 8 * MS);
	an_learn_promise(&l, BOUND, &promise);
	CHECK(an_promise_valid(&promise));
	CHECK_EQ(promise.budget_ns, 2 * (u64)l.largest_ns);
	CHECK_EQ(promise.period_ns, 2 * promise.budget_ns);
	CHECK(promise.deadline_rel_ns > l.largest_ns && promise.deadline_rel_ns <= 42 * MS);
}

/* The same of a player that wakes four times for each frame, in groups of thirty. */
TEST(it_is_remembered_however_often_the_player_wakes)
{
	struct an_learner l;
	u64 now_ns = 1000 * MS;

	an_learn_begin(&l, now_ns);
	for (u32 group = 0; group < 10; group++) {
		now_ns = watch(&l, now_ns, 1, 16 * MS, 20 * MS);
		for (u32 frame = 0; frame < 30; frame++) {
			now_ns = watch(&l, now_ns, 3, MS / 10, 4 * MS);
			if (group)
				CHECK_EQ(l.largest_ns, 16 * MS);
			now_ns = watch(&l, now_ns, 1, 6 * MS, 21 * MS);
		}
	}
}

/* Who wakes in a rhythm has half of a beat for its own part, the rest is for those that it asks. */
TEST(who_wakes_in_a_rhythm_is_due_half_a_beat_later)
{
	struct an_promise promise = {0};
	struct an_learner l;
	u64 now_ns = 1000 * MS;

	an_learn_begin(&l, now_ns);
	for (u32 frame = 0; frame < 20; frame++) {
		an_rhythm_beat(&l.rhythm, l.slept_ns, now_ns);
		now_ns = watch(&l, now_ns, 1, 5 * MS,
			       10 * MS); /* until what it has asked for is done */
		now_ns = watch(&l, now_ns, 1, MS / 10, 22 * MS);
	}
	an_learn_promise(&l, BOUND, &promise);
	CHECK(an_promise_valid(&promise));
	CHECK_EQ(promise.budget_ns, 10 * MS);
	CHECK_EQ(promise.deadline_rel_ns, 16 * MS);
	/* One that takes long for a frame is due as late as it was. */
	l.largest_ns = 12 * MS;
	an_learn_promise(&l, BOUND, &promise);
	CHECK_EQ(promise.deadline_rel_ns, 26400000);
	/* And one that takes little keeps nobody waiting. */
	l.largest_ns = MS;
	an_learn_promise(&l, BOUND, &promise);
	CHECK(an_promise_valid(&promise));
	CHECK_EQ(promise.deadline_rel_ns, 8 * MS);
}

/* What a player reads after a pause takes long: sixteen shorter jobs later it is one again. */
TEST(what_was_long_once_is_forgotten)
{
	struct an_learner l;
	u64 now_ns;

	an_learn_begin(&l, 0);
	now_ns = watch(&l, 0, AN_LEARN_ENOUGH, 5 * MS, 33 * MS);
	now_ns = watch(&l, now_ns, 1, 300 * MS, 2000 * MS);
	for (u32 job = 0; job < AN_LEARN_AVERAGED; job++) {
		CHECK_EQ(an_learn_obstacle(&l, BOUND), AN_LEARN_LONG);
		now_ns = watch(&l, now_ns, 1, 5 * MS, 33 * MS);
	}
	CHECK(an_learn_interactive(&l, BOUND));
	CHECK_EQ(l.largest_ns, 5 * MS);
	/* What it was used to before is not. */
	now_ns = watch(&l, now_ns, 1, 12 * MS, 33 * MS);
	now_ns = watch(&l, now_ns, 1, 300 * MS, 2000 * MS);
	watch(&l, now_ns, AN_LEARN_AVERAGED, 5 * MS, 33 * MS);
	CHECK_EQ(l.largest_ns, 12 * MS);
}

/* Or, if there are fewer, two seconds later: somebody types. */
TEST(it_is_forgotten_after_two_seconds)
{
	struct an_learner l;
	u64 now_ns;

	an_learn_begin(&l, 0);
	now_ns = watch(&l, 0, AN_LEARN_ENOUGH, MS, 33 * MS);
	now_ns = watch(&l, now_ns, 1, 300 * MS, 1000 * MS);
	now_ns = watch(&l, now_ns, 3, MS, 500 * MS);
	CHECK_EQ(an_learn_obstacle(&l, BOUND), AN_LEARN_LONG);
	watch(&l, now_ns, 1, MS, 500 * MS);
	CHECK(an_learn_interactive(&l, BOUND));
}

/* One whose every tenth job is long stays what it is. */
TEST(who_has_long_jobs_again_and_again_is_not_interactive)
{
	struct an_learner l;
	u64 now_ns;

	an_learn_begin(&l, 0);
	now_ns = watch(&l, 0, AN_LEARN_ENOUGH, MS, 10 * MS);
	for (u32 group = 0; group < 20; group++) {
		now_ns = watch(&l, now_ns, 1, 60 * MS, 100 * MS);
		for (u32 job = 0; job < 9; job++) {
			now_ns = watch(&l, now_ns, 1, MS, 10 * MS);
			CHECK(!an_learn_interactive(&l, BOUND));
		}
	}
}

/* A scene change may take many times what frames do, but not longer than anybody waits. */
TEST(a_job_may_take_so_long)
{
	struct an_learner l = {.jobs = AN_LEARN_AVERAGED, .largest_ns = 2 * MS};

	an_learn_service(&l, AN_LEARN_SERVICE_MAX_NS);
	CHECK(!an_learn_goes_on(&l));
	an_learn_service(&l, 1);
	CHECK(an_learn_goes_on(&l));
}

/* Sound that was kept waiting computes without a pause until it has caught up. */
TEST(jobs_that_were_late_are_several)
{
	struct an_learner l;
	u64 now_ns = 1000 * MS;

	an_learn_begin(&l, now_ns);
	now_ns = watch(&l, now_ns, 300, MS, 4 * MS);
	an_learn_service(&l, 5 * MS);
	an_learn_wake(&l, now_ns + 20 * MS);
	CHECK_EQ(l.largest_ns, MS);
}

/* Who wakes at any time is not late by being seldom. */
TEST(who_has_no_rhythm_may_have_long_jobs_at_long_distances)
{
	struct an_learner l;
	u64 now_ns = 1000 * MS;

	an_learn_begin(&l, now_ns);
	for (u32 i = 0; i < 20; i++)
		now_ns = watch(&l, now_ns, 1, MS, i % 2 ? 5 * MS : 35 * MS);
	now_ns = watch(&l, now_ns, 1, 5 * MS, 60 * MS);
	CHECK_EQ(l.largest_ns, 5 * MS);
}

/* A server that lacks the CPU always has a request that waits, and never sleeps. */
TEST(a_server_that_is_asked_all_the_time_is_seen_by_its_answers)
{
	struct an_learner l;
	u64 now_ns = 1000 * MS;

	an_learn_begin(&l, now_ns);
	for (u32 i = 0; i < AN_LEARN_ENOUGH; i++) {
		an_learn_service(&l, 2 * MS);
		CHECK(an_learn_answered(&l, 1, now_ns += 25 * MS));
	}
	CHECK(an_learn_interactive(&l, BOUND));
	CHECK_EQ(l.largest_ns, 2 * MS);
	/* What it does without making way is as many jobs as it has given answers. */
	an_learn_service(&l, 8 * MS);
	CHECK(an_learn_answered(&l, 4, now_ns += 30 * MS));
	CHECK_EQ(l.largest_ns, 2 * MS);
	/* One that is asked for more than the bound is not interactive. */
	for (u32 i = 0; i < 100; i++) {
		an_learn_service(&l, 2 * MS);
		CHECK(an_learn_answered(&l, 1, now_ns += 3 * MS));
	}
	CHECK(!an_learn_interactive(&l, BOUND));
}

/* Many small answers are one job, as they are for a server that wakes for all of them. */
TEST(answers_do_not_make_a_server_talk)
{
	struct an_learner l;
	u64 now_ns = 1000 * MS;

	an_learn_begin(&l, now_ns);
	CHECK(!an_learn_answered(&l, 5, now_ns + 100000));
	for (u32 i = 0; i < 100; i++) {
		an_learn_service(&l, MS / 5);
		CHECK(an_learn_answered(&l, 1000, now_ns += MS));
	}
	CHECK(an_learn_interactive(&l, BOUND));
}

/* One that was interactive and then works all the time is not for long. */
TEST(behaviour_that_ends_is_forgotten)
{
	struct an_learner l;
	u64 now_ns;

	an_learn_begin(&l, 0);
	now_ns = watch(&l, 0, 100, 7 * MS, 33 * MS);
	CHECK(an_learn_interactive(&l, BOUND));
	watch(&l, now_ns, 16, 30 * MS, 33 * MS);
	CHECK(!an_learn_interactive(&l, BOUND));
}

/* A frame that passes through sixty hands is one job in thirty milliseconds, not sixty. */
TEST(hand_overs_are_no_jobs)
{
	struct an_learner l;
	u64 now_ns = 0;

	an_learn_begin(&l, 0);
	for (u32 frame = 0; frame < 32; frame++) {
		now_ns = watch(&l, now_ns, 60, 5000, 8000);
		now_ns = watch(&l, now_ns, 1, 5000, 33 * MS);
	}
	CHECK(an_learn_interactive(&l, BOUND));
	CHECK(l.distance_ns >= AN_LEARN_DISTANCE_MIN_NS);
	CHECK(l.largest_ns >= 300000);
}

/* An event is no reason for what still goes on a second later. */
TEST(chains_of_wake_ups_end)
{
	CHECK(an_learn_is_rooted(5 * MS, 5 * MS));
	CHECK(an_learn_is_rooted(5 * MS, 1000 * MS));
	CHECK(!an_learn_is_rooted(5 * MS, 1005 * MS));
	CHECK(!an_learn_is_rooted(0, 1000 * MS));
}

/* An event comes so long after it has gone to sleep, so many times. */
static bool waits_evidently(u64 sleep_ns, u64 more_ns)
{
	struct an_learner l;
	u64 now_ns = 1000 * MS;

	an_learn_begin(&l, now_ns);
	for (u32 i = 0; i < 40; i++) {
		l.slept_ns = now_ns + 3 * MS;
		now_ns = l.slept_ns + sleep_ns + i % 3 * more_ns;
		an_rhythm_beat(&l.rhythm, l.slept_ns, now_ns);
		an_learn_slept(&l, now_ns);
		an_learn_wake(&l, now_ns);
	}
	return an_learn_evident(&l);
}

TEST(somebody_waits_for_what_comes_in_a_rhythm_or_seldom)
{
	struct an_learner l;

	an_learn_begin(&l, 0);
	CHECK(an_learn_evident(&l));		  /* nothing is known of it */
	CHECK(waits_evidently(13 * MS, 0));	  /* sixty frames a second */
	CHECK(waits_evidently(10 * MS, 90 * MS)); /* somebody types, now fast, now slowly */
	CHECK(!waits_evidently(2 * MS, 8 * MS));  /* waits for its disk */
}

/* One that is new is judged when it has done some jobs: what it did to get ready is forgotten. */
TEST(whoever_is_new_has_the_benefit_of_the_doubt)
{
	struct an_learner l;
	u64 now_ns;

	an_learn_begin(&l, 0);
	CHECK(an_learn_is_untried(&l));
	CHECK(an_learn_may_be_interactive(&l, AN_EVENT_NONE, BOUND));
	CHECK(!an_learn_interactive(&l, BOUND));
	an_learn_service(&l, 50 * MS);
	CHECK(!an_learn_is_untried(&l));
	an_learn_wake(&l, 200 * MS);
	now_ns = watch(&l, 200 * MS, 16, 7 * MS, 33 * MS);
	CHECK(an_learn_interactive(&l, BOUND));
	an_learn_service(&l, 50 * MS);
	an_learn_wake(&l, now_ns + 100 * MS);
	CHECK(!an_learn_interactive(&l, BOUND));
}

/* Without an event only work is, which may be a late film's: talk is not. */
TEST(talk_for_no_event_is_not_interactive)
{
	struct an_learner works, talks;

	an_learn_begin(&works, 0);
	watch(&works, 0, 16, 7 * MS, 50 * MS);
	an_learn_begin(&talks, 0);
	watch(&talks, 0, 16, MS / 10, 5 * MS);
	CHECK(an_learn_may_be_interactive(&works, AN_EVENT_NONE, BOUND));
	CHECK(!an_learn_may_be_interactive(&talks, AN_EVENT_NONE, BOUND));
	CHECK(an_learn_may_be_interactive(&talks, AN_EVENT_UNAWAITED, BOUND));
}

/* What it is offered while it works for this. */
static struct an_promise promised_for(const struct an_learner *l, u32 event)
{
	struct an_promise promise = {0};

	an_learn_promise_for(l, event, BOUND, &promise);
	CHECK(an_promise_valid(&promise));
	return promise;
}

/* One whose jobs are not known may take as long as anybody waits, and is due accordingly. */
TEST(what_nobody_waits_for_comes_later)
{
	const struct an_learner unknown = {0},
				known = {.jobs = AN_LEARN_ENOUGH, .largest_ns = 2 * MS};
	const struct an_learner slow = {.jobs = AN_LEARN_ENOUGH,
					.distance_ns = 100 * MS,
					.largest_ns = 2 * MS,
					.long_ns = 50 * MS};

	CHECK(!(promised_for(&known, AN_EVENT_AWAITED).flags & AN_UNAWAITED));
	CHECK(promised_for(&known, AN_EVENT_UNAWAITED).flags & AN_UNAWAITED);
	CHECK_EQ(promised_for(&known, AN_EVENT_UNAWAITED).deadline_rel_ns,
		 promised_for(&known, AN_EVENT_AWAITED).deadline_rel_ns);
	CHECK(promised_for(&unknown, AN_EVENT_UNAWAITED).deadline_rel_ns >
	      promised_for(&known, AN_EVENT_UNAWAITED).deadline_rel_ns);
	/* One that took longer, not long ago, is due as late, but it is waited for. */
	CHECK(an_learn_may_be_interactive(&slow, AN_EVENT_AWAITED, BOUND));
	CHECK(!(promised_for(&slow, AN_EVENT_AWAITED).flags & AN_UNAWAITED));
	CHECK_EQ(promised_for(&slow, AN_EVENT_AWAITED).deadline_rel_ns,
		 promised_for(&unknown, AN_EVENT_UNAWAITED).deadline_rel_ns);
}

/* A learnt contract, awake, on CPU 0, of a task that uses this part of it on average. */
static u32 create_learnt(u64 service_ns, u32 part, u64 now_ns)
{
	struct an_learner l = {.jobs = AN_LEARN_AVERAGED, .largest_ns = service_ns};
	struct an_promise promise = {0};
	u32 index;

	an_learn_promise(&l, BOUND, &promise);
	index = an_contract_create(&set, &promise);
	CHECK(index != AN_NONE);
	an_learnt_assure(&set, contract(index), part);
	an_contract_wake(&set, index, now_ns);
	return index;
}

TEST(what_is_offered_anew_differs_by_an_eighth_in_budget_or_deadline)
{
	struct an_learner l = {.largest_ns = 8 * MS};
	struct an_promise promise = {0};
	u32 index;

	an_contracts_init(&set, 0);
	set.learn_bound = BOUND;
	index = create_learnt(8 * MS, 200, 1000 * MS);
	an_learn_promise(&l, BOUND, &promise);
	CHECK(!an_learnt_differs(&promise, contract(index)));
	promise.budget_ns += 2 * MS - 1;
	CHECK(!an_learnt_differs(&promise, contract(index)));
	promise.budget_ns++;
	CHECK(an_learnt_differs(&promise, contract(index)));
	an_learn_promise(&l, BOUND, &promise);
	promise.deadline_rel_ns -= 14400000 / 8;
	CHECK(an_learnt_differs(&promise, contract(index)));
}

/* A thousand threads that sleep keep nobody from a promise, and not for long from being learnt. */
TEST(what_is_learnt_leaves_room_for_what_is_promised)
{
	struct an_learner l = {.largest_ns = MS};
	struct an_promise learnt = {0}, promised = {1, 10, 0, 0, 0, AN_HARD, 0};
	u64 now_ns = 1000 * MS, later_ns = now_ns + AN_MAX_PERIOD_NS;

	an_contracts_init(&set, 0);
	set.learn_bound = BOUND;
	an_learn_promise(&l, BOUND, &learnt);
	for (u32 at = 0; at < AN_MAX_LEARNT; at++)
		an_contract_sleep(&set, create_learnt(MS, 10, now_ns), now_ns);
	CHECK_EQ(set.learnt, AN_MAX_LEARNT);
	CHECK_EQ(an_contract_create(&set, &learnt), AN_NONE);
	for (u32 at = 1; at < AN_MAX_CONTRACTS - AN_MAX_LEARNT; at++)
		CHECK(an_contract_create(&set, &promised) != AN_NONE);
	CHECK_EQ(an_contract_create(&set, &promised), AN_NONE);
	CHECK_EQ(an_learnt_too_many(&set), AN_MAX_LEARNT / 8);

	/* Not one that is awake, has slept for as long as a period may last, or was promised. */
	CHECK(!an_learnt_gives_way(&set, contract(1), later_ns));
	CHECK(!an_learnt_gives_way(&set, contract(AN_MAX_LEARNT + 1), later_ns + 1));
	CHECK(an_learnt_gives_way(&set, contract(1), later_ns + 1));
	an_contract_wake(&set, 1, later_ns);
	CHECK(!an_learnt_gives_way(&set, contract(1), later_ns + 1));
	CHECK_EQ(an_contract_remove(&set, 2), 0);
	CHECK_EQ(set.learnt, AN_MAX_LEARNT - 1);
	CHECK_EQ(an_contract_create(&set, &promised), 2);
	CHECK_EQ(an_contract_create(&set, &learnt), AN_NONE); /* the slot is taken, not the room */
	CHECK_EQ(an_contract_remove(&set, 2), 0);
	CHECK_EQ(an_contract_create(&set, &learnt), 2);
	for (u32 at = 3; at < 3 + AN_MAX_LEARNT / 8; at++)
		CHECK_EQ(an_contract_remove(&set, at), 0);
	CHECK_EQ(an_learnt_too_many(&set), 0);
	check_contracts(1);
}

/* Could it run on CPU 0? */
static bool would_run(u32 index, u64 now_ns)
{
	return an_learnt_would_run(&set, an_contract_cpu(&set, 0), contract(index), now_ns);
}

/* The contract that runs now, on the only CPU: what is overdrawn stands back before the pick. */
static u32 next_to_run(u64 now_ns)
{
	u32 rule;

	while (an_contracts_overdrawn(&set, 0, now_ns))
		;
	return an_contracts_pick(&set, 0, now_ns, false, &rule);
}

TEST(learnt_contracts_come_after_promised_ones_shorter_jobs_first)
{
	u64 now_ns = 1000 * MS;
	u32 promised, film, key, rule;

	an_contracts_init(&set, 0);
	set.learn_bound = BOUND;
	film = create_learnt(16 * MS, 200, now_ns);
	key = create_learnt(2 * MS, 10, now_ns);
	CHECK_EQ(an_contracts_pick(&set, 0, now_ns, false, &rule), key);
	CHECK_EQ(rule, AN_RULE_LEARNT);
	CHECK(would_run(key, now_ns));
	promised = create_on(0, 5 * MS, 100 * MS, 0, 0, AN_HARD);
	an_contract_wake(&set, promised, now_ns);
	CHECK_EQ(an_contracts_pick(&set, 0, now_ns, false, &rule), promised);
	CHECK(!would_run(key, now_ns));
	an_contract_sleep(&set, promised, now_ns);
	CHECK(would_run(key, now_ns));
	an_contract_sleep(&set, key, now_ns);
	CHECK_EQ(an_contracts_pick(&set, 0, now_ns, false, &rule), film);
	check_contracts(1);
}

/*
 * A film has begun its frame when a key arrives; the server that is to answer that one, whose jobs
 * may be longer than what is left of the frame, comes before it: the key is waited for.
 */
TEST(a_job_is_as_urgent_as_the_one_that_has_woken_it)
{
	u64 now_ns = 1000 * MS;
	u32 film, key, server;

	an_contracts_init(&set, 0);
	set.learn_bound = BOUND;
	film = create_learnt(6 * MS, 300, now_ns);
	key = create_learnt(MS, 20, now_ns);
	server = create_learnt(5 * MS, 200, now_ns);
	for (u32 index = film; index <= server; index++)
		an_contract_sleep(&set, index, now_ns);
	now_ns += 100 * MS; /* all are sure of what they need */
	an_contract_wake(&set, film, now_ns);
	now_ns += 4 * MS;
	an_contract_wake(&set, key, now_ns);
	CHECK_EQ(next_to_run(now_ns), key);
	an_contract_wake(&set, server, now_ns);
	an_contract_sleep(&set, key, now_ns);
	CHECK_EQ(next_to_run(now_ns), film);
	an_contract_inherit_deadline(&set, server, contract(key)->job_deadline_ns);
	CHECK_EQ(next_to_run(now_ns), server);
	check_contracts(1);
	/* Its next job is due by itself; and a later deadline is none to inherit. */
	an_contract_sleep(&set, server, now_ns);
	an_contract_wake(&set, server, now_ns);
	CHECK_EQ(contract(server)->job_deadline_ns, now_ns + 7500000);
	an_contract_inherit_deadline(&set, server, now_ns + 8 * MS);
	CHECK_EQ(contract(server)->job_deadline_ns, now_ns + 7500000);
	CHECK_EQ(next_to_run(now_ns), film);
}

/* It inherits that one's deadline, but not before it is done if it takes as long as on average. */
TEST(no_job_inherits_a_deadline_before_which_it_is_not_done)
{
	struct an_learner l = {.largest_ns = 5 * MS, .mean_ns = 2 * MS};

	CHECK_EQ(an_learn_inherited_ns(&l, 1003 * MS, 1000 * MS), 1003 * MS);
	CHECK_EQ(an_learn_inherited_ns(&l, 1001 * MS, 1000 * MS), 1002 * MS);
	CHECK_EQ(an_learn_inherited_ns(&l, 900 * MS, 1000 * MS), 1002 * MS);
}

/*
 * The answer to a key wakes its program, which is not sure of any time, and whose jobs mostly take
 * long: it is due when the answer was, until that has passed; then as if it had just begun.
 */
TEST(an_inherited_deadline_stands_until_it_has_passed)
{
	u64 now_ns = 1000 * MS;
	u32 film, key;

	an_contracts_init(&set, 0);
	set.learn_bound = BOUND;
	film = create_learnt(6 * MS, 300, now_ns);
	an_contract_sleep(&set, film, now_ns);
	now_ns += 100 * MS;
	an_contract_wake(&set, film, now_ns);
	key = create_learnt(5 * MS, 0, now_ns);
	contract(key)->sure = 0;
	an_contract_inherit_deadline(&set, key, now_ns + 3 * MS);
	now_ns += 2 * MS;
	CHECK_EQ(next_to_run(now_ns), key);
	CHECK_EQ(contract(key)->job_deadline_ns, now_ns + MS);
	CHECK_EQ(an_contract_run_ns(&set, key, now_ns), MS); /* then it is looked at again */
	now_ns += MS;
	CHECK_EQ(next_to_run(now_ns), film);
	CHECK_EQ(contract(key)->job_deadline_ns, now_ns + 7500000);
}

/*
 * A turn that is handed on goes to who would have been picked: of drawn sets each contract that
 * an_learnt_comes_next() says so of is the next, once it has woken with that deadline and the one
 * that is served sleeps.
 */
TEST(a_turn_is_handed_on_to_the_one_that_comes_next)
{
	u32 handed = 0, kept = 0;

	for (u64 seed = test_seed(); seed < test_seed() + 2000; seed++) {
		struct random r = {.state = seed};
		u64 now_ns = 1000 * MS, due_ns;
		u32 served, woken, count = 2 + random_below(&r, 8);

		test_scenario(seed);
		an_contracts_init(&set, 0);
		set.learn_bound = BOUND;
		for (u32 i = 0; i < count; i++) {
			woken = create_learnt(random_below(&r, 20) * MS / 2, random_below(&r, 400),
					      now_ns);
			now_ns += random_below(&r, 4) * MS;
		}
		an_contract_sleep(&set, woken, now_ns);
		served = next_to_run(now_ns);
		now_ns += random_below(&r, 2) * MS;
		due_ns = now_ns + 1 + random_below(&r, 30) * MS;
		if (!an_learnt_comes_next(&set, woken, served, due_ns)) {
			kept++;
			continue;
		}
		handed++;
		an_contract_sleep(&set, served, now_ns);
		an_contract_wake(&set, woken, now_ns);
		an_contract_inherit_deadline(&set, woken, due_ns);
		CHECK_EQ(next_to_run(now_ns), woken);
		check_contracts(1);
	}
	CHECK(handed > 200 && kept > 200);
}

/* What a contract has run in the turns of others it has used of what all may. */
TEST(a_turn_that_is_handed_on_is_charged_to_each_that_had_a_part_of_it)
{
	u64 now_ns = 1000 * MS;
	u32 film, server;
	s64 left_ns;

	an_contracts_init(&set, 0);
	set.learn_bound = BOUND;
	film = create_learnt(6 * MS, 300, now_ns);
	server = create_learnt(2 * MS, 100, now_ns);
	an_contract_sleep(&set, server, now_ns);
	CHECK_EQ(next_to_run(now_ns), film);
	an_contract_charge_turn(&set, server, 0, now_ns);
	left_ns = an_contract_cpu(&set, 0)->learnt.left_ns;
	now_ns += 3 * MS;
	an_contract_charge(&set, film, 2 * MS, now_ns);
	an_contract_charge_turn(&set, server, MS, now_ns);
	CHECK_EQ(contract(server)->service_ns, MS);
	left_ns -= an_contract_cpu(&set, 0)->learnt.left_ns;
	CHECK(left_ns >= (s64)(3 * MS - 3 * MS * BOUND / 1024));
	check_contracts(1);
}

/* Nor does one that was promised something, or sleeps, inherit anything. */
TEST(only_learnt_jobs_that_have_begun_inherit_a_deadline)
{
	u64 now_ns = 1000 * MS;
	u32 promised, asleep;

	an_contracts_init(&set, 0);
	set.learn_bound = BOUND;
	promised = create_on(0, 5 * MS, 100 * MS, 0, 0, AN_HARD);
	an_contract_wake(&set, promised, now_ns);
	asleep = create_learnt(5 * MS, 200, now_ns);
	an_contract_sleep(&set, asleep, now_ns);
	an_contract_inherit_deadline(&set, promised, now_ns + MS);
	an_contract_inherit_deadline(&set, asleep, now_ns + MS);
	CHECK_EQ(contract(promised)->job_deadline_ns, now_ns + 100 * MS);
	CHECK_EQ(contract(asleep)->job_deadline_ns, now_ns + 7500000);
	check_contracts(1);
}

/* Seeming to be interactive is worth the bound, however many seem so. */
TEST(what_is_learnt_gets_the_bound_and_no_more)
{
	u64 now_ns = 0, used_ns = 0;
	u32 contracts[8];

	an_contracts_init(&set, 0);
	set.learn_bound = BOUND;
	for (u32 i = 0; i < 8; i++)
		contracts[i] = create_learnt(20 * MS, 60, now_ns);
	for (; now_ns < 20000 * MS; now_ns += MS) {
		u64 kick = 0;
		u32 index;

		an_contracts_expire(&set, 0, now_ns, &kick);
		index = next_to_run(now_ns);
		if (!index)
			continue;
		an_contract_charge(&set, index, MS, now_ns + MS);
		used_ns += MS;
		if (contract(index)->service_ns % (20 * MS) == 0) {
			an_contract_sleep(&set, index, now_ns + MS);
			an_contract_wake(&set, index, now_ns + MS);
		}
	}
	CHECK(contracts[7] != AN_NONE);
	CHECK(would_run(contracts[7], now_ns + 1000 * MS));
	CHECK(used_ns >= 9900 * MS && used_ns <= 10000 * MS + AN_BUCKET_NS);
}

/*
 * Four learnt contracts that want all they can get beside one that is promised 60 of 100 ms, for
 * ten seconds, and uses so many of them. What the learnt ones had [ms of 10,000].
 */
static u64 learnt_beside(u64 used_ms)
{
	u64 now_ns = 0, learnt_ns = 0;
	u32 promised;

	an_contracts_init(&set, 0);
	set.bound = set.learn_bound = 820;
	promised = create_on(0, 60 * MS, 100 * MS, 0, 0, AN_HARD);
	for (u32 i = 0; i < 4; i++)
		create_learnt(20 * MS, 60, now_ns);
	for (; now_ns < 10000 * MS; now_ns += MS) {
		u64 kick = 0;
		u32 index;

		if (used_ms && now_ns % (100 * MS) == 0)
			an_contract_wake(&set, promised, now_ns);
		an_contracts_expire(&set, 0, now_ns, &kick);
		index = next_to_run(now_ns);
		if (!index)
			continue;
		an_contract_charge(&set, index, MS, now_ns + MS);
		if (index != promised)
			learnt_ns += MS;
		else if (contract(index)->service_ns % (used_ms * MS) == 0)
			an_contract_sleep(&set, index, now_ns + MS);
	}
	CHECK_EQ(contract(promised)->service_ns, used_ms * 100 * MS);
	return learnt_ns / MS;
}

/* What was promised and is not used is there for what is learnt, and what is used is not. */
TEST(what_promised_ones_leave_learnt_ones_may_use)
{
	static const u64 used_ms[] = {0, 20, 40, 60};

	for (u32 i = 0; i < 4; i++) {
		u64 left_ms = 8000 - used_ms[i] * 100, had_ms = learnt_beside(used_ms[i]);

		CHECK(had_ms + 100 >= left_ms);
		CHECK(had_ms <= left_ms + 100 + AN_BUCKET_NS / MS);
	}
}

/* Who has slept ever since it was taken leaves room for others, as those that use it do not. */
TEST(there_is_room_while_the_bound_is_not_used)
{
	struct an_contract_cpu *q = an_contract_cpu(&set, 0);
	u64 now_ns = 1000 * MS;
	u32 index;

	an_contracts_init(&set, 0);
	set.learn_bound = BOUND;
	index = create_learnt(20 * MS, 60, now_ns);
	CHECK(an_learnt_has_room(&set, q, BOUND - 100, 100, now_ns));
	CHECK(an_learnt_has_room(&set, q, BOUND, 100, now_ns)); /* nobody has used anything */
	an_contract_charge(&set, index, 100 * MS, now_ns);
	CHECK(!an_learnt_has_room(&set, q, BOUND, 100, now_ns));
	CHECK(an_learnt_has_room(&set, q, BOUND - 100, 100, now_ns));
	CHECK(an_learnt_has_room(&set, q, BOUND, 100, now_ns + 100 * MS));
}

/* A film has what it uses however many batch programs seem to be interactive. */
TEST(what_one_is_sure_of_others_cannot_use)
{
	u64 now_ns = 0, late = 0;
	u32 film;

	an_contracts_init(&set, 0);
	set.learn_bound = BOUND;
	film = create_learnt(8 * MS, 8 * 1024 / 33, now_ns);
	for (u32 i = 0; i < 8; i++)
		create_learnt(MS, 100, now_ns); /* shorter jobs: they come first */
	for (u32 frame = 0; frame < 1000; frame++) {
		u64 before_ns = contract(film)->service_ns, until_ns = now_ns + 33 * MS;

		an_contract_wake(&set, film, now_ns);
		for (; now_ns < until_ns; now_ns += MS) {
			u64 kick = 0;
			u32 index;

			an_contracts_expire(&set, 0, now_ns, &kick);
			index = next_to_run(now_ns);
			if (!index)
				continue;
			an_contract_charge(&set, index, MS, now_ns + MS);
			if (contract(film)->service_ns == before_ns + 8 * MS)
				an_contract_sleep(&set, film, now_ns + MS);
		}
		late += contract(film)->service_ns < before_ns + 8 * MS;
	}
	CHECK_EQ(late, 0);
	check_contracts(9);
}

/* A set of one learnt contract: of sound that takes 0.7 of every 2.7 ms, and sleeps. */
static u32 sound_alone(u64 now_ns)
{
	u32 sound;

	an_contracts_init(&set, 0);
	set.learn_bound = BOUND;
	sound = create_learnt(700000, 260, now_ns);
	an_contract_sleep(&set, sound, now_ns);
	return sound;
}

/* A newcomer, however long it waits, does not stand before one that keeps to what it uses. */
TEST(who_is_not_sure_of_its_time_does_not_gain_by_waiting)
{
	u64 now_ns = 1000 * MS;
	u32 sound = sound_alone(now_ns), newcomer;

	now_ns += 10 * MS;
	newcomer = create_learnt(2 * MS, 200, now_ns);
	CHECK_EQ(next_to_run(now_ns), newcomer);
	now_ns += 3 * MS; /* its deadline has passed */
	an_contract_wake(&set, sound, now_ns);
	CHECK_EQ(next_to_run(now_ns), sound);
	/* Nor may it go on before others for longer than a job of it is expected to take. */
	CHECK_EQ(an_contract_run_ns(&set, newcomer, now_ns), 2 * MS);
	an_contract_charge(&set, sound, 700000, now_ns + 700000);
	an_contract_sleep(&set, sound, now_ns + 700000);
	CHECK_EQ(next_to_run(now_ns + 700000), newcomer);
	check_contracts(2);
}

/*
 * What it has saved up counts: its deadline comes nearer, as near as the job can still be done. So
 * a short job that can be in time does not wait for a long one that cannot.
 */
TEST(who_is_sure_of_its_time_is_served_by_when_it_can_be_done)
{
	u64 now_ns = 1000 * MS;
	u32 sound = sound_alone(now_ns), film = create_learnt(4 * MS, 150, now_ns);

	an_contract_sleep(&set, film, now_ns);
	now_ns += 100 * MS; /* they save all that they may */
	an_contract_wake(&set, film, now_ns);
	an_contract_wake(&set, sound, now_ns);
	CHECK_EQ(next_to_run(now_ns), sound);
	an_contract_sleep(&set, sound, now_ns);
	now_ns += 5 * MS; /* 0.6 ms before its deadline */
	an_contract_wake(&set, sound, now_ns);
	CHECK_EQ(next_to_run(now_ns), sound);
	an_contract_sleep(&set, sound, now_ns);
	CHECK_EQ(next_to_run(now_ns), film);
	an_contract_charge(&set, film, 3 * MS, now_ns += 3 * MS);
	an_contract_wake(&set, sound, now_ns);
	CHECK_EQ(next_to_run(now_ns), sound);
	an_contract_sleep(&set, sound, now_ns);
	an_contract_charge(&set, film, MS / 2, now_ns += MS / 2);
	an_contract_wake(&set, sound, now_ns);
	/* It ends before sound need have. Then it is as one that begins. */
	CHECK_EQ(next_to_run(now_ns), film);
	an_contract_charge(&set, film, MS / 2, now_ns += MS / 2);
	CHECK_EQ(next_to_run(now_ns), sound);
	check_contracts(2);
}

/* Who may run nothing is not in the way of who may, though what is left of that be little. */
TEST(who_has_used_all_that_it_may_is_not_waited_for)
{
	u64 now_ns = 1000 * MS;
	u32 sound = sound_alone(now_ns), newcomer;
	struct an_contract_cpu *q = an_contract_cpu(&set, 0);

	an_contract_wake(&set, sound, now_ns);
	now_ns += MS;
	newcomer = create_learnt(100000, 0, now_ns);
	q->learnt.left_ns = 0;
	contract(sound)->own.left_ns = 200000; /* of the 0.7 ms that it needs */
	q->learnt.filled_ns = contract(sound)->own.filled_ns = now_ns;
	CHECK_EQ(next_to_run(now_ns), sound);
	CHECK(!would_run(newcomer, now_ns));
	check_contracts(2);
}

/* Short-lived programs are many, and their slots may stay taken for a while. */
TEST(what_is_left_by_ended_contracts_others_can_be_sure_of)
{
	u64 now_ns = 0;
	u32 sound;

	an_contracts_init(&set, 0);
	set.learn_bound = BOUND;
	for (u32 i = 0; i < 40; i++, now_ns += MS) {
		u32 index = create_learnt(2 * MS, 60, now_ns);

		CHECK(contract(index)->sure > 60);
		an_contract_end(&set, index, now_ns);
	}
	sound = create_learnt(700000, 260, now_ns);
	CHECK(contract(sound)->sure > 260);
	check_contracts(41);
}

/* Eight compilers' drivers used much when they began, and wait for the compilers now. */
TEST(what_those_are_sure_of_that_sleep_for_long_others_can_be_sure_of)
{
	u64 now_ns = 1000 * MS;
	u32 sound;

	an_contracts_init(&set, 0);
	set.learn_bound = BOUND;
	for (u32 i = 1; i <= 8; i++)
		CHECK_EQ(create_learnt(2 * MS, 60, now_ns), i);
	sound = create_learnt(1300000, 250, now_ns);
	CHECK(contract(sound)->sure < 60);
	for (u32 i = 1; i <= 8; i++)
		an_contract_sleep(&set, i, now_ns);
	for (u32 job = 0; job < 100; job++) {
		an_contract_charge(&set, sound, 1300000, now_ns + 1300000);
		an_contract_sleep(&set, sound, now_ns + 1300000);
		now_ns += 5333000;
		if (job < 40) /* not for so long */
			CHECK(contract(sound)->sure < 60);
		an_contract_wake(&set, sound, now_ns);
	}
	CHECK(contract(sound)->sure > 250);
	for (u32 i = 1; i <= 8; i++)
		an_contract_wake(&set, i, now_ns);
	CHECK(contract(1)->sure > 60);
	CHECK(contract(8)->sure < 60);
	CHECK(set.cpus[0].sure <= BOUND);
	check_contracts(9);
}

/* Overload of contracts with windows leaves the others their part, unless nobody wants it. */
TEST(overload_keeps_within_what_contracts_may_have)
{
	u64 now_ns = 0, used_ns[2] = {0};
	u32 rule;

	an_contracts_init(&set, 0);
	set.bound = 820;
	for (u32 i = 0; i < 12; i++)
		an_contract_wake(&set, create_on(0, 3 * MS, 30 * MS, 1, 2, AN_WINDOW), 0);
	for (; now_ns < 60000 * MS; now_ns += MS) {
		bool alone = now_ns >= 30000 * MS;
		u64 kick = 0;
		u32 index;

		an_contracts_expire(&set, 0, now_ns, &kick);
		index = an_contracts_pick(&set, 0, now_ns, alone, &rule);
		if (!index) {
			CHECK(an_contracts_wait_ns(&set, 0) <= 2 * MS);
			continue;
		}
		an_contract_charge(&set, index, MS, now_ns + MS);
		used_ns[alone] += MS;
	}
	CHECK(used_ns[0] >= 24000 * MS && used_ns[0] <= 24024 * MS + AN_BUCKET_NS);
	CHECK_EQ(used_ns[1], 30000 * MS);
	for (u32 index = 1; index <= 12; index++)
		CHECK_EQ(contract(index)->violations, 0);
	/* What was nobody's loss is not held against them. */
	for (u32 ms = 0; ms < 4; ms++, now_ns += MS) {
		u64 kick = 0;

		an_contracts_expire(&set, 0, now_ns, &kick);
		rule = AN_RULE_NONE;
		if (an_contracts_pick(&set, 0, now_ns, false, &rule))
			return;
	}
	CHECK(false);
}
