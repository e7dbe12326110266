// SPDX-License-Identifier: GPL-2.0
//! A contract of a device, as people write it: `2mbit/10ms`.

use andante_admission::Duration;
use andante_admission::link::LinkTerms;
use andante_net::{NetError, Promised, Rate, usual_device};
use anyhow::Result;

/// So many bytes in every period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget(pub Promised);

impl std::str::FromStr for Budget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let LinkTerms { bytes, period_ns } = text.parse()?;
        Ok(Self(Promised { bytes, period_ns }))
    }
}

impl std::fmt::Display for Budget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Promised { bytes, period_ns } = self.0;
        let rate = u128::from(bytes) * 1_000_000_000 / u128::from(period_ns.max(1));
        let period = Duration(period_ns).to_string().replace(' ', "");
        match Rate::of_bytes(rate as u64) {
            Some(rate) => write!(f, "{rate}/{period}"),
            None => write!(f, "0bit/{period}"),
        }
    }
}

/// The same, of a device that may be named: `eth0:2mbit/10ms`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    device: Option<String>,
    /// How much of it.
    pub budget: Budget,
}

impl std::str::FromStr for Asked {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // No name of a device has a colon.
        let (device, budget) = match text.split_once(':') {
            Some((device, budget)) => (Some(device.to_owned()), budget),
            None => (None, text),
        };
        if device.as_deref() == Some("") {
            return Err(format!(
                "`{text}` names no device: give DEV:RATE/PERIOD, such as eth0:2mbit/10ms"
            ));
        }
        let budget = budget.parse()?;
        Ok(Self { device, budget })
    }
}

impl Asked {
    /// The device that is meant.
    ///
    /// # Errors
    /// The caller may not ask for contracts of the network, or must say which device he means.
    pub fn device(&self) -> Result<String> {
        if !nix::unistd::geteuid().is_root() {
            return Err(NetError::NotRoot.into());
        }
        Ok(match &self.device {
            Some(device) => device.clone(),
            None => usual_device()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(bytes: u32, period_ns: u64) -> Budget {
        Budget(Promised { bytes, period_ns })
    }

    #[test]
    fn budgets_are_what_a_rate_gives_in_a_period() {
        for (text, expected) in [
            ("2mbit/10ms", budget(2500, 10_000_000)),
            ("200kbit/20ms", budget(500, 20_000_000)),
            // Of half a byte the whole.
            ("12bit/1s", budget(1, 1_000_000_000)),
        ] {
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
        assert_eq!(budget(2500, 10_000_000).to_string(), "2mbit/10ms");
        for (text, says) in [
            ("2mbit", "such as 2mbit/10ms"),
            ("2/10ms", "such as 10mbit"),
            ("2mbit/10", "`10` is not understood"),
            ("10tbit/1s", "more than 4 GB"),
        ] {
            let said = text.parse::<Budget>().unwrap_err();
            assert!(said.contains(says), "{text}: {said}");
        }
    }

    #[test]
    fn a_device_may_stand_before_the_budget() {
        let asked = |device: Option<&str>| {
            Ok(Asked {
                device: device.map(str::to_owned),
                budget: budget(2500, 10_000_000),
            })
        };
        assert_eq!("2mbit/10ms".parse(), asked(None));
        assert_eq!("eth0:2mbit/10ms".parse(), asked(Some("eth0")));
        assert_eq!("eth0.7:2mbit/10ms".parse(), asked(Some("eth0.7")));
        let said = |text: &str| text.parse::<Asked>().unwrap_err();
        assert!(said(":2mbit/10ms").contains("eth0:2mbit/10ms"));
        assert!(said("eth0:2mbit").contains("has no period"));
    }
}
