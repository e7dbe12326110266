// SPDX-License-Identifier: GPL-2.0
//! The session of a program.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Instant;

use andante_session::{
    Answer, Cycle, Fault, FaultKind, Granted, Notice, Offer, Request, Terms, VERSION, Wish,
    understood,
};
use nix::unistd::{getpid, gettid};

use crate::call::{self, Call};
use crate::error::Error;
use crate::fork;
use crate::page::Mapped;
use crate::thread::Thread;
use crate::wire::{Answered, PATIENCE, Wire};

/// Where Andante listens: `$ANDANTE_SOCKET`, or `/run/andante.sock`.
pub fn socket_path() -> PathBuf {
    std::env::var_os("ANDANTE_SOCKET").map_or_else(|| "/run/andante.sock".into(), PathBuf::from)
}

/// A session: may be used from any thread, and lasts until it and all its [`Thread`]s are dropped.
#[derive(Debug, Clone)]
pub struct Session {
    shared: Arc<Shared>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    wire: Mutex<Wire>,
    /// The process that has opened it, by two tokens: a child by a bare `clone` has another number only.
    generation: u32,
    pid: i32,
    fd: RawFd,
    call: Call,
    /// That general calls run, if they are made.
    program: Option<OwnedFd>,
}

/// The answer to a promise that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Promised {
    /// Yes.
    Granted(Granted),
    /// No; but this could be promised.
    Offer(Offer),
}

impl Session {
    /// Opens one.
    ///
    /// # Errors
    /// [`Error::NoDaemon`] where Andante does not run, which is no fault; [`Error::Refused`] for a wish that
    /// makes no sense, or by a daemon of another version.
    pub fn open(wish: Wish) -> Result<Self, Error> {
        fork::watch();
        let until = Instant::now() + PATIENCE;
        let mut wire = Wire::connect(&socket_path(), until)?;
        let fd = wire.as_fd().as_raw_fd();
        match wire.ask_until(&Request::Open(wish), None, until)? {
            (Answer::Opened(opened), program) => {
                understood(VERSION, opened.version).map_err(Error::Refused)?;
                let call = Call::choose(opened.calls);
                Ok(Self {
                    shared: Arc::new(Shared {
                        wire: Mutex::new(wire),
                        generation: fork::generation(),
                        pid: getpid().as_raw(),
                        fd,
                        call,
                        program: program.ok().filter(|_| call == Call::General),
                    }),
                })
            }
            _ => Err(strange()),
        }
    }

    /// The calling thread takes part from now on, with a cycle of its own or the session's.
    ///
    /// # Errors
    /// It takes part already, or has real-time priority; [`Error::Lost`].
    pub fn join(&self, cycle: Option<Cycle>) -> Result<Thread, Error> {
        let request = Request::Join {
            thread: gettid().as_raw(),
            cycle,
        };
        match self.shared.ask(&request)? {
            (Answer::Joined(joined), fd) => {
                let page = fd.and_then(Mapped::of);
                let page = page.inspect_err(|_| {
                    // To the daemon it has joined, and could not do so again.
                    let thread = joined.thread;
                    let _ = self.shared.done(&Request::Leave { thread });
                })?;
                Ok(Thread::new(self.shared.clone(), joined.thread, page))
            }
            _ => Err(strange()),
        }
    }

    /// How [`Sink::raise_now`](crate::Sink::raise_now) calls the scheduler.
    pub fn call(&self) -> Call {
        self.shared.call
    }

    /// Whether the program has its user's attention, is in front. What may be promised to a user's sessions is for
    /// those in front, and for those that never say: one that is not keeps its promise until another of its user's
    /// asks for what could not be promised otherwise.
    ///
    /// # Errors
    /// [`Error::Lost`].
    pub fn foreground(&self, on: bool) -> Result<(), Error> {
        self.shared.done(&Request::Foreground { on })
    }

    /// Asks for a promise: so much CPU time in every period, for all threads of the session together, in the
    /// place of the one that it has.
    ///
    /// # Errors
    /// No thread has joined; [`Error::Refused`] for terms that make no sense.
    pub fn promise(&self, terms: Terms) -> Result<Promised, Error> {
        match self.shared.ask(&Request::Promise { terms })? {
            (Answer::Granted(granted), _) => Ok(Promised::Granted(granted)),
            (Answer::Offer(offer), _) => Ok(Promised::Offer(offer)),
            _ => Err(strange()),
        }
    }

    /// The promise is needed no more.
    ///
    /// # Errors
    /// [`Error::Lost`].
    pub fn withdraw(&self) -> Result<(), Error> {
        self.shared.done(&Request::Withdraw {})
    }

    /// News of the promise, if anything has; never waits: nothing, while another thread's call does.
    /// [`Session::as_raw_fd`] is readable when there may be something; what comes while a call waits for its
    /// answer is kept here, so ask after such calls as well.
    ///
    /// # Errors
    /// [`Error::Lost`] once all has been told.
    pub fn next_notice(&self) -> Result<Option<Notice>, Error> {
        self.shared
            .free_wire()?
            .map_or(Ok(None), |mut wire| wire.notice())
    }
}

/// For poll and epoll; nothing may be read from it but by [`Session::next_notice`].
impl AsRawFd for Session {
    fn as_raw_fd(&self) -> RawFd {
        self.shared.fd
    }
}

impl Shared {
    fn wire(&self) -> Result<MutexGuard<'_, Wire>, Error> {
        match self.is_forked() {
            true => Err(Error::Forked),
            // A thread that has panicked meanwhile has left a request without its answer at worst: see `lost`.
            false => Ok(self.wire.lock().unwrap_or_else(PoisonError::into_inner)),
        }
    }

    /// The same, unless another thread has it.
    fn free_wire(&self) -> Result<Option<MutexGuard<'_, Wire>>, Error> {
        if self.is_forked() {
            return Err(Error::Forked);
        }
        match self.wire.try_lock() {
            Ok(wire) => Ok(Some(wire)),
            Err(TryLockError::Poisoned(wire)) => Ok(Some(wire.into_inner())),
            Err(TryLockError::WouldBlock) => Ok(None),
        }
    }

    fn is_forked(&self) -> bool {
        self.generation != fork::generation() || getpid().as_raw() != self.pid
    }

    /// How the scheduler is called.
    pub fn call(&self) -> Call {
        self.call
    }

    /// Calls for a thread, whose number and sink these are, otherwise than fast.
    ///
    /// # Errors
    /// The daemon is asked, and does not do it.
    pub fn call_for(&self, thread: u32, sink: u32, deliver_ns: u64) -> Result<(), Error> {
        let program = self.program.as_ref();
        if program.is_some_and(|program| call::general(program, sink, deliver_ns)) {
            return Ok(());
        }
        self.done(&Request::Look { thread, deliver_ns })
    }

    fn ask(&self, request: &Request) -> Result<Answered, Error> {
        self.wire()?.ask(request)
    }

    /// Asks for what is done with a descriptor, which goes along.
    pub fn done_with(&self, request: &Request, fd: BorrowedFd<'_>) -> Result<(), Error> {
        match self.wire()?.ask_with(request, fd)? {
            (Answer::Done {}, _) => Ok(()),
            _ => Err(strange()),
        }
    }

    /// Asks for what is answered with a descriptor, which comes along.
    pub fn fd_of(&self, request: &Request) -> Result<OwnedFd, Error> {
        match self.ask(request)? {
            (Answer::Done {}, fd) => fd,
            _ => Err(strange()),
        }
    }

    /// Asks for what is answered with no more than that it is done.
    pub fn done(&self, request: &Request) -> Result<(), Error> {
        match self.ask(request)? {
            (Answer::Done {}, _) => Ok(()),
            _ => Err(strange()),
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // A child that has the connection open still, or a copy of the descriptor, does not keep the session, and
        // its promise, alive. For a child the connection is the parent's.
        if !self.is_forked() {
            let wire = self.wire.get_mut();
            wire.unwrap_or_else(PoisonError::into_inner).close();
        }
    }
}

/// An answer to another question.
fn strange() -> Error {
    Error::Refused(Fault {
        kind: FaultKind::Unknown,
        message: "Andante has answered something else: install the library that belongs to it"
            .into(),
    })
}
