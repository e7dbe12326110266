/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A process with threads, for the tests of contracts.
 *
 *      threads N           N threads that loop for ever; the first one sleeps
 *      threads N MS        ... that end after so many milliseconds of their own CPU time
 *      threads N MS PAUSE  ... that pause then for so many milliseconds, and begin anew
 *
 * Prints the id of each thread on a line of its own, the sleeping one's first. A new thread is
 * started by SIGUSR1, and its id printed.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static long run_ms, pause_ms;

static void *loop(void *unused)
{
	struct timespec used = {};
	long until_ms = run_ms;

	(void)unused;
	printf("%d\n", gettid());
	fflush(stdout);
	for (;;) {
		while (!run_ms || used.tv_sec * 1000 + used.tv_nsec / 1000000 < until_ms) {
			__asm__ volatile(".rept 500; nop; .endr"); /* as endless.c */
			clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
		}
		if (!pause_ms)
			return NULL;
		until_ms += run_ms;
		usleep(pause_ms * 1000);
	}
}

int main(int argc, char **argv)
{
	int left = argc > 1 ? atoi(argv[1]) : 1, signal;
	pthread_t thread;
	sigset_t more;

	run_ms = argc > 2 ? atol(argv[2]) : 0;
	pause_ms = argc > 3 ? atol(argv[3]) : 0;
	printf("%d\n", getpid());
	fflush(stdout);
	sigemptyset(&more);
	sigaddset(&more, SIGUSR1);
	sigprocmask(SIG_BLOCK, &more, NULL);
	for (;;) {
		while (left-- > 0)
			pthread_create(&thread, NULL, loop, NULL);
		sigwait(&more, &signal);
		left = 1;
	}
}
