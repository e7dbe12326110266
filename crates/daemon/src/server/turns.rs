// SPDX-License-Identifier: GPL-2.0
//! Whose request is answered next: root's and those of the group `andante`, then by start-time fair queueing
//! over users, as the scheduler itself does over classes. What an answer took is charged to the user who
//! asked, so that whoever asks for much, or for what is hard to answer, keeps nobody waiting for more than the
//! one answer that is being given.
//!
//! No user has more than a part of the daemon's time: what the daemon computes for users is paid for by all.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// The part of the daemon's time that one user may use [ratio]. With a list of 32 contracts taking some 0.1 ms,
/// that is 500 a second.
pub const PART: f64 = 0.05;
/// What a user may use of it at once [s]: a second's part.
const BURST_S: f64 = PART;

/// An answer that takes longer counts for more: so many times as it is longer than this [s]. What others wait for
/// answers of a length goes by its square, and a refusal on 64 CPUs full of contracts is a search of some 60 ms.
const SHORT_S: f64 = 0.005;
/// But none for more than this [s]: the user's next request waits for ten seconds then.
const MOST_S: f64 = 10.0 * PART;

#[derive(Debug)]
struct Turn {
    /// Time used, and never less than what those who asked meanwhile had used [s].
    virtual_s: f64,
    /// Time that may be used at once; below zero: requests wait [s].
    credit_s: f64,
    since: Instant,
}

/// What each user has used.
#[derive(Debug, Default)]
pub struct Turns {
    users: HashMap<u32, Turn>,
    /// Of the user who was answered last [s].
    virtual_s: f64,
}

impl Turns {
    /// Which of these asks first; each is its user, none for the privileged, and users who have used up their
    /// part are left out. Of equal ones the first.
    pub fn next(
        &mut self,
        asking: impl Iterator<Item = (usize, Option<u32>)>,
        now: Instant,
    ) -> Option<usize> {
        let mut best: Option<(f64, usize)> = None;
        for (at, user) in asking {
            let Some(user) = user else {
                return Some(at);
            };
            let turn = self.turn(user, now);
            if turn.credit_s > 0.0 && best.is_none_or(|(tag, _)| turn.virtual_s < tag) {
                best = Some((turn.virtual_s, at));
            }
        }
        best.map(|(_, at)| at)
    }

    /// The user's request took so long to answer.
    pub fn charge(&mut self, user: u32, took: Duration, now: Instant) {
        let before = self.virtual_s;
        let turn = self.turn(user, now);
        let start = turn.virtual_s.max(before);
        let took_s = took.as_secs_f64();
        turn.virtual_s = start + took_s;
        turn.credit_s -= (took_s * (took_s / SHORT_S).max(1.0)).min(took_s.max(MOST_S));
        self.virtual_s = start;
    }

    /// How long this user's requests wait still; zero: not at all.
    pub fn wait_of(&mut self, user: u32, now: Instant) -> Duration {
        let credit_s = self.turn(user, now).credit_s;
        if credit_s > 0.0 {
            return Duration::ZERO;
        }
        // A little more, so that it is over when one looks again.
        Duration::from_secs_f64(-credit_s / PART) + Duration::from_millis(1)
    }

    /// Forgets users against whom nothing is held.
    pub fn forget(&mut self, now: Instant) {
        let holds = |turn: &Turn| {
            let earned = now.saturating_duration_since(turn.since).as_secs_f64() * PART;
            turn.credit_s + earned < BURST_S
        };
        self.users.retain(|_, turn| holds(turn));
    }

    fn turn(&mut self, user: u32, now: Instant) -> &mut Turn {
        let fresh = Turn {
            virtual_s: self.virtual_s,
            credit_s: BURST_S,
            since: now,
        };
        let turn = self.users.entry(user).or_insert(fresh);
        let earned = now.saturating_duration_since(turn.since).as_secs_f64() * PART;
        turn.credit_s = (turn.credit_s + earned).min(BURST_S);
        turn.since = now;
        // Who has not asked for a while has saved nothing up.
        turn.virtual_s = turn.virtual_s.max(self.virtual_s);
        turn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn answered(turns: &mut Turns, users: &[Option<u32>], took: Duration, now: Instant) -> usize {
        let at = turns.next(users.iter().copied().enumerate(), now).unwrap();
        if let Some(user) = users[at] {
            turns.charge(user, took, now);
        }
        at
    }

    #[test]
    fn root_first_then_whoever_has_used_least() {
        let (mut turns, now) = (Turns::default(), Instant::now());
        let users = [Some(1), Some(1), Some(2), None];
        assert_eq!(answered(&mut turns, &users, MS, now), 3);
        let users = &users[..3];
        assert_eq!(answered(&mut turns, users, 3 * MS, now), 0);
        // Three answers of 1 ms for one of 3.
        for _ in 0..3 {
            assert_eq!(answered(&mut turns, users, MS, now), 2);
        }
        assert_eq!(answered(&mut turns, users, MS, now), 0);
        // One who comes for the first time waits for nobody who has had more, and has saved nothing up.
        let users = [Some(1), Some(2), Some(3)];
        assert_eq!(answered(&mut turns, &users, MS, now), 1);
        assert_eq!(answered(&mut turns, &users, MS, now), 2);
    }

    #[test]
    fn what_takes_long_is_answered_seldom() {
        let (mut turns, start) = (Turns::default(), Instant::now());
        let (mut now, mut answers) = (start, 0);
        while now < start + Duration::from_secs(60) {
            now += MS;
            if turns.next([(0, Some(7))].into_iter(), now).is_some() {
                turns.charge(7, 60 * MS, now);
                answers += 1;
            }
        }
        // Once in ten seconds, where by its length it would be once in 1.2: nobody else meets more than 0.6 % of it.
        assert!((5..=8).contains(&answers), "{answers}");
    }

    #[test]
    fn nobody_uses_more_than_a_users_part() {
        let (mut turns, start) = (Turns::default(), Instant::now());
        let (mut now, mut used) = (start, Duration::ZERO);
        while now < start + Duration::from_secs(10) {
            now += MS;
            if turns.next([(0, Some(7))].into_iter(), now).is_some() {
                turns.charge(7, MS, now);
                used += MS;
            } else {
                assert!(turns.wait_of(7, now) > Duration::ZERO);
            }
        }
        let allowed = Duration::from_millis(10 * 50 + 50 + 1);
        assert!(used <= allowed, "{used:?}");
        assert!(used >= Duration::from_millis(500), "{used:?}");
        turns.forget(now + Duration::from_secs(2));
        assert!(turns.users.is_empty());
    }
}
