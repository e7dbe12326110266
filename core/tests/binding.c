// SPDX-License-Identifier: GPL-2.0
/* Whose work a thread does (binding.h): one binding, and the set of recent ones. */
#include "random.h"
#include "test.h"

#define MS 1000000ULL
#define HALF AN_BINDING_HALF_LIFE_NS

static u32 share_of(struct an_binding *b, u32 container)
{
	u32 i = an_binding_find(b, container);

	return i < b->count ? an_binding_share(b, i) : 0;
}

/* What is used is paid by the container the thread is bound to at the moment. */
TEST(the_present_binding_pays)
{
	struct an_binding b;

	an_binding_init(&b, 7, 0);
	CHECK_EQ(an_binding_charge(&b, 5 * MS, 5 * MS), 7);
	an_binding_bind(&b, 9, 5 * MS);
	CHECK_EQ(an_binding_charge(&b, 15 * MS, 20 * MS), 9);
	CHECK_EQ(b.count, 2);
	CHECK_EQ(share_of(&b, 7), 256);
	CHECK_EQ(share_of(&b, 9), 768);
	CHECK_EQ(share_of(&b, 8), 0);
	an_binding_bind(&b, 7, 20 * MS); /* known: no new member */
	CHECK_EQ(b.count, 2);
	CHECK_EQ(an_binding_payer(&b), 7);
	CHECK_EQ(share_of(&b, 9), 768);
}

/* A display server that draws for three clients, 6, 3 and 1 ms of each 20. */
TEST(a_display_server_is_weighed_by_its_clients)
{
	static const u64 ms[3] = {6, 3, 1};
	struct an_binding b;
	u64 now_ns = 0;

	an_binding_init(&b, 10, 0);
	for (u32 frame = 0; frame < 200; frame++) {
		for (u32 i = 0; i < 3; i++) {
			an_binding_bind(&b, 10 + i, now_ns);
			now_ns += ms[i] * MS;
			CHECK_EQ(an_binding_charge(&b, ms[i] * MS, now_ns), 10 + i);
		}
		now_ns += 10 * MS;
	}
	CHECK_EQ(b.count, 3);
	for (u32 i = 0; i < 3; i++)
		CHECK(share_of(&b, 10 + i) + 1 >= 1024 * ms[i] / 10 &&
		      share_of(&b, 10 + i) <= 1024 * ms[i] / 10 + 1);
}

/* Use is halved every half-life, and one not served for five seconds is dropped. */
TEST(what_is_past_counts_less)
{
	struct an_binding b;

	an_binding_init(&b, 1, 0);
	an_binding_charge(&b, 64 * MS, HALF / 2);
	an_binding_bind(&b, 2, HALF / 2);
	an_binding_charge(&b, 16 * MS, HALF + HALF / 2); /* one halving behind it */
	CHECK_EQ(an_bound(&b, 0)->used_ns, 32 * MS);
	an_binding_prune(&b, 2 * HALF - 1);
	CHECK_EQ(an_bound(&b, 0)->used_ns, 32 * MS);
	an_binding_prune(&b, 2 * HALF);
	CHECK_EQ(an_bound(&b, 0)->used_ns, 16 * MS);
	CHECK_EQ(an_bound(&b, 1)->used_ns, 8 * MS);
	an_binding_prune(&b, HALF / 2 + AN_BINDING_KEEP_NS - 1);
	CHECK_EQ(b.count, 2);
	an_binding_prune(&b, HALF / 2 + AN_BINDING_KEEP_NS);
	CHECK_EQ(b.count, 1);
	CHECK_EQ(an_binding_payer(&b), 2);
	an_binding_prune(&b, 1000 * AN_BINDING_KEEP_NS); /* never the present one */
	CHECK_EQ(an_binding_payer(&b), 2);
	CHECK_EQ(an_binding_share(&b, 0), 1024); /* nothing left to weigh: equal parts */
}

/* A fifth takes the place of the one bound longest ago. */
TEST(the_set_is_bounded)
{
	struct an_binding b;

	an_binding_init(&b, 1, 0);
	for (u32 container = 2; container <= 4; container++)
		an_binding_bind(&b, container, container * MS);
	an_binding_bind(&b, 1, 5 * MS);
	an_binding_bind(&b, 5, 6 * MS);
	CHECK_EQ(b.count, 4);
	CHECK_EQ(an_binding_find(&b, 2), 4);
	CHECK(an_binding_find(&b, 1) < 4);
	an_binding_reset(&b, 7 * MS);
	CHECK_EQ(b.count, 1);
	CHECK_EQ(an_binding_payer(&b), 5);
}

/* A container that is no more leaves the set; the thread bound to it goes elsewhere. */
TEST(a_container_can_be_forgotten)
{
	struct an_binding b;

	an_binding_init(&b, 1, 0);
	an_binding_bind(&b, 2, MS);
	an_binding_forget(&b, 1, 0, 2 * MS);
	CHECK_EQ(b.count, 1);
	CHECK_EQ(an_binding_payer(&b), 2);
	an_binding_forget(&b, 2, 3, 3 * MS);
	CHECK_EQ(b.count, 1);
	CHECK_EQ(an_binding_payer(&b), 3);
	an_binding_forget(&b, 3, 0, 4 * MS);
	CHECK_EQ(b.count, 0);
	CHECK_EQ(an_binding_payer(&b), 0);
	CHECK_EQ(an_binding_charge(&b, MS, 5 * MS), 0);
	an_binding_bind(&b, 4, 6 * MS);
	CHECK_EQ(an_binding_payer(&b), 4);
}

/* Asked and answered a few times, a server works for its client; fed and silent, for itself. */
TEST(answers_make_a_client)
{
	struct an_binding b = {0};
	u64 now_ns = 7 * MS;

	for (u32 i = 0; i < 100; i++) {
		CHECK(!an_binding_ask(&b, 1, now_ns += MS)); /* a pipe */
		CHECK_EQ(an_binding_ask(&b, 2, now_ns += MS), i >= AN_BINDING_ANSWERS);
		an_binding_answer(&b);
	}
	CHECK_EQ(b.count, 2);
	/* Others that come and go in between change nothing. */
	an_binding_forget(&b, 1, 2, now_ns);
	CHECK(!an_binding_ask(&b, 3, now_ns += MS));
	CHECK(an_binding_ask(&b, 2, now_ns += MS));
}

/* Much that is asked has no answer. Only a client that does not come back is forgotten. */
TEST(a_client_is_one_until_it_leaves_the_set)
{
	struct an_binding b = {0};
	u64 now_ns = 0;

	an_binding_answer(&b); /* nobody has asked */
	CHECK_EQ(b.count, 0);
	for (u32 i = 0; i < AN_BINDING_ANSWERS; i++) {
		CHECK(!an_binding_ask(&b, 1, now_ns += MS));
		an_binding_answer(&b);
	}
	CHECK(an_binding_ask(&b, 1, now_ns += 1000 * AN_BINDING_KEEP_NS));
	CHECK(!an_binding_ask(&b, 2, now_ns += MS));
	CHECK(an_binding_ask(&b, 1, now_ns += AN_BINDING_KEEP_NS - 1));
	CHECK(!an_binding_ask(&b, 2, now_ns));
	CHECK(!an_binding_ask(&b, 1, now_ns += AN_BINDING_KEEP_NS));
}

/* One of several threads of a server, another of which has answered. */
TEST(who_is_vouched_for_is_a_client)
{
	struct an_binding b = {0};

	an_binding_vouch(&b); /* nobody has asked */
	CHECK_EQ(b.count, 0);
	CHECK(!an_binding_ask(&b, 1, MS));
	an_binding_vouch(&b);
	CHECK(an_binding_answers(&b));
	CHECK(an_binding_ask(&b, 1, 2 * MS));
	CHECK(!an_binding_ask(&b, 2, 2 * MS));
}

/* Whatever is done: nobody twice, the payer in the set, shares that add up. */
TEST(random_bindings_stay_sound)
{
	for (u64 seed = test_seed(); seed < test_seed() + 200; seed++) {
		struct random r = {.state = seed};
		struct an_binding b;
		u64 now_ns = random_below(&r, 1000 * HALF);
		u32 bound = 1;

		test_scenario(seed);
		an_binding_init(&b, bound, now_ns);
		for (u32 step = 0; step < 300; step++) {
			u32 container = 1 + random_below(&r, 7), sum = 0;
			u64 ran_ns = random_scale(&r, 34);

			now_ns += ran_ns;
			switch (random_below(&r, 6)) {
			case 0:
			case 1:
				an_binding_bind(&b, container, now_ns);
				bound = container;
				break;
			case 2:
				an_binding_forget(&b, container, 8, now_ns);
				bound = bound == container ? 8 : bound;
				break;
			case 3:
				if (random_chance(&r, 10))
					an_binding_reset(&b, now_ns);
				break;
			case 4:
				an_binding_answer(&b);
				break;
			default:
				CHECK_EQ(an_binding_charge(&b, ran_ns, now_ns), bound);
			}
			an_binding_prune(&b, now_ns);
			CHECK_EQ(an_binding_payer(&b), bound);
			CHECK(b.count >= 1 && b.count <= AN_BINDINGS_MAX && b.now < b.count);
			for (u32 i = 0; i < b.count; i++) {
				sum += an_binding_share(&b, i);
				CHECK_EQ(an_binding_find(&b, b.set[i].container), i);
				CHECK(now_ns - b.set[i].bound_ns < AN_BINDING_KEEP_NS);
			}
			CHECK(sum <= 1024 && sum + AN_BINDINGS_MAX > 1024);
		}
	}
}
