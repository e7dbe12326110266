//! One figure: what was published, what is demanded, and whether what was measured is so.

use crate::result::{Cell, Mark, Published};
use crate::source::{Demand, Source, Starves};

/// One figure to be measured, and what is demanded of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CellSpec {
    /// None: nothing is measured.
    pub source: Option<Source>,
    pub published: Option<Published>,
    pub demand: Demand,
    pub starves: Option<Starves>,
    pub why: String,
    pub explained: String,
    /// Whether the explanation is of this cell alone.
    pub explained_here: bool,
}

/// A figure beside a published one, for exhibits that are computed: `why` so much is demanded.
pub(crate) fn compare(
    published: Published,
    demand: Demand,
    measured: &Result<f64, String>,
    why: &str,
) -> Cell {
    let spec = CellSpec {
        source: None,
        published: Some(published),
        demand,
        starves: None,
        why: why.to_owned(),
        explained: String::new(),
        explained_here: false,
    };
    judge_cell(&spec, measured, None, true)
}

/// What came out of a cell, and whether it is as demanded.
pub(crate) fn judge_cell(
    spec: &CellSpec,
    measured: &Result<f64, String>,
    baseline: Option<&Result<f64, String>>,
    lower_is_better: bool,
) -> Cell {
    let (demand, holds) = match (spec.published, spec.demand, spec.starves) {
        (Some(Published::Number(_)), Demand::Nothing, _) | (None, ..) => (String::new(), None),
        (Some(Published::Number(published)), demand, _) => {
            let holds = measured.as_ref().is_ok_and(|m| demand.holds(*m, published));
            (demand.to_string(), Some(holds))
        }
        (Some(Published::Starved), _, None) => (String::new(), None),
        (Some(Published::Starved), _, Some(starves)) => {
            let holds = starved(starves, measured, baseline, lower_is_better);
            (words(starves, lower_is_better), Some(holds))
        }
    };
    let mark = match holds {
        None => Mark::Shown,
        Some(true) => Mark::Pass,
        Some(false) => failed(&spec.explained),
    };
    Cell {
        published: spec.published,
        measured: measured.as_ref().ok().copied(),
        missing: measured
            .as_ref()
            .err()
            .filter(|why| !why.is_empty())
            .cloned(),
        mark,
        demand,
        why: spec.why.clone(),
        explained: match mark {
            Mark::Explained => spec.explained.clone(),
            _ => String::new(),
        },
    }
}

/// The mark of what does not hold.
pub(crate) fn failed(explained: &str) -> Mark {
    match explained {
        "" => Mark::Deviation,
        _ => Mark::Explained,
    }
}

/// Whether something was starved: it has no figure, or one that is so many times worse.
fn starved(
    starves: Starves,
    measured: &Result<f64, String>,
    baseline: Option<&Result<f64, String>>,
    lower_is_better: bool,
) -> bool {
    match (measured, starves, baseline) {
        (Err(_), ..) => true,
        (Ok(figure), Starves::Entirely, _) => *figure == 0.0,
        (Ok(figure), Starves::Times(times), Some(Ok(baseline))) if lower_is_better => {
            *figure >= times * baseline
        }
        (Ok(figure), Starves::Times(times), Some(Ok(baseline))) => *figure <= baseline / times,
        (Ok(_), Starves::Times(_), _) => false,
    }
}

fn words(starves: Starves, lower_is_better: bool) -> String {
    match (starves, lower_is_better) {
        (Starves::Entirely, _) => "nothing completed".to_owned(),
        (Starves::Times(times), true) => {
            format!("nothing completed, or {times} times the baseline or more")
        }
        (Starves::Times(times), false) => {
            format!("nothing completed, or 1/{times} of the baseline or less")
        }
    }
}
