/* SPDX-License-Identifier: GPL-2.0 */
/*
 * DWCS as one reads it: every task looked at in every slot, no heap, no timer. For tasks of C = 1
 * that always want to run. What the core does is held against it, and it can do what the core must
 * not: rule b as it is printed.
 */
#ifndef ANDANTE_TESTS_DWCS_REFERENCE_H
#define ANDANTE_TESTS_DWCS_REFERENCE_H

#include "slots.h"

#define REFERENCE_TASKS 8

struct reference_task {
	u64 period, deadline; /* slots */
	u32 x, y;	      /* original */
	u32 now_x, now_y;
	bool work_conserving, served;
	u32 misses, violations;
};

struct reference {
	struct reference_task task[REFERENCE_TASKS];
	u32 count;
	u32 options;	   /* enum an_contract_option */
	bool literal_else; /* "else if (x' = 0)" of rule b bound to the if before it */
};

static inline void reference_begin(struct reference *r, const struct slot_task *list, u32 count,
				   u32 options)
{
	r->count = count;
	r->options = options;
	r->literal_else = false;
	for (u32 i = 0; i < count; i++)
		r->task[i] = (struct reference_task){
			.period = list[i].period,
			.deadline = list[i].period,
			.x = list[i].x,
			.y = list[i].y,
			.now_x = list[i].x,
			.now_y = list[i].y,
			.work_conserving = list[i].flags & AN_WORK_CONSERVING,
		};
}

static inline void reference_reset(struct reference_task *t)
{
	t->now_x = t->x;
	t->now_y = t->y;
}

static inline void reference_rule_a(struct reference_task *t)
{
	if (t->now_y > t->now_x) {
		t->now_y--;
	} else if (t->now_x > 0) {
		t->now_x--;
		t->now_y--;
	}
	if (t->now_x == 0 && t->now_y == 0)
		reference_reset(t);
}

static inline void reference_rule_b(const struct reference *r, struct reference_task *t)
{
	bool tolerated = t->now_x > 0;

	t->misses++;
	t->violations += !tolerated;
	if (tolerated) {
		t->now_x--;
		t->now_y--;
	}
	if (tolerated || r->literal_else) {
		if (t->now_x == 0 && t->now_y == 0)
			reference_reset(t);
		else if (r->literal_else && t->now_x == 0)
			t->now_y++;
	} else if (t->y) {
		t->now_y++;
	}
}

/* -1, 0, 1: a before, equal to, after b; on integers, as x1 y2 against x2 y1. */
static inline int reference_compare(u64 a, u64 b)
{
	return a < b ? -1 : a > b;
}

/* Items 2 to 4 of Table 1. */
static inline int reference_window(u32 ax, u32 ay, u32 bx, u32 by)
{
	if ((u64)ax * by != (u64)bx * ay)
		return reference_compare((u64)ax * by, (u64)bx * ay);
	if (ax == 0 && bx == 0)
		return -reference_compare(ay, by);
	return ax && bx ? reference_compare(ax, bx) : ax ? 1 : -1;
}

static inline int reference_order(const struct reference *r, const struct reference_task *a,
				  const struct reference_task *b, bool extra)
{
	int deadline = extra ? 0 : reference_compare(a->deadline, b->deadline);
	int window = reference_window(a->now_x, a->now_y, b->now_x, b->now_y);
	bool same_fraction = (u64)a->now_x * b->now_y == (u64)b->now_x * a->now_y;

	if (!(r->options & AN_WINDOW_FIRST))
		return deadline ? deadline : window;
	if (same_fraction && a->now_x && b->now_x)
		return deadline ? deadline : window;
	return window ? window : deadline;
}

static inline bool reference_before(const struct reference *r, u32 a, u32 b, bool extra)
{
	const struct reference_task *p = &r->task[a], *q = &r->task[b];
	int order = reference_order(r, p, q, extra);

	if (!order && !(r->options & AN_TIE_INDEX))
		order = reference_window(p->x, p->y, q->x, q->y);
	return order ? order < 0 : a < b;
}

/* One slot. Returns which task ran, counted from 1; 0: best effort. */
static inline u32 reference_slot(struct reference *r, u64 slot)
{
	u32 first = 0, extra = 0;

	for (u32 i = 0; i < r->count; i++) {
		struct reference_task *t = &r->task[i];

		while (t->deadline <= slot) {
			if (!t->served)
				reference_rule_b(r, t);
			t->deadline += t->period;
			t->served = false;
		}
	}
	for (u32 i = 0; i < r->count; i++) {
		struct reference_task *t = &r->task[i];

		if (!t->served && (!first || reference_before(r, i, first - 1, false)))
			first = i + 1;
		if (t->work_conserving && (!extra || reference_before(r, i, extra - 1, true)))
			extra = i + 1;
	}
	if (first) {
		r->task[first - 1].served = true;
		reference_rule_a(&r->task[first - 1]);
	}
	return first ? first : extra;
}

static inline u32 reference_violations(const struct reference *r)
{
	u32 sum = 0;

	for (u32 i = 0; i < r->count; i++)
		sum += r->task[i].violations;
	return sum;
}

#endif
