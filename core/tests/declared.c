// SPDX-License-Identifier: GPL-2.0
/* The declarations of programs about their threads (declared.h). */
#include "contract_fixture.h"

#define MS 1000000ULL
#define BOUND 819u

static const struct an_declared game = {
	.period_ns = 16666667, .deadline_ns = 16666667, .budget_ns = 9 * MS, .session = 1};

/* So many jobs of this service, one in every period of the game. */
static struct an_learner seen(u32 jobs, u64 service_ns)
{
	struct an_learner l;
	u64 now_ns = 1000 * MS;

	an_learn_begin(&l, now_ns);
	while (jobs--) {
		an_learn_service(&l, service_ns);
		now_ns += game.period_ns;
		an_learn_wake(&l, now_ns);
	}
	return l;
}

TEST(what_is_declared_is_believed_until_it_has_been_seen)
{
	struct an_learner begins = seen(0, 0), known = seen(AN_LEARN_AVERAGED, 2 * MS);

	CHECK_EQ(an_declared_service_ns(&game, &begins), 9 * MS);
	CHECK_EQ(an_declared_part(&game, &begins), 9 * MS * 1024 / game.period_ns);
	CHECK_EQ(an_declared_service_ns(&game, &known), 2 * MS);
	CHECK_EQ(an_declared_part(&game, &known), an_learn_part(&known));
}

TEST(a_job_begins_when_a_thread_that_joins_wakes_next)
{
	struct an_learner l = seen(AN_LEARN_AVERAGED, 20 * MS);

	an_declared_begin(&l, 5000 * MS);
	CHECK(!an_learn_goes_on_soon(&l, 5000 * MS + 1000));
	CHECK_EQ(an_declared_service_ns(&game, &l), 9 * MS);
}

TEST(who_takes_more_than_it_declares_is_taken_for_what_it_takes)
{
	struct an_learner greedy = seen(AN_LEARN_ENOUGH, 14 * MS);

	CHECK_EQ(an_declared_service_ns(&game, &greedy), 14 * MS);
	CHECK(an_declared_part(&game, &greedy) > 9 * MS * 1024 / game.period_ns);
}

TEST(a_declared_job_is_due_when_its_program_says_at_the_latest)
{
	struct an_learner begins = seen(0, 0), known = seen(AN_LEARN_AVERAGED, 9 * MS);
	struct an_promise p = {0};

	an_declared_promise(&game, &begins, BOUND, 0, &p);
	CHECK(p.deadline_rel_ns <= game.deadline_ns && p.deadline_rel_ns >= 9 * MS);
	CHECK(an_promise_valid(&p));
	CHECK(!(p.flags & AN_UNAWAITED));
	/* Sooner, by its own word for this job. */
	an_declared_promise(&game, &known, BOUND, 10 * MS, &p);
	CHECK_EQ(p.deadline_rel_ns, 10 * MS);
	/* A thread that takes little is served soon, whatever it has time for. */
	known = seen(AN_LEARN_AVERAGED, MS / 2);
	an_declared_promise(&game, &known, BOUND, 0, &p);
	CHECK(p.deadline_rel_ns <= AN_LEARN_SHORT_JOBS * MS / 2);
}

TEST(who_declares_nothing_but_that_it_is_there_is_due_like_any_other)
{
	const struct an_declared there = {.session = 1};
	struct an_learner begins = seen(0, 0), known = seen(AN_LEARN_AVERAGED, 2 * MS);
	struct an_promise p = {0}, learnt = {0};

	an_declared_promise(&there, &begins, BOUND, 0, &p);
	CHECK(p.deadline_rel_ns <= MS);
	known.rhythm = (struct an_rhythm){};
	an_declared_promise(&there, &known, BOUND, 0, &p);
	an_learn_promise(&known, BOUND, &learnt);
	CHECK_EQ(p.deadline_rel_ns, learnt.deadline_rel_ns);
	CHECK_EQ(p.budget_ns, learnt.budget_ns);
}

TEST(a_declared_job_may_be_as_long_as_its_period)
{
	const struct an_declared robot = {.period_ns = 100 * MS, .session = 1};
	struct an_learner l = seen(0, 0);

	an_learn_service(&l, 60 * MS);
	CHECK(an_learn_goes_on(&l) && !an_declared_goes_on(&robot, &l));
	CHECK(an_declared_goes_on(&game, &l));
	an_learn_service(&l, 60 * MS);
	CHECK(an_declared_goes_on(&robot, &l));
}

TEST(a_surge_doubles_what_is_expected_for_a_while)
{
	struct an_learner l = seen(AN_LEARN_AVERAGED, 5 * MS);

	an_declared_surge(&l);
	CHECK_EQ(an_declared_service_ns(&game, &l), 10 * MS);
	for (u32 i = 0; i < 5; i++)
		an_declared_surge(&l);
	CHECK(an_declared_service_ns(&game, &l) <= AN_LEARN_SERVICE_MAX_NS);
}

/* A game that was promised less than its frames take, on a CPU where nothing else was promised. */
TEST(what_is_promised_to_a_session_spills_over)
{
	const struct an_promise promise = {.budget_ns = 4 * MS,
					   .period_ns = 16 * MS,
					   .deadline_rel_ns = 16 * MS,
					   .flags = AN_HARD | AN_SPILLS};
	u64 now_ns = 1000 * MS;
	u32 index, rule;
	struct an_contract *c;

	an_contracts_init(&set, 0);
	set.bound = set.learn_bound = BOUND;
	index = an_contract_create(&set, &promise);
	c = an_contract(&set, index);
	an_contract_wake(&set, index, now_ns);
	CHECK_EQ(an_contracts_pick(&set, 0, now_ns, false, &rule), index);
	CHECK_EQ(c->rank, AN_RANK_BUDGET);
	/* Its budget is used up: it counts as learnt, and its bucket is the common one. */
	now_ns += 4 * MS;
	an_contract_charge(&set, index, 4 * MS, now_ns);
	CHECK_EQ(c->rank, AN_RANK_EXTRA);
	CHECK(an_contract_has_budget(c));
	CHECK_EQ(an_contracts_overdrawn(&set, 0, now_ns), AN_NONE);
	CHECK_EQ(an_contracts_pick(&set, 0, now_ns, false, &rule), index);
	CHECK_EQ(rule, AN_RULE_LEARNT);
	/* When that is empty too it has its share, until its next budget. */
	an_contract_charge(&set, index, 2 * AN_BUCKET_NS, now_ns + MS);
	CHECK_EQ(an_contracts_overdrawn(&set, 0, now_ns + MS), index);
	CHECK(!an_contract_has_budget(c));
	CHECK_EQ(an_contracts_pick(&set, 0, now_ns + MS, false, &rule), AN_NONE);
	now_ns = 1016 * MS;
	CHECK_EQ(an_contracts_expire_one(&set, 0, now_ns), index);
	CHECK_EQ(c->rank, AN_RANK_BUDGET);
	CHECK_EQ(c->left_ns, 4 * MS);
}

TEST(what_spills_over_is_hard_and_has_no_window)
{
	struct an_promise p = {.budget_ns = MS, .period_ns = 10 * MS, .flags = AN_SPILLS};

	CHECK(!an_promise_valid(&p));
	p.flags |= AN_HARD;
	CHECK(an_promise_valid(&p));
	p.flags |= AN_RECLAIM;
	CHECK(!an_promise_valid(&p));
}
