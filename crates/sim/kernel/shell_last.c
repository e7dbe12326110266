/* SPDX-License-Identifier: GPL-2.0 */
/* Linked right behind the scheduler: where what it keeps ends, and how it is made anew. */
#include "model.h"

#include <string.h>

char shell_last_zero[64] __attribute__((aligned(64)));
char shell_last_data[64] __attribute__((aligned(64))) = {1};

extern char shell_first_zero[64], shell_first_data[64];

/*
 * What is in the scheduler's maps and variables as it is loaded, knobs apart: what the compiler has
 * put between the two files, zero or as it was when the machine began. The linker keeps the order
 * in which it was given them.
 */
void shell_resets(void)
{
	static char *begun;
	char *from = shell_first_data + sizeof(shell_first_data);
	u64 bytes = (u64)(shell_last_data - from);

	model_assert(from <= shell_last_data);
	model_assert(model_shell_lies(shell_first_zero, shell_last_zero));
	if (!begun) {
		begun = malloc(bytes + 1);
		model_assert(begun);
		memcpy(begun, from, bytes);
		return;
	}
	memcpy(from, begun, bytes);
	memset(shell_first_zero, 0, (u64)(shell_last_zero - shell_first_zero));
	storage_resets();
	dsqs_reset();
	timers_reset();
}
