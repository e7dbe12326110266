// SPDX-License-Identifier: GPL-2.0
//! Calls to the scheduler, which looks then whether the thread that an event was raised for waits behind others:
//! `page.h` has the ways.

use std::cell::RefCell;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};

use andante_session::Calls;
use andante_session::page::PRCTL_LOOK;

use crate::page::Mapped;

/// How a program calls the scheduler, the slowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Call {
    /// The daemon is asked, and does it.
    Socket = 1,
    /// A program of the scheduler's is run: a system call, by threads that have joined. Others ask the daemon.
    General = 2,
    /// A system call that the scheduler hears.
    Fast = 3,
}

/// What says which one is to be used, where it can be: `fast`, `general` or `socket`.
const VARIABLE: &str = "ANDANTE_CALL";

impl Call {
    /// The fastest that there is, and is safe.
    pub(crate) fn choose(there: Calls) -> Self {
        let asked = std::env::var(VARIABLE).ok();
        Self::of(there, asked.as_deref(), is_filtered)
    }

    /// A filter of system calls may end who makes one that it does not know, and does not say so before; so then
    /// nothing is tried, unless somebody who knows has asked for it.
    fn of(there: Calls, asked: Option<&str>, is_filtered: impl Fn() -> bool) -> Self {
        let most = match asked {
            Some("fast") => Self::Fast,
            Some("general") => Self::General,
            Some("socket") => Self::Socket,
            _ if is_filtered() => Self::Socket,
            _ => Self::Fast,
        };
        let fast = there.fast.then_some(Self::Fast);
        let general = there.general.then_some(Self::General);
        let usable = [fast, general].into_iter().flatten();
        usable
            .filter(|call| *call <= most)
            .max()
            .unwrap_or(Self::Socket)
    }
}

/// Is a seccomp filter on? To ask by a system call might be the end under one. Not to know is to have one.
fn is_filtered() -> bool {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let mode = status
        .lines()
        .find_map(|line| line.strip_prefix("Seccomp:"));
    mode.is_none_or(|mode| mode.trim() != "0")
}

thread_local! {
    /// The page of this thread, if it has joined.
    static OWN: RefCell<Weak<Mapped>> = const { RefCell::new(Weak::new()) };
}

/// The calling thread has joined, with this page.
pub fn joins(page: &Arc<Mapped>) {
    let _ = OWN.try_with(|own| own.replace(Arc::downgrade(page)));
}

/// The fast call. It fails whatever becomes of it; what the program knows of its last error stays.
pub fn fast(sink: u32, deliver_ns: u64) {
    // SAFETY: the option takes two numbers, and the pointer is to this thread's own.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        libc::prctl(PRCTL_LOOK, libc::c_ulong::from(sink), deliver_ns, 0, 0);
        *errno = before;
    }
}

/// The general call, by a thread that has joined; false: it cannot be made.
pub fn general(program: &OwnedFd, sink: u32, deliver_ns: u64) -> bool {
    let own = OWN.try_with(|own| own.borrow().upgrade()).ok().flatten();
    let Some(Ok(page)) = own.as_ref().map(|own| own.page()) else {
        return false;
    };
    page.calls_ns.store(deliver_ns, Relaxed);
    page.calls_for.store(sink, Relaxed);
    run(program)
}

/// `BPF_PROG_RUN` of the kernel's `uapi/linux/bpf.h`, and of its attributes those that it takes: without a context
/// all but the first are 0.
fn run(program: &OwnedFd) -> bool {
    const PROG_RUN: libc::c_int = 10;
    const ATTRIBUTES: usize = 80;
    let mut attributes = [0_u32; ATTRIBUTES / 4];
    attributes[0] = program.as_raw_fd().cast_unsigned();
    // SAFETY: the attributes are so long, and ask the kernel to write nothing elsewhere.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        let ran = libc::syscall(libc::SYS_bpf, PROG_RUN, attributes.as_mut_ptr(), ATTRIBUTES);
        *errno = before;
        ran == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_tried_that_may_be_the_programs_end() {
        let all = Calls {
            fast: true,
            general: true,
        };
        let general = Calls {
            fast: false,
            general: true,
        };
        let (free, filtered) = (|| false, || true);
        assert_eq!(Call::of(all, None, free), Call::Fast);
        assert_eq!(Call::of(general, None, free), Call::General);
        assert_eq!(Call::of(Calls::default(), None, free), Call::Socket);
        assert_eq!(Call::of(all, None, filtered), Call::Socket);
        assert_eq!(Call::of(all, Some("what"), filtered), Call::Socket);
        // Who says so knows the filter.
        assert_eq!(Call::of(all, Some("fast"), filtered), Call::Fast);
        assert_eq!(Call::of(all, Some("general"), free), Call::General);
        assert_eq!(Call::of(all, Some("socket"), free), Call::Socket);
        assert_eq!(Call::of(general, Some("fast"), free), Call::General);
    }
}
