// SPDX-License-Identifier: GPL-2.0
/*
 * Two processes that talk over a UNIX socket:
 *
 *      peers serve PATH       answers every byte that comes after some work
 *      peers late PATH        the same, but is at work already when its first client comes
 *      peers ask PATH         sends a byte, waits for the answer, and again
 *      peers swallow PATH     works as much for every byte, and never answers
 *      peers feed PATH        sends bytes for ever
 */
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define WORK 2000   /* turns of 500 instructions: a ms of virtual time */
#define BEFORE 8    /* such works */
#define RETRY_US 1000

static void work(void)
{
	for (int turn = 0; turn < WORK; turn++)
		__asm__ volatile(".rept 500; nop; .endr"); /* as endless.c */
}

/* The server of one client at a time. */
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

static int ask(int server, int answered)
{
	char byte = 0;

	while (write(server, &byte, 1) == 1 && (!answered || read(server, &byte, 1) == 1))
		;
	return 1;
}

int main(int argc, char **argv)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	const char *does = argv[1];

	if (argc != 3 || fd < 0)
		return 2;
	strncpy(address.sun_path, argv[2], sizeof address.sun_path - 1);
	if (!strcmp(does, "serve") || !strcmp(does, "late") || !strcmp(does, "swallow")) {
		unlink(argv[2]);
		if (bind(fd, (struct sockaddr *)&address, sizeof address) || listen(fd, 8))
			return 1;
		if (!strcmp(does, "late"))
			for (int i = 0; i < BEFORE; i++)
				work();
		serve(fd, strcmp(does, "swallow"));
	}
	while (connect(fd, (struct sockaddr *)&address, sizeof address))
		usleep(RETRY_US);
	return ask(fd, !strcmp(does, "ask"));
}
