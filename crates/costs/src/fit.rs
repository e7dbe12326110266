//! What a callback costs, from what it was seen to do: least squares over windows of time.
//!
//! In a window a program ran n times and took t ns, while the scheduler counted decisions c1, c2, …:
//! t = n b + c1 a1 + c2 a2 + …. A window's equation is divided by the root of n, since the scatter of a
//! sum grows with it.

use std::collections::BTreeMap;

use super::guest::Window;

/// What is added to the cost of a run by each of these counters of the scheduler.
pub(super) struct Model {
    /// As the kernel names the program.
    pub program: &'static str,
    pub counters: &'static [&'static str],
}

pub(super) const MODELS: [Model; 4] = [
    Model {
        program: "andante_dispatc",
        counters: &[
            "picks",
            "kept",
            "missed_picks",
            "contract_picks",
            "contract_handed",
            "contract_misses",
        ],
    },
    Model {
        program: "andante_enqueue",
        counters: &["wake_preemptions", "contract_preemptions", "bound"],
    },
    Model {
        program: "andante_running",
        counters: &["unpicked_runs", "contract_picks"],
    },
    Model {
        program: "andante_stoppin",
        counters: &["contract_picks", "timer_preemptions"],
    },
];

/// A fitted model.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fit {
    /// Of a run that does nothing that is counted [ns].
    pub base_ns: f64,
    /// What a decision adds [ns]; of counters that moved in a tenth of the windows at least.
    pub adds_ns: Vec<(&'static str, f64)>,
    pub windows: usize,
    /// The part of the variance of a run's mean cost that it explains, weighted by runs.
    pub explained: f64,
    /// Mean distance from what was measured, weighted by runs [ns per run].
    pub off_ns: f64,
}

/// Fits the model; `empty_ns` of each run are the counting's own. None if there is too little to go by.
pub(super) fn fit(model: &Model, windows: &[&Window], empty_ns: f64) -> Option<Fit> {
    let ran = |window: &&&Window| window.programs.get(model.program).is_some_and(|p| p.0 > 0);
    let windows: Vec<&Window> = windows.iter().filter(ran).copied().collect();
    let moved = |counter: &&&str| {
        let moves = windows.iter().filter(|w| counted(w, counter) > 0.0).count();
        moves * 10 >= windows.len()
    };
    let counters: Vec<&'static str> = model.counters.iter().filter(moved).copied().collect();
    let rows: Vec<(f64, Vec<f64>, f64)> = windows
        .iter()
        .map(|window| {
            let (runs, ns) = window.programs[model.program];
            let runs = runs as f64;
            let mut row = vec![runs];
            row.extend(counters.iter().map(|counter| counted(window, counter)));
            (runs, row, ns as f64 - runs * empty_ns)
        })
        .collect();
    if rows.len() < 4 * (counters.len() + 1) {
        return None;
    }
    let solution = least_squares(&rows)?;
    let predicted = |row: &[f64]| row.iter().zip(&solution).map(|(x, a)| x * a).sum::<f64>();
    let all: f64 = rows.iter().map(|(runs, ..)| runs).sum();
    let mean = rows.iter().map(|(_, _, ns)| ns).sum::<f64>() / all;
    let weighted = |of: &dyn Fn(&[f64], f64, f64) -> f64| {
        rows.iter()
            .map(|(runs, row, ns)| runs * of(row, *runs, *ns))
            .sum::<f64>()
            / all
    };
    let variance = weighted(&|_, runs, ns| (ns / runs - mean).powi(2));
    let left = weighted(&|row, runs, ns| ((ns - predicted(row)) / runs).powi(2));
    Some(Fit {
        base_ns: solution[0],
        adds_ns: counters
            .into_iter()
            .zip(solution[1..].iter().copied())
            .collect(),
        windows: rows.len(),
        explained: if variance > 0.0 {
            1.0 - left / variance
        } else {
            1.0
        },
        off_ns: weighted(&|row, runs, ns| ((ns - predicted(row)) / runs).abs()),
    })
}

fn counted(window: &Window, counter: &str) -> f64 {
    window.counters.get(counter).copied().unwrap_or(0) as f64
}

/// Solves the normal equations of `rows` (weight's inverse, coefficients, value) by elimination with the
/// largest pivot; none if they do not determine all unknowns.
fn least_squares(rows: &[(f64, Vec<f64>, f64)]) -> Option<Vec<f64>> {
    let unknowns = rows.first()?.1.len();
    let mut matrix = vec![vec![0.0; unknowns + 1]; unknowns];
    for (scatter, row, value) in rows {
        for (line, x) in matrix.iter_mut().zip(row) {
            for (cell, y) in line.iter_mut().zip(row.iter().chain([value])) {
                *cell += x * y / scatter;
            }
        }
    }
    for column in 0..unknowns {
        let size = |line: &usize| matrix[*line][column].abs();
        let pivot = (column..unknowns).max_by(|a, b| size(a).total_cmp(&size(b)))?;
        if size(&pivot) < 1e-9 {
            return None;
        }
        matrix.swap(column, pivot);
        let above = matrix[column].clone();
        for (_, line) in matrix
            .iter_mut()
            .enumerate()
            .filter(|(at, _)| *at != column)
        {
            let factor = line[column] / above[column];
            for (cell, value) in line.iter_mut().zip(&above) {
                *cell -= factor * value;
            }
        }
    }
    let value = |at: usize| matrix[at][unknowns] / matrix[at][at];
    Some((0..unknowns).map(value).collect())
}

/// All windows' runs of each program together.
pub(super) fn sums<'a>(windows: impl Iterator<Item = &'a Window>) -> BTreeMap<String, (u64, u64)> {
    let mut sums: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for (name, (runs, ns)) in windows.flat_map(|window| &window.programs) {
        let sum = sums.entry(name.clone()).or_default();
        sum.0 += runs;
        sum.1 += ns;
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(runs: u64, picks: u64, kept: u64, ns: u64) -> Window {
        let counters = [("picks", picks), ("kept", kept)];
        Window {
            length_ns: 1,
            programs: [("andante_dispatc".to_owned(), (runs, ns))].into(),
            counters: counters.map(|(name, n)| (name.to_owned(), n)).into(),
        }
    }

    #[test]
    fn a_cost_that_is_made_of_parts_is_taken_apart() {
        // 100 ns a run, 300 more with a pick, 50 if the task is kept, 20 of which count the run.
        let windows: Vec<Window> = (1..40)
            .map(|n: u64| {
                let (runs, picks, kept) = (10 + n % 7, n % 5, n % 3);
                window(runs, picks, kept, runs * 120 + picks * 300 + kept * 50)
            })
            .collect();
        let fit = fit(&MODELS[0], &windows.iter().collect::<Vec<_>>(), 20.0).unwrap();
        assert!((fit.base_ns - 100.0).abs() < 1e-6, "{fit:?}");
        let [picks, kept] = fit.adds_ns[..] else {
            panic!("counters that never moved are left out: {fit:?}")
        };
        assert!(picks.0 == "picks" && (picks.1 - 300.0).abs() < 1e-6);
        assert!(kept.0 == "kept" && (kept.1 - 50.0).abs() < 1e-6);
        assert!(fit.explained > 0.999_999 && fit.off_ns < 1e-6);
    }

    #[test]
    fn what_cannot_be_told_apart_is_not_made_up() {
        let windows: Vec<Window> = (1..40).map(|n| window(n, n, 0, 400 * n)).collect();
        assert_eq!(
            fit(&MODELS[0], &windows.iter().collect::<Vec<_>>(), 0.0),
            None
        );
        let few = [window(1, 0, 0, 5)];
        assert_eq!(fit(&MODELS[0], &few.iter().collect::<Vec<_>>(), 0.0), None);
    }
}
