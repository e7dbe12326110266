// SPDX-License-Identifier: GPL-2.0
//! What an application and Andante say to one another.
//!
//! A program opens a *session* at the daemon's socket: a connection on which it sends lines of JSON
//! ([`Request`]) and is answered in lines ([`Answer`]), each with the number of the request. Lines that
//! nobody asked for are [`Notice`]s. The session lasts as long as the connection does.
//!
//! Each thread that joins gets a [`page`] of memory, which it shares with the scheduler: what is said there
//! costs a store.

mod mapped;
pub mod page;
mod protocol;
mod version;

pub use mapped::Mapped;
pub use protocol::{
    Answer, Calls, Cycle, Declare, Declared, Fault, FaultKind, Granted, Hello, Joined, Notice,
    Offer, Opened, Request, Role, Said, Tell, Terms, Wish,
};
pub use version::{VERSION, greeted, understood};
