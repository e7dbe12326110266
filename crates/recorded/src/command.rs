//! Values that a command of the repository reports.
//!
//! Lines `REPORT KEY VALUE` of what it prints are read, as the tests on a real kernel print them
//! (`crates/cli/tests/kernel`). Where a test reports several values under a key, with words before each,
//! `with = "WORDS"` chooses those that begin so, and `nth` the one at this place, from 1.

use std::process::{Command, Stdio};

use andante_document::{DocumentError, Section};
use andante_job::LabError;

/// Which of the reported values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reported {
    pub key: String,
    pub with: Option<String>,
    pub nth: Option<u32>,
}

impl Reported {
    pub fn read(section: &mut Section<'_>) -> Result<Self, DocumentError> {
        let reported = Self {
            key: section.need("report")?,
            with: section.get("with")?,
            nth: section.get("nth")?,
        };
        if reported.nth == Some(0) {
            return Err(section.error("nth", "they are counted from 1"));
        }
        Ok(reported)
    }

    /// In words.
    pub fn what(&self) -> String {
        let mut words = format!("{} as reported", self.key);
        if let Some(with) = &self.with {
            words += &format!(" with {with}");
        }
        if let Some(nth) = self.nth {
            words += &format!(", number {nth}");
        }
        words
    }

    /// The values, from what the command printed.
    ///
    /// # Errors
    /// What is missing, in words.
    pub fn of(&self, printed: &str) -> Result<Vec<f64>, String> {
        let reported = printed.lines().filter_map(|line| {
            let (key, value) = line.trim().strip_prefix("REPORT ")?.split_once(' ')?;
            (key == self.key).then_some(value)
        });
        let chosen = reported.filter(|value| match &self.with {
            None => true,
            Some(with) => value
                .strip_prefix(with.as_str())
                .is_some_and(|rest| rest.starts_with(' ')),
        });
        let number = |value: &str| {
            let last = value.split_whitespace().last().unwrap_or_default();
            last.parse::<f64>()
                .map_err(|_| format!("`REPORT {} {value}` ends in no number", self.key))
        };
        let all: Vec<f64> = chosen.map(number).collect::<Result<_, _>>()?;
        let missing = || format!("nothing is reported of {}", self.what());
        match self.nth {
            None if all.is_empty() => Err(missing()),
            None => Ok(all),
            Some(nth) => Ok(vec![*all.get(nth as usize - 1).ok_or_else(missing)?]),
        }
    }
}

/// Words as a shell reads them.
pub(crate) fn text<T: AsRef<str>>(words: &[T]) -> String {
    let words = words.iter().map(AsRef::as_ref);
    // Only a zero byte cannot be quoted, and TOML has none.
    shlex::try_join(words.clone()).unwrap_or_else(|_| words.collect::<Vec<_>>().join(" "))
}

/// Runs it and returns what it printed. The tests of cargo are told to let it through.
///
/// # Errors
/// If it cannot be started, or fails: with the last line that it said.
pub(crate) fn run(words: &[String]) -> Result<String, LabError> {
    let output = Command::new(&words[0])
        .args(&words[1..])
        .env("RUST_TEST_NOCAPTURE", "1")
        // Those of the make that has called us are not for another one.
        .env_remove("MAKEFLAGS")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| LabError::io(format!("run `{}`", text(words)), error))?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(printed);
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let last = said.lines().rev().find(|line| !line.trim().is_empty());
    let last = last.unwrap_or("it says nothing").trim();
    let error = std::io::Error::other(format!("{}: {last}", output.status));
    Err(LabError::io(format!("run `{}`", text(words)), error))
}
