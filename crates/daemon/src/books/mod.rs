// SPDX-License-Identifier: GPL-2.0
//! The books: which contracts there are, who holds them, and on which CPUs.
//!
//! The kernel keeps the contracts and ends those whose holders are gone; the books add what it does
//! not know: names, who asked, what admission promised. [`Books::refresh`] makes them agree again,
//! before every request what costs little and once a second.
//!
//! A name of a contract is its user's: another one may have the same, and each means its own by it.
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
pub(crate) mod policies;
mod refresh;
mod sessions;
mod status;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};

use andante_admission::{Admission, Machine, Placement, Policy, System};
use andante_sched::contracts::{Contract as KernelContract, ContractName, MAX_CONTRACTS};
use andante_sched::text::{is_unseen, shown};

use self::holder::Resolved;
use crate::host::Host;
use crate::kernel::Kernel;
use crate::protocol::{
    Ask, DoorSeen, Fault, FaultKind, Kept, List, Listed, MachineSeen, Refused, Reply, Request,
    Reserved,
};
use crate::terms::Terms;

pub use self::enforce::{by_windows, promise};
pub use self::holder::name_after;
pub(crate) use self::holder::{check_thread, no_process, not_permitted};
pub use self::refresh::Event;
pub use self::sessions::{Firmness, Standing};

/// Contracts that a user without privilege may hold at a time: the kernel's table is everybody's.
const MAX_OF_USER: usize = 32;
/// And all of them together: half of it, so that the other half is there for root and the group.
const MAX_OF_USERS: usize = MAX_CONTRACTS / 2;
/// Longest name of a contract [bytes].
const MAX_NAME: usize = 64;

/// What may be reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// The part of every CPU that everybody without a contract keeps [1/1000], 1 to 999.
    pub left_for_others_per_mille: u32,
    /// The part of the machine that one user without privilege may hold [1/1000].
    pub user_quota_per_mille: u32,
    /// The part of the machine that all users without privilege may hold together [1/1000]; none: half of
    /// what is promised at all, so that the other half is there for root and the group, whoever came first; or one
    /// user's, if that was set to more.
    pub users_quota_per_mille: Option<u32>,
    /// The part of the machine that the sessions of one user without privilege may be promised together [1/1000],
    /// which is to be what one game needs, and never more than all users have; none: as much as they.
    pub session_quota_per_mille: Option<u32>,
    /// Plain DWCS: every contract is one of loss windows, and none is refused for want of room.
    pub plain_dwcs: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            left_for_others_per_mille: 200,
            user_quota_per_mille: 100,
            users_quota_per_mille: None,
            session_quota_per_mille: None,
            plain_dwcs: false,
        }
    }
}

impl Settings {
    /// The part of the machine that all users without privilege may hold together [1/1000].
    pub fn users_quota_per_mille(&self) -> u32 {
        let promised = 1000_u32.saturating_sub(self.left_for_others_per_mille);
        let half = (promised / 2).max(self.user_quota_per_mille);
        self.users_quota_per_mille.unwrap_or(half)
    }

    /// The part of the machine that the sessions of one user without privilege may be promised together [1/1000].
    pub fn session_quota_per_mille(&self) -> u32 {
        let most = self.users_quota_per_mille();
        self.session_quota_per_mille
            .map_or(most, |own| own.min(most))
    }
}

/// Who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caller {
    /// The effective user.
    pub uid: u32,
    /// The user whom its limits are counted with: itself, or the one whose subordinate id it is.
    pub account: u32,
    /// Root, or a member of the group `andante`.
    pub privileged: bool,
}

/// A contract that is held.
#[derive(Debug, Clone)]
struct Held {
    /// One of its account's; others may have one of the same name.
    name: String,
    /// What admission calls it: [`key_of`].
    key: String,
    uid: u32,
    account: u32,
    /// Whoever made it was bound by no limits, and it counts for none.
    privileged: bool,
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
    /// Whose holder's affinity is looked at next, whose being there, and whose name.
    look_at: usize,
    gone_at: usize,
    name_at: usize,
    events: Vec<Event>,
    /// Contracts of sessions that have ended for one in front, by [`key_of`], until their programs know.
    yielded: HashSet<String>,
    looked: status::Looked,
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
            look_at: 0,
            gone_at: 0,
            name_at: 0,
            events: Vec::new(),
            yielded: HashSet::new(),
            looked: status::Looked::default(),
        })
    }

    /// What happened to contracts since this was last called.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// Something has happened that is no contract's.
    pub fn note(&mut self, event: Event) {
        self.events.push(event);
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
        self.catch_up(kernel, host);
        let answer = match request {
            Request::Reserve(ask) => self.reserve(kernel, host, caller, ask),
            Request::Ask(ask) => self
                .ask(kernel, host, caller, ask)
                .map(|asked| match asked {
                    Ok((_, reserved, _)) => Reply::Reserved(Box::new(reserved)),
                    Err(refused) => Reply::Refused(Box::new(refused)),
                }),
            Request::Release { which } => self.release(kernel, host, caller, which),
            Request::Policy { class } => policies::look(kernel, host, class),
            Request::Status {} => status::status(&mut self.looked, kernel, host, caller),
            Request::Why { pid } => status::why(kernel, host, caller, *pid),
            Request::ReserveMemory(_) | Request::AskMemory(_) | Request::Wake { .. } => {
                unreachable!("memory has books of its own")
            }
            Request::List {} => Ok(Reply::Contracts(Box::new(self.list(kernel, host, now_ns)))),
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
        if terms.soft && terms.tolerance.window > 0 && !self.settings.plain_dwcs {
            let message = "a contract that may lose periods is soft under `andante run --policy dwcs` only: leave \
                           out one of the two; beyond its budget it runs on its class's share";
            return Err(Fault::new(FaultKind::BadTerms, message));
        }
        let by = holder::resolve(&ask.holder, caller, host, kernel)?;
        let name = self.name_for(caller, ask, &by)?;
        self.check_room(caller)?;
        Ok(self.judged(by, caller, terms, name))
    }

    /// The same for a holder that was found, of a contract that may have this name.
    #[allow(clippy::result_large_err)]
    fn judged(
        &self,
        by: Resolved,
        caller: Caller,
        terms: Terms,
        name: String,
    ) -> Result<(Resolved, Reserved, Admission), Refused> {
        let contract = terms.contract(&key_of(caller.account, &name));
        let question = judge::Question {
            by: &by,
            caller: Some(caller),
        };
        let Some(admission) = self.admit(&contract, &question) else {
            return Err(self.refused(&contract, &question));
        };
        let shown = |key: &String| self.shown(key);
        let reserved = Reserved {
            name,
            holder: by.seen(),
            terms,
            placement: cpus::to_machine(&admission.placement, &self.online),
            promise: admission.promise,
            test: admission.test,
            weakened: admission.weakened.iter().map(shown).collect(),
            notes: by.notes.clone(),
        };
        Ok((by, reserved, admission))
    }

    fn reserve(
        &mut self,
        kernel: &mut dyn Kernel,
        host: &dyn Host,
        caller: Caller,
        ask: &Ask,
    ) -> Result<Reply, Fault> {
        let asked = self.ask(kernel, host, caller, ask)?;
        self.enter(kernel, host, caller, ask, asked)
    }

    /// An admitted contract is entered in the books, and made.
    fn enter(
        &mut self,
        kernel: &mut dyn Kernel,
        host: &dyn Host,
        caller: Caller,
        ask: &Ask,
        asked: Result<(Resolved, Reserved, Admission), Refused>,
    ) -> Result<Reply, Fault> {
        let (by, reserved, admission) = match asked {
            Ok(admitted) => admitted,
            Err(refused) => return Ok(Reply::Refused(Box::new(refused))),
        };
        let window = enforce::by_windows(&ask.terms, &admission);
        let placement = reserved.placement.clone();
        let made = enforce::make(kernel, host, &by, &ask.terms, &placement, window)?;
        let key = key_of(caller.account, &reserved.name);
        let contract = ask.terms.contract(&key);
        if let Err(error) = self.system.restore(contract, admission.placement) {
            let _ = kernel.remove(made);
            return Err(Fault::new(FaultKind::Failed, error.to_string()));
        }
        self.held.push(Held {
            name: reserved.name.clone(),
            key,
            uid: caller.uid,
            account: caller.account,
            privileged: caller.privileged,
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
        let users = || self.held.iter().filter(|held| !held.privileged);
        let own = users().filter(|held| held.account == caller.account);
        let counts = [
            (self.held.len(), MAX_CONTRACTS, "there are", true),
            (own.count(), MAX_OF_USER, "you have", !caller.privileged),
            (
                users().count(),
                MAX_OF_USERS,
                "all users together have",
                !caller.privileged,
            ),
        ];
        let full = |(held, most, _, counts): &(usize, usize, &str, bool)| *counts && held >= most;
        let Some((held, _, whose, _)) = counts.into_iter().find(full) else {
            return Ok(());
        };
        let message = format!("{whose} {held} contracts already: release one first");
        Err(Fault::new(FaultKind::Full, message))
    }

    /// The name of the contract asked for, if it may have that.
    fn name_for(&self, caller: Caller, ask: &Ask, by: &Resolved) -> Result<String, Fault> {
        if let Some(held) = self.held.iter().find(|held| held.by.is_same(by)) {
            let message = format!(
                "{} holds the contract {name} already: `andante reserve --release {name}` first",
                by.named(),
                name = shown(&held.name)
            );
            return Err(Fault::new(FaultKind::Taken, message));
        }
        let taken = |name: &str| {
            let mut own = self
                .held
                .iter()
                .filter(|held| held.account == caller.account);
            let yielded = self.yielded.contains(&key_of(caller.account, name));
            yielded || own.any(|held| held.name == name)
        };
        let Some(name) = &ask.name else {
            // Somebody may have called another one so; then it is called otherwise.
            let name = by.name_as(&by.command);
            let numbered = (2..).map(|n: u32| format!("{name}-{n}"));
            let free = [name.clone()]
                .into_iter()
                .chain(numbered)
                .find(|name| !taken(name));
            return Ok(free.unwrap_or(name));
        };
        let strange = |c: char| c.is_whitespace() || is_unseen(c);
        let bad = name.is_empty()
            || name.len() > MAX_NAME
            || name.starts_with('/')
            || name.contains(strange)
            || name.parse::<i64>().is_ok();
        if bad {
            let message = format!(
                "`{}` cannot be the name of a contract: give at most {MAX_NAME} letters, not a \
                 number and without spaces or a / in front",
                shown(name)
            );
            return Err(Fault::new(FaultKind::BadTerms, message));
        }
        if taken(name) {
            let message = format!("you have a contract named {name} already: choose another name");
            return Err(Fault::new(FaultKind::Taken, message));
        }
        Ok(name.clone())
    }

    fn release(
        &mut self,
        kernel: &mut dyn Kernel,
        host: &dyn Host,
        caller: Caller,
        which: &str,
    ) -> Result<Reply, Fault> {
        let at = self.called(caller, which)?;
        let held = &self.held[at];
        if !caller.privileged && held.uid != caller.uid {
            let message = format!(
                "the contract {} was made by user {}: only that user, root and members of the \
                 group andante may release it",
                shown(&held.name),
                held.uid
            );
            return Err(Fault::new(FaultKind::NotPermitted, message));
        }
        let held = self.held.remove(at);
        self.system.release(&held.key);
        if let Some(place) = held.place {
            // Ended meanwhile is as good.
            let _ = kernel.remove(place.kernel);
        }
        self.house_the_homeless(kernel, host);
        self.nest(kernel);
        Ok(Reply::Released { name: held.name })
    }

    /// The contract that the caller means by this: by name one of its own first, then one of whoever it may
    /// be, then by who holds it.
    fn called(&self, caller: Caller, which: &str) -> Result<usize, Fault> {
        let named = |own: bool| {
            let all = self.held.iter().enumerate();
            all.filter(move |(_, held)| {
                held.name == which && (held.account == caller.account) == own
            })
        };
        if let Some((at, _)) = named(true).next() {
            return Ok(at);
        }
        let others: Vec<_> = named(false).collect();
        if let ([(_, one), (_, other), ..], true) = (&others[..], caller.privileged) {
            let message = format!(
                "`{}` is what users {} and {} call a contract: say who holds the one that you mean",
                shown(which),
                one.uid,
                other.uid
            );
            return Err(Fault::new(FaultKind::Taken, message));
        }
        let by_holder = || self.held.iter().position(|held| held.by.is_called(which));
        let found = others.first().map(|(at, _)| *at).or_else(by_holder);
        found.ok_or_else(|| {
            let message = format!(
                "there is no contract `{}`: `andante reserve --list` shows those there are",
                shown(which)
            );
            Fault::new(FaultKind::NoContract, message)
        })
    }

    fn list(&mut self, kernel: &dyn Kernel, host: &dyn Host, now_ns: u64) -> List {
        self.look_at_names(host);
        let live = kernel.contracts();
        let live: HashMap<_, _> = live.iter().map(|found| (found.name, found)).collect();
        let listed = |held: &Held| {
            let place = held.place.as_ref();
            let found = place.and_then(|place| live.get(&place.kernel).copied());
            Listed {
                name: held.name.clone(),
                holder: held.by.seen(),
                uid: held.uid,
                terms: held.terms,
                placement: place.map(|place| place.placement.clone()),
                promise: self.system.promise(&held.key),
                kept: found.map(kept),
            }
        };
        List {
            now_ns,
            machine: MachineSeen {
                cpus: self.online.clone(),
                left_for_others_per_mille: self.settings.left_for_others_per_mille,
                user_quota_per_mille: self.settings.user_quota_per_mille,
                users_quota_per_mille: self.settings.users_quota_per_mille(),
                session_quota_per_mille: self.settings.session_quota_per_mille(),
            },
            contracts: self.held.iter().map(listed).collect(),
            door: DoorSeen::default(),
            sessions: Vec::new(),
            memory: None,
        }
    }

    /// The contract that admission calls so, as a sentence names it.
    fn shown(&self, key: &str) -> String {
        match self.held.iter().find(|held| held.key == key) {
            Some(held) => {
                let seen = held.by.seen();
                // Its own name says no more than who it is.
                if held.by.is_class() || held.name == held.by.name_as(&seen.command) {
                    seen.to_string()
                } else {
                    format!("{}, {seen}", held.name)
                }
            }
            None => key.to_owned(),
        }
    }
}

/// What admission calls a contract of this account and name: an account's names are its own.
fn key_of(account: u32, name: &str) -> String {
    format!("{account}:{name}")
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
