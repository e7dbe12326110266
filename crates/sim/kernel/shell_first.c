/* SPDX-License-Identifier: GPL-2.0 */
/* Linked right before the scheduler: where what it keeps begins (load.c). */
#include "model.h"

char shell_first_zero[64] __attribute__((aligned(64)));
char shell_first_data[64] __attribute__((aligned(64))) = {1};
