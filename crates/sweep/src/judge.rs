//! Whether the draws of a sweep show what is required of them.

use andante_job::LabError;
use andante_result::Verdict;

use super::measure::Figures;
use super::requirement::Requirement;
use super::result::{DrawResult, RequirementResult, SweepResult};
use super::terms::Terms;

/// Judges everything that is required of these draws, whose figures are by draw, then by scheduler.
pub(super) fn judge(
    terms: &Terms<'_>,
    draws: &[DrawResult],
    figures: &[Vec<Figures>],
) -> Vec<RequirementResult> {
    let judge_one = |requirement: &Requirement| {
        let mut choices = terms.choices.iter();
        let place = choices.position(|choice| choice.name() == requirement.scheduler);
        let counts = |(draw, figures): &(&DrawResult, &Vec<Figures>)| {
            requirement.load.is_none_or(|load| draw.load <= load)
                && terms.keeps(&figures[terms.reference])
        };
        let counted = draws.iter().zip(figures).filter(counts);
        let n = counted.clone().count() as u64;
        let bad: Vec<String> = match place {
            Some(place) => counted
                .filter(|(_, figures)| !terms.keeps(&figures[place]))
                .map(|(draw, _)| draw.draw.clone())
                .collect(),
            None => Vec::new(),
        };
        let kept = n - bad.len() as u64;
        RequirementResult {
            requirement: requirement.in_words(&terms.choices[terms.reference].name()),
            n,
            kept,
            share: requirement.share,
            verdict: match place {
                None => Verdict::NotJudged,
                // Nothing was shown.
                Some(_) if n == 0 => Verdict::Fail,
                Some(_) if kept as f64 + 1e-9 < requirement.share * n as f64 => Verdict::Fail,
                Some(_) => Verdict::Pass,
            },
            bad,
        }
    };
    terms.requirements.iter().map(judge_one).collect()
}

/// The first few; the JSON has all.
fn some_of(draws: &[String]) -> String {
    const SOME: usize = 10;
    match draws.len() {
        0..=SOME => draws.join(", "),
        n => format!("{} and {} more", draws[..SOME].join(", "), n - SOME),
    }
}

/// Whether a sweep shows what is required of it.
///
/// # Errors
/// It does not: [`LabError::ExpectationsFailed`] with each requirement that failed.
pub fn verdict(result: &SweepResult) -> Result<(), LabError> {
    let judged = result.requirements.iter();
    let judged = judged.filter(|one| one.verdict != Verdict::NotJudged);
    let failed: Vec<String> = judged
        .clone()
        .filter(|one| one.verdict == Verdict::Fail)
        .map(|one| match one.n {
            0 => format!("{}: there is no such draw, draw more", one.requirement),
            n => format!(
                "{}: {} of {n} do, not {}",
                one.requirement,
                one.kept,
                some_of(&one.bad)
            ),
        })
        .collect();
    match failed.is_empty() {
        true => Ok(()),
        false => Err(LabError::ExpectationsFailed {
            scenario: result.family.clone(),
            judged: judged.count(),
            failed,
        }),
    }
}
