// SPDX-License-Identifier: GPL-2.0
//! What the machine says of its CPUs, processes and classes. A seam for tests.

use std::fs;
use std::os::unix::fs::MetadataExt;

use andante_sched::class::{ClassError, ClassPath, Tree};
use andante_sched::contracts::MAX_CONTRACT_CPUS;
use nix::sched::sched_getaffinity;
use nix::unistd::Pid;

/// CPUs, one bit each; those of number 64 and above cannot carry contracts and have none.
pub type CpuMask = u64;

/// A thread, as it was when it was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thread {
    /// Its id.
    pub tid: i32,
    /// The id of its process.
    pub pid: i32,
    /// Its name, as `ps -o comm` shows it.
    pub name: String,
    /// When it was started [ticks since boot]: with `tid` this tells two threads apart.
    pub started: u64,
    /// Its users: real, effective, saved.
    pub uids: [u32; 3],
    /// Whether it is the kernel's.
    pub kernel_thread: bool,
    /// Whether it is of a real-time or deadline class, which Andante does not schedule.
    pub realtime: bool,
    /// The CPUs it may use.
    pub allowed: CpuMask,
}

/// What is known of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClassFacts {
    /// Inode number of the cgroup's directory.
    pub cgroup_id: u64,
    /// The user who owns it.
    pub owner_uid: u32,
    /// The CPUs that its tasks may use.
    pub allowed: CpuMask,
}

/// The machine.
pub trait Host {
    /// The CPUs that are online and serve contracts, in order, below 64.
    fn online_cpus(&self) -> Vec<u32>;
    /// A thread; none if there is none.
    fn thread(&self, tid: i32) -> Option<Thread>;
    /// The threads of a process.
    fn threads(&self, pid: i32) -> Vec<i32>;
    /// The CPUs that a thread may use; none if there is no such thread.
    fn affinity(&self, tid: i32) -> Option<CpuMask>;
    /// The class that a thread is in.
    fn class_of(&self, tid: i32) -> Option<ClassPath>;
    /// A class; none if there is none.
    fn class(&self, path: &ClassPath) -> Option<ClassFacts>;
}

/// This machine.
#[derive(Debug)]
pub struct LinuxHost {
    tree: Tree,
    contract_cpus: u32,
}

impl LinuxHost {
    /// This machine, if it has what classes need. Only the first so many CPUs serve contracts.
    ///
    /// # Errors
    /// What it lacks.
    pub fn open(contract_cpus: u32) -> Result<Self, ClassError> {
        Ok(Self {
            tree: Tree::open()?,
            contract_cpus: contract_cpus.min(MAX_CONTRACT_CPUS),
        })
    }
}

impl Host for LinuxHost {
    fn online_cpus(&self) -> Vec<u32> {
        let text = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
        let mask = parse_cpus(&text).unwrap_or(1);
        (0..self.contract_cpus)
            .filter(|cpu| mask >> cpu & 1 == 1)
            .collect()
    }

    fn thread(&self, tid: i32) -> Option<Thread> {
        let stat = fs::read_to_string(format!("/proc/{tid}/stat")).ok()?;
        let status = fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
        let mut thread = parse_thread(tid, &stat, &status)?;
        thread.allowed = self.affinity(tid)?;
        Some(thread)
    }

    fn affinity(&self, tid: i32) -> Option<CpuMask> {
        let cpus = sched_getaffinity(Pid::from_raw(tid)).ok()?;
        let allowed = (0..MAX_CONTRACT_CPUS).filter(|cpu| cpus.is_set(*cpu as usize) == Ok(true));
        Some(allowed.fold(0, |mask, cpu| mask | 1 << cpu))
    }

    fn threads(&self, pid: i32) -> Vec<i32> {
        let Ok(entries) = fs::read_dir(format!("/proc/{pid}/task")) else {
            return Vec::new();
        };
        let tid = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok();
        entries.flatten().filter_map(tid).collect()
    }

    fn class_of(&self, tid: i32) -> Option<ClassPath> {
        self.tree.class_of(tid)
    }

    fn class(&self, path: &ClassPath) -> Option<ClassFacts> {
        let directory = self.tree.directory(path);
        let facts = fs::metadata(&directory).ok()?;
        let cpus = fs::read_to_string(directory.join("cpuset.cpus.effective"));
        Some(ClassFacts {
            cgroup_id: facts.ino(),
            owner_uid: facts.uid(),
            allowed: cpus
                .ok()
                .and_then(|text| parse_cpus(&text))
                .unwrap_or(CpuMask::MAX),
        })
    }
}

/// Reads a list of CPUs such as `0-3,8`; those above 63 are left out. None for the empty list.
fn parse_cpus(text: &str) -> Option<CpuMask> {
    let mut mask = 0;
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        for cpu in first..=last.min(MAX_CONTRACT_CPUS - 1) {
            mask |= 1 << cpu;
        }
    }
    (mask != 0).then_some(mask)
}

/// Reads `/proc/TID/stat` and `/proc/TID/status` [proc(5)].
fn parse_thread(tid: i32, stat: &str, status: &str) -> Option<Thread> {
    /// `PF_KTHREAD` of the kernel's `include/linux/sched.h`.
    const PF_KTHREAD: u32 = 0x0020_0000;
    /// `SCHED_FIFO`, `SCHED_RR`, `SCHED_DEADLINE`.
    const REALTIME: [u32; 3] = [1, 2, 6];
    // The name may itself contain spaces and brackets; fields are counted from the one behind it.
    let (_, rest) = stat.split_once('(')?;
    let (name, rest) = rest.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3).copied();
    let line = |key: &str| status.lines().find_map(|line| line.strip_prefix(key));
    let mut uids = line("Uid:")?.split_whitespace().map(str::parse);
    let flags: u32 = field(9)?.parse().ok()?;
    let policy: u32 = field(41)?.parse().ok()?;
    Some(Thread {
        tid,
        pid: line("Tgid:")?.trim().parse().ok()?,
        name: name.to_owned(),
        started: field(22)?.parse().ok()?,
        uids: [uids.next()?.ok()?, uids.next()?.ok()?, uids.next()?.ok()?],
        kernel_thread: flags & PF_KTHREAD != 0,
        realtime: REALTIME.contains(&policy),
        allowed: CpuMask::MAX,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_are_read() {
        assert_eq!(parse_cpus("0-3,8\n"), Some(0x10f));
        assert_eq!(parse_cpus("0"), Some(1));
        assert_eq!(parse_cpus("62-200"), Some(3 << 62));
        assert_eq!(parse_cpus("\n"), None);
        assert_eq!(parse_cpus("a-b"), None);
    }

    #[test]
    fn threads_are_read_whatever_they_are_called() {
        let stat = "7 (a) (b c) S 1 7 7 0 -1 4194560 0 0 0 0 1 2 0 0 20 0 1 0 4711 0 0 1 0 0 0 0 0 \
                    0 0 0 0 0 0 0 17 0 99 1 0 0 0";
        let status = "Name:\ta) (b c\nTgid:\t5\nUid:\t1000\t1001\t1002\t1000\n";
        let thread = parse_thread(7, stat, status).unwrap();
        assert_eq!((thread.pid, thread.started), (5, 4711));
        assert_eq!(thread.name, "a) (b c");
        assert_eq!(thread.uids, [1000, 1001, 1002]);
        assert!(thread.realtime && !thread.kernel_thread);
    }

    /// `/proc` has a file for every thread, though it lists processes only.
    #[test]
    fn this_very_process_is_found() {
        let Ok(host) = LinuxHost::open(MAX_CONTRACT_CPUS) else {
            eprintln!("skipped: this machine has no cgroup v2 with cpu");
            return;
        };
        let pid = i32::try_from(std::process::id()).unwrap();
        let this = host.thread(pid).unwrap();
        assert_eq!(this.pid, pid);
        assert!(!this.kernel_thread && !this.realtime);
        assert!(host.threads(pid).contains(&pid));
        assert!(!host.online_cpus().is_empty());
        assert_eq!(host.thread(i32::MAX), None);
    }
}
