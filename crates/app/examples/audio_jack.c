/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A tone for JACK, or PipeWire in its place. JACK's thread calls process() once a period; a cycle
 * is what happens in there, and due when the next period begins. Beginning and ending take no lock
 * and make no system call.
 *
 * Threads with real-time priority come before all that Andante schedules. Where JACK has that
 * (jackd -R, the default) joining returns ANDANTE_E_UNSCHEDULABLE, or has no effect, and the tone
 * is played as without Andante: for this start jackd with -r.
 *
 *	cc -std=gnu99 -O2 audio_jack.c -o audio_jack $(pkg-config --cflags --libs jack) -ldl -lm
 */
#define _POSIX_C_SOURCE 200809L
#include <andante/optional.h>

#include <jack/jack.h>

#include <stdio.h>
#include <unistd.h>

struct tone {
	jack_client_t *client;
	jack_port_t *port;
	andante_session *session;
	andante_thread *thread;
	float phase; /* of a saw, -1 to 1 */
};

static uint64_t period_ns(jack_client_t *client)
{
	return (uint64_t)jack_get_buffer_size(client) * 1000000000u / jack_get_sample_rate(client);
}

/* JACK's thread, before its first period: here there is time to ask the daemon, once. */
static void begins(void *argument)
{
	struct tone *tone = argument;
	int error;

	if (tone->thread != NULL)
		return;
	error = andante_join(tone->session, NULL, &tone->thread);
	if (error < 0 && error != ANDANTE_E_NO_SESSION)
		fprintf(stderr, "without Andante: %s\n", andante_last_message());
}

static int process(jack_nframes_t frames, void *argument)
{
	struct tone *tone = argument;
	float *out = jack_port_get_buffer(tone->port, frames);
	float step = 2.0f * 440.0f / (float)jack_get_sample_rate(tone->client);
	jack_nframes_t i;

	andante_begin(tone->thread, andante_now_ns() + period_ns(tone->client));
	for (i = 0; i < frames; i++) {
		out[i] = 0.1f * tone->phase;
		tone->phase += step;
		if (tone->phase > 1.0f)
			tone->phase -= 2.0f;
	}
	andante_end(tone->thread);
	return 0;
}

int main(void)
{
	struct andante_wish wish = {
		.size = sizeof wish, .role = ANDANTE_ROLE_AUDIO, .name = "tone"};
	struct tone tone = {0};

	tone.client = jack_client_open("tone", JackNullOption, NULL);
	if (tone.client == NULL) {
		fprintf(stderr, "JACK is not there\n");
		return 1;
	}
	wish.period_ns = period_ns(tone.client);
	if (andante_open(&wish, &tone.session) < 0)
		fprintf(stderr, "without Andante: %s\n", andante_last_message());
	tone.port = jack_port_register(tone.client, "out", JACK_DEFAULT_AUDIO_TYPE,
				       JackPortIsOutput, 0);
	jack_set_thread_init_callback(tone.client, begins, &tone);
	jack_set_process_callback(tone.client, process, &tone);
	if (tone.port == NULL || jack_activate(tone.client) != 0) {
		fprintf(stderr, "JACK refuses\n");
		return 1;
	}
	sleep(5);
	jack_client_close(tone.client); /* its thread is gone after this */
	andante_leave(tone.thread);
	andante_close(tone.session);
	return 0;
}
