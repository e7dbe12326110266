//! Carrying a scenario out under many perturbations, and judging it over all of them.

use andante_job::progress::Progress;
use andante_job::{Carried, Job, LabError, RunOptions, files, quoted};
use andante_judge as judge;
use andante_result::{Judgement, RunResult, Verdict};
use andante_scenario::choice::Choice;
use andante_scenario::perturb::perturbed;
use andante_scenario::{Bound, Case, DrawId, Expectation, Scenario};

use super::result::{
    CaseResult, Distribution, Exception, Figures, PerturbedResult, SCHEMA, VERSION, Worst,
};
use crate as plain;

/// So many of the worst figures are named.
const WORST: usize = 3;

/// What to run, and how often.
#[derive(Debug, Clone)]
pub struct PerturbOptions {
    /// As without perturbations; its own, and what it is compared with, are of no account.
    pub run: RunOptions,
    /// Of the perturbations.
    pub seed: u64,
    /// How many: numbers 0 and up of the seed.
    pub count: u64,
}

/// One perturbation, carried out.
struct Done {
    id: DrawId,
    runs: Vec<RunResult>,
}

/// Runs every case under every scheduler and perturbation, and writes `OUT/SCENARIO/perturbed.json`.
///
/// # Errors
/// If the scenario is wrong or cannot be carried out. What was carried out by then is judged and
/// written all the same.
pub fn run(
    options: &PerturbOptions,
    progress: &mut dyn Progress,
) -> Result<PerturbedResult, LabError> {
    let (file, scenario) = files::load(&options.run)?;
    let choices = plain::choices(&options.run)?;
    let ids: Vec<DrawId> = (0..options.count)
        .map(|number| DrawId {
            seed: options.seed,
            number,
        })
        .collect();
    let jobs: Vec<Job> = ids
        .iter()
        .flat_map(|id| jobs(&scenario, &choices, Some(*id)))
        .collect();
    let mut carried = plain::carry(&file, &scenario, &jobs, &options.run, progress)?;
    let failure = carried.failure.take();
    let done = of_perturbations(&scenario, &choices, carried, &ids, &options.run);
    let failure = match failure {
        Some(error) if done.is_empty() => return Err(error),
        failure => failure,
    };
    let result = sum_up(&scenario, &choices, &done, options);
    let folder = options.run.out.join(&scenario.key);
    let json = serde_json::to_vec_pretty(&result).expect("results are plain data");
    files::write_file(&folder.join("perturbed.json"), &json)?;
    match failure {
        None => Ok(result),
        Some(error) => Err(LabError::Unfinished {
            source: Box::new(error),
            carried_out: done.iter().map(|done| done.runs.len()).sum(),
            cases: ids.len() * scenario.cases.len(),
            folder,
        }),
    }
}

/// Every case under every scheduler.
pub(crate) fn jobs(
    scenario: &Scenario,
    choices: &[Choice],
    perturbation: Option<DrawId>,
) -> Vec<Job> {
    let case = |case: &Case| Case {
        workload: match perturbation {
            Some(id) => perturbed(&case.workload, id),
            None => case.workload.clone(),
        },
        name: case.name.clone(),
    };
    let job = |case: Case, choice: &Choice| Job {
        case,
        choice: choice.clone(),
        perturbation,
    };
    let cases = scenario.cases.iter().map(case);
    cases
        .flat_map(|case| choices.iter().map(move |choice| job(case.clone(), choice)))
        .collect()
}

/// From one result per job to those of each perturbation, judged.
fn of_perturbations(
    scenario: &Scenario,
    choices: &[Choice],
    carried: Carried,
    ids: &[DrawId],
    options: &RunOptions,
) -> Vec<Done> {
    let mut results = carried.results.into_iter();
    let each = scenario.cases.len() * choices.len();
    let mut done = Vec::new();
    for id in ids {
        let options = RunOptions {
            perturbation: Some(*id),
            ..options.clone()
        };
        let carried = Carried {
            kernel: carried.kernel.clone(),
            results: results.by_ref().take(each).collect(),
            failure: None,
        };
        let mut runs = plain::merge(scenario, choices, carried, &options);
        judge::judge(scenario, &mut runs);
        if !runs.is_empty() {
            done.push(Done { id: *id, runs });
        }
    }
    done
}

fn sum_up(
    scenario: &Scenario,
    choices: &[Choice],
    done: &[Done],
    options: &PerturbOptions,
) -> PerturbedResult {
    let first = done.first().and_then(|done| done.runs.first());
    let case = |case: &Case| {
        let of = |done: &'_ Done| -> Option<usize> {
            done.runs.iter().position(|run| run.case == case.name)
        };
        let runs: Vec<(DrawId, &RunResult)> = done
            .iter()
            .filter_map(|done| Some((done.id, &done.runs[of(done)?])))
            .collect();
        CaseResult {
            case: case.name.clone(),
            n: runs.len() as u64,
            expectations: expectations(scenario, &runs, options),
            exceptions: runs
                .iter()
                .flat_map(|(id, run)| exceptions(*id, run, options))
                .collect(),
        }
    };
    PerturbedResult {
        schema: SCHEMA.to_owned(),
        version: VERSION,
        scenario: scenario.key.clone(),
        title: scenario.title.clone(),
        on: options.run.on.name().to_owned(),
        kernel: first.map_or_else(String::new, |run| run.kernel.clone()),
        set: options.run.set.clone(),
        schedulers: choices.iter().map(Choice::name).collect(),
        seed: options.seed,
        asked: options.count,
        cases: scenario.cases.iter().map(case).collect(),
    }
}

/// What is expected of one case, over all perturbations.
fn expectations(
    scenario: &Scenario,
    runs: &[(DrawId, &RunResult)],
    options: &PerturbOptions,
) -> Vec<Distribution> {
    let mut texts: Vec<&str> = Vec::new();
    for judgement in runs.iter().flat_map(|(_, run)| &run.expectations) {
        if !texts.contains(&&*judgement.expectation) {
            texts.push(&judgement.expectation);
        }
    }
    let of = |text: &&str| {
        let judged: Vec<(DrawId, &RunResult, &Judgement)> = runs
            .iter()
            .filter_map(|(id, run)| {
                let mut all = run.expectations.iter();
                Some((*id, *run, all.find(|one| one.expectation == **text)?))
            })
            .collect();
        distribution(text, expectation(scenario, text), &judged, options)
    };
    texts.iter().map(of).collect()
}

/// The expectation whose judgement has this text, which may name an instance at its end.
fn expectation<'a>(scenario: &'a Scenario, text: &str) -> Option<&'a Expectation> {
    scenario.expectations.iter().find(|one| {
        let rest = text.strip_prefix(&one.to_string());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(" ("))
    })
}

fn distribution(
    text: &str,
    expectation: Option<&Expectation>,
    judged: &[(DrawId, &RunResult, &Judgement)],
    options: &PerturbOptions,
) -> Distribution {
    let asked = judged
        .iter()
        .filter(|(_, _, one)| one.verdict != Verdict::NotJudged);
    let n = asked.clone().count() as u64;
    let held = asked
        .clone()
        .filter(|(_, _, one)| one.verdict == Verdict::Pass && !one.tail)
        .count() as u64;
    let share = expectation.and_then(|one| Some(one.perturbed?.share));
    let needed = share.map_or(n, |share| (share * n as f64 + 1e-9).floor() as u64);
    let failed = asked
        .clone()
        .any(|(_, _, one)| one.verdict == Verdict::Fail);
    let mut figures: Vec<(DrawId, &RunResult, f64)> = judged
        .iter()
        .filter_map(|(id, run, one)| Some((*id, *run, one.measured?)))
        .collect();
    let all = figures.iter().map(|(_, _, figure)| *figure).collect();
    let spread = Figures::of(all);
    if let Some(bound) = expectation.map(|one| one.bound) {
        figures.sort_by(|one, other| off(bound, other.2).total_cmp(&off(bound, one.2)));
    }
    let differ = spread.is_some_and(|spread| spread.min < spread.max);
    Distribution {
        expectation: text.to_owned(),
        verdict: match n {
            0 => Verdict::NotJudged,
            _ if failed || held < needed => Verdict::Fail,
            _ => Verdict::Pass,
        },
        n,
        held,
        needed,
        figures: spread,
        worst: figures
            .iter()
            .take(if differ || failed { WORST } else { 0 })
            .map(|(id, run, measured)| Worst {
                perturbation: id.to_string(),
                measured: *measured,
                command: command(*id, run, options),
            })
            .collect(),
        reason: judged.iter().find_map(|(_, _, one)| one.reason.clone()),
    }
}

/// How bad a figure is; more is worse.
fn off(bound: Bound, figure: f64) -> f64 {
    match bound {
        Bound::Max(_) => figure,
        Bound::Min(_) => -figure,
        Bound::Near { of, .. } => (figure - of).abs(),
    }
}

fn exceptions(id: DrawId, run: &RunResult, options: &PerturbOptions) -> Vec<Exception> {
    let mut all = Vec::new();
    for scheduler in &run.schedulers {
        let ejected = scheduler.ejected.iter();
        let ejected = ejected.map(|reason| format!("the scheduler was ejected: {reason}"));
        let failed = scheduler.programs.iter().filter_map(|program| {
            let reason = program.failed.as_ref()?;
            Some(format!("program `{}` {reason}", program.name))
        });
        all.extend(ejected.chain(failed).map(|reason| Exception {
            perturbation: id.to_string(),
            scheduler: scheduler.name.clone(),
            reason,
            command: command(id, run, options),
        }));
    }
    all
}

/// The command that runs one case again under this perturbation.
fn command(id: DrawId, run: &RunResult, options: &PerturbOptions) -> String {
    let options = &options.run;
    let (id, schedulers) = (id.to_string(), options.schedulers.join(","));
    let mut words = vec!["andante", "lab", "run", &options.scenario];
    words.extend(["--perturbation", &id, "--on", options.on.name()]);
    if let Some(case) = &run.case {
        words.extend(["--case", case]);
    }
    words.extend(["--scheduler", &schedulers]);
    for line in &options.set {
        words.extend(["--set", line]);
    }
    words.into_iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// Whether a scenario keeps what it promises, perturbed or not.
///
/// # Errors
/// What does not hold often enough, with the worst figure and the command that shows it; or the first
/// thing that may not happen at all.
pub fn verdict(result: &PerturbedResult) -> Result<(), LabError> {
    let place = |case: &CaseResult| match &case.case {
        Some(case) => format!("{}/{case}", result.scenario),
        None => result.scenario.clone(),
    };
    let mut failed = Vec::new();
    let mut judged = 0;
    for case in &result.cases {
        let exceptions = case.exceptions.iter();
        failed.extend(exceptions.map(|one| {
            let place = place(case);
            format!(
                "{place}: {} (under {}; again: {})",
                one.reason, one.scheduler, one.command
            )
        }));
        for one in &case.expectations {
            judged += usize::from(one.verdict != Verdict::NotJudged);
            if one.verdict == Verdict::Fail {
                failed.push(format!("{}: {}", place(case), in_words(one)));
            }
        }
    }
    match failed.is_empty() {
        true => Ok(()),
        false => Err(LabError::ExpectationsFailed {
            scenario: result.scenario.clone(),
            failed,
            judged,
        }),
    }
}

fn in_words(one: &Distribution) -> String {
    let held = format!(
        "{}: held under {} of {} perturbations, {} are needed",
        one.expectation, one.held, one.n, one.needed
    );
    match (one.worst.first(), &one.reason) {
        (Some(worst), _) => format!("{held}; worst {}: {}", worst.measured, worst.command),
        (None, Some(reason)) => format!("{held}: {reason}"),
        (None, None) => held,
    }
}
