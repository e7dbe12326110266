/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The historical policies in the kernel: what the papers measured, on a machine of today.
 *
 * One policy of core/policy.h orders all tasks: no classes, no contracts, one queue, one lock. It
 * is for experiments on a few CPUs. The core decides, as in the simulator
 * (crates/sim/src/hierarchy.rs makes the same calls for a tree of one class); this is the shell
 * around it:
 *
 *      runnable    the task wakes: its key
 *      enqueue     it goes into the queue, a DSQ of the kernel's ordered by key; it takes an idle
 *                  CPU, or one that the policy takes away from another task
 *      dispatch    a CPU wants work: whoever comes first, the task that ran included
 *      running     a task is put into service
 *      stopping    it leaves: for the queue, or to sleep
 *      tick        the clock of the time, 100 Hz: it ends quanta. sched_ext's own slices never end
 *      age         once a second, where waiting changes a key
 *
 * The kernel's own threads come before everybody and have no key: the rest of the system waits for
 * them, and a real-time task of SVR4 that never sleeps would stop it for good. Everybody else can
 * be starved as in the original; the kernel takes the scheduler out of charge when one of them has
 * not run for timeout_ms.
 *
 * Tasks have a slot in a table of fixed size, as in their time: a fork beyond it fails (EAGAIN).
 * Who waits, sleeps or is served is written under the lock; who is queued is the kernel's
 * knowledge.
 */
#include "historical.h"

char _license[] SEC("license") = "GPL";

/* ---- a task is runnable ---- */

/* How many CPUs are looked at for one that the task may take. */
#define WAKE_SCAN_CPUS 16

/*
 * Takes a CPU for a task that waits: an idle one, or of those whose task must make way the one
 * where that matters least.
 */
static __noinline void find_cpu(struct task_struct *p, u32 slot)
{
	s32 cpu = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0), victim = -1;
	u32 left = nr_cpus < WAKE_SCAN_CPUS ? nr_cpus : WAKE_SCAN_CPUS, weakest = AN_NONE;

	if (cpu >= 0) {
		scx_bpf_kick_cpu(cpu, an_kconst(scx_kick_flags, SCX_KICK_IDLE));
		return;
	}
	cpu = an_ktask_cpu(p);
	an_while(left) {
		u32 serving = cpu_at(cpu)->slot;

		if (serving && bpf_cpumask_test_cpu(cpu, p->cpus_ptr)) {
			bool takes, weaker = true;

			bpf_spin_lock(&policy_lock);
			takes = an_policy_preempts(&policy, &slot_at(slot)->member,
						   &slot_at(serving)->member);
			if (weakest)
				weaker = an_policy_preempts(&policy, &slot_at(weakest)->member,
							    &slot_at(serving)->member);
			bpf_spin_unlock(&policy_lock);
			if (takes && weaker) {
				weakest = serving;
				victim = cpu;
			}
		}
		if (++cpu >= (s32)nr_cpus)
			cpu = 0;
		left = an_opaque(left - 1);
	}
	if (victim < 0)
		return;
	an_kpreempt(victim);
}

/* A thread of the kernel, or one whose slot is gone: before everybody. */
static __always_inline void enqueue_kernel(struct task_struct *p, u64 enq_flags)
{
	s32 cpu;

	if (p->nr_cpus_allowed == 1) {
		an_kqueue_local(p, ENDLESS, enq_flags);
		return;
	}
	scx_bpf_dsq_insert(p, QUEUE_KERNEL, ENDLESS, enq_flags);
	cpu = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
	if (cpu >= 0)
		scx_bpf_kick_cpu(cpu, an_kconst(scx_kick_flags, SCX_KICK_IDLE));
	else
		an_kpreempt(an_ktask_cpu(p));
}

/*
 * Sets the key of a task that wants to run. Without a sleep before it, as when its nice value
 * changes, it comes back where it was.
 */
static __always_inline void slot_wants(struct slot *s, bool woken)
{
	if (s->standing == WAITING)
		return;
	if (woken || s->standing == NEW)
		an_policy_wake(&policy, &s->member);
	else
		an_policy_requeue(&policy, &s->member, AN_PREEMPTED);
	s->standing = WAITING;
}

SEC("struct_ops/historical_runnable")
void BPF_PROG(historical_runnable, struct task_struct *p, u64 enq_flags)
{
	bool woken = enq_flags & an_kconst(scx_enq_flags, SCX_ENQ_WAKEUP);
	u32 slot = slot_of(p);

	if (!slot)
		return;
	bpf_spin_lock(&policy_lock);
	slot_wants(slot_at(slot), woken);
	bpf_spin_unlock(&policy_lock);
}

SEC("struct_ops/historical_enqueue")
void BPF_PROG(historical_enqueue, struct task_struct *p, u64 enq_flags)
{
	u32 slot = slot_of(p);
	struct slot *s = slot_at(slot);
	u64 key;

	if (cpu_at(bpf_get_smp_processor_id())->gone) {
		an_kqueue_local(p, ENDLESS, enq_flags);
		return;
	}
	if (!slot) {
		enqueue_kernel(p, enq_flags);
		return;
	}
	bpf_spin_lock(&policy_lock);
	slot_wants(s, false);
	s->moved = 0;
	key = queue_key(s);
	bpf_spin_unlock(&policy_lock);
	an_kqueue(p, QUEUE_USERS, ENDLESS, key, enq_flags);
	find_cpu(p, slot);
}

/* ---- a CPU wants work ---- */

/* How far into the queue to look for a task that may run on a certain CPU. */
#define QUEUE_LOOK 32

/* Does a task that may run on this CPU come before one with this key? */
static __noinline bool other_first(u32 cpu, u64 key)
{
	struct bpf_iter_scx_dsq it;
	struct task_struct *p;
	u32 looks = QUEUE_LOOK;
	bool first = false;

	bpf_iter_scx_dsq_new(&it, QUEUE_USERS, 0);
	an_while(looks) {
		p = bpf_iter_scx_dsq_next(&it);
		if (!p)
			break;
		if (nr_cpus == 1 || bpf_cpumask_test_cpu(cpu, p->cpus_ptr)) {
			first = (s64)(p->scx.dsq_vtime - key) < 0;
			break;
		}
		looks = an_opaque(looks - 1);
	}
	bpf_iter_scx_dsq_destroy(&it);
	return first;
}

/* The task in service is charged. Under the lock. */
static __always_inline void settle(struct cpu *c, struct slot *s, u64 now)
{
	an_policy_used(&policy, &s->member, now - c->since_ns);
	c->since_ns = now;
}

/* The task leaves service and goes on wanting to run. Under the lock. */
static __always_inline void requeue(struct cpu *c, struct slot *s, u64 now)
{
	settle(c, s, now);
	an_policy_requeue(&policy, &s->member, c->over ? AN_USED_UP : AN_PREEMPTED);
	s->standing = WAITING;
}

/* The task is put into service. Under the lock. */
static __always_inline void serve(struct cpu *c, struct slot *s, u64 now)
{
	if (s->standing == WAITING)
		an_policy_serve(&policy, &s->member);
	s->standing = SERVED;
	s->moved = 0;
	c->since_ns = now;
	c->over = 0;
}

SEC("struct_ops/historical_dispatch")
void BPF_PROG(historical_dispatch, s32 cpu, struct task_struct *prev)
{
	struct cpu *c = cpu_at(cpu);
	u32 slot = c->slot;
	struct slot *s = slot_at(slot);
	u64 key, now;

	c->ousted = false;
	if (an_kmove_to_local(QUEUE_KERNEL))
		return;
	if (!slot || !prev || !(prev->scx.flags & an_kconst(scx_ent_flags, SCX_TASK_QUEUED))) {
		an_kmove_to_local(QUEUE_USERS);
		return;
	}
	now = an_kclock_ns();
	bpf_spin_lock(&policy_lock);
	requeue(c, s, now);
	key = queue_key(s);
	bpf_spin_unlock(&policy_lock);
	if (other_first(cpu, key) && an_kmove_to_local(QUEUE_USERS)) {
		c->slot = AN_NONE; /* the kernel will say stopping and enqueue */
		return;
	}
	bpf_spin_lock(&policy_lock);
	serve(c, s, now);
	bpf_spin_unlock(&policy_lock);
	an_kset_slice(prev, ENDLESS);
}

/* ---- a task starts and stops ---- */

SEC("struct_ops/historical_running")
void BPF_PROG(historical_running, struct task_struct *p)
{
	struct cpu *c = cpu_at(an_ktask_cpu(p));
	u32 slot = slot_of(p);
	struct slot *s = slot_at(slot);
	u64 now = an_kclock_ns();

	c->slot = AN_NONE;
	if (!slot)
		return;
	bpf_spin_lock(&policy_lock);
	serve(c, s, now);
	c->slot = slot;
	bpf_spin_unlock(&policy_lock);
	if (c->ousted) { /* the kernel goes on with it and asks nobody: others may come first now */
		c->ousted = false;
		an_kpreempt(an_ktask_cpu(p));
	} else if (p->scx.slice != ENDLESS)
		an_kset_slice(p, ENDLESS);
}

SEC("struct_ops/historical_stopping")
void BPF_PROG(historical_stopping, struct task_struct *p, bool runnable)
{
	struct cpu *c = cpu_at(an_ktask_cpu(p));
	u32 slot = c->slot;
	struct slot *s = slot_at(slot);
	u64 now = an_kclock_ns();

	if (!slot)
		return; /* a thread of the kernel, or dispatch has settled it */
	bpf_spin_lock(&policy_lock);
	if (runnable) {
		/*
		 * Not if its slice has ended: tasks that exit are queued by the kernel itself, and
		 * two of them would oust each other for ever.
		 */
		c->ousted = p->scx.slice > 0;
		requeue(c, s, now);
	} else {
		settle(c, s, now);
		an_policy_block(&policy, &s->member);
		s->standing = ASLEEP;
	}
	c->slot = AN_NONE;
	bpf_spin_unlock(&policy_lock);
}

/* ---- the clocks ---- */

static __always_inline u64 clock_period_ns(void)
{
	u64 tick_ns = an_policy_tick_ns(&policy);

	return tick_ns ? tick_ns : CLOCK_NS;
}

/* The next multiple of the period, so that all CPUs tick at the same instants. */
static __always_inline void clock_start(struct clock *clock, u64 now, u64 period_ns)
{
	bpf_timer_start(&clock->timer, period_ns - now % period_ns, 0);
}

static int tick(void *map, u32 *key, struct clock *clock)
{
	s32 cpu = *key;
	struct cpu *c = cpu_at(cpu);
	bool over = false;
	u64 now = an_kclock_ns();

	bpf_spin_lock(&policy_lock);
	if (c->slot) {
		struct slot *s = slot_at(c->slot);

		settle(c, s, now);
		over = an_policy_tick(&policy, &s->member) ||
		       (policy_kind == AN_RR && !s->member.left_ns);
		c->over |= over;
	}
	bpf_spin_unlock(&policy_lock);
	clock_start(clock, now, clock_period_ns());
	if (over)
		an_kpreempt(cpu);
	return 0;
}

/* Queues those whose keys have changed anew, as if they had woken. */
static __noinline int requeue_moved(void)
{
	struct bpf_iter_scx_dsq it;

	bpf_iter_scx_dsq_new(&it, QUEUE_USERS, 0);
	an_while(true) {
		struct task_struct *p = bpf_iter_scx_dsq_next(&it);
		struct slot *s;
		u32 slot;

		if (!p)
			break;
		slot = slot_of(p);
		s = slot_at(slot);
		if (!slot || !s->moved)
			continue;
		s->moved = 0;
		scx_bpf_dsq_move_set_vtime(&it, queue_key(s));
		if (scx_bpf_dsq_move_vtime(&it, p, QUEUE_USERS, 0))
			find_cpu(p, slot);
	}
	bpf_iter_scx_dsq_destroy(&it);
	return 0;
}

static int age(void *map, u32 *key, struct clock *clock)
{
	u64 now = an_kclock_ns();
	u32 slot = 1;
	bool moved = false;

	an_while(slot < slots_used) {
		struct slot *s = slot_at(slot);

		bpf_spin_lock(&policy_lock);
		if (s->standing && an_policy_age(&policy, &s->member, s->standing == WAITING))
			moved = s->moved = 1;
		bpf_spin_unlock(&policy_lock);
		slot = an_opaque(slot + 1);
	}
	clock_start(clock, now, an_policy_age_ns(&policy) ?: 1);
	if (moved)
		requeue_moved();
	return 0;
}

/* ---- tasks come and go ---- */

SEC("struct_ops.s/historical_init_task")
s32 BPF_PROG(historical_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	struct task_struct *parent = bpf_get_current_task_btf();
	u32 *slot, *from = NULL, index, forked_by = AN_NONE;
	s32 nice = p->static_prio - AN_NICE_0_PRIO;
	struct slot *s;

	if (p->flags & PF_KTHREAD)
		return 0;
	slot = bpf_task_storage_get(&task_slots, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!slot)
		return -12; /* ENOMEM */
	if (args->fork)
		from = bpf_task_storage_get(&task_slots, parent, 0, 0);
	if (from)
		forked_by = *from;
	bpf_spin_lock(&policy_lock);
	index = slot_free;
	if (index)
		slot_free = slot_at(index)->next;
	else if (slots_used < MAX_SLOTS)
		index = slots_used++;
	s = slot_at(index);
	if (index) {
		s->standing = NEW;
		s->moved = 0;
		s->pid = p->pid;
		member_wants(&s->member, nice);
		an_policy_join(&policy, &s->member);
		if (forked_by)
			an_policy_fork(&policy, &slot_at(forked_by)->member, &s->member);
	}
	bpf_spin_unlock(&policy_lock);
	*slot = index;
	return index ? 0 : -11; /* EAGAIN */
}

SEC("struct_ops/historical_exit_task")
void BPF_PROG(historical_exit_task, struct task_struct *p, struct scx_exit_task_args *args)
{
	u32 *slot = bpf_task_storage_get(&task_slots, p, 0, 0);
	u32 index = slot ? *slot : AN_NONE;

	if (!index)
		return;
	*slot = AN_NONE;
	bpf_spin_lock(&policy_lock);
	slot_at(index)->standing = FREE;
	slot_at(index)->next = slot_free;
	slot_free = index;
	bpf_spin_unlock(&policy_lock);
}

/* Its nice value has changed. */
SEC("struct_ops/historical_set_weight")
void BPF_PROG(historical_set_weight, struct task_struct *p, u32 weight)
{
	s32 nice = p->static_prio - AN_NICE_0_PRIO;
	u32 slot = slot_of(p);
	struct slot *s = slot_at(slot);

	if (!slot)
		return;
	bpf_spin_lock(&policy_lock);
	if (s->member.nice != nice) {
		member_wants(&s->member, nice);
		an_policy_change(&policy, &s->member);
	}
	bpf_spin_unlock(&policy_lock);
}

/* ---- the scheduler as a whole ---- */

SEC("struct_ops/historical_cpu_online")
void BPF_PROG(historical_cpu_online, s32 cpu)
{
	cpu_at(cpu)->gone = false;
}

SEC("struct_ops/historical_cpu_offline")
void BPF_PROG(historical_cpu_offline, s32 cpu)
{
	cpu_at(cpu)->slot = AN_NONE;
	cpu_at(cpu)->gone = true;
}

/* Sets up the clock of this number. */
static __always_inline struct clock *clock_init(u32 key)
{
	struct clock *clock = bpf_map_lookup_elem(&clocks, &key);

	if (clock)
		bpf_timer_init(&clock->timer, &clocks, CLOCK_MONOTONIC);
	return clock;
}

SEC("struct_ops.s/historical_init")
s32 BPF_PROG(historical_init)
{
	struct clock *clock;
	u64 now = an_kclock_ns();
	u32 cpu = 0;
	s32 err;

	an_policy_init(&policy, policy_kind, quantum_ns);
	err = scx_bpf_create_dsq(QUEUE_KERNEL, -1);
	if (err)
		return err;
	err = scx_bpf_create_dsq(QUEUE_USERS, -1);
	if (err)
		return err;
	an_while(policy_kind != AN_FIFO && cpu < nr_cpus && cpu < AN_MAX_CPUS) {
		clock = clock_init(cpu);
		if (!clock || bpf_timer_set_callback(&clock->timer, tick))
			return -22; /* EINVAL */
		clock_start(clock, now, clock_period_ns());
		cpu = an_opaque(cpu + 1);
	}
	if (!an_policy_age_ns(&policy))
		return 0;
	clock = clock_init(AN_MAX_CPUS);
	if (!clock || bpf_timer_set_callback(&clock->timer, age))
		return -22;
	clock_start(clock, now, an_policy_age_ns(&policy) ?: 1);
	return 0;
}

SEC("struct_ops.s/historical_exit")
void BPF_PROG(historical_exit, struct scx_exit_info *info)
{
	exit_note(info);
}

/* User space puts the policy's name in the place of this one. */
SEC(".struct_ops.link")
struct sched_ext_ops historical_ops = {
	.runnable = (void *)historical_runnable,
	.enqueue = (void *)historical_enqueue,
	.dispatch = (void *)historical_dispatch,
	.running = (void *)historical_running,
	.stopping = (void *)historical_stopping,
	.init_task = (void *)historical_init_task,
	.exit_task = (void *)historical_exit_task,
	.set_weight = (void *)historical_set_weight,
	.cpu_online = (void *)historical_cpu_online,
	.cpu_offline = (void *)historical_cpu_offline,
	.init = (void *)historical_init,
	.exit = (void *)historical_exit,
	.timeout_ms = 30000, /* the longest that there is */
	.name = "andante_historical",
};
