//! What a sweep must show to be a good one: a bound on its distribution.
//!
//! ```toml
//! [[require]]
//! share = 0.9                # so many of the draws that count keep every bound: 0 to 1
//! load = 0.4                 # only draws that ask for no more than this count; all if left out
//! scheduler = "andante"      # whose; andante if left out
//! draws = 100                # not asked of sweeps of fewer; 1 if left out
//! ```
//!
//! That of a family is asked of the family as it stands: beside `eevdf-fifo`, without `--set` and `--bound`.
//!
//! A draw counts if the reference keeps every bound: what an expert cannot do by hand is asked of
//! nobody. Draws are the same for the same seed, so that a sweep which held holds until a rule changes.

use andante_document::{DocumentError, Node, Section, Value};

/// One of them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Requirement {
    pub scheduler: String,
    /// The largest load of draws that count [ratio]; none: any.
    pub load: Option<f64>,
    /// Of the draws that count the part that keeps every bound [ratio].
    pub share: f64,
    /// The fewest draws that it speaks of.
    pub draws: u64,
}

/// Reads all `[[require]]` tables.
pub(super) fn read_all(node: &Node, path: &str) -> Result<Vec<Requirement>, DocumentError> {
    match &node.value {
        Value::List(items) => items.iter().map(|item| read(item, path)).collect(),
        _ => Err(node
            .origin
            .error(path, "write what is required as [[require]] tables")),
    }
}

fn read(node: &Node, path: &str) -> Result<Requirement, DocumentError> {
    let mut section = Section::new(node, path)?;
    section.need::<f64>("share")?;
    let requirement = Requirement {
        share: section.number("share", 1.0, 0.0..=1.0)?,
        load: match section.node("load") {
            None => None,
            Some(_) => Some(section.number("load", 0.0, 0.0..=1000.0)?),
        },
        draws: section.number("draws", 1.0, 1.0..=1e6)? as u64,
        scheduler: section
            .get("scheduler")?
            .unwrap_or_else(|| "andante".to_owned()),
    };
    section.finish()?;
    Ok(requirement)
}

/// Reads `--require 'share = 0.9, load = 0.4'`.
pub(super) fn of_option(text: &str) -> Result<Requirement, DocumentError> {
    const NAME: &str = "--require";
    let table = Node::parse(NAME, &format!("require = {{ {text} }}"))?;
    let mut section = Section::new(&table, "")?;
    read(section.node("require").expect("just written"), NAME)
}

impl Requirement {
    /// For people.
    pub fn in_words(&self, reference: &str) -> String {
        let load = match self.load {
            Some(load) => format!(" at loads to {load}"),
            None => String::new(),
        };
        let share = self.share * 100.0;
        format!(
            "{}: {share} % of the draws{load} in which {reference} keeps every bound keep it too",
            self.scheduler
        )
    }
}
