/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The policy core: every scheduling decision of Andante, once, for whatever runs it.
 *
 * Include this. port.h is the seam to the compiler; tag.h, tree.h, hsfq.h and task.h are to be
 * read in that order, then policy.h (how a class orders its tasks). containers.h and binding.h are
 * a hierarchy of their own, resource containers.
 */
#ifndef ANDANTE_CORE_H
#define ANDANTE_CORE_H

#include "binding.h"
#include "containers.h"
#include "hsfq.h"
#include "policy.h"
#include "port.h"
#include "tag.h"
#include "task.h"
#include "tree.h"

#endif
