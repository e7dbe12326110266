// SPDX-License-Identifier: GPL-2.0
//! Are the reference's ratios and ours samples of one population? And would they be if the reference
//! had drawn or ordered its tasks by another rule?
//!
//! A ratio of n sets has the variance p (1 - p) / n, so that among many ratios some are off by more
//! than two points whatever the generator. For each rule: how many are, how many are to be expected,
//! and the mean of the squared distance over its variance, which is 1 for samples of one population.
//! Ratios of the same sets depend on each other; that changes no expectation.

use andante_admission::Task;
use andante_admission::experiment::{
    Algorithm, Deadlines, Generator, LoadClass, Random, place_all,
};

use super::{Output, REFERENCES, Reference, SEED, WITHIN_POINTS, shown};
use crate::result::{self, Column, Content, Row};

/// Sets at each point.
const SETS: u32 = 5000;
/// Most sets drawn for one that a rule counts.
const MAX_DRAWS_PER_SET: u32 = 100;
const NS_PER_MS: u64 = 1_000_000;

/// A rule by which sets could have been made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// The generator's: the last task is cut to hit the load.
    Cut,
    /// Periods in whole milliseconds.
    WholeMilliseconds,
    /// A last task that is cut below the least utilisation is left out.
    LeftOut,
    /// A set with such a task is not counted.
    NotCounted,
    /// "Decreasing" is by C / D.
    Density,
}

const RULES: [(Rule, &str); 5] = [
    (Rule::Cut, "as here: the last task cut to hit the load"),
    (Rule::WholeMilliseconds, "periods of whole milliseconds"),
    (
        Rule::LeftOut,
        "last task left out if cut below the least utilisation",
    ),
    (Rule::NotCounted, "sets with such a task not counted"),
    (Rule::Density, "decreasing C / D instead of C / T"),
];

impl Rule {
    /// The set by this rule; none if it does not count.
    fn applied(self, mut tasks: Vec<Task>, class: LoadClass) -> Option<Vec<Task>> {
        let least = if class == LoadClass::Heavy { 0.5 } else { 0.1 };
        // Half a part in a million: budgets are rounded down.
        let cut = |task: &Task| utilisation(task) < least - 5e-7;
        match self {
            Self::WholeMilliseconds => tasks = tasks.iter().map(in_whole_ms).collect(),
            Self::LeftOut if tasks.last().is_some_and(cut) => drop(tasks.pop()),
            Self::NotCounted if tasks.last().is_some_and(cut) => return None,
            _ => {}
        }
        Some(tasks)
    }

    fn admits(self, algorithm: Algorithm, tasks: &[Task], cpus: u32) -> bool {
        let mut policy = algorithm.policy();
        if self != Self::Density || policy.order == andante_admission::Order::Given {
            return place_all(tasks, cpus, &policy).is_some();
        }
        policy.order = andante_admission::Order::Given;
        let density = |task: &Task| task.budget_ns() as f64 / task.deadline_ns() as f64;
        let mut tasks = tasks.to_vec();
        tasks.sort_by(|a, b| density(b).total_cmp(&density(a)));
        place_all(&tasks, cpus, &policy).is_some()
    }
}

fn utilisation(task: &Task) -> f64 {
    task.budget_ns() as f64 / task.period_ns() as f64
}

/// The same utilisation and place of the deadline, in a period of whole milliseconds.
fn in_whole_ms(task: &Task) -> Task {
    let period_ns = (task.period_ns() / NS_PER_MS).max(1) * NS_PER_MS;
    let scaled = |ns: u64| {
        let ns = u128::from(ns) * u128::from(period_ns) / u128::from(task.period_ns());
        (ns as u64).max(1)
    };
    let scaled = Task::new(
        scaled(task.budget_ns()),
        scaled(task.deadline_ns()),
        period_ns,
    );
    scaled.expect("smaller than a task")
}

/// What a rule comes to.
#[derive(Debug, Default)]
struct Distance {
    ratios: u32,
    beyond: u32,
    expected: f64,
    squares: f64,
}

impl Distance {
    /// Adds a ratio of `sets` sets of the reference beside `admitted` of ours.
    fn add(&mut self, reference: f64, sets: u32, admitted: u32) {
        let p = f64::from(admitted) / f64::from(SETS);
        // Never certain: half a set either way.
        let likely = (f64::from(admitted) + 0.5) / (f64::from(SETS) + 1.0);
        let both = 1.0 / f64::from(sets) + 1.0 / f64::from(SETS);
        let error = (likely * (1.0 - likely) * both).sqrt();
        let within = WITHIN_POINTS / 100.0;
        self.ratios += 1;
        self.beyond += u32::from((reference - p).abs() > within);
        self.expected += two_tails(within / error);
        self.squares += ((reference - p) / error).powi(2);
    }
}

/// The part of a normal distribution farther than `z` standard errors from its mean, to 1e-6.
///
/// Abramowitz and Stegun, *Handbook of Mathematical Functions*, 7.1.26.
fn two_tails(z: f64) -> f64 {
    const A: [f64; 5] = [
        0.254_829_592,
        -0.284_496_736,
        1.421_413_741,
        -1.453_152_027,
        1.061_405_429,
    ];
    let x = z / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * x);
    let series = A.iter().rev().fold(0.0, |sum, a| (sum + a) * t);
    series * (-x * x).exp()
}

/// Sets admitted of [`SETS`] by each algorithm that the reference knows.
fn admitted(rule: Rule, kind: &Reference, load_percent: u32) -> Vec<u32> {
    let generator = Generator {
        class: kind.class,
        deadlines: kind.deadlines,
        cpus: kind.cpus,
        load_percent,
    };
    let draw = |set| generator.draw(&mut Random::new(generator.seed_of(SEED, set)));
    let sets = (0..SETS * MAX_DRAWS_PER_SET).filter_map(|set| rule.applied(draw(set), kind.class));
    let mut admitted = vec![0; kind.ratios.len()];
    for tasks in sets.take(SETS as usize) {
        for (count, (algorithm, _)) in admitted.iter_mut().zip(kind.ratios) {
            *count += u32::from(rule.admits(*algorithm, &tasks, kind.cpus));
        }
    }
    admitted
}

fn distance(rule: Rule) -> Distance {
    let mut distance = Distance::default();
    for kind in REFERENCES {
        if rule == Rule::Density && kind.deadlines == Deadlines::Implicit {
            continue;
        }
        for (at, &load) in kind.loads_percent.iter().enumerate() {
            let admitted = admitted(rule, kind, load);
            for ((_, ratios), admitted) in kind.ratios.iter().zip(admitted) {
                distance.add(ratios[at], kind.sets, admitted);
            }
        }
    }
    distance
}

/// Each rule beside the reference.
pub(in crate::computed) fn table() -> Result<Output, String> {
    let column = |title: &str, decimals| Column {
        title: title.to_owned(),
        unit: String::new(),
        decimals: Some(decimals),
    };
    let row = |(rule, title): (Rule, &str)| {
        let distance = distance(rule);
        let ratios = f64::from(distance.ratios);
        Row {
            title: title.to_owned(),
            x: None,
            labels: Vec::new(),
            cells: vec![
                shown(ratios),
                shown(f64::from(distance.beyond)),
                shown(distance.expected),
                shown(distance.squares / ratios),
            ],
        }
    };
    let table = result::Table {
        row_title: "sets".to_owned(),
        label_titles: Vec::new(),
        columns: vec![
            column("ratios", 0),
            column("off by more than 2 points", 0),
            column("expected by chance", 1),
            column("squared distance over variance", 2),
        ],
        rows: RULES.map(row).into(),
        fold: false,
    };
    Ok((Content::Table(table), Vec::new()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_are_those_of_the_normal_distribution() {
        for (z, part) in [
            (0.0, 1.0),
            (1.0, 0.317_311),
            (1.96, 0.049_996),
            (3.0, 0.002_700),
        ] {
            assert!((two_tails(z) - part).abs() < 2e-6, "{z}: {}", two_tails(z));
        }
    }

    #[test]
    fn a_period_of_whole_milliseconds_keeps_the_utilisation() {
        let task = Task::new(3_333_333, 5_000_000, 10_999_999).unwrap();
        let rounded = in_whole_ms(&task);
        assert_eq!(rounded.period_ns(), 10_000_000);
        assert!((utilisation(&rounded) - utilisation(&task)).abs() < 1e-6);
    }

    #[test]
    fn a_last_task_cut_too_small_is_left_out_or_the_set_not_counted() {
        let set = || vec![Task::new(5, 10, 10).unwrap(), Task::new(1, 20, 20).unwrap()];
        let left = |rule: Rule| rule.applied(set(), LoadClass::Mixed).map(|set| set.len());
        assert_eq!(left(Rule::Cut), Some(2));
        assert_eq!(left(Rule::LeftOut), Some(1));
        assert_eq!(left(Rule::NotCounted), None);
    }

    #[test]
    fn another_population_is_told_from_the_same() {
        let (mut same, mut other) = (Distance::default(), Distance::default());
        for off in [-10_i32, 0, 10] {
            same.add(0.5 + 0.001 * f64::from(off), 1000, SETS / 2);
            other.add(0.6, 1000, SETS / 2);
        }
        assert!(same.squares < 3.0 && same.beyond == 0);
        assert!(other.squares > 50.0 && other.beyond == 3);
    }
}
