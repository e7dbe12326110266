// SPDX-License-Identifier: GPL-2.0
/*
 * Gives the core's functions, which are inline, names that Rust can link. Nothing is decided here.
 */
#include "core.h"
#include "papers/containers.h"

/* Storage that Rust sets aside without knowing what is in it; see lib.rs. */
_Static_assert(sizeof(struct an_member) <= 128 && _Alignof(struct an_member) <= 8, "Member");
_Static_assert(sizeof(struct an_policy) <= 128 && _Alignof(struct an_policy) <= 8, "Policy");

/* ---- the class tree ---- */

size_t an_sys_tree_size(void)
{
	return sizeof(struct an_tree);
}

void an_sys_tree_init(struct an_tree *t, u64 quantum_ns, u32 cpus)
{
	an_tree_init(t, quantum_ns, cpus);
}

u32 an_sys_class_create(struct an_tree *t, u32 parent, u32 weight)
{
	return an_class_create(t, parent, 0, weight);
}

int an_sys_class_remove(struct an_tree *t, u32 leaf)
{
	return an_class_remove(t, leaf);
}

void an_sys_class_set_weight(struct an_tree *t, u32 leaf, u32 weight)
{
	an_class_set_weight(t, leaf, weight);
}

u64 an_sys_class_service_ns(struct an_tree *t, u32 leaf)
{
	return an_node(t, an_class_node(t, leaf))->service_ns;
}

u32 an_sys_ready(struct an_tree *t)
{
	return an_node(t, AN_ROOT)->ready;
}

void an_sys_queue_add(struct an_tree *t, u32 leaf)
{
	an_queue_add(t, leaf);
}

void an_sys_queue_withdraw(struct an_tree *t, u32 leaf)
{
	an_queue_withdraw(t, leaf);
}

u32 an_sys_pick(struct an_tree *t)
{
	return an_pick(t, 0);
}

bool an_sys_continue(struct an_tree *t, u32 leaf)
{
	return an_continue(t, leaf);
}

void an_sys_stop(struct an_tree *t, u32 leaf, u64 service_ns)
{
	an_stop(t, leaf, service_ns);
}

void an_sys_unpick(struct an_tree *t, u32 leaf)
{
	an_unpick(t, leaf);
}

void an_sys_serve_unpicked(struct an_tree *t, u32 leaf)
{
	an_serve_unpicked(t, leaf);
}

u64 an_sys_preempt_after_ns(struct an_tree *t, u32 woken, u32 serving)
{
	return an_preempt_after_ns(t, woken, serving);
}

/* ---- policies ---- */

void an_sys_policy_init(struct an_policy *p, u32 kind, u64 quantum_ns)
{
	an_policy_init(p, kind, quantum_ns);
}

/* What the shell sets before a task joins: `Parameters` in policy.rs. */
struct an_sys_parameters {
	u32 weight;
	s32 nice;
	s32 priority;
	u8 real_time;
	u8 round_robin;
};

void an_sys_member_init(const struct an_policy *p, struct an_member *m,
			const struct an_sys_parameters *parameters)
{
	m->weight = parameters->weight;
	m->nice = parameters->nice;
	m->priority = parameters->priority;
	m->real_time = parameters->real_time;
	m->round_robin = parameters->round_robin;
	an_policy_join(p, m);
}

void an_sys_policy_fork(const struct an_policy *p, struct an_member *parent,
			struct an_member *child)
{
	an_policy_fork(p, parent, child);
}

/* Priority among all, more is served first; 0 where the policy knows no levels. */
u32 an_sys_member_level(const struct an_policy *p, const struct an_member *m)
{
	return an_policy_is_svr4(p) ? an_svr4_global(&m->svr4) : 0;
}

u64 an_sys_policy_wake(struct an_policy *p, struct an_member *m)
{
	an_policy_wake(p, m);
	return m->key;
}

void an_sys_policy_serve(struct an_policy *p, const struct an_member *m)
{
	an_policy_serve(p, m);
}

void an_sys_policy_used(const struct an_policy *p, struct an_member *m, u64 ran_ns)
{
	an_policy_used(p, m, ran_ns);
}

u64 an_sys_policy_quantum_ns(const struct an_policy *p, const struct an_member *m)
{
	return an_policy_quantum_ns(p, m);
}

u64 an_sys_policy_requeue(struct an_policy *p, struct an_member *m, u32 why)
{
	an_policy_requeue(p, m, why);
	return m->key;
}

void an_sys_policy_block(const struct an_policy *p, struct an_member *m)
{
	an_policy_block(p, m);
}

bool an_sys_policy_preempts(const struct an_policy *p, const struct an_member *woken,
			    const struct an_member *serving)
{
	return an_policy_preempts(p, woken, serving);
}

u64 an_sys_policy_tick_ns(const struct an_policy *p)
{
	return an_policy_tick_ns(p);
}

bool an_sys_policy_tick(struct an_policy *p, struct an_member *m)
{
	return an_policy_tick(p, m);
}

u64 an_sys_policy_age_ns(const struct an_policy *p)
{
	return an_policy_age_ns(p);
}

bool an_sys_policy_age(struct an_policy *p, struct an_member *m, bool queued)
{
	return an_policy_age(p, m, queued);
}

u64 an_sys_member_key(const struct an_member *m)
{
	return m->key;
}

/* ---- resource containers ---- */

size_t an_sys_containers_size(void)
{
	return sizeof(struct an_containers);
}

void an_sys_containers_init(struct an_containers *cs, u64 round_ns, u64 tick_ns)
{
	an_containers_init(cs, round_ns, tick_ns);
}

u32 an_sys_containers_create(struct an_containers *cs, u32 parent, u32 kind, u32 share)
{
	return an_containers_create(cs, parent, kind, share);
}

void an_sys_containers_queue_add(struct an_containers *cs, u32 id)
{
	an_containers_queue_add(cs, id);
}

void an_sys_containers_queue_remove(struct an_containers *cs, u32 id)
{
	an_containers_queue_remove(cs, id);
}

u32 an_sys_containers_pick(struct an_containers *cs)
{
	return an_containers_pick(cs);
}

void an_sys_containers_charge(struct an_containers *cs, u32 id, u64 ran_ns)
{
	an_containers_charge(cs, id, ran_ns);
}

u64 an_sys_containers_slice_ns(struct an_containers *cs, u32 id)
{
	return an_containers_slice_ns(cs, id);
}

bool an_sys_containers_tick(struct an_containers *cs, u32 id)
{
	return an_containers_tick(cs, id);
}

/* ---- rules ---- */

const char *an_sys_rule_name(u32 rule)
{
	return an_rule_name(rule);
}

/* ---- contracts ---- */

size_t an_sys_contracts_size(void)
{
	return sizeof(struct an_contracts);
}

void an_sys_contracts_init(struct an_contracts *cs, u32 options)
{
	an_contracts_init(cs, options);
}

bool an_sys_promise_valid(const struct an_promise *promise)
{
	return an_promise_valid(promise);
}

u32 an_sys_contract_create(struct an_contracts *cs, const struct an_promise *promise)
{
	return an_contract_create(cs, promise);
}

u32 an_sys_contract_wake(struct an_contracts *cs, u32 index, u64 now_ns)
{
	return an_contract_wake(cs, index, now_ns);
}

void an_sys_contract_sleep(struct an_contracts *cs, u32 index, u64 now_ns)
{
	an_contract_sleep(cs, index, now_ns);
}

u32 an_sys_contract_next_job(struct an_contracts *cs, u32 index, u64 released_ns, u64 now_ns)
{
	return an_contract_next_job(cs, index, released_ns, now_ns);
}

u32 an_sys_contract_charge(struct an_contracts *cs, u32 index, u64 ran_ns, u64 now_ns)
{
	return an_contract_charge(cs, index, ran_ns, now_ns);
}

u64 an_sys_contracts_due(struct an_contracts *cs, u32 cpu)
{
	return an_contracts_due(cs, cpu);
}

u64 an_sys_contracts_expire(struct an_contracts *cs, u32 cpu, u64 now_ns, u64 *kick)
{
	return an_contracts_expire(cs, cpu, now_ns, kick);
}

u32 an_sys_contracts_pick(struct an_contracts *cs, u32 cpu, u64 now_ns, bool background, u32 *rule)
{
	return an_contracts_pick(cs, cpu, now_ns, background, rule);
}

u64 an_sys_contract_run_ns(struct an_contracts *cs, u32 index, u64 now_ns)
{
	return an_contract_run_ns(cs, index, now_ns);
}

u32 an_sys_contract_preempts(struct an_contracts *cs, u32 woken, u32 running)
{
	return an_contract_preempts(cs, woken, running);
}

u32 an_sys_contract_cpu(struct an_contracts *cs, u32 index)
{
	return an_contract(cs, index)->cpu;
}

/* What became of a contract so far: `Kept` in contracts.rs. */
struct an_sys_kept {
	u64 deadlines;
	u64 misses;
	u64 violations;
	u64 exhaustions;
	u64 service_ns;
	u64 borrowed_ns;
	u64 reclaimed_ns;
};

void an_sys_contract_kept(struct an_contracts *cs, u32 index, struct an_sys_kept *kept)
{
	const struct an_contract *c = an_contract(cs, index);

	kept->deadlines = c->deadlines;
	kept->misses = c->misses;
	kept->violations = c->violations;
	kept->exhaustions = c->exhaustions;
	kept->service_ns = c->service_ns;
	kept->borrowed_ns = c->borrowed_ns;
	kept->reclaimed_ns = c->reclaimed_ns;
}

/* ---- events ---- */

bool an_sys_event_raise(struct an_contracts *cs, u32 sink, u32 service, u64 deliver_ns, u64 now_ns)
{
	return an_event_raise(cs, sink, service, deliver_ns, now_ns);
}

u64 an_sys_events_due(struct an_contracts *cs, u32 cpu)
{
	return an_events_due(cs, cpu);
}

void an_sys_event_coordinate(struct an_contracts *cs, u32 cpu, u32 selected, u64 now_ns,
			     struct an_event_decision *decision)
{
	an_event_coordinate(cs, cpu, selected, now_ns, decision);
}

bool an_sys_task_server_update(struct an_contracts *cs, u32 cpu, u64 base_ns, u64 now_ns)
{
	return an_task_server_update(cs, cpu, base_ns, now_ns);
}

/* ---- learning ---- */

/* Learner in learner.rs. */
_Static_assert(sizeof(struct an_learner) == 96, "Learner");

u32 an_sys_learn_obstacle(const struct an_learner *l, u32 bound)
{
	return an_learn_obstacle(l, bound);
}

bool an_sys_learn_goes_on(const struct an_learner *l)
{
	return an_learn_goes_on(l);
}

u32 an_sys_learn_part(const struct an_learner *l)
{
	return an_learn_part(l);
}

u32 an_sys_rhythm_ns(const struct an_rhythm *r)
{
	return an_rhythm_ns(r);
}
