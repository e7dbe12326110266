// SPDX-License-Identifier: GPL-2.0
//! The order of `core/disk.h`: by the classes of requests, their weights and contracts, and where the arm is.
//!
//! A class is a cgroup. Which classes there are the requests tell: each comes with its class and all above it, and with
//! their weights ([`Paths`]). Settings of a class on this disk alone ([`Settings`]) is in a place that
//! others write to.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use andante_core_sys::{Disk, DiskMode, DiskModel, Leaf, Manner};

use crate::order::{Order, Request, Tag, What};

/// A class that a request is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Step {
    /// Its cgroup.
    pub cgroup: u64,
    /// Among its siblings; 0: it is idle.
    pub weight: u32,
}

/// Classes inside one another that a request is told of, at most.
pub const MOST_STEPS: usize = 16;

/// Tells of the classes that a request is in.
pub trait Paths {
    /// Those of a request that has come, from its own class upwards, without the root's: their number.
    fn path(&self, tag: Tag, steps: &mut [Step; MOST_STEPS]) -> usize;
}

/// A part of the disk that a class is promised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Promise {
    /// So much in each period [bytes].
    pub bytes: u32,
    /// The period, within which it is read or written [ns].
    pub period_ns: u64,
}

/// A class's settings on this disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Setting {
    /// Its part of the disk, before others.
    pub promise: Option<Promise>,
    /// A weight other than that of the CPU.
    pub weight: Option<u32>,
}

/// The settings of classes on a disk, by cgroup. Commands write them, and the order reads them.
#[derive(Debug, Default)]
pub struct Settings {
    by_cgroup: Mutex<HashMap<u64, Setting>>,
    /// Counts changes.
    changes: AtomicU64,
}

impl Settings {
    /// Sets all of them, in the place of those that there were.
    pub fn set(&self, all: HashMap<u64, Setting>) {
        *self
            .by_cgroup
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = all;
        self.changes.fetch_add(1, Ordering::Release);
    }
}

/// The weights and what is above a class are looked at again after so long [ns]: a tick of the kernel's slowest usual
/// clock, as a scheduler of the kernel does.
const LOOK_NS: u64 = 4_000_000;

/// A class that is known.
#[derive(Debug, Clone, Copy)]
struct Known {
    leaf: Leaf,
    weight: u32,
    /// When it was looked at last [ns].
    looked_ns: u64,
}

/// Cello's order.
pub struct Cello<P> {
    disk: Disk,
    paths: P,
    settings: Arc<Settings>,
    /// The settings as of so many changes.
    set: HashMap<u64, Setting>,
    set_at: u64,
    known: HashMap<u64, Known>,
}

impl<P: Paths> Cello<P> {
    /// For a disk of that kind, with shares of its time or of bytes.
    pub fn new(model: &DiskModel, mode: DiskMode, paths: P, settings: Arc<Settings>) -> Self {
        Self {
            disk: Disk::new(model, mode),
            paths,
            settings,
            set: HashMap::new(),
            set_at: 0,
            // As many as the core knows, so that no memory is asked for while it is short.
            known: HashMap::with_capacity(Disk::CLASSES as usize),
        }
    }

    /// The leaf of the request's class.
    fn leaf(&mut self, tag: Tag, class: u64, now_ns: u64) -> Leaf {
        let changes = self.settings.changes.load(Ordering::Acquire);
        if changes != self.set_at {
            self.take_settings(changes, now_ns);
        }
        if let Some(known) = self.known.get(&class)
            && now_ns < known.looked_ns + LOOK_NS
        {
            return known.leaf;
        }
        let mut steps = [Step::default(); MOST_STEPS];
        let count = self.paths.path(tag, &mut steps);
        let mut leaf = Disk::ROOT;
        for step in steps[..count].iter().rev() {
            leaf = self.below(leaf, step, now_ns);
        }
        leaf
    }

    /// The class below another; that one, if there is no room.
    fn below(&mut self, above: Leaf, step: &Step, now_ns: u64) -> Leaf {
        let setting = self.set.get(&step.cgroup).copied().unwrap_or_default();
        let weight = setting.weight.unwrap_or(step.weight);
        if let Some(known) = self.known.get_mut(&step.cgroup) {
            if known.weight != weight {
                self.disk.weigh(known.leaf, weight);
            }
            known.weight = weight;
            known.looked_ns = now_ns;
            return known.leaf;
        }
        let made = self.disk.create(above, weight.max(1), Manner::ByUse);
        let made = made.or_else(|| {
            self.forget_unused(now_ns);
            self.disk.create(above, weight.max(1), Manner::ByUse)
        });
        let Some(leaf) = made else { return above };
        if weight == 0 {
            self.disk.weigh(leaf, 0);
        }
        self.promise(leaf, &setting, now_ns);
        let known = Known {
            leaf,
            weight,
            looked_ns: now_ns,
        };
        self.known.insert(step.cgroup, known);
        leaf
    }

    /// Makes room: classes that have been silent leave, and come again when they have something.
    fn forget_unused(&mut self, now_ns: u64) {
        let (disk, known) = (&mut self.disk, &mut self.known);
        known.retain(|_, class| now_ns < class.looked_ns + LOOK_NS || !disk.remove(class.leaf));
    }

    fn promise(&mut self, leaf: Leaf, setting: &Setting, now_ns: u64) {
        let (bytes, period_ns) = (setting.promise).map_or((0, 0), |p| (p.bytes, p.period_ns));
        self.disk.promise(leaf, bytes, period_ns, now_ns);
    }

    /// Takes settings that have changed.
    fn take_settings(&mut self, changes: u64, now_ns: u64) {
        let by_cgroup = self.settings.by_cgroup.lock();
        self.set
            .clone_from(&by_cgroup.unwrap_or_else(PoisonError::into_inner));
        self.set_at = changes;
        for (cgroup, known) in self.known.clone() {
            let setting = self.set.get(&cgroup).copied().unwrap_or_default();
            self.promise(known.leaf, &setting, now_ns);
        }
        // Weights are looked at with the next request of each.
        for known in self.known.values_mut() {
            known.looked_ns = 0;
        }
    }
}

impl<P: Paths> Order for Cello<P> {
    fn arrive(&mut self, request: &Request, now_ns: u64) {
        let leaf = match request.class {
            0 => Disk::ROOT,
            class => self.leaf(request.tag, class, now_ns),
        };
        // The arm need not move for those that have no bytes to read or write.
        let sectors = match request.what {
            What::Read | What::Write => request.sectors,
            What::Flush | What::Discard | What::Zeroes => 0,
        };
        let index = u32::from(request.tag.0) + 1;
        self.disk
            .arrive(index, leaf, request.sector, sectors, now_ns);
    }

    fn next(&mut self, now_ns: u64) -> Option<Tag> {
        let index = self.disk.next(now_ns)?;
        u16::try_from(index - 1).ok().map(Tag)
    }

    fn done(&mut self, tag: Tag, now_ns: u64) {
        self.disk.done(u32::from(tag.0) + 1, now_ns);
    }

    fn ask_again_ns(&self) -> Option<u64> {
        self.disk.waits_until_ns()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;

    const MS: u64 = 1_000_000;

    /// By tag, the class of each request first.
    #[derive(Clone, Default)]
    struct Told(Rc<RefCell<HashMap<u16, Vec<Step>>>>);

    impl Paths for Told {
        fn path(&self, tag: Tag, steps: &mut [Step; MOST_STEPS]) -> usize {
            let told = self.0.borrow();
            let path = &told[&tag.0];
            steps[..path.len()].copy_from_slice(path);
            path.len()
        }
    }

    fn step(cgroup: u64, weight: u32) -> Step {
        Step { cgroup, weight }
    }

    struct Machine {
        told: Told,
        settings: Arc<Settings>,
        cello: Cello<Told>,
        now_ns: u64,
    }

    impl Machine {
        fn new() -> Self {
            let (told, settings) = (Told::default(), Arc::<Settings>::default());
            let model = DiskModel::platters(1 << 25, 125_000_000, MS, 9 * MS, 8_333_333);
            let cello = Cello::new(&model, DiskMode::Time, told.clone(), Arc::clone(&settings));
            Self {
                told,
                settings,
                cello,
                now_ns: 1,
            }
        }

        fn asks(&mut self, tag: u16, path: &[Step], sector: u64) {
            self.told.0.borrow_mut().insert(tag, path.to_vec());
            let request = Request {
                tag: Tag(tag),
                class: path.first().map_or(0, |step| step.cgroup),
                ioprio: 0,
                what: What::Read,
                fua: false,
                keep_place: false,
                sector,
                sectors: 128,
            };
            self.cello.arrive(&request, self.now_ns);
        }

        /// The one that is served next, in a millisecond, whatever is waited for before.
        fn serves(&mut self) -> u16 {
            loop {
                if let Some(tag) = self.cello.next(self.now_ns) {
                    self.now_ns += MS;
                    self.cello.done(tag, self.now_ns);
                    return tag.0;
                }
                self.now_ns = self.cello.ask_again_ns().expect("one waits");
            }
        }

        /// Of requests of two classes that always have two each, so many of the first one's of a hundred are served.
        fn share(&mut self, paths: [&[Step]; 2]) -> u32 {
            for tag in 0..4 {
                self.asks(tag, paths[usize::from(tag) / 2], u64::from(tag) << 20);
            }
            let mut first = 0;
            for n in 0..7000 {
                let tag = self.serves();
                first += u32::from(tag < 2 && n >= 2000);
                self.asks(tag, paths[usize::from(tag) / 2], (n * 7919 % 16_384) * 1024);
            }
            for _ in 0..4 {
                self.serves();
            }
            first / 50
        }
    }

    #[test]
    fn classes_have_the_weights_that_come_with_their_requests() {
        let mut machine = Machine::new();
        let (a, b) = (step(10, 300), step(20, 100));
        assert!((73..=77).contains(&machine.share([&[a], &[b]])));
        let a = step(10, 100);
        assert!(
            (48..=52).contains(&machine.share([&[a], &[b]])),
            "it has changed"
        );
        // Below one of them, by which it has a quarter.
        let (inner, above) = (step(11, 5000), step(10, 100));
        let other = step(20, 300);
        assert!((23..=27).contains(&machine.share([&[inner, above], &[other]])));
    }

    #[test]
    fn what_is_set_for_a_class_holds_from_then_on() {
        let mut machine = Machine::new();
        let (a, b) = (step(10, 100), step(20, 100));
        let heavy = Setting {
            weight: Some(300),
            ..Setting::default()
        };
        machine.settings.set(HashMap::from([(10, heavy)]));
        assert!((73..=77).contains(&machine.share([&[a], &[b]])));
        machine.settings.set(HashMap::new());
        assert!((48..=52).contains(&machine.share([&[a], &[b]])));
    }

    #[test]
    fn a_promise_goes_first() {
        let mut machine = Machine::new();
        let (film, copy) = (step(10, 1), step(20, 10_000));
        let promised = Setting {
            promise: Some(Promise {
                bytes: 65_536,
                period_ns: 20 * MS,
            }),
            ..Setting::default()
        };
        machine.settings.set(HashMap::from([(10, promised)]));
        for tag in 1..9 {
            machine.asks(tag, &[copy], u64::from(tag) << 20);
        }
        machine.serves();
        machine.asks(9, &[film], 1 << 24);
        assert_eq!(machine.serves(), 9);
        // Taken back, it has its weight.
        machine.settings.set(HashMap::new());
        machine.asks(9, &[film], 1 << 20);
        machine.serves();
        machine.asks(10, &[film], 2 << 20);
        assert_ne!(machine.serves(), 10);
    }

    /// More than the core has room for: those that are silent make room.
    #[test]
    fn there_is_room_for_however_many_classes_come_one_after_the_other() {
        let mut machine = Machine::new();
        for n in 0..5_000 {
            machine.asks(1, &[step(100 + n, 100), step(50, 100)], n);
            machine.serves();
            machine.now_ns += MS;
        }
        assert!(
            machine.cello.known.contains_key(&5_099),
            "it has a class of its own"
        );
        assert!(machine.cello.known.len() <= Disk::CLASSES as usize);
    }
}
