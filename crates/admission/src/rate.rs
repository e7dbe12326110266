// SPDX-License-Identifier: GPL-2.0
//! How much a link sends in a second, as people write it.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::quantity;

/// What a link sends, at most [bytes/s].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Rate(NonZeroU64);

/// Names of units, as `tc` has them, and their bits; the largest first.
const UNITS: [(&str, u64); 5] = [
    ("tbit", 1_000_000_000_000),
    ("gbit", 1_000_000_000),
    ("mbit", 1_000_000),
    ("kbit", 1000),
    ("bit", 1),
];

/// No link sends more, and what is computed from rates stays far from overflow [bit/s].
const MOST_BITS: f64 = 1e13;

impl Rate {
    /// So many bytes in a second; none if that is none.
    pub fn of_bytes(bytes: u64) -> Option<Self> {
        NonZeroU64::new(bytes).map(Self)
    }

    /// Bytes in a second.
    pub fn bytes(self) -> u64 {
        self.0.get()
    }

    /// Bits in a second.
    pub fn bits(self) -> u64 {
        self.bytes() * 8
    }

    /// Bytes in a millisecond.
    pub fn bytes_in_ms(self) -> u64 {
        self.bytes() / 1000
    }
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let wrong =
            || format!("`{text}` is no rate: give bits per second, such as 10mbit or 2.5gbit");
        let (number, unit) = quantity::read(text).ok_or_else(wrong)?;
        let bits = number * quantity::factor(&UNITS, &unit).ok_or_else(wrong)?;
        if bits > MOST_BITS {
            return Err(format!("{text} is out of range: 10tbit is the most"));
        }
        // A byte is the least that can be counted.
        Self::of_bytes((bits / 8.0) as u64).ok_or_else(|| {
            format!("{text} is out of range: a link must send 8bit a second at least")
        })
    }
}

impl fmt::Display for Rate {
    /// In the largest unit of which there is one at least, exact to three decimals.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = self.bits();
        let (unit, factor) = UNITS
            .into_iter()
            .find(|(_, factor)| bits >= *factor)
            .unwrap_or(("bit", 1));
        let number = format!("{:.3}", bits as f64 / factor as f64);
        let number = number.trim_end_matches('0').trim_end_matches('.');
        write!(f, "{number}{unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_the_units_of_tc() {
        for (text, bytes, shown) in [
            ("8bit", 1, "8bit"),
            ("64kbit", 8000, "64kbit"),
            ("10mbit", 1_250_000, "10mbit"),
            ("10 Mbit", 1_250_000, "10mbit"),
            ("2.5gbit", 312_500_000, "2.5gbit"),
            ("1500kbit", 187_500, "1.5mbit"),
            ("10tbit", 1_250_000_000_000, "10tbit"),
        ] {
            let rate: Rate = text.parse().unwrap();
            assert_eq!(
                (rate.bytes(), rate.to_string().as_str()),
                (bytes, shown),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_no_rate_is_refused_with_the_reason() {
        for text in [
            "",
            "mbit",
            "10",
            "10mb",
            "-1mbit",
            "1e3kbit",
            "1.2.3mbit",
            "nanbit",
            "infbit",
        ] {
            let said = text.parse::<Rate>().unwrap_err();
            assert!(said.contains("such as 10mbit"), "{text}: {said}");
        }
        for text in ["0mbit", "0.0gbit", "7bit"] {
            assert!(
                text.parse::<Rate>()
                    .unwrap_err()
                    .contains("8bit a second at least")
            );
        }
        assert!(
            "11tbit"
                .parse::<Rate>()
                .unwrap_err()
                .contains("10tbit is the most")
        );
    }
}
