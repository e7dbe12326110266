// SPDX-License-Identifier: GPL-2.0
//! Errors as numbers, as `include/andante.h` has them, and the last one of each thread.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};

use andante_session::FaultKind;

use crate::Error;

/// The handle is NULL.
pub const NO_SESSION: c_int = -1;
const INVALID: c_int = -10;
const INTERNAL: c_int = -12;
const NO_ROLE: c_int = -13;

/// Why a call has failed.
#[derive(Debug)]
pub enum Failure {
    /// As Rust programs are told.
    Known(c_int, Error),
    /// An argument makes no sense.
    Invalid(&'static str),
    /// There is no role of this number.
    NoRole(u32),
    /// A panic.
    Internal,
}

/// Numbers are never used for something else.
pub fn code_of(error: &Error) -> c_int {
    match error {
        Error::NoDaemon(_) => -2,
        Error::Lost => -3,
        Error::Late(_) => -4,
        Error::Forked => -5,
        Error::PastDeadline => -6,
        Error::NoCycle => -7,
        Error::NoService(_) => -8,
        Error::BadPage => -9,
        Error::System { .. } => -11,
        Error::NotEnded => -14,
        Error::Refused(fault) => match fault.kind {
            FaultKind::NoSession | FaultKind::Unknown => -20,
            FaultKind::BadRequest => -21,
            FaultKind::Version => -22,
            FaultKind::BadTerms => -23,
            FaultKind::NoThread => -24,
            FaultKind::NotYours => -25,
            FaultKind::Taken => -26,
            FaultKind::NotPermitted => -27,
            FaultKind::Unschedulable => -28,
            FaultKind::Full => -29,
            FaultKind::Busy => -30,
            FaultKind::Failed => -31,
        },
    }
}

/// The meaning of a number.
pub fn explanation(code: c_int) -> &'static CStr {
    match code {
        NO_SESSION => c"there is no session: the handle is NULL",
        -2 => c"Andante is not there: `sudo andante run` starts it",
        -3 => c"the connection to Andante has ended: open another session when it is back",
        -4 => c"Andante has not answered in time: go on without it",
        -5 => c"this process was forked with the session open: open one of its own",
        -6 => c"the deadline has passed already: give one of CLOCK_MONOTONIC that is still to come",
        -7 => c"no cycle was begun: call andante_begin() first",
        -8 => c"there is no such service: they are numbered from 0 to 3",
        -9 => c"the page that came from Andante is of another layout: install the library that belongs to it",
        INVALID => c"an argument makes no sense: set size to that of the structure, and the rest to 0 first",
        -11 => c"the system has refused something: andante_last_message() says what",
        INTERNAL => c"a fault of libandante: please report it",
        NO_ROLE => c"there is no such role: give one of ANDANTE_ROLE_*",
        -14 => c"the cycle before was not ended, and this one has begun in its place: call andante_end() when one is done",
        -20 => c"Andante has refused it: andante_last_message() says why",
        -21 => c"Andante does not understand the request: install the library that belongs to it",
        -22 => c"Andante speaks another version: install the library that belongs to it",
        -23 => c"these numbers make no sense: no budget is longer than its period",
        -24 => c"there is no such thread in the session: let one join first",
        -25 => c"the thread is another process's: open a session in that",
        -26 => c"the thread takes part already: let it leave first",
        -27 => c"this is not permitted: ask whoever administers the machine",
        -28 => c"Andante does not schedule this thread: give its real-time priority up, or leave it out",
        -29 => c"there is no room for more: close something first",
        -30 => c"too much is asked for at once: try again later",
        -31 => c"the kernel has not done what it was told: andante_last_message() says what",
        0.. => c"no error",
        _ => c"an error that this version of libandante does not know",
    }
}

#[derive(Default)]
struct Last {
    /// It is put in words when somebody asks: errors come where sound is made, too.
    failure: Option<Failure>,
    words: CString,
}

thread_local! {
    static LAST: RefCell<Last> = RefCell::default();
}

/// Makes room for the last error of this thread now, so that none has to be made where sound is.
pub fn make_room() {
    let _ = LAST.try_with(|_| ());
}

/// Keeps it for [`last_message`]; its number.
#[cold]
pub fn keep(failure: Failure) -> c_int {
    let code = match &failure {
        Failure::Known(code, _) => *code,
        Failure::Invalid(_) => INVALID,
        Failure::NoRole(_) => NO_ROLE,
        Failure::Internal => INTERNAL,
    };
    // A thread that is ending has no last error any more.
    let _ = LAST.try_with(|last| last.borrow_mut().failure = Some(failure));
    code
}

/// The last one of this thread, in words; valid until its next call.
pub fn last_message() -> *const c_char {
    let words = LAST.try_with(|last| {
        let mut last = last.borrow_mut();
        if let Some(failure) = last.failure.take() {
            last.words = match failure {
                Failure::Known(_, error) => words(error.to_string()),
                Failure::Invalid(what) => words(format!("an argument makes no sense: {what}")),
                Failure::NoRole(role) => words(format!(
                    "there is no role {role}: give one of ANDANTE_ROLE_*, which are numbered from 1 to {}",
                    andante_session::Role::ALL.len()
                )),
                Failure::Internal => explanation(INTERNAL).to_owned(),
            };
        }
        last.words.as_ptr()
    });
    words.unwrap_or(c"".as_ptr())
}

fn words(mut text: String) -> CString {
    text.retain(|letter| letter != '\0');
    CString::new(text).unwrap_or_default()
}
