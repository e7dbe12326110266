// SPDX-License-Identifier: GPL-2.0
//! The part of random sets that each algorithm admits, as a table.

use std::fmt;

use serde::Serialize;

use super::generator::{Deadlines, Generator, LoadClass, Random};
use super::sample::place_all;
use crate::placement::Placement;
use crate::policy::{Excess, Fit, Order, Policy, Splitting};
use crate::task::Task;

/// The algorithms compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// Partitioned EDF, first fit in the order drawn.
    FirstFit,
    /// Partitioned EDF, first fit by decreasing utilisation.
    FirstFitDecreasing,
    /// Partitioned EDF, worst fit in the order drawn.
    WorstFit,
    /// EDF-WM, first fit in the order drawn.
    EdfWmFirstFit,
    /// EDF-WM, first fit by decreasing utilisation.
    EdfWmDecreasing,
    /// Ours: zero-laxity pieces, first fit by decreasing utilisation.
    ZeroLaxityDecreasing,
}

impl Algorithm {
    /// All of them, in the order of the table's rows.
    pub const ALL: [Self; 6] = [
        Self::FirstFit,
        Self::FirstFitDecreasing,
        Self::WorstFit,
        Self::EdfWmFirstFit,
        Self::EdfWmDecreasing,
        Self::ZeroLaxityDecreasing,
    ];

    /// What it does, as a policy.
    pub fn policy(self) -> Policy {
        let policy = |fit, order, splitting| Policy {
            splitting,
            ..Policy::partitioned(fit, order)
        };
        let windows = Splitting::EqualWindows(Excess::Last);
        match self {
            Self::FirstFit => Policy::partitioned(Fit::First, Order::Given),
            Self::FirstFitDecreasing => Policy::partitioned(Fit::First, Order::Decreasing),
            Self::WorstFit => Policy::partitioned(Fit::Worst, Order::Given),
            Self::EdfWmFirstFit => policy(Fit::First, Order::Given, windows),
            Self::EdfWmDecreasing => policy(Fit::First, Order::Decreasing, windows),
            Self::ZeroLaxityDecreasing => {
                policy(Fit::First, Order::Decreasing, Splitting::ZeroLaxity)
            }
        }
    }

    /// Its name in tables.
    pub fn title(self) -> &'static str {
        match self {
            Self::FirstFit => "P-EDF first fit",
            Self::FirstFitDecreasing => "P-EDF FFD",
            Self::WorstFit => "P-EDF worst fit",
            Self::EdfWmFirstFit => "EDF-WM FF",
            Self::EdfWmDecreasing => "EDF-WM decreasing u",
            Self::ZeroLaxityDecreasing => "zero laxity, decreasing u (ours)",
        }
    }
}

/// What to draw.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Parameters {
    /// Numbers of CPUs.
    pub cpus: Vec<u32>,
    /// Kinds of tasks.
    pub classes: Vec<LoadClass>,
    /// Kinds of deadlines.
    pub deadlines: Vec<Deadlines>,
    /// Loads [1/100].
    pub loads_percent: Vec<u32>,
    /// Sets per point.
    pub sets: u32,
    /// Where the random numbers begin.
    pub seed: u64,
}

impl Default for Parameters {
    /// The whole experiment: 4, 8 and 16 CPUs, loads 50 to 100 %, 1000 sets a point.
    fn default() -> Self {
        Self {
            cpus: vec![4, 8, 16],
            classes: LoadClass::ALL.to_vec(),
            deadlines: vec![Deadlines::Implicit, Deadlines::Constrained],
            loads_percent: (50..=100).step_by(5).collect(),
            sets: 1000,
            seed: 1,
        }
    }
}

/// The results for one kind of set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Series {
    /// CPUs.
    pub cpus: u32,
    /// Kind of tasks.
    pub class: LoadClass,
    /// Kind of deadlines.
    pub deadlines: Deadlines,
    /// Loads [1/100].
    pub loads_percent: Vec<u32>,
    /// Sets drawn per load.
    pub sets: u32,
    /// Sets admitted, for every algorithm at every load.
    pub rows: Vec<Row>,
}

/// What one algorithm admitted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Row {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// Sets admitted, one number per load.
    pub admitted: Vec<u32>,
}

impl Series {
    /// Sets admitted at a load; none if the algorithm or load is not in the table.
    pub fn admitted(&self, algorithm: Algorithm, load_percent: u32) -> Option<u32> {
        let row = self.rows.iter().find(|row| row.algorithm == algorithm)?;
        let at = self
            .loads_percent
            .iter()
            .position(|&load| load == load_percent)?;
        row.admitted.get(at).copied()
    }

    fn draw(parameters: &Parameters, cpus: u32, class: LoadClass, deadlines: Deadlines) -> Self {
        let loads_percent = parameters.loads_percent.clone();
        let row = |algorithm| Row {
            algorithm,
            admitted: vec![0; loads_percent.len()],
        };
        let mut rows: Vec<Row> = Algorithm::ALL.map(row).into();
        for (at, &load_percent) in loads_percent.iter().enumerate() {
            let generator = Generator {
                class,
                deadlines,
                cpus,
                load_percent,
            };
            for set in 0..parameters.sets {
                let mut random = Random::new(generator.seed_of(parameters.seed, set));
                let tasks = generator.draw(&mut random);
                for (row, admitted) in rows.iter_mut().zip(admitted_by_each(&tasks, cpus)) {
                    row.admitted[at] += u32::from(admitted);
                }
            }
        }
        Self {
            cpus,
            class,
            deadlines,
            loads_percent,
            sets: parameters.sets,
            rows,
        }
    }
}

/// Which of [`Algorithm::ALL`] admit a set.
///
/// A task is split only if it fits nowhere as a whole. So an algorithm that splits places a set just
/// as the partitioned one of the same order does, if that one can place it at all.
fn admitted_by_each(tasks: &[Task], cpus: u32) -> [bool; Algorithm::ALL.len()] {
    let place = |algorithm: Algorithm| place_all(tasks, cpus, &algorithm.policy());
    let whole = |placements: &Vec<Placement>| !placements.iter().any(Placement::is_split);
    let in_order = place(Algorithm::EdfWmFirstFit);
    let decreasing = place(Algorithm::EdfWmDecreasing);
    let decreasing_whole = decreasing.as_ref().is_some_and(whole);
    Algorithm::ALL.map(|algorithm| match algorithm {
        Algorithm::FirstFit => in_order.as_ref().is_some_and(whole),
        Algorithm::FirstFitDecreasing => decreasing_whole,
        Algorithm::EdfWmFirstFit => in_order.is_some(),
        Algorithm::EdfWmDecreasing => decreasing.is_some(),
        Algorithm::WorstFit => place(algorithm).is_some(),
        Algorithm::ZeroLaxityDecreasing => decreasing_whole || place(algorithm).is_some(),
    })
}

/// Success ratios. It prints itself as text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Table {
    /// What was drawn.
    pub parameters: Parameters,
    /// One series per kind of set.
    pub series: Vec<Series>,
}

impl Table {
    /// Draws the sets and lets every algorithm place them. Every algorithm sees the same sets.
    pub fn draw(parameters: Parameters) -> Self {
        let mut series = Vec::new();
        for &deadlines in &parameters.deadlines {
            for &class in &parameters.classes {
                for &cpus in &parameters.cpus {
                    series.push(Series::draw(&parameters, cpus, class, deadlines));
                }
            }
        }
        Self { parameters, series }
    }

    /// The series of one kind of set.
    pub fn series(&self, cpus: u32, class: LoadClass, deadlines: Deadlines) -> Option<&Series> {
        let kind = (cpus, class, deadlines);
        let found = |series: &&Series| (series.cpus, series.class, series.deadlines) == kind;
        self.series.iter().find(found)
    }
}

impl fmt::Display for Series {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let class = match self.class {
            LoadClass::Light => "u 0.1-0.5",
            LoadClass::Mixed => "u 0.1-1.0",
            LoadClass::Heavy => "u 0.5-1.0",
        };
        let deadlines = match self.deadlines {
            Deadlines::Implicit => "D = T",
            Deadlines::Constrained => "D in [C, T]",
        };
        let title = format!("{} CPUs, {class}, {deadlines}", self.cpus);
        write!(f, "{title:<34}")?;
        for load in &self.loads_percent {
            write!(f, " {:>5}", format!("{load}%"))?;
        }
        for row in &self.rows {
            write!(f, "\n  {:<32}", row.algorithm.title())?;
            for &admitted in &row.admitted {
                write!(f, " {:>5.3}", f64::from(admitted) / f64::from(self.sets))?;
            }
        }
        writeln!(f)
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Parameters { sets, seed, .. } = self.parameters;
        writeln!(f, "Sets admitted, of {sets} at each load (seed {seed})")?;
        self.series
            .iter()
            .try_for_each(|series| write!(f, "\n{series}"))
    }
}
