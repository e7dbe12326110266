// SPDX-License-Identifier: GPL-2.0
//! Contracts of a link: so many bytes in every period leave before others' packets.
//!
//! A link is a CPU on which l bytes run for l / rate, and its contracts are hard constant bandwidth
//! servers on it (`core/link_contracts.h`). Two things differ. A packet is not preempted: one that was
//! begun takes the time B of a largest packet. And a packet that is longer than what is left of its
//! budget goes: each of n servers may be ahead of its budget by another B, once, for it pays that back.
//! So every budget is had by the end of its period if [1]
//!
//! ```text
//!     (n + 1) B  +  sum of dbf_i(t)  <=  supply(t)        for all t at which anything is due
//! ```
//!
//! which is the test of the CPU for deadlines that are (n + 1) B before the periods' ends.
//!
//! \[1\] L. George, N. Rivierre, M. Spuri, *Preemptive and Non-Preemptive Real-Time Uniprocessor
//! Scheduling*, INRIA RR-2966, 1996, theorem 14: the one begun packet; the n others are ours.

use serde::{Deserialize, Serialize};

use crate::Rate;
use crate::answer::Nearest;
use crate::blocked;
use crate::contract::Contract;
use crate::duration::Duration;
use crate::offer::Bounds;
use crate::system::{AskError, System};

/// The longest period of a link's contract [ns]: the core's, 4.29 s.
pub const MAX_LINK_PERIOD_NS: u64 = u32::MAX as u64;
/// Most contracts of a link, as many as the kernel's part has room for.
pub const MAX_LINK_CONTRACTS: usize = 127;
/// The fastest link [bytes/s]: 1 Tbit/s, so that times of bytes are within 64 bits.
pub const MAX_LINK_RATE: u64 = 125_000_000_000;

const NS_PER_S: u128 = 1_000_000_000;

/// A link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// What it sends [bytes/s], 1 to [`MAX_LINK_RATE`].
    pub rate: u64,
    /// Its largest packet [bytes], with its headers.
    pub largest: u32,
    /// The part that everybody else keeps [1/1000], 0 to 999.
    pub left_for_others_per_mille: u32,
}

impl Link {
    /// What so many bytes take, rounded up [ns].
    pub fn takes_ns(&self, bytes: u32) -> u64 {
        let ns = (u128::from(bytes) * NS_PER_S).div_ceil(u128::from(self.rate.max(1)));
        u64::try_from(ns).unwrap_or(u64::MAX)
    }

    /// So many bytes go in that time.
    fn sends(&self, ns: u64) -> u32 {
        let bytes = u128::from(ns) * u128::from(self.rate) / NS_PER_S;
        u32::try_from(bytes).unwrap_or(u32::MAX)
    }
}

/// So many bytes in every period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkTerms {
    /// In every period, headers included [bytes].
    pub bytes: u32,
    /// The period [ns].
    pub period_ns: u64,
}

impl std::str::FromStr for LinkTerms {
    type Err = String;

    /// Reads a rate and a period: `2mbit/10ms`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (rate, period) = text.split_once('/').ok_or_else(|| {
            format!("`{text}` has no period: give RATE/PERIOD, such as 2mbit/10ms")
        })?;
        let rate: Rate = rate.parse()?;
        let Duration(period_ns) = (period.parse()).map_err(|error| format!("{error}"))?;
        let bytes = (u128::from(rate.bytes()) * u128::from(period_ns)).div_ceil(NS_PER_S);
        let bytes =
            u32::try_from(bytes).map_err(|_| format!("`{text}` is more than 4 GB in a period"))?;
        Ok(Self { bytes, period_ns })
    }
}

/// What is promised to a class: so many bytes, headers included, by the end of every period.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkContract {
    /// Its name, unique on the link.
    pub name: String,
    /// C [bytes], 1 or more.
    pub bytes: u32,
    /// T [ns], 1 to [`MAX_LINK_PERIOD_NS`].
    pub period_ns: u64,
}

/// What cannot be asked of a link.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// There is no such link.
    #[error("a link sends 1 byte to {MAX_LINK_RATE} bytes a second, not {0}")]
    Rate(u64),
    /// Nothing in a period, or a period that cannot be.
    #[error(
        "a link's contract is 1 byte or more in every period of up to 4.29 s, not {bytes} in {period_ns} ns"
    )]
    NoContract {
        /// C [bytes].
        bytes: u32,
        /// T [ns].
        period_ns: u64,
    },
    /// More contracts than there is room for.
    #[error("the link has {MAX_LINK_CONTRACTS} contracts already, and no room for more")]
    Full,
    /// What a CPU's contract could not be either.
    #[error(transparent)]
    Contract(#[from] AskError),
}

/// The answer to one contract of a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkAnswer {
    /// It is admitted.
    Admitted,
    /// It is not.
    Refused(LinkRefusal),
}

/// What would be admitted instead, and what is held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkRefusal {
    /// The most in that period [bytes], if anything.
    pub most_bytes: Option<u32>,
    /// The shortest period for that much [ns], if any up to sixteen times the one that was asked.
    pub shortest_period_ns: Option<u64>,
    /// What contracts hold of the link [bytes/s].
    pub held_rate: u64,
}

/// A link and the contracts that it holds.
#[derive(Debug, Clone)]
pub struct LinkSystem {
    link: Link,
    held: Vec<LinkContract>,
}

impl LinkSystem {
    /// A link without contracts.
    ///
    /// # Errors
    /// The link sends nothing, or more than there is.
    pub fn new(link: Link) -> Result<Self, LinkError> {
        if !(1..=MAX_LINK_RATE).contains(&link.rate) {
            return Err(LinkError::Rate(link.rate));
        }
        Ok(Self {
            link,
            held: Vec::new(),
        })
    }

    /// The contracts in force, in the order in which they came.
    pub fn held(&self) -> &[LinkContract] {
        &self.held
    }

    /// Holds a contract that is in force, whether or not there is room for it now: if not, nothing is admitted.
    pub fn hold(&mut self, contract: LinkContract) {
        self.held.push(contract);
    }

    /// Ends the contract of that name; whether there was one.
    pub fn release(&mut self, name: &str) -> bool {
        let before = self.held.len();
        self.held.retain(|held| held.name != name);
        self.held.len() < before
    }

    /// Answers, and holds what it admits.
    ///
    /// # Errors
    /// The contract cannot be asked.
    pub fn admit(&mut self, contract: LinkContract) -> Result<LinkAnswer, LinkError> {
        let answer = self.ask(&contract)?;
        if answer == LinkAnswer::Admitted {
            self.held.push(contract);
        }
        Ok(answer)
    }

    /// What would be answered; nothing changes.
    ///
    /// # Errors
    /// The contract cannot be asked.
    pub fn ask(&self, contract: &LinkContract) -> Result<LinkAnswer, LinkError> {
        let &LinkContract {
            bytes, period_ns, ..
        } = contract;
        if bytes == 0 || !(1..=MAX_LINK_PERIOD_NS).contains(&period_ns) {
            return Err(LinkError::NoContract { bytes, period_ns });
        }
        if self.held.iter().any(|held| held.name == contract.name) {
            return Err(AskError::NameTaken(contract.name.clone()).into());
        }
        if self.held.len() >= MAX_LINK_CONTRACTS {
            return Err(LinkError::Full);
        }
        let others = self.others()?;
        let asked = self.in_time(contract, period_ns);
        let find = |asked: &Contract| blocked::admits(others.as_ref()?, self.blocked_ns(), asked);
        if find(&asked).is_some() {
            return Ok(LinkAnswer::Admitted);
        }
        let bounds = Bounds {
            least_budget_ns: self.link.takes_ns(1),
            longest_period_ns: MAX_LINK_PERIOD_NS,
        };
        let nearest = Nearest::to(&asked, bounds, find);
        Ok(LinkAnswer::Refused(LinkRefusal {
            most_bytes: (nearest.largest_budget)
                .map(|offer| self.link.sends(offer.contract.budget_ns))
                .filter(|&bytes| bytes > 0),
            shortest_period_ns: nearest.shortest_period.map(|o| o.contract.period_ns),
            held_rate: self.held.iter().map(rate_of).sum(),
        }))
    }

    /// The time by which deadlines are to be earlier, with one contract more [ns].
    fn blocked_ns(&self) -> u64 {
        (self.held.len() as u64 + 2).saturating_mul(self.link.takes_ns(self.link.largest))
    }

    /// A contract of the CPU that the link is; its deadline is the period's end.
    fn in_time(&self, contract: &LinkContract, period_ns: u64) -> Contract {
        let budget_ns = self.link.takes_ns(contract.bytes);
        Contract::new(&contract.name, budget_ns, period_ns)
    }

    /// Those that are held, on a link with one more; none: that leaves no room for them.
    fn others(&self) -> Result<Option<System>, LinkError> {
        let held = self.held.iter();
        let held = held.map(|held| self.in_time(held, held.period_ns));
        let left = self.link.left_for_others_per_mille;
        Ok(blocked::all(left, self.blocked_ns(), held)?)
    }
}

/// What it asks of the link, rounded up [bytes/s].
fn rate_of(contract: &LinkContract) -> u64 {
    (u128::from(contract.bytes) * NS_PER_S).div_ceil(u128::from(contract.period_ns)) as u64
}
