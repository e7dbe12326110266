// SPDX-License-Identifier: GPL-2.0
//! A table of a TOML document that is being read: it knows its lines, and which keys were asked for.

use strsim::damerau_levenshtein;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::FileError;

/// Parses a document.
pub(super) fn document<'a>(file: &str, text: &'a str) -> Result<Spanned<DeTable<'a>>, FileError> {
    DeTable::parse(text).map_err(|error| FileError {
        file: file.to_owned(),
        line: line_of(text, error.span().map_or(0, |span| span.start)),
        key: String::new(),
        message: error.message().to_owned(),
    })
}

fn line_of(text: &str, offset: usize) -> usize {
    1 + text
        .bytes()
        .take(offset)
        .filter(|&byte| byte == b'\n')
        .count()
}

/// A value, to be read as one thing or another.
pub(super) struct Value<'a>(&'a DeValue<'a>);

impl Value<'_> {
    pub fn text(&self) -> Option<String> {
        self.0.as_str().map(str::to_owned)
    }

    pub fn integer(&self) -> Option<u32> {
        match self.0 {
            DeValue::Integer(digits) => u32::from_str_radix(digits.as_str(), digits.radix()).ok(),
            _ => None,
        }
    }

    /// The digits of a number, whole or decimal.
    pub fn number(&self) -> Option<String> {
        match self.0 {
            DeValue::Integer(digits) if digits.radix() == 10 => Some(digits.as_str().to_owned()),
            DeValue::Float(digits) => Some(digits.as_str().to_owned()),
            _ => None,
        }
    }
}

/// A table and the keys of it that are known.
pub(super) struct Section<'a> {
    file: &'a str,
    text: &'a str,
    table: &'a DeTable<'a>,
    /// Where the table begins, as an offset into the text.
    start: usize,
    path: String,
    known: Vec<&'static str>,
}

impl<'a> Section<'a> {
    /// The whole document.
    pub fn top(file: &'a str, text: &'a str, table: &'a DeTable<'a>) -> Self {
        Self {
            file,
            text,
            table,
            start: 0,
            path: String::new(),
            known: Vec::new(),
        }
    }

    /// The tables of the list at `key`, called `key[1]` and so on.
    pub fn tables(&mut self, key: &'static str) -> Result<Vec<Self>, FileError> {
        self.known.push(key);
        let Some(value) = self.table.get(key) else {
            return Ok(Vec::new());
        };
        let wrong = || self.error(key, format!("expected tables: write [[{key}]] over each"));
        let DeValue::Array(items) = value.get_ref() else {
            return Err(wrong());
        };
        let section = |(at, item): (usize, &'a Spanned<DeValue<'a>>)| match item.get_ref() {
            DeValue::Table(table) => Ok(Self {
                table,
                start: item.span().start,
                path: format!("{key}[{}]", at + 1),
                known: Vec::new(),
                ..*self
            }),
            _ => Err(wrong()),
        };
        items.iter().enumerate().map(section).collect()
    }

    /// Calls an item of a list by its name from now on.
    pub fn call(&mut self, name: &str) {
        if let Some((list, _)) = self.path.split_once('[') {
            self.path = format!("{list}.{}", quoted(name));
        }
    }

    /// The value at `key`, if there is one.
    pub fn get<T>(
        &mut self,
        key: &'static str,
        expected: &str,
        read: impl Fn(Value<'_>) -> Option<T>,
    ) -> Result<Option<T>, FileError> {
        self.known.push(key);
        let Some(value) = self.table.get(key) else {
            return Ok(None);
        };
        match read(Value(value.get_ref())) {
            Some(value) => Ok(Some(value)),
            None => Err(self.error(key, format!("expected {expected}"))),
        }
    }

    /// The value at `key`, which must be there.
    pub fn need<T>(
        &mut self,
        key: &'static str,
        expected: &str,
        read: impl Fn(Value<'_>) -> Option<T>,
    ) -> Result<T, FileError> {
        if let Some(value) = self.get(key, expected, read)? {
            return Ok(value);
        }
        // A key that is missing is often there, but misspelt.
        let misspelt = |wrong: &&str| !self.known.contains(wrong) && is_close(wrong, key);
        match self.keys().find(misspelt) {
            Some(wrong) => Err(self.error(wrong, format!("unknown key, did you mean `{key}`?"))),
            None => Err(self.error("", format!("`{key}` is missing: give {expected}"))),
        }
    }

    /// The choice named at `key`; without the key the first one.
    pub fn one_of<T: Copy>(
        &mut self,
        key: &'static str,
        choices: &[(&str, T)],
    ) -> Result<T, FileError> {
        let names: Vec<_> = choices
            .iter()
            .map(|(name, _)| format!("\"{name}\""))
            .collect();
        let expected = format!("one of {}", names.join(", "));
        let Some(chosen) = self.get(key, &expected, |value| value.text())? else {
            return Ok(choices[0].1);
        };
        match choices.iter().find(|(name, _)| *name == chosen) {
            Some(&(_, choice)) => Ok(choice),
            None => Err(self.error(key, format!("`{chosen}` is not known: give {expected}"))),
        }
    }

    /// Refuses keys that nobody asked for.
    pub fn finish(&self) -> Result<(), FileError> {
        let Some(wrong) = self.keys().find(|key| !self.known.contains(key)) else {
            return Ok(());
        };
        let closest = self
            .known
            .iter()
            .min_by_key(|key| damerau_levenshtein(wrong, key));
        let hint = match closest {
            Some(key) if is_close(wrong, key) => format!(", did you mean `{key}`?"),
            _ => format!("; known here: {}", self.known.join(", ")),
        };
        Err(self.error(wrong, format!("unknown key{hint}")))
    }

    /// The keys, in the order of the file.
    fn keys(&self) -> impl Iterator<Item = &'a str> {
        self.table.keys().map(|key| key.get_ref().as_ref())
    }

    /// An error about the value at `key`, or about the table.
    pub fn error(&self, key: &str, message: impl Into<String>) -> FileError {
        let start = self
            .table
            .get(key)
            .map_or(self.start, |value| value.span().start);
        let parts = [self.path.as_str(), key];
        let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        FileError {
            file: self.file.to_owned(),
            line: line_of(self.text, start),
            key: parts.join("."),
            message: message.into(),
        }
    }
}

/// A name as TOML would write it in a key.
fn quoted(name: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.chars().all(bare) {
        name.to_owned()
    } else {
        format!("\"{name}\"")
    }
}

/// Whether one is probably the other misspelt.
fn is_close(wrong: &str, right: &str) -> bool {
    damerau_levenshtein(wrong, right) <= 1 + wrong.len() / 4
}
