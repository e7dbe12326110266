/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Clients of the daemon's socket, as the user of this number.
 *
 *      flood UID connects       connects and closes, as fast as it can
 *      flood UID half-open      keeps two thousand connections, or as many as it is given, each with
 *                               half a request
 *      flood UID reads-nothing  asks a hundred things at a time, and reads no answer
 *      flood UID asks           asks two hundred things, one after the other; says how long 99 of a
 *                               hundred answers take at most, and how many are refused [µs]
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define LIST "{\"op\":\"list\"}\n"
#define MOST 2000
#define ASKS 200
#define PIPELINE 100

static void fails(const char *what)
{
	perror(what);
	exit(1);
}

static int connected(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "/run/andante.sock" };
	int one = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (one >= 0 && connect(one, (struct sockaddr *)&address, sizeof address) < 0) {
		close(one);
		return -1;
	}
	return one;
}

/* Keeps so many connections, and says this on each as often; the oldest make room. */
static void keeps(int most, const char *text, int times)
{
	static int open[MOST];

	for (int at = 0;; at = (at + 1) % most) {
		if (open[at] > 0)
			close(open[at]);
		open[at] = connected();
		for (int said = 0; open[at] >= 0 && said < times; said++)
			if (send(open[at], text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
				break;
	}
}

static double now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1e6 + now.tv_nsec / 1e3;
}

/* The whole answer, a line. Was it one? */
static int answered(int one)
{
	char answer[65536];
	ssize_t read_now, all = 0;

	if (one < 0 || send(one, LIST, strlen(LIST), MSG_NOSIGNAL) < 0)
		return 0;
	do {
		read_now = read(one, answer + all, sizeof answer - all);
		all += read_now;
	} while (read_now > 0 && answer[all - 1] != '\n' && all < (ssize_t)sizeof answer);
	return read_now > 0 && !strncmp(answer, "{\"contracts\"", 12);
}

static int by_size(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

static void asks(void)
{
	double took_us[ASKS];
	int refused = 0;

	for (int i = 0; i < ASKS; i++) {
		double begun_us = now_us();
		int one = connected();

		refused += !answered(one);
		took_us[i] = now_us() - begun_us;
		if (one >= 0)
			close(one);
		poll(NULL, 0, 10);
	}
	qsort(took_us, ASKS, sizeof took_us[0], by_size);
	printf("%.0f %d\n", took_us[ASKS * 99 / 100 - 1], refused);
}

int main(int count, char **arguments)
{
	struct rlimit files = { MOST + 100, MOST + 100 };
	const char *what = count == 3 ? arguments[2] : "";
	int uid = count == 3 ? atoi(arguments[1]) : 0;

	if (setrlimit(RLIMIT_NOFILE, &files) < 0 || setgid(uid) < 0 || setuid(uid) < 0)
		fails("flood");
	if (!strcmp(what, "connects"))
		keeps(1, "", 0);
	else if (!strcmp(what, "half-open"))
		keeps(MOST, "{", 1);
	else if (!strcmp(what, "reads-nothing"))
		keeps(20, LIST, PIPELINE);
	else if (!strcmp(what, "asks"))
		asks();
	else
		return 2;
	return 0;
}
