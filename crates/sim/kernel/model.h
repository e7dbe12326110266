/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A model of the kernel around a sched_ext scheduler: CPUs, tasks, run queues, sched classes,
 * timers, interrupts, and the time that all of it takes. Nothing here decides who runs next: the
 * classes do, and of those CLASS_EXT asks the scheduler that was compiled with it.
 *
 *      user space (Rust)  ──sim.h──►  model  ──sched_ext_ops──►  bpf/sched.bpf.c ──► core/
 *      what programs do               rq.c …  ◄──── seam.h ────  (unmodified)
 *
 *      rq.c       wake-ups, __schedule(), the callbacks in their order (kernel/sched/core.c)
 *      queue.c    DSQs, iterators, moves that fail (kernel/sched/ext/ext.c)
 *      idle.c     idle masks, the default selection of an idle CPU (ext/idle.c)
 *      topology.c threads of cores, caches, nodes (kernel/sched/topology.c)
 *      interrupt.c  timers, the tick, kicks and IPIs
 *      life.c     fork, wake-ups, exit
 *      migrate.c  which CPU a task gets; affinity, and tasks that may not be moved
 *      change.c   weights, classes (cgroups) and moves
 *      storage.c  locks, maps, local storage, BPF timers
 *      hotplug.c  CPUs leave and come back
 *      load.c     the scheduler is put in charge and let go; the kernel goes without it
 *      contract.c, socket.c  what not every scheduler has
 *      shell_*.c  one of the three objects in bpf/, and what user space does to it
 *      rt.c, server.c  real-time tasks, and what they leave
 *      fair*.c    the stock scheduler (fair.h)
 *      time.c     the event loop: whose turn it is, and what it costs
 *
 * References are to Linux 7.2.13, by function. A machine is all state of this library: whoever
 * wants several loads several copies (src/shell.rs).
 *
 * One thing happens at a time. What a CPU does in the kernel happens at an instant, and the time
 * that it takes (costs) keeps that CPU busy afterwards: interrupts wait for it, as they do while a
 * real one has them off.
 */
#ifndef ANDANTE_SIM_MODEL_H
#define ANDANTE_SIM_MODEL_H

#include "seam.h"
#include "sim.h"

#define MODEL_NEVER (~0ULL)
#define SCX_SLICE_DFL_NS 20000000ULL /* SCX_SLICE_DFL */

/* What the model takes for granted of itself: wrong, it is the model's fault, or its caller's. */
#define model_assert(condition)                                                                    \
	do {                                                                                       \
		if (__builtin_expect(!(condition), 0))                                             \
			model_fault(__FILE__, __LINE__, #condition);                               \
	} while (0)

/* A DSQ: ordered by vtime, ties in the order of insertion; or first in, first out. */
struct dsq {
	u64 id;
	struct task_struct **task;
	u32 count, room;
	bool by_vtime; /* as its tasks were put in; of an empty one anything */
	bool local;
	u64 seq;
	struct bpf_iter_scx_dsq *iterators;
};

/* What a CPU is asked to do by whoever switches it off or on. */
enum hotplug {
	HOTPLUG_NONE,
	HOTPLUG_LEAVES,
	HOTPLUG_EMPTIES, /* it has left for all but pinned tasks */
	HOTPLUG_RETURNS,
};

/* The fair server of a CPU (server.c). */
struct fair_server {
	s64 runtime_ns; /* what is left of its period */
	u64 deadline_ns;
	u64 timer_ns;	 /* MODEL_NEVER: none is to come */
	bool is_active;	 /* dl_server_active: it has tasks to look after */
	bool waits;	 /* dl_throttled */
	bool is_armed;	 /* dl_defer_armed: until the last instant at which it can give its time */
	bool was_needed; /* dl_defer_running */
	bool is_idle;	 /* dl_defer_idle */
};

struct rq {
	u32 cpu;
	struct task_struct *curr;
	struct task_struct idle;
	struct task_struct stopper; /* on_rq: it has something to do */
	u32 stops;		    /* tasks that it is to move */
	u32 pinned;		    /* nr_pinned: tasks that migrate_disable() keeps here */
	u32 distributed;	    /* distribute_cpu_mask_prev */
	struct dsq local;
	struct cpumask mask_of_cpu;
	bool active;	     /* cpu_active(): it takes tasks */
	bool online;	     /* SCX_RQ_ONLINE: the scheduler is asked for it */
	bool interrupts_off; /* it is on its way out, or gone: what needs an interrupt is lost */
	bool irq_work_lost;  /* its kicks' irq_work is taken to be pending, and is not */
	bool bypassing;	     /* SCX_SCHED_PCPU_BYPASSING */
	struct dsq bypass;   /* bypass_dsq */
	enum hotplug hotplug;
	u32 hotplug_waiter; /* task: sleeps until that is done */
	bool need_resched;
	bool in_balance;
	bool waits;	    /* this CPU, for a lock */
	const char *call;   /* of the kernel's that this CPU has made last */
	bool waits_to_load; /* it is a lock of load.c's, and no callback is under way */
	bool locked;	    /* the run queue's lock */
	u32 locked_by;
	/* What this CPU is in the middle of. */
	bool in_interrupt;
	bool under_lock;      /* of BPF's */
	bool contract_picked; /* what is about to run, or runs, was picked under a contract */
	struct task_struct *enqueuing; /* direct_dispatch_task */
	bool dispatching;
	enum sched_class next_class;
	u64 clock_ns;	  /* the run queue's clock: as of the last update */
	u64 scx_clock_ns; /* the same for scx_bpf_now(), */
	bool clock_valid; /* which reads it while it is this: SCX_RQ_CLK_VALID */
	u64 busy_ns;	  /* work of the kernel's that is under way [instructions] */
	u64 next_tick_ns; /* MODEL_NEVER: it has stopped */
	u64 idle_ns;
	u64 stolen_ns;
	/* irq_work of kicks (kick_cpus_irq_workfn) */
	bool kicks;
	struct cpumask to_kick, to_preempt, to_kick_if_idle;
	/* interrupts that came while it had them off */
	struct interrupt *pending;
	u32 pendings, pending_room;
	/* CLASS_EXT */
	u32 ext_tasks; /* runnable ones */
	/* CLASS_REAL_TIME */
	struct task_struct **rt;
	u32 rts, rt_room;
	/* CLASS_FAIR */
	struct fair_queue fair; /* of the root group */
	u32 fair_tasks;		/* in all groups, and of these: */
	u32 fair_delayed, fair_idles;
	u64 hrtick_ns; /* MODEL_NEVER: none is to come */
	struct fair_server server;
	bool resched_when_in_kernel; /* TIF_NEED_RESCHED_LAZY, set by another CPU */
	u64 balanced_ns;
	u32 balance_interval, balance_failed;
};

enum interrupt_kind {
	INTERRUPT_USER_TIMER, /* of a program's that sleeps */
	INTERRUPT_BPF_TIMER,
	INTERRUPT_STEALS, /* somebody else's: takes time */
};

struct interrupt {
	u64 at_ns;
	u64 order; /* of those at the same instant */
	u64 token; /* user's; of BPF timers their generation */
	u32 cpu;
	u32 timer;
	enum interrupt_kind kind;
};

struct model_timer {
	struct bpf_timer *timer;
	model_timer_callback *callback;
	const void *map;
	u32 key;
	u64 generation; /* of the start that counts; 0: not started */
	bool lost;	/* it was started where no interrupt comes: bpf_async_schedule_op() */
	u64 generations;
};

struct machine {
	struct sim_options options;
	struct sim_costs costs;
	u64 now_ns;
	u64 retired_rest; /* of time shared among CPUs */
	u32 busy_cpus;
	u32 cpu; /* whose turn it is */
	/* Races are searched (race.c): at every lock and every call of the kernel's another CPU may
	 * have its turn. */
	void (*may_switch)(void);
	bool (*at_rest)(u32 cpu); /* it is in the middle of nothing */
	bool root;		  /* scx_root: there is a scheduler, */
	bool loaded;		  /* scx_enabled(): it is in charge, */
	bool inits;		  /* scx_init_task_enabled: it is told of new tasks, */
	bool switching_all;	  /* and has them */
	bool cgroups_known;	  /* scx_cgroup_enabled */
	bool exits;		  /* it is to be let go, */
	bool exiting;		  /* and is, while all CPUs stand still */
	u32 forks;		  /* under way */
	u32 forks_locked, cgroups_locked, bypass_locked; /* CPU + 1 that has the lock */
	u32 bypass_depth;
	bool cpus_locked; /* none comes or goes */
	u64 bypass_ended_ns;
	bool ejected; /* it was let go, and user space has not heard of it */
	struct cpumask idle_cpus, idle_cores; /* of the latter all threads of each */
	bool smt;			      /* sched_smt_active() */
	bool by_cache, by_node;		      /* scx_selcpu_topo_llc, scx_selcpu_topo_numa */
	struct task_struct **tasks;	      /* by number */
	u32 task_count, task_room;
	struct cgroup **cgroups;
	u32 cgroup_count, cgroup_room;
	struct interrupt *heap;
	u32 heap_count, heap_room;
	u64 interrupts;
	u64 rt_orders;
	u64 next_watch_ns;
	struct sim_run *runs;
	u32 run_count, run_room;
	u32 turn; /* CPU to be looked at first in this instant */
	struct sim_stats stats;
	const void *shared; /* the map of what programs share with the scheduler, */
	u64 looks;	    /* and how often that was looked into */
	struct rq rqs[MODEL_CPUS];
};

extern struct machine m;
extern struct sched_ext_ops *model_ops; /* of the scheduler compiled with it */

static inline struct rq *rq_of(u32 cpu)
{
	model_assert(cpu < m.options.cpus);
	return &m.rqs[cpu];
}

static inline struct rq *this_rq(void)
{
	return &m.rqs[m.cpu];
}

/* A call of the kernel's, by the scheduler: not under its lock, and other CPUs go on. */
static inline void kernel_called(const char *name)
{
	model_assert(!this_rq()->under_lock);
	if (__builtin_expect(m.may_switch != NULL, 0)) {
		this_rq()->call = name;
		m.may_switch();
	}
}
#define kernel_call() kernel_called(__func__)

/* This CPU waits until somebody else has gone on. */
static inline void kernel_waits(void)
{
	model_assert(m.may_switch); /* or it would wait for ever */
	this_rq()->waits = true;
	m.may_switch();
	this_rq()->waits = false;
}

/* By number, as user space says it. */
static inline struct task_struct *task_of(u32 number)
{
	model_assert(number < m.task_count && m.tasks[number]);
	return m.tasks[number];
}

static inline struct cgroup *cgroup_of(u32 number)
{
	model_assert(number < m.cgroup_count);
	return m.cgroups[number];
}

static inline struct rq *task_rq(const struct task_struct *p)
{
	return rq_of(p->cpu);
}

static inline bool task_is_idle(const struct task_struct *p)
{
	return p->class == CLASS_IDLE;
}

static inline bool mask_test(const struct cpumask *mask, u32 cpu)
{
	return mask->bits[cpu / 64] >> (cpu % 64) & 1;
}

static inline void mask_set(struct cpumask *mask, u32 cpu)
{
	mask->bits[cpu / 64] |= 1ULL << (cpu % 64);
}

static inline void mask_clear(struct cpumask *mask, u32 cpu)
{
	mask->bits[cpu / 64] &= ~(1ULL << (cpu % 64));
}

static inline bool mask_empty(const struct cpumask *mask)
{
	u64 any = 0;

	for (u32 word = 0; word < MODEL_CPUS / 64; word++)
		any |= mask->bits[word];
	return !any;
}

static inline bool mask_intersects(const struct cpumask *a, const struct cpumask *b)
{
	u64 both = 0;

	for (u32 word = 0; word < MODEL_CPUS / 64; word++)
		both |= a->bits[word] & b->bits[word];
	return both;
}

static inline bool mask_subset(const struct cpumask *of, const struct cpumask *all)
{
	u64 beside = 0;

	for (u32 word = 0; word < MODEL_CPUS / 64; word++)
		beside |= of->bits[word] & ~all->bits[word];
	return !beside;
}

/* Is anything left? */
static inline bool mask_and(struct cpumask *mask, const struct cpumask *with)
{
	for (u32 word = 0; word < MODEL_CPUS / 64; word++)
		mask->bits[word] &= with->bits[word];
	return !mask_empty(mask);
}

static inline void mask_or(struct cpumask *mask, const struct cpumask *with)
{
	for (u32 word = 0; word < MODEL_CPUS / 64; word++)
		mask->bits[word] |= with->bits[word];
}

static inline void mask_and_not(struct cpumask *mask, const struct cpumask *without)
{
	for (u32 word = 0; word < MODEL_CPUS / 64; word++)
		mask->bits[word] &= ~without->bits[word];
}

/* Memory for one more of an array that grows. */
void *model_grow(void *array, u32 count, u32 *room, u64 size);
#define model_room_for(array, count, room)                                                         \
	((array) = model_grow(array, count, &(room), sizeof(*(array))))

/* time.c: the kernel is busy for so long on the CPU whose turn it is. */
static inline void spend(u64 ns)
{
	this_rq()->busy_ns += ns;
}

void time_advance(u64 to_ns);
u64 time_next_ns(void); /* the next instant at which a CPU has something to do */
bool cpu_has_something_to_do(const struct rq *rq);
bool cpu_acts(struct rq *rq, struct sim_event *event); /* one thing; true: see sim_run() */
void cpu_ends_turn(void);
u64 model_clock_ns(void); /* now, on the CPU whose turn it is */
void update_rq_clock(struct rq *rq);

/* rq.c: the lock of a run queue; __task_rq_lock() follows the task. */
void rq_lock(struct rq *rq);
void rq_unlock(struct rq *rq);
struct rq *task_rq_lock(struct task_struct *p);
void resched_curr(struct rq *rq);
void wakeup_preempt(struct rq *rq, struct task_struct *p);
void enqueue_task(struct rq *rq, struct task_struct *p, u64 flags);
void dequeue_task(struct rq *rq, struct task_struct *p, bool sleeps);
void do_enqueue_task_scx(struct rq *rq, struct task_struct *p, u64 flags, bool sticky);
void schedule(struct rq *rq, bool preempt);
void update_curr(struct rq *rq);
void put_prev_task(struct rq *rq, struct task_struct *p, struct task_struct *next);
void set_next_task(struct rq *rq, struct task_struct *p);

/* migrate.c */
bool task_allowed(const struct task_struct *p, u32 cpu);
u32 select_task_rq(struct task_struct *p, u32 cpu, bool sync);
u32 select_fallback_rq(struct task_struct *p);
void set_task_cpu(struct task_struct *p, u32 cpu);
void set_affinity(struct task_struct *p, const u64 *mask);
s32 mask_any_distributed(const struct cpumask *a,
			 const struct cpumask *b); /* -1: none is in both */
void stopper_begins(struct rq *rq);
void stopper_acts(struct rq *rq);
void stopper_works(struct rq *rq);
void stopper_ends(struct rq *rq);
void push_task(struct rq *rq, struct task_struct *p);
void migrate_disable_switch(struct rq *rq, struct task_struct *p);

/* storage.c */
u32 model_map_key(const void *map, const void *value);
void storage_resets(void);

/* queue.c */
struct dsq *dsq_find(u64 id);
void dsqs_reset(void);
void dsq_insert(struct dsq *dsq, struct task_struct *p, u64 flags);
void dsq_remove(struct dsq *dsq, struct task_struct *p);
void dsq_local_post_insert(struct rq *rq, struct task_struct *p, u64 flags);
bool dsq_consume(struct rq *rq, struct dsq *dsq);

/* topology.c: masks, and how many CPUs are in each; 0: there is no such part */
void topology_begins(void);
void topology_changes(void);
u32 smt_mask(u32 cpu, struct cpumask *siblings);
u32 llc_span(u32 cpu, struct cpumask *span);
u32 numa_span(u32 cpu, struct cpumask *span);
bool share_cache(u32 a, u32 b);

/* idle.c */
void idle_begins(void);
void idle_update(struct rq *rq, bool idle);
s32 idle_select(struct task_struct *p, u32 prev_cpu, bool sync);

/* interrupt.c */
void interrupt_at(u64 at_ns, u32 cpu, enum interrupt_kind kind, u32 timer, u64 token);
u64 interrupt_next_ns(void);
void interrupts_arrive(void);
void interrupts_move(struct rq *from, u32 to);
bool timer_is_current(u32 timer, u64 generation);
void kicks_run(struct rq *rq);
void rq_tick(struct rq *rq);
void tick_restart(struct rq *rq);
void timer_expires(u32 timer, u64 generation);
void timers_reset(void);

/* shell_*.c: the name of the scheduler's file in bpf/, and whether it has several trees; what the
 * options say goes to it; what is wrong with its state, if anything: its trees, and whether its
 * queues hold what it thinks, if quiet: nobody is in the middle of changing that. */
extern const char model_scheduler[];
extern const bool model_has_domains;
/* What it has decided so far; does that CPU go on with its contract, without looking at others? */
struct decisions {
	u64 picks, keeps, contract_picks, wake_preemptions;
	bool contract_goes_on;
};
struct decisions model_decisions(u32 cpu);
const char *model_scheduler_broken(bool quiet);
/* When the quota of those that wait in this queue was refilled last; MODEL_NEVER / 2:
 * they are throttled, 0: they have none. Between two looks they may have been throttled. */
u64 model_refilled_ns(u64 queue);
void model_knobs(void);
bool model_shell_lies(const char *first, const char *last); /* what it keeps, between these */

/* hotplug.c */
bool hotplug_is_due(const struct rq *rq);
void hotplug_acts(struct rq *rq);

/* load.c */
void lock_waits(u32 *held_by);
void fork_begins(void);
void fork_ends(void);
void scx_init_task(struct task_struct *p, bool fork);
void scx_enable_task(struct task_struct *p);
void scx_task_dead(struct task_struct *p);
void model_ejects(const char *reason, const char *message);
void exits(void);

/* life.c */
void task_dead(struct task_struct *p);

/* change.c */
u32 scx_weight(const struct task_struct *p);
u32 fair_weight(const struct task_struct *p);
void pi_lock(struct task_struct *p);
struct change {
	struct rq *rq;
	bool queued, running;
};
struct change change_begins(struct task_struct *p);
void change_ends(struct task_struct *p, const struct change *c);
struct cgroup *cgroup_new(struct cgroup *parent, u32 weight);
bool cgroup_begins(struct cgroup *c);

/* Nice values end at 19; this one stands for SCHED_IDLE. */
#define NICE_IDLE 20

static inline bool fair_has_idle_policy(const struct task_struct *p)
{
	return p->static_prio == AN_NICE_0_PRIO + NICE_IDLE;
}

/* rt.c, fair.c: the queued tasks of a class, and whom it would run. */
void rt_enqueue(struct rq *rq, struct task_struct *p);
void rt_dequeue(struct rq *rq, struct task_struct *p);
struct task_struct *rt_pick(struct rq *rq);
void rt_preempts(struct rq *rq, struct task_struct *p);
void rt_tick(struct rq *rq, struct task_struct *curr);
u32 rt_select_cpu(struct task_struct *p, u32 cpu);
void fair_enqueue(struct rq *rq, struct task_struct *p, bool woken);
void fair_dequeue(struct rq *rq, struct task_struct *p, bool sleeps);
/* A task that sleeps may stay queued for a while: it wakes there, or leaves. */
bool fair_wakes_delayed(struct task_struct *p);
void fair_leaves(struct rq *rq, struct fair_entity *e);
struct task_struct *fair_pick(struct rq *rq);
void fair_preempts(struct rq *rq, struct task_struct *p);
void fair_update(struct rq *rq, struct task_struct *curr, u64 ran_ns);
void fair_tick(struct task_struct *curr);
void fair_put_prev(struct task_struct *p, struct task_struct *next);
void fair_set_next(struct rq *rq, struct task_struct *p, bool first);
void fair_yield(struct rq *rq, struct task_struct *p);
void fair_hrtick_starts(struct rq *rq, struct task_struct *p);
void fair_hrtick(struct rq *rq);

/* fair_group.c */
void fair_detach(struct task_struct *p);
void fair_group_weight(struct cgroup *c);
void fair_group_gone(struct cgroup *c);

/* fair_balance.c */
void fair_touch(struct fair_entity *e);
u32 fair_select_cpu(struct task_struct *p, u32 cpu, bool sync);
/* A CPU has nothing to run: may it have one that waits elsewhere? */
struct task_struct *fair_pull(struct rq *rq);
void fair_balance_tick(struct rq *rq);

/* server.c */
void server_init(struct rq *rq);
void server_starts(struct rq *rq);
void server_counts(struct rq *rq, u64 ran_ns);
void server_counts_idle(struct rq *rq, u64 idle_ns);
void server_timer(struct rq *rq);
struct task_struct *server_pick(struct rq *rq);

#endif
