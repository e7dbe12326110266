/* SPDX-License-Identifier: GPL-2.0 */
/*
 * UNIX connections, as far as the tracepoints sk_data_ready and sock_recv_length show them: the end
 * that was accepted has an address, each end knows the other and the process behind it.
 */
#include "model.h"

struct connection {
	struct unix_sock end[2]; /* accepted, connecting */
	struct pid peer[2];
};

static struct connection **connections;
static u32 count, room;

static struct unix_sock *end_of(u32 end)
{
	model_assert(end / 2 < count);
	return &connections[end / 2]->end[end % 2];
}

u32 sim_socket(u32 listener, u32 connector)
{
	struct connection *c = calloc(1, sizeof(*c));
	u32 process[2] = {connector, listener};

	model_assert(c);
	model_room_for(connections, count, room);
	connections[count] = c;
	for (u32 end = 0; end < 2; end++) {
		c->end[end].peer = &c->end[!end].sk;
		c->peer[end].numbers[0].nr = m.tasks[process[end]]->tgid;
		c->end[end].sk.sk_peer_pid = &c->peer[end];
	}
	c->end[0].addr = (void *)c;
	return count++ * 2;
}

struct unix_sock *bpf_skc_to_unix_sock(void *sk)
{
	return sk;
}

/* The scheduler's programs on these tracepoints; a scheduler without them leaves them out. */
int model_data_ready(struct sock *sk) __attribute__((weak));
int model_received(struct sock *sk, int length) __attribute__((weak));

/* Bytes have been put into this end, by the current task. */
void sim_data_ready(u32 end)
{
	if (m.loaded && model_data_ready)
		model_data_ready(&end_of(end)->sk);
}

/* The current task has received something at this end. */
void sim_received(u32 end)
{
	if (m.loaded && model_received)
		model_received(&end_of(end)->sk, 1);
}
