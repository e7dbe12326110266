//! What the loaded scheduler looks like at one instant: the class tree, read from the kernel.

use std::collections::BTreeMap;

use crate::error::StateError;
use crate::leaf_policy::LeafPolicy;
use crate::learnt::LearntRoom;
use crate::sharing::Sharing;
use crate::skel::types;
use crate::state;
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
    /// The tasks of a class with children that are in none of these: a row of its own below it, with the same path.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own: bool,
    /// Weight relative to the siblings (`cpu.weight`).
    pub weight: u32,
    /// Tasks of the whole subtree that wait for a CPU.
    pub queued: u32,
    /// Tasks of the whole subtree that are running.
    pub running: u32,
    /// CPU time charged to the subtree since the scheduler was loaded [ns].
    pub cpu_ns: u64,
    /// How its tasks are ordered, if not by nice values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<LeafPolicy>,
    /// What it may use (`cpu.max`), and how often it had to wait for that; none: there is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<Bandwidth>,
    /// Whether it gets what nobody else wants (`cpu.idle`).
    #[serde(default)]
    pub idle: bool,
    /// What the weights give it while every sibling wants to run [ratio of the machine].
    pub share_asked: f64,
}

/// The quota of a class; counts are since it has had one, and named as in `cpu.stat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bandwidth {
    /// CPU time in every period, all CPUs taken together [µs].
    pub quota_usec: u64,
    /// [µs]
    pub period_usec: u64,
    /// What may be left from earlier periods [µs].
    pub burst_usec: u64,
    /// Whether it waits for its next period now.
    pub throttled: bool,
    /// Periods that have begun while somebody used the class.
    pub nr_periods: u64,
    /// Periods in which it was throttled.
    pub nr_throttled: u64,
    /// For how long it was throttled altogether [µs].
    pub throttled_usec: u64,
    /// Short turns, of some 20 µs, of tasks that had waited for longer than eight seconds while nothing of it was
    /// left: the kernel's watchdog would end the scheduler otherwise.
    pub nr_exceeded: u64,
}

impl Class {
    /// What tells it apart from all other rows, in every snapshot.
    pub fn key(&self) -> (u64, bool) {
        (self.cgroup_id, self.own)
    }
}

impl Bandwidth {
    /// What the quota comes to [CPUs].
    pub fn cpus(&self) -> f64 {
        self.quota_usec as f64 / self.period_usec.max(1) as f64
    }
}

/// All that is to be seen of the loaded scheduler at one instant, but for contracts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    /// The classes.
    #[serde(flatten)]
    pub snapshot: Snapshot,
    /// Cgroups that have no class of their own, for there is no room for it.
    pub sharing: Option<Sharing>,
    /// How full the places for learnt contracts are.
    pub learnt_room: Option<LearntRoom>,
    /// What the scheduler has counted since it was loaded, by the names in `bpf/intf.h`.
    pub counters: BTreeMap<String, u64>,
}

impl Seen {
    /// The loaded scheduler at this instant.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn now() -> Result<Self, StateError> {
        Ok(Self::of(state::snapshot()?, &state::counted()?))
    }

    /// The classes, and what the scheduler has counted by then.
    pub(crate) fn of(snapshot: Snapshot, stats: &types::an_stats) -> Self {
        let counters = state::named(stats).into_iter();
        Self {
            snapshot,
            sharing: Some(Sharing::of(stats.classes_shared)),
            learnt_room: Some(LearntRoom::of(stats)),
            counters: counters
                .map(|(name, count)| (name.to_owned(), count))
                .collect(),
        }
    }
}
