// SPDX-License-Identifier: GPL-2.0
//! Backings: they serve the requests.

mod place;

use std::os::fd::BorrowedFd;

use io_uring::squeue::Entry;
use io_uring::types::Fixed;

use crate::order::{Request, Tag};

pub use place::Place;
pub(crate) use place::identity_of;

/// The discards that are possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Discard {
    /// Of so many at once, and multiples of it [bytes].
    pub granularity: u32,
    /// Where the first of these begins [bytes].
    pub alignment: u32,
    /// The most of a request; 0: none is discarded [sectors].
    pub max_sectors: u32,
    /// The most that a request zeroes; 0: zeroes are written like anything else [sectors].
    pub max_zeroes_sectors: u32,
}

/// The shape that the block device is to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Its size, in sectors of 512 bytes.
    pub sectors: u64,
    /// Requests are of so many, and multiples of it: a power of two, 512 to 4096 [bytes].
    pub logical_block: u32,
    /// The length that the disk itself writes at once: no less [bytes].
    pub physical_block: u32,
    /// Memory of requests is aligned to this, less one: a power of two, less than 4096 [bytes].
    pub memory_alignment: u32,
    /// It has an arm.
    pub rotational: bool,
    /// Whether and how it forgets.
    pub discard: Option<Discard>,
    /// Tells it from others, as long as the machine runs: a server that takes over finds its device by this. Of no more
    /// than 48 bits.
    pub identity: u64,
}

/// The server's part, as [`Backing::serve`] would have it.
pub struct Service {
    /// To be submitted; without one the answer is the request's length.
    pub entry: Option<Entry>,
    /// The request is not answered before [`Backing::completed`] has named it.
    pub held: bool,
}

/// A server of requests: a file, a disk, or the model of one.
pub trait Backing {
    /// The shape that the block device is to have. It does not change.
    fn shape(&self) -> Shape;

    /// The file that entries are about. The server registers it with its ring.
    fn file(&self) -> BorrowedFd<'_>;

    /// Begins to serve a request. The ring knows the file of [`Backing::file`] as `file`, and the memory of the request
    /// as the buffer of the number of its tag, which begins at address 0.
    ///
    /// The answer of the entry is the request's: for reads and writes the bytes that are done, which may be fewer (the kernel
    /// sends the rest again), and a negative error number if it failed.
    fn serve(&mut self, request: &Request, file: Fixed, now_ns: u64) -> Service;

    /// When [`Backing::completed`] will name a request that is held, if nothing comes until then.
    fn complete_at_ns(&self) -> Option<u64> {
        None
    }

    /// A request that is held no longer.
    fn completed(&mut self, _now_ns: u64) -> Option<Tag> {
        None
    }
}
