//! The policy core (`core/`, C), compiled natively, behind a safe interface.
//!
//! Nothing is decided on this side: every method is one call of the core, whose headers say what it
//! does and what the caller owes it. Indices out of range cannot harm (the core masks them), and an
//! assertion of the core that fails aborts the program.

mod containers;
mod contracts;
mod disk;
mod learner;
mod packets;
mod policy;
mod raw;
mod rule;
mod tree;

pub use containers::{Container, ContainerShare, Containers};
pub use contracts::{Contract, Contracts, EventDecision, Kept, Piece, Promise};
pub use disk::{Disk, DiskCounts, DiskMode, DiskModel, Manner};
pub use learner::{Learner, Obstacle, Rhythm};
pub use packets::{Arrival, Fate, Packets};
pub use policy::{Member, Parameters, Policy, PolicyKind, Requeue};
pub use rule::Rule;
pub use tree::{Leaf, Tree};
