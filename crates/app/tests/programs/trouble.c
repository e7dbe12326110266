/* SPDX-License-Identifier: GPL-2.0 */
/* What happens to programs: trouble fork | exec | many | lost | say. */
#include <andante.h>

#include "check.h"

#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static const uint64_t soon_ns = 1000000000;

static struct andante_wish wish(void)
{
	struct andante_wish wish;

	memset(&wish, 0, sizeof wish);
	wish.size = sizeof wish;
	wish.role = ANDANTE_ROLE_GAME;
	wish.period_ns = 16666667;
	return wish;
}

static void open_and_join(andante_session **session, andante_thread **thread)
{
	struct andante_wish of = wish();

	RETURNS(0, andante_open(&of, session));
	RETURNS(0, andante_join(*session, NULL, thread));
}

/* Files and mappings that are the library's, or look like it. */
static int open_files(void)
{
	DIR *folder = opendir("/proc/self/fd");
	int files = 0;

	CHECK(folder != NULL);
	while (readdir(folder) != NULL)
		files++;
	closedir(folder);
	return files;
}

static int pages(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	int found = 0;

	CHECK(maps != NULL);
	while (fgets(line, sizeof line, maps) != NULL)
		found += strstr(line, "andante-page") != NULL;
	fclose(maps);
	return found;
}

static void in_the_child(andante_session *session, andante_thread *thread, andante_sink *sink)
{
	struct andante_notice notice;
	andante_session *own;
	andante_thread *again;

	memset(&notice, 0, sizeof notice);
	notice.size = sizeof notice;
	RETURNS(ANDANTE_E_FORKED, andante_end(thread));
	RETURNS(ANDANTE_E_FORKED, andante_begin(thread, andante_now_ns() + soon_ns));
	RETURNS(ANDANTE_E_FORKED, andante_report(thread, 1));
	RETURNS(ANDANTE_E_FORKED, andante_surge(thread));
	RETURNS(ANDANTE_E_FORKED, andante_pending(thread, 0));
	RETURNS(ANDANTE_E_FORKED, andante_raise(sink, 0, 0));
	RETURNS(ANDANTE_E_FORKED, andante_join(session, NULL, &again));
	RETURNS(ANDANTE_E_FORKED, andante_foreground(session, 0));
	RETURNS(ANDANTE_E_FORKED, andante_withdraw(session));
	RETURNS(ANDANTE_E_FORKED, andante_next_notice(session, &notice));
	CHECK(strstr(andante_last_message(), "forked") != NULL);
	RETURNS(0, andante_sink_free(sink));
	RETURNS(0, andante_leave(thread));
	RETURNS(0, andante_close(session));
	CHECK(pages() == 0);
	open_and_join(&own, &thread);
	RETURNS(0, andante_begin(thread, andante_now_ns() + soon_ns));
	RETURNS(0, andante_end(thread));
	RETURNS(0, andante_leave(thread));
	RETURNS(0, andante_close(own));
	_exit(0);
}

static int forks(void)
{
	andante_session *session;
	andante_thread *thread;
	andante_sink *sink;
	int status;
	pid_t child;

	open_and_join(&session, &thread);
	sink = andante_sink_of(thread);
	RETURNS(0, andante_begin(thread, andante_now_ns() + 60 * soon_ns));
	child = fork();
	CHECK(child >= 0);
	if (child == 0)
		in_the_child(session, thread, sink);
	CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
	RETURNS(0, andante_pending(thread, 0));	    /* the child has raised none, */
	RETURNS(0, andante_end(thread));	    /* nor ended the cycle, */
	RETURNS(0, andante_foreground(session, 1)); /* nor the connection */
	RETURNS(0, andante_sink_free(sink));
	RETURNS(0, andante_leave(thread));
	return andante_close(session);
}

static int execs(const char *self)
{
	andante_session *session;
	andante_thread *thread;
	int before = open_files();
	char files[16];

	open_and_join(&session, &thread);
	CHECK(open_files() > before && pages() == 1);
	snprintf(files, sizeof files, "%d", before);
	execl(self, self, "execed", files, (char *)NULL);
	return 1;
}

static int many(void)
{
	andante_session *session;
	andante_thread *thread;
	int i, before;

	open_and_join(&session, &thread);
	before = open_files();
	for (i = 0; i < 1000; i++) {
		andante_session *other;
		struct andante_wish of = wish();

		if (geteuid() != 0)
			usleep(6000); /* a user may connect 200 times a second */
		RETURNS(0, andante_leave(thread));
		RETURNS(0, andante_open(&of, &other));
		RETURNS(0, andante_join(other, NULL, &thread));
		RETURNS(0, andante_close(session));
		session = other;
	}
	CHECK(open_files() == before && pages() == 1);
	RETURNS(0, andante_leave(thread));
	RETURNS(0, andante_close(session));
	CHECK(open_files() == before - 1 && pages() == 0);
	return 0;
}

/* The daemon ends while an answer is waited for. */
static int lost(void)
{
	andante_session *session;
	andante_thread *thread;
	struct andante_notice notice;

	memset(&notice, 0, sizeof notice);
	notice.size = sizeof notice;
	open_and_join(&session, &thread);
	RETURNS(ANDANTE_E_LOST, andante_foreground(session, 1));
	RETURNS(ANDANTE_E_LOST, andante_withdraw(session));
	RETURNS(ANDANTE_E_LOST, andante_next_notice(session, &notice));
	RETURNS(0, andante_begin(thread, andante_now_ns() + soon_ns));
	RETURNS(0, andante_end(thread));
	RETURNS(0, andante_leave(thread));
	return andante_close(session);
}

/* What three calls return, and how long the last took. */
static int say(void)
{
	andante_session *session;
	andante_thread *thread;
	struct andante_wish of = wish();
	uint64_t begun_ns;

	printf("%d ", andante_open(&of, &session));
	printf("%d ", andante_join(session, NULL, &thread));
	begun_ns = andante_now_ns();
	printf("%d ", andante_foreground(session, 1));
	printf("%d\n", (int)((andante_now_ns() - begun_ns) / 1000000000));
	andante_leave(thread);
	andante_close(session);
	return 0;
}

int main(int argc, char **argv)
{
	CHECK(argc > 1 && signal(SIGPIPE, SIG_DFL) != SIG_ERR);
	if (strcmp(argv[1], "fork") == 0)
		return forks();
	if (strcmp(argv[1], "exec") == 0)
		return execs(argv[0]);
	if (strcmp(argv[1], "many") == 0)
		return many();
	if (strcmp(argv[1], "lost") == 0)
		return lost();
	if (strcmp(argv[1], "say") == 0)
		return say();
	CHECK(strcmp(argv[1], "execed") == 0);
	CHECK(open_files() == atoi(argv[2]) && pages() == 0);
	return 0;
}
