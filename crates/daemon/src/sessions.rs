// SPDX-License-Identifier: GPL-2.0
//! Sessions: what programs declare of their threads, and are promised for them.
//!
//! A session belongs to its connection, and ends with it. Its threads are those of the process that has
//! connected, by the kernel's word; so nobody declares anything of another's, and no privilege is asked for:
//! what is declared stays under the bound of all that is learnt (`core/declared.h`). A promise is another
//! matter, and judged like every contract; the threads of the session hold it together.

mod page;
mod promised;
mod sinks;
pub mod spoken;
mod terms;

use std::borrow::Cow;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering::Relaxed;

use andante_sched::contracts::CallError;
use andante_sched::session::{Source, ToldBy, eventfd_of};
use andante_session::page::SERVICES;
use andante_session::{
    Answer, Calls, Cycle, Fault, FaultKind, Joined, Mapped, Opened, Request, Tell, VERSION, Wish,
    understood,
};
use serde::Deserialize;

use self::page::Made;
use self::promised::Holds;
pub use self::sinks::Sinks;
use crate::books::Books;
use crate::host::{Host, Thread};
use crate::kernel::Kernel;
use crate::protocol::{CyclesSeen, SessionSeen};
use crate::server::Peer;

/// Threads of a session: as many as somebody without privilege may reserve for.
const MAX_THREADS: usize = 1024;
/// Sessions of a user: more programs than anybody plays or watches at once.
const MAX_OF_USER: usize = 256;
/// Sessions of all: with the other connections they stay below what a process may open at most.
const MAX_OF_ALL: usize = 4096;
/// The last of the kernel's signals.
const MAX_SIGNAL: u32 = 64;
/// Longest name of a session [bytes].
const MAX_NAME: usize = 64;

/// A thread that takes part.
#[derive(Debug)]
struct Member {
    /// Within the session.
    number: u32,
    tid: i32,
    started: u64,
    /// What it is called for as; 0: it is not.
    sink: u32,
    /// Whether it is told of its events.
    told: bool,
}

impl Member {
    /// Whether it has not ended: its number may be another thread's since.
    fn is_there(&self, host: &dyn Host) -> bool {
        let now = host.name(self.tid);
        now.is_some_and(|(_, started)| started == self.started)
    }

    /// It is called for no more.
    fn gives_back(&self, kernel: &mut dyn Kernel, sinks: &mut Sinks) {
        if self.told {
            let _ = kernel.tell(self.sink, None, 0);
        }
        sinks.give_back(self.sink);
    }
}

/// One program's.
#[derive(Debug)]
pub struct Session {
    number: u32,
    /// Whose it is: of who has connected, or of whom that one speaks for.
    whose: Peer,
    wish: Wish,
    /// When its process was started: with its number that tells it from another one.
    started: u64,
    members: Vec<Member>,
    joined: u32,
    /// Whether it is in front, if it has said so or that it is not.
    foreground: Option<bool>,
    /// A socket has been a source of it.
    subscribed: bool,
    promised: Option<Holds>,
    /// The thread whose cycles are shown, and its page: the first to join while there was none.
    shown: Option<(u32, Mapped)>,
    /// The program that speaks for it, if it does not speak for itself.
    asked_by: Option<String>,
    /// Whether all threads of its process take part.
    follows: bool,
}

/// What a request is answered with.
pub struct Answering<'a> {
    pub books: &'a mut Books,
    pub host: &'a dyn Host,
    pub kernel: &'a mut dyn Kernel,
    pub peer: Peer,
    /// Of the next session.
    pub number: &'a mut u32,
    pub sinks: &'a mut Sinks,
    /// The descriptor that has come along with the request.
    pub passed: Option<OwnedFd>,
    /// Sessions that the user has, and that all have: for `open` alone.
    pub others: [usize; 2],
}

/// The answer, and what is passed along with it.
type Answered = Result<(Answer, Option<OwnedFd>), Fault>;

/// What the line asks for of a session; none: it is about something else.
pub fn parse(line: &[u8]) -> Option<Result<Request, Fault>> {
    let error = match serde_json::from_slice(line) {
        Ok(request) => return Some(Ok(request)),
        Err(error) => error,
    };
    let Op { op } = serde_json::from_slice(line).ok()?;
    Request::OPS.contains(&op.as_ref()).then(|| {
        let message = format!("the request `{op}` is not understood: {error}");
        Err(fault(FaultKind::BadRequest, message))
    })
}

/// Of a line that is not understood otherwise.
#[derive(Deserialize)]
struct Op<'a> {
    #[serde(borrow)]
    op: Cow<'a, str>,
}

/// Answers a request of the connection that has, or opens, this session.
pub fn answer(
    session: &mut Option<Session>,
    request: Result<Request, Fault>,
    with: &mut Answering<'_>,
) -> (Answer, Option<OwnedFd>) {
    let request = match request {
        Ok(request) => request,
        Err(fault) => return (Answer::Error(fault), None),
    };
    let answered = match (session.as_mut(), request) {
        (None, Request::Open(wish)) => open(wish, with).map(|opened| {
            let number = opened.number;
            *session = Some(opened);
            let program = with.kernel.call_program();
            let calls = Calls {
                fast: with.kernel.hear_calls(true).fast,
                general: program.is_some(),
            };
            let version = VERSION;
            let answer = Answer::Opened(Opened {
                version,
                session: number,
                calls,
            });
            (answer, program)
        }),
        (Some(_), Request::Open(_)) => Err(fault(
            FaultKind::NoSession,
            "this connection has a session already: open another connection for another session",
        )),
        (None, _) => Err(fault(
            FaultKind::NoSession,
            "there is no session yet: send `open` first",
        )),
        (Some(session), request) => session.answer(request, with),
    };
    answered.unwrap_or_else(|fault| (Answer::Error(fault), None))
}

fn open(wish: Wish, with: &mut Answering<'_>) -> Result<Session, Fault> {
    understood(wish.version, VERSION)?;
    check_room(with)?;
    terms::check(&wish.cycle)?;
    let named = |name: &String| {
        name.is_empty() || name.len() > MAX_NAME || name.contains(|c: char| c.is_whitespace())
    };
    if wish.name.as_ref().is_some_and(named) {
        let message = format!("the name of a session is 1 to {MAX_NAME} letters without spaces");
        return Err(fault(FaultKind::BadTerms, message));
    }
    let Some(process) = with.host.thread(with.peer.pid) else {
        let message =
            "your process cannot be seen from here: it has ended, or is hidden from Andante";
        return Err(fault(FaultKind::NotPermitted, message));
    };
    Ok(Session::new(wish, process.started, with))
}

/// Whether there may be another session of the user's.
fn check_room(with: &Answering<'_>) -> Result<(), Fault> {
    let [own, all] = with.others;
    if all < MAX_OF_ALL && (own < MAX_OF_USER || with.peer.caller.privileged) {
        return Ok(());
    }
    let message = format!(
        "user {} has {own} sessions, and all have {all}: close one first",
        with.peer.caller.uid
    );
    Err(fault(FaultKind::Full, message))
}

impl Session {
    /// One without threads.
    fn new(wish: Wish, started: u64, with: &mut Answering<'_>) -> Self {
        *with.number = with.number.checked_add(1).unwrap_or(1);
        Self {
            number: *with.number,
            whose: with.peer,
            wish,
            started,
            members: Vec::new(),
            joined: 0,
            foreground: None,
            subscribed: false,
            promised: None,
            shown: None,
            asked_by: None,
            follows: false,
        }
    }

    /// Whose sessions it counts among.
    pub fn account(&self) -> u32 {
        self.whose.caller.account
    }

    fn answer(&mut self, request: Request, with: &mut Answering<'_>) -> Answered {
        let done = |()| (Answer::Done {}, None);
        match request {
            Request::Hello { .. }
            | Request::Open(_)
            | Request::Declare(_)
            | Request::Retract { .. } => {
                unreachable!("answered before")
            }
            Request::Join { thread, cycle } => self.join(thread, cycle, with),
            Request::Leave { thread } => self.leave(thread, with).map(done),
            Request::Look { thread, deliver_ns } => self.look(thread, deliver_ns, with).map(done),
            Request::Subscribe {
                thread,
                service,
                bytes,
            } => self.subscribe(thread, service, bytes, with).map(done),
            Request::Unsubscribe {} => unsubscribe(with).map(done),
            Request::Tell { thread, by } => self.tell(thread, by, with),
            Request::Foreground { on } => {
                self.set_foreground(on, with);
                Ok(done(()))
            }
            Request::Promise { terms } => self
                .promise_instead(&terms, with)
                .map(|answer| (answer, None)),
            Request::Withdraw {} => {
                self.withdraw(with.books, with.host, with.kernel, with.peer);
                Ok(done(()))
            }
        }
    }

    fn join(&mut self, seen: i32, cycle: Option<Cycle>, with: &mut Answering<'_>) -> Answered {
        let cycle = cycle.unwrap_or(self.wish.cycle);
        terms::check(&cycle)?;
        let thread = self.find(seen, with)?;
        self.forget_ended(with);
        if self.members.iter().any(|member| member.tid == thread.tid) {
            let message = format!("thread {seen} takes part already: let it leave first");
            return Err(fault(FaultKind::Taken, message));
        }
        if self.members.len() >= MAX_THREADS {
            let message = format!(
                "{MAX_THREADS} threads take part already: only those that somebody waits for should"
            );
            return Err(fault(FaultKind::Full, message));
        }
        let number = self.joined + 1;
        let sink = with.sinks.take();
        let page = self.share_page([seen, thread.tid], number, sink, &cycle, with);
        let page = page.inspect_err(|_| with.sinks.give_back(sink))?;
        if let Some(held) = &self.promised {
            with.books
                .takes_part(with.kernel, with.peer.caller, &held.name, thread.tid);
        }
        self.joined = number;
        let (fd, page) = page.into_parts();
        // Of the other threads none is mapped here any more: there may be as many as the kernel maps at most.
        if self.shown.is_none() {
            self.shown = Some((number, page));
        }
        self.members.push(Member {
            number,
            tid: thread.tid,
            started: thread.started,
            sink,
            told: false,
        });
        let joined = Answer::Joined(Joined { thread: number });
        Ok((joined, Some(fd)))
    }

    /// The kernel is told of a thread that joins, as this number of the session and this sink; its page. The
    /// program calls it by the first number, the kernel by the second.
    fn share_page(
        &self,
        [seen, tid]: [i32; 2],
        number: u32,
        sink: u32,
        cycle: &Cycle,
        with: &mut Answering<'_>,
    ) -> Result<Made, Fault> {
        let page = page::make(self.number, number, sink).map_err(|error| {
            fault(
                FaultKind::Failed,
                format!("no page can be made for the thread: {error}"),
            )
        })?;
        let declared = terms::declared(self.number, cycle, sink);
        let declared = with.kernel.declare(tid, Some(declared));
        declared.map_err(|error| failed(seen, &error))?;
        if let Err(error) = with.kernel.share_page(tid, page.address()) {
            let _ = with.kernel.declare(tid, None);
            return Err(failed(seen, &error));
        }
        Ok(page)
    }

    /// The thread that the program calls so.
    fn find(&self, seen: i32, with: &Answering<'_>) -> Result<Thread, Fault> {
        let process = with.host.thread(with.peer.pid);
        if process.is_none_or(|process| process.started != self.started) {
            let message =
                "the process that has opened this session has ended: open one of your own";
            return Err(fault(FaultKind::NotYours, message));
        }
        let found = with.host.thread_of(with.peer.pid, seen);
        let Some(thread) = found.and_then(|tid| with.host.thread(tid)) else {
            let Peer { caller, pid } = with.peer;
            // In a container the number means another thread, or none.
            let means_ours = with.host.thread_of(pid, pid) == Some(pid);
            let other = with.host.thread(seen).filter(|_| means_ours);
            return Err(match other {
                Some(other) => not_yours(&other, caller.uid),
                None => {
                    let message = format!("there is no thread {seen}: give what gettid() returns");
                    fault(FaultKind::NoThread, message)
                }
            });
        };
        if thread.realtime {
            return Err(is_realtime(seen));
        }
        Ok(thread)
    }

    /// Where the thread of this number is among those that take part.
    fn position(&self, number: u32) -> Result<usize, Fault> {
        let at = self.members.iter().position(|m| m.number == number);
        at.ok_or_else(|| {
            let message = format!("no thread of number {number} takes part in this session");
            fault(FaultKind::NoThread, message)
        })
    }

    /// What the thread of this number is called for as, and where it is among those that take part.
    fn sink(&self, number: u32) -> Result<(u32, usize), Fault> {
        let at = self.position(number)?;
        match self.members[at].sink {
            0 => {
                let message =
                    "so many threads take part in sessions that this one cannot be called for";
                Err(fault(FaultKind::Full, message))
            }
            sink => Ok((sink, at)),
        }
    }

    fn look(&self, number: u32, deliver_ns: u64, with: &mut Answering<'_>) -> Result<(), Fault> {
        let (sink, _) = self.sink(number)?;
        let looked = with.kernel.look(sink, deliver_ns);
        looked.map_err(|error| fault(FaultKind::Failed, error.to_string()))
    }

    /// A signal is sent where the user may send it, as the kernel sees it then.
    fn tell(&mut self, number: u32, by: Tell, with: &mut Answering<'_>) -> Answered {
        let (sink, at) = self.sink(number)?;
        let by = match by {
            Tell::Nothing => None,
            Tell::Ring => Some(ToldBy::Ring),
            Tell::Signal(signal @ 1..=MAX_SIGNAL) => Some(ToldBy::Signal(signal)),
            Tell::Signal(signal) => {
                let message = format!(
                    "there is no signal {signal}: they are numbered from 1 to {MAX_SIGNAL}"
                );
                return Err(fault(FaultKind::BadTerms, message));
            }
        };
        self.members[at].told = by.is_some();
        let told = with.kernel.tell(sink, by, with.peer.caller.uid);
        let ring = told.map_err(|error| fault(FaultKind::Failed, error.to_string()))?;
        Ok((Answer::Done {}, ring))
    }

    fn subscribe(
        &mut self,
        number: u32,
        service: u32,
        bytes: u32,
        with: &mut Answering<'_>,
    ) -> Result<(), Fault> {
        let tid = self.members[self.position(number)?].tid;
        if service as usize >= SERVICES {
            let message = format!("there is no service {service}: they are numbered from 0 to 3");
            return Err(fault(FaultKind::BadTerms, message));
        }
        let source = Source {
            tid,
            session: self.number,
            service,
            bytes,
        };
        let passed = source_of(with)?;
        let subscribed = with.kernel.subscribe(passed.as_fd(), Some(source));
        subscribed.map_err(|error| unheard(&error))?;
        self.subscribed = true;
        Ok(())
    }

    /// Whether data on a socket may be a source of it.
    pub fn is_subscribed(&self) -> bool {
        self.subscribed
    }

    fn leave(&mut self, number: u32, with: &mut Answering<'_>) -> Result<(), Fault> {
        let at = self.position(number)?;
        let member = self.members.swap_remove(at);
        self.lets_go(&member, with);
        Ok(())
    }

    /// A thread takes part no more. Of one that has ended the kernel knows nothing any more, and its number may
    /// be another thread's.
    fn lets_go(&mut self, member: &Member, with: &mut Answering<'_>) {
        self.shown.take_if(|(number, _)| *number == member.number);
        let (caller, tid) = (with.peer.caller, member.tid);
        let promised = self.promised.as_ref().map(|held| &held.name);
        let is_there = member.is_there(with.host);
        if is_there {
            let _ = with.kernel.declare(tid, None);
        }
        member.gives_back(with.kernel, with.sinks);
        match promised {
            Some(name) if is_there => with.books.leaves(with.kernel, caller, name, tid),
            Some(name) => {
                with.books.forgets(caller, name, tid);
            }
            None => {}
        }
    }

    /// Threads that have ended take part no more, before their numbers are taken for those of others.
    fn forget_ended(&mut self, with: &mut Answering<'_>) {
        let members = std::mem::take(&mut self.members).into_iter();
        let (there, ended): (Vec<_>, Vec<_>) = members.partition(|one| one.is_there(with.host));
        self.members = there;
        for member in &ended {
            self.lets_go(member, with);
        }
    }

    /// How it is told of.
    pub fn seen(&self) -> SessionSeen {
        SessionSeen {
            session: self.number,
            pid: self.whose.pid,
            uid: self.whose.caller.uid,
            name: self.wish.name.clone(),
            role: self.wish.role.name().to_owned(),
            threads: self.members.len() as u32,
            foreground: self.foreground,
            promised: self.promised.as_ref().map(|held| held.name.clone()),
            cycles: self.shown.as_ref().map(|(_, page)| CyclesSeen {
                begun: page.cycles.load(Relaxed),
                late: page.late.load(Relaxed),
                worked_ns: page.worked_ns.load(Relaxed),
            }),
            asked_by: self.asked_by.clone(),
        }
    }

    /// The connection is gone.
    pub fn end(
        mut self,
        books: &mut Books,
        host: &dyn Host,
        kernel: &mut dyn Kernel,
        sinks: &mut Sinks,
    ) {
        for member in &self.members {
            if member.is_there(host) {
                let _ = kernel.declare(member.tid, None);
            }
            member.gives_back(kernel, sinks);
        }
        self.withdraw(books, host, kernel, self.whose);
    }
}

/// Only a program itself says what its threads do.
fn not_yours(thread: &Thread, user: u32) -> Fault {
    let Thread { tid, pid, .. } = thread;
    if !thread.uids.contains(&user) {
        let message = format!(
            "{tid} is a thread of another user's: nobody says what others' threads do; let that user's program \
             open a session"
        );
        return fault(FaultKind::NotPermitted, message);
    }
    let message = format!(
        "{tid} is a thread of process {pid}, not of the one that has opened this session: open one in that process"
    );
    fault(FaultKind::NotYours, message)
}

/// The socket, or the eventfd, that the request is about.
fn source_of(with: &mut Answering<'_>) -> Result<OwnedFd, Fault> {
    let passed = with.passed.take().ok_or_else(|| {
        let message = "no descriptor has come along: pass the socket's, or the eventfd's, with the request \
                       (SCM_RIGHTS), which some sandboxes forbid";
        fault(FaultKind::BadRequest, message)
    })?;
    let is_socket =
        nix::sys::socket::getsockopt(&passed, nix::sys::socket::sockopt::SockType).is_ok();
    if !is_socket && eventfd_of(passed.as_fd()).is_none() {
        let message =
            "the descriptor is no socket's, nor an eventfd's: only what comes to one is seen";
        return Err(fault(FaultKind::BadTerms, message));
    }
    Ok(passed)
}

fn unsubscribe(with: &mut Answering<'_>) -> Result<(), Fault> {
    let source = source_of(with)?;
    let removed = with.kernel.subscribe(source.as_fd(), None);
    removed.map_err(|error| unheard(&error))
}

fn is_realtime(thread: i32) -> Fault {
    let message = format!(
        "thread {thread} runs at real-time priority, before everything that Andante schedules: give that up, or \
         leave it out of the session"
    );
    fault(FaultKind::Unschedulable, message)
}

fn unheard(error: &CallError) -> Fault {
    fault(
        FaultKind::Failed,
        format!("what comes there cannot be seen here: {error}"),
    )
}

fn fault(kind: FaultKind, message: impl Into<String>) -> Fault {
    Fault {
        kind,
        message: message.into(),
    }
}

fn failed(thread: i32, error: &CallError) -> Fault {
    let kind = match error {
        CallError::NoThread => FaultKind::NoThread,
        CallError::KernelThread => FaultKind::NotYours,
        CallError::InSession => FaultKind::Taken,
        _ => FaultKind::Failed,
    };
    fault(kind, format!("thread {thread} cannot take part: {error}"))
}
