//! Carrying a scenario out: every case under every scheduler, in the simulator, in virtual machines
//! ([`virtual_machine`]; [`guest`] is the laboratory's side in one) or on this machine; then the verdict. Once
//! as it stands, or many times, perturbed ([`perturb`]).

pub mod guest;
mod host;
pub mod perturb;
pub mod virtual_machine;

use std::path::Path;

use andante_job::files::{load, write_file};
use andante_job::progress::Progress;
use andante_job::{Carried, Job, LabError, On, RunOptions};
use andante_judge as judge;
use andante_judge::against;
use andante_report as report;
use andante_report::beside::{Beside, TRACE_FILE};
use andante_report::trace;
use andante_result::cases::base_name;
use andante_result::{ProgramResult, RunResult, SCHEMA, SchedulerResult, VERSION, Verdict};
use andante_runner as runner;
use andante_scenario::choice::Choice;
use andante_scenario::{Case, Program, Scenario};
use andante_simulated as simulator;

/// Runs a scenario and writes `result.json`, `report.html` and the traces to
/// `OUT/SCENARIO[/CASE]/`.
///
/// Programs that fail and expectations that do not hold are in the results; see [`verdict`].
///
/// # Errors
/// If the scenario is wrong or cannot be carried out. The cases that were carried out under all
/// schedulers are written all the same.
pub fn run(options: &RunOptions, progress: &mut dyn Progress) -> Result<Vec<RunResult>, LabError> {
    let (file, scenario) = load(options)?;
    let choices = choices(options)?;
    let jobs = perturb::jobs(&scenario, &choices, options.perturbation);
    let mut carried = carry(&file, &scenario, &jobs, options, progress)?;
    let failure = carried.failure.take();
    let mut runs = merge(&scenario, &choices, carried, options);
    if runs.is_empty() {
        return Err(failure.expect("what was not carried out has failed"));
    }
    judge::judge(&scenario, &mut runs);
    if let Some(folder) = &options.against {
        against::judge(&mut runs, folder)?;
    }
    write(&scenario, &runs, &options.out)?;
    match failure {
        None => Ok(runs),
        Some(error) => Err(LabError::Unfinished {
            source: Box::new(error),
            carried_out: runs.len(),
            cases: scenario.cases.len(),
            folder: options.out.join(&scenario.key),
        }),
    }
}

/// The schedulers that are asked for.
pub(crate) fn choices(options: &RunOptions) -> Result<Vec<Choice>, LabError> {
    let names = options.schedulers.iter();
    names.map(|name| Ok(Choice::parse(name)?)).collect()
}

/// Carries the jobs out where they are to be.
pub(crate) fn carry(
    file: &Path,
    scenario: &Scenario,
    jobs: &[Job],
    options: &RunOptions,
    progress: &mut dyn Progress,
) -> Result<Carried, LabError> {
    if options.on != On::Sim {
        check_for_kernel(jobs)?;
    }
    match options.on {
        On::Sim => simulator::run(jobs, progress),
        On::Vm | On::Parallel => virtual_machine::run(file, scenario, jobs, options, progress),
        On::Host => host::run(jobs, options, progress),
    }
}

/// Refuses what only the simulator has.
fn check_for_kernel(jobs: &[Job]) -> Result<(), LabError> {
    let refuse = |what: String| Err(LabError::OnlySimulated { what });
    for Job { case, choice, .. } in jobs {
        if let Choice::Policy(kind) = choice {
            return refuse(format!(
                "the scheduler `{}` is the simulator's; the kernel's is `{}`",
                kind.name(),
                Choice::of_kernel(*kind).name()
            ));
        }
        if let Choice::Containers(_) | Choice::Servers = choice {
            return refuse(format!(
                "the scheduler `{}` is only simulated so far",
                choice.name()
            ));
        }
        if let Choice::ByHand(by_hand) = choice
            && let Some(what) = by_hand.obstacle(&case.workload.programs)
        {
            return Err(LabError::NotTuned { what });
        }
        let running = case.workload.programs.iter().filter(|p| p.count > 0);
        if let Some(what) = running.clone().find_map(runner::contract_obstacle) {
            return refuse(what);
        }
        let programs = &case.workload.programs;
        let simulated = |p: &Program| p.kind.only_simulated().map(|what| (p.name.clone(), what));
        if let Some((name, what)) = programs.iter().find_map(simulated) {
            return refuse(format!(
                "{what} of program `{name}` means something in the simulator only so far"
            ));
        }
    }
    Ok(())
}

/// Whether all runs were good.
///
/// # Errors
/// The first program that failed, scheduler that was ejected, or the number of expectations that
/// do not hold.
pub fn verdict(runs: &[RunResult]) -> Result<(), LabError> {
    for scheduler in runs.iter().flat_map(|run| &run.schedulers) {
        if let Some(reason) = &scheduler.ejected {
            let (name, reason) = (scheduler.name.clone(), reason.clone());
            return Err(LabError::Ejected { name, reason });
        }
        for program in &scheduler.programs {
            if let Some(reason) = &program.failed {
                let reason = format!("{reason} (under {})", scheduler.name);
                return Err(LabError::ProgramFailed {
                    name: program.name.clone(),
                    reason,
                });
            }
        }
    }
    let all = runs.iter().flat_map(|run| &run.expectations);
    let judged = all
        .clone()
        .filter(|one| one.verdict != Verdict::NotJudged)
        .count();
    let failed: Vec<String> = all
        .filter(|one| one.verdict == Verdict::Fail)
        .map(|one| match one.measured_text() {
            Some(_) if one.measure.is_none() && one.reason.is_some() => {
                let reason = one.reason.as_deref().unwrap_or_default();
                format!("{}: {reason}", one.expectation)
            }
            Some(measured) => format!("{}, measured {measured}", one.expectation),
            None => format!("{}, not measured", one.expectation),
        })
        .collect();
    match runs.first() {
        Some(run) if !failed.is_empty() => Err(LabError::ExpectationsFailed {
            scenario: run.scenario.clone(),
            failed,
            judged,
        }),
        _ => Ok(()),
    }
}

/// One result per case that was carried out under all schedulers, from one result per job.
pub(crate) fn merge(
    scenario: &Scenario,
    choices: &[Choice],
    carried: Carried,
    options: &RunOptions,
) -> Vec<RunResult> {
    let on = options.on;
    let mut results = carried.results.into_iter();
    let merge_case = |case: &Case| {
        let mut schedulers: Vec<_> = results.by_ref().take(choices.len()).collect();
        if options.perturbation.is_some() {
            schedulers
                .iter_mut()
                .flatten()
                .for_each(|one| in_order_of(case, one));
        }
        Some(RunResult {
            schema: SCHEMA.to_owned(),
            version: VERSION,
            scenario: scenario.key.clone(),
            case: case.name.clone(),
            cases_chosen: !options.cases.is_empty(),
            set: options.set.clone(),
            perturbation: options.perturbation.map(|id| id.to_string()),
            title: scenario.title.clone(),
            on: on.name().to_owned(),
            kernel: carried.kernel.clone(),
            cpus: match on {
                On::Vm | On::Sim | On::Parallel => case.workload.cpus,
                On::Host => host::cpus(),
            },
            memory_mib: match on {
                On::Vm | On::Sim | On::Parallel => case.workload.memory_mib,
                On::Host => host::memory_mib(),
            },
            duration_s: case.workload.duration_s,
            schedulers: schedulers.into_iter().collect::<Option<_>>()?,
            expectations: Vec::new(),
        })
    };
    scenario.cases.iter().filter_map(merge_case).collect()
}

/// Brings the programs of a perturbed result into the scenario's order.
fn in_order_of(case: &Case, result: &mut SchedulerResult) {
    let place = |program: &ProgramResult| {
        let mut programs = case.workload.programs.iter();
        programs.position(|one| one.name == base_name(program))
    };
    // Instances of one program have kept theirs.
    result.programs.sort_by_key(place);
}

/// Writes everything a run leaves: one report for the scenario, and data for every case.
fn write(scenario: &Scenario, runs: &[RunResult], out: &Path) -> Result<(), LabError> {
    let folder = out.join(&scenario.key);
    for run in runs {
        let folder = run
            .case
            .as_ref()
            .map_or_else(|| folder.clone(), |case| folder.join(case));
        let json = serde_json::to_vec_pretty(run).expect("results are plain data");
        write_file(&folder.join("result.json"), &json)?;
        write_file(&folder.join(TRACE_FILE), &trace::perfetto(run))?;
    }
    let beside = Beside::of(&scenario.description, runs, &folder);
    let report = report::html_beside(runs, &report::Check::of(runs), &beside);
    write_file(&folder.join("report.html"), report.as_bytes())
}
