// SPDX-License-Identifier: GPL-2.0
//! What admission answers: yes and where, or no, why, because of whom, and what would do.

use serde::{Deserialize, Serialize};

use crate::contract::Contract;
use crate::dwcs::Unproved;
use crate::placement::Placement;

/// The answer to one contract.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// It is admitted.
    Admitted(Admission),
    /// It is not.
    Refused(Box<Refusal>),
}

impl Answer {
    /// Where and how it is admitted, if it is.
    pub fn admission(&self) -> Option<&Admission> {
        match self {
            Self::Admitted(admission) => Some(admission),
            Self::Refused(_) => None,
        }
    }

    /// Why it is refused, if it is.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Admitted(_) => None,
            Self::Refused(refusal) => Some(refusal),
        }
    }
}

/// An admitted contract.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Admission {
    /// Where it runs.
    pub placement: Placement,
    /// What it may rely on.
    pub promise: Promise,
    /// The test that admitted it.
    pub test: Test,
    /// Contracts that were promised more before: every deadline where now only their windows are
    /// kept, or windows where now nothing is promised.
    pub weakened: Vec<String>,
}

/// What an admitted contract may rely on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Promise {
    /// No deadline is missed.
    EveryDeadline,
    /// No window loses more than tolerated.
    Windows,
    /// DWCS's condition holds, but promises nothing here.
    Nothing(Unproved),
}

impl Promise {
    /// How much is promised, for comparisons.
    pub(crate) fn strength(self) -> u8 {
        match self {
            Self::EveryDeadline => 2,
            Self::Windows => 1,
            Self::Nothing(_) => 0,
        }
    }
}

/// A test of admission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Test {
    /// Sum of C / T within the supply, deadlines at the periods' ends (Liu, Layland 1973).
    Utilisation,
    /// Demand within the supply in every interval (Zhang, Burns 2009).
    Demand,
    /// The same for every piece (Kato, Yamasaki, Ishikawa 2009).
    Split,
    /// DWCS's condition (West, Poellabauer 2000).
    WindowConstraint,
}

/// Why a contract is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// What stands in the way on each CPU it might have run on as a whole, by CPU.
    pub cpus: Vec<Obstacle>,
    /// How far splitting would go, if it was tried.
    pub split: Option<Shortage>,
    /// The nearest contracts that would be admitted.
    pub nearest: Nearest,
}

/// What stands in the way on one CPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Obstacle {
    /// The CPU.
    pub cpu: u32,
    /// The test that failed, and by how much.
    pub failure: Failure,
    /// What is due within `at_ns`, if an instant is known at which more is due than supplied.
    pub overload: Option<Overload>,
    /// Why the loss windows do not help, if any contract there has one.
    pub windows: Option<WindowFailure>,
    /// Who holds the CPU, those first that hold most of it.
    pub holders: Vec<Holder>,
}

/// The test of one CPU that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// Sum of C / T above the supply. Both are rounded up for display; the test is exact.
    Utilisation {
        /// With the contract [1/1000000].
        asked_ppm: u64,
        /// Supply [1/1000000].
        supply_ppm: u64,
    },
    /// More is due in some interval than supplied.
    Demand,
    /// Not decided within this crate's bounds: utilisation is too close to the supply.
    Undecided,
}

/// An interval in which more is due than supplied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overload {
    /// Length of the interval, from a common release [ns]; the shortest there is.
    pub at_ns: u64,
    /// CPU time due by then [ns].
    pub demand_ns: u64,
    /// CPU time supplied by then [ns].
    pub supply_ns: u64,
}

/// Why the loss windows do not help on a CPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WindowFailure {
    /// Even what must be served is too much.
    Exceeded,
    /// DWCS's condition holds but promises nothing, and the policy wants a promise.
    Unproved(Unproved),
    /// The same, and these tolerate no loss.
    Endangers {
        /// Why nothing is promised.
        unproved: Unproved,
        /// Names of the contracts.
        contracts: Vec<String>,
    },
}

/// A contract that holds a part of a CPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Its name.
    pub name: String,
    /// Its budget on this CPU per period [ns].
    pub budget_ns: u64,
    /// Its deadline on this CPU: the window of a piece [ns].
    pub deadline_ns: u64,
    /// Its period [ns].
    pub period_ns: u64,
    /// What it holds of the CPU, C / T rounded up [1/1000000].
    pub share_ppm: u64,
    /// What is due of it by the overload's instant [ns], if there is one.
    pub demand_ns: Option<u64>,
}

/// How far splitting would go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shortage {
    /// The number of pieces that carries most.
    pub pieces: usize,
    /// The window of each [ns].
    pub window_ns: u64,
    /// What they carry together [ns].
    pub found_ns: u64,
    /// The budget asked for [ns].
    pub needed_ns: u64,
}

/// The nearest contracts that would be admitted, each with what admission says of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nearest {
    /// The largest budget in this period.
    pub largest_budget: Option<Offer>,
    /// The shortest period for this budget, up to [`MAX_STRETCH`](crate::MAX_STRETCH) times the one
    /// asked for. A deadline at the period's end moves with it.
    pub shortest_period: Option<Offer>,
}

/// A contract that would be admitted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// The contract.
    pub contract: Contract,
    /// What admission says of it.
    pub admission: Admission,
}
