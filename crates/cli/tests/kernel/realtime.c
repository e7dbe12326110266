/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A real-time thread that, in the midst of its work, wakes one that is none: as a sound server wakes
 * its clients.
 *
 *      realtime TIMES   prints how long the latter had to wait at most after the former was done [µs]
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define WORK_NS 100000

static sem_t woken;
static volatile long done_ns;
static int times;

static long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000L + now.tv_nsec;
}

static void *wakes(void *unused)
{
	for (int i = 0; i < times; i++) {
		/* Not in step with the slices of whoever is interrupted. */
		struct timespec pause = { .tv_nsec = 9000000 + i * 137000 % 2000000 };
		long from_ns;

		nanosleep(&pause, NULL);
		from_ns = now_ns();
		sem_post(&woken);
		do
			done_ns = now_ns();
		while (done_ns - from_ns < WORK_NS);
	}
	return unused;
}

int main(int argc, char **argv)
{
	struct sched_param priority = { .sched_priority = 10 };
	long longest_ns = 0;
	pthread_attr_t attr;
	pthread_t thread;

	times = argc > 1 ? atoi(argv[1]) : 1;
	sem_init(&woken, 0, 0);
	pthread_attr_init(&attr);
	pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attr, SCHED_FIFO);
	pthread_attr_setschedparam(&attr, &priority);
	if (pthread_create(&thread, &attr, wakes, NULL)) {
		perror("a real-time thread");
		return 1;
	}
	for (int i = 0; i < times; i++) {
		long waited_ns;

		sem_wait(&woken);
		waited_ns = now_ns() - done_ns;
		if (waited_ns > longest_ns)
			longest_ns = waited_ns;
	}
	printf("%ld\n", longest_ns / 1000);
	return 0;
}
