// SPDX-License-Identifier: GPL-2.0
//! Admission.

mod contract;
mod demand;
pub mod experiment;
mod partition;
mod placement;
mod policy;
mod sensitivity;
mod task;
mod windows;
mod zero_laxity;

pub use contract::*;
pub use demand::{Verdict, Workload};
pub use placement::*;
pub use policy::*;
pub use task::{Supply, Task};
pub use windows::MAX_PIECES;
/// x
pub struct System;
