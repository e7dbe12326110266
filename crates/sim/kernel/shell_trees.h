/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What user space sees of the class tree's scheduler: its knobs, its programs. For both of its
 * objects, with one tree and with several.
 */
#include "shell.h"

struct sched_ext_ops *model_ops = &andante_ops;

/* How the CPUs are divided into domains: of each object its own. */
static void knobs_of_domains(void);

void model_knobs(void)
{
	u64 quantum = m.options.quantum_ns, in_class = m.options.in_class_wake_ns;
	u32 online = 0;

	for (u32 cpu = 0; cpu < m.options.cpus; cpu++)
		online += !m.rqs[cpu].interrupts_off;

	m.shared = &thread_pages;
	knob(&quantum_ns, &quantum, sizeof(quantum));
	knob(&in_class_wake_ns, &in_class, sizeof(in_class));
	knob(&contract_bound, &m.options.contract_bound, sizeof(u32));
	knob(&learn_bound, &m.options.learn_bound, sizeof(u32));
	knob(&bindings, &m.options.bindings, sizeof(u32));
	knob(&nr_cpus, &m.options.cpus, sizeof(u32));
	knob(&nr_cpus_online, &online, sizeof(u32));
#ifdef AN_EVENTS
	knob(&events_on, &m.options.events, sizeof(u32));
	knob(&event_options, &m.options.event_options, sizeof(u32));
#endif
	knobs_of_domains();
}

bool model_shell_lies(const char *first, const char *last)
{
	return (char *)cpus > first && (char *)trees > first && (char *)&contracts > first &&
	       (char *)cpus < last && (char *)trees < last && (char *)&contracts < last;
}

struct decisions model_decisions(u32 cpu)
{
	return (struct decisions){
		.picks = stats.picks,
		.keeps = stats.kept,
		.contract_picks = stats.contract_picks,
		.wake_preemptions = stats.wake_preemptions,
		.contract_goes_on = contract_continues(cpu_state(cpu)),
	};
}

u64 model_refilled_ns(u64 queue)
{
	u32 domain = queue_domain((u32)queue), leaf = queue_leaf((u32)queue);
	u64 refilled_ns = 0;

	if (queue >= AN_MAX_DOMAINS << 16 || domain >= nr_domains || leaf >= AN_MAX_NODES)
		return 0;
	if (throttled(tree_of(domain), leaf))
		return MODEL_NEVER / 2;
	for (u32 at = leaf; quotas && at; at = an_node(tree_of(domain), at)->parent) {
		u32 owner = an_node(tree_of(domain), at)->bandwidth;

		if (owner && an_bandwidth(&bandwidths, owner)->period_from_ns > refilled_ns)
			refilled_ns = an_bandwidth(&bandwidths, owner)->period_from_ns;
	}
	return refilled_ns;
}

int model_data_ready(struct sock *sk)
{
	return andante_data_ready(sk);
}

int model_received(struct sock *sk, int length)
{
	return andante_received(sk, length);
}

/* ---- contracts, as the daemon asks for them (bpf/holders.h) ---- */

uint32_t sim_contract_create(const void *promise, const void *pieces, uint32_t count, int cgroup)
{
	memset(&contract_call, 0, sizeof(contract_call));
	contract_call.op = AN_CALL_CREATE;
	contract_call.kind = cgroup < 0 ? AN_HELD_BY_PROCESS : AN_HELD_BY_CLASS;
	contract_call.leaf = cgroup < 0 ? AN_NONE : cgroup_leaf(m.cgroups[cgroup]);
	contract_call.pieces = count;
	memcpy(&contract_call.promise, promise, sizeof(struct an_promise));
	model_assert(count <= AN_MAX_PIECES);
	if (count)
		memcpy(contract_call.piece, pieces, count * sizeof(struct an_piece));
	return andante_contract(NULL) ? 0 : contract_call.name;
}

int sim_contract_bind(uint32_t task, uint32_t name)
{
	memset(&contract_call, 0, sizeof(contract_call));
	contract_call.op = AN_CALL_BIND;
	contract_call.pid = m.tasks[task]->pid;
	contract_call.name = name;
	return andante_contract(NULL);
}

/* As the daemon does, which maps the page too. */
int sim_declare(uint32_t task, uint64_t period_ns, uint64_t deadline_ns, uint64_t budget_ns)
{
	struct thread_page *of = bpf_task_storage_get(&thread_pages, m.tasks[task], 0,
						      BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!of->page)
		of->page = calloc(1, ANDANTE_PAGE_BYTES);
	model_assert(of->page);
	memset(of->page, 0, ANDANTE_PAGE_BYTES); /* a session's own is a new one */
	memset(&contract_call, 0, sizeof(contract_call));
	contract_call.op = AN_CALL_DECLARE;
	contract_call.pid = m.tasks[task]->pid;
	contract_call.session = 1;
	contract_call.sink = task + 1;
	contract_call.promise.period_ns = period_ns;
	contract_call.promise.deadline_rel_ns = deadline_ns;
	contract_call.promise.budget_ns = budget_ns;
	return andante_contract(NULL);
}

int sim_leave(uint32_t task)
{
	memset(&contract_call, 0, sizeof(contract_call));
	contract_call.op = AN_CALL_DECLARE;
	contract_call.pid = m.tasks[task]->pid;
	return andante_contract(NULL);
}

static struct andante_page *page_of(uint32_t task)
{
	struct thread_page *of = bpf_task_storage_get(&thread_pages, m.tasks[task], 0, 0);

	return of ? of->page : NULL;
}

void sim_raise(uint32_t task, uint32_t service, uint64_t deliver_ns)
{
	struct andante_page *page = page_of(task);

	model_assert(service < ANDANTE_SERVICES);
	if (!page)
		return;
	page->events[service].deliver_ns = deliver_ns;
	page->events[service].raised++;
}

/* As the daemon does for a program that asks it to. */
void sim_call(uint32_t task, uint64_t deliver_ns)
{
	struct task_state *ts = bpf_task_storage_get(&task_states, m.tasks[task], 0, 0);

	if (ts)
		sink_looks(an_sink(ts->sink)->waits, deliver_ns, an_kclock_ns());
}

void sim_cycle(uint32_t task, uint64_t deadline_ns)
{
	struct andante_page *page = page_of(task);

	if (!page)
		return;
	page->deadline_ns = deadline_ns;
	page->cycles++;
}

void sim_scribble(uint32_t task, uint32_t word, uint64_t value)
{
	u64 *page = m.tasks[task]->gone ? NULL : (u64 *)page_of(task);

	if (page)
		page[word % (sizeof(struct andante_page) / 8)] = value;
}

int sim_contract_remove(uint32_t name)
{
	memset(&contract_call, 0, sizeof(contract_call));
	contract_call.op = AN_CALL_REMOVE;
	contract_call.name = name;
	return andante_contract(NULL);
}

int sim_contract_sweep(void)
{
	memset(&contract_call, 0, sizeof(contract_call));
	contract_call.op = AN_CALL_SWEEP;
#ifdef AN_EVENTS
	if (events_on && m.options.events == 2) {
		memset(&event_call, 0, sizeof(event_call));
		event_call.op = AN_EVENT_SERVERS;
		model_assert(!andante_event(NULL));
	}
#endif
	return andante_contract(NULL);
}

#ifdef AN_EVENTS
int sim_event_raise(uint32_t task, uint32_t service, uint64_t deliver_ns)
{
	memset(&event_call, 0, sizeof(event_call));
	event_call.op = AN_EVENT_RAISE;
	event_call.pid = m.tasks[task]->pid;
	event_call.service = service;
	event_call.deliver_ns = deliver_ns;
	return andante_event(NULL);
}
#endif

void sim_contract_scarce(uint32_t learnt_most)
{
	contracts.learnt_most = contracts.learnt_free = learnt_most;
	contracts.gives_way_ns = 0;
}

int sim_class(uint32_t cgroup)
{
	memset(&contract_call, 0, sizeof(contract_call));
	contract_call.cgroup_id = cgroup_of(cgroup)->kn->id;
	return andante_class(NULL);
}

int sim_policy(uint32_t cgroup, uint32_t kind, uint64_t quantum_ns, uint32_t nice_is_real_time)
{
	policy_call = (struct an_policy_call){
		.cgroup_id = cgroup_of(cgroup)->kn->id,
		.kind = kind,
		.quantum_ns = quantum_ns,
		.nice_is_real_time = nice_is_real_time,
	};
	return andante_policy(NULL);
}

uint32_t sim_classes_shared(void)
{
	return stats.classes_shared;
}

void sim_contracts_learnt(struct sim_learnt *learnt)
{
	*learnt = (struct sim_learnt){
		.held = contracts.learnt,
		.refused = stats.learnt_refused,
		.gave_way = stats.learnt_gave_way,
	};
}

void sim_contract_kept(uint32_t name, struct sim_kept *kept)
{
	const struct an_contract *c = an_contract(&contracts, name & 0xffff);

	*kept = (struct sim_kept){
		.deadlines = c->deadlines,
		.misses = c->misses,
		.violations = c->violations,
		.exhaustions = c->exhaustions,
		.service_ns = c->service_ns,
		.borrowed_ns = c->borrowed_ns,
		.reclaimed_ns = c->reclaimed_ns,
	};
}

/* ---- what must hold (race.c) ---- */

#include "../../../core/tests/invariants.h"

static const char *queue_broken(u32 domain, u32 leaf)
{
	const struct an_node *n = an_node(tree_of(domain), leaf);
	const struct dsq *dsq = dsq_find(queue_of(domain, leaf));

	if (n->kind == AN_LEAF && dsq && n->queued < dsq->count)
		return "a leaf counts all tasks in its queue that are not claimed";
	return NULL;
}

/* A task waits under the key that it has by the policy of its class. */
static const char *key_broken(u32 domain, u32 leaf)
{
	const struct dsq *dsq = dsq_find(queue_of(domain, leaf));
	u32 version = leaf_policy(leaf)->version;

	if (an_node(tree_of(domain), leaf)->kind != AN_LEAF || !dsq || !version ||
	    *leaf_walk(leaf) == POLICY_WALKS)
		return NULL;
	for (u32 at = 0; at < dsq->count; at++) {
		struct task_struct *p = dsq->task[at];
		const struct task_state *ts =
			p->storage.value; /* bpf_…() would let others have their turn */

		if (ts && ts->policy == version && ts->member.version == version &&
		    (ts->member.standing != AN_LEAF_WAITS || p->scx.dsq_vtime != ts->member.key))
			return "a task waits under the key of its class's policy";
	}
	return NULL;
}

/* What a map keeps of the task; bpf_…() would let others have their turn. */
static const void *kept_of(const struct task_struct *p, const void *map)
{
	const struct local_storage *of = &p->storage;

	while (of && of->map != map)
		of = of->next;
	return of ? of->value : NULL;
}

/* Has it an event that is due, and has somebody called for that? */
static bool has_event(const struct task_struct *p, const struct task_state *ts)
{
	const struct thread_page *of = kept_of(p, &thread_pages);

	for (u32 service = 0; p->told && of && of->page && service < ANDANTE_SERVICES; service++)
		if (of->page->events[service].raised != ts->delivered[service] &&
		    of->page->events[service].deliver_ns <= m.now_ns)
			return true;
	return false;
}

/* Of those that wait in the queue of a contract, who has an event is in front, or is looked for
 * before the next is taken (session_order()). */
static const char *event_broken(u32 index)
{
	const struct dsq *dsq = dsq_find(contract_queue(index));

	/* A learnt one has one task, which has no siblings to come before. */
	if (an_holder(index)->kind == AN_LEARNT_OF_THREAD)
		return NULL;
	for (u32 at = 0; dsq && at < dsq->count; at++) {
		const struct task_struct *p = dsq->task[at];
		const struct task_state *ts = kept_of(p, &task_states);

		/* One that has ended, or is another's now, lets its tasks go. */
		if (ts && ts->counted != contract_name(index) &&
		    !(an_holder(index)->noted | an_holder(index)->ended))
			return "a task waits in the queue of the contract that counts it";
		/* Whoever joins while it waits already is known where it waits next; and so is
		 * whoever waits in the queue of a contract that has ended, and will be let go. */
		if (!ts || !ts->declared.session || ts->policy ||
		    p->scx.runnable_at_ns <= p->joined_ns || contract_named(ts->contract) != index)
			continue;
		if (ts->ahead && p->scx.dsq_vtime != ts->sfq.start - SESSION_AHEAD_NS)
			return "a thread that has an event is in front of its siblings";
		if (!ts->ahead && has_event(p, ts) && !an_holder(index)->looks)
			return "an event for a thread that waits is looked for";
	}
	return NULL;
}

/* Nobody would ever remove it. */
static const char *class_broken(u32 index)
{
	const struct an_node *n = an_node(&trees[0], index);
	u64 id = *an_cgroup_id(&trees[0], index);

	if ((n->kind == AN_LEAF || n->kind == AN_INNER) && id && id <= m.cgroup_count &&
	    m.cgroups[id - 1]->gone)
		return "a class has a cgroup";
	return NULL;
}

/*
 * How late a CPU may look at its choice [ns]: before the next tick, at 4 ms, which would hide that
 * it has not been asked; much later than interrupts wait for one another.
 */
#define LOOKS_LATE_NS 2000000

static bool is_kicked(const struct rq *rq)
{
	for (u32 cpu = 0; cpu < m.options.cpus; cpu++)
		if (m.rqs[cpu].kicks && mask_test(&m.rqs[cpu].to_kick, rq->cpu))
			return true;
	return rq->need_resched;
}

/* It was to look then, or is to, and goes on with the task that it had. */
static const char *look_broken(u32 cpu)
{
	const struct cpu_state *c = cpu_state(cpu);
	const struct rq *rq = rq_of(cpu);

	if (!c->running || rq->curr->class != CLASS_EXT || rq->bypassing || !rq->online)
		return NULL;
	if (c->check_ns && m.now_ns > c->check_ns + LOOKS_LATE_NS)
		return "a CPU looks at its choice when that is due";
	/* But for who goes before everybody else for so long. */
	if (c->check_ns && c->check_ns <= m.now_ns + AT_ONCE_NS)
		return NULL;
	/* A kick of a CPU that goes without the scheduler for a moment longer is not done. */
	if (c->since_ns <= m.bypass_ended_ns)
		return NULL;
	if (c->asked && rq->curr->scx.slice && !is_kicked(rq))
		return "a CPU that was asked looks at its choice anew";
	return NULL;
}

/* One that has left: nobody would end what it has begun to serve. */
static const char *left_broken(u32 cpu)
{
	if (rq_of(cpu)->interrupts_off && cpu_state(cpu)->serving)
		return "a CPU that has left serves nobody";
	return NULL;
}

const char *model_scheduler_broken(bool quiet)
{
	static struct invariants seen[AN_TREES];
	const char *broken = NULL;
	u32 index;

	for (u32 cpu = 0; !broken && quiet && cpu < m.options.cpus; cpu++)
		broken = look_broken(cpu) ?: left_broken(cpu);
	for (u32 name = 1; !broken && quiet && name < contracts.unused; name++)
		broken = event_broken(name);
	for (u32 domain = 0; !broken && domain < nr_domains; domain++) {
		struct an_tree *t = tree_of(domain);

		/* However few CPUs there are: of domains AN_OWED_IN_VAIN_QUANTA may be owed too. */
		seen[domain].cpus = m.options.cpus > 4 ? m.options.cpus : 4;
		broken = invariant_broken(t, &seen[domain], &index);
		for (u32 leaf = 1; !broken && quiet && leaf < t->unused; leaf++)
			broken = queue_broken(domain, leaf) ?: class_broken(leaf) ?: key_broken(domain, leaf);
	}
	return broken;
}
