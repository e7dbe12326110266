// SPDX-License-Identifier: GPL-2.0
//! The nearest contract that would be admitted.
//!
//! Both offers are found by bisection over the very question that was answered with no, so that each
//! is proved by the admission that comes with it. Less budget or a longer period never makes an
//! admitted contract inadmissible: EDF's demand only falls, on whole CPUs and in windows [1].
//!
//! An offer is a number that a person would type: three significant digits, rounded to the side on
//! which it is admitted too, and asked about once more. Less than one per cent is lost by that.
//!
//! Only a promise is worth an offer: what DWCS's condition admits without one is not offered.
//!
//! \[1\] S. Baruah, A. Burns, *Sustainable Scheduling Analysis*, RTSS 2006.

use crate::answer::{Admission, Nearest, Offer, Promise};
use crate::contract::{Contract, MAX_PERIOD_NS};
use crate::system::System;

/// The longest period offered, as a multiple of the one asked for.
pub const MAX_STRETCH: u64 = 16;

/// Significant digits of an offer.
const DIGITS: u32 = 3;

/// How far from what was asked offers may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// The least budget worth an offer [ns], 1 or more.
    pub least_budget_ns: u64,
    /// The longest period [ns].
    pub longest_period_ns: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            least_budget_ns: 1,
            longest_period_ns: MAX_PERIOD_NS,
        }
    }
}

impl System {
    /// What would be admitted instead of `contract`, which is not.
    pub(crate) fn nearest(&self, contract: &Contract) -> Nearest {
        Nearest::to(contract, Bounds::default(), |contract| self.find(contract))
    }
}

impl Nearest {
    /// What `find` would admit instead of `contract`, which it does not. Within the bounds, less
    /// budget or a longer period may never turn its yes into a no.
    pub fn to(
        contract: &Contract,
        bounds: Bounds,
        find: impl Fn(&Contract) -> Option<Admission>,
    ) -> Self {
        Self {
            largest_budget: largest_budget(contract, bounds, &find),
            shortest_period: shortest_period(contract, bounds, &find),
        }
    }
}

fn largest_budget(
    contract: &Contract,
    bounds: Bounds,
    find: impl Fn(&Contract) -> Option<Admission>,
) -> Option<Offer> {
    let with_budget = |budget_ns| Contract {
        budget_ns,
        ..contract.clone()
    };
    // From the refused budget down to the least.
    let most = contract.budget_ns;
    let steps = most.saturating_sub(bounds.least_budget_ns);
    let nearest = nearest_admitted(&find, steps, |less_ns| with_budget(most - less_ns))?;
    let budget_ns = nearest.contract.budget_ns;
    let round_ns = budget_ns - budget_ns % grain(budget_ns);
    let within = round_ns >= bounds.least_budget_ns;
    Some(rounded(nearest, find, with_budget(round_ns), within))
}

fn shortest_period(
    contract: &Contract,
    bounds: Bounds,
    find: impl Fn(&Contract) -> Option<Admission>,
) -> Option<Offer> {
    let asked_ns = contract.period_ns;
    let at_period_end = contract.deadline_ns == asked_ns;
    let with_period = |period_ns| Contract {
        period_ns,
        deadline_ns: if at_period_end {
            period_ns
        } else {
            contract.deadline_ns
        },
        ..contract.clone()
    };
    let longest_ns = asked_ns.saturating_mul(MAX_STRETCH);
    let longest_ns = longest_ns.min(bounds.longest_period_ns);
    let most_ns = longest_ns.saturating_sub(asked_ns);
    let nearest = nearest_admitted(&find, most_ns, |more_ns| with_period(asked_ns + more_ns))?;
    let period_ns = nearest.contract.period_ns;
    let round_ns = period_ns.next_multiple_of(grain(period_ns));
    let within = round_ns <= longest_ns;
    Some(rounded(nearest, find, with_period(round_ns), within))
}

/// The last of the digits that an offer has [ns].
fn grain(ns: u64) -> u64 {
    let digits = ns.checked_ilog10().map_or(1, |log| log + 1);
    10_u64.pow(digits.saturating_sub(DIGITS))
}

/// The round contract, if it is admitted as well; else the nearest one as it is.
fn rounded(
    nearest: Offer,
    find: impl Fn(&Contract) -> Option<Admission>,
    round: Contract,
    within: bool,
) -> Offer {
    let admission = match within {
        true => find(&round).filter(promises),
        false => None,
    };
    match admission {
        Some(admission) => Offer {
            contract: round,
            admission,
        },
        None => nearest,
    }
}

/// The admitted contract of the least step, 1 to `last`, away from the refused one at step 0.
fn nearest_admitted(
    find: impl Fn(&Contract) -> Option<Admission>,
    last: u64,
    contract_at: impl Fn(u64) -> Contract,
) -> Option<Offer> {
    let offer_at = |step| {
        let contract = contract_at(step);
        let admission = find(&contract).filter(promises)?;
        Some(Offer {
            contract,
            admission,
        })
    };
    if last == 0 {
        return None;
    }
    let mut nearest = offer_at(last)?;
    let (mut refused, mut admitted) = (0, last);
    while admitted - refused > 1 {
        let middle = refused + (admitted - refused) / 2;
        match offer_at(middle) {
            Some(offer) => (nearest, admitted) = (offer, middle),
            None => refused = middle,
        }
    }
    Some(nearest)
}

fn promises(admission: &Admission) -> bool {
    !matches!(admission.promise, Promise::Nothing(_))
}
