/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A disk scheduler: Cello [1]. Which request goes to the disk next, of all classes.
 *
 *      an_disk_arrive() --> [waits, in its class] --.
 *                                |                   `-- an_disk_next() --> [in service]
 *                                `--> [scheduled] --'                            |
 *                                     by contract              an_disk_done() <--'
 *
 * It decides at two levels, with two scales of time. Coarse: which class may have the disk, for
 * some requests (disk_turn.h). Fine: which of its requests goes, and when, beside deadlines
 * (disk_requests.h, disk_promised.h). So a class gets its part of the disk however its requests
 * lie, and the arm and the deadlines have their way within.
 *
 * The coarse level is the tree of hsfq.h; a disk that serves n requests at once is n CPUs of it.
 * A class is charged the disk's *time*, of which requests that are far apart take much, or
 * *bytes*, whatever they take: the two modes of [1]. There a class has an allocation of each
 * interval, which is given to others where it is idle; here it is owed the same at every instant,
 * to within a quantum of each class, and there is no interval to be chosen. Time is shared as it
 * passes: while n requests are in service, each has 1/n of it.
 *
 * Before the classes' turn comes that of contracts: a class's requests go before others' as far as
 * its budget reaches, by the deadline of that budget, and are not charged to the class then
 * (link_contracts.h, for which the disk is a link of its own rate). But a request cannot be called
 * back. So the disk also waits for a request of a contract that is expected, if the one that would
 * go otherwise made it late.
 *
 * One instance is one disk, with a lock of its caller's. Cost, d being the depth, k the siblings
 * that are ready, n those that are scheduled, w those of a class that wait and c the contracts:
 * an_disk_arrive() O(d), if the class had no request, else O(1); an_disk_next() as an_pick(), O(n)
 * for each that is scheduled, O(w) of a class that wants throughput, O(c); an_disk_done() as
 * an_stop().
 *
 * [1]: see disk_promised.h.
 */
#ifndef ANDANTE_CORE_DISK_H
#define ANDANTE_CORE_DISK_H

#include "disk_turn.h"

an_inline void an_disk_class_init(struct an_disk *d, u32 leaf, enum an_manner wants)
{
	an_turn_class_init(d, an_disk_class(d, leaf), wants);
	*an_disk_counts(d, leaf) = (struct an_disk_counts){0};
	*an_leaf_contract(&d->contracts, leaf) = AN_NONE;
}

/* The part that a pick is expected to use: a turn, or where there are none, a page [ns or bytes].
 */
an_inline u64 an_disk_expected(const struct an_disk *d)
{
	const struct an_disk_model *m = &d->model;
	const u32 page = 4096;
	u64 ns = d->quantum_ns;

	if (d->mode == AN_DISK_BYTES)
		return ns ? ns * m->rate / AN_SECOND_NS : page;
	return ns ? ns : m->seek_ns + an_disk_pass_ns(m, page >> AN_SECTOR_SHIFT) + 1;
}

/* No class but the root's, no request. It forgets all that was here before. */
an_inline void an_disk_init(struct an_disk *d, const struct an_disk_model *model,
			    enum an_disk_mode mode)
{
	u32 i = 0;

	an_while(i < AN_MAX_NODES) {
		*an_node(&d->tree, i) = (struct an_node){0};
		i = an_opaque(i + 1);
	}
	d->model = *model;
	if (!d->model.at_once)
		d->model.at_once = 1;
	d->mode = mode;
	d->quantum_ns = an_disk_quantum_ns(&d->model);
	an_tree_init(&d->tree, an_disk_expected(d), d->model.at_once);
	d->tree.own_cpus = d->tree.cpus;
	an_link_contracts_init(&d->contracts);
	an_disk_class_init(d, AN_ROOT_LEAF, AN_BY_USE);
	d->promised.count = d->in_service = 0;
	d->arm = d->waits_until_ns = d->shared_ns = d->settled_ns = 0;
	d->turn = AN_NONE;
	d->turn_used_ns = 0;
}

/* As an_class_create(), of tree.h. */
an_inline u32 an_disk_class_create(struct an_disk *d, u32 parent_leaf, u64 cgroup_id, u32 weight,
				   enum an_manner wants)
{
	u32 leaf = an_class_create(&d->tree, parent_leaf, cgroup_id, weight);

	if (leaf)
		an_disk_class_init(d, leaf, wants);
	return leaf;
}

/* As an_class_remove(), of tree.h; its contract goes with it. */
an_inline int an_disk_class_remove(struct an_disk *d, u32 leaf)
{
	an_turn_awaits_no_more(d, leaf);
	if (an_class_remove(&d->tree, leaf))
		return -1;
	an_leaf_contract_end(&d->contracts, leaf);
	if (d->turn == leaf)
		d->turn = AN_NONE;
	return 0;
}

/*
 * The class is promised so many bytes in every period, from now on; none: it has its share alone.
 * 0, or -1: the disk does not read so much in that time, and what there was stands. Whether the arm
 * and others leave room for it is not asked: admission is the caller's.
 */
an_outline int an_disk_promise(struct an_disk *d, u32 leaf, u32 bytes, u64 period_ns, u64 now_ns)
{
	if (!bytes) {
		an_leaf_contract_end(&d->contracts, leaf);
		return 0;
	}
	if (an_leaf_contract_set(&d->contracts, leaf, d->model.rate, bytes, period_ns))
		return -1;
	if (an_disk_class(d, leaf)->first)
		an_leaf_contract_wake(&d->contracts, leaf, now_ns);
	return 0;
}

/* A request comes, of this leaf and under this index, for so many sectors; none: it is a flush. */
an_inline void an_disk_arrive(struct an_disk *d, u32 index, u32 leaf, u64 sector, u32 sectors,
			      u64 now_ns)
{
	struct an_request *r = an_request(d, index);

	*r = (struct an_request){.sector = sectors ? sector : d->arm,
				 .sectors = sectors,
				 .deadline_ns = AN_NEVER,
				 .leaf = leaf};
	an_request_arrives(d->requests, an_disk_class(d, leaf), index);
	an_turn_request_comes(d, leaf, sector, now_ns);
	an_leaf_contract_wake(&d->contracts, leaf, now_ns);
}

/* A request of the class waits no more. If it was the last the class is idle, but has not slept. */
an_inline void an_disk_chosen(struct an_disk *d, u32 leaf, u32 index, u64 now_ns)
{
	struct an_requests *c = an_disk_class(d, leaf);

	an_request_chosen(d->requests, c, index);
	if (!c->first)
		an_leaf_contract_sleep(&d->contracts, leaf, now_ns);
}

/* The next request of a contract with budget is scheduled; false: there is none. */
an_inline bool an_disk_schedule(struct an_disk *d, u64 now_ns)
{
	u32 leaf = an_link_contracts_pick(&d->contracts, now_ns), index;
	const struct an_contract *c;
	struct an_requests *k;
	struct an_request *r;

	if (!leaf || d->promised.count >= AN_MAX_PROMISED)
		return false;
	c = an_contract(&d->contracts.set, *an_leaf_contract(&d->contracts, leaf));
	k = an_disk_class(d, leaf);
	index = k->first;
	r = an_request(d, index);
	r->deadline_ns = c->deadline_ns;
	k->expected = an_request_end(r);
	k->under_way--;
	an_link_contracts_charge(&d->contracts, leaf, d->model.rate, r->sectors << AN_SECTOR_SHIFT,
				 now_ns);
	an_queue_withdraw(&d->tree, leaf);
	an_disk_chosen(d, leaf, index, now_ns);
	an_promised_add(&d->model, d->requests, &d->promised, index, d->arm, now_ns);
	return true;
}

/* When the contract's next job is released, if it keeps its period; AN_NEVER: nobody knows. */
an_inline u64 an_contract_expected_ns(const struct an_contract *c, u64 now_ns)
{
	u64 next_ns = an_server_begin_ns(c) + c->promise.period_ns;

	return c->used && c->started && next_ns > now_ns ? next_ns : AN_NEVER;
}

/* The job that is expected of a contract, after a request that ends there: what it takes at most.
 */
an_inline u64 an_disk_job_takes_ns(struct an_disk *d, u32 contract, u64 end)
{
	u32 leaf = d->contracts.leaf[an_bounded(contract, AN_MAX_CONTRACTS)];
	u64 budget_ns = an_contract(&d->contracts.set, contract)->promise.budget_ns;

	return an_disk_seek_ns(&d->model, end, an_disk_class(d, leaf)->expected) +
	       d->model.turn_ns + budget_ns;
}

/* The jobs that are expected and due by then, one after the other behind a request that ends there
 * [ns]. */
an_inline u64 an_disk_jobs_take_ns(struct an_disk *d, u64 deadline_ns, u64 end, u64 now_ns)
{
	u64 all_ns = 0;
	u32 i = 1;

	an_while(i < d->contracts.set.unused) {
		const struct an_contract *c = an_contract(&d->contracts.set, i);
		u64 release_ns = an_contract_expected_ns(c, now_ns);

		if (release_ns != AN_NEVER &&
		    release_ns + c->promise.deadline_rel_ns <= deadline_ns)
			all_ns += an_disk_job_takes_ns(d, i, end);
		i++;
	}
	return all_ns;
}

/*
 * A request of no contract that would make jobs late that are expected waits until they are there:
 * until then, or 0 if it may go. It may if it ends before. So long is the disk idle; one that
 * serves several at once goes on.
 */
an_inline u64 an_disk_waits_until_ns(struct an_disk *d, const struct an_request *r, u64 now_ns)
{
	u64 end_ns = now_ns + an_disk_most_ns(&d->model, d->arm, r->sector, r->sectors);
	u64 until_ns = 0;
	u32 i = 1;

	if (d->model.at_once > 1)
		return 0;
	an_while(i < d->contracts.set.unused) {
		const struct an_contract *c = an_contract(&d->contracts.set, i);
		u64 release_ns = an_contract_expected_ns(c, now_ns);
		u64 deadline_ns = release_ns + c->promise.deadline_rel_ns;

		if (release_ns < end_ns && release_ns > until_ns &&
		    end_ns + an_disk_jobs_take_ns(d, deadline_ns, an_request_end(r), now_ns) >
			    deadline_ns)
			until_ns = release_ns;
		i++;
	}
	return until_ns;
}

/* The next request of no contract, if it may go now, before those that are scheduled. */
an_inline u32 an_disk_next_in_turn(struct an_disk *d, u64 now_ns)
{
	u32 leaf = an_turn_pick(d, now_ns), index;
	struct an_requests *c = an_disk_class(d, leaf);

	if (!leaf)
		return AN_NONE;
	index = an_request_next(d->requests, c, d->arm, leaf == d->turn && d->turn_used_ns);
	d->waits_until_ns = an_disk_waits_until_ns(d, an_request(d, index), now_ns);
	if (d->waits_until_ns ||
	    (d->promised.count && !an_promised_let(&d->model, d->requests, &d->promised, index,
						   c->manner, d->arm, now_ns))) {
		an_unpick(&d->tree, leaf);
		return AN_NONE;
	}
	an_disk_chosen(d, leaf, index, now_ns);
	return index;
}

/* The disk's time passes, for all that are in service. */
an_inline void an_disk_settle(struct an_disk *d, u64 now_ns)
{
	if (d->in_service && now_ns > d->settled_ns)
		d->shared_ns += (now_ns - d->settled_ns) / d->in_service;
	d->settled_ns = now_ns;
}

/*
 * The request that goes to the disk now; AN_NONE: none waits, or as many are in service as the disk
 * serves at once, or it is to be asked again at waits_until_ns, if that is not 0.
 */
an_inline u32 an_disk_next(struct an_disk *d, u64 now_ns)
{
	struct an_request *r;
	u32 index;

	d->waits_until_ns = 0;
	if (d->in_service >= d->model.at_once)
		return AN_NONE;
	an_while(an_disk_schedule(d, now_ns))
		;
	index = an_disk_next_in_turn(d, now_ns);
	if (!index && d->promised.count) {
		d->waits_until_ns = 0;
		index = an_promised_take(&d->promised);
	}
	if (!index)
		return AN_NONE;
	an_disk_settle(d, now_ns);
	r = an_request(d, index);
	r->shared_ns = d->shared_ns;
	d->arm = an_request_end(r);
	d->in_service++;
	return index;
}

/* The request is done. */
an_inline void an_disk_done(struct an_disk *d, u32 index, u64 now_ns)
{
	const struct an_request *r = an_request(d, index);
	struct an_disk_counts *n = an_disk_counts(d, r->leaf);
	u64 bytes = (u64)r->sectors << AN_SECTOR_SHIFT, had_ns;

	an_disk_settle(d, now_ns);
	d->in_service--;
	had_ns = d->shared_ns - r->shared_ns;
	n->requests++;
	n->bytes += bytes;
	n->time_ns += had_ns;
	if (r->deadline_ns != AN_NEVER) {
		n->promised++;
		n->late += now_ns > r->deadline_ns;
		return;
	}
	an_turn_request_done(d, r->leaf, an_request_end(r), had_ns,
			     d->mode == AN_DISK_BYTES ? bytes : had_ns, now_ns);
}

#endif
