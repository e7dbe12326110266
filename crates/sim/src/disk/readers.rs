//! Programs that read from a disk.

use std::collections::HashMap;

use andante_drive::{Request, SECTOR};

use super::{Priority, to_read};
use crate::random::Random;
use crate::{NS_PER_S, Ns};

/// When a program reads, and what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    /// On and on from a place, so much at these times, one read after the other: a film. One that is done later than the
    /// next is due is late; those that were due meanwhile are skipped.
    Periodic {
        /// From one to the next [ns].
        every_ns: Ns,
    },
    /// On and on from a place, so many reads at a time, each as soon as one is done: a copy.
    Sequential {
        /// Reads at a time.
        depth: u32,
        /// From the end of one to the begin of the next [ns].
        think_ns: Ns,
    },
    /// Anywhere on the disk: a program that starts, a database.
    Anywhere {
        /// Reads at a time.
        depth: u32,
        /// From the end of one to the begin of the next [ns].
        think_ns: Ns,
        /// Where.
        seed: u64,
    },
}

/// A program that reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reader {
    /// Its class.
    pub class: u32,
    /// The priority of its requests.
    pub priority: Priority,
    /// Each time [bytes], whole sectors.
    pub bytes: u32,
    /// The first sector; of those that read anywhere, the last one that they may read.
    pub sector: u64,
    /// When, and what.
    pub pattern: Pattern,
}

/// The outcome.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Served {
    /// Read.
    pub bytes: u64,
    /// From the begin of a read, or from when it was due, to its end [ns], the shortest first.
    pub delays_ns: Vec<Ns>,
    /// Reads by a film that were done after the next was due.
    pub late: u64,
    /// Those that were skipped for it.
    pub skipped: u64,
    /// For so long [ns].
    pub length_ns: Ns,
}

impl Served {
    /// The delay that so large a part of the reads does not exceed [ns]; 0 of none.
    pub fn delay_ns(&self, part: f64) -> Ns {
        let at = (self.delays_ns.len() as f64 * part) as usize;
        let last = self.delays_ns.len().saturating_sub(1);
        self.delays_ns.get(at.min(last)).copied().unwrap_or(0)
    }

    /// Read in a second [bytes/s].
    pub fn rate(&self) -> f64 {
        self.bytes as f64 * NS_PER_S as f64 / self.length_ns.max(1) as f64
    }
}

/// A program at work.
pub(super) struct Reading<'a> {
    reader: &'a Reader,
    from_ns: Ns,
    random: Random,
    /// The next sector on the way.
    sector: u64,
    /// When each of its next reads begins [ns].
    due_ns: Vec<Ns>,
    /// When those that are under way began or were due, by their first sector [ns].
    begun_ns: HashMap<u64, Ns>,
    served: Served,
}

impl<'a> Reading<'a> {
    pub(super) fn new(reader: &'a Reader, from_ns: Ns) -> Self {
        let (depth, seed) = match reader.pattern {
            Pattern::Periodic { .. } => (1, 0),
            Pattern::Sequential { depth, .. } => (depth, 0),
            Pattern::Anywhere { depth, seed, .. } => (depth, seed),
        };
        Self {
            reader,
            from_ns,
            random: Random::new(seed),
            sector: reader.sector,
            due_ns: vec![0; depth as usize],
            begun_ns: HashMap::new(),
            served: Served::default(),
        }
    }

    pub(super) fn class(&self) -> u32 {
        self.reader.class
    }

    pub(super) fn priority(&self) -> Priority {
        self.reader.priority
    }

    pub(super) fn next_ns(&self) -> Option<Ns> {
        self.due_ns.iter().copied().min()
    }

    /// A read that begins by now.
    pub(super) fn ask(&mut self, now_ns: Ns) -> Option<Request> {
        let at = self.due_ns.iter().position(|due_ns| *due_ns <= now_ns)?;
        let due_ns = self.due_ns.swap_remove(at);
        let sectors = (u64::from(self.reader.bytes) / SECTOR).max(1);
        let sector = match self.reader.pattern {
            Pattern::Anywhere { .. } => loop {
                let place = self.random.below(self.reader.sector / sectors) * sectors;
                if !self.begun_ns.contains_key(&place) {
                    break place;
                }
            },
            _ => self.sector,
        };
        self.sector = sector + sectors;
        self.begun_ns.insert(sector, due_ns);
        Some(to_read(sector, self.reader.bytes))
    }

    pub(super) fn done(&mut self, request: Request, now_ns: Ns) {
        let Some(begun_ns) = self.begun_ns.remove(&request.sector) else {
            unreachable!("it was begun")
        };
        let delay_ns = now_ns - begun_ns;
        let counts = begun_ns >= self.from_ns;
        if counts {
            self.served.bytes += request.bytes();
            self.served.delays_ns.push(delay_ns);
        }
        let next_ns = match self.reader.pattern {
            Pattern::Periodic { every_ns } => {
                let missed = delay_ns.saturating_sub(1) / every_ns;
                if counts {
                    self.served.late += u64::from(missed > 0);
                    self.served.skipped += missed.saturating_sub(1);
                }
                begun_ns + missed.max(1) * every_ns
            }
            Pattern::Sequential { think_ns, .. } | Pattern::Anywhere { think_ns, .. } => {
                now_ns + think_ns
            }
        };
        self.due_ns.push(next_ns);
    }

    pub(super) fn served(mut self, end_ns: Ns) -> Served {
        self.served.delays_ns.sort_unstable();
        self.served.length_ns = end_ns.saturating_sub(self.from_ns);
        self.served
    }
}
