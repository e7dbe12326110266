//! Agreement of one place with another: the simulator's figures beside those of a real kernel.
//!
//! Shares and frame rates are compared, of every scheduler that both results have. What takes no
//! time in the simulator (system calls, interrupts, the decisions themselves) makes the rest
//! incomparable. The comparisons are judged like a scenario's own expectations, and stand beside
//! them in the result and the report.

use std::path::Path;

use crate::error::LabError;
use crate::figures::{frame_rate, number};
use crate::result::{Judgement, ProgramResult, RunResult, SchedulerResult, Verdict};

/// How far shares may lie apart [ratio of all CPUs].
const SHARE_WITHIN: f64 = 0.02;
/// How far frame rates may lie apart [relative].
const RATE_WITHIN: f64 = 0.03;
/// What every comparison's text begins with.
const AS_ON: &str = "as on ";

/// Adds to each of `runs` how it compares with the result of the same scenario and case below
/// `folder`.
///
/// # Errors
/// If a result is missing, is no result, or has no scheduler in common with the run.
pub(crate) fn judge(runs: &mut [RunResult], folder: &Path) -> Result<(), LabError> {
    for run in runs {
        let case = run.case.clone().unwrap_or_default();
        let file = folder.join(&run.scenario).join(case).join("result.json");
        let text = std::fs::read(&file).map_err(|e| LabError::file("read", &file, e))?;
        let other: RunResult = serde_json::from_slice(&text)
            .map_err(|e| LabError::io(format!("read {}", file.display()), e))?;
        let common = compare(run, &other);
        if common.is_empty() {
            let nothing = std::io::Error::other(
                "it has no share or frame rate of a scheduler that was run here",
            );
            return Err(LabError::file("compare with", &file, nothing));
        }
        run.expectations.extend(common);
    }
    Ok(())
}

/// How many comparisons `runs` hold, and how many of them are within bounds.
pub fn agreement(runs: &[RunResult]) -> (usize, usize) {
    let all = runs.iter().flat_map(|run| &run.expectations);
    let compared = all.filter(|judgement| judgement.expectation.starts_with(AS_ON));
    let verdicts: Vec<Verdict> = compared.map(|judgement| judgement.verdict).collect();
    let holds = verdicts
        .iter()
        .filter(|verdict| **verdict == Verdict::Pass)
        .count();
    (verdicts.len(), holds)
}

fn compare(run: &RunResult, other: &RunResult) -> Vec<Judgement> {
    let place = format!("{AS_ON}{} ({})", other.on, other.kernel);
    let mut judgements = Vec::new();
    for here in &run.schedulers {
        let Some(there) = other
            .schedulers
            .iter()
            .find(|there| there.name == here.name)
        else {
            continue;
        };
        judgements.extend(shares(&place, here, there));
        judgements.extend(rates(&place, here, there));
    }
    judgements
}

fn shares(place: &str, here: &SchedulerResult, there: &SchedulerResult) -> Vec<Judgement> {
    let judge = |class: &crate::result::ClassResult| {
        let other = there
            .classes
            .iter()
            .find(|other| other.path == class.path)?;
        let (measured, wanted) = (class.share_received, other.share_received);
        let text = format!(
            "{place}, {}: share of {} within {} points of {} %",
            here.name,
            class.path,
            number(SHARE_WITHIN * 100.0, 0),
            number(wanted * 100.0, 2)
        );
        Some(judgement(
            text,
            measured,
            (measured - wanted).abs() <= SHARE_WITHIN,
        ))
    };
    here.classes.iter().filter_map(judge).collect()
}

fn rates(place: &str, here: &SchedulerResult, there: &SchedulerResult) -> Vec<Judgement> {
    let judge = |program: &ProgramResult| {
        let other = there
            .programs
            .iter()
            .find(|other| other.name == program.name)?;
        let (measured, wanted) = (frame_rate(program)?, frame_rate(other)?);
        let text = format!(
            "{place}, {}: frame rate of {} within {} % of {}/s",
            here.name,
            program.name,
            number(RATE_WITHIN * 100.0, 0),
            number(wanted, 2)
        );
        Some(judgement(
            text,
            measured,
            (measured - wanted).abs() <= RATE_WITHIN * wanted,
        ))
    };
    here.programs.iter().filter_map(judge).collect()
}

fn judgement(expectation: String, measured: f64, holds: bool) -> Judgement {
    Judgement {
        expectation,
        measure: None,
        program: None,
        verdict: if holds { Verdict::Pass } else { Verdict::Fail },
        measured: Some(measured),
        reason: None,
    }
}
