// SPDX-License-Identifier: GPL-2.0
//! The bounds of reserved memory.

/// Parts of all memory [1/1000].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemorySettings {
    /// The part that everybody else keeps, 1 to 999.
    pub left_for_others_per_mille: u32,
    /// The part that one user without privilege may reserve.
    pub user_quota_per_mille: u32,
    /// The part that all users without privilege may reserve together.
    pub users_quota_per_mille: u32,
    /// The part that all that is learnt may have together; 0: nothing is learnt.
    pub learnt_per_mille: u32,
}

impl Default for MemorySettings {
    fn default() -> Self {
        Self {
            left_for_others_per_mille: 200,
            user_quota_per_mille: 100,
            users_quota_per_mille: 400,
            learnt_per_mille: 250,
        }
    }
}
