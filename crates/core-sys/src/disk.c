// SPDX-License-Identifier: GPL-2.0
/*
 * The disk scheduler's functions, which are inline, with names that Rust can link. Apart from
 * core_sys.c, for a disk has fewer classes and contracts than a machine: as many as a link.
 */
#include <stddef.h>

#define AN_MAX_NODES 1024
#define AN_MAX_CONTRACTS 128
#define AN_MAX_CONTRACT_CPUS 4
#define AN_MAX_SPLITS 2
#define an_events_on false
#include "disk.h"

size_t an_sys_disk_size(void)
{
	return sizeof(struct an_disk);
}

void an_sys_disk_init(struct an_disk *d, const struct an_disk_model *model, u32 mode)
{
	an_disk_init(d, model, mode);
}

u32 an_sys_disk_class(struct an_disk *d, u32 parent, u32 weight, u32 manner)
{
	return an_disk_class_create(d, parent, 0, weight, manner);
}

int an_sys_disk_remove(struct an_disk *d, u32 leaf)
{
	return an_disk_class_remove(d, leaf);
}

void an_sys_disk_weigh(struct an_disk *d, u32 leaf, u32 weight)
{
	if (weight == AN_WEIGHT_IDLE)
		an_class_set_idle(&d->tree, leaf);
	else
		an_class_set_weight(&d->tree, leaf, weight);
}

int an_sys_disk_promise(struct an_disk *d, u32 leaf, u32 bytes, u64 period_ns, u64 now_ns)
{
	return an_disk_promise(d, leaf, bytes, period_ns, now_ns);
}

void an_sys_disk_arrive(struct an_disk *d, u32 index, u32 leaf, u64 sector, u32 sectors, u64 now_ns)
{
	an_disk_arrive(d, index, leaf, sector, sectors, now_ns);
}

u32 an_sys_disk_next(struct an_disk *d, u64 now_ns)
{
	return an_disk_next(d, now_ns);
}

u64 an_sys_disk_waits_until_ns(const struct an_disk *d)
{
	return d->waits_until_ns;
}

void an_sys_disk_done(struct an_disk *d, u32 index, u64 now_ns)
{
	an_disk_done(d, index, now_ns);
}

void an_sys_disk_counts(struct an_disk *d, u32 leaf, struct an_disk_counts *counts)
{
	*counts = *an_disk_counts(d, leaf);
}
