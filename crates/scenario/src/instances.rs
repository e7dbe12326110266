//! `instances = "sum"`: how the figures of a repeated program become one.

use std::fmt;

use andante_document::{DocumentError, Section};

/// How the figures of the instances of a repeated program become one figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Instances {
    /// Their sum.
    Sum,
    /// Their arithmetic mean.
    Mean,
    /// The least of them.
    Least,
    /// The largest of them.
    Largest,
}

impl Instances {
    /// Reads the key `instances`, if it is given.
    pub fn read(section: &mut Section<'_>) -> Result<Option<Self>, DocumentError> {
        let Some(name) = section.get::<String>("instances")? else {
            return Ok(None);
        };
        match name.as_str() {
            "sum" => Ok(Some(Self::Sum)),
            "mean" => Ok(Some(Self::Mean)),
            "least" => Ok(Some(Self::Least)),
            "largest" => Ok(Some(Self::Largest)),
            _ => Err(section.error("instances", "give sum, mean, least or largest")),
        }
    }

    /// The figures as one; of none it is no number.
    pub fn join(self, figures: impl ExactSizeIterator<Item = f64>) -> f64 {
        let n = figures.len() as f64;
        match self {
            Self::Sum => figures.sum(),
            Self::Mean => figures.sum::<f64>() / n,
            Self::Least => figures.fold(f64::NAN, f64::min),
            Self::Largest => figures.fold(f64::NAN, f64::max),
        }
    }
}

impl fmt::Display for Instances {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sum => "sum",
            Self::Mean => "mean",
            Self::Least => "least",
            Self::Largest => "largest",
        })
    }
}
