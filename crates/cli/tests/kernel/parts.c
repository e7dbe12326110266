/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which part of a CPU each of these uses, a line each [%].
 *
 *      parts SECONDS PID|PID/task/TID|CGROUP...   all threads of a process, one of them, or all
 * that is in a control group, named by its folder
 *
 * A real-time task: nobody whom it measures comes between its reading of a CPU time and of the
 * clock. For a shell beside endless loops and contracts the two are up to fifty milliseconds apart.
 */
#include <errno.h>
#include <glob.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct sample {
	long used_ns, at_ns;
};

static long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000L + now.tv_nsec;
}

/* The number that the format finds in a file, or 0; who has ended since has none. */
static long number_in(const char *path, const char *format)
{
	FILE *file = fopen(path, "r");
	long number = 0;

	if (!file)
		return 0;
	if (fscanf(file, format, &number) != 1)
		number = 0;
	fclose(file);
	return number;
}

static long used_ns(const char *of)
{
	char path[256];
	glob_t threads;
	long sum_ns = 0;

	if (of[0] == '/') {
		snprintf(path, sizeof(path), "%s/cpu.stat", of);
		return number_in(path, "usage_usec %ld") * 1000;
	}
	snprintf(path, sizeof(path),
		 strchr(of, '/') ? "/proc/%s/schedstat" : "/proc/%s/task/*/schedstat", of);
	if (glob(path, 0, NULL, &threads))
		return 0;
	for (size_t i = 0; i < threads.gl_pathc; i++)
		sum_ns += number_in(threads.gl_pathv[i], "%ld");
	globfree(&threads);
	return sum_ns;
}

static void take(struct sample *samples, char **of, int count)
{
	for (int i = 0; i < count; i++)
		samples[i] = (struct sample){used_ns(of[i]), now_ns()};
}

int main(int argc, char **argv)
{
	struct sched_param priority = {.sched_priority = 99};
	double seconds = argc > 2 ? atof(argv[1]) : 0;
	struct timespec pause = {(long)seconds, (long)((seconds - (long)seconds) * 1e9)};
	int count = argc - 2;

	if (seconds <= 0) {
		fprintf(stderr, "parts SECONDS PID|PID/task/TID|CGROUP...\n");
		return 2;
	}
	if (sched_setscheduler(0, SCHED_FIFO, &priority)) {
		perror("parts: a real-time task");
		return 1;
	}
	struct sample before[count], after[count];

	take(before, argv + 2, count);
	while (nanosleep(&pause, &pause) && errno == EINTR)
		;
	take(after, argv + 2, count);
	for (int i = 0; i < count; i++)
		printf("%.3f\n", (after[i].used_ns - before[i].used_ns) * 100.0 /
					 (after[i].at_ns - before[i].at_ns));
	return 0;
}
