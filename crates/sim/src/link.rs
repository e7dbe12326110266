//! A link between two hosts, in virtual time: senders of datagrams, the packet scheduler of `core/packets.h`,
//! and a receiver that is as fast as they come.

use andante_core_sys::{Arrival, Fate, Packets};

use crate::{NS_PER_S, Ns};

/// A sender of datagrams at even distances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sender {
    /// Its class, a leaf of the link.
    pub class: u32,
    /// A datagram on the link, with its headers [bytes].
    pub bytes: u32,
    /// The same in memory [bytes].
    pub held: u32,
    /// From one to the next [ns], more than 0.
    pub every_ns: Ns,
}

/// What a sender's datagrams came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Received {
    /// Bytes on the link.
    pub bytes: u64,
    /// From sending to the link, of each that arrived [ns], the shortest first.
    pub delays_ns: Vec<Ns>,
    /// Datagrams that never did.
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
#[derive(Debug, Clone, Copy, Default)]
struct Waiting {
    sender: usize,
    sent_ns: Ns,
}

/// Sends by the link, whose classes are made, from 0 on until `end_ns`; what arrives from `from_ns` on
/// counts. One answer for each sender.
pub fn send(link: &mut Packets, senders: &[Sender], from_ns: Ns, end_ns: Ns) -> Vec<Received> {
    let mut received = vec![Received::default(); senders.len()];
    let mut next_ns = vec![0; senders.len()];
    let mut waiting: Vec<Waiting> = Vec::new();
    let mut now_ns = 0;
    while now_ns < end_ns {
        for (number, sender) in senders.iter().enumerate() {
            while next_ns[number] <= now_ns {
                next_ns[number] += sender.every_ns.max(1);
                arrive(link, number, sender, now_ns, &mut waiting, &mut received);
            }
        }
        while let Some((index, fate)) = link.next(now_ns) {
            let packet = waiting[index as usize];
            let received = &mut received[packet.sender];
            match fate {
                Fate::Dropped => received.lost += 1,
                Fate::Sent | Fate::Marked if now_ns >= from_ns => {
                    received.bytes += u64::from(senders[packet.sender].bytes);
                    received.delays_ns.push(now_ns - packet.sent_ns);
                }
                Fate::Sent | Fate::Marked => {}
            }
        }
        let send_ns = next_ns.iter().copied().min().unwrap_or(end_ns);
        now_ns = send_ns.min(link.next_ns().unwrap_or(end_ns));
    }
    for received in &mut received {
        received.delays_ns.sort_unstable();
    }
    received
}

fn arrive(
    link: &mut Packets,
    number: usize,
    sender: &Sender,
    now_ns: Ns,
    waiting: &mut Vec<Waiting>,
    received: &mut [Received],
) {
    let arrival = Arrival {
        now_ns,
        leaf: sender.class,
        hash: number as u32,
        bytes: sender.bytes,
        held: sender.held,
        may_mark: false,
    };
    let index = link.arrive(&arrival, |gone| {
        received[waiting[gone as usize].sender].lost += 1;
    });
    let Some(index) = index.map(|index| index as usize) else {
        received[number].lost += 1;
        return;
    };
    if waiting.len() <= index {
        waiting.resize(index + 1, Waiting::default());
    }
    waiting[index] = Waiting {
        sender: number,
        sent_ns: now_ns,
    };
}

/// Each sender's part of all bytes [ratio].
pub fn shares(received: &[Received]) -> Vec<f64> {
    let all: u64 = received.iter().map(|r| r.bytes).sum();
    (received.iter())
        .map(|r| r.bytes as f64 / all.max(1) as f64)
        .collect()
}

/// What arrived in a second [bytes/s].
pub fn rate(received: &[Received], length_ns: Ns) -> f64 {
    let all: u64 = received.iter().map(|r| r.bytes).sum();
    all as f64 * NS_PER_S as f64 / length_ns.max(1) as f64
}
