// SPDX-License-Identifier: GPL-2.0
//! Threads of sessions: what is declared of them, and the page that each shares with the scheduler
//! (`bpf/session.h`).

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use libbpf_rs::{MapCore, MapFlags};

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

impl Scheduler {
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
