//! Judging: compares the figures of a run with what the scenario expects; with the results of the same
//! scenario in another place ([`against`]); and a run in the host's time with what needs no clock
//! ([`unclocked`]).
//!
//! An expectation about a figure that does not exist fails. Only one whose scheduler, or the case that
//! it compares with, was left out of the run on purpose, or one about what only a kernel has in a
//! simulation, is neither passed nor failed, and says so.

pub mod against;
#[cfg(test)]
mod tests;
pub mod unclocked;

use andante_result::measures::{
    CLASS, IN_CLASS, MACHINE, OF_SPREAD, ONLY_ON_KERNEL, PROGRAM, SPREADS, find,
};
use andante_result::{ClassResult, Judgement, ProgramResult, RunResult, Verdict};
use andante_scenario::{Expectation, Figure, Instances, Over, Scenario, Subject};

/// Judges all expectations of `scenario`, into the results of the cases they hold for.
pub fn judge(scenario: &Scenario, runs: &mut [RunResult]) {
    let judged: Vec<Vec<Judgement>> = runs
        .iter()
        .map(|run| {
            let case = scenario.cases.iter().find(|case| case.name == run.case);
            let holds_here = |e: &&Expectation| case.is_some_and(|case| e.concerns(case));
            let here = scenario.expectations.iter().filter(holds_here);
            // The case a ratio is taken over is 1 by definition, and says nothing.
            let own_base = |e: &&Expectation| {
                e.case != run.case
                    && e.over.as_ref().is_some_and(|over| {
                        over.case.is_some()
                            && over.case == run.case
                            && over.figure == e.figure
                            && over.left_by.is_none()
                    })
            };
            here.filter(|e| !own_base(e))
                .flat_map(|e| judge_one(e, scenario, run, runs))
                .collect()
        })
        .collect();
    for (run, judgements) in runs.iter_mut().zip(judged) {
        run.expectations = judgements;
        run.expectations.extend(unclocked::judgements(run));
    }
}

/// One judgement, or one per instance of the program it is about.
fn judge_one(
    expectation: &Expectation,
    scenario: &Scenario,
    run: &RunResult,
    runs: &[RunResult],
) -> Vec<Judgement> {
    let wanted = [
        Some(&expectation.figure),
        expectation.over.as_ref().map(|over| &over.figure),
    ];
    let absent = wanted
        .into_iter()
        .flatten()
        .map(|figure| &figure.scheduler)
        .find(|name| {
            // Left out on purpose only if no case has it; otherwise a result is missing.
            !runs
                .iter()
                .any(|run| run.schedulers.iter().any(|s| s.name == **name))
        });
    let judgement = |instance: &str, verdict, measured: Option<f64>, reason| Judgement {
        expectation: match instance {
            "" => expectation.to_string(),
            instance => format!("{expectation} ({instance})"),
        },
        measure: Some(expectation.figure.measure.clone()),
        program: match &expectation.figure.subject {
            Subject::Program(name) => Some(name.clone()),
            Subject::Machine | Subject::Class(_) => None,
        },
        verdict,
        tail: verdict == Verdict::Pass
            && measured.is_some_and(|figure| !expectation.bound.holds(figure)),
        measured,
        reason,
    };
    let simulated = run.on == "sim" && ONLY_ON_KERNEL.contains(&&*expectation.figure.measure);
    // The scenario has all of its cases but those that were left out on purpose.
    let kept = |name: &&String| {
        scenario
            .cases
            .iter()
            .any(|c| c.name.as_ref() == Some(*name))
    };
    let base = expectation
        .over
        .as_ref()
        .and_then(|over| over.case.as_ref());
    let reason = match (absent, base.filter(|name| !kept(name))) {
        (Some(name), _) => Some(format!("{name} was not run")),
        (None, Some(case)) => Some(format!("case {case} was not run")),
        (None, None) => simulated
            .then(|| "only a kernel has it".to_owned())
            .or_else(|| unclocked::skipped(expectation, run)),
    };
    if reason.is_some() {
        return vec![judgement("", Verdict::NotJudged, None, reason)];
    }
    match measure(expectation, run, runs) {
        Ok(figures) => figures
            .into_iter()
            .map(|(instance, measured)| {
                let verdict = if expectation.worst_bound().holds(measured) {
                    Verdict::Pass
                } else {
                    Verdict::Fail
                };
                judgement(&instance, verdict, Some(measured), None)
            })
            .collect(),
        Err(reason) => vec![judgement("", Verdict::Fail, None, Some(reason))],
    }
}

/// The figures to compare with the bound, with the instance's name where there are several.
fn measure(
    expectation: &Expectation,
    run: &RunResult,
    runs: &[RunResult],
) -> Result<Vec<(String, f64)>, String> {
    let instances = expectation.instances;
    let Some(over) = &expectation.over else {
        return quotients(&expectation.figure, run, None, instances);
    };
    let base_run = match &over.case {
        None => run,
        Some(case) => runs
            .iter()
            .find(|run| run.case.as_ref() == Some(case))
            .ok_or_else(|| format!("case {case} was not run"))?,
    };
    quotients(&expectation.figure, run, Some((over, base_run)), instances)
}

/// The figures that `figure` names in `run`, each with the instance's name where there are several,
/// divided by what `over` names in its own run, if anything: by that of the same instance if it is
/// of the same instances. With `instances` the figures of a program
/// become one, and so do those it is divided by: a ratio of means, not a mean of ratios.
///
/// # Errors
/// What is missing, in words.
pub fn quotients(
    figure: &Figure,
    run: &RunResult,
    over: Option<(&Over, &RunResult)>,
    instances: Option<Instances>,
) -> Result<Vec<(String, f64)>, String> {
    let joined = |figures: Vec<(String, f64)>| match instances {
        None => figures,
        Some(instances) => {
            let one = instances.join(figures.iter().map(|(_, value)| *value));
            vec![(String::new(), one)]
        }
    };
    let figures = joined(read_figure(figure, run)?);
    let Some((over, base_run)) = over else {
        return Ok(figures);
    };
    let mut bases = joined(read_figure(&over.figure, base_run)?);
    if let [(_, one)] = bases[..] {
        bases = figures
            .iter()
            .map(|(name, _)| (name.clone(), one))
            .collect();
    }
    let names = |figures: &[(String, f64)]| -> Vec<String> {
        figures.iter().map(|(name, _)| name.clone()).collect()
    };
    if names(&bases) != names(&figures) {
        return Err(format!("{} is no single figure to divide by", over.figure));
    }
    if let Some(class) = &over.left_by {
        let left = Figure {
            measure: "share_received".to_owned(),
            subject: Subject::Class(class.clone()),
            at_s: None,
            ..figure.clone()
        };
        let [(_, share)] = read_figure(&left, run)?[..] else {
            unreachable!("one class")
        };
        for (_, base) in &mut bases {
            *base *= 1.0 - share;
        }
    }
    if bases.iter().any(|(_, base)| *base == 0.0) {
        return Err(format!("{} is 0 and cannot be divided by", over.figure));
    }
    Ok(figures
        .into_iter()
        .zip(bases)
        .map(|((instance, figure), (_, base))| (instance, figure / base))
        .collect())
}

fn read_figure(figure: &Figure, run: &RunResult) -> Result<Vec<(String, f64)>, String> {
    let missing = || format!("the result holds no {figure} under {}", figure.scheduler);
    let scheduler = run
        .schedulers
        .iter()
        .find(|s| s.name == figure.scheduler)
        .ok_or_else(missing)?;
    match &figure.subject {
        Subject::Machine => {
            let read = find(MACHINE, &figure.measure).ok_or_else(missing)?;
            Ok(vec![(
                String::new(),
                read(scheduler, run).ok_or_else(missing)?,
            )])
        }
        Subject::Class(path) => {
            let class = scheduler.classes.iter().find(|class| class.path == *path);
            let class = class.ok_or_else(missing)?;
            let value = match figure.at_s {
                Some(at_s) => cpu_s_at(class, &scheduler.sample_ns, at_s).ok_or_else(missing)?,
                None => find(CLASS, &figure.measure)
                    .and_then(|read| read(class, scheduler, run))
                    .ok_or_else(missing)?,
            };
            Ok(vec![(String::new(), value)])
        }
        Subject::Program(name) => {
            let class_of = |program: &ProgramResult| {
                let mut classes = scheduler.classes.iter();
                classes.find(|class| class.path == program.class)
            };
            let read = |program: &ProgramResult| match figure.measure.split_once('.') {
                None => match find(IN_CLASS, &figure.measure) {
                    Some(read) => read(program, class_of(program)?),
                    None => find(PROGRAM, &figure.measure)?(program),
                },
                Some((spread, of)) => Some(find(OF_SPREAD, of)?(&find(SPREADS, spread)?(program)?)),
            };
            let instances: Vec<_> = scheduler
                .programs
                .iter()
                .filter(|program| is_instance(program, name))
                .collect();
            let named = instances.len() > 1;
            let instance = |program: &ProgramResult| {
                let label = if named {
                    program.name.clone()
                } else {
                    String::new()
                };
                Ok((label, read(program).ok_or_else(missing)?))
            };
            if instances.is_empty() {
                Err(missing())
            } else {
                instances.into_iter().map(instance).collect()
            }
        }
    }
}

fn is_instance(program: &ProgramResult, name: &str) -> bool {
    match program.name.strip_prefix(name) {
        Some("") => true,
        Some(rest) => rest
            .strip_prefix('.')
            .is_some_and(|n| n.parse::<u32>().is_ok()),
        None => false,
    }
}

/// CPU seconds received until `at_s`, from the sample taken then.
fn cpu_s_at(class: &ClassResult, sample_ns: &[u64], at_s: f64) -> Option<f64> {
    let off_s = |ns: &u64| (*ns as f64 / 1e9 - at_s).abs();
    let samples = sample_ns.iter().enumerate();
    let (index, ns) = samples.min_by(|(_, a), (_, b)| off_s(a).total_cmp(&off_s(b)))?;
    // A sample is taken at the very instant or microseconds later: half a percent is far more.
    if off_s(ns) > at_s * 0.005 {
        return None;
    }
    Some(*class.samples.get(index)? as f64 / 1e9)
}
