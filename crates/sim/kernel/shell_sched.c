/* SPDX-License-Identifier: GPL-2.0 */
/* The scheduler that users run, as it stands, on the model. */
#include "../../../bpf/sched.bpf.c"
#include "seam.h"
#include "shell.h"
