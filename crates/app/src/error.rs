// SPDX-License-Identifier: GPL-2.0
//! What can go wrong, each with the way out.

use std::io;
use std::path::PathBuf;

use andante_session::{Fault, FaultKind};

/// Why a call failed. Nothing of it keeps a program from going on without Andante.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nobody listens at the socket.
    #[error("Andante is not there: nobody listens at {}; `sudo andante run` starts it", .0.display())]
    NoDaemon(PathBuf),
    /// The connection has ended: with the daemon, or because it was closed.
    #[error("the connection to Andante has ended: open another session when it is back")]
    Lost,
    /// No answer came in time.
    #[error("Andante has not answered within {}s: go on without it", .0.as_secs_f32())]
    Late(std::time::Duration),
    /// The session was opened by a process that this one was forked from.
    #[error("this process was forked with the session open: open one of its own")]
    Forked,
    /// The deadline has passed.
    #[error("the deadline has passed already: give one of CLOCK_MONOTONIC that is still to come")]
    PastDeadline,
    /// A cycle is ended that was not begun.
    #[error("no cycle was begun: call begin() first")]
    NoCycle,
    /// A cycle begins while one is in progress. The new one has begun nevertheless.
    #[error(
        "the cycle before was not ended, and this one has begun in its place: call end() when one is done"
    )]
    NotEnded,
    /// There is no such service.
    #[error("there is no service {0}: they are numbered from 0 to {max}", max = andante_session::page::SERVICES - 1)]
    NoService(usize),
    /// The page is not what it should be.
    #[error(
        "the page that came from Andante is of another layout: install the library that belongs to it"
    )]
    BadPage,
    /// The daemon says no.
    #[error("{}", .0.message)]
    Refused(Fault),
    /// The system refused something.
    #[error("{what}: {source}")]
    System {
        /// The attempt.
        what: &'static str,
        /// Its outcome.
        source: io::Error,
    },
}

impl Error {
    pub(crate) fn system(what: &'static str) -> impl Fn(io::Error) -> Self {
        move |source| Self::System { what, source }
    }

    /// The daemon's sort of refusal, if it is one.
    pub fn kind(&self) -> Option<FaultKind> {
        match self {
            Self::Refused(fault) => Some(fault.kind),
            _ => None,
        }
    }
}
