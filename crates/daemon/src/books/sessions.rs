// SPDX-License-Identifier: GPL-2.0
//! Contracts of sessions: the threads that take part hold them, and the program is told how they stand.
//!
//! Of one user's sessions, those that have said that their user looks elsewhere give up what they are promised
//! if one that is in front could not be promised what it asks for otherwise. Nobody else's promise is touched.

use andante_admission::Promise;
use andante_sched::contracts::Contract as KernelContract;

use super::holder::{self, Resolved};
use super::{Books, Caller, Held, cpus, judge, kept, key_of};
use crate::host::Host;
use crate::kernel::Kernel;
use crate::protocol::{Ask, Fault, FaultKind, Holder, Kept, Reply};

/// How a contract of a session stands.
#[derive(Debug)]
pub enum Standing {
    /// It is in force, so firmly promised; and what became of it so far.
    Kept(Firmness, Kept),
    /// Another session of its user, which is in front, has what it had.
    Yielded,
    /// Its threads have ended, or somebody has released it.
    Ended,
}

/// What a contract that is in force may rely on, the least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Firmness {
    /// No CPU has room for it now: it runs on its class's share.
    Homeless,
    /// It is served, and nothing is proved.
    Unproved,
    /// No window loses more than tolerated.
    Windows,
    /// No deadline is missed.
    EveryDeadline,
}

impl From<Promise> for Firmness {
    fn from(promise: Promise) -> Self {
        match promise {
            Promise::Nothing(_) => Self::Unproved,
            Promise::Windows => Self::Windows,
            Promise::EveryDeadline => Self::EveryDeadline,
        }
    }
}

impl Books {
    /// A contract for these threads, which take part in a session of the process that `ask` names; `behind` if it
    /// has said that its user looks elsewhere.
    ///
    /// # Errors
    /// As for any contract.
    pub fn promise(
        &mut self,
        kernel: &mut dyn Kernel,
        host: &dyn Host,
        caller: Caller,
        ask: &Ask,
        (members, behind): (Vec<i32>, bool),
    ) -> Result<Reply, Fault> {
        self.catch_up(kernel, host);
        let Holder::Session(pid) = ask.holder else {
            unreachable!("asked for by sessions alone");
        };
        ask.terms
            .check()
            .map_err(|error| Fault::new(FaultKind::BadTerms, error.to_string()))?;
        let by = Resolved {
            behind,
            ..holder::resolve_session(pid, members, host)?
        };
        let name = self.name_for(caller, ask, &by)?;
        self.check_room(caller)?;
        if !behind {
            self.make_room(kernel, caller, ask, &by);
        }
        let asked = self.judged(by, caller, ask.terms, name);
        self.enter(kernel, host, caller, ask, asked)
    }

    /// Ends promises to sessions of this user that are not in front, the oldest first, until there is room for
    /// this one; none, if that would not do.
    fn make_room(&mut self, kernel: &mut dyn Kernel, caller: Caller, ask: &Ask, by: &Resolved) {
        // No contract is called so.
        let contract = ask.terms.contract(&key_of(caller.account, ""));
        let question = judge::Question {
            by,
            caller: Some(caller),
        };
        let mut given_up: Vec<(usize, Held)> = Vec::new();
        while self.admit(&contract, &question).is_none() {
            let gives = |held: &Held| held.by.behind && held.account == caller.account;
            let Some(at) = self.held.iter().position(gives) else {
                for (at, held) in given_up.into_iter().rev() {
                    self.take_back(at, held);
                }
                return;
            };
            let held = self.held.remove(at);
            self.system.release(&held.key);
            given_up.push((at, held));
        }
        for (_, held) in given_up {
            if let Some(place) = held.place {
                // Ended meanwhile is as good.
                let _ = kernel.remove(place.kernel);
            }
            self.yielded.insert(held.key);
        }
    }

    /// A contract that was not ended after all.
    fn take_back(&mut self, at: usize, held: Held) {
        let placement = held.place.as_ref().map(|place| &place.placement);
        if let Some(placement) = placement.and_then(|at| cpus::to_admission(at, &self.online)) {
            let contract = held.terms.contract(&held.key);
            // It was there a moment ago.
            let _ = self.system.restore(contract, placement);
        }
        self.held.insert(at, held);
    }

    /// Whether the session has said that its user looks elsewhere.
    pub fn set_behind(&mut self, caller: Caller, name: &str, behind: bool) {
        if let Some(held) = self.of_session(caller, name) {
            held.by.behind = behind;
        }
    }

    /// One more thread holds the contract of its session.
    pub fn takes_part(&mut self, kernel: &mut dyn Kernel, caller: Caller, name: &str, tid: i32) {
        if let Some(held) = self.of_session(caller, name) {
            held.by.members.push(tid);
            if let Some(place) = &held.place {
                // One that has just exited holds none.
                let _ = kernel.bind(tid, place.kernel);
            }
        }
    }

    /// A thread holds the contract of its session no more.
    pub fn leaves(&mut self, kernel: &mut dyn Kernel, caller: Caller, name: &str, tid: i32) {
        if self.forgets(caller, name, tid) {
            let _ = kernel.unbind(tid);
        }
    }

    /// The same of one that has ended, so that the kernel knows; whether there is such a contract.
    pub fn forgets(&mut self, caller: Caller, name: &str, tid: i32) -> bool {
        let held = self.of_session(caller, name);
        held.map(|held| held.by.members.retain(|member| *member != tid))
            .is_some()
    }

    /// A session needs its contract no more.
    pub fn withdraw(
        &mut self,
        kernel: &mut dyn Kernel,
        host: &dyn Host,
        caller: Caller,
        name: &str,
    ) {
        if self.yielded.remove(&key_of(caller.account, name)) {
            return; // it has none, and did not know
        }
        if self.of_session(caller, name).is_some() {
            let _ = self.release(kernel, host, caller, name);
        }
    }

    /// How the contract of a session stands. That it is no more is said once.
    pub fn standing(&mut self, kernel: &[KernelContract], caller: Caller, name: &str) -> Standing {
        if self.yielded.remove(&key_of(caller.account, name)) {
            return Standing::Yielded;
        }
        let Some(held) = self.held.iter().find(|held| is_of(held, caller, name)) else {
            return Standing::Ended;
        };
        let place = held.place.as_ref();
        let live = place.and_then(|place| kernel.iter().find(|live| live.name == place.kernel));
        Standing::Kept(self.firmness(held), live.map(kept).unwrap_or_default())
    }

    fn firmness(&self, held: &Held) -> Firmness {
        let promised = held.place.as_ref().and(self.system.promise(&held.key));
        promised.map_or(Firmness::Homeless, Firmness::from)
    }

    fn of_session(&mut self, caller: Caller, name: &str) -> Option<&mut Held> {
        self.held.iter_mut().find(|held| is_of(held, caller, name))
    }
}

/// Whether a session of this caller holds it, under this name.
fn is_of(held: &Held, caller: Caller, name: &str) -> bool {
    held.by.is_session() && held.account == caller.account && held.name == name
}
