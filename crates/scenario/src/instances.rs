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
    /// The one in the middle, or the mean of both: for figures of which a few are of another kind.
    Median,
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
            "median" => Ok(Some(Self::Median)),
            "least" => Ok(Some(Self::Least)),
            "largest" => Ok(Some(Self::Largest)),
            _ => Err(section.error("instances", "give sum, mean, median, least or largest")),
        }
    }

    /// The figures as one; of none it is no number.
    pub fn join(self, figures: impl ExactSizeIterator<Item = f64>) -> f64 {
        let n = figures.len() as f64;
        match self {
            Self::Sum => figures.sum(),
            Self::Mean => figures.sum::<f64>() / n,
            Self::Median => median(figures.collect()),
            Self::Least => figures.fold(f64::NAN, f64::min),
            Self::Largest => figures.fold(f64::NAN, f64::max),
        }
    }
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    let middle = figures.len() / 2;
    match figures.len() {
        0 => f64::NAN,
        even if even.is_multiple_of(2) => f64::midpoint(figures[middle - 1], figures[middle]),
        _ => figures[middle],
    }
}

impl fmt::Display for Instances {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sum => "sum",
            Self::Mean => "mean",
            Self::Median => "median",
            Self::Least => "least",
            Self::Largest => "largest",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_become_one() {
        let join = |how: Instances, figures: &[f64]| how.join(figures.iter().copied());
        assert_eq!(join(Instances::Median, &[3.0, 500.0, 1.0]), 3.0);
        assert_eq!(join(Instances::Median, &[3.0, 500.0, 1.0, 2.0]), 2.5);
        assert!(join(Instances::Median, &[]).is_nan());
        assert_eq!(join(Instances::Sum, &[3.0, 1.0]), 4.0);
        assert_eq!(join(Instances::Mean, &[3.0, 1.0]), 2.0);
        assert_eq!(join(Instances::Least, &[3.0, 1.0]), 1.0);
        assert_eq!(join(Instances::Largest, &[3.0, 1.0]), 3.0);
    }
}
