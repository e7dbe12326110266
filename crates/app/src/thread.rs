// SPDX-License-Identifier: GPL-2.0
//! A thread of a session: its cycles, and events for it. All of it is memory that the scheduler reads.

use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use andante_session::Request;
use andante_session::page::{Page, SERVICES};
use nix::time::{ClockId, clock_gettime};

use crate::call::{self, Call};
use crate::error::Error;
use crate::page::Mapped;
use crate::ring::Ring;
use crate::session::Shared;

/// Now [ns of CLOCK_MONOTONIC]; no system call.
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC);
    now.map_or(0, |at| {
        at.tv_sec() as u64 * 1_000_000_000 + at.tv_nsec() as u64
    })
}

/// So many ns from now [ns of CLOCK_MONOTONIC].
pub fn in_ns(ns: u64) -> u64 {
    now_ns().saturating_add(ns)
}

/// A thread that takes part, until this is dropped.
#[derive(Debug)]
pub struct Thread {
    session: Arc<Shared>,
    number: u32,
    page: Arc<Mapped>,
    /// By which it is told of its events, if it is told so.
    ring: Mutex<Option<Ring>>,
}

/// Ways to tell a thread that it has an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tell {
    /// None: it is scheduled as one that has an event, and that is all.
    Nothing,
    /// By a descriptor that is readable then.
    Descriptor,
    /// By this signal, with the service as its value.
    Signal(u32),
}

/// A cycle that has begun, and ends when this is dropped.
#[derive(Debug)]
pub struct InCycle<'a>(&'a Thread);

impl Drop for InCycle<'_> {
    fn drop(&mut self) {
        let _ = self.0.end();
    }
}

impl Thread {
    /// The calling thread, which has joined.
    pub(crate) fn new(session: Arc<Shared>, number: u32, page: Mapped) -> Self {
        let page = Arc::new(page);
        call::joins(&page);
        Self {
            session,
            number,
            page,
            ring: Mutex::new(None),
        }
    }

    /// A cycle begins, which is to be done by then [ns of CLOCK_MONOTONIC].
    ///
    /// # Errors
    /// [`Error::PastDeadline`]: then the scheduler is told that a cycle begins, and of no deadline; it counts as late,
    /// and there is none to end. A program that is late already may leave a cycle out, or give a later deadline.
    /// [`Error::NotEnded`], where one is in progress: this one has begun in its place, without a guard of its own.
    /// [`Error::Forked`] in a child of the process that has joined.
    pub fn begin(&self, deadline_ns: u64) -> Result<InCycle<'_>, Error> {
        self.begin_until(deadline_ns).map(|()| InCycle(self))
    }

    /// The same without a guard: [`Thread::end`] ends it.
    ///
    /// # Errors
    /// As above.
    pub fn begin_until(&self, deadline_ns: u64) -> Result<(), Error> {
        let page = self.page.page()?;
        let now_ns = now_ns();
        let late = deadline_ns <= now_ns;
        let before_ns = page.deadline_ns.load(Relaxed);
        page.deadline_ns
            .store(if late { 0 } else { deadline_ns }, Relaxed);
        page.begun_ns.store(now_ns, Relaxed);
        // Of a late one as well: a thread that is always late does one piece of work after the other, not one without
        // end.
        let cycles = page.cycles.load(Relaxed);
        page.cycles.store(cycles.wrapping_add(1), Release);
        if late {
            count_late(page);
            return Err(Error::PastDeadline);
        }
        match before_ns {
            0 => Ok(()),
            _ => Err(Error::NotEnded),
        }
    }

    /// The cycle is done: what it took is told, and whether it is late.
    ///
    /// # Errors
    /// [`Error::NoCycle`]; [`Error::Forked`].
    pub fn end(&self) -> Result<(), Error> {
        let page = self.page.page()?;
        let deadline_ns = page.deadline_ns.load(Relaxed);
        if deadline_ns == 0 {
            return Err(Error::NoCycle);
        }
        let (begun_ns, now_ns) = (page.begun_ns.load(Relaxed), now_ns());
        page.worked_ns
            .store(now_ns.saturating_sub(begun_ns), Relaxed);
        if now_ns > deadline_ns {
            count_late(page);
        }
        page.deadline_ns.store(0, Release);
        Ok(())
    }

    /// The time that the last cycle took, by the program's own measure [ns]: where it knows better than from its
    /// beginning to its end.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn report(&self, worked_ns: u64) -> Result<(), Error> {
        self.page.page()?.worked_ns.store(worked_ns, Release);
        Ok(())
    }

    /// The next cycles take more work than those before.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn surge(&self) -> Result<(), Error> {
        let page = self.page.page()?;
        let surges = page.surges.load(Relaxed);
        page.surges.store(surges.wrapping_add(1), Release);
        Ok(())
    }

    /// Through which any thread raises events for this one.
    pub fn sink(&self) -> Sink {
        Sink {
            page: self.page.clone(),
            call: self.session.call(),
            session: Arc::downgrade(&self.session),
            thread: self.number,
        }
    }

    /// From now on the thread has an event of this service whenever so many bytes have come to the socket since
    /// the last; 0: whenever anything comes. Or whenever somebody writes to the eventfd, whatever `bytes` says. It
    /// takes the place of what was subscribed to that before, by anybody, and ends with the socket or eventfd, with
    /// [`Thread::unsubscribe`], or when the thread leaves.
    ///
    /// # Errors
    /// [`Error::NoService`]; [`Error::Refused`] for what is neither, and where the kernel cannot tell what comes
    /// to one; [`Error::System`] where the descriptor may not be passed on.
    pub fn subscribe(
        &self,
        socket: BorrowedFd<'_>,
        service: usize,
        bytes: u32,
    ) -> Result<(), Error> {
        if service >= SERVICES {
            return Err(Error::NoService(service));
        }
        let request = Request::Subscribe {
            thread: self.number,
            service: service as u32,
            bytes,
        };
        self.session.done_with(&request, socket)
    }

    /// What comes to the socket is nobody's event any more.
    ///
    /// # Errors
    /// Nobody has subscribed; as above.
    pub fn unsubscribe(&self, socket: BorrowedFd<'_>) -> Result<(), Error> {
        self.session.done_with(&Request::Unsubscribe {}, socket)
    }

    /// From now on the thread is told so that it has an event, in the place of how it was told before: as soon as a
    /// source raises one, or [`Sink::raise_now`] does, or when that one is to be delivered. The descriptor, if that is
    /// the way: it is the library's, and valid until this is called again, or the thread leaves.
    ///
    /// It is told once of each service until it has run, however many events there are: so whoever is told looks at all
    /// that there is.
    ///
    /// # Errors
    /// [`Error::Refused`] for a signal that there is not, and where the kernel cannot do it.
    pub fn tell(&self, by: Tell) -> Result<Option<RawFd>, Error> {
        let request = |by| Request::Tell {
            thread: self.number,
            by,
        };
        let by = match by {
            Tell::Nothing => andante_session::Tell::Nothing,
            Tell::Signal(signal) => andante_session::Tell::Signal(signal),
            Tell::Descriptor => {
                let fd = self.session.fd_of(&request(andante_session::Tell::Ring))?;
                let ring = Ring::of(fd)?;
                let fd = ring.as_raw_fd();
                *self.ring() = Some(ring);
                return Ok(Some(fd));
            }
        };
        self.session.done(&request(by))?;
        *self.ring() = None;
        Ok(None)
    }

    /// The services of which the thread has been told by its descriptor since this was last asked, a bit each; the
    /// descriptor is silent then. No system call.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn told(&self) -> Result<u32, Error> {
        self.page.page()?;
        Ok(self.ring().as_ref().map_or(0, Ring::take))
    }

    fn ring(&self) -> std::sync::MutexGuard<'_, Option<Ring>> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether an event of the service waits for the thread to be put into service.
    ///
    /// # Errors
    /// [`Error::NoService`]; [`Error::Forked`].
    pub fn is_pending(&self, service: usize) -> Result<bool, Error> {
        let page = self.page.page()?;
        let event = page.events.get(service);
        let event = event.ok_or(Error::NoService(service))?;
        let delivered = page.delivered[service].load(Acquire);
        Ok(event.raised.load(Acquire) != delivered)
    }

    /// When the scheduler last looked at the page [ns of CLOCK_MONOTONIC]; 0: never.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn read_ns(&self) -> Result<u64, Error> {
        Ok(self.page.page()?.read_ns.load(Relaxed))
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        // Whatever comes of it: the daemon sees as well that the thread, or the connection, has ended.
        let _ = self.session.done(&Request::Leave {
            thread: self.number,
        });
    }
}

/// Raises events for a thread, from any thread of the process.
#[derive(Debug, Clone)]
pub struct Sink {
    page: Arc<Mapped>,
    call: Call,
    /// Whoever may raise an event keeps no session open.
    session: Weak<Shared>,
    thread: u32,
}

impl Sink {
    /// An event of this service, to be delivered then [ns of CLOCK_MONOTONIC]; 0: at once. One that is pending
    /// still is replaced. Raise it before the thread is woken, or it comes too late for that.
    ///
    /// # Errors
    /// [`Error::NoService`]; [`Error::Forked`].
    pub fn raise(&self, service: usize, deliver_ns: u64) -> Result<(), Error> {
        // No error is made that would have to be dropped (tests/hot.rs).
        let Some(event) = self.page.page()?.events.get(service) else {
            return Err(Error::NoService(service));
        };
        event.deliver_ns.store(deliver_ns, Relaxed);
        event.raised.fetch_add(1, Release);
        Ok(())
    }
    /// The same, and calls the scheduler, which sees it at once, or when it is to be delivered, though the thread
    /// has been woken before and waits: it comes before those with whom it shares a promise. Where it cannot be
    /// called for, it is as if it were only raised. [`Session::call`](crate::Session::call) says what that takes.
    ///
    /// # Errors
    /// As above; where the daemon is asked, what that may fail with: it has been raised nevertheless.
    pub fn raise_now(&self, service: usize, deliver_ns: u64) -> Result<(), Error> {
        self.raise(service, deliver_ns)?;
        let sink = self.page.page()?.sink.load(Relaxed);
        if sink == 0 {
            return Ok(());
        }
        if self.call == Call::Fast {
            call::fast(sink, deliver_ns);
            return Ok(());
        }
        let session = self.session.upgrade().ok_or(Error::Lost)?;
        session.call_for(self.thread, sink, deliver_ns)
    }
}

/// One more cycle that is not done in time.
fn count_late(page: &Page) {
    let late = page.late.load(Relaxed);
    page.late.store(late.wrapping_add(1), Relaxed);
}
