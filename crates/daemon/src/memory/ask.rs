// SPDX-License-Identifier: GPL-2.0
//! Whether memory can be reserved as is asked.

use std::time::Duration;

use andante_admission::Size;
use andante_admission::memory::{
    LEAST_RESERVATION, MemoryAnswer, MemoryHeld, MemoryLimit, MemoryRefusal, ask as admit, part,
};
use andante_memory::Cgroup;
use andante_sched::class::{ClassError, ClassPath};

use super::lately::NOW;
use super::{Held, Reservations};
use crate::books::{Caller, check_thread, no_process, not_permitted};
use crate::host::Host;
use crate::protocol::{Fault, FaultKind, Holder, MemoryAsk, MemoryReserved, Reply};

/// Reservations that a user without privilege may hold at a time, as many as contracts of the CPU.
const MAX_OF_USER: usize = 32;

impl Reservations {
    pub(super) fn reserve(
        &mut self,
        host: &dyn Host,
        caller: Caller,
        ask: &MemoryAsk,
        only_ask: bool,
    ) -> Result<Reply, Fault> {
        check_amounts(ask)?;
        if let Err(why) = &self.protection {
            return Err(Fault::new(FaultKind::Failed, why.clone()));
        }
        let (mut held, mut notes) = self.found(host, caller, ask)?;
        // One that is there already is changed.
        let before = self.held.iter().position(|other| other.class == held.class);
        if let Some(at) = before {
            let other = &self.held[at];
            if !caller.privileged && other.uid != caller.uid {
                return Err(not_permitted(
                    &format!("the reservation of {}", held.class),
                    other.uid,
                ));
            }
            held.number = other.number;
        }
        if let Some(refusal) = self.refusal(&held, caller, NOW)? {
            return Ok(Reply::MemoryRefused(Box::new(refusal)));
        }
        self.note_limits(&held, &mut notes);
        let reply = MemoryReserved {
            class: held.class.to_text(),
            bytes: held.bytes,
            lend_per_mille: held.lend_per_mille,
            notes,
        };
        if only_ask {
            return Ok(Reply::MemoryReserved(Box::new(reply)));
        }
        let former = self.held.clone();
        match before {
            Some(at) => self.held[at] = held,
            None => {
                self.numbers += 1;
                held.number = self.numbers;
                self.held.push(held);
            }
        }
        if let Err(fault) = self.apply() {
            self.held = former;
            let _ = self.apply();
            return Err(fault);
        }
        Ok(Reply::MemoryReserved(Box::new(reply)))
    }

    /// The reservation as it would be held, and what whoever asks should know.
    fn found(
        &self,
        host: &dyn Host,
        caller: Caller,
        ask: &MemoryAsk,
    ) -> Result<(Held, Vec<String>), Fault> {
        let mut notes = Vec::new();
        let class = match &ask.holder {
            Holder::Class(text) => ClassPath::parse(text)
                .map_err(|error| Fault::new(FaultKind::UnknownClass, error.to_string()))?,
            Holder::Process(pid) => class_of(*pid, host, caller, &mut notes)?,
            Holder::Thread(_) | Holder::Session(_) => {
                let message =
                    "threads of a process have their memory in common: reserve for the process";
                return Err(Fault::new(FaultKind::BadTerms, message));
            }
        };
        if class.is_root() {
            let message = "the root class / has all memory that there is: start the program with `andante exec \
                           --reserve-memory`, which gives it a class, or name a class below it";
            return Err(Fault::new(FaultKind::UnknownClass, message));
        }
        let facts = host.class(&class).ok_or_else(|| {
            Fault::new(
                FaultKind::UnknownClass,
                ClassError::Unknown(class.clone()).to_string(),
            )
        })?;
        if !caller.privileged && facts.owner_uid != caller.uid {
            return Err(not_permitted(&format!("class {class}"), facts.owner_uid));
        }
        let folder = host.folder(&class);
        let is_named = folder.to_str().is_some();
        if !is_named {
            let message = format!(
                "{class} has bytes in its name that are no UTF-8, which cannot be written down: \
                                   rename it"
            );
            return Err(Fault::new(FaultKind::UnknownClass, message));
        }
        if is_threaded(&folder) {
            let message = format!(
                "{class} is part of a threaded subtree, whose classes have their memory in common: reserve for the \
                 class above it that is its root"
            );
            return Err(Fault::new(FaultKind::UnknownClass, message));
        }
        let cgroup = Cgroup::new(&folder);
        if !cgroup.counts() && !cgroup.processes().is_empty() {
            notes.push(format!(
                "the memory of {class} is counted apart from now on: what it has already stays its parent's, and is \
                 not protected"
            ));
        }
        let until = ask.until.map(|pid| {
            let started = host.name(pid).map(|(_, started)| started);
            started.map(|started| (pid, started)).ok_or_else(|| {
                let message =
                    format!("there is no process {pid} to end with: `ps -e` shows those there are");
                Fault::new(FaultKind::NoProcess, message)
            })
        });
        let held = Held {
            number: 0,
            class,
            identity: facts.cgroup_id,
            folder,
            bytes: ask.bytes,
            lend_per_mille: ask.lend_per_mille,
            uid: caller.uid,
            account: caller.account,
            privileged: caller.privileged,
            until: until.transpose()?,
            learnt: None,
        };
        Ok((held, notes))
    }

    /// Why it is refused by a machine that was as it is no longer ago than this; none: it is not.
    pub(super) fn refusal(
        &self,
        asked: &Held,
        caller: Caller,
        age: Duration,
    ) -> Result<Option<MemoryRefusal>, Fault> {
        let machine = self.machine.as_of(age);
        let machine = machine.map_err(|error| Fault::new(FaultKind::Failed, error.to_string()))?;
        let others: Vec<&Held> = (self.held.iter())
            .filter(|held| held.class != asked.class)
            .collect();
        let judged = |answer: MemoryAnswer| match answer {
            MemoryAnswer::Admitted => None,
            MemoryAnswer::Refused(refusal) => Some(refusal),
        };
        // A reservation that it could not use.
        for path in asked.class.ancestry().skip(1) {
            let folder = above_by(&asked.folder, asked.class.depth() - path.depth());
            let most = Cgroup::new(folder).limit().unwrap_or(u64::MAX);
            if asked.bytes > most {
                let limit = MemoryLimit::Most {
                    name: path.to_text(),
                    bytes: most,
                };
                return Ok(judged(admit(asked.bytes, limit, most, &[])));
            }
        }
        // Nested ones have to fit into it, and it into the one around it.
        let is_below = |held: &&&Held| held.class.ancestry().any(|above| above == asked.class);
        let below: Vec<_> = (others.iter())
            .filter(is_below)
            .map(|held| held.as_holder())
            .collect();
        let below_bytes: u64 = below.iter().map(|held| held.bytes).sum();
        if asked.bytes < below_bytes {
            let refusal = MemoryRefusal {
                asked: asked.bytes,
                most: None,
                limit: MemoryLimit::Below,
                holders: below,
            };
            return Ok(Some(refusal));
        }
        let beside: Vec<MemoryHeld>;
        let (limit, room) = match self.above(&asked.class) {
            Some(above) => {
                let same = |held: &&&Held| {
                    self.above(&held.class)
                        .is_some_and(|other| other.class == above.class)
                };
                beside = (others.iter())
                    .filter(same)
                    .map(|held| held.as_holder())
                    .collect();
                let (name, bytes) = (above.class.to_text(), above.bytes);
                (MemoryLimit::Above { name, bytes }, bytes)
            }
            None => {
                let top = self
                    .top()
                    .into_iter()
                    .filter(|held| held.class != asked.class && !is_below(&held));
                beside = top.map(Held::as_holder).collect();
                let Ok(protection) = &self.protection else {
                    unreachable!("asked before");
                };
                let memory = self.as_admission(&machine, protection);
                (MemoryLimit::Machine(memory), memory.reservable())
            }
        };
        if let Some(refusal) = judged(admit(asked.bytes, limit, room, &beside)) {
            return Ok(Some(refusal));
        }
        if caller.privileged {
            return Ok(None);
        }
        let own = others
            .iter()
            .filter(|held| held.account == caller.account && !held.privileged);
        if own.clone().count() >= MAX_OF_USER {
            let message =
                format!("you hold {MAX_OF_USER} reservations of memory already: release one first");
            return Err(Fault::new(FaultKind::Full, message));
        }
        let quota = |all_users: bool, per_mille: u32, held: Vec<MemoryHeld>| {
            let bytes = part(machine.total, per_mille);
            judged(admit(
                asked.bytes,
                MemoryLimit::Quota { all_users, bytes },
                bytes,
                &held,
            ))
        };
        let own = own.map(|held| held.as_holder()).collect();
        let all = others
            .iter()
            .filter(|held| !held.privileged && held.learnt.is_none());
        let all = all.map(|held| held.as_holder()).collect();
        Ok(quota(false, self.settings.user_quota_per_mille, own)
            .or_else(|| quota(true, self.settings.users_quota_per_mille, all)))
    }

    fn note_limits(&self, asked: &Held, notes: &mut Vec<String>) {
        let high = Cgroup::new(&asked.folder).soft_limit().unwrap_or(u64::MAX);
        if high < asked.bytes {
            notes.push(format!(
                "memory.high of {} is {}: it is slowed down beyond that, whatever is reserved for it",
                asked.class,
                Size(high)
            ));
        }
        // Nobody is told with each program that is started.
        if asked.until.is_none()
            && self
                .machine
                .as_of(NOW)
                .is_ok_and(|machine| machine.swap == 0)
        {
            notes.push(
                "there is no swap: programs' own memory is taken from nobody, so only pages of files can be given \
                 back for it"
                    .to_owned(),
            );
        }
    }

    pub(super) fn wake(
        &mut self,
        host: &dyn Host,
        caller: Caller,
        pid: i32,
    ) -> Result<Reply, Fault> {
        let thread = host
            .thread(pid)
            .filter(|_| pid > 0)
            .ok_or_else(|| no_process(pid))?;
        check_thread(&thread, caller)?;
        if let Err(why) = &self.protection {
            return Err(Fault::new(FaultKind::Failed, why.clone()));
        }
        let told = self
            .keeper
            .tell(&andante_memory::words::Order::Wake { pid });
        told.map_err(|error| Fault::new(FaultKind::Failed, error.to_string()))?;
        Ok(Reply::Woken { pid })
    }
}

fn check_amounts(ask: &MemoryAsk) -> Result<(), Fault> {
    let bad = |message: String| Err(Fault::new(FaultKind::BadTerms, message));
    if ask.bytes < LEAST_RESERVATION {
        return bad(format!(
            "{} is too little to be reserved: give {} at least, such as 200M",
            Size(ask.bytes),
            Size(LEAST_RESERVATION)
        ));
    }
    if ask.lend_per_mille > 1000 {
        return bad(format!(
            "{} thousandths cannot be lent: give 0 to 1000",
            ask.lend_per_mille
        ));
    }
    Ok(())
}

fn class_of(
    pid: i32,
    host: &dyn Host,
    caller: Caller,
    notes: &mut Vec<String>,
) -> Result<ClassPath, Fault> {
    let thread = host
        .thread(pid)
        .filter(|_| pid > 0)
        .ok_or_else(|| no_process(pid))?;
    check_thread(&thread, caller)?;
    let class = host.class_of(pid).unwrap_or_else(ClassPath::root);
    if !class.is_root() {
        let others = Cgroup::new(host.folder(&class)).processes();
        let others = others.iter().filter(|other| **other != pid).count();
        if others > 0 {
            notes.push(format!(
                "the reservation is that of class {class}, in which there are {others} other processes"
            ));
        }
    }
    Ok(class)
}

/// The folder so many levels above.
fn above_by(folder: &std::path::Path, levels: usize) -> std::path::PathBuf {
    folder.ancestors().nth(levels).unwrap_or(folder).to_owned()
}

fn is_threaded(folder: &std::path::Path) -> bool {
    let kind = std::fs::read_to_string(folder.join("cgroup.type")).unwrap_or_default();
    matches!(kind.trim(), "threaded" | "domain invalid")
}
