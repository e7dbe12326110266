// SPDX-License-Identifier: GPL-2.0
/*
 * Who sends, who receives and who works beside them, in a test of packets in. All begin at an
 * instant [ms of the machine's clock] and go on for so long [ms].
 *
 *      receive now                             the clock [ms]
 *      receive speed                           turns of a loop in a millisecond, on a machine with
 * nothing else to do receive plain DEVICE                    its packets are cut to pieces before
 * it has them receive flood ADDRESS PORT SIZE COUNT   datagrams, as fast as they go receive reader
 * PORT TURNS PAUSE_US      takes datagrams, works for so many turns on each, then pauses receive
 * film TURNS                      so many turns every thirtieth of a second receive loop turns
 * without end
 *
 * The last three take FROM_MS FOR_MS behind those, and report as `REPORT key value` with keys that
 * begin with NAME, the word behind that.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

typedef unsigned long long u64;

#define MS 1000000ULL
#define FRAME_NS (1000 * MS / 30)
#define MAX_FRAMES 10000
/* So long everything has been going on when a flood begins and is measured. */
#define BEFORE_NS (500 * MS)
/* Of one call; the device has them one by one. */
#define AT_ONCE 20
/* Turns between two looks at the clock. */
#define STRIDE 1000

static char buffer[65536];

static u64 clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000 * MS + t.tv_nsec;
}

static u64 now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static void sleep_until(u64 ns)
{
	struct timespec t = {ns / (1000 * MS), ns % (1000 * MS)};

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void turns(u64 count)
{
	for (volatile u64 i = 0; i < count; i++)
		;
}

static void speed(void)
{
	u64 begun_ns = now_ns();

	turns(1000 * STRIDE);
	printf("%llu\n", 1000 * STRIDE * MS / (now_ns() - begun_ns));
}

static unsigned int ethtool(const char *device, int command)
{
	struct ethtool_value value = {.cmd = command};
	struct ifreq request = {.ifr_data = (void *)&value};
	int s = socket(AF_INET, SOCK_DGRAM, 0);

	strncpy(request.ifr_name, device, IFNAMSIZ - 1);
	if (ioctl(s, SIOCETHTOOL, &request))
		fail(device);
	close(s);
	return value.data;
}

static void flood(char **words)
{
	struct sockaddr_in6 to = {.sin6_family = AF_INET6, .sin6_port = htons(atoi(words[1]))};
	int size = atoi(words[2]), room = 1 << 30, s = socket(AF_INET6, SOCK_DGRAM, 0);
	u64 count = atoll(words[3]);
	char mapped[64];

	snprintf(mapped, sizeof(mapped), strchr(words[0], ':') ? "%s" : "::ffff:%s", words[0]);
	if (inet_pton(AF_INET6, mapped, &to.sin6_addr) != 1 ||
	    connect(s, (void *)&to, sizeof(to)) ||
	    setsockopt(s, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room)) ||
	    setsockopt(s, SOL_UDP, UDP_SEGMENT, &size, sizeof(size)))
		fail("a socket");
	for (u64 sent = 0; sent < count; sent += AT_ONCE)
		if (send(s, buffer, AT_ONCE * size, 0) < 0)
			fail("send");
}

/* That the device `in` has had. */
static u64 packets(void)
{
	char text[32] = "";
	int fd = open("/sys/class/net/in/statistics/rx_packets", O_RDONLY);

	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		fail("statistics");
	close(fd);
	return atoll(text);
}

static void reader(char **words, u64 from_ns, u64 for_ns, const char *name)
{
	struct sockaddr_in6 at = {.sin6_family = AF_INET6, .sin6_port = htons(atoi(words[0]))};
	u64 work = atoll(words[1]), pause_ns = atoll(words[2]) * 1000, got = 0, before;
	struct timeval wait = {.tv_usec = 10000};
	int s = socket(AF_INET6, SOCK_DGRAM, 0);

	if (bind(s, (void *)&at, sizeof(at)) ||
	    setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)))
		fail("a socket");
	sleep_until(from_ns);
	before = packets();
	while (now_ns() < from_ns + for_ns) {
		if (recv(s, buffer, sizeof(buffer), 0) > 0) {
			got++;
			turns(work);
		}
		if (pause_ns)
			sleep_until(now_ns() + pause_ns);
	}
	printf("REPORT %s_received %llu\nREPORT %s_packets %llu\n", name, got, name,
	       packets() - before);
}

static int compare(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

static void film(char **words, u64 from_ns, u64 for_ns, const char *name)
{
	static u64 took_ns[MAX_FRAMES];
	u64 work = atoll(words[0]), frames = 0, late = 0;

	for (u64 at = from_ns - BEFORE_NS; at < from_ns + for_ns && frames < MAX_FRAMES;
	     at += FRAME_NS) {
		sleep_until(at);
		turns(work);
		if (at < from_ns)
			continue;
		took_ns[frames] = now_ns() - at;
		late += took_ns[frames++] > FRAME_NS;
	}
	qsort(took_ns, frames, sizeof(u64), compare);
	printf("REPORT %s_frames %llu\nREPORT %s_late %llu\n", name, frames, name, late);
	printf("REPORT %s_p50_us %llu\nREPORT %s_p99_us %llu\n", name, took_ns[frames / 2] / 1000,
	       name, took_ns[frames * 99 / 100] / 1000);
}

static void loop(u64 from_ns, u64 for_ns, const char *name)
{
	u64 strides = 0;

	sleep_until(from_ns - BEFORE_NS);
	while (now_ns() < from_ns)
		turns(STRIDE);
	for (; now_ns() < from_ns + for_ns; strides++)
		turns(STRIDE);
	printf("REPORT %s_strides %llu\n", name, strides);
}

int main(int count, char **words)
{
	const char *what = count > 1 ? words[1] : "";
	u64 from_ns = count > 4 ? atoll(words[count - 3]) * MS : 0;
	u64 for_ns = count > 4 ? atoll(words[count - 2]) * MS : 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!strcmp(what, "now") && count == 2)
		printf("%llu\n", now_ns() / MS);
	else if (!strcmp(what, "speed") && count == 2)
		speed();
	else if (!strcmp(what, "plain") && count == 3)
		ethtool(words[2], ETHTOOL_STSO), ethtool(words[2], ETHTOOL_SGSO);
	else if (!strcmp(what, "gro") && count == 3)
		printf("%u\n", ethtool(words[2], ETHTOOL_GGRO));
	else if (!strcmp(what, "flood") && count == 6)
		flood(words + 2);
	else if (!strcmp(what, "reader") && count == 8)
		reader(words + 2, from_ns, for_ns, words[7]);
	else if (!strcmp(what, "film") && count == 6)
		film(words + 2, from_ns, for_ns, words[5]);
	else if (!strcmp(what, "loop") && count == 5)
		loop(from_ns, for_ns, words[4]);
	else
		return 2;
	return 0;
}
