// SPDX-License-Identifier: GPL-2.0
/*
 * Senders and receivers of a test, on one machine with one clock.
 *
 *      packets send ADDRESS PORT SIZE INTERVAL_US SECONDS   datagrams with the time; 0: as many as go
 *      packets cost ADDRESS PORT SIZE PACKETS               so many datagrams; what each took [ns]
 *      packets waits ADDRESS PORT SIZE PACKETS US           bursts of a twentieth of so many, each so long
 *                                                           after the one before; what each datagram took
 *                                                           of all the CPU's time, its departure too [ns]
 *      packets stream ADDRESS PORT SECONDS                  TCP, as much as goes
 *      packets sink udp|tcp FROM SECONDS PORT…              for so long, after so many seconds; reports of
 *                                                           each port its bytes, and how long
 *                                                           its datagrams took
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

typedef unsigned long long u64;

#define SECOND_NS 1000000000ULL
#define MAX_PORTS 128
#define MAX_DELAYS 30000

struct port {
	int socket;
	u64 bytes;
	u64 packets;
	u64 delays_ns[MAX_DELAYS];
};

static struct port ports[MAX_PORTS];
static char buffer[65536];

static u64 now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * SECOND_NS + t.tv_nsec;
}

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static struct sockaddr_in address_of(const char *host, const char *port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(atoi(port))};

	if (host && !inet_aton(host, &a.sin_addr))
		fail(host);
	return a;
}

/* To ADDRESS PORT. */
static int connected(char **words, int type)
{
	struct sockaddr_in to = address_of(words[0], words[1]);
	int s = socket(AF_INET, type, 0);

	if (connect(s, (void *)&to, sizeof(to)))
		fail("connect");
	return s;
}

static void send_datagrams(char **words)
{
	int size = atoi(words[2]), s = connected(words, SOCK_DGRAM);
	u64 step_ns = atoi(words[3]) * 1000ULL, next_ns = now_ns();
	u64 end_ns = next_ns + atoi(words[4]) * SECOND_NS;

	while (now_ns() < end_ns) {
		struct timespec until;

		*(u64 *)buffer = now_ns();
		if (send(s, buffer, size, 0) < 0 && errno != ENOBUFS && errno != ECONNREFUSED)
			fail("send");
		next_ns = step_ns ? next_ns + step_ns : 0;
		until.tv_sec = next_ns / SECOND_NS;
		until.tv_nsec = next_ns % SECOND_NS;
		if (step_ns)
			clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
	}
}

static void measure_cost(char **words)
{
	int size = atoi(words[2]), s = connected(words, SOCK_DGRAM), packets = atoi(words[3]);
	u64 begun_ns = 0;

	/* The first ones find caches that are empty, and a class that is not known. */
	for (int n = -packets / 10; n < packets; n++) {
		if (n == 0)
			begun_ns = now_ns();
		if (send(s, buffer, size, 0) < 0)
			fail("send");
	}
	printf("REPORT ns_%s %llu\n", words[1], (now_ns() - begun_ns) / packets);
}

/* Does nothing until then, and counts how often. */
static u64 idle_until(u64 end_ns)
{
	u64 turns = 0;

	while (now_ns() < end_ns)
		turns++;
	return turns;
}

/* Time that is not idle is somebody's work for the packets: nothing else runs. */
static void measure_waiting(char **words)
{
	int size = atoi(words[2]), s = connected(words, SOCK_DGRAM), packets = atoi(words[3]);
	u64 step_ns = atoi(words[4]) * 1000ULL, begun_ns = now_ns(), turns = 0, alone, took_ns;
	int room = 8 << 20;

	if (setsockopt(s, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room)))
		fail("SO_SNDBUFFORCE");
	alone = idle_until(begun_ns + 20 * step_ns);
	/* The first burst finds caches that are empty, and a class that is not known. */
	for (int burst = -1; burst < 20; burst++) {
		if (burst <= 0) {
			begun_ns = now_ns();
			turns = 0;
		}
		for (int n = 0; n < packets / 20; n++)
			if (send(s, buffer, size, 0) < 0)
				fail("send");
		turns += idle_until(begun_ns + (burst < 0 ? 1 : burst + 1) * step_ns);
	}
	took_ns = (now_ns() - begun_ns) * (1 - (double)turns / alone);
	printf("REPORT wait_ns_%s %llu\n", words[1], took_ns / packets);
}

static void send_stream(char **words)
{
	int s = connected(words, SOCK_STREAM);
	u64 end_ns = now_ns() + atoi(words[2]) * SECOND_NS;

	while (now_ns() < end_ns)
		if (send(s, buffer, sizeof(buffer), MSG_DONTWAIT) < 0)
			poll(&(struct pollfd){.fd = s, .events = POLLOUT}, 1, 100);
}

static int compare(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

static void report(const struct port *p, const char *name, bool tcp)
{
	u64 n = p->packets < MAX_DELAYS ? p->packets : MAX_DELAYS;

	qsort((void *)p->delays_ns, n, sizeof(u64), compare);
	printf("REPORT bytes_%s %llu\n", name, p->bytes);
	if (n && !tcp)
		printf("REPORT p50_us_%s %llu\nREPORT p99_us_%s %llu\n", name,
		       p->delays_ns[n / 2] / 1000, name, p->delays_ns[n * 99 / 100] / 1000);
}

static void take(struct port *p, bool tcp, bool counts)
{
	ssize_t bytes;

	while ((bytes = recv(p->socket, buffer, sizeof(buffer), MSG_DONTWAIT)) > 0) {
		if (!counts)
			continue;
		if (!tcp && p->packets < MAX_DELAYS)
			p->delays_ns[p->packets] = now_ns() - *(u64 *)buffer;
		p->packets++;
		p->bytes += bytes;
	}
}

static void sink(char **words, int count)
{
	bool tcp = !strcmp(words[0], "tcp"), listens[MAX_PORTS];
	u64 from_ns = now_ns() + atoi(words[1]) * SECOND_NS, now;
	u64 end_ns = from_ns + atoi(words[2]) * SECOND_NS;
	struct pollfd polled[MAX_PORTS];
	int one = 1, room = 1 << 20;

	words += 3;
	count -= 3;
	for (int i = 0; i < count; i++) {
		struct sockaddr_in a = address_of(NULL, words[i]);
		int s = socket(AF_INET, tcp ? SOCK_STREAM : SOCK_DGRAM, 0);

		setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		if (!tcp)
			setsockopt(s, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
		if (bind(s, (void *)&a, sizeof(a)) || (tcp && listen(s, 1)))
			fail("bind");
		ports[i].socket = s;
		listens[i] = tcp;
	}
	while ((now = now_ns()) < end_ns) {
		for (int i = 0; i < count; i++)
			polled[i] = (struct pollfd){.fd = ports[i].socket, .events = POLLIN};
		poll(polled, count, 100);
		for (int i = 0; i < count; i++) {
			if (!(polled[i].revents & POLLIN))
				continue;
			if (listens[i])
				ports[i].socket = accept(ports[i].socket, NULL, NULL);
			else
				take(&ports[i], tcp, now >= from_ns);
			listens[i] = false;
		}
	}
	for (int i = 0; i < count; i++)
		report(&ports[i], words[i], tcp);
}

int main(int count, char **words)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (count == 7 && !strcmp(words[1], "send"))
		send_datagrams(words + 2);
	else if (count == 6 && !strcmp(words[1], "cost"))
		measure_cost(words + 2);
	else if (count == 7 && !strcmp(words[1], "waits"))
		measure_waiting(words + 2);
	else if (count == 5 && !strcmp(words[1], "stream"))
		send_stream(words + 2);
	else if (count > 5 && count <= 5 + MAX_PORTS && !strcmp(words[1], "sink"))
		sink(words + 2, count - 2);
	else
		return 2;
	return 0;
}
