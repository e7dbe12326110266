// SPDX-License-Identifier: GPL-2.0
//! Success ratios of EDF-WM: the part of random task sets that it admits, beside partitioned EDF and
//! beside our zero-laxity splitting (Kato, Yamasaki, Ishikawa, ECRTS 2009; drawn as by RESCH's
//! `schedbench`). Nothing is run: admission is an exact test.

mod samples;

use andante_admission::experiment::{Algorithm, Deadlines, LoadClass, Parameters, Series, Table};

use super::Output;
use crate::result::{self, Cell, Chart, Column, Content, Mark, Published, Row};

/// Sets at each point beside the reference: so many that the error of sampling is the reference's.
const SETS: u32 = 20_000;
/// Sets at each point of the overview.
const OVERVIEW_SETS: u32 = 200;
/// Where the random numbers begin.
const SEED: u64 = 1;
/// How far a ratio may be from the reference [points of 100].
const WITHIN_POINTS: f64 = 2.0;

/// One kind of set, and what the reference gives for some algorithms at each load.
struct Reference {
    title: &'static str,
    cpus: u32,
    class: LoadClass,
    deadlines: Deadlines,
    /// Sets that the reference drew at each load.
    sets: u32,
    loads_percent: &'static [u32],
    ratios: &'static [(Algorithm, &'static [f64])],
}

/// The reference curves: exact tests by another program, 1000 sets a point (500 for 16 CPUs and for
/// constrained deadlines).
const REFERENCES: &[Reference] = &[
    Reference {
        title: "4 CPUs, u 0.1-1.0",
        cpus: 4,
        class: LoadClass::Mixed,
        deadlines: Deadlines::Implicit,
        sets: 1000,
        loads_percent: &[70, 75, 80, 85, 90, 95],
        ratios: &[
            (
                Algorithm::FirstFit,
                &[0.999, 0.987, 0.947, 0.830, 0.547, 0.182],
            ),
            (
                Algorithm::FirstFitDecreasing,
                &[0.999, 0.996, 0.968, 0.911, 0.735, 0.373],
            ),
            (
                Algorithm::WorstFit,
                &[0.866, 0.748, 0.578, 0.398, 0.190, 0.033],
            ),
            (
                Algorithm::EdfWmFirstFit,
                &[1.0, 1.0, 0.998, 0.978, 0.886, 0.608],
            ),
            (
                Algorithm::EdfWmDecreasing,
                &[1.0, 1.0, 0.999, 0.997, 0.978, 0.866],
            ),
        ],
    },
    Reference {
        title: "8 CPUs, u 0.1-1.0",
        cpus: 8,
        class: LoadClass::Mixed,
        deadlines: Deadlines::Implicit,
        sets: 1000,
        loads_percent: &[90, 95],
        ratios: &[
            (Algorithm::FirstFitDecreasing, &[0.709, 0.311]),
            (Algorithm::EdfWmDecreasing, &[0.996, 0.894]),
        ],
    },
    Reference {
        title: "16 CPUs, u 0.1-1.0",
        cpus: 16,
        class: LoadClass::Mixed,
        deadlines: Deadlines::Implicit,
        sets: 500,
        loads_percent: &[95],
        ratios: &[
            (Algorithm::FirstFitDecreasing, &[0.320]),
            (Algorithm::EdfWmDecreasing, &[0.978]),
        ],
    },
    Reference {
        title: "4 CPUs, u 0.5-1.0",
        cpus: 4,
        class: LoadClass::Heavy,
        deadlines: Deadlines::Implicit,
        sets: 1000,
        loads_percent: &[85, 90],
        ratios: &[
            (Algorithm::FirstFitDecreasing, &[0.532, 0.229]),
            (Algorithm::EdfWmDecreasing, &[0.966, 0.850]),
        ],
    },
    Reference {
        title: "4 CPUs, u 0.1-1.0, D in [C, T]",
        cpus: 4,
        class: LoadClass::Mixed,
        deadlines: Deadlines::Constrained,
        sets: 500,
        loads_percent: &[75, 80, 85],
        ratios: &[
            (Algorithm::FirstFitDecreasing, &[0.714, 0.514, 0.312]),
            (Algorithm::EdfWmDecreasing, &[0.874, 0.720, 0.470]),
        ],
    },
];

fn draw(
    (cpus, class, deadlines): (u32, LoadClass, Deadlines),
    loads_percent: &[u32],
    sets: u32,
) -> Series {
    let table = Table::draw(Parameters {
        cpus: vec![cpus],
        classes: vec![class],
        deadlines: vec![deadlines],
        loads_percent: loads_percent.to_vec(),
        sets,
        seed: SEED,
    });
    table
        .series
        .into_iter()
        .next()
        .expect("one kind was asked for")
}

/// Sets admitted of 100; none if nothing was drawn.
fn percent(series: &Series, algorithm: Algorithm, load_percent: u32) -> Option<f64> {
    let admitted = series.admitted(algorithm, load_percent)?;
    Some(100.0 * f64::from(admitted) / f64::from(series.sets))
}

fn columns() -> Vec<Column> {
    let column = |algorithm: Algorithm| Column {
        title: algorithm.title().to_owned(),
        unit: "%".to_owned(),
        decimals: Some(1),
    };
    Algorithm::ALL.map(column).into()
}

/// A cell beside what the reference says [%], a ratio of `sets` sets: beyond two points the difference
/// is explained as long as it is within two of its own standard errors.
fn judged(measured: f64, reference: f64, sets: u32) -> Cell {
    let p = measured / 100.0;
    let both = 1.0 / f64::from(sets) + 1.0 / f64::from(SETS);
    let error = 100.0 * (p * (1.0 - p) * both).sqrt();
    let distance = (measured - reference).abs();
    let (mark, explained) = if distance <= WITHIN_POINTS {
        (Mark::Pass, String::new())
    } else if distance <= 2.0 * error {
        let text = format!(
            "{distance:.1} points off a reference of {sets} sets, which has a standard error of \
             {error:.1} points; the table of two samples tells how many such are to be expected"
        );
        (Mark::Explained, text)
    } else {
        (Mark::Deviation, String::new())
    };
    Cell {
        published: Some(Published::Number(reference)),
        measured: Some(measured),
        missing: None,
        mark,
        demand: format!("within {WITHIN_POINTS} points"),
        why: "the same generator and exact tests on both sides".to_owned(),
        explained,
    }
}

/// The reference's points, judged.
pub(super) fn reference() -> Result<Output, String> {
    let mut rows = Vec::new();
    for kind in REFERENCES {
        let series = draw(
            (kind.cpus, kind.class, kind.deadlines),
            kind.loads_percent,
            SETS,
        );
        for (at, &load) in kind.loads_percent.iter().enumerate() {
            let cell = |algorithm: Algorithm| {
                let measured = percent(&series, algorithm, load).expect("it was drawn");
                let known = kind.ratios.iter().find(|(known, _)| *known == algorithm);
                match known {
                    Some((_, ratios)) => judged(measured, 100.0 * ratios[at], kind.sets),
                    None => shown(measured),
                }
            };
            rows.push(Row {
                title: format!("{}, load {load} %", kind.title),
                x: None,
                labels: Vec::new(),
                cells: Algorithm::ALL.map(cell).into(),
            });
        }
    }
    Ok((table("sets", rows, false), Vec::new()))
}

fn shown(measured: f64) -> Cell {
    Cell {
        measured: Some(measured),
        ..Cell::default()
    }
}

fn table(row_title: &str, rows: Vec<Row>, fold: bool) -> Content {
    Content::Table(result::Table {
        row_title: row_title.to_owned(),
        label_titles: Vec::new(),
        columns: columns(),
        rows,
        fold,
    })
}

/// Whether reference and ours are samples of one population.
pub(super) use samples::table as samples;

/// 4, 8 and 16 CPUs, light, mixed and heavy tasks, 50 to 100 % load.
pub(super) fn overview() -> Result<Output, String> {
    let loads: Vec<u32> = (50..=100).step_by(5).collect();
    let mut rows = Vec::new();
    for cpus in [4, 8, 16] {
        for (class, words) in [
            (LoadClass::Light, "light"),
            (LoadClass::Mixed, "mixed"),
            (LoadClass::Heavy, "heavy"),
        ] {
            let series = draw((cpus, class, Deadlines::Implicit), &loads, OVERVIEW_SETS);
            for &load in &loads {
                let cell =
                    |algorithm| shown(percent(&series, algorithm, load).expect("it was drawn"));
                rows.push(Row {
                    title: format!("{cpus} CPUs, {words}, {load} %"),
                    x: None,
                    labels: Vec::new(),
                    cells: Algorithm::ALL.map(cell).into(),
                });
            }
        }
    }
    Ok((table("sets", rows, true), Vec::new()))
}

/// The first kind of the reference as curves over the load.
pub(super) fn curves() -> Result<Output, String> {
    let kind = &REFERENCES[0];
    let loads: Vec<u32> = (50..=100).step_by(5).collect();
    let series = draw(
        (kind.cpus, kind.class, kind.deadlines),
        &loads,
        OVERVIEW_SETS,
    );
    let curve = |algorithm: Algorithm| {
        let known = kind.ratios.iter().find(|(known, _)| *known == algorithm);
        let published = |load: &u32| {
            let at = kind.loads_percent.iter().position(|known| known == load)?;
            Some(100.0 * known?.1[at])
        };
        result::Series {
            title: algorithm.title().to_owned(),
            published: loads.iter().map(published).collect(),
            measured: loads
                .iter()
                .map(|&load| percent(&series, algorithm, load))
                .collect(),
        }
    };
    let chart = Chart {
        x_label: "load [%]".to_owned(),
        y_label: "sets admitted [%]".to_owned(),
        log_y: false,
        rows: loads
            .iter()
            .map(|load| (load.to_string(), f64::from(*load)))
            .collect(),
        series: Algorithm::ALL.map(curve).into(),
    };
    Ok((Content::Lines(chart), Vec::new()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_beyond_the_error_of_sampling_is_a_deviation() {
        assert_eq!(judged(52.0, 50.0, 1000).mark, Mark::Pass);
        assert_eq!(judged(53.0, 50.0, 1000).mark, Mark::Explained);
        assert_eq!(judged(53.5, 50.0, 1000).mark, Mark::Deviation);
        assert_eq!(judged(97.9, 100.0, 1000).mark, Mark::Deviation);
    }

    #[test]
    fn every_reference_has_a_ratio_for_each_load() {
        for kind in REFERENCES {
            for (algorithm, ratios) in kind.ratios {
                let title = algorithm.title();
                assert_eq!(
                    ratios.len(),
                    kind.loads_percent.len(),
                    "{}: {title}",
                    kind.title
                );
            }
        }
    }
}
