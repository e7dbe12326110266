/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tags: the virtual time of start-time fair queueing.
 *
 * A tag is service divided by weight, in units of [ns * 2^16 / weight], kept in 64 bits that wrap:
 * only differences between tags mean anything, so they are compared as signed differences. At
 * weight 1 a difference may grow to 2^47 ns (39 hours) before it changes sign; an_tag_wake()
 * keeps tags of long sleepers from getting there.
 *
 * The division leaves a remainder, which is carried to the next charge. A tag is therefore exact
 * (tag * weight + remainder is the service given, to the last unit) as long as the weight stays.
 */
#ifndef ANDANTE_CORE_TAG_H
#define ANDANTE_CORE_TAG_H

#include "port.h"

#define AN_TAG_SHIFT 16

/* Longest service charged in one go; keeps ns << AN_TAG_SHIFT within 64 bits. */
#define AN_CHARGE_MAX_NS (1ULL << 40)

/*
 * The weight of a class that is idle (cpu.idle): it gets what 3 of 1024 give, where the usual
 * weight of 100 stands for 1024 [Linux: WEIGHT_IDLEPRIO]. That is 300/1024, less than the least
 * whole weight, so its charges are divided by 300 with ten more binary digits, as exactly as
 * others.
 */
#define AN_WEIGHT_IDLE 0u
#define AN_IDLE_PARTS 300u
#define AN_IDLE_SHIFT (AN_TAG_SHIFT + 10)

/* Longest service of an idle class charged in one go, a minute; keeps it within 64 bits. */
#define AN_IDLE_CHARGE_MAX_NS (1ULL << 36)

/* A quantum that ends only by blocking or preemption. */
#define AN_ENDLESS_NS (1ULL << 60)

/*
 * Farthest that a sleeper's tag may lie before v; above this it is a leftover of an earlier round
 * of the 64 bits, not a debt. A quarter of a second of service at weight 1.
 */
#define AN_TAG_LEAD_MAX (1LL << 44)

/* a - b, for tags less than half a round apart. */
an_inline s64 an_tag_diff(u64 a, u64 b)
{
	return (s64)(a - b);
}

an_inline u64 an_tag_max(u64 a, u64 b)
{
	return an_tag_diff(a, b) < 0 ? b : a;
}

/* What service of less than a day adds to the tag of a task of this weight. */
an_inline u64 an_tag_of(u64 service_ns, u32 weight)
{
	return (service_ns << AN_TAG_SHIFT) / (weight ? weight : 1);
}

/* F = S + l / r of an idle class, with the remainder kept in *rem [1/AN_IDLE_PARTS]. */
an_inline void an_tag_charge_idle(u64 *tag, u32 *rem, u64 service_ns)
{
	u64 units;

	if (service_ns > AN_IDLE_CHARGE_MAX_NS)
		service_ns = AN_IDLE_CHARGE_MAX_NS;
	units = (service_ns << AN_IDLE_SHIFT) + *rem;
	*tag += units / AN_IDLE_PARTS;
	*rem = units % AN_IDLE_PARTS;
}

/* F = S + l / r, with the remainder of the division kept in *rem [1/weight]. */
an_inline void an_tag_charge(u64 *tag, u32 *rem, u64 service_ns, u32 weight)
{
	u64 units;

	if (service_ns > AN_CHARGE_MAX_NS)
		service_ns = AN_CHARGE_MAX_NS;
	if (!service_ns) /* a yield that used nothing would be picked again for ever */
		service_ns = 1;
	if (weight == AN_WEIGHT_IDLE) {
		an_tag_charge_idle(tag, rem, service_ns);
		return;
	}
	units = (service_ns << AN_TAG_SHIFT) + *rem;
	*tag += units / weight;
	*rem = units % weight;
}

/* S = max(v, F) for one that was not runnable: no credit for having slept, no penalty either. */
an_inline void an_tag_wake(u64 *tag, u32 *rem, u64 vtime)
{
	s64 lead = an_tag_diff(*tag, vtime);

	if (lead < 0 || lead > AN_TAG_LEAD_MAX) {
		*tag = vtime;
		*rem = 0;
	}
}

/* Service that moves a tag of this weight by diff >= 0 [ns]. Of an idle class it is nothing: it
 * makes way at once for whoever wakes. */
an_inline u64 an_tag_service_ns(u64 diff, u32 weight)
{
	/* diff * weight could overflow; whole and fractional ns apart cannot. */
	return (diff >> AN_TAG_SHIFT) * weight +
	       (((diff & ((1ULL << AN_TAG_SHIFT) - 1)) * weight) >> AN_TAG_SHIFT);
}

#endif
