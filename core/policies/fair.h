/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A model of the stock fair scheduler: earliest virtual deadline first, simplified.
 *
 * It is a baseline to compare with in the simulator, not the kernel's code, which anybody who has
 * a kernel can run instead (the laboratory does). As there ([1], [2]):
 *
 *      virtual run time    vr += ran / weight
 *      virtual deadline    vd  = vr + slice / weight, renewed when vr reaches it
 *      pick                the least vd
 *      wake-up             placed at the queue's virtual time with the lag it left with, if it
 *                          owed; preempts only if its vd is the least and the one in service has
 *                          had a slice ("run to parity")
 *
 * Left out: the test of eligibility (lag >= 0), which needs the mean of all virtual run times, and
 * the decay of lag while asleep. The queue's virtual time is the largest vr that was ever served,
 * as with start-time fair queueing.
 *
 * [1] I. Stoica, H. Abdel-Wahab: Earliest Eligible Virtual Deadline First. Old Dominion University
 *     TR-95-22, 1995.
 * [2] Linux, Documentation/scheduler/sched-eevdf.rst.
 */
#ifndef ANDANTE_CORE_FAIR_H
#define ANDANTE_CORE_FAIR_H

#include "../tag.h"

#define AN_FAIR_SLICE_NS 2800000ULL

struct an_fair {
	u64 vruntime; /* [tag] */
	u64 deadline; /* [tag] */
	u64 slice_ns; /* left before run to parity ends [ns] */
	u32 rem;      /* remainder of vruntime [1/weight] */
	u32 fresh;    /* has never run */
};

an_inline void an_fair_renew(struct an_fair *f, u32 weight)
{
	u32 rem = 0;

	f->deadline = f->vruntime;
	an_tag_charge(&f->deadline, &rem, AN_FAIR_SLICE_NS, weight);
	f->slice_ns = AN_FAIR_SLICE_NS;
}

an_inline void an_fair_wake(u64 vtime, struct an_fair *f, u32 weight)
{
	if (f->fresh) {
		f->vruntime = vtime;
		f->fresh = 0;
	}
	an_tag_wake(&f->vruntime, &f->rem, vtime);
	an_fair_renew(f, weight);
}

an_inline void an_fair_used(struct an_fair *f, u64 ran_ns, u32 weight)
{
	an_tag_charge(&f->vruntime, &f->rem, ran_ns, weight);
	f->slice_ns -= ran_ns < f->slice_ns ? ran_ns : f->slice_ns;
	if (an_tag_diff(f->vruntime, f->deadline) >= 0)
		an_fair_renew(f, weight);
}

/* May the woken one take the CPU? Not before the one in service has had its slice. */
an_inline bool an_fair_preempts(const struct an_fair *woken, const struct an_fair *serving)
{
	return serving->slice_ns == AN_FAIR_SLICE_NS &&
	       an_tag_diff(woken->deadline, serving->deadline) < 0;
}

#endif
