//! What comes of a perturbed scenario, as `OUT/SCENARIO/perturbed.json` carries it; described in
//! `docs/perturbed-schema.md`.

use andante_result::Verdict;
use serde::{Deserialize, Serialize};

/// The name every file carries in `schema`.
pub const SCHEMA: &str = "andante-perturbed";
/// Raised when a field changes meaning or goes; new optional fields do not raise it.
pub const VERSION: u32 = 1;

/// A scenario, run under many perturbations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PerturbedResult {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// Always [`VERSION`] for files this build writes.
    pub version: u32,
    /// The scenario's key: its file name without `.toml`.
    pub scenario: String,
    /// One line for people.
    pub title: String,
    /// Where it ran: `vm`, `sim` or `host`.
    pub on: String,
    /// `uname -r` of the kernel that scheduled; of the simulator its version.
    pub kernel: String,
    /// Lines of TOML that were laid over the scenario, in their order.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub set: Vec<String>,
    /// The schedulers, in the order asked for.
    pub schedulers: Vec<String>,
    /// Of the perturbations.
    pub seed: u64,
    /// Perturbations asked for: numbers 0 and up of the seed.
    pub asked: u64,
    /// By case, in the scenario's order.
    pub cases: Vec<CaseResult>,
}

/// One case under all perturbations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseResult {
    /// Its name; absent if the scenario has no cases.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub case: Option<String>,
    /// Perturbations under which it was carried out.
    pub n: u64,
    /// What is expected of it, judged.
    pub expectations: Vec<Distribution>,
    /// Programs that failed and schedulers that were ejected.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub exceptions: Vec<Exception>,
}

/// One expectation over all perturbations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// In words, e.g. `andante: xruns of sound at most 0`.
    pub expectation: String,
    /// Whether it holds often enough.
    pub verdict: Verdict,
    /// Figures that were judged.
    pub n: u64,
    /// Those within the bound.
    pub held: u64,
    /// So many must be.
    pub needed: u64,
    /// The figures' distribution; absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub figures: Option<Figures>,
    /// The worst figures, the worst first; none if all are alike.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub worst: Vec<Worst>,
    /// Why it was not judged, or why a figure is missing.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<String>,
}

/// Least, middle and largest of some figures, in the measure's unit (or a ratio).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// The least.
    pub min: f64,
    /// Median (nearest rank).
    pub p50: f64,
    /// 90th percentile (nearest rank).
    pub p90: f64,
    /// 99th percentile (nearest rank).
    pub p99: f64,
    /// The largest.
    pub max: f64,
}

/// The figure of one perturbation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Worst {
    /// `SEED/NUMBER`.
    pub perturbation: String,
    /// The figure.
    pub measured: f64,
    /// The command that runs it again, alone.
    pub command: String,
}

/// Something that may not happen at all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Exception {
    /// `SEED/NUMBER`.
    pub perturbation: String,
    /// Under which scheduler.
    pub scheduler: String,
    /// What, in words.
    pub reason: String,
    /// The command that runs it again, alone.
    pub command: String,
}

impl Figures {
    /// None if there are no figures.
    pub(super) fn of(mut figures: Vec<f64>) -> Option<Self> {
        figures.sort_by(f64::total_cmp);
        let n = figures.len();
        let rank = |q: f64| figures[((q * n as f64).ceil() as usize).clamp(1, n) - 1];
        (n > 0).then(|| Self {
            min: rank(0.0),
            p50: rank(0.5),
            p90: rank(0.9),
            p99: rank(0.99),
            max: rank(1.0),
        })
    }
}
