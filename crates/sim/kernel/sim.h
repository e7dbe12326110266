/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the simulator sees of a machine (src/shell.rs has the same in Rust). Times in ns of the
 * virtual clock; work in instructions, of which a CPU that has the machine to itself does one a ns.
 *
 * The caller drives it: sim_run() lets time pass until user space has to say what happens next, and
 * says why. Calls in between are made by the CPU of that event, in its interrupt or its task.
 */
#ifndef ANDANTE_SIM_SIM_H
#define ANDANTE_SIM_SIM_H

#include <stdbool.h>
#include <stdint.h>

struct sim_options {
	uint32_t cpus;
	uint32_t load; /* put our scheduler in charge; else the kernel's own classes serve */
	/* QEMU's virtual CPUs under -icount share one budget of instructions: n that are busy run
	 * at 1/n of the speed each. */
	uint32_t shared_budget;
	uint32_t trace; /* keep every stretch of running, for sim_runs() */
	uint64_t tick_ns;
	/* The scheduler's knobs, as bpf/base.h or bpf/historical.h has them; of those that the
	 * scheduler does not have none is looked at. */
	uint64_t quantum_ns; /* historical policies: 0 is their own */
	uint64_t in_class_wake_ns;
	uint32_t contract_bound;
	uint32_t learn_bound;
	uint32_t bindings;
	uint32_t domain_cpus; /* of each domain, a power of two; 0: one tree */
	uint32_t policy_kind; /* enum an_policy_kind */
	uint32_t nice_is_real_time;
	/* CPUs that are threads of one core, share the last cache, or belong to one node, by their
	 * numbers; 0: one thread, and one cache and one node for all. Each divides the next. */
	uint32_t threads_of_core;
	uint32_t cpus_of_cache;
	uint32_t cpus_of_node;
	/* Are events coordinated (2: with a task server on every CPU), and which rules are left out
	 * (enum an_contract_option)? With one tree only. */
	uint32_t events;
	uint32_t event_options;
};

/* What ways through the kernel cost [instructions]: costs.toml, which says how each is measured. */
struct sim_costs {
	/* callbacks, and what they take more by what they decide (struct an_stats in bpf/intf.h) */
	uint64_t enqueue, enqueue_preempts;
	uint64_t dispatch, dispatch_picks, dispatch_keeps, dispatch_picks_contract;
	uint64_t running, running_contract;
	uint64_t stopping, stopping_contract;
	uint64_t init_task, enable, exit_task;
	uint64_t schedule;  /* __schedule() and the switch, without callbacks */
	uint64_t wake;	    /* try_to_wake_up(), without callbacks */
	uint64_t interrupt; /* entry and exit */
	uint64_t timer;	    /* expiry of a high-resolution timer */
	uint64_t tick;
	uint64_t kick;	  /* the irq_work of kicks, for each CPU kicked */
	uint64_t ipi;	  /* a rescheduling interrupt */
	uint64_t preempt; /* to leave a program that is interrupted, beside schedule */
	/* Parts of the above, where a machine is measured; of an ideal one all that there is: */
	uint64_t level;	    /* of a decision, for each level of the tree down to the class chosen */
	uint64_t change;    /* of a switch to another task */
	uint64_t migration; /* of such a switch, if it ran on another CPU last */
};

enum sim_event_kind {
	SIM_UNTIL = 0,	 /* the time asked for has come */
	SIM_STEP = 1,	 /* the task on that CPU has done its work: what does it do next? */
	SIM_TIMER = 2,	 /* the timer of that token has expired */
	SIM_EJECTED = 3, /* the scheduler was let go: once */
};

struct sim_event {
	uint32_t kind;
	uint32_t cpu;
	uint32_t task;
	uint32_t pad;
	uint64_t token;
};

struct sim_run {
	uint64_t start_ns;
	uint64_t length_ns;
	uint32_t cpu;
	uint32_t task;
	uint32_t reason;
	uint32_t pad;
};

struct sim_stats {
	uint64_t switches;
	uint64_t wakeups;
	uint64_t interrupts;
	uint64_t dispatches;
	uint64_t enqueues;
	char reason[64]; /* why it was ejected */
	char message[192];
};

struct sim_task {
	uint32_t cgroup;
	int32_t nice;
	uint32_t real_time; /* SCHED_FIFO at this priority; 0: an ordinary task */
	uint32_t flags;	    /* PF_* */
	uint64_t affinity[4];
	uint32_t process_of; /* the task is a thread of this one's process; ~0: of its own */
	uint32_t pad;
};

/* The name of the scheduler that this is a machine of: of its file in bpf/. */
const char *sim_scheduler(void);

void sim_begin(const struct sim_options *options, const struct sim_costs *costs);
void sim_run(uint64_t until_ns, struct sim_event *event);
uint64_t sim_now_ns(void);

uint32_t sim_cgroup(uint32_t parent, uint32_t weight); /* number; the root is 0 */
void sim_cgroup_weight(uint32_t cgroup, uint32_t weight);
void sim_cgroup_idle(uint32_t cgroup, uint32_t idle);
/* So much in every period, and so much saved up; quota ~0: no limit. */
void sim_cgroup_bandwidth(uint32_t cgroup, uint64_t quota_us, uint64_t period_us,
			  uint64_t burst_us);
int sim_cgroup_remove(uint32_t cgroup);
void sim_move(uint32_t task, uint32_t cgroup);

uint32_t sim_fork(const struct sim_task *task); /* number; it is asleep, with no work */
void sim_wake_new(uint32_t task);
void sim_wake(uint32_t task, uint32_t sync);
void sim_block(uint32_t task);	 /* the task that runs here goes to sleep */
void sim_exiting(uint32_t task); /* it is about to exit: what it wakes from here on knows */
void sim_executes(uint32_t task, uint32_t in_execve);
void sim_exit(uint32_t task);
void sim_kill(uint32_t task); /* whatever it does */
void sim_stop(uint32_t task, uint32_t stopped);
void sim_work(uint32_t task, uint64_t ns);
void sim_spend(uint64_t ns); /* the kernel is busy for so long on this CPU */
void sim_yield(uint32_t task);
void sim_timer(uint64_t at_ns, uint64_t token);
void sim_interrupt(uint64_t at_ns, uint32_t cpu, uint64_t token);
void sim_steal(uint32_t cpu, uint64_t ns);
void sim_nice(uint32_t task, int32_t nice);
void sim_affinity(uint32_t task, const uint64_t mask[4]);
void sim_migrate_disable(uint32_t task); /* the task that runs here; it may nest */
void sim_migrate_enable(uint32_t task);

/* The CPU leaves, or comes back; the waiter, which goes to sleep now (sim_block()), is woken when
 * it has. One at a time, and not the last. */
void sim_cpu_off(uint32_t cpu, uint32_t waiter);
void sim_cpu_on(uint32_t cpu, uint32_t waiter);
/* The scheduler is put in charge of the machine as it is, or let go, by the CPU whose turn it is.
 */
void sim_load(void);
void sim_unload(void);
void sim_bypass(uint32_t on); /* the kernel goes without the scheduler, as while it suspends */

/* UNIX sockets, as far as tracepoints tell the scheduler of them: the current task sends to, or
 * has received from, this end of a connection. */
uint32_t sim_socket(uint32_t listener, uint32_t connector); /* number: ends 2n, accepted; 2n + 1 */
void sim_data_ready(uint32_t end);
void sim_received(uint32_t end);

uint64_t sim_used_ns(uint32_t task);
uint64_t sim_worked_ns(uint32_t task);
int sim_cpu_of(uint32_t task);
uint64_t sim_idle_ns(void);
uint64_t sim_stolen_ns(void);
const struct sim_run *sim_runs(uint32_t *count); /* since the last call */
const struct sim_stats *sim_stats(void);

/*
 * Contracts, as the daemon asks the scheduler for them: promise is a struct an_promise, pieces are
 * count struct an_piece. Held by a process whose tasks are bound to it, or by the class of a
 * cgroup. Returns its name; 0: refused.
 */
uint32_t sim_contract_create(const void *promise, const void *pieces, uint32_t count, int cgroup);
int sim_contract_bind(uint32_t task, uint32_t name);
/* The task takes part in a session, with such a cycle [ns]; 0 each: not said. */
int sim_declare(uint32_t task, uint64_t period_ns, uint64_t deadline_ns, uint64_t budget_ns);
int sim_leave(uint32_t task);
/* Anything, in any word of the page that the task shares with the scheduler. */
void sim_scribble(uint32_t task, uint32_t word, uint64_t value);
/* An event of the service is raised for the task, to be delivered then; 0: at once. */
void sim_raise(uint32_t task, uint32_t service, uint64_t deliver_ns);
/* The scheduler looks then whether the task waits and has an event; 0: at once. */
void sim_call(uint32_t task, uint64_t deliver_ns);
/* The task begins a cycle, which is due then; 0: it does not say. */
void sim_cycle(uint32_t task, uint64_t deadline_ns);
int sim_contract_remove(uint32_t name);
int sim_contract_sweep(void); /* every second: slots of contracts that have ended are freed */
/* The contract that the task holds has an event of this service, as andante_event is asked. */
int sim_event_raise(uint32_t task, uint32_t service, uint64_t deliver_ns);
/* From now on there is room for so many learnt contracts, and whichever sleeps gives way. */
void sim_contract_scarce(uint32_t learnt_most);

/* As the daemon does when there is room: a cgroup that shares its parent's class gets its own
 * (andante_class). */
int sim_class(uint32_t cgroup);
uint32_t sim_classes_shared(void);
/* The class of the cgroup has this policy (enum an_policy_kind) from now on (andante_policy). */
int sim_policy(uint32_t cgroup, uint32_t kind, uint64_t quantum_ns, uint32_t nice_is_real_time);

struct sim_kept {
	uint64_t deadlines, misses, violations, exhaustions;
	uint64_t service_ns, borrowed_ns, reclaimed_ns;
};

void sim_contract_kept(uint32_t name, struct sim_kept *kept);

/* Learnt contracts: how many there are, were not made for want of room, and gave way. */
struct sim_learnt {
	uint64_t held, refused, gave_way;
};

void sim_contracts_learnt(struct sim_learnt *learnt);

#endif
