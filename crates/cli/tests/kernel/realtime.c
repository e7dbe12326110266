/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A real-time thread that, in the midst of its work, wakes one that is none: as a sound server wakes
 * its clients.
 *
 *      realtime TIMES   prints how long the latter had to wait after the former was done [µs]: at most in
 *                       99 of 100 times, and at most; once in a while something of the kernel's is at work
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

static int shorter(const void *a, const void *b)
{
	long one_ns = *(const long *)a, other_ns = *(const long *)b;

	return (one_ns > other_ns) - (one_ns < other_ns);
}

int main(int argc, char **argv)
{
	struct sched_param priority = { .sched_priority = 10 };
	long *waited_ns;
	pthread_attr_t attr;
	pthread_t thread;

	times = argc > 1 ? atoi(argv[1]) : 1;
	waited_ns = calloc(times, sizeof *waited_ns);
	if (!waited_ns)
		return 1;
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
		sem_wait(&woken);
		waited_ns[i] = now_ns() - done_ns;
	}
	qsort(waited_ns, times, sizeof *waited_ns, shorter);
	printf("%ld %ld\n", waited_ns[times - 1 - times / 100] / 1000, waited_ns[times - 1] / 1000);
	return 0;
}
