//! What this machine must have for the scheduler and for the laboratory: found or missing, and the
//! mend for what is missing.
//!
//! [`examine`] gathers the [`Facts`] once and judges them; `andante run` refuses by the very same
//! judgement, so what the doctor calls healthy loads.

mod distribution;
mod facts;
mod judge;
mod tools;

use serde::Serialize;

pub use distribution::Distribution;
pub use facts::{Facts, Loaded};

use crate::told::{self, Untold};

/// What a check is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Need {
    /// `andante run` cannot do without it.
    Scheduler,
    /// `andante lab run` in the virtual machine cannot do without it.
    Laboratory,
    /// `andante reserve --memory` cannot do without it, or does less.
    Memory,
    /// `andante net attach` cannot do without it, or needs to be told.
    Network,
}

/// Why the scheduler cannot be loaded, as far as it matters for an exit status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Obstacle {
    /// The kernel is older than the oldest one supported.
    OldKernel,
    /// The kernel was built without sched_ext.
    NoSchedExt,
    /// The kernel was built with PREEMPT_RT, and refuses BPF timers.
    PreemptRt,
    /// The kernel's type information is missing or lacks kernel functions.
    BrokenBtf,
    /// BPF programs cannot be loaded, or are not compiled to machine code.
    NoBpf,
    /// The `cpu` controller belongs to cgroup v1, or version 2 is not mounted.
    CgroupV1,
    /// cgroup v2 has no `cpu` controller.
    NoCpuController,
    /// The kernel command line isolates CPUs.
    IsolatedCpus,
    /// A sched_ext scheduler is loaded already.
    OtherScheduler,
    /// The caller lacks the privilege.
    NotRoot,
    /// A program of the laboratory is not installed.
    MissingTool,
}

/// One thing that was looked for.
#[derive(Debug, Clone, Serialize)]
pub struct Check {
    /// What it is, for people.
    pub title: &'static str,
    /// Who needs it.
    pub need: Need,
    /// Whether it is there.
    pub found: bool,
    /// What exactly was seen.
    pub detail: String,
    /// What to do about it; none if it was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mend: Option<String>,
    /// What it stands in the way of; none if it was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub obstacle: Option<Obstacle>,
}

/// Everything that was looked for on this machine.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// `uname -r`.
    pub kernel: String,
    /// Whether `andante run` can load the scheduler here.
    pub scheduler_can_run: bool,
    /// Whether `andante lab run` can start its virtual machine here.
    pub laboratory_can_run: bool,
    /// Classes that ask for what this kernel does not tell a scheduler.
    pub untold: Vec<Untold>,
    /// In the order in which they matter: without the first, the later ones are moot.
    pub checks: Vec<Check>,
}

impl Report {
    /// The first thing in the way of loading the scheduler.
    pub fn first_obstacle(&self) -> Option<&Check> {
        self.checks
            .iter()
            .find(|check| check.need == Need::Scheduler && !check.found)
    }
}

/// Looks at this machine.
pub fn examine() -> Report {
    let facts = Facts::gather();
    let mut checks = judge::scheduler(&facts);
    checks.extend(tools::laboratory(facts.distribution));
    let all_found = |need| checks.iter().all(|check| check.need != need || check.found);
    Report {
        scheduler_can_run: all_found(Need::Scheduler),
        laboratory_can_run: all_found(Need::Laboratory),
        kernel: facts.release,
        untold: told::untold(),
        checks,
    }
}

/// The first thing in the way of loading the scheduler on this machine, if there is one.
pub fn obstacle() -> Option<Check> {
    judge::scheduler(&Facts::gather())
        .into_iter()
        .find(|check| !check.found)
}

impl Check {
    fn found(title: &'static str, need: Need, detail: impl Into<String>) -> Self {
        Self {
            title,
            need,
            found: true,
            detail: detail.into(),
            mend: None,
            obstacle: None,
        }
    }

    fn missing(
        title: &'static str,
        need: Need,
        obstacle: Obstacle,
        detail: impl Into<String>,
        mend: impl Into<String>,
    ) -> Self {
        let (detail, mend) = (detail.into(), Some(mend.into()));
        Self {
            title,
            need,
            found: false,
            detail,
            mend,
            obstacle: Some(obstacle),
        }
    }
}
