/* SPDX-License-Identifier: GPL-2.0 */
/*
 * EDF-WM at run time: a contract that no single CPU has room for, split over several [1].
 *
 * Admission has cut the budget C into pieces {CPU, budget, offset, window}. On its CPU each piece
 * is a task of its own: released at the job's release + offset, with a deadline one window later,
 * under plain EDF. A job visits the CPUs in the order of its pieces and migrates at the end of a
 * window, by timer and not when a piece's budget is used up; so it never runs in two places, and
 * migrates at most pieces - 1 times.
 *
 *                wake                    window ends: next piece, next CPU
 *      asleep ---------> piece 0 ready ------------------------------------> piece k ready
 *        ^                   |                                                   |
 *        |                   v budget used up: throttled until the window ends   v
 *        |                                                                       | last piece
 *        '--- sleep, from anywhere: the remaining pieces are cancelled           | used up
 *                                                                                v
 *                    piece 0 again, at the job's release + T <----------- throttled
 *
 * A job that overruns its last piece waits for the next release, as any AN_HARD server does, and
 * goes on with the pieces of the job after it; with AN_BORROW it has idle time meanwhile. With
 * AN_EXHAUSTIVE the last piece is not enforced, as in the authors' implementation: on exhaustion
 * the deadline moves on by the whole D, and isolation is gone.
 *
 * A kernel cannot tell a job that is done from one that sleeps for a moment. One that wakes before
 * its next release goes on with the piece in whose window it is, and has the time it slept charged
 * as execution, as if it had never slept; a piece that begins is whole. After the last window it
 * waits for the release.
 *
 * [1] S. Kato, N. Yamasaki, Y. Ishikawa: Semi-Partitioned Scheduling of Sporadic Task Systems on
 *     Multiprocessors. ECRTS 2009. Sections 3 and 4.
 */
#ifndef ANDANTE_CORE_EDFWM_H
#define ANDANTE_CORE_EDFWM_H

#include "cbs.h"
#include "contracts.h"

/* A server keeps track of its own overruns, a split one needs none of these. */
#define AN_SPLIT_FLAGS (AN_HARD | AN_BORROW | AN_EXHAUSTIVE)

/*
 * May the promise be split like this? Budgets add up to C and fit their windows, windows follow
 * each other within D from the release on, neighbours are on different CPUs, and the contract is
 * on the CPU of the first.
 */
an_inline bool an_split_valid(const struct an_promise *p, const struct an_piece *pieces, u32 count)
{
	u64 deadline_rel_ns = p->deadline_rel_ns ? p->deadline_rel_ns : p->period_ns;
	u64 budget_ns = 0, end_ns = 0;
	u32 at = 0, cpu = AN_MAX_CONTRACT_CPUS;

	if (count < 2 || count > AN_MAX_PIECES || p->flags & ~AN_SPLIT_FLAGS)
		return false;
	an_while(at < count) {
		const struct an_piece *piece = &pieces[an_bounded(at, AN_MAX_PIECES)];

		if (piece->cpu >= AN_MAX_CONTRACT_CPUS || piece->cpu == cpu)
			return false;
		if (!piece->budget_ns || piece->budget_ns > piece->window_ns ||
		    piece->window_ns > deadline_rel_ns || piece->offset_ns > deadline_rel_ns ||
		    piece->offset_ns < end_ns)
			return false;
		if (!at && (piece->offset_ns || piece->cpu != p->cpu))
			return false;
		cpu = piece->cpu;
		budget_ns += piece->budget_ns;
		end_ns = piece->offset_ns + piece->window_ns;
		at = an_opaque(at + 1);
	}
	return budget_ns == p->budget_ns && end_ns <= deadline_rel_ns;
}

/*
 * Splits a contract that is asleep into count pieces, pieces[AN_MAX_PIECES]: 0, or -1 when it may
 * not be split like this (an_split_valid()), is split already, or there is no room for the pieces.
 */
an_outline int an_split_set(struct an_contracts *cs, u32 index, const struct an_piece *pieces,
			    u32 count)
{
	struct an_contract *c = an_contract(cs, index);
	u32 at = 0, split = cs->split_free;

	if (!c->used || c->runnable || c->split || !an_split_valid(&c->promise, pieces, count))
		return -1;
	if (split) {
		cs->split_free = an_split(cs, split)->next_free;
	} else {
		if (cs->split_unused >= AN_MAX_SPLITS)
			return -1;
		split = cs->split_unused++;
	}
	an_split(cs, split)->count = count;
	an_while(at < count && at < AN_MAX_PIECES) {
		*an_piece(cs, split, at) = pieces[an_bounded(at, AN_MAX_PIECES)];
		at = an_opaque(at + 1);
	}
	an_contract_exit(cs, c);
	c->split = split;
	c->started = 0;
	an_contract_enter(cs, c);
	return 0;
}

/* Where the job goes on at now_ns: with this piece, now or from its release on. */
an_inline void an_split_begin(struct an_contracts *cs, struct an_contract *c, u32 at, u64 now_ns)
{
	const struct an_piece *piece = an_piece(cs, c->split, at);
	u64 start_ns = c->release_ns + piece->offset_ns;

	c->piece = at;
	c->cpu = piece->cpu;
	c->left_ns = piece->budget_ns;
	c->deadline_ns = start_ns + piece->window_ns;
	c->throttled = 0;
	if (start_ns > now_ns)
		an_server_throttle(c, start_ns);
	else if (at + 1 < an_split(cs, c->split)->count)
		c->due_ns = c->deadline_ns;
	else
		c->due_ns = AN_NEVER;
}

/* A job released at release_ns. */
an_inline void an_split_release(struct an_contracts *cs, struct an_contract *c, u64 release_ns,
				u64 now_ns)
{
	c->release_ns = release_ns;
	an_split_begin(cs, c, 0, now_ns);
}

/* Time passes without the piece having run: it is charged as if it had. */
an_inline void an_split_slept(struct an_contract *c, u64 slept_ns)
{
	c->left_ns -= slept_ns;
	if (c->left_ns > 0 || c->throttled)
		return;
	c->left_ns = 0;
	an_server_throttle(c, c->due_ns);
}

/*
 * Goes on with the piece in whose window it is, before the next release, after it has slept, or run
 * elsewhere, for slept_ns.
 */
an_inline enum an_rule an_split_resume(struct an_contracts *cs, struct an_contract *c, u64 slept_ns,
				       u64 now_ns)
{
	u32 at = c->piece, count = an_split(cs, c->split)->count;
	s64 left_ns = c->left_ns;
	u64 next_release_ns = c->release_ns + c->promise.period_ns;

	an_while(at < count && at < AN_MAX_PIECES) {
		const struct an_piece *piece = an_piece(cs, c->split, at);
		u64 start_ns = c->release_ns + piece->offset_ns;

		if (now_ns < start_ns + piece->window_ns)
			break;
		at = an_opaque(at + 1);
	}
	if (at >= count) {
		an_split_release(cs, c, next_release_ns, now_ns);
		return AN_RULE_WAITS;
	}
	if (at == c->piece) {
		an_split_begin(cs, c, at, now_ns);
		c->left_ns = left_ns;
	} else {
		u64 since_ns;

		an_split_begin(cs, c, at, now_ns);
		since_ns = now_ns - (c->deadline_ns - an_piece(cs, c->split, at)->window_ns);
		if (slept_ns > since_ns)
			slept_ns = since_ns;
	}
	if (c->throttled) /* between two windows */
		return AN_RULE_KEPT;
	if (at + 1 == count && c->left_ns <= (s64)slept_ns) {
		c->left_ns = 0;
		an_split_release(cs, c, next_release_ns, now_ns);
		return AN_RULE_WAITS;
	}
	an_split_slept(c, slept_ns);
	return AN_RULE_KEPT;
}

/*
 * A job arrives, or one that arrived at arrived_ns and has run for ran_ns since, elsewhere. The
 * heaps do not have the contract: its CPU may change. If it went to sleep before the release that
 * it waited for, that release is still to come. Pieces go by the clock from the job's release on,
 * wherever it was meanwhile, and so do those of later jobs.
 */
an_inline enum an_rule an_split_wake(struct an_contracts *cs, struct an_contract *c, u64 arrived_ns,
				     u64 ran_ns, u64 now_ns)
{
	u64 release_ns = arrived_ns, next_ns = c->release_ns;

	if (c->started && c->debt_ns >= c->release_ns) {
		next_ns += c->promise.period_ns;
		if (arrived_ns < next_ns && now_ns < next_ns) {
			u64 slept_ns = arrived_ns > c->debt_ns ? arrived_ns - c->debt_ns : 0;

			return an_split_resume(cs, c, slept_ns + ran_ns, now_ns);
		}
	}
	if (c->started && arrived_ns < next_ns)
		release_ns = next_ns;
	an_split_release(cs, c, release_ns, now_ns);
	if (release_ns < now_ns)
		return an_split_resume(cs, c, ran_ns, now_ns);
	return c->throttled ? AN_RULE_WAITS : AN_RULE_RELEASED;
}

/* The job is done: the contract is at home again. It is out of the heaps. */
an_inline void an_split_sleep(struct an_contracts *cs, struct an_contract *c, u64 now_ns)
{
	c->debt_ns = now_ns; /* since when it sleeps */
	c->cpu = an_piece(cs, c->split, 0)->cpu;
}

/* Ran, in rank BUDGET. */
an_inline enum an_rule an_split_charge(struct an_contracts *cs, struct an_contract *c, u64 ran_ns)
{
	c->left_ns -= ran_ns;
	if (c->left_ns > 0)
		return AN_RULE_NONE;
	if (c->piece + 1u < an_split(cs, c->split)->count) {
		an_server_throttle(c, c->deadline_ns);
		return AN_RULE_THROTTLED;
	}
	c->overran = 1;
	c->exhaustions++;
	if (an_has(c, AN_EXHAUSTIVE)) {
		c->left_ns = an_piece(cs, c->split, c->piece)->budget_ns;
		c->deadline_ns += c->promise.deadline_rel_ns;
		return AN_RULE_OVERRAN;
	}
	an_server_throttle(c, c->release_ns + c->promise.period_ns);
	return AN_RULE_THROTTLED;
}

/*
 * The contract's timer: the release it waited for, the end of a window, or the release after a
 * job that overran. The heaps do not have the contract. Told apart by the instant: windows are
 * longer than nothing, and all but the last end before release + T.
 */
an_inline enum an_rule an_split_boundary(struct an_contracts *cs, struct an_contract *c, u64 now_ns)
{
	u64 start_ns = c->release_ns + an_piece(cs, c->split, c->piece)->offset_ns;

	if (c->due_ns >= c->release_ns + c->promise.period_ns) {
		c->replenishments++;
		an_split_release(cs, c, c->due_ns, now_ns);
		return AN_RULE_REPLENISHED;
	}
	if (c->due_ns == start_ns) {
		an_split_begin(cs, c, c->piece, now_ns);
		return AN_RULE_RELEASED;
	}
	an_split_begin(cs, c, c->piece + 1, now_ns);
	return AN_RULE_MIGRATED;
}

#endif
