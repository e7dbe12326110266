//! Sweeps: draws workloads from a [family], simulates each under several schedulers on all CPUs, and
//! says how good they are over all of them, where it breaks, and how to see that again.
//!
//! `family` reads and draws, over `distribution` and `expression`; `measure` says what is read from a
//! run; `summary` makes [`SweepResult`]s, which `table` and `report` show.

mod distribution;
mod expression;
mod families;
mod family;
mod judge;
mod measure;
mod report;
mod requirement;
mod result;
mod summary;
mod table;
mod terms;
#[cfg(test)]
mod tests;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use andante_document::{Node, Section};
use andante_job::files::write_file;
use andante_job::pool::{self, Watched};
use andante_job::progress::Count;
use andante_job::{Job, LabError, stop};
use andante_result::SchedulerResult;
use andante_scenario::choice::Choice;
use andante_scenario::{DrawId, Workload};
use andante_simulated as simulator;
use nix::sys::signal::Signal;

pub use families::families;
use family::{Drawn, read_figures};
pub use family::{Family, known_families};
pub use judge::verdict;
use measure::{Figures, MEASURES, Outcome};
pub use report::html;
use requirement::Requirement;
pub use result::{
    Distribution, DrawResult, LoadResult, MeasureResult, RequirementResult, SCHEMA, SweepResult,
    VERSION, Worst,
};
use summary::Done;
pub use table::{brief, text};
use terms::Terms;

/// The scheduler that others are compared with, if it takes part: what an expert does by hand.
const REFERENCE: &str = "eevdf-fifo";
/// What is swept if nothing else is said, as far as the simulator has it.
const USUAL: [&str; 4] = ["andante", REFERENCE, "stock", "fair"];

/// What to sweep, and how.
#[derive(Debug, Clone)]
pub struct SweepOptions {
    /// A family's file, or the name of one that comes with Andante.
    pub family: String,
    /// How many draws.
    pub draws: u64,
    /// Of the draws.
    pub seed: u64,
    /// Names of schedulers that the simulator has; none: the usual ones.
    pub schedulers: Option<Vec<String>>,
    /// The one to compare with; none: `eevdf-fifo`, or the last one.
    pub reference: Option<String>,
    /// Lines of TOML laid over the family.
    pub set: Vec<String>,
    /// `MEASURE = FIGURE`: what a draw must keep, over what the family says.
    pub bounds: Vec<String>,
    /// `MEASURE = FIGURE`: how much worse than under the reference is as good.
    pub within: Vec<String>,
    /// `share = 0.9, load = 0.4`: what the sweep must show, instead of what the family requires.
    pub requirements: Vec<String>,
    /// Folder below which the results are left, in `sweep/FAMILY`.
    pub out: PathBuf,
}

impl SweepOptions {
    /// Where the results of a sweep lie.
    pub fn folder(&self, family: &str) -> PathBuf {
        self.out.join("sweep").join(family)
    }
}

/// Sweeps a family, and writes `sweep.json`, `report.html`, and the worst draws as scenarios.
///
/// # Errors
/// If the family is wrong, or a draw cannot be simulated. A sweep that is interrupted has written what
/// was known by then.
pub fn run(options: &SweepOptions, count: &mut Count) -> Result<SweepResult, LabError> {
    andante_sim::check_shell()?;
    let family = Family::load(&options.family, &options.set)?;
    let drawn: Vec<Drawn> = (0..options.draws)
        .map(|number| {
            family.draw(DrawId {
                seed: options.seed,
                number,
            })
        })
        .collect::<Result<_, _>>()?;
    let choices = choices(options, &drawn)?;
    let reference = reference(options, &choices)?;
    let terms = Terms {
        family: &family,
        options,
        choices: &choices,
        reference,
        bounds: bounds(options, &family)?,
        within: read_lines("--within", &options.within)?,
        requirements: requirements(options, &family, &choices[reference])?,
    };
    for drawn in &drawn {
        for choice in &choices {
            check(drawn, choice).map_err(|error| terms.wrap(error, drawn, choice))?;
        }
    }
    let signals = [Signal::SIGINT, Signal::SIGTERM];
    stop::on(&signals).map_err(|error| LabError::io("set up signals", error))?;
    let done = simulate_all(&terms, &drawn, count)?;
    let simulated = done.len();
    let result = summary::sum_up(&terms, done);
    let folder = options.folder(&family.key);
    write(&result, &family, &drawn, &folder)?;
    match simulated == drawn.len() {
        true => Ok(result),
        false => Err(LabError::SweepInterrupted {
            done: simulated,
            draws: options.draws,
            folder,
        }),
    }
}

/// The schedulers asked for; else the usual ones that the simulator has.
fn choices(options: &SweepOptions, drawn: &[Drawn]) -> Result<Vec<Choice>, LabError> {
    if let Some(names) = &options.schedulers {
        return names.iter().map(|name| Ok(Choice::parse(name)?)).collect();
    }
    let has = |choice: &Choice| {
        drawn
            .first()
            .is_none_or(|drawn| check(drawn, choice).is_ok())
    };
    let mut choices: Vec<Choice> = USUAL.into_iter().filter_map(Choice::named).collect();
    // The one that cannot be had for another reason than its name is to say so.
    choices.retain(|choice| *choice == Choice::Andante || has(choice));
    // `fair` stands in for what a kernel has.
    let of_kernel = choices
        .iter()
        .filter(|choice| !matches!(choice, Choice::Policy(_)));
    if of_kernel.count() > 1 {
        choices.retain(|choice| !matches!(choice, Choice::Policy(_)));
    }
    Ok(choices)
}

fn check(drawn: &Drawn, choice: &Choice) -> Result<(), LabError> {
    simulator::check(&Job {
        case: drawn.scenario.cases[0].clone(),
        choice: choice.clone(),
        perturbation: None,
    })
}

/// The place of the scheduler that the others are compared with.
fn reference(options: &SweepOptions, choices: &[Choice]) -> Result<usize, LabError> {
    let place = |name: &str| choices.iter().position(|choice| choice.name() == name);
    match &options.reference {
        None => Ok(place(REFERENCE).unwrap_or(choices.len() - 1)),
        Some(name) => place(name).ok_or_else(|| {
            let names: Vec<_> = choices.iter().map(Choice::name).collect();
            LabError::NoReference {
                name: name.clone(),
                schedulers: names.join(", "),
            }
        }),
    }
}

/// What is asked of a draw: by the command, else by the family, else by the laboratory.
fn bounds(options: &SweepOptions, family: &Family) -> Result<Figures, LabError> {
    let given = read_lines("--bound", &options.bounds)?;
    let bound = |at: usize| given[at].or(family.bounds[at]).or(MEASURES[at].bound);
    Ok(std::array::from_fn(bound))
}

/// What the sweep must show: by the command, else by the family, as far as it is the sweep that the
/// family speaks of.
fn requirements(
    options: &SweepOptions,
    family: &Family,
    reference: &Choice,
) -> Result<Vec<Requirement>, LabError> {
    if options.requirements.is_empty() {
        let unchanged = options.set.is_empty() && options.bounds.is_empty();
        let own = family.requirements.iter();
        let own = own
            .filter(|one| unchanged && reference.name() == REFERENCE && options.draws >= one.draws);
        return Ok(own.cloned().collect());
    }
    let given = options.requirements.iter();
    Ok(given
        .map(|text| requirement::of_option(text))
        .collect::<Result<_, _>>()?)
}

/// `MEASURE = FIGURE` of an option.
fn read_lines(option: &str, lines: &[String]) -> Result<Figures, LabError> {
    let mut all = Figures::default();
    for line in lines {
        let figures = read_figures(&Node::parse(option, line)?, "")?;
        for (figure, given) in all.iter_mut().zip(figures) {
            *figure = given.or(*figure);
        }
    }
    Ok(all)
}

/// Every draw under every scheduler, until all are done or somebody interrupts: those draws that were
/// simulated under all of them.
fn simulate_all(
    terms: &Terms<'_>,
    drawn: &[Drawn],
    count: &mut Count,
) -> Result<Vec<Done>, LabError> {
    let jobs: Vec<(&Drawn, &Choice)> = (drawn.iter())
        .flat_map(|drawn| terms.choices.iter().map(move |choice| (drawn, choice)))
        .collect();
    let failed = AtomicBool::new(false);
    let simulate = |(drawn, choice): &(&Drawn, &Choice)| {
        if failed.load(Ordering::Relaxed) || stop::requested() {
            return None;
        }
        let workload = &drawn.scenario.cases[0].workload;
        let outcome = caught(workload, choice).map(|result| Outcome::of(workload, &result));
        failed.fetch_or(outcome.is_err(), Ordering::Relaxed);
        Some(outcome.map_err(|error| terms.wrap(error, drawn, choice)))
    };
    count.begins(jobs.len());
    let outcomes = pool::map(&jobs, simulate, &mut |at| match at {
        Watched::Begins(index) => {
            let (drawn, choice) = jobs[index];
            count.at(&format!("draw {} under {}", drawn.id, choice.name()));
        }
        Watched::Ended(_) => count.done(),
        Watched::Tick => count.tick(),
    });
    count.ends();
    // The first that failed, if one did.
    let outcomes: Vec<Option<Outcome>> = (outcomes.into_iter())
        .map(Option::transpose)
        .collect::<Result<_, _>>()?;
    let of_draw = outcomes.chunks(terms.choices.len());
    let done = |(drawn, outcomes): (&Drawn, &[Option<Outcome>])| {
        Some(Done {
            draw: drawn.result(),
            outcomes: outcomes.iter().cloned().collect::<Option<_>>()?,
        })
    };
    Ok(drawn.iter().zip(of_draw).filter_map(done).collect())
}

/// One simulation, in which an assertion of the machine is no reason to lose the others.
fn caught(workload: &Workload, choice: &Choice) -> Result<SchedulerResult, LabError> {
    let simulate = || simulator::simulate(workload, choice);
    catch_unwind(AssertUnwindSafe(simulate)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        let reason = text.unwrap_or("it did not say why").to_owned();
        Err(LabError::Broken { reason })
    })
}

impl Drawn {
    /// By what the scenario multiplies all work.
    fn work_scale(&self) -> f64 {
        let root = Section::new(&self.document, "");
        let scale = root.and_then(|mut root| root.get("work_scale"));
        scale.ok().flatten().unwrap_or(1.0)
    }

    /// What was drawn, without figures so far.
    fn result(&self) -> DrawResult {
        let variable = |(name, node): &(String, Node)| (name.clone(), summary::to_json(node));
        let workload = &self.scenario.cases[0].workload;
        DrawResult {
            draw: self.id.to_string(),
            load: (measure::load(workload) * 1e4).round() / 1e4,
            cpus: workload.cpus,
            work_scale: self.work_scale(),
            variables: self.variables.iter().map(variable).collect(),
            variants: self.variants.iter().cloned().collect(),
            figures: Vec::new(),
        }
    }
}

/// Writes all that a sweep leaves.
fn write(
    result: &SweepResult,
    family: &Family,
    drawn: &[Drawn],
    folder: &Path,
) -> Result<(), LabError> {
    let json = serde_json::to_vec_pretty(result).expect("results are plain data");
    write_file(&folder.join("sweep.json"), &json)?;
    write_file(
        &folder.join("report.html"),
        html(result, &family.description).as_bytes(),
    )?;
    let all = result
        .measures
        .iter()
        .flat_map(|measure| &measure.schedulers);
    let worst: Vec<&Worst> = all.flat_map(|scheduler| &scheduler.worst).collect();
    for drawn in drawn {
        if worst.iter().any(|worst| worst.draw == drawn.id.to_string()) {
            family::write(drawn, family, &folder.join("draws"))?;
        }
    }
    Ok(())
}

/// Writes one draw of a family to `OUT/sweep/FAMILY/draws` as a scenario of its own, and returns its file.
///
/// # Errors
/// If the family is wrong, or the file cannot be written.
pub fn write_draw(
    family: &str,
    set: &[String],
    draw: DrawId,
    out: &Path,
) -> Result<PathBuf, LabError> {
    let family = Family::load(family, set)?;
    let drawn = family.draw(draw)?;
    family::write(
        &drawn,
        &family,
        &out.join("sweep").join(&family.key).join("draws"),
    )
}
