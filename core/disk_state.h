/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A disk: its classes, their contracts and requests. disk.h has the calls.
 */
#ifndef ANDANTE_CORE_DISK_STATE_H
#define ANDANTE_CORE_DISK_STATE_H

#include "disk_promised.h"
#include "link_contracts.h"

/* The thing that classes have shares of. */
enum an_disk_mode {
	AN_DISK_TIME = 0,
	AN_DISK_BYTES = 1,
};

/* The outcome of a class's requests. */
struct an_disk_counts {
	u64 requests; /* done */
	u64 bytes;
	u64 time_ns;  /* of the disk */
	u64 promised; /* of the requests, by contract */
	u64 late;     /* ... of these, after their deadline */
};

struct an_disk {
	struct an_tree tree;
	struct an_link_contracts contracts;
	struct an_disk_model model;
	struct an_requests classes[AN_MAX_NODES]; /* by leaf */
	struct an_disk_counts counts[AN_MAX_NODES];
	struct an_request requests[AN_MAX_REQUESTS];
	struct an_promised promised;
	u32 mode;	    /* enum an_disk_mode */
	u32 in_service;	    /* requests */
	u64 arm;	    /* where the last one that went to the disk ends [sectors] */
	u64 waits_until_ns; /* the disk is idle until then, for what is expected; 0: it is not */
	u64 shared_ns;	    /* the time that a request has had that has always been in service */
	u64 settled_ns;	    /* ... up to here */
	u64 quantum_ns;	    /* of a turn; 0: it is one request */
	u64 turn_used_ns;   /* of it */
	u32 turn;	    /* the leaf whose turn it is, or AN_NONE */
	u32 pad;
};

an_inline struct an_request *an_request(struct an_disk *d, u32 index)
{
	return an_request_of(d->requests, index);
}

an_inline struct an_requests *an_disk_class(struct an_disk *d, u32 leaf)
{
	return &d->classes[an_bounded(leaf, AN_MAX_NODES)];
}

an_inline struct an_disk_counts *an_disk_counts(struct an_disk *d, u32 leaf)
{
	return &d->counts[an_bounded(leaf, AN_MAX_NODES)];
}

#endif
