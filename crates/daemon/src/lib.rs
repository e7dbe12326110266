// SPDX-License-Identifier: GPL-2.0
//! Contracts on the running machine: who may have one, where it runs, and what became of it.
//!
//! `andante run` keeps the books ([`Daemon`]) beside the scheduler that it has loaded, and answers
//! whoever asks at its socket ([`Client`]; `protocol` says in which words):
//!
//! ```text
//!     Client ──socket──► Daemon ──► Books ──► andante-admission   is there room, and where?
//!      (CLI)                          ├─────► Host                processes, classes, CPUs
//!                                     └─────► Kernel              the scheduler that is loaded
//! ```
//!
//! # What a contract is here
//! Budget C in every period T, by a deadline D. While it has budget its holder comes before
//! everybody without a contract, by earliest deadline; with the budget used up it runs on the share
//! of its class, beside everybody else, until the next budget comes. It is held by a process (all
//! its threads and those that they start, but no child process), by one thread, or by a class (its
//! own tasks, not those of classes below). It ends with its holder.
//!
//! # What is promised to whom
//! - Admission is that of `andante-admission` over the CPUs that are online, at most 64. A part of
//!   each is left to everybody else ([`Settings`]).
//! - A program that may not use every CPU gets its contract on one that it may, and is never split.
//! - Those that tolerate losses may share a CPU that could not serve all of them, but with each
//!   other only: beside a contract without a window nothing could be promised.
//! - *Nested in a class fits in its parent's*: where the class of the holder, or one above it, has
//!   a contract, the utilisations C/T of those below it may not add up to more than its own. This
//!   is a plain sum, judged when a contract is made. What runs under them is charged to it as well,
//!   so that all of them together get what it promises; each still takes its own room on the CPUs,
//!   for each has deadlines of its own.
//! - Root and members of the group `andante` may reserve for every process; other users for their
//!   own, up to a part of the machine ([`Settings::user_quota_per_mille`]), and all users together up to
//!   another ([`Settings::users_quota_per_mille`]). Subordinate ids (`/etc/subuid`) count with their owner.
//! - Sessions of applications have a part of their own ([`Settings::session_quota_per_mille`]), which is for those
//!   of a user that are in front.
//! - When a CPU leaves, contracts on it go to others. None that has its place is moved for that; one
//!   that fits nowhere runs on its class's share until there is room again.

mod accounts;
mod books;
pub mod choices;
mod client;
mod host;
mod kernel;
pub mod memory;
mod protocol;
mod server;
mod sessions;
mod terms;

#[doc(hidden)]
pub use books::fakes;
pub use books::{Books, Caller, Event, Settings, by_windows, name_after, promise};
pub use choices::Choices;
pub use client::{Client, ClientError};
pub use host::{ClassFacts, Host, LinuxHost, Thread};
pub use kernel::Kernel;
pub use protocol::{
    Ask, CyclesSeen, DoorSeen, Fault, FaultKind, Holder, HolderSeen, Kept, LearntSeen, Limit, List,
    Listed, MachineSeen, MemoryAsk, MemoryListed, MemoryReserved, MemorySeen, Refused, Reply,
    Request, Reserved, SessionSeen, StatusSeen, USUALLY_LENT_PER_MILLE,
};
pub use server::{Daemon, Socket, socket_path};
pub use terms::{LEAST_BUDGET_NS, LEAST_PERIOD_NS, Terms, TermsError};
