// SPDX-License-Identifier: GPL-2.0
//! A block device of ours over a file or another block device, whose requests are served in an order of ours: a server of
//! the kernel's ublk driver.
//!
//! ```text
//!   program ─► /dev/ublkbN ─► kernel ─► server ─► Order (which goes next) ─► Backing ─► file or disk
//!                               ▲          │
//!                               └─ answer ─┘     killed: requests wait in the kernel for the next server
//! ```
//!
//! [`Order`] decides, [`Backing`] serves, and [`attach`] joins them to a device. A server that is killed leaves the device
//! there; the next `attach` of the same backing goes on with it. All that it must know the kernel has kept.

mod abi;
mod attach;
mod attend;
mod backing;
mod cello;
mod classes;
mod control;
mod counts;
mod devices;
mod error;
mod handing_on;
mod kept;
mod note;
mod order;
mod precedence;
mod server;
pub mod users;

pub use attach::{Attached, Wanted, attach, open};
pub use attend::{Event, attend};
pub use backing::{Backing, Discard, Place, Service, Shape};
pub use cello::{Cello, MOST_STEPS, Paths, Promise, Setting, Settings, Step};
pub use classes::{Classes, NoClasses, Senders};
pub use counts::{Count, Counts};
pub use devices::{Found, detach, found};
pub use error::DiskError;
pub use handing_on::HandingOn;
pub use kept::{ClassOnDisk, Following, Kept, kept, release, reserve, weigh};
pub use note::{Note, RUN};
pub use order::{Fifo, Order, Request, Tag, What};
pub use precedence::lock_memory;

/// The kernel's unit of places on a disk [bytes].
pub const SECTOR: u64 = 512;
/// The most requests that are known at once: as many as `core/disk.h` knows (`AN_MAX_REQUESTS`, of which index 0 is none).
pub const MAX_TAGS: u16 = 1023;
/// The largest request [bytes]: what the block layer's own default is (`BLK_DEF_MAX_SECTORS_CAP`, 1280 KiB) at most, and as
/// many pages as one bio has (`BIO_MAX_VECS`, 256).
pub const MAX_BYTES: u32 = 1 << 20;
