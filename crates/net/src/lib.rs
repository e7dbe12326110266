// SPDX-License-Identifier: GPL-2.0
//! Packets that leave by the classes of the CPU: a queueing discipline of the kernel's
//! (`bpf/qdisc.bpf.c`), put on devices and taken off again.
//!
//! ```text
//!   attach ─► load the object, sized for the device ─► keep what was there (pins) ─► put it on the device
//!   detach ─► take it off ─► what was there comes back ─► no pins
//! ```
//!
//! Nobody needs to stay: where it is, it goes on. What must be known later (what was there before, and the
//! counts of its classes) is in maps that are pinned in the kernel's own file system, and so ends with it.

mod attach;
mod contract;
mod device;
mod discipline;
pub mod doctor;
mod error;
mod kept;
mod netlink;
mod process;
pub mod receive;
mod seen;
mod support;
mod weights;

#[allow(missing_docs, clippy::all, clippy::undocumented_unsafe_blocks)]
mod skel {
    include!(concat!(env!("OUT_DIR"), "/qdisc.skel.rs"));
}

pub use andante_admission::Rate;
pub use attach::{Attached, Detached, Wanted, attach, attached, attached_for_all_to_see, detach};
pub use contract::{Holder, Promised, release, release_of, reserve, usual_device};
pub use device::{Device, Nature, by_default};
pub use discipline::Discipline;
pub use error::NetError;
pub use kept::Former;
pub use netlink::Gso;
pub use process::Process;
pub use seen::{Class, Delay, Seen, seen};
pub use support::has_bpf_qdiscs;
pub use weights::weigh;

/// What the kernel calls the discipline.
pub const KIND: &str = "andante";
