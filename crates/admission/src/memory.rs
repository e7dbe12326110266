// SPDX-License-Identifier: GPL-2.0
//! Reservations of memory: whether all of them, what the kernel needs and a part for everybody else
//! fit into the machine.
//!
//! Memory has no periods: a reservation is so many bytes that the kernel takes from nobody who is
//! within them. The unused part of it is lent, and comes back when it is needed, so the sum
//! must fit even if all of it is used at once:
//!
//! ```text
//!     sum of reservations + others' protection + kept by the kernel + left for others  <=  memory
//! ```
//!
//! A reservation below another is a part of that one: it must fit into it, and takes nothing more.

use serde::{Deserialize, Serialize};

/// The least that can be reserved [bytes]: what a small program takes, so that a slip (200 for 200M) is told.
pub const LEAST_RESERVATION: u64 = 1 << 20;

/// The memory of a machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// All of it that the kernel manages [bytes].
    pub total: u64,
    /// Nobody can be given this: the kernel's own, what is locked, and what is kept free [bytes].
    pub kept_by_kernel: u64,
    /// Protected by others by hand, or systemd for its units, outside of all reservations [bytes].
    pub protected_by_others: u64,
    /// The part that everybody else keeps [1/1000 of `total`], 0 to 999.
    pub left_for_others_per_mille: u32,
}

impl Memory {
    /// The part that everybody else keeps [bytes].
    pub fn left_for_others(&self) -> u64 {
        part(self.total, self.left_for_others_per_mille)
    }

    /// The most that all reservations may have together [bytes].
    pub fn reservable(&self) -> u64 {
        let taken = self.kept_by_kernel + self.protected_by_others + self.left_for_others();
        self.total.saturating_sub(taken)
    }
}

/// A part in a thousand [bytes], rounded up.
pub fn part(bytes: u64, per_mille: u32) -> u64 {
    let part = (u128::from(bytes) * u128::from(per_mille)).div_ceil(1000);
    u64::try_from(part).unwrap_or(u64::MAX)
}

/// A reservation in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryHeld {
    /// The name of its holder.
    pub name: String,
    /// How much [bytes].
    pub bytes: u64,
}

/// The answer to one reservation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryAnswer {
    /// It is admitted.
    Admitted,
    /// It is not.
    Refused(MemoryRefusal),
}

/// Why it is not admitted, and what would be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryRefusal {
    /// The amount that is asked for [bytes].
    pub asked: u64,
    /// The most that would be admitted [bytes], if anything.
    pub most: Option<u64>,
    /// The limit that it exceeds.
    pub limit: MemoryLimit,
    /// Those who hold what is missing, largest first.
    pub holders: Vec<MemoryHeld>,
}

/// A limit of what can be reserved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryLimit {
    /// The machine's.
    Machine(Memory),
    /// The reservation of a class above.
    Above {
        /// The class.
        name: String,
        /// Its reservation [bytes].
        bytes: u64,
    },
    /// Reservations of classes below need more than this one.
    Below,
    /// The quota of a user without privilege, or all of them together.
    Quota {
        /// Whether it is that of all of them.
        all_users: bool,
        /// How much that is [bytes].
        bytes: u64,
    },
    /// The most that a class may have at all (`memory.max`).
    Most {
        /// The class with that limit.
        name: String,
        /// The limit [bytes].
        bytes: u64,
    },
}

/// Answers one that asks for so many bytes beside those that hold something already.
pub fn ask(asked: u64, limit: MemoryLimit, room: u64, held: &[MemoryHeld]) -> MemoryAnswer {
    let taken: u64 = held.iter().map(|held| held.bytes).sum();
    let free = room.saturating_sub(taken);
    if asked <= free {
        return MemoryAnswer::Admitted;
    }
    let mut holders = held.to_vec();
    holders.sort_by(|one, other| (other.bytes, &one.name).cmp(&(one.bytes, &other.name)));
    MemoryAnswer::Refused(MemoryRefusal {
        asked,
        most: Some(free).filter(|free| *free >= LEAST_RESERVATION),
        limit,
        holders,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn memory() -> Memory {
        Memory {
            total: 1000 * MIB,
            kept_by_kernel: 60 * MIB,
            protected_by_others: 40 * MIB,
            left_for_others_per_mille: 200,
        }
    }

    fn held(name: &str, mib: u64) -> MemoryHeld {
        MemoryHeld {
            name: name.to_owned(),
            bytes: mib * MIB,
        }
    }

    fn asked(mib: u64, held: &[MemoryHeld]) -> MemoryAnswer {
        let memory = memory();
        ask(
            mib * MIB,
            MemoryLimit::Machine(memory),
            memory.reservable(),
            held,
        )
    }

    #[test]
    fn all_must_fit_with_what_others_keep() {
        assert_eq!(memory().reservable(), 700 * MIB);
        assert_eq!(asked(700, &[]), MemoryAnswer::Admitted);
        assert_eq!(asked(400, &[held("a", 300)]), MemoryAnswer::Admitted);
        assert_ne!(asked(401, &[held("a", 300)]), MemoryAnswer::Admitted);
    }

    #[test]
    fn a_refusal_says_what_would_do_and_because_of_whom() {
        let all = [held("small", 100), held("large", 500)];
        let MemoryAnswer::Refused(refusal) = asked(200, &all) else {
            panic!("there are 100 MiB");
        };
        assert_eq!(refusal.most, Some(100 * MIB));
        assert_eq!(refusal.holders[0].name, "large");
        assert_eq!(asked(100, &all), MemoryAnswer::Admitted, "as was said");
        let full = [held("all", 700)];
        let MemoryAnswer::Refused(refusal) = asked(1, &full) else {
            panic!("there is nothing");
        };
        assert_eq!(refusal.most, None);
    }

    #[test]
    fn a_machine_that_is_full_reserves_nothing() {
        let memory = Memory {
            kept_by_kernel: 1000 * MIB,
            ..memory()
        };
        assert_eq!(memory.reservable(), 0);
    }
}
