/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Work done for another: a server's work is charged to the class of the client that it serves, and
 * done with that class's share (or contract). Part of sched.bpf.c; the rule is core/binding.h.
 *
 * Two things must come together, each seen where it happens:
 *
 *      a request    a thread connects to a UNIX socket, or sends to the accepted end of such a
 *                   connection, and that wakes a thread of another process; or a thread, awake
 *                   already, receives something from the accepted end
 *      an answer    before it has another's request, or anybody else wakes it, that thread sends
 *                   to the connecting end of one, whose process is the one that asked
 *
 * A process that a thread has answered often enough is a *client* of that thread's process. All
 * threads of that are bound by its requests then, and by its wake-ups alone: sound servers talk to
 * their clients over a socket, and pass them the eventfds, pipes or futexes by which they wake each
 * other in every period.
 *
 * Of a stranger wake-ups alone would not do. A full pipe's reader wakes its writer, so that a pipe
 * looks like question and answer; and a server that is quick enough answers before its client has
 * gone to sleep, and wakes nobody. Only what is accepted can answer, so of two that talk to each
 * other it is clear who serves.
 *
 * From a request on (one received while it runs: from when it is queued next) until another's, or
 * until it is woken by something else, the server's thread is *bound*: its leaf is the client's,
 * and all the rest (queue, tags, charge, contract) follows from the leaf. Its own class is kept in
 * home. A client that is itself bound passes the binding on.
 *
 * A client's class may be removed while a server is bound to it, and even waits in its queue: the
 * class sends it home (binding_closes()).
 *
 * Threads of one class are never bound to it, and where there is but one class nothing is done.
 */
#ifndef ANDANTE_BPF_BINDING_H
#define ANDANTE_BPF_BINDING_H

#include "leaf_policy.h"
#include "queue.h"

u32 binding_closing SEC(".bss.contracts") = 0; /* leaf whose class is being removed */

/* ---- what goes over sockets ---- */

/* The process at the other end of this connection, as it was when the connection was made. */
static __always_inline s32 socket_peer_process(struct sock *sk)
{
	return sk->sk_peer_pid ? BPF_CORE_READ(sk, sk_peer_pid, numbers[0].nr) : 0;
}

/* Has it been accepted, or bound, so that a server answers through it? Of a pair neither has. */
static __always_inline bool socket_is_accepted(struct sock *sk)
{
	return BPF_CORE_READ((struct unix_sock *)sk, addr);
}

/* A process, and a server that has answered it. The number of one that has ended may come again:
 * then another that wakes the server's threads is taken for its client. */
struct client {
	u32 process, server;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct client);
	__type(value, u8);
} clients SEC(".maps");

u32 clients_seen SEC(".bss.contracts") = 0; /* how many have ever come into the map */

/* Is the process a client of this thread's? */
static __always_inline bool client_known(struct task_struct *server, u32 process)
{
	struct client client = {.process = process, .server = server->tgid};

	return bpf_map_lookup_elem(&clients, &client);
}

/* The thread has answered the process so often that it is a client of its process. */
static __noinline void client_noted(struct task_struct *server, u32 process)
{
	struct client client = {.process = process, .server = server->tgid};
	u8 seen = 1;

	if (!client_known(server, process) && !bpf_map_update_elem(&clients, &client, &seen, 0))
		__sync_fetch_and_add(&clients_seen, 1);
}

/* Something is sent to this socket; who waits for it is about to be woken. */
SEC("tp_btf/sk_data_ready")
int BPF_PROG(andante_data_ready, struct sock *sk)
{
	struct task_struct *sender = bpf_get_current_task_btf();
	struct unix_sock *to;
	struct task_state *ts;

	to = bpf_skc_to_unix_sock(sk);
	if (!to)
		return 0;
	if (to->addr) { /* or it listens, and the sender connects */
		if (trees[0].classes > 1)
			cpu_state(bpf_get_smp_processor_id())->asks = sender->pid;
		return 0;
	}
	if (!to->peer || !socket_is_accepted(to->peer))
		return 0;
	ts = bpf_task_storage_get(&task_states, sender, 0, 0);
	if (!ts)
		return 0;
	ts->answers++;
	if (!ts->asked_by || ts->asked_by != socket_peer_process(to->peer))
		return 0;
	an_binding_answer(&ts->binding);
	if (an_binding_answers(&ts->binding))
		client_noted(sender, ts->asked_by);
	return 0;
}

/* ---- whose work it is ---- */

/* The task, which is not queued, is of this class from now on. */
static __always_inline void binding_set(struct task_state *ts, u32 leaf, u32 generation, u32 home)
{
	ts->leaf = leaf;
	ts->generation = generation;
	ts->home = home;
	leaf_policy_found(ts, leaf);
	ts->sfq.fresh = 1;
}

static __always_inline void binding_ends(struct task_state *ts)
{
	ts->asked_by = 0;
	if (ts->home)
		binding_set(ts, ts->home, ts->home_generation, AN_NONE);
}

/* May a task be bound to this class, or stay so? */
static __always_inline bool binding_holds(u32 leaf, u32 generation)
{
	const struct an_node *n = an_node(&trees[0], leaf);

	return leaf != binding_closing && n->kind == AN_LEAF && n->generation == (u16)generation;
}

/* See an_binding_ask(). The clocks of two CPUs may differ by a little; its must not go back. */
an_global bool binding_ask(struct task_state *ts, u32 container)
{
	u64 now_ns = an_kclock_ns();

	if (!ts)
		return false;
	if (now_ns > ts->binding_ns)
		ts->binding_ns = now_ns;
	return an_binding_ask(&ts->binding, container, ts->binding_ns);
}

/*
 * The task, whose own class is home, has a request of this thread's. True if that one's class is to
 * pay for the work: it is an_binding_payer() then.
 */
static __noinline bool binding_asked(struct task_struct *p, struct task_state *ts, u32 home,
				     struct task_struct *client)
{
	struct task_state *from = bpf_task_storage_get(&task_states, client, 0, 0);
	u32 leaf = from ? from->leaf : AN_NONE, generation = from ? from->generation : 0;

	ts->asked_by = 0;
	if (!leaf || leaf == home || client->tgid == p->tgid || !binding_holds(leaf, generation))
		return false;
	ts->asked_by = client->tgid;
	if (binding_ask(ts, leaf | generation << 16))
		return true;
	if (!client_known(p, client->tgid))
		return false;
	an_binding_vouch(&ts->binding);
	return true;
}

/* The task, which is not queued, works for who has asked last from now on; in its own class, if
 * nobody has, or that one is not to pay. */
static __always_inline void binding_turns(struct task_state *ts, bool pays)
{
	u32 container = an_binding_payer(&ts->binding), leaf = container & 0xffff;

	if (!pays) {
		if (ts->home)
			binding_set(ts, ts->home, ts->home_generation, AN_NONE);
		return;
	}
	stats.bound++;
	if (ts->leaf == leaf)
		return;
	if (!ts->home)
		ts->home_generation = ts->generation;
	binding_set(ts, leaf, container >> 16, ts->home ? ts->home : ts->leaf);
}

/*
 * The task, a server, is queued without having slept. Meanwhile it may have received another's
 * request, or answered often enough: a client that takes the CPU as soon as it has its answer, and
 * asks again, would never let its server sleep, nor be woken.
 */
static __always_inline u32 binding_awake(struct task_state *ts)
{
	u32 container = an_binding_payer(&ts->binding), leaf = container & 0xffff;
	u32 home = ts->home ? ts->home : ts->leaf;
	bool pays = ts->asked_by && an_binding_answers(&ts->binding) && leaf != home &&
		    binding_holds(leaf, container >> 16);

	if (ts->leaf != (pays ? leaf : home))
		binding_turns(ts, pays);
	return ts->leaf;
}

/* The current task, while it runs, has received what the process at the other end has sent. */
static __noinline void binding_received(struct task_struct *p, struct task_state *ts,
					struct sock *sk, s32 process)
{
	struct task_struct *client = bpf_task_from_pid(process);

	if (!client)
		return;
	/* Not if that has ended, and its number is another's. */
	if (client->thread_pid == sk->sk_peer_pid)
		binding_asked(p, ts, ts->home ? ts->home : ts->leaf, client);
	bpf_task_release(client);
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(andante_received, struct sock *sk, int length)
{
	struct task_struct *p = bpf_get_current_task_btf();
	struct unix_sock *from;
	struct task_state *ts;
	s32 process;

	if (trees[0].classes < 2 || length <= 0)
		return 0;
	from = bpf_skc_to_unix_sock(sk);
	process = from && from->addr ? socket_peer_process(sk) : 0;
	ts = process ? bpf_task_storage_get(&task_states, p, 0, 0) : NULL;
	if (ts && ts->leaf && ts->asked_by != process)
		binding_received(p, ts, sk, process);
	return 0;
}

/* Is the thread that wakes the task one of a client's? */
static __noinline bool client_wakes(struct task_struct *p, struct task_state *ts,
				    struct task_struct *waker)
{
	u32 process = waker->tgid, seen = clients_seen;

	if (process == p->tgid || (process == ts->stranger && seen == ts->stranger_of))
		return false;
	if (client_known(p, process))
		return true;
	ts->stranger = process;
	ts->stranger_of = seen;
	return false;
}

/*
 * The task, of this leaf so far, is woken on this CPU. Returns the leaf that it works for from now
 * on: that of whoever has woken it, or its own.
 */
static __always_inline u32 binding_wake(struct task_struct *p, struct task_state *ts, u32 leaf,
					struct cpu_state *c)
{
	if ((c->asks || clients_seen) && !an_kin_interrupt()) {
		struct task_struct *waker = bpf_get_current_task_btf();
		bool asks = c->asks && c->asks == waker->pid; /* the idle task's is 0 */

		if (asks)
			c->asks = 0;
		if (asks || client_wakes(p, ts, waker)) {
			binding_turns(ts, binding_asked(p, ts, ts->home ? ts->home : leaf, waker));
			return ts->leaf;
		}
	}
	if (ts->home || ts->asked_by)
		binding_ends(ts);
	return ts->leaf;
}

/* The task, of this leaf so far, is queued: which is it of from now on? Called only where the task
 * is bound, has been asked, or may be: most programs are no servers. */
static __noinline u32 binding_leaf(struct task_struct *p, struct task_state *ts, u32 leaf,
				   struct cpu_state *here, bool woken)
{
	if (bindings && trees[0].classes > 1 && woken)
		return binding_wake(p, ts, leaf, here);
	if (ts->asked_by | ts->home)
		return binding_awake(ts);
	return leaf;
}

/* ---- the client's class goes ---- */

/* The task, next in the queue that is gone through, is to be moved to its own class's. */
static __always_inline void binding_goes_home(struct bpf_iter_scx_dsq *it, u32 domain,
					      struct task_state *ts)
{
	binding_ends(ts);
	an_task_wake(an_node(tree_of(domain), ts->leaf)->vtime, &ts->sfq);
	scx_bpf_dsq_move_set_vtime(
		it, task_wants(ts, ts->leaf, an_kconst(scx_enq_flags, SCX_ENQ_WAKEUP)));
}

/* Leaf whose queue the task, next in the queue that is gone through, is to be moved to. */
static __always_inline u32 binding_queue(struct bpf_iter_scx_dsq *it, struct task_state *ts)
{
	if (ts->home && !binding_holds(ts->leaf, ts->generation))
		binding_goes_home(it, 0, ts);
	return ts->leaf;
}

/* How long another CPU may be in the middle of queueing a task, at most. */
#define BINDING_QUEUEING_NS 200000ULL

/*
 * The class of this leaf is about to be removed, and nobody is bound to it any more. Those of its
 * queue in this domain go to their own classes.
 */
static __noinline void binding_closes(u32 domain, u32 leaf)
{
	u64 until_ns = an_kclock_ns() + BINDING_QUEUEING_NS, queue = queue_of(domain, leaf);
	struct bpf_iter_scx_dsq it;

	binding_closing = leaf;
	if (nr_cpus > 1)
		an_while(queue_grows(queue) && an_kclock_ns() < until_ns)
			;
	bpf_iter_scx_dsq_new(&it, queue, 0);
	an_while(true) {
		struct task_struct *p = bpf_iter_scx_dsq_next(&it);
		struct task_state *ts = p ? bpf_task_storage_get(&task_states, p, 0, 0) : NULL;
		u32 home;

		if (!ts || !ts->home)
			break;
		home = ts->home;
		binding_goes_home(&it, domain, ts);
		queue_move(&it, p, domain, home);
	}
	bpf_iter_scx_dsq_destroy(&it);
}

#endif
