/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A trial as bytes say it, for a fuzzer that learns which bytes reach new code (fuzz/target.c), and
 * for `race --bytes FILE`, which runs what that has kept.
 *
 *      byte 0     CPUs, tasks
 *      1 to 4     kinds of operations, a bit each; none: all
 *      others     what would be drawn, one after the other: operations, interleaving, lengths
 *
 * Behind them chance goes on, from a seed that is what the bytes add up to.
 */
#include "race.h"

#include <string.h>

#define HEADER_BYTES 5
#define STEPS 12000 /* of a trial: some 50 in a second, with coverage counted */

static struct {
	const u8 *data;
	u64 size, at;
} input;

/* The next of the bytes, as many as it takes; false: there are no more. */
bool bytes_choose(u64 below, u64 *value)
{
	u64 bytes = below <= 256 ? 1 : below <= 65536 ? 2 : 4;

	if (input.at + bytes > input.size)
		return false;
	*value = 0;
	while (bytes--)
		*value = *value << 8 | input.data[input.at++];
	*value %= below;
	return true;
}

struct trial bytes_trial(const u8 *data, u64 size)
{
	struct trial t = {.seed = 1469598103934665603ULL,
			  .steps = STEPS,
			  .cpus = 4,
			  .tasks = 16,
			  .ops = (1U << OP_KINDS) - 1};
	u32 ops = 0;

	input.data = data;
	input.size = size;
	input.at = size < HEADER_BYTES ? size : HEADER_BYTES;
	for (u64 at = 0; at < size; at++)
		t.seed = (t.seed ^ data[at]) * 1099511628211ULL;
	if (size < HEADER_BYTES)
		return t;
	t.cpus = 1 + data[0] % 6;
	t.tasks = 4U << (data[0] / 6 % 4);
	t.threads_of_core = data[0] & 128 ? 2 : 0;
	memcpy(&ops, data + 1, sizeof(ops));
	ops &= (1U << OP_KINDS) - 1;
	t.ops = (ops ? ops : t.ops) | 1U << OP_WORK | 1U << OP_SLEEP;
	if (model_has_domains)
		t.domain_cpus = 2;
	return t;
}
