//! Times for people: with their unit, which is chosen by their size.

use crate::figures::number;

/// The units of time and their lengths [s], the longest first.
const UNITS: [(&str, f64); 4] = [("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9)];
/// Significant digits of the least time of a row, so that times which differ are seen to.
const IN_A_ROW: i32 = 4;
/// Significant digits of a time that stands alone.
const ALONE: i32 = 3;
/// Decimals that a time has at most.
const MOST_DECIMALS: i32 = 3;
/// From so many on times are written in the next longer unit.
const MOST_OF_A_UNIT: f64 = 10_000.0;
/// Between a number and its unit: no line ends there.
pub const NO_BREAK: char = '\u{a0}';

/// A unit of time, and how many decimals are written in it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    /// Its name.
    pub unit: &'static str,
    /// [s]
    length_s: f64,
    decimals: usize,
}

impl Scale {
    /// In which all times of one row [s] can be read: the unit of the least, unless the longest has too many
    /// digits in it.
    pub fn of(times_s: impl Iterator<Item = f64>) -> Self {
        Self::with_digits(times_s, IN_A_ROW)
    }

    fn with_digits(times_s: impl Iterator<Item = f64>, digits: i32) -> Self {
        let times = times_s.map(f64::abs).filter(|time| *time > 0.0);
        let (least_s, most_s) = times.fold((f64::INFINITY, 0.0_f64), |(least, most), time| {
            (least.min(time), most.max(time))
        });
        if most_s == 0.0 {
            let (unit, length_s) = UNITS[1];
            return Self {
                unit,
                length_s,
                decimals: 0,
            };
        }
        // A time that would be written as a thousand of a unit is one of the next.
        let rounds_up = 1.0 - 0.5 * 10f64.powi(-digits);
        let whole = |&&(_, length_s): &&(&str, f64)| least_s >= length_s * rounds_up;
        let fits = |&&(_, length_s): &&(&str, f64)| most_s / length_s < MOST_OF_A_UNIT;
        let of_least = UNITS.iter().find(whole).unwrap_or(&UNITS[3]);
        let of_most = UNITS.iter().rev().find(fits).unwrap_or(&UNITS[0]);
        let &(unit, length_s) = match of_least.1 >= of_most.1 {
            true => of_least,
            false => of_most,
        };
        let before_point = (least_s / length_s / rounds_up).log10().floor() as i32 + 1;
        Self {
            unit,
            length_s,
            decimals: (digits - before_point).clamp(0, MOST_DECIMALS) as usize,
        }
    }

    /// `time_s` in this unit, without it.
    pub fn number(&self, time_s: f64) -> String {
        number(time_s / self.length_s, self.decimals)
    }

    /// `time_s` with the unit.
    pub fn write(&self, time_s: f64) -> String {
        with_unit(&self.number(time_s), self.unit)
    }

    /// The factor from a time [s] to this unit.
    pub fn per_s(&self) -> f64 {
        1.0 / self.length_s
    }
}

/// A figure and its unit, of which there may be none.
pub fn with_unit(figure: &str, unit: &str) -> String {
    match unit {
        "" => figure.to_owned(),
        unit => format!("{figure}{NO_BREAK}{unit}"),
    }
}

/// A time that stands alone [s]: the number, and its unit.
pub fn time(time_s: f64) -> (String, &'static str) {
    let scale = Scale::with_digits(std::iter::once(time_s), ALONE);
    (scale.number(time_s), scale.unit)
}

/// The same as one text, without zeros at its end: `10 ms`.
pub fn time_text(time_s: f64) -> String {
    let (number, unit) = time(time_s);
    with_unit(without_zeros(&number), unit)
}

/// A number without zeros at the end of its decimals.
fn without_zeros(number: &str) -> &str {
    match number.contains('.') {
        true => number.trim_end_matches('0').trim_end_matches('.'),
        false => number,
    }
}

/// A time [s] that somebody has given, to the digits that it was given with.
pub fn exact_text(time_s: f64) -> String {
    let scale = Scale::with_digits(std::iter::once(time_s), ALONE);
    // Six decimals: what a float adds lies far behind.
    let number = number(time_s / scale.length_s, 6);
    with_unit(without_zeros(&number), scale.unit)
}

/// The length of the unit called so [s]; none: it is none of time.
pub fn seconds_of(unit: &str) -> Option<f64> {
    let unit = UNITS.iter().find(|(name, _)| *name == unit);
    unit.map(|(_, length_s)| *length_s)
}

/// The unit [s] in which a measure of this name counts time, by the end of its name: `latency_us.p99`. None:
/// it counts something else.
pub fn seconds_of_measure(measure: &str) -> Option<f64> {
    let name = measure.split('.').next().unwrap_or_default();
    // So many in a second of CPU time are no time.
    if name.contains("_per_") {
        return None;
    }
    match name.rsplit_once('_')?.1 {
        "us" => Some(1e-6),
        unit => seconds_of(unit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_the_unit_of_its_size() {
        for (time_s, text) in [
            (0.0, "0 ms"),
            (0.000_000_012, "12 ns"),
            (0.000_004_05, "4.05 µs"),
            (0.01, "10 ms"),
            (0.034_48, "34.5 ms"),
            (0.999_7, "1 s"),
            (0.099_97, "100 ms"),
            (1.254, "1.25 s"),
            (3600.0, "3,600 s"),
        ] {
            assert_eq!(time_text(time_s).replace(NO_BREAK, " "), text, "{time_s}");
        }
    }

    #[test]
    fn what_was_given_keeps_its_digits() {
        assert_eq!(exact_text(10_000.0 * 1e-6), "10\u{a0}ms");
        assert_eq!(exact_text(0.033_333), "33.333\u{a0}ms");
        assert_eq!(exact_text(13.25 * 1e-6), "13.25\u{a0}µs");
        assert_eq!(exact_text(1.5), "1.5\u{a0}s");
    }

    #[test]
    fn times_of_a_row_share_a_unit_in_which_the_least_can_be_read() {
        let row = |times: &[f64]| {
            let scale = Scale::of(times.iter().copied());
            let texts: Vec<String> = times.iter().map(|time| scale.number(*time)).collect();
            (scale.unit, texts.join(" "))
        };
        assert_eq!(row(&[0.034_48, 1.2503]), ("ms", "34.48 1,250.30".into()));
        assert_eq!(row(&[0.0, 0.000_75]), ("µs", "0.0 750.0".into()));
        assert_eq!(row(&[0.000_003, 0.12]), ("ms", "0.003 120.000".into()));
        assert_eq!(row(&[0.0, 0.0]), ("ms", "0 0".into()));
    }

    #[test]
    fn measures_that_count_time_are_known_by_their_names() {
        assert_eq!(seconds_of_measure("latency_us.p99"), Some(1e-6));
        assert_eq!(seconds_of_measure("longest_freeze_ms"), Some(1e-3));
        assert_eq!(seconds_of_measure("cpu_s"), Some(1.0));
        assert_eq!(seconds_of_measure("late_share"), None);
        assert_eq!(seconds_of_measure("iterations_per_cpu_s"), None);
        assert_eq!(seconds_of_measure("frames"), None);
    }
}
