/* SPDX-License-Identifier: GPL-2.0 */
/* Linked last: see target.c. */
char fuzz_last_zero[64] __attribute__((aligned(64)));
char fuzz_last_data[64] __attribute__((aligned(64))) = {1};
