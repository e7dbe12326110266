/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Programs in sessions, by the words of the socket alone: no library.
 *
 *      session ask UID LINE…       says these lines as this user, and prints each answer; TID in a
 *                                  line stands for the number of the thread
 *      session many COUNT          so many sessions at a time, a thread of its own in each; says how
 *                                  many there were
 *      session kills COUNT         so many processes, one after the other, each killed within a
 *                                  session that holds a promise; says how many there were
 *      session nonsense SECONDS    writes anything into its page, all the time, and sleeps now and
 *                                  then; says how often the scheduler has looked
 *      session outlives SECONDS    holds a promise when the daemon is killed, and for so long asks the
 *                                  next one for another; says `told back` in the end
 *      session contained           opens one from a pid namespace of its own, and prints the answers
 *      session surge COUNT         so many scenes twice, the frames of which take 2 ms and then one 7,
 *                                  beside another program in a session; says how long such a one took
 *                                  at most, if that was not announced and if it was [us]
 */
#define _GNU_SOURCE
#include "client.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define PROMISE                                                                                    \
	"{\"op\":\"promise\",\"terms\":{\"budget_ns\":1000000,\"period_ns\":16666667}}\n"

static int asks(int uid, char **lines)
{
	char line[512], answer[4096];
	int socket;

	if (setgid(uid) < 0 || setuid(uid) < 0)
		fails("setuid");
	socket = connected();
	for (; *lines; lines++) {
		const char *at = strstr(*lines, "TID");

		if (at)
			snprintf(line, sizeof line, "%.*s%d%s\n", (int)(at - *lines), *lines,
				 (int)syscall(SYS_gettid), at + 3);
		else
			snprintf(line, sizeof line, "%s\n", *lines);
		says(socket, line, answer, sizeof answer);
		fputs(answer, stdout);
	}
	return 0;
}

static pthread_barrier_t all_are_in;
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

static void *takes_part(void *unused)
{
	char answer[4096];
	int socket;

	/* Of those who only knock at the door no more than 256 are let in at a time. */
	pthread_mutex_lock(&one_at_a_time);
	socket = connected();
	says(socket, OPEN, answer, sizeof answer);
	joined(socket);
	pthread_mutex_unlock(&one_at_a_time);
	pthread_barrier_wait(&all_are_in);
	sleep(2);
	return unused;
}

static int many(unsigned int count)
{
	const struct rlimit files = { 8192, 8192 };
	pthread_attr_t small;
	pthread_t thread;

	setrlimit(RLIMIT_NOFILE, &files);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 << 10);
	pthread_barrier_init(&all_are_in, NULL, count + 1);
	for (unsigned int i = 0; i < count; i++)
		if (pthread_create(&thread, &small, takes_part, NULL))
			fails("pthread_create");
	pthread_barrier_wait(&all_are_in);
	printf("%u\n", count);
	fflush(stdout);
	sleep(1);
	_exit(0); /* with all of them open */
}

static int kills(int count)
{
	for (int done = 0; done < count; done++) {
		char answer[4096], ready;
		int told[2];
		pid_t child;

		if (pipe(told) < 0)
			fails("pipe");
		child = fork();
		if (!child) {
			int socket = connected();

			says(socket, OPEN, answer, sizeof answer);
			joined(socket)->deadline_ns = 1;
			says(socket, PROMISE, answer, sizeof answer);
			if (!strstr(answer, "granted"))
				fails(answer);
			if (write(told[1], "", 1) < 0)
				fails("write");
			for (;;)
				;
		}
		close(told[1]);
		if (read(told[0], &ready, 1) != 1)
			return 1;
		close(told[0]);
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	printf("%d\n", count);
	return 0;
}

static int nonsense(int seconds)
{
	char answer[4096];
	int socket = connected();
	uint64_t until_ns = now_ns() + seconds * 1000000000ull, read_ns = 0, random = 88172645463325252ull;
	unsigned int looks = 0;
	struct andante_page *page;
	uint64_t *words;

	says(socket, OPEN, answer, sizeof answer);
	page = joined(socket);
	words = (uint64_t *)page;
	while (now_ns() < until_ns) {
		looks += page->read_ns != read_ns;
		for (unsigned int i = 0; i < 200; i++) {
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			words[random % (sizeof *page / 8)] = random >> (random % 64);
		}
		read_ns = page->read_ns;
		if (random % 8 == 0)
			usleep(random % 3000);
	}
	printf("%u\n", looks);
	return 0;
}

/* Opens a session with a promise, in which it stays. */
static int promised(void)
{
	int socket = connected();
	char answer[4096];

	says(socket, OPEN, answer, sizeof answer);
	joined(socket);
	says(socket, PROMISE, answer, sizeof answer);
	return strstr(answer, "granted") ? socket : -1;
}

/* Has a session when the daemon is killed, is told, and has another one when the next has begun. Whoever asks
 * too early is cut off with the old one, and asks again. */
static int outlives(int seconds)
{
	uint64_t until_ns = now_ns() + seconds * 1000000000ull;
	int status = 1, socket = promised();
	char said[4096];

	if (socket < 0)
		return 1;
	puts("promised");
	fflush(stdout);
	while (recv(socket, said, sizeof said, 0) > 0)
		;
	printf("told ");
	fflush(stdout);
	while (status && now_ns() < until_ns) {
		pid_t child = fork();

		if (!child)
			_exit(promised() < 0);
		waitpid(child, &status, 0);
		usleep(20000);
	}
	puts(status ? "refused" : "back");
	return 0;
}

/* In there the thread has the number 1, and says so. */
static int contained(void)
{
	int socket, thread;
	char answer[4096];
	pid_t child;

	if (unshare(CLONE_NEWPID) < 0)
		fails("unshare");
	child = fork();
	if (child)
		return waitpid(child, NULL, 0) < 0;
	thread = (int)syscall(SYS_gettid);
	socket = connected();
	says(socket, OPEN, answer, sizeof answer);
	joined(socket)->cycles = 1;
	says(socket, PROMISE, answer, sizeof answer);
	printf("%d %s", thread, answer);
	fflush(stdout);
	says(socket, "{\"op\":\"join\",\"thread\":2}\n", answer, sizeof answer);
	fputs(answer, stdout);
	return 0;
}

static void works(uint64_t ns)
{
	struct timespec used;
	uint64_t until_ns = 0, now;

	do {
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
		now = used.tv_sec * 1000000000ull + used.tv_nsec;
		if (!until_ns)
			until_ns = now + ns;
	} while (now < until_ns);
}

#define FRAME_NS 16666667ull

/* A frame of the thread, whose page this is, which is due so long after it begins; what it took [ns]. */
static uint64_t frame(struct andante_page *page, uint64_t at_ns, uint64_t due_ns, uint64_t work_ns)
{
	struct timespec at = { at_ns / 1000000000, at_ns % 1000000000 };

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
	page->deadline_ns = at_ns + due_ns;
	__atomic_store_n(&page->cycles, page->cycles + 1, __ATOMIC_RELEASE);
	works(work_ns);
	page->deadline_ns = 0;
	return now_ns() - at_ns;
}

static struct andante_page *opened(void)
{
	char answer[4096];
	int socket = connected();

	says(socket, OPEN, answer, sizeof answer);
	return joined(socket);
}

/* A third of the CPU, a little later in each frame than the other, and due a little later. */
static void paints(uint64_t at_ns)
{
	struct andante_page *page = opened();

	for (;;)
		frame(page, (at_ns += FRAME_NS) + 1000000, 12000000, 6000000);
}

static int surges(int count)
{
	uint64_t at_ns = now_ns(), longest_ns[2] = { 0, 0 };
	struct andante_page *page;
	pid_t other = fork();

	if (!other)
		paints(at_ns);
	page = opened();
	for (int scene = 0; scene < 2 * count; scene++) {
		uint64_t took_ns;

		/* More than are remembered (AN_LEARN_WINDOW_JOBS, twice). */
		for (int i = 0; i < 280; i++)
			frame(page, at_ns += FRAME_NS, 12000000, 2000000);
		if (scene % 2)
			page->surges++;
		took_ns = frame(page, at_ns += FRAME_NS, 12000000, 7000000);
		if (took_ns > longest_ns[scene % 2])
			longest_ns[scene % 2] = took_ns;
	}
	kill(other, SIGKILL);
	printf("%u %u\n", (unsigned int)(longest_ns[0] / 1000), (unsigned int)(longest_ns[1] / 1000));
	return 0;
}

int main(int argc, char **argv)
{
	if (argc > 3 && !strcmp(argv[1], "ask"))
		return asks(atoi(argv[2]), argv + 3);
	if (argc == 3 && !strcmp(argv[1], "many"))
		return many(atoi(argv[2]));
	if (argc == 3 && !strcmp(argv[1], "kills"))
		return kills(atoi(argv[2]));
	if (argc == 3 && !strcmp(argv[1], "nonsense"))
		return nonsense(atoi(argv[2]));
	if (argc == 3 && !strcmp(argv[1], "outlives"))
		return outlives(atoi(argv[2]));
	if (argc == 2 && !strcmp(argv[1], "contained"))
		return contained();
	if (argc == 3 && !strcmp(argv[1], "surge"))
		return surges(atoi(argv[2]));
	return 2;
}
