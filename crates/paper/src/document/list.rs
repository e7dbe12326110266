//! Lists in a paper, and how long they may be.

use andante_document::{DocumentError, Node, Section, Value};

/// Most figures a table may hold.
pub(super) const MAX_CELLS: usize = 4096;
/// Most lanes, curves or applications a figure may hold.
pub(super) const MAX_LANES: usize = 64;
/// Most slots a lane may hold.
pub(super) const MAX_SLOTS: usize = 10_000;
/// The tables of `[[PATH]]`, of which there must be one to `most`.
pub(super) fn list<'a>(
    node: Option<&'a Node>,
    path: &str,
    most: usize,
    section: &Section<'_>,
) -> Result<&'a [Node], DocumentError> {
    let key = path.rsplit('.').next().unwrap_or(path);
    match node.map(|node| &node.value) {
        Some(Value::List(items)) if !items.is_empty() => match items.len() <= most {
            true => Ok(items),
            false => Err(section.error(key, format!("more than {most}"))),
        },
        _ => Err(section.error(key, format!("add at least one [[{path}]]"))),
    }
}
