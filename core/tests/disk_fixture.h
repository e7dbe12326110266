/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A disk scheduler, a clock, a disk, and a record of every request; after each call the scheduler
 * must account for all of them. Every file that includes this has its own.
 *
 *      conservation   every request is served once, and no more at once than the disk can
 *      work           the disk is idle beside waiting requests only until it is to be asked again
 */
#ifndef ANDANTE_TESTS_DISK_FIXTURE_H
#define ANDANTE_TESTS_DISK_FIXTURE_H

#include "../disk.h"
#include "invariants.h"
#include "random.h"
#include "test.h"

#define MS 1000000ULL
#define SECOND (1000 * MS)
#define GIB_SECTORS (2ULL << 20)

enum state {
	FREE,
	WAITS,
	SERVED
};

struct record {
	enum state state;
	u32 leaf;
	u64 done_ns; /* SERVED: when */
};

static struct an_disk disk;
static struct record records[AN_MAX_REQUESTS];
static struct invariants invariants;
static u64 now_ns;
static u32 waiting, last_index;

/* 16 GiB, 125 MB/s, 1 to 10 ms for the arm and 8.3 ms a turn. */
static const struct an_disk_model platters = {.sectors = 16 * GIB_SECTORS,
					      .rate = 125000000,
					      .seek_ns = 1 * MS,
					      .stroke_ns = 9 * MS,
					      .turn_ns = 8333333,
					      .at_once = 1};

static inline void begin_disk(const struct an_disk_model *model, enum an_disk_mode mode)
{
	an_disk_init(&disk, model, mode);
	for (u32 i = 0; i < AN_MAX_REQUESTS; i++)
		records[i] = (struct record){.state = FREE};
	now_ns = SECOND;
	waiting = last_index = 0;
	memset(&invariants, 0, sizeof(invariants));
}

static inline void check_tree(void)
{
	u32 index;
	const char *broken = invariant_broken(&disk.tree, &invariants, &index);

	if (broken)
		test_fail(__FILE__, __LINE__, "%s of node %u", broken, index);
}

static inline u32 class_below(u32 parent, u32 weight, enum an_manner wants)
{
	u32 leaf = an_disk_class_create(&disk, parent, 0, weight, wants);

	CHECK(leaf);
	return leaf;
}

/* A request of so many sectors: its index. */
static inline u32 asks(u32 leaf, u64 sector, u32 sectors)
{
	do
		last_index = last_index % (AN_MAX_REQUESTS - 1) + 1;
	while (records[last_index].state != FREE);
	records[last_index] = (struct record){.state = WAITS, .leaf = leaf};
	waiting++;
	an_disk_arrive(&disk, last_index, leaf, sector, sectors, now_ns);
	check_tree();
	return last_index;
}

/* The request that goes to the disk now, or AN_NONE. */
static inline u32 goes(void)
{
	u32 index = an_disk_next(&disk, now_ns);

	check_tree();
	CHECK(disk.in_service <= disk.model.at_once);
	if (!index) {
		CHECK(!waiting || disk.in_service == disk.model.at_once ||
		      disk.waits_until_ns > now_ns);
		return AN_NONE;
	}
	CHECK_EQ(records[index].state, WAITS);
	records[index].state = SERVED;
	waiting--;
	return index;
}

static inline void is_done(u32 index)
{
	CHECK_EQ(records[index].state, SERVED);
	records[index].state = FREE;
	an_disk_done(&disk, index, now_ns);
	check_tree();
}

/* The next one is served, for so long, however long the disk waits before. */
static inline u32 serve(u64 ns)
{
	u32 index = goes();

	while (!index) {
		CHECK(disk.waits_until_ns > now_ns);
		now_ns = disk.waits_until_ns;
		index = goes();
	}
	now_ns += ns;
	is_done(index);
	return index;
}

#endif
