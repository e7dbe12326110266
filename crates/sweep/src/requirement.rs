//! What a sweep must show to be a good one: a bound on its distribution.
//!
//! ```toml
//! [[require]]
//! share = 0.9                # so many of the draws that count keep every bound: 0 to 1
//! load = 0.4                 # only draws that ask for no more than this count; all if left out
//! scheduler = "andante"      # whose; andante if left out
//! draws = 100                # not asked of sweeps of fewer; 1 if left out
//! ```
//!
//! That of a family is asked of the family as it stands: beside `eevdf-fifo`, without `--set` and `--bound`.
//!
//! A draw counts if the reference keeps every bound: what an expert cannot do by hand is asked of
//! nobody. Draws are the same for the same seed, so that a sweep which held holds until a rule changes.

use andante_document::{DocumentError, Node, Section, Value};
use andante_job::LabError;
use andante_result::Verdict;

use super::measure::Figures;
use super::result::{DrawResult, RequirementResult};
use super::summary::Terms;
use crate::SweepResult;

/// One of them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Requirement {
    pub scheduler: String,
    /// The largest load of draws that count [ratio]; none: any.
    pub load: Option<f64>,
    /// Of the draws that count the part that keeps every bound [ratio].
    pub share: f64,
    /// The fewest draws that it speaks of.
    pub draws: u64,
}

/// Reads all `[[require]]` tables.
pub(super) fn read_all(node: &Node, path: &str) -> Result<Vec<Requirement>, DocumentError> {
    match &node.value {
        Value::List(items) => items.iter().map(|item| read(item, path)).collect(),
        _ => Err(node
            .origin
            .error(path, "write what is required as [[require]] tables")),
    }
}

fn read(node: &Node, path: &str) -> Result<Requirement, DocumentError> {
    let mut section = Section::new(node, path)?;
    section.need::<f64>("share")?;
    let requirement = Requirement {
        share: section.number("share", 1.0, 0.0..=1.0)?,
        load: match section.node("load") {
            None => None,
            Some(_) => Some(section.number("load", 0.0, 0.0..=1000.0)?),
        },
        draws: section.number("draws", 1.0, 1.0..=1e6)? as u64,
        scheduler: section
            .get("scheduler")?
            .unwrap_or_else(|| "andante".to_owned()),
    };
    section.finish()?;
    Ok(requirement)
}

/// Reads `--require 'share = 0.9, load = 0.4'`.
pub(super) fn of_option(text: &str) -> Result<Requirement, DocumentError> {
    const NAME: &str = "--require";
    let table = Node::parse(NAME, &format!("require = {{ {text} }}"))?;
    let mut section = Section::new(&table, "")?;
    read(section.node("require").expect("just written"), NAME)
}

impl Requirement {
    fn in_words(&self, reference: &str) -> String {
        let load = match self.load {
            Some(load) => format!(" at loads to {load}"),
            None => String::new(),
        };
        let share = self.share * 100.0;
        format!(
            "{}: {share} % of the draws{load} in which {reference} keeps every bound keep it too",
            self.scheduler
        )
    }
}

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
/// What it does not show.
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
