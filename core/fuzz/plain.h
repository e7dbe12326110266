/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What fuzz targets have in common: how bytes are read, how a failure is told, and, with -DPLAIN,
 * a program in place of libFuzzer: TARGET [--seed N] [--runs N] [FILE...] runs the files and then N
 * random inputs. A target defines LLVMFuzzerTestOneInput() and includes this first.
 */
#ifndef ANDANTE_FUZZ_PLAIN_H
#define ANDANTE_FUZZ_PLAIN_H

#include "../tests/random.h"
#include "../tests/test.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define INPUT_MAX 4096 /* [bytes]; libFuzzer is told the same */

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

/* The input, and how much of it has been used. */
static struct {
	const u8 *data;
	size_t size, at;
} input;

static inline void input_begin(const u8 *data, size_t size)
{
	input.data = data;
	input.size = size;
	input.at = 0;
}

static inline bool input_left(void)
{
	return input.at < input.size;
}

/* The next byte; behind the end there are zeros. */
static inline u8 take(void)
{
	return input_left() ? input.data[input.at++] : 0;
}

/* How checks of the tests' fixtures fail here: libFuzzer keeps the input. */
void test_fail(const char *file, int line, const char *format, ...)
{
	va_list arguments;

	fprintf(stderr, "%s:%d: after %zu bytes: ", file, line, input.at);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	abort();
}

#ifdef PLAIN

static int run_file(const char *path)
{
	static u8 bytes[1 << 20];
	FILE *file = fopen(path, "rb");
	size_t size;

	if (!file) {
		fprintf(stderr, "%s: cannot be opened\n", path);
		return 1;
	}
	size = fread(bytes, 1, sizeof(bytes), file);
	fclose(file);
	return LLVMFuzzerTestOneInput(bytes, size);
}

static void run_random(u64 seed, u64 runs)
{
	static u8 bytes[INPUT_MAX];

	for (u64 run = 0; run < runs; run++) {
		struct random r = {seed + run};
		size_t size = random_below(&r, INPUT_MAX);

		for (size_t i = 0; i < size; i++)
			bytes[i] = random_next(&r);
		LLVMFuzzerTestOneInput(bytes, size);
	}
}

int main(int count, char **arguments)
{
	const char *name = strrchr(arguments[0], '/') ? strrchr(arguments[0], '/') + 1 : "fuzz";
	u64 seed = 1, runs = 0, files = 0;

	for (int i = 1; i < count; i++) {
		if (!strcmp(arguments[i], "--seed") && i + 1 < count)
			seed = strtoull(arguments[++i], NULL, 0);
		else if (!strcmp(arguments[i], "--runs") && i + 1 < count)
			runs = strtoull(arguments[++i], NULL, 0);
		else if (files++, run_file(arguments[i]))
			return 1;
	}
	run_random(seed, runs);
	printf("%s: %llu inputs kept and %llu random ones from seed %llu, no invariant broken\n",
	       name, (unsigned long long)files, (unsigned long long)runs, (unsigned long long)seed);
	return 0;
}

#endif

#endif
