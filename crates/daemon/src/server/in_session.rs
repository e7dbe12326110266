// SPDX-License-Identifier: GPL-2.0
//! Requests of sessions, and what is due for those that somebody speaks for.

use std::os::fd::OwnedFd;

use andante_session::{Answer, Declare, Fault, FaultKind, Hello, Request, VERSION, understood};

use super::connection::Connection;
use super::peer::Peer;
use super::{Daemon, THREADS_A_LOOK};
use crate::host::Host;
use crate::kernel::Kernel;
use crate::sessions::{self, Answering, Session, spoken};

/// The answer, and what goes along.
type Answered = (Answer, Option<OwnedFd>);

impl<H: Host> Daemon<H> {
    /// Answers the connection's request of this sort.
    pub(super) fn answer_session(
        &mut self,
        at: usize,
        request: Result<Request, Fault>,
        kernel: &mut dyn Kernel,
    ) -> Answered {
        let peer = self.connections[at].peer;
        match request {
            Ok(Request::Hello { version }) => {
                let hello = understood(version, VERSION).map(|()| Hello { version: VERSION });
                (hello.map_or_else(Answer::Error, Answer::Hello), None)
            }
            Ok(Request::Declare(asked)) => self.declare(at, &asked, kernel),
            Ok(Request::Retract { process, role }) => self.spoken(at, peer, kernel, |all, with| {
                spoken::retract(all, process, role, with)
            }),
            request => {
                let again = request.clone();
                let (answer, fd) = self.answer_own(at, request, kernel);
                match again {
                    Ok(Request::Join { thread, .. })
                        if is_taken(&answer) && self.yield_to_own(peer, thread, kernel) =>
                    {
                        self.answer_own(at, again, kernel)
                    }
                    _ => (answer, fd),
                }
            }
        }
    }

    fn answer_own(
        &mut self,
        at: usize,
        request: Result<Request, Fault>,
        kernel: &mut dyn Kernel,
    ) -> Answered {
        let peer = self.connections[at].peer;
        let passed = self.connections[at].take_passed();
        let others = match request {
            Ok(Request::Open(_)) => self.sessions_of(peer.caller.account),
            _ => [0, 0],
        };
        let mut with = Answering {
            others,
            books: &mut self.books,
            host: &self.host,
            kernel,
            peer,
            number: &mut self.session,
            sinks: &mut self.sinks,
            passed,
        };
        sessions::answer(&mut self.connections[at].session, request, &mut with)
    }

    fn declare(&mut self, at: usize, asked: &Declare, kernel: &mut dyn Kernel) -> Answered {
        let peer = self.connections[at].peer;
        if peer.is_in_container() {
            let message = "processes have other numbers where you are (a pid namespace of its own): ask from \
                           outside the container";
            let kind = FaultKind::NotPermitted;
            return refused(kind, message);
        }
        let (process, whose) = match spoken::whose(asked, peer, &self.host, &self.accounts) {
            Ok(found) => found,
            Err(fault) => return (Answer::Error(fault), None),
        };
        let by = self
            .host
            .name(peer.pid)
            .map_or(String::new(), |(name, _)| name);
        self.spoken(at, whose, kernel, |all, with| {
            spoken::declare(all, asked, &process, &by, with)
        })
    }

    /// Does this to the sessions that the connection speaks for, in the name of `whose`.
    fn spoken(
        &mut self,
        at: usize,
        whose: Peer,
        kernel: &mut dyn Kernel,
        does: impl FnOnce(&mut Vec<Session>, &mut Answering<'_>) -> Result<Answered, Fault>,
    ) -> Answered {
        let mut with = Answering {
            others: self.sessions_of(whose.caller.account),
            books: &mut self.books,
            host: &self.host,
            kernel,
            peer: whose,
            number: &mut self.session,
            sinks: &mut self.sinks,
            passed: None,
        };
        let answered = does(&mut self.connections[at].spoken, &mut with);
        answered.unwrap_or_else(|fault| (Answer::Error(fault), None))
    }

    /// The program says itself what its thread does: whoever has spoken for it does not any more.
    fn yield_to_own(&mut self, peer: Peer, seen: i32, kernel: &mut dyn Kernel) -> bool {
        let Some(tid) = self.host.thread_of(peer.pid, seen) else {
            return false;
        };
        let mut all = self.connections.iter_mut().flat_map(|one| &mut one.spoken);
        all.any(|session| session.yields(tid, kernel))
    }

    /// Processes that have ended are spoken of no more, and threads that were started are; so many at a time that
    /// nobody waits for long.
    pub(super) fn look_after_spoken(&mut self, kernel: &mut dyn Kernel) {
        let count = |one: &Connection| one.spoken.len();
        let all: usize = self.connections.iter().map(count).sum();
        let (mut done, mut threads) = (0, 0);
        while done < all && threads < THREADS_A_LOOK {
            let mut which = (self.looked_after + done) % all;
            let at = self.connections.iter().position(|one| {
                let here = which < one.spoken.len();
                which -= if here { 0 } else { one.spoken.len() };
                here
            });
            let Some(at) = at else { break };
            let mut with = Answering {
                others: [0, 0],
                books: &mut self.books,
                host: &self.host,
                kernel: &mut *kernel,
                peer: self.connections[at].spoken[which].whose(),
                number: &mut self.session,
                sinks: &mut self.sinks,
                passed: None,
            };
            threads += self.connections[at].spoken[which].look_after(&mut with);
            done += 1;
        }
        self.looked_after = if all == 0 {
            0
        } else {
            (self.looked_after + done) % all
        };
        for connection in &mut self.connections {
            for over in connection.spoken.extract_if(.., |one| one.is_idle()) {
                over.end(&mut self.books, &self.host, kernel, &mut self.sinks);
            }
        }
    }
}

fn is_taken(answer: &Answer) -> bool {
    matches!(answer, Answer::Error(fault) if fault.kind == FaultKind::Taken)
}

fn refused(kind: FaultKind, message: &str) -> Answered {
    let message = message.to_owned();
    (Answer::Error(Fault { kind, message }), None)
}
