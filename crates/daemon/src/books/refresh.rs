// SPDX-License-Identifier: GPL-2.0
//! Making the books agree with the kernel and the machine: holders go, CPUs leave and come back.

use std::collections::HashSet;
use std::fmt;

use andante_admission::{Admission, Placement};
use andante_sched::text::shown;

use super::{Books, Held, Place, cpus, empty_system, enforce, judge};
use crate::host::{CpuMask, Host};
use crate::kernel::Kernel;

/// Something that happened to a contract, or to classes, without anybody asking.
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
    /// Cgroups that shared their parent's class for want of room have got one of their own.
    OwnClasses {
        /// How many.
        count: usize,
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
            Self::OwnClasses { count } => write!(
                f,
                "there is room again: {count} of the cgroups that shared their parent's class have one of \
                 their own"
            ),
            Self::Moved { name, to } => {
                write!(f, "contract {} goes on on {}", shown(name), place(to))
            }
            Self::Homeless { name } => write!(
                f,
                "contract {} fits on none of the CPUs that are left: it runs on its class's \
                 share until there is room again",
                shown(name)
            ),
            Self::Housed { name, to } => {
                let name = shown(name);
                write!(f, "contract {name} has its place again, on {}", place(to))
            }
        }
    }
}

/// Holders that are looked at in a second: their threads' affinities are asked for one by one, some 1 µs each
/// and some 20 µs a class, and nobody is answered meanwhile.
const HOLDERS_A_LOOK: usize = 256;
/// Threads of one of them.
const THREADS_A_LOOK: usize = 64;
/// Holders that are looked for before an answer, some 20 µs each.
const GONE_AN_ANSWER: usize = 64;
/// Names that are read anew for a list, some 10 µs each; the others are as they were read before.
const NAMES_A_LIST: usize = 64;

impl Books {
    /// Looks at the kernel and the machine. To be called every second, though nothing be promised:
    /// contracts that were learnt, and have ended, keep their slots until they are swept.
    pub fn refresh(&mut self, kernel: &mut dyn Kernel, host: &dyn Host) {
        let restless = self.look_at_affinities(host);
        self.agree(kernel, host, restless);
    }

    /// What of that costs little, however much is held. Before every answer.
    pub(super) fn catch_up(&mut self, kernel: &mut dyn Kernel, host: &dyn Host) {
        self.agree(kernel, host, false);
    }

    fn agree(&mut self, kernel: &mut dyn Kernel, host: &dyn Host, restless: bool) {
        // Frees slots only; if it fails they are freed the next time.
        let _ = kernel.sweep();
        let had = self.held.len();
        self.drop_the_ended(kernel);
        self.drop_the_gone(kernel, host);
        let online = host.online_cpus();
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

    /// Contracts that the kernel has ended.
    fn drop_the_ended(&mut self, kernel: &mut dyn Kernel) {
        if self.held.is_empty() {
            return;
        }
        let live: HashSet<_> = kernel.contracts().iter().map(|c| c.name).collect();
        let there = |held: &Held| {
            let place = held.place.as_ref();
            place.is_none_or(|place| live.contains(&place.kernel))
        };
        self.keep(there);
    }

    fn keep(&mut self, there: impl Fn(&Held) -> bool) {
        let system = &mut self.system;
        self.held.retain(|held| {
            let there = there(held);
            if !there {
                system.release(&held.key);
            }
            there
        });
    }

    /// Classes that are gone, whose contract the kernel is about to end (it keeps a removed class for some
    /// tenths of a second), and holders without a place that are. Some of them are looked at, in turn.
    fn drop_the_gone(&mut self, kernel: &mut dyn Kernel, host: &dyn Host) {
        let mut gone = HashSet::new();
        let unwatched = |held: &&Held| held.by.is_class() || held.place.is_none();
        let all = self.held.iter().filter(unwatched).count();
        let turn: HashSet<_> = turn_of(&mut self.gone_at, all, GONE_AN_ANSWER).collect();
        for (at, held) in self.held.iter().filter(unwatched).enumerate() {
            if turn.contains(&at) && !held.by.is_alive(host) {
                if let Some(place) = &held.place {
                    // If it fails, the kernel has been quicker.
                    let _ = kernel.remove(place.kernel);
                }
                gone.insert(held.key.clone());
            }
        }
        if !gone.is_empty() {
            self.keep(|held| !gone.contains(&held.key));
        }
    }

    /// Which CPUs some of the holders may use now; true if one is on a CPU that it may not use any more.
    fn look_at_affinities(&mut self, host: &dyn Host) -> bool {
        let mut restless = false;
        for at in turn_of(&mut self.look_at, self.held.len(), HOLDERS_A_LOOK) {
            let held = &mut self.held[at];
            let allowed = held.by.allowed_now(host, THREADS_A_LOOK);
            let Some(allowed) = allowed.filter(|mask| *mask != 0) else {
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

    /// Some of the holders' names: a program that was started under a contract has got its own since.
    pub(super) fn look_at_names(&mut self, host: &dyn Host) {
        for at in turn_of(&mut self.name_at, self.held.len(), NAMES_A_LIST) {
            self.held[at].by.look_at_name(host);
        }
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
            let contract = held.terms.contract(&held.key);
            let stays = cpus::mask(&place.placement) & !held.by.allowed == 0;
            let again = cpus::to_admission(&place.placement, &self.online).filter(|_| stays);
            match again.map(|placement| self.system.restore(contract, placement)) {
                Some(Ok(())) => {}
                _ => displaced.push(held.key.clone()),
            }
        }
        for key in displaced {
            self.displace(kernel, host, &key);
        }
        self.house_the_homeless(kernel, host);
    }

    /// The contract, which admission does not hold, cannot stay where it is.
    fn displace(&mut self, kernel: &mut dyn Kernel, host: &dyn Host, key: &str) {
        let Some(at) = self.held.iter().position(|held| held.key == key) else {
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
            let contract = held.terms.contract(key);
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
        let name = self.held[at].name.clone();
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
            let contract = held.terms.contract(&held.key);
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
        self.admit(&held.terms.contract(&held.key), &question)
    }
}

/// The next of `all`, `most` at most, from `at` on and round; `at` goes on.
fn turn_of(at: &mut usize, all: usize, most: usize) -> impl Iterator<Item = usize> + use<> {
    let first = if *at < all { *at } else { 0 };
    let count = all.min(most);
    *at = if all == 0 { 0 } else { (first + count) % all };
    (0..count).map(move |step| (first + step) % all)
}

/// The CPUs that masks are made of are those that contracts can be on.
const _: () = assert!(CpuMask::BITS == andante_sched::contracts::MAX_CONTRACT_CPUS);
