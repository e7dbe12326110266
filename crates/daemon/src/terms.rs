// SPDX-License-Identifier: GPL-2.0
//! What is asked for, and what of that the kernel can keep.

use andante_admission::{Contract, ContractError, Duration, Tolerance};
use andante_sched::contracts::{MAX_PERIOD_NS, MAX_WINDOW};
use serde::{Deserialize, Serialize};

/// The shortest period [ns]: some times what ending a budget by timer may be late.
pub const LEAST_PERIOD_NS: u64 = 500_000;
/// The least budget [ns]: the scheduler's timers are no finer.
pub const LEAST_BUDGET_NS: u64 = 50_000;

/// What a contract promises, whoever holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Terms {
    /// C [ns], from [`LEAST_BUDGET_NS`] up to the deadline.
    pub budget_ns: u64,
    /// T [ns], from [`LEAST_PERIOD_NS`] to 4.29 s.
    pub period_ns: u64,
    /// D [ns]; without it the period's end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ns: Option<u64>,
    /// x/y: what may be lost; 0/0 is nothing.
    #[serde(default = "nothing_lost")]
    pub tolerance: Tolerance,
    /// Whether it also uses what others leave of their budgets.
    #[serde(default)]
    pub flexible: bool,
    /// Whether it goes on beyond its budget before everybody without a contract, as far as these are
    /// left their part; a hard one goes on with its class's share.
    #[serde(default)]
    pub soft: bool,
    /// Whether a hard one goes on beyond its budget as what is learnt does, under the bound of that: what a
    /// session is promised does, for without a promise its threads would be served so all the time.
    #[serde(skip)]
    pub spills: bool,
}

fn nothing_lost() -> Tolerance {
    Tolerance::NONE
}

/// What is wrong with terms by themselves, whatever the machine holds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TermsError {
    /// Admission's own rules.
    #[error(transparent)]
    Contract(#[from] ContractError),
    /// Longer than the kernel's clocks of contracts allow.
    #[error(
        "a period of {} is too long: give {} at most",
        Duration(*.0),
        Duration(MAX_PERIOD_NS)
    )]
    PeriodTooLong(u64),
    /// Shorter than budgets can be told apart.
    #[error(
        "a period of {} is too short to be kept: give {} at least",
        Duration(*.0),
        Duration(LEAST_PERIOD_NS)
    )]
    PeriodTooShort(u64),
    /// Less than the timers can enforce.
    #[error(
        "a budget of {} is too small to be kept: give {} at least",
        Duration(*.0),
        Duration(LEAST_BUDGET_NS)
    )]
    BudgetTooSmall(u64),
    /// The window is longer than the kernel's.
    #[error("the window of {0} is too long: {MAX_WINDOW} periods at most")]
    WindowTooLong(Tolerance),
    /// A window of losses goes by whole periods.
    #[error(
        "a contract that may lose periods has its deadline at their ends: leave the deadline out"
    )]
    EarlyDeadline,
    /// A window of losses and reclaiming exclude each other.
    #[error(
        "a contract that may lose periods cannot be flexible: leave out one of the two; a soft one \
         goes on beyond its budget"
    )]
    FlexibleWindow,
}

impl Terms {
    /// Plain terms: `budget_ns` in every `period_ns`.
    pub fn new(budget_ns: u64, period_ns: u64) -> Self {
        Self {
            budget_ns,
            period_ns,
            deadline_ns: None,
            tolerance: Tolerance::NONE,
            flexible: false,
            soft: false,
            spills: false,
        }
    }

    /// The contract that admission is asked for.
    pub fn contract(&self, name: &str) -> Contract {
        Contract::new(name, self.budget_ns, self.period_ns)
            .with_deadline_ns(self.deadline_ns.unwrap_or(self.period_ns))
            .with_tolerance(self.tolerance.losses, self.tolerance.window)
    }

    /// Whether a machine could keep them at all.
    ///
    /// # Errors
    /// The first thing wrong.
    pub fn check(&self) -> Result<(), TermsError> {
        self.contract("terms").check(1)?;
        if self.period_ns > MAX_PERIOD_NS {
            return Err(TermsError::PeriodTooLong(self.period_ns));
        }
        if self.period_ns < LEAST_PERIOD_NS {
            return Err(TermsError::PeriodTooShort(self.period_ns));
        }
        if self.budget_ns < LEAST_BUDGET_NS {
            return Err(TermsError::BudgetTooSmall(self.budget_ns));
        }
        if self.tolerance.window > MAX_WINDOW {
            return Err(TermsError::WindowTooLong(self.tolerance));
        }
        if self.tolerance.window == 0 {
            return Ok(());
        }
        if self.deadline_ns.is_some_and(|ns| ns != self.period_ns) {
            return Err(TermsError::EarlyDeadline);
        }
        if self.flexible {
            return Err(TermsError::FlexibleWindow);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn with(change: impl Fn(&mut Terms)) -> Result<(), TermsError> {
        let mut terms = Terms::new(9 * MS, 33 * MS);
        change(&mut terms);
        terms.check()
    }

    #[test]
    fn nonsense_is_told_apart() {
        assert_eq!(with(|_| ()), Ok(()));
        let contract = |error| Err(TermsError::Contract(error));
        assert_eq!(with(|t| t.budget_ns = 0), contract(ContractError::NoBudget));
        assert_eq!(with(|t| t.period_ns = 0), contract(ContractError::NoPeriod));
        let more_than_all = with(|t| t.budget_ns = 40 * MS).unwrap_err();
        assert!(
            more_than_all
                .to_string()
                .contains("40 ms of CPU time within 33 ms")
        );
        let losses = |losses, window| Tolerance { losses, window };
        assert!(matches!(
            with(|t| t.tolerance = losses(2, 1)),
            Err(TermsError::Contract(ContractError::MoreLossesThanPeriods(
                _
            )))
        ));
        assert_eq!(
            with(|t| t.period_ns = MAX_PERIOD_NS + 1),
            Err(TermsError::PeriodTooLong(MAX_PERIOD_NS + 1))
        );
        let short = Terms::new(100_000, LEAST_PERIOD_NS - 1).check();
        assert!(matches!(short, Err(TermsError::PeriodTooShort(_))));
        let small = Terms::new(LEAST_BUDGET_NS - 1, MS).check();
        assert!(matches!(small, Err(TermsError::BudgetTooSmall(_))));
    }

    #[test]
    fn windows_go_by_whole_periods_and_reclaim_nothing() {
        let lossy = |change: &dyn Fn(&mut Terms)| {
            with(|terms| {
                terms.tolerance = Tolerance {
                    losses: 1,
                    window: 5,
                };
                change(terms);
            })
        };
        assert_eq!(lossy(&|_| ()), Ok(()));
        assert_eq!(lossy(&|t| t.deadline_ns = Some(33 * MS)), Ok(()));
        assert_eq!(
            lossy(&|t| t.deadline_ns = Some(20 * MS)),
            Err(TermsError::EarlyDeadline)
        );
        assert_eq!(
            lossy(&|t| t.flexible = true),
            Err(TermsError::FlexibleWindow)
        );
        assert_eq!(lossy(&|t| t.soft = true), Ok(()));
    }
}
