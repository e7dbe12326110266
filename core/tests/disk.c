// SPDX-License-Identifier: GPL-2.0
/* The disk scheduler: what goes next in cases that are known. */
#include "disk_fixture.h"

#define KIB64 128 /* sectors */
#define KIB512 1024

static u32 film, typing, copy;

/* A film of 64 KiB a period, which may be of no weight; a class in a hurry; and one that is not. */
static void begin_desktop(u64 period_ns)
{
	begin_disk(&platters, AN_DISK_TIME);
	film = class_below(AN_ROOT_LEAF, 1, AN_INTERACTIVE);
	typing = class_below(AN_ROOT_LEAF, 100, AN_INTERACTIVE);
	copy = class_below(AN_ROOT_LEAF, 100, AN_THROUGHPUT);
	CHECK_EQ(an_disk_promise(&disk, film, 65536, period_ns, now_ns), 0);
}

TEST(the_root_of_a_square)
{
	for (u64 n = 0; n < 70000; n += 7) {
		CHECK_EQ(an_root_of(n * n), n);
		CHECK_EQ(an_root_of(n * n + 2 * n), n);
	}
	CHECK_EQ(an_root_of(~0ULL), 0xffffffff);
	CHECK_EQ(an_root_of_part(1ULL << 40, 1ULL << 42), 1 << 15);
}

/* 1 ms and a third of the way: 9 * sqrt(1/3) = 5.196; 64 KiB at 125 MB/s: 0.524. */
TEST(a_request_takes_the_arm_a_turn_and_its_bytes)
{
	u64 third = platters.sectors / 3, ns = an_disk_most_ns(&platters, 0, third, KIB64);

	CHECK(ns > 15053000 && ns < 15055000);
	CHECK_EQ(an_disk_most_ns(&platters, third, third, KIB64), 524288);
}

/* The film has a budget, and its deadline leaves no room for 512 KiB that are far away. */
TEST(a_contract_goes_before_others)
{
	u32 copied, frame;

	begin_desktop(33 * MS);
	copied = asks(copy, 8 * GIB_SECTORS, KIB512);
	frame = asks(film, 2 * GIB_SECTORS, KIB64);
	CHECK_EQ(serve(5 * MS), frame);
	CHECK_EQ(serve(15 * MS), copied);
	CHECK_EQ(an_disk_counts(&disk, film)->promised, 1);
	CHECK_EQ(an_disk_counts(&disk, film)->late, 0);
}

/* Beyond its budget it has its share, which is a hundredth of the copy's. */
TEST(without_budget_it_has_its_share)
{
	u32 films = 0;

	begin_desktop(100 * MS);
	for (u32 i = 0; i < 40; i++) {
		asks(film, 2 * GIB_SECTORS + i * KIB64, KIB64);
		asks(copy, 8 * GIB_SECTORS + i * KIB512, KIB512);
	}
	for (u32 i = 0; i < 40; i++)
		films += records[serve(5 * MS)].leaf == film;
	/* One of each budget, in 200 ms, and one in its turn. */
	CHECK_EQ(an_disk_counts(&disk, film)->promised, 2);
	CHECK_EQ(films, 3);
}

/* A request in a hurry goes before one of a contract that has time, and not before one that has
 * none. */
TEST(interactive_requests_steal_slack)
{
	u32 key, frame;

	begin_desktop(100 * MS);
	frame = asks(film, 2 * GIB_SECTORS, KIB64);
	key = asks(typing, 12 * GIB_SECTORS, 8);
	CHECK_EQ(serve(10 * MS), key);
	CHECK_EQ(serve(10 * MS), frame);
	begin_desktop(33 * MS);
	frame = asks(film, 2 * GIB_SECTORS, KIB64);
	key = asks(typing, 12 * GIB_SECTORS, 8);
	CHECK_EQ(serve(10 * MS), frame);
	CHECK_EQ(serve(10 * MS), key);
}

/*
 * The platters may stand as badly as they can, each time. From 0 a key at 3 GiB takes 4.9 ms for
 * the arm, back to the film at 2 GiB 3.3; 8.3 each for a turn, and 0.6 for the bytes: 25.4 ms. With
 * half turns it would be 17.1.
 */
TEST(slack_is_reckoned_with_whole_turns)
{
	u32 key, frame;

	begin_desktop(25 * MS);
	frame = asks(film, 2 * GIB_SECTORS, KIB64);
	key = asks(typing, 3 * GIB_SECTORS, 8);
	CHECK_EQ(goes(), frame);
	begin_desktop(26 * MS);
	frame = asks(film, 2 * GIB_SECTORS, KIB64);
	key = asks(typing, 3 * GIB_SECTORS, 8);
	CHECK_EQ(goes(), key);
}

/* Whatever its slack: a copy from beyond the film costs less behind it. */
TEST(throughput_goes_where_the_arm_comes_by)
{
	u32 frame, copied;

	begin_desktop(1000 * MS);
	frame = asks(film, 2 * GIB_SECTORS, KIB64);
	copied = asks(copy, 2 * GIB_SECTORS + KIB64, KIB512);
	CHECK_EQ(serve(5 * MS), frame);
	CHECK_EQ(serve(5 * MS), copied);
	begin_desktop(1000 * MS);
	frame = asks(film, 2 * GIB_SECTORS, KIB64);
	copied = asks(copy, 2 * GIB_SECTORS - KIB512, KIB512);
	CHECK_EQ(serve(5 * MS), copied);
	CHECK_EQ(serve(5 * MS), frame);
}

/* Two films: by deadline if time is short, by the arm if it is not. */
TEST(contracts_go_by_deadline_and_by_the_arm_where_there_is_time)
{
	static const u64 soon_ms[] = {25, 300};

	for (u32 i = 0; i < 2; i++) {
		u32 other, far, near;

		begin_disk(&platters, AN_DISK_TIME);
		film = class_below(AN_ROOT_LEAF, 100, AN_INTERACTIVE);
		other = class_below(AN_ROOT_LEAF, 100, AN_INTERACTIVE);
		an_disk_promise(&disk, film, 65536, soon_ms[i] * MS, now_ns);
		an_disk_promise(&disk, other, 65536, (soon_ms[i] + 10) * MS, now_ns);
		near = asks(other, 1 * GIB_SECTORS, KIB64);
		far = asks(film, 12 * GIB_SECTORS, KIB64);
		CHECK_EQ(serve(10 * MS), i ? near : far);
		CHECK_EQ(serve(10 * MS), i ? far : near);
	}
}

/*
 * A frame comes every 33 ms; 28 ms after one 512 KiB that are far away would take up to 21, and
 * then the next frame up to 16: 65, and it is due after 66. A millisecond later there is no time
 * for it, nor would there be afterwards if the frame did not come.
 */
TEST(the_disk_waits_for_a_frame_that_is_expected)
{
	u64 begun_ns;
	u32 frame;

	begin_desktop(33 * MS);
	asks(film, 2 * GIB_SECTORS, KIB64);
	begun_ns = now_ns;
	serve(10 * MS);
	now_ns = begun_ns + 28 * MS;
	asks(copy, 12 * GIB_SECTORS, KIB512);
	CHECK(goes());
	is_done(1 + 1);

	begin_desktop(33 * MS);
	asks(film, 2 * GIB_SECTORS, KIB64);
	begun_ns = now_ns;
	serve(10 * MS);
	now_ns = begun_ns + 31 * MS;
	asks(copy, 12 * GIB_SECTORS, KIB512);
	CHECK_EQ(goes(), AN_NONE);
	CHECK_EQ(disk.waits_until_ns, begun_ns + 33 * MS);
	now_ns = begun_ns + 33 * MS;
	frame = asks(film, 2 * GIB_SECTORS + KIB64, KIB64);
	CHECK_EQ(serve(10 * MS), frame);
	CHECK_EQ(records[serve(10 * MS)].leaf, copy);
	/* The film is paused: nobody waits for it for more than one period. */
	now_ns = begun_ns + 110 * MS;
	asks(copy, 12 * GIB_SECTORS, KIB512);
	CHECK(goes());
}

/* A sweep goes up, and those that come meanwhile are of the next. */
TEST(a_class_that_wants_throughput_sweeps)
{
	static const u64 gib[] = {5, 1, 9, 3};
	static const u64 sorted[] = {1, 3, 5, 9, 2, 4};
	u32 index[16];

	begin_disk(&platters, AN_DISK_TIME);
	copy = class_below(AN_ROOT_LEAF, 100, AN_THROUGHPUT);
	for (u32 i = 0; i < 4; i++)
		index[gib[i]] = asks(copy, gib[i] * GIB_SECTORS, KIB512);
	for (u32 i = 0; i < 6; i++) {
		CHECK_EQ(serve(10 * MS), index[sorted[i]]);
		if (!i) {
			index[4] = asks(copy, 4 * GIB_SECTORS, KIB512);
			index[2] = asks(copy, 2 * GIB_SECTORS, KIB512);
		}
	}
}

/* A class has the disk for a turn, though the other has waited for longer; and then the other. */
TEST(a_turn_lasts_for_a_quantum)
{
	u32 other, changes = 0, serves = 0, last = AN_NONE;

	begin_disk(&platters, AN_DISK_TIME);
	copy = class_below(AN_ROOT_LEAF, 100, AN_THROUGHPUT);
	other = class_below(AN_ROOT_LEAF, 100, AN_THROUGHPUT);
	for (u32 i = 0; i < 200; i++) {
		asks(copy, 2 * GIB_SECTORS + i * KIB512, KIB512);
		asks(other, 8 * GIB_SECTORS + i * KIB512, KIB512);
	}
	while (waiting > 40) {
		u32 leaf = records[serve(5 * MS)].leaf;

		changes += leaf != last;
		last = leaf;
		serves++;
	}
	/* 9 times as long as a seek of a third of the way, 6.2 ms, and half a turn: 93. */
	CHECK(disk.quantum_ns > 92 * MS && disk.quantum_ns < 94 * MS);
	CHECK_EQ(changes, (serves * 5 * MS + disk.quantum_ns - 1) / (19 * 5 * MS));
}

/* It does not wait for the turn's end. */
TEST(a_key_ends_a_turn)
{
	u32 key;

	begin_desktop(SECOND);
	for (u32 i = 0; i < 20; i++)
		asks(copy, 2 * GIB_SECTORS + i * KIB512, KIB512);
	serve(5 * MS);
	key = asks(typing, 12 * GIB_SECTORS, 8);
	CHECK_EQ(serve(5 * MS), key);
}

/* A program that asks for one thing after the other is waited for, and one that does not is not. */
TEST(the_disk_waits_for_the_class_that_comes_back)
{
	u32 other, at = 0;

	begin_disk(&platters, AN_DISK_TIME);
	copy = class_below(AN_ROOT_LEAF, 100, AN_THROUGHPUT);
	other = class_below(AN_ROOT_LEAF, 100, AN_THROUGHPUT);
	for (u32 i = 0; i < 8; i++) {
		asks(copy, 2 * GIB_SECTORS + at++ * KIB512, KIB512);
		serve(4 * MS);
		now_ns += MS / 10;
	}
	asks(copy, 2 * GIB_SECTORS + at++ * KIB512, KIB512);
	asks(other, 8 * GIB_SECTORS, KIB512);
	CHECK_EQ(records[serve(4 * MS)].leaf, copy);
	CHECK_EQ(goes(), AN_NONE);
	CHECK(disk.waits_until_ns <= now_ns + 11 * MS);
	now_ns += MS / 10;
	asks(copy, 2 * GIB_SECTORS + at++ * KIB512, KIB512);
	CHECK_EQ(records[serve(4 * MS)].leaf, copy);
	/* Now it does not. */
	CHECK_EQ(goes(), AN_NONE);
	now_ns = disk.waits_until_ns;
	CHECK_EQ(records[serve(4 * MS)].leaf, other);
}

/* Three classes of 1 : 2 : 4, one request each at a time: the time of the disk, or the bytes. */
TEST(classes_share_time_or_bytes)
{
	static const u32 sectors[] = {KIB512, KIB64, KIB512 / 4};
	struct random random = {.state = test_seed()};

	for (u32 mode = AN_DISK_TIME; mode <= AN_DISK_BYTES; mode++) {
		u64 had[3] = {0}, all = 0;
		u32 leaves[3];

		begin_disk(&platters, mode);
		for (u32 i = 0; i < 3; i++)
			leaves[i] = class_below(AN_ROOT_LEAF, 100 << i, AN_THROUGHPUT);
		for (u32 i = 0; i < 3; i++)
			asks(leaves[i], random_below(&random, platters.sectors), sectors[i]);
		for (u32 n = 0; n < 200000; n++) {
			u32 index = goes(), i = 0;

			if (!index) {
				CHECK(disk.waits_until_ns > now_ns);
				now_ns = disk.waits_until_ns;
				continue;
			}
			now_ns += random_below(&random, 20 * MS);
			while (leaves[i] != records[index].leaf)
				i++;
			is_done(index);
			now_ns += MS / 20;
			asks(leaves[i], random_below(&random, platters.sectors), sectors[i]);
		}
		for (u32 i = 0; i < 3; i++) {
			const struct an_disk_counts *n = an_disk_counts(&disk, leaves[i]);

			had[i] = mode == AN_DISK_TIME ? n->time_ns : n->bytes;
			all += had[i];
		}
		for (u32 i = 0; i < 3; i++) {
			s64 off = (s64)(7000 * had[i] / all) - (1000 << i);

			CHECK(off * 50 < 1000 << i && off * 50 > -(1000 << i)); /* 2 % */
		}
	}
}

/* Half of the time for each of two that are served at once. */
TEST(time_is_shared_by_those_that_are_served_at_once)
{
	struct an_disk_model flash = {
		.sectors = GIB_SECTORS, .rate = 400000000, .seek_ns = MS / 10, .at_once = 2};
	u32 one, two;

	begin_disk(&flash, AN_DISK_TIME);
	copy = class_below(AN_ROOT_LEAF, 100, AN_THROUGHPUT);
	one = asks(copy, 0, 8);
	two = asks(copy, 1000, 8);
	asks(copy, 2000, 8);
	CHECK_EQ(goes(), one);
	CHECK_EQ(goes(), two);
	CHECK_EQ(goes(), AN_NONE);
	now_ns += MS;
	is_done(one);
	CHECK_EQ(an_disk_counts(&disk, copy)->time_ns, MS / 2);
	now_ns += MS;
	is_done(two);
	CHECK_EQ(an_disk_counts(&disk, copy)->time_ns, 2 * MS);
}

/* A class is in a hurry until it has come back at once some times, and again when it does not. */
TEST(a_class_is_what_it_does)
{
	u32 i;

	begin_disk(&platters, AN_DISK_TIME);
	copy = class_below(AN_ROOT_LEAF, 100, AN_BY_USE);
	for (i = 0; an_disk_class(&disk, copy)->manner == AN_INTERACTIVE; i++) {
		CHECK(i < 5);
		asks(copy, i * KIB512, KIB512);
		serve(4 * MS);
		now_ns += MS / 10;
	}
	CHECK(i > 1);
	for (i = 0; an_disk_class(&disk, copy)->manner == AN_THROUGHPUT; i++) {
		CHECK(i < 5);
		asks(copy, i * GIB_SECTORS, 8);
		serve(4 * MS);
		now_ns += 50 * MS;
	}
	CHECK(i > 1);
}

TEST(a_class_that_is_awaited_may_go)
{
	begin_disk(&platters, AN_DISK_TIME);
	copy = class_below(AN_ROOT_LEAF, 100, AN_THROUGHPUT);
	asks(copy, 0, KIB512);
	CHECK_EQ(an_disk_class_remove(&disk, copy), -1);
	serve(4 * MS);
	CHECK_EQ(an_disk_class_remove(&disk, copy), 0);
	CHECK_EQ(goes(), AN_NONE);
}
