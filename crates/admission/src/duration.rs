// SPDX-License-Identifier: GPL-2.0
//! Times as people write them: `9ms`, `33.3ms`, `250us`, `1s`.

use std::fmt;

/// Units, the longest first, with their length [ns].
const UNITS: [(&str, u64); 4] = [
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1000),
    ("ns", 1),
];

/// What a time must look like.
pub(crate) const EXPECTED: &str = "a time with its unit, e.g. \"9ms\", \"33.3ms\" or \"250us\"";

/// A time that prints itself exactly, in the longest unit of which there is at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Duration(
    /// The time [ns].
    pub u64,
);

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = |(_, ns): &&(&str, u64)| self.0 >= *ns;
        let &(unit, unit_ns) = UNITS.iter().find(fits).unwrap_or(&UNITS[1]);
        let (whole, rest_ns) = (self.0 / unit_ns, self.0 % unit_ns);
        if rest_ns == 0 {
            return f.pad(&format!("{whole} {unit}"));
        }
        let digits = unit_ns.ilog10() as usize;
        let decimals = format!("{rest_ns:0digits$}");
        f.pad(&format!(
            "{whole}.{} {unit}",
            decimals.trim_end_matches('0')
        ))
    }
}

/// Why a time cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// Not a decimal number and a unit.
    Form,
    /// Finer than a nanosecond.
    TooFine,
    /// More than 64 bits of nanoseconds.
    TooLong,
}

/// Why a text is no time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` {}", .why.says())]
pub struct DurationError {
    text: String,
    why: Unreadable,
}

impl Unreadable {
    fn says(self) -> String {
        match self {
            Self::Form => format!("is not understood: give {EXPECTED}"),
            Self::TooFine => "is too fine: give whole nanoseconds".into(),
            Self::TooLong => "is too long".into(),
        }
    }
}

impl std::str::FromStr for Duration {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Self, DurationError> {
        parse_ns(text).map(Self).map_err(|why| DurationError {
            text: text.to_owned(),
            why,
        })
    }
}

/// Reads a time [ns].
fn parse_ns(text: &str) -> Result<u64, Unreadable> {
    let text = text.trim();
    let split = text.find(|c: char| c.is_ascii_alphabetic() || c == 'µ');
    let (number, unit) = text.split_at(split.ok_or(Unreadable::Form)?);
    let unit = if unit == "µs" { "us" } else { unit };
    let found = UNITS.iter().find(|(name, _)| *name == unit);
    let &(_, unit_ns) = found.ok_or(Unreadable::Form)?;
    decimal(number.trim_end(), unit_ns)
}

/// Reads a decimal number, in units of 1 / `scale`; `scale` is a power of ten.
pub(crate) fn decimal(text: &str, scale: u64) -> Result<u64, Unreadable> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(decimals) || text.ends_with('.') {
        return Err(Unreadable::Form);
    }
    let whole: u64 = whole.parse().map_err(|_| Unreadable::TooLong)?;
    let mut sum = whole.checked_mul(scale).ok_or(Unreadable::TooLong)?;
    let mut step = scale;
    for digit in decimals.trim_end_matches('0').bytes() {
        if step == 1 {
            return Err(Unreadable::TooFine);
        }
        step /= 10;
        let part = u64::from(digit - b'0') * step;
        sum = sum.checked_add(part).ok_or(Unreadable::TooLong)?;
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_exactly() {
        assert_eq!(parse_ns("9ms"), Ok(9_000_000));
        assert_eq!(parse_ns(" 33.333333 ms"), Ok(33_333_333));
        assert_eq!(parse_ns("0.5s"), Ok(500_000_000));
        assert_eq!(parse_ns("250µs"), Ok(250_000));
        assert_eq!(parse_ns("1.50us"), Ok(1500));
        assert_eq!(parse_ns("7ns"), Ok(7));
        assert_eq!(parse_ns("0.3ns"), Err(Unreadable::TooFine));
        assert_eq!(parse_ns("18446744073.709551615s"), Ok(u64::MAX));
        assert_eq!(parse_ns("18446744073.709551616s"), Err(Unreadable::TooLong));
        assert_eq!(
            parse_ns("99999999999999999999999s"),
            Err(Unreadable::TooLong)
        );
        for text in [
            "",
            "9",
            "ms",
            "-9ms",
            "9 minutes",
            "9.ms",
            "1e3ms",
            ".5ms",
            "9ms ms",
            "٣ms",
        ] {
            assert_eq!(parse_ns(text), Err(Unreadable::Form), "{text}");
        }
    }

    #[test]
    fn times_are_printed_as_they_would_be_read() {
        for (ns, text) in [
            (9_000_000, "9 ms"),
            (33_333_333, "33.333333 ms"),
            (1_500_000_000, "1.5 s"),
            (1_001, "1.001 us"),
            (7, "7 ns"),
            (0, "0 ms"),
        ] {
            assert_eq!(Duration(ns).to_string(), text);
            assert_eq!(parse_ns(text), Ok(ns));
        }
    }

    #[test]
    fn a_text_is_read_or_its_mistake_told() {
        assert_eq!("33.3ms".parse(), Ok(Duration(33_300_000)));
        let error = |text: &str| text.parse::<Duration>().unwrap_err().to_string();
        assert!(error("9 bananas").starts_with("`9 bananas` is not understood: give a time"));
        assert!(error("0.5ns").ends_with("give whole nanoseconds"));
    }
}
