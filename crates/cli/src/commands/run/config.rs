//! What `andante run` is told: by its options, else by files, else the defaults.
//!
//! `/etc/andante.toml` comes first, then `/etc/andante.d/*.toml` in the order of their names; each is
//! laid over those before it. With `--config` only that file is read.

use std::fs;
use std::io::ErrorKind;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use andante_document::{DocumentError, Node, Section};
use andante_sched::Options;

use crate::exit::{Refusal, Status};

/// The file that is read if there is one.
pub(super) const FILE: &str = "/etc/andante.toml";
/// The folder whose files are laid over it.
pub(super) const FOLDER: &str = "/etc/andante.d";

/// What may be chosen; None: nothing is said of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Choices {
    pub slice_us: Option<u32>,
    pub learn_percent: Option<u32>,
    pub binding: Option<bool>,
    pub leave_percent: Option<u32>,
    pub user_quota_percent: Option<u32>,
    pub domain_cpus: Option<u32>,
}

/// Service of one pick [µs].
pub(super) const SLICE_US: RangeInclusive<u32> = 100..=100_000;
/// Of every CPU, for what is learnt [%].
pub(super) const LEARN_PERCENT: RangeInclusive<u32> = 0..=90;
/// Of every CPU, for everybody without a contract [%].
pub(super) const LEAVE_PERCENT: RangeInclusive<u32> = 1..=95;
/// Of the machine, for contracts of a user [%].
pub(super) const USER_QUOTA_PERCENT: RangeInclusive<u32> = 0..=100;
/// CPUs of a domain.
pub(super) const DOMAIN_CPUS: RangeInclusive<u32> = 1..=1024;

/// What a user without privilege may reserve if nothing is said [%].
const USER_QUOTA: u32 = 10;

impl Choices {
    /// These, and where they say nothing, those.
    pub fn or(self, other: Self) -> Self {
        Self {
            slice_us: self.slice_us.or(other.slice_us),
            learn_percent: self.learn_percent.or(other.learn_percent),
            binding: self.binding.or(other.binding),
            leave_percent: self.leave_percent.or(other.leave_percent),
            user_quota_percent: self.user_quota_percent.or(other.user_quota_percent),
            domain_cpus: self.domain_cpus.or(other.domain_cpus),
        }
    }

    /// The scheduler's part of them.
    pub fn options(&self) -> Options {
        let default = Options::default();
        Options {
            slice_us: self.slice_us.unwrap_or(default.slice_us),
            leave_percent: self.leave_percent.unwrap_or(default.leave_percent),
            learn_percent: self.learn_percent.unwrap_or(default.learn_percent),
            binding: self.binding.unwrap_or(default.binding),
            domain_cpus: self.domain_cpus,
        }
    }

    /// What a user without privilege may reserve [%].
    pub fn user_quota_percent(&self) -> u32 {
        self.user_quota_percent.unwrap_or(USER_QUOTA)
    }

    fn read(document: &Node) -> Result<Self, DocumentError> {
        let mut top = Section::new(document, "")?;
        let choices = Self {
            slice_us: whole(&mut top, "slice_us", SLICE_US)?,
            learn_percent: whole(&mut top, "learn_percent", LEARN_PERCENT)?,
            binding: top.get("binding")?,
            leave_percent: whole(&mut top, "leave_percent", LEAVE_PERCENT)?,
            user_quota_percent: whole(&mut top, "user_quota_percent", USER_QUOTA_PERCENT)?,
            domain_cpus: whole(&mut top, "domain_cpus", DOMAIN_CPUS)?,
        };
        top.finish()?;
        Ok(choices)
    }
}

fn whole(
    top: &mut Section<'_>,
    key: &'static str,
    range: RangeInclusive<u32>,
) -> Result<Option<u32>, DocumentError> {
    let number: Option<u32> = top.get(key)?;
    match number {
        Some(number) if !range.contains(&number) => {
            let (least, most) = range.into_inner();
            let message = format!("{number} is out of range: give {least} to {most}");
            Err(top.error(key, message))
        }
        number => Ok(number),
    }
}

/// What the files say, and which files these are.
///
/// # Errors
/// One cannot be read, or says what makes no sense: with its name, line and key.
pub(super) fn from_files(only: Option<&Path>) -> Result<(Choices, Vec<PathBuf>), Refusal> {
    let files = match only {
        Some(path) => vec![path.to_owned()],
        None => usual(Path::new(FILE), Path::new(FOLDER))?,
    };
    let mut choices = Choices::default();
    for path in &files {
        let text = fs::read_to_string(path).map_err(|error| unreadable(path, &error))?;
        let said = Node::parse(&path.display().to_string(), &text)
            .and_then(|document| Choices::read(&document))
            .map_err(|error| Refusal::new(Status::BadConfig, error.to_string()))?;
        choices = said.or(choices);
    }
    Ok((choices, files))
}

/// Those of the usual files that there are.
fn usual(file: &Path, folder: &Path) -> Result<Vec<PathBuf>, Refusal> {
    let mut files = Vec::new();
    match fs::read_dir(folder) {
        Ok(entries) => files.extend(entries.flatten().map(|entry| entry.path())),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(unreadable(folder, &error)),
    }
    files.retain(|path| path.extension().is_some_and(|end| end == "toml"));
    files.sort();
    if file.exists() {
        files.insert(0, file.to_owned());
    }
    Ok(files)
}

fn unreadable(path: &Path, error: &std::io::Error) -> Refusal {
    let message = format!("cannot read {}: {error}", path.display());
    Refusal::new(Status::BadConfig, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Choices, String> {
        let document = Node::parse("my.toml", text).map_err(|error| error.to_string())?;
        Choices::read(&document).map_err(|error| error.to_string())
    }

    #[test]
    fn one_key_switches_learning_off() {
        let choices = read("learn_percent = 0").unwrap();
        assert_eq!(choices.options().learn_percent, 0);
        let other = Options {
            learn_percent: 0,
            ..Options::default()
        };
        assert_eq!(choices.options(), other);
        // What the command line says comes first.
        let option = Choices {
            learn_percent: Some(30),
            ..Choices::default()
        };
        assert_eq!(option.or(choices).options().learn_percent, 30);
    }

    #[test]
    fn mistakes_are_told_with_line_and_key() {
        for (text, says) in [
            (
                "\nlern_percent = 0",
                "my.toml:2: lern_percent: unknown key, did you mean `learn_percent`?",
            ),
            (
                "leave_percent = 0",
                "my.toml:1: leave_percent: 0 is out of range: give 1 to 95",
            ),
            (
                "binding = 1",
                "my.toml:1: binding: expected true or false, found a whole number",
            ),
            ("slice_us = ", "my.toml:1: "),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with(says), "{text}: {error}");
        }
    }

    #[test]
    fn files_are_laid_over_each_other_in_the_order_of_their_names() {
        let folder = tempfile::tempdir().unwrap();
        let (file, drop_ins) = (folder.path().join("a.toml"), folder.path().join("d"));
        assert_eq!(usual(&file, &drop_ins).unwrap(), [] as [PathBuf; 0]);
        fs::create_dir(&drop_ins).unwrap();
        for name in ["20-b.toml", "10-a.toml", "README"] {
            fs::write(drop_ins.join(name), "").unwrap();
        }
        fs::write(&file, "").unwrap();
        let found = usual(&file, &drop_ins).unwrap();
        let expected = [file, drop_ins.join("10-a.toml"), drop_ins.join("20-b.toml")];
        assert_eq!(found, expected);
    }

    /// The file that is shipped says what holds anyway, behind comment signs.
    #[test]
    fn the_sample_names_every_key_and_its_default() {
        let sample = include_str!("../../../../../dist/andante.toml");
        assert_eq!(read(sample).unwrap(), Choices::default());
        let keys = sample.lines().filter_map(|line| line.strip_prefix("#"));
        let keys: Vec<_> = keys.filter(|line| !line.starts_with(' ')).collect();
        let choices = read(&keys.join("\n")).unwrap();
        let default = Options {
            domain_cpus: Some(16),
            ..Options::default()
        };
        assert_eq!(choices.options(), default);
        assert_eq!(choices.user_quota_percent, Some(USER_QUOTA));
        assert_eq!(keys.len(), 6);
    }
}
