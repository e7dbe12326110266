//! `papers/KEY/paper.toml`: what a paper published, and how to measure the same.
//!
//! `papers/README.md` describes the format to those who write one. Everything is checked when it
//! is read, the scenarios that are named included, so that nothing can be wrong after the runs.

mod figure;
mod keys;
mod list;
mod scenarios;
mod table;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;

use andante_document::{DocumentError, Node, Section, suggest};
use andante_scenario::Scenario;

use super::computed;
use super::result::Departure;
pub(crate) use figure::{
    ChartSpec, ContourSpec, FigureSpec, LaneSpec, Quantity, SamplesSpec, SeriesSpec, TimelineSpec,
};
use list::list;
use scenarios::{NoScenario, Scenarios};
pub(crate) use table::{Order, TableSpec};

/// Most tables and figures a paper may hold.
const MAX_EXHIBITS: usize = 64;
/// The file that makes a folder a paper.
pub(crate) const FILE: &str = "paper.toml";

/// A paper to be run again.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Paper {
    pub key: String,
    pub title: String,
    pub authors: Vec<String>,
    pub venue: String,
    pub year: u32,
    pub claim: String,
    pub departures: Vec<Departure>,
    pub exhibits: Vec<ExhibitSpec>,
    /// Every scenario that an exhibit names.
    pub scenarios: BTreeMap<String, Scenario>,
}

/// An exhibit to be made.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ExhibitSpec {
    pub id: String,
    pub title: String,
    pub caption: String,
    pub says: String,
    pub content: ContentSpec,
}

/// What an exhibit is made from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ContentSpec {
    Table(TableSpec),
    Figure(FigureSpec),
    /// What the function of this name in [`computed`] returns.
    Computed(String),
}

impl Paper {
    /// Reads the paper in `folder`.
    ///
    /// # Errors
    /// The first mistake in it or in a scenario it names, with file, line and key.
    pub fn load(folder: &Path) -> Result<Self, DocumentError> {
        let file = folder.join(FILE);
        let text = std::fs::read_to_string(&file).map_err(|error| DocumentError {
            file: file.display().to_string(),
            line: 1,
            key: String::new(),
            message: format!("cannot be read: {error}"),
        })?;
        Self::read(folder, &text)
    }

    /// Reads the paper in `folder` from the text of its [`FILE`].
    pub fn read(folder: &Path, text: &str) -> Result<Self, DocumentError> {
        let file = folder.join(FILE);
        let key = folder
            .file_name()
            .map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let read = |name: &str| {
            let file = folder.join(format!("{name}.toml"));
            if name == "paper" || !file.is_file() {
                return Err(NoScenario::Unknown(beside(folder)));
            }
            Scenario::load(&file, &[]).map_err(NoScenario::Wrong)
        };
        Self::parse(&key, &file.display().to_string(), text, &read)
    }

    /// Reads a paper from `text`; `file` is what errors name.
    pub fn parse(
        key: &str,
        file: &str,
        text: &str,
        read: scenarios::Reader<'_>,
    ) -> Result<Self, DocumentError> {
        let document = Node::parse(file, text)?;
        let scenarios = Scenarios::new(read);
        let mut root = Section::new(&document, "")?;
        let says = root.get("says")?.unwrap_or_else(|| "published".to_owned());
        let mut paper = Self {
            key: key.to_owned(),
            title: root.need("title")?,
            authors: root.need("authors")?,
            venue: root.need("venue")?,
            year: root.need("year")?,
            claim: root.need("claim")?,
            departures: read_departures(root.node("departure"), &root)?,
            exhibits: Vec::new(),
            scenarios: BTreeMap::new(),
        };
        let mut nodes: Vec<(&'static str, &Node)> = Vec::new();
        for kind in ["table", "figure", "computed"] {
            if let Some(node) = root.node(kind) {
                let items = list(Some(node), kind, MAX_EXHIBITS, &root)?;
                nodes.extend(items.iter().map(|item| (kind, item)));
            }
        }
        // The paper's order is that of the file.
        nodes.sort_by_key(|(_, node)| node.origin.line);
        if nodes.is_empty() || nodes.len() > MAX_EXHIBITS {
            let message = format!("add 1 to {MAX_EXHIBITS} [[table]], [[figure]] or [[computed]]");
            return Err(root.error("", message));
        }
        let mut tables = Vec::new();
        for (kind, node) in nodes {
            let exhibit = read_exhibit(kind, node, &says, &tables, &scenarios)?;
            if paper.exhibits.iter().any(|known| known.id == exhibit.id) {
                let message = format!("two are called `{}`", exhibit.id);
                return Err(node.origin.error(&format!("{kind}.id"), message));
            }
            if let ContentSpec::Table(table) = &exhibit.content {
                tables.push((exhibit.id.clone(), table.clone()));
            }
            paper.exhibits.push(exhibit);
        }
        root.finish()?;
        paper.scenarios = scenarios.into_known();
        Ok(paper)
    }
}

/// Names of the scenarios in `folder`.
fn beside(folder: &Path) -> Vec<String> {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = files
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "toml"))
        .filter_map(|path| Some(path.file_stem()?.to_string_lossy().into_owned()))
        .filter(|name| name != "paper")
        .collect();
    names.sort();
    names
}

fn read_departures(
    node: Option<&Node>,
    root: &Section<'_>,
) -> Result<Vec<Departure>, DocumentError> {
    let Some(node) = node else {
        return Ok(Vec::new());
    };
    let items = list(Some(node), "departure", MAX_EXHIBITS, root)?;
    let read = |node: &Node| {
        let mut section = Section::new(node, "departure")?;
        let departure = Departure {
            what: section.need("what")?,
            why: section.need("why")?,
        };
        section.finish()?;
        Ok(departure)
    };
    items.iter().map(read).collect()
}

fn read_exhibit(
    kind: &'static str,
    node: &Node,
    says: &str,
    tables: &[(String, TableSpec)],
    scenarios: &Scenarios<'_>,
) -> Result<ExhibitSpec, DocumentError> {
    let mut section = Section::new(node, kind)?;
    Ok(ExhibitSpec {
        id: section.need("id")?,
        title: section.need("title")?,
        caption: section.get("caption")?.unwrap_or_default(),
        says: section.get("says")?.unwrap_or_else(|| says.to_owned()),
        content: match kind {
            "table" => ContentSpec::Table(table::read(section, scenarios)?),
            "figure" => ContentSpec::Figure(figure::read(section, tables, scenarios)?),
            _ => {
                let name: String = section.need("function")?;
                if computed::find(&name).is_none() {
                    let hint = suggest(&name, computed::names());
                    let message = format!("no function is called `{name}`{hint}");
                    return Err(section.error("function", message));
                }
                section.finish()?;
                ContentSpec::Computed(name)
            }
        },
    })
}
