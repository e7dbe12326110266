// SPDX-License-Identifier: GPL-2.0
//! The memory of a process, as `/proc/PID/status` has it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::cgroup::value;

/// Memory of its own that a process has, in memory or in the swap [bytes]; none of a process that has ended.
pub fn own(pid: i32) -> u64 {
    sum(pid, &["RssAnon", "RssShmem", "VmSwap"])
}

/// Memory that counts for a process when somebody has to be killed [bytes].
pub fn all(pid: i32) -> u64 {
    sum(pid, &["VmRSS", "VmSwap", "VmPTE"])
}

/// Pages of files that a process has mapped and uses [bytes].
pub fn of_files(pid: i32) -> u64 {
    sum(pid, &["RssFile"])
}

/// When it was started [clock ticks since the machine was]; none: it has ended. `proc` is `/proc`.
pub fn started(proc: &Path, pid: i32) -> Option<u64> {
    let stat = fs::read(proc.join(format!("{pid}/stat"))).ok()?;
    // The name stands in brackets, and may hold some itself; the start is the 22nd word [proc(5)].
    let stat = String::from_utf8_lossy(&stat);
    let (_, after) = stat.rsplit_once(')')?;
    after.split_whitespace().nth(19)?.parse().ok()
}

/// The class of this process below the root of all; none: it is in the root.
pub fn own_class(root: &Path) -> Option<PathBuf> {
    class_of(&fs::read_to_string("/proc/self/cgroup").ok()?, root)
}

fn class_of(text: &str, root: &Path) -> Option<PathBuf> {
    // The line of cgroup v2 has neither a number nor a controller.
    let path = text.lines().find_map(|line| line.strip_prefix("0::/"))?;
    (!path.is_empty()).then(|| root.join(path))
}

/// The sum of these lines, which are in KiB.
fn sum(pid: i32, words: &[&str]) -> u64 {
    let status = fs::read(format!("/proc/{pid}/status")).unwrap_or_default();
    let status = String::from_utf8_lossy(&status);
    let kib: u64 = words.iter().filter_map(|word| value(&status, word)).sum();
    kib * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_is_no_class() {
        let root = Path::new("/sys/fs/cgroup");
        let text = "1:net_cls:/x\n0::/system.slice/andante.service\n";
        let expected = root.join("system.slice/andante.service");
        assert_eq!(class_of(text, root), Some(expected));
        assert_eq!(class_of("0::/\n", root), None);
    }

    #[test]
    fn this_process_has_memory() {
        let pid = i32::try_from(std::process::id()).unwrap();
        assert!(own(pid) > 0 && of_files(pid) > 0);
        let proc = Path::new("/proc");
        assert!(started(proc, pid).unwrap() >= started(proc, 1).unwrap());
        assert_eq!(started(proc, i32::MAX), None);
        assert_eq!((own(i32::MAX), of_files(i32::MAX)), (0, 0));
    }
}
