//! Tables: measured large, published small below it.

use maud::{Markup, html};

use super::mark::{class_of, mark};
use crate::result::{Cell, Column, Mark, Table};
use crate::terminal::{measured, published, ratio};

/// Tables of more columns are set closer.
const ROOMY: usize = 5;

/// The table; `says` is what its published figures are called.
pub(super) fn draw(table: &Table, says: &str) -> Markup {
    let compares = table
        .rows
        .iter()
        .flat_map(|row| &row.cells)
        .any(|cell| cell.published.is_some());
    let class = match table.columns.len() + table.label_titles.len() > ROOMY {
        true => "compared wide",
        false => "compared",
    };
    html! {
        div.scroll tabindex="0" role="region" aria-label=(table.row_title) {
            table class=(class) {
                thead { tr {
                    th scope="col" { (table.row_title) }
                    @for title in &table.label_titles { th.label scope="col" { (title) } }
                    @for column in &table.columns {
                        th scope="col" {
                            (column.title)
                            @if !column.unit.is_empty() { span.unit { (column.unit) } }
                        }
                    }
                } }
                tbody { @for row in &table.rows {
                    tr {
                        th scope="row" { (row.title) }
                        @for label in &row.labels { td.label { (label) } }
                        @for (column, one) in table.columns.iter().zip(&row.cells) { (cell(column, one)) }
                    }
                } }
            }
        }
        @if compares { p.key { "Large: measured. Small: " (says) ", and measured over it." } }
    }
}

fn cell(column: &Column, cell: &Cell) -> Markup {
    let published = published(cell, column.decimals);
    let hint = match cell.demand.is_empty() {
        true => None,
        false => Some(format!("demanded: {}", cell.demand)),
    };
    html! {
        td class=(class_of(cell.mark)) title=[hint] {
            span.measured {
                (measured(cell, column.decimals))
                @if cell.mark != Mark::Shown { (mark(cell.mark)) }
            }
            @if !published.is_empty() {
                span.published {
                    (published)
                    @if let Some(ratio) = ratio(cell) { span.ratio { (ratio) } }
                }
            }
        }
    }
}
