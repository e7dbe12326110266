//! The results of a run as a table for the terminal.

use comfy_table::{Attribute, Cell, CellAlignment, Color, ContentArrangement, Table, presets};

use crate::cases::{Cases, scheduler_names};
use crate::figures::{Block, Detail, Row, blocks, machine_line, scheduler_title};
use crate::result::RunResult;

/// The cases of one scenario as a table at most `width` columns wide, one column per scheduler.
///
/// Rows without data are left out, and the instances of a repeated program are taken together:
/// counts are summed, of times the worst is shown. With `colour`, the best figure of a row and
/// what went wrong are set apart by ANSI escapes; without it the text is plain.
pub fn render(results: &[RunResult], width: usize, colour: bool) -> String {
    let Some(first) = results.first() else {
        return "No results.\n".into();
    };
    let schedulers = scheduler_names(results);
    let cases = Cases::of(results);
    let mut table = empty_table(width, colour);
    table.set_header(header(&schedulers));
    for (i, result) in results.iter().enumerate() {
        if results.len() > 1 {
            if i > 0 {
                table.add_row([""]);
            }
            table.add_row([Cell::new(cases.title(i)).add_attribute(Attribute::Underlined)]);
        }
        for block in blocks(result, &schedulers, Detail::Brief) {
            add_block(&mut table, &block);
        }
    }
    let lines = table
        .lines()
        .map(|line| line.trim_end().to_owned())
        .collect::<Vec<_>>();
    format!(
        "{}\n{}\n\n{}\n",
        first.title,
        machine_line(first),
        lines.join("\n")
    )
}

/// A table without lines, at most `width` columns wide.
pub(crate) fn empty_table(width: usize, colour: bool) -> Table {
    let mut table = Table::new();
    table
        .load_preset(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(u16::try_from(width).unwrap_or(u16::MAX));
    if colour {
        table.enforce_styling();
    } else {
        table.force_no_tty();
    }
    table
}

fn header(schedulers: &[String]) -> Vec<Cell> {
    let name = |name: &String| {
        let cell = Cell::new(scheduler_title(name)).set_alignment(CellAlignment::Right);
        let cell = cell.add_attribute(Attribute::Bold);
        if name == "andante" {
            cell.fg(Color::Cyan)
        } else {
            cell
        }
    };
    std::iter::once(Cell::new(""))
        .chain(schedulers.iter().map(name))
        .collect()
}

fn add_block(table: &mut Table, block: &Block) {
    let title = format!("{}  {}", block.title, block.note);
    table.add_row([Cell::new(title.trim_end()).add_attribute(Attribute::Bold)]);
    for row in &block.rows {
        table.add_row(cells(row));
    }
}

fn cells(row: &Row) -> Vec<Cell> {
    let unit = if row.unit.is_empty() {
        String::new()
    } else {
        format!(" [{}]", row.unit)
    };
    let figure = |figure: &crate::figures::Cell| {
        let cell = Cell::new(&figure.text).set_alignment(CellAlignment::Right);
        match (figure.best, row.trouble) {
            (true, _) => cell.fg(Color::Green),
            (_, true) => cell.fg(Color::Red),
            _ => cell,
        }
    };
    let label = Cell::new(format!("  {}{unit}", row.label));
    std::iter::once(label)
        .chain(row.cells.iter().map(figure))
        .collect()
}
