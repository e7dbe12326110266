// SPDX-License-Identifier: GPL-2.0
//! Admission control: whether a contract (a budget in every period, by a deadline) can be promised,
//! on which CPUs it runs, and if not, why, because of whom, and what would do instead.
//!
//! ```
//! use andante_admission::{Answer, Contract, Machine, Placement, Policy, System};
//!
//! let mut system = System::new(Machine::whole(2), Policy::default())?;
//! let ms = 1_000_000;
//! for name in ["film", "game", "mixer"] {
//!     let answer = system.admit(Contract::new(name, 6 * ms, 10 * ms))?;
//!     // Two of them fill a CPU each by 60 %; the third is split over what is left of both.
//!     let admission = answer.admission().expect("there is room for all three");
//!     assert_eq!(admission.placement.is_split(), name == "mixer");
//! }
//! let refused = system.ask(&Contract::new("build", 4 * ms, 10 * ms))?;
//! let nearest = &refused.refusal().expect("there is no room for a fourth").nearest;
//! assert_eq!(nearest.largest_budget.as_ref().unwrap().contract.budget_ns, 2 * ms);
//! # Ok::<(), andante_admission::AskError>(())
//! ```
//!
//! | | tested by | in |
//! |---|---|---|
//! | one CPU, deadlines at the periods' ends | utilisation | `task` |
//! | one CPU | demand in every interval: QPA | `demand`, `sensitivity` |
//! | several CPUs | EDF-WM: first, best or worst fit, then windows of D/s | `partition`, `edf_wm` |
//! | the same, ours | zero-laxity pieces | `zero_laxity` |
//! | loss windows | DWCS's condition and its preconditions | `dwcs` |
//! | a link | demand, less what packets take that are not preempted | `link` |
//! | memory | the sum, with what the kernel and others keep | `memory` |
//!
//! All decisions are made in integers and exact fractions. Only fractions shown to people are
//! rounded, and say so.

mod answer;
mod blocked;
mod contract;
mod demand;
pub mod disk;
mod duration;
pub mod dwcs;
mod edf_wm;
pub mod experiment;
mod explain;
pub mod file;
pub mod link;
pub mod memory;
mod offer;
mod partition;
mod placement;
mod policy;
mod quantity;
mod rate;
mod sensitivity;
mod size;
mod system;
mod task;
mod zero_laxity;

pub use answer::{
    Admission, Answer, Failure, Holder, Nearest, Obstacle, Offer, Overload, Promise, Refusal,
    Shortage, Test, WindowFailure,
};
pub use contract::{
    Contract, ContractError, MAX_CONTRACTS, MAX_CPUS, MAX_PERIOD_NS, MAX_WINDOW, Tolerance,
    ToleranceError,
};
pub use demand::{Verdict, Workload};
pub use duration::{Duration, DurationError};
pub use dwcs::Unproved;
pub use edf_wm::MAX_PIECES;
pub use offer::{Bounds, MAX_STRETCH};
pub use placement::{Piece, Placement, PlacementError};
pub use policy::{DEFAULT_LEAST_PIECE_NS, Excess, Fit, Order, Policy, Splitting};
pub use rate::Rate;
pub use size::Size;
pub use system::{AskError, Machine, System};
pub use task::{Supply, Task};
