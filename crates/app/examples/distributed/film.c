/* SPDX-License-Identifier: GPL-2.0 */
/* See film.h. */
#include "film.h"

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>

#define NAME "film_server"

static int fail_av(const char *what, const char *file, int error)
{
	char why[AV_ERROR_MAX_STRING_SIZE];

	complain(NAME, "%s cannot be %s: %s", file, what,
		 av_make_error_string(why, sizeof why, error));
	return -1;
}

/* Appends a packet; times are still of the stream, in sent_ns and shown_ns. */
static int append(struct film *film, const AVPacket *from, AVRational base)
{
	const AVRational ns = {1, 1000000000};
	int64_t number = film->packet_count;
	int64_t shown = from->pts != AV_NOPTS_VALUE ? from->pts : from->dts;
	struct packet *packets, *packet;

	if (from->size <= 0 || (uint32_t)from->size > PACKET_BYTES_MAX)
		return 0;
	packets = realloc(film->packets, (film->packet_count + 1u) * sizeof *packets);
	if (packets == NULL)
		return -1;
	film->packets = packets;
	packet = &packets[film->packet_count++];
	packet->data = malloc((size_t)from->size);
	if (packet->data == NULL)
		return -1;
	memcpy(packet->data, from->data, (size_t)from->size);
	packet->bytes = (uint32_t)from->size;
	packet->is_key = (from->flags & AV_PKT_FLAG_KEY) != 0;
	/* Without times, as in a bare H.264 file, frames come at an even pace. */
	if (shown == AV_NOPTS_VALUE)
		packet->shown_ns = (uint64_t)number * film->about.period_ns;
	else
		packet->shown_ns = (uint64_t)av_rescale_q(shown, base, ns);
	if (from->dts == AV_NOPTS_VALUE)
		packet->sent_ns = packet->shown_ns;
	else
		packet->sent_ns = (uint64_t)av_rescale_q(from->dts, base, ns);
	return 0;
}

/* Has the times begin at 0. Those before it are wrapped numbers, whose differences are right. */
static void begin_at_zero(struct film *film)
{
	uint64_t first_sent = film->packets[0].sent_ns, first_shown = film->packets[0].shown_ns;
	uint32_t i;

	for (i = 0; i < film->packet_count; i++)
		if ((int64_t)(film->packets[i].shown_ns - first_shown) < 0)
			first_shown = film->packets[i].shown_ns;
	for (i = 0; i < film->packet_count; i++) {
		film->packets[i].sent_ns -= first_sent;
		film->packets[i].shown_ns -= first_shown;
		if ((int64_t)film->packets[i].sent_ns < 0)
			film->packets[i].sent_ns = 0;
	}
}

static int describe(struct film *film, AVFormatContext *file, AVStream *stream, const char *name)
{
	AVRational rate = av_guess_frame_rate(file, stream, NULL);
	const AVCodecParameters *codec = stream->codecpar;
	struct stream_film *about = &film->about;

	if (codec->extradata_size > (int)EXTRADATA_BYTES_MAX) {
		complain(NAME, "%s: its decoder needs more to begin with than is sent (%d bytes)",
			 name, codec->extradata_size);
		return -1;
	}
	snprintf(about->codec, sizeof about->codec, "%s", avcodec_get_name(codec->codec_id));
	about->width = (uint32_t)codec->width;
	about->height = (uint32_t)codec->height;
	about->period_ns = 40000000;
	if (rate.num > 0 && rate.den > 0)
		about->period_ns = (uint64_t)av_rescale(1000000000, rate.den, rate.num);
	about->extradata_bytes = (uint32_t)codec->extradata_size;
	about->extradata = codec->extradata;
	return 0;
}

int read_film(struct film *film, const char *name)
{
	AVFormatContext *file;
	AVPacket *packet;
	int error, video;

	av_log_set_level(AV_LOG_ERROR);
	error = avformat_open_input(&film->file, name, NULL, NULL);
	if (error < 0)
		return fail_av("opened", name, error);
	file = film->file;
	error = avformat_find_stream_info(file, NULL);
	if (error < 0)
		return fail_av("understood", name, error);
	video = av_find_best_stream(file, AVMEDIA_TYPE_VIDEO, -1, -1, NULL, 0);
	if (video < 0) {
		complain(NAME, "%s has no pictures", name);
		return -1;
	}
	packet = av_packet_alloc();
	if (packet == NULL || describe(film, file, file->streams[video], name) < 0)
		return -1;
	while ((error = av_read_frame(file, packet)) >= 0) {
		if (packet->stream_index == video &&
		    append(film, packet, file->streams[video]->time_base) < 0)
			return fail_av("kept in memory", name, AVERROR(ENOMEM));
		av_packet_unref(packet);
	}
	av_packet_free(&packet);
	if (error != AVERROR_EOF)
		return fail_av("read to its end", name, error);
	if (film->packet_count == 0) {
		complain(NAME, "%s has no pictures", name);
		return -1;
	}
	film->about.packets = film->packet_count;
	begin_at_zero(film);
	return 0;
}

void free_film(struct film *film)
{
	uint32_t i;

	for (i = 0; i < film->packet_count; i++)
		free(film->packets[i].data);
	free(film->packets);
	avformat_close_input(&film->file);
}
