// SPDX-License-Identifier: GPL-2.0
//! Who may be connected: limits for each user, for all users together, and for how fast they come. Root and
//! members of the group `andante` are bound by none of them. Subordinate ids are counted with their owner
//! ([`crate::accounts`]).
//!
//! Whoever is turned away gets one sentence, and is counted. A user who is at a limit of its own takes the
//! place of a connection of its own that has long been silent, and nobody else's.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::connection::Connection;
use super::peer::Peer;
use crate::protocol::{Fault, FaultKind};

/// Connections of one user at a time: a command opens one for as long as it takes to be answered, and
/// nobody runs more than a few commands at once.
pub const MAX_OF_USER: usize = 16;
/// Connections of all users together: sixteen that use their limit up. With those of the privileged
/// ([`MAX_PRIVILEGED`]) and the files that the scheduler itself has open they stay below the 1,024 that
/// a process may open if nothing else is said.
pub const MAX_OF_USERS: usize = 16 * MAX_OF_USER;
/// Connections of root and the group `andante`: with one more, the one goes that was silent longest.
pub const MAX_PRIVILEGED: usize = 256;
/// How long a connection must have been silent before another one may take its place. A command sends its
/// request as soon as it is connected.
const SILENT: Duration = Duration::from_secs(1);
/// How often a user may connect [1/s]: a script that starts one command after the other, 5 ms each, does
/// not come faster.
const RATE: f64 = 200.0;
/// And how often at once: two seconds of that.
const BURST: f64 = 2.0 * RATE;

/// What was turned away since the daemon began, and who is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DoorSeen {
    /// Clients that are connected.
    pub connected: u32,
    /// Connections that were let in.
    pub admitted: u64,
    /// Connections that were refused: their user had as many as one may have.
    pub refused_open: u64,
    /// Connections that were refused: their user came too often.
    pub refused_rate: u64,
    /// Connections that were closed for others, or because their client read nothing.
    pub let_go: u64,
    /// Requests that had to wait, for their user had been answered much just before.
    pub delayed: u64,
}

/// Counts who comes.
#[derive(Debug, Default)]
pub struct Door {
    pub seen: DoorSeen,
    /// How often each user may still come at once, and since when that is known.
    credit: HashMap<u32, (f64, Instant)>,
}

/// Where a new connection has its place.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Beside the others.
    Enter,
    /// In the place of this one.
    Instead(usize),
}

impl Door {
    /// Whether the peer may be connected too.
    ///
    /// # Errors
    /// With the sentence to tell.
    pub fn judge(
        &mut self,
        peer: &Peer,
        connections: &[Connection],
        now: Instant,
    ) -> Result<Verdict, Fault> {
        let verdict = if peer.caller.privileged {
            Ok(place_of_privileged(connections))
        } else if self.comes_too_often(peer.caller.account, now) {
            self.seen.refused_rate += 1;
            let message = format!(
                "you have connected to Andante more than {RATE} times a second: wait a second, and ask \
                 for several things over one connection"
            );
            Err(Fault::new(FaultKind::Busy, message))
        } else {
            place_of_user(peer.caller.account, connections, now).inspect_err(|_| {
                self.seen.refused_open += 1;
            })
        };
        match verdict {
            Ok(Verdict::Enter) => self.seen.admitted += 1,
            Ok(Verdict::Instead(_)) => {
                self.seen.admitted += 1;
                self.seen.let_go += 1;
            }
            Err(_) => {}
        }
        verdict
    }

    fn comes_too_often(&mut self, account: u32, now: Instant) -> bool {
        let (credit, since) = self.credit.entry(account).or_insert((BURST, now));
        let earned = now.saturating_duration_since(*since).as_secs_f64() * RATE;
        *credit = (*credit + earned).min(BURST);
        *since = now;
        let may = *credit >= 1.0;
        if may {
            *credit -= 1.0;
        }
        !may
    }

    /// Forgets users who have not come for so long that nothing is held against them.
    pub fn forget(&mut self, now: Instant) {
        let full = Duration::from_secs_f64(BURST / RATE);
        let recent = |since: &Instant| now.saturating_duration_since(*since) < full;
        self.credit.retain(|_, (_, since)| recent(since));
    }
}

fn place_of_privileged(connections: &[Connection]) -> Verdict {
    let own = |at: &usize| {
        let connection = &connections[*at];
        connection.peer.caller.privileged && !connection.holds_a_session()
    };
    let all = || (0..connections.len()).filter(own);
    if all().count() < MAX_PRIVILEGED {
        return Verdict::Enter;
    }
    let quietest = all().min_by_key(|at| connections[*at].heard());
    quietest.map_or(Verdict::Enter, Verdict::Instead)
}

fn place_of_user(account: u32, connections: &[Connection], now: Instant) -> Result<Verdict, Fault> {
    let mut counts: HashMap<u32, usize> = HashMap::new();
    // Sessions are silent for hours, and have limits of their own.
    for connection in connections.iter().filter(|one| !one.holds_a_session()) {
        let caller = &connection.peer.caller;
        if !caller.privileged {
            *counts.entry(caller.account).or_default() += 1;
        }
    }
    let own = counts.get(&account).copied().unwrap_or(0);
    let quietest_of = |account: u32, silent: Duration| {
        let is_of = |at: &usize| {
            let connection = &connections[*at];
            let caller = &connection.peer.caller;
            let silent_for = now.saturating_duration_since(connection.heard());
            !caller.privileged
                && caller.account == account
                && !connection.holds_a_session()
                && !connection.has_line()
                && silent_for >= silent
        };
        let all = (0..connections.len()).filter(is_of);
        all.min_by_key(|at| connections[*at].heard())
    };
    if own >= MAX_OF_USER {
        return match quietest_of(account, SILENT) {
            Some(at) => Ok(Verdict::Instead(at)),
            None => Err(full("you have", own)),
        };
    }
    let all: usize = counts.values().sum();
    if all < MAX_OF_USERS {
        return Ok(Verdict::Enter);
    }
    // Whoever has most gives way, even one that is heard: the new one has fewer, or it is refused.
    let most = counts.iter().max_by_key(|(id, count)| (**count, **id));
    let greedy = most
        .filter(|(_, count)| **count > own + 1)
        .map(|(id, _)| *id);
    let instead = greedy.and_then(|greedy| quietest_of(greedy, Duration::ZERO));
    instead
        .map(Verdict::Instead)
        .ok_or_else(|| full("all users together have", all))
}

fn full(who: &str, count: usize) -> Fault {
    let message = format!(
        "{who} {count} connections open to Andante already: close one, or ask again in a second"
    );
    Fault::new(FaultKind::Busy, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn knocks(
        door: &mut Door,
        account: u32,
        privileged: bool,
        now: Instant,
    ) -> Result<Verdict, Fault> {
        let caller = crate::books::Caller {
            uid: account,
            account,
            privileged,
        };
        door.judge(&Peer { caller, pid: 1 }, &[], now)
    }

    #[test]
    fn a_user_comes_so_often_and_the_privileged_as_they_like() {
        let (mut door, start) = (Door::default(), Instant::now());
        let mut admitted = 0;
        for ms in 0..10_000 {
            let now = start + Duration::from_millis(ms);
            assert!(knocks(&mut door, 0, true, now).is_ok());
            match knocks(&mut door, 1000, false, now) {
                Ok(_) => admitted += 1,
                Err(fault) => {
                    assert_eq!(fault.kind, FaultKind::Busy);
                    assert!(fault.message.contains("200 times a second"), "{fault}");
                }
            }
        }
        // Of 1,000 a second: two seconds' burst, and 200 in each of ten.
        assert!((2399..=2401).contains(&admitted), "{admitted}");
        assert_eq!(door.seen.refused_rate, 10_000 - admitted);
        // Another user is another matter, and who has not come for long is forgotten.
        let now = start + Duration::from_secs(10);
        assert!(knocks(&mut door, 1001, false, now).is_ok());
        door.forget(now + Duration::from_secs(3));
        assert!(door.credit.is_empty());
    }
}
