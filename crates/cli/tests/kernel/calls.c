/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The price that a program in a session pays to call the scheduler, and what it gets for that: by
 * the words of the socket and the page alone, no library.
 *
 *      calls cost                  how long each call takes [ns]: the mean of many
 *      calls bystander             how long a call takes that nobody hears
 *      calls across                the same, where a thread on another CPU calls, and another process
 *      calls data                  how many events data on a socket raises, and what that costs
 *      calls wait                  how long a thread with an event waits for a sibling that works
 *                                  [ns], the longest of some, by each way of raising it
 */
#define _GNU_SOURCE
#include "client.h"

#include <arpa/inet.h>
#include <linux/bpf.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>

#define PROMISE "{\"op\":\"promise\",\"terms\":{\"budget_ns\":9500000,\"period_ns\":16666667}}\n"

/* A daemon: its connection, and the general call's program. */
static int daemon_socket, program = -1;

static void opens(void)
{
	char answer[4096];

	daemon_socket = connected();
	program = says(daemon_socket, OPEN, answer, sizeof answer);
	printf("REPORT opened %s", answer);
}

/* ---- the ways to call ---- */

static struct andante_page *own, *sink;

static void store(void)
{
	__atomic_add_fetch(&sink->events[0].raised, 1, __ATOMIC_RELEASE);
}

static void parent(void)
{
	syscall(SYS_getppid);
}

/* Something else that the kernel does not know either. */
static void bystander(void)
{
	syscall(SYS_prctl, ANDANTE_PRCTL_LOOK + 1, 0, 0, 0, 0);
}

static void fast(void)
{
	syscall(SYS_prctl, ANDANTE_PRCTL_LOOK, sink->sink, 0, 0, 0);
}

static void general(void)
{
	union bpf_attr what;

	memset(&what, 0, sizeof what.test);
	what.test.prog_fd = program;
	own->calls_for = sink->sink;
	if (syscall(SYS_bpf, BPF_PROG_RUN, &what, sizeof what.test))
		fails("bpf");
}

static void by_socket(void)
{
	char line[64], answer[256];

	snprintf(line, sizeof line, "{\"op\":\"look\",\"thread\":%u}\n", sink->thread);
	says(daemon_socket, line, answer, sizeof answer);
}

static void nothing(void)
{
}

static double mean(void (*call)(void), int times)
{
	uint64_t begun_ns;

	call();
	begun_ns = now_ns();
	for (int i = 0; i < times; i++) {
		call();
		__asm__ volatile("" ::: "memory");
	}
	return (double)(now_ns() - begun_ns) / times;
}

static void report(const char *what, void (*call)(void), int times)
{
	printf("REPORT %s %.1f\n", what, mean(call, times) - mean(nothing, times));
}

/* ---- a thread that waits for a sibling ---- */

static int wakes[2], ready;
static volatile uint64_t ran_ns;

#define LATER_NS 500000 /* well below what siblings take in turns */

/* The sink: sleeps until it is woken, and says when it runs. */
static void *sinks(void *unused)
{
	char byte;

	sink = joined(daemon_socket);
	__atomic_store_n(&ready, 1, __ATOMIC_RELEASE);
	while (read(wakes[0], &byte, 1) == 1)
		ran_ns = now_ns();
	return unused;
}

static void begins(void)
{
	pthread_t thread;

	if (pipe(wakes) < 0)
		fails("pipe");
	opens();
	own = joined(daemon_socket);
	if (pthread_create(&thread, NULL, sinks, NULL))
		fails("pthread_create");
	while (!__atomic_load_n(&ready, __ATOMIC_ACQUIRE))
		usleep(1000);
	usleep(10000);
}

static int cost(void)
{
	report("getppid", parent, 10000);
	report("prctl", bystander, 10000);
	begins();
	report("store", store, 10000);
	report("bystander", bystander, 10000);
	report("fast", fast, 10000);
	report("general", general, 10000);
	report("socket", by_socket, 100);
	return 0;
}

/* An event for the sink that is to be delivered later. */
static void fast_for_later(void)
{
	sink->events[1].deliver_ns = now_ns() + LATER_NS;
	__atomic_add_fetch(&sink->events[1].raised, 1, __ATOMIC_RELEASE);
	syscall(SYS_prctl, ANDANTE_PRCTL_LOOK, sink->sink, sink->events[1].deliver_ns, 0, 0);
}

/* How long the sink waits that was woken, and gets its event when it waits already [ns]. */
static uint64_t waits_ns(void (*call)(void))
{
	uint64_t begun_ns, raised_ns;

	usleep(40000); /* a period of its own */
	begun_ns = now_ns();
	ran_ns = 0;
	if (write(wakes[1], "", 1) != 1)
		fails("write");
	while (now_ns() - begun_ns < 40000)
		;
	if (ran_ns)
		return 0; /* it has not waited */
	raised_ns = now_ns();
	call();
	/* The rest of a frame. */
	while (now_ns() - begun_ns < 8000000)
		;
	while (!ran_ns)
		usleep(100);
	return ran_ns - raised_ns;
}

#define WAITS 20

static int by_length(const void *a, const void *b)
{
	uint64_t first = *(const uint64_t *)a, second = *(const uint64_t *)b;

	return (first > second) - (first < second);
}

/* The longest wait, and the median: the shortest may be one that somebody else's wakeup ended before the call did. */
static void wait_by(const char *what, void (*call)(void))
{
	uint64_t waits[WAITS];

	for (int i = 0; i < WAITS; i++)
		waits[i] = waits_ns(call);
	qsort(waits, WAITS, sizeof waits[0], by_length);
	printf("REPORT wait_%s %llu\n", what, (unsigned long long)waits[WAITS - 1]);
	printf("REPORT median_%s %llu\n", what, (unsigned long long)waits[WAITS / 2]);
}

static void store_and_fast(void)
{
	store();
	fast();
}

static void store_and_general(void)
{
	store();
	general();
}

static int wait_for_siblings(void)
{
	char answer[4096];

	begins();
	says(daemon_socket, PROMISE, answer, sizeof answer);
	printf("REPORT promise %s", answer);
	wait_by("store", store);
	wait_by("fast", store_and_fast);
	wait_by("general", store_and_general);
	wait_by("later", fast_for_later);
	return 0;
}

/* ---- who calls is on another CPU ---- */

static struct asked {
	volatile unsigned int sink; /* to be called for; 0: nobody is */
} *asked;

static void runs_on(int cpu)
{
	cpu_set_t only;

	CPU_ZERO(&only);
	CPU_SET(cpu, &only);
	if (sched_setaffinity(0, sizeof only, &only) < 0)
		fails("sched_setaffinity");
}

/* Calls whenever it is asked to, on the first CPU. */
static void *calls_for_others(void *unused)
{
	runs_on(0);
	for (;;) {
		while (!asked->sink)
			;
		syscall(SYS_prctl, ANDANTE_PRCTL_LOOK, asked->sink, 0, 0, 0);
		asked->sink = 0;
	}
	return unused;
}

static void ask_another(void)
{
	store();
	asked->sink = sink->sink;
	while (asked->sink)
		;
}

static int across(void)
{
	char answer[4096];
	pthread_t thread;
	pid_t stranger;

	asked = mmap(NULL, sizeof *asked, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	stranger = fork();
	if (!stranger)
		calls_for_others(NULL);
	runs_on(1);
	begins();
	says(daemon_socket, PROMISE, answer, sizeof answer);
	printf("REPORT promise %s", answer);
	wait_by("stranger", ask_another);
	kill(stranger, SIGKILL);
	if (pthread_create(&thread, NULL, calls_for_others, NULL))
		fails("pthread_create");
	wait_by("another", ask_another);
	return 0;
}

/* ---- data on a socket as a source ---- */

static int ends[2];

static int subscribes(const char *request, int fd)
{
	char line[128], answer[4096];

	snprintf(line, sizeof line, request, sink->thread);
	says_with(daemon_socket, line, fd);
	is_told(daemon_socket, answer, sizeof answer);
	if (!strstr(answer, "done"))
		printf("REPORT refused %s", answer);
	return strstr(answer, "done") != NULL;
}

/* A piece of 100 bytes comes, and is read. */
static void piece(void)
{
	char bytes[100] = "";

	if (write(ends[1], bytes, sizeof bytes) != sizeof bytes ||
	    read(ends[0], bytes, sizeof bytes) != sizeof bytes)
		fails("a piece");
}

static unsigned int events_of(int pieces)
{
	unsigned int before = sink->events[2].raised;

	while (pieces--)
		piece();
	return sink->events[2].raised - before;
}

/* Two ends of a connection over the network that is the machine itself, of this type. */
static void connects(int type)
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	socklen_t length = sizeof address;
	struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	int bound = socket(AF_INET, type, 0);

	if (ioctl(bound, SIOCSIFFLAGS, &lo) < 0)
		fails("lo");
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ends[1] = socket(AF_INET, type, 0);
	if (bind(bound, (struct sockaddr *)&address, sizeof address) < 0 ||
	    (type == SOCK_STREAM && listen(bound, 1) < 0) ||
	    getsockname(bound, (struct sockaddr *)&address, &length) < 0 ||
	    connect(ends[1], (struct sockaddr *)&address, sizeof address) < 0)
		fails("connect");
	ends[0] = type == SOCK_STREAM ? accept(bound, NULL, NULL) : bound;
	if (ends[0] < 0)
		fails("accept");
	if (type == SOCK_STREAM)
		close(bound);
}

#define FRAME "{\"op\":\"subscribe\",\"thread\":%u,\"service\":2,\"bytes\":1000}\n"
#define EACH "{\"op\":\"subscribe\",\"thread\":%u,\"service\":2}\n"
#define NONE "{\"op\":\"unsubscribe\"}\n"

static void writes(void)
{
	uint64_t one = 1;

	if (write(ends[1], &one, sizeof one) != sizeof one)
		fails("an eventfd");
}

static unsigned int events_of_writes(void)
{
	unsigned int before = sink->events[2].raised;

	for (int i = 0; i < 5; i++)
		writes();
	return sink->events[2].raised - before;
}

static void eventfds(void)
{
	int subscribed = eventfd(0, 0), other = eventfd(0, 0);

	ends[1] = other;
	report("write", writes, 10000);
	subscribes(EACH, subscribed);
	report("write_of_other", writes, 10000);
	printf("REPORT writes_of_other %u\n", events_of_writes());
	ends[1] = subscribed;
	printf("REPORT writes %u\n", events_of_writes());
	report("write_of_source", writes, 10000);
	/* Its number is another's then. */
	close(subscribed);
	ends[1] = eventfd(0, 0);
	printf("REPORT writes_of_next %u\n", events_of_writes());
	subscribes(EACH, other);
	subscribes(NONE, other);
	ends[1] = other;
	printf("REPORT writes_of_none %u\n", events_of_writes());
}

static int data(void)
{
	int subscribed[2], pipe_ends[2];

	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) < 0 || pipe(pipe_ends) < 0)
		fails("socketpair");
	begins();
	report("piece", piece, 10000);
	subscribes(FRAME, ends[0]);
	memcpy(subscribed, ends, sizeof ends);
	printf("REPORT frames %u\n", events_of(35));
	report("piece_of_source", piece, 10000);
	subscribes(EACH, ends[0]);
	printf("REPORT each %u\n", events_of(7));
	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) < 0)
		fails("socketpair");
	printf("REPORT other %u\n", events_of(50));
	report("piece_of_other", piece, 10000);
	memcpy(ends, subscribed, sizeof ends);
	subscribes(NONE, ends[0]);
	printf("REPORT none %u\n", events_of(50));
	connects(SOCK_STREAM);
	subscribes(FRAME, ends[0]);
	printf("REPORT stream %u\n", events_of(45));
	connects(SOCK_DGRAM);
	subscribes(FRAME, ends[0]);
	printf("REPORT udp %u\n", events_of(45));
	subscribes(EACH, ends[0]);
	printf("REPORT each_udp %u\n", events_of(7));
	eventfds();
	subscribes(FRAME, pipe_ends[0]);
	subscribes(FRAME, -1);
	return 0;
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 2 && !strcmp(argv[1], "cost"))
		return cost();
	if (argc == 2 && !strcmp(argv[1], "bystander"))
		return report("prctl_again", bystander, 10000), 0;
	if (argc == 2 && !strcmp(argv[1], "across"))
		return across();
	if (argc == 2 && !strcmp(argv[1], "data"))
		return data();
	if (argc == 2 && !strcmp(argv[1], "wait"))
		return wait_for_siblings();
	return 2;
}
