// SPDX-License-Identifier: GPL-2.0
/* The disk scheduler: random lives, and random contracts that there is room for. */
#include "disk_fixture.h"

#define CLASSES 12
#define AT_ONCE 16

static struct random r;
static u32 leaves[CLASSES], classes;
static u32 served[AT_ONCE]; /* under way */
static u32 under_way;

static void one_is_done(void)
{
	u32 at = random_below(&r, under_way);

	is_done(served[at]);
	served[at] = served[--under_way];
}

static void a_class_comes_or_goes(void)
{
	u32 at;

	if (classes < CLASSES && random_chance(&r, 60)) {
		u32 parent = classes && random_chance(&r, 50) ? leaves[random_below(&r, classes)]
							      : AN_ROOT_LEAF;
		u32 leaf = an_disk_class_create(&disk, parent, 0, random_scale(&r, 13),
						random_below(&r, 3));

		if (leaf)
			leaves[classes++] = leaf;
		return;
	}
	if (!classes)
		return;
	at = random_below(&r, classes);
	if (!an_disk_class_remove(&disk, leaves[at]))
		leaves[at] = leaves[--classes];
}

static void step(void)
{
	u32 leaf = classes ? leaves[random_below(&r, classes)] : AN_ROOT_LEAF, index;

	switch (random_below(&r, 8)) {
	case 0:
		a_class_comes_or_goes();
		break;
	case 1:
		an_disk_promise(&disk, leaf, random_chance(&r, 30) ? 0 : random_scale(&r, 20),
				random_scale(&r, 28), now_ns);
		break;
	case 2:
		an_class_set_weight(&disk.tree, leaf, random_scale(&r, 13));
		break;
	case 3:
	case 4:
		if (waiting < AN_MAX_REQUESTS / 2)
			asks(leaf, random_below(&r, disk.model.sectors), random_below(&r, 1025));
		break;
	default:
		index = goes();
		if (index)
			served[under_way++] = index;
	}
	now_ns += random_below(&r, 2) * random_scale(&r, 24);
	if (under_way && random_chance(&r, 50))
		one_is_done();
}

/* Every request is served once, whatever comes and goes. */
TEST(random_lives_of_a_disk)
{
	for (u32 n = 0; n < 300; n++) {
		struct an_disk_model model = platters;

		test_scenario(test_seed() + n);
		r.state = test_seed() + n;
		if (random_chance(&r, 30)) {
			model.stroke_ns = model.turn_ns = 0;
			model.at_once = 1 + random_below(&r, AT_ONCE);
		}
		begin_disk(&model, random_below(&r, 2));
		classes = under_way = 0;
		for (u32 i = 0; i < 2000; i++)
			step();
		while (waiting || under_way) {
			u32 index = goes();

			if (index)
				served[under_way++] = index;
			else if (under_way)
				one_is_done();
			else
				now_ns = disk.waits_until_ns;
		}
		for (u32 leaf = 1; leaf < AN_MAX_NODES; leaf++)
			CHECK_EQ(an_disk_class(&disk, leaf)->first, AN_NONE);
	}
}

/* ---- contracts ---- */

#define FILMS 4
#define FLOODS 3

struct film {
	u32 leaf, sectors;
	u64 at, period_ns, due_ns, takes_ns, release_ns;
	u32 index; /* of the request that is under way */
	u32 jobs, late;
};

static struct film films[FILMS];
static u64 last_arm; /* before the request that is served */

/* A request of 512 KiB of others cannot be called back; of films the longest, and each as often as
 * it may come while another waits. */
static bool there_is_room(u32 count)
{
	for (u32 i = 0; i < count; i++) {
		u64 all_ns = 0, longest_ns = 0;

		for (u32 k = 0; k < count; k++) {
			const struct film *f = &films[k];

			all_ns += f->takes_ns *
				  ((films[i].period_ns + f->period_ns - 1) / f->period_ns);
			if (f->takes_ns > longest_ns)
				longest_ns = f->takes_ns;
		}
		if (all_ns + longest_ns > films[i].period_ns)
			return false;
	}
	return true;
}

static void film_asks(struct film *f)
{
	f->index = asks(f->leaf, f->at, f->sectors);
	f->release_ns = f->due_ns;
	f->at += f->sectors;
	f->due_ns += f->period_ns;
}

/* The first job of each may find a request under way that nobody could know of. */
static void film_is_done(struct film *f)
{
	f->index = AN_NONE;
	f->jobs++;
	f->late += f->jobs > 1 && now_ns > f->release_ns + f->period_ns;
}

static u64 next_job_ns(u32 count)
{
	u64 ns = AN_NEVER;

	for (u32 i = 0; i < count; i++)
		if (!films[i].index && films[i].due_ns < ns)
			ns = films[i].due_ns;
	return ns;
}

static void films_ask(u32 count)
{
	for (u32 i = 0; i < count; i++)
		if (!films[i].index && films[i].due_ns <= now_ns)
			film_asks(&films[i]);
}

/* A request that takes anything up to what it may. */
static void disk_serves(u32 count, u32 index, const u32 *floods)
{
	const struct an_request *q = an_request(&disk, index);
	u64 most_ns = an_disk_most_ns(&platters, last_arm, q->sector, q->sectors), done_ns;
	u32 leaf = q->leaf;

	done_ns = now_ns + most_ns;
	if (random_chance(&r, 30))
		done_ns -= random_below(&r, most_ns);
	while (next_job_ns(count) < done_ns) {
		now_ns = next_job_ns(count);
		films_ask(count);
	}
	now_ns = done_ns;
	is_done(index);
	for (u32 i = 0; i < count; i++)
		if (films[i].index == index)
			film_is_done(&films[i]);
	for (u32 i = 0; i < FLOODS; i++)
		if (floods[i] == leaf)
			asks(leaf, random_below(&r, platters.sectors - 1024), 1024);
}

static u32 films_of(u32 count, u64 *late)
{
	u32 floods[FLOODS], jobs = 0;

	for (u32 i = 0; i < count; i++)
		CHECK_EQ(an_disk_promise(&disk, films[i].leaf, films[i].sectors << 9,
					 films[i].period_ns, now_ns),
			 0);
	for (u32 i = 0; i < FLOODS; i++) {
		floods[i] = class_below(AN_ROOT_LEAF, 1000, random_below(&r, 3));
		for (u32 n = 0; n < 4; n++)
			asks(floods[i], random_below(&r, platters.sectors - 1024), 1024);
	}
	for (u32 n = 0; n < 3000; n++) {
		u64 next_ns = next_job_ns(count);
		u32 index;

		films_ask(count);
		last_arm = disk.arm;
		index = goes();
		if (index)
			disk_serves(count, index, floods);
		else
			now_ns = disk.waits_until_ns < next_ns ? disk.waits_until_ns : next_ns;
	}
	for (u32 i = 0; i < count; i++) {
		jobs += films[i].jobs;
		*late += films[i].late;
	}
	return jobs;
}

/* All that there is room for are kept, beside floods of the heaviest weight. */
TEST(contracts_of_a_disk_are_kept)
{
	u32 sets = 0, jobs = 0;
	u64 late = 0;

	for (u32 n = 0; n < 400; n++) {
		u32 count;

		test_scenario(test_seed() + n);
		r.state = test_seed() + n;
		begin_disk(&platters, random_below(&r, 2));
		count = 1 + random_below(&r, FILMS);
		for (u32 i = 0; i < count; i++) {
			struct film *f = &films[i];

			*f = (struct film){
				.leaf = class_below(AN_ROOT_LEAF, 1, random_below(&r, 3)),
				.sectors = 8 << random_below(&r, 8),
				.at = random_below(&r, platters.sectors / 2),
				.period_ns =
					(30 + random_below(&r, random_chance(&r, 50) ? 30 : 300)) *
					MS,
			};
			f->takes_ns = an_disk_most_ns(&platters, 0, platters.sectors, f->sectors);
			f->due_ns = now_ns + random_below(&r, f->period_ns);
		}
		if (!there_is_room(count))
			continue;
		sets++;
		jobs += films_of(count, &late);
	}
	CHECK_EQ(late, 0);
	CHECK(sets > 50 && jobs > 10000);
	test_remark("a disk's contracts: %u sets have room, all of %u jobs in time", sets, jobs);
}
