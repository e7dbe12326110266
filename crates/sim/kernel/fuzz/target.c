/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Fuzz target: bytes choose the operations and the interleaving of a search for races
 * (race_bytes.c), so that what reaches new code of the scheduler's is kept and changed further.
 * `race --bytes FILE` runs an input again, without a fuzzer.
 *
 * Every input has a machine of its own: all that the machine, the search and the scheduler keep in
 * variables lies between two files that are linked first and last, and is as it was in the
 * beginning; what they have allocated is given up as a whole.
 */
#include "../race.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

extern char fuzz_first_zero[64], fuzz_last_zero[64];
extern char fuzz_first_data[64], fuzz_last_data[64];

/* ---- memory: the machine's malloc() and so on are these (Makefile) ---- */

#define HEAP_BYTES (1UL << 30)
#define ALIGNED 16UL

static char *heap;
static size_t heap_used;

static size_t *size_before(void *at)
{
	return (size_t *)((char *)at - ALIGNED);
}

void *fuzz_malloc(size_t bytes)
{
	char *at;

	bytes = (bytes + ALIGNED - 1) & ~(ALIGNED - 1);
	if (heap_used + ALIGNED + bytes > HEAP_BYTES)
		abort();
	at = heap + heap_used + ALIGNED;
	heap_used += ALIGNED + bytes;
	*size_before(at) = bytes;
	return at;
}

/* Whatever is taken was never used, or zeroed by begins_anew(). */
void *fuzz_calloc(size_t count, size_t bytes)
{
	return fuzz_malloc(count * bytes);
}

void *fuzz_realloc(void *from, size_t bytes)
{
	void *to;

	if (from && *size_before(from) >= bytes)
		return from;
	to = fuzz_malloc(bytes);
	if (from)
		memcpy(to, from, *size_before(from));
	return to;
}

void fuzz_free(void *at)
{
	(void)at;
}

/* ---- a machine for each input ---- */

/* A compiler may take it that nothing lies behind an array. */
static char *placed(char *at)
{
	__asm__("" : "+r"(at));
	return at;
}

static void begins_anew(void)
{
	static char *begun;
	char *data = placed(fuzz_first_data), *data_end = placed(fuzz_last_data);
	char *zero = placed(fuzz_first_zero), *zero_end = placed(fuzz_last_zero);

	if (!begun) {
		begun = malloc((size_t)(data_end - data));
		heap = mmap(NULL, HEAP_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (!begun || heap == MAP_FAILED || data_end < data || zero_end < zero) {
			fprintf(stderr, "fuzz: no memory, or the linker has changed the order\n");
			exit(1);
		}
		memcpy(begun, data, (size_t)(data_end - data));
		return;
	}
	memcpy(data, begun, (size_t)(data_end - data));
	memset(zero, 0, (size_t)(zero_end - zero));
	memset(heap, 0, heap_used);
	heap_used = 0;
}

int LLVMFuzzerTestOneInput(const u8 *bytes, size_t size)
{
	begins_anew();
	trial = bytes_trial(bytes, size);
	race_runs();
	return 0;
}
