//! Packet schedulers that a link has without Andante, behind a token bucket: one queue, or flows in turn with CoDel, as Linux has
//! them [1]. They are models to compare with; nothing is decided by them.
//!
//! \[1\] T. Hoeiland-Joergensen, P. McKenney, D. Taht, J. Gettys, E. Dumazet: *The Flow Queue CoDel Packet
//! Scheduler and Active Queue Management Algorithm*. RFC 8290, 2018. CoDel: RFC 8289.

use std::collections::VecDeque;

use andante_core_sys::{Arrival, Fate};

use super::{Number, Queue};
use crate::{NS_PER_MS, NS_PER_S, Ns};

/// The size of the bucket [bytes]: a largest packet, so that packets leave one after the other, as from a device. On a
/// kernel, whose timers are late, it must hold two.
const BURST: u64 = 1514;
/// Most packets of a FIFO (`txqueuelen`).
const FIFO_PACKETS: usize = 1000;
/// Most packets of fq_codel [1, 5.2.1].
const FQ_PACKETS: usize = 10_240;
/// Its queues [1, 5.2.4].
const FLOWS: usize = 1024;
/// The bytes that a flow may send in a turn: a largest packet [1, 5.2.3].
const QUANTUM: i64 = 1514;
/// CoDel's.
const TARGET_NS: Ns = 5 * NS_PER_MS;
const INTERVAL_NS: Ns = 100 * NS_PER_MS;

/// Lets as many bytes through as the link carries.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    /// [bytes/s]
    rate: u64,
    /// When it is empty, if nothing is taken from it any more: then it fills [ns].
    empty_ns: Ns,
}

impl Bucket {
    fn takes_ns(&self, bytes: u64) -> Ns {
        (bytes * NS_PER_S).div_ceil(self.rate)
    }

    /// When a packet may go [ns].
    fn opens_ns(&self, bytes: u32) -> Ns {
        let missing = self.takes_ns(u64::from(bytes)) + self.empty_ns;
        missing.saturating_sub(self.takes_ns(BURST))
    }

    fn take(&mut self, bytes: u32, now_ns: Ns) {
        self.empty_ns = self.empty_ns.max(now_ns) + self.takes_ns(u64::from(bytes));
    }
}

#[derive(Debug, Clone, Copy)]
struct Packet {
    number: Number,
    bytes: u32,
    came_ns: Ns,
}

/// One queue, the oldest first.
#[derive(Debug)]
pub struct Fifo {
    bucket: Bucket,
    waiting: VecDeque<Packet>,
    numbers: Number,
}

impl Fifo {
    /// Of a link that sends so much [bytes/s].
    pub fn new(rate: u64) -> Self {
        Self {
            bucket: Bucket { rate, empty_ns: 0 },
            waiting: VecDeque::new(),
            numbers: 0,
        }
    }
}

impl Queue for Fifo {
    fn arrive(&mut self, arrival: &Arrival, _: &mut dyn FnMut(Number)) -> Option<Number> {
        if self.waiting.len() >= FIFO_PACKETS {
            return None;
        }
        self.numbers += 1;
        self.waiting.push_back(Packet {
            number: self.numbers,
            bytes: arrival.bytes,
            came_ns: arrival.now_ns,
        });
        Some(self.numbers)
    }

    fn next(&mut self, now_ns: Ns) -> Option<(Number, Fate)> {
        let packet = *self.waiting.front()?;
        if self.bucket.opens_ns(packet.bytes) > now_ns {
            return None;
        }
        self.bucket.take(packet.bytes, now_ns);
        self.waiting.pop_front();
        Some((packet.number, Fate::Sent))
    }

    fn next_ns(&self) -> Option<Ns> {
        let first = self.waiting.front()?;
        Some(self.bucket.opens_ns(first.bytes))
    }
}

/// A flow, with its CoDel.
#[derive(Debug, Clone, Default)]
struct Flow {
    waiting: VecDeque<Packet>,
    bytes: u64,
    credit: i64,
    queued: bool,
    first_above_ns: Ns,
    drop_next_ns: Ns,
    count: u64,
    last_count: u64,
    dropping: bool,
}

impl Flow {
    fn step_ns(&self) -> Ns {
        (INTERVAL_NS as f64 / (self.count.max(1) as f64).sqrt()) as Ns
    }

    /// Takes its first packet out, and whether that one may be dropped.
    fn take(&mut self, now_ns: Ns) -> Option<(Packet, bool)> {
        let Some(packet) = self.waiting.pop_front() else {
            self.first_above_ns = 0;
            return None;
        };
        self.bytes -= u64::from(packet.bytes);
        if now_ns - packet.came_ns < TARGET_NS || self.bytes <= QUANTUM as u64 {
            self.first_above_ns = 0;
        } else if self.first_above_ns == 0 {
            self.first_above_ns = now_ns + INTERVAL_NS;
        } else {
            return Some((packet, now_ns >= self.first_above_ns));
        }
        Some((packet, false))
    }

    /// The packet that goes; those that are dropped for it are told.
    fn next(&mut self, now_ns: Ns, dropped: &mut dyn FnMut(Packet)) -> Option<Packet> {
        let (mut packet, mut may_drop) = self.take(now_ns)?;
        if self.dropping {
            self.dropping = may_drop;
            while self.dropping && now_ns >= self.drop_next_ns {
                dropped(packet);
                self.count += 1;
                let Some(next) = self.take(now_ns) else {
                    self.dropping = false;
                    return None;
                };
                (packet, may_drop) = next;
                self.dropping = may_drop;
                self.drop_next_ns += self.step_ns();
            }
        } else if may_drop {
            dropped(packet);
            let next = self.take(now_ns);
            self.dropping = true;
            let before = self.count - self.last_count;
            let soon = now_ns.saturating_sub(self.drop_next_ns) < 16 * INTERVAL_NS;
            self.count = if before > 1 && soon { before } else { 1 };
            self.last_count = self.count;
            self.drop_next_ns = now_ns + self.step_ns();
            packet = next?.0;
        }
        Some(packet)
    }
}

/// Flows in turn, each with CoDel.
#[derive(Debug)]
pub struct FqCodel {
    bucket: Bucket,
    flows: Vec<Flow>,
    fresh: VecDeque<usize>,
    old: VecDeque<usize>,
    waiting: usize,
    numbers: Number,
    /// To be told of by `next`.
    dropped: VecDeque<Number>,
    /// Taken out of its flow, and waiting for the bucket, as in a token bucket's child.
    head: Option<Packet>,
}

impl FqCodel {
    /// Of a link that sends so much [bytes/s].
    pub fn new(rate: u64) -> Self {
        Self {
            bucket: Bucket { rate, empty_ns: 0 },
            flows: vec![Flow::default(); FLOWS],
            fresh: VecDeque::new(),
            old: VecDeque::new(),
            waiting: 0,
            numbers: 0,
            dropped: VecDeque::new(),
            head: None,
        }
    }

    /// Half of the longest flow's packets go, 64 at most, when there is no room [1, 5.1].
    fn shed(&mut self, gone: &mut dyn FnMut(Number)) {
        let longest = self.flows.iter_mut().max_by_key(|flow| flow.bytes);
        let Some(flow) = longest else { return };
        for _ in 0..flow.waiting.len().div_ceil(2).min(64) {
            let Some(packet) = flow.waiting.pop_front() else {
                return;
            };
            flow.bytes -= u64::from(packet.bytes);
            self.waiting -= 1;
            gone(packet.number);
        }
    }

    /// The packet whose turn it is: new flows before old ones.
    fn choose(&mut self, now_ns: Ns) -> Option<Packet> {
        loop {
            let is_fresh = !self.fresh.is_empty();
            let list = if is_fresh {
                &mut self.fresh
            } else {
                &mut self.old
            };
            let at = *list.front()?;
            let flow = &mut self.flows[at];
            if flow.credit <= 0 {
                flow.credit += QUANTUM;
                list.pop_front();
                self.old.push_back(at);
                continue;
            }
            let dropped = &mut self.dropped;
            let mut left = 0;
            let packet = flow.next(now_ns, &mut |packet| {
                left += 1;
                dropped.push_back(packet.number);
            });
            self.waiting -= left + usize::from(packet.is_some());
            let Some(packet) = packet else {
                list.pop_front();
                // A new flow that is empty waits for its turn among the old ones first [1, 4.2].
                if is_fresh && !self.old.is_empty() {
                    self.old.push_back(at);
                } else {
                    flow.queued = false;
                }
                continue;
            };
            flow.credit -= i64::from(packet.bytes);
            return Some(packet);
        }
    }
}

impl Queue for FqCodel {
    fn arrive(&mut self, arrival: &Arrival, gone: &mut dyn FnMut(Number)) -> Option<Number> {
        self.numbers += 1;
        let at = arrival.hash as usize % FLOWS;
        let flow = &mut self.flows[at];
        flow.waiting.push_back(Packet {
            number: self.numbers,
            bytes: arrival.bytes,
            came_ns: arrival.now_ns,
        });
        flow.bytes += u64::from(arrival.bytes);
        self.waiting += 1;
        if !flow.queued {
            flow.queued = true;
            flow.credit = QUANTUM;
            self.fresh.push_back(at);
        }
        let own = self.numbers;
        let mut own_is_gone = false;
        if self.waiting > FQ_PACKETS {
            self.shed(&mut |number| match number == own {
                true => own_is_gone = true,
                false => gone(number),
            });
        }
        (!own_is_gone).then_some(own)
    }

    fn next(&mut self, now_ns: Ns) -> Option<(Number, Fate)> {
        if self.head.is_none() {
            self.head = self.choose(now_ns);
        }
        if let Some(number) = self.dropped.pop_front() {
            return Some((number, Fate::Dropped));
        }
        let packet = self.head?;
        if self.bucket.opens_ns(packet.bytes) > now_ns {
            return None;
        }
        self.bucket.take(packet.bytes, now_ns);
        self.head = None;
        Some((packet.number, Fate::Sent))
    }

    fn next_ns(&self) -> Option<Ns> {
        match self.head {
            Some(packet) => Some(self.bucket.opens_ns(packet.bytes)),
            None => (self.waiting > 0).then_some(0),
        }
    }
}
