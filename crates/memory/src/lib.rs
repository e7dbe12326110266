// SPDX-License-Identifier: GPL-2.0
//! Reservations of memory (PSAP: private, shared, anonymous paging, as we have rebuilt it from its purpose [1]): what is
//! reserved for a class is there when the class needs it, and others have it until then.
//!
//! ```text
//!   daemon ──► protect    memory.min of the class and of all above it: what it uses is taken in no case
//!      │
//!      └─────► keeper     a process of its own, for it may wait for a disk
//!                ├─ demand    what is not lent is kept free; who is over gives, cheapest pages first
//!                ├─ firewall  who wants more waits for it, before the machine has none left
//!                ├─ holder    locks pages of libraries that others have read first
//!                ├─ ahead     a paused program goes on: its pages are asked for
//!                └─ learn     what a program needs, seen while nobody presses
//! ```
//!
//! Decisions (`demand`, `ahead`, `learn`) know no files; whether a reservation fits is `andante_admission::memory`.
//!
//! \[1\] S. Kato, Y. Ishikawa, R. Rajkumar, *CPU Scheduling and Memory Management for Interactive Real-Time
//! Applications*, Real-Time Systems, 2011. Of its algorithm only the purpose and the name are known here.

pub mod ahead;
mod cached;
mod cgroup;
pub mod demand;
pub mod doctor;
mod error;
pub mod firewall;
mod handle;
pub mod holder;
pub mod keeper;
mod kept;
pub mod learn;
pub mod machine;
pub mod oom;
pub mod pages;
pub mod process;
pub mod protect;
pub mod sysctl;
pub mod words;

pub use cgroup::{Cgroup, Stat};
pub use error::MemoryError;
pub use handle::{Handle, Right};
