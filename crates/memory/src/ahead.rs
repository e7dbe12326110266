// SPDX-License-Identifier: GPL-2.0
//! A class that was idle goes on: the moment to ask for its pages, before it waits for them one by one. A decision
//! alone; [`crate::pages`] asks.
//!
//! A film that is paused uses nearly no CPU time, one that was stopped (SIGSTOP, the freezer) none. When it goes on its
//! rhythm is back: it uses of the CPU what it used before.

use std::time::Duration;

/// A class is idle when it has used so little of what it used before ...
const IDLE_PART: f64 = 0.1;
/// ... and goes on when it uses so much of it: between both there are players that blink a cursor, and programs that
/// begin slowly.
const ACTIVE_PART: f64 = 0.5;
/// Idle for shorter than this it has lost nothing: the kernel takes what was not used for generations of pages, and a
/// generation under pressure is a second and more (`lru_gen_min_ttl` has that as its usual value).
const IDLE_FOR: Duration = Duration::from_secs(1);
/// Its usual use is a mean over so long: some frames of the slowest film, 24 a second.
const MEAN_OVER: Duration = Duration::from_millis(500);

/// A class's rhythm, as far as it is known.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rhythm {
    /// When it was last looked at, and its CPU time then.
    last: Option<(Duration, Duration)>,
    /// Its use while it is active [CPUs].
    usual: f64,
    /// Since when it is idle.
    idle_since: Option<Duration>,
}

impl Rhythm {
    /// Whether it uses nearly nothing of what it used before.
    pub fn is_idle(&self) -> bool {
        self.idle_since.is_some()
    }

    /// The class has used so much CPU time until now; both never go back. Whether it goes on after it was idle.
    pub fn goes_on(&mut self, now: Duration, used: Duration) -> bool {
        let Some((then, before)) = self.last.replace((now, used)) else {
            return false;
        };
        let passed = now.saturating_sub(then).as_secs_f64();
        if passed <= 0.0 {
            return false;
        }
        let uses = used.saturating_sub(before).as_secs_f64() / passed;
        if uses < self.usual * IDLE_PART {
            self.idle_since.get_or_insert(then);
            return false;
        }
        let part = (passed / MEAN_OVER.as_secs_f64()).min(1.0);
        match self.idle_since {
            Some(since) if uses >= self.usual * ACTIVE_PART => {
                self.idle_since = None;
                self.usual += (uses - self.usual) * part;
                now.saturating_sub(since) >= IDLE_FOR
            }
            Some(_) => false,
            None => {
                self.usual += (uses - self.usual) * part;
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const NONE: [u32; 0] = [];

    /// Looks each 50 ms; the parts of a CPU used in each. The looks at which it went on.
    fn looks(parts: &[(u32, f64)]) -> Vec<u32> {
        let mut rhythm = Rhythm::default();
        let (mut now, mut used) = (Duration::ZERO, Duration::ZERO);
        let (mut at, mut found) = (0, Vec::new());
        for &(count, part) in parts {
            for _ in 0..count {
                now += 50 * MS;
                used += (50 * MS).mul_f64(part);
                if rhythm.goes_on(now, used) {
                    found.push(at);
                }
                at += 1;
            }
        }
        found
    }

    #[test]
    fn a_film_that_was_paused_goes_on() {
        assert_eq!(looks(&[(40, 0.3), (120, 0.001), (40, 0.3)]), [160]);
        assert_eq!(looks(&[(40, 0.3), (120, 0.0), (40, 0.3)]), [160]);
    }

    #[test]
    fn a_short_pause_is_none_and_neither_is_a_blinking_cursor() {
        assert_eq!(looks(&[(40, 0.3), (10, 0.0), (40, 0.3)]), NONE);
        assert_eq!(looks(&[(40, 0.3), (120, 0.05), (20, 0.1), (20, 0.0)]), NONE);
        assert_eq!(
            looks(&[(100, 0.0), (100, 0.0)]),
            NONE,
            "it never did anything"
        );
    }

    #[test]
    fn it_can_be_paused_again() {
        let film = [(40, 0.3), (40, 0.0), (40, 0.3), (40, 0.0), (40, 0.3)];
        assert_eq!(looks(&film), [80, 160]);
    }
}
