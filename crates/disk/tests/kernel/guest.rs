//! A test's way into the virtual machine.

use std::path::Path;
use std::time::Duration;

use andante_vm::{Boot, Cache, Content, Event, InitrdFile, find_kernel, find_qemu};

use crate::machine::tool;

/// A machine that takes longer hangs.
const HANGS: Duration = Duration::from_secs(600);

/// Is set in the machine.
pub const INSIDE: &str = "ANDANTE_DISK_INSIDE";

/// The test's own program, with its name, and what the kernel has complained of.
const SCRIPT: &str = "#!/bin/sh
export ANDANTE_DISK_INSIDE=1 ANDANTE_DISK_KILLS=$3 PATH=/andante/bin:$PATH
/andante/bin/$1 --exact $2 --ignored --nocapture --test-threads=1 || {
	# Whoever waits for a server that has failed would wait for ever.
	echo o > /proc/sysrq-trigger
	sleep 60
}
# 7.2.13 fills a list before it says how long that is (io_buffer_register_bvec), and finds fault with that itself, once.
dmesg | sed '/UBSAN: array-index-out-of-bounds in .*io_uring\\/rsrc.c/,/end trace/d' > /tmp/said
if grep -E 'WARNING|BUG|UBSAN|Call Trace|Buffer I/O error|error, dev|blocked for more' /tmp/said; then exit 1; fi
echo SOUND
";

/// In the machine this is true; outside the test of this name is run in one, and this is false.
pub fn is_inside(name: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let quiet = |_: &str| {};
    let cache = Cache::open().expect("a cache folder");
    let kernel = find_kernel(&cache, &quiet).expect("a kernel");
    let qemu = find_qemu(&cache, 1, &quiet).expect("QEMU");
    let this = std::env::current_exe().expect("this program");
    let program = this.file_name().expect("a name").to_string_lossy();
    let log = format!("disk-{}.log", name.replace(':', "-"));
    let kills = std::env::var("ANDANTE_DISK_KILLS").unwrap_or_else(|_| "20".into());
    let boot = Boot {
        memory_mib: 768,
        files: vec![InitrdFile {
            guest: "/andante/disk.sh".into(),
            content: Content::Bytes(SCRIPT.into()),
            mode: 0o755,
        }],
        programs: vec![
            this.clone(),
            tool("mkfs.ext4"),
            tool("fsck.ext4"),
            tool("dmsetup"),
        ],
        modules: vec![
            "ublk_drv",
            "brd",
            "loop",
            "dm-mod",
            "dm-delay",
            "dm-log-writes",
        ],
        saved: Some(&cache),
        timeout: HANGS,
        console_log: Path::new(env!("CARGO_TARGET_TMPDIR")).join(log),
        ..Boot::of(
            &kernel,
            &qemu,
            &["/bin/sh", "/andante/disk.sh", &program, name, &kills],
        )
    };
    let mut sound = false;
    let outcome = boot
        .run(&mut |event| {
            if let Event::Console(line) = event {
                println!("{line}"); // seen if the test fails
                sound |= line.trim() == "SOUND";
            }
        })
        .expect("the machine runs, and the test in it passes");
    assert_eq!(outcome.exit_status, 0);
    assert!(sound, "the kernel has complained");
    false
}
