/* SPDX-License-Identifier: GPL-2.0 */
/* See receive.h. Whatever comes from the network is doubted: lengths, numbers, and who sent it. */
#define _GNU_SOURCE
#include "receive.h"

#include <sys/random.h>

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int gone(struct receiver *from, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(from->why, sizeof from->why, format, arguments);
	va_end(arguments);
	return -1;
}

static void say(const struct receiver *from, enum stream_kind kind)
{
	struct stream_head head = {.kind = kind, .token = from->token};
	uint8_t message[HEAD_BYTES];

	put_head(message, &head);
	/* Should it be lost, it is said again. */
	if (send(from->socket, message, HEAD_BYTES, MSG_NOSIGNAL) < 0)
		return;
}

/* Waits until there is something to read: 1; or 0: not in this time; or -1, with `why`. */
static int await(struct receiver *from, uint64_t until_ns)
{
	struct pollfd poll_of = {.fd = from->socket, .events = POLLIN};

	for (;;) {
		uint64_t at_ns = now_ns();

		if (stopped)
			return gone(from, "stopped");
		if (from->by_udp && at_ns - from->said_ns > STILL_HERE_NS) {
			say(from, from->heard_ns == 0 ? STREAM_HELLO : STREAM_STILL_HERE);
			from->said_ns = at_ns;
		}
		if (poll(&poll_of, 1, LOOK_MS) > 0)
			return 1;
		if (now_ns() >= until_ns)
			return 0;
	}
}

/* ---- TCP ---- */

static int read_whole(struct receiver *from, uint8_t *to, size_t bytes)
{
	size_t done = 0;

	while (done < bytes) {
		ssize_t got;
		uint64_t patience_ns = from->heard_ns == 0 ? ANSWER_NS : SILENCE_NS;
		int ready = await(from, now_ns() + patience_ns);

		if (ready < 0)
			return -1;
		if (ready == 0)
			return gone(from, "the server is silent: nothing has come for %g s",
				    (double)patience_ns / 1e9);
		got = recv(from->socket, to + done, bytes - done, 0);
		if (got == 0)
			return gone(from, "the server has gone before the film was over");
		if (got < 0 && errno != EINTR && errno != EAGAIN)
			return gone(from, "the server is gone: %s", strerror(errno));
		done += got > 0 ? (size_t)got : 0;
	}
	return 0;
}

/* The next message, whose body is from->data. */
static int read_message(struct receiver *from)
{
	uint8_t bytes[HEAD_BYTES];

	if (read_whole(from, bytes, HEAD_BYTES) < 0)
		return -1;
	if (!take_head(bytes, &from->head) || from->head.token != from->token ||
	    from->head.bytes > PACKET_BYTES_MAX)
		return gone(from, "this is no film_server: it says something else");
	free(from->data);
	from->bytes = from->head.bytes;
	from->data = calloc(1, from->bytes + PADDING);
	if (from->data == NULL)
		return gone(from, "there is no memory for a packet");
	if (read_whole(from, from->data, from->bytes) < 0)
		return -1;
	from->heard_ns = now_ns();
	return 0;
}

static enum received next_by_tcp(struct receiver *from)
{
	if (read_message(from) < 0)
		return RECEIVED_NOTHING;
	if (from->head.kind == STREAM_END)
		return RECEIVED_END;
	if (from->head.kind != STREAM_PACKET) {
		gone(from, "this is no film_server: it says something else");
		return RECEIVED_NOTHING;
	}
	return RECEIVED_PACKET;
}

/* ---- UDP ---- */

static void drop_assembly(struct assembly *assembly)
{
	free(assembly->data);
	free(assembly->has);
	memset(assembly, 0, sizeof *assembly);
}

/* Whether a fragment can be one: only the last of a packet is shorter than all others. */
static bool makes_sense(const struct stream_head *head, size_t body)
{
	bool is_last = head->fragment + 1u == head->fragments;

	return head->bytes == body && body > 0 && body <= DATAGRAM_BODY &&
	       head->fragments <= PACKET_BYTES_MAX / DATAGRAM_BODY &&
	       head->fragment < head->fragments && (is_last || body == DATAGRAM_BODY);
}

/* The packets before this number are waited for no more. */
static void give_up_before(struct receiver *from, uint32_t number)
{
	while (from->next < number) {
		struct assembly *oldest = &from->assemblies[from->next % ASSEMBLED];

		if (oldest->is_used)
			drop_assembly(oldest);
		from->packets_lost++;
		from->next++;
	}
}

/* Adds a fragment to its packet; false: it is none of the film's. */
static bool add_fragment(struct receiver *from, const struct stream_head *head, const uint8_t *body)
{
	struct assembly *to = &from->assemblies[head->number % ASSEMBLED];

	if (head->number < from->next)
		return true; /* late, or again */
	if (!to->is_used) {
		to->is_used = true;
		to->head = *head;
		to->data = calloc(1, head->fragments * DATAGRAM_BODY + PADDING);
		to->has = calloc(head->fragments, 1);
		to->fragments_left = head->fragments;
	}
	if (to->data == NULL || to->has == NULL || to->head.number != head->number ||
	    to->head.fragments != head->fragments)
		return false;
	if (to->has[head->fragment])
		return true;
	to->has[head->fragment] = 1;
	to->fragments_left--;
	memcpy(to->data + head->fragment * DATAGRAM_BODY, body, head->bytes);
	to->bytes += head->bytes;
	return true;
}

/* Reads a datagram; -1 with `why` if the server is gone. */
static int hear_datagram(struct receiver *from, uint8_t *message, size_t *body,
			 struct stream_head *head)
{
	/* One byte more, so that one that is too long shows. */
	ssize_t got = recv(from->socket, message, HEAD_BYTES + DATAGRAM_BODY + 1u, MSG_DONTWAIT);

	*body = 0;
	if (got < 0 && errno == ECONNREFUSED)
		return gone(from, "nobody serves there (any more): connection refused");
	if (got < 0)
		return errno == EAGAIN || errno == EINTR
			       ? 0
			       : gone(from, "the server is gone: %s", strerror(errno));
	if (got < (ssize_t)HEAD_BYTES || got > (ssize_t)(HEAD_BYTES + DATAGRAM_BODY) ||
	    !take_head(message, head) || head->token != from->token) {
		from->nonsense++;
		return 0;
	}
	*body = (size_t)got - HEAD_BYTES;
	from->heard_ns = now_ns();
	return 1;
}

/* Takes a datagram in; -1 with `why` if the server is gone. */
static int take_datagram(struct receiver *from)
{
	uint8_t message[HEAD_BYTES + DATAGRAM_BODY + 1u];
	struct stream_head head = {0};
	size_t body;
	int heard = hear_datagram(from, message, &body, &head);

	if (heard <= 0)
		return heard;
	if (head.kind == STREAM_END && head.number >= from->next && head.number <= from->end) {
		if (!from->has_end)
			say(from, STREAM_BYE);
		from->has_end = true;
		from->end = head.number;
	} else if (head.kind == STREAM_PACKET && makes_sense(&head, body) &&
		   head.number < from->end) {
		/* So far ahead that the oldest will not come any more. */
		if (head.number >= from->next + ASSEMBLED)
			give_up_before(from, head.number - ASSEMBLED + 1u);
		from->nonsense += !add_fragment(from, &head, message + HEAD_BYTES);
	} else if (head.kind != STREAM_FILM) {
		from->nonsense++;
	}
	return 0;
}

/* Takes the first packet that is complete, in order; a missing one is passed over at the end. */
static bool take_assembled(struct receiver *from)
{
	struct assembly *first;

	while (from->has_end && from->next < from->end &&
	       !from->assemblies[from->next % ASSEMBLED].is_used)
		give_up_before(from, from->next + 1u);
	first = &from->assemblies[from->next % ASSEMBLED];
	if (first->is_used && first->fragments_left > 0 && from->has_end)
		give_up_before(from, from->next + 1u);
	else if (first->is_used && first->fragments_left == 0) {
		free(from->data);
		from->data = first->data;
		from->bytes = first->bytes;
		from->head = first->head;
		free(first->has);
		memset(first, 0, sizeof *first);
		from->next++;
		return true;
	}
	return false;
}

static enum received next_by_udp(struct receiver *from)
{
	while (!take_assembled(from)) {
		int ready;

		if (from->has_end && from->next >= from->end)
			return RECEIVED_END;
		if (from->has_end)
			continue;
		ready = await(from, from->heard_ns + SILENCE_NS);
		if (ready == 0)
			gone(from, "the server is silent: nothing has come for %g s",
			     SILENCE_NS / 1e9);
		if (ready <= 0 || take_datagram(from) < 0)
			return RECEIVED_NOTHING;
	}
	return RECEIVED_PACKET;
}

/* ---- Both ---- */

enum received receive_packet(struct receiver *from)
{
	enum received what = from->by_udp ? next_by_udp(from) : next_by_tcp(from);

	if (what == RECEIVED_PACKET && !from->has_first) {
		from->has_first = true;
		from->first_ns = now_ns() - from->head.sent_ns;
	}
	return what;
}

static int connect_to(struct receiver *from, const char *host, const char *port)
{
	struct addrinfo hints = {.ai_socktype = from->by_udp ? SOCK_DGRAM : SOCK_STREAM};
	struct addrinfo *found, *one;
	int error = getaddrinfo(host, port, &hints, &found);

	if (error != 0)
		return gone(from, "there is no host %s, port %s: %s", host, port,
			    gai_strerror(error));
	from->socket = -1;
	for (one = found; one != NULL && from->socket < 0; one = one->ai_next) {
		from->socket = socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC, 0);
		/* Connected over UDP too: the kernel keeps strangers' datagrams away. */
		if (from->socket >= 0 && connect(from->socket, one->ai_addr, one->ai_addrlen) < 0) {
			error = errno;
			close(from->socket);
			from->socket = -1;
		}
	}
	freeaddrinfo(found);
	if (from->socket < 0)
		return gone(from, "nobody serves at %s, port %s: %s", host, port, strerror(error));
	return 0;
}

/* Over UDP, what the film is like: asked again and again, since that may be lost as well. */
static int hear_film_by_udp(struct receiver *from)
{
	uint64_t until_ns = now_ns() + ANSWER_NS;
	uint8_t message[HEAD_BYTES + DATAGRAM_BODY + 1u];
	size_t body;

	while (now_ns() < until_ns) {
		int ready = await(from, until_ns);

		if (ready < 0)
			return -1;
		if (ready == 0)
			break;
		ready = hear_datagram(from, message, &body, &from->head);
		if (ready < 0)
			return -1;
		if (ready == 0 || from->head.kind != STREAM_FILM) {
			/* Of a film that goes on without us; to be asked for again. */
			from->heard_ns = 0;
			continue;
		}
		from->data = calloc(1, body + PADDING);
		if (from->data == NULL)
			return gone(from, "there is no memory for a packet");
		memcpy(from->data, message + HEAD_BYTES, body);
		from->bytes = (uint32_t)body;
		return 0;
	}
	return gone(from, "no answer: is film_server running there, and the port right?");
}

int receive_film(struct receiver *from, const char *host, const char *port, bool by_udp,
		 struct stream_film *film, uint8_t **extradata)
{
	memset(from, 0, sizeof *from);
	from->by_udp = by_udp;
	if (getrandom(&from->token, sizeof from->token, 0) != (ssize_t)sizeof from->token)
		return gone(from, "no random number is to be had: %s", strerror(errno));
	if (connect_to(from, host, port) < 0)
		return -1;
	say(from, STREAM_HELLO);
	from->said_ns = now_ns();
	if ((by_udp ? hear_film_by_udp(from) : read_message(from)) < 0)
		return -1;
	if (from->head.kind != STREAM_FILM || !take_film(from->data, from->bytes, film))
		return gone(from, "this is no film_server: it says something else");
	from->end = film->packets;
	*extradata = calloc(1, film->extradata_bytes + PADDING);
	if (*extradata == NULL)
		return gone(from, "there is no memory for what the decoder needs");
	memcpy(*extradata, film->extradata, film->extradata_bytes);
	return 0;
}

void receive_close(struct receiver *from)
{
	unsigned i;

	if (from->socket > 0 && from->by_udp && !from->has_end)
		say(from, STREAM_BYE);
	if (from->socket > 0)
		close(from->socket);
	for (i = 0; i < ASSEMBLED; i++)
		drop_assembly(&from->assemblies[i]);
	free(from->data);
	from->data = NULL;
}
