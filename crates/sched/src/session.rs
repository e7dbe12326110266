// SPDX-License-Identifier: GPL-2.0
//! Threads of sessions: what is declared of them, and the page that each shares with the scheduler
//! (`bpf/session.h`).

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::mpsc;

use libbpf_rs::{MapCore, MapFlags, RingBuffer, RingBufferBuilder, libbpf_sys};

use crate::contracts::CallError;
use crate::loader::Scheduler;

/// What a thread does again and again [ns]; 0: not said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Declared {
    /// Number of the session, not 0.
    pub session: u32,
    /// From one piece of work to the next.
    pub period_ns: u32,
    /// Until when each is to be done.
    pub deadline_ns: u32,
    /// CPU time that each takes.
    pub budget_ns: u32,
    /// What calls name the thread by, below [`MAX_SINKS`]; 0: it cannot be called for.
    pub sink: u32,
}

/// Numbers of sinks, of which 0 is none (`AN_MAX_SINKS`).
pub const MAX_SINKS: u32 = 8192;

/// The ways in which programs may call the scheduler (`bpf/calls.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Calls {
    /// By `prctl`.
    pub fast: bool,
    /// By running a program that is passed to them.
    pub general: bool,
}

/// Data on a socket as a source of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source {
    /// The thread that has them.
    pub tid: i32,
    /// Number of the session that it takes part in.
    pub session: u32,
    /// Which sort of event.
    pub service: u32,
    /// After how much each comes [bytes]; 0: with whatever comes.
    pub bytes: u32,
}

/// The way in which a thread is told that it has an event (`bpf/tell.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToldBy {
    /// By a ring buffer of its own, of a page.
    Ring,
    /// By this signal.
    Signal(u32),
}

/// `ANDANTE_TOLD_BY_RING`.
const BY_RING: u32 = 256;

/// Sinks that the kernel could not send a signal to, for a thread of its own had the CPU.
pub(crate) struct Late {
    ring: RingBuffer<'static>,
    sinks: mpsc::Receiver<u32>,
}

impl Late {
    fn of(ring: &impl MapCore) -> libbpf_rs::Result<Self> {
        let (found, sinks) = mpsc::channel();
        let mut builder = RingBufferBuilder::new();
        builder.add(ring, move |said: &[u8]| {
            let sink = said.try_into().map_or(0, u32::from_ne_bytes);
            i32::from(found.send(sink).is_err())
        })?;
        let ring = builder.build()?;
        Ok(Self { ring, sinks })
    }
}

impl Scheduler {
    /// Readable when [`Scheduler::tell_late`] has something to do; none: nobody is told by a signal.
    pub fn late_fd(&self) -> Option<BorrowedFd<'_>> {
        let fd = self.late.as_ref()?.ring.epoll_fd();
        // SAFETY: the ring has it open, and is there as long as this is borrowed.
        Some(unsafe { BorrowedFd::borrow_raw(fd) })
    }

    /// Sends the signals that are still to be sent.
    pub fn tell_late(&mut self) {
        let Some(late) = &self.late else { return };
        // It fails if nobody hears what is found, and we do.
        let _ = late.ring.consume();
        let sinks: Vec<u32> = late.sinks.try_iter().collect();
        for sink in sinks {
            // Its thread may have ended; it may not have a signal; it will be told of the next.
            let _ = self.told_late(sink);
        }
    }

    /// Has the thread that is called for as `sink` told of its events from now on, at the word of that user, in the
    /// place of how it was told before; none: it is told no more. The ring, if that is the way.
    ///
    /// # Errors
    /// There is no room for a ring, or the kernel sends no signals for us.
    pub fn tell(
        &mut self,
        sink: u32,
        by: Option<ToldBy>,
        uid: u32,
    ) -> Result<Option<OwnedFd>, CallError> {
        // First of all, for the ring that was is another's word.
        self.told_by(sink, 0, uid)?;
        let key = sink.to_ne_bytes();
        let _ = self.object.rings().delete(&key); // there may be none
        let ring = match by {
            None => return Ok(None),
            Some(ToldBy::Signal(signal)) => {
                if self.late.is_none() {
                    let late = Late::of(self.object.late());
                    self.late = Some(late.map_err(|error| CallError::Other(error.to_string()))?);
                }
                return self.told_by(sink, signal, uid).map(|()| None);
            }
            Some(ToldBy::Ring) => make_ring(),
        };
        let failed = |error: String| CallError::Other(format!("there is no ring for it: {error}"));
        let ring = ring.map_err(|error| failed(error.to_string()))?;
        let value = ring.as_raw_fd().to_ne_bytes();
        let noted = self.object.rings().update(&key, &value, MapFlags::ANY);
        noted.map_err(|error| failed(error.to_string()))?;
        self.told_by(sink, BY_RING, uid)?;
        Ok(Some(ring))
    }

    /// The thread has an event whenever so much has come to the socket, from now on; none: nobody has.
    ///
    /// # Errors
    /// It is no socket, or this kernel cannot tell what comes to one.
    pub fn subscribe(
        &mut self,
        socket: BorrowedFd<'_>,
        source: Option<Source>,
    ) -> Result<(), CallError> {
        let key = socket.as_raw_fd().to_ne_bytes();
        let other = |error: libbpf_rs::Error| CallError::Other(error.to_string());
        let Some(source) = source else {
            return self.object.sources().delete(&key).map_err(other);
        };
        if self.data_comes.is_none() {
            let attached = self.object.source_program().attach();
            self.data_comes = Some(attached.map_err(other)?);
        }
        let words = [
            source.tid.cast_unsigned(),
            source.session,
            source.service,
            source.bytes,
            0,
            0,
        ];
        let value: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let noted = self.object.sources().update(&key, &value, MapFlags::ANY);
        noted.map_err(other)
    }

    /// Nobody has subscribed any more.
    pub fn hear_no_sources(&mut self) {
        self.data_comes = None;
    }

    /// Hears fast calls from now on, if this kernel can, or not any more: all that call `prctl` pay for it.
    pub fn hear_calls(&mut self, on: bool) -> Calls {
        if !on {
            self.fast_call = None;
        } else if self.fast_call.is_none() && self.may_call_fast {
            // Where the kernel has no trampolines the other ways are left.
            self.fast_call = self.object.fast_call_program().attach().ok();
        }
        Calls {
            fast: self.fast_call.is_some(),
            general: true,
        }
    }

    /// The program that general calls run, to be passed to whoever may call.
    ///
    /// # Errors
    /// There is no descriptor left.
    pub fn call_program(&self) -> io::Result<OwnedFd> {
        self.object.call_program().as_fd().try_clone_to_owned()
    }

    /// Lets the scheduler read what the thread says in the memory at `page`, which this process has mapped:
    /// one page, shared, which may be unmapped afterwards.
    ///
    /// # Errors
    /// There is no such thread, or the kernel cannot keep the page at hand.
    pub fn share_page(&mut self, tid: i32, page: *const u8) -> Result<(), CallError> {
        let thread = open_thread(tid)?;
        let key = thread.as_raw_fd().to_ne_bytes();
        let value = (page as u64).to_ne_bytes();
        let update = self
            .object
            .thread_pages()
            .update(&key, &value, MapFlags::ANY);
        update.map_err(|error| CallError::Other(format!("its page cannot be shared: {error}")))
    }
}

/// A ring buffer of a page.
fn make_ring() -> io::Result<OwnedFd> {
    // SAFETY: the call takes a number.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    // SAFETY: the name is a text that lives as long as the call, and no options are given.
    let fd = unsafe {
        libbpf_sys::bpf_map_create(
            libbpf_sys::BPF_MAP_TYPE_RINGBUF,
            c"andante_notices".as_ptr(),
            0,
            0,
            u32::try_from(page).unwrap_or(4096),
            std::ptr::null(),
        )
    };
    match fd {
        // SAFETY: the kernel has just made it for us.
        fd if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        error => Err(io::Error::from_raw_os_error(-error)),
    }
}

/// A descriptor of the thread, by which the kernel finds what it keeps of it.
fn open_thread(tid: i32) -> Result<OwnedFd, CallError> {
    /// `PIDFD_THREAD` of the kernel's `uapi/linux/pidfd.h`.
    const PIDFD_THREAD: i32 = libc::O_EXCL;
    // SAFETY: the call takes two numbers.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, tid, PIDFD_THREAD) };
    match i32::try_from(fd) {
        // SAFETY: the kernel has just opened it for us.
        Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(CallError::NoThread),
    }
}
