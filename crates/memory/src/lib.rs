// SPDX-License-Identifier: GPL-2.0
//! Reservations of memory.
pub mod ahead;
mod cgroup;
pub mod demand;
mod error;
pub mod holder;
pub mod keeper;
pub mod learn;
pub mod machine;
pub mod pages;
pub mod protect;
pub mod words;

pub use cgroup::{Cgroup, Stat};
pub use error::MemoryError;
