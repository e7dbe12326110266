// SPDX-License-Identifier: GPL-2.0
//! The need of a program that nobody has reserved memory for: seen while there is no pressure, for later it
//! is too late. Decisions alone.
//!
//! A program needs its own memory, what it shares, what it has mapped of files, what is in memory of programs and libraries
//! beyond that ([`crate::cached`]), and what the kernel keeps for it. Files that it only reads, as a player reads its
//! film, are not needed again. A class's estimate is the most of the last
//! while, and rises with it; it stands as long as there is pressure, for then the class has what it was left.

use crate::cgroup::Stat;

/// Looks at a class, once a second, over which the estimate is the most: a scene of a film is some seconds, and a
/// program that gives memory back is believed after a minute.
const OVER: usize = 60;

/// The estimate for one class.
#[derive(Debug, Clone, Default)]
pub struct Estimate {
    seen: std::collections::VecDeque<u64>,
    last: Option<(u64, u64)>,
    /// Pages of files that the class had, and those of programs that were in memory then [bytes].
    programs: (u64, u64),
}

/// The need of a class, of all that it has now, and of so much of programs and libraries that is in memory [bytes].
pub fn needed(stat: &Stat, programs: u64) -> u64 {
    // Shared memory that is mapped is counted as both by the kernel. Pages that others have read are theirs.
    let programs = programs.min(stat.file);
    let files = stat.mapped.max(stat.shared_memory).max(programs);
    stat.anonymous + files + stat.kernel
}

impl Estimate {
    /// The class as it is, once a second, for how long it has waited for memory since it was made [µs], and how much is in
    /// memory of its programs and libraries [bytes], which takes long to see.
    pub fn look(&mut self, stat: &Stat, stalled_us: u64, programs: impl FnOnce() -> u64) {
        let last = self.last.replace((stalled_us, stat.refaults));
        let pressed = last.is_some_and(|last| last != (stalled_us, stat.refaults));
        if self.programs.0 != stat.file {
            self.programs = (stat.file, programs());
        }
        let needed = needed(stat, self.programs.1);
        // More than before is needed whether or not there is pressure.
        if pressed && needed <= self.bytes() {
            return;
        }
        self.seen.push_back(needed);
        if self.seen.len() > OVER {
            self.seen.pop_front();
        }
    }

    /// Its need [bytes]; 0 before it was looked at.
    pub fn bytes(&self) -> u64 {
        self.seen.iter().copied().max().unwrap_or(0)
    }
}

/// The part of each in a bound for all of them, in the order in which they came: all of what it needs, as long as that
/// fits. A part of it would protect no frame.
pub fn within(bound: u64, needed: &[u64]) -> Vec<Option<u64>> {
    let mut left = bound;
    let one = |bytes: &u64| {
        let fits = *bytes > 0 && *bytes <= left;
        fits.then(|| {
            left -= bytes;
            *bytes
        })
    };
    needed.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn stat(anonymous: u64, mapped: u64, file: u64, refaults: u64) -> Stat {
        Stat {
            anonymous: anonymous * MIB,
            file: file * MIB,
            mapped: mapped * MIB,
            refaults,
            ..Stat::default()
        }
    }

    #[test]
    fn files_that_are_only_read_are_not_needed() {
        assert_eq!(needed(&stat(60, 15, 400, 0), 0), 75 * MIB);
        let shared = Stat {
            shared_memory: 20 * MIB,
            ..stat(60, 15, 35, 0)
        };
        assert_eq!(needed(&shared, 0), 80 * MIB);
        // Of its libraries more is in memory than it has run through, and of these some is counted for others.
        assert_eq!(needed(&stat(60, 15, 400, 0), 50 * MIB), 110 * MIB);
        assert_eq!(needed(&stat(60, 15, 30, 0), 50 * MIB), 90 * MIB);
    }

    #[test]
    fn it_grows_with_the_program_and_stands_under_pressure() {
        let mut estimate = Estimate::default();
        assert_eq!(estimate.bytes(), 0);
        estimate.look(&stat(10, 0, 0, 0), 0, || 0);
        estimate.look(&stat(60, 0, 0, 0), 0, || 0);
        assert_eq!(estimate.bytes(), 60 * MIB);
        // Swapped out by others, for two minutes.
        for i in 1..120 {
            estimate.look(&stat(5, 0, 0, i), i * 1000, || 0);
        }
        assert_eq!(estimate.bytes(), 60 * MIB);
        estimate.look(&stat(80, 0, 0, 200), 1_000_000, || 0);
        assert_eq!(estimate.bytes(), 80 * MIB, "it has them, so it needs them");
    }

    #[test]
    fn it_shrinks_a_minute_after_the_program_has() {
        let mut estimate = Estimate::default();
        estimate.look(&stat(60, 0, 0, 0), 0, || 0);
        for _ in 0..OVER - 1 {
            estimate.look(&stat(20, 0, 0, 0), 0, || 0);
        }
        assert_eq!(estimate.bytes(), 60 * MIB);
        estimate.look(&stat(20, 0, 0, 0), 0, || 0);
        assert_eq!(estimate.bytes(), 20 * MIB);
    }

    #[test]
    fn all_together_are_bounded_and_each_has_all_or_nothing() {
        assert_eq!(
            within(100, &[60, 50, 40, 0, 1]),
            [Some(60), None, Some(40), None, None]
        );
    }
}
