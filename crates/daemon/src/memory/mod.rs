// SPDX-License-Identifier: GPL-2.0
//! Reserved memory: who has how much, and who looks after it.
//!
//! ```text
//!     a request ──► Reservations ──► andante-admission::memory    does it fit?
//!                        ├─────────► andante-memory, protect      memory.min, at once
//!                        └─────────► andante-memory, keeper       all that may take time
//! ```
//!
//! A reservation is a class's, for the kernel counts memory by classes. It ends with its class, with the process that it
//! was to end with, or with this daemon; then everything is as it was before.

mod ask;
mod lately;
mod learnt;
mod settings;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use andante_admission::Size;
use andante_admission::memory::{Memory, MemoryHeld};
use andante_memory::machine::{self, Machine};
use andante_memory::protect::{Protection, Relative};
use andante_memory::sysctl::Sysctl;
use andante_memory::words::{Found, Order, Reserved, Watched};
use andante_memory::{Cgroup, Handle, MemoryError, Right, firewall, oom};
use andante_sched::class::ClassPath;
use andante_sched::text::shown;

use self::lately::{Lately, NOW};
use self::learnt::Learnt;
pub use self::settings::MemorySettings;
use crate::books::Caller;
use crate::host::Host;
use crate::kernel::Kernel;
use crate::protocol::{Fault, FaultKind, MemoryListed, MemorySeen, Reply, Request};

/// The former protection is written down here; the one process that may change it locks the file beside it.
const KEPT: &str = "/run/andante/memory.json";
const RIGHT: &str = "/run/andante/memory.lock";
/// A keeper whose daemon was killed puts everything back within this time, if it does not wait for a disk just then.
const PATIENCE: Duration = Duration::from_secs(2);

/// A reservation that is held.
#[derive(Debug, Clone)]
struct Held {
    number: u64,
    class: ClassPath,
    /// The id of its cgroup: another one of that path is another class.
    identity: u64,
    folder: PathBuf,
    bytes: u64,
    lend_per_mille: u32,
    uid: u32,
    account: u32,
    /// No limits bound its maker, and it counts for none.
    privileged: bool,
    /// The process that it ends with, and when that was started.
    until: Option<(i32, u64)>,
    /// Nobody has asked for it: it was learnt of this process.
    learnt: Option<i32>,
}

/// Something that happened without anybody asking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemoryEvent {
    /// Somebody else has changed `memory.min` of a class.
    Changed {
        /// The class.
        class: String,
        /// The amount that we had set [bytes].
        set: u64,
        /// The amount that was found [bytes].
        found: u64,
    },
    /// The process that looks after reservations has ended, and was started again.
    Restarted,
    /// A program of a class was killed for want of memory.
    Killed {
        /// The class.
        class: String,
        /// Whether the class was within its reservation.
        within: bool,
    },
}

impl MemoryEvent {
    /// Whether somebody should be told even if he asked to be left alone.
    pub fn is_bad(&self) -> bool {
        matches!(self, Self::Killed { .. } | Self::Changed { .. })
    }
}

impl fmt::Display for MemoryEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Changed { class, set, found } => write!(
                f,
                "memory.min of {} was {} for reservations, and somebody has set it to {}: what is reserved is set \
                 again, beside that",
                shown(class),
                Size(*set),
                Size(*found)
            ),
            Self::Restarted => write!(
                f,
                "the process that looks after reserved memory had ended, and runs again"
            ),
            Self::Killed { class, within } => write!(
                f,
                "a program of {} was killed for want of memory, {} its reservation",
                shown(class),
                if *within { "within" } else { "beyond" }
            ),
        }
    }
}

/// All reservations of memory.
#[derive(Debug)]
pub struct Reservations {
    settings: MemorySettings,
    machine: Lately,
    /// Why nothing can be reserved here, if nothing can.
    protection: Result<Protection, String>,
    keeper: Handle,
    /// In the order in which they were made.
    held: Vec<Held>,
    learnt: Learnt,
    numbers: u64,
    killed: BTreeMap<u64, u64>,
    events: Vec<MemoryEvent>,
    /// For as long as this lives, and its keeper.
    right: Option<Right>,
    /// None: nothing can be reserved.
    place: Option<Place>,
}

/// Where it works: the machine's own, or a test's.
#[derive(Debug, Clone)]
pub struct Place {
    /// The root of the classes.
    pub root: PathBuf,
    /// The file with the former protection.
    pub kept: PathBuf,
    /// The file that is locked by the one that may change that.
    pub right: PathBuf,
    /// The command that starts the keeper, which is given both.
    pub keeper: Vec<OsString>,
    /// The machine's memory.
    pub machine: fn() -> Result<Machine, MemoryError>,
    /// The kernel's settings.
    pub sysctl: Sysctl,
}

impl Place {
    /// This machine; `keeper` starts the keeper when it is given the root of the classes and the file with what was
    /// protected before.
    ///
    /// # Errors
    /// cgroup v2 is not mounted.
    pub fn here(keeper: Vec<OsString>) -> Result<Self, andante_sched::class::ClassError> {
        Ok(Self {
            root: andante_sched::class::cgroup_root()?,
            kept: KEPT.into(),
            right: RIGHT.into(),
            keeper,
            machine: Machine::now,
            sysctl: Sysctl::of_kernel(),
        })
    }
}

impl Reservations {
    /// Nothing is reserved. The leftovers of a daemon that was killed are put back first.
    pub fn new(settings: MemorySettings, place: Place) -> Self {
        let (right, protection) = match opened(&place, PATIENCE) {
            Ok((right, protection)) => (Some(right), Ok(protection)),
            Err(error) => (None, Err(error.to_string())),
        };
        let mut start = place.keeper.clone();
        start.extend([place.root.clone().into(), place.kept.clone().into()]);
        let mut books = Self::with(protection);
        books.settings = settings;
        books.machine = Lately::read_by(place.machine);
        books.keeper = Handle::new(start);
        books.right = right;
        books.place = Some(place);
        books
    }

    /// None can be made, for this reason.
    pub fn none(why: &str) -> Self {
        Self::with(Err(why.to_owned()))
    }

    fn with(protection: Result<Protection, String>) -> Self {
        Self {
            settings: MemorySettings::default(),
            machine: Lately::read_by(Machine::now),
            protection,
            keeper: Handle::new(Vec::new()),
            held: Vec::new(),
            learnt: Learnt::default(),
            numbers: 0,
            killed: BTreeMap::new(),
            events: Vec::new(),
            right: None,
            place: None,
        }
    }

    /// All that happened since this was last called.
    pub fn take_events(&mut self) -> Vec<MemoryEvent> {
        std::mem::take(&mut self.events)
    }

    /// Answers a request about memory.
    pub fn answer(&mut self, host: &dyn Host, caller: Caller, request: &Request) -> Reply {
        let answer = match request {
            Request::ReserveMemory(ask) => self.reserve(host, caller, ask, false),
            Request::AskMemory(ask) => self.reserve(host, caller, ask, true),
            Request::Wake { pid } => self.wake(host, caller, *pid),
            _ => unreachable!("others have books of their own"),
        };
        answer.unwrap_or_else(Reply::Error)
    }

    /// Ends what a class has reserved, if it has; its name then. None: there is no such reservation.
    pub fn release(&mut self, caller: Caller, which: &str) -> Option<Result<String, Fault>> {
        let class = ClassPath::parse(which).ok()?;
        // A number is that of a process, which holds no memory.
        let at = self.held.iter().position(|held| held.class == class)?;
        let held = &self.held[at];
        if !caller.privileged && held.uid != caller.uid {
            let message = format!(
                "the memory of {class} was reserved by user {}: only that user, root and members of the group andante \
                 may release it",
                held.uid
            );
            return Some(Err(Fault::new(FaultKind::NotPermitted, message)));
        }
        self.held.remove(at);
        let name = class.to_text();
        Some(self.apply().map(|()| name))
    }

    /// Work that is due every second: classes and processes end, others change what is ours, programs are learnt of.
    pub fn look(&mut self, kernel: &dyn Kernel, host: &dyn Host) {
        self.open_again();
        if self.protection.is_err() {
            return;
        }
        let before = self.held.len();
        self.held.retain(|held| held.stands(host));
        let mut changed = self.held.len() != before;
        changed |= self.learn(kernel, host);
        if changed {
            // A class that cannot be protected now is tried again with the next change; `memory.min` stays as it was.
            let _ = self.apply();
        }
        if let Ok(protection) = &mut self.protection {
            for found in protection.look() {
                self.events.push(MemoryEvent::Changed {
                    class: format!("/{}", found.class.display()),
                    set: found.set,
                    found: found.found,
                });
            }
        }
        if self.is_needed() && self.keeper.look() {
            self.events.push(MemoryEvent::Restarted);
            let _ = self.tell();
        }
        self.see_killed();
    }

    /// A keeper whose daemon was killed may wait for a disk for long before it puts everything back and gives up its
    /// right.
    fn open_again(&mut self) {
        if let Some(place) = self.place.as_ref().filter(|_| self.right.is_none())
            && let Ok((right, protection)) = opened(place, Duration::ZERO)
        {
            (self.right, self.protection) = (Some(right), Ok(protection));
        }
    }

    fn see_killed(&mut self) {
        for class in &self.keeper.report().classes {
            let before = self.killed.insert(class.number, class.found.killed);
            let Some(held) = self.held.iter().find(|held| held.number == class.number) else {
                continue;
            };
            if before.is_some_and(|before| before < class.found.killed) {
                self.events.push(MemoryEvent::Killed {
                    class: held.class.to_text(),
                    within: class.found.used <= held.bytes,
                });
            }
        }
        let held = &self.held;
        let lives = |number: &u64| held.iter().any(|held| held.number == *number);
        self.killed.retain(|number, _| lives(number));
    }

    /// The memory, and all that is reserved of it; none: nothing can be.
    pub fn seen(&self) -> Option<MemorySeen> {
        let protection = self.protection.as_ref().ok()?;
        let machine = self.machine.as_of(NOW).ok()?;
        let memory = self.as_admission(&machine, protection);
        let report = self.keeper.report();
        let top = self.top();
        Some(MemorySeen {
            memory,
            reservable: memory.reservable(),
            reserved: top.iter().map(|held| held.bytes).sum(),
            user_quota_per_mille: self.settings.user_quota_per_mille,
            learnt_per_mille: self.settings.learnt_per_mille,
            free: machine::free().memory,
            swap: machine.swap,
            held: report.held,
            taken: report.taken,
            limit: report.limit,
            looked_after: self.keeper.runs(),
            reservations: self.held.iter().map(|held| self.listed(held)).collect(),
        })
    }

    fn listed(&self, held: &Held) -> MemoryListed {
        let classes = &self.keeper.report().classes;
        let seen = classes.iter().find(|class| class.number == held.number);
        let found = seen.map_or_else(
            // Before the first report.
            || Found {
                used: Cgroup::new(&held.folder).current().unwrap_or(0),
                ..Found::default()
            },
            |seen| seen.found,
        );
        MemoryListed {
            class: held.class.to_text(),
            uid: held.uid,
            bytes: held.bytes,
            lend_per_mille: held.lend_per_mille,
            until: held.until.map(|(pid, _)| pid),
            learnt: held.learnt,
            found,
        }
    }

    /// The machine as admission finds it.
    fn as_admission(&self, machine: &Machine, protection: &Protection) -> Memory {
        let held = self.keeper.report().held;
        let others = protection.protected_by_others();
        machine.for_admission(held, others, self.settings.left_for_others_per_mille)
    }

    /// Reservations that are in no other: these count for the machine.
    fn top(&self) -> Vec<&Held> {
        let nested = |held: &&Held| self.above(&held.class).is_some();
        self.held.iter().filter(|held| !nested(held)).collect()
    }

    /// The nearest class above with a reservation.
    fn above(&self, class: &ClassPath) -> Option<&Held> {
        let mut nearest = None;
        let mut at = class.parent();
        while let Some(path) = at {
            nearest = nearest.or_else(|| self.held.iter().find(|held| held.class == path));
            at = path.parent();
        }
        nearest
    }

    /// Makes the kernel and the keeper do what is held.
    fn apply(&mut self) -> Result<(), Fault> {
        let protection = match &mut self.protection {
            Ok(protection) => protection,
            Err(why) => return Err(Fault::new(FaultKind::Failed, why.clone())),
        };
        let root = protection.root().to_owned();
        let wanted = self.held.iter().filter_map(|held| {
            let relative = held.folder.strip_prefix(&root).ok()?;
            Some((Relative::from(relative), held.bytes))
        });
        let set = protection.set(wanted.collect());
        set.map_err(|error| Fault::new(FaultKind::Failed, error.to_string()))?;
        self.tell()
    }

    fn is_needed(&self) -> bool {
        !self.held.is_empty() || self.learnt.is_watching()
    }

    fn tell(&mut self) -> Result<(), Fault> {
        if !self.is_needed() {
            self.keeper.end();
            return Ok(());
        }
        let reserved = self.held.iter().map(|held| Reserved {
            number: held.number,
            folder: held.folder.clone(),
            bytes: held.bytes,
            lend_per_mille: held.lend_per_mille,
        });
        let watched = self.learnt.watched().map(|(number, folder)| Watched {
            number,
            folder: folder.to_owned(),
        });
        let order = Order::Keep {
            reserved: reserved.collect(),
            watched: watched.collect(),
        };
        let told = self.keeper.tell(&order);
        told.map_err(|error| Fault::new(FaultKind::Failed, error.to_string()))
    }
}

impl Drop for Reservations {
    fn drop(&mut self) {
        if let Ok(protection) = &mut self.protection {
            // If that fails now it is written down, and done when the next daemon begins.
            let _ = protection.set(BTreeMap::new());
        }
    }
}

impl Held {
    /// Whether its class is there, and the process that it ends with.
    fn stands(&self, host: &dyn Host) -> bool {
        let class = host.class(&self.class);
        let lives =
            |(pid, started): (i32, u64)| host.name(pid).is_some_and(|(_, is)| is == started);
        class.is_some_and(|class| class.cgroup_id == self.identity) && self.until.is_none_or(lives)
    }

    fn as_holder(&self) -> MemoryHeld {
        MemoryHeld {
            name: self.class.to_text(),
            bytes: self.bytes,
        }
    }
}

fn opened(place: &Place, patience: Duration) -> Result<(Right, Protection), MemoryError> {
    machine::has_controller(&place.root)?;
    let right = Right::take(&place.right, patience)?;
    oom::restore(&place.kept)?;
    firewall::restore(&place.kept)?;
    let sysctl = place.sysctl.clone();
    Ok((right, Protection::open(&place.root, &place.kept, sysctl)?))
}
