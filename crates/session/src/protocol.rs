// SPDX-License-Identifier: GPL-2.0
//! The lines of a session.
//!
//! ```text
//! {"op":"open","version":1,"role":"game","cycle":{"period_ns":16666667,"budget_ns":9000000}}
//! {"opened":{"version":1,"session":7,"calls":{"fast":true,"general":true}}}
//!                                            with the general call's program, if there is one
//! {"op":"join","thread":4711}
//! {"joined":{"thread":1}}                    with the page's file descriptor (SCM_RIGHTS)
//! {"op":"promise","terms":{"budget_ns":9500000,"period_ns":16666667}}
//! {"granted":{"name":"game-4711","terms":{…}}}   or   {"offer":{"terms":{…},"reason":"…"}}
//! {"op":"look","thread":1}                   by who cannot call otherwise
//! {"done":{}}
//! {"op":"subscribe","thread":1,"service":0,"bytes":30000}
//! {"done":{}}                                asked with the socket's file descriptor
//! {"op":"tell","thread":1,"by":"ring"}       or   "nothing"   or   {"signal":34}
//! {"done":{}}                                with the ring's file descriptor
//! {"notice":{"exhausted":{"times":3}}}       at any time
//! ```
//!
//! And of a connection that speaks for other processes, as who answers requests over D-Bus does:
//!
//! ```text
//! {"op":"declare","process":4711,"thread":4712,"role":"audio","user":1000}
//! {"declared":{"session":8,"threads":1}}
//! {"op":"retract","process":4711,"role":"audio"}
//! {"done":{}}
//! ```
//!
//! A program that opens no session says first which version it speaks, of this and of what is said of contracts:
//!
//! ```text
//! {"op":"hello","version":1}
//! {"hello":{"version":1}}                    or an error of the kind "version"
//! ```
//!
//! Times are in nanoseconds.

use serde::{Deserialize, Serialize};

use crate::version::VERSION;

/// What a program asks for within a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Which version the program speaks, before anything else is asked for; `open` says it too.
    Hello {
        /// [`VERSION`].
        version: u32,
    },
    /// A session, first of all.
    Open(Wish),
    /// One of the program's threads is to take part. The answer comes with its page.
    Join {
        /// Its number, as the program sees it (`gettid`).
        thread: i32,
        /// Its own cycle, where that is another than the session's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cycle: Option<Cycle>,
    },
    /// It takes part no more.
    Leave {
        /// The number that its answer to `join` gave it.
        thread: u32,
    },
    /// The scheduler is to look whether the thread waits behind others, and has an event: for who cannot call
    /// (`page.h`).
    Look {
        /// The number that its answer to `join` gave it.
        thread: u32,
        /// When the event is to be delivered \[ns of CLOCK_MONOTONIC\]; 0: at once.
        #[serde(default, skip_serializing_if = "is_at_once")]
        deliver_ns: u64,
    },
    /// The thread has an event whenever so much has come to the socket whose descriptor comes along (SCM_RIGHTS),
    /// or something has been written to the eventfd, in the place of what was subscribed to that before. The daemon
    /// does not keep the descriptor.
    Subscribe {
        /// The number that its answer to `join` gave it.
        thread: u32,
        /// Which sort of event.
        service: u32,
        /// A frame's worth [bytes]; 0: whatever comes.
        #[serde(default)]
        bytes: u32,
    },
    /// Nobody has, whenever something comes to the socket whose descriptor comes along.
    Unsubscribe {},
    /// The thread is told of its events from now on, in the place of how it was told before.
    Tell {
        /// The number that its answer to `join` gave it.
        thread: u32,
        /// The way.
        by: Tell,
    },
    /// Whether the program has its user's attention. Of one that has not, other sessions of its user may have the
    /// promise.
    Foreground {
        /// It has.
        on: bool,
    },
    /// A promise for all threads of the session together, in place of the one that it has, if any.
    Promise {
        /// What is to be promised.
        terms: Terms,
    },
    /// The promise is needed no more.
    Withdraw {},
    /// Somebody waits for what threads of another process do. No session has to be opened for this.
    Declare(Declare),
    /// What was declared of a process over this connection does not stand any more.
    Retract {
        /// Its number.
        process: i32,
        /// As what it was declared.
        role: Role,
    },
}

impl Request {
    /// What is asked for in them all.
    pub const OPS: [&str; 13] = [
        "hello",
        "open",
        "join",
        "leave",
        "look",
        "subscribe",
        "unsubscribe",
        "tell",
        "foreground",
        "promise",
        "withdraw",
        "declare",
        "retract",
    ];
}

/// A session for a process that does not open one itself: its threads are waited for, at no pace. It stands until
/// the process ends, it is retracted, or the connection ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Declare {
    /// The process.
    pub process: i32,
    /// One of its threads, as numbered where the daemon is; none: all, and those that it starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<i32>,
    /// The sort of program.
    pub role: Role,
    /// The user who asks for it, whose the process has to be; none: the one who has connected. Only root and the
    /// group `andante` speak for other users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<u32>,
}

/// Ways to tell a thread that it has an event (`page.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tell {
    /// None: it is scheduled as one that has an event.
    #[default]
    Nothing,
    /// By a ring buffer, whose descriptor comes with the answer.
    Ring,
    /// By this signal, with the service as its value.
    Signal(u32),
}

/// The purpose of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wish {
    /// The version that the program speaks: [`VERSION`].
    pub version: u32,
    /// The sort of program.
    pub role: Role,
    /// What its threads do, unless they say otherwise.
    pub cycle: Cycle,
    /// What to call it; left out, it is called after its process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl Wish {
    /// A session of this sort, without a name, in this version's words.
    pub fn new(role: Role, cycle: Cycle) -> Self {
        Self {
            version: VERSION,
            role,
            cycle,
            name: None,
        }
    }
}

/// Sorts of programs. It is shown to people; how threads are served goes by their cycles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Sound: a period that is late is heard at once.
    Audio,
    /// A game: frames at an even pace, and answers to its player.
    Game,
    /// A film, a stream, a call: frames at an even pace.
    Video,
    /// Answers people, at no pace of its own.
    Interactive,
}

impl Role {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Audio, Self::Game, Self::Video, Self::Interactive];

    /// Its name, as it is said and shown.
    pub fn name(self) -> &'static str {
        match self {
            Self::Audio => "audio",
            Self::Game => "game",
            Self::Video => "video",
            Self::Interactive => "interactive",
        }
    }
}

/// A piece of work that comes again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cycle {
    /// From the beginning of one to that of the next \[ns\]; none: at no pace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period_ns: Option<u64>,
    /// Until when it is to be done, from its beginning \[ns\]; none: the period.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ns: Option<u64>,
    /// CPU time that it takes \[ns\]; none: the scheduler finds out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_ns: Option<u64>,
}

impl Cycle {
    /// At this pace \[ns\], of which nothing else is said.
    pub fn every_ns(period_ns: u64) -> Self {
        Self {
            period_ns: Some(period_ns),
            ..Self::default()
        }
    }

    /// The same, which takes so much CPU time \[ns\].
    pub fn taking_ns(self, budget_ns: u64) -> Self {
        Self {
            budget_ns: Some(budget_ns),
            ..self
        }
    }
}

/// A promise: so much CPU time in every period, losing `losses` of every `window` periods at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Terms {
    /// C \[ns\].
    pub budget_ns: u64,
    /// T \[ns\].
    pub period_ns: u64,
    /// D \[ns\]; none: the period's end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ns: Option<u64>,
    /// x; 0: nothing is lost.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub losses: u32,
    /// y; 0: nothing is lost.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub window: u32,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's own convention
fn is_at_once(deliver_ns: &u64) -> bool {
    *deliver_ns == 0
}

#[allow(clippy::trivially_copy_pass_by_ref)] // as above
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// A line from the daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Said {
    /// Nobody asked for it.
    Notice {
        /// What has happened.
        notice: Notice,
    },
    /// The answer to the request that was sent first of those not answered yet.
    Answer(Answer),
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Both speak the same version.
    Hello(Hello),
    /// There is a session.
    Opened(Opened),
    /// The thread takes part; its page comes along.
    Joined(Joined),
    /// It is done: to `leave`, `look`, `tell`, `foreground`, `withdraw` and `retract`.
    Done {},
    /// Yes.
    Granted(Granted),
    /// No; but this could be promised.
    Offer(Offer),
    /// It is declared.
    Declared(Declared),
    /// The request cannot be answered.
    Error(Fault),
}

/// The daemon's version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// That it speaks.
    pub version: u32,
}

/// A session that was opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opened {
    /// The version that the daemon speaks.
    pub version: u32,
    /// Number of the session.
    pub session: u32,
    /// How its threads may call the scheduler, beside `look`.
    #[serde(default)]
    pub calls: Calls,
}

/// Ways to call the scheduler (`page.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Calls {
    /// By `prctl`.
    #[serde(default)]
    pub fast: bool,
    /// By running the program whose descriptor comes along.
    #[serde(default)]
    pub general: bool,
}

/// A thread that has joined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Joined {
    /// Its number within the session, from 1 on.
    pub thread: u32,
}

/// What was declared of another process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Declared {
    /// Number of its session.
    pub session: u32,
    /// Threads that take part in it now.
    pub threads: u32,
}

/// A promise that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Granted {
    /// What it is called, in `andante reserve --list` too.
    pub name: String,
    /// What is promised.
    pub terms: Terms,
    /// What else should be known, in whole sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A promise that cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// The nearest that could be; none: nothing near it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terms: Option<Terms>,
    /// What stands in the way, in whole sentences.
    pub reason: String,
}

/// What has become of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Notice {
    /// What was promised is promised less firmly from now on.
    Weakened {
        /// Why, in a sentence.
        reason: String,
    },
    /// The budget was used up before the work was done, for so many times since this was last said.
    Exhausted {
        /// How often.
        times: u64,
    },
    /// The promise is no more, and the session goes on without it.
    Ended {
        /// Why, in a sentence.
        reason: String,
    },
}

/// Why a request cannot be answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// What sort of thing is wrong.
    pub kind: FaultKind,
    /// The cause and the mend, in one sentence.
    pub message: String,
}

/// Sorts of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// The request is not understood.
    BadRequest,
    /// The daemon speaks another version.
    Version,
    /// Numbers that make no sense: a period of nothing, a budget longer than the period.
    BadTerms,
    /// There is no session yet, or there is one already.
    NoSession,
    /// There is no such thread.
    NoThread,
    /// The thread is another process's.
    NotYours,
    /// It takes part already, in this session or another one.
    Taken,
    /// The caller may not ask for this.
    NotPermitted,
    /// Contracts cannot be kept for it: a real-time thread, a process that another scheduler has.
    Unschedulable,
    /// There is no room for more.
    Full,
    /// Too much is asked for at once.
    Busy,
    /// The kernel did not do what it was told.
    Failed,
    /// A sort that this version does not know.
    #[serde(other)]
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_written_as_documented() {
        let open = Request::Open(Wish {
            version: 1,
            role: Role::Game,
            cycle: Cycle {
                period_ns: Some(16_666_667),
                budget_ns: Some(9_000_000),
                ..Cycle::default()
            },
            name: None,
        });
        let line = r#"{"op":"open","version":1,"role":"game","cycle":{"period_ns":16666667,"budget_ns":9000000}}"#;
        assert_eq!(serde_json::to_string(&open).unwrap(), line);
        assert_eq!(serde_json::from_str::<Request>(line).unwrap(), open);
        let join = Request::Join {
            thread: 4711,
            cycle: None,
        };
        assert_eq!(
            serde_json::to_string(&join).unwrap(),
            r#"{"op":"join","thread":4711}"#
        );
        let declare = Request::Declare(Declare {
            process: 4711,
            thread: Some(4712),
            role: Role::Audio,
            user: Some(1000),
        });
        assert_eq!(
            serde_json::to_string(&declare).unwrap(),
            r#"{"op":"declare","process":4711,"thread":4712,"role":"audio","user":1000}"#
        );
        let whole = r#"{"op":"declare","process":4711,"role":"game"}"#;
        let whole = serde_json::from_str::<Request>(whole).unwrap();
        assert!(matches!(whole, Request::Declare(asked) if asked.thread.is_none()));
    }

    #[test]
    fn nothing_else_can_be_asked_for() {
        let unknown = |op: &str| {
            let parsed = serde_json::from_str::<Request>(&format!("{{\"op\":\"{op}\"}}"));
            parsed.is_err_and(|error| error.to_string().starts_with("unknown variant"))
        };
        assert!(!Request::OPS.into_iter().any(unknown));
        let parsed = serde_json::from_str::<Request>("{\"op\":\"dance\"}").unwrap_err();
        assert_eq!(
            parsed.to_string().matches('`').count(),
            2 * (1 + Request::OPS.len())
        );
    }

    #[test]
    fn answers_and_notices_are_told_apart() {
        let said = |line: &str| serde_json::from_str::<Said>(line).unwrap();
        let notice = Notice::Exhausted { times: 3 };
        assert_eq!(
            said(r#"{"notice":{"exhausted":{"times":3}}}"#),
            Said::Notice { notice }
        );
        assert_eq!(
            said(r#"{"joined":{"thread":1}}"#),
            Said::Answer(Answer::Joined(Joined { thread: 1 }))
        );
        assert_eq!(said(r#"{"done":{}}"#), Said::Answer(Answer::Done {}));
        let fault = said(r#"{"error":{"kind":"of_tomorrow","message":"no"}}"#);
        assert!(
            matches!(fault, Said::Answer(Answer::Error(fault)) if fault.kind == FaultKind::Unknown)
        );
    }
}
