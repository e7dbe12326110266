/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Packets in: which are not worth being looked at any further, for who they are for has no room
 * [1].
 *
 * A flood costs nothing but what is done for packets that are thrown away in the end. So the socket
 * of a packet is found first, and if its queue is full, the packet goes before any protocol has
 * seen it:
 *
 *              looks?            room?
 *      packet --------> socket --------> protocol, queue
 *         \                \
 *          protocol         dropped, and counted for the class
 *
 * Finding a socket has a price that every packet would pay. So sockets are looked for only while
 * packets are refused: the first is refused late, by the socket itself, and each that is refused,
 * early or late, makes us look for another *while*. Then what is done in vain is no more than one
 * packet a while, and what is looked for in vain no more than the packets of one while after the
 * last refusal.
 *
 * Departures from [1]: a queue's length is the kernel's, in bytes of memory and not in packets; and
 * connections (TCP) are left alone, for their windows keep what has no room with the sender.
 *
 * [1] P. Druschel, G. Banga: Lazy Receiver Processing (LRP): A Network Subsystem Architecture for
 * Server Systems. OSDI 1996, 3.2 (early discard) and 3.3 (UDP).
 */
#ifndef ANDANTE_CORE_RECEIVE_H
#define ANDANTE_CORE_RECEIVE_H

#include "port.h"

/* Longer than a class waits for its turn: a device's packets come to it in lots then. What goes
 * through all protocols in vain takes some microseconds, so that one a while is nothing. */
#define AN_RECEIVE_WHILE_NS 100000000ULL

/* Are sockets looked for, when one was last refused then? At first nothing was: AN_NEVER. */
an_inline bool an_receive_looks(u64 refused_ns, u64 now_ns)
{
	/* Another CPU may have refused one since our clock was read. */
	return refused_ns != AN_NEVER &&
	       (refused_ns >= now_ns || now_ns - refused_ns < AN_RECEIVE_WHILE_NS);
}

/*
 * Has a queue that holds so much no room for this, too? As the kernel refuses datagrams, late: an
 * empty queue takes one of any size. [bytes of memory, all]
 */
an_inline bool an_receive_full(s64 held, u64 room, u64 size)
{
	return held > 0 && (u64)held + size > room;
}

/* The kernel has packets go through its protocols so many at a time (net.core.gro_normal_batch),
 * and we see all of them before the first is queued. */
#define AN_RECEIVE_AT_ONCE 8

/* Of the socket that packets were last for: what has been let through, and may not be queued yet.
 */
struct an_through {
	u64 socket;
	s64 held;   /* by its queue, then: with another length it has been queued */
	u64 bytes;  /* [bytes of memory] */
	u32 looked; /* at so many packets */
};

/* Is what comes for this socket, whose queue holds so much, refused? So many datagrams of this size
 * each: several that are together are let through if the queue has room for the first. */
an_inline bool an_receive_refuses(struct an_through *t, u64 socket, s64 held, u64 room, u64 size,
				  u32 datagrams)
{
	if (t->socket != socket || t->held != held || t->looked >= AN_RECEIVE_AT_ONCE) {
		t->socket = socket;
		t->held = held;
		t->bytes = 0;
		t->looked = 0;
	}
	t->looked++;
	if (an_receive_full(held + (s64)t->bytes, room, size))
		return true;
	t->bytes += size * datagrams;
	return false;
}

#endif
