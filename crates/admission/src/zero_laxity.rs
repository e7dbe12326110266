// SPDX-License-Identifier: GPL-2.0
//! Ours beside EDF-WM: a split whose first pieces fill their windows, after C=D splitting [1].
//!
//! A piece whose budget is as long as its window delays whatever else its CPU has, but takes the
//! least possible time from the pieces that follow: the last one has nearly the whole deadline left,
//! where EDF-WM would give it D/s. A CPU can carry one such piece only.
//!
//! ```text
//!     z_k = the largest budget with which (z_k, z_k, T) fits on CPU k
//!     over the CPUs by decreasing z_k: does (C - z_k, D - z_k, T) fit whole on another CPU? done
//!     else take the largest z_k as a piece and go on with the rest
//! ```
//!
//! Where a part of the CPU is left to others, supply is slower and z_k needs a window of z_k
//! divided by that supply.
//!
//! What is ours: any CPU may come first ([1] fills one after the other), so that as few pieces as
//! possible are made, and the last piece goes to the fullest CPU that carries it.
//!
//! \[1\] A. Burns, R. Davis, P. Wang, F. Zhang, *Partitioned EDF Scheduling for Multiprocessors
//! using a C=D Task Splitting Scheme*, Real-Time Systems 48, 2012.

use std::cmp::Reverse;

use crate::demand::{Verdict, Workload};
use crate::edf_wm::MAX_PIECES;
use crate::placement::Piece;
use crate::task::Task;

/// Most rounds of the search for z; each at least halves what is too much.
const MAX_ROUNDS: u32 = 64;

/// The pieces of `task`, in the order they run in, none smaller than `least_ns`; none if it cannot
/// be split so.
pub(crate) fn split(cpus: &[Workload], task: &Task, least_ns: u64) -> Option<Vec<Piece>> {
    let room = |cpu: usize| (cpu, zero_laxity_budget_ns(&cpus[cpu], task));
    let mut firsts: Vec<(usize, u64)> = (0..cpus.len()).map(room).collect();
    firsts.sort_by_key(|&(cpu, budget_ns)| (Reverse(budget_ns), cpu));
    let mut rest = *task;
    let mut pieces: Vec<Piece> = Vec::new();
    while pieces.len() + 2 <= MAX_PIECES && firsts.len() >= 2 {
        let found = firsts.iter().find_map(|&(cpu, budget_ns)| {
            let (piece, last) = cut(&cpus[cpu], task, &rest, (cpu, budget_ns), least_ns)?;
            let last_cpu = fullest_that_fits(cpus, &firsts, cpu, &last)?;
            Some([piece, as_last(task, &last, last_cpu)])
        });
        if let Some(found) = found {
            pieces.extend(found);
            return Some(pieces);
        }
        // The largest first piece is made in any case; it is the first in the list.
        let (cpu, budget_ns) = firsts.remove(0);
        let (piece, last) = cut(&cpus[cpu], task, &rest, (cpu, budget_ns), least_ns)?;
        pieces.push(piece);
        rest = last;
    }
    None
}

fn as_last(task: &Task, last: &Task, cpu: usize) -> Piece {
    Piece {
        cpu: cpu as u32,
        budget_ns: last.budget_ns,
        offset_ns: task.deadline_ns - last.deadline_ns,
        window_ns: last.deadline_ns,
    }
}

/// Cuts a piece of at most `budget_ns` off the front of `rest`, and says what remains, neither
/// smaller than `least_ns`; none if that cannot be, or the piece does not fit.
fn cut(
    workload: &Workload,
    task: &Task,
    rest: &Task,
    (cpu, budget_ns): (usize, u64),
    least_ns: u64,
) -> Option<(Piece, Task)> {
    let budget_ns = budget_ns.min(rest.budget_ns.checked_sub(least_ns)?);
    let window_ns = workload.supply().time_for_ns(budget_ns);
    let piece = Piece {
        cpu: cpu as u32,
        budget_ns,
        offset_ns: task.deadline_ns - rest.deadline_ns,
        window_ns,
    };
    let last = Task {
        budget_ns: rest.budget_ns - budget_ns,
        deadline_ns: rest.deadline_ns.checked_sub(window_ns)?,
        period_ns: rest.period_ns,
    };
    let sound = budget_ns >= least_ns && last.deadline_ns > 0;
    (sound && fits(workload, &piece.task(task.period_ns))).then_some((piece, last))
}

/// The largest budget, below that of `task`, that fits with the shortest window it can have [ns].
///
/// The largest budget for a window gives a shorter window, and so on: the greatest fixed point,
/// since what fits in its own window fits in every longer one.
fn zero_laxity_budget_ns(cpu: &Workload, task: &Task) -> u64 {
    let mut budget_ns = task.budget_ns - 1;
    // No deadline of the others may come before the piece's own.
    let soonest_ns = cpu.tasks().iter().map(|task| task.deadline_ns).min();
    if let Some(soonest_ns) = soonest_ns {
        budget_ns = budget_ns.min(cpu.supply().within_ns(soonest_ns - 1));
    }
    for _ in 0..MAX_ROUNDS {
        if budget_ns == 0 {
            return 0;
        }
        let window_ns = cpu.supply().time_for_ns(budget_ns);
        let largest_ns = cpu.largest_budget_ns(window_ns, task.period_ns);
        if largest_ns >= budget_ns {
            return budget_ns;
        }
        budget_ns = largest_ns;
    }
    0
}

fn fits(cpu: &Workload, task: &Task) -> bool {
    cpu.verdict_with(task) == Verdict::Fits
}

fn fullest_that_fits(
    cpus: &[Workload],
    free: &[(usize, u64)],
    but: usize,
    task: &Task,
) -> Option<usize> {
    let others = free.iter().map(|&(cpu, _)| cpu).filter(|&cpu| cpu != but);
    let mut others: Vec<usize> = others.filter(|&cpu| fits(&cpus[cpu], task)).collect();
    others.sort_by_key(|&cpu| (Reverse(cpus[cpu].sums().high), cpu));
    others.first().copied()
}
