// SPDX-License-Identifier: GPL-2.0
//! For applications that say what they wait for.
//!
//! ```no_run
//! use andante::{Cycle, Role, Session, Wish};
//!
//! let session = Session::open(Wish::new(Role::Game, Cycle::every_ns(16_666_667))).ok();
//! let thread = session.as_ref().and_then(|session| session.join(None).ok());
//! loop {
//!     // wait for the next frame
//!     let cycle = thread.as_ref().map(|thread| thread.begin(andante::in_ns(16_666_667)));
//!     // make it
//!     drop(cycle);
//!     # break;
//! }
//! ```
//!
//! A *session* is a connection to Andante's daemon. A thread that *joins* it shares a page of memory with
//! the scheduler: to begin and end a cycle, to announce a surge, to raise an event for a thread, is a store or
//! two there, and never a system call; but who does not want to wait until the scheduler looks next calls it
//! ([`Sink::raise_now`]). What is declared needs no privilege, and takes from others no more than
//! a program that behaves like a film would get anyway; a *promise* is another matter, and may be refused.
//!
//! Without the daemon [`Session::open`] fails with [`Error::NoDaemon`], and the program goes on without.

mod c;
mod call;
mod error;
mod fork;
mod page;
mod ring;
mod session;
mod thread;
mod wire;

pub use andante_session::page::SERVICES;
pub use andante_session::{Cycle, Granted, Notice, Offer, Role, Terms, Wish};

pub use call::Call;
pub use error::Error;
pub use session::{Promised, Session, socket_path};
pub use thread::{InCycle, Sink, Tell, Thread, in_ns, now_ns};
