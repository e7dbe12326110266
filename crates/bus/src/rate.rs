// SPDX-License-Identifier: GPL-2.0
//! How often a user may ask. Who speaks for others is answered by the daemon at once, before all users, so that
//! the limit has to be here.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// How often a user may ask in a second: as often as the daemon lets a user connect. An answer takes it some
/// 0.1 ms, so that is less than the 5 % of its time that a user may have.
pub const MOST: u32 = 200;
const SECOND: Duration = Duration::from_secs(1);

/// Who has asked lately.
#[derive(Debug, Default)]
pub struct Rate {
    users: HashMap<u32, (u32, Instant)>,
}

impl Rate {
    /// Whether the user may ask now; root always may.
    pub fn admits(&mut self, uid: u32, now: Instant) -> bool {
        if uid == 0 {
            return true;
        }
        let recent = |since: Instant| now.saturating_duration_since(since) < SECOND;
        if !self
            .users
            .get(&uid)
            .is_some_and(|(_, since)| recent(*since))
        {
            self.users.retain(|_, (_, since)| recent(*since));
            self.users.insert(uid, (0, now));
        }
        let Some((asked, _)) = self.users.get_mut(&uid) else {
            return false;
        };
        *asked += 1;
        *asked <= MOST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_who_asks_too_often_is_refused_for_a_second_and_nobody_else() {
        let (mut rate, now) = (Rate::default(), Instant::now());
        let asked = (0..1000).filter(|_| rate.admits(1000, now)).count();
        assert_eq!(asked, MOST as usize);
        assert!(rate.admits(1001, now));
        assert!((0..1000).all(|_| rate.admits(0, now)));
        assert!(!rate.admits(1000, now + SECOND / 2));
        assert!(rate.admits(1000, now + SECOND));
        assert_eq!(rate.users.len(), 1, "whoever has not asked is forgotten");
    }
}
