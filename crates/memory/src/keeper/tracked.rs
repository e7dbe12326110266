// SPDX-License-Identifier: GPL-2.0
//! A class with a reservation, as the keeper knows it.

use std::time::{Duration, Instant};

use crate::ahead::Rhythm;
use crate::cgroup::{Cgroup, Counter, Stat};
use crate::demand::Class;
use crate::holder::Holder;
use crate::learn::needed;
use crate::process;
use crate::words::{ClassReport, Found, Reserved};

/// The rhythm of an active class is seen so often: its mean is over as long.
pub(super) const ACTIVE: Duration = Duration::from_millis(500);
/// That of an idle one which has lost something, for every look later is a frame or two later.
pub(super) const IDLE: Duration = Duration::from_millis(50);
/// Whether a class has mapped other files is seen so often: a program that begins has a second of its own to load them.
const FILES: Duration = Duration::from_secs(1);
/// A class that has mapped nothing new is scanned again after this: others may have read what it uses meanwhile, after
/// its own had been dropped.
const SCAN_AGAIN: Duration = Duration::from_secs(60);

/// A class that neither uses CPU time nor has other memory than before is looked at again after this: a process may have
/// been put into it.
const QUIET: Duration = Duration::from_secs(10);

/// The CPU time that a class has used [µs], and the memory that it has [bytes].
type State = (u64, u64);

/// Something of a class that takes long to look at. Of a class that does nothing it stays as it was.
#[derive(Debug, Default)]
struct Slow<T> {
    looked: Option<(Instant, State)>,
    value: T,
}

impl<T> Slow<T> {
    fn look(&mut self, state: State, look: impl FnOnce() -> T) -> &T {
        let is_good = |(when, before): (Instant, State)| before == state && when.elapsed() < QUIET;
        if !self.looked.is_some_and(is_good) {
            self.looked = Some((Instant::now(), state));
            self.value = look();
        }
        &self.value
    }
}

/// The kinds of a class's memory, and what it had to wait for.
#[derive(Debug, Clone, Copy, Default)]
struct Kinds {
    stat: Stat,
    swapped: u64,
    stalled_us: u64,
    killed: u64,
}

impl Kinds {
    fn of(cgroup: &Cgroup) -> Self {
        Self {
            stat: cgroup.stat().unwrap_or_default(),
            swapped: cgroup.swapped().unwrap_or(0),
            stalled_us: cgroup.stalled_us().unwrap_or(0),
            killed: cgroup.killed().unwrap_or(0),
        }
    }
}

#[derive(Debug)]
pub(super) struct Tracked {
    pub number: u64,
    pub cgroup: Cgroup,
    pub bytes: u64,
    pub lend_per_mille: u32,
    /// As decisions see it.
    pub seen: Class,
    /// Taken from it [bytes].
    pub taken: u64,
    /// Asked for ahead [bytes].
    pub asked_ahead: u64,
    used: Option<Counter>,
    begun: Instant,
    rhythm: Rhythm,
    looked: Option<Instant>,
    files_looked: Option<Instant>,
    scanned: Option<(Instant, u64)>,
    has_lost: bool,
    cpu_us: u64,
    kinds: Slow<Kinds>,
    processes: Slow<Vec<i32>>,
    /// Pages of files that its processes have mapped and use [bytes], of all together: no two states of a program that
    /// loads something have the same.
    files: Slow<u64>,
}

impl Tracked {
    pub fn new(reserved: &Reserved) -> Self {
        let cgroup = Cgroup::new(&reserved.folder);
        Self {
            number: reserved.number,
            bytes: reserved.bytes,
            lend_per_mille: reserved.lend_per_mille,
            seen: Class::default(),
            taken: 0,
            asked_ahead: 0,
            used: cgroup.open("memory.current").ok(),
            begun: Instant::now(),
            rhythm: Rhythm::default(),
            looked: None,
            files_looked: None,
            scanned: None,
            has_lost: false,
            cpu_us: 0,
            kinds: Slow::default(),
            processes: Slow::default(),
            files: Slow::default(),
            cgroup,
        }
    }

    /// As if it used nothing: then most is kept free for it.
    pub fn unused(&self) -> Class {
        Class {
            reserved: self.bytes,
            lend_per_mille: self.lend_per_mille,
            ..Class::default()
        }
    }

    pub fn is_among(&self, reserved: &[Reserved]) -> bool {
        reserved.iter().any(|one| one.number == self.number)
    }

    /// Looks at what it uses; at the kinds of it, which takes the kernel ten times as long, only if it is over.
    pub fn look(&mut self, holder: &Holder) {
        let read = |counter: &Counter| counter.read().ok();
        let used = self.used.as_ref().and_then(read).unwrap_or(0);
        self.seen = Class {
            reserved: self.bytes,
            lend_per_mille: self.lend_per_mille,
            used,
            files: 0,
            held: holder.held_for(self.number),
        };
        if self.seen.over() > 0 {
            let stat = self.cgroup.stat().unwrap_or_default();
            let kept = stat.shared_memory + stat.unevictable;
            self.seen.files = stat.file.saturating_sub(kept);
        }
    }

    /// Whether it is idle and has something to be asked for as soon as it goes on.
    pub fn waits(&self) -> bool {
        self.rhythm.is_idle() && self.has_lost
    }

    /// Whether it goes on after it was idle, and has lost something meanwhile.
    pub fn goes_on(&mut self) -> bool {
        let lately = |when: Instant| when.elapsed() < ACTIVE;
        if !self.waits() && self.looked.is_some_and(lately) {
            return false;
        }
        self.looked = Some(Instant::now());
        self.cpu_us = self.cgroup.cpu_us().unwrap_or(0);
        let used = Duration::from_micros(self.cpu_us);
        let goes_on = self.rhythm.goes_on(self.begun.elapsed(), used);
        if goes_on || self.rhythm.is_idle() && !self.has_lost {
            self.has_lost = self.cgroup.swapped().is_ok_and(|bytes| bytes > 0);
        }
        goes_on && self.has_lost
    }

    fn state(&self) -> State {
        (self.cpu_us, self.seen.used)
    }

    /// Its processes, those of classes below it included.
    pub fn processes(&mut self) -> &[i32] {
        let state = self.state();
        self.processes.look(state, || self.cgroup.processes())
    }

    /// Whether what it uses may be counted for others: it has mapped more files, or was not looked at for a while.
    pub fn is_to_be_scanned(&mut self) -> bool {
        let now = Instant::now();
        if self.files_looked.is_some_and(|when| now - when < FILES) {
            return false;
        }
        self.files_looked = Some(now);
        let state = self.state();
        let processes = self.processes.look(state, || self.cgroup.processes());
        let of_all = || processes.iter().copied().map(process::of_files).sum();
        let files = *self.files.look(state, of_all);
        let same = |(when, before): (Instant, u64)| before == files && now - when < SCAN_AGAIN;
        if self.scanned.is_some_and(same) {
            return false;
        }
        self.scanned = Some((now, files));
        true
    }

    pub fn report(&mut self, holder: &Holder) -> ClassReport {
        self.look(holder);
        let state = self.state();
        let kinds = self.kinds.look(state, || Kinds::of(&self.cgroup));
        let (seen, stat) = (&self.seen, &kinds.stat);
        let found = Found {
            used: seen.used,
            private: stat.file.saturating_sub(stat.shared_memory),
            shared: seen.held,
            anonymous: stat.anonymous + stat.shared_memory,
            swapped: kinds.swapped,
            kept_free: seen.kept_free(),
            lent: seen.lent(),
            needed: needed(stat, 0) + seen.held,
            taken: self.taken,
            asked_ahead: self.asked_ahead,
            refaults: stat.refaults,
            major_faults: stat.major_faults,
            stalled_us: kinds.stalled_us,
            killed: kinds.killed,
        };
        ClassReport {
            number: self.number,
            found,
        }
    }
}
