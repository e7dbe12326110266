/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Whose work a thread does: its resource binding, and the set of containers it has served lately.
 *
 * At any moment a thread is bound to one container, which pays for what it uses. A thread that
 * serves many (a display server drawing for its clients) rebinds itself as it goes from one to the
 * next, and is scheduled by the attributes of all of them together: its *scheduler binding*, the
 * set of containers it was bound to lately. The set is built implicitly, one is dropped when the
 * thread has not been bound to it for a while, and the thread may reset it to the one it is bound
 * to ([1, section 4.1]).
 *
 * Each member carries what the thread used on its behalf, halved every AN_BINDING_HALF_LIFE_NS, so
 * that the set can be weighed: an_binding_share(). The paper gives no figures for its size or its
 * memory; the choices here are four, half a second, and five seconds until one is dropped. When a
 * fifth comes, the one bound longest ago goes (of equal ones, the first).
 *
 * Whose work a server does, nobody tells it. It is inferred from answers: a thread that a
 * container's thread has woken with a request, and that then sends something back, works for that
 * container (an_binding_ask(), an_binding_answer()). One that is only ever fed, as by a pipe, never
 * answers, and stays its own.
 *
 * Containers are ids other than 0 (on the kernel, of classes). Times are of one clock [ns], and a
 * call's is never before that of the call before it.
 *
 * [1] G. Banga, P. Druschel, J. Mogul: Resource Containers: A New Facility for Resource Management
 *     in Server Systems. OSDI 1999.
 */
#ifndef ANDANTE_CORE_BINDING_H
#define ANDANTE_CORE_BINDING_H

#include "port.h"

#define AN_BINDINGS_MAX 4 /* power of two */
#define AN_BINDING_HALF_LIFE_NS 500000000ULL
#define AN_BINDING_KEEP_NS 5000000000ULL
#define AN_BINDING_WHOLE 1024u
#define AN_BINDING_ANSWERS 3		    /* to a client, since it came into the set */
#define AN_BINDING_USED_MAX_NS (1ULL << 52) /* times AN_BINDING_WHOLE, of four, fits 64 bits */

_Static_assert((AN_BINDINGS_MAX & (AN_BINDINGS_MAX - 1)) == 0, "an_bounded() masks");

struct an_bound {
	u64 used_ns;  /* on its behalf, decayed */
	u64 bound_ns; /* last instant known at which the thread was bound to it */
	u32 container;
	u32 answers; /* given to it, up to AN_BINDING_ANSWERS */
};

struct an_binding {
	struct an_bound set[AN_BINDINGS_MAX]; /* the first count are used */
	u64 decayed_ns;			      /* instant that used_ns has been decayed to */
	u32 count;			      /* 1 … AN_BINDINGS_MAX; 0 if bound to nobody */
	u32 now;			      /* index of the one it is bound to */
};

an_inline struct an_bound *an_bound(struct an_binding *b, u32 i)
{
	return &b->set[an_bounded(i, AN_BINDINGS_MAX)];
}

an_inline void an_binding_put(struct an_binding *b, u32 i, u32 container, u64 now_ns)
{
	struct an_bound *bound = an_bound(b, i);

	bound->used_ns = 0;
	bound->bound_ns = now_ns;
	bound->container = container;
	bound->answers = 0;
}

/* A thread bound to this container and no other. */
an_inline void an_binding_init(struct an_binding *b, u32 container, u64 now_ns)
{
	an_binding_put(b, 0, container, now_ns);
	b->decayed_ns = now_ns;
	b->count = 1;
	b->now = 0;
}

/* The class that pays for what the thread uses now, or 0. */
an_inline u32 an_binding_payer(struct an_binding *b)
{
	return b->count ? an_bound(b, b->now)->container : 0;
}

/* Takes the i-th out; the last takes its place. */
an_inline void an_binding_drop(struct an_binding *b, u32 i)
{
	struct an_bound *gone = an_bound(b, i), *last = an_bound(b, b->count - 1);

	gone->used_ns = last->used_ns;
	gone->bound_ns = last->bound_ns;
	gone->container = last->container;
	gone->answers = last->answers;
	if (b->now == b->count - 1)
		b->now = i;
	b->count--;
}

an_inline void an_binding_decay(struct an_binding *b, u64 now_ns)
{
	u64 halvings = (now_ns - b->decayed_ns) / AN_BINDING_HALF_LIFE_NS;
	u32 i = 0;

	b->decayed_ns += halvings * AN_BINDING_HALF_LIFE_NS;
	an_while(i < b->count && i < AN_BINDINGS_MAX) {
		an_bound(b, i)->used_ns >>= halvings < 63 ? halvings : 63;
		i++;
	}
}

/* Drops those the thread has not been bound to for AN_BINDING_KEEP_NS, never the present one. */
an_inline void an_binding_prune(struct an_binding *b, u64 now_ns)
{
	u32 i = AN_BINDINGS_MAX;

	an_binding_decay(b, now_ns);
	if (b->count)
		an_bound(b, b->now)->bound_ns = now_ns;
	an_while(i > 0) /* downwards: what takes a place has been looked at */ {
		i--;
		if (i < b->count && now_ns - an_bound(b, i)->bound_ns >= AN_BINDING_KEEP_NS)
			an_binding_drop(b, i);
	}
}

/* Where the container is in the set; count if it is not. */
an_inline u32 an_binding_find(struct an_binding *b, u32 container)
{
	u32 i = 0;

	an_while(i < b->count && i < AN_BINDINGS_MAX && an_bound(b, i)->container != container)
		i++;
	return i;
}

/* The one bound longest ago that it is not bound to now. */
an_inline u32 an_binding_oldest(struct an_binding *b)
{
	u32 oldest = b->now ? 0 : 1, i = 0;

	an_while(i < b->count && i < AN_BINDINGS_MAX) {
		if (i != b->now && an_bound(b, i)->bound_ns < an_bound(b, oldest)->bound_ns)
			oldest = i;
		i++;
	}
	return oldest;
}

/* The thread goes over to another container. Charge what it used so far before. */
an_inline void an_binding_bind(struct an_binding *b, u32 container, u64 now_ns)
{
	u32 i;

	an_binding_prune(b, now_ns);
	i = an_binding_find(b, container);
	if (i >= b->count) {
		i = b->count < AN_BINDINGS_MAX ? b->count : an_binding_oldest(b);
		b->count += b->count < AN_BINDINGS_MAX;
		an_binding_put(b, i, container, now_ns);
	}
	b->now = i;
}

/* Has the thread shown that it answers the container that it is bound to? */
an_inline bool an_binding_answers(struct an_binding *b)
{
	return b->count && an_bound(b, b->now)->answers >= AN_BINDING_ANSWERS;
}

/*
 * The container asks the thread for something, waking it: the thread is bound to it from now on.
 * True if it has shown that it answers this container, which then is to pay; a thread that has not
 * pays for itself. Once shown that holds for as long as the container is in the set: much of what
 * is asked of a display server has no answer.
 */
an_inline bool an_binding_ask(struct an_binding *b, u32 container, u64 now_ns)
{
	an_binding_bind(b, container, now_ns);
	return an_binding_answers(b);
}

/* The thread has answered the container that it is bound to. */
an_inline void an_binding_answer(struct an_binding *b)
{
	struct an_bound *client = an_bound(b, b->now);

	if (b->count)
		client->answers += client->answers < AN_BINDING_ANSWERS;
}

/* Another thread of its process has shown that it answers the one that it is bound to. */
an_inline void an_binding_vouch(struct an_binding *b)
{
	if (b->count)
		an_bound(b, b->now)->answers = AN_BINDING_ANSWERS;
}

/* It has run for so long since the last such call or an_binding_bind(). Returns who pays, or 0. */
an_inline u32 an_binding_charge(struct an_binding *b, u64 ran_ns, u64 now_ns)
{
	struct an_bound *payer;

	an_binding_prune(b, now_ns);
	if (!b->count)
		return 0;
	payer = an_bound(b, b->now);
	if (ran_ns > AN_BINDING_USED_MAX_NS - payer->used_ns)
		ran_ns = AN_BINDING_USED_MAX_NS - payer->used_ns;
	payer->used_ns += ran_ns;
	return payer->container;
}

/* The set becomes the container it is bound to. */
an_inline void an_binding_reset(struct an_binding *b, u64 now_ns)
{
	if (b->count)
		an_binding_init(b, an_binding_payer(b), now_ns);
}

/*
 * A container is no more. A thread bound to it is bound to instead afterwards, or, if that is 0, to
 * nobody; it must then be bound again before its set is asked for anything.
 */
an_inline void an_binding_forget(struct an_binding *b, u32 container, u32 instead, u64 now_ns)
{
	u32 i;

	if (an_binding_payer(b) == container) {
		if (!instead) {
			b->count = b->now = 0;
			return;
		}
		an_binding_bind(b, instead, now_ns);
	}
	i = an_binding_find(b, container);
	if (i < b->count)
		an_binding_drop(b, i);
}

/*
 * How much of the thread's recent work was for the i-th of its set [1/1024]; equal parts if there
 * was none. The parts of a set add up to 1024 or, by rounding, up to three less.
 */
an_inline u32 an_binding_share(struct an_binding *b, u32 i)
{
	u64 total_ns = 0;
	u32 at = 0;

	if (i >= b->count)
		return 0;
	an_while(at < b->count && at < AN_BINDINGS_MAX) {
		total_ns += an_bound(b, at)->used_ns;
		at++;
	}
	if (!total_ns)
		return AN_BINDING_WHOLE / b->count;
	return an_bound(b, i)->used_ns * AN_BINDING_WHOLE / total_ns;
}

#endif
