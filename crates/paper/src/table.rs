//! Fills tables: what was measured beside what was published, and whether the two agree.

use andante_judge as judge;
use andante_result::figures::significant;

use super::cell::{CellSpec, failed, judge_cell};
use super::document::{Order, TableSpec};
use super::result::{Check, Mark, Published, Row, Table};
use super::runs::Runs;
use super::source::Source;

/// The table, what was demanded of its columns, and the rows and columns whose explanation of a
/// deviation is no longer needed.
pub(super) fn fill(spec: &TableSpec, runs: &Runs) -> (Table, Vec<Check>, Vec<String>) {
    let measured: Vec<Vec<Result<f64, String>>> = spec
        .rows
        .iter()
        .map(|row| row.cells.iter().map(|cell| measure(cell, runs)).collect())
        .collect();
    let mut stale = Vec::new();
    let mut rows = Vec::new();
    for (row, figures) in spec.rows.iter().zip(&measured) {
        let mut cells = Vec::new();
        for (place, (cell, figure)) in row.cells.iter().zip(figures).enumerate() {
            let baseline = spec.baseline.map(|row| &measured[row][place]);
            let filled = judge_cell(cell, figure, baseline, spec.lower_is_better);
            if cell.explained_here && filled.mark == Mark::Pass {
                stale.push(format!(
                    "{}, {}",
                    row.title, spec.columns[place].column.title
                ));
            }
            cells.push(filled);
        }
        rows.push(Row {
            title: row.title.clone(),
            x: row.x,
            labels: row.labels.clone(),
            cells,
        });
    }
    let table = Table {
        row_title: spec.row_title.clone(),
        label_titles: spec.label_titles.clone(),
        columns: spec.columns.iter().map(|c| c.column.clone()).collect(),
        rows,
        fold: spec.fold,
    };
    let checks = check_orders(spec, &table);
    (table, checks, stale)
}

/// The figure of a cell; an empty reason where nothing is to be measured.
fn measure(cell: &CellSpec, runs: &Runs) -> Result<f64, String> {
    match &cell.source {
        Some(source) => read(source, runs),
        None => Err(String::new()),
    }
}

fn read(source: &Source, runs: &Runs) -> Result<f64, String> {
    let over = source
        .over
        .as_ref()
        .map(|(over, run)| (over, runs.get(run)));
    let run = runs.get(&source.run);
    let figures = judge::quotients(&source.figure, run, over, source.instances)?;
    // A subject without instances has one figure.
    Ok(figures.iter().map(|(_, value)| value).sum::<f64>() * source.scale)
}

/// So many pairs that are not in order are named.
const PAIRS_NAMED: usize = 4;

/// One check for each column that must run in an order.
fn check_orders(spec: &TableSpec, table: &Table) -> Vec<Check> {
    let mut checks = Vec::new();
    for (place, column) in spec.columns.iter().enumerate() {
        let Some(wanted) = &column.order else {
            continue;
        };
        let pairs = pairs(table, place, wanted.order);
        let wrong: Vec<String> = pairs
            .iter()
            .filter(|pair| !pair.holds)
            .map(|pair| pair.words.clone())
            .collect();
        let order = match wanted.order {
            Order::Published(_) => "rows in the published order",
            Order::Falling => "falling from row to row",
            Order::Rising => "rising from row to row",
        };
        let title = &column.column.title;
        // An order of nothing holds always, and says nothing.
        let holds = wrong.is_empty() && !pairs.is_empty();
        checks.push(Check {
            text: match wrong.len() {
                0 => format!("{title}: {order}, {} pairs", pairs.len()),
                n => format!(
                    "{title}: {order}, {n} of {} pairs are not: {}{}",
                    pairs.len(),
                    wrong[..n.min(PAIRS_NAMED)].join("; "),
                    if n > PAIRS_NAMED { " …" } else { "" }
                ),
            },
            mark: if holds {
                Mark::Pass
            } else {
                failed(&wanted.explained)
            },
            why: wanted.why.clone(),
            explained: match holds {
                true => String::new(),
                false => wanted.explained.clone(),
            },
        });
    }
    checks
}

/// Two rows and whether they are in the order demanded.
struct Pair {
    words: String,
    holds: bool,
}

/// The pairs of rows of a column that have an order.
fn pairs(table: &Table, place: usize, order: Order) -> Vec<Pair> {
    let cell = |row: &Row| row.cells[place].clone();
    let mut pairs = Vec::new();
    for (index, first) in table.rows.iter().enumerate() {
        let others = &table.rows[index + 1..];
        let others = match order {
            Order::Published(_) => others,
            Order::Falling | Order::Rising => &others[..others.len().min(1)],
        };
        for second in others {
            let (a, b) = (cell(first), cell(second));
            let first_is_less = match (order, a.published, b.published) {
                (Order::Falling, ..) => false,
                (Order::Rising, ..) => true,
                (
                    Order::Published(apart),
                    Some(Published::Number(a)),
                    Some(Published::Number(b)),
                ) if (a - b).abs() > apart * a.abs().max(b.abs()) => a < b,
                _ => continue,
            };
            let (holds, figures) = match (a.measured, b.measured) {
                (Some(a), Some(b)) => (
                    if first_is_less { a <= b } else { a >= b },
                    format!("{} and {}", significant(a), significant(b)),
                ),
                _ => (false, "not both measured".to_owned()),
            };
            let words = format!("{} and {}: {figures}", first.title, second.title);
            pairs.push(Pair { words, holds });
        }
    }
    pairs
}
