// SPDX-License-Identifier: GPL-2.0
//! Memory of programs that nobody has reserved any for: those that have a learnt contract of the CPU and wake in a rhythm,
//! as films, games and calls do.
//!
//! Their classes are watched while there is no pressure, and what they need is reserved as if it had been asked for, all
//! of it lent while it is unused. All together have a bound. A program that behaves so no more keeps its reservation for
//! a while: a film may be paused.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use andante_admission::memory::part;
use andante_memory::{Cgroup, learn, process};
use andante_sched::class::ClassPath;

use super::lately::ABOUT_NOW;
use super::{Held, Reservations};
use crate::books::Caller;
use crate::host::Host;
use crate::kernel::Kernel;

/// A program that does not behave so any more is believed to be paused for so long: by then its user has left it, and
/// what it has is everybody's. It costs others no more than what the program has anyway.
const PAUSED: Duration = Duration::from_secs(600);
/// The slowest rhythm that is seen as motion or heard as sound: below ten frames a second a film is a row of pictures.
/// Programs that answer people without such a rhythm, as the services that every machine runs, need a contract of the
/// CPU, and no more memory than others leave them.
const BEAT: Duration = Duration::from_millis(100);
/// Threads whose rhythms are read each second, some 15 µs each, while everybody waits: with the next half a millisecond,
/// which is less than half of a period of sound of 64 frames.
const RHYTHMS_A_LOOK: usize = 16;
/// Of those that keep time, so many are looked at, some 150 µs each.
const THREADS_A_LOOK: usize = 2;
/// A learnt reservation follows the need in steps of this part, so that `memory.min` is not written each second.
const STEP: u64 = 8;

/// The classes that are watched.
#[derive(Debug, Default)]
pub(super) struct Learnt {
    classes: BTreeMap<ClassPath, Watching>,
    /// How often each thread with a learnt contract was looked at.
    looks: BTreeMap<i32, u32>,
}

#[derive(Debug)]
struct Watching {
    number: u64,
    folder: PathBuf,
    /// The thread that behaved so last.
    thread: i32,
    /// The program it was learnt of, and when that was started.
    program: (i32, u64),
    uid: u32,
    /// When it last behaved so.
    behaved: Instant,
    /// Its need when it was first seen [bytes]: until the keeper has looked at it, which may take two seconds more.
    first: u64,
}

impl Learnt {
    pub fn is_watching(&self) -> bool {
        !self.classes.is_empty()
    }

    pub fn watched(&self) -> impl Iterator<Item = (u64, &Path)> {
        let all = self.classes.values();
        all.map(|watching| (watching.number, watching.folder.as_path()))
    }

    /// Those of these threads that keep time, as far as it is their turn to be looked at. A program that begins keeps no time
    /// yet, so those that were looked at least come first; threads that are known to behave need no look.
    fn turn(&mut self, threads: BTreeSet<i32>, kernel: &dyn Kernel) -> Vec<i32> {
        let known: BTreeSet<i32> = self.classes.values().map(|one| one.thread).collect();
        self.looks.retain(|tid, _| threads.contains(tid));
        let mut all: Vec<_> = threads
            .difference(&known)
            .map(|tid| (self.looks.get(tid).copied().unwrap_or(0), *tid))
            .collect();
        all.sort_unstable();
        let mut found = Vec::new();
        for (looks, tid) in all.into_iter().take(RHYTHMS_A_LOOK) {
            self.looks.insert(tid, looks + 1);
            found.extend(keeps_time(kernel, tid).then_some(tid));
            if found.len() == THREADS_A_LOOK {
                break;
            }
        }
        found
    }
}

/// Whether a thread wakes by itself in a rhythm of [`BEAT`] or less.
fn keeps_time(kernel: &dyn Kernel, tid: i32) -> bool {
    let beat_ns = kernel.rhythm_ns(tid);
    beat_ns.is_some_and(|beat_ns| u128::from(beat_ns) <= BEAT.as_nanos())
}

impl Reservations {
    /// Looks for programs that are learnt of, and reserves what they need. Whether anything has changed.
    pub(super) fn learn(&mut self, kernel: &dyn Kernel, host: &dyn Host) -> bool {
        if self.settings.learnt_per_mille == 0 {
            return false;
        }
        let before: Vec<_> = self.learnt.watched().map(|(number, _)| number).collect();
        self.see_programs(kernel, host);
        let lives = |watching: &Watching| {
            let (pid, started) = watching.program;
            let same = host.name(pid).is_some_and(|(_, is)| is == started);
            same && watching.behaved.elapsed() < PAUSED
        };
        self.learnt.classes.retain(|_, watching| lives(watching));
        let watched: Vec<_> = self.learnt.watched().map(|(number, _)| number).collect();
        let is_other = self.reserve_learnt(host);
        before != watched || is_other
    }

    fn see_programs(&mut self, kernel: &dyn Kernel, host: &dyn Host) {
        let contracts = kernel.contracts();
        let learnt = contracts.iter().filter(|contract| contract.learnt);
        let threads: BTreeSet<i32> = learnt.filter_map(|contract| contract.thread).collect();
        for watching in self.learnt.classes.values_mut() {
            if threads.contains(&watching.thread) {
                watching.behaved = Instant::now();
            }
        }
        for tid in self.learnt.turn(threads, kernel) {
            self.see_thread(tid, host);
        }
    }

    fn see_thread(&mut self, tid: i32, host: &dyn Host) {
        let Some(thread) = host.thread(tid) else {
            return;
        };
        let Some(class) = host.class_of(tid).filter(|class| !class.is_root()) else {
            return;
        };
        if let Some(watching) = self.learnt.classes.get_mut(&class) {
            if watching.program.0 == thread.pid {
                watching.thread = tid;
                watching.behaved = Instant::now();
            }
            return;
        }
        let folder = host.folder(&class);
        let asked = self
            .held
            .iter()
            .any(|held| held.class == class && held.learnt.is_none());
        if asked || !Cgroup::new(&folder).counts() || folder.to_str().is_none() {
            return;
        }
        let Some((_, started)) = host.name(thread.pid) else {
            return;
        };
        // In a class with other programs its reservation would be theirs.
        if !is_most_of(thread.pid, &folder) {
            return;
        }
        self.numbers += 1;
        self.learnt.classes.insert(
            class,
            Watching {
                number: self.numbers,
                first: need(&folder),
                folder,
                thread: tid,
                program: (thread.pid, started),
                uid: thread.uids[0],
                behaved: Instant::now(),
            },
        );
    }

    /// Reserves what the watched classes need; whether that is other than it was.
    fn reserve_learnt(&mut self, host: &dyn Host) -> bool {
        let is_held = self.held.iter().any(|held| held.learnt.is_some());
        if !self.learnt.is_watching() && !is_held {
            return false;
        }
        let machine = self.machine.as_of(ABOUT_NOW);
        let bound = part(
            machine.map_or(0, |machine| machine.total),
            self.settings.learnt_per_mille,
        );
        let report = self.keeper.report();
        let needed = |watching: &Watching| {
            let mut seen = report.needed.iter();
            let found = seen.find(|(watched, _)| *watched == watching.number);
            let bytes = found.map_or(watching.first, |(_, bytes)| *bytes);
            bytes.next_multiple_of((bytes / STEP).max(1))
        };
        // Those that behave so now come first, then those that did last.
        let mut all: Vec<_> = self.learnt.classes.iter().collect();
        all.sort_by_key(|(_, watching)| (watching.behaved.elapsed().as_secs(), watching.number));
        let bytes: Vec<_> = all.iter().map(|(_, watching)| needed(watching)).collect();
        let granted = learn::within(bound, &bytes);
        let mut wanted = Vec::new();
        for ((class, watching), bytes) in all.into_iter().zip(granted) {
            let (Some(bytes), Some(facts)) = (bytes, host.class(class)) else {
                continue;
            };
            wanted.push(Held {
                number: watching.number,
                class: class.clone(),
                identity: facts.cgroup_id,
                folder: watching.folder.clone(),
                bytes,
                lend_per_mille: 1000,
                uid: watching.uid,
                account: watching.uid,
                privileged: true,
                until: Some(watching.program),
                learnt: Some(watching.program.0),
            });
        }
        let mut asked: Vec<_> = self
            .held
            .iter()
            .filter(|held| held.learnt.is_none())
            .cloned()
            .collect();
        let before: Vec<_> = self
            .held
            .iter()
            .filter(|held| held.learnt.is_some())
            .map(key)
            .collect();
        std::mem::swap(&mut self.held, &mut asked);
        let nobody = Caller {
            uid: 0,
            account: 0,
            privileged: true,
        };
        for held in wanted {
            let is_asked = self.held.iter().any(|other| other.class == held.class);
            // Reservations that were asked for come first, and there may be no room beside it.
            if !is_asked
                && self
                    .refusal(&held, nobody, ABOUT_NOW)
                    .is_ok_and(|refusal| refusal.is_none())
            {
                self.held.push(held);
            }
        }
        let now: Vec<_> = self
            .held
            .iter()
            .filter(|held| held.learnt.is_some())
            .map(key)
            .collect();
        before != now
    }
}

fn key(held: &Held) -> (u64, u64) {
    (held.number, held.bytes)
}

/// The need of a class now, by all that it has [bytes]. To tell files that are only read from programs takes longer than
/// we may take, before whom everybody waits.
fn need(folder: &Path) -> u64 {
    let stat = Cgroup::new(folder).stat();
    stat.map_or(0, |stat| learn::needed(&stat, stat.file))
}

/// Whether a process has most of the memory of its class that programs have there.
fn is_most_of(pid: i32, folder: &Path) -> bool {
    let cgroup = Cgroup::new(folder);
    let all = cgroup
        .stat()
        .map_or(0, |stat| stat.anonymous + stat.shared_memory);
    let all = all + cgroup.swapped().unwrap_or(0);
    process::own(pid) >= all / 2
}
