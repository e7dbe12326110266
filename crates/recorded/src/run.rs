//! Recording: runs what is declared, several at once.

use std::path::Path;
use std::sync::{Mutex, MutexGuard};

use andante_document::suggest;
use andante_job::files::andante_of;
use andante_job::pool::{self, Watched};
use andante_job::progress::{At, Count, Progress, phrase};
use andante_job::{LabError, On, RunOptions};
use andante_paper as paper;
use andante_paper::result::PaperResult;
use andante_scenario::Scenario;

use super::declaration::{Declaration, Entry, ScenarioRun, Source};
use super::evaluate::{Left, values};
use super::file::Recorded;
use super::provenance::Recording;
use super::{DECLARED, FILE, RecordOptions, command};

/// Runs the entries that are asked for and writes the file after each. Returns those that could not be
/// recorded, each with the reason.
pub(crate) fn record(
    declaration: &Declaration,
    options: &RecordOptions,
) -> Result<Vec<String>, LabError> {
    let entries = chosen(declaration, options)?;
    // What has been started is what is measured, also if it is built anew meanwhile.
    let held = tempfile::tempdir().map_err(|error| LabError::io("make a folder", error))?;
    let hold = |file: &Path, name: &str| {
        let copy = held.path().join(name);
        match std::fs::copy(file, &copy) {
            Ok(_) => Ok(copy),
            Err(error) => Err(LabError::file("copy to", copy, error)),
        }
    };
    hold(&andante_of(&options.lab)?, "andante")?;
    let options = &RecordOptions {
        lab: hold(&options.lab, "andante-lab")?,
        ..options.clone()
    };
    let file = options.folder.join(FILE);
    let recorded = Mutex::new(Recorded::load(&file)?);
    let now = Recording::now()?;
    let count = Mutex::new(Count::on_stderr());
    lock(&count).begins(entries.len());
    let alone = entries.len() == 1;
    let work = |entry: &&Entry| {
        let (measured, recording) = carry_out(entry, options, &now, &count, alone)?;
        let mut recorded = lock(&recorded);
        recorded.put(entry, &measured, recording);
        *recorded = recorded.settled(declaration);
        recorded.write(&file)
    };
    let results = pool::map(&entries, work, &mut |at| match at {
        Watched::Ended(_) => lock(&count).done(),
        Watched::Begins(at) => lock(&count).at(&entries[at].name),
        Watched::Tick => lock(&count).tick(),
    });
    lock(&count).ends();
    let failed = entries.iter().zip(results).filter_map(|(entry, result)| {
        let error = result.err()?;
        Some(format!("{}: {error}", entry.name))
    });
    Ok(failed.collect())
}

/// The entries that are asked for and can be run.
fn chosen<'a>(
    declaration: &'a Declaration,
    options: &RecordOptions,
) -> Result<Vec<&'a Entry>, LabError> {
    let runnable = |entry: &&Entry| !matches!(entry.source, Source::Asserted(_));
    let all = || declaration.entries.iter().filter(runnable);
    if options.only.is_empty() {
        return Ok(all().collect());
    }
    for name in &options.only {
        if !all().any(|entry| entry.name == *name) {
            let hint = suggest(name, all().map(|entry| entry.name.as_str()));
            return Err(LabError::NoFigures {
                file: options.folder.join(DECLARED),
                reason: format!("it has no figure `{name}` to record{hint}"),
            });
        }
    }
    let wanted = all().filter(|entry| options.only.contains(&entry.name));
    Ok(wanted.collect())
}

/// What came out of an entry's run, and of what it is.
type Out = (Vec<(f64, f64)>, Recording);

fn carry_out(
    entry: &Entry,
    options: &RecordOptions,
    now: &Recording,
    count: &Mutex<Count>,
    alone: bool,
) -> Result<Out, LabError> {
    let evaluate = |left: &Left<'_>| {
        values(entry, left).map_err(|reason| LabError::NoFigures {
            file: options.folder.join(DECLARED),
            reason: format!("{}.{reason}", entry.name),
        })
    };
    match &entry.source {
        Source::Scenario(run) => {
            let progress = &mut Named::new(&entry.name, count);
            let options = RunOptions {
                scenario: run.name.clone(),
                cases: run.cases.clone(),
                set: run.set.clone(),
                schedulers: run.schedulers.clone(),
                perturbation: None,
                on: On::Vm,
                against: None,
                out: options.out.join(&entry.name),
                lab: options.lab.clone(),
                // With several entries the pool runs as many at once as there are CPUs.
                machines: (!alone).then_some(1),
                boot: false,
            };
            let results = andante_experiment::run(&options, progress)?;
            andante_experiment::verdict(&results)?;
            let left = Left::Results(&scenario_of(run)?, &results);
            let kernel = results.first().map(|result| result.kernel.clone());
            Ok((evaluate(&left)?, now.clone().in_machine(kernel, run.cpus)?))
        }
        Source::Paper(key) => {
            let papers = paper::run(std::slice::from_ref(key))?;
            paper::verdict(&papers)?;
            let tallies = papers.iter().map(PaperResult::tally);
            let tally = tallies.fold(Default::default(), |sum, one| sum + one);
            Ok((evaluate(&Left::Tally(tally))?, now.clone()))
        }
        Source::Command(words, cpus) => {
            let printed = command::run(words)?;
            let measured = evaluate(&Left::Printed(&printed))?;
            Ok((measured, now.clone().in_machine(None, *cpus)?))
        }
        Source::Asserted(_) => unreachable!("not among those that are chosen"),
    }
}

/// The scenario with the cases that were run.
fn scenario_of(run: &ScenarioRun) -> Result<Scenario, LabError> {
    let mut scenario = Scenario::load(&andante_job::files::find(&run.name)?, &run.set)?;
    if !run.cases.is_empty() {
        andante_job::files::keep_cases(&mut scenario, &run.cases)?;
    }
    Ok(scenario)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("nobody panics holding it")
}

/// One of several runs that say how far they are in one line together.
struct Named<'a> {
    entry: &'a str,
    runs: Vec<String>,
    count: &'a Mutex<Count>,
}

impl<'a> Named<'a> {
    fn new(entry: &'a str, count: &'a Mutex<Count>) -> Self {
        Self {
            entry,
            runs: Vec::new(),
            count,
        }
    }

    fn say(&self, what: &str) {
        lock(self.count).at(&format!("{}: {what}", self.entry));
    }
}

impl Progress for Named<'_> {
    fn preparing(&mut self, what: &str) {
        self.say(what);
    }

    fn runs(&mut self, names: &[String]) {
        self.runs = names.to_vec();
    }

    fn run(&mut self, index: usize, at: &At, duration_s: f64) {
        self.say(&format!("{} {}", self.runs[index], phrase(at, duration_s)));
    }

    fn ended(&mut self, index: usize, outcome: &str) {
        self.say(&format!("{} {outcome}", self.runs[index]));
    }

    fn tick(&mut self) {
        lock(self.count).tick();
    }
}
