//! A machine in user space: N CPUs, tasks, pipes and timers, in discrete events, scheduled by the
//! very policy core that runs in the kernel.
//!
//! ```text
//!   Program ──step──► Machine ──wake, used, block, pick──► Scheduler ──► core (C)
//!   (what tasks do)   (time, CPUs, waiting)                (queues; decides nothing)
//! ```
//!
//! A simulation is determined by what it is given: the same machine, programs and seeds make the
//! same decisions at the same instants everywhere, which [`Trace::hash`] sums up. Nothing reads a
//! clock, an address or the order of a hash table; ties go to the lower id.
//!
//! Time is virtual, in ns since the machine began. Work is time on a CPU at full speed.

mod agenda;
mod channel;
mod containers;
mod contracted;
mod costs;
mod hierarchy;
mod kernel;
mod machine;
mod object;
mod program;
pub mod programs;
mod random;
mod scheduler;
mod shell;
mod simulation;
mod spec;
mod task;
mod trace;

pub use andante_core_sys::{ContainerShare, Contracts, Kept, Piece, PolicyKind, Promise, Rule};
pub use channel::ChannelId;
pub use containers::ContainerScheduler;
pub use contracted::{Contracted, EventOptions, Terms};
pub use hierarchy::Hierarchy;
pub use kernel::{Hardware, InCharge, Kernel, Settings};
pub use machine::{Costs, Interrupts, Machine, Usage};
pub use object::{SHELL_VARIABLE, ShellError, check_shell};
pub use program::{Program, Record, Step, World};
pub use random::Random;
pub use scheduler::{Delivered, Scheduler, Slice};
pub use simulation::Simulation;
pub use spec::{ClassId, ContractId, InstanceId, Priority, Spec, TaskId};
pub use trace::{Ran, Trace};

/// Nanoseconds: instants since the machine began, and lengths of time.
pub type Ns = u64;

/// Virtual nanoseconds in a second.
pub const NS_PER_S: Ns = 1_000_000_000;
/// Virtual nanoseconds in a millisecond.
pub const NS_PER_MS: Ns = 1_000_000;
