// SPDX-License-Identifier: GPL-2.0
//! What is said at the socket: one JSON object per line, a reply to every request.
//!
//! ```text
//! {"op":"reserve","holder":{"process":1234},"terms":{"budget_ns":9000000,"period_ns":33000000}}
//! {"reserved":{"name":"mpv-1234","placement":{"whole":{"cpu":0}},"promise":"every_deadline",…}}
//! ```
//!
//! Times are in nanoseconds, parts of CPUs in millionths. CPUs are numbered as the kernel does.

mod memory;

use andante_admission::memory::MemoryRefusal;
use andante_admission::{Placement, Promise, Refusal, Test};
use andante_sched::explained::Explained;
use andante_sched::text::shown;
use andante_sched::{LeafPolicy, Seen};
use serde::{Deserialize, Serialize};

pub use self::memory::{
    MemoryAsk, MemoryListed, MemoryReserved, MemorySeen, USUALLY_LENT_PER_MILLE,
};
pub use crate::server::DoorSeen;
use crate::terms::Terms;

/// The request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// A contract.
    Reserve(Ask),
    /// What would be answered to that; nothing changes.
    Ask(Ask),
    /// Memory.
    ReserveMemory(MemoryAsk),
    /// What would be answered to that; nothing changes.
    AskMemory(MemoryAsk),
    /// An end to a contract, or to a reservation of memory, or to both.
    Release {
        /// Its name, or its holder: a process or thread by number, a class by path.
        which: String,
    },
    /// A process was paused and goes on: what it had in memory is to be there again.
    Wake {
        /// Its number.
        pid: i32,
    },
    /// All contracts, and what became of them so far.
    List {},
    /// Classes, counters, and the learnt contracts of the caller's own threads; of all, if the caller is root or in
    /// the group.
    Status {},
    /// What was learnt of a process of the caller's own, or of one of its threads, and why.
    Why {
        /// Its number.
        pid: i32,
    },
    /// The policy of a class was set, with its cgroup: the scheduler is to look.
    Policy {
        /// Its path below the cgroup root.
        class: String,
    },
}

/// What contract is wanted, for whom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    /// Who is to hold it.
    pub holder: Holder,
    /// What it promises.
    pub terms: Terms,
    /// What to call it; without this it is named after its holder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Who holds a contract.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Holder {
    /// A process: its threads, and those that they will start. No child processes.
    Process(i32),
    /// One thread.
    Thread(i32),
    /// The tasks of a class (a cgroup), by its path below the cgroup root.
    Class(String),
    /// Threads of this process, which take part in a session. Only the session itself asks for it.
    Session(i32),
}

/// The reply to a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// Yes: the contract that was made, or would be.
    Reserved(Box<Reserved>),
    /// No, why, and what would do instead.
    Refused(Box<Refused>),
    /// Yes: the memory that is reserved, or would be.
    MemoryReserved(Box<MemoryReserved>),
    /// No, why, and what would do instead.
    MemoryRefused(Box<MemoryRefusal>),
    /// The pages of this process are asked for.
    Woken {
        /// Its number.
        pid: i32,
    },
    /// The contract of this name is no more.
    Released {
        /// Its name.
        name: String,
    },
    /// All contracts.
    Contracts(Box<List>),
    /// What there is to be seen.
    Status(Box<StatusSeen>),
    /// The threads, in the order of their numbers.
    Why {
        /// What was learnt of each.
        threads: Vec<Explained>,
    },
    /// The tasks of the class are ordered by this policy now.
    Policy {
        /// The policy.
        policy: LeafPolicy,
    },
    /// The request cannot be answered.
    Error(Fault),
}

/// A contract that was made, or would be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reserved {
    /// What it is called.
    pub name: String,
    /// Who holds it.
    pub holder: HolderSeen,
    /// What it promises.
    pub terms: Terms,
    /// Where it runs.
    pub placement: Placement,
    /// What its holder may rely on.
    pub promise: Promise,
    /// The test that admitted it.
    pub test: Test,
    /// Contracts that were promised more before.
    pub weakened: Vec<String>,
    /// What else its holder should know, in whole sentences.
    pub notes: Vec<String>,
}

/// A contract that cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// Limits other than the CPUs' that it exceeds; if there is any, `refusal` names no CPU.
    pub limits: Vec<Limit>,
    /// What stands in the way on each CPU, who holds it, and the nearest contracts that would do
    /// within all limits.
    pub refusal: Refusal,
}

/// A limit other than the CPUs', with utilisations C/T [1/1000000 CPU].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// What a user without privilege may hold of the machine.
    UserQuota {
        /// What the user holds already.
        held_ppm: u64,
        /// What is asked for.
        asked_ppm: u64,
        /// What the user may hold at most.
        limit_ppm: u64,
    },
    /// What all users without privilege may hold of the machine together.
    UsersQuota {
        /// What they hold already.
        held_ppm: u64,
        /// What is asked for.
        asked_ppm: u64,
        /// What they may hold at most.
        limit_ppm: u64,
    },
    /// What the sessions of a user without privilege may be promised of the machine together.
    SessionQuota {
        /// Whether the one that asks has said that its user looks elsewhere.
        behind: bool,
        /// What they are promised already.
        held_ppm: u64,
        /// What is asked for.
        asked_ppm: u64,
        /// What they may be promised at most, for one like that.
        limit_ppm: u64,
    },
    /// The contract of the holder's class, or of one above it.
    Parent {
        /// The contract.
        name: String,
        /// Its own utilisation.
        limit_ppm: u64,
        /// That of contracts nested in it already.
        held_ppm: u64,
        /// What is asked for.
        asked_ppm: u64,
    },
    /// Contracts that would be nested in the one asked for.
    Children {
        /// Their names.
        names: Vec<String>,
        /// Their utilisation.
        held_ppm: u64,
        /// What is asked for.
        asked_ppm: u64,
    },
}

/// A holder, as it is now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HolderSeen {
    /// Who.
    #[serde(flatten)]
    pub holder: Holder,
    /// The name of the process or thread, as `ps -o comm` shows it, with bytes that are no UTF-8 as `\xNN`; as
    /// its user has chosen it, so not to be written to a terminal as it is. Empty for a class.
    pub command: String,
}

impl std::fmt::Display for HolderSeen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.holder {
            Holder::Process(pid) => write!(f, "{} ({pid})", shown(&self.command)),
            Holder::Thread(tid) => write!(f, "{} (thread {tid})", shown(&self.command)),
            Holder::Class(path) => write!(f, "class {}", shown(path)),
            Holder::Session(pid) => write!(f, "session of {} ({pid})", shown(&self.command)),
        }
    }
}

/// All contracts at one instant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct List {
    /// When [ns of CLOCK_MONOTONIC].
    pub now_ns: u64,
    /// What they share.
    pub machine: MachineSeen,
    /// The contracts, oldest first.
    pub contracts: Vec<Listed>,
    /// Who came to ask, and who was turned away.
    #[serde(default)]
    pub door: DoorSeen,
    /// The sessions of applications.
    #[serde(default)]
    pub sessions: Vec<SessionSeen>,
    /// Memory, if it can be reserved here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemorySeen>,
}

/// What there is to be seen of the scheduler at one instant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StatusSeen {
    /// Classes and counters.
    #[serde(flatten)]
    pub seen: Seen,
    /// Learnt contracts that the caller may see, by threads.
    pub learnt: Vec<LearntSeen>,
    /// For so long whoever asks is told the same [ns]: to look takes a while where there are thousands of classes.
    #[serde(default)]
    pub stands_ns: u64,
}

/// A learnt contract.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LearntSeen {
    /// The thread that holds it.
    pub tid: i32,
    /// Its process.
    pub pid: i32,
    /// Its user.
    pub uid: u32,
    /// Its name, as in [`HolderSeen::command`].
    pub command: String,
    /// CPU time …
    pub budget_ns: u64,
    /// … in each period of this length …
    pub period_ns: u64,
    /// … so soon after waking [ns].
    pub deadline_ns: u64,
    /// Whether somebody seems to wait for what it does.
    pub awaited: bool,
    /// What has become of it.
    pub kept: Kept,
}

/// A session of an application.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionSeen {
    /// Its number.
    pub session: u32,
    /// The process that has opened it; 0: it cannot be seen from here.
    pub pid: i32,
    /// Its user.
    pub uid: u32,
    /// Its name, by the program.
    pub name: Option<String>,
    /// The sort of program.
    pub role: String,
    /// Threads that take part.
    pub threads: u32,
    /// Whether it has its user's attention, if it has said so or that it has not.
    pub foreground: Option<bool>,
    /// The contract that it holds.
    pub promised: Option<String>,
    /// What one of its threads says of its cycles; none: none takes part, or says anything.
    pub cycles: Option<CyclesSeen>,
    /// The program that has asked for it, if it is not its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_by: Option<String>,
}

/// Cycles of a thread, by its own word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CyclesSeen {
    /// That have begun.
    pub begun: u32,
    /// That have ended after their deadline, or begun after it.
    pub late: u32,
    /// What the last one took [ns].
    pub worked_ns: u64,
}

/// What contracts share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineSeen {
    /// CPUs that are online and can carry contracts.
    pub cpus: Vec<u32>,
    /// The part of each that everybody else keeps [1/1000].
    pub left_for_others_per_mille: u32,
    /// The part of the machine that a user without privilege may hold [1/1000].
    pub user_quota_per_mille: u32,
    /// The part of the machine that all users without privilege may hold together [1/1000].
    #[serde(default)]
    pub users_quota_per_mille: u32,
    /// The part of the machine that sessions of a user without privilege may be promised together [1/1000].
    #[serde(default)]
    pub session_quota_per_mille: u32,
}

/// One contract.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    /// What it is called.
    pub name: String,
    /// Who holds it.
    pub holder: HolderSeen,
    /// The user who asked for it.
    pub uid: u32,
    /// What it promises.
    pub terms: Terms,
    /// Where it runs; none: it fits on no CPU any more and runs on its class's share.
    pub placement: Option<Placement>,
    /// What its holder may rely on, if it has a place.
    pub promise: Option<Promise>,
    /// What became of it so far, if it has a place.
    pub kept: Option<Kept>,
}

/// What became of a contract since it was made, or was given its place anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Kept {
    /// Threads that hold it; 0 if a class does.
    pub threads: u32,
    /// The CPU it is on now.
    pub cpu: u32,
    /// Run under it [ns].
    pub service_ns: u64,
    /// Of that beyond the promise [ns].
    pub extra_ns: u64,
    /// Of that on what others left of their budgets [ns].
    pub reclaimed_ns: u64,
    /// Jobs ended, from waking to sleeping; or periods that counted, of one that tolerates losses.
    pub deadlines: u64,
    /// Of those too late, or without their budget.
    pub misses: u64,
    /// Of those more than was tolerated.
    pub violations: u64,
    /// Times that the budget was used up.
    pub exhaustions: u64,
}

/// Why a request cannot be answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    /// What sort of thing is wrong.
    pub kind: FaultKind,
    /// The cause and the mend, in one sentence.
    pub message: String,
}

/// Sorts of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// The request is not understood.
    BadRequest,
    /// The terms, or the name, make no sense.
    BadTerms,
    /// The caller may not ask for this.
    NotPermitted,
    /// There is no such process or thread.
    NoProcess,
    /// It is a thread of the kernel.
    KernelThread,
    /// Andante does not schedule it, or contracts cannot be kept for it.
    Unschedulable,
    /// There is no such class.
    UnknownClass,
    /// The holder has a contract already, or the name is taken.
    Taken,
    /// There is no such contract.
    NoContract,
    /// There is no room for another contract in the tables.
    Full,
    /// The caller, or all users together, ask for too much at once.
    Busy,
    /// The kernel did not do what it was told.
    Failed,
}

impl Fault {
    /// A fault with its sentence.
    pub fn new(kind: FaultKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_as_documented() {
        let line = r#"{"op":"reserve","holder":{"process":1234},"terms":{"budget_ns":9000000,"period_ns":33000000}}"#;
        let request: Request = serde_json::from_str(line).unwrap();
        let ask = Ask {
            holder: Holder::Process(1234),
            terms: Terms::new(9_000_000, 33_000_000),
            name: None,
        };
        assert_eq!(request, Request::Reserve(ask));
        let list: Request = serde_json::from_str(r#"{"op":"list"}"#).unwrap();
        assert_eq!(list, Request::List {});
    }

    #[test]
    fn replies_survive_the_socket() {
        let reserved = Reply::Reserved(Box::new(Reserved {
            name: "film".into(),
            holder: HolderSeen {
                holder: Holder::Class("/film".into()),
                command: String::new(),
            },
            terms: Terms::new(9_000_000, 33_000_000),
            placement: Placement::Whole { cpu: 3 },
            promise: Promise::EveryDeadline,
            test: Test::Utilisation,
            weakened: Vec::new(),
            notes: vec!["a note".into()],
        }));
        let text = serde_json::to_string(&reserved).unwrap();
        assert!(
            text.contains(r#""holder":{"class":"/film","command":""}"#),
            "{text}"
        );
        assert_eq!(serde_json::from_str::<Reply>(&text).unwrap(), reserved);
    }
}
