/* SPDX-License-Identifier: GPL-2.0 */
/* The layout of a page, as the published header has it. */
#include <andante/page.h>

#include <stddef.h>
#include <stdio.h>

#define SAY(field) printf(#field " %zu\n", offsetof(struct andante_page, field))

int main(void)
{
	printf("magic_is %u\n", ANDANTE_PAGE_MAGIC);
	printf("version_is %u\n", ANDANTE_PAGE_VERSION);
	printf("bytes %u\n", ANDANTE_PAGE_BYTES);
	printf("services %u\n", ANDANTE_SERVICES);
	printf("page %zu\n", sizeof(struct andante_page));
	printf("event %zu\n", sizeof(struct andante_page_event));
	printf("event_deliver_ns %zu\n", offsetof(struct andante_page_event, deliver_ns));
	printf("event_raised %zu\n", offsetof(struct andante_page_event, raised));
	SAY(magic);
	SAY(version);
	SAY(session);
	SAY(thread);
	SAY(sink);
	SAY(deadline_ns);
	SAY(begun_ns);
	SAY(worked_ns);
	SAY(cycles);
	SAY(surges);
	SAY(calls_for);
	SAY(calls_ns);
	SAY(late);
	SAY(events);
	SAY(delivered);
	SAY(read_ns);
	return 0;
}
