// SPDX-License-Identifier: GPL-2.0
/* Early drops: exactly what a full socket would refuse, and looking for no longer than packets are
 * refused. */
#include "../receive.h"
#include "test.h"

TEST(a_queue_is_full_when_the_next_does_not_fit)
{
	CHECK(!an_receive_full(0, 1000, 5000));
	CHECK(!an_receive_full(-1, 1000, 5000));
	CHECK(!an_receive_full(500, 1000, 500));
	CHECK(an_receive_full(501, 1000, 500));
	CHECK(an_receive_full(1, 0, 0));
	/* Nothing wraps. */
	CHECK(!an_receive_full(0x7fffffff, ~0ULL, 0x7fffffff));
}

TEST(sockets_are_looked_for_while_packets_are_refused)
{
	CHECK(!an_receive_looks(AN_NEVER, 0));
	CHECK(!an_receive_looks(AN_NEVER, AN_NEVER));
	CHECK(an_receive_looks(0, 0));
	CHECK(an_receive_looks(5, 4));
	CHECK(an_receive_looks(5, 5 + AN_RECEIVE_WHILE_NS - 1));
	CHECK(!an_receive_looks(5, 5 + AN_RECEIVE_WHILE_NS));
}

/* Room for two of a hundred each, and they come eight at a time: what was let through counts until
 * it is queued. */
TEST(what_was_let_through_takes_room_until_it_is_queued)
{
	struct an_through t = {0};
	u32 through = 0;

	for (u32 n = 0; n < AN_RECEIVE_AT_ONCE; n++)
		through += !an_receive_refuses(&t, 1, 800, 1000, 100, 1);
	CHECK_EQ(through, 2);
	/* They have been thrown away for another reason: no more than eight are refused for them.
	 */
	CHECK(!an_receive_refuses(&t, 1, 800, 1000, 100, 1));
	/* Another socket's, and one whose queue is shorter by now. */
	CHECK(!an_receive_refuses(&t, 2, 800, 1000, 100, 1));
	CHECK(!an_receive_refuses(&t, 2, 800, 1000, 100, 1));
	CHECK(an_receive_refuses(&t, 2, 800, 1000, 100, 1));
	CHECK(!an_receive_refuses(&t, 2, 700, 1000, 100, 1));
	/* An empty queue takes one of any size, and then no more. */
	CHECK(!an_receive_refuses(&t, 3, 0, 1000, 5000, 1));
	CHECK(an_receive_refuses(&t, 3, 0, 1000, 100, 1));
	/* Twenty together, of which one fits; then no more. */
	CHECK(!an_receive_refuses(&t, 4, 900, 1000, 100, 20));
	CHECK(an_receive_refuses(&t, 4, 900, 1000, 1, 1));
}

/* A flood at a queue that is read slowly, for a virtual minute: of all that cannot be taken, one a
 * while is refused late at most; and when it has ended, none is looked for after a while. */
TEST(a_flood_is_refused_early)
{
	u64 refused_ns = AN_NEVER, late = 0, early = 0, looked = 0, taken = 0, now_ns = 0;
	s64 held = 0;
	const u64 size = 768, room = 212992, minute_ns = 60000000000ULL;

	for (; now_ns < minute_ns; now_ns += 10000) {
		bool looks = an_receive_looks(refused_ns, now_ns), full;

		if (held && now_ns % 1000000 == 0)
			held -= size;
		full = an_receive_full(held, room, size);
		if (full)
			refused_ns = now_ns;
		else
			held += size;
		early += full && looks;
		late += full && !looks;
		taken += !full;
	}
	CHECK(late <= minute_ns / AN_RECEIVE_WHILE_NS && late >= 1);
	CHECK_EQ(early + late + taken, minute_ns / 10000);
	CHECK(early > 98 * (minute_ns / 10000) / 100);
	for (; now_ns < 2 * minute_ns; now_ns += 10000)
		looked += an_receive_looks(refused_ns, now_ns);
	CHECK(looked <= AN_RECEIVE_WHILE_NS / 10000);
}
