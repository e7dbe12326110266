/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The policy core: every scheduling decision of Andante, once, for whatever runs it.
 *
 * Include this. port.h is the seam to the compiler; tag.h, tree.h, hsfq.h and task.h (shares), and
 * contract.h, contract_run.h, dwcs.h, cbs.h, fcbs.h, edfwm.h, event.h (contracts) are to be read
 * in that order.
 */
#ifndef ANDANTE_CORE_H
#define ANDANTE_CORE_H

#include "contract.h"
#include "contract_run.h"
#include "event.h"
#include "hsfq.h"
#include "port.h"
#include "tag.h"
#include "task.h"
#include "tree.h"

#endif
