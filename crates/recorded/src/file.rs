//! `docs/figures.json`: what was measured, and when, of what, on what.

use std::path::Path;

use andante_job::LabError;
use serde::{Deserialize, Serialize};

use super::declaration::{Declaration, Entry, Source, ValueSpec};
use super::provenance::Recording;

/// The name that the file carries in `schema`.
const SCHEMA: &str = "andante-figures";
/// Raised when a field changes meaning or goes.
const VERSION: u32 = 1;

/// All figures that have been recorded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Recorded {
    schema: String,
    version: u32,
    /// When, of what and on what; entries refer to them by number, from 1.
    pub recordings: Vec<Recording>,
    /// In the order of the declaration.
    pub figures: Vec<RecordedEntry>,
}

/// What came out of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RecordedEntry {
    /// As declared.
    pub name: String,
    /// One sentence with the values in it.
    pub says: String,
    /// What to call to measure the same.
    pub command: String,
    /// Number of its recording, from 1.
    pub recording: usize,
    /// In the order of the declaration.
    pub values: Vec<RecordedValue>,
}

/// One figure. What was measured several times (of several cases or instances) is a range.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RecordedValue {
    /// As declared.
    pub name: String,
    /// As pages write it.
    pub text: String,
    /// What was measured, in words.
    pub what: String,
    /// The least that was measured, in the unit of `text`.
    pub least: f64,
    /// The most.
    pub most: f64,
}

impl Recorded {
    /// Nothing has been recorded yet.
    pub fn none() -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            version: VERSION,
            recordings: Vec::new(),
            figures: Vec::new(),
        }
    }

    /// Reads the file; where there is none, nothing has been recorded.
    pub fn load(file: &Path) -> Result<Self, LabError> {
        let text = match std::fs::read(file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Self::none()),
            Err(error) => return Err(LabError::file("read", file, error)),
        };
        let wrong = |reason: String| LabError::NoFigures {
            file: file.to_owned(),
            reason,
        };
        let recorded: Self =
            serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?;
        if (recorded.schema.as_str(), recorded.version) != (SCHEMA, VERSION) {
            return Err(wrong(format!(
                "it is {} {}, this build reads {SCHEMA} {VERSION}",
                recorded.schema, recorded.version
            )));
        }
        for one in &recorded.figures {
            if !(1..=recorded.recordings.len()).contains(&one.recording) {
                let (name, at) = (&one.name, one.recording);
                return Err(wrong(format!(
                    "{name} is of recording {at}, which is not there"
                )));
            }
        }
        Ok(recorded)
    }

    /// Writes it, whole or not at all.
    pub fn write(&self, file: &Path) -> Result<(), LabError> {
        let mut json = serde_json::to_vec_pretty(self).expect("figures are plain data");
        json.push(b'\n');
        let beside = file.with_extension("json.new");
        andante_job::files::write_file(&beside, &json)?;
        std::fs::rename(&beside, file).map_err(|error| LabError::file("write", file, error))
    }

    /// The entry of this name.
    pub fn entry(&self, name: &str) -> Option<&RecordedEntry> {
        self.figures.iter().find(|entry| entry.name == name)
    }

    /// Puts a new recording of `entry` in the place of the one before.
    pub fn put(&mut self, entry: &Entry, measured: &[(f64, f64)], recording: Recording) {
        self.recordings.push(recording);
        let value = |(spec, &(least, most)): (&ValueSpec, &(f64, f64))| RecordedValue {
            name: spec.name.clone(),
            text: spec.text(least, most),
            what: spec.what(),
            least,
            most,
        };
        let values: Vec<_> = entry.values.iter().zip(measured).map(value).collect();
        self.figures.retain(|known| known.name != entry.name);
        self.figures.push(RecordedEntry {
            name: entry.name.clone(),
            says: entry.filled(|name| text_of(&values, name)),
            command: entry.command(),
            recording: self.recordings.len(),
            values,
        });
    }

    /// The same in the order of the declaration and written as it says now. What is not declared any more, or
    /// is declared to be something else, is left out, and so are recordings that nothing is of.
    pub fn settled(&self, declaration: &Declaration) -> Self {
        let mut settled = Self::none();
        for entry in &declaration.entries {
            let Some(known) = self.entry(&entry.name) else {
                continue;
            };
            let Ok(values) = known.values_of(entry) else {
                continue;
            };
            let recording = &self.recordings[known.recording - 1];
            let number = match settled.recordings.iter().position(|one| one == recording) {
                Some(at) => at + 1,
                None => {
                    settled.recordings.push(recording.clone());
                    settled.recordings.len()
                }
            };
            settled.figures.push(RecordedEntry {
                says: entry.filled(|name| text_of(&values, name)),
                values,
                recording: number,
                ..known.clone()
            });
        }
        settled
    }
}

impl RecordedEntry {
    /// The values as `entry` declares them now, with their texts.
    ///
    /// # Errors
    /// In which way what was recorded is something else.
    pub fn values_of(&self, entry: &Entry) -> Result<Vec<RecordedValue>, String> {
        if matches!(entry.source, Source::Asserted(_)) {
            return Err("is asserted only, by a test".to_owned());
        }
        let command = entry.command();
        if command != self.command {
            return Err(format!(
                "was recorded by `{}`, and is declared as `{command}`",
                self.command
            ));
        }
        let value = |spec: &ValueSpec| {
            let known = self.values.iter().find(|value| value.name == spec.name);
            let known = known.ok_or_else(|| format!("was recorded without `{}`", spec.name))?;
            if known.what != spec.what() {
                return Err(format!(
                    "has `{}` recorded as {}, and declared as {}",
                    spec.name,
                    known.what,
                    spec.what()
                ));
            }
            Ok(RecordedValue {
                text: spec.text(known.least, known.most),
                ..known.clone()
            })
        };
        entry.values.iter().map(value).collect()
    }

    /// How the value `name` is written.
    pub fn text(&self, name: &str) -> Option<&str> {
        let mut values = self.values.iter();
        let value = values.find(|value| value.name == name)?;
        Some(&value.text)
    }
}

/// How the value `name` of these is written; each is there.
fn text_of(values: &[RecordedValue], name: &str) -> String {
    let value = values.iter().find(|value| value.name == name);
    value.map_or_else(String::new, |value| value.text.clone())
}
