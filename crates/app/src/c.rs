// SPDX-License-Identifier: GPL-2.0
//! The same for C: `include/andante.h` says what each of these does, and who may call it.
//!
//! Nothing here decides anything. Handles are boxes of what Rust programs have, and no panic goes further than
//! [`called`].

mod errors;
mod structs;

use std::ffi::{c_char, c_int};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};

use self::errors::{Failure, NO_SESSION, code_of, explanation, keep, last_message};
use self::structs::{Answer, Cycle, Notice, Terms, Wish, given, taken};
use crate::{Error, Session, Sink, Tell, Thread};

/// Does it, and says what came of it as C understands it.
#[inline]
fn called(what: impl FnOnce() -> Result<c_int, Failure>) -> c_int {
    // Nothing is made that would have to be dropped where all went well.
    match catch_unwind(AssertUnwindSafe(what)) {
        Ok(outcome) => outcome.unwrap_or_else(keep),
        Err(_) => keep(Failure::Internal),
    }
}

/// The same for what has no more to say than that it is done.
#[inline]
fn done(what: impl FnOnce() -> Result<(), Error>) -> c_int {
    called(|| Ok(what().map(|()| 0)?))
}

/// Stores what is made where the caller wants it, and NULL if nothing is.
///
/// # Safety
/// `out` is NULL, or may be written.
unsafe fn made<T>(out: *mut *mut T, make: impl FnOnce() -> Result<T, Failure>) -> c_int {
    if out.is_null() {
        return keep(Failure::Invalid("where the handle goes is NULL"));
    }
    // SAFETY: by the caller's word.
    unsafe { out.write(std::ptr::null_mut()) };
    called(|| {
        let handle = Box::into_raw(Box::new(make()?));
        // SAFETY: as above.
        unsafe { out.write(handle) };
        Ok(0)
    })
}

/// # Safety
/// `handle` is NULL, or came from [`made`] and was not freed.
unsafe fn freed<T>(handle: *mut T) -> c_int {
    if handle.is_null() {
        return NO_SESSION;
    }
    called(|| {
        // SAFETY: by the caller's word.
        drop(unsafe { Box::from_raw(handle) });
        Ok(0)
    })
}

/// Opens a session.
///
/// # Safety
/// Pointers are NULL or as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn andante_open(wish: *const Wish, session: *mut *mut Session) -> c_int {
    // SAFETY: by the caller's word; `wish` begins with its size.
    unsafe { made(session, || Ok(Session::open(taken(wish)?.read()?)?)) }
}

/// Frees the handle of a session.
///
/// # Safety
/// `session` is NULL, or of [`andante_open`] and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn andante_close(session: *mut Session) -> c_int {
    // SAFETY: by the caller's word.
    unsafe { freed(session) }
}

/// The calling thread takes part.
///
/// # Safety
/// Pointers are NULL or as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn andante_join(
    session: *const Session,
    cycle: *const Cycle,
    thread: *mut *mut Thread,
) -> c_int {
    // SAFETY: by the caller's word.
    let Some(session) = (unsafe { session.as_ref() }) else {
        if !thread.is_null() {
            // SAFETY: by the caller's word.
            unsafe { thread.write(std::ptr::null_mut()) };
        }
        return NO_SESSION;
    };
    let join = || {
        let cycle = match cycle.is_null() {
            true => None,
            // SAFETY: by the caller's word; it begins with its size.
            false => Some(unsafe { taken(cycle) }?.read()?),
        };
        errors::make_room();
        Ok(session.join(cycle)?)
    };
    // SAFETY: by the caller's word.
    unsafe { made(thread, join) }
}

/// The thread takes part no more.
///
/// # Safety
/// `thread` is NULL, or of [`andante_join`] and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn andante_leave(thread: *mut Thread) -> c_int {
    // SAFETY: by the caller's word.
    unsafe { freed(thread) }
}

/// A cycle begins.
///
/// # Safety
/// `thread` is NULL, or of [`andante_join`] and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn andante_begin(thread: *const Thread, deadline_ns: u64) -> c_int {
    // SAFETY: by the caller's word.
    match unsafe { thread.as_ref() } {
        Some(thread) => done(|| thread.begin_until(deadline_ns)),
        None => NO_SESSION,
    }
}

/// The cycle is done.
///
/// # Safety
/// As above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn andante_end(thread: *const Thread) -> c_int {
    // SAFETY: by the caller's word.
    match unsafe { thread.as_ref() } {
        Some(thread) => done(|| thread.end()),
        None => NO_SESSION,
    }
}

/// The time that the last cycle took.
///
/// # Safety
/// As above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn andante_report(thread: *const Thread, worked_ns: u64) -> c_int {
    // SAFETY: by the caller's word.
    match unsafe { thread.as_ref() } {
        Some(thread) => done(|| thread.report(worked_ns)),
        None => NO_SESSION,
    }
}

/// More work than before.
///
/// # Safety
/// As above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn andante_surge(thread: *const Thread) -> c_int {
    // SAFETY: by the caller's word.
    match unsafe { thread.as_ref() } {
        Some(thread) => done(|| thread.surge()),
        None => NO_SESSION,
    }
}

/// Through which events are raised for the thread.
///
/// # Safety
/// As above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn andante_sink_of(thread: *const Thread) -> *mut Sink {
    // SAFETY: by the caller's word.
    let Some(thread) = (unsafe { thread.as_ref() }) else {
        return std::ptr::null_mut();
    };
    let sink = catch_unwind(AssertUnwindSafe(|| Box::into_raw(Box::new(thread.sink()))));
    sink.unwrap_or(std::ptr::null_mut())
}

/// Frees it.
///
/// # Safety
/// `sink` is NULL, or of [`andante_sink_of`] and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn andante_sink_free(sink: *mut Sink) -> c_int {
    // SAFETY: by the caller's word.
    unsafe { freed(sink) }
}

/// Raises an event.
///
/// # Safety
/// `sink` is NULL, or of [`andante_sink_of`] and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn andante_raise(sink: *const Sink, service: u32, deliver_ns: u64) -> c_int {
    // SAFETY: by the caller's word.
    match unsafe { sink.as_ref() } {
        Some(sink) => done(|| sink.raise(service as usize, deliver_ns)),
        None => NO_SESSION,
    }
}

/// Raises an event, and calls.
///
/// # Safety
/// As above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn andante_raise_now(
    sink: *const Sink,
    service: u32,
    deliver_ns: u64,
) -> c_int {
    // SAFETY: by the caller's word.
    match unsafe { sink.as_ref() } {
        Some(sink) => done(|| sink.raise_now(service as usize, deliver_ns)),
        None => NO_SESSION,
    }
}

/// What comes to a socket raises events.
///
/// # Safety
/// `thread` is NULL, or of [`andante_join`] and not freed; `fd` is not closed meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn andante_subscribe(
    thread: *const Thread,
    fd: c_int,
    service: u32,
    bytes: u32,
) -> c_int {
    // SAFETY: by the caller's word.
    match unsafe { thread.as_ref() } {
        Some(thread) => called(|| {
            // SAFETY: by the caller's word.
            let socket = unsafe { opened(fd) }?;
            thread.subscribe(socket, service as usize, bytes)?;
            Ok(0)
        }),
        None => NO_SESSION,
    }
}

/// It raises none any more.
///
/// # Safety
/// As above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn andante_unsubscribe(thread: *const Thread, fd: c_int) -> c_int {
    // SAFETY: by the caller's word.
    match unsafe { thread.as_ref() } {
        Some(thread) => called(|| {
            // SAFETY: by the caller's word.
            thread.unsubscribe(unsafe { opened(fd) }?)?;
            Ok(0)
        }),
        None => NO_SESSION,
    }
}

/// How the thread is told of its events.
///
/// # Safety
/// `thread` is NULL, or of [`andante_join`] and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn andante_tell(thread: *const Thread, by: c_int) -> c_int {
    // SAFETY: by the caller's word.
    let Some(thread) = (unsafe { thread.as_ref() }) else {
        return NO_SESSION;
    };
    called(|| {
        let by = match u32::try_from(by) {
            Ok(0) => Tell::Nothing,
            Ok(signal) => Tell::Signal(signal),
            Err(_) if by == BY_FD => Tell::Descriptor,
            Err(_) => return Err(Failure::Invalid("there is no such way to be told")),
        };
        Ok(thread.tell(by)?.unwrap_or(0))
    })
}

/// `ANDANTE_TELL_FD`.
const BY_FD: c_int = -1;

/// Of what it has been told.
///
/// # Safety
/// As above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn andante_told(thread: *const Thread) -> c_int {
    // SAFETY: by the caller's word.
    match unsafe { thread.as_ref() } {
        Some(thread) => called(|| Ok(c_int::try_from(thread.told()?).unwrap_or(0))),
        None => NO_SESSION,
    }
}

/// A descriptor of the caller's.
///
/// # Safety
/// It is not closed while it is used, if it is open at all.
unsafe fn opened<'a>(fd: c_int) -> Result<BorrowedFd<'a>, Failure> {
    if fd < 0 {
        return Err(Failure::Invalid("the descriptor is below 0"));
    }
    // SAFETY: by the caller's word.
    Ok(unsafe { BorrowedFd::borrow_raw(fd) })
}

/// Whether an event waits.
///
/// # Safety
/// `thread` is NULL, or of [`andante_join`] and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn andante_pending(thread: *const Thread, service: u32) -> c_int {
    // SAFETY: by the caller's word.
    match unsafe { thread.as_ref() } {
        Some(thread) => called(|| Ok(c_int::from(thread.is_pending(service as usize)?))),
        None => NO_SESSION,
    }
}

/// Whether the program has its user's attention.
///
/// # Safety
/// `session` is NULL, or of [`andante_open`] and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn andante_foreground(session: *const Session, on: c_int) -> c_int {
    // SAFETY: by the caller's word.
    match unsafe { session.as_ref() } {
        Some(session) => done(|| session.foreground(on != 0)),
        None => NO_SESSION,
    }
}

/// Asks for a promise.
///
/// # Safety
/// Pointers are NULL or as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn andante_promise(
    session: *const Session,
    terms: *const Terms,
    answer: *mut Answer,
) -> c_int {
    // SAFETY: by the caller's word.
    let Some(session) = (unsafe { session.as_ref() }) else {
        return NO_SESSION;
    };
    called(|| {
        // SAFETY: by the caller's word; both begin with their size, and the second is looked at before it is
        // too late.
        let (terms, length) = unsafe { (taken(terms)?.read()?, structs::length(answer)?) };
        let promised = session.promise(terms)?;
        // SAFETY: it is that long.
        unsafe { given(answer, length, Answer::of(promised)) };
        Ok(0)
    })
}

/// The promise is needed no more.
///
/// # Safety
/// `session` is NULL, or of [`andante_open`] and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn andante_withdraw(session: *const Session) -> c_int {
    // SAFETY: by the caller's word.
    match unsafe { session.as_ref() } {
        Some(session) => done(|| session.withdraw()),
        None => NO_SESSION,
    }
}

/// How the scheduler is called.
///
/// # Safety
/// As above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn andante_calls(session: *const Session) -> c_int {
    // SAFETY: by the caller's word.
    unsafe { session.as_ref() }.map_or(NO_SESSION, |session| session.call() as c_int)
}

/// The descriptor to poll.
///
/// # Safety
/// As above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn andante_fd(session: *const Session) -> c_int {
    // SAFETY: by the caller's word.
    unsafe { session.as_ref() }.map_or(NO_SESSION, AsRawFd::as_raw_fd)
}

/// News of the promise.
///
/// # Safety
/// Pointers are NULL or as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn andante_next_notice(
    session: *const Session,
    notice: *mut Notice,
) -> c_int {
    // SAFETY: by the caller's word.
    let Some(session) = (unsafe { session.as_ref() }) else {
        return NO_SESSION;
    };
    called(|| {
        // SAFETY: by the caller's word; it begins with its size.
        let length = unsafe { structs::length(notice) }?;
        let next = session.next_notice()?;
        let is_one = c_int::from(next.is_some());
        // SAFETY: it is that long.
        unsafe { given(notice, length, Notice::of(next)) };
        Ok(is_one)
    })
}

/// The meaning of an error.
#[unsafe(no_mangle)]
pub extern "C" fn andante_strerror(error: c_int) -> *const c_char {
    explanation(error).as_ptr()
}

/// The last error of this thread.
#[unsafe(no_mangle)]
pub extern "C" fn andante_last_message() -> *const c_char {
    catch_unwind(last_message).unwrap_or(c"".as_ptr())
}

/// Now.
#[unsafe(no_mangle)]
pub extern "C" fn andante_now_ns() -> u64 {
    crate::now_ns()
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Known(code_of(&error), error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_goes_no_further() {
        assert_eq!(called(|| panic!("as if there were a fault")), -12);
        // SAFETY: it ends with a 0, and lasts until the next call.
        let message = unsafe { std::ffi::CStr::from_ptr(andante_last_message()) };
        assert_eq!(message, explanation(-12));
    }
}
