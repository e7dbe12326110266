// SPDX-License-Identifier: GPL-2.0
/*
 * Two processes that talk over a UNIX socket:
 *
 *      peers serve PATH       answers every byte that comes after some work
 *      peers late PATH        the same, but is at work already when its first client comes
 *      peers ask PATH         sends a byte, waits for the answer, and again
 *      peers swallow PATH     works as much for every byte, and never answers
 *      peers feed PATH        sends bytes for ever
 *
 * or over two pipes as well, as a sound server does with its clients:
 *
 *      peers sound PATH       answers over the socket; a thread of its works for every byte of the
 *                             pipe PATH.in, and then writes one to PATH.out
 *      peers play PATH        asks a few times over the socket, then over the pipes
 *      peers intrude PATH     asks over the pipes only
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define WORK 2000 /* turns of 500 instructions: a ms of virtual time */
#define BEFORE 8  /* such works */
#define RETRY_US 1000
#define GREETINGS 8

static void work(void)
{
	for (int turn = 0; turn < WORK; turn++)
		__asm__ volatile(".rept 500; nop; .endr"); /* as endless.c */
}

/* Answers one client at a time. */
static void serve(int listener, int answers)
{
	for (;;) {
		int client = accept(listener, NULL, NULL);
		char byte;

		while (client >= 0 && read(client, &byte, 1) == 1) {
			work();
			if (answers && send(client, &byte, 1, MSG_NOSIGNAL) != 1)
				break;
		}
		close(client);
	}
}

static int open_pipe(const char *path, const char *which)
{
	char name[128];

	snprintf(name, sizeof name, "%s.%s", path, which);
	mkfifo(name, 0600);
	return open(name, O_RDWR); /* for both: nobody waits for the other side */
}

static void *serve_pipes(void *path)
{
	int in = open_pipe(path, "in"), out = open_pipe(path, "out");
	char byte;

	while (read(in, &byte, 1) == 1) {
		work();
		if (write(out, &byte, 1) != 1)
			break;
	}
	return NULL;
}

#define NOBODY (-1)
#define FOR_EVER (-1)

/* Sends bytes and waits for the answer to each, if there is any to come. */
static int ask(int to, int from, int times)
{
	char byte = 0;

	while (times-- && write(to, &byte, 1) == 1 && (from == NOBODY || read(from, &byte, 1) == 1))
		;
	return 1;
}

static int ask_over_pipes(const char *path)
{
	return ask(open_pipe(path, "in"), open_pipe(path, "out"), FOR_EVER);
}

int main(int argc, char **argv)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	const char *does = argv[1];

	if (argc != 3 || fd < 0)
		return 2;
	strncpy(address.sun_path, argv[2], sizeof address.sun_path - 1);
	if (!strcmp(does, "intrude"))
		return ask_over_pipes(argv[2]);
	if (!strcmp(does, "serve") || !strcmp(does, "late") || !strcmp(does, "swallow") ||
	    !strcmp(does, "sound")) {
		pthread_t thread;

		unlink(argv[2]);
		if (bind(fd, (struct sockaddr *)&address, sizeof address) || listen(fd, 8))
			return 1;
		if (!strcmp(does, "late"))
			for (int i = 0; i < BEFORE; i++)
				work();
		if (!strcmp(does, "sound"))
			pthread_create(&thread, NULL, serve_pipes, argv[2]);
		serve(fd, strcmp(does, "swallow"));
	}
	while (connect(fd, (struct sockaddr *)&address, sizeof address))
		usleep(RETRY_US);
	if (!strcmp(does, "play")) {
		ask(fd, fd, GREETINGS);
		return ask_over_pipes(argv[2]);
	}
	return ask(fd, strcmp(does, "feed") ? fd : NOBODY, FOR_EVER);
}
