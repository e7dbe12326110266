/* SPDX-License-Identifier: GPL-2.0 */
/* Why the kernel lets a scheduler go, for user space to read. */
#ifndef ANDANTE_BPF_EXIT_H
#define ANDANTE_BPF_EXIT_H

#include "intf.h"

struct an_exit exit_info;

static __always_inline void exit_note(const struct scx_exit_info *info)
{
	bpf_probe_read_kernel_str(exit_info.reason, AN_EXIT_TEXT, info->reason);
	bpf_probe_read_kernel_str(exit_info.message, AN_EXIT_TEXT, info->msg);
	exit_info.code = info->exit_code;
	exit_info.left = 1;
}

#endif
