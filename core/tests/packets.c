// SPDX-License-Identifier: GPL-2.0
/* The packet scheduler: shares that are known to the packet, flows, what is dropped. */
#include "packets_fixture.h"

/* Sends for so many packets while every class of a list has packets waiting; by leaf [bytes]. */
static void send_beside(const u32 *leaves, const u32 *sizes, u32 count, u32 packets, u64 *sent)
{
	while (packets--) {
		for (u32 i = 0; i < count; i++)
			while (packets_of(leaves[i]) < 2)
				arrive(leaves[i], 1, sizes[i]);
		sending(AN_SENT);
		sent[last.leaf] += last.bytes;
	}
}

/* root { a w100 { x w100, y w300 }, b w100, c w300 }: 5, 15, 20 and 60 %, exactly. */
TEST(packets_golden_hierarchy)
{
	u64 sent[16] = {0};
	u32 a, leaves[4], sizes[4] = {1000, 1000, 1000, 1000};

	begin_packets(0, 1000000);
	a = class_below(AN_ROOT_LEAF, 100);
	leaves[0] = class_below(a, 100);
	leaves[1] = class_below(a, 300);
	leaves[2] = class_below(AN_ROOT_LEAF, 100);
	leaves[3] = class_below(AN_ROOT_LEAF, 300);
	send_beside(leaves, sizes, 4, 2000, sent);
	CHECK_EQ(sent[leaves[0]], 100 * 1000);
	CHECK_EQ(sent[leaves[1]], 300 * 1000);
	CHECK_EQ(sent[leaves[2]], 400 * 1000);
	CHECK_EQ(sent[leaves[3]], 1200 * 1000);
}

/* It is bytes that are shared, whatever the packets' sizes. */
TEST(packets_share_bytes)
{
	u64 sent[16] = {0};
	u32 leaves[2], sizes[2] = {100, 1500};

	begin_packets(0, 1000000);
	leaves[0] = class_below(AN_ROOT_LEAF, 100);
	leaves[1] = class_below(AN_ROOT_LEAF, 300);
	send_beside(leaves, sizes, 2, 9000, sent);
	CHECK(sent[leaves[0]] * 3 <= sent[leaves[1]] + 3 * (1500 + 100));
	CHECK(sent[leaves[1]] <= sent[leaves[0]] * 3 + 3 * (1500 + 100));
}

/* A class that sends a packet now and then is the next when it does, among many with queues: its
 * packet does not wait for one of each. It is charged for all, so that in the long run it has its
 * share. */
TEST(a_class_that_sends_little_is_next)
{
	u32 quiet, busy[5], sent = 0, turns = 6000;

	begin_packets(0, 1000000);
	quiet = class_below(AN_ROOT_LEAF, 100);
	for (u32 i = 0; i < 5; i++)
		busy[i] = class_below(AN_ROOT_LEAF, 100);
	for (u32 n = 0; n < turns; n++) {
		for (u32 i = 0; i < 5; i++)
			while (packets_of(busy[i]) < 2)
				arrive(busy[i], 1, 1500);
		if (n % 12 == 11) /* half of its share */
			arrive(quiet, 1, 1500);
		CHECK(n % 12 == 11 ? sending(AN_SENT).leaf == quiet
				   : sending(AN_SENT).leaf != quiet);
	}
	for (u32 n = 0; n < turns; n++) {
		for (u32 i = 0; i < 5; i++)
			while (packets_of(busy[i]) < 2)
				arrive(busy[i], 1, 1500);
		if (!packets_of(quiet)) /* as much as it can, one by one */
			arrive(quiet, 1, 1500);
		sent += sending(AN_SENT).leaf == quiet;
	}
	CHECK(sent >= turns / 6 - 4 && sent <= turns / 6 + 4);
}

/* One connection with a long queue does not hold up its sibling: they take turns, by bytes. */
TEST(flows_of_a_class_take_turns)
{
	u64 sent[3] = {0};

	begin_packets(0, 1000000);
	for (u32 n = 0; n < 300; n++)
		arrive(AN_ROOT_LEAF, 1, 1500);
	for (u32 n = 0; n < 300; n++)
		arrive(AN_ROOT_LEAF, 2, 500);
	for (u32 n = 0; n < 200; n++) {
		s64 ahead;

		sending(AN_SENT);
		sent[last.hash] += last.bytes;
		ahead = (s64)(sent[1] - sent[2]);
		CHECK(ahead <= 2000 && ahead >= -2000);
	}
	CHECK_EQ(last.hash, 2); /* three of its packets to one of the other's */
}

/* A flow that has slept is owed nothing, and its next packet goes before those of a long queue. */
TEST(a_flow_that_wakes_is_next)
{
	begin_packets(0, 1000000);
	for (u32 n = 0; n < 100; n++)
		arrive(AN_ROOT_LEAF, 1, 1000);
	for (u32 n = 0; n < 50; n++)
		sending(AN_SENT);
	for (u32 n = 0; n < 20; n++)
		arrive(AN_ROOT_LEAF, 2, 1000);
	for (u32 n = 0; n < 20; n++)
		CHECK_EQ(sending(AN_SENT).hash, n % 2 ? 1 : 2);
}

/* When nothing waits, v is the largest tag that any flow has reached: all are alike again. */
TEST(flows_are_alike_after_a_pause)
{
	begin_packets(0, 1000000);
	for (u32 n = 0; n < 2; n++)
		arrive(AN_ROOT_LEAF, 1, 1000);
	for (u32 n = 0; n < 2; n++)
		sending(AN_SENT);
	arrive(AN_ROOT_LEAF, 2, 1000);
	arrive(AN_ROOT_LEAF, 1, 1000);
	CHECK_EQ(sending(AN_SENT).hash, 1); /* whose index is lower */
}

/* A packet that is alone goes as it came, and its class is not gone meanwhile. */
TEST(a_packet_alone_is_in_no_queue)
{
	u32 leaf;

	begin_packets(1000000, 100000);
	leaf = class_below(AN_ROOT_LEAF, 100);
	arrive(leaf, 1, 1000);
	CHECK_EQ(q.tree.nodes[leaf].queued, 0);
	CHECK_EQ(an_packets_class_remove(&q, leaf), -1);
	CHECK_EQ(sending(AN_SENT).leaf, leaf);
	CHECK_EQ(counts(leaf)->bytes, 1000);
	arrive(leaf, 1, 1000); /* the slack is used up */
	sending(AN_SENT);
	arrive(leaf, 1, 1000); /* the link is not free for it */
	sending(AN_WAITS);
	arrive(AN_ROOT_LEAF, 2, 1000); /* now neither is */
	CHECK_EQ(q.tree.nodes[leaf].queued, 1);
	CHECK_EQ(q.tree.nodes[AN_ROOT_LEAF].queued, 1);
	check_memory();
}

/* Who sends little by little does not get ahead by coming and going: its tag is remembered. */
TEST(an_idle_flow_keeps_its_tag)
{
	u64 sent[3] = {0};

	begin_packets(0, 1000000);
	for (u32 n = 0; n < 1000; n++) {
		if (last.hash == 2 || !n) /* the first to come: ties are its own */
			arrive(AN_ROOT_LEAF, 2, 1000);
		if (packets_of(AN_ROOT_LEAF) < 3)
			arrive(AN_ROOT_LEAF, 1, 1000);
		sending(AN_SENT);
		sent[last.hash] += last.bytes;
	}
	CHECK(sent[2] <= sent[1] + 2000);
}

/* ---- memory ---- */

TEST(the_class_that_holds_most_loses)
{
	u32 small, large;

	begin_packets(0, 20000);
	small = class_below(AN_ROOT_LEAF, 1);
	large = class_below(AN_ROOT_LEAF, 10000);
	arrive(small, 1, 1000);
	for (u32 n = 0; n < 500; n++)
		arrive(large, 1, 1000);
	for (u32 n = 0; n < 3; n++)
		arrive(small, 1, 1000);
	CHECK_EQ(packets_of(small), 4);
	CHECK_EQ(packets_of(large), 16);
	CHECK_EQ(counts(small)->crowded, 0);
	CHECK_EQ(counts(large)->crowded, 484);
}

/* In it the longest flow, and of that the oldest packet. */
TEST(the_longest_flow_loses_its_oldest)
{
	begin_packets(0, 20000);
	for (u32 n = 0; n < 4; n++)
		arrive(AN_ROOT_LEAF, 1, 1000);
	for (u32 n = 0; n < 100; n++)
		arrive(AN_ROOT_LEAF, 2, 1000);
	for (u32 n = 0; n < 4; n++) {
		sending(AN_SENT);
		CHECK_EQ(last.hash, 1);
		sending(AN_SENT);
		CHECK_EQ(last.hash, 2);
		CHECK_EQ(last.number, 4 + 84 + n);
	}
}

TEST(more_packets_than_there_is_room_for)
{
	begin_packets(0, 1u << 30);
	/* Each a flow of its own: whoever is next in turn loses. */
	for (u32 n = 0; n < 3 * AN_MAX_PACKETS; n++)
		arrive(AN_ROOT_LEAF, n, 100);
	CHECK_EQ(packets_of(AN_ROOT_LEAF), AN_MAX_PACKETS - 1);
	CHECK_EQ(counts(AN_ROOT_LEAF)->crowded, 2 * AN_MAX_PACKETS + 1);
	for (u32 n = 1; n < AN_MAX_PACKETS; n++)
		sending(AN_SENT);
	sending(AN_WAITS);
}

/* As much as all packets hold that there is room for, within bounds. */
TEST(memory_is_that_of_all_packets)
{
	CHECK_EQ(an_packets_held_max(1514), 2 * 1514 * AN_MAX_PACKETS);
	CHECK_EQ(an_packets_held_max(~0u), AN_ALL_HELD / 2);
}

/* A frame of a film, at once, beside five that send what they can: none of it is lost. */
TEST(a_burst_has_room_beside_floods)
{
	u32 film, flood[5];

	begin_packets(1250000, an_packets_held_max(1514));
	film = class_below(AN_ROOT_LEAF, 100);
	for (u32 i = 0; i < 5; i++)
		flood[i] = class_below(AN_ROOT_LEAF, 100);
	for (u32 n = 0; n < 3 * AN_MAX_PACKETS; n++)
		arrive(flood[n % 5], n % 5, 1514);
	for (u32 n = 0; n < 100; n++)
		arrive(film, 9, 1514);
	CHECK_EQ(counts(film)->crowded, 0);
	CHECK_EQ(packets_of(film), 100);
}

/* Places may be what is short: then who has most of them loses, and not who has the larger packets.
 */
TEST(small_packets_take_places)
{
	u32 small, large;

	begin_packets(1250000, an_packets_held_max(1514));
	small = class_below(AN_ROOT_LEAF, 100);
	large = class_below(AN_ROOT_LEAF, 100);
	for (u32 n = 0; n < 40; n++)
		arrive(large, 1, 65536);
	for (u32 n = 0; n < 3 * AN_MAX_PACKETS; n++)
		arrive(small, 2, 64);
	CHECK_EQ(counts(large)->crowded, 0);
	CHECK(counts(small)->crowded > 0);
}

TEST(all_that_waits_can_be_shed)
{
	begin_packets(0, 1000000);
	for (u32 n = 0; n < 100; n++)
		arrive(AN_ROOT_LEAF, n % 7, 1000);
	for (u32 n = 0; n < 100; n++)
		CHECK(an_packets_shed(&q, AN_ALL_HELD, now_ns));
	CHECK_EQ(an_packets_shed(&q, AN_ALL_HELD, now_ns), AN_NONE);
	CHECK_EQ(q.held, 0);
	CHECK(refused(AN_ALL_HELD));
}

/* More than all memory: it is dropped, and so is whatever was in its way; the rest goes on. */
TEST(a_packet_too_large_is_refused)
{
	begin_packets(0, 20000);
	CHECK(refused(64000));
	CHECK_EQ(counts(AN_ROOT_LEAF)->crowded, 1);
	arrive(AN_ROOT_LEAF, 1, 1000);
	sending(AN_SENT);
}

/* ---- packets that have waited too long ---- */

/* At a packet in 10 ms one that stands is dropped. */
TEST(codel_drops_from_a_flow_that_stands)
{
	u32 fates[3] = {0};

	begin_packets(0, 10000000);
	for (u32 n = 0; n < 1000; n++)
		arrive(AN_ROOT_LEAF, 1, 1500);
	for (u32 n = 0; n < 500; n++) {
		now_ns += 10 * MS;
		fates[next()]++;
	}
	CHECK_EQ(fates[AN_WAITS], 0);
	CHECK(fates[AN_DROPPED] > 20);
	CHECK_EQ(counts(AN_ROOT_LEAF)->late, fates[AN_DROPPED]);
}

/* The queue of one flow stands; the packets of another, which does not, are left alone. */
/* Beside four that always have packets, a film's key frame each second, of so many packets, for ten
 * seconds: its packets that are dropped. */
static u64 key_frames_lose(u32 packets)
{
	u32 film, flood[4];

	begin_packets(1250000, an_packets_held_max(1514));
	film = class_below(AN_ROOT_LEAF, 100);
	for (u32 i = 0; i < 4; i++)
		flood[i] = class_below(AN_ROOT_LEAF, 100);
	for (u32 ms = 0; ms < 10000; ms++, now_ns += MS) {
		for (u32 n = 0; n < packets && ms % 1000 == 0; n++)
			arrive(film, 9, 1514);
		for (u32 i = 0; i < 4; i++)
			while (packets_of(flood[i]) < 4)
				arrive(flood[i], i, 1514);
		while (next() != AN_WAITS)
			;
	}
	CHECK_EQ(counts(film)->crowded, 0);
	return counts(film)->late;
}

/* At a fifth of ten megabits fifty packets take 300 ms, 150 take 900: less than the film's part, so
 * none of them is too many, but nobody waits for so long for the last. 200 are more than its part.
 */
TEST(key_frames_within_the_part_are_whole)
{
	CHECK_EQ(key_frames_lose(50), 0);
	CHECK(key_frames_lose(150) > 0);
	CHECK(key_frames_lose(200) > key_frames_lose(150));
}

TEST(codel_spares_the_other_flow)
{
	begin_packets(0, 10000000);
	for (u32 n = 0; n < 2000; n++)
		arrive(AN_ROOT_LEAF, 1, 1500);
	for (u32 n = 0; n < 500; n++) {
		arrive(AN_ROOT_LEAF, 2, 200);
		now_ns += MS;
		if (next() == AN_DROPPED)
			CHECK_EQ(last.hash, 1);
		now_ns += MS;
		if (next() == AN_DROPPED)
			CHECK_EQ(last.hash, 1);
	}
	CHECK(counts(AN_ROOT_LEAF)->late > 10);
}

/* ---- the link ---- */

TEST(packets_go_at_the_links_rate)
{
	u64 begun_ns;
	u32 packets = 0;

	begin_packets(1250000, 1000000);
	begun_ns = now_ns;
	for (u32 n = 0; n < 400; n++)
		arrive(AN_ROOT_LEAF, n & 7, 1250);
	while (now_ns < begun_ns + 200 * MS) {
		if (next() == AN_SENT)
			packets++;
		else
			now_ns = q.link.next_ns;
	}
	/* A millisecond each; one more at once, and one for the slack. */
	CHECK(packets >= 200 && packets <= 202);
}

/* A class comes in the place of one that is gone, and has nothing of it. */
TEST(a_leaf_used_again_begins_anew)
{
	u32 leaf;

	begin_packets(0, 1000000);
	leaf = class_below(AN_ROOT_LEAF, 100);
	arrive(leaf, 7, 1000);
	CHECK_EQ(an_packets_class_remove(&q, leaf), -1);
	sending(AN_SENT);
	CHECK_EQ(an_packets_class_remove(&q, leaf), 0);
	CHECK_EQ(class_below(AN_ROOT_LEAF, 100), leaf);
	CHECK_EQ(counts(leaf)->packets, 0);
	arrive(leaf, 7, 500);
	arrive(leaf, 8, 500);
	CHECK_EQ(sending(AN_SENT).hash, 7); /* not charged for what the other class sent */
	CHECK_EQ(counts(leaf)->bytes, 500);
}
