// SPDX-License-Identifier: GPL-2.0
//! How much is to be taken from which class, so that reserved memory is there when it is needed. Decisions alone: nothing here
//! knows a file.
//!
//! A reservation of R bytes of which u are used lends R - u to everybody. The kernel gives it back on demand, but makes
//! its holder wait for the pages that it takes from others then. The part that is not lent is therefore kept free ahead
//! of that need:
//!
//! ```text
//!     kept  =  sum of (1 - lend) (R - u)
//!     need  =  kept + floor - free, if anything is kept
//! ```
//!
//! Below the floor the kernel itself takes some, which is enough where all is lent: to do that as well made a class that
//! takes what it had lent wait for 560 ms and not for 370, on a machine of one CPU, for both want it.
//!
//! A program that asks for a page while none is free waits all the same. So those without a reservation have a limit as soon
//! as the rest of free memory may be used up before the next look: they may fill it down to kept + floor, and one that
//! wants more gives pages of its own for that ([`crate::firewall`]).
//!
//! The need is met by those who use more than is reserved for them; others have no reservation, so all that they
//! use is more. The one with most gives first, until all that give have the same: so all have the largest equal share that
//! leaves what is needed (max-min fairness), and a small program loses nothing to those who want much.
//!
//! Inside a class that is over, what costs least to bring back goes first (PSAP: private, shared, anonymous):
//! 1. pages of files that it alone has read: they are read again from where they are,
//! 2. what is held for it of files that others have read first: others may have them in memory still,
//! 3. programs' own memory, which has to be written before it is taken.
//!
//! The first is taken whole, for nothing that others have is cheaper.

use std::time::Duration;

/// Between two looks while there is not plenty of free memory. Memory that is kept free must last until the next look, and a
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
    /// The reservation.
    pub reserved: u64,
    /// Of what is reserved and unused, the part that is lent [1/1000].
    pub lend_per_mille: u32,
    /// Its own memory, in use.
    pub used: u64,
    /// Of that, pages of files that can be taken: not locked, no shared memory.
    pub files: u64,
    /// Pages of files that others have read, held for it.
    pub held: u64,
}

impl Class {
    /// The amount that is kept free for it.
    pub fn kept_free(&self) -> u64 {
        andante_admission::memory::part(self.unused(), 1000 - self.lend_per_mille.min(1000))
    }

    /// The rest of its reservation, which it could still take.
    pub fn unused(&self) -> u64 {
        self.reserved.saturating_sub(self.used + self.held)
    }

    /// The most that others use of its reservation.
    pub fn lent(&self) -> u64 {
        self.unused() - self.kept_free()
    }

    /// The amount that it has beyond its reservation.
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
    /// Room in the swap.
    pub swap: u64,
    /// CPUs, each of which may fill memory.
    pub cpus: u32,
}

/// The amounts to take from a class that is over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Take {
    /// Pages of files that it alone has read.
    pub files: u64,
    /// Pages that are held for it.
    pub held: u64,
    /// Programs' own memory.
    pub anonymous: u64,
}

/// The work that is to be done now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// From each class, in their order.
    pub classes: Vec<Take>,
    /// From those without a reservation, in their order.
    pub others: Vec<u64>,
    /// When to look again.
    pub pause: Duration,
}

impl Plan {
    /// The amount that all together are to give.
    pub fn takes(&self) -> u64 {
        let of = |take: &Take| take.files + take.held + take.anonymous;
        self.classes.iter().map(of).sum::<u64>() + self.others.iter().sum::<u64>()
    }
}

/// Decides. Others are those without a reservation, and what each uses [bytes].
pub fn plan(now: Now, classes: &[Class], others: &[u64]) -> Plan {
    let mut takes = vec![Take::default(); classes.len()];
    let mut need = need(&now, classes);
    if is_tight(&now, classes) {
        for (take, class) in takes.iter_mut().zip(classes) {
            take.files = class.over().min(class.files);
            need = need.saturating_sub(take.files);
        }
    }
    let still = |(take, class): (&Take, &Class)| class.over() - take.files;
    let mut over: Vec<u64> = takes.iter().zip(classes).map(still).collect();
    over.extend(others);
    let level = level(&over, need);
    let gives = over.iter().map(|over| over.saturating_sub(level));
    let mut gives: Vec<u64> = gives.collect();
    let others = gives.split_off(classes.len());
    for ((take, class), gives) in takes.iter_mut().zip(classes).zip(gives) {
        take.held = gives.min(class.held);
        take.anonymous = gives - take.held;
    }
    Plan {
        classes: takes,
        others,
        pause: pause(&now, classes),
    }
}

/// The amount that has to be given by somebody, if anything is kept free.
pub fn need(now: &Now, classes: &[Class]) -> u64 {
    match goal(now, classes) {
        goal if goal == now.floor => 0,
        goal => goal.saturating_sub(now.free),
    }
}

/// The free memory that there is to be.
fn goal(now: &Now, classes: &[Class]) -> u64 {
    now.floor + classes.iter().map(Class::kept_free).sum::<u64>()
}

/// The most that each without a reservation may have, of which each uses so much [bytes]; none, if there is no limit.
pub fn limit(now: &Now, classes: &[Class], others: &[u64]) -> Option<u64> {
    if !is_limited(now, classes) {
        return None;
    }
    let goal = goal(now, classes);
    Some(match now.free.checked_sub(goal) {
        // All of it for whoever comes first: most probably the one that has most.
        Some(spare) => others.iter().copied().max().unwrap_or(0) + spare,
        None => level(others, goal - now.free),
    })
}

/// Whether those without a reservation have a limit: not if what is free lasts until the next look in any case, and not if
/// nobody could give anything. Without room in the swap a program that wants more would wait for ever, and nobody would be
/// killed for it.
pub fn is_limited(now: &Now, classes: &[Class]) -> bool {
    may_be_short(now, classes) && now.swap >= now.floor
}

/// Whether all that is free may be used up before the next look.
pub fn may_be_short(now: &Now, classes: &[Class]) -> bool {
    pause(now, classes) == LEAST_PAUSE
}

/// Whether there is so little free memory that somebody may have to give some. The kernel begins to take some at the
/// floor, and as it chooses: what is cheap to give goes before that.
pub fn is_tight(now: &Now, classes: &[Class]) -> bool {
    now.free < goal(now, classes) + now.floor
}

/// The most that each may have, so that all together give so much.
fn level(has: &[u64], need: u64) -> u64 {
    let mut sorted = has.to_vec();
    sorted.sort_unstable_by(|one, other| other.cmp(one));
    let mut given = 0;
    for (at, has) in sorted.iter().enumerate() {
        let next = sorted.get(at + 1).copied().unwrap_or(0);
        let count = at as u64 + 1;
        // All up to here come down to the next.
        let step = (has - next).saturating_mul(count);
        if given + step >= need {
            return has - (need - given).div_ceil(count);
        }
        given += step;
    }
    0
}

/// Until the next look: nobody has to look before what is free beyond the goal can be gone.
pub fn pause(now: &Now, classes: &[Class]) -> Duration {
    let spare = now.free.saturating_sub(goal(now, classes) + now.floor);
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
            swap: 1000 * MIB,
            cpus: 1,
        }
    }

    fn given(plan: &Plan) -> u64 {
        plan.others.iter().sum::<u64>() / MIB
    }

    #[test]
    fn what_is_not_lent_is_kept_free() {
        let hogs = [200 * MIB];
        let none_lent = [class(100, 0, 20)];
        let plan_ = plan(now(30), &none_lent, &hogs);
        assert_eq!(given(&plan_), 12 + 80 - 30);
        assert_eq!(plan_.classes, [Take::default()], "never from a reservation");
        assert_eq!(plan_.pause, LEAST_PAUSE);
        assert_eq!(given(&plan(now(92), &none_lent, &hogs)), 0);
        assert_eq!(given(&plan(now(30), &[class(100, 1000, 20)], &hogs)), 0);
        assert_eq!(given(&plan(now(30), &[class(100, 500, 20)], &hogs)), 22);
    }

    #[test]
    fn whoever_has_most_gives_first() {
        let none_lent = [class(100, 0, 0)];
        let plan_ = plan(now(12), &none_lent, &[300 * MIB, 10 * MIB, 240 * MIB]);
        assert_eq!(
            plan_
                .others
                .iter()
                .map(|bytes| bytes / MIB)
                .collect::<Vec<_>>(),
            [80, 0, 20]
        );
        assert_eq!(level(&[], 5), 0);
        assert_eq!(level(&[3, 1], 100), 0, "all that there is");
        assert_eq!(level(&[5, 5, 5], 3), 4);
    }

    #[test]
    fn others_are_stopped_before_there_is_none_left() {
        let lent = [class(100, 1000, 20)];
        let others = [200 * MIB, 10 * MIB];
        assert_eq!(limit(&now(1000), &lent, &others), None, "for now");
        // All that is free beyond the floor.
        assert_eq!(limit(&now(112), &lent, &others), Some(300 * MIB));
        assert_eq!(limit(&now(5), &lent, &others), Some(193 * MIB));
        let kept = [class(100, 0, 20)];
        assert_eq!(limit(&now(112), &kept, &others), Some(220 * MIB));
        assert_eq!(limit(&now(12), &kept, &others), Some(120 * MIB));
        assert_eq!(limit(&now(5), &lent, &[]), Some(0));
        let full = Now {
            swap: MIB,
            ..now(5)
        };
        assert_eq!(
            limit(&full, &lent, &others),
            None,
            "nobody could give anything"
        );
        let many = Now {
            cpus: 64,
            ..now(20_000)
        };
        assert!(
            limit(&many, &lent, &others).is_some(),
            "they fill it at once"
        );
    }

    #[test]
    fn what_is_used_needs_nothing_kept_free() {
        assert_eq!(given(&plan(now(12), &[class(100, 0, 100)], &[MIB])), 0);
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
            ..class(100, 1000, 230)
        };
        let waiting = class(60, 0, 0);
        let plan_ = plan(now(12), &[over, waiting], &[105 * MIB]);
        let [take, none] = plan_.classes[..] else {
            panic!("two classes");
        };
        assert_eq!(take.files, 15 * MIB, "all of what is cheap");
        let all = take.files + take.held + take.anonymous;
        assert_eq!(all + plan_.others[0], 60 * MIB);
        assert_eq!((take.held, take.anonymous), (10 * MIB, 22 * MIB + MIB / 2));
        assert_eq!(none, Take::default());
    }

    #[test]
    fn with_plenty_of_memory_nothing_is_taken_and_nobody_looks_often() {
        let over = Class {
            files: 15 * MIB,
            ..class(100, 0, 130)
        };
        let rich = now(12_000);
        let plan_ = plan(rich, &[over], &[3000 * MIB]);
        assert_eq!(plan_.classes, [Take::default()]);
        assert_eq!((given(&plan_), plan_.pause), (0, MOST_PAUSE));
        let less = plan(Now { cpus: 8, ..rich }, &[over], &[]).pause;
        assert!(less > LEAST_PAUSE && less < MOST_PAUSE);
    }

    #[test]
    fn whatever_there_is_no_more_is_taken_than_is_over_or_needed() {
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
            let others: Vec<_> = (0..draw(5)).map(|_| draw(300) * MIB).collect();
            let now = now(draw(300));
            let plan = plan(now, &classes, &others);
            let mut left = 0;
            for (take, class) in plan.classes.iter().zip(&classes) {
                let taken = take.files + take.held + take.anonymous;
                assert!(taken <= class.over());
                assert!(take.files <= class.files && take.held <= class.held);
                left += class.over() - taken;
            }
            for (given, has) in plan.others.iter().zip(&others) {
                assert!(given <= has);
                left += has - given;
            }
            let kept: u64 = classes.iter().map(Class::kept_free).sum();
            let need = match kept {
                0 => 0,
                _ => (now.floor + kept).saturating_sub(now.free),
            };
            let all = plan.takes();
            assert!(
                all >= need || left == 0,
                "as much as is needed, if there is so much"
            );
            let cheap: u64 = plan.classes.iter().map(|take| take.files).sum();
            let givers = (classes.len() + others.len()) as u64;
            assert!(all <= need.max(cheap) + givers, "and no more");
        }
    }
}
