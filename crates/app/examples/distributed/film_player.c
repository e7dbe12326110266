/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Plays what film_server.c sends: receives, decodes with libavcodec, and shows each picture at its
 * time by a timed wait. It is a player as of a distributed system: beside the network it has
 * nothing but its clock.
 *
 *	cc -std=gnu99 -O2 film_player.c receive.c -o film_player -I../../include \
 *		$(pkg-config --cflags --libs libavcodec libavutil) -ldl
 *
 * What it tells Andante, if that is there (libandante is loaded when it runs):
 *
 *	      due                          due of the next one
 *	 wait |begin [show][decode the next] end  wait |begin ...
 *
 *	- a session of role VIDEO, whose period is the film's,
 *	- before it waits, that an event comes when the picture is due (andante_raise),
 *	- when it wakes, that a cycle begins which is to be done when the next picture is due,
 *	- with --promise, that it asks for so much CPU time in every period.
 */
#define _GNU_SOURCE
#include <andante/optional.h>

#include "receive.h"

#include <getopt.h>
#include <libavcodec/avcodec.h>
#include <libavutil/imgutils.h>
#include <sys/prctl.h>

#define NAME "film_player"
#define S_NS 1000000000u

struct moment {
	uint64_t due_ns;
	uint64_t decoded_ns;
	uint64_t shown_ns; /* 0: it was dropped */
};

struct options {
	const char *host;
	const char *port;
	bool by_udp;
	bool plain;
	bool json;
	bool tell_each;
	double store_ms;
	double promise_ms;
	const char *log;
	const char *out;
	const char *name;
};

struct player {
	struct options options;
	struct receiver from;
	struct stream_film film;
	AVCodecContext *decoder;
	AVPacket *packet;
	AVFrame *picture;
	uint8_t *screen;
	int screen_bytes;
	FILE *out;
	andante_session *session;
	andante_thread *thread;
	andante_sink *sink;
	bool promised;
	struct moment *moments;
	size_t moment_count;
	size_t moments_room;
	uint64_t late;
	uint64_t dropped;
	uint64_t broken; /* packets that cannot be decoded */
	bool is_over;	 /* the film has come to its end */
};

/* ---- Decoding ---- */

static int open_decoder(struct player *player, const uint8_t *extradata)
{
	const AVCodecDescriptor *codec = avcodec_descriptor_get_by_name(player->film.codec);
	const AVCodec *of = codec != NULL ? avcodec_find_decoder(codec->id) : NULL;
	AVCodecContext *decoder;

	av_log_set_level(AV_LOG_FATAL);
	if (of == NULL) {
		complain(NAME, "the film is %.31s, which libavcodec does not decode here",
			 player->film.codec);
		return -1;
	}
	decoder = player->decoder = avcodec_alloc_context3(of);
	player->packet = av_packet_alloc();
	player->picture = av_frame_alloc();
	if (decoder == NULL || player->packet == NULL || player->picture == NULL)
		return -1;
	decoder->extradata = av_mallocz(player->film.extradata_bytes + PADDING);
	if (decoder->extradata == NULL)
		return -1;
	memcpy(decoder->extradata, extradata, player->film.extradata_bytes);
	decoder->extradata_size = (int)player->film.extradata_bytes;
	decoder->width = (int)player->film.width;
	decoder->height = (int)player->film.height;
	decoder->pkt_timebase = (AVRational){1, S_NS};
	/* The thread that waits for the picture decodes it. */
	decoder->thread_count = 1;
	if (avcodec_open2(decoder, of, NULL) < 0) {
		complain(NAME, "libavcodec cannot decode this film (%.31s)", player->film.codec);
		return -1;
	}
	return 0;
}

/* Gives the decoder the next packet, or tells it that there are no more; -1: the server is gone. */
static int feed(struct player *player)
{
	switch (receive_packet(&player->from)) {
	case RECEIVED_PACKET:
		player->packet->data = player->from.data;
		player->packet->size = (int)player->from.bytes;
		player->packet->pts = (int64_t)player->from.head.shown_ns;
		player->packet->flags = player->from.head.is_key ? AV_PKT_FLAG_KEY : 0;
		player->broken += avcodec_send_packet(player->decoder, player->packet) < 0;
		return 0;
	case RECEIVED_END:
		avcodec_send_packet(player->decoder, NULL);
		return 0;
	case RECEIVED_NOTHING:
		break;
	}
	return -1;
}

/* Decodes the next picture: 1; 0 at the end of the film; -1: the server is gone. */
static int decode_next(struct player *player)
{
	for (;;) {
		int error = avcodec_receive_frame(player->decoder, player->picture);

		if (error == 0)
			return 1;
		if (error == AVERROR_EOF)
			return 0;
		player->broken += error != AVERROR(EAGAIN);
		if (feed(player) < 0)
			return -1;
	}
}

/* ---- Showing ---- */

static void sleep_until(uint64_t at_ns)
{
	struct timespec at = {.tv_sec = (time_t)(at_ns / S_NS), .tv_nsec = (long)(at_ns % S_NS)};

	while (!stopped && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
		;
}

/* The screen is memory; what is on it may be piped to a program with a window. */
static void show(struct player *player)
{
	const AVFrame *picture = player->picture;
	const uint8_t *const *planes = (const uint8_t *const *)picture->data;
	int bytes = av_image_get_buffer_size(picture->format, picture->width, picture->height, 1);

	if (bytes <= 0)
		return;
	if (bytes > player->screen_bytes) {
		free(player->screen);
		player->screen = malloc((size_t)bytes);
		player->screen_bytes = player->screen != NULL ? bytes : 0;
	}
	if (player->screen == NULL)
		return;
	av_image_copy_to_buffer(player->screen, bytes, planes, picture->linesize, picture->format,
				picture->width, picture->height, 1);
	if (player->out == NULL)
		return;
	fputs("FRAME\n", player->out);
	fwrite(player->screen, (size_t)bytes, 1, player->out);
	fflush(player->out);
}

static int open_out(struct player *player)
{
	const char *name = player->options.out;

	if (name == NULL)
		return 0;
	player->out = strcmp(name, "-") == 0 ? stdout : fopen(name, "w");
	if (player->out == NULL) {
		complain(NAME, "%s cannot be written: %s", name, strerror(errno));
		return -1;
	}
	/* YUV4MPEG2, which mpv and ffplay read. */
	fprintf(player->out, "YUV4MPEG2 W%u H%u F1000000000:%llu Ip A1:1 C420mpeg2\n",
		player->film.width, player->film.height,
		(unsigned long long)player->film.period_ns);
	return 0;
}

/* Notes when the picture was due, decoded and shown. Memory is taken long before it is needed. */
static void note(struct player *player, struct moment moment)
{
	uint64_t period_ns = player->film.period_ns;
	const char *how = "";

	if (moment.shown_ns == 0) {
		player->dropped++;
		how = ", dropped";
	} else if (moment.shown_ns > moment.due_ns + period_ns / 2u) {
		player->late++;
		how = ", late";
	}
	if (player->moment_count < player->moments_room)
		player->moments[player->moment_count] = moment;
	if (player->options.tell_each)
		fprintf(stderr, "picture %zu: due at %.6f s, decoded %+.3f ms, shown %+.3f ms%s\n",
			player->moment_count, (double)moment.due_ns / 1e9,
			((double)moment.decoded_ns - (double)moment.due_ns) / 1e6,
			moment.shown_ns == 0
				? 0.0
				: ((double)moment.shown_ns - (double)moment.due_ns) / 1e6,
			how);
	player->moment_count++;
}

/* ---- Andante ---- */

static void ask_promise(struct player *player)
{
	struct andante_terms terms = {.size = sizeof terms};
	struct andante_answer answer = {.size = sizeof answer};

	terms.budget_ns = (uint64_t)(player->options.promise_ms * 1e6);
	terms.period_ns = player->film.period_ns;
	if (andante_promise(player->session, &terms, &answer) < 0)
		complain(NAME, "without a promise: %s", andante_last_message());
	else if (!answer.granted)
		complain(NAME, "without a promise: %s", answer.reason);
	else
		player->promised = true;
}

static void go_on_without(int error)
{
	const char *message = andante_last_message();

	complain(NAME, "without Andante: %s", *message != 0 ? message : andante_strerror(error));
}

/* Without Andante nothing of it has any effect. */
static void open_session(struct player *player)
{
	int error;

	struct andante_wish wish = {.size = sizeof wish, .role = ANDANTE_ROLE_VIDEO};

	if (player->options.plain)
		return;
	wish.period_ns = player->film.period_ns;
	wish.name = player->options.name;
	error = andante_open(&wish, &player->session);
	if (error == 0)
		error = andante_join(player->session, NULL, &player->thread);
	if (error < 0)
		go_on_without(error);
	player->sink = andante_sink_of(player->thread);
	if (player->thread != NULL && player->options.promise_ms > 0)
		ask_promise(player);
}

/* ---- Playing ---- */

/* When the picture is due; one of which the film does not say it follows the last one. */
static uint64_t due_of(const struct player *player, uint64_t last_ns)
{
	int64_t shown_ns = player->picture->best_effort_timestamp;

	if (shown_ns == AV_NOPTS_VALUE)
		return last_ns + player->film.period_ns;
	return player->from.first_ns + (uint64_t)(player->options.store_ms * 1e6) +
	       (uint64_t)shown_ns;
}

static void play(struct player *player)
{
	int there = decode_next(player);
	struct moment moment = {.decoded_ns = andante_now_ns()};

	while (there > 0 && !stopped) {
		uint64_t next_ns;

		moment.due_ns = due_of(player, moment.due_ns);
		next_ns = moment.due_ns + player->film.period_ns;
		/* Said before it sleeps: what wakes it then is an event for it. */
		andante_raise(player->sink, 0, moment.due_ns);
		sleep_until(moment.due_ns);
		if (stopped)
			break;
		andante_begin(player->thread, next_ns);
		moment.shown_ns = 0;
		if (andante_now_ns() < next_ns) {
			show(player);
			moment.shown_ns = andante_now_ns();
		}
		note(player, moment);
		av_frame_unref(player->picture);
		there = decode_next(player);
		moment.decoded_ns = andante_now_ns();
		andante_end(player->thread);
	}
	player->is_over = there == 0;
}

/* ---- What is told at the end ---- */

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* From due to shown [ms]: half are below the first, 99 of 100 below the second, and the longest. */
static void delays(const struct player *player, double figures[3])
{
	double *all = malloc((player->moment_count + 1u) * sizeof *all);
	size_t count = 0, i;

	memset(figures, 0, 3 * sizeof *figures);
	for (i = 0; all != NULL && i < player->moment_count && i < player->moments_room; i++) {
		const struct moment *at = &player->moments[i];

		if (at->shown_ns != 0)
			all[count++] = ((double)at->shown_ns - (double)at->due_ns) / 1e6;
	}
	if (count > 0) {
		qsort(all, count, sizeof *all, compare);
		figures[0] = all[(count - 1) / 2];
		figures[1] = all[(count * 99 + 99) / 100 - 1];
		figures[2] = all[count - 1];
	}
	free(all);
}

static void tell(const struct player *player)
{
	FILE *to = player->out == stdout ? stderr : stdout;
	uint64_t shown = player->moment_count - player->dropped;
	const char *with = player->promised	    ? "promise"
			   : player->thread != NULL ? "session"
						    : "plain";
	double ms[3];

	delays(player, ms);
	if (player->options.json) {
		fprintf(to,
			"{\"transport\": \"%s\", \"andante\": \"%s\", \"packets\": %u, "
			"\"decoded\": %zu, \"shown\": %llu, \"late\": %llu, \"dropped\": %llu, "
			"\"packets_lost\": %llu, \"packets_broken\": %llu, \"nonsense\": %llu, "
			"\"delay_ms\": {\"p50\": %.3f, \"p99\": %.3f, \"max\": %.3f}, "
			"\"complete\": %s}\n",
			player->options.by_udp ? "udp" : "tcp", with, player->film.packets,
			player->moment_count, (unsigned long long)shown,
			(unsigned long long)player->late, (unsigned long long)player->dropped,
			(unsigned long long)player->from.packets_lost,
			(unsigned long long)player->broken,
			(unsigned long long)player->from.nonsense, ms[0], ms[1], ms[2],
			player->is_over ? "true" : "false");
		return;
	}
	fprintf(to,
		"%zu pictures decoded of %u, %llu shown, %llu of them late, %llu dropped\n"
		"from due to shown: half within %.3f ms, 99 %% within %.3f ms, at most %.3f ms\n",
		player->moment_count, player->film.packets, (unsigned long long)shown,
		(unsigned long long)player->late, (unsigned long long)player->dropped, ms[0], ms[1],
		ms[2]);
	if (player->from.packets_lost + player->broken + player->from.nonsense > 0)
		fprintf(to, "%llu packets lost, %llu not to be decoded, %llu datagrams of others\n",
			(unsigned long long)player->from.packets_lost,
			(unsigned long long)player->broken,
			(unsigned long long)player->from.nonsense);
}

/* A picture a line: due, decoded, shown [ns of CLOCK_MONOTONIC]; shown is 0 if it was dropped. */
static int write_log(const struct player *player)
{
	FILE *log;
	size_t i;

	if (player->options.log == NULL)
		return 0;
	log = fopen(player->options.log, "w");
	for (i = 0; log != NULL && i < player->moment_count && i < player->moments_room; i++)
		fprintf(log, "%llu %llu %llu\n", (unsigned long long)player->moments[i].due_ns,
			(unsigned long long)player->moments[i].decoded_ns,
			(unsigned long long)player->moments[i].shown_ns);
	if (log == NULL || fclose(log) != 0) {
		complain(NAME, "%s cannot be written: %s", player->options.log, strerror(errno));
		return -1;
	}
	return 0;
}

/* ---- The program ---- */

static const char HELP[] =
	"film_player [OPTIONS] HOST\n"
	"\n"
	"Plays the film that film_server sends from HOST, by the clock, and tells how well that\n"
	"went. With Andante it says what it waits for; without, it plays all the same.\n"
	"\n"
	"  --udp           over UDP, where packets may be lost; else over TCP\n"
	"  --port PORT     the server's; " STREAM_PORT " if nothing is said\n"
	"  --store MS      begin so long after the first packet has come: 300\n"
	"  --plain         say nothing to Andante\n"
	"  --promise MS    ask Andante for so much CPU time per picture\n"
	"  --name NAME     of the session\n"
	"  --out FILE      write the pictures as they are shown (YUV4MPEG); - is standard output\n"
	"  --each          tell of each picture when it was due, decoded and shown\n"
	"  --log FILE      write the same to a file at the end [ns of CLOCK_MONOTONIC]\n"
	"  --json          tell the figures at the end as JSON\n"
	"  --help          this\n"
	"\n"
	"  film_server film.mkv &                          first, somewhere\n"
	"  film_player localhost                           how well does it play?\n"
	"  film_player --out - localhost | mpv --untimed - and see it\n";

static const struct option OPTIONS[] = {
	{"udp", no_argument, NULL, 'u'},	   {"port", required_argument, NULL, 'p'},
	{"store", required_argument, NULL, 's'},   {"plain", no_argument, NULL, 'n'},
	{"promise", required_argument, NULL, 'b'}, {"name", required_argument, NULL, 'N'},
	{"out", required_argument, NULL, 'o'},	   {"each", no_argument, NULL, 'e'},
	{"log", required_argument, NULL, 'l'},	   {"json", no_argument, NULL, 'j'},
	{"help", no_argument, NULL, 'h'},	   {NULL, 0, NULL, 0}};

/* Takes one option; the program ends with a wrong one, and after --help. */
static void take_option(struct options *options, int option)
{
	switch (option) {
	case 'u':
		options->by_udp = true;
		break;
	case 'p':
		options->port = optarg;
		break;
	case 's':
		options->store_ms = number_of(NAME, "store", optarg, 0, 60000);
		break;
	case 'n':
		options->plain = true;
		break;
	case 'b':
		options->promise_ms = number_of(NAME, "promise", optarg, 0.001, 1000);
		break;
	case 'N':
		options->name = optarg;
		break;
	case 'o':
		options->out = optarg;
		break;
	case 'e':
		options->tell_each = true;
		break;
	case 'l':
		options->log = optarg;
		break;
	case 'j':
		options->json = true;
		break;
	case 'h':
		exit(fputs(HELP, stdout) < 0);
	default:
		exit(2);
	}
}

/* Makes everything ready before the film begins. */
static int prepare(struct player *player)
{
	uint8_t *extradata = NULL;
	int ready = receive_film(&player->from, player->options.host, player->options.port,
				 player->options.by_udp, &player->film, &extradata);

	if (ready < 0 && !stopped)
		complain(NAME, "%s", player->from.why);
	if (ready == 0)
		ready = open_decoder(player, extradata);
	free(extradata);
	if (ready < 0 || open_out(player) < 0)
		return -1;
	/* One a packet, and a few for a server that tells less; beyond that none is kept. */
	player->moments_room = player->film.packets < 1000000 ? player->film.packets : 1000000;
	player->moments = malloc((player->moments_room + 1u) * sizeof *player->moments);
	if (player->moments == NULL)
		return -1;
	memset(player->moments, 0, player->moments_room * sizeof *player->moments);
	/* Timers may be 50 us late by default, which is longer than a good scheduler takes. */
	prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	open_session(player);
	return 0;
}

static void close_all(struct player *player)
{
	andante_sink_free(player->sink);
	andante_leave(player->thread);
	andante_close(player->session);
	receive_close(&player->from);
	avcodec_free_context(&player->decoder);
	av_packet_free(&player->packet);
	av_frame_free(&player->picture);
	free(player->screen);
	free(player->moments);
}

int main(int argc, char **argv)
{
	static struct player player = {.options = {.port = STREAM_PORT, .store_ms = 300}};
	int option, failed;

	while ((option = getopt_long(argc, argv, "h", OPTIONS, NULL)) != -1)
		take_option(&player.options, option);
	if (optind != argc - 1) {
		complain(NAME, "name one host; --help says more");
		return 2;
	}
	player.options.host = argv[optind];
	end_on_signals();
	if (prepare(&player) < 0) {
		close_all(&player);
		return !stopped;
	}
	play(&player);
	failed = !player.is_over && !stopped;
	tell(&player);
	failed |= write_log(&player) < 0;
	if (!player.is_over && !stopped)
		complain(NAME, "%s", player.from.why);
	close_all(&player);
	return failed;
}
