/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A client of the daemon, by the words of the socket alone: no library. For the programs of the
 * kernel tests; a failure ends the program.
 */
#ifndef ANDANTE_TESTS_KERNEL_CLIENT_H
#define ANDANTE_TESTS_KERNEL_CLIENT_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "../../../app/include/andante/page.h"

#define OPEN "{\"op\":\"open\",\"version\":1,\"role\":\"game\",\"cycle\":{\"period_ns\":16666667}}\n"

static void fails(const char *what)
{
	perror(what);
	exit(1);
}

static inline uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

static inline int connected(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "/run/andante.sock" };
	int one = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (one < 0 || connect(one, (struct sockaddr *)&address, sizeof address) < 0)
		fails("connect");
	return one;
}

/* Says the line, with a descriptor that goes along unless that is -1. */
static inline void says_with(int socket, const char *line, int fd)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec bytes = { (char *)line, strlen(line) };
	struct msghdr message = { .msg_iov = &bytes, .msg_iovlen = 1 };
	struct cmsghdr *along;

	if (fd >= 0) {
		message.msg_control = control;
		message.msg_controllen = sizeof control;
		along = CMSG_FIRSTHDR(&message);
		along->cmsg_level = SOL_SOCKET;
		along->cmsg_type = SCM_RIGHTS;
		along->cmsg_len = CMSG_LEN(sizeof fd);
		memcpy(CMSG_DATA(along), &fd, sizeof fd);
	}
	if (sendmsg(socket, &message, MSG_NOSIGNAL) < 0)
		fails("sendmsg");
}

/* Takes the answer, with the descriptor that comes along; -1: none does. */
static inline int is_told(int socket, char *answer, size_t room)
{
	char control[CMSG_SPACE(sizeof(int))];
	struct iovec bytes = { answer, room - 1 };
	struct msghdr message = { .msg_iov = &bytes,
				  .msg_iovlen = 1,
				  .msg_control = control,
				  .msg_controllen = sizeof control };
	struct cmsghdr *along;
	ssize_t got = recvmsg(socket, &message, 0);
	int fd = -1;

	if (got <= 0)
		fails("recvmsg");
	answer[got] = 0;
	along = CMSG_FIRSTHDR(&message);
	if (along && along->cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(along), sizeof fd);
	return fd;
}

/* Says the line, and takes the answer, as above. */
static inline int says(int socket, const char *line, char *answer, size_t room)
{
	says_with(socket, line, -1);
	return is_told(socket, answer, room);
}

/* The calling thread takes part in the session of this connection. */
static inline struct andante_page *joined(int socket)
{
	char line[128], answer[4096];
	void *page;
	int fd;

	snprintf(line, sizeof line, "{\"op\":\"join\",\"thread\":%d}\n", (int)syscall(SYS_gettid));
	fd = says(socket, line, answer, sizeof answer);
	if (fd < 0) {
		fputs(answer, stderr);
		exit(1);
	}
	page = mmap(NULL, ANDANTE_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (page == MAP_FAILED)
		fails("mmap");
	return page;
}

#endif
