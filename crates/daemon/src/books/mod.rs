// SPDX-License-Identifier: GPL-2.0
//! The books: which contracts there are, who holds them, and on which CPUs.
//!
//! The kernel keeps the contracts and ends those whose holders are gone; the books add what it does
//! not know: names, who asked, what admission promised. [`Books::refresh`] makes them agree again,
//! before every request and once a second.
//!
//! Admission counts CPUs from 0 without gaps, the machine need not: [`cpus`] translates. Whatever
//! is kept here, or said to others, is in the machine's numbers.

mod cpus;
mod enforce;
#[doc(hidden)]
#[allow(missing_docs)] // for tests, of this crate and of the fuzz targets
pub mod fakes;
mod holder;
mod judge;
mod refresh;
#[cfg(test)]
mod tests;

use andante_admission::{Admission, Machine, Placement, Policy, System};
use andante_sched::contracts::{Contract as KernelContract, ContractName, MAX_CONTRACTS};

use self::holder::Resolved;
use crate::host::Host;
use crate::kernel::Kernel;
use crate::protocol::{
    Ask, Fault, FaultKind, Kept, List, Listed, MachineSeen, Refused, Reply, Request, Reserved,
};
use crate::terms::Terms;

pub use self::enforce::{by_windows, promise};
pub use self::holder::name_after;
pub use self::refresh::Event;

/// Contracts that a user without privilege may hold at a time: the kernel's table is everybody's.
const MAX_OF_USER: usize = 32;
/// Longest name of a contract [bytes].
const MAX_NAME: usize = 64;

/// What may be reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// The part of every CPU that everybody without a contract keeps [1/1000], 1 to 999.
    pub left_for_others_per_mille: u32,
    /// The part of the machine that one user without privilege may hold [1/1000].
    pub user_quota_per_mille: u32,
    /// Plain DWCS: every contract is one of loss windows, and none is refused for want of room.
    pub plain_dwcs: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            left_for_others_per_mille: 200,
            user_quota_per_mille: 100,
            plain_dwcs: false,
        }
    }
}

/// Who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caller {
    /// The effective user.
    pub uid: u32,
    /// Root, or a member of the group `andante`.
    pub privileged: bool,
}

/// A contract that is held.
#[derive(Debug, Clone)]
struct Held {
    name: String,
    uid: u32,
    terms: Terms,
    by: Resolved,
    /// None: there is no room for it, and the kernel does not know it.
    place: Option<Place>,
}

/// Where a contract is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    kernel: ContractName,
    placement: Placement,
    /// Whether the kernel serves it by windows (DWCS), and not as a server of its own.
    window: bool,
    /// The contract around it that the kernel charges too.
    around: Option<ContractName>,
}

/// The contracts of a machine.
#[derive(Debug)]
pub struct Books {
    settings: Settings,
    /// The CPUs that admission knows, by its numbers.
    online: Vec<u32>,
    system: System,
    /// In the order in which they were made.
    held: Vec<Held>,
    events: Vec<Event>,
}

impl Books {
    /// Books without contracts.
    ///
    /// # Errors
    /// The settings leave nothing to contracts.
    pub fn new(settings: Settings, host: &dyn Host) -> Result<Self, Fault> {
        let online = host.online_cpus();
        Ok(Self {
            system: empty_system(&settings, &online)?,
            settings,
            online,
            held: Vec::new(),
            events: Vec::new(),
        })
    }

    /// What happened to contracts since this was last called.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// Answers a request. `now_ns` is that of CLOCK_MONOTONIC.
    pub fn answer(
        &mut self,
        kernel: &mut dyn Kernel,
        host: &dyn Host,
        caller: Caller,
        request: &Request,
        now_ns: u64,
    ) -> Reply {
        self.refresh(kernel, host);
        let answer = match request {
            Request::Reserve(ask) => self.reserve(kernel, host, caller, ask),
            Request::Ask(ask) => self
                .ask(kernel, host, caller, ask)
                .map(|asked| match asked {
                    Ok((_, reserved, _)) => Reply::Reserved(Box::new(reserved)),
                    Err(refused) => Reply::Refused(Box::new(refused)),
                }),
            Request::Release { which } => self.release(kernel, host, caller, which),
            Request::List => Ok(Reply::Contracts(Box::new(self.list(kernel, host, now_ns)))),
        };
        answer.unwrap_or_else(Reply::Error)
    }

    /// What would be answered: the holder, the answer and the admission behind it, or the refusal.
    #[allow(clippy::type_complexity)]
    fn ask(
        &self,
        kernel: &dyn Kernel,
        host: &dyn Host,
        caller: Caller,
        ask: &Ask,
    ) -> Result<Result<(Resolved, Reserved, Admission), Refused>, Fault> {
        let terms = ask.terms;
        terms
            .check()
            .map_err(|error| Fault::new(FaultKind::BadTerms, error.to_string()))?;
        if terms.soft && !caller.privileged {
            let message = "a soft contract may use more than its budget: only root and members of the \
                           group andante may ask for one; others ask for a hard one";
            return Err(Fault::new(FaultKind::NotPermitted, message));
        }
        let by = holder::resolve(&ask.holder, caller, host, kernel)?;
        let name = self.name_for(ask, &by)?;
        self.check_room(caller)?;
        let contract = terms.contract(&name);
        let question = judge::Question {
            by: &by,
            caller: Some(caller),
        };
        let Some(admission) = self.admit(&contract, &question) else {
            return Ok(Err(self.refused(&contract, &question, host)));
        };
        let shown = |name: &String| self.shown(name, host);
        let reserved = Reserved {
            name,
            holder: by.seen(host),
            terms,
            placement: cpus::to_machine(&admission.placement, &self.online),
            promise: admission.promise,
            test: admission.test,
            weakened: admission.weakened.iter().map(shown).collect(),
            notes: by.notes.clone(),
        };
        Ok(Ok((by, reserved, admission)))
    }

    fn reserve(
        &mut self,
        kernel: &mut dyn Kernel,
        host: &dyn Host,
        caller: Caller,
        ask: &Ask,
    ) -> Result<Reply, Fault> {
        let (by, reserved, admission) = match self.ask(kernel, host, caller, ask)? {
            Ok(admitted) => admitted,
            Err(refused) => return Ok(Reply::Refused(Box::new(refused))),
        };
        let window = enforce::by_windows(&ask.terms, &admission);
        let placement = reserved.placement.clone();
        let made = enforce::make(kernel, host, &by, &ask.terms, &placement, window)?;
        let contract = ask.terms.contract(&reserved.name);
        if let Err(error) = self.system.restore(contract, admission.placement) {
            let _ = kernel.remove(made);
            return Err(Fault::new(FaultKind::Failed, error.to_string()));
        }
        self.held.push(Held {
            name: reserved.name.clone(),
            uid: caller.uid,
            terms: ask.terms,
            by,
            place: Some(Place {
                kernel: made,
                placement,
                window,
                around: None,
            }),
        });
        self.nest(kernel);
        Ok(Reply::Reserved(Box::new(reserved)))
    }

    /// Whether the tables have room for one more of this caller.
    fn check_room(&self, caller: Caller) -> Result<(), Fault> {
        let own = self.held.iter().filter(|held| held.uid == caller.uid);
        let (held, most, whose) = if caller.privileged {
            (self.held.len(), MAX_CONTRACTS, "there are")
        } else {
            (own.count(), MAX_OF_USER, "you have")
        };
        if held < most && self.held.len() < MAX_CONTRACTS {
            return Ok(());
        }
        let message = format!("{whose} {held} contracts already: release one first");
        Err(Fault::new(FaultKind::Full, message))
    }

    /// The name of the contract asked for, if it may have that.
    fn name_for(&self, ask: &Ask, by: &Resolved) -> Result<String, Fault> {
        if let Some(held) = self.held.iter().find(|held| held.by.is_same(by)) {
            let message = format!(
                "{} holds the contract {name} already: `andante reserve --release {name}` first",
                by.named(),
                name = held.name
            );
            return Err(Fault::new(FaultKind::Taken, message));
        }
        let name = match &ask.name {
            None => by.name_as(&by.command),
            Some(name) => name.clone(),
        };
        let strange = |c: char| c.is_whitespace() || c.is_control();
        if let Some(name) = &ask.name
            && (name.is_empty()
                || name.len() > MAX_NAME
                || name.starts_with('/')
                || name.contains(strange)
                || name.parse::<i64>().is_ok())
        {
            let message = format!(
                "`{name}` cannot be the name of a contract: give at most {MAX_NAME} letters, not a \
                 number and without spaces or a / in front"
            );
            return Err(Fault::new(FaultKind::BadTerms, message));
        }
        if self.held.iter().any(|held| held.name == name) {
            let message = format!("there is a contract named {name} already: choose another name");
            return Err(Fault::new(FaultKind::Taken, message));
        }
        Ok(name)
    }

    fn release(
        &mut self,
        kernel: &mut dyn Kernel,
        host: &dyn Host,
        caller: Caller,
        which: &str,
    ) -> Result<Reply, Fault> {
        let by_name = self.held.iter().position(|held| held.name == which);
        let by_holder = || self.held.iter().position(|held| held.by.is_called(which));
        let Some(at) = by_name.or_else(by_holder) else {
            let message = format!(
                "there is no contract `{which}`: `andante reserve --list` shows those there are"
            );
            return Err(Fault::new(FaultKind::NoContract, message));
        };
        let held = &self.held[at];
        if !caller.privileged && held.uid != caller.uid {
            let message = format!(
                "the contract {} was made by user {}: only that user, root and members of the \
                 group andante may release it",
                held.name, held.uid
            );
            return Err(Fault::new(FaultKind::NotPermitted, message));
        }
        let held = self.held.remove(at);
        self.system.release(&held.name);
        if let Some(place) = held.place {
            // Ended meanwhile is as good.
            let _ = kernel.remove(place.kernel);
        }
        self.house_the_homeless(kernel, host);
        self.nest(kernel);
        Ok(Reply::Released { name: held.name })
    }

    fn list(&self, kernel: &dyn Kernel, host: &dyn Host, now_ns: u64) -> List {
        let live = kernel.contracts();
        let listed = |held: &Held| {
            let place = held.place.as_ref();
            let found = place.and_then(|place| live.iter().find(|c| c.name == place.kernel));
            Listed {
                name: held.name.clone(),
                holder: held.by.seen(host),
                uid: held.uid,
                terms: held.terms,
                placement: place.map(|place| place.placement.clone()),
                promise: self.system.promise(&held.name),
                kept: found.map(kept),
            }
        };
        List {
            now_ns,
            machine: MachineSeen {
                cpus: self.online.clone(),
                left_for_others_per_mille: self.settings.left_for_others_per_mille,
                user_quota_per_mille: self.settings.user_quota_per_mille,
            },
            contracts: self.held.iter().map(listed).collect(),
        }
    }

    /// The contract of this name, as a sentence names it.
    fn shown(&self, name: &str, host: &dyn Host) -> String {
        match self.held.iter().find(|held| held.name == name) {
            Some(held) => {
                let seen = held.by.seen(host);
                // Its own name says no more than who it is.
                if held.by.is_class() || held.name == held.by.name_as(&seen.command) {
                    seen.to_string()
                } else {
                    format!("{name}, {seen}")
                }
            }
            None => name.to_owned(),
        }
    }
}

/// Admission over these CPUs, without contracts.
fn empty_system(settings: &Settings, online: &[u32]) -> Result<System, Fault> {
    let machine = Machine {
        cpus: online.len() as u32,
        left_for_others_per_mille: settings.left_for_others_per_mille,
    };
    System::new(machine, Policy::default())
        .map_err(|error| Fault::new(FaultKind::Failed, error.to_string()))
}

fn kept(contract: &KernelContract) -> Kept {
    Kept {
        threads: contract.threads,
        cpu: contract.cpu,
        service_ns: contract.service_ns,
        extra_ns: contract.extra_ns,
        reclaimed_ns: contract.reclaimed_ns,
        deadlines: contract.deadlines,
        misses: contract.misses,
        violations: contract.violations,
        exhaustions: contract.exhaustions,
    }
}
