//! A machine in user space: CPUs, tasks, pipes and timers, in discrete events.
//!
//! ```text
//!   Program ──step──► Kernel ──► model of the kernel (C) ──callbacks──► bpf/*.bpf.c ──► core/
//!   (what tasks do)
//!   Program ──step──► Machine ──wake, used, block, pick──► Scheduler ──► core/
//! ```
//!
//! [`Kernel`] has the scheduler that users run, that of historical policies, and the stock scheduler, with
//! all that a kernel costs, or ideal. [`Machine`] has what no kernel of today has, for published
//! experiments: resource containers, coordinated events, and policies of the past as their papers
//! describe them, all with queues of their own that decide nothing.
//!
//! [`link`] has a link between two hosts: a CPU that serves bytes, by the same core; [`disk`] a disk, by Cello.
//!
//! A simulation is determined by what it is given: the same machine, programs and seeds make the
//! same decisions at the same instants everywhere. Nothing reads a
//! clock, an address or the order of a hash table; ties go to the lower id.
//!
//! Time is virtual, in ns since the machine began. Work is time on a CPU at full speed.

mod agenda;
mod channel;
mod containers;
mod costs;
pub mod disk;
mod kernel;
pub mod link;
mod machine;
mod object;
mod one_class;
mod program;
pub mod programs;
mod random;
mod scheduler;
mod servers;
mod shell;
mod simulation;
mod spec;
mod task;
mod trace;

pub use andante_core_sys::{
    ContainerShare, Contracts, Disk, DiskCounts, DiskMode, DiskModel, Kept, Manner, Packets, Piece,
    PolicyKind, Promise, Rule,
};
pub use channel::ChannelId;
pub use containers::ContainerScheduler;
pub use kernel::{Coordination, Hardware, InCharge, Kernel, Learnt, Settings, Topology};
pub use machine::{Costs, Interrupts, Machine, Usage};
pub use object::{SHELL_VARIABLE, ShellError, check_shell};
pub use one_class::OneClass;
pub use program::{Cycle, Program, Record, Step, World};
pub use random::Random;
pub use scheduler::{Delivered, Scheduler, Slice};
pub use servers::{ServerOptions, Servers};
pub use simulation::Simulation;
pub use spec::{Bandwidth, ClassId, ContractId, InstanceId, LeafPolicy, Priority, Spec, TaskId};
pub use trace::{Ran, Trace};

/// Nanoseconds: instants since the machine began, and lengths of time.
pub type Ns = u64;

/// Virtual nanoseconds in a second.
pub const NS_PER_S: Ns = 1_000_000_000;
/// Virtual nanoseconds in a millisecond.
pub const NS_PER_MS: Ns = 1_000_000;
