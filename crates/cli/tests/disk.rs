//! Tests of `andante disk` on a real kernel: each boots the virtual machine, runs one of the shell scripts in the folder
//! beside this file in it, and reads what the script reports. They need QEMU and a kernel, hence `#[ignore]`.

#[path = "../../net/tests/machine/mod.rs"]
#[allow(dead_code)]
mod machine;

use std::path::{Path, PathBuf};
use std::time::Duration;

use andante_vm::{Boot, Cache, find_kernel, find_qemu};
use machine::{Report, all_are, reported, tool};

/// A machine that takes longer hangs, as whoever waits for a disk that nobody serves does.
const HANGS: Duration = Duration::from_secs(600);

/// Runs tests/disk/NAME.sh in a machine.
fn in_vm(name: &str) -> Report {
    let quiet = |_: &str| {};
    let cache = Cache::open().expect("a cache folder");
    let kernel = find_kernel(&cache, &quiet).expect("a kernel");
    let qemu = find_qemu(&cache, 1, &quiet).expect("QEMU");
    let script = format!("{name}.sh");
    let file = |name: &str| machine::script(&scripts(), name);
    let guest = format!("/andante/{script}");
    let boot = Boot {
        memory_mib: 768,
        files: vec![file("common.sh"), file(&script)],
        programs: vec![
            env!("CARGO_BIN_EXE_andante").into(),
            tool("mkfs.ext4"),
            tool("fsck.ext4"),
        ],
        modules: vec!["ublk_drv", "brd", "loop"],
        saved: Some(&cache),
        timeout: HANGS,
        console_log: Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("disk-{name}.log")),
        ..Boot::of(&kernel, &qemu, &["/bin/sh", &guest])
    };
    reported(&boot)
}

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/disk")
}

#[test]
#[ignore = "needs the virtual machine"]
fn what_cannot_be_attached_is_refused_with_the_reason() {
    let report = in_vm("refusals");
    let expected = [
        ("unprivileged", 3),
        ("not-there", 31),
        ("folder", 32),
        ("empty", 32),
        ("odd-size", 32),
        ("cached-only", 32),
        ("read-only", 32),
        ("mounted", 32),
        ("swap", 32),
        ("swap-file", 32),
        ("of-loop", 32),
        ("depth", 2),
        ("not-attached", 31),
        ("not-ours", 31),
        ("no-module", 6),
        ("list-no-module", 6),
        ("handed-on", 0),
        ("left", 0),
    ];
    all_are(&report, &expected);
}

#[test]
#[ignore = "needs the virtual machine"]
fn a_disk_is_attached_used_killed_and_detached() {
    let report = in_vm("life");
    let expected = [
        ("listed", 1),
        ("again", 32),
        ("same-file", 32),
        ("detach-mounted", 32),
        ("detach-open", 32),
        ("stays-mounted", 1),
        ("ended-by-itself", 0),
        ("swap-left", 0),
        ("waits", 1),
        ("detach-killed", 32),
        ("goes-on", 1),
        ("written", 0),
        ("checked", 0),
        ("detached", 0),
        ("idle-killed", 0),
        ("no-space", 1),
        ("told", 1),
        ("forced", 0),
        ("devices-left", 0),
        ("handed-on", 0),
        ("left", 0),
        ("warnings", 0),
    ];
    all_are(&report, &expected);
}

#[test]
#[ignore = "needs the virtual machine"]
fn classes_are_promised_what_there_is_room_for() {
    let report = in_vm("classes");
    let expected = [
        ("no-class", 10),
        ("nonsense", 2),
        ("promised", 0),
        ("too-much", 23),
        ("offered", 1),
        ("as-offered", 0),
        ("weighed", 0),
        ("no-weight", 2),
        ("goes-on", 1),
        ("still-promised", 23),
        ("released", 0),
        ("released-again", 26),
        ("now-it-fits", 0),
        ("gone-is-forgotten", 0),
        ("detached", 0),
        ("unordered", 32),
        ("left", 0),
    ];
    all_are(&report, &expected);
}
