/* SPDX-License-Identifier: GPL-2.0 */
/* What the BPF shell has from the kernel before it includes the core, for compile tests. */
#ifndef ANDANTE_TESTS_BPF_TYPES_H
#define ANDANTE_TESTS_BPF_TYPES_H

#ifndef __bpf__
#error "compile with -target bpf"
#endif

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int s32;
typedef long long s64;
typedef _Bool bool;
#define true 1
#define false 0

#define PROGRAM __attribute__((section("syscall"), used))

char _license[] __attribute__((section("license"), used)) = "GPL";

#endif
