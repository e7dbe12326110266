// SPDX-License-Identifier: GPL-2.0
/*
 * Domains compiled as BPF: every entry point is called from a program, so that whatever clang
 * cannot turn into BPF fails `make -C core bpf-test`. Loaded by nobody.
 */
#include "bpf_types.h"

#include "../domains.h"

struct an_tree domains[2];
struct an_everywhere everywhere;
u64 by;
u32 first, second, leaf, other, weight;
u64 service_ns;
bool due;

PROGRAM int call_shares(void *context)
{
	(void)context;
	an_domain_wakes(&domains[0], &everywhere, leaf);
	leaf = an_domain_pick(&domains[0], &everywhere, by);
	an_everywhere_add(&everywhere, &domains[0], leaf, service_ns);
	return 0;
}

PROGRAM int call_places(void *context)
{
	(void)context;
	u32 at = an_child_towards(&domains[0], first, leaf);

	second = an_looks_at(&domains[0], leaf, 0, 2);
	other = an_domain_next(&domains[1], &everywhere, at);
	due = other == leaf ? an_mates_due(&domains[1], leaf, &domains[0])
			    : an_pull_due(&domains[0], &everywhere, leaf, other);
	if (an_serves_others(&domains[0], leaf, first))
		an_move_away(&domains[0], leaf, an_mates_here(&domains[1], &everywhere, leaf));
	other = an_pull_failed(&domains[0], leaf, other, first);
	second = an_move_here(&domains[1], &everywhere, other);
	if (second)
		an_move_away(&domains[0], other, second);
	an_serve_pulled(&domains[0], &everywhere, leaf);
	return 0;
}

PROGRAM int call_structure(void *context)
{
	(void)context;
	first = an_first_free(&domains[0], AN_ROOT_LEAF);
	second = an_first_free(&domains[1], first);
	an_everywhere_create(&everywhere, leaf, first, second);
	leaf = an_domain_create(&domains[1], leaf, 0, weight, first, second);
	return 0;
}
