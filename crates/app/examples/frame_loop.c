/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Sixty frames a second, each of so many ms of work: frame_loop [FRAMES [WORK_MS]]. Says at the
 * end how many were late. Runs with Andante and without it.
 *
 *	cc -std=gnu99 -O2 frame_loop.c -o frame_loop -ldl
 */
#define _POSIX_C_SOURCE 200809L
#include <andante/optional.h>

#include <stdio.h>
#include <stdlib.h>

static const uint64_t period_ns = 16666667;

static void sleep_until(uint64_t ns)
{
	struct timespec at;

	at.tv_sec = (time_t)(ns / 1000000000);
	at.tv_nsec = (long)(ns % 1000000000);
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

/* Stands for what a game computes and draws. */
static void work(uint64_t ns)
{
	uint64_t until_ns = andante_now_ns() + ns;

	while (andante_now_ns() < until_ns)
		;
}

int main(int argc, char **argv)
{
	int frames = argc > 1 ? atoi(argv[1]) : 300;
	uint64_t work_ns = (uint64_t)(argc > 2 ? atoi(argv[2]) : 4) * 1000000;
	struct andante_wish wish = {
		.size = sizeof wish, .role = ANDANTE_ROLE_GAME, .period_ns = period_ns};
	andante_session *session;
	andante_thread *thread;
	uint64_t frame_ns;
	int late = 0, i;

	if (andante_open(&wish, &session) < 0)
		printf("without Andante: %s\n", andante_last_message());
	andante_join(session, NULL, &thread);
	frame_ns = andante_now_ns();
	for (i = 0; i < frames; i++) {
		sleep_until(frame_ns);
		frame_ns += period_ns;
		andante_begin(thread, frame_ns);
		work(work_ns);
		andante_end(thread);
		late += andante_now_ns() > frame_ns;
	}
	printf("%d of %d frames were late\n", late, frames);
	andante_leave(thread);
	andante_close(session);
	return 0;
}
