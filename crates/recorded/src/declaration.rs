//! `docs/figures.toml`: which figures are recorded, and how each is written.
//!
//! ```toml
//! quoted_in = ["README.md"]                  # pages with markers, from the folder above
//!
//! [figures.film-loops]
//! title = "film beside 8 loops, 1 CPU"
//! says = "{frames} frames, longest freeze {freeze}"   # as tables show it
//! scenario = "film-loops"                    # run in the virtual machine …
//! schedulers = ["andante", "stock"]          # andante alone if left out
//! cases = ["a", "b"]                         # all if left out
//! set = ["duration_s = 60"]
//!
//! [figures.film-loops.values]
//! frames = { measure = "frames", program = "film" }
//! freeze = { measure = "longest_freeze_ms", program = "film", decimals = 1, unit = "ms" }
//! ```
//! Instead of `scenario` an entry may have `paper = "KEY"` (values `{ tally = "hold" }`, or `compared`,
//! `explained`), `command = "make …"` (values `{ report = "KEY" }`, see [`super::command`]; `cpus` of its
//! machine), or `asserted = "make …"`: a test holds what it says, and there are no values.
//!
//! A value of a scenario has the keys of an expectation (`measure`, `program` or `class`, `scheduler`,
//! `case`, `instances`, `at_s`, `over`), and may have `programs = "p*"` for each of several, `not_case` in the
//! place of `case` and `minus` in that of `over`; every value `decimals` (0), `unit`,
//! `scale` (1), and `show`: of what was measured in several cases, or of several instances, `range` (as it is
//! if left out), `largest`, `least` or `sum`.

use std::path::Path;

use andante_document::{DocumentError, Node, Section, suggest};
use andante_paper as paper;
use andante_result::figures::number;
use andante_scenario::Scenario;
use andante_scenario::choice::Choice;

use super::command;
use super::measured::Measures;

/// Most digits after the point that a figure may be written with.
const DECIMALS_MAX: f64 = 9.0;

/// The whole file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Declaration {
    /// Pages that quote figures, as paths from the folder above that of the declaration.
    pub quoted_in: Vec<String>,
    /// In the order of the file.
    pub entries: Vec<Entry>,
}

/// What one run brings.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub name: String,
    /// Where it is declared [line].
    pub line: usize,
    /// What is measured, for people.
    pub title: String,
    /// A sentence with values in braces.
    pub says: String,
    pub source: Source,
    pub values: Vec<ValueSpec>,
}

/// What is run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Source {
    Scenario(ScenarioRun),
    /// A published experiment in the simulator.
    Paper(String),
    /// A command of the repository that reports values, and the CPUs of its machine.
    Command(Vec<String>, u32),
    /// A test that holds it, by the command that runs it.
    Asserted(String),
}

/// A scenario in the virtual machine.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ScenarioRun {
    pub name: String,
    pub cases: Vec<String>,
    pub set: Vec<String>,
    pub schedulers: Vec<String>,
    /// CPUs of the largest machine that it needs.
    pub cpus: u32,
}

/// One value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ValueSpec {
    pub name: String,
    pub of: Of,
    pub scale: f64,
    pub decimals: usize,
    pub unit: String,
    pub show: Show,
}

/// What is read from what a run leaves.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Of {
    Measure(Box<Measures>),
    /// What a paper's run tells of this kind.
    Tally(TallyOf),
    /// What a command reports.
    Report(command::Reported),
}

/// Of a paper's figures, how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TallyOf {
    Compared,
    Hold,
    Explained,
}

/// What is shown of several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Show {
    Range,
    Largest,
    Least,
    Sum,
}

impl Declaration {
    /// Reads the file.
    ///
    /// # Errors
    /// The first mistake in it, or in a scenario that it names, with file, line and key.
    pub fn load(file: &Path) -> Result<Self, DocumentError> {
        let name = file.display().to_string();
        let text = std::fs::read_to_string(file).map_err(|error| DocumentError {
            file: name.clone(),
            line: 1,
            key: String::new(),
            message: format!("cannot be read: {error}; run it in the repository, or give --docs"),
        })?;
        Self::parse(&name, &text)
    }

    /// Reads it from `text`.
    ///
    /// # Errors
    /// As [`Declaration::load`].
    pub fn parse(file: &str, text: &str) -> Result<Self, DocumentError> {
        let document = Node::parse(file, text)?;
        let mut section = Section::new(&document, "")?;
        let quoted_in = section.get("quoted_in")?.unwrap_or_default();
        let Some(figures) = section.node("figures") else {
            return Err(section.error("", "no figure is declared: write [figures.NAME]"));
        };
        section.finish()?;
        let entries = Section::new(figures, "figures")?.entries();
        let entries = entries.map(|(name, path, node)| Entry::read(name, &path, node));
        Ok(Self {
            quoted_in,
            entries: entries.collect::<Result<_, _>>()?,
        })
    }

    /// The entry of this name.
    pub fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.name == name)
    }
}

impl Entry {
    fn read(name: &str, path: &str, node: &Node) -> Result<Self, DocumentError> {
        let mut section = Section::new(node, path)?;
        let bare = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if !name.chars().all(bare) {
            return Err(section.error("", "call it by small letters, digits and -"));
        }
        let title = section.need("title")?;
        let says: String = section.need("says")?;
        let (source, scenario) = read_source(&mut section)?;
        let values = match section.node("values") {
            None => Vec::new(),
            Some(values) => Section::new(values, &andante_document::join(path, "values"))?
                .entries()
                .map(|(name, path, node)| {
                    ValueSpec::read(name, &path, node, &source, scenario.as_ref())
                })
                .collect::<Result<Vec<_>, _>>()?,
        };
        section.finish()?;
        let entry = Self {
            name: name.to_owned(),
            line: node.origin.line,
            title,
            says,
            source,
            values,
        };
        entry.check(&section)?;
        Ok(entry)
    }

    /// Refuses a sentence with values that there are not, and an entry without any.
    fn check(&self, section: &Section<'_>) -> Result<(), DocumentError> {
        let known = || self.values.iter().map(|value| value.name.as_str());
        match (&self.source, self.values.is_empty()) {
            (Source::Asserted(_), false) => {
                return Err(section.error("values", "what is only asserted has none"));
            }
            (Source::Asserted(_), true) | (_, false) => {}
            (_, true) => return Err(section.error("", "`values` is missing: what is recorded?")),
        }
        for (_, value) in braces(&self.says) {
            if !known().any(|name| name == value) {
                let hint = match self.values.is_empty() {
                    true => "; there are none".to_owned(),
                    false => suggest(value, known()),
                };
                return Err(section.error("says", format!("unknown value `{value}`{hint}")));
            }
        }
        Ok(())
    }

    /// The value of this name.
    pub fn value(&self, name: &str) -> Option<&ValueSpec> {
        self.values.iter().find(|value| value.name == name)
    }

    /// `says` with `text` of every value in its place.
    pub fn filled(&self, text: impl Fn(&str) -> String) -> String {
        let (mut filled, mut at) = (String::new(), 0);
        for (begin, name) in braces(&self.says) {
            filled += &self.says[at..begin];
            filled += &text(name);
            at = begin + name.len() + 2;
        }
        filled + &self.says[at..]
    }

    /// Values that `says` does not mention.
    pub fn unsaid(&self) -> impl Iterator<Item = &ValueSpec> {
        let said = |value: &&ValueSpec| braces(&self.says).any(|(_, name)| name == value.name);
        self.values.iter().filter(move |value| !said(value))
    }

    /// What to call to measure the same.
    pub fn command(&self) -> String {
        match &self.source {
            Source::Scenario(run) => run.command(),
            Source::Paper(key) => format!("andante paper {key}"),
            Source::Command(words, _) => command::text(words),
            Source::Asserted(command) => command.clone(),
        }
    }
}

impl ScenarioRun {
    fn command(&self) -> String {
        let mut words = vec!["andante", "lab", "run", "--scheduler"];
        let schedulers = self.schedulers.join(",");
        words.extend([schedulers.as_str(), &self.name]);
        let cases = self.cases.join(",");
        if !cases.is_empty() {
            words.extend(["--case", &cases]);
        }
        for line in &self.set {
            words.extend(["--set", line]);
        }
        command::text(&words)
    }
}

/// Where names in braces begin, and the names.
fn braces(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.match_indices('{').filter_map(|(at, _)| {
        let rest = &text[at + 1..];
        Some((at, &rest[..rest.find('}')?]))
    })
}

/// Reads what is run, and the scenario if it is one.
fn read_source(section: &mut Section<'_>) -> Result<(Source, Option<Scenario>), DocumentError> {
    let scenario: Option<String> = section.get("scenario")?;
    let paper: Option<String> = section.get("paper")?;
    let command: Option<String> = section.get("command")?;
    let asserted: Option<String> = section.get("asserted")?;
    match (scenario, paper, command, asserted) {
        (Some(name), None, None, None) => {
            let (run, scenario) = ScenarioRun::read(name, section)?;
            Ok((Source::Scenario(run), Some(scenario)))
        }
        (None, Some(key), None, None) => {
            paper::folder_of(&key).map_err(|error| section.error("paper", error.to_string()))?;
            Ok((Source::Paper(key), None))
        }
        (None, None, Some(line), None) => {
            let words = shlex::split(&line).filter(|words| !words.is_empty());
            let words = words.ok_or_else(|| section.error("command", "it is no command line"))?;
            let cpus = section.get("cpus")?.unwrap_or(1);
            Ok((Source::Command(words, cpus), None))
        }
        (None, None, None, Some(command)) => Ok((Source::Asserted(command), None)),
        _ => Err(section.error(
            "",
            "give exactly one of `scenario`, `paper`, `command` and `asserted`",
        )),
    }
}

impl ScenarioRun {
    fn read(name: String, section: &mut Section<'_>) -> Result<(Self, Scenario), DocumentError> {
        let cases: Vec<String> = section.get("cases")?.unwrap_or_default();
        let set: Vec<String> = section.get("set")?.unwrap_or_default();
        let schedulers: Vec<String> = section
            .get("schedulers")?
            .unwrap_or_else(|| vec!["andante".to_owned()]);
        for scheduler in &schedulers {
            if !Choice::OF_KERNEL.contains(&scheduler.as_str()) {
                let hint = suggest(scheduler, Choice::OF_KERNEL.into_iter());
                let message = format!("unknown scheduler `{scheduler}`{hint}");
                return Err(section.error("schedulers", message));
            }
        }
        let file = andante_job::files::find(&name)
            .map_err(|error| section.error("scenario", error.to_string()))?;
        let mut scenario = Scenario::load(&file, &set)?;
        if !cases.is_empty() {
            andante_job::files::keep_cases(&mut scenario, &cases)
                .map_err(|error| section.error("cases", error.to_string()))?;
        }
        let cpus = scenario.cases.iter().map(|case| case.workload.cpus).max();
        let run = Self {
            name,
            cases,
            set,
            schedulers,
            cpus: cpus.unwrap_or(1),
        };
        Ok((run, scenario))
    }
}

impl ValueSpec {
    fn read(
        name: &str,
        path: &str,
        node: &Node,
        source: &Source,
        scenario: Option<&Scenario>,
    ) -> Result<Self, DocumentError> {
        let mut section = Section::new(node, path)?;
        let of = match (source, scenario) {
            (Source::Scenario(run), Some(scenario)) => {
                Of::Measure(Box::new(Measures::read(&mut section, path, run, scenario)?))
            }
            (Source::Paper(_), _) => {
                section.need::<String>("tally")?;
                Of::Tally(section.one_of(
                    "tally",
                    &[
                        ("compared", TallyOf::Compared),
                        ("hold", TallyOf::Hold),
                        ("explained", TallyOf::Explained),
                    ],
                )?)
            }
            _ => Of::Report(command::Reported::read(&mut section)?),
        };
        let spec = Self {
            name: name.to_owned(),
            of,
            scale: section.get("scale")?.unwrap_or(1.0),
            decimals: section.number("decimals", 0.0, 0.0..=DECIMALS_MAX)? as usize,
            unit: section.get("unit")?.unwrap_or_default(),
            show: section.one_of(
                "show",
                &[
                    ("range", Show::Range),
                    ("largest", Show::Largest),
                    ("least", Show::Least),
                    ("sum", Show::Sum),
                ],
            )?,
        };
        section.finish()?;
        Ok(spec)
    }

    /// As it is written: `38.4 ms`, or `6.0 to 6.5 ms`.
    pub fn text(&self, least: f64, most: f64) -> String {
        let (from, to) = (number(least, self.decimals), number(most, self.decimals));
        let figures = match from == to {
            true => from,
            false => format!("{from} to {to}"),
        };
        match self.unit.as_str() {
            "" => figures,
            unit => format!("{figures} {unit}"),
        }
    }

    /// What was measured, in words; another declaration of the same has the same.
    pub fn what(&self) -> String {
        let mut words = match &self.of {
            Of::Measure(measures) => measures.what.clone(),
            Of::Tally(TallyOf::Compared) => "figures compared".to_owned(),
            Of::Tally(TallyOf::Hold) => "figures that hold".to_owned(),
            Of::Tally(TallyOf::Explained) => "figures that deviate for a reason given".to_owned(),
            Of::Report(reported) => reported.what(),
        };
        if self.scale != 1.0 {
            words += &format!(", times {}", self.scale);
        }
        match self.show {
            Show::Range => words,
            Show::Largest => words + ", the largest",
            Show::Least => words + ", the least",
            Show::Sum => words + ", the sum",
        }
    }
}
