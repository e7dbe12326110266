//! A disk in virtual time: it is given requests, and says when each is done.
//!
//! The laboratory serves it to a real kernel as a block device, the simulator serves it to models; it
//! knows neither, and no clock: every call has the time. The same calls have the same answers.
//!
//! [`Hdd`] is an arm over platters, after C. Ruemmler, J. Wilkes: An Introduction to Disk Drive Modeling
//! (IEEE Computer 27 (3), 1994); [`Flash`] is channels side by side, which stand still while blocks are erased.

mod flash;
mod hdd;

pub use flash::{Flash, Powered};
pub use hdd::{Hdd, Spinning};

/// Nanoseconds: instants since some beginning, and lengths of time.
pub type Ns = u64;

/// Of all disks here [bytes].
pub const SECTOR: u64 = 512;

const NS_PER_S: f64 = 1e9;

/// A disk's tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// To read.
    Read,
    /// To write. It is done when it is where it lasts: these disks have no cache for writes.
    Write,
}

/// A request, of one sector at least.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// To read or to write.
    pub action: Action,
    /// The first sector.
    pub sector: u64,
    /// How many.
    pub sectors: u32,
}

impl Request {
    /// The first sector behind it.
    pub fn end(&self) -> u64 {
        self.sector + u64::from(self.sectors)
    }

    /// The length that is read or written [bytes].
    pub fn bytes(&self) -> u64 {
        u64::from(self.sectors) * SECTOR
    }
}

/// A request's name, its giver's, until it is done.
pub type Tag = u32;

/// A disk.
pub trait Drive {
    /// A request comes. One of the same name is not there.
    fn take(&mut self, tag: Tag, request: Request, now_ns: Ns);

    /// When to ask what is done [ns], again if nothing is then; none: there is nothing to do.
    fn next_ns(&self) -> Option<Ns>;

    /// One that is done by now; of several the first.
    fn done(&mut self, now_ns: Ns) -> Option<Tag>;
}
