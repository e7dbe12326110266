// SPDX-License-Identifier: GPL-2.0
//! A class with a reservation, as the keeper knows it.

use std::time::{Duration, Instant};

use crate::ahead::Rhythm;
use crate::cgroup::{Cgroup, Stat};
use crate::demand::Class;
use crate::holder::Holder;
use crate::learn::needed;
use crate::process;
use crate::words::{ClassReport, Found, Reserved};

/// The rhythm of an active class is seen so often: its mean is over as long.
const ACTIVE: Duration = Duration::from_millis(500);
/// That of an idle one, for every look later is a frame or two later.
const IDLE: Duration = Duration::from_millis(50);
/// A class that has mapped nothing new is scanned again after this: others may have read what it uses meanwhile, after
/// its own had been dropped.
const SCAN_AGAIN: Duration = Duration::from_secs(60);

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
    begun: Instant,
    rhythm: Rhythm,
    looked: Option<Instant>,
    scanned: Option<(Instant, u64)>,
    stat: Stat,
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
            begun: Instant::now(),
            rhythm: Rhythm::default(),
            looked: None,
            scanned: None,
            stat: Stat::default(),
            cgroup,
        }
    }

    pub fn is_among(&self, reserved: &[Reserved]) -> bool {
        reserved.iter().any(|one| one.number == self.number)
    }

    /// Looks at what it uses; at the kinds of it, which takes the kernel ten times as long, only if it is over.
    pub fn look(&mut self, holder: &Holder) {
        let used = self.cgroup.current().unwrap_or(0);
        self.seen = Class {
            reserved: self.bytes,
            lend_per_mille: self.lend_per_mille,
            used,
            files: 0,
            held: holder.held_for(self.number),
        };
        if self.seen.over() > 0 {
            self.stat = self.cgroup.stat().unwrap_or_default();
            let stat = &self.stat;
            let kept = stat.shared_memory + stat.unevictable;
            self.seen.files = stat.file.saturating_sub(kept);
        }
    }

    /// When its rhythm is to be seen again.
    pub fn pause(&self) -> Duration {
        let every = if self.rhythm.is_idle() { IDLE } else { ACTIVE };
        self.looked.map_or(Duration::ZERO, |looked| {
            every.saturating_sub(looked.elapsed())
        })
    }

    /// Whether it goes on after it was idle.
    pub fn goes_on(&mut self) -> bool {
        if !self.pause().is_zero() {
            return false;
        }
        let now = Instant::now();
        self.looked = Some(now);
        let used = self.cgroup.cpu_us().unwrap_or(0);
        self.rhythm
            .goes_on(now - self.begun, Duration::from_micros(used))
    }

    /// Whether what it uses may be counted for others: it has mapped more files, or was not looked at for a while.
    pub fn is_to_be_scanned(&mut self) -> bool {
        let now = Instant::now();
        if self.scanned.is_some_and(|(when, _)| now - when < ACTIVE) {
            return false;
        }
        let files = files_of(&self.cgroup);
        let same = |(when, before): (Instant, u64)| before == files && now - when < SCAN_AGAIN;
        if self.scanned.is_some_and(same) {
            return false;
        }
        self.scanned = Some((now, files));
        true
    }

    pub fn report(&mut self, holder: &Holder) -> ClassReport {
        self.look(holder);
        self.stat = self.cgroup.stat().unwrap_or(self.stat);
        let (seen, stat) = (&self.seen, &self.stat);
        let found = Found {
            used: seen.used,
            private: stat.file.saturating_sub(stat.shared_memory),
            shared: seen.held,
            anonymous: stat.anonymous + stat.shared_memory,
            swapped: self.cgroup.swapped().unwrap_or(0),
            kept_free: seen.kept_free(),
            lent: seen.lent(),
            needed: needed(stat) + seen.held,
            taken: self.taken,
            asked_ahead: self.asked_ahead,
            refaults: stat.refaults,
            major_faults: stat.major_faults,
            stalled_us: self.cgroup.stalled_us().unwrap_or(0),
            killed: self.cgroup.killed().unwrap_or(0),
        };
        ClassReport {
            number: self.number,
            found,
        }
    }
}

/// Pages of files that the class's processes have mapped and use [bytes], of all together: no two states of a program
/// that loads something have the same.
fn files_of(cgroup: &Cgroup) -> u64 {
    cgroup.processes().into_iter().map(process::of_files).sum()
}
