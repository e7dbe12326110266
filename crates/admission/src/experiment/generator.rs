// SPDX-License-Identifier: GPL-2.0
//! Random task sets.
//!
//! After RESCH's `schedbench`: utilisations uniform in a range, periods uniform in 10 to 1000 ms,
//! tasks drawn until the load is reached, the last one cut to hit it. All in integers, from a
//! generator whose every number is defined here, so that a seed means the same set everywhere.

use serde::Serialize;

use crate::task::Task;

/// Utilisations are drawn in steps of one part in a million.
const PARTS: u64 = 1_000_000;
/// Shortest and longest period [ns], as published; drawn in whole microseconds.
const PERIODS_US: (u64, u64) = (10_000, 1_000_000);
const NS_PER_US: u64 = 1000;

/// SplitMix64: Steele, Lea, Flood, *Fast Splittable Pseudorandom Number Generators*, OOPSLA 2014.
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The numbers of this seed.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from `low` to `high`, both included; uniform to one part in 2^64 of the range.
    pub fn within(&mut self, low: u64, high: u64) -> u64 {
        let range = u128::from(high - low) + 1;
        low + ((u128::from(self.bits()) * range) >> 64) as u64
    }
}

/// How heavy the tasks are, each by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LoadClass {
    /// Utilisations 0.1 to 0.5.
    Light,
    /// Utilisations 0.1 to 1.0.
    Mixed,
    /// Utilisations 0.5 to 1.0.
    Heavy,
}

impl LoadClass {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Light, Self::Mixed, Self::Heavy];

    fn parts(self) -> (u64, u64) {
        match self {
            Self::Light => (PARTS / 10, PARTS / 2),
            Self::Mixed => (PARTS / 10, PARTS),
            Self::Heavy => (PARTS / 2, PARTS),
        }
    }
}

/// Where the deadlines lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Deadlines {
    /// D = T.
    Implicit,
    /// D uniform from C to T.
    Constrained,
}

/// Draws sets of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Generator {
    /// How heavy the tasks are.
    pub class: LoadClass,
    /// Where their deadlines lie.
    pub deadlines: Deadlines,
    /// CPUs of the machine.
    pub cpus: u32,
    /// Load of all CPUs together [1/100].
    pub load_percent: u32,
}

impl Generator {
    /// The seed of set number `set`: sets are drawn independently, so that each can be drawn again.
    pub fn seed_of(&self, seed: u64, set: u32) -> u64 {
        let kind = [
            u64::from(self.cpus),
            self.class as u64,
            self.deadlines as u64,
            u64::from(self.load_percent),
            u64::from(set),
        ];
        let mix = |seed, number| Random::new(seed ^ number).bits();
        kind.into_iter().fold(seed, mix)
    }

    /// The next set: its utilisations add up to the load, but for less than one part in a million
    /// per task.
    pub fn draw(&self, random: &mut Random) -> Vec<Task> {
        let mut left = u64::from(self.cpus) * u64::from(self.load_percent) * (PARTS / 100);
        let (low, high) = self.class.parts();
        let mut tasks = Vec::new();
        while left > 0 {
            let parts = random.within(low, high).min(left);
            left -= parts;
            let period_ns = random.within(PERIODS_US.0, PERIODS_US.1) * NS_PER_US;
            let budget_ns = (period_ns / NS_PER_US * parts / (PARTS / NS_PER_US)).max(1);
            let deadline_ns = match self.deadlines {
                Deadlines::Implicit => period_ns,
                Deadlines::Constrained => random.within(budget_ns, period_ns),
            };
            tasks.push(Task {
                budget_ns,
                deadline_ns,
                period_ns,
            });
        }
        tasks
    }
}
