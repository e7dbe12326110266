/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One CPU that serves actors in resource containers (papers/containers.h), for tests. An actor runs
 * for ever, or for run_ns and then wakes its partner and waits to be woken. The queue of a
 * container is first come, first served.
 */
#ifndef ANDANTE_TESTS_CONTAINERS_CPU_H
#define ANDANTE_TESTS_CONTAINERS_CPU_H

#include "../papers/containers.h"
#include "random.h"
#include "test.h"

#define MS 1000000ULL
#define SECOND (1000 * MS)
#define ACTORS_MAX 16
#define NOBODY ACTORS_MAX
#define NEVER (~0ULL)

struct actor {
	u32 container;
	u32 partner;
	u64 run_ns, left_ns;
	u64 order; /* of arrival in the queue; 0: waits to be woken, or is in service */
	bool wants;
	u64 got_ns, runs;
};

struct containers_cpu {
	struct an_containers all;
	struct actor actors[ACTORS_MAX];
	u32 count, serving;
	u64 now_ns, next_tick_ns, tick_ns, slice_end_ns, order;
	/* Work that is charged to nobody: so often, so much of a tick. */
	struct random random;
	u32 lost_percent;
	u64 lost_ns;
};

/* tick_ns: 0 for exact accounting. */
static inline void actors_begin(struct containers_cpu *c, u64 tick_ns)
{
	*c = (struct containers_cpu){.serving = NOBODY, .tick_ns = tick_ns};
	an_containers_init(&c->all, 0, tick_ns);
	c->next_tick_ns = tick_ns ? tick_ns : NEVER;
	c->random.state = test_seed();
}

static inline u32 container(struct containers_cpu *c, u32 parent, u32 kind, u32 share)
{
	u32 id = an_containers_create(&c->all, parent, kind, share);

	CHECK(id != AN_CONTAINER_NONE);
	return id;
}

static inline void actor_wake(struct containers_cpu *c, u32 actor)
{
	struct actor *a = &c->actors[actor];

	if (a->wants)
		return;
	a->wants = true;
	a->left_ns = a->run_ns ? a->run_ns : NEVER;
	a->order = ++c->order;
	an_containers_queue_add(&c->all, a->container);
}

static inline void actor_stop(struct containers_cpu *c, u32 actor)
{
	struct actor *a = &c->actors[actor];

	CHECK(a->wants);
	a->wants = false;
	a->order = 0;
	an_containers_queue_remove(&c->all, a->container);
	if (c->serving == actor)
		c->serving = NOBODY;
}

static inline u32 actor_add(struct containers_cpu *c, u32 container, u64 run_ns)
{
	CHECK(c->count < ACTORS_MAX);
	c->actors[c->count] =
		(struct actor){.container = container, .run_ns = run_ns, .partner = NOBODY};
	actor_wake(c, c->count);
	return c->count++;
}

static inline u32 actor_add_hog(struct containers_cpu *c, u32 container)
{
	return actor_add(c, container, 0);
}

/*
 * mpeg_play and X. A frame takes them 39.5 ms together, 25.3 in a second, and they go back and
 * forth so many times for each. Returns the actor whose runs, divided by exchanges, are the frames
 * shown.
 */
static inline u32 actors_add_film(struct containers_cpu *c, u32 of_player, u32 of_server,
				  u32 exchanges)
{
	u32 player = actor_add(c, of_player, 29500000 / exchanges);
	u32 server = actor_add(c, of_server, 10 * MS / exchanges);

	c->actors[player].partner = server;
	c->actors[server].partner = player;
	actor_stop(c, server);
	return server;
}

static inline void actors_pick(struct containers_cpu *c)
{
	u32 id = an_containers_pick(&c->all), first = NOBODY;

	if (id == AN_CONTAINER_NONE) {
		for (u32 i = 0; i < c->count; i++)
			CHECK(!c->actors[i].wants);
		return;
	}
	for (u32 i = 0; i < c->count; i++) {
		const struct actor *a = &c->actors[i];

		if (a->wants && a->container == id &&
		    (first == NOBODY || a->order < c->actors[first].order))
			first = i;
	}
	CHECK(first != NOBODY); /* a pick always finds a task */
	c->serving = first;
	c->slice_end_ns = c->now_ns + an_containers_slice_ns(&c->all, id);
}

static inline void actors_advance(struct containers_cpu *c, u64 to_ns)
{
	u64 ran_ns = to_ns - c->now_ns, lost_ns = 0;
	struct actor *a = &c->actors[c->serving];

	c->now_ns = to_ns;
	if (c->serving == NOBODY)
		return;
	if (to_ns == c->next_tick_ns && random_chance(&c->random, c->lost_percent))
		lost_ns = c->lost_ns < ran_ns ? c->lost_ns : ran_ns;
	an_containers_charge(&c->all, a->container, ran_ns - lost_ns);
	an_containers_charge(&c->all, AN_CONTAINER_SYSTEM, lost_ns);
	a->got_ns += ran_ns;
	if (a->left_ns != NEVER)
		a->left_ns -= ran_ns;
}

/* The actor in service is at the end of its run: its partner goes on. */
static inline void actors_hand_over(struct containers_cpu *c)
{
	u32 actor = c->serving;

	c->actors[actor].runs++;
	actor_stop(c, actor);
	if (c->actors[actor].partner != NOBODY)
		actor_wake(c, c->actors[actor].partner);
}

static inline void actors_run(struct containers_cpu *c, u64 until_ns)
{
	while (c->now_ns < until_ns) {
		u64 next_ns = until_ns < c->next_tick_ns ? until_ns : c->next_tick_ns;
		bool over = false;

		if (c->serving == NOBODY)
			actors_pick(c);
		if (c->serving != NOBODY) {
			const struct actor *a = &c->actors[c->serving];

			if (c->slice_end_ns < next_ns)
				next_ns = c->slice_end_ns;
			if (a->left_ns != NEVER && c->now_ns + a->left_ns < next_ns)
				next_ns = c->now_ns + a->left_ns;
		}
		actors_advance(c, next_ns);
		if (c->now_ns == c->next_tick_ns) {
			c->next_tick_ns += c->tick_ns;
			over = c->serving != NOBODY &&
			       an_containers_tick(&c->all, c->actors[c->serving].container);
		}
		if (c->serving == NOBODY)
			continue;
		if (!c->actors[c->serving].left_ns) {
			actors_hand_over(c);
		} else if (over || c->now_ns == c->slice_end_ns) {
			c->actors[c->serving].order = ++c->order;
			c->serving = NOBODY;
		}
	}
}

#endif
