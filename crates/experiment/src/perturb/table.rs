//! A perturbed scenario on the terminal.

use andante_report::table::empty_table;
use andante_result::Verdict;
use andante_result::figures::of_expectation;
use andante_result::units::NO_BREAK;
use comfy_table::{Attribute, Cell, CellAlignment, Color};

use super::result::{CaseResult, Distribution, PerturbedResult};

/// A line for every expectation of every case: how often it held, and the figures' distribution; then
/// what the worst were.
pub fn text(result: &PerturbedResult, width: usize, colour: bool) -> String {
    let mut table = empty_table(width, colour);
    let head = ["", "held", "min", "median", "p90", "max"];
    table.set_header(head.map(|word| Cell::new(word).set_alignment(CellAlignment::Right)));
    for case in &result.cases {
        if let Some(name) = &case.case {
            table.add_row([Cell::new(name).add_attribute(Attribute::Bold)]);
        }
        for one in &case.expectations {
            table.add_row(row(one));
        }
    }
    let perturbations = match result.cases.iter().map(|case| case.n).min() {
        Some(n) if n < result.asked => format!("{n} of {} perturbations", result.asked),
        _ => format!("{} perturbations", result.asked),
    };
    format!(
        "{}\n{} · {perturbations} of seed {}\n\n{table}\n{}",
        result.title,
        result.kernel,
        result.seed,
        remarks(result)
    )
}

fn row(one: &Distribution) -> Vec<Cell> {
    let right = |text: String| Cell::new(text).set_alignment(CellAlignment::Right);
    let held = match one.verdict {
        Verdict::NotJudged => right("not judged".to_owned()),
        Verdict::Pass => right(format!("{} of {}", one.held, one.n)),
        Verdict::Fail => right(format!("{} of {}", one.held, one.n)).fg(Color::Red),
    };
    let mut cells = vec![Cell::new(&one.expectation), held];
    if let Some(figures) = &one.figures {
        let shown = [figures.min, figures.p50, figures.p90, figures.max];
        cells.extend(shown.map(|figure| right(figure_of(one, figure))));
    }
    cells
}

/// With its unit.
fn figure_of(one: &Distribution, figure: f64) -> String {
    of_expectation(&one.expectation, figure).replace(NO_BREAK, " ")
}

/// What failed, with the commands that show it.
fn remarks(result: &PerturbedResult) -> String {
    let mut lines = String::new();
    for case in &result.cases {
        let failed = case.expectations.iter();
        for one in failed.filter(|one| one.verdict == Verdict::Fail) {
            let name = case
                .case
                .as_ref()
                .map_or_else(String::new, |case| format!("{case}: "));
            lines += &format!("\n{name}{}\n", one.expectation);
            for worst in &one.worst {
                let measured = figure_of(one, worst.measured);
                lines += &format!("  {measured}  {}\n", worst.command);
            }
        }
        lines += &exceptions(case);
    }
    lines
}

fn exceptions(case: &CaseResult) -> String {
    let line = |one: &super::Exception| {
        format!(
            "\n{} under {}\n  {}\n",
            one.reason, one.scheduler, one.command
        )
    };
    case.exceptions.iter().map(line).collect()
}
