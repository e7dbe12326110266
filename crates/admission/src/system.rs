// SPDX-License-Identifier: GPL-2.0
//! The contracts that a machine holds, and the questions that may be asked of it.

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};

use crate::answer::{Admission, Answer, Promise, Test};
use crate::contract::{Contract, ContractError, MAX_CONTRACTS, MAX_CPUS, Tolerance};
use crate::demand::Verdict;
use crate::dwcs::{self, WindowTask, WindowVerdict};
use crate::partition::Partition;
use crate::placement::{Placement, PlacementError};
use crate::policy::{Fit, Order, Policy};
use crate::task::{Supply, Task, by_decreasing_utilisation};

/// The CPUs that contracts may share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Number of CPUs, 1 to [`MAX_CPUS`].
    pub cpus: u32,
    /// The part of every CPU that everybody else keeps [1/1000], 0 to 999.
    pub left_for_others_per_mille: u32,
}

impl Machine {
    /// A machine whose contracts may have all of it, as papers assume.
    pub fn whole(cpus: u32) -> Self {
        Self {
            cpus,
            left_for_others_per_mille: 0,
        }
    }
}

/// What cannot be asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// The machine has no CPU, or too many.
    #[error("a machine has 1 to {MAX_CPUS} CPUs, not {0}")]
    BadCpus(u32),
    /// Everything is left to others.
    #[error("{0} of 1000 parts of every CPU are left to others: no contract could be admitted")]
    NothingLeft(u32),
    /// The contract makes no sense by itself.
    #[error(transparent)]
    Contract(#[from] ContractError),
    /// There is a contract of this name.
    #[error("there is a contract named `{0}` already")]
    NameTaken(String),
    /// The table is full.
    #[error("there are {MAX_CONTRACTS} contracts already, and no room for more")]
    Full,
    /// The placement is none of this contract.
    #[error(transparent)]
    Placement(#[from] PlacementError),
}

/// A contract in force.
#[derive(Debug, Clone)]
struct Held {
    id: u32,
    contract: Contract,
    placement: Placement,
}

/// A machine and the contracts it holds.
///
/// Contracts are asked one by one, and those that were admitted never move; so the answer depends
/// on the order. [`System::admit_all`] asks several in the order of the policy.
#[derive(Debug, Clone)]
pub struct System {
    machine: Machine,
    policy: Policy,
    supply: Supply,
    partition: Partition,
    held: Vec<Held>,
    next_id: u32,
}

impl System {
    /// A machine without contracts.
    ///
    /// # Errors
    /// The machine has no CPU or too many, or leaves nothing to contracts.
    pub fn new(machine: Machine, policy: Policy) -> Result<Self, AskError> {
        let Machine {
            cpus,
            left_for_others_per_mille,
        } = machine;
        if !(1..=MAX_CPUS).contains(&cpus) {
            return Err(AskError::BadCpus(cpus));
        }
        let supply = Supply::after(left_for_others_per_mille)
            .ok_or(AskError::NothingLeft(left_for_others_per_mille))?;
        Ok(Self {
            machine,
            policy,
            supply,
            partition: Partition::new(cpus, supply),
            held: Vec::new(),
            next_id: 0,
        })
    }

    /// The machine.
    pub fn machine(&self) -> Machine {
        self.machine
    }

    /// What every CPU supplies to contracts.
    pub fn supply(&self) -> Supply {
        self.supply
    }

    /// How a place is sought.
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// The contracts in force and where they run, in the order they were admitted.
    pub fn held(&self) -> impl Iterator<Item = (&Contract, &Placement)> {
        self.held
            .iter()
            .map(|held| (&held.contract, &held.placement))
    }

    /// What would be answered to `contract`; nothing changes.
    ///
    /// # Errors
    /// The contract makes no sense, its name is taken, or the table is full.
    pub fn ask(&self, contract: &Contract) -> Result<Answer, AskError> {
        Ok(match self.would_admit(contract)? {
            Some(admission) => Answer::Admitted(admission),
            None => {
                let nearest = self.nearest(contract);
                Answer::Refused(Box::new(self.refusal(contract, nearest)))
            }
        })
    }

    /// The same without the reasons of a refusal, which cost a hundred times as much; for those who
    /// ask often.
    ///
    /// # Errors
    /// As for [`System::ask`].
    pub fn would_admit(&self, contract: &Contract) -> Result<Option<Admission>, AskError> {
        self.check(contract)?;
        Ok(self.find(contract))
    }

    /// Holds a contract where it was placed before, unasked: by a machine that had these CPUs and,
    /// besides, more contracts, or more CPUs.
    ///
    /// # Errors
    /// As for [`System::ask`], and where the placement is none of this machine.
    pub fn restore(&mut self, contract: Contract, placement: Placement) -> Result<(), AskError> {
        self.check(&contract)?;
        placement.check(&contract.task())?;
        let pieces = placement.pieces(&contract.task());
        if let Some(piece) = pieces.iter().find(|piece| piece.cpu >= self.machine.cpus) {
            let (cpu, cpus) = (piece.cpu, self.machine.cpus);
            return Err(ContractError::NoSuchCpu { cpu, cpus }.into());
        }
        self.hold(contract, placement);
        Ok(())
    }

    fn check(&self, contract: &Contract) -> Result<(), AskError> {
        contract.check(self.machine.cpus)?;
        let name = &contract.name;
        if self.held.iter().any(|held| held.contract.name == *name) {
            return Err(AskError::NameTaken(name.clone()));
        }
        if self.held.len() >= MAX_CONTRACTS {
            return Err(AskError::Full);
        }
        Ok(())
    }

    /// Answers `contract`, and holds it if it is admitted.
    ///
    /// # Errors
    /// As for [`System::ask`].
    pub fn admit(&mut self, contract: Contract) -> Result<Answer, AskError> {
        let answer = self.ask(&contract)?;
        if let Answer::Admitted(admission) = &answer {
            self.hold(contract, admission.placement.clone());
        }
        Ok(answer)
    }

    fn hold(&mut self, contract: Contract, placement: Placement) {
        let id = self.next_id;
        self.next_id += 1;
        self.partition.put(id, &contract.task(), &placement);
        self.held.push(Held {
            id,
            contract,
            placement,
        });
    }

    /// Answers several contracts, in the order of the policy; answers come in the order given.
    ///
    /// # Errors
    /// The first contract, by its place in `contracts`, that cannot be asked; those asked before it
    /// are held.
    pub fn admit_all(&mut self, contracts: &[Contract]) -> Result<Vec<Answer>, (usize, AskError)> {
        for (at, contract) in contracts.iter().enumerate() {
            contract
                .check(self.machine.cpus)
                .map_err(|e| (at, e.into()))?;
        }
        let mut order: Vec<usize> = (0..contracts.len()).collect();
        if self.policy.order == Order::Decreasing {
            order.sort_by(|&a, &b| {
                let (a, b) = (&contracts[a], &contracts[b]);
                let pinned_first = b.cpu.is_some().cmp(&a.cpu.is_some());
                pinned_first.then_with(|| by_decreasing_utilisation(&a.task(), &b.task()))
            });
        }
        let mut answers = Vec::new();
        for at in order {
            let answer = self.admit(contracts[at].clone()).map_err(|e| (at, e))?;
            answers.push((at, answer));
        }
        answers.sort_by_key(|&(at, _)| at);
        Ok(answers.into_iter().map(|(_, answer)| answer).collect())
    }

    /// Ends the contract `name`; whether there was one.
    pub fn release(&mut self, name: &str) -> bool {
        let Some(at) = self.held.iter().position(|held| held.contract.name == name) else {
            return false;
        };
        let held = self.held.remove(at);
        self.partition.take(held.id);
        true
    }

    /// What the contract `name` may rely on now.
    pub fn promise(&self, name: &str) -> Option<Promise> {
        let held = self.held.iter().find(|held| held.contract.name == name)?;
        Some(self.promise_at(&held.placement, None))
    }

    /// What those may rely on who share a CPU with `placement`, with one task more on it or not.
    fn promise_at(&self, placement: &Placement, more: Option<&WindowTask>) -> Promise {
        // A CPU with pieces is never overbooked.
        let &Placement::Whole { cpu } = placement else {
            return Promise::EveryDeadline;
        };
        let workload = &self.partition.cpus()[cpu as usize];
        let verdict = match more {
            Some(more) => workload.verdict_with(&more.task),
            None => workload.verdict(),
        };
        if verdict == Verdict::Fits {
            return Promise::EveryDeadline;
        }
        match dwcs::judge(&self.window_tasks(cpu, more), self.supply) {
            WindowVerdict::Promised => Promise::Windows,
            WindowVerdict::Unproved(unproved) => Promise::Nothing(unproved),
            // What made it so was not admitted, but restored.
            WindowVerdict::Exceeded => Promise::Nothing(dwcs::Unproved::Overload),
        }
    }

    /// Where `contract` is admitted, by the strongest promise there is: every deadline, whole or
    /// split; else its windows; else, if the policy allows, DWCS's condition without a promise.
    pub(crate) fn find(&self, contract: &Contract) -> Option<Admission> {
        let task = contract.task();
        if let Some(placement) = self.partition.place(&task, contract.cpu, &self.policy) {
            let test = self.test_that_admits(&task, &placement);
            return Some(Admission {
                placement,
                promise: Promise::EveryDeadline,
                test,
                weakened: Vec::new(),
            });
        }
        let cpus = self.cpus_by_fit(contract);
        let judged: Vec<_> = cpus
            .into_iter()
            .filter_map(|cpu| Some((cpu, self.window_promise(cpu, contract)?)))
            .collect();
        let strongest = judged
            .iter()
            .max_by_key(|&&(_, promise)| promise.strength())?
            .1;
        let &(cpu, promise) = judged
            .iter()
            .find(|(_, promise)| promise.strength() == strongest.strength())?;
        Some(Admission {
            placement: Placement::Whole { cpu },
            promise,
            test: Test::WindowConstraint,
            weakened: self.weakened(cpu, promise),
        })
    }

    fn test_that_admits(&self, task: &Task, placement: &Placement) -> Test {
        let &Placement::Whole { cpu } = placement else {
            return Test::Split;
        };
        let mut tasks = self.partition.cpus()[cpu as usize]
            .tasks()
            .iter()
            .chain([task]);
        if tasks.all(|task| task.deadline_ns >= task.period_ns) {
            Test::Utilisation
        } else {
            Test::Demand
        }
    }

    /// The CPUs that `contract` may run on as a whole, those first that the policy tries first.
    fn cpus_by_fit(&self, contract: &Contract) -> Vec<u32> {
        let mut cpus: Vec<u32> = match contract.cpu {
            Some(cpu) => vec![cpu],
            None => (0..self.machine.cpus).collect(),
        };
        let load = |cpu: &u32| self.partition.cpus()[*cpu as usize].sums().high;
        match self.policy.fit {
            Fit::First => {}
            Fit::Best => cpus.sort_by_key(|cpu| Reverse(load(cpu))),
            Fit::Worst => cpus.sort_by_key(load),
        }
        cpus
    }

    /// What loss windows promise `contract` on `cpu`, if that suffices to admit it there.
    fn window_promise(&self, cpu: u32, contract: &Contract) -> Option<Promise> {
        let tasks = self.window_tasks(cpu, Some(&window_task(contract)));
        let any_loss = tasks.iter().any(|task| task.tolerance.allows_loss());
        let all_loss = tasks.iter().all(|task| task.tolerance.allows_loss());
        if !any_loss {
            return None;
        }
        match dwcs::judge(&tasks, self.supply) {
            WindowVerdict::Promised => Some(Promise::Windows),
            WindowVerdict::Unproved(unproved) => {
                (all_loss && !self.policy.only_proved).then_some(Promise::Nothing(unproved))
            }
            WindowVerdict::Exceeded => None,
        }
    }

    /// The tasks of `cpu` with what each may lose, and one more or not.
    pub(crate) fn window_tasks(&self, cpu: u32, more: Option<&WindowTask>) -> Vec<WindowTask> {
        let tasks = self.partition.cpus()[cpu as usize].tasks().iter();
        let owners = self.partition.owners(cpu).iter();
        let window_task = |(task, &owner): (&Task, &u32)| {
            let held = self.held_by_id(owner);
            let piece = held.is_some_and(|held| held.placement.is_split());
            let tolerance = match held {
                Some(held) if !piece => held.contract.tolerance,
                _ => Tolerance::NONE,
            };
            WindowTask {
                task: *task,
                tolerance,
                piece,
            }
        };
        tasks
            .zip(owners)
            .map(window_task)
            .chain(more.copied())
            .collect()
    }

    fn held_by_id(&self, id: u32) -> Option<&Held> {
        self.held.iter().find(|held| held.id == id)
    }

    /// The contract that owner `id` of the partition stands for.
    pub(crate) fn contract_of(&self, id: u32) -> Option<&Contract> {
        self.held_by_id(id).map(|held| &held.contract)
    }

    pub(crate) fn partition(&self) -> &Partition {
        &self.partition
    }

    /// Names of those on `cpu` who were promised more than `promise` before.
    fn weakened(&self, cpu: u32, promise: Promise) -> Vec<String> {
        let before = self.promise_at(&Placement::Whole { cpu }, None);
        if before.strength() <= promise.strength() {
            return Vec::new();
        }
        let owners = self.partition.owners(cpu).iter();
        let names = owners.filter_map(|&owner| self.contract_of(owner));
        names.map(|contract| contract.name.clone()).collect()
    }
}

pub(crate) fn window_task(contract: &Contract) -> WindowTask {
    WindowTask {
        task: contract.task(),
        tolerance: contract.tolerance,
        piece: false,
    }
}
