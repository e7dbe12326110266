// SPDX-License-Identifier: GPL-2.0
//! No program within its reservation is killed when no memory is left.
//!
//! The kernel kills the process with most points: the pages that it has in memory and in the swap, and its `oom_score_adj` in
//! thousandths of all memory and swap [`mm/oom_kill.c`, proc(5)]. Protected memory counts like all other there,
//! so that a film with more memory than each of a hundred small programs is killed for them. So what is reserved
//! for a class does not count for its processes:
//!
//! ```text
//!     oom_score_adj  =  former - 1000 R / (memory + swap)                  class within its reservation of R bytes
//!     oom_score_adj  =  former - 1000 R (own / own of all) / (memory + swap)       class beyond it
//! ```
//!
//! Within it no process has more than R, so none has a point. Beyond it all processes of the class together have the
//! points of what is beyond. A value that somebody else sets is what was there before from then on. A child has
//! its parent's value, which is taken back from it as from the parent.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::MemoryError;
use crate::{kept, process};

/// Below this the kernel never kills a process, which is nothing that a reservation promises.
const LEAST: i32 = -999;

/// A process, as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Former {
    /// When it was started: another one of that number was started at another time.
    started: u64,
    /// Its `oom_score_adj`.
    former: i32,
    /// The one that we have set.
    set: i32,
}

type Processes = BTreeMap<i32, Former>;

/// Processes whose reservations do not count.
#[derive(Debug)]
pub struct Spared {
    proc: PathBuf,
    file: PathBuf,
    processes: Processes,
}

impl Spared {
    /// Those that another has left in the file beside `kept` are known, and spared no more with the next [`Self::spare`].
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn open(kept: &Path) -> Result<Self, MemoryError> {
        Self::at(Path::new("/proc"), kept)
    }

    fn at(proc: &Path, kept: &Path) -> Result<Self, MemoryError> {
        let file = kept.with_extension("oom.json");
        Ok(Self {
            proc: proc.to_owned(),
            processes: kept::read(&file)?,
            file,
        })
    }

    /// From now on so many thousandths of all memory count less for each of these processes, and no less for any
    /// other.
    ///
    /// # Errors
    /// The former values cannot be written down; then nothing is changed.
    pub fn spare(&mut self, wanted: &BTreeMap<i32, u32>) -> Result<(), MemoryError> {
        let mut now = Processes::new();
        for (pid, thousandths) in wanted {
            if let Some(former) = self.former(*pid) {
                let least = LEAST.min(former.former);
                let set = former
                    .former
                    .saturating_sub_unsigned(*thousandths)
                    .max(least);
                now.insert(*pid, Former { set, ..former });
            }
        }
        if now == self.processes {
            return Ok(());
        }
        kept::write_both(&self.file, &self.processes, &now)?;
        for (pid, former) in &self.processes {
            if !now.contains_key(pid) && self.is_as_set(*pid, former) {
                self.write(*pid, former.former);
            }
        }
        for (pid, former) in &now {
            if self.read(*pid) != Some(former.set) {
                self.write(*pid, former.set);
            }
        }
        self.processes = now;
        kept::write(&self.file, &self.processes)
    }

    /// How a process was before we have changed it; none: it is gone.
    fn former(&self, pid: i32) -> Option<Former> {
        let started = process::started(&self.proc, pid)?;
        let is = self.read(pid)?;
        let known = self
            .processes
            .get(&pid)
            .filter(|known| known.started == started);
        // Of a new one with a value that we have set, it is its parent's.
        let same = || {
            self.processes
                .values()
                .find(|one| one.set == is && one.former != is)
        };
        let former = match known {
            Some(known) if known.set == is => known.former,
            Some(_) => is,
            None => same().map_or(is, |parent| parent.former),
        };
        Some(Former {
            started,
            former,
            set: is,
        })
    }

    fn is_as_set(&self, pid: i32, former: &Former) -> bool {
        process::started(&self.proc, pid) == Some(former.started)
            && self.read(pid) == Some(former.set)
    }

    fn adjustment(&self, pid: i32) -> PathBuf {
        self.proc.join(format!("{pid}/oom_score_adj"))
    }

    fn read(&self, pid: i32) -> Option<i32> {
        let text = fs::read_to_string(self.adjustment(pid)).ok()?;
        text.trim().parse().ok()
    }

    /// It may have ended; without the right to make somebody safer it stays as it was.
    fn write(&self, pid: i32, value: i32) {
        let _ = fs::write(self.adjustment(pid), value.to_string());
    }
}

/// Puts back what a process has left that is no more, if anything.
///
/// # Errors
/// The file cannot be read or removed.
pub fn restore(kept: &Path) -> Result<(), MemoryError> {
    Spared::open(kept)?.spare(&BTreeMap::new())
}

/// The part that does not count for each process of a class [thousandths of `all` bytes]; the processes have so much memory
/// [bytes].
pub fn thousandths(reserved: u64, all: u64, own: &[u64]) -> Vec<u32> {
    let sum: u64 = own.iter().sum();
    let part = |bytes: u128| {
        u32::try_from((bytes * 1000).div_ceil(u128::from(all.max(1)))).unwrap_or(1000)
    };
    let of = |own: &u64| match sum <= reserved {
        true => part(u128::from(reserved)),
        false => part(u128::from(reserved) * u128::from(*own) / u128::from(sum)),
    };
    own.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fake(tempfile::TempDir);

    impl Fake {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn start(&self, pid: i32, started: u64, adjustment: i32) {
            let folder = self.0.path().join(pid.to_string());
            fs::create_dir_all(&folder).unwrap();
            let stat = format!("{pid} (a) b) S 1 {} {started} 0\n", "0 ".repeat(16).trim());
            fs::write(folder.join("stat"), stat).unwrap();
            self.set(pid, adjustment);
        }

        fn end(&self, pid: i32) {
            fs::remove_dir_all(self.0.path().join(pid.to_string())).unwrap();
        }

        fn set(&self, pid: i32, adjustment: i32) {
            fs::write(
                self.0.path().join(format!("{pid}/oom_score_adj")),
                adjustment.to_string(),
            )
            .unwrap();
        }

        fn is(&self, pid: i32) -> i32 {
            self.open().read(pid).unwrap()
        }

        fn open(&self) -> Spared {
            Spared::at(self.0.path(), &self.0.path().join("memory.json")).unwrap()
        }
    }

    #[test]
    fn a_process_is_spared_and_then_as_it_was() {
        let fake = Fake::new();
        fake.start(7, 70, 200);
        let mut spared = fake.open();
        spared.spare(&[(7, 150), (8, 150)].into()).unwrap();
        assert_eq!(fake.is(7), 50);
        spared.spare(&[(7, 100)].into()).unwrap();
        assert_eq!(fake.is(7), 100);
        // Its child has its value, and the child of that too.
        fake.start(9, 90, 100);
        spared.spare(&[(7, 100), (9, 100)].into()).unwrap();
        assert_eq!((fake.is(7), fake.is(9)), (100, 100));
        drop(spared); // killed
        fake.open().spare(&BTreeMap::new()).unwrap();
        assert_eq!((fake.is(7), fake.is(9)), (200, 200));
        assert_eq!(
            fs::read_dir(fake.0.path()).unwrap().count(),
            2,
            "no file is left"
        );
    }

    #[test]
    fn what_somebody_else_sets_is_theirs() {
        let fake = Fake::new();
        fake.start(7, 70, 0);
        fake.start(8, 80, 0);
        let mut spared = fake.open();
        spared.spare(&[(7, 100), (8, 100)].into()).unwrap();
        fake.set(7, 300);
        spared.spare(&[(7, 100), (8, 100)].into()).unwrap();
        assert_eq!((fake.is(7), fake.is(8)), (200, -100));
        // Another process of the same number.
        fake.end(8);
        fake.start(8, 81, 5);
        fake.set(7, -1);
        spared.spare(&BTreeMap::new()).unwrap();
        assert_eq!((fake.is(7), fake.is(8)), (-1, 5));
    }

    #[test]
    fn nobody_is_beyond_being_killed_who_was_not() {
        let fake = Fake::new();
        fake.start(7, 70, -900);
        fake.start(8, 80, -1000);
        let mut spared = fake.open();
        spared.spare(&[(7, 500), (8, 500)].into()).unwrap();
        assert_eq!((fake.is(7), fake.is(8)), (-999, -1000));
    }

    #[test]
    fn the_reservation_does_not_count_and_the_rest_does() {
        assert_eq!(thousandths(100, 1000, &[60, 40]), [100, 100]);
        assert_eq!(thousandths(100, 1000, &[150, 50]), [75, 25]);
        assert_eq!(thousandths(1, 100_000, &[1]), [1], "rounded up");
        assert_eq!(thousandths(100, 0, &[0]), [100_000]);
        assert!(thousandths(1, 1, &[]).is_empty());
    }
}
