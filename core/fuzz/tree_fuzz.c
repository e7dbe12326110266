// SPDX-License-Identifier: GPL-2.0
/*
 * Fuzz target: bytes are calls on the tree, the invariants are asserted after each.
 *
 * The first byte says how many CPUs there are. Every further pair of bytes is a call and its
 * operand. The shell's duties are kept (a CPU stops only what it serves, a leaf is named by a live
 * index); anything else may come in any order.
 *
 * With clang -fsanitize=fuzzer this is a libFuzzer target, with -DPLAIN a program [plain.h].
 */
#include "plain.h"

#include "../tests/invariants.h"

#define FUZZ_CPUS 4
#define FUZZ_CLASSES 48 /* keeps a run fast; the array's end is a unit test's matter */
#define QUANTUM_NS 4000000

static struct an_tree tree;
static struct invariants invariants;

/* What the shell remembers: the leaf that each CPU serves. */
static struct {
	u32 cpus;
	u32 serving[FUZZ_CPUS];
} shell;

static void check(const char *call)
{
	u32 at = 0;
	const char *broken = invariant_broken(&tree, &invariants, &at);

	if (!broken)
		return;
	fprintf(stderr, "after %s: node %u: not so: %s\n", call, at, broken);
	abort();
}

/* A live leaf; every value of the operand names one. */
static u32 leaf_of(u8 operand)
{
	u32 at = AN_ROOT_LEAF + operand % (tree.unused - AN_ROOT_LEAF);

	while (tree.nodes[at].kind != AN_LEAF)
		at = at + 1 < tree.unused ? at + 1 : AN_ROOT_LEAF;
	return at;
}

/* 1 to 10000, small weights in small steps. */
static u32 weight_of(u8 operand)
{
	return operand < 128 ? operand : (operand - 127) * 80;
}

/* ---- calls that shape the tree ---- */

static void create(u8 operand)
{
	if (tree.classes < FUZZ_CLASSES)
		an_class_create(&tree, leaf_of(operand), operand, weight_of(operand));
}

static void remove_class(u8 operand)
{
	an_class_remove(&tree, leaf_of(operand));
}

static void set_weight(u8 operand)
{
	an_class_set_weight(&tree, leaf_of(operand), weight_of((u8)(operand * 37)));
}

static u64 cpu_bit(u8 operand)
{
	return 1ULL << operand % shell.cpus;
}

/* ---- calls that queue ---- */

static void queue_add(u8 operand)
{
	an_queue_add_by(&tree, leaf_of(operand), operand);
}

static void queue_withdraw(u8 operand)
{
	an_queue_withdraw(&tree, leaf_of(operand));
}

static void queue_correct(u8 operand)
{
	an_queue_correct(&tree, leaf_of(operand), operand >> 6);
}

/* ---- calls that serve ---- */

static void pick(u8 operand)
{
	u32 *serving = &shell.serving[operand % shell.cpus];

	if (!*serving)
		*serving = an_pick(&tree, cpu_bit(operand));
}

static void unpick(u8 operand)
{
	u32 *serving = &shell.serving[operand % shell.cpus];

	if (!*serving)
		return;
	an_unpick(&tree, *serving);
	an_unusable_by(&tree, *serving, cpu_bit(operand));
	*serving = AN_NONE;
}

static void serve_unpicked(u8 operand)
{
	u32 *serving = &shell.serving[operand % shell.cpus];

	if (*serving)
		return;
	*serving = leaf_of(operand / shell.cpus);
	an_serve_unpicked(&tree, *serving);
}

static void continue_quantum(u8 operand)
{
	u32 serving = shell.serving[operand % shell.cpus];

	if (serving)
		an_continue(&tree, serving);
}

/* Stops, after a power of two of nanoseconds; every other time the task wants to go on. */
static void stop(u8 operand)
{
	u32 *serving = &shell.serving[operand % shell.cpus];

	if (!*serving)
		return;
	if (operand & 0x80)
		an_queue_add(&tree, *serving);
	an_stop(&tree, *serving, (1ULL << (operand >> 2) % 26) - 1);
	*serving = AN_NONE;
}

static void preempt(u8 operand)
{
	u32 serving = shell.serving[operand % shell.cpus], woken = leaf_of(operand);

	if (serving && serving != woken && tree.nodes[serving].kind == AN_LEAF)
		an_preempt_after_ns(&tree, woken, serving);
}

static const struct {
	const char *name;
	void (*call)(u8 operand);
} calls[] = {
	{"create", create},
	{"remove", remove_class},
	{"set_weight", set_weight},
	{"queue_add", queue_add},
	{"queue_add", queue_add},
	{"queue_withdraw", queue_withdraw},
	{"queue_correct", queue_correct},
	{"pick", pick},
	{"pick", pick},
	{"unpick", unpick},
	{"serve_unpicked", serve_unpicked},
	{"continue", continue_quantum},
	{"stop", stop},
	{"stop", stop},
	{"preempt", preempt},
};

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	if (!size)
		return 0;
	input_begin(data, size);
	memset(&shell, 0, sizeof(shell));
	shell.cpus = 1 + data[0] % FUZZ_CPUS;
	fresh_tree(&tree, &invariants, QUANTUM_NS, shell.cpus);
	for (size_t i = 1; i + 1 < size; i += 2) {
		u32 call = data[i] % (sizeof(calls) / sizeof(calls[0]));

		input.at = i + 2;
		calls[call].call(data[i + 1]);
		check(calls[call].name);
	}
	return 0;
}
