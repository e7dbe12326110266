// SPDX-License-Identifier: GPL-2.0
//! The requests, and who decides which is served next.

use std::collections::VecDeque;

/// A request's number, as long as it is not answered; the kernel uses it again then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(pub u16);

/// The kind of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum What {
    /// To read sectors.
    Read,
    /// To write them.
    Write,
    /// To make safe what has been written and answered before. It has no sectors.
    Flush,
    /// To forget what is in them.
    Discard,
    /// To write zeroes.
    Zeroes,
}

impl What {
    /// All of them, by their index in [`crate::Counts`].
    pub const ALL: [Self; 5] = [
        Self::Read,
        Self::Write,
        Self::Flush,
        Self::Discard,
        Self::Zeroes,
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Flush => "flush",
            Self::Discard => "discard",
            Self::Zeroes => "zeroes",
        }
    }
}

/// A request, as it has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Its number.
    pub tag: Tag,
    /// The cgroup that it is of; 0: nobody's, as the kernel's own flushes are.
    pub class: u64,
    /// The priority that its sender has asked for with `ioprio_set(2)`; 0: nothing.
    pub ioprio: u16,
    /// Its kind.
    pub what: What,
    /// It is answered when it is safe (a write).
    pub fua: bool,
    /// Zeroes are to have their place on the disk.
    pub keep_place: bool,
    /// The first sector, of 512 bytes.
    pub sector: u64,
    /// So many.
    pub sectors: u32,
}

impl Request {
    /// Where it begins [bytes].
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.sector * crate::SECTOR
    }

    /// How long it is [bytes].
    #[must_use]
    pub fn bytes(&self) -> u64 {
        u64::from(self.sectors) * crate::SECTOR
    }
}

/// Decides which request is served next, and how many are at once.
///
/// It reads no clock: each call has the time. The server tells of every request that it has come, asks for the next
/// ones until there is none, whenever something has come or is done or the time has come to ask again, and tells of
/// each that was named that it is done. Any order is right by the block layer's rules: requests that wait at the same
/// time have none, and a flush is for what was answered before it came.
pub trait Order {
    /// A request has come.
    fn arrive(&mut self, request: &Request, now_ns: u64);
    /// The one to be served now, if any is.
    fn next(&mut self, now_ns: u64) -> Option<Tag>;
    /// One that was named has been served.
    fn done(&mut self, tag: Tag, now_ns: u64);
    /// It may name one at this time though nothing has come and nothing was done.
    fn ask_again_ns(&self) -> Option<u64> {
        None
    }
}

impl<O: Order + ?Sized> Order for Box<O> {
    fn arrive(&mut self, request: &Request, now_ns: u64) {
        (**self).arrive(request, now_ns);
    }

    fn next(&mut self, now_ns: u64) -> Option<Tag> {
        (**self).next(now_ns)
    }

    fn done(&mut self, tag: Tag, now_ns: u64) {
        (**self).done(tag, now_ns);
    }

    fn ask_again_ns(&self) -> Option<u64> {
        (**self).ask_again_ns()
    }
}

/// As they come, so many at once: what any other order is compared with.
#[derive(Debug, Clone)]
pub struct Fifo {
    waiting: VecDeque<Tag>,
    free: u16,
}

impl Fifo {
    /// So many are served at once, one at least.
    #[must_use]
    pub fn new(depth: u16) -> Self {
        Self {
            waiting: VecDeque::with_capacity(usize::from(crate::MAX_TAGS)),
            free: depth.max(1),
        }
    }
}

impl Order for Fifo {
    fn arrive(&mut self, request: &Request, _now_ns: u64) {
        self.waiting.push_back(request.tag);
    }

    fn next(&mut self, _now_ns: u64) -> Option<Tag> {
        self.free.checked_sub(1).and_then(|free| {
            let tag = self.waiting.pop_front()?;
            self.free = free;
            Some(tag)
        })
    }

    fn done(&mut self, _tag: Tag, _now_ns: u64) {
        self.free += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(tag: u16) -> Request {
        Request {
            tag: Tag(tag),
            class: 0,
            ioprio: 0,
            what: What::Read,
            fua: false,
            keep_place: false,
            sector: 8 * u64::from(tag),
            sectors: 8,
        }
    }

    #[test]
    fn fifo_serves_as_they_come_and_no_more_than_its_depth_at_once() {
        let mut fifo = Fifo::new(2);
        for tag in [5, 3, 9] {
            fifo.arrive(&read(tag), 0);
        }
        assert_eq!(fifo.next(0), Some(Tag(5)));
        assert_eq!(fifo.next(0), Some(Tag(3)));
        assert_eq!(fifo.next(0), None);
        fifo.done(Tag(3), 1);
        assert_eq!(fifo.next(1), Some(Tag(9)));
        assert_eq!(fifo.next(1), None);
        fifo.done(Tag(5), 2);
        fifo.done(Tag(9), 2);
        assert_eq!(fifo.next(2), None, "nothing waits");
        fifo.arrive(&read(1), 3);
        assert_eq!(fifo.next(3), Some(Tag(1)));
    }
}
