/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a wake-up costs [ns], a line for each number of classes.
 *
 *      ring HOPS CLASSES...
 *
 * One task in each class waits for a token, and passes it on to the next.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CGROUP "/sys/fs/cgroup/ring"
#define CLASSES_MAX 2000

static int pipes[CLASSES_MAX][2], here[2];
static pid_t members[CLASSES_MAX];
static long *came_round_ns; /* when the token had been round often enough */

static void fails(const char *what)
{
	perror(what);
	exit(1);
}

static void writes(const char *path, const char *text)
{
	int file = open(path, O_WRONLY);

	if (file < 0 || write(file, text, strlen(text)) < 0)
		fails(path);
	close(file);
}

static void says(int file)
{
	if (write(file, "t", 1) != 1)
		exit(0);
}

static void hears(int file)
{
	char token;

	if (read(file, &token, 1) != 1)
		exit(0);
}

static long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000L + now.tv_nsec;
}

/* The first one notes when the token has come round so many times, and says so: that it is heard at
 * once is no part of what a wake-up costs. */
static void passes(int member, int count, int rounds)
{
	char path[100];

	snprintf(path, sizeof path, CGROUP "/c%d/cgroup.procs", member);
	writes(path, "0");
	says(here[1]);
	for (;;) {
		hears(pipes[member][0]);
		says(pipes[(member + 1) % count][1]);
		if (!member && !--rounds) {
			*came_round_ns = now_ns();
			says(here[1]);
		}
	}
}

static void begins(int count, int rounds)
{
	char path[100];

	for (int i = 0; i < count; i++) {
		snprintf(path, sizeof path, CGROUP "/c%d", i);
		if (mkdir(path, 0755) || pipe(pipes[i]))
			fails(path);
	}
	for (int i = 0; i < count; i++) {
		members[i] = fork();
		if (members[i] < 0)
			fails("fork");
		if (!members[i])
			passes(i, count, rounds);
	}
	for (int i = 0; i < count; i++)
		hears(here[0]);
	sleep(1); /* until the last of them waits */
}

static void ends(int count)
{
	char path[100];

	for (int i = 0; i < count; i++)
		kill(members[i], SIGKILL);
	for (int i = 0; i < count; i++) {
		waitpid(members[i], NULL, 0);
		close(pipes[i][0]);
		close(pipes[i][1]);
		snprintf(path, sizeof path, CGROUP "/c%d", i);
		if (rmdir(path))
			fails(path);
	}
}

int main(int argc, char **argv)
{
	struct rlimit files = {2 * CLASSES_MAX + 100, 2 * CLASSES_MAX + 100};
	int hops = argc > 2 ? atoi(argv[1]) : 0;

	came_round_ns =
		mmap(NULL, sizeof(long), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (came_round_ns == MAP_FAILED)
		fails("mmap");
	if (hops < 1 || setrlimit(RLIMIT_NOFILE, &files) || pipe(here))
		fails("usage: ring HOPS CLASSES...");
	writes("/sys/fs/cgroup/cgroup.subtree_control", "+cpu");
	if (mkdir(CGROUP, 0755))
		fails(CGROUP);
	writes(CGROUP "/cgroup.subtree_control", "+cpu");
	for (int i = 2; i < argc; i++) {
		int count = atoi(argv[i]), rounds;
		long began_ns;

		if (count < 1 || count > CLASSES_MAX)
			fails("1 to 2000 classes");
		rounds = (hops + count - 1) / count;
		begins(count, rounds);
		began_ns = now_ns();
		says(pipes[0][1]);
		hears(here[0]);
		printf("%ld\n", (*came_round_ns - began_ns) / rounds / count);
		ends(count);
	}
	return rmdir(CGROUP) ? 1 : 0;
}
