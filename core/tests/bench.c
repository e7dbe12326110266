// SPDX-License-Identifier: GPL-2.0
/*
 * What one quantum costs: pick, queue the task again, stop.
 *
 * bench DEPTH SIBLINGS QUANTA: a chain DEPTH classes deep with SIBLINGS ready leaves at its end,
 * that many quanta; prints ns per quantum. bench.sh makes a table of it, with instructions.
 */
#include "../core.h"

#include <stdio.h>
#include <time.h>

static struct an_tree tree;

static u64 clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

static void build(u32 depth, u32 siblings)
{
	u32 parent = AN_ROOT_LEAF;

	an_tree_init(&tree, 4000000, 1);
	while (depth-- > 1)
		parent = an_class_create(&tree, parent, 0, 100);
	for (u32 i = 0; i < siblings; i++)
		an_queue_add(&tree, an_class_create(&tree, parent, 0, 1 + i % 100));
}

/* Of its own, so that a profiler can tell it from the rest. */
__attribute__((noinline)) static void run(u32 quanta)
{

	while (quanta--) {
		u32 leaf = an_pick(&tree, 0);

		an_queue_add(&tree, leaf);
		an_stop(&tree, leaf, 4000000);
	}
}

int main(int count, char **arguments)
{
	u32 depth, siblings, quanta;
	u64 begin_ns;

	if (count != 4) {
		fprintf(stderr, "bench DEPTH SIBLINGS QUANTA\n");
		return 2;
	}
	depth = atoi(arguments[1]);
	siblings = atoi(arguments[2]);
	quanta = atoi(arguments[3]);
	build(depth, siblings);
	begin_ns = clock_ns();
	run(quanta);
	printf("%.1f\n", (double)(clock_ns() - begin_ns) / quanta);
	return 0;
}
