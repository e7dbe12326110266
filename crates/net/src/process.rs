// SPDX-License-Identifier: GPL-2.0
//! A process that a contract ends with, as the discipline knows it in the kernel.

use std::fs;
use std::os::unix::fs::MetadataExt;

use serde::{Deserialize, Serialize};

use crate::error::NetError;

/// Namespaces in which the kernel's numbers of processes and its times are those of `/proc`, and their numbers
/// (`PROC_PID_INIT_INO` and `PROC_TIME_INIT_INO` of `include/linux/proc_ns.h`).
const FIRST: [(&str, u64); 2] = [("pid", 0xefff_fffc), ("time", 0xefff_fffa)];

/// A process. Its number may be another's later; when it began may not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// When it began, after the machine [1/100 s].
    pub started: u64,
}

impl Process {
    /// The process of this number.
    ///
    /// # Errors
    ///
    /// [`NetError::NoProcess`] if there is none, [`NetError::Contained`] if the kernel has another number for it.
    pub fn of(pid: u32) -> Result<Self, NetError> {
        for (name, first) in FIRST {
            // A kernel may have no such namespaces.
            let here = fs::metadata(format!("/proc/self/ns/{name}"));
            if here.is_ok_and(|here| here.ino() != first) {
                return Err(NetError::Contained);
            }
        }
        let seen = stat(pid).filter(|seen| seen.lives);
        let seen = seen.ok_or(NetError::NoProcess(pid))?;
        let started = seen.started;
        Ok(Self { pid, started })
    }

    /// Whether it has not ended; one that nobody has waited for yet has.
    pub fn lives(self) -> bool {
        stat(self.pid).is_some_and(|seen| seen.lives && seen.started == self.started)
    }
}

/// The words of `/proc/PID/stat`.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    lives: bool,
    started: u64,
}

fn stat(pid: u32) -> Option<Stat> {
    parse(&fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// `pid (name) state …`, of which the name is any bytes; threads are the 20th word, and the begin is the 22nd.
fn parse(stat: &[u8]) -> Option<Stat> {
    let name = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = String::from_utf8_lossy(&stat[name + 1..]);
    let words: Vec<_> = rest.split_whitespace().collect();
    let number = |word: usize| words.get(word - 3)?.parse::<u64>().ok();
    // The first thread may have ended before others.
    let ended = matches!(words.first(), Some(&("Z" | "X"))) && number(20)? <= 1;
    Some(Stat {
        lives: !ended,
        started: number(22)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_lives_until_its_last_thread_has_ended() {
        let with = |state: &str, threads: u32| {
            let stat = format!(
                "7 (a) Z 1) {state} 1 7 7 0 -1 4 0 0 0 0 0 0 0 0 20 0 {threads} 0 4711 9 9"
            );
            parse(stat.as_bytes())
        };
        let seen = |lives| {
            let started = 4711;
            Some(Stat { lives, started })
        };
        assert_eq!(with("S", 1), seen(true));
        assert_eq!(with("Z", 2), seen(true), "another thread goes on");
        assert_eq!(with("Z", 1), seen(false));
        assert_eq!(parse(b"7 (a) S 1"), None);
    }

    #[test]
    fn a_child_has_ended_before_it_is_waited_for() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let pid = child.id();
        let started = stat(pid).unwrap().started;
        let process = Process { pid, started };
        assert!(process.lives());
        let other = Process {
            started: started + 1,
            ..process
        };
        assert!(!other.lives(), "the number is another's by now");
        child.kill().unwrap();
        let mut tries = 0;
        while process.lives() && tries < 1000 {
            std::thread::sleep(std::time::Duration::from_millis(10));
            tries += 1;
        }
        assert!(!process.lives());
        child.wait().unwrap();
        assert!(!process.lives());
        assert!(matches!(
            Process::of(pid),
            Err(NetError::NoProcess(_) | NetError::Contained)
        ));
    }
}
