//! Papers as text for the terminal.

use andante_report::table::empty_table;
use andante_result::figures::{number, significant};
use comfy_table::{Attribute, Cell as TextCell, CellAlignment, Color, ColumnConstraint, Width};

use super::result::{
    Cell, Check, Content, Exhibit, Lane, Mark, PaperResult, Published, STARVED, Table, Tally,
};

/// A paper's tables, checks and verdict, at most `width` columns wide. With `colour`, what deviates
/// is set apart by ANSI escapes; without it the text is plain.
///
/// Figures are for the book; only timelines, which are letters anyway, are shown here.
pub fn text(paper: &PaperResult, width: usize, colour: bool) -> String {
    let mut text = format!(
        "{}\n{}, {} {}\n",
        paper.title,
        paper.authors.join(", "),
        paper.venue,
        paper.year
    );
    for exhibit in &paper.exhibits {
        text += &show(exhibit, width, colour);
    }
    for cell in &paper.stale {
        text += &format!("\nNo deviation any more, but explained: {cell}\n");
    }
    text += &format!("\n{}: {}\n", paper.key, verdict(paper.tally()));
    text
}

/// A tally in words.
pub(super) fn verdict(tally: Tally) -> String {
    match (tally.judged(), tally.explained, tally.deviations) {
        (0, ..) => "nothing is compared".to_owned(),
        (judged, 0, 0) => format!("all {judged} figures compared hold"),
        (judged, explained, 0) => format!(
            "{} of {judged} figures compared hold, {explained} deviate for a known reason",
            tally.passed
        ),
        (judged, 0, deviations) => format!(
            "{} of {judged} figures compared hold, {deviations} deviate and nobody knows why",
            tally.passed
        ),
        (judged, explained, deviations) => format!(
            "{} of {judged} figures compared hold, {explained} deviate for a known reason, \
             {deviations} without one",
            tally.passed
        ),
    }
}

fn show(exhibit: &Exhibit, width: usize, colour: bool) -> String {
    let mut text = format!("\n{}  {}\n", exhibit.id, exhibit.title);
    match &exhibit.content {
        Content::Table(table) => text += &draw_table(table, &exhibit.says, width, colour),
        Content::Timeline(timeline) if timeline.slot_ms.is_some() => {
            for lane in &timeline.lanes {
                text += &draw_lane(lane, &exhibit.says);
            }
        }
        _ => text += "  (drawn in the book: --report)\n",
    }
    let paint = |mark: Mark| match (colour, mark) {
        (true, Mark::Deviation) => format!("\u{1b}[31m{}\u{1b}[0m", sign(mark)),
        (true, Mark::Explained) => format!("\u{1b}[33m{}\u{1b}[0m", sign(mark)),
        (true, Mark::Pass) => format!("\u{1b}[32m{}\u{1b}[0m", sign(mark)),
        _ => sign(mark).to_owned(),
    };
    for note in notes(exhibit) {
        for what in &note.what {
            text += &format!("  {} {what}\n", paint(note.mark));
        }
        if note.mark != Mark::Pass {
            text += &wrapped("wanted because", &note.why, width);
        }
        if note.mark == Mark::Explained {
            text += &wrapped("deviates because", &note.explained, width);
        }
    }
    text
}

/// What there is to say about figures and checks, those with the same reasons together.
pub(super) struct Note {
    pub mark: Mark,
    /// What was demanded and what came out.
    pub what: Vec<String>,
    pub why: String,
    pub explained: String,
}

/// Every figure that deviates, and every check.
pub(super) fn notes(exhibit: &Exhibit) -> Vec<Note> {
    let mut found = match &exhibit.content {
        Content::Table(table) => deviations(table),
        _ => Vec::new(),
    };
    found.extend(exhibit.checks.iter().cloned());
    let mut notes: Vec<Note> = Vec::new();
    for check in found {
        let same = |note: &&mut Note| {
            note.mark == check.mark && note.why == check.why && note.explained == check.explained
        };
        match notes.iter_mut().find(same) {
            Some(note) => note.what.push(check.text),
            None => notes.push(Note {
                mark: check.mark,
                what: vec![check.text],
                why: check.why,
                explained: check.explained,
            }),
        }
    }
    notes
}

/// How a mark is written.
pub(super) fn sign(mark: Mark) -> &'static str {
    match mark {
        Mark::Shown => " ",
        Mark::Pass => "✓",
        Mark::Explained => "≈",
        Mark::Deviation => "✗",
    }
}

/// `value` with the column's digits, or four significant ones.
pub(super) fn figure(value: f64, decimals: Option<usize>) -> String {
    match decimals {
        Some(decimals) => number(value, decimals),
        None => significant(value),
    }
}

/// What was published, as the paper would write it.
pub(super) fn published(cell: &Cell, decimals: Option<usize>) -> String {
    match cell.published {
        None => String::new(),
        Some(Published::Starved) => STARVED.to_owned(),
        Some(Published::Number(value)) => format!("{}{}", cell.bound(), figure(value, decimals)),
    }
}

/// What was measured; a dash where there is nothing although it was asked for.
pub(super) fn measured(cell: &Cell, decimals: Option<usize>) -> String {
    match (cell.measured, &cell.missing) {
        (Some(value), _) => figure(value, decimals),
        (None, Some(_)) => STARVED.to_owned(),
        (None, None) => String::new(),
    }
}

/// Measured over published, where that means something.
pub(super) fn ratio(cell: &Cell) -> Option<String> {
    match (cell.published, cell.measured) {
        (Some(Published::Number(published)), Some(measured)) if published != 0.0 => {
            Some(format!("× {}", number(measured / published, 3)))
        }
        _ => None,
    }
}

/// What deviates in a table.
fn deviations(table: &Table) -> Vec<Check> {
    let mut found = Vec::new();
    for row in &table.rows {
        for (column, cell) in table.columns.iter().zip(&row.cells) {
            if !matches!(cell.mark, Mark::Explained | Mark::Deviation) {
                continue;
            }
            let unit = match column.unit.as_str() {
                "" => String::new(),
                unit => format!(" {unit}"),
            };
            let came = match &cell.missing {
                Some(reason) => reason.clone(),
                None => format!("{}{unit}", measured(cell, column.decimals)),
            };
            let wanted = match cell.published {
                Some(Published::Number(_)) => {
                    format!(
                        "{}{unit} ({})",
                        published(cell, column.decimals),
                        cell.demand
                    )
                }
                _ => cell.demand.clone(),
            };
            found.push(Check {
                text: format!("{}, {}: {came}, wanted {wanted}", row.title, column.title),
                mark: cell.mark,
                why: cell.why.clone(),
                explained: cell.explained.clone(),
            });
        }
    }
    found
}

fn draw_table(table: &Table, says: &str, width: usize, colour: bool) -> String {
    let mut drawn = empty_table(width, colour);
    let head = |title: &str| TextCell::new(title).add_attribute(Attribute::Bold);
    let mut header = vec![head(&table.row_title)];
    header.extend(table.label_titles.iter().map(|title| head(title)));
    header.push(head(""));
    header.extend(table.columns.iter().map(|column| {
        let unit = match column.unit.as_str() {
            "" => String::new(),
            unit => format!(" [{unit}]"),
        };
        head(&format!("{}{unit}", column.title)).set_alignment(CellAlignment::Right)
    }));
    drawn.set_header(header);
    for row in &table.rows {
        let cells = || table.columns.iter().zip(&row.cells);
        let words = |first: bool| -> Vec<TextCell> {
            let words = std::iter::once(&row.title).chain(&row.labels);
            words
                .map(|word| match first {
                    true => TextCell::new(word),
                    false => TextCell::new(""),
                })
                .collect()
        };
        let right = |text: String| TextCell::new(text).set_alignment(CellAlignment::Right);
        let mut first = true;
        if cells().any(|(_, cell)| cell.published.is_some()) {
            let mut line = words(true);
            line.push(TextCell::new(says).add_attribute(Attribute::Dim));
            line.extend(cells().map(|(column, cell)| {
                right(format!("{}  ", published(cell, column.decimals)))
                    .add_attribute(Attribute::Dim)
            }));
            drawn.add_row(line);
            first = false;
        }
        let mut line = words(first);
        line.push(TextCell::new("measured"));
        line.extend(cells().map(|(column, cell)| {
            let text = format!("{} {}", measured(cell, column.decimals), sign(cell.mark));
            match cell.mark {
                Mark::Deviation => right(text).fg(Color::Red),
                Mark::Explained => right(text).fg(Color::Yellow),
                Mark::Pass => right(text).fg(Color::Green),
                Mark::Shown => right(text),
            }
        }));
        drawn.add_row(line);
        if cells().any(|(_, cell)| ratio(cell).is_some()) {
            let mut line = words(false);
            line.push(TextCell::new("ratio").add_attribute(Attribute::Dim));
            line.extend(cells().map(|(_, cell)| {
                let ratio = ratio(cell).unwrap_or_default();
                right(format!("{ratio}  ")).add_attribute(Attribute::Dim)
            }));
            drawn.add_row(line);
        }
    }
    keep_words_whole(&mut drawn, table, says);
    let lines = drawn.lines().map(|line| format!("{}\n", line.trim_end()));
    lines.collect()
}

/// Where the table is too wide, titles of columns may be broken, but neither names nor figures.
fn keep_words_whole(drawn: &mut comfy_table::Table, table: &Table, says: &str) {
    const PADDING: usize = 2;
    let width = |text: &str| text.chars().count() + PADDING;
    let widest = |texts: &mut dyn Iterator<Item = &String>| texts.map(|t| width(t)).max();
    let mut least = vec![widest(&mut table.rows.iter().map(|row| &row.title)).unwrap_or(0)];
    for place in 0..table.label_titles.len() {
        let labels = &mut table.rows.iter().filter_map(|row| row.labels.get(place));
        least.push(widest(labels).unwrap_or(0));
    }
    least.push(width("measured").max(width(says)));
    for (place, column) in table.columns.iter().enumerate() {
        // Beside a figure stand a space and its mark, before a ratio a cross and a space.
        let cells = table.rows.iter().map(|row| &row.cells[place]);
        let figures = cells.flat_map(|cell| {
            [
                published(cell, column.decimals),
                measured(cell, column.decimals),
            ]
            .into_iter()
            .chain(ratio(cell))
        });
        least.push(figures.map(|text| width(&text) + 2).max().unwrap_or(0));
    }
    for (place, least) in least.into_iter().enumerate() {
        if let Some(column) = drawn.column_mut(place) {
            let least = u16::try_from(least).unwrap_or(u16::MAX);
            column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(least)));
        }
    }
}

fn draw_lane(lane: &Lane, says: &str) -> String {
    let line = |slots: &[super::result::Slot]| -> String {
        let name = |slot: &super::result::Slot| {
            format!("{}{}", slot.label, if slot.marked { "*" } else { "" })
        };
        slots.iter().map(name).collect::<Vec<_>>().join(" ")
    };
    let mut text = format!("  {}\n", lane.title);
    if !lane.published.is_empty() {
        text += &format!("    {says:<10} {}\n", line(&lane.published));
    }
    text + &format!("    {:<10} {}\n", "measured", line(&lane.measured))
}

/// `text` after `lead`, indented, in lines of at most `width`.
fn wrapped(lead: &str, text: &str, width: usize) -> String {
    const INDENT: &str = "      ";
    let mut lines = String::new();
    let mut line = format!("{INDENT}{lead}:");
    for word in text.split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > width.max(40) {
            lines += &line;
            lines.push('\n');
            line = INDENT.to_owned();
            line += word;
            continue;
        }
        if line != INDENT {
            line.push(' ');
        }
        line += word;
    }
    lines + &line + "\n"
}
