/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The kernel's types, as far as the scheduler uses them.
 *
 * Only the members that are used are declared; CO-RE finds where they lie in the running kernel.
 * One object file thus serves every kernel from 6.18 on.
 */
#ifndef ANDANTE_BPF_KERNEL_H
#define ANDANTE_BPF_KERNEL_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int s32;
typedef long long s64;
typedef u8 __u8;
typedef u16 __u16;
typedef u32 __u32;
typedef u64 __u64;
typedef s32 __s32;
typedef s64 __s64;
typedef u16 __be16;
typedef u32 __be32;
typedef u32 __wsum;
typedef _Bool bool;
#define ANDANTE_KERNEL_TYPES
/* A pointer to memory of user space that the kernel keeps at hand. */
#define __uptr __attribute__((btf_type_tag("uptr")))
#define true 1
#define false 0
#define NULL ((void *)0)

enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_MAP_TYPE_SK_STORAGE = 24,
	BPF_MAP_TYPE_STRUCT_OPS = 26,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
	BPF_MAP_TYPE_CGRP_STORAGE = 32,
};

#define BPF_F_NO_PREALLOC 1
#define BPF_LOCAL_STORAGE_GET_F_CREATE 1
#define BPF_F_TIMER_CPU_PIN 2
#define BPF_RB_FORCE_WAKEUP 2
#define CLOCK_MONOTONIC 1

/* include/linux/sched.h; not in BTF */
#define PF_EXITING 0x00000004
#define PF_KTHREAD 0x00200000
#define PF_NO_SETAFFINITY 0x04000000

/* enum scx_ops_flags: tasks that exit are scheduled like any other. */
#define SCX_OPS_ENQ_EXITING 4
/* And a task that the only CPU that has one does not go on with is queued like any other. */
#define SCX_OPS_ENQ_LAST 2
#define TASK_UNINTERRUPTIBLE 2
#define AN_NICE_0_PRIO 120 /* static_prio at nice 0 */
/* include/uapi/linux/sched.h */
#define SCHED_BATCH 3
#define SCHED_IDLE 5

struct bpf_spin_lock {
	__u32 val;
};

struct bpf_timer {
	__u64 __opaque[2];
} __attribute__((aligned(8)));

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct cpumask {
	unsigned long bits[1];
};

struct kernfs_node {
	u64 id;
};

struct cgroup_subsys_state {
	unsigned int flags;
	struct cgroup_subsys_state *parent;
};

struct cgroup {
	struct cgroup_subsys_state self;
	int level;
	struct kernfs_node *kn;
	struct cgroup_subsys_state *subsys[1];
};

struct scx_task_group {
	u32 weight; /* cpu.weight, whoever schedules */
};

/* Begins with the cgroup's state of the cpu controller. */
struct task_group {
	int idle;
	struct scx_task_group scx;
};

struct sched_entity {
	u64 sum_exec_runtime;
};

struct sched_ext_entity {
	u32 flags;
	u32 weight;
	u64 slice;
	u64 dsq_vtime;
};

struct thread_info {
	u32 cpu;
};

struct pid;

typedef struct {
	u32 val;
} kuid_t;

struct cred {
	kuid_t uid;
	kuid_t suid;
};

typedef struct {
	int counter;
} atomic_t;

struct signal_struct {
	atomic_t live; /* threads that have not ended */
};

struct task_struct {
	struct thread_info thread_info;
	unsigned int __state;
	u32 flags;
	int pid;
	int tgid;
	int static_prio;
	unsigned int policy;
	u32 in_execve : 1;
	struct pid *thread_pid;
	const struct cred *real_cred;
	struct signal_struct *signal;
	u64 start_boottime;
	int nr_cpus_allowed;
	const struct cpumask *cpus_ptr;
	struct sched_entity se;
	struct sched_ext_entity scx;
	char comm[16];
};

struct upid {
	int nr;
};

struct pid {
	struct upid numbers[1];
};

struct eventfd_ctx {
	int id;
};

struct file {
	void *private_data;
};

struct inode;

struct sk_buff {
	struct sock *sk; /* whose it is; NULL: it is forwarded, or the kernel's own */
	unsigned int len;
	unsigned int truesize; /* what it takes in memory */
};

struct sk_buff_head {
	struct sk_buff *prev;
	u32 qlen;
};

struct sock_cgroup_data {
	struct cgroup *cgroup;
};

struct sock_common {
	volatile unsigned char skc_state;
	struct sock *skc_listener; /* of a connection that is asked for */
};

struct sock {
	struct sock_common __sk_common;
	struct sock_cgroup_data sk_cgrp_data;
	struct sk_buff_head sk_receive_queue;
	struct pid *sk_peer_pid;
};

struct tcp_sock {
	u32 rcv_nxt;	/* of the stream, what comes next */
	u32 copied_seq; /* what has been read */
};

struct unix_address;

struct unix_sock {
	struct unix_address *addr; /* that it is bound to, or was accepted at */
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

struct scx_bpf_dsq_insert_vtime_args {
	u64 dsq_id;
	u64 slice;
	u64 vtime;
	u64 enq_flags;
};

#pragma clang attribute pop

struct bpf_iter_scx_dsq {
	u64 __opaque[6];
} __attribute__((aligned(8)));

/* Matched to the kernel's by member name; members left out are those not implemented. */
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

/* Trees that the object itself has room for (domain.h). */
#define AN_TREES 1

#endif
