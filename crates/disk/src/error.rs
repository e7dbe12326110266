// SPDX-License-Identifier: GPL-2.0
//! Why a disk is not attached, or not detached, as was asked.

use std::io;
use std::path::PathBuf;

use andante_admission::disk::DiskContractError;

use crate::users::User;

/// Why not.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// Block devices are root's to make.
    #[error("only root may attach, detach or list disks: use sudo")]
    NotRoot,
    /// The driver is not there.
    #[error(
        "this kernel has no ublk: `modprobe ublk_drv` loads it, where the kernel was built with CONFIG_BLK_DEV_UBLK"
    )]
    NoUblk,
    /// The driver is too old.
    #[error(
        "the ublk driver of this kernel cannot hand over the memory of requests: boot Linux 6.16 or newer"
    )]
    OldUblk,
    /// The kernel refuses rings.
    #[error(
        "the kernel refuses a ring of io_uring ({0}): `sysctl kernel.io_uring_disabled=0` allows them"
    )]
    NoRings(io::Error),
    /// There is nothing at that path.
    #[error("there is no {}: make a file with `truncate -s 1G`, or see `lsblk` for the disks that there are", .0.display())]
    NotFound(PathBuf),
    /// It is a folder, a terminal, or the like.
    #[error("{} is neither a file nor a block device: name one of these", .0.display())]
    NoBacking(PathBuf),
    /// Its order has no classes.
    #[error("{0} serves requests as they come, and promises nothing: attach it with --order cello")]
    NotOrdered(String),
    /// No contract that could be.
    #[error(transparent)]
    Contract(DiskContractError),
    /// It has no content.
    #[error("{} is empty, and a disk has a size: `truncate -s 1G` gives a file one", .0.display())]
    Empty(PathBuf),
    /// Its size is not one of sectors.
    #[error(
        "{} has {bytes} bytes, which are no multiple of {of}: `truncate -s %{of}` makes a file a little longer", .path.display()
    )]
    OddSize {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
        /// The size of a block.
        of: u64,
    },
    /// The disk has larger blocks than the driver knows.
    #[error("{} has blocks of {bytes} bytes, and ublk none above 4096: a file on it can be attached", .path.display())]
    LargeBlocks {
        /// The device.
        path: PathBuf,
        /// Its blocks.
        bytes: u64,
    },
    /// The page cache cannot be gone around.
    #[error(
        "{} cannot be read and written without the page cache (O_DIRECT), which would hold everything twice: take a \
         file on another file system, such as ext4 or XFS", .0.display()
    )]
    NotDirect(PathBuf),
    /// It may be read only.
    #[error("{} may not be written to: a file on a file system that is mounted for writing can be attached", .0.display())]
    NotWritable(PathBuf),
    /// Somebody else has it.
    #[error("{} is in use: {}", .path.display(), reason(.by.as_ref(), "another program has locked it or has it open; end that first"))]
    BackingInUse {
        /// The file or device.
        path: PathBuf,
        /// By whom, if that can be told.
        by: Option<User>,
    },
    /// It is attached, and its server lives.
    #[error("{} is attached as {device} already, by process {server}", .path.display())]
    Attached {
        /// The file or device.
        path: PathBuf,
        /// The block device.
        device: String,
        /// The process that serves it.
        server: i32,
    },
    /// It has changed while nobody served it.
    #[error(
        "it is of another size than {device}, which waits for it: give it the size of {sectors} sectors of 512 bytes again, \
         or give up with `andante disk detach --force {device}`"
    )]
    OtherSize {
        /// The block device.
        device: String,
        /// What it is to have.
        sectors: u64,
    },
    /// It is none of ours.
    #[error("{0} is not attached: `andante disk list` has what is")]
    NotAttached(String),
    /// Somebody has the block device.
    #[error("{device} is in use: {}", reason(.by.as_ref(), "a program has it open; end that first"))]
    InUse {
        /// The block device.
        device: String,
        /// By whom, if that can be told.
        by: Option<User>,
    },
    /// Requests wait for a server that is no more.
    #[error(
        "{device} is in use, and nobody serves it: `andante disk attach` of what it was attached to goes on where the former \
         server was killed; --force gives up what has not been written"
    )]
    Waiting {
        /// The block device.
        device: String,
    },
    /// The kernel refuses a step.
    #[error("cannot {what}: {source}")]
    Io {
        /// The step.
        what: String,
        /// Why not.
        source: io::Error,
    },
}

pub(crate) fn io_error(what: impl Into<String>) -> impl FnOnce(io::Error) -> DiskError {
    let what = what.into();
    move |source| DiskError::Io { what, source }
}

fn reason(by: Option<&User>, unknown: &str) -> String {
    by.map_or_else(|| unknown.to_owned(), User::to_string)
}
