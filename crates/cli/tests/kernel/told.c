/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A thread of a session that waits for its events and nothing else, and is told of them: by the
 * words of the socket and the page alone, no library.
 *
 *      told ring       in epoll, by a ring: how often it wakes for data on a socket, how late for
 *                      an event that was raised for later, and what many raises bring
 *      told signal     in sigwaitinfo(), by a signal
 *      told strange    what is refused, a ring that is written over, and a signal for a program
 *                      that has more rights than whoever asked for it
 *      told left       how many rings, and timers of sinks, there are in the kernel
 */
#define _GNU_SOURCE
#include "client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/bpf.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>

static int daemon_socket, sockets[2], ring = -1;
static struct andante_page *sink;
static int ready;

/* What the sink has seen. */
static volatile unsigned int wakes, notices, services, bytes;
static volatile uint64_t woke_ns;

/* ---- a ring ---- */

static volatile unsigned long *consumed, *produced;
static char *records;

static void maps_ring(void)
{
	size_t page = sysconf(_SC_PAGESIZE);
	char *second;

	consumed = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, ring, 0);
	second = mmap(NULL, 3 * page, PROT_READ, MAP_SHARED, ring, page);
	if (consumed == MAP_FAILED || second == MAP_FAILED)
		fails("mmap");
	produced = (unsigned long *)second;
	records = second + page;
}

static void drains(void)
{
	unsigned long at = *consumed, page = sysconf(_SC_PAGESIZE);

	for (; at != __atomic_load_n(produced, __ATOMIC_ACQUIRE); at += 16) {
		struct andante_page_notice *notice =
			(struct andante_page_notice *)(records + at % page + 8);

		notices++;
		services |= 1u << notice->service;
	}
	__atomic_store_n(consumed, at, __ATOMIC_RELEASE);
}

/* ---- the sink ---- */

static int asks(const char *request, char *answer, size_t room)
{
	char line[128];

	snprintf(line, sizeof line, request, sink->thread);
	return says(daemon_socket, line, answer, room);
}

#define BY_RING "{\"op\":\"tell\",\"thread\":%u,\"by\":\"ring\"}\n"
#define BY_SIGNAL "{\"op\":\"tell\",\"thread\":%u,\"by\":{\"signal\":40}}\n"
#define BY_NO_SIGNAL "{\"op\":\"tell\",\"thread\":%u,\"by\":{\"signal\":65}}\n"
#define BY_NOTHING "{\"op\":\"tell\",\"thread\":%u,\"by\":\"nothing\"}\n"
#define FRAME "{\"op\":\"subscribe\",\"thread\":%u,\"service\":2,\"bytes\":1000}\n"

static void *waits_in_epoll(void *unused)
{
	struct epoll_event event = {.events = EPOLLIN};
	char answer[4096], data[2048];
	int epoll = epoll_create1(0);
	ssize_t got;

	sink = joined(daemon_socket);
	ring = asks(BY_RING, answer, sizeof answer);
	if (ring < 0)
		fails(answer);
	maps_ring();
	if (epoll_ctl(epoll, EPOLL_CTL_ADD, ring, &event) < 0)
		fails("epoll_ctl");
	__atomic_store_n(&ready, 1, __ATOMIC_RELEASE);
	while (epoll_wait(epoll, &event, 1, -1) == 1) {
		woke_ns = now_ns();
		wakes++;
		drains();
		while ((got = recv(sockets[0], data, sizeof data, MSG_DONTWAIT)) > 0)
			bytes += got;
	}
	return unused;
}

static void *waits_for_signal(void *unused)
{
	char answer[4096];
	siginfo_t signal;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, 40);
	sink = joined(daemon_socket);
	asks(BY_SIGNAL, answer, sizeof answer);
	__atomic_store_n(&ready, 1, __ATOMIC_RELEASE);
	while (sigwaitinfo(&set, &signal) == 40) {
		woke_ns = now_ns();
		wakes++;
		services |= 1u << (unsigned long)signal.si_value.sival_ptr;
	}
	return unused;
}

static void begins(void *(*waits)(void *))
{
	char answer[4096];
	pthread_t thread;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, 40);
	sigprocmask(SIG_BLOCK, &set, NULL);
	daemon_socket = connected();
	says(daemon_socket, OPEN, answer, sizeof answer);
	if (pthread_create(&thread, NULL, waits, NULL))
		fails("pthread_create");
	while (!__atomic_load_n(&ready, __ATOMIC_ACQUIRE))
		usleep(1000);
	usleep(10000);
}

static void raises(unsigned int service, uint64_t deliver_ns)
{
	sink->events[service].deliver_ns = deliver_ns;
	__atomic_add_fetch(&sink->events[service].raised, 1, __ATOMIC_RELEASE);
	syscall(SYS_prctl, ANDANTE_PRCTL_LOOK, sink->sink, deliver_ns, 0, 0);
}

/* What comes of one event, raised for so much later. */
static void one(const char *what, unsigned int service, uint64_t later_ns)
{
	uint64_t due_ns = now_ns() + later_ns;
	unsigned int before = wakes;

	services = 0;
	woke_ns = 0;
	raises(service, later_ns ? due_ns : 0);
	usleep(later_ns / 1000 + 20000);
	printf("REPORT %s %d\n", what, (int)(woke_ns ? (int64_t)(woke_ns - due_ns) : -1000000000));
	printf("REPORT %s_wakes %u\n", what, wakes - before);
	printf("REPORT %s_services %u\n", what, services);
}

/* ---- by a ring ---- */

static void connects(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	socklen_t length = sizeof address;
	struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP};

	sockets[0] = socket(AF_INET, SOCK_DGRAM, 0);
	sockets[1] = socket(AF_INET, SOCK_DGRAM, 0);
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (ioctl(sockets[0], SIOCSIFFLAGS, &lo) < 0 ||
	    bind(sockets[0], (struct sockaddr *)&address, sizeof address) < 0 ||
	    getsockname(sockets[0], (struct sockaddr *)&address, &length) < 0 ||
	    connect(sockets[1], (struct sockaddr *)&address, sizeof address) < 0)
		fails("connect");
}

/* 200 packets, of which ten make a frame. */
static void packets(void)
{
	char line[128], answer[4096], packet[100] = "";
	unsigned int before;

	snprintf(line, sizeof line, FRAME, sink->thread);
	says_with(daemon_socket, line, sockets[0]);
	is_told(daemon_socket, answer, sizeof answer);
	usleep(10000);
	before = wakes;
	for (int i = 0; i < 200; i++) {
		if (write(sockets[1], packet, sizeof packet) != sizeof packet)
			fails("write");
		usleep(300);
	}
	usleep(20000);
	printf("REPORT frame_wakes %u\n", wakes - before);
	printf("REPORT frame_bytes %u\n", bytes);
}

/* All at once: with real-time priority nobody else runs before we sleep. */
static void flood(void)
{
	struct sched_param first = {.sched_priority = 1}, usual = {0};
	unsigned int before = wakes, noticed = notices;
	uint64_t begun_ns;

	if (sched_setscheduler(0, SCHED_FIFO, &first) < 0)
		fails("sched_setscheduler");
	begun_ns = now_ns();

	for (int i = 0; i < 100; i++)
		raises(i % 2, 0);
	printf("REPORT flood_ns %.1f\n", (double)(now_ns() - begun_ns) / 100);
	sched_setscheduler(0, SCHED_OTHER, &usual);
	usleep(20000);
	printf("REPORT flood_wakes %u\n", wakes - before);
	printf("REPORT flood_notices %u\n", notices - noticed);
}

static int by_ring(void)
{
	char answer[4096];

	connects();
	begins(waits_in_epoll);
	packets();
	one("now", 1, 0);
	one("later", 3, 5000000);
	flood();
	asks(BY_NOTHING, answer, sizeof answer);
	one("untold", 1, 0);
	return 0;
}

static int by_signal(void)
{
	begins(waits_for_signal);
	one("signal_now", 1, 0);
	one("signal_later", 3, 5000000);
	return 0;
}

/* ---- what makes no sense ---- */

/* As somebody else, whose program has all rights in the end. */
static void becomes_root(void)
{
	if (seteuid(65534) < 0)
		fails("seteuid");
	begins(waits_for_signal);
	if (seteuid(0) < 0 || setresuid(0, 0, 0) < 0)
		fails("seteuid");
	one("of_root", 1, 0);
}

static int strange(void)
{
	char answer[4096];

	begins(waits_in_epoll);
	asks(BY_NO_SIGNAL, answer, sizeof answer);
	printf("REPORT refused %s", answer);
	says(daemon_socket, "{\"op\":\"tell\",\"thread\":99,\"by\":\"ring\"}\n", answer, sizeof answer);
	printf("REPORT refused %s", answer);
	srand(1);
	for (int i = 0; i < 20000; i++) {
		*consumed = rand() * (i % 3 ? 1ul : 0x100000001ul);
		raises(rand() % ANDANTE_SERVICES, i % 5 ? 0 : rand());
		if (i % 100 == 0)
			usleep(100);
	}
	if (!fork()) {
		ready = 0;
		becomes_root();
		exit(0);
	}
	usleep(500000);
	return 0;
}

/* ---- what is left ---- */

static int keys(int map)
{
	union bpf_attr what = {.map_fd = map};
	unsigned int last, next;
	int count = 0;

	what.next_key = (unsigned long)&next;
	while (!syscall(SYS_bpf, BPF_MAP_GET_NEXT_KEY, &what, sizeof what)) {
		count++;
		last = next;
		what.key = (unsigned long)&last;
	}
	return count;
}

static int left(void)
{
	unsigned int id = 0, rings = 0, timers = 0;

	for (;;) {
		struct bpf_map_info info = {0};
		union bpf_attr next = {.start_id = id}, by_id, of = {0};

		if (syscall(SYS_bpf, BPF_MAP_GET_NEXT_ID, &next, sizeof next))
			break;
		id = next.next_id;
		memset(&by_id, 0, sizeof by_id);
		by_id.map_id = id;
		of.info.bpf_fd = syscall(SYS_bpf, BPF_MAP_GET_FD_BY_ID, &by_id, sizeof by_id);
		of.info.info_len = sizeof info;
		of.info.info = (unsigned long)&info;
		if (syscall(SYS_bpf, BPF_OBJ_GET_INFO_BY_FD, &of, sizeof of))
			continue;
		rings += !strcmp(info.name, "andante_notices");
		if (!strcmp(info.name, "tell_timers"))
			timers += keys(of.info.bpf_fd);
		close(of.info.bpf_fd);
	}
	printf("REPORT left %u %u\n", rings, timers);
	return 0;
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 2 && !strcmp(argv[1], "ring"))
		return by_ring();
	if (argc == 2 && !strcmp(argv[1], "signal"))
		return by_signal();
	if (argc == 2 && !strcmp(argv[1], "strange"))
		return strange();
	if (argc == 2 && !strcmp(argv[1], "left"))
		return left();
	return 2;
}
