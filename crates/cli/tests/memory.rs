//! Tests of reserved memory on a real kernel: each boots the virtual machine, runs one of the shell scripts in the
//! folder beside this file in it, and reads what the script reports. They need QEMU and a kernel, hence `#[ignore]`.

#[path = "../../net/tests/machine/mod.rs"]
#[allow(dead_code)]
mod machine;

use std::path::{Path, PathBuf};

use andante_vm::{Boot, Cache, find_kernel, find_qemu};
use machine::{HANGS, Report, all_are, reported};

/// Runs tests/memory/NAME.sh in a machine with so much memory.
fn in_vm(name: &str, memory_mib: u32) -> Report {
    let quiet = |_: &str| {};
    let cache = Cache::open().expect("a cache folder");
    let kernel = find_kernel(&cache, &quiet).expect("a kernel");
    let qemu = find_qemu(&cache, 1, &quiet).expect("QEMU");
    let script = format!("{name}.sh");
    let file = |name: &str| machine::script(&scripts(), name);
    let guest = format!("/andante/{script}");
    let boot = Boot {
        memory_mib,
        files: vec![file("common.sh"), file(&script)],
        programs: vec![env!("CARGO_BIN_EXE_andante").into()],
        saved: Some(&cache),
        timeout: HANGS,
        console_log: Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("memory-{name}.log")),
        ..Boot::of(&kernel, &qemu, &["/bin/sh", &guest])
    };
    reported(&boot)
}

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/memory")
}

#[test]
#[ignore = "boots a virtual machine"]
fn nobody_is_killed_within_a_reservation_and_nothing_is_left() {
    let report = in_vm("storm", 512);
    let expected = [
        ("film-lives", 1),
        ("film-killed", 0),
        ("adjusted-again", 0),
        ("unreserved-lives", 0),
        ("steps", 12),
        ("unprotected", 0),
        ("left-min", 0),
        ("left-state", 0),
        ("left-keepers", 0),
        ("compaction", 1),
    ];
    all_are(&report, &expected);
    // Else nothing was tried.
    assert!(report["hogs-killed"] > 0, "{report:?}");
}

#[test]
#[ignore = "boots a virtual machine"]
fn ten_reservations_cost_no_more_than_a_two_hundredth_of_a_cpu() {
    let report = in_vm("cost", 512);
    println!("of ten seconds [µs]: {report:?}");
    for key in ["plenty", "tight"] {
        let more = report[key] - report["none"];
        assert!(more <= 50_000, "{key}: {more} µs more of ten seconds");
    }
}

#[test]
#[ignore = "boots a virtual machine"]
fn reservations_are_kept_and_put_back_whatever_ends() {
    let report = in_vm("reserve", 1024);
    let expected = [
        ("film", 0),
        ("film-min", 100),
        ("media-min", 100),
        ("keepers", 1),
        ("again", 0),
        ("changed-min", 120),
        ("too-much", 23),
        ("nothing", 24),
        ("unknown", 10),
        ("root", 10),
        ("both", 0),
        ("both-min", 30),
        ("neither", 24),
        ("neither-min", 30),
        ("listed", 1),
        ("release", 0),
        ("released-min", 20),
        ("gone", 26),
        ("own-min", 64),
        ("own-stays", 0),
        ("refused-exec", 23),
        ("exec-status", 7),
        ("game-stays", 0),
        ("after-exec-min", 120),
        ("said", 1),
        ("keeper-again", 1),
        ("kept-min", 120),
        ("no-keeper", 0),
        ("build-min", 20),
        ("state", 0),
        ("left-min", 100),
        ("restored-min", 0),
        ("ended-min", 0),
        ("ended-state", 0),
    ];
    all_are(&report, &expected);
}
