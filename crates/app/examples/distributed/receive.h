/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The player's side of stream.h: a connection to the server, from which packets come one after the
 * other, whole and in order. Over UDP some may be missing; those are counted.
 */
#ifndef RECEIVE_H
#define RECEIVE_H

#include "stream.h"

/* Packets over UDP that are put together at a time: so far may one overtake another. */
#define ASSEMBLED 8u
/* Waiting looks this often whether the program is to end [ms]. */
#define LOOK_MS 100
/* How long the server may take to answer the first time [ns]. */
#define ANSWER_NS 5000000000u

enum received {
	RECEIVED_PACKET,
	RECEIVED_END,
	RECEIVED_NOTHING, /* the server is gone, or the program is to end: why says which */
};

struct assembly {
	bool is_used;
	struct stream_head head;
	uint8_t *data;
	uint8_t *has; /* each fragment */
	uint32_t fragments_left;
	uint32_t bytes;
};

struct receiver {
	int socket;
	bool by_udp;
	uint64_t token;
	uint64_t heard_ns;
	uint64_t said_ns;  /* that it is still here */
	uint64_t first_ns; /* when the first packet would have come without any delay */
	bool has_first;
	bool has_end;
	uint32_t next; /* the packet that is wanted */
	uint32_t end;  /* how many there are */
	struct assembly assemblies[ASSEMBLED];
	struct stream_head head; /* of the packet that has come last */
	uint8_t *data;		 /* it; followed by zeros */
	uint32_t bytes;
	uint64_t packets_lost;
	uint64_t nonsense; /* datagrams that are none of the film's */
	char why[256];	   /* nothing has come */
};

/* Connects and is told of the film; extradata is to be freed. Returns 0, or -1 with `why`. */
int receive_film(struct receiver *from, const char *host, const char *port, bool by_udp,
		 struct stream_film *film, uint8_t **extradata);
/* Waits for the next packet: from->data. */
enum received receive_packet(struct receiver *from);
/* Says goodbye, and frees everything. */
void receive_close(struct receiver *from);

/* Zeros that libavcodec wants after a packet. */
#define PADDING 64u

#endif
