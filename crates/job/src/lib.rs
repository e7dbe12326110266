//! The laboratory's jobs: what is to be run, and what comes back. The simulator, virtual machines and this
//! machine carry them out; [`progress`] tells how far they are, [`LabError`] why they failed, and [`files`]
//! where scenarios lie and results are written.

mod error;
pub mod files;
pub mod pool;
pub mod progress;
pub mod stop;

use std::path::PathBuf;

use andante_result::SchedulerResult;
use andante_scenario::choice::Choice;
use andante_scenario::{Case, DrawId};

pub use error::{Difference, LabError};

/// Where to run a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    /// In a virtual machine, in virtual time.
    Vm,
    /// In the simulator: no kernel, synthetic programs only.
    Sim,
    /// In a virtual machine whose CPUs are threads of the host, in the host's time: judged by what needs no
    /// clock.
    Parallel,
    /// On this machine; needs root.
    Host,
}

impl On {
    /// As results call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Vm => "vm",
            Self::Sim => "sim",
            Self::Parallel => "parallel",
            Self::Host => "host",
        }
    }
}

/// What to run, and how.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// A scenario file, or the name of one that comes with Andante.
    pub scenario: String,
    /// Only the cases of these names; all if none is named.
    pub cases: Vec<String>,
    /// Lines of TOML laid over every case, e.g. `duration_s = 60`.
    pub set: Vec<String>,
    /// Names of [`Choice::OF_KERNEL`] or of simulated policies, or paths of programs that load a
    /// scheduler, in the order of the results.
    pub schedulers: Vec<String>,
    /// Run it perturbed: this one of its perturbations.
    pub perturbation: Option<DrawId>,
    /// Where.
    pub on: On,
    /// Folder below which the results of another place lie, to compare the new ones with.
    pub against: Option<PathBuf>,
    /// Folder below which the results of each scenario get a folder of their own.
    pub out: PathBuf,
    /// The laboratory's binary, which is the guest and the synthetic programs too; the scheduler's is found
    /// from there ([`files::andante_of`]).
    pub lab: PathBuf,
    /// Virtual machines at once; none: as many as there are CPUs, up to a bound.
    pub machines: Option<usize>,
    /// Every virtual machine boots, and none is saved.
    pub boot: bool,
}

/// One case under one scheduler.
#[derive(Debug, Clone)]
pub struct Job {
    /// Perturbed, if it is to be.
    pub case: Case,
    /// The scheduler.
    pub choice: Choice,
    /// Which of its perturbations.
    pub perturbation: Option<DrawId>,
}

impl Job {
    /// `CASE SCHEDULER SEED/NUMBER`, as far as it has these.
    pub fn name(&self) -> String {
        let perturbation = self.perturbation.map(|id| id.to_string());
        let words = [
            self.case.name.clone(),
            Some(self.choice.name()),
            perturbation,
        ];
        words.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }
}

/// What carrying out the jobs brings back.
pub struct Carried {
    /// `uname -r`.
    pub kernel: String,
    /// In the order of the jobs; none of those that were not carried out.
    pub results: Vec<Option<SchedulerResult>>,
    /// Why there are such.
    pub failure: Option<LabError>,
}

/// A word of a command as a shell takes it.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./,:@%+=".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        // Arguments of this process have no NUL, which is all that cannot be quoted.
        false => shlex::try_quote(word).map_or_else(|_| word.to_owned(), Into::into),
    }
}
