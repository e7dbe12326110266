/* SPDX-License-Identifier: GPL-2.0 */
/* Linked first: see target.c. */
char fuzz_first_zero[64] __attribute__((aligned(64)));
char fuzz_first_data[64] __attribute__((aligned(64))) = {1};
