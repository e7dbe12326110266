// SPDX-License-Identifier: GPL-2.0
/*
 * Quotas compiled as BPF: every entry point is called from a program, so that whatever clang
 * cannot turn into BPF fails `make -C core bpf-test`. Loaded by nobody.
 */
#include "bpf_types.h"

#include "../bandwidth.h"

struct an_bandwidths bandwidths;
struct an_tree tree;
u32 leaf;
u64 slice_ns, now_ns, due_ns;
bool throttled;

PROGRAM int call_quanta(void *context)
{
	(void)context;
	slice_ns = an_slice_take(&bandwidths, &tree, leaf, slice_ns, now_ns);
	due_ns = an_held_due(&bandwidths, &tree, leaf);
	an_slice_settle(&bandwidths, &tree, leaf, slice_ns, now_ns);
	due_ns = an_held_next(&bandwidths, &tree, now_ns);
	throttled = an_is_throttled(&tree, leaf) && an_slice_exceed(&bandwidths, &tree, leaf);
	return 0;
}

PROGRAM int call_settings(void *context)
{
	(void)context;
	an_bandwidth_set(&bandwidths, leaf, slice_ns, slice_ns, slice_ns, now_ns);
	an_bandwidth_apply(&bandwidths, &tree, leaf);
	return 0;
}
