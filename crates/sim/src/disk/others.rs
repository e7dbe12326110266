//! Others' schedulers: the kernel's `none` and `kyber`, which to a disk of few requests are as they come, and `mq-deadline`.
//!
//! `bfq` and `io.cost` are not here: they learn what programs are from more than their requests, and a model that leaves
//! that out is neither.

use std::collections::{BTreeMap, VecDeque};

use andante_drive::{Action, Tag};

use super::{Asked, Queue};
use crate::{NS_PER_MS, NS_PER_S, Ns};

/// A program's word on its requests (`ioprio_set(2)`); the more urgent is less.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Priority {
    /// Before all others.
    RealTime,
    /// As those of whom nothing is said.
    #[default]
    Usual,
    /// After all others.
    Idle,
}

/// As they come, so many at once.
#[derive(Debug, Clone)]
pub struct Fifo {
    tags: u32,
    waiting: VecDeque<Tag>,
    in_service: u32,
}

impl Fifo {
    /// To a disk that takes so many at once, more than 0.
    pub fn new(tags: u32) -> Self {
        Self {
            tags,
            waiting: VecDeque::new(),
            in_service: 0,
        }
    }
}

impl Queue for Fifo {
    fn arrive(&mut self, asked: &Asked, _: Ns) {
        self.waiting.push_back(asked.tag);
    }

    fn next(&mut self, _: Ns) -> Option<Tag> {
        if self.in_service >= self.tags {
            return None;
        }
        let next = self.waiting.pop_front();
        self.in_service += u32::from(next.is_some());
        next
    }

    fn done(&mut self, _: Tag, _: Ns) {
        self.in_service -= 1;
    }

    fn ask_ns(&self) -> Option<Ns> {
        None
    }
}

/// So many in a row go up the disk before another place is looked for (`fifo_batch`).
const BATCH: u32 = 16;
/// A read that has waited for so long is next (`read_expire`); a write (`write_expire`) [ns].
const EXPIRE_NS: [Ns; 2] = [500 * NS_PER_MS, 5 * NS_PER_S];
/// Times that writes give way to reads (`writes_starved`).
const WRITES_STARVED: u32 = 2;
/// A less urgent request that has waited for so long goes all the same (`prio_aging_expire`) [ns].
const AGING_NS: Ns = 10 * NS_PER_S;

/// A request that waits.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    tag: Tag,
    sector: u64,
    came_ns: Ns,
}

/// Reads or writes of a priority, as they come and by place.
#[derive(Debug, Clone, Default)]
struct Direction {
    as_they_came: VecDeque<Waiting>,
    by_place: BTreeMap<(u64, Tag), Waiting>,
    /// The place of the one that went last.
    last: Option<(u64, Tag)>,
}

impl Direction {
    fn take(&mut self, waiting: Waiting) -> Tag {
        let place = (waiting.sector, waiting.tag);
        self.by_place.remove(&place);
        self.as_they_came.retain(|other| other.tag != waiting.tag);
        self.last = Some(place);
        waiting.tag
    }

    /// The next one up the disk from the last.
    fn after_last(&self) -> Option<Waiting> {
        let last = self.last?;
        let mut up = self.by_place.range(last..);
        up.next().map(|(_, waiting)| *waiting)
    }

    fn expired(&self, direction: usize, now_ns: Ns) -> bool {
        let first = self.as_they_came.front();
        first.is_some_and(|first| now_ns >= first.came_ns + EXPIRE_NS[direction])
    }
}

/// Of a priority.
#[derive(Debug, Clone, Default)]
struct Level {
    directions: [Direction; 2],
    /// Of the row that is under way.
    direction: usize,
    batched: u32,
    starved: u32,
}

impl Level {
    fn waits(&self) -> bool {
        self.directions.iter().any(|d| !d.as_they_came.is_empty())
    }

    fn next(&mut self, now_ns: Ns) -> Option<Tag> {
        if self.batched < BATCH
            && let Some(next) = self.directions[self.direction].after_last()
        {
            self.batched += 1;
            return Some(self.directions[self.direction].take(next));
        }
        let [reads, writes] = [0, 1].map(|d| !self.directions[d].as_they_came.is_empty());
        let direction = match (reads, writes) {
            (false, false) => return None,
            (true, true) if self.starved < WRITES_STARVED => {
                self.starved += 1;
                0
            }
            (true, false) => 0,
            _ => {
                self.starved = 0;
                1
            }
        };
        let of = &mut self.directions[direction];
        let up = of.after_last().filter(|_| !of.expired(direction, now_ns));
        let next = up.or_else(|| of.as_they_came.front().copied())?;
        self.direction = direction;
        self.batched = 1;
        Some(of.take(next))
    }

    /// One has waited for too long below others.
    fn aged(&self, now_ns: Ns) -> bool {
        let firsts = self
            .directions
            .iter()
            .filter_map(|d| d.as_they_came.front());
        firsts
            .into_iter()
            .any(|first| now_ns >= first.came_ns + AGING_NS)
    }
}

/// `mq-deadline`: by priority, then up the disk, as long as none has waited for too long.
///
/// The block layer asks it for one more than the disk can take, and keeps that one: what comes meanwhile does not go
/// before it, however urgent.
#[derive(Debug, Clone)]
pub struct MqDeadline {
    tags: u32,
    levels: [Level; 3],
    in_service: u32,
    kept: Option<Tag>,
}

impl MqDeadline {
    /// To a disk that takes so many at once, more than 0.
    pub fn new(tags: u32) -> Self {
        Self {
            tags,
            levels: Default::default(),
            in_service: 0,
            kept: None,
        }
    }

    fn pick(&mut self, now_ns: Ns) -> Option<Tag> {
        let usual = self.levels.iter().position(Level::waits)?;
        let aged = (usual + 1..self.levels.len()).find(|&level| self.levels[level].aged(now_ns));
        self.levels[aged.unwrap_or(usual)].next(now_ns)
    }
}

impl Queue for MqDeadline {
    fn arrive(&mut self, asked: &Asked, now_ns: Ns) {
        let direction = usize::from(asked.request.action == Action::Write);
        let of = &mut self.levels[asked.priority as usize].directions[direction];
        let waiting = Waiting {
            tag: asked.tag,
            sector: asked.request.sector,
            came_ns: now_ns,
        };
        of.by_place.insert((waiting.sector, waiting.tag), waiting);
        of.as_they_came.push_back(waiting);
    }

    fn next(&mut self, now_ns: Ns) -> Option<Tag> {
        if self.kept.is_none() {
            self.kept = self.pick(now_ns);
        }
        if self.in_service >= self.tags {
            return None;
        }
        let next = self.kept.take()?;
        self.in_service += 1;
        Some(next)
    }

    fn done(&mut self, _: Tag, _: Ns) {
        self.in_service -= 1;
    }

    fn ask_ns(&self) -> Option<Ns> {
        None
    }
}
