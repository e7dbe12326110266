// SPDX-License-Identifier: GPL-2.0
//! Why a contract is refused: which test, when, because of whom.

use std::cmp::Reverse;

use crate::answer::{
    Failure, Holder, Nearest, Obstacle, Overload, Refusal, Shortage, WindowFailure,
};
use crate::contract::Contract;
use crate::demand::Verdict;
use crate::dwcs::{self, WindowVerdict};
use crate::edf_wm;
use crate::policy::Splitting;
use crate::system::{System, window_task};
use crate::task::Task;

const PARTS: u128 = 1_000_000;

impl System {
    /// Why `contract`, which would not be admitted, is refused; `nearest` is what would be.
    pub fn refusal(&self, contract: &Contract, nearest: Nearest) -> Refusal {
        let cpus = match contract.cpu {
            Some(cpu) => cpu..cpu + 1,
            None => 0..self.machine().cpus,
        };
        Refusal {
            cpus: cpus.map(|cpu| self.obstacle(cpu, contract)).collect(),
            split: self.shortage(contract),
            nearest,
        }
    }

    fn obstacle(&self, cpu: u32, contract: &Contract) -> Obstacle {
        let mut with = self.partition().cpus()[cpu as usize].clone();
        with.push(contract.task());
        let failure = match with.verdict() {
            Verdict::OverUtilised => Failure::Utilisation {
                asked_ppm: with.tasks().iter().map(share_ppm).sum(),
                supply_ppm: self.supply().per_mille() * 1000,
            },
            Verdict::Undecided => Failure::Undecided,
            Verdict::Overload { .. } | Verdict::Fits => Failure::Demand,
        };
        let known_ns = match with.verdict() {
            Verdict::Overload { t_ns } => Some(t_ns),
            _ => None,
        };
        let at_ns = with.first_overload_ns().or(known_ns);
        let overload = at_ns.map(|at_ns| Overload {
            at_ns,
            demand_ns: with.demand_ns(at_ns),
            supply_ns: self.supply().within_ns(at_ns),
        });
        Obstacle {
            cpu,
            failure,
            overload,
            windows: self.window_failure(cpu, contract),
            holders: self.holders(cpu, at_ns),
        }
    }

    fn holders(&self, cpu: u32, at_ns: Option<u64>) -> Vec<Holder> {
        let tasks = self.partition().cpus()[cpu as usize].tasks().iter();
        let owners = self.partition().owners(cpu).iter();
        let holder = |(task, &owner): (&Task, &u32)| Holder {
            name: self
                .contract_of(owner)
                .map_or_else(String::new, |held| held.name.clone()),
            budget_ns: task.budget_ns,
            deadline_ns: task.deadline_ns,
            period_ns: task.period_ns,
            share_ppm: share_ppm(task),
            demand_ns: at_ns.map(|at_ns| task.demand_ns(at_ns)),
        };
        let mut holders: Vec<Holder> = tasks.zip(owners).map(holder).collect();
        // Stable: among equals the one admitted first.
        holders.sort_by_key(|holder| Reverse(holder.share_ppm));
        holders
    }

    fn window_failure(&self, cpu: u32, contract: &Contract) -> Option<WindowFailure> {
        let tasks = self.window_tasks(cpu, Some(&window_task(contract)));
        if !tasks.iter().any(|task| task.tolerance.allows_loss()) {
            return None;
        }
        let unproved = match dwcs::judge(&tasks, self.supply()) {
            WindowVerdict::Exceeded => return Some(WindowFailure::Exceeded),
            WindowVerdict::Unproved(unproved) => unproved,
            WindowVerdict::Promised => return None,
        };
        let owners = self.partition().owners(cpu).iter();
        let held = owners.map(|&owner| self.contract_of(owner).map(|held| &held.name));
        let names = held.chain([Some(&contract.name)]);
        let contracts: Vec<String> = tasks
            .iter()
            .zip(names)
            .filter(|(task, _)| !task.tolerance.allows_loss())
            .filter_map(|(_, name)| name.cloned())
            .collect();
        Some(if contracts.is_empty() {
            WindowFailure::Unproved(unproved)
        } else {
            WindowFailure::Endangers {
                unproved,
                contracts,
            }
        })
    }

    fn shortage(&self, contract: &Contract) -> Option<Shortage> {
        let policy = self.policy();
        let splits = matches!(policy.splitting, Splitting::EqualWindows(_));
        if !splits || contract.cpu.is_some() {
            return None;
        }
        let (cpus, task) = (self.partition().cpus(), contract.task());
        let capacity = edf_wm::capacity(cpus, &task, policy.least_piece_ns)?;
        Some(Shortage {
            pieces: capacity.pieces,
            window_ns: capacity.window_ns,
            found_ns: capacity.budget_ns,
            needed_ns: contract.budget_ns,
        })
    }
}

/// C / T, rounded up, for display only [1/1000000].
fn share_ppm(task: &Task) -> u64 {
    (u128::from(task.budget_ns) * PARTS).div_ceil(u128::from(task.period_ns)) as u64
}
