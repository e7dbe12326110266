/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The tree of resource containers, and the calls that shape it. containers.h has the rules by which
 * it is run, the sources and the shell's contract. Containers are kept in one array and refer to
 * each other by index; index 0 is nobody.
 */
#ifndef ANDANTE_CORE_CONTAINER_TREE_H
#define ANDANTE_CORE_CONTAINER_TREE_H

#include "../tag.h"

#define AN_CONTAINERS_MAX 64	  /* power of two */
#define AN_CONTAINERS_DEPTH 8	  /* levels below the root */
#define AN_CONTAINER_WHOLE 10000u /* fixed shares are in 1/10000 of the parent's */
#define AN_CONTAINER_WEIGHT_MAX 10000u

#define AN_CONTAINER_NONE 0u
#define AN_CONTAINER_ROOT 1u   /* has everything */
#define AN_CONTAINER_SYSTEM 2u /* pays for what is nobody's; outside the tree, never picked */

#define AN_CONTAINERS_ROUND_NS 50000000ULL /* RCMAXCPU of [2], see above */
#define AN_CONTAINERS_ROUND_MAX_NS 10000000000ULL
#define AN_CONTAINERS_TICK_NS 10000000ULL

/*
 * Longest walk of one pick. A turn may end at once, if the container was charged from outside
 * before it; but that clears the account, so it happens once to each and the walk passes the tree
 * at most once more than there are containers.
 */
#define AN_CONTAINERS_STEPS ((AN_CONTAINERS_MAX + 2) * 2 * (AN_CONTAINERS_DEPTH + 1))

_Static_assert((AN_CONTAINERS_MAX & (AN_CONTAINERS_MAX - 1)) == 0, "an_bounded() masks");

enum an_container_kind {
	AN_CONTAINER_FIXED = 0,
	AN_CONTAINER_SHARED = 1,
	AN_CONTAINER_UNUSED = 2,
};

/* Children of one kind, in the order of their creation. */
struct an_container_list {
	u32 sum;   /* of their shares, runnable or not */
	u16 count; /* of children */
	u16 first;
	u16 last;
	u16 next; /* whose turn it is */
};

struct an_container {
	u64 allotted_ns; /* cpu_allotted: for this turn */
	u64 used_ns;	 /* cpu_used: of it */
	u64 rest_ns;	 /* what the shared children share in this turn */
	u64 total_ns;	 /* used by it and all below it since it was created */
	u32 share;	 /* fixed: [1/10000]; shared: weight */
	u32 tasks;	 /* of its own that want to run */
	u32 ready;	 /* children that are runnable, and 1 for its own tasks */
	u32 turn;	 /* counts the allotments it was given */
	u32 served_turn; /* the parent's turn in which it last had one */
	u32 rest_turn;	 /* its own turn that rest_ns is of */
	u16 parent;	 /* of the root: nobody */
	u16 sibling;	 /* the next in the list */
	u8 kind;	 /* enum an_container_kind */
	u8 depth;
	struct an_container_list children[2]; /* by kind */
};

struct an_containers {
	struct an_container all[AN_CONTAINERS_MAX];
	u64 round_ns;
	u64 tick_ns; /* 0: exact */
	u32 current; /* whose turn it is */
	u32 count;
};

an_inline struct an_container *an_container(struct an_containers *cs, u32 id)
{
	return &cs->all[an_bounded(id, AN_CONTAINERS_MAX)];
}

an_inline struct an_container_list *an_container_children(struct an_container *c, u32 kind)
{
	return &c->children[an_bounded(kind, 2)];
}

/* ---- the tree ---- */

an_inline void an_container_clear(struct an_container *c, u32 kind, u32 share)
{
	struct an_container_list none = {.sum = 0};

	c->allotted_ns = c->used_ns = c->rest_ns = c->total_ns = 0;
	c->share = share;
	c->tasks = c->ready = c->turn = c->served_turn = c->rest_turn = 0;
	c->parent = c->sibling = AN_CONTAINER_NONE;
	c->kind = kind;
	c->depth = 0;
	c->children[AN_CONTAINER_FIXED] = c->children[AN_CONTAINER_SHARED] = none;
}

/* round_ns 0: that of [2]. tick_ns: AN_CONTAINERS_TICK_NS as in [2], 0 for exact. */
an_outline void an_containers_init(struct an_containers *cs, u64 round_ns, u64 tick_ns)
{
	u32 i = 0;

	an_while(i < AN_CONTAINERS_MAX) {
		an_container_clear(an_container(cs, i), AN_CONTAINER_UNUSED, 0);
		i++;
	}
	cs->round_ns = round_ns ? round_ns : AN_CONTAINERS_ROUND_NS;
	if (cs->round_ns > AN_CONTAINERS_ROUND_MAX_NS)
		cs->round_ns = AN_CONTAINERS_ROUND_MAX_NS;
	cs->tick_ns = tick_ns;
	cs->current = AN_CONTAINER_ROOT;
	cs->count = 2;
	an_container(cs, AN_CONTAINER_ROOT)->kind = AN_CONTAINER_FIXED;
	an_container(cs, AN_CONTAINER_SYSTEM)->kind = AN_CONTAINER_FIXED;
	an_container(cs, AN_CONTAINER_ROOT)->share = AN_CONTAINER_WHOLE;
}

/* Is there one of this id, the root and the system's included? */
an_inline bool an_container_exists(struct an_containers *cs, u32 id)
{
	return id && id < AN_CONTAINERS_MAX && an_container(cs, id)->kind != AN_CONTAINER_UNUSED;
}

/* Does it, or anything below it, want to run? */
an_inline bool an_container_runnable(const struct an_container *c)
{
	return c->ready != 0;
}

/* Admission: may a child of this kind have this share, beside the others? */
an_inline bool an_container_admits(struct an_container *parent, u32 kind, u32 share)
{
	if (!share)
		return false;
	if (kind == AN_CONTAINER_SHARED)
		return share <= AN_CONTAINER_WEIGHT_MAX;
	return kind == AN_CONTAINER_FIXED && share <= AN_CONTAINER_WHOLE &&
	       share + an_container_children(parent, kind)->sum <= AN_CONTAINER_WHOLE;
}

/* Adds it to the end of its parent's list of its kind. */
an_inline void an_container_link(struct an_containers *cs, u32 id)
{
	struct an_container *c = an_container(cs, id);
	struct an_container *parent = an_container(cs, c->parent);
	struct an_container_list *l = an_container_children(parent, c->kind);

	c->sibling = AN_CONTAINER_NONE;
	if (l->last)
		an_container(cs, l->last)->sibling = id;
	else
		l->first = id;
	l->last = id;
	l->sum += c->share;
	l->count++;
	c->served_turn = parent->turn - 1; /* it may have its turn in this one yet */
}

an_inline void an_container_unlink(struct an_containers *cs, u32 id)
{
	struct an_container *c = an_container(cs, id);
	struct an_container_list *l = an_container_children(an_container(cs, c->parent), c->kind);
	u32 before = AN_CONTAINER_NONE, at = l->first;

	an_while(at != id && at) {
		before = at;
		at = an_container(cs, at)->sibling;
	}
	if (before)
		an_container(cs, before)->sibling = c->sibling;
	else
		l->first = c->sibling;
	if (l->last == id)
		l->last = before;
	if (l->next == id)
		l->next = c->sibling;
	l->sum -= c->share;
	l->count--;
}

/*
 * A container below parent. share: fixed 1 … 10000, in 1/10000 of the parent's; shared: a weight,
 * 1 … 10000. Returns its id, or AN_CONTAINER_NONE: the share is out of range or the fixed shares
 * would exceed the whole, there is no such parent, it is too deep, or there are too many.
 */
an_outline u32 an_containers_create(struct an_containers *cs, u32 parent, u32 kind, u32 share)
{
	struct an_container *p = an_container(cs, parent), *c;
	u32 id = AN_CONTAINER_SYSTEM + 1;

	if (!an_container_exists(cs, parent) || parent == AN_CONTAINER_SYSTEM ||
	    p->depth >= AN_CONTAINERS_DEPTH || !an_container_admits(p, kind, share))
		return AN_CONTAINER_NONE;
	an_while(id < AN_CONTAINERS_MAX && an_container_exists(cs, id))
		id++;
	if (id >= AN_CONTAINERS_MAX)
		return AN_CONTAINER_NONE;
	c = an_container(cs, id);
	an_container_clear(c, kind, share);
	c->parent = parent;
	c->depth = p->depth + 1;
	an_container_link(cs, id);
	cs->count++;
	return id;
}

/* Another share or kind, from its next turn on. False, and nothing changes, if not admitted. */
an_outline bool an_containers_set(struct an_containers *cs, u32 id, u32 kind, u32 share)
{
	struct an_container *c = an_container(cs, id);
	u32 served_turn = c->served_turn;
	bool admitted;

	if (!an_container_exists(cs, id) || id <= AN_CONTAINER_SYSTEM)
		return false;
	if (kind == c->kind) { /* keeps its place in the list */
		struct an_container_list *l =
			an_container_children(an_container(cs, c->parent), kind);

		l->sum -= c->share;
		admitted = an_container_admits(an_container(cs, c->parent), kind, share);
		if (admitted)
			c->share = share;
		l->sum += c->share;
		return admitted;
	}
	if (!an_container_admits(an_container(cs, c->parent), kind, share))
		return false;
	an_container_unlink(cs, id);
	c->kind = kind;
	c->share = share;
	an_container_link(cs, id);
	c->served_turn = served_turn;
	return true;
}

#endif
