// SPDX-License-Identifier: GPL-2.0
//! Settings of the kernel that have to be others while memory is reserved (`Documentation/admin-guide/sysctl/vm.rst`).
//!
//! **Locked pages are not moved** (`compact_unevictable_allowed`). A page is locked by those who have it mapped. Pages of a
//! file come in large pieces; a piece for which the kernel finds no free place of its size is split before it is moved to make
//! room for large ones, and on Linux 7.2 that unmaps it from everybody. Then nobody has it locked any more, and it is taken
//! like any other: of a library of 3,840 pages that was held, 877 and 1,384 were gone in two runs after some seconds
//! (`unevictable_pgs_stranded`).
//!
//! **Watermarks stay where they are** (`watermark_boost_factor`). As soon as large pieces of memory become rare the kernel
//! wants up to two and a half times as much free as before, for a while, and a program that asks for memory takes some
//! first. Nobody has any use of memory that is kept free for that: 6 MB of 512.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use nix::sys::statvfs::{FsFlags, statvfs};

/// Whether locked pages are moved.
pub const MOVES_LOCKED: &str = "compact_unevictable_allowed";
/// How far watermarks are raised [1/10,000].
pub const BOOST: &str = "watermark_boost_factor";
/// Each is this while something is reserved.
const RESERVED: &str = "0";

/// The kernel's settings, by their names in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sysctl(PathBuf);

impl Sysctl {
    /// This machine's.
    pub fn of_kernel() -> Self {
        Self::at(Path::new("/proc/sys/vm"))
    }

    /// Another folder than the kernel's.
    pub fn at(folder: &Path) -> Self {
        Self(folder.to_owned())
    }

    /// Whether one is as it has to be. A kernel that does not have it does not do it.
    pub fn is_right(&self, name: &str) -> bool {
        self.read(name).is_none_or(|value| value == RESERVED)
    }

    /// Whether root may choose; it may not in a container.
    pub fn can_be_changed(&self, name: &str) -> bool {
        let found = statvfs(&self.0.join(name));
        found.is_ok_and(|found| !found.flags().contains(FsFlags::ST_RDONLY))
    }

    /// Those that are not as they have to be, as they are.
    pub fn wrong(&self) -> BTreeMap<String, String> {
        let of = |name: &str| Some((name.to_owned(), self.read(name)?));
        let all = [MOVES_LOCKED, BOOST].into_iter().filter_map(of);
        all.filter(|(_, value)| value != RESERVED).collect()
    }

    /// Makes one as it has to be.
    ///
    /// # Errors
    /// It cannot be written: in a container, say.
    pub fn set(&self, name: &str) -> io::Result<()> {
        fs::write(self.0.join(name), RESERVED)
    }

    /// Makes one as it was, if nobody else has changed it meanwhile.
    ///
    /// # Errors
    /// As for [`Self::set`].
    pub fn put_back(&self, name: &str, before: &str) -> io::Result<()> {
        match self.is_right(name) {
            true => fs::write(self.0.join(name), before),
            false => Ok(()),
        }
    }

    /// One as it is; none: this kernel does not have it.
    pub fn read(&self, name: &str) -> Option<String> {
        let text = fs::read_to_string(self.0.join(name)).ok()?;
        Some(text.trim().to_owned())
    }
}
