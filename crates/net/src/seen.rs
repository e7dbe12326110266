// SPDX-License-Identifier: GPL-2.0
//! What the disciplines on devices have counted.

use std::collections::{BTreeMap, HashMap};

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use serde::{Deserialize, Serialize};

use crate::Rate;
use crate::attach::root;
use crate::contract::{self, Held, Promised};
use crate::device::name_of;
use crate::error::{NetError, refused};
use crate::kept::{Former, Kept};
use crate::process::Process;
use crate::skel::types::{an_packet_counts, an_packets, link_state};
use crate::weights;

/// A device that has the discipline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    /// What it is called.
    pub device: String,
    /// What it is told to send, at most [bit/s]; none: its driver says when it may send.
    pub rate_bits: Option<u64>,
    /// The largest segment that it is given, if that was bounded [bytes].
    pub largest_segment: Option<u32>,
    /// What comes back when it is taken off; none: the kernel's own.
    pub replaced: Option<String>,
    /// Queues that have the discipline now; 0: somebody has taken it off by other means.
    pub queues: u32,
    /// Packets that wait in all of them.
    pub waiting: u64,
    /// Classes that have sent anything, are promised a part, or have a weight here alone; the root's first.
    pub classes: Vec<Class>,
}

/// A class, as far as packets go.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Class {
    /// Its cgroup; 0: the root, of which forwarded packets and the kernel's own are too.
    pub cgroup_id: u64,
    /// Its weight relative to its siblings; 0: what others leave; none: it has sent nothing, so nobody has looked.
    pub weight: Option<u32>,
    /// Whether it has this weight here alone (`andante net weight`).
    pub own_weight: bool,
    /// Packets that wait.
    pub waiting: u64,
    /// Packets that were sent.
    pub packets: u64,
    /// Bytes that were sent.
    pub bytes: u64,
    /// Packets that were dropped because the queue of their flow stood for too long.
    pub dropped_late: u64,
    /// Packets that were dropped for want of room.
    pub dropped_crowded: u64,
    /// Bytes that were sent by contract, before others'.
    pub promised_bytes: u64,
    /// What it is promised; none: it has its share.
    pub promised: Option<Promised>,
    /// The process that this ends with; none: it ends when it is released.
    pub promised_until: Option<Process>,
    /// How long those waited that were sent; none: none was.
    pub delay: Option<Delay>,
}

/// Delays are counted by powers of two: each is the lowest bound that is certain [µs].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delay {
    /// Half of all waited for less.
    pub p50_below_us: u64,
    /// Of a hundred 99 waited for less.
    pub p99_below_us: u64,
}

/// All devices of this network namespace that have the discipline.
///
/// # Errors
///
/// [`NetError`].
pub fn seen() -> Result<Vec<Seen>, NetError> {
    root()?;
    let mut all = Vec::new();
    for kept in Kept::all()? {
        // A device that is gone is forgotten when the next one is attached.
        let (Some(device), Some(former)) = (name_of(kept.ifindex), kept.former()) else {
            continue;
        };
        all.push(look(&kept, device, former)?);
    }
    Ok(all)
}

fn look(kept: &Kept, device: String, former: Former) -> Result<Seen, NetError> {
    let mut counted = Counted::default();
    let links = MapHandle::from_pinned_path(kept.links()).map_err(refused("show"))?;
    if links.value_size() as usize != size_of::<link_state>() {
        return Err(NetError::OtherBuild(device));
    }
    for number in 0..links.max_entries() {
        let bytes = links.lookup(&number.to_ne_bytes(), MapFlags::ANY);
        let Some(bytes) = bytes.map_err(refused("show"))? else {
            continue;
        };
        let words = words(&bytes);
        // SAFETY: the words are as many bytes as the type, and aligned to 8 as it is; it is made of integers,
        // of which any are valid.
        let state = unsafe { &*words.as_ptr().cast::<link_state>() };
        if state.used != 0 {
            counted.add(&state.q);
        }
    }
    let promised = contract::promises(kept, &device)?;
    let own = weights::own(kept, &device)?;
    let (queues, waiting) = (counted.queues, counted.waiting);
    let classes = counted.classes(promised, own);
    Ok(Seen {
        device,
        rate_bits: former.rate.map(Rate::bits),
        largest_segment: former.gso.map(|(_, bounded)| bounded.max_size),
        replaced: former.kind,
        queues,
        waiting,
        classes,
    })
}

/// Has any queue the discipline of which this is kept? Of another version's nobody can tell.
pub(crate) fn in_use(kept: &Kept) -> bool {
    match look(kept, String::new(), Former::default()) {
        Ok(seen) => seen.queues > 0,
        Err(NetError::OtherBuild(_)) => true,
        Err(_) => false,
    }
}

/// Whole ones: a state is a multiple of 8 bytes long.
fn words(bytes: &[u8]) -> Vec<u64> {
    const { assert!(align_of::<link_state>() == 8) };
    let (words, _) = bytes.as_chunks::<8>();
    words.iter().copied().map(u64::from_ne_bytes).collect()
}

/// The id of the root of all cgroups: the first in its file system.
pub(crate) const ROOT_CGROUP: u64 = 1;
/// `AN_LEAF` of `core/node.h`.
const LEAF: u8 = 2;
/// `AN_BANDS` of `core/packets.h`.
const BANDS: usize = 32;

/// What several queues have counted.
#[derive(Default)]
struct Counted {
    queues: u32,
    waiting: u64,
    of: BTreeMap<u64, (Class, [u64; BANDS])>,
}

impl Counted {
    fn add(&mut self, q: &an_packets) {
        self.queues += 1;
        self.waiting += u64::from(q.waiting);
        let tree = &q.tree;
        for (leaf, node) in tree.nodes.iter().enumerate() {
            if node.kind != LEAF {
                continue;
            }
            // The class of a leaf that has the packets of an inner node is that node.
            let class = match node.own {
                0 => leaf,
                _ => usize::from(node.parent),
            };
            let (Some(of_class), Some(id)) = (tree.nodes.get(class), tree.cgroup_id.get(class))
            else {
                continue;
            };
            let counts = &q.counts[leaf];
            let (seen, waited) = self.of.entry(*id).or_default();
            seen.cgroup_id = *id;
            seen.weight = Some(of_class.weight);
            let alone = q.alone != 0 && q.alone_leaf as usize == leaf;
            seen.waiting += u64::from(node.queued) + u64::from(alone);
            add(seen, waited, counts);
        }
    }

    /// With what is promised, and the weights that are this device's own, which hold from a class's next packet on.
    fn classes(mut self, promised: Vec<(u64, Held)>, own: HashMap<u64, u32>) -> Vec<Class> {
        for (id, weight) in own {
            let (class, _) = self.of.entry(id).or_default();
            (class.cgroup_id, class.weight, class.own_weight) = (id, Some(weight), true);
        }
        for (cgroup_id, held) in promised {
            let cgroup_id = match cgroup_id {
                ROOT_CGROUP => 0,
                below => below,
            };
            let (class, _) = self.of.entry(cgroup_id).or_default();
            class.cgroup_id = cgroup_id;
            class.promised = Some(held.promised);
            class.promised_until = held.until;
        }
        let delay = |(class, waited): (Class, [u64; BANDS])| Class {
            delay: delay(&waited),
            ..class
        };
        self.of.into_values().map(delay).collect()
    }
}

fn add(seen: &mut Class, waited: &mut [u64; BANDS], counts: &an_packet_counts) {
    seen.packets += counts.packets;
    seen.bytes += counts.bytes;
    seen.promised_bytes += counts.promised;
    seen.dropped_late += counts.late;
    seen.dropped_crowded += counts.crowded;
    for (sum, more) in waited.iter_mut().zip(counts.waited) {
        *sum += more;
    }
}

/// Packets of the first band waited for less than 2 µs, of the next for less than 4, and so on.
fn delay(waited: &[u64; BANDS]) -> Option<Delay> {
    let all: u64 = waited.iter().sum();
    let below_us = |percent: u64| {
        let mut so_far = 0;
        let band = waited.iter().position(|packets| {
            so_far += packets;
            so_far * 100 >= all * percent
        });
        band.map(|band| 2 << band)
    };
    (all > 0).then_some(())?;
    Some(Delay {
        p50_below_us: below_us(50)?,
        p99_below_us: below_us(99)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skel::types::an_node;

    #[test]
    fn delays_are_bounds_by_powers_of_two() {
        let mut waited = [0; BANDS];
        assert_eq!(delay(&waited), None);
        waited[0] = 50;
        waited[3] = 49;
        waited[9] = 1;
        let told = |p50_below_us, p99_below_us| {
            Some(Delay {
                p50_below_us,
                p99_below_us,
            })
        };
        assert_eq!(delay(&waited), told(2, 16));
        waited[9] = 2;
        assert_eq!(delay(&waited), told(16, 1024));
    }

    /// The state of a link is a million bytes: too much for the stack of a test.
    fn packets() -> Box<an_packets> {
        let words = vec![0_u64; size_of::<an_packets>().div_ceil(8)];
        // SAFETY: as in `look`.
        Box::new(unsafe { words.as_ptr().cast::<an_packets>().read() })
    }

    #[test]
    fn queues_add_up_and_inner_classes_have_packets_of_their_own() {
        let mut q = packets();
        // The root and its leaf; a class 7 with a leaf of its own (4) and a child 9 (5).
        for (index, node) in [
            (
                2,
                an_node {
                    kind: LEAF,
                    own: 1,
                    parent: 1,
                    ..Default::default()
                },
            ),
            (
                3,
                an_node {
                    weight: 300,
                    ..Default::default()
                },
            ),
            (
                4,
                an_node {
                    kind: LEAF,
                    own: 1,
                    parent: 3,
                    queued: 2,
                    ..Default::default()
                },
            ),
            (
                5,
                an_node {
                    kind: LEAF,
                    weight: 100,
                    ..Default::default()
                },
            ),
        ] {
            q.tree.nodes[index] = node;
        }
        q.tree.cgroup_id[3] = 7;
        q.tree.cgroup_id[5] = 9;
        q.waiting = 2;
        q.counts[4].packets = 10;
        q.counts[4].bytes = 1000;
        q.counts[4].waited[1] = 10;
        q.counts[5].late = 1;
        let mut counted = Counted::default();
        counted.add(&q);
        counted.add(&q);
        assert_eq!((counted.queues, counted.waiting), (2, 4));
        let promised = Promised {
            bytes: 2500,
            period_ns: 10_000_000,
        };
        let held = |cgroup_id| {
            let until = None;
            (cgroup_id, Held { promised, until })
        };
        let classes = counted.classes(
            [9, 8, ROOT_CGROUP].map(held).into(),
            [(9, 50), (11, 60)].into(),
        );
        let ids: Vec<_> = classes.iter().map(|class| class.cgroup_id).collect();
        assert_eq!(ids, [0, 7, 8, 9, 11]);
        let [root, inner, silent, last, own] = &classes[..] else {
            panic!("five classes");
        };
        assert_eq!(root.promised, Some(promised));
        assert_eq!((inner.promised, last.promised), (None, Some(promised)));
        assert_eq!((silent.promised, silent.weight), (Some(promised), None));
        assert_eq!(
            (inner.weight, inner.packets, inner.bytes),
            (Some(300), 20, 2000)
        );
        assert_eq!((inner.waiting, inner.delay.unwrap().p99_below_us), (4, 4));
        assert_eq!((last.dropped_late, last.delay), (2, None));
        let weights = [inner, last, own].map(|class| (class.weight, class.own_weight));
        assert_eq!(
            weights,
            [(Some(300), false), (Some(50), true), (Some(60), true)]
        );
    }
}
