// SPDX-License-Identifier: GPL-2.0
//! What is to be taken from whom, so that what is reserved is there when it is needed. Decisions alone: nothing here
//! knows a file.
//!
//! A reservation of R bytes of which u are used lends R - u to everybody. The kernel gives it back on demand, but makes
//! its holder wait for the pages that it takes from others then. The part that is not lent is therefore kept free ahead
//! of that need:
//!
//! ```text
//!     goal  =  floor + sum of (1 - lend) (R - u)        free memory; below the floor the kernel itself takes some
//!     need  =  goal - free
//! ```
//!
//! What is needed comes from those who use more than is reserved for them; others have no reservation, so all that they
//! use is more. Inside a class that is over, what costs least to bring back goes first (PSAP: private, shared,
//! anonymous):
//! 1. pages of files that it alone has read: they are read again from where they are,
//! 2. what is held for it of files that others have read first: others may have them in memory still,
//! 3. programs' own memory, which has to be written before it is taken.
//!
//! The first is taken whole, for nothing that others have is cheaper; of the rest everybody who is over gives in
//! proportion to what he has over.

use std::time::Duration;

/// Between two looks while there is not plenty of free memory. What is kept free must last until the next look, and a
/// class that takes memory as fast as one CPU can clear pages under the virtual machine's clock, 0.5 MB in a
/// millisecond, takes 25 MB in this time; half of it would cost twice the looks, twice of it would need twice as
/// much kept free.
pub const LEAST_PAUSE: Duration = Duration::from_millis(50);
/// Between two looks at most: what is shown is no older.
pub const MOST_PAUSE: Duration = Duration::from_secs(1);
/// A CPU fills no more than so much memory in a millisecond [bytes]: 8 GB/s, what one writes to memory. It decides only
/// how long nobody has to look.
const FILLED_BY_CPU_A_MS: u64 = 8_000_000;

/// A class with a reservation. All amounts are in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Class {
    /// What is reserved.
    pub reserved: u64,
    /// Of what is reserved and unused, the part that is lent [1/1000].
    pub lend_per_mille: u32,
    /// What it uses of its own.
    pub used: u64,
    /// Of that, pages of files that can be taken: not locked, no shared memory.
    pub files: u64,
    /// What is held for it of files that others have read.
    pub held: u64,
}

impl Class {
    /// What is kept free for it.
    pub fn kept_free(&self) -> u64 {
        andante_admission::memory::part(self.unused(), 1000 - self.lend_per_mille.min(1000))
    }

    /// What it could still take of its reservation.
    pub fn unused(&self) -> u64 {
        self.reserved.saturating_sub(self.used + self.held)
    }

    /// What others use of its reservation at most.
    pub fn lent(&self) -> u64 {
        self.unused() - self.kept_free()
    }

    /// What it has beyond its reservation.
    pub fn over(&self) -> u64 {
        (self.used + self.held).saturating_sub(self.reserved)
    }
}

/// The machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Now {
    /// Memory that nobody uses.
    pub free: u64,
    /// Below so much the kernel itself takes some.
    pub floor: u64,
    /// All of it.
    pub total: u64,
    /// CPUs, each of which may fill memory.
    pub cpus: u32,
}

/// What is to be taken from a class that is over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Take {
    /// Pages of files that it alone has read.
    pub files: u64,
    /// What is held for it.
    pub held: u64,
    /// Programs' own memory.
    pub anonymous: u64,
}

/// What is to be done now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// From each class, in their order.
    pub classes: Vec<Take>,
    /// From everybody, as the kernel chooses among those who are over.
    pub everybody: u64,
    /// When to look again.
    pub pause: Duration,
}

/// Decides.
pub fn plan(now: Now, classes: &[Class]) -> Plan {
    let kept_free: u64 = classes.iter().map(Class::kept_free).sum();
    let goal = now.floor + kept_free;
    // The kernel begins to take some at the floor, and as it chooses: what is cheap to give goes before that.
    let tight = now.free < goal + now.floor;
    let mut takes = vec![Take::default(); classes.len()];
    let mut need = goal.saturating_sub(now.free);
    if tight {
        for (take, class) in takes.iter_mut().zip(classes) {
            take.files = class.over().min(class.files);
            need = need.saturating_sub(take.files);
        }
    }
    let still_over = |take: &Take, class: &Class| class.over() - take.files;
    let reserved_over: u64 = takes
        .iter()
        .zip(classes)
        .map(|(t, c)| still_over(t, c))
        .sum();
    let used: u64 = classes.iter().map(|class| class.used + class.held).sum();
    let by_others = now.total.saturating_sub(now.free + used);
    let over = reserved_over + by_others;
    let mut from_classes = 0;
    for (take, class) in takes.iter_mut().zip(classes) {
        let own = in_proportion(need, still_over(take, class), over);
        take.held = own.min(class.held);
        take.anonymous = own - take.held;
        from_classes += own;
    }
    Plan {
        classes: takes,
        everybody: need.saturating_sub(from_classes),
        pause: pause(now, goal),
    }
}

/// Of an amount, the part of one that has so much of all.
fn in_proportion(amount: u64, has: u64, all: u64) -> u64 {
    let part = u128::from(amount) * u128::from(has) / u128::from(all.max(1));
    u64::try_from(part).unwrap_or(u64::MAX).min(has)
}

/// Nobody has to look before what is free beyond the goal can be gone.
fn pause(now: Now, goal: u64) -> Duration {
    let spare = now.free.saturating_sub(goal + now.floor);
    let ms = spare / (FILLED_BY_CPU_A_MS * u64::from(now.cpus.max(1)));
    Duration::from_millis(ms).clamp(LEAST_PAUSE, MOST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn class(reserved: u64, lend: u32, used: u64) -> Class {
        Class {
            reserved: reserved * MIB,
            lend_per_mille: lend,
            used: used * MIB,
            ..Class::default()
        }
    }

    fn now(free: u64) -> Now {
        Now {
            free: free * MIB,
            floor: 12 * MIB,
            total: 512 * MIB,
            cpus: 1,
        }
    }

    #[test]
    fn what_is_not_lent_is_kept_free() {
        let none_lent = [class(100, 0, 20)];
        let plan_ = plan(now(30), &none_lent);
        assert_eq!(plan_.everybody, (12 + 80 - 30) * MIB);
        assert_eq!(plan_.classes, [Take::default()], "never from a reservation");
        assert_eq!(plan_.pause, LEAST_PAUSE);
        assert_eq!(plan(now(92), &none_lent).everybody, 0);
        assert_eq!(plan(now(30), &[class(100, 1000, 20)]).everybody, 0);
        assert_eq!(plan(now(30), &[class(100, 500, 20)]).everybody, 22 * MIB);
    }

    #[test]
    fn what_is_used_needs_nothing_kept_free() {
        assert_eq!(plan(now(12), &[class(100, 0, 100)]).everybody, 0);
        assert_eq!(class(100, 0, 120).kept_free(), 0);
        let held = Class {
            held: 30 * MIB,
            ..class(100, 0, 60)
        };
        assert_eq!(held.unused(), 10 * MIB);
        assert_eq!(held.lent(), 0);
    }

    #[test]
    fn a_class_that_is_over_gives_files_first_and_its_own_memory_last() {
        let over = Class {
            files: 15 * MIB,
            held: 10 * MIB,
            ..class(100, 1000, 130)
        };
        let waiting = class(60, 0, 0);
        let plan_ = plan(now(12), &[over, waiting]);
        let [take, none] = plan_.classes[..] else {
            panic!("two classes");
        };
        assert_eq!(take.files, 15 * MIB, "all of what is cheap");
        let all = take.files + take.held + take.anonymous + plan_.everybody;
        assert_eq!(all, 60 * MIB);
        // 25 of 385 MiB that are over are its own.
        assert!(take.held > 0 && take.held <= 3 * MIB && take.anonymous == 0);
        assert_eq!(none, Take::default());
    }

    #[test]
    fn with_plenty_of_memory_nothing_is_taken_and_nobody_looks_often() {
        let over = Class {
            files: 15 * MIB,
            ..class(100, 0, 130)
        };
        let rich = Now {
            total: 16384 * MIB,
            ..now(12_000)
        };
        let plan_ = plan(rich, &[over]);
        assert_eq!(plan_.classes, [Take::default()]);
        assert_eq!((plan_.everybody, plan_.pause), (0, MOST_PAUSE));
        let less = plan(Now { cpus: 8, ..rich }, &[over]).pause;
        assert!(less > LEAST_PAUSE && less < MOST_PAUSE);
    }

    #[test]
    fn whatever_there_is_no_more_is_taken_than_is_over() {
        // A small generator of its own, so that a failure can be looked at again.
        let mut seed = 1u64;
        let mut draw = |most: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % (most + 1)
        };
        for _ in 0..20_000 {
            let count = draw(4);
            let classes: Vec<_> = (0..count)
                .map(|_| Class {
                    reserved: draw(200) * MIB,
                    lend_per_mille: draw(1000) as u32,
                    used: draw(200) * MIB,
                    files: draw(60) * MIB,
                    held: draw(40) * MIB,
                })
                .collect();
            let now = now(draw(300));
            let plan = plan(now, &classes);
            for (take, class) in plan.classes.iter().zip(&classes) {
                assert!(take.files + take.held + take.anonymous <= class.over());
                assert!(take.files <= class.files && take.held <= class.held);
            }
            let kept: u64 = classes.iter().map(Class::kept_free).sum();
            assert!(plan.everybody <= (now.floor + kept).saturating_sub(now.free));
        }
    }
}
