//! Compiles `bpf/qdisc.bpf.c` (the core's packet scheduler and its shell in the kernel) and
//! `bpf/receive.bpf.c` (what is dropped early of packets that come in), and makes their skeletons.

#[path = "../../bpf/compile.rs"]
mod bpf;

fn main() {
    bpf::compile(&["qdisc", "receive"]);
}
