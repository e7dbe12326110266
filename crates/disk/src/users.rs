// SPDX-License-Identifier: GPL-2.0
//! The users of a block device, or of a file.

use std::fmt;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// One who has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum User {
    /// A file system that is mounted there.
    Mount(PathBuf),
    /// Swap.
    Swap(PathBuf),
    /// A device that is made of it (device mapper, RAID).
    Holder(String),
    /// A loop device, of a file.
    Loop(String),
    /// A process has it open.
    Process {
        /// Its number.
        pid: u32,
        /// Its name.
        name: String,
    },
}

impl fmt::Display for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mount(at) => {
                let at = at.display();
                write!(f, "it is mounted on {at}; `umount {at}` first")
            }
            Self::Swap(path) => {
                let path = path.display();
                write!(f, "it is swap; `swapoff {path}` first")
            }
            Self::Holder(name) => write!(f, "{name} is made of it; take that down first"),
            Self::Loop(name) => {
                write!(
                    f,
                    "/dev/{name} is made of it; `losetup -d /dev/{name}` first"
                )
            }
            Self::Process { pid, name } => {
                write!(f, "process {pid} ({name}) has it open; end that first")
            }
        }
    }
}

/// Of the block device of this number, or of a partition of it; the first that is found.
#[must_use]
pub fn of_device(number: u64) -> Option<User> {
    let numbers = with_partitions(number);
    let is = |found: u64| numbers.contains(&found);
    mounted(&is)
        .or_else(|| swap(is))
        .or_else(|| holder(number))
        .or_else(|| process(is))
}

/// Of a file, those that do not lock it.
#[must_use]
pub fn of_file(path: &Path) -> Option<User> {
    let own = path.metadata().ok()?;
    let same = |other: &Path| {
        let other = other.metadata();
        other.is_ok_and(|other| (other.dev(), other.ino()) == (own.dev(), own.ino()))
    };
    let swap = swaps().into_iter().find(|swap| same(swap)).map(User::Swap);
    swap.or_else(|| {
        let disks = fs::read_dir("/sys/block").ok()?;
        disks.flatten().find_map(|disk| {
            let backing = fs::read_to_string(disk.path().join("loop/backing_file")).ok()?;
            let name = disk.file_name().to_string_lossy().into_owned();
            same(Path::new(backing.trim_end_matches('\n'))).then_some(User::Loop(name))
        })
    })
}

/// Paths of all swap.
#[must_use]
pub fn swaps() -> Vec<PathBuf> {
    let text = fs::read_to_string("/proc/swaps").unwrap_or_default();
    let path = |line: &str| Some(unescaped(line.split_whitespace().next()?));
    text.lines().skip(1).filter_map(path).collect()
}

/// The swap that is on a device of this number, or on a partition of it.
#[must_use]
pub fn swap_on(number: u64) -> Option<PathBuf> {
    let numbers = with_partitions(number);
    match swap(|found| numbers.contains(&found)) {
        Some(User::Swap(path)) => Some(path),
        _ => None,
    }
}

fn swap(is: impl Fn(u64) -> bool) -> Option<User> {
    let on = |path: &PathBuf| block_number(path).is_some_and(&is);
    swaps().into_iter().find(on).map(User::Swap)
}

fn block_number(path: &Path) -> Option<u64> {
    let metadata = path.metadata().ok()?;
    metadata
        .file_type()
        .is_block_device()
        .then_some(metadata.rdev())
}

fn sysfs(number: u64) -> PathBuf {
    let (major, minor) = (libc::major(number), libc::minor(number));
    format!("/sys/dev/block/{major}:{minor}").into()
}

fn with_partitions(number: u64) -> Vec<u64> {
    let mut numbers = vec![number];
    for entry in fs::read_dir(sysfs(number)).into_iter().flatten().flatten() {
        if entry.path().join("partition").exists()
            && let Ok(text) = fs::read_to_string(entry.path().join("dev"))
            && let Some((major, minor)) = text.trim().split_once(':')
            && let (Ok(major), Ok(minor)) = (major.parse(), minor.parse())
        {
            numbers.push(libc::makedev(major, minor));
        }
    }
    numbers
}

/// Lines are `id parent major:minor root where options … - kind source options`. Some file systems have a number of their
/// own (btrfs): these are found by their source.
fn mounted(is: &impl Fn(u64) -> bool) -> Option<User> {
    let text = fs::read_to_string("/proc/self/mountinfo").ok()?;
    text.lines().find_map(|line| {
        let (first, last) = line.split_once(" - ")?;
        let words: Vec<_> = first.split(' ').collect();
        let number = words.get(2).and_then(|word| {
            let (major, minor) = word.split_once(':')?;
            Some(libc::makedev(major.parse().ok()?, minor.parse().ok()?))
        });
        let source = || {
            let source = unescaped(last.split(' ').nth(1)?);
            source.starts_with("/dev").then(|| block_number(&source))?
        };
        let its = number.is_some_and(is) || source().is_some_and(is);
        its.then(|| words.get(4).map(|at| User::Mount(unescaped(at))))?
    })
}

fn holder(number: u64) -> Option<User> {
    let mut holders = fs::read_dir(sysfs(number).join("holders")).ok()?.flatten();
    let name = holders.next()?.file_name();
    Some(User::Holder(name.to_string_lossy().into_owned()))
}

fn process(is: impl Fn(u64) -> bool) -> Option<User> {
    let own = std::process::id();
    let all = fs::read_dir("/proc").ok()?.flatten();
    let mut pids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.find_map(|pid| {
        let mut open = fs::read_dir(format!("/proc/{pid}/fd")).ok()?.flatten();
        let has = open.any(|fd| {
            // Nothing else is followed: it may be on a server that does not answer.
            let link = fs::read_link(fd.path());
            link.is_ok_and(|link| link.starts_with("/dev"))
                && block_number(&fd.path()).is_some_and(&is)
        });
        (has && pid != own).then(|| User::Process {
            pid,
            name: fs::read_to_string(format!("/proc/{pid}/comm"))
                .map(|name| name.trim().to_owned())
                .unwrap_or_default(),
        })
    })
}

/// The kernel writes spaces, tabs, line ends and backslashes of names as octal digits.
fn unescaped(word: &str) -> PathBuf {
    let bytes = word.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let digits = bytes.get(at + 1..at + 4);
        let value = digits
            .filter(|_| bytes[at] == b'\\')
            .and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        match value {
            Some(byte) => {
                plain.push(byte);
                at += 4;
            }
            None => {
                plain.push(bytes[at]);
                at += 1;
            }
        }
    }
    use std::os::unix::ffi::OsStringExt;
    std::ffi::OsString::from_vec(plain).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_kernels_tables_are_read_as_they_are() {
        assert_eq!(unescaped("/mnt"), Path::new("/mnt"));
        assert_eq!(unescaped(r"/a\040b\134c"), Path::new(r"/a b\c"));
        assert_eq!(unescaped(r"/a\04"), Path::new(r"/a\04"));
    }

    #[test]
    fn what_is_mounted_here_is_found() {
        // Of a file system that is on a device at all.
        let text = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let on_disk = text.lines().find_map(|line| {
            let word = line.split(' ').nth(2)?;
            let (major, minor) = word.split_once(':')?;
            let (major, minor): (u32, u32) = (major.parse().ok()?, minor.parse().ok()?);
            (major != 0).then(|| libc::makedev(major, minor))
        });
        if let Some(number) = on_disk {
            assert!(matches!(of_device(number), Some(User::Mount(_))));
        }
        assert_eq!(of_device(libc::makedev(4095, 1)), None);
    }
}
