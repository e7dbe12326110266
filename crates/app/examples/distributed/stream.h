/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What film_server and film_player say to each other, over TCP or UDP on the same port.
 *
 *	player                                server
 *	  HELLO (its token)          ->
 *	                             <-       FILM: codec, size, period, what the decoder needs
 *	                             <-       PACKET 0, 1, 2 ... each when it is due
 *	  STILL_HERE, once a second  ->                        (UDP; who is silent is given up)
 *	                             <-       END: how many packets there were
 *	  BYE                        ->                        (UDP)
 *
 * Each message is a head and a body. Over UDP a message is one datagram, so that a packet that is
 * longer than DATAGRAM_BODY comes in several fragments, and any of them may be lost, doubled, or
 * come in another order. Over TCP a packet is one message. The token, which the player has chosen,
 * is on every message of both, so that a stranger's datagram is none of the film's. Numbers are
 * little-endian.
 */
#ifndef STREAM_H
#define STREAM_H

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define STREAM_PORT "5004"
#define STREAM_MAGIC 0x314d4c46u /* FLM1 */
#define HEAD_BYTES 52u
/* What fits into an Ethernet frame of 1500 bytes after the heads of IPv6, UDP and ours. */
#define DATAGRAM_BODY (1500u - 40u - 8u - HEAD_BYTES)
/* A single picture of a film is shorter, and what the decoder needs is far shorter. */
#define PACKET_BYTES_MAX (16u << 20)
#define EXTRADATA_BYTES_MAX 1024u
/* Who has said nothing for so long is gone [ns]; STILL_HERE comes three times as often. */
#define SILENCE_NS 3000000000u
#define STILL_HERE_NS (SILENCE_NS / 3u)

enum stream_kind {
	STREAM_HELLO = 1,
	STREAM_FILM,
	STREAM_PACKET,
	STREAM_END,
	STREAM_STILL_HERE,
	STREAM_BYE,
};

struct stream_head {
	uint32_t kind;
	uint64_t token;
	uint32_t number;    /* of the packet, from 0 on; of END: how many there were */
	uint32_t fragment;  /* of the packet, from 0 on */
	uint32_t fragments; /* of the packet */
	uint32_t bytes;	    /* of the body of this message */
	uint64_t sent_ns;   /* when it is sent, since the film's beginning */
	uint64_t shown_ns;  /* when the picture is shown, since that of the first */
	uint32_t is_key;    /* whether decoding can begin here */
};

/* The body of FILM. */
#define FILM_BYTES (32u + 4u + 4u + 8u + 4u + 4u)
struct stream_film {
	char codec[32]; /* the name by which libavcodec knows it, with a 0 at the end */
	uint32_t width;
	uint32_t height;
	uint64_t period_ns;
	uint32_t packets;
	uint32_t extradata_bytes;
	const uint8_t *extradata;
};

static inline uint8_t *put(uint8_t *at, uint64_t value, unsigned bytes)
{
	unsigned i;

	for (i = 0; i < bytes; i++)
		*at++ = (uint8_t)(value >> (8u * i));
	return at;
}

static inline uint64_t take(const uint8_t **at, unsigned bytes)
{
	uint64_t value = 0;
	unsigned i;

	for (i = 0; i < bytes; i++)
		value |= (uint64_t)*(*at)++ << (8u * i);
	return value;
}

static inline void put_head(uint8_t *at, const struct stream_head *head)
{
	at = put(at, STREAM_MAGIC, 4);
	at = put(at, head->kind, 4);
	at = put(at, head->token, 8);
	at = put(at, head->number, 4);
	at = put(at, head->fragment, 4);
	at = put(at, head->fragments, 4);
	at = put(at, head->bytes, 4);
	at = put(at, head->sent_ns, 8);
	at = put(at, head->shown_ns, 8);
	put(at, head->is_key, 4);
}

/* Whether it is one; what its numbers say is still to be doubted. */
static inline bool take_head(const uint8_t *at, struct stream_head *head)
{
	if (take(&at, 4) != STREAM_MAGIC)
		return false;
	head->kind = (uint32_t)take(&at, 4);
	head->token = take(&at, 8);
	head->number = (uint32_t)take(&at, 4);
	head->fragment = (uint32_t)take(&at, 4);
	head->fragments = (uint32_t)take(&at, 4);
	head->bytes = (uint32_t)take(&at, 4);
	head->sent_ns = take(&at, 8);
	head->shown_ns = take(&at, 8);
	head->is_key = (uint32_t)take(&at, 4);
	return true;
}

static inline size_t put_film(uint8_t *at, const struct stream_film *film)
{
	memcpy(at, film->codec, sizeof film->codec);
	at = put(at + sizeof film->codec, film->width, 4);
	at = put(at, film->height, 4);
	at = put(at, film->period_ns, 8);
	at = put(at, film->packets, 4);
	at = put(at, film->extradata_bytes, 4);
	if (film->extradata_bytes > 0)
		memcpy(at, film->extradata, film->extradata_bytes);
	return FILM_BYTES + film->extradata_bytes;
}

/* Whether it is one; extradata points into the body. */
static inline bool take_film(const uint8_t *at, size_t bytes, struct stream_film *film)
{
	if (bytes < FILM_BYTES || bytes > FILM_BYTES + EXTRADATA_BYTES_MAX)
		return false;
	memcpy(film->codec, at, sizeof film->codec);
	at += sizeof film->codec;
	film->width = (uint32_t)take(&at, 4);
	film->height = (uint32_t)take(&at, 4);
	film->period_ns = take(&at, 8);
	film->packets = (uint32_t)take(&at, 4);
	film->extradata_bytes = (uint32_t)take(&at, 4);
	film->extradata = at;
	return film->codec[sizeof film->codec - 1] == 0 &&
	       film->extradata_bytes == bytes - FILM_BYTES && film->width - 1 < 16384 &&
	       film->height - 1 < 16384 && film->period_ns - 1000000 < 10000000000u;
}

/* Set by SIGINT and SIGTERM. */
static volatile sig_atomic_t stopped;

static inline void stop(int signal)
{
	(void)signal;
	stopped = 1;
}

/* Both end the program at the next opportunity; waiting is interrupted. */
static inline void end_on_signals(void)
{
	struct sigaction action = {.sa_handler = stop};

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
}

static inline void complain(const char *program, const char *format, ...)
{
	va_list arguments;

	fprintf(stderr, "%s: ", program);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
}

/* A number of this option; the program ends if it is none, or not from least to most. */
static inline double number_of(const char *program, const char *option, const char *text,
			       double least, double most)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end != 0 || !(value >= least && value <= most)) {
		complain(program, "--%s takes a number from %g to %g, and not \"%s\"", option,
			 least, most, text);
		exit(2);
	}
	return value;
}

#endif
