//! `[[table]]`: figures in rows and columns.

use andante_document::{DocumentError, FromNode, Node, Origin, Section, Value, suggest};

use super::keys::Keys;
use super::list::{MAX_CELLS, list};
use super::scenarios::Scenarios;
use crate::cell::CellSpec;
use crate::result::{Column, Published, STARVED};
use crate::source::{At, Demand, Starves};

/// A table to be filled.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TableSpec {
    pub row_title: String,
    pub label_titles: Vec<String>,
    pub columns: Vec<ColumnSpec>,
    pub rows: Vec<RowSpec>,
    /// Place of the row that `starves` and value contours compare with.
    pub baseline: Option<usize>,
    /// Whether less is better, in `starves`.
    pub lower_is_better: bool,
    pub fold: bool,
}

/// A column and what is demanded of it as a whole.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ColumnSpec {
    pub column: Column,
    pub order: Option<OrderSpec>,
}

/// How a column must run from row to row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OrderSpec {
    pub order: Order,
    pub why: String,
    pub explained: String,
}

/// An order of rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Order {
    /// That of the published figures, where these are further apart than this part of the larger.
    Published(f64),
    /// No row above the one before it.
    Falling,
    /// No row below the one before it.
    Rising,
}

/// A row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RowSpec {
    pub title: String,
    pub x: Option<f64>,
    pub labels: Vec<String>,
    pub cells: Vec<CellSpec>,
}

/// Reads the table whose keys `section` holds.
pub(super) fn read(
    mut section: Section<'_>,
    scenarios: &Scenarios<'_>,
) -> Result<TableSpec, DocumentError> {
    let row_title = section.get("row_title")?.unwrap_or_default();
    let label_titles: Vec<String> = section.get("label_titles")?.unwrap_or_default();
    let fold = section.get("fold")?.unwrap_or(false);
    let lower_is_better = match section.get::<String>("better")?.as_deref() {
        None | Some("lower") => true,
        Some("higher") => false,
        Some(_) => return Err(section.error("better", "give lower or higher")),
    };
    let baseline: Option<String> = section.get("baseline")?;
    let table_order = read_order(&mut section)?;
    let table_keys = Keys::read(&mut section, "table")?;
    let columns = list(section.node("column"), "table.column", MAX_CELLS, &section)?
        .iter()
        .map(|node| read_column(node, &table_keys, table_order))
        .collect::<Result<Vec<_>, _>>()?;
    let mut rows = Vec::new();
    for node in list(section.node("row"), "table.row", MAX_CELLS, &section)? {
        let shape = Shape {
            labels: label_titles.len(),
            columns: &columns,
            table: &table_keys,
        };
        rows.push(read_row(node, &shape, scenarios)?);
    }
    if columns.len() * rows.len() > MAX_CELLS {
        return Err(section.error("", format!("more than {MAX_CELLS} figures")));
    }
    unique(
        "column",
        columns.iter().map(|(c, _)| &c.column.title),
        &section,
    )?;
    unique("row", rows.iter().map(|row| &row.title), &section)?;
    let place = |name: &String| rows.iter().position(|row| row.title == *name);
    let baseline = match &baseline {
        None => None,
        Some(name) => Some(place(name).ok_or_else(|| {
            let hint = suggest(name, rows.iter().map(|row| row.title.as_str()));
            section.error("baseline", format!("no row is called `{name}`{hint}"))
        })?),
    };
    let relative = |cell: &CellSpec| matches!(cell.starves, Some(Starves::Times(_)));
    if baseline.is_none() && rows.iter().flat_map(|row| &row.cells).any(relative) {
        return Err(section.error("starves", "needs a `baseline`, the row to compare with"));
    }
    section.finish()?;
    Ok(TableSpec {
        row_title,
        label_titles,
        columns: columns.into_iter().map(|(column, _)| column).collect(),
        rows,
        baseline,
        lower_is_better,
        fold,
    })
}

fn unique<'a>(
    what: &str,
    titles: impl Iterator<Item = &'a String>,
    section: &Section<'_>,
) -> Result<(), DocumentError> {
    let mut seen = Vec::new();
    for title in titles {
        if seen.contains(&title) {
            return Err(section.error(what, format!("two are called `{title}`")));
        }
        seen.push(title);
    }
    Ok(())
}

fn read_column(
    node: &Node,
    table: &Keys,
    table_order: Option<Order>,
) -> Result<(ColumnSpec, Keys), DocumentError> {
    const PATH: &str = "table.column";
    let mut section = Section::new(node, PATH)?;
    let column = Column {
        title: section.need("title")?,
        unit: section.get("unit")?.unwrap_or_default(),
        decimals: section.get::<u32>("decimals")?.map(|n| n.min(9) as usize),
    };
    let order = read_order(&mut section)?.or(table_order);
    let keys = Keys::read(&mut section, PATH)?;
    let texts = keys.or(table);
    let order = match order {
        None => None,
        Some(order) => Some(OrderSpec {
            order,
            why: need_why(&texts.why, At::of(node, PATH))?,
            explained: texts.explained.unwrap_or_default(),
        }),
    };
    section.finish()?;
    Ok((ColumnSpec { column, order }, keys))
}

fn read_order(section: &mut Section<'_>) -> Result<Option<Order>, DocumentError> {
    let Some(node) = section.node("order") else {
        return Ok(None);
    };
    let word = String::from_node(node);
    match (word.as_deref(), f64::from_node(node)) {
        (Some("falling"), _) => Ok(Some(Order::Falling)),
        (Some("rising"), _) => Ok(Some(Order::Rising)),
        (_, Some(apart)) if (0.0..1.0).contains(&apart) => Ok(Some(Order::Published(apart))),
        _ => Err(section.error(
            "order",
            "give \"falling\", \"rising\", or a part below 1: rows published further apart than \
             that part must be measured in the published order",
        )),
    }
}

fn need_why(why: &Option<String>, at: At<'_>) -> Result<String, DocumentError> {
    let why = why.clone();
    why.ok_or_else(|| at.error("a tolerance needs `why`: why so much and no more"))
}

impl<'a> At<'a> {
    pub(super) fn of(node: &'a Node, path: &'a str) -> Self {
        Self {
            origin: &node.origin,
            path,
        }
    }
}

/// What rows must fit.
struct Shape<'a> {
    labels: usize,
    columns: &'a [(ColumnSpec, Keys)],
    table: &'a Keys,
}

fn read_row(
    node: &Node,
    shape: &Shape<'_>,
    scenarios: &Scenarios<'_>,
) -> Result<RowSpec, DocumentError> {
    const PATH: &str = "table.row";
    let mut section = Section::new(node, PATH)?;
    let title = section.need("title")?;
    let x = section.get("x")?;
    let labels: Vec<String> = section.get("labels")?.unwrap_or_default();
    if labels.len() != shape.labels {
        let message = format!("{} words for {} label titles", labels.len(), shape.labels);
        return Err(section.error("labels", message));
    }
    let published = match section.node("published").map(|node| (node, &node.value)) {
        None => None,
        Some((_, Value::List(items))) if items.len() == shape.columns.len() => Some(items),
        Some((node, _)) => {
            let message = format!("give a list of {}, one a column", shape.columns.len());
            return Err(node.origin.error("table.row.published", message));
        }
    };
    let keys = Keys::read(&mut section, PATH)?;
    let mut cells = Vec::new();
    for (place, (_, column)) in shape.columns.iter().enumerate() {
        let outer = keys.or(&column.or(shape.table));
        let entry = published.map(|items| &items[place]);
        cells.push(read_cell(entry, &outer, &node.origin, scenarios)?);
    }
    section.finish()?;
    Ok(RowSpec {
        title,
        x,
        labels,
        cells,
    })
}

/// Reads a cell from its entry in `published`: a number, a dash, an empty string for nothing, or a
/// table of `value` and keys of its own.
fn read_cell(
    entry: Option<&Node>,
    outer: &Keys,
    row: &Origin,
    scenarios: &Scenarios<'_>,
) -> Result<CellSpec, DocumentError> {
    const PATH: &str = "table.row.published";
    let at = At {
        origin: entry.map_or(row, |node| &node.origin),
        path: PATH,
    };
    let (published, own, blank) = match entry.map(|node| (node, &node.value)) {
        None => (None, Keys::default(), false),
        Some((node, Value::Table(_))) => {
            let mut section = Section::new(node, PATH)?;
            let published = match section.node("value") {
                None => None,
                Some(node) => read_published(node)?,
            };
            let keys = Keys::read(&mut section, PATH)?;
            let blank = section.get("blank")?.unwrap_or(false);
            section.finish()?;
            (published, keys, blank)
        }
        Some((node, _)) => (read_published(node)?, Keys::default(), false),
    };
    let keys = own.or(outer);
    let source = match blank {
        true => None,
        false => keys.source(scenarios, at)?,
    };
    let demand = match (published, keys.demand) {
        (Some(Published::Number(_)), Some(demand)) => demand,
        _ => Demand::Nothing,
    };
    let starves = keys
        .starves
        .filter(|_| published == Some(Published::Starved));
    let demanded = demand != Demand::Nothing || starves.is_some();
    if demanded && source.is_none() {
        return Err(at.error("something is demanded of a figure that no `measure` measures"));
    }
    Ok(CellSpec {
        why: match demanded {
            true => need_why(&keys.why, at)?,
            false => String::new(),
        },
        source,
        published,
        demand,
        starves,
        explained_here: own.explained.is_some(),
        explained: keys.explained.unwrap_or_default(),
    })
}

fn read_published(node: &Node) -> Result<Option<Published>, DocumentError> {
    let word = String::from_node(node);
    match (word.as_deref(), f64::from_node(node)) {
        (_, Some(number)) => Ok(Some(Published::Number(number))),
        (Some(STARVED), _) => Ok(Some(Published::Starved)),
        (Some(""), _) => Ok(None),
        _ => Err(node.origin.error(
            "table.row.published",
            "expected a number, \"-\" for what never completed, \"\" for nothing, or a table of \
             `value` and other keys",
        )),
    }
}
