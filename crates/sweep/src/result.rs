//! The results of a sweep, as `OUT/sweep/FAMILY/sweep.json` carries them. The report and the terminal
//! show nothing that is not in here.

use std::collections::BTreeMap;

use andante_result::Verdict;
use serde::{Deserialize, Serialize};

/// The name every file carries in `schema`.
pub const SCHEMA: &str = "andante-sweep";
/// Raised when a field changes meaning or goes; new optional fields do not raise it.
pub const VERSION: u32 = 1;

/// A family, swept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SweepResult {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// Always [`VERSION`] for files this build writes.
    pub version: u32,
    /// The family's key: its file name without `.toml`.
    pub family: String,
    /// One line for people.
    pub title: String,
    /// What simulated: name and version.
    pub simulator: String,
    /// The seed.
    pub seed: u64,
    /// Draws asked for; `draws` has fewer if the sweep was interrupted.
    pub draws_asked: u64,
    /// Lines of TOML that were laid over the family, in their order.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub set: Vec<String>,
    /// The schedulers, in the order asked for.
    pub schedulers: Vec<String>,
    /// The one that the others are compared with.
    pub reference: String,
    /// What was measured of any draw, judged and summed up.
    pub measures: Vec<MeasureResult>,
    /// By load, how many draws keep every bound.
    pub by_load: Vec<LoadResult>,
    /// What is required of the sweep, judged.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub requirements: Vec<RequirementResult>,
    /// Every draw, in the order of their numbers.
    pub draws: Vec<DrawResult>,
}

impl SweepResult {
    /// The place of a scheduler in all that is by scheduler; none: it has not taken part.
    pub fn place_of(&self, scheduler: &str) -> Option<usize> {
        self.schedulers.iter().position(|name| name == scheduler)
    }

    /// How many draws keep every bound under the scheduler of this place.
    pub fn kept(&self, place: usize) -> u64 {
        self.by_load.iter().map(|load| load.good[place]).sum()
    }
}

/// One measure over all draws.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeasureResult {
    /// `late_share`, `xrun_share`, `key_p99_ms`, `key_max_ms` or `batch`.
    pub name: String,
    /// Whether larger figures are the better ones.
    pub more_is_better: bool,
    /// What is asked of a draw, in the measure's unit; absent: nothing.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub bound: Option<f64>,
    /// How much worse than under the reference is as good as there, in the measure's unit.
    pub within: f64,
    /// By scheduler, in their order.
    pub schedulers: Vec<Distribution>,
}

/// The figures of one measure under one scheduler.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// Its name.
    pub scheduler: String,
    /// Draws that have a figure.
    pub n: u64,
    /// The least figure.
    pub min: f64,
    /// Median (nearest rank).
    pub p50: f64,
    /// 90th percentile (nearest rank).
    pub p90: f64,
    /// 99th percentile (nearest rank).
    pub p99: f64,
    /// The largest figure.
    pub max: f64,
    /// The part of the draws that keep the bound; absent without one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub share_in_bound: Option<f64>,
    /// The part of the draws that are as good as under the reference; absent for the reference itself.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub share_near_reference: Option<f64>,
    /// The worst draws, the worst first: by how much worse they are than under the reference, and of
    /// those alike, and of the reference's own, by the figure.
    pub worst: Vec<Worst>,
}

/// One of the worst draws.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Worst {
    /// `SEED/NUMBER`.
    pub draw: String,
    /// Its load, see [`DrawResult`].
    pub load: f64,
    /// The figure.
    pub figure: f64,
    /// The same under the reference.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reference: Option<f64>,
    /// The command that runs it again in the simulator.
    pub on_sim: String,
    /// The command that runs it on a kernel.
    pub on_vm: String,
}

/// The draws of a range of loads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadResult {
    /// From this load [ratio].
    pub from: f64,
    /// To below this one [ratio]; absent: whatever is above.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub to: Option<f64>,
    /// Draws.
    pub n: u64,
    /// By scheduler, in their order: of these, how many keep every bound.
    pub good: Vec<u64>,
}

/// Something that is required of a sweep, judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RequirementResult {
    /// In words.
    pub requirement: String,
    /// Draws that count: those in which the reference keeps every bound, as far as the load allows.
    pub n: u64,
    /// Those of them that keep every bound.
    pub kept: u64,
    /// The part of `n` that must [ratio].
    pub share: f64,
    /// Whether it does; `not_judged`: the scheduler did not take part.
    pub verdict: Verdict,
    /// Those that do not: `SEED/NUMBER`.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub bad: Vec<String>,
}

/// One draw.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DrawResult {
    /// `SEED/NUMBER`.
    pub draw: String,
    /// CPU time that the interactive programs ask for over what the machine has [ratio].
    pub load: f64,
    /// CPUs of its machine.
    pub cpus: u32,
    /// By what all work is multiplied.
    pub work_scale: f64,
    /// What the variables of `[draw]` came to.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub variables: BTreeMap<String, serde_json::Value>,
    /// Which variant each group came to.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub variants: BTreeMap<String, String>,
    /// By scheduler, in their order: the figures by measure; measures that the draw does not have are
    /// absent.
    pub figures: Vec<BTreeMap<String, f64>>,
}
