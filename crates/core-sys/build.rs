//! Compiles the policy core, and the few lines that give its inline functions names to link.

fn main() {
    println!("cargo::rerun-if-changed=../../core");
    println!("cargo::rerun-if-changed=src/core_sys.c");
    println!("cargo::rerun-if-changed=src/disk.c");
    println!("cargo::rerun-if-changed=src/packets.c");
    cc::Build::new()
        .file("src/core_sys.c")
        .file("src/disk.c")
        .file("src/packets.c")
        .include("../../core")
        .std("gnu11")
        .opt_level(2)
        .warnings(true)
        .extra_warnings(true)
        .warnings_into_errors(true)
        .compile("andante_core");
}
