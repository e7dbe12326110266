/* SPDX-License-Identifier: GPL-2.0 */
/* The server's film: the packets of a file, as libavformat reads them, and when each is due. */
#ifndef FILM_H
#define FILM_H

#include "stream.h"

struct packet {
	uint8_t *data;
	uint32_t bytes;
	bool is_key;
	uint64_t sent_ns;  /* since the first packet */
	uint64_t shown_ns; /* since the first picture */
};

struct film {
	struct stream_film about; /* points to what the file says of the decoder */
	struct AVFormatContext *file;
	struct packet *packets;
	uint32_t packet_count;
};

/*
 * Reads the pictures of a file. They are kept whole: an hour of film is about a gigabyte. Returns
 * 0, or -1 when it has said why not.
 */
int read_film(struct film *film, const char *name);
void free_film(struct film *film);

#endif
