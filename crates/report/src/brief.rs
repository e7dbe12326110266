//! A run in a line for each thing that its scenario expects: the bound, and what came out under each scheduler.

use andante_job::{LabError, RunOptions};
use andante_judge::quotients;
use andante_result::cases::scheduler_names;
use andante_result::figures::{bound_of_measure, machine_line, of_measure, significant};
use andante_result::title::scheduler_title;
use andante_result::units::NO_BREAK;
use andante_result::{RunResult, SchedulerResult};
use andante_scenario::{Bound, Expectation, Figure, Subject};
use comfy_table::{Attribute, Cell, CellAlignment, Color};

use crate::table::empty_table;

/// The runs of what `options` asked for, as a table at most `width` columns wide.
///
/// # Errors
/// If the scenario cannot be read any more.
pub fn brief(options: &RunOptions, runs: &[RunResult], width: usize) -> Result<String, LabError> {
    let (_, scenario) = andante_job::files::load(options)?;
    let schedulers = scheduler_names(runs);
    let mut table = empty_table(width, true);
    table.set_header(header(&schedulers));
    for run in runs {
        let case = scenario.cases.iter().find(|case| case.name == run.case);
        let expected = scenario.expectations.iter();
        let expected = expected.filter(|one| case.is_some_and(|case| one.concerns(case)));
        let mut name = run.case.as_deref().unwrap_or_default();
        for expectation in distinct(expected) {
            table.add_row(row(name, expectation, run, &schedulers));
            name = "";
        }
    }
    let first = runs.first();
    let machine = first.map(machine_line).unwrap_or_default();
    let title = &scenario.title;
    let lines: String = table
        .lines()
        .map(|line| line.trim_end().to_owned() + "\n")
        .collect();
    Ok(format!("{title}\n{machine}\n\n{lines}"))
}

/// What is expected of several schedulers is one line.
fn distinct<'a>(expected: impl Iterator<Item = &'a Expectation>) -> Vec<&'a Expectation> {
    let key = |one: &Expectation| (of("", &one.figure), one.instances);
    let mut kept: Vec<&Expectation> = Vec::new();
    for one in expected {
        if kept.iter().all(|other| key(other) != key(one)) {
            kept.push(one);
        }
    }
    kept
}

/// The same figure of another scheduler.
fn of(scheduler: &str, figure: &Figure) -> Figure {
    Figure {
        scheduler: scheduler.to_owned(),
        ..figure.clone()
    }
}

fn header(schedulers: &[String]) -> Vec<Cell> {
    let left = ["", "", "bound"].map(Cell::new).into_iter();
    let name = |name: &String| Cell::new(scheduler_title(name)).set_alignment(CellAlignment::Right);
    let cells = left.chain(schedulers.iter().map(name));
    cells
        .map(|cell| cell.add_attribute(Attribute::Bold))
        .collect()
}

fn row(case: &str, expectation: &Expectation, run: &RunResult, schedulers: &[String]) -> Vec<Cell> {
    let figure = &expectation.figure;
    let whose = match &figure.subject {
        Subject::Machine => String::new(),
        Subject::Class(name) | Subject::Program(name) => format!("{name} "),
    };
    let what = match expectation.instances {
        Some(instances) => format!("{whose}{} ({instances})", figure.measure),
        None => format!("{whose}{}", figure.measure),
    };
    let left = [case.to_owned(), what, bound(expectation)].map(Cell::new);
    let cell = |name: &String| {
        let scheduler = run.schedulers.iter().find(|one| one.name == *name);
        let (text, holds) =
            scheduler.map_or_else(Default::default, |one| read(expectation, run, one));
        let cell = Cell::new(text).set_alignment(CellAlignment::Right);
        match holds {
            true => cell,
            false => cell.fg(Color::Red),
        }
    };
    left.into_iter()
        .chain(schedulers.iter().map(cell))
        .collect()
}

fn bound(expectation: &Expectation) -> String {
    let of = |value: f64| match &expectation.over {
        Some(_) => significant(value),
        None => bound_of_measure(&expectation.figure.measure, value).replace(NO_BREAK, " "),
    };
    match expectation.bound {
        Bound::Min(min) => format!("≥ {}", of(min)),
        Bound::Max(max) => format!("≤ {}", of(max)),
        Bound::Near { of: aim, within } => {
            format!("{} ± {} %", of(aim), significant(within * 100.0))
        }
    }
}

/// What came out, and whether that is within the bound, even if nothing is expected of this scheduler.
fn read(expectation: &Expectation, run: &RunResult, scheduler: &SchedulerResult) -> (String, bool) {
    if scheduler.ejected.is_some() {
        return ("ejected".to_owned(), false);
    }
    let over = expectation.over.clone().map(|mut over| {
        if over.figure.scheduler == expectation.figure.scheduler {
            over.figure.scheduler.clone_from(&scheduler.name);
        }
        over
    });
    let over = over.as_ref().filter(|over| over.case.is_none());
    if over.is_none() && expectation.over.is_some() {
        return ("see the report".to_owned(), true);
    }
    let figure = of(&scheduler.name, &expectation.figure);
    let figures = quotients(
        &figure,
        run,
        over.map(|over| (over, run)),
        expectation.instances,
    );
    let figures = figures.into_iter().flatten().map(|(_, figure)| figure);
    match figures.reduce(|one, other| worse(expectation.bound, one, other)) {
        Some(worst) => {
            let text = match &expectation.over {
                Some(_) => significant(worst),
                None => of_measure(&expectation.figure.measure, worst).replace(NO_BREAK, " "),
            };
            (text, expectation.bound.holds(worst))
        }
        None => ("none".to_owned(), false),
    }
}

/// The one that is further on the wrong side of the bound.
fn worse(bound: Bound, one: f64, other: f64) -> f64 {
    match bound {
        Bound::Min(_) => one.min(other),
        Bound::Max(_) => one.max(other),
        Bound::Near { of, .. } if (one - of).abs() >= (other - of).abs() => one,
        Bound::Near { .. } => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use andante_result::{ProgramResult, Spread};
    use andante_scenario::Scenario;

    #[test]
    fn a_line_has_the_worst_instance_of_each_scheduler() {
        let text = "title = 'x'\nduration_s = 1\n\
                    [programs.keys]\nclass = '/'\nkind = 'waker'\ninterval_us = 1000\ncount = 2\n\
                    [[expect]]\nmeasure = 'latency_us.max'\nprogram = 'keys'\nmax = 10\n\
                    [[expect]]\nmeasure = 'latency_us.max'\nprogram = 'keys'\nscheduler = 'stock'\nmax = 90\n";
        let scenario = Scenario::parse("x.toml", text, &[]).unwrap();
        let keys = |name: &str, us: f64| ProgramResult {
            name: name.to_owned(),
            latency_us: Spread::of(&[us]),
            ..ProgramResult::default()
        };
        let of = |name: &str, ejected: Option<&str>| SchedulerResult {
            name: name.to_owned(),
            ejected: ejected.map(str::to_owned),
            programs: vec![keys("keys.1", 3.0), keys("keys.2", 12.0)],
            ..SchedulerResult::default()
        };
        let run = RunResult {
            schedulers: vec![of("andante", None), of("stock", Some("stall"))],
            ..RunResult::default()
        };
        let lines = distinct(scenario.expectations.iter());
        assert_eq!(lines.len(), 1, "what differs by scheduler is one line");
        let read = |index: usize| read(lines[0], &run, &run.schedulers[index]);
        assert_eq!(read(0), ("12 µs".to_owned(), false));
        assert_eq!(read(1), ("ejected".to_owned(), false));
        assert_eq!(bound(lines[0]), "≤ 10 µs");
        let mut share = lines[0].clone();
        share.figure.measure = "late_share".to_owned();
        share.bound = Bound::Near {
            of: 0.5,
            within: 0.01,
        };
        assert_eq!(bound(&share), "0.5 ± 1 %");
    }
}
