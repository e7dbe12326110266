//! Several families, swept by the same schedulers, side by side on the terminal.

use andante_result::figures::significant;
use comfy_table::{Attribute, Cell, Table};

use super::measure::{MEASURES, Measure};
use super::result::{DrawResult, SweepResult};
use super::table::{bold, lines, right, subject, unbroken_table};

/// The scheduler of a machine that nobody has configured: under Andante nobody should be worse off.
const STOCK: &str = "stock";

/// How many draws of each family keep every bound, by scheduler; and in how many the first that is
/// compared is worse than the stock scheduler, if that takes part.
pub fn families(results: &[SweepResult], colour: bool) -> String {
    let Some(first) = results.first() else {
        return String::new();
    };
    let mut text = "Draws that keep every bound, of each family\n".to_owned();
    text += &lines(good(results, &first.schedulers, colour));
    let subject = subject(first);
    if subject != STOCK && first.schedulers.iter().any(|name| name == STOCK) {
        text += &format!("\nDraws in which {subject} is worse than {STOCK}, by more than\n");
        text += &lines(worse(results, subject, colour));
    }
    text
}

fn header(columns: impl Iterator<Item = String>) -> Vec<Cell> {
    let family = Cell::new("  family").add_attribute(Attribute::Bold);
    let first = [family, bold("draws")];
    first.into_iter().chain(columns.map(bold)).collect()
}

fn row(name: &str, draws: usize, counts: &[u64]) -> Vec<Cell> {
    let name = Cell::new(format!("  {name}"));
    let counts = counts.iter().map(|count| right(count.to_string()));
    let first = [name, right(draws.to_string())];
    first.into_iter().chain(counts).collect()
}

/// A row for each family, and one for all of them.
fn rows(table: &mut Table, results: &[SweepResult], counts: impl Fn(&SweepResult) -> Vec<u64>) {
    let mut all = Vec::new();
    for result in results {
        let counts = counts(result);
        table.add_row(row(&result.family, result.draws.len(), &counts));
        all.resize(counts.len(), 0);
        for (sum, count) in all.iter_mut().zip(counts) {
            *sum += count;
        }
    }
    let draws = results.iter().map(|result| result.draws.len()).sum();
    table.add_row(row("all", draws, &all));
}

fn good(results: &[SweepResult], schedulers: &[String], colour: bool) -> Table {
    let mut table = unbroken_table(colour);
    table.set_header(header(schedulers.iter().cloned()));
    rows(&mut table, results, |result| {
        let kept = |name: &String| result.place_of(name).map_or(0, |at| result.kept(at));
        schedulers.iter().map(kept).collect()
    });
    table
}

/// The measures that any of these results has and that are compared with the stock scheduler; and by how much a
/// figure must be worse to count as worse.
fn compared(results: &[SweepResult]) -> Vec<(&'static Measure, f64)> {
    let draws = || results.iter().flat_map(|result| &result.draws);
    let has = |m: &Measure| draws().any(|draw| draw.figures.iter().any(|f| f.contains_key(m.name)));
    let compared = MEASURES.iter().filter(|m| has(m));
    compared
        .filter_map(|m| Some((m, m.worse_than_stock?)))
        .collect()
}

fn worse(results: &[SweepResult], subject: &str, colour: bool) -> Table {
    let mut table = unbroken_table(colour);
    let by = |(measure, by): (&Measure, f64)| {
        let kind = measure.title.split([' ', ',']).next().unwrap_or_default();
        format!(
            "{kind} {} {}",
            significant(by * measure.scale),
            measure.unit
        )
    };
    let compared = compared(results);
    table.set_header(header(
        compared.iter().copied().map(by).chain(["any".to_owned()]),
    ));
    rows(&mut table, results, |result| {
        let mut counts = vec![0; compared.len() + 1];
        for draw in &result.draws {
            let is_worse = worse_in(result, draw, subject, &compared);
            for (count, worse) in counts.iter_mut().zip(&is_worse) {
                *count += u64::from(*worse);
            }
            *counts.last_mut().expect("one for any") += u64::from(is_worse.contains(&true));
        }
        counts
    });
    table
}

/// By measure: whether the draw is worse under this scheduler than under the stock scheduler. Batch jobs
/// that have what films lack under stock are no measure: beyond what they have under the reference,
/// stock's do not count.
fn worse_in(
    result: &SweepResult,
    draw: &DrawResult,
    subject: &str,
    compared: &[(&Measure, f64)],
) -> Vec<bool> {
    let figure = |scheduler: &str, measure: &Measure| {
        let at = result.place_of(scheduler)?;
        draw.figures.get(at)?.get(measure.name).copied()
    };
    let worse = |&(measure, by): &(&Measure, f64)| {
        let own = figure(subject, measure)?;
        let mut stock = figure(STOCK, measure)?;
        if measure.more {
            stock = figure(&result.reference, measure).map_or(stock, |most| stock.min(most));
        }
        Some(measure.worse(own, stock) > by)
    };
    let worse = compared.iter().map(worse);
    worse.map(|worse| worse == Some(true)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Draws of these figures: late share, key, batch; under andante, then stock; the reference is third.
    fn swept(family: &str, figures: &[[[f64; 3]; 3]]) -> SweepResult {
        let names = ["late_share", "key_p99_ms", "batch"];
        let named = |of: &[f64; 3]| -> BTreeMap<String, f64> {
            names
                .iter()
                .map(|name| (*name).to_owned())
                .zip(*of)
                .collect()
        };
        let draw = |of: &[[f64; 3]; 3]| {
            serde_json::json!({
                "draw": "1/0", "load": 0.5, "cpus": 1, "work_scale": 1.0,
                "figures": of.iter().map(named).collect::<Vec<_>>(),
            })
        };
        let n = figures.len();
        serde_json::from_value(serde_json::json!({
            "schema": super::super::SCHEMA, "version": super::super::VERSION, "family": family, "title": "",
            "simulator": "", "seed": 1, "draws_asked": n, "schedulers": ["andante", "stock", "eevdf-fifo"],
            "reference": "eevdf-fifo", "measures": [],
            "by_load": [{"from": 0.0, "n": n, "good": [n, 0, n]}],
            "draws": figures.iter().map(draw).collect::<Vec<_>>(),
        }))
        .unwrap()
    }

    fn cells(text: &str, family: &str) -> Vec<Vec<String>> {
        let rows = text
            .lines()
            .map(|line| line.split_whitespace().map(str::to_owned).collect());
        rows.filter(|row: &Vec<String>| row.first().is_some_and(|name| name == family))
            .collect()
    }

    #[test]
    fn families_stand_side_by_side_and_are_compared_with_stock() {
        let fifo = [0.0, 1.0, 1.0];
        let films = swept(
            "films",
            &[
                [[0.0, 5.0, 0.98], [0.5, 9.0, 1.7], fifo], // stock's jobs have what its films lack
                [[0.1, 5.0, 0.96], [0.0, 3.0, 1.0], fifo],
            ],
        );
        let keys = swept("keys", &[[[0.0, 2.5, 1.0], [0.0, 1.0, 1.0], fifo]]);
        let text = families(&[films, keys], false);
        assert_eq!(
            cells(&text, "films"),
            [
                vec!["films", "2", "2", "0", "2"],
                vec!["films", "2", "1", "1", "1", "1"]
            ]
        );
        assert_eq!(cells(&text, "keys")[1], ["keys", "1", "0", "1", "0", "1"]);
        assert_eq!(
            cells(&text, "all"),
            [
                vec!["all", "3", "3", "0", "3"],
                vec!["all", "3", "1", "2", "1", "2"]
            ]
        );
    }
}
