// SPDX-License-Identifier: GPL-2.0
//! How much memory, as people write it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::quantity;

/// So much memory [bytes].
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Size(pub u64);

/// Names of units and their bytes, as cgroup files and systemd have them; the largest first.
const UNITS: [(&str, u64); 5] = [
    ("T", 1 << 40),
    ("G", 1 << 30),
    ("M", 1 << 20),
    ("K", 1 << 10),
    ("", 1),
];

/// More than any machine has, so that sums of sizes stay far from overflow [bytes].
const MOST: f64 = (1u64 << 56) as f64;

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let wrong = || {
            format!("`{text}` is no amount of memory: give bytes with a unit, such as 200M or 1.5G")
        };
        let (number, unit) = quantity::read(text).ok_or_else(wrong)?;
        let unit = unit
            .strip_suffix("ib")
            .or(unit.strip_suffix('b'))
            .unwrap_or(&unit);
        let bytes = number * quantity::factor(&UNITS, unit).ok_or_else(wrong)?;
        if bytes > MOST {
            return Err(format!("{text} is more memory than any machine has"));
        }
        Ok(Self(bytes as u64))
    }
}

impl fmt::Display for Size {
    /// In the largest unit of which there is one at least, to one decimal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // 1023.96 K would be rounded to 1024.0K.
        let (unit, factor) = UNITS
            .into_iter()
            .find(|(_, factor)| self.0 as f64 / *factor as f64 >= 0.999_95)
            .unwrap_or(("", 1));
        let number = format!("{:.1}", self.0 as f64 / factor as f64);
        let number = number.strip_suffix(".0").unwrap_or(&number);
        f.pad(&format!(
            "{number}{}",
            if unit.is_empty() { "B" } else { unit }
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_the_units_of_cgroup_files() {
        for (text, bytes, shown) in [
            ("4096", 4096, "4K"),
            ("200M", 200 << 20, "200M"),
            ("200 MiB", 200 << 20, "200M"),
            ("200mb", 200 << 20, "200M"),
            ("1.5G", 3 << 29, "1.5G"),
            ("2T", 2 << 40, "2T"),
            ("0", 0, "0B"),
            ("1023", 1023, "1023B"),
        ] {
            let size: Size = text.parse().unwrap();
            assert_eq!(
                (size.0, size.to_string().as_str()),
                (bytes, shown),
                "{text}"
            );
        }
        assert_eq!(Size((1 << 20) - 1).to_string(), "1M");
    }

    #[test]
    fn what_is_no_size_is_refused_with_the_reason() {
        for text in ["", "M", "-1M", "1e3M", "1.2.3M", "infM", "20%", "20 apples"] {
            let said = text.parse::<Size>().unwrap_err();
            assert!(said.contains("such as 200M"), "{text}: {said}");
        }
        assert!(
            "100000T"
                .parse::<Size>()
                .unwrap_err()
                .contains("any machine")
        );
    }
}
