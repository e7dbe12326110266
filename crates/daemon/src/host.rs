// SPDX-License-Identifier: GPL-2.0
//! What the machine says of its CPUs, processes and classes. A seam for tests.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use andante_sched::LeafPolicy;
use andante_sched::class::{ClassError, ClassPath, Tree};
use andante_sched::contracts::MAX_CONTRACT_CPUS;
use andante_sched::text::from_bytes;
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
    /// Its name, as `ps -o comm` shows it; bytes that are no UTF-8 as `\xNN`, and control characters as they
    /// are.
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
    /// The threads of a process, so many at most.
    fn threads(&self, pid: i32, most: usize) -> Vec<i32>;
    /// The thread of a process that has this number where the process is, in a container or not.
    fn thread_of(&self, pid: i32, seen: i32) -> Option<i32> {
        let thread = self.thread(seen)?;
        (thread.pid == pid).then_some(seen)
    }
    /// The name of a thread, and when it was started; none if there is none.
    fn name(&self, tid: i32) -> Option<(String, u64)> {
        self.thread(tid).map(|thread| (thread.name, thread.started))
    }
    /// Whether a thread is of a real-time or deadline class; none if there is none.
    fn is_realtime(&self, tid: i32) -> Option<bool> {
        self.thread(tid).map(|thread| thread.realtime)
    }
    /// The CPUs that a thread may use; none if there is no such thread.
    fn affinity(&self, tid: i32) -> Option<CpuMask>;
    /// The class that a thread is in.
    fn class_of(&self, tid: i32) -> Option<ClassPath>;
    /// A class; none if there is none.
    fn class(&self, path: &ClassPath) -> Option<ClassFacts>;
    /// The folder that stands for a class, whether or not there is one.
    fn folder(&self, path: &ClassPath) -> PathBuf;
    /// The policy that was given to a class; none: none was.
    fn policy(&self, path: &ClassPath) -> Option<LeafPolicy>;
    /// Those that were given to any, by the ids of their cgroups.
    fn policies(&self) -> Vec<(u64, LeafPolicy)>;
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
        let mut thread = thread_now(tid)?;
        thread.allowed = self.affinity(tid)?;
        Some(thread)
    }

    fn affinity(&self, tid: i32) -> Option<CpuMask> {
        let cpus = sched_getaffinity(Pid::from_raw(tid)).ok()?;
        let allowed = (0..MAX_CONTRACT_CPUS).filter(|cpu| cpus.is_set(*cpu as usize) == Ok(true));
        Some(allowed.fold(0, |mask, cpu| mask | 1 << cpu))
    }

    fn name(&self, tid: i32) -> Option<(String, u64)> {
        let stat = fs::read(format!("/proc/{tid}/stat")).ok()?;
        let (name, fields) = parse_stat(&stat)?;
        Some((name, field(&fields, 22)?))
    }

    fn is_realtime(&self, tid: i32) -> Option<bool> {
        // SAFETY: the call takes a number and touches no memory of ours.
        let policy = unsafe { libc::sched_getscheduler(tid) };
        u32::try_from(policy).ok().map(is_realtime)
    }

    fn threads(&self, pid: i32, most: usize) -> Vec<i32> {
        threads_now(pid, most)
    }

    fn thread_of(&self, pid: i32, seen: i32) -> Option<i32> {
        let sees = |tid: &i32| number_seen(pid, *tid) == Some(seen);
        // So it is for all that live where we do; in a container threads have other numbers for us.
        let same = Some(seen).filter(sees);
        same.or_else(|| self.threads(pid, MAX_THREADS_SEEN).into_iter().find(sees))
    }

    fn folder(&self, path: &ClassPath) -> PathBuf {
        self.tree.directory(path)
    }

    fn policy(&self, path: &ClassPath) -> Option<LeafPolicy> {
        LeafPolicy::of(&self.tree.directory(path))
    }

    fn policies(&self) -> Vec<(u64, LeafPolicy)> {
        self.tree.policies()
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

/// A thread of this machine, which may use every CPU for all that is said here.
pub(crate) fn thread_now(tid: i32) -> Option<Thread> {
    let stat = fs::read(format!("/proc/{tid}/stat")).ok()?;
    let status = fs::read(format!("/proc/{tid}/status")).ok()?;
    parse_thread(tid, &stat, &status)
}

/// Threads of a process of this machine, so many at most.
pub(crate) fn threads_now(pid: i32, most: usize) -> Vec<i32> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    let tid = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    entries.flatten().filter_map(tid).take(most).collect()
}

/// Threads of a process that are looked through for one that has another number there, some 20 µs each.
const MAX_THREADS_SEEN: usize = 1024;

/// The number that a thread of a process has in its own pid namespace.
fn number_seen(pid: i32, tid: i32) -> Option<i32> {
    let status = fs::read(format!("/proc/{pid}/task/{tid}/status")).ok()?;
    let status = String::from_utf8_lossy(&status);
    let numbers = status
        .lines()
        .find_map(|line| line.strip_prefix("NSpid:"))?;
    numbers.split_whitespace().next_back()?.parse().ok()
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
fn parse_thread(tid: i32, stat: &[u8], status: &[u8]) -> Option<Thread> {
    /// `PF_KTHREAD` of the kernel's `include/linux/sched.h`.
    const PF_KTHREAD: u32 = 0x0020_0000;
    let (name, fields) = parse_stat(stat)?;
    let status = String::from_utf8_lossy(status);
    // No line but the first holds what a user has chosen, and the kernel keeps line breaks out of that.
    let line = |key: &str| {
        status
            .lines()
            .skip(1)
            .find_map(|line| line.strip_prefix(key))
    };
    let mut uids = line("Uid:")?.split_whitespace().map(str::parse);
    let flags: u32 = field(&fields, 9)?;
    Some(Thread {
        tid,
        pid: line("Tgid:")?.trim().parse().ok()?,
        name,
        started: field(&fields, 22)?,
        uids: [uids.next()?.ok()?, uids.next()?.ok()?, uids.next()?.ok()?],
        kernel_thread: flags & PF_KTHREAD != 0,
        realtime: is_realtime(field(&fields, 41)?),
        allowed: CpuMask::MAX,
    })
}

/// The name, and the fields behind it from the third on. The name is bytes, and may contain spaces, brackets
/// and parts of characters: the last bracket ends it.
fn parse_stat(stat: &[u8]) -> Option<(String, Vec<String>)> {
    let first = stat.iter().position(|&byte| byte == b'(')?;
    let last = stat.iter().rposition(|&byte| byte == b')')?;
    let name = stat.get(first + 1..last)?;
    let rest = String::from_utf8_lossy(stat.get(last + 1..)?);
    let fields = rest.split_whitespace().map(str::to_owned).collect();
    Some((from_bytes(name), fields))
}

/// The field of this number, as proc(5) counts them.
fn field<T: std::str::FromStr>(fields: &[String], number: usize) -> Option<T> {
    fields.get(number - 3)?.parse().ok()
}

/// Whether this is `SCHED_FIFO`, `SCHED_RR` or `SCHED_DEADLINE`, with or without `SCHED_RESET_ON_FORK`.
fn is_realtime(policy: u32) -> bool {
    matches!(policy & !0x4000_0000, 1 | 2 | 6)
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
        let thread = parse_thread(7, stat.as_bytes(), status.as_bytes()).unwrap();
        assert_eq!((thread.pid, thread.started), (5, 4711));
        assert_eq!(thread.name, "a) (b c");
        assert_eq!(thread.uids, [1000, 1001, 1002]);
        assert!(thread.realtime && !thread.kernel_thread);
    }

    /// The kernel keeps 15 bytes of a name, and prctl(2) takes any.
    #[test]
    fn a_name_may_be_cut_within_a_character() {
        let numbers = " S 1 7 7 0 -1 4194560 0 0 0 0 1 2 0 0 20 0 1 0 4711 0 0 1 0 0 0 0 0 0 0 0 0 0 0 \
                       0 17 0 0 0 0 0 0";
        let stat = [b"7 (gr\xc3) \x1b[2J\xff)", numbers.as_bytes()].concat();
        let status = b"Name:\tgr\xc3) \x1b[2J\xff\nTgid:\t5\nUid:\t1000\t1000\t1000\t1000\n";
        let thread = parse_thread(7, &stat, status).unwrap();
        assert_eq!(thread.name, "gr\\xc3) \x1b[2J\\xff");
        assert_eq!((thread.pid, thread.started), (5, 4711));
    }

    #[test]
    fn a_process_that_is_called_so_is_found() {
        let Ok(host) = LinuxHost::open(MAX_CONTRACT_CPUS) else {
            eprintln!("skipped: this machine has no cgroup v2 with cpu");
            return;
        };
        let (tell, is_told) = std::sync::mpsc::channel();
        let (done, is_done) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            // SAFETY: the kernel reads 16 bytes at most, of a string that ends.
            unsafe { libc::prctl(libc::PR_SET_NAME, c"gr\xc3".as_ptr()) };
            tell.send(nix::unistd::gettid().as_raw()).unwrap();
            let _ = is_done.recv();
        });
        let tid = is_told.recv().unwrap();
        assert_eq!(host.thread(tid).unwrap().name, "gr\\xc3");
        assert_eq!(host.name(tid).unwrap().0, "gr\\xc3");
        assert_eq!(host.is_realtime(tid), Some(false));
        drop(done);
        thread.join().unwrap();
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
        assert!(host.threads(pid, usize::MAX).contains(&pid));
        assert!(!host.online_cpus().is_empty());
        assert_eq!(host.thread(i32::MAX), None);
    }
}
