//! Quotas of classes, as a scenario writes them.

use andante_admission::Duration;
use andante_document::{DocumentError, Section};

/// The least quota, and the least period, that the kernel takes [µs].
const LEAST_US: u64 = 1_000;
/// The longest period that it takes [µs].
const LONGEST_PERIOD_US: u64 = 1_000_000;
/// The period that `max` alone leaves [µs].
const DEFAULT_PERIOD_US: u64 = 100_000;

/// What a class may use of the CPUs, all below it included: `cpu.max` and `cpu.max.burst`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bandwidth {
    /// CPU time in every period [µs]; none: as much as it wants.
    pub quota_us: Option<u64>,
    /// [µs]
    pub period_us: u64,
    /// What may be left from earlier periods [µs].
    pub burst_us: u64,
}

impl Bandwidth {
    /// As `cpu.max` has it.
    pub fn cpu_max(&self) -> String {
        match self.quota_us {
            Some(quota_us) => format!("{quota_us} {}", self.period_us),
            None => format!("max {}", self.period_us),
        }
    }

    /// Reads `20ms/100ms`, or `max`.
    fn parse(text: &str) -> Result<Self, String> {
        if text == "max" {
            return Ok(Self {
                quota_us: None,
                period_us: DEFAULT_PERIOD_US,
                burst_us: 0,
            });
        }
        let form = || {
            format!(
                "`{text}` is no quota: give CPU time and period, as in \"20ms/100ms\", or \"max\""
            )
        };
        let (quota, period) = text.split_once('/').ok_or_else(form)?;
        let quota_us = micros(quota)?;
        let period_us = micros(period)?;
        if quota_us < LEAST_US {
            return Err(format!(
                "a quota of {quota_us} µs: the kernel takes 1 ms or more"
            ));
        }
        if !(LEAST_US..=LONGEST_PERIOD_US).contains(&period_us) {
            return Err(format!(
                "a period of {period_us} µs: the kernel takes 1 ms to 1 s"
            ));
        }
        Ok(Self {
            quota_us: Some(quota_us),
            period_us,
            burst_us: 0,
        })
    }

    /// Reads the keys `max` and `burst` of a section; none: there is no `max`.
    fn read(section: &mut Section<'_>) -> Result<Option<Self>, DocumentError> {
        let Some(text) = section.get::<String>("max")? else {
            return match section.get::<String>("burst")? {
                Some(_) => Err(section.error(
                    "burst",
                    "a burst is what is left of a quota: give `max` too",
                )),
                None => Ok(None),
            };
        };
        let mut read = Self::parse(&text).map_err(|why| section.error("max", why))?;
        if let Some(burst) = section.get::<String>("burst")? {
            read.burst_us = micros(&burst).map_err(|why| section.error("burst", why))?;
            if read
                .quota_us
                .is_none_or(|quota_us| read.burst_us > quota_us)
            {
                return Err(section.error("burst", "the kernel takes no more than the quota"));
            }
        }
        Ok(Some(read))
    }
}

fn micros(text: &str) -> Result<u64, String> {
    let time: Duration = text.parse().map_err(|error| format!("{error}"))?;
    Ok(time.0 / 1_000)
}

/// What a class may use, and from when on something else.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Limits {
    /// From the beginning.
    pub first: Option<Bandwidth>,
    /// From these instants on [ns since the measurement began].
    pub later: Vec<(u64, Bandwidth)>,
}

impl Limits {
    /// Whether there ever is a quota.
    pub fn any(&self) -> bool {
        let all = self
            .first
            .iter()
            .chain(self.later.iter().map(|(_, later)| later));
        all.into_iter()
            .any(|bandwidth| bandwidth.quota_us.is_some())
    }

    /// Reads them from the table of a class: `max`, `burst` and `later`.
    pub(super) fn read(section: &mut Section<'_>) -> Result<Self, DocumentError> {
        let mut read = Self {
            first: Bandwidth::read(section)?,
            later: Vec::new(),
        };
        for mut later in section.tables("later")? {
            let at_s: f64 = later.need("at_s")?;
            if at_s < 0.0 {
                return Err(later.error("at_s", "the measurement begins at 0"));
            }
            let to = Bandwidth::read(&mut later)?;
            let to = to.ok_or_else(|| later.error("max", "give what it may use from then on"))?;
            later.finish()?;
            read.later.push(((at_s * 1e9) as u64, to));
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_are_read_as_the_kernel_takes_them() {
        let read = Bandwidth::parse("20ms/100ms").unwrap();
        assert_eq!(read.cpu_max(), "20000 100000");
        assert_eq!(
            Bandwidth::parse("2.5s/1s").unwrap().cpu_max(),
            "2500000 1000000"
        );
        assert_eq!(Bandwidth::parse("max").unwrap().cpu_max(), "max 100000");
        for bad in ["20ms", "0.5ms/100ms", "20ms/2s", "x/100ms", "20ms/10us"] {
            assert!(Bandwidth::parse(bad).is_err(), "{bad}");
        }
    }
}
