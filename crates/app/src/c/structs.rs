// SPDX-License-Identifier: GPL-2.0
//! Structures of `include/andante.h`. Each begins with its size, as the program was compiled: fields that were
//! added since count as 0, and those of a later version must be 0 for us to understand the rest.

use std::ffi::{CStr, c_char};
use std::mem::size_of;
use std::slice;

use super::errors::Failure;
use crate::{Promised, Role};

const NAME_BYTES: usize = 128;
const REASON_BYTES: usize = 512;
/// A structure larger than this is none.
const LARGEST: usize = 4096;

/// A structure that begins with its size, and may consist of zeros.
///
/// # Safety
/// `repr(C)`, without padding, its first field a `u32`.
pub unsafe trait Sized32: Copy {
    /// Its size when it was published first.
    const FIRST: usize;
}

/// The purpose of a session.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Wish {
    size: u32,
    role: u32,
    period_ns: u64,
    deadline_ns: u64,
    budget_ns: u64,
    name: *const c_char,
}

/// The work of one thread.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Cycle {
    size: u32,
    reserved: u32,
    period_ns: u64,
    deadline_ns: u64,
    budget_ns: u64,
}

/// The terms of a promise.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Terms {
    size: u32,
    losses: u32,
    window: u32,
    reserved: u32,
    budget_ns: u64,
    period_ns: u64,
    deadline_ns: u64,
}

/// The answer to a promise that was asked for.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Answer {
    size: u32,
    granted: u32,
    nearest: u32,
    losses: u32,
    window: u32,
    reserved: u32,
    budget_ns: u64,
    period_ns: u64,
    deadline_ns: u64,
    name: [u8; NAME_BYTES],
    reason: [u8; REASON_BYTES],
}

/// News of a promise.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Notice {
    size: u32,
    kind: u32,
    times: u64,
    reason: [u8; REASON_BYTES],
}

// SAFETY: as the trait asks, each.
unsafe impl Sized32 for Wish {
    const FIRST: usize = 32 + size_of::<*const c_char>();
}
// SAFETY: as above.
unsafe impl Sized32 for Cycle {
    const FIRST: usize = 32;
}
// SAFETY: as above.
unsafe impl Sized32 for Terms {
    const FIRST: usize = 40;
}
// SAFETY: as above.
unsafe impl Sized32 for Answer {
    const FIRST: usize = 48 + NAME_BYTES + REASON_BYTES;
}
// SAFETY: as above.
unsafe impl Sized32 for Notice {
    const FIRST: usize = 16 + REASON_BYTES;
}

/// How long the caller says that it is [bytes].
///
/// # Safety
/// `at` is NULL, or its first word may be read.
pub unsafe fn length<T: Sized32>(at: *const T) -> Result<usize, Failure> {
    if at.is_null() {
        return Err(Failure::Invalid("a structure is NULL"));
    }
    // SAFETY: by the caller's word.
    let length = unsafe { at.cast::<u32>().read() } as usize;
    match (T::FIRST..=LARGEST).contains(&length) {
        true => Ok(length),
        false => Err(Failure::Invalid("a structure's size is not set to sizeof")),
    }
}

/// Takes what the caller has filled in.
///
/// # Safety
/// `at` is NULL, or begins with its size, and is so long.
pub unsafe fn taken<T: Sized32>(at: *const T) -> Result<T, Failure> {
    // SAFETY: by the caller's word.
    let length = unsafe { length(at) }?;
    // SAFETY: as above.
    let bytes = unsafe { slice::from_raw_parts(at.cast::<u8>(), length) };
    let known = length.min(size_of::<T>());
    if bytes[known..].iter().any(|byte| *byte != 0) {
        return Err(Failure::Invalid(
            "a structure says something that this version of libandante does not know",
        ));
    }
    // SAFETY: the structures may consist of zeros, and of what the caller has put there.
    unsafe {
        let mut taken: T = std::mem::zeroed();
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), (&raw mut taken).cast(), known);
        Ok(taken)
    }
}

/// Gives the caller as much as it has room for, but for the size, which stays.
///
/// # Safety
/// `at` may be written, and is so long.
pub unsafe fn given<T: Sized32>(at: *mut T, length: usize, what: T) {
    let known = length.min(size_of::<T>());
    let (from, size) = ((&raw const what).cast::<u8>(), size_of::<u32>());
    let at = at.cast::<u8>();
    // SAFETY: by the caller's word; what the structure has beyond ours becomes 0.
    unsafe {
        std::ptr::copy_nonoverlapping(from.add(size), at.add(size), known - size);
        at.add(known).write_bytes(0, length - known);
    }
}

fn said(number: u64) -> Option<u64> {
    (number != 0).then_some(number)
}

impl Wish {
    /// As Rust programs say it.
    pub fn read(&self) -> Result<crate::Wish, Failure> {
        let role = match self.role {
            1 => Role::Audio,
            2 => Role::Game,
            3 => Role::Video,
            4 => Role::Interactive,
            other => return Err(Failure::NoRole(other)),
        };
        let cycle = crate::Cycle {
            period_ns: said(self.period_ns),
            deadline_ns: said(self.deadline_ns),
            budget_ns: said(self.budget_ns),
        };
        let mut wish = crate::Wish::new(role, cycle);
        if !self.name.is_null() {
            // SAFETY: what is not NULL ends with a 0, as the header says.
            let name = unsafe { CStr::from_ptr(self.name) }.to_str();
            let name = name.map_err(|_| Failure::Invalid("the name is no UTF-8"))?;
            wish.name = Some(name.to_owned());
        }
        Ok(wish)
    }
}

impl Cycle {
    /// As Rust programs say it.
    pub fn read(&self) -> Result<crate::Cycle, Failure> {
        reserved(self.reserved)?;
        Ok(crate::Cycle {
            period_ns: said(self.period_ns),
            deadline_ns: said(self.deadline_ns),
            budget_ns: said(self.budget_ns),
        })
    }
}

impl Terms {
    /// As Rust programs say it.
    pub fn read(&self) -> Result<crate::Terms, Failure> {
        reserved(self.reserved)?;
        Ok(crate::Terms {
            budget_ns: self.budget_ns,
            period_ns: self.period_ns,
            deadline_ns: said(self.deadline_ns),
            losses: self.losses,
            window: self.window,
        })
    }
}

fn reserved(word: u32) -> Result<(), Failure> {
    match word {
        0 => Ok(()),
        _ => Err(Failure::Invalid("what is reserved is not 0")),
    }
}

impl Answer {
    /// As Rust programs are answered.
    pub fn of(promised: Promised) -> Self {
        let (granted, terms, name, reason) = match promised {
            Promised::Granted(granted) => {
                let reason = granted.notes.join(" ");
                (true, Some(granted.terms), granted.name, reason)
            }
            Promised::Offer(offer) => (false, offer.terms, String::new(), offer.reason),
        };
        Self {
            size: 0,
            granted: u32::from(granted),
            nearest: u32::from(!granted && terms.is_some()),
            losses: terms.map_or(0, |terms| terms.losses),
            window: terms.map_or(0, |terms| terms.window),
            reserved: 0,
            budget_ns: terms.map_or(0, |terms| terms.budget_ns),
            period_ns: terms.map_or(0, |terms| terms.period_ns),
            deadline_ns: terms.and_then(|terms| terms.deadline_ns).unwrap_or(0),
            name: text(&name),
            reason: text(&reason),
        }
    }
}

impl Notice {
    /// As Rust programs are told.
    pub fn of(notice: Option<crate::Notice>) -> Self {
        let (kind, times, reason) = match notice {
            None => (0, 0, String::new()),
            Some(crate::Notice::Weakened { reason }) => (1, 0, reason),
            Some(crate::Notice::Exhausted { times }) => (2, times, String::new()),
            Some(crate::Notice::Ended { reason }) => (3, 0, reason),
        };
        Self {
            size: 0,
            kind,
            times,
            reason: text(&reason),
        }
    }
}

/// As much of it as there is room for, in whole letters, and a 0.
fn text<const BYTES: usize>(text: &str) -> [u8; BYTES] {
    let mut end = text.len().min(BYTES - 1);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let mut bytes = [0; BYTES];
    bytes[..end].copy_from_slice(&text.as_bytes()[..end]);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_letters_and_ends_with_a_zero() {
        assert_eq!(text::<6>("abcdéf"), *b"abcd\0\0");
        assert_eq!(text::<7>("abcdéf"), *b"abcd\xc3\xa9\0");
        assert_eq!(text::<4>("ab"), *b"ab\0\0");
    }

    /// What a later version's program says in a later version's fields.
    #[repr(C)]
    struct Later {
        cycle: Cycle,
        more: u64,
    }

    #[test]
    fn structures_of_other_versions_are_understood_or_refused() {
        let mut later = Later {
            cycle: Cycle {
                size: size_of::<Later>() as u32,
                reserved: 0,
                period_ns: 7,
                deadline_ns: 0,
                budget_ns: 0,
            },
            more: 0,
        };
        let take = |later: &Later| {
            // SAFETY: it is as long as it says, or less is read of it.
            unsafe { taken((&raw const *later).cast::<Cycle>()) }.map(|cycle| cycle.period_ns)
        };
        assert_eq!(take(&later).unwrap(), 7);
        later.more = 1;
        assert!(matches!(take(&later), Err(Failure::Invalid(_))));
        for wrong in [0, 31, u32::MAX] {
            later.cycle.size = wrong;
            assert!(matches!(take(&later), Err(Failure::Invalid(_))), "{wrong}");
        }
    }

    #[test]
    fn no_more_is_given_than_there_is_room_for() {
        let mut room = [u64::MAX; 70];
        let length = 16 + REASON_BYTES + 8;
        let notice = Notice::of(Some(crate::Notice::Exhausted { times: 3 }));
        // SAFETY: there is room for it.
        unsafe { given(room.as_mut_ptr().cast::<Notice>(), length, notice) };
        assert_eq!(room[0], 0x2_ffff_ffff, "the caller's size stays");
        assert_eq!((room[1], room[length / 8 - 1]), (3, 0));
        assert_eq!(room[length / 8], u64::MAX);
    }
}
