// SPDX-License-Identifier: GPL-2.0
//! Loss windows: when contracts that may lose some periods share a CPU that could not serve all.
//!
//! DWCS orders by deadline, and equal deadlines by how little may still be lost [1]. Its published
//! condition counts only what must be served:
//!
//! ```text
//!     sum of (1 - x_i / y_i) C_i / T_i  <=  supply
//! ```
//!
//! It promises something only if all periods are equal and all budgets are. A period then has
//! n = floor(supply(T) / C) slots, and no window is violated if
//!
//! ```text
//!     sum of (1 - x_i / y_i)  <=  n
//! ```
//!
//! (published for T = n C). Where contracts may not have the whole CPU, they have their part of a period but
//! for what the scheduler is late to hold them back and to let them go on ([`HELD_NS`]): so much less is supplied.
//! With unequal periods windows can be violated at any utilisation [2]:
//! the earliest deadline wins slots that it could do without. What meets the condition only is
//! therefore admitted without a promise, and never beside a contract that tolerates no loss.
//!
//! \[1\] R. West, C. Poellabauer, *Analysis of a Window-Constrained Scheduler for Real-Time and
//! Best-Effort Packet Streams*, RTSS 2000.
//! \[2\] A. Mok, W. Wang, *Window-Constrained Real-Time Periodic Task Scheduling*, RTSS 2001.

use std::fmt;

use num_bigint::BigInt;
use num_rational::BigRational;
use serde::{Deserialize, Serialize};

use crate::contract::Tolerance;
use crate::task::{Supply, Task};

/// How far what contracts have had of a CPU may be from their part of it, at any instant [ns]: `AN_HELD_UNTIL_NS` of
/// `core/contract_pick.h`.
pub const HELD_NS: u64 = 1_000_000;

/// A task that shares a CPU, and what it may lose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowTask {
    /// The task.
    pub task: Task,
    /// What it may lose; a piece of a split contract may lose nothing.
    pub tolerance: Tolerance,
    /// Whether it is a piece of a split contract.
    pub piece: bool,
}

/// What DWCS can promise a CPU's contracts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowVerdict {
    /// No window is ever violated.
    Promised,
    /// The condition holds, but nothing follows from it.
    Unproved(Unproved),
    /// The condition does not hold, or a task could not be served even alone.
    Exceeded,
}

/// Why the condition promises nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unproved {
    /// The periods differ.
    UnequalPeriods,
    /// The budgets differ.
    UnequalBudgets,
    /// A deadline lies before the end of its period.
    EarlyDeadlines,
    /// The CPU carries a piece of a split contract.
    Pieces,
    /// The period is no multiple of the budget, and its whole slots are too few.
    PartialSlots,
    /// More is asked than there is. Nobody is admitted so; plain DWCS asks nobody.
    Overload,
}

impl fmt::Display for Unproved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UnequalPeriods => "periods differ",
            Self::UnequalBudgets => "budgets differ",
            Self::EarlyDeadlines => "a deadline lies before the end of its period",
            Self::Pieces => "a piece of a split contract runs there",
            Self::Overload => "more is asked than the CPU has",
            Self::PartialSlots => "what a period supplies is no multiple of the budget",
        })
    }
}

/// Whether contracts on a CPU keep their windows under DWCS.
pub fn judge(tasks: &[WindowTask], supply: Supply) -> WindowVerdict {
    let ratio = |a: u64, b: u64| BigRational::new(a.into(), b.into());
    let sum = |part: &dyn Fn(&WindowTask) -> BigRational| {
        let zero = BigRational::from_integer(BigInt::ZERO);
        tasks.iter().fold(zero, |sum, task| sum + part(task))
    };
    let share = |task: &Task| ratio(task.budget_ns, task.period_ns);
    let needed = sum(&|task| served_part(task.tolerance) * share(&task.task));
    // What could not be served even alone would lose every period.
    let hopeless =
        |task: &WindowTask| task.task.budget_ns > supply.within_ns(task.task.deadline_ns);
    if needed > ratio(supply.per_mille(), 1000) || tasks.iter().any(hopeless) {
        return WindowVerdict::Exceeded;
    }
    if let Some(unproved) = broken_precondition(tasks) {
        return WindowVerdict::Unproved(unproved);
    }
    let late_ns = match supply {
        Supply::WHOLE => 0,
        _ => HELD_NS,
    };
    let slots = tasks.first().map_or(0, |first| {
        let supplied_ns = supply.within_ns(first.task.period_ns);
        supplied_ns.saturating_sub(late_ns) / first.task.budget_ns
    });
    if sum(&|task| served_part(task.tolerance)) > ratio(slots, 1) {
        return WindowVerdict::Unproved(Unproved::PartialSlots);
    }
    WindowVerdict::Promised
}

/// 1 - x / y.
fn served_part(tolerance: Tolerance) -> BigRational {
    let Tolerance { losses, window } = tolerance;
    BigRational::new(
        (window - losses).max(u32::from(window == 0)).into(),
        window.max(1).into(),
    )
}

fn broken_precondition(tasks: &[WindowTask]) -> Option<Unproved> {
    let first = tasks.first()?.task;
    let any = |broken: &dyn Fn(&WindowTask) -> bool| tasks.iter().any(broken);
    if any(&|task| task.piece) {
        Some(Unproved::Pieces)
    } else if any(&|task| task.task.period_ns != first.period_ns) {
        Some(Unproved::UnequalPeriods)
    } else if any(&|task| task.task.budget_ns != first.budget_ns) {
        Some(Unproved::UnequalBudgets)
    } else if any(&|task| task.task.deadline_ns < task.task.period_ns) {
        Some(Unproved::EarlyDeadlines)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(tasks: &[(u64, u64, u32, u32)]) -> Vec<WindowTask> {
        let task = |&(budget, period, losses, window): &(u64, u64, u32, u32)| WindowTask {
            task: Task::new(budget, period, period).unwrap(),
            tolerance: Tolerance { losses, window },
            piece: false,
        };
        tasks.iter().map(task).collect()
    }

    fn on_whole_cpu(tasks: &[(u64, u64, u32, u32)]) -> WindowVerdict {
        judge(&of(tasks), Supply::WHOLE)
    }

    /// The set of utilisation 89/90 that violates nothing under the nested form of rule b.
    #[test]
    fn equal_periods_and_budgets_are_promised_up_to_the_last_slot() {
        let tasks = [
            (1, 3, 2, 6),
            (1, 3, 2, 4),
            (1, 3, 0, 1),
            (1, 3, 2, 5),
            (1, 3, 4, 5),
        ];
        // 2/3 + 1/2 + 1 + 3/5 + 1/5 = 89/30 of 3 slots.
        assert_eq!(on_whole_cpu(&tasks), WindowVerdict::Promised);
        let full = [(1, 3, 1, 2), (1, 3, 1, 2), (1, 3, 0, 1), (1, 3, 0, 0)];
        assert_eq!(on_whole_cpu(&full), WindowVerdict::Promised);
        let more = [&full[..], &[(1, 3, 60_000, 60_001)]].concat();
        assert_eq!(on_whole_cpu(&more), WindowVerdict::Exceeded);
    }

    /// Of eight tenths of 30 ms eight slots of 3 ms are seven: the last one would end as the period does.
    #[test]
    fn a_part_of_the_cpu_comes_in_pieces() {
        const MS: u64 = 1_000_000;
        let part = Supply::after(200).unwrap();
        let nine = [(3 * MS, 30 * MS, 1, 5); 9];
        // 9 times 4/5 are more than seven, and eight times are less.
        let unproved = WindowVerdict::Unproved(Unproved::PartialSlots);
        assert_eq!(judge(&of(&nine), part), unproved);
        assert_eq!(judge(&of(&nine[..8]), part), WindowVerdict::Promised);
        assert_eq!(on_whole_cpu(&nine), WindowVerdict::Promised);
    }

    /// Utilisation 31/72, and yet violated whichever way ties go.
    #[test]
    fn unequal_periods_are_never_promised() {
        let tasks = [(1, 1, 3, 4), (1, 6, 2, 3), (1, 6, 1, 4)];
        let unproved = WindowVerdict::Unproved(Unproved::UnequalPeriods);
        assert_eq!(on_whole_cpu(&tasks), unproved);
    }

    #[test]
    fn every_precondition_counts() {
        let unproved = WindowVerdict::Unproved;
        let budgets = [(2, 6, 1, 2), (1, 6, 1, 2)];
        assert_eq!(on_whole_cpu(&budgets), unproved(Unproved::UnequalBudgets));
        // 2.5 slots, of which two are whole.
        let slots = [(2, 5, 0, 1), (2, 5, 0, 1), (2, 5, 1, 2)];
        assert_eq!(on_whole_cpu(&slots), unproved(Unproved::PartialSlots));
        assert_eq!(on_whole_cpu(&slots[..2]), WindowVerdict::Promised);
        let mut tasks = of(&[(1, 6, 1, 2), (1, 6, 1, 2)]);
        tasks[1].task.deadline_ns = 5;
        let judged = |tasks: &[WindowTask]| judge(tasks, Supply::WHOLE);
        assert_eq!(judged(&tasks), unproved(Unproved::EarlyDeadlines));
        tasks[1].piece = true;
        assert_eq!(judged(&tasks), unproved(Unproved::Pieces));
    }

    #[test]
    fn what_cannot_be_served_alone_is_not_helped_by_tolerance() {
        let alone = of(&[(9, 10, 1, 2)]);
        assert_eq!(judge(&alone, Supply::WHOLE), WindowVerdict::Promised);
        let supply = Supply::after(200).unwrap();
        assert_eq!(judge(&alone, supply), WindowVerdict::Exceeded);
    }

    /// Kept back is kept back: 4/5 of 15 ms are 12, and so two slots of 4 with 1 to spare, and not three.
    #[test]
    fn what_is_left_for_others_has_no_slots() {
        const MS: u64 = 1_000_000;
        let supply = Supply::after(200).unwrap();
        let slot = |losses, window| (4 * MS, 15 * MS, losses, window);
        let tasks = of(&[slot(1, 2), slot(1, 2), slot(0, 1)]);
        assert_eq!(judge(&tasks, supply), WindowVerdict::Promised);
        let more = of(&[slot(1, 2), slot(1, 4), slot(0, 1)]);
        assert_eq!(
            judge(&more, supply),
            WindowVerdict::Unproved(Unproved::PartialSlots)
        );
        assert_eq!(judge(&more, Supply::WHOLE), WindowVerdict::Promised);
    }
}
