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

/// `AN_MAX_EVENTFDS`.
const MAX_EVENTFDS: u32 = 4096;
/// `struct an_source`.
const SOURCE_WORDS: usize = 7;

impl Source {
    /// As the scheduler keeps it of the eventfd of this number, or of a socket.
    fn noted(self, eventfd: u32) -> Vec<u8> {
        let words: [u32; SOURCE_WORDS] = [
            self.tid.cast_unsigned(),
            self.session,
            self.service,
            self.bytes,
            0,
            0,
            eventfd,
        ];
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }
}

fn other(error: libbpf_rs::Error) -> CallError {
    CallError::Other(error.to_string())
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
        // The way that was ends first: what follows may fail, and an old ring may be in other hands.
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

    /// The thread has an event whenever so much has come to the socket, or something to the eventfd, from now on;
    /// none: nobody has.
    ///
    /// # Errors
    /// It is neither, or this kernel cannot tell what comes to one.
    pub fn subscribe(
        &mut self,
        fd: BorrowedFd<'_>,
        source: Option<Source>,
    ) -> Result<(), CallError> {
        match eventfd_of(fd) {
            Some(number) => self.subscribe_eventfd(number, source),
            None => self.subscribe_socket(fd, source),
        }
    }

    fn subscribe_socket(
        &mut self,
        fd: BorrowedFd<'_>,
        source: Option<Source>,
    ) -> Result<(), CallError> {
        let key = fd.as_raw_fd().to_ne_bytes();
        let Some(source) = source else {
            return self.object.sources().delete(&key).map_err(other);
        };
        self.hear_sockets().map_err(other)?;
        let noted = (self.object.sources()).update(&key, &source.noted(0), MapFlags::ANY);
        noted.map_err(other)
    }

    fn subscribe_eventfd(&mut self, number: u32, source: Option<Source>) -> Result<(), CallError> {
        // Before it is looked at who has the place: the end of that one is seen from then on.
        self.hear_eventfds().map_err(other)?;
        let eventfds = self.object.eventfds();
        let key = (number & (MAX_EVENTFDS - 1)).to_ne_bytes();
        let there = eventfds.lookup(&key, MapFlags::ANY).map_err(other)?;
        let word = |at: usize| {
            let bytes = there
                .as_ref()
                .and_then(|noted| noted.get(4 * at..4 * at + 4));
            bytes.map_or(0, |bytes| {
                u32::from_ne_bytes(bytes.try_into().unwrap_or_default())
            })
        };
        let (taken, ours) = (word(0) != 0, word(6) == number);
        let noted = match source {
            Some(_) if taken && !ours => {
                let message = "another eventfd has its place: subscribe to a new one";
                return Err(CallError::Other(message.into()));
            }
            None if !taken || !ours => {
                return Err(CallError::Other("nobody has subscribed to it".into()));
            }
            Some(source) => source.noted(number),
            None => vec![0; 4 * SOURCE_WORDS],
        };
        eventfds.update(&key, &noted, MapFlags::ANY).map_err(other)
    }

    fn hear_sockets(&mut self) -> libbpf_rs::Result<()> {
        if self.data_comes.is_none() {
            self.data_comes = Some(self.object.source_program().attach()?);
        }
        Ok(())
    }

    fn hear_eventfds(&mut self) -> libbpf_rs::Result<()> {
        if self.eventfds.is_empty() {
            let programs = self.object.eventfd_programs().into_iter();
            self.eventfds = programs
                .map(|program| program.attach())
                .collect::<Result<_, _>>()?;
        }
        Ok(())
    }

    /// Nobody has subscribed any more.
    pub fn hear_no_sources(&mut self) {
        self.data_comes = None;
        if !self.eventfds.is_empty() {
            self.eventfds.clear();
            // Their end is not seen any more, and their numbers may be others'.
            for key in 0..MAX_EVENTFDS {
                let none = [0; 4 * SOURCE_WORDS];
                let _ = (self.object.eventfds()).update(&key.to_ne_bytes(), &none, MapFlags::ANY);
            }
        }
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

/// By what the kernel tells the eventfd from others; none: it is none.
pub fn eventfd_of(fd: BorrowedFd<'_>) -> Option<u32> {
    let said = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", fd.as_raw_fd())).ok()?;
    let mut lines = said.lines();
    let id = lines.find_map(|line| line.strip_prefix("eventfd-id:"))?;
    id.trim().parse().ok()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eventfds_are_told_apart_from_one_another_and_from_all_else() {
        let eventfd = || {
            // SAFETY: the call takes two numbers.
            let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) };
            assert!(fd >= 0);
            // SAFETY: the kernel has just opened it for us.
            unsafe { OwnedFd::from_raw_fd(fd) }
        };
        let (one, other) = (eventfd(), eventfd());
        let (first, second) = (eventfd_of(one.as_fd()), eventfd_of(other.as_fd()));
        assert!(first.is_some() && second.is_some() && first != second);
        let copy = one.try_clone().unwrap();
        assert_eq!(eventfd_of(copy.as_fd()), first);
        let file = std::fs::File::open("/dev/null").unwrap();
        assert_eq!(eventfd_of(file.as_fd()), None);
    }
}
