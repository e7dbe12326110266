/* SPDX-License-Identifier: GPL-2.0 */
/* Linked right behind the scheduler: where what it keeps ends (load.c). */
#include "model.h"

char shell_last_zero[64] __attribute__((aligned(64)));
char shell_last_data[64] __attribute__((aligned(64))) = {1};
