// SPDX-License-Identifier: GPL-2.0
//! Whether the kernel moves locked pages to make room for large ones (`vm.compact_unevictable_allowed`,
//! `Documentation/admin-guide/sysctl/vm.rst`).
//!
//! A page is locked by those who have it mapped. Pages of a file come in large pieces; a piece for which the kernel finds no
//! free place of its size is split before it is moved, and on Linux 7.2 that unmaps it from everybody. Then nobody has
//! it locked any more, and it is taken like any other: of a library of 3,840 pages that was held, 877 and 1,384 were gone in two runs
//! after some seconds (`unevictable_pgs_stranded`). So locked pages stay where they are while memory is reserved.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use nix::sys::statvfs::{FsFlags, statvfs};

/// The kernel's switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compaction(PathBuf);

impl Compaction {
    /// This machine's.
    pub fn of_kernel() -> Self {
        Self::at(Path::new("/proc/sys/vm/compact_unevictable_allowed"))
    }

    /// Another file than the kernel's.
    pub fn at(path: &Path) -> Self {
        Self(path.to_owned())
    }

    /// Whether locked pages are moved; a kernel without compaction moves none.
    pub fn moves_locked(&self) -> bool {
        fs::read_to_string(&self.0).is_ok_and(|text| text.trim() != "0")
    }

    /// Whether root may choose; it may not in a container.
    pub fn can_be_changed(&self) -> bool {
        statvfs(&self.0).is_ok_and(|found| !found.flags().contains(FsFlags::ST_RDONLY))
    }

    /// Has them moved from now on, or not.
    ///
    /// # Errors
    /// The file cannot be written: in a container, say.
    pub fn move_locked(&self, moves: bool) -> io::Result<()> {
        fs::write(&self.0, if moves { "1" } else { "0" })
    }
}
