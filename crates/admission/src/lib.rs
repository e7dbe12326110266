// SPDX-License-Identifier: GPL-2.0
//! Admission.

mod contract;
mod demand;
mod sensitivity;
mod task;

pub use contract::*;
pub use demand::{Verdict, Workload};
pub use task::{Supply, Task};
/// x
pub struct System;
