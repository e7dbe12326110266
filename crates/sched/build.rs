//! Compiles `bpf/sched.bpf.c` (the core and its shell in the kernel), `bpf/domains.bpf.c` (the same for
//! many CPUs), `bpf/events.bpf.c` (with coordinated events) and `bpf/historical.bpf.c` (for the historical
//! policies), and makes their skeletons.

use sha2::{Digest, Sha256};

#[path = "../../bpf/compile.rs"]
mod bpf;

const OBJECTS: &[&str] = &["sched", "domains", "events", "historical"];

fn main() {
    for (name, object) in OBJECTS.iter().zip(bpf::compile(OBJECTS)) {
        let hash = Sha256::digest(std::fs::read(&object).expect("what was compiled is there"));
        println!("cargo:rustc-env=ANDANTE_OBJECT_{name}={hash:x}");
    }
}
