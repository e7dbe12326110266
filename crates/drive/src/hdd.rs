//! An arm over platters.

use std::collections::VecDeque;

use crate::{Drive, NS_PER_S, Ns, Request, SECTOR, Tag};

/// The figures of an arm and its platters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hdd {
    /// Sectors, more than 0.
    pub sectors: u64,
    /// The shortest seek [ns].
    pub seek_ns: Ns,
    /// The time that a seek over the whole disk takes beyond that [ns].
    pub stroke_ns: Ns,
    /// A turn of the platters [ns], more than 0.
    pub turn_ns: Ns,
    /// The bytes that pass under a head [bytes/s], more than 0.
    pub rate: u64,
    /// From a request to one that begins where it ended, which the disk has read ahead [ns].
    pub next_ns: Ns,
    /// Of those that it has, it serves the one next that it comes to first; or else they are served as they came.
    pub sorts: bool,
}

impl Hdd {
    /// A disk of so many bytes as they were sold for desktops: 7200 turns a minute, 125 MB/s, 10 ms from end to end.
    pub fn desktop(bytes: u64) -> Self {
        Self {
            sectors: (bytes / SECTOR).max(1),
            seek_ns: 1_000_000,
            stroke_ns: 9_000_000,
            turn_ns: 8_333_333,
            rate: 125_000_000,
            next_ns: 50_000,
            sorts: false,
        }
    }

    /// The disk at rest, its arm at the first sector.
    pub fn spin(self) -> Spinning {
        Spinning {
            hdd: self,
            arm: 0,
            waiting: VecDeque::new(),
            serving: None,
        }
    }

    /// From the arm's place to a request's begin [ns].
    fn seek_ns(&self, from: u64, to: u64) -> Ns {
        let part = from.abs_diff(to) as f64 / self.sectors as f64;
        self.seek_ns + (self.stroke_ns as f64 * part.min(1.0).sqrt()) as Ns
    }

    /// Until the sector comes, at that time [ns]: the platters stand by the clock.
    fn wait_ns(&self, sector: u64, at_ns: Ns) -> Ns {
        let track = self.rate as f64 * self.turn_ns as f64 / NS_PER_S / SECTOR as f64;
        let angle = (sector as f64 / track).fract();
        let comes_ns = (angle * self.turn_ns as f64) as Ns;
        (comes_ns + self.turn_ns - at_ns % self.turn_ns) % self.turn_ns
    }

    /// The time that a request takes that begins now, with the arm there [ns].
    fn takes_ns(&self, arm: u64, request: Request, now_ns: Ns) -> Ns {
        let pass_ns = (request.bytes() as f64 * NS_PER_S / self.rate as f64) as Ns;
        if request.sector == arm {
            return self.next_ns + pass_ns;
        }
        let seek_ns = self.seek_ns(arm, request.sector);
        seek_ns + self.wait_ns(request.sector, now_ns + seek_ns) + pass_ns
    }
}

/// A disk that turns.
#[derive(Debug, Clone)]
pub struct Spinning {
    hdd: Hdd,
    /// Where the last request ended.
    arm: u64,
    waiting: VecDeque<(Tag, Request)>,
    /// And when it is done [ns].
    serving: Option<(Tag, Request, Ns)>,
}

impl Spinning {
    /// The next one begins, if one waits and none is served.
    fn begin(&mut self, now_ns: Ns) {
        if self.serving.is_some() {
            return;
        }
        let takes_ns =
            |&(_, request): &(Tag, Request)| self.hdd.takes_ns(self.arm, request, now_ns);
        let next = match self.hdd.sorts {
            true => (0..self.waiting.len()).min_by_key(|&at| takes_ns(&self.waiting[at])),
            false => Some(0),
        };
        let Some((tag, request)) = next.and_then(|at| self.waiting.remove(at)) else {
            return;
        };
        let done_ns = now_ns + self.hdd.takes_ns(self.arm, request, now_ns);
        self.serving = Some((tag, request, done_ns));
    }
}

impl Drive for Spinning {
    fn take(&mut self, tag: Tag, request: Request, now_ns: Ns) {
        self.waiting.push_back((tag, request));
        self.begin(now_ns);
    }

    fn next_ns(&self) -> Option<Ns> {
        self.serving.map(|(.., done_ns)| done_ns)
    }

    fn done(&mut self, now_ns: Ns) -> Option<Tag> {
        let (tag, request, done_ns) = self.serving.filter(|&(.., at_ns)| at_ns <= now_ns)?;
        self.serving = None;
        self.arm = request.end();
        // It had them all the time, however late it is asked.
        self.begin(done_ns.max(now_ns));
        Some(tag)
    }
}
