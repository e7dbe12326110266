/* SPDX-License-Identifier: GPL-2.0 */
/* What the tests' programs share: claims, of which the first that fails ends the program and says
 * where it is, and a session. */
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

/* A session of a game of 60 frames a second; the name may be NULL, and the budget 0. */
static inline andante_session *opened(const char *name, uint64_t budget_ns)
{
	struct andante_wish wish;
	andante_session *session;

	memset(&wish, 0, sizeof wish);
	wish.size = sizeof wish;
	wish.role = ANDANTE_ROLE_GAME;
	wish.period_ns = 16666667;
	wish.budget_ns = budget_ns;
	wish.name = name;
	RETURNS(0, andante_open(&wish, &session));
	CHECK(session != NULL);
	return session;
}

#endif
