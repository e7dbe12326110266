/* SPDX-License-Identifier: GPL-2.0 */
/* Claims of the tests' programs: the first that fails ends the program, and says where it is. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(claim)                                                                               \
	do {                                                                                       \
		if (!(claim)) {                                                                    \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #claim);                \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

/* An error that is expected, or 0. */
#define RETURNS(expected, call)                                                                    \
	do {                                                                                       \
		int got_ = (call);                                                                 \
		if (got_ != (expected)) {                                                          \
			fprintf(stderr, "%s:%d: %s: %d, not %d: %s\n", __FILE__, __LINE__, #call,  \
				got_, (int)(expected), andante_last_message());                    \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

#endif
