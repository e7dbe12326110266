// SPDX-License-Identifier: GPL-2.0
//! Room for learnt contracts, and what becomes of those that find none (`bpf/learnt.h`, `bpf/holders.h`).

use serde::{Deserialize, Serialize};

use crate::contracts::MAX_LEARNT;
use crate::error::StateError;
use crate::skel::types;
use crate::state;

/// How full the places for learnt contracts are. Promised ones have places of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LearntRoom {
    /// Learnt contracts that there were when it was last looked, a second ago at most.
    pub held: u64,
    /// Places for them.
    pub places: u64,
    /// Times that none was made, for all places were taken, since the scheduler was loaded.
    pub refused: u64,
    /// Contracts that made room for others, since their threads had slept for long.
    pub gave_way: u64,
}

impl LearntRoom {
    /// By what the scheduler has counted.
    pub(crate) fn of(stats: &types::an_stats) -> Self {
        Self {
            held: stats.learnt_held,
            places: MAX_LEARNT as u64,
            refused: stats.learnt_refused,
            gave_way: stats.learnt_gave_way,
        }
    }

    /// What is to be said of it, and what mends it; none while there is room. What is held comes and goes, so
    /// that of a full table a place in sixty-four may be free when it is looked at.
    pub fn warning(&self) -> Option<(String, String)> {
        if self.held < self.places - self.places / 64 {
            return None;
        }
        let cause = format!(
            "{} of the {} places for learnt contracts are taken by threads that have run within seconds: {} times \
             a program that behaves like media got none",
            self.held, self.places, self.refused
        );
        let mend = "reserve for what must be in time (`andante reserve`), which has places of its own; \
                    `andante top` shows who has so many threads";
        Some((cause, mend.to_owned()))
    }
}

/// The places for learnt contracts of the loaded scheduler.
///
/// # Errors
/// [`StateError`].
pub fn learnt_room() -> Result<LearntRoom, StateError> {
    Ok(LearntRoom::of(&state::counted()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_table_is_told_with_its_mend() {
        let room = |held| LearntRoom {
            held,
            places: 1024,
            refused: 17,
            gave_way: 0,
        };
        assert_eq!(room(1007).warning(), None);
        let (cause, mend) = room(1008).warning().unwrap();
        assert!(cause.starts_with("1008 of the 1024 places"), "{cause}");
        assert!(cause.contains("17 times"), "{cause}");
        assert!(mend.contains("andante reserve"), "{mend}");
    }
}
