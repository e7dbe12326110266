//! Compiles `bpf/disk.bpf.c`, which notes the class of each request, and makes its skeleton.

#[path = "../../bpf/compile.rs"]
mod bpf;

fn main() {
    bpf::compile(&["disk"]);
}
