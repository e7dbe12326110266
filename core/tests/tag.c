// SPDX-License-Identifier: GPL-2.0
/* Tags: exact division, wrapping comparison, waking. */
#include "random.h"
#include "test.h"

#define UNIT (1ULL << AN_TAG_SHIFT)

TEST(tags_compare_across_the_wrap)
{
	u64 before = ~0ULL - 5, after = before + 10;

	CHECK_EQ(an_tag_diff(after, before), 10);
	CHECK_EQ(an_tag_diff(before, after), -10);
	CHECK_EQ(an_tag_max(before, after), after);
	CHECK_EQ(an_tag_max(after, before), after);
	CHECK_EQ(an_tag_max(7, 7), 7);
}

/* However service is cut into quanta, tag * weight + remainder is the service given. */
TEST(charges_are_exact)
{
	struct random r = {test_seed()};

	for (u32 trial = 0; trial < 1000; trial++) {
		u32 weight = random_scale(&r, 13), rem = 0;
		u64 first = random_next(&r), tag = first, given = 0;

		test_scenario(test_seed());
		for (u32 i = 0; i < 100; i++) {
			u64 service_ns = random_scale(&r, 30);

			an_tag_charge(&tag, &rem, service_ns, weight);
			given += service_ns;
		}
		CHECK(rem < weight);
		CHECK((unsigned __int128)(tag - first) * weight + rem == (unsigned __int128)given
										 << AN_TAG_SHIFT);
	}
}

TEST(charges_are_bounded)
{
	u64 tag = 0;
	u32 rem = 0;

	an_tag_charge(&tag, &rem, 0, 1);
	CHECK_EQ(tag, UNIT);
	tag = 0;
	an_tag_charge(&tag, &rem, ~0ULL, 1);
	CHECK_EQ(tag, AN_CHARGE_MAX_NS << AN_TAG_SHIFT);
	CHECK(an_tag_diff(tag, 0) > 0);
	tag = 0;
	an_tag_charge(&tag, &rem, 3000000, AN_WEIGHT_IDLE);
	CHECK_EQ(tag, (3000000 * UNIT << 10) / AN_IDLE_PARTS);
	tag = 0;
	an_tag_charge(&tag, &rem, ~0ULL, AN_WEIGHT_IDLE);
	CHECK(an_tag_diff(tag, 0) > 0);
}

TEST(sleepers_start_at_v)
{
	u64 tag = 100;
	u32 rem = 3;

	an_tag_wake(&tag, &rem, 1000);
	CHECK_EQ(tag, 1000);
	CHECK_EQ(rem, 0);
}

TEST(a_short_sleep_forgives_nothing)
{
	u64 tag = 1000;
	u32 rem = 3;

	an_tag_wake(&tag, &rem, 990);
	CHECK_EQ(tag, 1000);
	CHECK_EQ(rem, 3);
	an_tag_wake(&tag, &rem, 1000);
	CHECK_EQ(tag, 1000);
}

/* A tag from an earlier round of the 64 bits would look far ahead, and starve its owner. */
TEST(stale_tags_are_no_debt)
{
	u64 vtime = 1ULL << 60, tag = vtime + AN_TAG_LEAD_MAX;
	u32 rem = 1;

	an_tag_wake(&tag, &rem, vtime);
	CHECK_EQ(tag, vtime + AN_TAG_LEAD_MAX);
	tag++;
	an_tag_wake(&tag, &rem, vtime);
	CHECK_EQ(tag, vtime);
	CHECK_EQ(rem, 0);
}

/* an_tag_service_ns() inverts a charge, to the ns below. */
TEST(service_of_a_tag)
{
	struct random r = {test_seed()};

	CHECK_EQ(an_tag_service_ns(0, 10000), 0);
	CHECK_EQ(an_tag_service_ns(1ULL << 62, 1), 1ULL << 46);
	for (u32 trial = 0; trial < 10000; trial++) {
		u64 service_ns = random_scale(&r, 40), tag = 0, back;
		u32 weight = random_scale(&r, 13), rem = 0;

		test_scenario(test_seed());
		an_tag_charge(&tag, &rem, service_ns, weight);
		back = an_tag_service_ns(tag, weight);
		CHECK(back == service_ns || back + 1 == service_ns);
	}
}
