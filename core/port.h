/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The seam between the core and whatever runs it.
 *
 * core/ is written in the dialect that clang accepts for BPF and cc accepts natively: integers
 * only, no division by zero, no recursion, no function pointers, no structure returned by value,
 * every loop through an_while(), every node through an_node(). This header is all that differs
 * between the two; nothing else in core/ may look at __bpf__.
 */
#ifndef ANDANTE_CORE_PORT_H
#define ANDANTE_CORE_PORT_H

#ifdef __bpf__

/* The BPF shell has the kernel's u8 … s64 and bool before it includes the core. */

/*
 * The verifier proves that a loop ends only if it counts the turns itself: may_goto leaves the
 * loop when the kernel's own bound is reached, which none of ours comes near.
 */
#define an_may_go_on                                                                               \
	({                                                                                         \
		__label__ l_stop, l_done;                                                          \
		bool go_on = true;                                                                 \
		asm volatile goto("may_goto %l[l_stop]" : : : : l_stop);                           \
		goto l_done;                                                                       \
	l_stop:                                                                                    \
		go_on = false;                                                                     \
	l_done:;                                                                                   \
		go_on;                                                                             \
	})
#define an_while(condition) while ((condition) && an_may_go_on)

/* clang drops a mask that it can prove redundant; the verifier, which cannot, wants to see it. */
#define an_bounded(index, size)                                                                    \
	({                                                                                         \
		u64 bounded = (index);                                                             \
		asm volatile("%0 &= %1" : "+r"(bounded) : "i"((size) - 1));                        \
		bounded;                                                                           \
	})

/*
 * The same number, below 2^16, of which the verifier knows nothing more. It would otherwise follow
 * an index that a loop computes through every turn, and look at what comes after a branch once for
 * every constant that the branch may have chosen. A 0 that it knows of it still knows; and each use
 * leaves a value on the stack to be compared: not where two ways meet only to part again.
 */
#define an_opaque(index)                                                                           \
	({                                                                                         \
		volatile u16 opaque = (index);                                                     \
		(u32) opaque;                                                                      \
	})

#define an_assert(condition) ((void)0)
/* Every way through the code is gone through before it may run: one copy of it is better than two
 * that each know more. */
#define an_verified true
#define an_inline static __attribute__((always_inline)) inline
#define an_outline static __attribute__((noinline))
/* A function that the verifier looks at once, for any arguments, and not at every call. For the
 * large ones; it may not be called with a lock held, and a pointer may be NULL for all it knows. */
#define an_global __attribute__((noinline))

#else

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;

#define an_while(condition) while (condition)
#define an_bounded(index, size) ((u64)(index) & ((size) - 1))
#define an_opaque(index) ((u32)(index))

/* Assertions stay on wherever there is somebody to read them. */
#define an_assert(condition)                                                                       \
	do {                                                                                       \
		if (!(condition))                                                                  \
			abort();                                                                   \
	} while (0)
#define an_verified false
/* As in the kernel, so that what is measured here has the same shape. */
#define an_inline static inline __attribute__((always_inline))
/* A file that includes the core need not use all of it. */
#define an_outline static __attribute__((unused))
#define an_global an_outline

#endif

/* Things are named by their index in an array; index 0 is nobody. */
#define AN_NONE 0u

/* An instant that does not come [ns]. */
#define AN_NEVER (~0ULL)

#endif
