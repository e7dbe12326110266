// SPDX-License-Identifier: GPL-2.0
//! Whether this kernel can have the discipline.

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::Struct;

/// What the kernel makes of `Qdisc_ops` when BPF may give one.
const TYPE: &str = "bpf_struct_ops_Qdisc_ops";

/// Has this kernel queueing disciplines in BPF? They came with Linux 6.17, where CONFIG_NET_SCH_BPF is set.
pub fn has_bpf_qdiscs() -> bool {
    Btf::from_vmlinux().is_ok_and(|btf| btf.type_by_name::<Struct<'_>>(TYPE).is_some())
}
