// SPDX-License-Identifier: GPL-2.0
/* Resource containers (papers/containers.h): the tree's calls, accounts, and random lives of it. */
#include "containers_cpu.h"

static struct containers_cpu cpu;

/* The container of init, below the root; everything is below it. */
static u32 begin(u64 tick_ns)
{
	actors_begin(&cpu, tick_ns);
	return container(&cpu, AN_CONTAINER_ROOT, AN_CONTAINER_FIXED, AN_CONTAINER_WHOLE);
}

static u32 fixed_hog(u32 parent, u32 percent)
{
	return actor_add_hog(&cpu, container(&cpu, parent, AN_CONTAINER_FIXED, percent * 100));
}

/* Work done for a container outside its turn is paid out of the next. */
TEST(charges_from_outside_are_paid)
{
	u32 init = begin(0);

	fixed_hog(init, 40);
	fixed_hog(init, 60);
	for (u32 round = 0; round < 100; round++) {
		/* In the second one's turn, interrupts for the first: a quarter of its 20 ms. */
		actors_run(&cpu, cpu.now_ns + 25 * MS);
		CHECK(cpu.serving == 1 || cpu.serving == NOBODY);
		an_containers_charge(&cpu.all, cpu.actors[0].container, 5 * MS);
		actors_run(&cpu, cpu.now_ns + (round ? 20 : 25) * MS);
	}
	CHECK_EQ(cpu.actors[0].got_ns, (20 + 99 * 15) * MS);
}

/* What everybody used adds up to the time that passed; the system's part is outside the tree. */
TEST(totals_add_up)
{
	u32 init = begin(AN_CONTAINERS_TICK_NS),
	    group = container(&cpu, init, AN_CONTAINER_FIXED, 5000);
	u64 total_ns;

	fixed_hog(group, 30);
	fixed_hog(group, 30);
	actor_add_hog(&cpu, init);
	cpu.lost_percent = 50;
	cpu.lost_ns = MS;
	actors_run(&cpu, 30 * SECOND);
	total_ns = an_container(&cpu.all, AN_CONTAINER_ROOT)->total_ns;
	CHECK_EQ(total_ns, an_container(&cpu.all, init)->total_ns);
	CHECK_EQ(total_ns + an_container(&cpu.all, AN_CONTAINER_SYSTEM)->total_ns, 30 * SECOND);
	CHECK(an_container(&cpu.all, AN_CONTAINER_SYSTEM)->total_ns > SECOND);
}

/* Made one of the other kind after its turn, it has no second one in the same round. */
TEST(a_change_holds_from_the_next_turn)
{
	struct an_containers *all = &cpu.all;
	u32 init = begin(0), a, b;

	fixed_hog(init, 10);
	fixed_hog(init, 10);
	a = cpu.actors[0].container;
	b = cpu.actors[1].container;
	CHECK_EQ(an_containers_pick(all), a);
	an_containers_charge(all, a, an_containers_slice_ns(all, a));
	CHECK(an_containers_set(all, a, AN_CONTAINER_SHARED, 1));
	CHECK_EQ(an_containers_pick(all), b);
	CHECK_EQ(an_containers_slice_ns(all, b), 5 * MS);
	an_containers_charge(all, b, 5 * MS);
	CHECK_EQ(an_containers_pick(all), b); /* a new round */
	an_containers_charge(all, b, 5 * MS);
	CHECK_EQ(an_containers_pick(all), a);
	CHECK_EQ(an_containers_slice_ns(all, a), 45 * MS);
}

/* Calls that cannot be granted change nothing. */
TEST(containers_are_admitted_within_bounds)
{
	struct an_containers *all = &cpu.all;
	u32 init = begin(0), a, b, deep = init, made = 0;

	CHECK_EQ(an_containers_create(all, 0, AN_CONTAINER_FIXED, 1), AN_CONTAINER_NONE);
	CHECK_EQ(an_containers_create(all, AN_CONTAINER_SYSTEM, AN_CONTAINER_FIXED, 1),
		 AN_CONTAINER_NONE);
	CHECK_EQ(an_containers_create(all, 77, AN_CONTAINER_FIXED, 1), AN_CONTAINER_NONE);
	CHECK_EQ(an_containers_create(all, init, AN_CONTAINER_UNUSED, 1), AN_CONTAINER_NONE);
	CHECK_EQ(an_containers_create(all, init, AN_CONTAINER_SHARED, 0), AN_CONTAINER_NONE);
	CHECK_EQ(an_containers_create(all, init, AN_CONTAINER_SHARED, 10001), AN_CONTAINER_NONE);
	a = container(&cpu, init, AN_CONTAINER_FIXED, 6000);
	CHECK_EQ(an_containers_create(all, init, AN_CONTAINER_FIXED, 4001), AN_CONTAINER_NONE);
	b = container(&cpu, init, AN_CONTAINER_FIXED, 4000);
	CHECK(!an_containers_set(all, a, AN_CONTAINER_FIXED, 6001));
	CHECK_EQ(an_container(all, a)->share, 6000);
	CHECK(an_containers_set(all, a, AN_CONTAINER_FIXED, 5000));
	CHECK(an_containers_set(all, b, AN_CONTAINER_FIXED, 5000));
	CHECK(!an_containers_set(all, AN_CONTAINER_ROOT, AN_CONTAINER_FIXED, 1));
	CHECK(!an_containers_remove(all, AN_CONTAINER_ROOT));
	CHECK(!an_containers_remove(all, init)); /* has children */
	an_containers_queue_add(all, a);
	CHECK(!an_containers_remove(all, a)); /* has a task */
	an_containers_queue_remove(all, a);
	CHECK(an_containers_remove(all, a));
	CHECK(!an_containers_remove(all, a));
	CHECK_EQ(an_container_children(an_container(all, init), AN_CONTAINER_FIXED)->sum, 5000);
	for (u32 level = 2; level <= AN_CONTAINERS_DEPTH; level++)
		deep = container(&cpu, deep, AN_CONTAINER_SHARED, 1);
	CHECK_EQ(an_containers_create(all, deep, AN_CONTAINER_SHARED, 1), AN_CONTAINER_NONE);
	while (an_containers_create(all, init, AN_CONTAINER_SHARED, 1))
		made++;
	CHECK_EQ(all->count, AN_CONTAINERS_MAX - 1); /* all but nobody's */
	CHECK(made > 40);
}

/* One of the lists of a container: linked as counted, its sum that of its members. */
static void check_list(struct an_containers *all, u32 id, u32 kind, u32 *ready)
{
	const struct an_container_list *l = an_container_children(an_container(all, id), kind);
	u32 count = 0, sum = 0, last = 0;
	bool next_found = !l->next;

	for (u32 at = l->first; at; at = an_container(all, at)->sibling) {
		const struct an_container *child = an_container(all, at);

		CHECK_EQ(child->kind, kind);
		CHECK_EQ(child->parent, id);
		CHECK_EQ(child->depth, an_container(all, id)->depth + 1);
		sum += child->share;
		*ready += an_container_runnable(child);
		next_found |= at == l->next;
		last = at;
		CHECK(++count < AN_CONTAINERS_MAX);
	}
	CHECK_EQ(count, l->count);
	CHECK_EQ(sum, l->sum);
	CHECK_EQ(last, l->last);
	CHECK(next_found);
}

static void check_tree(struct an_containers *all)
{
	u32 count = 0;

	for (u32 id = 1; id < AN_CONTAINERS_MAX; id++) {
		const struct an_container *c = an_container(all, id);
		u32 ready = c->tasks > 0;

		if (!an_container_exists(all, id))
			continue;
		count++;
		check_list(all, id, AN_CONTAINER_FIXED, &ready);
		check_list(all, id, AN_CONTAINER_SHARED, &ready);
		CHECK_EQ(ready, c->ready);
		CHECK(c->children[AN_CONTAINER_FIXED].sum <= AN_CONTAINER_WHOLE);
	}
	CHECK_EQ(count, all->count);
	CHECK(an_container_exists(all, all->current));
}

/* Serves whoever is picked until its turn is over. */
static u32 serve_once(struct an_containers *all)
{
	u32 id = an_containers_pick(all);

	if (id == AN_CONTAINER_NONE) {
		CHECK_EQ(an_container(all, AN_CONTAINER_ROOT)->ready, 0);
		return id;
	}
	CHECK(an_container(all, id)->tasks);
	CHECK(an_containers_slice_ns(all, id) > 0);
	do {
		an_containers_charge(all, id,
				     all->tick_ns ? all->tick_ns : an_containers_slice_ns(all, id));
	} while (all->tick_ns && !an_containers_tick(all, id));
	return id;
}

static void random_step(struct an_containers *all, struct random *r)
{
	u32 id = random_below(r, 24), kind = random_below(r, 2);
	u32 share = 1 + random_below(r, kind == AN_CONTAINER_FIXED ? 3000 : 100);
	struct an_container *c = an_container(all, id);

	switch (random_below(r, 8)) {
	case 0:
	case 1:
		an_containers_create(all, id, kind, share);
		break;
	case 2:
		an_containers_remove(all, id);
		break;
	case 3:
		an_containers_set(all, id, kind, share);
		break;
	case 4:
		if (an_container_exists(all, id) && id != AN_CONTAINER_SYSTEM)
			an_containers_queue_add(all, id);
		break;
	case 5:
		if (an_container_exists(all, id) && c->tasks)
			an_containers_queue_remove(all, id);
		break;
	case 6:
		an_containers_charge(all, id, random_scale(r, 28));
		break;
	default:
		serve_once(all);
	}
}

/* Has it fixed shares all the way up? Then nobody may keep it from the CPU for ever. */
static bool guaranteed(struct an_containers *all, u32 id)
{
	for (; id != AN_CONTAINER_ROOT; id = an_container(all, id)->parent)
		if (an_container(all, id)->kind != AN_CONTAINER_FIXED)
			return false;
	return true;
}

/* Whatever is done the tree stays sound, every pick finds a task, and no guarantee is starved. */
TEST(random_containers_stay_sound)
{
	for (u64 seed = test_seed(); seed < test_seed() + 100; seed++) {
		struct random r = {.state = seed};
		struct an_containers *all = &cpu.all;
		bool served[AN_CONTAINERS_MAX] = {false};

		test_scenario(seed);
		an_containers_init(all, 0, seed % 2 ? AN_CONTAINERS_TICK_NS : 0);
		for (u32 step = 0; step < 1000; step++) {
			random_step(all, &r);
			check_tree(all);
		}
		/* Of a guaranteed container's own children, those with tasks come first. */
		for (u32 turn = 0; turn < 4000; turn++)
			served[serve_once(all)] = true;
		for (u32 id = AN_CONTAINER_SYSTEM + 1; id < AN_CONTAINERS_MAX; id++)
			if (an_container_exists(all, id) && guaranteed(all, id) &&
			    !an_container(all, id)->children[AN_CONTAINER_FIXED].count &&
			    an_container(all, id)->tasks)
				CHECK(served[id]);
	}
}
