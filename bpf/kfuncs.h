/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The kernel's constants and functions, as far as the scheduler uses them, with what changed
 * between 6.18 and 7.3 evened out. A suffix behind three underscores is ours: the loader drops it,
 * which is how two forms of one function are told apart.
 */
#ifndef ANDANTE_BPF_KFUNCS_H
#define ANDANTE_BPF_KFUNCS_H

#include "kernel.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

/*
 * The values written here only make the enumerators distinct; an_kconst() replaces them with the
 * running kernel's when the object is loaded.
 */
enum scx_dsq_id_flags {
	SCX_DSQ_LOCAL = 0x8000000000000002ULL,
};
enum scx_dsq_iter_flags {
	SCX_DSQ_ITER_REV = 1,
};
enum scx_ent_flags {
	SCX_TASK_QUEUED = 1,
};
enum scx_enq_flags {
	SCX_ENQ_WAKEUP = 1,
	SCX_ENQ_PREEMPT = 1ULL << 32,
};
enum scx_kick_flags {
	SCX_KICK_IDLE = 1,
	SCX_KICK_PREEMPT = 2,
};
enum pid_type {
	PIDTYPE_PID = 0, /* one thread */
};
enum cgroup_subsys_id {
	cpu_cgrp_id = 1,
};
#define an_kconst(type, name) bpf_core_enum_value(enum type, name)

void scx_bpf_dsq_insert(struct task_struct *p, u64 dsq, u64 slice, u64 flags) __ksym __weak;
bool __scx_bpf_dsq_insert_vtime(struct task_struct *p,
				struct scx_bpf_dsq_insert_vtime_args *args) __ksym __weak;
void scx_bpf_dsq_insert_vtime___five(struct task_struct *p, u64 dsq, u64 slice, u64 vtime,
				     u64 flags) __ksym __weak;
bool scx_bpf_dsq_move_to_local___one(u64 dsq) __ksym __weak;
bool scx_bpf_dsq_move_to_local___v2___two(u64 dsq, u64 flags) __ksym __weak;
s32 scx_bpf_dsq_nr_queued(u64 dsq) __ksym;
s32 scx_bpf_create_dsq(u64 dsq, s32 node) __ksym;
int bpf_iter_scx_dsq_new(struct bpf_iter_scx_dsq *it, u64 dsq, u64 flags) __ksym;
struct task_struct *bpf_iter_scx_dsq_next(struct bpf_iter_scx_dsq *it) __ksym;
void bpf_iter_scx_dsq_destroy(struct bpf_iter_scx_dsq *it) __ksym;
void scx_bpf_dsq_move_set_vtime(struct bpf_iter_scx_dsq *it, u64 vtime) __ksym;
bool scx_bpf_dsq_move(struct bpf_iter_scx_dsq *it, struct task_struct *p, u64 dsq,
		      u64 flags) __ksym;
bool scx_bpf_dsq_move_vtime(struct bpf_iter_scx_dsq *it, struct task_struct *p, u64 dsq,
			    u64 flags) __ksym;
bool scx_bpf_task_set_slice(struct task_struct *p, u64 slice) __ksym __weak;
void scx_bpf_kick_cpu(s32 cpu, u64 flags) __ksym;
s32 scx_bpf_pick_idle_cpu(const struct cpumask *allowed, u64 flags) __ksym;
const struct cpumask *scx_bpf_get_idle_cpumask(void) __ksym;
void scx_bpf_put_idle_cpumask(const struct cpumask *mask) __ksym;
const struct cpumask *scx_bpf_get_online_cpumask(void) __ksym;
void scx_bpf_put_cpumask(const struct cpumask *mask) __ksym;
bool scx_bpf_test_and_clear_cpu_idle(s32 cpu) __ksym;
bool bpf_cpumask_empty(const struct cpumask *mask) __ksym;
bool bpf_cpumask_intersects(const struct cpumask *one, const struct cpumask *other) __ksym;
s32 scx_bpf_task_cpu(const struct task_struct *p) __ksym;
struct cgroup *scx_bpf_task_cgroup(struct task_struct *p) __ksym;
bool bpf_cpumask_test_cpu(u32 cpu, const struct cpumask *mask) __ksym;
struct cgroup *bpf_cgroup_ancestor(struct cgroup *cgrp, int level) __ksym;
void bpf_cgroup_release(struct cgroup *cgrp) __ksym;
struct cgroup *bpf_cgroup_from_id(u64 cgid) __ksym;
struct task_struct *bpf_task_from_pid(s32 pid) __ksym;
void bpf_task_release(struct task_struct *p) __ksym;
int bpf_send_signal_task(struct task_struct *p, int signal, enum pid_type type,
			 u64 value) __ksym __weak;

void bpf_rcu_read_lock(void) __ksym;
void bpf_rcu_read_unlock(void) __ksym;

extern const int __preempt_count __ksym __weak;

/* include/linux/preempt.h; not in BTF: an interrupt, or one that was put off, is being served. */
#define AN_IN_INTERRUPT 0x00ff0100

/* Does what runs now do so for an interrupt, not for the current task? */
static __always_inline bool an_kin_interrupt(void)
{
	const int *count;

	if (!&__preempt_count)
		return true;
	count = bpf_this_cpu_ptr(&__preempt_count);
	return count && *count & AN_IN_INTERRUPT;
}

/* Does the task end, or execute a program? Until a child does so, its parent may wait for it. */
static __always_inline bool an_kends(const struct task_struct *task)
{
	if (task->flags & PF_EXITING)
		return true;
	return bpf_core_field_exists(task->in_execve) && BPF_CORE_READ_BITFIELD(task, in_execve);
}

/* Is it a thread that takes a device's packets (NAPI)? Nobody waits for what it holds, for it lets
 * go of all before it may be preempted. */
static __always_inline bool an_kreceives(const struct task_struct *p)
{
	return p->flags & PF_KTHREAD && p->comm[0] == 'n' && p->comm[1] == 'a' &&
	       p->comm[2] == 'p' && p->comm[3] == 'i' && p->comm[4] == '/';
}

/* Does the task, which goes to sleep, wait inside the kernel, for a page, a file or a lock? A
 * signal does not wake it then, so people do not either. */
static __always_inline bool an_kwaits_inside(const struct task_struct *p)
{
	return p->__state & TASK_UNINTERRUPTIBLE;
}

/* Does the task, which stops and is not runnable, go to sleep? Not if the kernel changes something
 * of it while it runs, its nice value or its CPUs: then it is taken out and put back. So is one
 * that is preempted within a BPF program, for it may not go to another CPU. */
static __always_inline bool an_ksleeps(const struct task_struct *p)
{
	return p->__state;
}

/*
 * How much has just come to the socket [bytes]; *seen is kept for that, 0 at first. Of a stream
 * that is counted, with what had come before and was not read; of others it is the last piece, or,
 * where a reader on another CPU has been so quick that it is gone, as much as the one before.
 */
static __always_inline u32 an_kcame(struct sock *sk, u32 *seen)
{
	struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);
	u32 next, came;

	if (!tcp) {
		if (sk->sk_receive_queue.qlen)
			*seen = sk->sk_receive_queue.prev->len;
		return *seen;
	}
	next = tcp->rcv_nxt;
	came = next - (*seen ? *seen : tcp->copied_seq);
	*seen = next;
	return came;
}

/* By what the kernel tells this eventfd from others, as long as there is it. */
static __always_inline u32 an_keventfd(const struct file *eventfd)
{
	return bpf_core_cast(eventfd->private_data, struct eventfd_ctx)->id;
}

/* The ring of this key among them; NULL: there is none. */
static __always_inline void *an_kring_of(void *rings, u32 *key)
{
	return bpf_map_lookup_elem(rings, key);
}

/* What is said goes to the ring; false: it is full. */
static __always_inline bool an_kring(void *ring, void *said, u64 bytes)
{
	return !bpf_ringbuf_output(ring, said, bytes, BPF_RB_FORCE_WAKEUP);
}

/* Can a signal be sent to a task that is not the current one? */
static __always_inline bool an_kmay_signal_at_all(void)
{
	return bpf_ksym_exists(bpf_send_signal_task);
}

/* Could this user send the task one by kill()? 0, who may always, is in charge of the machine. */
static __always_inline bool an_kmay_signal(struct task_struct *p, u32 uid)
{
	return !uid || BPF_CORE_READ(p, real_cred, uid.val) == uid ||
	       BPF_CORE_READ(p, real_cred, suid.val) == uid;
}

/* The task gets a signal with this value; false: not now, but soon it may be tried again. One that
 * ends gets none. */
static __always_inline bool an_ksignal(struct task_struct *p, u32 signal, u64 value)
{
	return !bpf_ksym_exists(bpf_send_signal_task) ||
	       bpf_send_signal_task(p, signal, PIDTYPE_PID, value) != -16 /* EBUSY */;
}

/* The quota that the class begins with; 6.17 tells it. */
static __always_inline void an_kquota(const struct scx_cgroup_init_args *args, u64 *quota_us,
				      u64 *period_us, u64 *burst_us)
{
	*quota_us = ~0ULL;
	if (!bpf_core_field_exists(args->bw_quota_us))
		return;
	*quota_us = args->bw_quota_us;
	*period_us = args->bw_period_us;
	*burst_us = args->bw_burst_us;
}

/* CPUs that the task may use, a bit each, from 64 * word on. */
static __always_inline u64 an_kcpus(const struct task_struct *p, u32 word)
{
	const struct cpumask *cpus = p->cpus_ptr;
	u64 bits = 0;

	bpf_probe_read_kernel(&bits, sizeof(bits), (const char *)cpus + word * sizeof(bits));
	return bits;
}

/* Is it under SCHED_IDLE? */
static __always_inline bool an_kis_idle(const struct task_struct *p)
{
	return p->policy == SCHED_IDLE;
}

/* Is it under SCHED_BATCH? */
static __always_inline bool an_kis_batch(const struct task_struct *p)
{
	return p->policy == SCHED_BATCH;
}

/* Is the class idle (cpu.idle) as it begins? 6.19 tells when that changes. */
static __always_inline bool an_kclass_is_idle(const struct cgroup *cgrp)
{
	struct task_group *group = NULL;
	u64 at = bpf_core_field_offset(cgrp->subsys) +
		 an_kconst(cgroup_subsys_id, cpu_cgrp_id) * sizeof(void *);

	if (!bpf_core_field_exists(group->idle))
		return false;
	if (bpf_probe_read_kernel(&group, sizeof(group), (const char *)cgrp + at) || !group)
		return false;
	return BPF_CORE_READ(group, idle);
}

#define CSS_ONLINE (1u << 1)

/* Is the cgroup removed, though the kernel still tells of it? Nothing more can be kept of it. */
static __always_inline bool an_kclass_is_removed(const struct cgroup *cgrp)
{
	return !(cgrp->self.flags & CSS_ONLINE);
}

/* Queues p under this tag. 6.19 packed the arguments into a structure. */
static __always_inline void an_kqueue(struct task_struct *p, u64 dsq, u64 slice, u64 tag, u64 flags)
{
	if (bpf_core_type_exists(struct scx_bpf_dsq_insert_vtime_args)) {
		struct scx_bpf_dsq_insert_vtime_args args = {
			.dsq_id = dsq,
			.slice = slice,
			.vtime = tag,
			.enq_flags = flags,
		};
		__scx_bpf_dsq_insert_vtime(p, &args);
	} else {
		scx_bpf_dsq_insert_vtime___five(p, dsq, slice, tag, flags);
	}
}

/*
 * Gives p to the CPU that the kernel has chosen for it, at once and before all others.
 *
 * For those that cannot wait, and for all that is queued by a CPU on its way out: it wakes the last
 * tasks when its interrupt controller is off already. What the kernel would put off until an
 * interrupt that the CPU sends itself (kicks, and timers) is lost then; and because the kernel
 * takes that interrupt to be pending, so is all that the CPU would put off when it is back.
 */
static __always_inline void an_kqueue_local(struct task_struct *p, u64 slice, u64 flags)
{
	scx_bpf_dsq_insert(p, an_kconst(scx_dsq_id_flags, SCX_DSQ_LOCAL), slice,
			   flags | an_kconst(scx_enq_flags, SCX_ENQ_PREEMPT));
}

/* Moves the first task of the queue that may run here to this CPU. 7.1 added flags. */
static __always_inline bool an_kmove_to_local(u64 dsq)
{
	if (bpf_ksym_exists(scx_bpf_dsq_move_to_local___one))
		return scx_bpf_dsq_move_to_local___one(dsq);
	return scx_bpf_dsq_move_to_local___v2___two(dsq, 0);
}

/* 6.19 put a function in the place of the store. */
static __always_inline void an_kset_slice(struct task_struct *p, u64 slice)
{
	if (bpf_ksym_exists(scx_bpf_task_set_slice))
		scx_bpf_task_set_slice(p, slice);
	else
		p->scx.slice = slice;
}

/* Whoever runs there makes way for dispatch, but for a real-time task: then nothing happens. */
static __always_inline void an_kpreempt(s32 cpu)
{
	scx_bpf_kick_cpu(cpu, an_kconst(scx_kick_flags, SCX_KICK_PREEMPT));
}

/*
 * The time [ns]. Not scx_bpf_now(): a CPU that takes a task over from another one leaves the clock
 * that this reads there standing still, for all who do not hold that CPU's run queue, such as its
 * timer, until its next tick or longer. Nor does it cost more.
 */
static __always_inline u64 an_kclock_ns(void)
{
	return bpf_ktime_get_ns();
}

/* Where the task runs, or ran last: read, where a task carries it, for that saves a call. */
static __always_inline u32 an_ktask_cpu(const struct task_struct *p)
{
	if (bpf_core_field_exists(p->thread_info.cpu))
		return p->thread_info.cpu;
	return scx_bpf_task_cpu(p);
}

#endif
