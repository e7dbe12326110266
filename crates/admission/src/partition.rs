// SPDX-License-Identifier: GPL-2.0
//! The CPUs of a machine and the tasks on them; where one task more could go.

use std::cmp::Reverse;

use crate::demand::{Verdict, Workload};
use crate::placement::Placement;
use crate::policy::{Fit, Policy, Splitting};
use crate::task::{Supply, Task};
use crate::{edf_wm, zero_laxity};

/// The CPUs, with the tasks and pieces on each and whose they are.
#[derive(Debug, Clone)]
pub(crate) struct Partition {
    cpus: Vec<Workload>,
    /// For every task of every CPU the id of its owner.
    owners: Vec<Vec<u32>>,
}

impl Partition {
    pub fn new(cpus: u32, supply: Supply) -> Self {
        let cpus = cpus as usize;
        Self {
            cpus: vec![Workload::new(supply); cpus],
            owners: vec![Vec::new(); cpus],
        }
    }

    pub fn cpus(&self) -> &[Workload] {
        &self.cpus
    }

    /// Whose the tasks of a CPU are, in the order of its tasks.
    pub fn owners(&self, cpu: u32) -> &[u32] {
        &self.owners[cpu as usize]
    }

    /// Where `task` would go; `pin` is the only CPU it may go to, whole.
    pub fn place(&self, task: &Task, pin: Option<u32>, policy: &Policy) -> Option<Placement> {
        if let Some(cpu) = pin {
            let fits = self.fits(cpu as usize, task);
            return fits.then_some(Placement::Whole { cpu });
        }
        if let Some(cpu) = self.place_whole(task, policy.fit) {
            return Some(Placement::Whole { cpu });
        }
        let least_ns = policy.least_piece_ns;
        let mut pieces = match policy.splitting {
            Splitting::None => None,
            Splitting::EqualWindows(excess) => edf_wm::split(&self.cpus, task, excess, least_ns),
            Splitting::ZeroLaxity => zero_laxity::split(&self.cpus, task, least_ns),
        }?;
        match pieces.len() {
            // Only where the whole was undecided.
            1 => pieces
                .pop()
                .map(|piece| Placement::Whole { cpu: piece.cpu }),
            _ => Some(Placement::Split { pieces }),
        }
    }

    fn fits(&self, cpu: usize, task: &Task) -> bool {
        self.cpus[cpu].verdict_with(task) == Verdict::Fits
    }

    fn place_whole(&self, task: &Task, fit: Fit) -> Option<u32> {
        let fitting = |&cpu: &usize| self.fits(cpu, task);
        let numbers = 0..self.cpus.len();
        // Only an order of trial: the last digits of the sums do not matter.
        let load = |cpu: &usize| self.cpus[*cpu].sums().high;
        let mut order: Vec<usize> = numbers.clone().collect();
        match fit {
            Fit::First => return numbers.into_iter().find(fitting).map(|cpu| cpu as u32),
            Fit::Best => order.sort_by_key(|cpu| Reverse(load(cpu))),
            Fit::Worst => order.sort_by_key(load),
        }
        order.into_iter().find(fitting).map(|cpu| cpu as u32)
    }

    /// Puts `task` where `placement` says, whether it fits or not.
    pub fn put(&mut self, owner: u32, task: &Task, placement: &Placement) {
        let mut put = |cpu: u32, task: Task| {
            self.cpus[cpu as usize].push(task);
            self.owners[cpu as usize].push(owner);
        };
        match placement {
            Placement::Whole { cpu } => put(*cpu, *task),
            Placement::Split { pieces } => {
                for piece in pieces {
                    put(piece.cpu, piece.task(task.period_ns));
                }
            }
        }
    }

    /// Takes all of `owner`'s tasks away.
    pub fn take(&mut self, owner: u32) {
        for (workload, owners) in self.cpus.iter_mut().zip(&mut self.owners) {
            // Pieces of one task are on different CPUs.
            if let Some(at) = owners.iter().position(|&held| held == owner) {
                owners.remove(at);
                workload.remove(at);
            }
        }
    }
}
