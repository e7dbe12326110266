//! From what a run leaves to the values that are declared of it.

use andante_judge::quotients;
use andante_paper::result::Tally;
use andante_result::RunResult;
use andante_scenario::Scenario;

use super::declaration::{Entry, Of, Show, TallyOf, ValueSpec};
use super::measured::{Measured, Relation};

/// What a run left.
pub(crate) enum Left<'a> {
    Results(&'a Scenario, &'a [RunResult]),
    Tally(Tally),
    Printed(&'a str),
}

/// The least and the most of every value of `entry`.
///
/// # Errors
/// What is missing, in words.
pub(crate) fn values(entry: &Entry, left: &Left<'_>) -> Result<Vec<(f64, f64)>, String> {
    let value = |spec: &ValueSpec| {
        let measured = measured(spec, left).map_err(|reason| format!("{}: {reason}", spec.name))?;
        let shown: Vec<f64> = measured.iter().map(|value| value * spec.scale).collect();
        Ok(spec.show.of(&shown))
    };
    entry.values.iter().map(value).collect()
}

impl Show {
    /// The least and the most of what is shown of `values`, of which there is one at least.
    pub fn of(self, values: &[f64]) -> (f64, f64) {
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        match self {
            Self::Range => (least, most),
            Self::Least => (least, least),
            Self::Largest => (most, most),
            Self::Sum => {
                let sum = values.iter().sum();
                (sum, sum)
            }
        }
    }
}

fn measured(spec: &ValueSpec, left: &Left<'_>) -> Result<Vec<f64>, String> {
    match (&spec.of, left) {
        (Of::Measure(measures), Left::Results(scenario, runs)) => {
            let each = measures.each.iter();
            let values: Vec<Vec<f64>> = each
                .map(|measured| measured.of(scenario, runs))
                .collect::<Result<_, _>>()?;
            Ok(values.concat())
        }
        (Of::Tally(TallyOf::Compared), Left::Tally(tally)) => Ok(vec![tally.judged() as f64]),
        (Of::Tally(TallyOf::Hold), Left::Tally(tally)) => Ok(vec![tally.passed as f64]),
        (Of::Tally(TallyOf::Explained), Left::Tally(tally)) => Ok(vec![tally.explained as f64]),
        (Of::Report(reported), Left::Printed(printed)) => reported.of(printed),
        _ => unreachable!("a value is read as one of its source"),
    }
}

impl Measured {
    /// In every case that it concerns, of every instance.
    fn of(&self, scenario: &Scenario, runs: &[RunResult]) -> Result<Vec<f64>, String> {
        let concerned = |run: &&RunResult| {
            let mut cases = scenario.cases.iter();
            let case = cases.find(|case| case.name == run.case);
            case.is_some_and(|case| self.concerns(case))
        };
        let mut values = Vec::new();
        for run in runs.iter().filter(concerned) {
            values.extend(self.in_run(run, runs)?);
        }
        match values.is_empty() {
            true => Err("was not measured in any case".to_owned()),
            false => Ok(values),
        }
    }

    fn in_run(&self, run: &RunResult, runs: &[RunResult]) -> Result<Vec<f64>, String> {
        let only = |figures: Vec<(String, f64)>| figures.into_iter().map(|(_, value)| value);
        let Some((relation, over)) = &self.beside else {
            return Ok(only(quotients(&self.figure, run, None, self.instances)?).collect());
        };
        let other = match &over.case {
            None => run,
            Some(case) => runs
                .iter()
                .find(|run| run.case.as_ref() == Some(case))
                .ok_or_else(|| format!("case {case} was not run"))?,
        };
        if *relation == Relation::Over {
            let over = Some((over, other));
            return Ok(only(quotients(&self.figure, run, over, self.instances)?).collect());
        }
        let of = only(quotients(&self.figure, run, None, self.instances)?);
        let minus = only(quotients(&over.figure, other, None, self.instances)?);
        if of.len() != minus.len() {
            return Err(format!("{} is no single figure to take away", over.figure));
        }
        Ok(of.zip(minus).map(|(a, b)| a - b).collect())
    }
}
