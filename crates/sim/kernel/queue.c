/* SPDX-License-Identifier: GPL-2.0 */
/*
 * DSQs: dispatch_enqueue(), dispatch_dequeue(), consume_dispatch_q(), scx_dsq_move() and the
 * iterators of kernel/sched/ext/ext.c. A queue is an array, so that an iterator is a gap in it.
 */
#include "model.h"

#include <string.h>

/* ---- which queues there are: by number, in an open hash ---- */

static struct dsq **table;
static u32 tables, filled;

static u32 slot_of(u64 id)
{
	return (u32)((id * 0x9e3779b97f4a7c15ULL) >> 32) & (tables - 1);
}

static struct dsq **place_of_dsq(u64 id)
{
	u32 slot = slot_of(id);

	while (table[slot] && table[slot]->id != id)
		slot = (slot + 1) & (tables - 1);
	return &table[slot];
}

static void table_grows(void)
{
	struct dsq **old = table;
	u32 count = tables;

	tables = tables ? tables * 2 : 1024;
	table = calloc(tables, sizeof(*table));
	model_assert(table);
	for (u32 i = 0; i < count; i++)
		if (old[i])
			*place_of_dsq(old[i]->id) = old[i];
	free(old);
}

struct dsq *dsq_find(u64 id)
{
	return tables ? *place_of_dsq(id) : NULL;
}

s32 scx_bpf_create_dsq(u64 id, s32 node)
{
	struct dsq *dsq;

	(void)node;
	kernel_call();
	if (dsq_find(id))
		return -17; /* EEXIST */
	if (filled * 2 >= tables)
		table_grows();
	dsq = calloc(1, sizeof(*dsq));
	model_assert(dsq);
	dsq->id = id;
	*place_of_dsq(id) = dsq;
	filled++;
	return 0;
}

/* With their scheduler. */
void dsqs_reset(void)
{
	for (u32 slot = 0; slot < tables; slot++) {
		if (!table[slot])
			continue;
		model_assert(!table[slot]->count && !table[slot]->iterators);
		free(table[slot]->task);
		free(table[slot]);
		table[slot] = NULL;
	}
	filled = 0;
}

s32 scx_bpf_dsq_nr_queued(u64 id)
{
	struct dsq *dsq = dsq_find(id);
	s32 queued;

	kernel_call();
	queued = dsq ? (s32)dsq->count : -2 /* ENOENT */;
	kernel_call(); /* what it says may be old by the time that it is looked at */
	return queued;
}

/* ---- tasks in a queue ---- */

static void insert_at(struct dsq *dsq, struct task_struct *p, u32 at)
{
	struct bpf_iter_scx_dsq *it;

	model_room_for(dsq->task, dsq->count, dsq->room);
	memmove(&dsq->task[at + 1], &dsq->task[at], (dsq->count - at) * sizeof(p));
	dsq->task[at] = p;
	dsq->count++;
	for (it = dsq->iterators; it; it = it->next)
		it->gap += at <= it->gap;
}

/* Where a task of this vtime goes: behind those of the same. */
static u32 place_by_vtime(const struct dsq *dsq, u64 vtime)
{
	u32 low = 0, high = dsq->count;

	while (low < high) {
		u32 middle = (low + high) / 2;

		if ((s64)(vtime - dsq->task[middle]->scx.dsq_vtime) < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static u32 index_in(const struct dsq *dsq, const struct task_struct *p)
{
	u32 at = 0;

	if (dsq->by_vtime && dsq->count > 16) {
		/* Those of the same vtime lie before the place where another one would go. */
		at = place_by_vtime(dsq, p->scx.dsq_vtime);
		while (at && dsq->task[at - 1] != p &&
		       dsq->task[at - 1]->scx.dsq_vtime == p->scx.dsq_vtime)
			at--;
		if (at && dsq->task[at - 1] == p)
			return at - 1;
		at = 0; /* its vtime was changed while it was queued */
	}
	while (at < dsq->count && dsq->task[at] != p)
		at++;
	model_assert(at < dsq->count);
	return at;
}

/* dispatch_enqueue(), but for what follows on a local queue. */
void dsq_insert(struct dsq *dsq, struct task_struct *p, u64 flags)
{
	bool by_vtime = flags & SCX_ENQ_DSQ_PRIQ;

	model_assert(!p->scx.dsq);
	model_assert(!by_vtime || !dsq->local);
	if (!dsq->count)
		dsq->by_vtime = by_vtime;
	if (dsq->by_vtime != by_vtime)
		model_ejects("runtime error", "a DSQ is ordered by vtime, or first in, first out");
	if (by_vtime)
		insert_at(dsq, p, place_by_vtime(dsq, p->scx.dsq_vtime));
	else
		insert_at(dsq, p, flags & (SCX_ENQ_HEAD | SCX_ENQ_PREEMPT) ? 0 : dsq->count);
	p->scx.dsq = dsq;
	p->scx.dsq_seq = ++dsq->seq;
}

void dsq_remove(struct dsq *dsq, struct task_struct *p)
{
	u32 at = index_in(dsq, p);
	struct bpf_iter_scx_dsq *it;

	dsq->count--;
	memmove(&dsq->task[at], &dsq->task[at + 1], (dsq->count - at) * sizeof(p));
	for (it = dsq->iterators; it; it = it->next)
		it->gap -= at < it->gap;
	p->scx.dsq = NULL;
}

/* local_dsq_post_enq() */
void dsq_local_post_insert(struct rq *rq, struct task_struct *p, u64 flags)
{
	if (p->class < rq->next_class)
		wakeup_preempt(rq, p);
	if (rq->in_balance)
		return;
	if (flags & SCX_ENQ_PREEMPT && p != rq->curr && rq->curr->class == CLASS_EXT) {
		rq->curr->scx.slice = 0;
		resched_curr(rq);
	}
}

/* ---- from queue to queue ---- */

static void into_local(struct task_struct *p, struct rq *to, u64 flags)
{
	dsq_insert(&to->local, p, flags);
	dsq_local_post_insert(to, p, flags);
}

/*
 * consume_remote_task(): this CPU, which holds its own run queue's lock, has unlinked the task and
 * takes the lock of the task's; meanwhile somebody else may have been quicker. False: lost.
 */
static bool take_over(struct task_struct *p, struct rq *to, u64 flags)
{
	struct rq *from = task_rq(p);
	bool ours;

	p->holding_cpu = (s32)m.cpu;
	p->in_transit = true;
	rq_unlock(to);
	rq_lock(from);
	ours = p->holding_cpu == (s32)m.cpu && from == task_rq(p);
	p->in_transit = ours;
	if (ours) {
		p->holding_cpu = -1;
		update_rq_clock(from); /* deactivate_task() */
		from->ext_tasks--;
		set_task_cpu(p, to->cpu);
		p->migrating = true;
	}
	rq_unlock(from);
	/* switch_rq_lock() does not unpin: what scx_bpf_now() reads there stands still until the
	 * run queue's lock is taken and left in the usual way. */
	from->clock_valid |= ours;
	rq_lock(to);
	if (!ours)
		return false;
	to->ext_tasks++;
	p->migrating = p->in_transit = false;
	into_local(p, to, flags);
	return true;
}

/* task_can_run_on_remote_rq(), and on its own */
static bool may_move_to(const struct task_struct *p, const struct rq *rq)
{
	if (p->cpu == rq->cpu)
		return true;
	return !p->migration_disabled && task_allowed(p, rq->cpu) && rq->online;
}

/* consume_dispatch_q(): the first of the queue that may run here. */
bool dsq_consume(struct rq *rq, struct dsq *dsq)
{
	for (u32 at = 0; at < dsq->count; at++) {
		struct task_struct *p = dsq->task[at];

		if (!may_move_to(p, rq))
			continue;
		dsq_remove(dsq, p);
		if (p->cpu == rq->cpu) {
			into_local(p, rq, 0);
			return true;
		}
		if (take_over(p, rq, 0))
			return true;
		at = ~0U; /* from the beginning */
	}
	return false;
}

bool an_kmove_to_local(u64 id)
{
	struct dsq *dsq = dsq_find(id);

	kernel_call();
	model_assert(this_rq()->dispatching);
	if (!dsq) {
		model_ejects("runtime error", "invalid DSQ ID");
		return false;
	}
	return dsq_consume(this_rq(), dsq);
}

/* scx_dsq_move(): not where somebody else has been quicker, or it was queued after the iterator
 * was made. The task's run queue is locked meanwhile, in the place of this CPU's in dispatch. */
static bool dsq_move(struct bpf_iter_scx_dsq *it, struct task_struct *p, u64 id, u64 flags)
{
	struct rq *own = this_rq()->dispatching ? this_rq() : NULL, *rq;
	bool lost;

	kernel_call();
	model_assert(id != SCX_DSQ_LOCAL);
	if (own)
		rq_unlock(own);
	rq = task_rq_lock(p);
	lost = !it->dsq || p->scx.dsq != it->dsq || (s64)(p->scx.dsq_seq - it->seq) > 0;
	if (!lost) {
		struct dsq *to = dsq_find(id);

		model_assert(to);
		dsq_remove(it->dsq, p);
		if (it->has_vtime)
			p->scx.dsq_vtime = it->vtime;
		dsq_insert(to, p, flags);
	}
	rq_unlock(rq);
	if (own)
		rq_lock(own);
	it->has_vtime = false;
	return !lost;
}

bool scx_bpf_dsq_move(struct bpf_iter_scx_dsq *it, struct task_struct *p, u64 dsq, u64 flags)
{
	return dsq_move(it, p, dsq, flags);
}

bool scx_bpf_dsq_move_vtime(struct bpf_iter_scx_dsq *it, struct task_struct *p, u64 dsq, u64 flags)
{
	return dsq_move(it, p, dsq, flags | SCX_ENQ_DSQ_PRIQ);
}

void scx_bpf_dsq_move_set_vtime(struct bpf_iter_scx_dsq *it, u64 vtime)
{
	it->vtime = vtime;
	it->has_vtime = true;
}

/* ---- iterators ---- */

int bpf_iter_scx_dsq_new(struct bpf_iter_scx_dsq *it, u64 id, u64 flags)
{
	struct dsq *dsq = dsq_find(id);

	kernel_call();
	*it = (struct bpf_iter_scx_dsq){.dsq = dsq, .flags = flags};
	if (!dsq)
		return -2; /* ENOENT */
	it->seq = dsq->seq;
	it->gap = flags & SCX_DSQ_ITER_REV ? dsq->count : 0;
	it->next = dsq->iterators;
	dsq->iterators = it;
	return 0;
}

struct task_struct *bpf_iter_scx_dsq_next(struct bpf_iter_scx_dsq *it)
{
	struct dsq *dsq = it->dsq;

	kernel_call();
	while (dsq && (it->flags & SCX_DSQ_ITER_REV ? it->gap > 0 : it->gap < dsq->count)) {
		u32 at = it->flags & SCX_DSQ_ITER_REV ? --it->gap : it->gap++;

		if ((s64)(dsq->task[at]->scx.dsq_seq - it->seq) <= 0)
			return dsq->task[at];
	}
	return NULL;
}

void bpf_iter_scx_dsq_destroy(struct bpf_iter_scx_dsq *it)
{
	struct bpf_iter_scx_dsq **at;

	kernel_call();
	if (!it->dsq)
		return;
	for (at = &it->dsq->iterators; *at != it; at = &(*at)->next)
		;
	*at = it->next;
	it->dsq = NULL;
}
