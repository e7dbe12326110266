//! A link between two hosts, in virtual time: senders of datagrams, what decides whose leaves first (the packet
//! scheduler of `core/packets.h`, or what others have), and a receiver that is as fast as they come.

mod others;

use std::collections::HashMap;

pub use others::{Fifo, FqCodel};

use andante_core_sys::{Arrival, Fate, Packets};

use crate::{NS_PER_S, Ns};

/// A packet, as whoever decides calls it, from its arrival until it goes or is dropped.
pub type Number = u32;

/// A packet scheduler: it decides which packet leaves first.
pub trait Queue {
    /// A packet comes: its number, or none if it is dropped. `gone` has those that are dropped for it.
    fn arrive(&mut self, arrival: &Arrival, gone: &mut dyn FnMut(Number)) -> Option<Number>;

    /// The packet that is next now, and what becomes of it; none: nothing goes at present.
    fn next(&mut self, now_ns: Ns) -> Option<(Number, Fate)>;

    /// When to ask again [ns]; none: nothing waits.
    fn next_ns(&self) -> Option<Ns>;
}

impl Queue for Packets {
    fn arrive(&mut self, arrival: &Arrival, gone: &mut dyn FnMut(Number)) -> Option<Number> {
        self.arrive(arrival, gone)
    }

    fn next(&mut self, now_ns: Ns) -> Option<(Number, Fate)> {
        self.next(now_ns)
    }

    fn next_ns(&self) -> Option<Ns> {
        self.next_ns()
    }
}

/// A sender of datagrams at even distances.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sender {
    /// Its class, a leaf of the link.
    pub class: u32,
    /// A datagram on the link, with its headers [bytes].
    pub bytes: u32,
    /// The same in memory [bytes].
    pub held: u32,
    /// From one to the next [ns], more than 0.
    pub every_ns: Ns,
    /// So many each time, repeated; at least one of at least one.
    pub burst: Vec<u32>,
    /// When the first is sent [ns].
    pub first_ns: Ns,
    /// None is sent from then on [ns].
    pub until_ns: Ns,
    /// The most memory that its packets may hold: with more it waits until they hold half of that (`SO_SNDBUF` and
    /// `sock_def_write_space()` of Linux), and then sends at once what it had to send meanwhile [bytes].
    pub room: u64,
}

/// Headers of Ethernet, IPv4 and UDP [bytes].
pub const HEADERS: u32 = 42;
/// A datagram in the kernel's memory [bytes]: half a page for the packet, and its description (`skb->truesize`).
const HELD: u32 = 2304;
/// The room that a socket of Linux has by itself (`net.core.wmem_default`) [bytes].
const USUAL_ROOM: u64 = 212_992;

impl Sender {
    /// Sends datagrams of so much payload [bytes] at these distances [ns], one each time, from 0 on without end.
    pub fn usual(class: u32, payload: u32, every_ns: Ns) -> Self {
        Self {
            class,
            bytes: payload + HEADERS,
            held: HELD,
            every_ns,
            burst: vec![1],
            first_ns: 0,
            until_ns: Ns::MAX,
            room: USUAL_ROOM,
        }
    }
}

/// The outcome of a sender's datagrams.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Received {
    /// Bytes on the link.
    pub bytes: u64,
    /// From sending to the link, of each that arrived [ns], the shortest first.
    pub delays_ns: Vec<Ns>,
    /// Datagrams that never did, of those sent since it counts.
    pub lost: u64,
}

impl Received {
    /// The delay that so large a part of the datagrams does not exceed [ns]; 0 of none.
    pub fn delay_ns(&self, part: f64) -> Ns {
        let at = (self.delays_ns.len() as f64 * part) as usize;
        let last = self.delays_ns.len().saturating_sub(1);
        self.delays_ns.get(at.min(last)).copied().unwrap_or(0)
    }
}

/// A datagram that waits.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    sender: usize,
    sent_ns: Ns,
}

/// A sender's.
#[derive(Debug, Clone, Copy)]
struct Socket {
    /// When it is to send next [ns].
    next_ns: Ns,
    /// Of those so many have been sent.
    sent: u32,
    /// The burst that they are of.
    burst: usize,
    /// Of it in memory [bytes].
    held: u64,
    /// It waits for room.
    full: bool,
}

impl Socket {
    /// One datagram more: then the next one is due.
    fn sends(&mut self, sender: &Sender) {
        self.sent += 1;
        if self.sent < sender.burst[self.burst] {
            return;
        }
        self.sent = 0;
        self.burst = (self.burst + 1) % sender.burst.len();
        self.next_ns += sender.every_ns.max(1);
        if self.next_ns >= sender.until_ns {
            self.next_ns = Ns::MAX;
        }
    }
}

/// Packets on their way, and the outcome so far.
struct Traffic<'a> {
    senders: &'a [Sender],
    from_ns: Ns,
    waiting: HashMap<Number, Waiting>,
    sockets: Vec<Socket>,
    received: Vec<Received>,
}

/// Sends by the link, whose classes are made, until `end_ns`; what arrives from `from_ns` on counts, and so does what
/// is lost of that sent since. One answer for each sender.
pub fn send(link: &mut dyn Queue, senders: &[Sender], from_ns: Ns, end_ns: Ns) -> Vec<Received> {
    let socket = |sender: &Sender| Socket {
        next_ns: sender.first_ns,
        sent: 0,
        burst: 0,
        held: 0,
        full: false,
    };
    let mut traffic = Traffic {
        senders,
        from_ns,
        waiting: HashMap::new(),
        sockets: senders.iter().map(socket).collect(),
        received: vec![Received::default(); senders.len()],
    };
    let mut now_ns = 0;
    while now_ns < end_ns {
        traffic.send(link, now_ns);
        while let Some((number, fate)) = link.next(now_ns) {
            traffic.leave(number, fate, now_ns);
            traffic.send(link, now_ns);
        }
        let next_ns = traffic.next_ns().min(link.next_ns().unwrap_or(end_ns));
        now_ns = next_ns.max(now_ns + 1);
    }
    for received in &mut traffic.received {
        received.delays_ns.sort_unstable();
    }
    traffic.received
}

impl Traffic<'_> {
    /// When somebody is to send next [ns].
    fn next_ns(&self) -> Ns {
        let free = self.sockets.iter().filter(|socket| !socket.full);
        free.map(|socket| socket.next_ns).min().unwrap_or(Ns::MAX)
    }

    /// Has everybody send what is due.
    fn send(&mut self, link: &mut dyn Queue, now_ns: Ns) {
        for (number, sender) in self.senders.iter().enumerate() {
            while self.sockets[number].next_ns <= now_ns && !self.sockets[number].full {
                self.sockets[number].sends(sender);
                self.arrive(link, number, now_ns);
            }
        }
    }

    fn arrive(&mut self, link: &mut dyn Queue, sender: usize, now_ns: Ns) {
        let Sender {
            class, bytes, held, ..
        } = self.senders[sender];
        let arrival = Arrival {
            now_ns,
            leaf: class,
            hash: sender as u32,
            bytes,
            held,
        };
        let number = link.arrive(&arrival, &mut |gone| self.lose(gone));
        let sent = Waiting {
            sender,
            sent_ns: now_ns,
        };
        match number {
            Some(number) => {
                self.waiting.insert(number, sent);
                let socket = &mut self.sockets[sender];
                socket.held += u64::from(held);
                socket.full = socket.held >= self.senders[sender].room;
            }
            None => self.count_lost(sent),
        }
    }

    fn leave(&mut self, number: Number, fate: Fate, now_ns: Ns) {
        if fate == Fate::Dropped {
            return self.lose(number);
        }
        let Some(packet) = self.take(number) else {
            unreachable!("it goes once, and after it came")
        };
        if now_ns >= self.from_ns {
            let received = &mut self.received[packet.sender];
            received.bytes += u64::from(self.senders[packet.sender].bytes);
            received.delays_ns.push(now_ns - packet.sent_ns);
        }
    }

    fn lose(&mut self, number: Number) {
        if let Some(packet) = self.take(number) {
            self.count_lost(packet);
        }
    }

    /// It waits no more, and its sender has that room again.
    fn take(&mut self, number: Number) -> Option<Waiting> {
        let packet = self.waiting.remove(&number)?;
        let (sender, socket) = (
            &self.senders[packet.sender],
            &mut self.sockets[packet.sender],
        );
        socket.held -= u64::from(sender.held);
        socket.full &= socket.held > sender.room / 2;
        Some(packet)
    }

    fn count_lost(&mut self, packet: Waiting) {
        self.received[packet.sender].lost += u64::from(packet.sent_ns >= self.from_ns);
    }
}

/// Each sender's part of all bytes [ratio].
pub fn shares(received: &[Received]) -> Vec<f64> {
    let all: u64 = received.iter().map(|r| r.bytes).sum();
    (received.iter())
        .map(|r| r.bytes as f64 / all.max(1) as f64)
        .collect()
}

/// The rate of all that arrived [bytes/s].
pub fn rate(received: &[Received], length_ns: Ns) -> f64 {
    let all: u64 = received.iter().map(|r| r.bytes).sum();
    all as f64 * NS_PER_S as f64 / length_ns.max(1) as f64
}
