/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The fair server: what tasks of the stock scheduler's class have in spite of real-time tasks, 50
 * ms in every second of each CPU. kernel/sched/deadline.c of Linux 7.2, dl_server_*(). It replaces
 * the limit on real-time tasks of older kernels, which 7.2 has for groups of them only
 * (CONFIG_RT_GROUP_SCHED).
 *
 * The server is put off: it comes into play when its tasks have not had their 50 ms by the last
 * instant at which they still can within the period. What they get without it, and idle time,
 * counts.
 *
 *                       runs out (6)
 *             +-------------------------------+        A  nobody to serve
 *             v                               |        B  waits for the last instant (armed)
 *      A --> B ----> D (in service) ----> E (waits for its next period)
 *      ^     ^ |       |                      |        C  as B, of a CPU that was idle
 *      |     | C       |                      |
 *      +-----+---------+ nobody left          +--> B   its tasks had their part without it
 */
#include "model.h"

#define RUNTIME_NS 50000000LL	/* sched_init_dl_servers() */
#define PERIOD_NS 1000000000ULL /* also its deadline */
#define LEAST_NS 1000000ULL	/* dl_server_min_res: no earlier activation for less */

/* replenish_dl_new_period() */
static void new_period(struct rq *rq, struct fair_server *s)
{
	s->deadline_ns = rq->clock_ns + PERIOD_NS;
	s->runtime_ns = RUNTIME_NS;
	if (!s->was_needed)
		s->waits = s->is_armed = true;
}

/* start_dl_timer() */
static void start_timer(struct fair_server *s)
{
	s->timer_ns = s->is_armed ? s->deadline_ns - (u64)s->runtime_ns : s->deadline_ns;
}

/* dl_entity_overflow(): what is left would be more than its part of the time that is left */
static bool is_too_much(const struct rq *rq, const struct fair_server *s)
{
	s64 left_ns = (s64)(s->deadline_ns - rq->clock_ns);

	return (__int128)s->runtime_ns * (s64)PERIOD_NS > (__int128)left_ns * RUNTIME_NS;
}

/* setup_new_dl_entity() */
void server_init(struct rq *rq)
{
	rq->server = (struct fair_server){
		.runtime_ns = RUNTIME_NS, .deadline_ns = PERIOD_NS, .timer_ns = MODEL_NEVER};
}

/* dl_server_start() */
void server_starts(struct rq *rq)
{
	struct fair_server *s = &rq->server;
	bool over = s->deadline_ns < rq->clock_ns;

	s->is_idle = false;
	if (s->is_active)
		return;
	s->is_active = true;
	/* update_dl_entity() */
	if (!over && is_too_much(rq, s) && s->was_needed) {
		s->runtime_ns =
			(s64)(s->deadline_ns - rq->clock_ns) / (s64)(PERIOD_NS / RUNTIME_NS);
	} else if (over || is_too_much(rq, s)) {
		s->was_needed = false;
		new_period(rq, s);
	} else if (!s->was_needed) {
		s->is_armed = s->waits = true;
	}
	if (s->waits)
		start_timer(s);
	else
		resched_curr(rq);
}

/* dl_server_stop() */
static void stops(struct fair_server *s)
{
	s->timer_ns = MODEL_NEVER;
	s->is_armed = s->waits = s->is_idle = s->is_active = false;
}

/* update_curr_dl_se(): tasks of the class have had so much, or the CPU was idle so long. */
static void counts(struct rq *rq, s64 ns, bool idle)
{
	struct fair_server *s = &rq->server;

	if (!s->is_active || ns <= 0)
		return;
	s->runtime_ns -= ns;
	if (!idle)
		s->is_idle = false;
	if (s->runtime_ns > 0)
		return;
	if (!s->waits) {
		s->waits = true;
		start_timer(s);
		resched_curr(rq);
		return;
	}
	if (s->is_idle && idle) {
		s->runtime_ns = 0;
		return;
	}
	s->was_needed = false;
	new_period(rq, s);
	if (idle)
		s->is_idle = true;
	start_timer(s);
}

void server_counts(struct rq *rq, u64 ran_ns)
{
	counts(rq, (s64)ran_ns, false);
}

void server_counts_idle(struct rq *rq, u64 idle_ns)
{
	counts(rq, (s64)idle_ns, true);
}

/* dl_server_timer() */
void server_timer(struct rq *rq)
{
	struct fair_server *s = &rq->server;

	s->timer_ns = MODEL_NEVER;
	if (!s->is_active || !s->waits)
		return;
	update_rq_clock(rq);
	update_curr(rq);
	if (s->timer_ns != MODEL_NEVER) /* a new period has begun meanwhile */
		return;
	if (s->is_idle) {
		stops(s);
		return;
	}
	if (s->is_armed) {
		if (rq->clock_ns + LEAST_NS < s->deadline_ns - (u64)s->runtime_ns) {
			start_timer(s);
			return;
		}
		s->was_needed = true;
		if (is_too_much(rq, s)) {
			s->deadline_ns = rq->clock_ns + PERIOD_NS;
			s->runtime_ns = RUNTIME_NS;
		}
	}
	/* replenish_dl_entity() */
	while (s->runtime_ns <= 0) {
		s->deadline_ns += PERIOD_NS;
		s->runtime_ns += RUNTIME_NS;
	}
	s->waits = s->is_armed = false;
	resched_curr(rq);
}

/* __pick_task_dl(): whom it serves; nobody: it ends, or was not to be in service. */
struct task_struct *server_pick(struct rq *rq)
{
	struct fair_server *s = &rq->server;
	struct task_struct *p;

	if (!s->is_active || s->waits)
		return NULL;
	p = fair_pick(rq);
	if (!p)
		stops(s);
	return p;
}
