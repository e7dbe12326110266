// SPDX-License-Identifier: GPL-2.0
/*
 * The disk scheduler compiled as BPF: every entry point is called from a program, so that whatever
 * clang cannot turn into BPF fails `make -C core bpf-test`. Loaded by nobody.
 */
#include "bpf_types.h"

#include "../disk.h"

struct an_disk disk;
struct an_disk_model model;
u64 now_ns, sector;
u32 leaf, mode, request, sectors;

PROGRAM int call_begin(void *context)
{
	(void)context;
	an_disk_init(&disk, &model, mode);
	leaf = an_disk_class_create(&disk, leaf, now_ns, sectors, AN_THROUGHPUT);
	an_disk_promise(&disk, leaf, sectors, now_ns, now_ns);
	an_disk_class_remove(&disk, leaf);
	return 0;
}

PROGRAM int call_requests(void *context)
{
	(void)context;
	an_disk_arrive(&disk, request, leaf, sector, sectors, now_ns);
	request = an_disk_next(&disk, now_ns);
	an_disk_done(&disk, request, now_ns);
	return 0;
}
