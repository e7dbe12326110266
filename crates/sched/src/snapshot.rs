//! What the loaded scheduler looks like at one instant: the class tree, read from the kernel.

use serde::{Deserialize, Serialize};

/// The class tree at one instant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// When it was taken [ns of CLOCK_MONOTONIC].
    pub now_ns: u64,
    /// CPUs that can run tasks.
    pub cpus: u32,
    /// Domains that they are divided into, each with a class tree under a lock of its own.
    #[serde(default = "one")]
    pub domains: u32,
    /// Classes in tree order: parents before children, siblings by path.
    pub classes: Vec<Class>,
}

/// What recordings from before there were domains do not say.
fn one() -> u32 {
    1
}

/// One class: a cgroup that the scheduler knows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Class {
    /// Path below the cgroup root, `/` for the root.
    pub path: String,
    /// Inode number of the cgroup's directory (its kernel id).
    pub cgroup_id: u64,
    /// Distance from the root.
    pub depth: u32,
    /// Weight relative to the siblings (`cpu.weight`).
    pub weight: u32,
    /// Tasks of the whole subtree that wait for a CPU.
    pub queued: u32,
    /// Tasks of the whole subtree that are running.
    pub running: u32,
    /// CPU time charged to the subtree since the scheduler was loaded [ns].
    pub cpu_ns: u64,
    /// What the weights give it while every sibling wants to run [ratio of the machine].
    pub share_asked: f64,
}
