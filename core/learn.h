/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Learnt contracts: what a task that nobody has said anything about seems to need.
 *
 * A program that waits for something, does a piece of work and waits again (plays a frame, answers
 * a key, draws for a client) can be served in time without anyone losing: it asks for little of the
 * CPU, and says by going to sleep that it has had what it wanted. So every task is watched. What is
 * asked of it is asked in this order.
 *
 * 1. What does it work for? For an *event* from outside, a beat of the clock or something that a
 *    device has, if that has woken it, or a task has woken or made it that works for that event,
 *    in the second since it came (an_learn_is_rooted()). Who wakes whom is a chain, and a chain
 *    that has no such beginning is no answer to anything: programs that talk to one another all
 *    the time sleep as often as a film does. A wait inside the kernel, for a page or a lock, is
 *    part of what a task does, and what ends it is no event.
 * 2. Does somebody wait for the answer (an_learn_evident())? It seems so if such events come to
 *    the task that they wake in a rhythm [rhythm.h]; or if it has slept, before one of the last
 *    AN_LEARN_ENOUGH, for as long as people take; or if no more of them are known. It does not seem
 *    so otherwise: a job that waits for its disk sleeps as often as a film. All that works for an
 *    event is waited for if the event is.
 * 3. How much does it need? A *job* is what a task does from one wake-up to the next, if that is
 *    later than AN_LEARN_DISTANCE_MIN_NS: a frame that passes through many hands is not as many
 *    jobs. A task that forks and waits has work done, and does not wait for anything else: to be
 *    woken by a child that ends, or begins to execute a program, begins no job; the caller leaves
 *    such wake-ups out. A server that is asked again before it has answered does not sleep, and
 *    would not while it lacks the CPU: its jobs go from one answer to the next
 *    (an_learn_answered()). Of jobs is kept
 *
 *      largest service         CPU time of a job, in this window of 128 jobs and the one before, so
 *                              that the one expensive frame of each group is remembered; but not
 *                              for long: a window ends after two seconds. A task that wakes in a
 *                              rhythm, and now a beat or more too late, has done several jobs in
 *                              one (an_learn_job()). A job that took longer than anybody waits,
 *                              AN_LEARN_SERVICE_MAX_NS, is none of these.
 *      mean service, distance  exponential averages over some sixteen jobs
 *
 * 4. May it have a contract (an_learn_may_be_interactive())? Yes if it uses at most the bound's
 *    part of the CPU on average. Two have the benefit of the doubt: one that has done few jobs, for
 *    nothing is known yet of a film that starts, and its first frames are looked at; and one that
 *    has had a job longer than AN_LEARN_SERVICE_MAX_NS among the last AN_LEARN_AVERAGED, or in two
 *    seconds, as a player that reads on has. Such a job ends the contract at once
 *    (an_learn_goes_on()), and the next one is due late. One that works for no event needs more:
 *    its jobs have to be work, not talk. So a film that is late gets along, whose threads hand
 *    frames to one another and never sleep until one is due.
 *
 * The contract is of rank EXTRA: after what was promised and cannot wait any longer [cbs.h], before
 * all shares. What was promised and can wait stands among learnt ones by its own deadline. What
 * somebody waits for comes before what nobody seems to (AN_UNAWAITED); in each of the two the order
 * is by
 *
 *      deadline = wake-up + S + S^2 / AN_LEARN_LONG_NS, S the largest service of a job
 *
 * for a task that takes long to answer is not expected to answer at once. One that wakes in a
 * rhythm is expected to be done at the next beat, of which half is its own, and half for those that
 * it asks: it has that long, if that is more; but one that takes little is served soon, for nobody
 * waits for it long. One that is in doubt (an_learn_promise_for()) may take as long as
 * anybody waits, and is due accordingly. A job that another learnt one has woken is due when that
 * is, if that is earlier, for it is likely to be waited for (an_contract_inherit_deadline()).
 *
 * What contracts of this kind use of a CPU is bounded as a whole, by a bucket [bucket.h] that fills
 * with the bound's part of the time; what nobody waits for leaves half of it. When it is empty each
 * that somebody waits for has what its own task uses on average, and a little more, from a bucket
 * of its own, unless it has slept for long. So a program that only seems to be interactive gets the
 * bound and no more, and takes nothing from those that are. A task that has used all that it may
 * has its share until there is more; and waiting brings a deadline nearer only as far as its own
 * bucket has what the job still needs, and not nearer than the job can be done
 * (an_learnt_deadline_ns()).
 *
 * Nobody's algorithm in particular: interactivity by voluntary sleep is as old as CTSS, and the
 * failures of the published ones are what the rules above avoid (J. Nieh et al., NOSSDAV 1993:
 * priorities earned by sleeping and lost by working trap the batch job that forks and waits, and
 * the display server that everybody waits for). Of a server [cbs.h] it has the deadlines, not the
 * budget: buckets bound what it uses.
 */
#ifndef ANDANTE_CORE_LEARN_H
#define ANDANTE_CORE_LEARN_H

#include "contract.h"
#include "rhythm.h"

struct an_learner {
	u64 woken_ns;	 /* when the job in progress, or the last one, began */
	u64 slept_ns;	 /* when it went to sleep last; 0: not known */
	u32 service_ns;	 /* of that job so far */
	u32 largest_ns;	 /* of a job, lately: in the window in progress and the one before */
	u32 mean_ns;	 /* of a job */
	u32 distance_ns; /* of one job's beginning from the next, on average */
	u32 spread_ns;	 /* mean deviation of the distance */
	u32 jobs;	 /* seen so far, at most AN_LEARN_AVERAGED */
	u32 window_ns;	 /* of the window, so far */
	u32 window_jobs; /* likewise */
	u32 within_ns;	 /* largest service of a job within it */
	u32 before_ns;	 /* the same of the window before */
	u32 long_ns; /* service of a job that nobody waits for, not long ago; 0: there was none */
	u32 events; /* that have woken it since it last slept for long, up to AN_LEARN_ENOUGH + 1 */
	struct an_rhythm rhythm; /* of its wake-ups by the clock or a device */
};

/* The task ran for ran_ns. */
an_inline void an_learn_service(struct an_learner *l, u64 ran_ns)
{
	u64 service_ns = l->service_ns + ran_ns;

	l->service_ns = service_ns < AN_LEARN_MEMORY_NS ? service_ns : AN_LEARN_MEMORY_NS;
}

/* A window begins, and of those before this was the largest. */
an_inline void an_learn_window(struct an_learner *l, u32 before_ns)
{
	l->before_ns = before_ns;
	l->window_ns = l->window_jobs = l->within_ns = 0;
}

/* The task is new, or was not watched before now. */
an_inline void an_learn_begin(struct an_learner *l, u64 now_ns)
{
	l->woken_ns = now_ns;
	l->service_ns = l->largest_ns = l->mean_ns = l->distance_ns = l->spread_ns = l->jobs = 0;
	l->long_ns = 0;
	l->slept_ns = l->events = 0;
	an_learn_window(l, 0);
	an_rhythm_begin(&l->rhythm, now_ns);
}

/* A job took so long, and was so far from the next. */
an_inline void an_learn_largest(struct an_learner *l, u32 service_ns, u32 distance_ns)
{
	if (service_ns > AN_LEARN_SERVICE_MAX_NS) {
		l->long_ns = service_ns;
		an_learn_window(l, l->largest_ns);
		return;
	}
	l->window_ns += distance_ns;
	l->window_jobs++;
	if (service_ns > l->within_ns)
		l->within_ns = service_ns;
	l->largest_ns = l->within_ns > l->before_ns ? l->within_ns : l->before_ns;
	if (l->window_jobs >= AN_LEARN_AVERAGED || l->window_ns >= AN_LEARN_MEMORY_NS)
		l->long_ns = 0;
	if (l->window_jobs >= AN_LEARN_WINDOW_JOBS || l->window_ns >= AN_LEARN_MEMORY_NS)
		an_learn_window(l, l->within_ns);
}

/*
 * How long one job took that was so far from the next. A task that has woken in a rhythm, and then
 * not for one and a half times as long, was kept waiting, and had more than one to do when its turn
 * came.
 */
an_inline u32 an_learn_job(const struct an_learner *l, u32 service_ns, u32 distance_ns)
{
	bool rhythm = l->jobs >= AN_LEARN_AVERAGED && l->spread_ns <= l->distance_ns / 4;

	if (!rhythm || distance_ns < l->distance_ns + l->distance_ns / 2)
		return service_ns;
	return (u64)service_ns * l->distance_ns / (distance_ns ? distance_ns : 1);
}

/* A job took so long, and the next one began so much later than it did. */
an_inline void an_learn_note(struct an_learner *l, u32 service_ns, u32 distance_ns)
{
	u32 deviation_ns = an_apart(distance_ns, l->distance_ns);

	if (l->jobs < AN_LEARN_AVERAGED)
		l->jobs++;
	an_learn_largest(l, an_learn_job(l, service_ns, distance_ns), distance_ns);
	l->mean_ns = an_average(l->mean_ns, service_ns, l->jobs);
	l->distance_ns = an_average(l->distance_ns, distance_ns, l->jobs);
	l->spread_ns = an_average(l->spread_ns, deviation_ns, l->jobs);
}

/* So many jobs that took about as long as one another are over, and the next begins. */
an_inline void an_learn_jobs_end(struct an_learner *l, u32 jobs, u64 now_ns)
{
	u64 distance_ns = now_ns - l->woken_ns;
	u32 service_ns = l->service_ns;

	l->woken_ns = now_ns;
	l->service_ns = 0;
	if (distance_ns > AN_LEARN_MEMORY_NS)
		distance_ns = AN_LEARN_MEMORY_NS;
	an_learn_note(l, service_ns / jobs, (u32)distance_ns / jobs);
}

/* What a task works for since it woke. */
enum an_learn_event {
	AN_EVENT_NONE,	    /* for no event: it is not watched */
	AN_EVENT_UNAWAITED, /* for one that nobody seems to wait for the answer to */
	AN_EVENT_AWAITED,   /* for one that somebody does */
};

/*
 * Does the task still work for an event that came then? What goes on for longer is no answer to it.
 */
an_inline bool an_learn_is_rooted(u64 root_ns, u64 now_ns)
{
	return now_ns - root_ns < AN_LEARN_ROOTED_NS;
}

/*
 * The task wakes, so soon after its job has begun that it goes on with it: one that passes a frame
 * to and fro has a job each time otherwise, and none that takes long enough to say anything.
 */
an_inline bool an_learn_goes_on_soon(const struct an_learner *l, u64 now_ns)
{
	return now_ns - l->woken_ns < AN_LEARN_DISTANCE_MIN_NS;
}

/* Has it just been made, and not run yet? */
an_inline bool an_learn_is_untried(const struct an_learner *l)
{
	return !(l->jobs | l->service_ns);
}

/* An event from outside has woken it. */
an_inline void an_learn_slept(struct an_learner *l, u64 now_ns)
{
	if (l->slept_ns && now_ns >= l->slept_ns + AN_LEARN_PEOPLE_NS)
		l->events = 0;
	if (l->events <= AN_LEARN_ENOUGH)
		l->events++;
}

/* Is it likely that somebody waits for what it does when an event wakes it? */
an_inline bool an_learn_evident(const struct an_learner *l)
{
	return l->events <= AN_LEARN_ENOUGH || an_rhythm_ns(&l->rhythm);
}

/* The task wakes: one job is over, and another begins. */
an_inline void an_learn_wake(struct an_learner *l, u64 now_ns)
{
	an_learn_jobs_end(l, 1, now_ns);
}

/*
 * The task makes way without having slept, and has answered others so often since its job began:
 * that was as many jobs, but none shorter than a task that waits has. False if it is still one,
 * which those answers belong to.
 */
an_inline bool an_learn_answered(struct an_learner *l, u32 answers, u64 now_ns)
{
	u64 jobs = (now_ns - l->woken_ns) / AN_LEARN_DISTANCE_MIN_NS;

	if (answers < jobs)
		jobs = answers;
	if (!jobs)
		return false;
	an_learn_jobs_end(l, jobs, now_ns);
	return true;
}

/* What the task uses on average, as part of a CPU [1/1024]. */
an_inline u32 an_learn_part(const struct an_learner *l)
{
	return (u64)l->mean_ns * 1024 / (l->distance_ns ? l->distance_ns : 1);
}

/* What keeps a task from being taken for an interactive one. */
enum an_learn_obstacle {
	AN_LEARN_NONE,	/* nothing: it has shown that it waits more than it works */
	AN_LEARN_TALKS, /* it wakes too often, and so does not wait, but talks */
	AN_LEARN_LONG,	/* a job of it took too long, not long ago */
	AN_LEARN_MUCH,	/* it uses more than the bound on average */
	AN_LEARN_NEW,	/* it has not been seen for long enough */
};

/* bound: part of a CPU [1/1024]. */
an_inline enum an_learn_obstacle an_learn_obstacle(const struct an_learner *l, u32 bound)
{
	u32 part;

	if (l->distance_ns < AN_LEARN_DISTANCE_MIN_NS)
		return l->jobs ? AN_LEARN_TALKS : AN_LEARN_NEW;
	if (l->long_ns)
		return AN_LEARN_LONG;
	part = an_learn_part(l);
	if (part > bound)
		return AN_LEARN_MUCH;
	if (l->jobs >= AN_LEARN_ENOUGH)
		return AN_LEARN_NONE;
	return AN_LEARN_NEW;
}

/* Does the job in progress take longer than anybody waits for, whatever those before it took? */
an_inline bool an_learn_goes_on(const struct an_learner *l)
{
	return l->service_ns > AN_LEARN_SERVICE_MAX_NS;
}

an_inline bool an_learn_interactive(const struct an_learner *l, u32 bound)
{
	return an_learn_obstacle(l, bound) == AN_LEARN_NONE;
}

/*
 * The same of one that has not been seen for long enough: it has the benefit of the doubt. Of those
 * that work for no event only they do whose jobs take long enough to be work, not talk: a film that
 * is late passes its frames from hand to hand, and never gets to sleep until a frame is due.
 */
an_inline bool an_learn_may_be_interactive(const struct an_learner *l, u32 event, u32 bound)
{
	enum an_learn_obstacle obstacle = an_learn_obstacle(l, bound);

	if (obstacle == AN_LEARN_NEW || obstacle == AN_LEARN_LONG)
		return true;
	return obstacle == AN_LEARN_NONE && (event || l->mean_ns >= AN_LEARN_DISTANCE_MIN_NS);
}

/* The part that a task wants to be sure of, which uses this part of a CPU on average [1/1024]. */
an_inline u32 an_learn_wanted(u32 part)
{
	return part + AN_LEARN_MARGIN;
}

/* The contract that a task is offered whose jobs take so long, and which has so long for each. */
an_inline void an_learn_promise_of(u64 service_ns, u64 own_ns, u32 bound, struct an_promise *p)
{
	if (service_ns < AN_LEARN_SERVICE_MIN_NS)
		service_ns = AN_LEARN_SERVICE_MIN_NS;
	if (own_ns > AN_LEARN_SHORT_JOBS * service_ns)
		own_ns = AN_LEARN_SHORT_JOBS * service_ns;
	p->budget_ns = 2 * service_ns;
	p->period_ns = p->budget_ns * 1024 / (bound ? bound : 1);
	p->deadline_rel_ns = service_ns + service_ns * service_ns / AN_LEARN_LONG_NS;
	if (p->deadline_rel_ns > p->period_ns)
		p->deadline_rel_ns = p->period_ns;
	if (p->deadline_rel_ns < own_ns)
		p->deadline_rel_ns = own_ns;
	p->x = p->y = 0;
	p->flags = AN_HARD | AN_LEARNT;
}

/* The one that this task is offered. */
an_inline void an_learn_promise(const struct an_learner *l, u32 bound, struct an_promise *p)
{
	an_learn_promise_of(l->largest_ns, an_rhythm_ns(&l->rhythm) / 2, bound, p);
}

/* The same, while it works for this. */
an_inline void an_learn_promise_for(const struct an_learner *l, u32 event, u32 bound,
				    struct an_promise *p)
{
	const struct an_learner longest = {.jobs = AN_LEARN_ENOUGH,
					   .largest_ns = AN_LEARN_SERVICE_MAX_NS};
	bool awaited = event == AN_EVENT_AWAITED;
	bool doubtful = l->long_ns || (!awaited && l->jobs < AN_LEARN_ENOUGH);

	an_learn_promise(doubtful ? &longest : l, bound, p);
	if (!awaited)
		p->flags |= AN_UNAWAITED;
}

/* How long a job of a task takes that is offered this, at most [ns]. */
an_inline u64 an_learn_job_ns(const struct an_promise *p)
{
	return p->budget_ns > 1 ? p->budget_ns / 2 : 1;
}

/*
 * The deadline that the task's job, which begins, inherits from the one that has woken it [ns]:
 * that one's, but not before it is done if it takes as long as it does on average.
 */
an_inline u64 an_learn_inherited_ns(const struct an_learner *l, u64 deadline_ns, u64 now_ns)
{
	u64 done_ns = now_ns + l->mean_ns;

	return deadline_ns > done_ns ? deadline_ns : done_ns;
}

#endif
