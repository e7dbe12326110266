/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The policy core: every scheduling decision of Andante, once, for whatever runs it.
 *
 * Include this. port.h is the seam to the compiler; then, in this order: tag.h, tree.h, hsfq.h,
 * bandwidth.h, domains.h and task.h (shares), policy.h (how a class orders its tasks), contract.h,
 * contract_run.h, contract_pick.h, dwcs.h, cbs.h, fcbs.h, edfwm.h, nested.h, rhythm.h, learn.h,
 * learnt.h, declared.h, bucket.h, sink.h and event.h (contracts); binding.h says for whom a thread
 * works. Not in here is papers/: schedulers that published experiments need and the kernel never
 * runs.
 */
#ifndef ANDANTE_CORE_H
#define ANDANTE_CORE_H

#include "bandwidth.h"
#include "binding.h"
#include "contract.h"
#include "contract_pick.h"
#include "contract_run.h"
#include "declared.h"
#include "domains.h"
#include "event.h"
#include "hsfq.h"
#include "leaf_policy.h"
#include "nested.h"
#include "overdue.h"
#include "policy.h"
#include "port.h"
#include "tag.h"
#include "task.h"
#include "tree.h"

#endif
