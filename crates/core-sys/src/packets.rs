//! The packet scheduler: `core/packets.h`.

use std::ffi::c_int;
use std::ptr::NonNull;

use crate::raw::{Raw, allocate, release};
use crate::tree::{Leaf, Tree};

unsafe extern "C" {
    fn an_sys_packets_size() -> usize;
    fn an_sys_packets_init(packets: *mut Raw, rate: u64, largest: u32);
    fn an_sys_packets_class(packets: *mut Raw, parent: Leaf, weight: u32) -> Leaf;
    fn an_sys_packets_promise(
        packets: *mut Raw,
        leaf: Leaf,
        bytes: u32,
        period_ns: u64,
        now_ns: u64,
    ) -> c_int;
    fn an_sys_packets_shed(packets: *mut Raw, held: u32, now_ns: u64) -> u32;
    fn an_sys_packets_arrive(packets: *mut Raw, arrival: *const Arrival) -> u32;
    fn an_sys_packets_next(packets: *mut Raw, now_ns: u64, index: *mut u32) -> u32;
    fn an_sys_packets_next_ns(packets: *const Raw) -> u64;
}

/// A packet that comes: `struct an_arrival`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// When [ns].
    pub now_ns: u64,
    /// Of which class.
    pub leaf: Leaf,
    /// Of which flow.
    pub hash: u32,
    /// On the link [bytes].
    pub bytes: u32,
    /// In memory [bytes].
    pub held: u32,
}

/// What becomes of a packet that waited no more: `enum an_fate`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It goes.
    Sent,
    /// It does not.
    Dropped,
}

/// The packets of one link. Each is named by an index, from its arrival until it goes or is dropped.
#[derive(Debug)]
pub struct Packets {
    raw: NonNull<Raw>,
}

// SAFETY: plain data without ties to a thread; all changes go through `&mut`.
unsafe impl Send for Packets {}

impl Packets {
    /// The class of everything unclassified.
    pub const ROOT: Leaf = Tree::ROOT;

    /// A link that sends so much [bytes/s], 0 if somebody else holds packets back, in packets of so many
    /// bytes at most.
    pub fn new(rate: u64, largest: u32) -> Self {
        // SAFETY: the core says how much it needs, and initialises it.
        unsafe {
            let raw = allocate(an_sys_packets_size());
            an_sys_packets_init(raw.as_ptr(), rate, largest);
            Self { raw }
        }
    }

    /// A class below that of `parent`; none: there is no room, or it would lie too deep.
    pub fn create(&mut self, parent: Leaf, weight: u32) -> Option<Leaf> {
        // SAFETY: `raw` is initialised, and nobody else refers to it during the call; so below.
        let leaf = unsafe { an_sys_packets_class(self.raw.as_ptr(), parent, weight) };
        (leaf != 0).then_some(leaf)
    }

    /// Promises the class so many bytes in every period; false: that cannot be promised.
    pub fn promise(&mut self, leaf: Leaf, bytes: u32, period_ns: u64, now_ns: u64) -> bool {
        // SAFETY: see `create`.
        unsafe { an_sys_packets_promise(self.raw.as_ptr(), leaf, bytes, period_ns, now_ns) == 0 }
    }

    /// A packet comes: its index, or none if it is dropped. `gone` has the indices of those that are dropped
    /// for it.
    pub fn arrive(&mut self, arrival: &Arrival, mut gone: impl FnMut(u32)) -> Option<u32> {
        loop {
            // SAFETY: see `create`.
            let shed =
                unsafe { an_sys_packets_shed(self.raw.as_ptr(), arrival.held, arrival.now_ns) };
            if shed == 0 {
                break;
            }
            gone(shed);
        }
        // SAFETY: see `create`; the arrival is the core's structure.
        let index = unsafe { an_sys_packets_arrive(self.raw.as_ptr(), arrival) };
        (index != 0).then_some(index)
    }

    /// The packet that is next now, and what becomes of it; none: nothing goes at present.
    pub fn next(&mut self, now_ns: u64) -> Option<(u32, Fate)> {
        let mut index = 0;
        // SAFETY: see `create`.
        let fate = unsafe { an_sys_packets_next(self.raw.as_ptr(), now_ns, &raw mut index) };
        let fate = match fate {
            1 => Fate::Sent,
            2 => Fate::Dropped,
            _ => return None,
        };
        Some((index, fate))
    }

    /// When to ask again [ns]; none: nothing waits.
    pub fn next_ns(&self) -> Option<u64> {
        // SAFETY: see `create`.
        let at_ns = unsafe { an_sys_packets_next_ns(self.raw.as_ptr()) };
        (at_ns != u64::MAX).then_some(at_ns)
    }
}

impl Drop for Packets {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this size, and not used any more.
        unsafe { release(self.raw, an_sys_packets_size()) }
    }
}
