//! A sweep on the terminal.

use andante_report::table::empty_table;
use andante_result::Verdict;
use andante_result::figures::significant;
use comfy_table::{Attribute, Cell, CellAlignment, Color, ContentArrangement, Table};

use super::measure::{MEASURES, Measure};
use super::result::{
    Distribution, LoadResult, MeasureResult, RequirementResult, SweepResult, Worst,
};

/// The distributions, the draws that keep their bounds by load, and the worst draws under the first
/// scheduler that is not the reference.
pub fn text(result: &SweepResult, colour: bool) -> String {
    let mut text = format!("{}\n{}\n\n", result.title, headline(result));
    text += &lines(distributions(result, colour));
    text += "\nDraws that keep every bound, by load (what films, keys and sound ask for, of the CPUs)\n";
    text += &lines(by_load(result, colour));
    text += &requirements(result);
    text += &worst(result);
    text
}

/// One line: how many draws keep every bound, under each scheduler, and whether what is required holds.
pub fn brief(result: &SweepResult) -> String {
    let names = result.schedulers.iter().enumerate();
    let names: Vec<_> = names
        .map(|(at, name)| format!("{name} {}", result.kept(at)))
        .collect();
    let required = result.requirements.iter().map(|one| {
        let word = match one.verdict {
            Verdict::Pass => "≥",
            Verdict::Fail => "BELOW",
            Verdict::NotJudged => "not judged against",
        };
        format!(
            ", {} of {} that count {word} {}",
            one.kept, one.n, one.share
        )
    });
    format!(
        "{}: of {} draws keep every bound {}{}\n",
        result.family,
        result.draws.len(),
        names.join(", "),
        required.collect::<String>()
    )
}

/// What is required, and whether the sweep shows it.
fn requirements(result: &SweepResult) -> String {
    let line = |one: &RequirementResult| {
        let word = match one.verdict {
            Verdict::Pass => "holds",
            Verdict::Fail => "FAILS",
            Verdict::NotJudged => "not judged",
        };
        format!(
            "\n{}: {word}, {} of {} do\n",
            one.requirement, one.kept, one.n
        )
    };
    result.requirements.iter().map(line).collect()
}

/// What was swept, in one line.
pub(super) fn headline(result: &SweepResult) -> String {
    let loads = || result.draws.iter().map(|draw| draw.load);
    let draws = match (result.draws.len(), result.draws_asked) {
        (done, asked) if done as u64 == asked => format!("{done} draws"),
        (done, asked) => format!("{done} of {asked} draws"),
    };
    format!(
        "{} · {draws} of seed {} · loads {:.2} to {:.2} · compared with {}",
        result.simulator,
        result.seed,
        loads().fold(f64::INFINITY, f64::min).min(1e3),
        loads().fold(0.0, f64::max),
        result.reference,
    )
}

/// The measure that a result is of.
pub(super) fn measure_of(result: &MeasureResult) -> &'static Measure {
    let of = |measure: &&Measure| measure.name == result.name;
    MEASURES.iter().find(of).unwrap_or(&MEASURES[0])
}

/// `frames not in time [%]`
pub(super) fn title(measure: &Measure) -> String {
    format!("{} [{}]", measure.title, measure.unit)
}

/// The bound of a draw, e.g. `≤ 10 ms`; `` if nothing is.
pub(super) fn bound(result: &MeasureResult) -> String {
    let measure = measure_of(result);
    let word = if measure.more { "≥" } else { "≤" };
    let shown = |bound| {
        format!(
            "{word} {} {}",
            significant(bound * measure.scale),
            measure.unit
        )
    };
    result.bound.map_or_else(String::new, shown)
}

/// The margin within which a draw is as good as the reference, e.g. `+2 ms`.
pub(super) fn within(result: &MeasureResult) -> String {
    let measure = measure_of(result);
    let sign = if measure.more { "−" } else { "+" };
    let within = significant(result.within * measure.scale);
    format!("{sign}{within} {}", measure.unit)
}

/// A part of the draws; all is only all of them.
pub(super) fn percent(share: f64) -> String {
    let rounded = (share * 1e3).round() / 10.0;
    match rounded >= 100.0 && share < 1.0 {
        true => "99.9 %".to_owned(),
        false => format!("{rounded:.1} %"),
    }
}

pub(super) fn lines(table: Table) -> String {
    let line = |line: String| format!("{}\n", line.trim_end());
    table.lines().map(line).collect()
}

/// A table whose figures are never broken: some 90 columns wide with the longest that there are.
pub(super) fn unbroken_table(colour: bool) -> Table {
    let mut table = empty_table(usize::from(u16::MAX), colour);
    table.set_content_arrangement(ContentArrangement::Disabled);
    table
}

pub(super) fn right(text: impl Into<String>) -> Cell {
    Cell::new(text.into()).set_alignment(CellAlignment::Right)
}

pub(super) fn bold(text: impl Into<String>) -> Cell {
    right(text).add_attribute(Attribute::Bold)
}

/// A part of the draws, set apart if it is not all of them.
fn judged(share: Option<f64>) -> Cell {
    match share {
        None => right(""),
        Some(1.0) => right(percent(1.0)).fg(Color::Green),
        Some(share) => right(percent(share)).fg(Color::Red),
    }
}

fn distributions(result: &SweepResult, colour: bool) -> Table {
    let mut table = unbroken_table(colour);
    let header = [
        "draws", "min", "p50", "p90", "p99", "max", "in bound", "as good",
    ];
    table.set_header(std::iter::once(Cell::new("")).chain(header.map(bold)));
    for one in &result.measures {
        let measure = measure_of(one);
        let title = Cell::new(title(measure)).add_attribute(Attribute::Bold);
        let blank = std::iter::repeat_n(Cell::new(""), 6);
        let asked = [right(bound(one)), right(within(one))];
        table.add_row(std::iter::once(title).chain(blank).chain(asked));
        for scheduler in &one.schedulers {
            table.add_row(row(measure, scheduler));
        }
    }
    table
}

fn row(measure: &Measure, of: &Distribution) -> Vec<Cell> {
    let name = Cell::new(format!("  {}", of.scheduler));
    let figures = [of.min, of.p50, of.p90, of.p99, of.max];
    let figures = figures.map(|figure| right(measure.show(figure)));
    let judged = [judged(of.share_in_bound), judged(of.share_near_reference)];
    let first = [name, right(of.n.to_string())];
    first.into_iter().chain(figures).chain(judged).collect()
}

/// `0.3 to 0.4`
pub(super) fn range(load: &LoadResult) -> String {
    match load.to {
        Some(to) => format!("{:.1} to {to:.1}", load.from),
        None => format!("{:.1} and more", load.from),
    }
}

fn by_load(result: &SweepResult, colour: bool) -> Table {
    let mut table = unbroken_table(colour);
    let names = result.schedulers.iter().map(bold);
    let header = [
        Cell::new("  load").add_attribute(Attribute::Bold),
        bold("draws"),
    ];
    table.set_header(header.into_iter().chain(names));
    for load in &result.by_load {
        let good = load
            .good
            .iter()
            .map(|good| judged(Some(*good as f64 / load.n as f64)));
        let first = [
            Cell::new(format!("  {}", range(load))),
            right(load.n.to_string()),
        ];
        table.add_row(first.into_iter().chain(good));
    }
    table
}

/// Whose worst draws are of interest: the first that is compared.
pub(super) fn subject(result: &SweepResult) -> &str {
    let others = |name: &&String| **name != result.reference;
    result
        .schedulers
        .iter()
        .find(others)
        .unwrap_or(&result.reference)
}

/// Those of the worst that are bad: worse than under the reference by more than is as good; if there is
/// nothing to compare with, beyond the bound. What nobody can keep is nobody's fault.
pub(super) fn bad<'a>(of: &MeasureResult, scheduler: &'a Distribution) -> Vec<&'a Worst> {
    let measure = measure_of(of);
    let bad = |one: &&Worst| match (one.reference, of.bound) {
        (Some(reference), _) => measure.worse(one.figure, reference) > of.within,
        (None, Some(bound)) => !measure.keeps(one.figure, bound),
        (None, None) => false,
    };
    scheduler.worst.iter().filter(bad).collect()
}

fn worst(result: &SweepResult) -> String {
    let subject = subject(result);
    let mut text = String::new();
    let mut once = false;
    for one in &result.measures {
        let Some(scheduler) = one.schedulers.iter().find(|of| of.scheduler == subject) else {
            continue;
        };
        let measure = measure_of(one);
        for (number, worst) in bad(one, scheduler).into_iter().enumerate() {
            if number == 0 {
                text += &format!("\n{}, the worst under {}\n", measure.title, subject);
            }
            let reference = worst.reference.map_or_else(String::new, |reference| {
                format!(", reference {},", measure.show_with_unit(reference))
            });
            text += &format!(
                "  {}: {}{reference} at load {:.2}\n    {}\n",
                worst.draw,
                measure.show_with_unit(worst.figure),
                worst.load,
                worst.on_sim
            );
            match worst.on_vm == worst.on_sim.replace("--on sim", "--on vm") {
                true => once = true,
                false => text += &format!("    {}\n", worst.on_vm),
            }
        }
    }
    if text.is_empty() {
        return match subject == result.reference {
            true => format!("\nUnder {subject} every draw keeps its bounds.\n"),
            false => format!(
                "\nUnder {subject} every draw is as good as under {}.\n",
                result.reference
            ),
        };
    }
    if once {
        text += "\nWhere one command is given, the same with `--on vm` runs the draw on a real kernel.\n";
    }
    text
}
