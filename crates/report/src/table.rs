//! The results of a run as a table for the terminal.

use andante_result::RunResult;
use andante_result::cases::{Cases, scheduler_names};
use andante_result::figures::{Detail, Row, blocks, machine_line};
use andante_result::title::scheduler_title;
use andante_result::units::NO_BREAK;
use comfy_table::{
    Attribute, Cell, CellAlignment, Color, ColumnConstraint, ContentArrangement, Table, Width,
    presets,
};

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
    let mut drawn = Drawn::new(width, colour, &schedulers);
    for (i, result) in results.iter().enumerate() {
        if results.len() > 1 {
            if i > 0 {
                drawn.table.add_row([""]);
            }
            drawn.title(&cases.title(i), Attribute::Underlined);
        }
        for block in blocks(result, &schedulers, Detail::Brief) {
            let title = format!("{}  {}", block.title, block.note);
            drawn.title(title.trim_end(), Attribute::Bold);
            for row in &block.rows {
                drawn.table.add_row(cells(row));
            }
        }
    }
    format!(
        "{}\n{}\n\n{}",
        first.title,
        machine_line(first),
        drawn.text(width)
    )
}

/// Of a column, both sides.
const PADDING: usize = 2;

/// Stands for a title in the table: cells across several columns are not to be had.
const TITLE: &str = "\u{e000}";

/// A table, and the titles of its parts, which are as wide as they like.
struct Drawn {
    table: Table,
    titles: Vec<String>,
}

impl Drawn {
    fn new(width: usize, colour: bool, schedulers: &[String]) -> Self {
        let mut table = empty_table(width, colour);
        table.set_header(header(schedulers));
        Self {
            table,
            titles: Vec::new(),
        }
    }

    fn title(&mut self, text: &str, attribute: Attribute) {
        self.titles.push(text.to_owned());
        self.table
            .add_row([Cell::new(TITLE).add_attribute(attribute)]);
    }

    /// The whole of it, in lines of at most `width` where that leaves words and labels whole.
    fn text(mut self, width: usize) -> String {
        let least: Vec<usize> = (0..self.table.column_count())
            .map(|place| self.least_width(place))
            .collect();
        if least.iter().sum::<usize>() <= width {
            for (column, least) in self.table.column_iter_mut().zip(least) {
                let least = Width::Fixed(u16::try_from(least).unwrap_or(u16::MAX));
                column.set_constraint(ColumnConstraint::LowerBoundary(least));
            }
        }
        let mut titles = self.titles.iter();
        let lines = self.table.lines().map(|line| match line.split_once(TITLE) {
            // What makes it bold comes after the blanks that fill the cell.
            Some((before, after)) => {
                let title = titles.next().map_or("", String::as_str);
                format!("{before}{title}{}\n", after.trim())
            }
            None => format!("{}\n", line.trim_end()),
        });
        let text: String = lines.collect();
        text.replace(NO_BREAK, " ")
    }

    /// Width that a column needs: the first for its labels, the others for words and figures.
    fn least_width(&self, place: usize) -> usize {
        let cells = self.table.column_cells_with_header_iter(place).flatten();
        let content = cells.map(|cell| match place {
            0 => cell.content().chars().count(),
            _ => {
                let content = cell.content();
                let words = content.split([' ', '\n']).map(|word| word.chars().count());
                words.max().unwrap_or(0)
            }
        });
        PADDING + content.max().unwrap_or(0)
    }
}

/// A table without lines, at most `width` columns wide.
pub fn empty_table(width: usize, colour: bool) -> Table {
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

fn cells(row: &Row) -> Vec<Cell> {
    let figure = |figure: &andante_result::figures::Cell| {
        let cell = Cell::new(&figure.text).set_alignment(CellAlignment::Right);
        match (figure.best, row.trouble) {
            (true, _) => cell.fg(Color::Green),
            (_, true) => cell.fg(Color::Red),
            _ => cell,
        }
    };
    let label = Cell::new(format!("  {}", row.label));
    std::iter::once(label)
        .chain(row.cells.iter().map(figure))
        .collect()
}
