// SPDX-License-Identifier: GPL-2.0
//! Making the books agree with the kernel and the machine: holders go, CPUs leave and come back.

use std::collections::HashSet;
use std::fmt;

use andante_admission::{Admission, Placement};

use super::{Books, Held, Place, cpus, empty_system, enforce, judge};
use crate::host::{CpuMask, Host};
use crate::kernel::Kernel;

/// Something that happened to a contract without anybody asking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// It had to leave a CPU, and has another place.
    Moved {
        /// The contract.
        name: String,
        /// Where it is now.
        to: Placement,
    },
    /// It has no place any more.
    Homeless {
        /// The contract.
        name: String,
    },
    /// It has a place again.
    Housed {
        /// The contract.
        name: String,
        /// Where.
        to: Placement,
    },
}

impl Event {
    /// Whether somebody should be told even if he asked to be left alone.
    pub fn is_bad(&self) -> bool {
        matches!(self, Self::Homeless { .. })
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = |placement: &Placement| match placement {
            Placement::Whole { cpu } => format!("CPU {cpu}"),
            Placement::Split { pieces } => {
                let cpus: Vec<_> = pieces.iter().map(|piece| piece.cpu.to_string()).collect();
                format!("CPUs {}", cpus.join(", "))
            }
        };
        match self {
            Self::Moved { name, to } => write!(f, "contract {name} goes on on {}", place(to)),
            Self::Homeless { name } => write!(
                f,
                "contract {name} fits on none of the CPUs that are left: it runs on its class's \
                 share until there is room again"
            ),
            Self::Housed { name, to } => {
                write!(f, "contract {name} has its place again, on {}", place(to))
            }
        }
    }
}

impl Books {
    /// Looks at the kernel and the machine. To be called every second, though nothing be promised:
    /// contracts that were learnt, and have ended, keep their slots until they are swept.
    pub fn refresh(&mut self, kernel: &mut dyn Kernel, host: &dyn Host) {
        // Frees slots only; if it fails they are freed the next time.
        let _ = kernel.sweep();
        let had = self.held.len();
        self.drop_the_gone(kernel, host);
        let online = host.online_cpus();
        let restless = self.look_at_affinities(host);
        if (online != self.online && !online.is_empty()) || restless {
            self.rebuild(kernel, host, online);
        } else if self.held.len() < had {
            self.house_the_homeless(kernel, host);
        }
        self.nest(kernel);
    }

    /// Tells the kernel which contract each is nested in, where that has changed: one around it was
    /// made, has ended, or is another one in the kernel since it got a new place.
    pub(super) fn nest(&mut self, kernel: &mut dyn Kernel) {
        for at in 0..self.held.len() {
            let held = &self.held[at];
            let around = self
                .parent_of(&held.by)
                .and_then(|found| found.place.as_ref());
            let around = around.map(|place| place.kernel);
            if let Some(place) = &mut self.held[at].place
                && place.around != around
                && kernel.nest(place.kernel, around).is_ok()
            {
                place.around = around;
            }
        }
    }

    /// Contracts that the kernel has ended, or is about to (it keeps a removed class for some tenths
    /// of a second), and those without a place whose holders are gone.
    fn drop_the_gone(&mut self, kernel: &mut dyn Kernel, host: &dyn Host) {
        if self.held.is_empty() {
            return;
        }
        let live: HashSet<_> = kernel.contracts().iter().map(|c| c.name).collect();
        let system = &mut self.system;
        self.held.retain(|held| {
            let there = match &held.place {
                Some(place) if held.by.is_class() && !held.by.is_alive(host) => {
                    // If it fails, the kernel has been quicker.
                    let _ = kernel.remove(place.kernel);
                    false
                }
                Some(place) => live.contains(&place.kernel),
                None => held.by.is_alive(host),
            };
            if !there {
                system.release(&held.name);
            }
            there
        });
    }

    /// Which CPUs the holders may use now; true if one is on a CPU that it may not use any more.
    fn look_at_affinities(&mut self, host: &dyn Host) -> bool {
        let mut restless = false;
        for held in &mut self.held {
            let Some(allowed) = held.by.allowed_now(host).filter(|mask| *mask != 0) else {
                continue;
            };
            if allowed != held.by.allowed {
                held.by.allowed = allowed;
                let outside = |place: &Place| cpus::mask(&place.placement) & !allowed != 0;
                restless |= held.place.as_ref().is_none_or(outside);
            }
        }
        restless
    }

    /// Admission over these CPUs: those that can stay where they are do, the others move, oldest
    /// first.
    fn rebuild(&mut self, kernel: &mut dyn Kernel, host: &dyn Host, online: Vec<u32>) {
        // The settings were found good before, and there is a CPU.
        let Ok(system) = empty_system(&self.settings, &online) else {
            return;
        };
        self.system = system;
        self.online = online;
        let mut displaced = Vec::new();
        for at in 0..self.held.len() {
            let held = &self.held[at];
            let Some(place) = &held.place else { continue };
            let contract = held.terms.contract(&held.name);
            let stays = cpus::mask(&place.placement) & !held.by.allowed == 0;
            let again = cpus::to_admission(&place.placement, &self.online).filter(|_| stays);
            match again.map(|placement| self.system.restore(contract, placement)) {
                Some(Ok(())) => {}
                _ => displaced.push(held.name.clone()),
            }
        }
        for name in displaced {
            self.displace(kernel, host, &name);
        }
        self.house_the_homeless(kernel, host);
    }

    /// The contract, which admission does not hold, cannot stay where it is.
    fn displace(&mut self, kernel: &mut dyn Kernel, host: &dyn Host, name: &str) {
        let Some(at) = self.held.iter().position(|held| held.name == name) else {
            return;
        };
        // It is in nobody's way while its new place is sought.
        let Some(place) = self.held[at].place.take() else {
            return;
        };
        let admission = self.admission_of(&self.held[at]);
        let moved = admission.and_then(|admission| {
            let held = &self.held[at];
            let to = cpus::to_machine(&admission.placement, &self.online);
            let window = enforce::by_windows(&held.terms, &admission);
            let kernel_name = match (&place.placement, &to) {
                (Placement::Whole { .. }, Placement::Whole { cpu }) if window == place.window => {
                    kernel.move_to(place.kernel, *cpu).ok()?;
                    place.kernel
                }
                _ => {
                    if held.by.is_class() {
                        kernel.remove(place.kernel).ok()?;
                    }
                    // Threads change over one by one; with the last the old contract ends.
                    let made = enforce::make(kernel, host, &held.by, &held.terms, &to, window);
                    made.ok()?
                }
            };
            let contract = held.terms.contract(name);
            self.system.restore(contract, admission.placement).ok()?;
            let kept = kernel_name == place.kernel;
            Some(Place {
                kernel: kernel_name,
                placement: to,
                window,
                around: place.around.filter(|_| kept),
            })
        });
        if moved.as_ref().is_none_or(|to| to.kernel != place.kernel) {
            let _ = kernel.remove(place.kernel);
        }
        let name = name.to_owned();
        self.events.push(match &moved {
            Some(to) => Event::Moved {
                name,
                to: to.placement.clone(),
            },
            None => Event::Homeless { name },
        });
        self.held[at].place = moved;
    }

    /// Those without a place get one if there is room, oldest first.
    pub(super) fn house_the_homeless(&mut self, kernel: &mut dyn Kernel, host: &dyn Host) {
        for at in 0..self.held.len() {
            let held = &self.held[at];
            if held.place.is_some() {
                continue;
            }
            let Some(admission) = self.admission_of(held) else {
                continue;
            };
            let to = cpus::to_machine(&admission.placement, &self.online);
            let window = enforce::by_windows(&held.terms, &admission);
            let Ok(made) = enforce::make(kernel, host, &held.by, &held.terms, &to, window) else {
                continue;
            };
            let contract = held.terms.contract(&held.name);
            if self.system.restore(contract, admission.placement).is_err() {
                let _ = kernel.remove(made);
                continue;
            }
            self.events.push(Event::Housed {
                name: held.name.clone(),
                to: to.clone(),
            });
            self.held[at].place = Some(Place {
                kernel: made,
                placement: to,
                window,
                around: None,
            });
        }
    }

    /// Where a contract that was admitted once would be now, in admission's numbers.
    fn admission_of(&self, held: &Held) -> Option<Admission> {
        let question = judge::Question {
            by: &held.by,
            caller: None,
        };
        self.admit(&held.terms.contract(&held.name), &question)
    }
}

/// The CPUs that masks are made of are those that contracts can be on.
const _: () = assert!(CpuMask::BITS == andante_sched::contracts::MAX_CONTRACT_CPUS);
