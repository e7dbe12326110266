/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Streams a film to players: film_player.c. It sends what the film's file holds, packet by packet,
 * each when it is due: a player's film begins when the player comes, whoever else there is.
 *
 *	cc -std=gnu99 -O2 film_server.c film.c -o film_server $(pkg-config --cflags --libs
 *libavformat libavcodec libavutil)
 *
 * Nobody waits for the server itself: players have some frames in store. So it opens no session.
 */
#define _GNU_SOURCE
#include "film.h"
#include "stream.h"

#include <fcntl.h>
#include <getopt.h>
#include <netinet/tcp.h>

#define PLAYERS_MAX 64
#define NAME "film_server"

struct player {
	int socket; /* of TCP; -1: it is asked over UDP */
	struct sockaddr_storage address;
	socklen_t address_bytes;
	bool is_here;
	bool has_said_hello;
	uint64_t token;
	uint64_t began_ns;
	uint64_t heard_ns;
	uint32_t next;	   /* packet */
	uint8_t *message;  /* of TCP, what is on its way */
	size_t bytes;	   /* of it */
	size_t bytes_sent; /* of it */
	uint8_t head[HEAD_BYTES];
	size_t head_bytes; /* received so far */
};

struct server {
	struct film film;
	struct player players[PLAYERS_MAX];
	int tcp;
	int udp;
	uint32_t served;
	uint32_t wanted; /* then it ends; 0: never */
	uint64_t unsent; /* datagrams that the kernel did not take */
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- Players ---- */

static void drop_player(struct server *server, struct player *player)
{
	if (player->socket >= 0)
		close(player->socket);
	free(player->message);
	server->served += player->has_said_hello;
	memset(player, 0, sizeof *player);
}

static struct player *free_place(struct server *server)
{
	int i;

	for (i = 0; i < PLAYERS_MAX; i++)
		if (!server->players[i].is_here)
			return &server->players[i];
	return NULL;
}

/* The head of the packet that comes next, or of the end. */
static struct stream_head head_of_next(const struct server *server, const struct player *player)
{
	struct stream_head head = {.token = player->token, .number = player->next, .fragments = 1};
	const struct packet *packet = &server->film.packets[player->next];

	if (player->next == server->film.packet_count) {
		head.kind = STREAM_END;
		return head;
	}
	head.kind = STREAM_PACKET;
	head.bytes = packet->bytes;
	head.sent_ns = packet->sent_ns;
	head.shown_ns = packet->shown_ns;
	head.is_key = packet->is_key;
	return head;
}

/* When the next message for it is due; the end comes with the last packet. */
static uint64_t due_ns(const struct server *server, const struct player *player)
{
	uint32_t last = server->film.packet_count - 1u;
	uint32_t next = player->next < last ? player->next : last;

	return player->began_ns + server->film.packets[next].sent_ns;
}

static size_t film_message(const struct server *server, const struct player *player, uint8_t *at)
{
	struct stream_head head = {.kind = STREAM_FILM, .token = player->token, .fragments = 1};

	head.bytes = (uint32_t)put_film(at + HEAD_BYTES, &server->film.about);
	put_head(at, &head);
	return HEAD_BYTES + head.bytes;
}

/* One datagram. What the kernel does not take now is lost, as it might be on its way. */
static void send_datagram(struct server *server, const struct player *player, const void *message,
			  size_t bytes)
{
	ssize_t sent = sendto(server->udp, message, bytes, MSG_DONTWAIT,
			      (const struct sockaddr *)&player->address, player->address_bytes);

	server->unsent += sent < 0;
}

static void send_next_by_udp(struct server *server, struct player *player)
{
	uint8_t datagram[HEAD_BYTES + DATAGRAM_BODY];
	struct stream_head head = head_of_next(server, player);
	const struct packet *packet = &server->film.packets[player->next];
	uint32_t whole = head.bytes, at = 0;

	if (head.kind == STREAM_END) {
		put_head(datagram, &head);
		send_datagram(server, player, datagram, HEAD_BYTES);
		return;
	}
	head.fragments = (whole + DATAGRAM_BODY - 1u) / DATAGRAM_BODY;
	for (head.fragment = 0; head.fragment < head.fragments; head.fragment++) {
		head.bytes = whole - at < DATAGRAM_BODY ? whole - at : DATAGRAM_BODY;
		put_head(datagram, &head);
		memcpy(datagram + HEAD_BYTES, packet->data + at, head.bytes);
		send_datagram(server, player, datagram, HEAD_BYTES + head.bytes);
		at += head.bytes;
	}
}

/* Puts the next message together; false: there is no memory. */
static bool begin_message(struct server *server, struct player *player)
{
	struct stream_head head = head_of_next(server, player);

	player->message = malloc(HEAD_BYTES + head.bytes);
	if (player->message == NULL)
		return false;
	put_head(player->message, &head);
	if (head.bytes > 0)
		memcpy(player->message + HEAD_BYTES, server->film.packets[player->next].data,
		       head.bytes);
	player->bytes = HEAD_BYTES + head.bytes;
	player->bytes_sent = 0;
	return true;
}

/* Sends what the connection takes of the message on its way; false: the player is gone. */
static bool go_on_sending(struct player *player)
{
	ssize_t sent = send(player->socket, player->message + player->bytes_sent,
			    player->bytes - player->bytes_sent, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (sent < 0)
		return errno == EAGAIN || errno == EINTR;
	player->bytes_sent += (size_t)sent;
	if (player->bytes_sent == player->bytes) {
		free(player->message);
		player->message = NULL;
	}
	return true;
}

/* Sends what is due. Returns when to come again [ns]. */
static uint64_t serve_player(struct server *server, struct player *player, uint64_t at_ns)
{
	if (!player->has_said_hello) {
		if (at_ns - player->heard_ns < SILENCE_NS)
			return player->heard_ns + SILENCE_NS;
		complain(NAME, "somebody connects and says nothing: given up");
		drop_player(server, player);
		return UINT64_MAX;
	}
	if (player->socket < 0 && at_ns - player->heard_ns > SILENCE_NS) {
		complain(NAME, "a player is silent, and given up");
		drop_player(server, player);
		return UINT64_MAX;
	}
	while (player->message == NULL && due_ns(server, player) <= at_ns) {
		bool is_end = player->next == server->film.packet_count;
		bool is_here = true;

		if (player->socket < 0)
			send_next_by_udp(server, player);
		else
			is_here = begin_message(server, player) && go_on_sending(player);
		/* Over UDP the end is said until the player says that it has heard. */
		if (is_end && player->socket < 0)
			return at_ns + STILL_HERE_NS / 10u;
		player->next += !is_end;
		if (!is_here || (is_end && player->message == NULL)) {
			drop_player(server, player);
			return UINT64_MAX;
		}
	}
	return player->message != NULL ? UINT64_MAX : due_ns(server, player);
}

/* ---- What players say ---- */

static void begin_film(struct server *server, struct player *player, uint64_t token)
{
	player->token = token;
	player->has_said_hello = true;
	player->began_ns = player->heard_ns = now_ns();
	if (player->socket < 0)
		return;
	player->message = malloc(HEAD_BYTES + FILM_BYTES + EXTRADATA_BYTES_MAX);
	if (player->message == NULL)
		return;
	player->bytes = film_message(server, player, player->message);
	player->bytes_sent = 0;
}

static void accept_player(struct server *server)
{
	struct player *player = free_place(server);
	int on = 1, client = accept4(server->tcp, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (client < 0)
		return;
	if (player == NULL) {
		complain(NAME, "one more player is sent away: there are %d", PLAYERS_MAX);
		close(client);
		return;
	}
	setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	*player = (struct player){.socket = client, .is_here = true, .heard_ns = now_ns()};
}

/* Reads HELLO, and else only whether the player is there still; false: it is not. */
static bool hear_tcp(struct server *server, struct player *player)
{
	struct stream_head head;
	uint8_t rest[256];
	uint8_t *to = player->has_said_hello ? rest : player->head + player->head_bytes;
	size_t room = player->has_said_hello ? sizeof rest : HEAD_BYTES - player->head_bytes;
	ssize_t got = recv(player->socket, to, room, MSG_DONTWAIT);

	if (got < 0)
		return errno == EAGAIN || errno == EINTR;
	if (got == 0 || player->has_said_hello)
		return got > 0;
	player->head_bytes += (size_t)got;
	if (player->head_bytes < HEAD_BYTES)
		return true;
	if (!take_head(player->head, &head) || head.kind != STREAM_HELLO)
		return false;
	begin_film(server, player, head.token);
	return player->message != NULL;
}

static struct player *player_of_token(struct server *server, uint64_t token)
{
	int i;

	for (i = 0; i < PLAYERS_MAX; i++)
		if (server->players[i].is_here && server->players[i].socket < 0 &&
		    server->players[i].token == token)
			return &server->players[i];
	return NULL;
}

/* One datagram of whoever it is. */
static void hear_udp(struct server *server)
{
	uint8_t message[HEAD_BYTES + FILM_BYTES + EXTRADATA_BYTES_MAX];
	struct player from = {.socket = -1, .is_here = true};
	struct player *player;
	struct stream_head head;
	ssize_t got;

	from.address_bytes = sizeof from.address;
	got = recvfrom(server->udp, message, sizeof message, MSG_DONTWAIT,
		       (struct sockaddr *)&from.address, &from.address_bytes);
	if (got != (ssize_t)HEAD_BYTES || !take_head(message, &head))
		return;
	player = player_of_token(server, head.token);
	if (player != NULL)
		player->heard_ns = now_ns();
	if (player != NULL && head.kind == STREAM_BYE)
		drop_player(server, player);
	if (head.kind != STREAM_HELLO)
		return;
	if (player == NULL) {
		player = free_place(server);
		if (player == NULL)
			return;
		*player = from;
		begin_film(server, player, head.token);
	}
	/* Again, if the first one was lost. */
	send_datagram(server, player, message, film_message(server, player, message));
}

/* ---- The server ---- */

/* A socket of this family at the port, or -1 with errno; `why` if there is no such address. */
static int listen_as(int family, int type, const char *address, const char *port, const char **why)
{
	struct addrinfo hints = {.ai_flags = AI_PASSIVE, .ai_family = family, .ai_socktype = type};
	struct addrinfo *found;
	int error = getaddrinfo(address, port, &hints, &found);
	int on = 1, off = 0, at;

	if (error != 0) {
		*why = gai_strerror(error);
		return -1;
	}
	at = socket(found->ai_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (at >= 0) {
		setsockopt(at, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
		/* Players of IPv4 come to it as well. */
		setsockopt(at, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
	}
	if (at < 0 || bind(at, found->ai_addr, found->ai_addrlen) < 0 ||
	    (type == SOCK_STREAM && listen(at, PLAYERS_MAX) < 0)) {
		*why = strerror(errno);
		if (at >= 0)
			close(at);
		at = -1;
	}
	freeaddrinfo(found);
	return at;
}

static int listen_at(int type, const char *address, const char *port)
{
	const char *why = NULL;
	int at = -1;

	if (address == NULL)
		at = listen_as(AF_INET6, type, NULL, port, &why);
	if (at < 0)
		at = listen_as(address == NULL ? AF_INET : AF_UNSPEC, type, address, port, &why);
	if (at < 0)
		complain(NAME, "%s, port %s cannot be served: %s; --port and --address name others",
			 address != NULL ? address : "this machine", port, why);
	return at;
}

static void wait_and_hear(struct server *server, uint64_t until_ns)
{
	struct pollfd all[2 + PLAYERS_MAX] = {{.fd = server->tcp, .events = POLLIN},
					      {.fd = server->udp, .events = POLLIN}};
	struct timespec timeout;
	sigset_t none;
	uint64_t at_ns = now_ns();
	uint64_t wait_ns = until_ns > at_ns ? until_ns - at_ns : 0;
	int i;

	for (i = 0; i < PLAYERS_MAX; i++) {
		const struct player *player = &server->players[i];

		all[2 + i].fd = player->is_here ? player->socket : -1;
		all[2 + i].events = player->message != NULL ? POLLIN | POLLOUT : POLLIN;
	}
	timeout.tv_sec = (time_t)(wait_ns / 1000000000u);
	timeout.tv_nsec = (long)(wait_ns % 1000000000u);
	sigemptyset(&none);
	if (ppoll(all, 2 + PLAYERS_MAX, until_ns == UINT64_MAX ? NULL : &timeout, &none) <= 0)
		return;
	for (i = 0; i < PLAYERS_MAX; i++) {
		struct player *player = &server->players[i];
		bool is_here = true;

		if (all[2 + i].revents & (POLLIN | POLLHUP | POLLERR))
			is_here = hear_tcp(server, player);
		if (is_here && (all[2 + i].revents & POLLOUT) && player->message != NULL)
			is_here = go_on_sending(player);
		if (!is_here)
			drop_player(server, player);
	}
	if (all[1].revents & POLLIN)
		hear_udp(server);
	if (all[0].revents & POLLIN)
		accept_player(server);
}

/* Signals come while it waits, and at no other time, so that none is missed. */
static void serve(struct server *server)
{
	sigset_t ending;

	sigemptyset(&ending);
	sigaddset(&ending, SIGINT);
	sigaddset(&ending, SIGTERM);
	sigprocmask(SIG_BLOCK, &ending, NULL);
	while (!stopped && (server->wanted == 0 || server->served < server->wanted)) {
		uint64_t next_ns = UINT64_MAX, at_ns = now_ns(), again_ns;
		int i;

		for (i = 0; i < PLAYERS_MAX; i++) {
			if (!server->players[i].is_here)
				continue;
			again_ns = serve_player(server, &server->players[i], at_ns);
			if (again_ns < next_ns)
				next_ns = again_ns;
		}
		wait_and_hear(server, next_ns);
	}
}

static void run(struct server *server, const char *port)
{
	int i;

	printf("serving %u pictures of %ux%u at port %s\n", server->film.packet_count,
	       server->film.about.width, server->film.about.height, port);
	fflush(stdout);
	serve(server);
	for (i = 0; i < PLAYERS_MAX; i++)
		if (server->players[i].is_here)
			drop_player(server, &server->players[i]);
	printf("%u players have been served; %llu datagrams could not be sent\n", server->served,
	       (unsigned long long)server->unsent);
}

static const char HELP[] =
	"film_server [OPTIONS] FILM\n"
	"\n"
	"Streams the pictures of a film to all who ask, with film_player, over TCP or UDP. Any\n"
	"file will do that ffmpeg can read. Each player sees the film from its beginning.\n"
	"\n"
	"  --port PORT     of TCP and of UDP; " STREAM_PORT " if nothing is said\n"
	"  --address HOST  serve at this address alone; 127.0.0.1 is for this machine only\n"
	"  --players N     end after N players have seen it; else with Ctrl-C\n"
	"  --help          this\n"
	"\n"
	"  film_server film.mkv &\n"
	"  film_player localhost\n";

int main(int argc, char **argv)
{
	static const struct option OPTIONS[] = {{"port", required_argument, NULL, 'p'},
						{"address", required_argument, NULL, 'a'},
						{"players", required_argument, NULL, 'n'},
						{"help", no_argument, NULL, 'h'},
						{NULL, 0, NULL, 0}};
	static struct server server;
	const char *port = STREAM_PORT, *address = NULL;
	int option;

	while ((option = getopt_long(argc, argv, "h", OPTIONS, NULL)) != -1) {
		if (option == 'p')
			port = optarg;
		else if (option == 'a')
			address = optarg;
		else if (option == 'n')
			server.wanted = (uint32_t)number_of(NAME, "players", optarg, 1, 1e6);
		else if (option == 'h')
			return fputs(HELP, stdout) < 0;
		else
			return 2;
	}
	if (optind != argc - 1) {
		complain(NAME, "name one film; --help says more");
		return 2;
	}
	end_on_signals();
	if (read_film(&server.film, argv[optind]) < 0)
		return 1;
	server.tcp = listen_at(SOCK_STREAM, address, port);
	server.udp = server.tcp < 0 ? -1 : listen_at(SOCK_DGRAM, address, port);
	if (server.udp >= 0)
		run(&server, port);
	free_film(&server.film);
	return server.udp < 0;
}
