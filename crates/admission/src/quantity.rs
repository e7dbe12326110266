// SPDX-License-Identifier: GPL-2.0
//! Quantities as people write them: a number, and the name of a unit.

/// Reads `1.5G`: the number, and the unit's name in lower case. None: no number stands in front.
pub(crate) fn read(text: &str) -> Option<(f64, String)> {
    let text = text.trim();
    let unit = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(unit);
    Some((number.parse().ok()?, unit.trim().to_ascii_lowercase()))
}

/// The factor of the unit of that name.
pub(crate) fn factor(units: &[(&str, u64)], unit: &str) -> Option<f64> {
    let mut units = units.iter();
    let found = units.find(|(name, _)| name.eq_ignore_ascii_case(unit));
    found.map(|(_, factor)| *factor as f64)
}
