//! Packets in: see `receive.sh`. Under Andante's scheduler, whose binary is built before (`make`), and
//! under the kernel's own.

use std::path::PathBuf;

use andante_vm::{Boot, Cache, Content, InitrdFile, find_kernel, find_qemu};

use super::{HANGS, Report, compiled, reported, scripts, tool};

fn in_vm(name: &str) -> Report {
    let quiet = |_: &str| {};
    let cache = Cache::open().expect("a cache folder");
    let kernel = find_kernel(&cache, &quiet).expect("a kernel");
    let qemu = find_qemu(&cache, 1, &quiet).expect("QEMU");
    let file = |name: &str| InitrdFile {
        guest: format!("/andante/{name}").into(),
        content: Content::Host(scripts().join(name)),
        mode: 0o755,
    };
    let script = format!("{name}.sh");
    let guest = format!("/andante/{script}");
    let program = PathBuf::from(env!("CARGO_BIN_EXE_andante-receive"));
    let andante = program.with_file_name("andante");
    assert!(andante.is_file(), "{} is not built", andante.display());
    let boot = Boot {
        memory_mib: 1024,
        files: vec![file("receive.sh"), file(&script)],
        programs: vec![
            compiled("receive"),
            program,
            andante,
            tool("ip"),
            tool("tc"),
        ],
        modules: vec!["veth", "dummy", "sch_netem"],
        saved: Some(&cache),
        timeout: HANGS,
        console_log: PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.log")),
        ..Boot::of(&kernel, &qemu, &["/bin/sh", &guest])
    };
    reported(&boot)
}

#[test]
#[ignore = "needs the virtual machine"]
fn a_flood_is_the_work_of_the_class_that_it_is_for() {
    let report = in_vm("receive_isolation");
    println!("{report:#?}");
}

#[test]
#[ignore = "needs the virtual machine"]
fn a_receiver_gets_as_much_however_much_is_offered() {
    let report = in_vm("receive_goodput");
    println!("{report:#?}");
}
