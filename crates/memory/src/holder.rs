// SPDX-License-Identifier: GPL-2.0
//! Holds pages of files that reserved programs use and others have read first.
//!
//! The kernel counts a page for the class that reads it first, and `memory.min` of another does nothing for it. So this
//! process maps such files itself and locks those of their pages that reserved programs use: once for each file, for
//! all classes that use it, until the last of them is gone. A locked page stays in memory whoever has it counted.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr;

use nix::sys::statfs::{TMPFS_MAGIC, fstatfs};

use crate::machine::page;
use crate::pages::{Elsewhere, FileId, joined};

/// A class, by its number among the reservations.
pub type Class = u64;

/// The files that are held.
#[derive(Debug, Default)]
pub struct Holder {
    files: BTreeMap<FileId, Held>,
}

/// A file, mapped as a whole; the pages that are held are locked.
#[derive(Debug)]
struct Held {
    address: *mut libc::c_void,
    length: usize,
    bytes: u64,
    ranges: Vec<(u64, u64)>,
    users: BTreeSet<Class>,
    program: bool,
}

// SAFETY: the address is of a mapping that this alone owns, and of which nobody reads or writes a byte.
unsafe impl Send for Held {}

impl Holder {
    /// The bytes that are held for a class: of a file that several use, each has its part.
    pub fn held_for(&self, class: Class) -> u64 {
        let files = self
            .files
            .values()
            .filter(|held| held.users.contains(&class));
        files
            .map(|held| held.bytes.div_ceil(held.users.len() as u64))
            .sum()
    }

    /// The bytes that are held in all.
    pub fn bytes(&self) -> u64 {
        self.files.values().map(|held| held.bytes).sum()
    }

    /// Files that are held.
    pub fn count(&self) -> usize {
        self.files.len()
    }

    /// Holds what a class uses, as much as there is room for in its reservation [bytes], and lets go of what it uses
    /// no more. Pages that are not in memory are not read for that.
    pub fn hold(&mut self, class: Class, used: &[Elsewhere], room: u64) {
        let mut left = room;
        let mut kept = BTreeSet::new();
        for one in used {
            let length: u64 = one.ranges.iter().map(|(start, end)| end - start).sum();
            let others =
                |held: &Held| held.users.iter().filter(|user| **user != class).count() as u64;
            let users = self.files.get(&one.file).map_or(0, others);
            let share = length.div_ceil(users + 1);
            if share > left {
                continue;
            }
            let held = match self.files.remove(&one.file) {
                Some(held) => Some(held),
                // Gone meanwhile, or none of those that can be held.
                None => Held::open(one).ok().flatten(),
            };
            let Some(mut held) = held else { continue };
            held.lock(&one.ranges);
            held.users.insert(class);
            left -= share;
            kept.insert(one.file);
            self.files.insert(one.file, held);
        }
        self.release(class, |file| !kept.contains(file));
    }

    /// Holds nothing for a class any more.
    pub fn let_go(&mut self, class: Class) {
        self.release(class, |_| true);
    }

    /// Lets go of so much that is held for a class, or more: what is no program first.
    pub fn let_go_of(&mut self, class: Class, bytes: u64) {
        let mut files: Vec<_> = (self.files.iter())
            .filter(|(_, held)| held.users.contains(&class))
            .map(|(file, held)| {
                (
                    held.program,
                    *file,
                    held.bytes.div_ceil(held.users.len() as u64),
                )
            })
            .collect();
        files.sort_unstable();
        let mut left = bytes;
        let mut gone = BTreeSet::new();
        for (_, file, share) in files {
            if left == 0 {
                break;
            }
            left = left.saturating_sub(share);
            gone.insert(file);
        }
        self.release(class, |file| gone.contains(file));
    }

    fn release(&mut self, class: Class, which: impl Fn(&FileId) -> bool) {
        self.files.retain(|file, held| {
            if which(file) {
                held.users.remove(&class);
            }
            !held.users.is_empty()
        });
    }
}

impl Held {
    /// None: it is a device, or memory that programs share, which is theirs to keep.
    fn open(one: &Elsewhere) -> io::Result<Option<Self>> {
        let file = File::open(&one.path)?;
        let facts = file.metadata()?;
        let is_memory = fstatfs(&file).is_ok_and(|fs| fs.filesystem_type() == TMPFS_MAGIC);
        if !facts.is_file() || is_memory {
            return Ok(None);
        }
        let length = usize::try_from(facts.len()).map_err(io::Error::other)?;
        if length == 0 {
            return Ok(None);
        }
        // SAFETY: a new mapping at an address of the kernel's choice, which is never read by this process: the file
        // may become shorter, and then such an access would end it.
        let address = unsafe {
            libc::mmap(
                ptr::null_mut(),
                length,
                libc::PROT_READ,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let held = Self {
            address,
            length,
            bytes: 0,
            ranges: Vec::new(),
            users: BTreeSet::new(),
            program: one.program,
        };
        // SAFETY: as above; pages are locked when they are mapped, and none is now.
        match unsafe { libc::mlock2(address, length, libc::MLOCK_ONFAULT as libc::c_uint) } {
            0 => Ok(Some(held)),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Locks these parts of it. Those that were locked before, for others perhaps, stay.
    fn lock(&mut self, ranges: &[(u64, u64)]) {
        let end_of_file = self.length.next_multiple_of(page() as usize) as u64;
        let before = std::mem::take(&mut self.ranges);
        let is_locked = |range: &&(u64, u64)| {
            before
                .iter()
                .any(|locked| locked.0 <= range.0 && range.1 <= locked.1)
        };
        let new = ranges.iter().filter(|range| !is_locked(range));
        let new: Vec<_> = new
            .map(|&(start, end)| (start, end.min(end_of_file)))
            .filter(|&(start, end)| start < end && self.populate(start, end))
            .collect();
        self.ranges = joined(before.into_iter().chain(new).collect());
        self.bytes = self.ranges.iter().map(|(start, end)| end - start).sum();
    }

    fn populate(&self, start: u64, end: u64) -> bool {
        // SAFETY: within the mapping. The kernel maps the pages, and says so if the file has become shorter.
        let done = unsafe {
            libc::madvise(
                self.address.byte_add(start as usize),
                (end - start) as usize,
                libc::MADV_POPULATE_READ,
            )
        };
        done == 0
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: it was mapped by us with this length.
        unsafe { libc::munmap(self.address, self.length) };
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::MetadataExt;

    use super::*;
    use crate::pages;

    /// A file of so many pages, of this process as if another class had read it.
    fn used(pages: u64) -> Option<(tempfile::NamedTempFile, Elsewhere)> {
        // Not in /tmp, which may be in memory.
        let mut file = tempfile::NamedTempFile::new_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let bytes = vec![1; (pages * page()) as usize];
        file.write_all(&bytes).unwrap();
        if fstatfs(file.as_file()).is_ok_and(|fs| fs.filesystem_type() == TMPFS_MAGIC) {
            eprintln!("skipped: the sources are in memory");
            return None;
        }
        let inode = file.as_file().metadata().unwrap().ino();
        let elsewhere = Elsewhere {
            file: pages::file_id(inode),
            path: file.path().to_owned(),
            program: false,
            ranges: vec![(0, pages * page())],
        };
        Some((file, elsewhere))
    }

    /// Locked memory of this process [bytes].
    fn locked() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        crate::cgroup::value(&status, "VmLck").unwrap() * 1024
    }

    #[test]
    fn a_file_is_held_once_and_until_its_last_user_is_gone() {
        let Some((_file, one)) = used(8) else { return };
        let before = locked();
        let mut holder = Holder::default();
        holder.hold(1, std::slice::from_ref(&one), u64::MAX);
        holder.hold(2, std::slice::from_ref(&one), u64::MAX);
        if locked() == before {
            eprintln!("skipped: this user may lock no memory");
            return;
        }
        assert_eq!((holder.count(), holder.bytes()), (1, 8 * page()));
        assert_eq!(holder.held_for(1), 4 * page());
        holder.let_go(1);
        assert_eq!((holder.held_for(1), holder.held_for(2)), (0, 8 * page()));
        assert!(locked() >= before + 8 * page());
        holder.hold(2, &[], u64::MAX);
        assert_eq!((holder.count(), locked()), (0, before));
    }

    #[test]
    fn no_more_is_held_than_there_is_room_for() {
        let (Some((_file, one)), Some((_other, other))) = (used(8), used(4)) else {
            return;
        };
        let mut holder = Holder::default();
        holder.hold(1, &[one.clone(), other.clone()], 6 * page());
        assert!(holder.bytes() <= 4 * page(), "the larger one does not fit");
        holder.hold(1, &[one, other], u64::MAX);
        if holder.count() == 2 {
            holder.let_go_of(1, 1);
            assert_eq!(holder.count(), 1);
        }
    }

    #[test]
    fn a_file_that_has_become_shorter_ends_nobody() {
        let Some((file, one)) = used(8) else { return };
        file.as_file().set_len(page()).unwrap();
        let mut holder = Holder::default();
        holder.hold(1, &[one], u64::MAX);
        assert!(holder.bytes() <= page());
    }
}
