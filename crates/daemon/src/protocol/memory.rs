// SPDX-License-Identifier: GPL-2.0
//! The words for reserved memory at the socket. Amounts are in bytes.

use andante_admission::memory::Memory;
use andante_memory::words::Found;
use serde::{Deserialize, Serialize};

use super::Holder;

/// The memory that is wanted, and for whom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryAsk {
    /// The class that is to hold it, or a process whose class is meant.
    pub holder: Holder,
    /// How much.
    pub bytes: u64,
    /// Of what it does not use, the part that others may have until then [1/1000]; the rest is kept free.
    #[serde(default = "everything_lent")]
    pub lend_per_mille: u32,
    /// The process that it ends with; without this it ends with the class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<i32>,
}

/// The part that is lent if nothing is said [1/1000].
pub const USUALLY_LENT_PER_MILLE: u32 = 1000;

fn everything_lent() -> u32 {
    USUALLY_LENT_PER_MILLE
}

/// A reservation that was made, or would be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryReserved {
    /// The class that holds it, by which it is called.
    pub class: String,
    /// How much.
    pub bytes: u64,
    /// Of what it does not use, the part that is lent [1/1000].
    pub lend_per_mille: u32,
    /// Notes for its holder, in whole sentences.
    pub notes: Vec<String>,
}

/// Memory, and what is reserved of it, at one instant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemorySeen {
    /// The machine's memory, and the parts of it that nobody can reserve.
    pub memory: Memory,
    /// The most that all reservations may have together.
    pub reservable: u64,
    /// The sum that they have; those in others count with these.
    pub reserved: u64,
    /// The part that one user without privilege may reserve [1/1000 of all].
    pub user_quota_per_mille: u32,
    /// The part that all that is learnt may have together [1/1000 of all]; 0: nothing is learnt.
    pub learnt_per_mille: u32,
    /// Memory that nobody uses.
    pub free: u64,
    /// Room in the swap; without any, programs' own memory can be taken from nobody.
    pub swap: u64,
    /// Pages that are locked for reservations, since others have read them first.
    pub held: u64,
    /// The amount that was taken from those without a reservation, so that what is not lent is free.
    pub taken: u64,
    /// The most that each class without a reservation may have now, because memory may become short; whoever wants more
    /// gives pages of its own for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// Whether the process that looks after them runs. Without it `memory.min` alone protects them.
    pub looked_after: bool,
    /// The reservations, oldest first.
    pub reservations: Vec<MemoryListed>,
}

/// A reservation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryListed {
    /// The class that holds it.
    pub class: String,
    /// The user who asked for it.
    pub uid: u32,
    /// How much.
    pub bytes: u64,
    /// Of what it does not use, the part that is lent [1/1000].
    pub lend_per_mille: u32,
    /// The process that it ends with.
    pub until: Option<i32>,
    /// The program that it was learnt of, if nobody has asked for it.
    pub learnt: Option<i32>,
    /// How it is with its memory.
    #[serde(flatten)]
    pub found: Found,
}
