/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The seam between the scheduler in bpf/ and a kernel, where that kernel is the model in this
 * folder: it stands in for bpf/kernel.h and bpf/kfuncs.h, by their include guards, and the programs
 * of bpf/ compile natively as they are.
 *
 * Everything that the scheduler may see of a kernel is declared here, and nothing else: a function
 * that the model lacks does not link, and the linker names it. What each call does is said where
 * the model defines it (calls.c, queue.c, timer.c, storage.c), with the place in the kernel's
 * source where the rule was read.
 */
#ifndef ANDANTE_SIM_SEAM_H
#define ANDANTE_SIM_SEAM_H

#define ANDANTE_BPF_KERNEL_H
#define ANDANTE_BPF_KFUNCS_H

#include "../../../core/port.h"
#include "fair.h"

/* What the core takes for granted: wrong, it is told where, as the model's own assertions are. */
void model_fault(const char *file, int line, const char *what) __attribute__((noreturn));
#undef an_assert
#define an_assert(condition) ((condition) ? (void)0 : model_fault(__FILE__, __LINE__, #condition))

typedef u8 __u8;
typedef u16 __u16;
typedef u32 __u32;
typedef u64 __u64;
typedef s32 __s32;
typedef s64 __s64;
#define ANDANTE_KERNEL_TYPES
#define __uptr
#define __arg_trusted

/* ---- what libbpf's headers say ---- */

#undef __always_inline
#define __always_inline inline __attribute__((always_inline, unused))
#define __noinline __attribute__((noinline, unused))
#define SEC(name)
#define BPF_PROG(name, args...) name(args)
#define __uint(name, val) int(*name)[val]
#define __type(name, val) typeof(val) *name
#define __array(name, val) typeof(val) *name[1]

enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_MAP_TYPE_SK_STORAGE = 24,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
	BPF_MAP_TYPE_CGRP_STORAGE = 32,
};

#define BPF_F_NO_PREALLOC 1
#define BPF_LOCAL_STORAGE_GET_F_CREATE 1
#define BPF_F_TIMER_CPU_PIN 2
#define CLOCK_MONOTONIC 1

/* ---- what the kernel's types are, as far as the scheduler looks ---- */

#define PF_EXITING 0x00000004
#define PF_KTHREAD 0x00200000
#define PF_NO_SETAFFINITY 0x04000000
#define SCX_OPS_ENQ_EXITING 4
#define SCX_OPS_ENQ_LAST 2
#define AN_NICE_0_PRIO 120

/* Trees that the scheduler has room for: here no user space makes them more. */
#define AN_TREES 1

/* CPUs of a machine, at most. */
#define MODEL_CPUS 256

struct bpf_spin_lock {
	u32 held_by; /* CPU + 1 */
};

struct bpf_timer {
	u64 number; /* of the model's timer; 0: not initialised */
	u64 unused;
};

struct cpumask {
	u64 bits[MODEL_CPUS / 64];
};

struct kernfs_node {
	u64 id;
};

/* What a map of local storage keeps of one task or class. */
struct local_storage {
	const void *map;
	void *value;
	struct local_storage *next; /* of another map */
};

struct cgroup {
	int level;
	struct kernfs_node *kn;
	/* The model's: */
	struct cgroup *parent;
	struct kernfs_node node;
	struct local_storage storage;
	u32 weight;
	bool idle;			   /* cpu.idle */
	u64 quota_us, period_us, burst_us; /* cpu.max, cpu.max.burst */
	u32 children;			   /* cgroups below, and tasks in it */
	u32 tasks;
	struct fair_group *fair; /* of the stock scheduler; NULL: nothing has run in it */
	bool known;		 /* the scheduler was told of it */
	bool gone;
};

struct sched_entity {
	u64 sum_exec_runtime;
	u64 exec_start;
};

struct dsq;

/* What the scheduler knows of a task. */
enum scx_task_state {
	SCX_TASK_NONE,
	SCX_TASK_INIT_BEGIN,
	SCX_TASK_READY,
	SCX_TASK_ENABLED,
	SCX_TASK_DEAD,
};

struct sched_ext_entity {
	u32 flags;
	u32 weight;
	u64 slice;
	u64 dsq_vtime;
	/* The model's: */
	struct dsq *dsq;
	u64 dsq_seq;
	u64 direct_dsq; /* ddsp_dsq_id; 0: none */
	u64 direct_flags;
	u64 runnable_at_ns;
	bool reset_runnable_at;
	enum scx_task_state state;
	bool unlisted; /* it has ended, and is not on scx_tasks any more */
};

struct upid {
	int nr;
};

struct pid {
	struct upid numbers[1];
};

/* Sched classes, in the order in which the kernel asks them. */
enum sched_class {
	CLASS_DEADLINE,
	CLASS_REAL_TIME,
	CLASS_FAIR,
	CLASS_EXT,
	CLASS_IDLE,
};

enum task_life {
	TASK_ASLEEP,
	TASK_RUNNABLE,
	TASK_DEAD,
};

struct task_struct {
	u32 flags;
	int pid;
	int tgid;
	int static_prio;
	u32 in_execve : 1;
	struct pid *thread_pid;
	int nr_cpus_allowed;
	const struct cpumask *cpus_ptr;
	struct sched_entity se;
	struct sched_ext_entity scx;
	/* The model's: */
	u32 number;
	u32 cpu;
	enum sched_class class;
	enum task_life life;
	bool on_rq;
	bool on_cpu;	 /* it is still being switched out */
	bool pi_locked;	 /* its pi_lock: whoever wakes it */
	s32 holding_cpu; /* that is in the middle of taking it over; -1: none */
	bool changing;	 /* race.c: somebody changes it */
	bool told;	 /* race.c: the scheduler was called for an event of its session */
	u64 joined_ns;	 /* race.c: when it has joined a session, or left one */
	bool migrating;	 /* TASK_ON_RQ_MIGRATING: on no run queue, until whoever moves it is done */
	bool in_transit; /* on its way to a queue */
	bool sleeps;	 /* it was taken out of its queue last because it does */
	bool stopped;	 /* SIGSTOP: does not run, whatever it waits for */
	bool wakes;	 /* when it may run again */
	u32 rt_prio;
	u64 rt_order;
	struct fair_entity fair;
	u64 work_ns;		/* instructions left of its step; MODEL_NEVER: endless */
	bool is_new;		/* TASK_NEW: nobody but its parent wakes it */
	bool killed;		/* SIGKILL: it ends when it has the CPU */
	bool gone;		/* nothing is left of it but its figures */
	u32 migration_disabled; /* so many times over */
	bool moves;		/* migration_pending: its mask has been changed, and it has to go */
	bool stop_pending;	/* this CPU's stopper was asked to move it: */
	u32 stop_cpu;
	u64 worked_ns; /* instructions of its own that it has done */
	u64 switches;
	u64 ran_since_ns; /* for the trace */
	u32 ran_on;	  /* the CPU that it had last */
	struct cpumask cpus_mask;
	struct pid own_pid;
	struct cgroup *cgroup;
	struct local_storage storage;
};

struct sock {
	struct pid *sk_peer_pid;
};

struct unix_address;

struct unix_sock {
	struct sock sk;
	struct unix_address *addr;
	struct sock *peer;
};

struct scx_init_task_args {
	bool fork;
	struct cgroup *cgroup;
};

struct scx_exit_task_args {
	bool cancelled;
};

struct scx_cgroup_init_args {
	u32 weight;
	u64 bw_period_us;
	u64 bw_quota_us;
	u64 bw_burst_us;
};

struct scx_exit_info {
	s64 exit_code;
	const char *reason;
	char *msg;
};

struct sched_ext_ops {
	void (*enqueue)(struct task_struct *p, u64 enq_flags);
	void (*dispatch)(s32 cpu, struct task_struct *prev);
	void (*runnable)(struct task_struct *p, u64 enq_flags);
	void (*running)(struct task_struct *p);
	void (*stopping)(struct task_struct *p, bool runnable);
	void (*set_weight)(struct task_struct *p, u32 weight);
	s32 (*init_task)(struct task_struct *p, struct scx_init_task_args *args);
	void (*exit_task)(struct task_struct *p, struct scx_exit_task_args *args);
	void (*enable)(struct task_struct *p);
	void (*disable)(struct task_struct *p);
	s32 (*cgroup_init)(struct cgroup *cgrp, struct scx_cgroup_init_args *args);
	void (*cgroup_exit)(struct cgroup *cgrp);
	void (*cgroup_move)(struct task_struct *p, struct cgroup *from, struct cgroup *to);
	void (*cgroup_set_weight)(struct cgroup *cgrp, u32 weight);
	void (*cgroup_set_idle)(struct cgroup *cgrp, bool idle);
	void (*cgroup_set_bandwidth)(struct cgroup *cgrp, u64 period_us, u64 quota_us,
				     u64 burst_us);
	void (*cpu_online)(s32 cpu);
	void (*cpu_offline)(s32 cpu);
	s32 (*init)(void);
	void (*exit)(struct scx_exit_info *info);
	u64 flags;
	u32 timeout_ms;
	char name[128];
};

/* The values are the kernel's, but only that they differ matters. */
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
	SCX_ENQ_HEAD = 1 << 4,
	SCX_ENQ_PREEMPT = 1ULL << 32,
	SCX_ENQ_LAST = 1ULL << 41,
	SCX_ENQ_DSQ_PRIQ = 1ULL << 57,
};
enum scx_kick_flags {
	SCX_KICK_IDLE = 1,
	SCX_KICK_PREEMPT = 2,
};
enum scx_pick_idle_cpu_flags {
	SCX_PICK_IDLE_CORE = 1,
};
enum scx_wake_flags {
	SCX_WAKE_SYNC = 0x10,
};
#define an_kconst(type, name) ((u64)(name))

/* ---- what the scheduler may call ---- */

void bpf_spin_lock(struct bpf_spin_lock *lock);
void bpf_spin_unlock(struct bpf_spin_lock *lock);

/* Maps are told by the address of their definition. */
void *model_storage(struct local_storage *of, const void *map, u64 size, u64 flags);
void model_storage_free(struct local_storage *of);
void *model_map(const void *map, u32 type, u32 entries, u32 key_size, u32 value_size,
		const void *key, bool create);
#define bpf_task_storage_get(map, p, init, flags)                                                  \
	((typeof((map)->value))model_storage(&(p)->storage, map, sizeof(*(map)->value), flags))
#define bpf_cgrp_storage_get(map, c, init, flags)                                                  \
	((typeof((map)->value))model_storage(&(c)->storage, map, sizeof(*(map)->value), flags))
#define model_map_of(m, k, create)                                                                 \
	model_map(m, sizeof(*(m)->type) / sizeof(int), sizeof(*(m)->max_entries) / sizeof(int),    \
		  sizeof(*(m)->key), sizeof(*(m)->value), k, create)
#define bpf_map_lookup_elem(m, k) model_map_of(m, k, false)
#define bpf_map_update_elem(m, k, v, flags)                                                        \
	({                                                                                         \
		typeof((m)->value) at_ = model_map_of(m, k, true);                                 \
		if (at_)                                                                           \
			*at_ = *(v);                                                               \
		at_ ? 0 : -12 /* ENOMEM */;                                                        \
	})
int model_map_delete(const void *map, const void *key);
#define bpf_map_delete_elem(m, k) model_map_delete(m, k)

typedef int model_timer_callback(void *map, u32 *key, void *value);
int model_timer_init(struct bpf_timer *timer, void *map);
int model_timer_set_callback(struct bpf_timer *timer, model_timer_callback *callback);
#define bpf_timer_init(timer, map, clock) model_timer_init(timer, map)
#define bpf_timer_set_callback(timer, callback)                                                    \
	model_timer_set_callback(timer, (model_timer_callback *)(void *)(callback))
int bpf_timer_start(struct bpf_timer *timer, u64 ns, u64 flags);

struct bpf_iter_scx_dsq {
	struct dsq *dsq;
	struct bpf_iter_scx_dsq *next; /* of those that go through the same queue */
	u32 gap;		       /* how many of the queue are before it */
	u64 seq;		       /* who was queued later is not seen */
	u64 flags;
	u64 vtime;
	bool has_vtime;
};

s32 scx_bpf_dsq_nr_queued(u64 dsq);
s32 scx_bpf_create_dsq(u64 dsq, s32 node);
void scx_bpf_dsq_insert(struct task_struct *p, u64 dsq, u64 slice, u64 flags);
int bpf_iter_scx_dsq_new(struct bpf_iter_scx_dsq *it, u64 dsq, u64 flags);
struct task_struct *bpf_iter_scx_dsq_next(struct bpf_iter_scx_dsq *it);
void bpf_iter_scx_dsq_destroy(struct bpf_iter_scx_dsq *it);
void scx_bpf_dsq_move_set_vtime(struct bpf_iter_scx_dsq *it, u64 vtime);
bool scx_bpf_dsq_move(struct bpf_iter_scx_dsq *it, struct task_struct *p, u64 dsq, u64 flags);
bool scx_bpf_dsq_move_vtime(struct bpf_iter_scx_dsq *it, struct task_struct *p, u64 dsq, u64 flags);
void scx_bpf_kick_cpu(s32 cpu, u64 flags);
s32 scx_bpf_pick_idle_cpu(const struct cpumask *allowed, u64 flags);
s32 scx_bpf_select_cpu_and(struct task_struct *p, s32 prev_cpu, u64 wake_flags,
			   const struct cpumask *cpus_allowed, u64 flags);
s32 scx_bpf_select_cpu_dfl(struct task_struct *p, s32 prev_cpu, u64 wake_flags, bool *is_idle);
const struct cpumask *scx_bpf_get_idle_smtmask(void);
const struct cpumask *scx_bpf_get_idle_cpumask(void);
void scx_bpf_put_idle_cpumask(const struct cpumask *mask);
const struct cpumask *scx_bpf_get_online_cpumask(void);
void scx_bpf_put_cpumask(const struct cpumask *mask);
bool scx_bpf_test_and_clear_cpu_idle(s32 cpu);
bool bpf_cpumask_empty(const struct cpumask *mask);
bool bpf_cpumask_intersects(const struct cpumask *one, const struct cpumask *other);
bool bpf_cpumask_test_cpu(u32 cpu, const struct cpumask *mask);
struct cgroup *scx_bpf_task_cgroup(struct task_struct *p);
struct cgroup *bpf_cgroup_ancestor(struct cgroup *cgrp, int level);
void bpf_cgroup_release(struct cgroup *cgrp);
struct cgroup *bpf_cgroup_from_id(u64 id);
struct task_struct *bpf_task_from_pid(s32 pid);
void bpf_task_release(struct task_struct *p);
void bpf_rcu_read_lock(void);
void bpf_rcu_read_unlock(void);
u32 bpf_get_smp_processor_id(void);
struct task_struct *bpf_get_current_task_btf(void);
struct unix_sock *bpf_skc_to_unix_sock(void *sk);
long bpf_probe_read_kernel_str(void *to, u32 size, const void *from);

/* A pointer may be followed here without asking. */
#define BPF_CORE_READ_2(a, b) ((a)->b)
#define BPF_CORE_READ_3(a, b, c) ((a)->b->c)
#define BPF_CORE_READ_N(_1, _2, _3, N, ...) N
#define BPF_CORE_READ(...)                                                                         \
	BPF_CORE_READ_N(__VA_ARGS__, BPF_CORE_READ_3, BPF_CORE_READ_2)(__VA_ARGS__)

/* The same as in bpf/kfuncs.h. */
bool an_kin_interrupt(void);
bool an_kends(const struct task_struct *task);
void an_kqueue(struct task_struct *p, u64 dsq, u64 slice, u64 tag, u64 flags);
void an_kqueue_local(struct task_struct *p, u64 slice, u64 flags);
bool an_kmove_to_local(u64 dsq);
void an_kset_slice(struct task_struct *p, u64 slice);
void an_kpreempt(s32 cpu);
u64 an_kclock_ns(void);
u64 scx_bpf_now(void); /* what that is not: it may stand still */

static inline u64 an_kcpus(const struct task_struct *p, u32 word)
{
	return p->cpus_ptr->bits[word];
}

/* Nothing comes from a network here. */
static inline bool an_kreceives(const struct task_struct *p)
{
	(void)p;
	return false;
}

/* The model has one more nice value for it (model.h). */
static inline bool an_kis_idle(const struct task_struct *p)
{
	return p->static_prio == AN_NICE_0_PRIO + 20;
}

/* No program of the model is. */
static inline bool an_kis_batch(const struct task_struct *p)
{
	(void)p;
	return false;
}

/* Nobody subscribes to a socket of the model's. */
#define bpf_sk_storage_get(map, sk, init, flags) ((void)(sk), (void *)NULL)

static inline u32 an_kcame(struct sock *sk, u32 *seen)
{
	(void)sk, (void)seen;
	return 0;
}

/* Nor waits one of its programs to be told of events: it is, and that is all. */
/* Nor are there any. */
struct inode;
struct file;

static inline u32 an_keventfd(const struct file *eventfd)
{
	(void)eventfd;
	return 0;
}

static inline void *an_kring_of(void *rings, u32 *key)
{
	(void)key;
	return rings;
}

static inline bool an_kring(void *ring, void *said, u64 bytes)
{
	(void)ring, (void)said, (void)bytes;
	return true;
}

static inline bool an_kmay_signal_at_all(void)
{
	return true;
}

static inline bool an_kmay_signal(struct task_struct *p, u32 uid)
{
	(void)p, (void)uid;
	return true;
}

static inline bool an_ksignal(struct task_struct *p, u32 signal, u64 value)
{
	(void)p, (void)signal, (void)value;
	return true;
}

static inline bool an_ksleeps(const struct task_struct *p)
{
	return p->sleeps;
}

/* Nor does one wait for a page or a lock of the kernel's. */
static inline bool an_kwaits_inside(const struct task_struct *p)
{
	(void)p;
	return false;
}

static inline bool an_kclass_is_idle(const struct cgroup *cgrp)
{
	return cgrp->idle;
}

static inline bool an_kclass_is_removed(const struct cgroup *cgrp)
{
	return cgrp->gone;
}

static inline void an_kquota(const struct scx_cgroup_init_args *args, u64 *quota_us, u64 *period_us,
			     u64 *burst_us)
{
	*quota_us = args->bw_quota_us;
	*period_us = args->bw_period_us;
	*burst_us = args->bw_burst_us;
}

static inline u32 an_ktask_cpu(const struct task_struct *p)
{
	return p->cpu;
}

#endif
