/* SPDX-License-Identifier: GPL-2.0 */
/* What user space does to the scheduler compiled with the model, whichever it is. */
#include "model.h"

#include <string.h>
#include <sys/mman.h>

/* Knobs are constants to the scheduler; before it begins user space writes them, as libbpf does. */
static void knob(const volatile void *at, const void *value, unsigned long size)
{
	unsigned long page = (unsigned long)at & ~4095UL;
	unsigned long length = (unsigned long)at + size - page;

	model_assert(!mprotect((void *)page, length, PROT_READ | PROT_WRITE));
	/* A compiler may take it that nobody writes to a constant. */
	__asm__("" : "+r"(at));
	memcpy((void *)at, value, size);
}

const char *sim_scheduler(void)
{
	return model_scheduler;
}
