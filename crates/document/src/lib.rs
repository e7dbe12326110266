// SPDX-License-Identifier: GPL-2.0
//! TOML documents written by hand (scenarios, papers, contracts, the configuration), whose every value
//! knows the line that it stands on.
//!
//! A mistake must be answered with the place and the mend. Serde forgets both as soon as tables are
//! flattened or merged; hence this small reader: a [`Node`] keeps its line through merging, and a
//! [`Section`] remembers which keys were asked for, so that those left over can be named together with
//! the key that was probably meant.
//!
//! ```
//! use andante_document::{Node, Section};
//!
//! let document = Node::parse("my.toml", "wieght = 3")?;
//! let mut top = Section::new(&document, "")?;
//! assert_eq!(top.get::<u32>("weight")?, None);
//! let error = top.finish().unwrap_err().to_string();
//! assert_eq!(error, "my.toml:1: wieght: unknown key, did you mean `weight`?");
//! # Ok::<(), andante_document::DocumentError>(())
//! ```

use std::fmt;

use strsim::damerau_levenshtein;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// What is wrong with a document, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentError {
    /// File as the user named it.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Dotted path of the key, e.g. `programs.film.class`; empty for errors of syntax.
    pub key: String,
    /// What is wrong and how to mend it.
    pub message: String,
}

impl fmt::Display for DocumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.file, self.line)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for DocumentError {}

/// A value and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Where it stands.
    pub origin: Origin,
    /// The value.
    pub value: Value,
}

/// File and line of a value; the file differs only for values set on the command line.
#[derive(Debug, Clone, PartialEq)]
pub struct Origin {
    /// File as the user named it.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
}

impl Origin {
    /// An error about the value at this dotted path that stands here.
    pub fn error(&self, key: &str, message: impl Into<String>) -> DocumentError {
        DocumentError {
            file: self.file.clone(),
            line: self.line,
            key: key.to_owned(),
            message: message.into(),
        }
    }
}

/// TOML's values; tables keep the order of the file.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A string.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// A number with a point.
    Number(f64),
    /// true or false.
    Boolean(bool),
    /// A list.
    List(Vec<Node>),
    /// Keys and their values.
    Table(Vec<(String, Node)>),
}

impl Value {
    /// What it is, to be said to people.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Text(_) => "a string",
            Value::Integer(_) => "a whole number",
            Value::Number(_) => "a number",
            Value::Boolean(_) => "true or false",
            Value::List(_) => "a list",
            Value::Table(_) => "a table",
        }
    }
}

impl Node {
    /// Parses a document.
    ///
    /// # Errors
    /// The first error of syntax, duplicate keys included.
    pub fn parse(file: &str, text: &str) -> Result<Self, DocumentError> {
        let line_of = |offset: usize| 1 + text[..offset].matches('\n').count();
        let table = DeTable::parse(text).map_err(|error| DocumentError {
            file: file.to_owned(),
            line: line_of(error.span().map_or(0, |span| span.start)),
            key: String::new(),
            message: error.message().to_owned(),
        })?;
        let origin = |offset| Origin {
            file: file.to_owned(),
            line: line_of(offset),
        };
        let line = table.span().start;
        Ok(Self {
            origin: origin(line),
            value: Value::Table(convert_table(table.get_ref(), &origin)?),
        })
    }

    /// Lays `over` on top: tables are merged key by key, everything else is replaced.
    pub fn overlay(&mut self, over: &Node) {
        match (&mut self.value, &over.value) {
            (Value::Table(below), Value::Table(above)) => {
                for (key, node) in above {
                    match below.iter_mut().find(|(known, _)| known == key) {
                        Some((_, known)) => known.overlay(node),
                        None => below.push((key.clone(), node.clone())),
                    }
                }
            }
            _ => self.clone_from(over),
        }
    }

    /// The document as text, in the order of its entries but with values before tables. Comments are
    /// not kept.
    pub fn to_toml(&self) -> String {
        match to_value(self) {
            toml::Value::Table(table) => toml::to_string(&table).expect("all keys are strings"),
            value => value.to_string(),
        }
    }

    /// Takes the entry `key` out of a table.
    pub fn remove(&mut self, key: &str) -> Option<Node> {
        let Value::Table(entries) = &mut self.value else {
            return None;
        };
        let index = entries.iter().position(|(known, _)| known == key)?;
        Some(entries.remove(index).1)
    }
}

fn to_value(node: &Node) -> toml::Value {
    match &node.value {
        Value::Text(text) => text.clone().into(),
        Value::Integer(number) => (*number).into(),
        Value::Number(number) => (*number).into(),
        Value::Boolean(flag) => (*flag).into(),
        Value::List(items) => items.iter().map(to_value).collect::<Vec<_>>().into(),
        Value::Table(entries) => {
            // A value after a table would belong to that table.
            let is_table = |node: &Node| matches!(node.value, Value::Table(_));
            let (tables, values): (Vec<_>, Vec<_>) =
                entries.iter().partition(|(_, node)| is_table(node));
            let all = values.into_iter().chain(tables);
            let table: toml::Table = all
                .map(|(key, node)| (key.clone(), to_value(node)))
                .collect();
            table.into()
        }
    }
}

fn convert_table(
    table: &DeTable<'_>,
    origin: &impl Fn(usize) -> Origin,
) -> Result<Vec<(String, Node)>, DocumentError> {
    let convert_entry = |(key, value): (&Spanned<_>, &Spanned<DeValue<'_>>)| {
        let key: &std::borrow::Cow<'_, str> = key.get_ref();
        Ok((key.to_string(), convert(value, key, origin)?))
    };
    table.iter().map(convert_entry).collect()
}

fn convert(
    node: &Spanned<DeValue<'_>>,
    key: &str,
    origin: &impl Fn(usize) -> Origin,
) -> Result<Node, DocumentError> {
    let origin_here = origin(node.span().start);
    let value = match node.get_ref() {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(digits) => Value::Integer(
            i64::from_str_radix(digits.as_str(), digits.radix())
                .map_err(|_| origin_here.error(key, "the number is too large"))?,
        ),
        DeValue::Float(digits) => Value::Number(
            digits
                .as_str()
                .parse()
                .map_err(|_| origin_here.error(key, "not a number"))?,
        ),
        DeValue::Boolean(flag) => Value::Boolean(*flag),
        DeValue::Datetime(_) => {
            return Err(origin_here.error(key, "dates are not known here; give seconds"));
        }
        DeValue::Array(items) => Value::List(
            items
                .iter()
                .map(|i| convert(i, key, origin))
                .collect::<Result<_, _>>()?,
        ),
        DeValue::Table(table) => Value::Table(convert_table(table, origin)?),
    };
    Ok(Node {
        origin: origin_here,
        value,
    })
}

/// What a value can be read as.
pub trait FromNode: Sized {
    /// What to say is expected, e.g. `a string`.
    const EXPECTED: &'static str;
    /// None: it is something else.
    fn from_node(node: &Node) -> Option<Self>;
}

impl FromNode for String {
    const EXPECTED: &'static str = "a string";
    fn from_node(node: &Node) -> Option<Self> {
        match &node.value {
            Value::Text(text) => Some(text.clone()),
            _ => None,
        }
    }
}

impl FromNode for bool {
    const EXPECTED: &'static str = "true or false";
    fn from_node(node: &Node) -> Option<Self> {
        match node.value {
            Value::Boolean(flag) => Some(flag),
            _ => None,
        }
    }
}

impl FromNode for f64 {
    const EXPECTED: &'static str = "a number";
    fn from_node(node: &Node) -> Option<Self> {
        match node.value {
            Value::Integer(number) => Some(number as f64),
            Value::Number(number) if number.is_finite() => Some(number),
            _ => None,
        }
    }
}

impl FromNode for u32 {
    const EXPECTED: &'static str = "a whole number, 0 or more";
    fn from_node(node: &Node) -> Option<Self> {
        match node.value {
            Value::Integer(number) => number.try_into().ok(),
            _ => None,
        }
    }
}

/// One value, or a list of them.
impl FromNode for Vec<f64> {
    const EXPECTED: &'static str = "a number or a list of numbers";
    fn from_node(node: &Node) -> Option<Self> {
        match &node.value {
            Value::List(items) => items.iter().map(f64::from_node).collect(),
            _ => Some(vec![f64::from_node(node)?]),
        }
    }
}

impl FromNode for Vec<u32> {
    const EXPECTED: &'static str = "a list of whole numbers";
    fn from_node(node: &Node) -> Option<Self> {
        match &node.value {
            Value::List(items) => items.iter().map(u32::from_node).collect(),
            _ => None,
        }
    }
}

impl FromNode for Vec<String> {
    const EXPECTED: &'static str = "a list of strings";
    fn from_node(node: &Node) -> Option<Self> {
        match &node.value {
            Value::List(items) => items.iter().map(String::from_node).collect(),
            _ => None,
        }
    }
}

/// A table that is being read.
pub struct Section<'a> {
    origin: &'a Origin,
    path: String,
    entries: &'a [(String, Node)],
    known: Vec<&'static str>,
}

impl<'a> Section<'a> {
    /// Reads `node`, found at `path`, as a table.
    ///
    /// # Errors
    /// It is none.
    pub fn new(node: &'a Node, path: &str) -> Result<Self, DocumentError> {
        match &node.value {
            Value::Table(entries) => Ok(Self {
                origin: &node.origin,
                path: path.to_owned(),
                entries,
                known: Vec::new(),
            }),
            other => Err(node.origin.error(
                path,
                format!("expected a table of keys, found {}", other.kind()),
            )),
        }
    }

    /// Every entry with its own path; all keys count as known.
    pub fn entries(&self) -> impl Iterator<Item = (&'a str, String, &'a Node)> + use<'a> {
        let path = self.path.clone();
        self.entries
            .iter()
            .map(move |(key, node)| (key.as_str(), join(&path, key), node))
    }

    /// The node at `key`, if there is one.
    pub fn node(&mut self, key: &'static str) -> Option<&'a Node> {
        self.known.push(key);
        self.entries
            .iter()
            .find(|(known, _)| known == key)
            .map(|(_, node)| node)
    }

    /// The tables of the list at `key`, called `key[1]` and so on.
    ///
    /// # Errors
    /// It is something else.
    pub fn tables(&mut self, key: &'static str) -> Result<Vec<Self>, DocumentError> {
        let Some(node) = self.node(key) else {
            return Ok(Vec::new());
        };
        let wrong = || format!("expected tables: write [[{key}]] over each");
        let Value::List(items) = &node.value else {
            return Err(self.error(key, wrong()));
        };
        let path = join(&self.path, key);
        let section = |(at, item): (usize, &'a Node)| {
            Self::new(item, &format!("{path}[{}]", at + 1)).map_err(|_| self.error(key, wrong()))
        };
        items.iter().enumerate().map(section).collect()
    }

    /// Calls an item of a list by its name from now on.
    pub fn call(&mut self, name: &str) {
        if let Some((list, _)) = self.path.rsplit_once('[') {
            self.path = join(list, name);
        }
    }

    /// The value at `key`, if there is one.
    ///
    /// # Errors
    /// It is something else.
    pub fn get<T: FromNode>(&mut self, key: &'static str) -> Result<Option<T>, DocumentError> {
        let Some(node) = self.node(key) else {
            return Ok(None);
        };
        T::from_node(node).map(Some).ok_or_else(|| {
            let message = format!("expected {}, found {}", T::EXPECTED, node.value.kind());
            node.origin.error(&join(&self.path, key), message)
        })
    }

    /// The value at `key`, which must be there.
    ///
    /// # Errors
    /// It is not, or something else.
    pub fn need<T: FromNode>(&mut self, key: &'static str) -> Result<T, DocumentError> {
        if let Some(value) = self.get(key)? {
            return Ok(value);
        }
        // A key that is missing is often there, but misspelt.
        let misspelt = |wrong: &str| !self.known.contains(&wrong) && is_close(wrong, key);
        match self.entries.iter().find(|(wrong, _)| misspelt(wrong)) {
            Some((wrong, _)) => {
                let hint = suggest(wrong, [key].into_iter());
                Err(self.error(wrong, format!("unknown key{hint}")))
            }
            None => {
                let message = format!("`{key}` is missing: give {}", T::EXPECTED);
                Err(self.origin.error(&self.path, message))
            }
        }
    }

    /// The choice named at `key`; without the key the first one.
    ///
    /// # Errors
    /// It names none of them.
    pub fn one_of<T: Copy>(
        &mut self,
        key: &'static str,
        choices: &[(&str, T)],
    ) -> Result<T, DocumentError> {
        let Some(node) = self.node(key) else {
            return Ok(choices[0].1);
        };
        let names: Vec<_> = choices
            .iter()
            .map(|(name, _)| format!("\"{name}\""))
            .collect();
        let names = names.join(", ");
        let Value::Text(chosen) = &node.value else {
            let found = node.value.kind();
            return Err(self.error(key, format!("expected one of {names}, found {found}")));
        };
        match choices.iter().find(|(name, _)| name == chosen) {
            Some(&(_, choice)) => Ok(choice),
            None => {
                let message = format!("`{chosen}` is not known: give one of {names}");
                Err(self.error(key, message))
            }
        }
    }

    /// The number at `key` or `default`, refused outside `range`.
    ///
    /// # Errors
    /// It is something else, or outside.
    pub fn number(
        &mut self,
        key: &'static str,
        default: f64,
        range: std::ops::RangeInclusive<f64>,
    ) -> Result<f64, DocumentError> {
        let number = self.get(key)?.unwrap_or(default);
        if range.contains(&number) {
            return Ok(number);
        }
        let message = format!(
            "{number} is out of range: give {} to {}",
            range.start(),
            range.end()
        );
        Err(self.error(key, message))
    }

    /// An error about the value at `key`.
    pub fn error(&self, key: &str, message: impl Into<String>) -> DocumentError {
        let entry = self.entries.iter().find(|(known, _)| known == key);
        let origin = entry.map_or(self.origin, |(_, node)| &node.origin);
        let path = if key.is_empty() {
            self.path.clone()
        } else {
            join(&self.path, key)
        };
        origin.error(&path, message)
    }

    /// Refuses keys that nobody asked for.
    ///
    /// # Errors
    /// The first of them.
    pub fn finish(&self) -> Result<(), DocumentError> {
        match self
            .entries
            .iter()
            .find(|(key, _)| !self.known.contains(&key.as_str()))
        {
            None => Ok(()),
            Some((key, node)) => {
                let hint = suggest(key, self.known.iter().copied());
                Err(node
                    .origin
                    .error(&join(&self.path, key), format!("unknown key{hint}")))
            }
        }
    }
}

/// `path.key`, with the key quoted if TOML would need it.
pub fn join(path: &str, key: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let key = if !key.is_empty() && key.chars().all(bare) {
        key.to_owned()
    } else {
        format!("\"{key}\"")
    };
    if path.is_empty() {
        key
    } else {
        format!("{path}.{key}")
    }
}

/// The known name that `wrong` probably is, misspelt.
pub fn closest<'a>(wrong: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let closest = known.min_by_key(|name| damerau_levenshtein(wrong, name));
    closest.filter(|name| is_close(wrong, name))
}

/// `, did you mean …?` with the known name closest to `wrong`, else a list of what is known.
pub fn suggest<'a>(wrong: &str, known: impl Iterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.collect();
    match closest(wrong, known.iter().copied()) {
        Some(name) => format!(", did you mean `{name}`?"),
        None if known.is_empty() => String::new(),
        None => format!("; known here: {}", known.join(", ")),
    }
}

/// Whether one is probably the other misspelt.
fn is_close(wrong: &str, right: &str) -> bool {
    damerau_levenshtein(wrong, right) <= 1 + wrong.len() / 4
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values without where they stand.
    fn plain(node: &Node) -> String {
        match &node.value {
            Value::Table(entries) => {
                let mut all: Vec<_> = entries
                    .iter()
                    .map(|(k, n)| format!("{k}={}", plain(n)))
                    .collect();
                all.sort();
                format!("{all:?}")
            }
            Value::List(items) => format!("{:?}", items.iter().map(plain).collect::<Vec<_>>()),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let text = "a = 'one \"two\"\n'\n[t.\"/x y\"]\nn = -3\n[t.u]\nlist = [1, 2.5, { k = true }]\n[z]\nb = 1e300\n";
        let text = text
            .replace("'one", "'''one")
            .replace("\n'\n[t.\"", "\n'''\n[t.\"");
        let mut document = Node::parse("a.toml", &text).unwrap();
        // A value behind a table.
        document.overlay(&Node::parse("b.toml", "late = [0.1]").unwrap());
        let written = document.to_toml();
        let read = Node::parse("c.toml", &written).unwrap();
        assert_eq!(plain(&read), plain(&document), "{written}");
        let keys = |node: &Node| match &node.value {
            Value::Table(entries) => entries
                .iter()
                .map(|(key, _)| key.clone())
                .collect::<Vec<_>>(),
            _ => Vec::new(),
        };
        assert_eq!(keys(&read), ["a", "late", "t", "z"]);
    }
}
