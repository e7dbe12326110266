//! What can go wrong in the laboratory.

use std::io;
use std::path::PathBuf;

use andante_document::DocumentError;
use andante_scenario::choice::NoScheduler;
use andante_sched::class::ClassError;

/// Why a scenario was not carried out, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// No scenario of this name or path.
    #[error("there is no scenario `{name}`; {hint}")]
    NoScenario {
        /// As asked for.
        name: String,
        /// Where it was looked for and what there is.
        hint: String,
    },
    /// No family of this name or path.
    #[error("there is no family `{name}`; {hint}")]
    NoFamily {
        /// As asked for.
        name: String,
        /// What there is.
        hint: String,
    },
    /// A scheduler to compare with that does not take part.
    #[error(
        "the reference `{name}` does not take part: give one of {schedulers}, or add it to --scheduler"
    )]
    NoReference {
        /// As asked for.
        name: String,
        /// Those that do.
        schedulers: String,
    },
    /// A draw of a family could not be simulated.
    #[error("draw {draw} under {scheduler}: {cause}; alone: {replay}")]
    Draw {
        /// Why not.
        cause: Box<LabError>,
        /// `SEED/NUMBER`.
        draw: String,
        /// The scheduler's name.
        scheduler: String,
        /// The command that runs it alone.
        replay: String,
    },
    /// The simulator came upon a state that cannot be.
    #[error("the simulator broke: {reason}")]
    Broken {
        /// What it said.
        reason: String,
    },
    /// A sweep was ended by the user; what there was then has been written.
    #[error("interrupted after {done} of {draws} draws; what is known by then is in {}", folder.display())]
    SweepInterrupted {
        /// Draws that were simulated under all schedulers.
        done: usize,
        /// Draws asked for.
        draws: u64,
        /// Where the results lie.
        folder: PathBuf,
    },
    /// The scenario is not well formed.
    #[error(transparent)]
    Scenario(#[from] DocumentError),
    /// No paper of this key or path.
    #[error("there is no paper `{name}`; {hint}")]
    NoPaper {
        /// As asked for.
        name: String,
        /// What there is.
        hint: String,
    },
    /// Figures that are not as published, for no reason that is known.
    #[error("{deviations} of {judged} figures deviate and nothing explains it")]
    PapersDeviate {
        /// How many.
        deviations: usize,
        /// How many were compared.
        judged: usize,
    },
    /// The file of figures, or what is asked of it, makes no sense.
    #[error("{}: {reason}", file.display())]
    NoFigures {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// Figures that were to be recorded, and were not; what was recorded before stands.
    #[error("not recorded:\n{}", failed.join("\n"))]
    NotRecorded {
        /// Those, each with the reason.
        failed: Vec<String>,
    },
    /// Pages that say something else than the file of figures.
    #[error("{} of the figures' pages:\n{}", count(differences.len(), "difference"), lines(differences))]
    FiguresDiffer {
        /// Where and what.
        differences: Vec<Difference>,
    },
    /// A computed exhibit of a paper could not be computed.
    #[error("the exhibit `{function}` could not be computed: {reason}")]
    NotComputed {
        /// Its function.
        function: String,
        /// Why not.
        reason: String,
    },
    /// A program that the scenario or the laboratory needs is not installed.
    #[error("`{name}` is needed {purpose} and not installed: {mend}")]
    MissingTool {
        /// The program.
        name: String,
        /// What for.
        purpose: String,
        /// How to get it.
        mend: String,
    },
    /// A file whose frames cannot be decoded.
    #[error("{} is no film that ffmpeg can decode: {reason}", film.display())]
    NoFilm {
        /// The file.
        film: PathBuf,
        /// What ffmpeg said, or what is wrong with it.
        reason: String,
    },
    /// A scheduler that is neither known by name nor a program.
    #[error(transparent)]
    NoScheduler(#[from] NoScheduler),
    /// A scheduler that is tuned by hand, over a scenario that does not say how.
    #[error("{what}")]
    NotTuned {
        /// A whole sentence: what is missing.
        what: String,
    },
    /// The scheduler that the simulator is to run in the place of the one built in is none.
    #[error(transparent)]
    Shell(#[from] andante_sim::ShellError),
    /// This machine is asked for what only a virtual one has.
    #[error("{what}, so that only one can run it: use `--on vm`")]
    OnlyInVm {
        /// A whole clause: what is asked for.
        what: String,
    },
    /// The simulator is asked for what only a kernel has.
    #[error("{what}, so that only a kernel can run it: use `--on vm`")]
    OnlyOnKernel {
        /// A whole clause: what is asked for.
        what: String,
    },
    /// The scheduler that users run is asked for what only the published one has.
    #[error(
        "{what}, which only the simulated scheduler `servers` has so far: use `--scheduler servers`"
    )]
    OnlyServers {
        /// A whole clause: what is asked for.
        what: String,
    },
    /// This simulated scheduler has one CPU.
    #[error("the scheduler `{scheduler}` is simulated on one CPU only: say `cpus = 1`")]
    OneCpu {
        /// Its name.
        scheduler: String,
    },
    /// A kernel is asked for what only the simulator has.
    #[error("{what}: use `--on sim`")]
    OnlySimulated {
        /// A whole clause: what is asked for.
        what: String,
    },
    /// A simulated scheduler cannot have all classes.
    #[error(
        "there is no room for class {class}: too many, too deep, or more promised than the parent has"
    )]
    NoRoom {
        /// Its path.
        class: String,
    },
    /// The simulated machine has no room for a contract.
    #[error(
        "program `{program}` gets no contract: {reason}; ask for less, or run it unadmitted: \
         `admission = false` in [simulator]"
    )]
    NoContract {
        /// Its name in the scenario.
        program: String,
        /// What is in the way, and what would fit.
        reason: String,
    },
    /// A scheduler did not take charge.
    #[error("the scheduler {name} did not take charge: {reason}")]
    SchedulerFailed {
        /// Its name.
        name: String,
        /// What it said last, or what happened.
        reason: String,
    },
    /// The kernel put the scheduler out before the end.
    #[error("the scheduler {name} was ejected: {reason}")]
    Ejected {
        /// Its name.
        name: String,
        /// The kernel's or its own last words.
        reason: String,
    },
    /// A program of the scenario could not be started or ended early.
    #[error("program {name}: {reason}")]
    ProgramFailed {
        /// Its name in the scenario.
        name: String,
        /// What happened.
        reason: String,
    },
    /// What was measured would be something else than the scenario says.
    #[error(
        "the measurement began {late_s:.1} s late, because programs were still being started: give the \
         scenario a longer warmup_s, or start fewer of them at once"
    )]
    BeganLate {
        /// By how much [s].
        late_s: f64,
    },
    /// Expectations that do not hold.
    #[error("{} of {judged} expectations of {scenario} failed: {}", failed.len(), first_of(failed))]
    ExpectationsFailed {
        /// The scenario.
        scenario: String,
        /// Those that do not hold, each with what was measured.
        failed: Vec<String>,
        /// How many were judged.
        judged: usize,
    },
    /// Only root may make classes and load schedulers.
    #[error(
        "`--on host` needs root, to make classes and load schedulers: use sudo, or `--on vm`, which needs none"
    )]
    NotRoot,
    /// The classes could not be made.
    #[error(transparent)]
    Class(#[from] ClassError),
    /// There is no kernel for the virtual machine.
    #[error(transparent)]
    Kernel(#[from] andante_vm::KernelError),
    /// There is no emulator.
    #[error(transparent)]
    Qemu(#[from] andante_vm::QemuError),
    /// The root image could not be made.
    #[error(transparent)]
    Image(#[from] andante_vm::ImageError),
    /// The virtual machine did not run to its end.
    #[error(transparent)]
    Boot(#[from] andante_vm::BootError),
    /// The folder for what is made once cannot be used.
    #[error(transparent)]
    Cache(#[from] andante_vm::CacheError),
    /// The guest ended without a result.
    #[error("the virtual machine ended without a result: {reason}")]
    NoResult {
        /// What it said last.
        reason: String,
    },
    /// Some of the cases were carried out and written, before one could not be.
    #[error(
        "{carried_out} of {cases} cases were carried out, their results are in {}; one could not be",
        folder.display()
    )]
    Unfinished {
        /// Why not all.
        source: Box<LabError>,
        /// How many were.
        carried_out: usize,
        /// How many there are.
        cases: usize,
        /// Where their results lie.
        folder: PathBuf,
    },
    /// A system call failed.
    #[error("cannot {doing}: {source}")]
    Io {
        /// What was being done, to complete "cannot …".
        doing: String,
        /// Why not.
        source: io::Error,
    },
    /// Ended by the user.
    #[error("interrupted; everything has been put back")]
    Interrupted,
}

/// Something that a page says and the file does not, or the file and the declaration does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The page.
    pub file: PathBuf,
    /// Line, from 1.
    pub line: usize,
    /// What is wrong and how to mend it.
    pub message: String,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}: {}", self.file.display(), self.line, self.message)
    }
}

impl LabError {
    /// Wraps the failure of `doing`, which completes "cannot …".
    pub fn io(doing: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::Io {
            doing: doing.into(),
            source: source.into(),
        }
    }

    /// The same for something done to a file.
    pub fn file(verb: &str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::io(format!("{verb} {}", path.into().display()), source)
    }
}

/// `1 difference`, `2 differences`.
fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// So many failed expectations are told in one sentence; the report has all.
const FAILED_TOLD: usize = 10;

fn first_of(failed: &[String]) -> String {
    let (told, more) = failed.split_at(failed.len().min(FAILED_TOLD));
    let told = told.join("; ");
    match more.len() {
        0 => told,
        more => format!("{told}; and {more} more, see the report"),
    }
}

/// Each on a line of its own.
fn lines(differences: &[Difference]) -> String {
    let lines: Vec<_> = differences.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_failed_expectations_the_first_are_told() {
        let failed = |count: usize| LabError::ExpectationsFailed {
            scenario: "x".into(),
            failed: (0..count).map(|n| format!("e{n}")).collect(),
            judged: 20,
        };
        let text = failed(2).to_string();
        assert_eq!(text, "2 of 20 expectations of x failed: e0; e1");
        let text = failed(13).to_string();
        assert!(text.ends_with("e9; and 3 more, see the report"), "{text}");
    }
}
