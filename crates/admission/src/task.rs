// SPDX-License-Identifier: GPL-2.0
//! The sporadic task, and what a CPU supplies: the terms in which every test speaks.

use std::cmp::Ordering;

use num_bigint::BigInt;
use num_rational::BigRational;
use serde::Serialize;

use crate::contract::MAX_PERIOD_NS;

/// A sporadic task: at most `budget_ns` of CPU time per release, releases at least `period_ns`
/// apart, each done within `deadline_ns` of its release.
///
/// Units are nanoseconds by name only: nothing but their ratios matters. The deadline may lie after
/// the period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Task {
    pub(crate) budget_ns: u64,
    pub(crate) deadline_ns: u64,
    pub(crate) period_ns: u64,
}

impl Task {
    /// A task, if each of the three is 1 to [`MAX_PERIOD_NS`].
    pub fn new(budget_ns: u64, deadline_ns: u64, period_ns: u64) -> Option<Self> {
        let in_bounds = |time_ns| (1..=MAX_PERIOD_NS).contains(&time_ns);
        (in_bounds(budget_ns) && in_bounds(deadline_ns) && in_bounds(period_ns)).then_some(Self {
            budget_ns,
            deadline_ns,
            period_ns,
        })
    }

    /// C [ns].
    pub fn budget_ns(&self) -> u64 {
        self.budget_ns
    }

    /// D, relative to the release [ns].
    pub fn deadline_ns(&self) -> u64 {
        self.deadline_ns
    }

    /// T [ns].
    pub fn period_ns(&self) -> u64 {
        self.period_ns
    }

    /// Releases whose deadline lies within `t_ns` of the first, at most.
    pub(crate) fn jobs_within(&self, t_ns: u64) -> u64 {
        match t_ns.checked_sub(self.deadline_ns) {
            Some(rest_ns) => rest_ns / self.period_ns + 1,
            None => 0,
        }
    }

    /// Demand bound function: the CPU time it may need within `t_ns` [ns].
    ///
    /// dbf(t) = max(0, floor((t - D) / T) + 1) C: Baruah, Mok, Rosier (RTSS 1990), lemma 3.
    pub fn demand_ns(&self, t_ns: u64) -> u64 {
        self.jobs_within(t_ns).saturating_mul(self.budget_ns)
    }

    /// The last deadline at or before `t_ns`, if all was released at 0 and as often as allowed.
    pub(crate) fn last_deadline_ns(&self, t_ns: u64) -> Option<u64> {
        let rest_ns = t_ns.checked_sub(self.deadline_ns)?;
        Some(t_ns - rest_ns % self.period_ns)
    }

    /// C / T in units of 2^-64, rounded down and up.
    pub(crate) fn share(&self) -> (u128, u128) {
        let (numerator, period) = (u128::from(self.budget_ns) << 64, u128::from(self.period_ns));
        let low = numerator / period;
        (low, low + u128::from(low * period != numerator))
    }

    fn exact_share(&self) -> BigRational {
        BigRational::new(self.budget_ns.into(), self.period_ns.into())
    }
}

/// C_a / T_a against C_b / T_b, the larger first.
pub(crate) fn by_decreasing_utilisation(a: &Task, b: &Task) -> Ordering {
    let product = |c: &Task, t: &Task| u128::from(c.budget_ns) * u128::from(t.period_ns);
    product(b, a).cmp(&product(a, b))
}

/// The part of a CPU that contracts may have; everybody else keeps the rest.
///
/// The rest is kept back *in every interval*, as if the contracts' CPU were slower: within t they
/// are supplied `per_mille` / 1000 of t. Their deadlines therefore hold even while everybody else
/// takes its whole part, and kernel work and interrupts have their room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Supply {
    per_mille: u64,
}

impl Supply {
    /// The whole CPU, as papers assume.
    pub const WHOLE: Self = Self { per_mille: 1000 };

    /// What is left of a CPU of which everybody else keeps `left_per_mille` thousandths, 0 to 999.
    pub fn after(left_per_mille: u32) -> Option<Self> {
        let per_mille = u64::from(1000_u32.checked_sub(left_per_mille)?);
        (per_mille > 0).then_some(Self { per_mille })
    }

    /// The part [1/1000].
    pub fn per_mille(&self) -> u64 {
        self.per_mille
    }

    /// CPU time supplied within `t_ns`, in whole nanoseconds.
    pub fn within_ns(&self, t_ns: u64) -> u64 {
        // In two parts, which cannot overflow.
        t_ns / 1000 * self.per_mille + t_ns % 1000 * self.per_mille / 1000
    }

    /// The least time within which `demand_ns` is supplied [ns], at most 2^64 - 1.
    pub fn time_for_ns(&self, demand_ns: u64) -> u64 {
        let whole = (demand_ns / self.per_mille).saturating_mul(1000);
        whole.saturating_add((demand_ns % self.per_mille * 1000).div_ceil(self.per_mille))
    }

    /// The part in units of 2^-64, rounded down.
    pub(crate) fn share_low(&self) -> u128 {
        (u128::from(self.per_mille) << 64) / 1000
    }

    /// Whether the sum of C / T of `tasks` is within the part: the utilisation test, exactly.
    ///
    /// `low` and `high` are bounds of the sum in units of 2^-64; fractions of any size are summed
    /// only where these leave it open.
    pub(crate) fn covers<'a>(
        &self,
        low: u128,
        high: u128,
        tasks: impl Iterator<Item = &'a Task>,
    ) -> bool {
        let share_low = self.share_low();
        if high <= share_low {
            return true;
        }
        if low > share_low {
            return false;
        }
        let zero = BigRational::from_integer(BigInt::ZERO);
        let sum = tasks.fold(zero, |sum, task| sum + task.exact_share());
        sum <= BigRational::new(self.per_mille.into(), 1000.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn demand_counts_whole_jobs_only() {
        let task = Task::new(2, 5, 10).unwrap();
        let demand: Vec<_> = [0, 4, 5, 14, 15, 25]
            .map(|t_ns| task.demand_ns(t_ns))
            .into();
        assert_eq!(demand, [0, 0, 2, 2, 4, 6]);
        assert_eq!(task.last_deadline_ns(4), None);
        assert_eq!(task.last_deadline_ns(5), Some(5));
        assert_eq!(task.last_deadline_ns(24), Some(15));
        assert_eq!(Task::new(1, 0, 1), None);
        assert_eq!(Task::new(1, 1, MAX_PERIOD_NS + 1), None);
    }

    #[test]
    fn supply_and_the_time_for_it_are_inverse() {
        for per_mille in [1, 7, 333, 800, 999, 1000] {
            let supply = Supply { per_mille };
            for demand_ns in (0..5000).chain([u64::MAX >> 12]) {
                let t_ns = supply.time_for_ns(demand_ns);
                assert!(supply.within_ns(t_ns) >= demand_ns);
                assert!(t_ns == 0 || supply.within_ns(t_ns - 1) < demand_ns);
            }
        }
        assert_eq!(Supply::after(1000), None);
        assert_eq!(Supply::after(1001), None);
        assert_eq!(Supply::after(0), Some(Supply::WHOLE));
    }

    #[test]
    fn thirds_fill_a_cpu_exactly_and_not_a_hair_more() {
        let thirds = [Task::new(1, 3, 3).unwrap(); 3];
        let sums = |tasks: &[Task]| {
            let shares = tasks.iter().map(Task::share);
            shares.fold((0, 0), |sum, share| (sum.0 + share.0, sum.1 + share.1))
        };
        let (low, high) = sums(&thirds);
        assert!(low < Supply::WHOLE.share_low() && high > Supply::WHOLE.share_low());
        assert!(Supply::WHOLE.covers(low, high, thirds.iter()));
        let hair = Task::new(1, MAX_PERIOD_NS, MAX_PERIOD_NS).unwrap();
        let more = [thirds[0], thirds[1], thirds[2], hair];
        let (low, high) = sums(&more);
        assert!(!Supply::WHOLE.covers(low, high, more.iter()));
    }
}
