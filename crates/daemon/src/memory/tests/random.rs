// SPDX-License-Identifier: GPL-2.0
//! Random orders of all that can be done: each reservation is protected while it lives, no more is reserved than can
//! be, and everything is as it was before when nothing is reserved any more.

use andante_memory::sysctl::MOVES_LOCKED;

use super::*;

const SEQUENCES: u64 = 1000;
const STEPS: u64 = 12;
/// Leaves may be removed; the last is a user's.
const CLASSES: [(&str, u32); 5] = [("/a", 0), ("/a/b", 0), ("/a/c", 0), ("/d", 0), ("/e", 1000)];
const LEAVES: [&str; 4] = ["/a/b", "/a/c", "/d", "/e"];

/// A small generator of its own, so that a failure can be looked at again.
struct Draw(u64);

impl Draw {
    fn below(&mut self, count: u64) -> u64 {
        self.0 = (self.0)
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % count
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }
}

/// The machine, and what it should be like.
struct Course {
    memory: Memory,
    /// `memory.min` as somebody else has set it [bytes].
    theirs: BTreeMap<&'static str, u64>,
    /// Reservations that live [bytes].
    ours: BTreeMap<&'static str, u64>,
    changes: u64,
}

impl Course {
    fn new() -> Self {
        Self {
            memory: Memory::with_keeper(&CLASSES, &["sh", "-c", "exec cat >/dev/null"]),
            theirs: CLASSES.map(|(class, _)| (class, 0)).into(),
            ours: BTreeMap::new(),
            changes: 0,
        }
    }

    fn step(&mut self, draw: &mut Draw) {
        match draw.below(12) {
            0..=4 => self.reserve(draw),
            5 | 6 => {
                let class = draw.of(&CLASSES).0;
                let released = self.memory.books.release(ROOT, class);
                assert_eq!(released.is_some(), self.ours.remove(class).is_some());
            }
            7 => self.replace(draw.of(&LEAVES)),
            8 | 9 => self.somebody_sets(draw.of(&CLASSES).0),
            10 => self.memory.look(),
            _ => self.kill(),
        }
    }

    fn reserve(&mut self, draw: &mut Draw) {
        let class = draw.of(&CLASSES).0;
        let caller = if class == "/e" && draw.below(2) == 0 {
            USER
        } else {
            ROOT
        };
        let mib = draw.of(&[1, 50, 120, 300, 701]);
        match self.memory.class(caller, class, mib) {
            Reply::MemoryReserved(reserved) => {
                assert_eq!(reserved.bytes, mib * MIB);
                self.ours.insert(class, mib * MIB);
            }
            Reply::MemoryRefused(_) => {}
            // Root's reservation is not the user's.
            Reply::Error(fault) => assert_eq!(fault.kind, FaultKind::NotPermitted),
            other => panic!("{other:?}"),
        }
    }

    /// Another class of the same name.
    fn replace(&mut self, class: &'static str) {
        let uid = CLASSES.iter().find(|(name, _)| *name == class).unwrap().1;
        self.memory.world.host.remove_class(class);
        fs::remove_dir_all(self.memory.file(class, "")).unwrap();
        self.memory.look();
        self.memory.make(class, uid);
        self.theirs.insert(class, 0);
        self.ours.remove(class);
    }

    fn somebody_sets(&mut self, class: &'static str) {
        // No amount that we might have set.
        self.changes += 1;
        let bytes = MIB / 2 + self.changes * machine::page();
        fs::write(self.memory.file(class, "memory.min"), bytes.to_string()).unwrap();
        self.theirs.insert(class, bytes);
        self.memory.look();
    }

    /// The daemon is killed, and another starts.
    fn kill(&mut self) {
        self.memory.start_again();
        self.ours.clear();
        let seen = self.memory.books.seen().unwrap();
        assert!(seen.reservations.is_empty());
    }

    fn check(&mut self) {
        let seen = self.memory.books.seen().unwrap();
        let found = seen
            .reservations
            .iter()
            .map(|one| (one.class.as_str(), one.bytes));
        let found: BTreeMap<&str, u64> = found.collect();
        assert_eq!(found, self.ours);
        assert!(seen.reserved <= 700 * MIB);
        for (class, theirs) in &self.theirs {
            let text = fs::read_to_string(self.memory.file(class, "memory.min")).unwrap();
            let is: u64 = text.parse().unwrap();
            let ours = self.ours.get(class).copied().unwrap_or(0);
            let below = self
                .ours
                .keys()
                .any(|one| one.starts_with(&format!("{class}/")));
            match (ours, below) {
                (0, false) => assert_eq!(is, *theirs, "{class}"),
                _ => assert!(is >= ours.max(*theirs), "{class}: {is}"),
            }
        }
        let sysctl = Sysctl::at(self.memory.folder.path());
        assert_eq!(sysctl.is_right(MOVES_LOCKED), !self.ours.is_empty());
    }
}

#[test]
fn a_thousand_random_sequences_leave_everything_as_it_was() {
    for seed in 0..SEQUENCES {
        let mut draw = Draw(seed);
        let mut course = Course::new();
        let moves_locked = course.memory.folder.path().join(MOVES_LOCKED);
        fs::write(moves_locked, "1").unwrap();
        for step in 0..STEPS {
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                course.step(&mut draw);
                course.check();
            }));
            assert!(done.is_ok(), "sequence {seed}, step {step}: see above");
        }
        for class in LEAVES.iter().chain(&["/a"]) {
            course.memory.books.release(ROOT, class);
        }
        course.ours.clear();
        course.check();
        assert!(!course.memory.folder.path().join("memory.json").exists());
    }
}
