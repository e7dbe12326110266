// SPDX-License-Identifier: GPL-2.0
//! Contracts of a disk: so many bytes in every period are read or written before others'.
//!
//! A disk is a CPU whose jobs are the bytes of a period: a job takes the arm to its place, which is at most P, and then
//! l / rate. Its contracts are hard constant bandwidth servers (`core/disk.h`). A request is not preempted: a job
//! waits for the largest request of another contract that was begun, and the disk waits for a job that is expected
//! rather than begin one of no contract. A job of several requests may have those of another between them, which takes
//! the arm there and back: P twice. So all are in time if, with B the longest request of a contract,
//!
//! ```text
//!     B  +  sum of dbf_i(t)  <=  supply(t)        for all t at which anything is due
//! ```
//!
//! which is the test of the CPU for deadlines that are B before the periods' ends. A job that comes when none is
//! expected may find any request begun, so that it is in time for certain if that is true of the longest of all as well.

use serde::{Deserialize, Serialize};

use crate::answer::Nearest;
use crate::blocked;
use crate::contract::Contract;
use crate::duration::Duration;
use crate::offer::Bounds;
use crate::size::Size;
use crate::system::{AskError, System};

/// The longest period of a disk's contract [ns]: the core's, 4.29 s.
pub const MAX_DISK_PERIOD_NS: u64 = u32::MAX as u64;
/// Most contracts of a disk, as many as the core has room for.
pub const MAX_DISK_CONTRACTS: usize = 127;

const NS_PER_S: u128 = 1_000_000_000;

/// A disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskFigures {
    /// The bytes that pass in a second [bytes/s], 1 or more.
    pub rate: u64,
    /// From anywhere to anywhere, at most [ns]: an arm's longest seek and a turn, or the time until flash answers.
    pub positioning_ns: u64,
    /// The largest request [bytes].
    pub largest: u32,
    /// The part that everybody else keeps [1/1000], 0 to 999.
    pub left_for_others_per_mille: u32,
}

impl DiskFigures {
    /// The time that so many bytes take when the disk is there, rounded up [ns].
    fn passes_ns(&self, bytes: u32) -> u64 {
        let ns = (u128::from(bytes) * NS_PER_S).div_ceil(u128::from(self.rate.max(1)));
        u64::try_from(ns).unwrap_or(u64::MAX)
    }

    /// So many bytes pass in that time.
    fn passed(&self, ns: u64) -> u32 {
        let bytes = u128::from(ns) * u128::from(self.rate) / NS_PER_S;
        u32::try_from(bytes).unwrap_or(u32::MAX)
    }

    /// The longest request of up to so many bytes [ns].
    pub fn longest_ns(&self, bytes: u32) -> u64 {
        self.positioning_ns
            .saturating_add(self.passes_ns(bytes.min(self.largest)))
    }
}

/// So many bytes in every period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskTerms {
    /// In every period [bytes].
    pub bytes: u32,
    /// The period [ns].
    pub period_ns: u64,
}

impl std::str::FromStr for DiskTerms {
    type Err = String;

    /// Reads an amount and a period: `2M/33ms`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (size, period) = text.split_once('/').ok_or_else(|| {
            format!("`{text}` has no period: give BYTES/PERIOD, such as 64K/33.3ms")
        })?;
        let Size(bytes) = size.parse()?;
        let Duration(period_ns) = (period.parse()).map_err(|error| format!("{error}"))?;
        let bytes =
            u32::try_from(bytes).map_err(|_| format!("`{text}` is more than 4 GB in a period"))?;
        Ok(Self { bytes, period_ns })
    }
}

impl std::fmt::Display for DiskTerms {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // In one word, as it is given.
        let text = format!(
            "{}/{}",
            Size(u64::from(self.bytes)),
            Duration(self.period_ns)
        );
        f.write_str(&text.replace(' ', ""))
    }
}

/// A class's promise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskContract {
    /// Its name, unique on the disk.
    pub name: String,
    /// The promise.
    pub terms: DiskTerms,
}

/// A contract that cannot be asked of a disk.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DiskContractError {
    /// Nothing in a period, or a period that cannot be.
    #[error(
        "a disk's contract is 1 byte or more in every period of up to 4.29 s, not {bytes} in {period_ns} ns"
    )]
    NoContract {
        /// C [bytes].
        bytes: u32,
        /// T [ns].
        period_ns: u64,
    },
    /// More contracts than there is room for.
    #[error("the disk has {MAX_DISK_CONTRACTS} contracts already, and no room for more")]
    Full,
    /// Nor could it be one of a CPU.
    #[error(transparent)]
    Contract(#[from] AskError),
}

/// The answer to one contract of a disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DiskAnswer {
    /// It is admitted.
    Admitted {
        /// How much later than at the period's end a job may be done that comes when none is expected: the first, and
        /// those that do not keep the period [ns]; 0: none is late.
        late_at_most_ns: u64,
    },
    /// It is not.
    Refused(DiskRefusal),
}

/// The nearest that would be admitted, and the part that is held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskRefusal {
    /// The most in that period [bytes], if anything.
    pub most_bytes: Option<u32>,
    /// The shortest period for that much [ns], if any up to sixteen times the one that was asked.
    pub shortest_period_ns: Option<u64>,
    /// The part of the disk's time that contracts hold [1/1000].
    pub held_per_mille: u32,
}

/// A disk and the contracts that it holds.
#[derive(Debug, Clone)]
pub struct DiskSystem {
    disk: DiskFigures,
    held: Vec<DiskContract>,
}

impl DiskSystem {
    /// A disk without contracts.
    pub fn new(disk: DiskFigures) -> Self {
        Self {
            disk,
            held: Vec::new(),
        }
    }

    /// The contracts in force, in the order in which they came.
    pub fn held(&self) -> &[DiskContract] {
        &self.held
    }

    /// Holds a contract that is in force, whether or not there is room for it now: if not, nothing is admitted.
    pub fn hold(&mut self, contract: DiskContract) {
        self.held.push(contract);
    }

    /// The answer that would be given; nothing changes.
    ///
    /// # Errors
    /// The contract cannot be asked.
    pub fn ask(&self, contract: &DiskContract) -> Result<DiskAnswer, DiskContractError> {
        let DiskTerms { bytes, period_ns } = contract.terms;
        if bytes == 0 || !(1..=MAX_DISK_PERIOD_NS).contains(&period_ns) {
            return Err(DiskContractError::NoContract { bytes, period_ns });
        }
        if self.held.iter().any(|held| held.name == contract.name) {
            return Err(AskError::NameTaken(contract.name.clone()).into());
        }
        if self.held.len() >= MAX_DISK_CONTRACTS {
            return Err(DiskContractError::Full);
        }
        let jobs = Jobs::of(self, bytes);
        let others = self.others(&jobs)?;
        let asked = jobs.contract(contract);
        let find = |asked: &Contract| blocked::admits(others.as_ref()?, jobs.blocked_ns, asked);
        if find(&asked).is_some() {
            return Ok(DiskAnswer::Admitted {
                late_at_most_ns: self.late_at_most_ns(&jobs, &asked)?,
            });
        }
        let bounds = Bounds {
            least_budget_ns: jobs.takes_ns(1),
            longest_period_ns: MAX_DISK_PERIOD_NS,
        };
        let nearest = Nearest::to(&asked, bounds, find);
        Ok(DiskAnswer::Refused(DiskRefusal {
            most_bytes: (nearest.largest_budget)
                .map(|offer| jobs.bytes(offer.contract.budget_ns))
                .filter(|&bytes| bytes > 0),
            shortest_period_ns: nearest.shortest_period.map(|o| o.contract.period_ns),
            held_per_mille: self.held.iter().map(|held| jobs.per_mille(held)).sum(),
        }))
    }

    /// Is it in time whatever has been begun? Else by so much not, at most [ns].
    fn late_at_most_ns(&self, jobs: &Jobs, asked: &Contract) -> Result<u64, DiskContractError> {
        let blocked_ns = self.disk.longest_ns(self.disk.largest);
        let others = self.others(&Jobs {
            blocked_ns,
            ..*jobs
        })?;
        let in_time =
            others.is_some_and(|others| blocked::admits(&others, blocked_ns, asked).is_some());
        Ok(if in_time { 0 } else { blocked_ns })
    }

    /// Those that are held, beside one more; none: that leaves no room for them.
    fn others(&self, jobs: &Jobs) -> Result<Option<System>, DiskContractError> {
        let held = self.held.iter().map(|held| jobs.contract(held));
        let left = self.disk.left_for_others_per_mille;
        Ok(blocked::all(left, jobs.blocked_ns, held)?)
    }
}

/// The jobs of all contracts, with one that is asked for.
#[derive(Debug, Clone, Copy)]
struct Jobs {
    disk: DiskFigures,
    /// The arm's way for each [ns].
    way_ns: u64,
    /// By so much deadlines are to be earlier [ns].
    blocked_ns: u64,
}

impl Jobs {
    fn of(system: &DiskSystem, asked: u32) -> Self {
        let disk = system.disk;
        let most = system.held.iter().map(|held| held.terms.bytes).max();
        let alone = most.is_none();
        let longest = most.unwrap_or(0).max(asked);
        let way = disk.positioning_ns;
        Self {
            disk,
            way_ns: match !alone && longest > disk.largest {
                true => way.saturating_mul(2),
                false => way,
            },
            blocked_ns: if alone { 0 } else { disk.longest_ns(longest) },
        }
    }

    fn takes_ns(&self, bytes: u32) -> u64 {
        self.way_ns.saturating_add(self.disk.passes_ns(bytes))
    }

    /// So many bytes a job of that length has.
    fn bytes(&self, ns: u64) -> u32 {
        self.disk.passed(ns.saturating_sub(self.way_ns))
    }

    /// Of the CPU that the disk is; its deadline is the period's end.
    fn contract(&self, contract: &DiskContract) -> Contract {
        let budget_ns = self.takes_ns(contract.terms.bytes);
        Contract::new(&contract.name, budget_ns, contract.terms.period_ns)
    }

    fn per_mille(&self, contract: &DiskContract) -> u32 {
        let part = u128::from(self.takes_ns(contract.terms.bytes)) * 1000;
        (part / u128::from(contract.terms.period_ns.max(1))) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// As it was sold for desktops.
    fn desktop() -> DiskSystem {
        DiskSystem::new(DiskFigures {
            rate: 125_000_000,
            positioning_ns: 18_333_333,
            largest: 1 << 20,
            left_for_others_per_mille: 200,
        })
    }

    fn contract(name: &str, terms: &str) -> DiskContract {
        DiskContract {
            name: name.to_owned(),
            terms: terms.parse().unwrap(),
        }
    }

    #[test]
    fn terms_are_an_amount_and_a_period() {
        let terms: DiskTerms = "64K/33.3ms".parse().unwrap();
        assert_eq!((terms.bytes, terms.period_ns), (65_536, 33_300_000));
        assert_eq!(terms.to_string(), "64K/33.3ms");
        assert_eq!(terms.to_string().parse(), Ok(terms));
        for bad in ["64K", "64K/", "/33ms", "5G/1s", "x/33ms"] {
            assert!(bad.parse::<DiskTerms>().is_err(), "{bad}");
        }
    }

    /// 18.9 ms of 26.7 that may be promised; a request of others takes up to 26.7.
    #[test]
    fn a_film_has_room_and_is_told_what_that_is_worth() {
        let film = contract("film", "64K/33.3ms");
        match desktop().ask(&film).unwrap() {
            DiskAnswer::Admitted { late_at_most_ns } => {
                assert!((26 * MS..27 * MS).contains(&late_at_most_ns));
            }
            refused => panic!("{refused:?}"),
        }
        let slow = contract("film", "64K/100ms");
        let in_time = DiskAnswer::Admitted { late_at_most_ns: 0 };
        assert_eq!(desktop().ask(&slow), Ok(in_time));
    }

    /// Each offer is admitted, and a little more is not.
    #[test]
    fn what_has_no_room_gets_offers_that_have() {
        let mut disk = desktop();
        for held in [None, Some(contract("other", "256K/200ms"))] {
            if let Some(held) = held {
                disk.hold(held);
            }
            let film = contract("film", "2M/33ms");
            let DiskAnswer::Refused(refusal) = disk.ask(&film).unwrap() else {
                panic!("two megabytes take longer");
            };
            let admitted = |bytes, period_ns| {
                let terms = DiskTerms { bytes, period_ns };
                let asked = DiskContract {
                    terms,
                    ..film.clone()
                };
                matches!(disk.ask(&asked), Ok(DiskAnswer::Admitted { .. }))
            };
            let period_ns = refusal.shortest_period_ns.unwrap();
            assert!(admitted(film.terms.bytes, period_ns));
            assert!(!admitted(film.terms.bytes, period_ns * 99 / 100));
            if let Some(bytes) = refusal.most_bytes {
                assert!(admitted(bytes, film.terms.period_ns));
                assert!(!admitted(bytes + bytes / 100, film.terms.period_ns));
            }
        }
    }

    #[test]
    fn four_films_are_too_many() {
        let mut disk = desktop();
        let mut admitted = 0;
        for n in 0..4 {
            let film = contract(&n.to_string(), "64K/100ms");
            if let DiskAnswer::Admitted { .. } = disk.ask(&film).unwrap() {
                disk.hold(film);
                admitted += 1;
            }
        }
        assert_eq!(admitted, 3);
        let again = disk.ask(&contract("0", "64K/100ms"));
        assert!(again.is_err(), "the name is taken");
    }
}
