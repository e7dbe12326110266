// SPDX-License-Identifier: GPL-2.0
//! How a class orders its own tasks (`core/leaf_policy.h`), where it is not as all others do.
//!
//! A class's policy is kept with its cgroup, in an extended attribute, as its weight is in a file: it lasts as long
//! as the class, whether or not the scheduler is loaded, and whoever may write to the cgroup may set it. The
//! scheduler has no such file to hear of; the process that has loaded it is asked to look ([`Scheduler::set_policy`]).

use std::ffi::CString;
use std::fmt;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use libbpf_rs::ProgramInput;
use serde::{Deserialize, Serialize};

use crate::loader::Scheduler;

/// The attribute of a cgroup's directory.
const ATTRIBUTE: &std::ffi::CStr = c"user.andante.policy";

/// `AN_CLASS_PARENT_SHARES`, `AN_POLICY_NO_CLASS` and `AN_POLICY_INNER` of `bpf/intf.h`.
const PARENT_SHARES: i32 = -11;
const NO_CLASS: i32 = -2;
const INNER: i32 = -21;

/// Shortest and longest quantum, or relative deadline: a task that waits for a class that never sleeps has a turn
/// after ten seconds in any case (`core/overdue.h`).
const LENGTHS: std::ops::RangeInclusive<Duration> =
    Duration::from_micros(100)..=Duration::from_secs(10);

/// `AN_RR_QUANTUM_NS` of `core/policy.h`.
const RR_QUANTUM_NS: u64 = 100_000_000;

/// A policy for the tasks of one class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum LeafPolicy {
    /// Start-time fair queueing over nice values, as every class has that was given none.
    Sfq,
    /// Earliest deadline first: a task is due so long after it has woken, at nice 0 [ns].
    Deadline(u64),
    /// In order of arrival, until it blocks.
    Fifo,
    /// In turn, so long each [ns]; none: 100 ms.
    RoundRobin(Option<u64>),
    /// The time-sharing class of System V Release 4, as Solaris 2.2 ran it.
    Svr4Ts,
    /// The same, beside its real-time class: nice values -1 to -20 are its levels 2 to 59.
    Svr4Rt,
    /// The epochs of Linux 2.2.
    Linux22,
}

/// Why a text is no policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadPolicy {
    /// No policy has this name.
    #[error("there is no policy `{0}`: it is one of {list}", list = LeafPolicy::NAMES.join(", "))]
    Unknown(String),
    /// A relative deadline is missing.
    #[error(
        "deadline needs a relative deadline: `deadline:20ms` has a task due 20 ms after it wakes"
    )]
    NoDeadline,
    /// A length that is none.
    #[error("`{0}` is no length of time for {1}: give 100us to 10s, as in `{1}:20ms`")]
    Length(String, String),
    /// A length where there is none to give.
    #[error("{0} takes no length of time: only rr (a quantum) and deadline do")]
    NoLength(String),
}

/// A length as `20ms`, `500us` or `1s` [ns].
fn length(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(char::is_alphabetic);
    let unit = match &text[digits.len()..] {
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return None,
    };
    let ns = digits.parse::<u64>().ok()?.checked_mul(unit)?;
    LENGTHS.contains(&Duration::from_nanos(ns)).then_some(ns)
}

fn written(ns: u64) -> String {
    match ns {
        _ if ns.is_multiple_of(1_000_000_000) => format!("{}s", ns / 1_000_000_000),
        _ if ns.is_multiple_of(1_000_000) => format!("{}ms", ns / 1_000_000),
        _ => format!("{}us", ns / 1_000),
    }
}

impl FromStr for LeafPolicy {
    type Err = BadPolicy;

    fn from_str(text: &str) -> Result<Self, BadPolicy> {
        let (name, given) = match text.split_once(':') {
            Some((name, given)) => (name, Some(given)),
            None => (text, None),
        };
        let ns = given
            .map(|given| {
                length(given).ok_or_else(|| BadPolicy::Length(given.to_owned(), name.to_owned()))
            })
            .transpose();
        let plain = |policy| match given {
            None => Ok(policy),
            Some(_) => Err(BadPolicy::NoLength(name.to_owned())),
        };
        match name {
            "sfq" => plain(Self::Sfq),
            "fifo" => plain(Self::Fifo),
            "svr4-ts" => plain(Self::Svr4Ts),
            "svr4-rt" => plain(Self::Svr4Rt),
            "linux-2.2" => plain(Self::Linux22),
            "rr" => ns.map(Self::RoundRobin),
            "deadline" => ns?.map(Self::Deadline).ok_or(BadPolicy::NoDeadline),
            _ => Err(BadPolicy::Unknown(name.to_owned())),
        }
    }
}

impl TryFrom<String> for LeafPolicy {
    type Error = BadPolicy;

    fn try_from(text: String) -> Result<Self, BadPolicy> {
        text.parse()
    }
}

impl From<LeafPolicy> for String {
    fn from(policy: LeafPolicy) -> Self {
        policy.to_string()
    }
}

impl fmt::Display for LeafPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deadline(ns) | Self::RoundRobin(Some(ns)) => {
                f.pad(&format!("{}:{}", self.name(), written(*ns)))
            }
            _ => f.pad(self.name()),
        }
    }
}

impl LeafPolicy {
    /// The names of all of them.
    pub const NAMES: [&str; 7] = [
        "sfq",
        "deadline:TIME",
        "fifo",
        "rr",
        "svr4-ts",
        "svr4-rt",
        "linux-2.2",
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Sfq => "sfq",
            Self::Deadline(_) => "deadline",
            Self::Fifo => "fifo",
            Self::RoundRobin(_) => "rr",
            Self::Svr4Ts => "svr4-ts",
            Self::Svr4Rt => "svr4-rt",
            Self::Linux22 => "linux-2.2",
        }
    }

    /// As the core has it: `enum an_policy_kind`, quantum or relative deadline [ns] (0: the policy's own), and
    /// whether negative nice values are levels of a real-time class.
    pub fn raw(self) -> (u32, u64, bool) {
        match self {
            Self::Sfq => (0, 0, false),
            Self::Fifo => (1, 0, false),
            Self::RoundRobin(ns) => (2, ns.unwrap_or(0), false),
            Self::Svr4Ts => (4, 0, false),
            Self::Svr4Rt => (4, 0, true),
            Self::Linux22 => (6, 0, false),
            Self::Deadline(ns) => (7, ns, false),
        }
    }

    /// The policy of which [`LeafPolicy::raw`] says this; none of those that no class can be given.
    pub fn from_raw(kind: u32, quantum_ns: u64, nice_is_real_time: bool) -> Option<Self> {
        Some(match (kind, nice_is_real_time) {
            (0, _) => Self::Sfq,
            (1, _) => Self::Fifo,
            (2, _) => Self::RoundRobin(Some(quantum_ns).filter(|ns| *ns != RR_QUANTUM_NS)),
            (4, false) => Self::Svr4Ts,
            (4, true) => Self::Svr4Rt,
            (6, _) => Self::Linux22,
            (7, _) => Self::Deadline(quantum_ns),
            _ => return None,
        })
    }

    /// The policy that was given to the cgroup of this directory; none if none was, or nobody knows it.
    pub fn of(directory: &Path) -> Option<Self> {
        let directory = CString::new(directory.as_os_str().as_bytes()).ok()?;
        let mut value = [0_u8; 64];
        // SAFETY: the texts end with a zero, and the buffer is as long as is said.
        let got = unsafe {
            libc::getxattr(
                directory.as_ptr(),
                ATTRIBUTE.as_ptr(),
                value.as_mut_ptr().cast(),
                value.len(),
            )
        };
        let value = value.get(..usize::try_from(got).ok()?)?;
        std::str::from_utf8(value).ok()?.parse().ok()
    }

    /// Gives it to the cgroup of this directory, for as long as that lasts. Sfq takes the attribute away.
    ///
    /// # Errors
    /// The kernel's.
    pub fn keep(self, directory: &Path) -> io::Result<()> {
        let directory = CString::new(directory.as_os_str().as_bytes())?;
        let value = self.to_string();
        let done = match self {
            // SAFETY: the texts end with a zero.
            Self::Sfq => unsafe { libc::removexattr(directory.as_ptr(), ATTRIBUTE.as_ptr()) },
            // SAFETY: so they do, and the value is as long as is said.
            _ => unsafe {
                libc::setxattr(
                    directory.as_ptr(),
                    ATTRIBUTE.as_ptr(),
                    value.as_ptr().cast(),
                    value.len(),
                    0,
                )
            },
        };
        match (done, io::Error::last_os_error()) {
            (0, _) => Ok(()),
            (_, error) if self == Self::Sfq && error.raw_os_error() == Some(libc::ENODATA) => {
                Ok(())
            }
            (_, error) => Err(error),
        }
    }

    /// All cgroups below this directory that were given one: their ids, parents first.
    pub fn kept_below(directory: &Path) -> Vec<(u64, Self)> {
        let mut found = Vec::new();
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            let path = entry.path();
            if let (Some(policy), Ok(facts)) = (Self::of(&path), fs::metadata(&path)) {
                found.push((facts.ino(), policy));
            }
            found.extend(Self::kept_below(&path));
        }
        found
    }
}

/// Why a class cannot be given a policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// The cgroup is no class, or is gone.
    #[error(
        "it is no class of its own: its parent does not hand out the cpu controller, or it has been removed"
    )]
    NoClass,
    /// It has children.
    #[error("it has classes below it, and policies are for leaves: set them there")]
    Inner,
    /// There is no room for it.
    #[error(
        "it shares its parent's class, for all places for classes are taken: remove cgroups that nobody needs"
    )]
    Shared,
    /// Anything else.
    #[error("the kernel refused the call ({0})")]
    Other(String),
}

impl Scheduler {
    /// Orders the tasks of the class of this cgroup by that policy from now on.
    ///
    /// # Errors
    /// [`PolicyError`]; nothing has changed then.
    pub fn set_policy(&mut self, cgroup_id: u64, policy: LeafPolicy) -> Result<(), PolicyError> {
        let (kind, quantum_ns, nice_is_real_time) = policy.raw();
        let section = self.object.policies_mut();
        let section = section.ok_or_else(|| PolicyError::Other("not mapped".to_owned()))?;
        // SAFETY: the pointer is to the mapped section, which lives as long as the skeleton. Only this process
        // writes there.
        unsafe {
            let call = &raw mut (*section).policy_call;
            (&raw mut (*call).cgroup_id).write_volatile(cgroup_id);
            (&raw mut (*call).quantum_ns).write_volatile(quantum_ns);
            (&raw mut (*call).kind).write_volatile(kind);
            (&raw mut (*call).nice_is_real_time).write_volatile(nice_is_real_time.into());
        }
        let ran = self
            .object
            .policy_program()
            .test_run(ProgramInput::default());
        match ran.map(|ran| ran.return_value as i32) {
            Ok(0) => Ok(()),
            Ok(PARENT_SHARES) => Err(PolicyError::Shared),
            Ok(NO_CLASS) => Err(PolicyError::NoClass),
            Ok(INNER) => Err(PolicyError::Inner),
            Ok(other) => Err(PolicyError::Other(format!("{other}"))),
            Err(error) => Err(PolicyError::Other(error.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_read_as_they_are_written() {
        for text in [
            "sfq",
            "fifo",
            "rr",
            "rr:20ms",
            "deadline:1500us",
            "deadline:2s",
            "svr4-ts",
            "svr4-rt",
            "linux-2.2",
        ] {
            let policy: LeafPolicy = text.parse().unwrap();
            assert_eq!(policy.to_string(), text);
            let (kind, quantum_ns, real_time) = policy.raw();
            assert_eq!(
                LeafPolicy::from_raw(
                    kind,
                    quantum_ns.max(u64::from(text == "rr") * RR_QUANTUM_NS),
                    real_time
                ),
                Some(policy)
            );
        }
    }

    #[test]
    fn what_is_no_policy_is_told_with_what_is_one() {
        let told = |text: &str| text.parse::<LeafPolicy>().unwrap_err().to_string();
        let unknown = told("svr5");
        for name in ["sfq", "deadline:TIME", "svr4-rt", "linux-2.2"] {
            assert!(unknown.contains(name), "{unknown}");
        }
        assert!(told("deadline").contains("deadline:20ms"));
        assert!(told("deadline:soon").contains("deadline:20ms"));
        assert!(told("rr:1us").contains("100us to 10s"));
        assert!(told("fifo:1ms").contains("only rr"));
    }
}
