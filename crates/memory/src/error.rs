// SPDX-License-Identifier: GPL-2.0
//! Why memory is not reserved as was asked.

use std::io;
use std::path::{Path, PathBuf};

/// Why not.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    /// Memory is counted for the machine as a whole only.
    #[error(
        "cgroups have no memory controller here: boot without cgroup_disable=memory, and with cgroup v2 alone \
         (systemd.unified_cgroup_hierarchy=1)"
    )]
    NoController,
    /// A class cannot hand the controller on.
    #[error(
        "{} cannot count the memory of its classes apart: processes are in it directly, which cgroup v2 does not \
         allow then; move them to a class below it", .0.display()
    )]
    Busy(PathBuf),
    /// A file of the kernel's, or one of ours, cannot be read or written.
    #[error("{}: {source}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The process that does what takes time could not be started, or has ended.
    #[error("the process that looks after reserved memory could not be started: {0}")]
    Keeper(io::Error),
}

pub(crate) fn file(path: &Path) -> impl FnOnce(io::Error) -> MemoryError + '_ {
    move |source| MemoryError::File {
        path: path.to_owned(),
        source,
    }
}
