/* SPDX-License-Identifier: GPL-2.0 */
/* What clang's and Rust's ThreadSanitizer have, and gcc's calls otherwise: each is seen as any
 * other. */
#include <stddef.h>
#include <string.h>

void *__tsan_memcpy(void *to, const void *from, size_t length);
void *__tsan_memmove(void *to, const void *from, size_t length);
void *__tsan_memset(void *to, int byte, size_t length);

void *__tsan_memcpy(void *to, const void *from, size_t length)
{
	return memcpy(to, from, length);
}

void *__tsan_memmove(void *to, const void *from, size_t length)
{
	return memmove(to, from, length);
}

void *__tsan_memset(void *to, int byte, size_t length)
{
	return memset(to, byte, length);
}
