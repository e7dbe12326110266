/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A window of SDL 2 whose colour changes with every frame of the display. What the display will
 * show next is due when it next asks; whether the window has its user's attention is told as well.
 *
 *	cc -std=gnu99 -O2 frame_loop_sdl.c -o frame_loop_sdl $(pkg-config --cflags --libs sdl2) -ldl
 */
#define _POSIX_C_SOURCE 200809L
#include <andante/optional.h>

#include <SDL.h>

/* From one frame of the window's display to the next. */
static uint64_t period_of(SDL_Window *window)
{
	SDL_DisplayMode mode;
	int display = SDL_GetWindowDisplayIndex(window);

	if (display < 0 || SDL_GetCurrentDisplayMode(display, &mode) != 0 || mode.refresh_rate <= 0)
		return 1000000000u / 60u;
	return 1000000000u / (unsigned)mode.refresh_rate;
}

/* Whether the user wants to go on. */
static int answer_events(andante_session *session)
{
	SDL_Event event;

	while (SDL_PollEvent(&event)) {
		if (event.type == SDL_QUIT)
			return 0;
		if (event.type == SDL_WINDOWEVENT &&
		    event.window.event == SDL_WINDOWEVENT_FOCUS_GAINED)
			andante_foreground(session, 1);
		if (event.type == SDL_WINDOWEVENT &&
		    event.window.event == SDL_WINDOWEVENT_FOCUS_LOST)
			andante_foreground(session, 0);
	}
	return 1;
}

int main(int argc, char **argv)
{
	struct andante_wish wish = {.size = sizeof wish, .role = ANDANTE_ROLE_GAME};
	andante_session *session;
	andante_thread *thread;
	SDL_Window *window;
	SDL_Renderer *renderer;
	Uint8 shade = 0;

	(void)argc;
	(void)argv;
	if (SDL_Init(SDL_INIT_VIDEO) != 0) {
		SDL_Log("%s", SDL_GetError());
		return 1;
	}
	window = SDL_CreateWindow("frame loop", SDL_WINDOWPOS_CENTERED, SDL_WINDOWPOS_CENTERED, 640,
				  360, 0);
	renderer = SDL_CreateRenderer(window, -1, SDL_RENDERER_PRESENTVSYNC);
	if (renderer == NULL) {
		SDL_Log("%s", SDL_GetError());
		return 1;
	}
	wish.period_ns = period_of(window);
	andante_open(&wish, &session);
	andante_join(session, NULL, &thread);
	while (answer_events(session)) {
		andante_begin(thread, andante_now_ns() + wish.period_ns);
		SDL_SetRenderDrawColor(renderer, shade, shade, 96, SDL_ALPHA_OPAQUE);
		SDL_RenderClear(renderer);
		shade++;
		andante_end(thread);
		SDL_RenderPresent(renderer); /* waits for the display: no part of the work */
	}
	andante_leave(thread);
	andante_close(session);
	SDL_Quit();
	return 0;
}
