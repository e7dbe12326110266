// SPDX-License-Identifier: GPL-2.0
//! The words between those who keep the books and the keeper: a line of JSON each.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// An order to the keeper.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// All reservations from now on, and classes whose needs are to be seen.
    Keep {
        /// Those with a reservation.
        reserved: Vec<Reserved>,
        /// Those without.
        watched: Vec<Watched>,
    },
    /// A process goes on: its pages are to be asked for.
    Wake {
        /// Its number.
        pid: i32,
    },
}

/// A class with a reservation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reserved {
    /// Its number, as long as it has a reservation.
    pub number: u64,
    /// Its folder.
    pub folder: PathBuf,
    /// How much [bytes].
    pub bytes: u64,
    /// Of what it does not use, the part that is lent [1/1000].
    pub lend_per_mille: u32,
}

/// A class without one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watched {
    /// Its number, as long as it is watched.
    pub number: u64,
    /// Its folder.
    pub folder: PathBuf,
}

/// The keeper's report, once a second.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Memory that nobody uses [bytes].
    pub free: u64,
    /// Below so much the kernel itself takes some from programs [bytes].
    pub floor: u64,
    /// Room in the swap [bytes].
    pub swap: u64,
    /// Pages that are locked for reservations [bytes].
    pub held: u64,
    /// Taken from those without a reservation, so that what is not lent is free [bytes since the keeper began].
    pub taken: u64,
    /// The most that each of those may have now, because memory may become short [bytes].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// Classes with a reservation.
    pub classes: Vec<ClassReport>,
    /// The needs of watched classes, by their numbers [bytes].
    pub needed: Vec<(u64, u64)>,
}

/// A class with a reservation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassReport {
    /// Its number.
    pub number: u64,
    /// How it is with its memory.
    #[serde(flatten)]
    pub found: Found,
}

/// How a class with a reservation is with its memory. Amounts are in bytes; counters are since the class was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// Its own memory, in use.
    pub used: u64,
    /// Pages of files that it has read (private).
    pub private: u64,
    /// Pages of files that others have read, held for it (shared).
    pub shared: u64,
    /// Programs' own memory (anonymous).
    pub anonymous: u64,
    /// Of it in the swap.
    pub swapped: u64,
    /// The amount that is kept free for it.
    pub kept_free: u64,
    /// The most that others use of its reservation.
    pub lent: u64,
    /// Its need, by all that is known of its programs.
    pub needed: u64,
    /// Taken from it, for it was over [bytes since the keeper began].
    pub taken: u64,
    /// Asked for ahead of need [bytes since the keeper began].
    pub asked_ahead: u64,
    /// Pages that had been taken and were needed again.
    pub refaults: u64,
    /// Accesses that had to wait for a disk or the swap.
    pub major_faults: u64,
    /// For how long some program of it has waited for memory [µs].
    pub stalled_us: u64,
    /// How often a program of it was killed for want of memory.
    pub killed: u64,
}
