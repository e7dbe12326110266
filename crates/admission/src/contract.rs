// SPDX-License-Identifier: GPL-2.0
//! What a program asks for: a budget in every period, and how many periods it may lose.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::duration::Duration;

/// Longest period, and so longest deadline and budget [ns]: 2^42, about 73 minutes. Keeps every sum
/// of products below within 128 bits.
pub const MAX_PERIOD_NS: u64 = 1 << 42;
/// Most contracts held at a time; the scheduler's table has as many entries.
pub const MAX_CONTRACTS: usize = 1024;
/// Most CPUs of a machine.
pub const MAX_CPUS: u32 = 1024;
/// Longest window of a tolerance [periods].
pub const MAX_WINDOW: u32 = 1 << 16;

/// At most `losses` of every `window` consecutive, aligned periods may be lost: x/y of DWCS [1].
///
/// 0/0 (the default) stands outside of windows: nothing may be lost, plain EDF.
///
/// \[1\] R. West, K. Schwan, *Dynamic Window-Constrained Scheduling for Multimedia Applications*
/// (ICMCS 1999); the aligned windows: R. West, C. Poellabauer (RTSS 2000).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tolerance {
    /// x: periods that may be lost.
    pub losses: u32,
    /// y: length of the window [periods]; 0 only with no losses.
    pub window: u32,
}

impl Tolerance {
    /// Nothing may be lost.
    pub const NONE: Self = Self {
        losses: 0,
        window: 0,
    };

    /// What a text of one must look like.
    pub const EXPECTED: &str = "losses per periods, e.g. \"1/5\"";

    /// Whether anything may be lost at all.
    pub fn allows_loss(self) -> bool {
        self.losses > 0
    }
}

impl fmt::Display for Tolerance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.losses, self.window)
    }
}

/// A text that is no tolerance.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not understood: give {}", Tolerance::EXPECTED)]
pub struct ToleranceError {
    text: String,
}

impl std::str::FromStr for Tolerance {
    type Err = ToleranceError;

    fn from_str(text: &str) -> Result<Self, ToleranceError> {
        let read = |(losses, window): (&str, &str)| {
            Some(Self {
                losses: losses.trim().parse().ok()?,
                window: window.trim().parse().ok()?,
            })
        };
        let parts = text.split_once('/');
        parts.and_then(read).ok_or_else(|| ToleranceError {
            text: text.to_owned(),
        })
    }
}

/// A promise in time: `budget_ns` of CPU time in every period, by the deadline.
///
/// Made by [`Contract::new`] and the `with_` calls; [`Contract::check`] judges it. The period
/// is the least distance between two releases (a sporadic task), so a program that skips a period
/// harms nobody.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contract {
    /// Name, unique within a [`System`](crate::System).
    pub name: String,
    /// C: CPU time per period [ns], 1 to `deadline_ns`.
    pub budget_ns: u64,
    /// T: least distance of two releases [ns], up to [`MAX_PERIOD_NS`].
    pub period_ns: u64,
    /// D: the budget is had within this time of the release [ns], up to `period_ns`.
    pub deadline_ns: u64,
    /// x/y: what may be lost.
    pub tolerance: Tolerance,
    /// The only CPU it may run on; none leaves the choice to the placement.
    pub cpu: Option<u32>,
}

/// What is wrong with a contract by itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ContractError {
    /// The name is empty.
    #[error("a contract needs a name")]
    NoName,
    /// The budget is 0.
    #[error("a budget of nothing needs no contract: give more than 0")]
    NoBudget,
    /// The period is 0.
    #[error("the period must be longer than 0")]
    NoPeriod,
    /// The period is above [`MAX_PERIOD_NS`].
    #[error("the period is too long: {} at most", Duration(MAX_PERIOD_NS))]
    PeriodTooLong,
    /// C > D.
    #[error(
        "the budget does not fit before the deadline, whoever else runs: {} of CPU time within {}",
        Duration(*budget_ns),
        Duration(*deadline_ns)
    )]
    BudgetAfterDeadline {
        /// C [ns].
        budget_ns: u64,
        /// D [ns].
        deadline_ns: u64,
    },
    /// D > T: a contract's server serves one period at a time.
    #[error(
        "the deadline ({}) lies after the end of the period ({}): a contract serves one period at \
         a time",
        Duration(*deadline_ns),
        Duration(*period_ns)
    )]
    DeadlineAfterPeriod {
        /// D [ns].
        deadline_ns: u64,
        /// T [ns].
        period_ns: u64,
    },
    /// x > y.
    #[error("{0} tolerates more losses than there are periods in the window")]
    MoreLossesThanPeriods(Tolerance),
    /// y above [`MAX_WINDOW`].
    #[error("the window of {0} is too long: {MAX_WINDOW} periods at most")]
    WindowTooLong(Tolerance),
    /// The CPU does not exist on the machine.
    #[error("there is no CPU {cpu}: the machine has {cpus}, counted from 0")]
    NoSuchCpu {
        /// CPU asked for.
        cpu: u32,
        /// CPUs there are.
        cpus: u32,
    },
}

impl Contract {
    /// A contract over whole periods that loses nothing and may run anywhere.
    pub fn new(name: impl Into<String>, budget_ns: u64, period_ns: u64) -> Self {
        Self {
            name: name.into(),
            budget_ns,
            period_ns,
            deadline_ns: period_ns,
            tolerance: Tolerance::NONE,
            cpu: None,
        }
    }

    /// The same with a relative deadline [ns].
    pub fn with_deadline_ns(self, deadline_ns: u64) -> Self {
        Self {
            deadline_ns,
            ..self
        }
    }

    /// The same, losing at most `losses` of `window` periods.
    pub fn with_tolerance(self, losses: u32, window: u32) -> Self {
        Self {
            tolerance: Tolerance { losses, window },
            ..self
        }
    }

    /// The same, on this CPU only.
    pub fn with_cpu(self, cpu: u32) -> Self {
        Self {
            cpu: Some(cpu),
            ..self
        }
    }

    /// The task that the tests see.
    pub(crate) fn task(&self) -> crate::Task {
        crate::Task {
            budget_ns: self.budget_ns,
            deadline_ns: self.deadline_ns,
            period_ns: self.period_ns,
        }
    }

    /// Whether it makes sense on a machine of `cpus` CPUs.
    ///
    /// # Errors
    /// The first thing wrong, in the order of [`ContractError`].
    pub fn check(&self, cpus: u32) -> Result<(), ContractError> {
        let &Self {
            budget_ns,
            period_ns,
            deadline_ns,
            tolerance,
            ..
        } = self;
        if self.name.is_empty() {
            return Err(ContractError::NoName);
        }
        if budget_ns == 0 {
            return Err(ContractError::NoBudget);
        }
        if period_ns == 0 {
            return Err(ContractError::NoPeriod);
        }
        if period_ns > MAX_PERIOD_NS {
            return Err(ContractError::PeriodTooLong);
        }
        if deadline_ns > period_ns {
            return Err(ContractError::DeadlineAfterPeriod {
                deadline_ns,
                period_ns,
            });
        }
        if budget_ns > deadline_ns {
            return Err(ContractError::BudgetAfterDeadline {
                budget_ns,
                deadline_ns,
            });
        }
        if tolerance.losses > tolerance.window {
            return Err(ContractError::MoreLossesThanPeriods(tolerance));
        }
        if tolerance.window > MAX_WINDOW {
            return Err(ContractError::WindowTooLong(tolerance));
        }
        match self.cpu {
            Some(cpu) if cpu >= cpus => Err(ContractError::NoSuchCpu { cpu, cpus }),
            _ => Ok(()),
        }
    }
}
