//! What a scheduler holds, before the programs come and after they are gone.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use andante_programs::clock;

/// How long what has ended may take to be let go of.
const LET_GO_TIMEOUT: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(500);

/// How much of each there is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Held {
    /// Classes, contracts, files that the daemon has open, its threads.
    counts: Vec<(&'static str, usize)>,
}

impl Held {
    /// What the scheduler of this process holds now; nothing can be told of one that is not Andante.
    pub fn now(andante: &Path, daemon: u32) -> Self {
        let status = Command::new(andante)
            .args(["status", "--json", "--interval", "0.1"])
            .output();
        let status = status.map(|output| output.stdout).unwrap_or_default();
        let status: Value = serde_json::from_slice(&status).unwrap_or_default();
        let listed = |what: &'static str| {
            let list = status.get(what)?.as_array()?;
            Some((what, list.len()))
        };
        let of_daemon = |what, folder: &str| {
            let entries = std::fs::read_dir(format!("/proc/{daemon}/{folder}")).ok()?;
            Some((what, entries.count()))
        };
        let counts = [
            listed("classes"),
            listed("contracts"),
            of_daemon("files of the daemon", "fd"),
            of_daemon("threads of the daemon", "task"),
        ];
        Self {
            counts: counts.into_iter().flatten().collect(),
        }
    }

    /// What there is more of now, in words.
    fn more_than(&self, before: &Self) -> Vec<String> {
        let of = |what| before.counts.iter().find(|(name, _)| *name == what);
        let more = self.counts.iter().filter_map(|(what, now)| {
            let before = of(*what)?.1;
            (*now > before).then(|| format!("{what}: {now}, {before} before"))
        });
        more.collect()
    }

    /// What is left behind once everything that ended has had time to be let go of.
    pub fn left_by(&self, andante: &Path, daemon: u32) -> Vec<String> {
        let start = Instant::now();
        loop {
            let left = Self::now(andante, daemon).more_than(self);
            if left.is_empty() || start.elapsed() > LET_GO_TIMEOUT {
                return left;
            }
            clock::sleep_until(clock::now_ns() + POLL.as_nanos() as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_there_is_more_of_is_left_behind() {
        let held = |counts: &[(&'static str, usize)]| Held {
            counts: counts.to_vec(),
        };
        let before = held(&[("classes", 4), ("contracts", 1)]);
        let after = held(&[("classes", 5), ("contracts", 0), ("files", 9)]);
        assert_eq!(after.more_than(&before), ["classes: 5, 4 before"]);
    }
}
