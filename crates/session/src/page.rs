// SPDX-License-Identifier: GPL-2.0
//! The page of a thread, as `crates/app/include/andante/page.h` publishes it, which says who writes what.

use std::mem::{offset_of, size_of};
use std::sync::atomic::{AtomicU32, AtomicU64};

/// Begins every page.
pub const MAGIC: u32 = 0x646e_4161;
/// Of the layout.
pub const VERSION: u32 = 1;
/// What is mapped \[bytes\]; what follows the structure is reserved.
pub const BYTES: usize = 4096;
/// Kinds of events, of each of which one may be pending for a thread.
pub const SERVICES: usize = 4;

/// Option of `prctl` that asks the scheduler to look at a sink, its second argument.
pub const PRCTL_LOOK: i32 = 0x416e_6401;

/// An event for a thread.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Event {
    /// Not to be delivered before this [ns of CLOCK_MONOTONIC]; 0: at once.
    pub deliver_ns: AtomicU64,
    /// How often it was raised so far; changes last.
    pub raised: AtomicU32,
    reserved: u32,
}

/// The page. Each field is written by one side, which the header names.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Page {
    /// [`MAGIC`].
    pub magic: AtomicU32,
    /// [`VERSION`].
    pub version: AtomicU32,
    /// Number of the session.
    pub session: AtomicU32,
    /// Number of the thread within it, from 1 on.
    pub thread: AtomicU32,
    /// What calls name the thread by; 0: there are none for it.
    pub sink: AtomicU32,
    reserved_0: [u32; 11],
    /// When the cycle in progress is due [ns of CLOCK_MONOTONIC]; 0: between two cycles.
    pub deadline_ns: AtomicU64,
    /// When it began [ns of CLOCK_MONOTONIC]; 0: not said.
    pub begun_ns: AtomicU64,
    /// The time that the last cycle took, as the program measured it [ns]; 0: not said.
    pub worked_ns: AtomicU64,
    /// Cycles that have begun.
    pub cycles: AtomicU32,
    /// Times that more work than before was announced.
    pub surges: AtomicU32,
    /// [`Page::sink`] of the thread that its next general call is for.
    pub calls_for: AtomicU32,
    reserved_1: u32,
    /// When the event is to be delivered that it calls for [ns of CLOCK_MONOTONIC]; 0: at once.
    pub calls_ns: AtomicU64,
    /// Cycles that have ended after their deadline, or begun after it.
    pub late: AtomicU32,
    reserved_2: [u32; 3],
    /// Events for the thread, by service.
    pub events: [Event; SERVICES],
    /// [`Event::raised`] when one was last delivered, by service.
    pub delivered: [AtomicU32; SERVICES],
    /// When the scheduler last looked [ns of CLOCK_MONOTONIC]; 0: never.
    pub read_ns: AtomicU64,
    reserved_3: [u64; 5],
}

// The header's layout: a C program in this crate's tests asserts the same numbers.
const _: () = assert!(size_of::<Event>() == 16);
const _: () = assert!(size_of::<Page>() == 256);
const _: () = assert!(offset_of!(Page, sink) == 16);
const _: () = assert!(offset_of!(Page, deadline_ns) == 64);
const _: () = assert!(offset_of!(Page, cycles) == 88);
const _: () = assert!(offset_of!(Page, calls_for) == 96);
const _: () = assert!(offset_of!(Page, calls_ns) == 104);
const _: () = assert!(offset_of!(Page, late) == 112);
const _: () = assert!(offset_of!(Page, events) == 128);
const _: () = assert!(offset_of!(Page, delivered) == 192);
const _: () = assert!(offset_of!(Page, read_ns) == 208);
