//! Which figure of which run a cell shows, and what is demanded of it.

use std::fmt;

use andante_document::{DocumentError, Origin};
use andante_scenario::{Figure, Instances, Over};

use crate::result::{AT_LEAST, AT_MOST};

/// One run: a case of a scenario under a scheduler.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RunKey {
    /// The scenario's file, without `.toml`.
    pub scenario: String,
    /// None if the scenario has no cases.
    pub case: Option<String>,
    /// `andante`, or a policy for all tasks.
    pub scheduler: String,
}

impl fmt::Display for RunKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.scenario)?;
        if let Some(case) = &self.case {
            write!(f, "/{case}")?;
        }
        write!(f, " {}", self.scheduler)
    }
}

/// Where a measured figure comes from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Source {
    pub run: RunKey,
    pub figure: Figure,
    /// What it is divided by, and in which run.
    pub over: Option<(Over, RunKey)>,
    /// What it is multiplied by.
    pub scale: f64,
    /// How the instances of a repeated program become one figure.
    pub instances: Option<Instances>,
}

impl Source {
    /// The runs it needs.
    pub fn runs(&self) -> impl Iterator<Item = &RunKey> {
        let base = self.over.as_ref().map(|(_, run)| run);
        std::iter::once(&self.run).chain(base)
    }
}

/// How near a measured figure must be to the published one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Demand {
    /// Nothing: it is shown.
    Nothing,
    /// Not further off than this part of it.
    Within(f64),
    /// Not further off than this, in its own unit.
    WithinAbs(f64),
    /// At most so many times more or less.
    Factor(f64),
    /// Not more.
    AtMost,
    /// Not less.
    AtLeast,
}

impl Demand {
    /// Whether `measured` is near enough to `published`.
    pub fn holds(self, measured: f64, published: f64) -> bool {
        match self {
            Self::Nothing => true,
            Self::Within(part) => (measured - published).abs() <= part * published.abs(),
            Self::WithinAbs(distance) => (measured - published).abs() <= distance,
            Self::Factor(factor) => {
                let ratio = measured / published;
                ratio <= factor && ratio >= 1.0 / factor
            }
            Self::AtMost => measured <= published,
            Self::AtLeast => measured >= published,
        }
    }
}

impl fmt::Display for Demand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => Ok(()),
            // Rounded: 0.07 is a little more than 7 % in binary.
            Self::Within(part) => write!(f, "within {} %", (part * 1e6).round() / 1e4),
            Self::WithinAbs(distance) => write!(f, "within {distance}"),
            Self::Factor(factor) => write!(f, "within a factor of {factor}"),
            Self::AtMost => f.write_str(AT_MOST),
            Self::AtLeast => f.write_str(AT_LEAST),
        }
    }
}

/// What is demanded where the paper has a dash.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Starves {
    /// Nothing may be completed.
    Entirely,
    /// Nothing may be completed, or it must be so many times worse than the baseline.
    Times(f64),
}

/// Where in the file something is resolved, for errors.
#[derive(Debug, Clone, Copy)]
pub(crate) struct At<'a> {
    pub origin: &'a Origin,
    pub path: &'a str,
}

impl At<'_> {
    pub fn error(&self, message: impl Into<String>) -> DocumentError {
        self.origin.error(self.path, message)
    }
}
