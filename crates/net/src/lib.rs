// SPDX-License-Identifier: GPL-2.0
//! Packets that leave by the classes of the CPU: a queueing discipline of the kernel's
//! (`bpf/qdisc.bpf.c`), which this loads.
//!
//! Loading makes the kind known, as `andante`; who may set a device's root discipline (`tc qdisc
//! replace dev DEV root andante`) puts it on one.

pub mod receive;

use std::mem::MaybeUninit;
use std::time::Duration;

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Link, MapCore, MapFlags};

#[allow(missing_docs, clippy::all, clippy::undocumented_unsafe_blocks)]
mod skel {
    include!(concat!(env!("OUT_DIR"), "/qdisc.skel.rs"));
}

use skel::{QdiscSkel, QdiscSkelBuilder};

/// What the kernel calls the discipline.
pub const KIND: &str = "andante";

/// `AN_MAX_LINKS`, `AN_MAX_PACKETS` and `AN_MAX_NODES` of `bpf/qdisc.h`.
const MAX_LINKS: u32 = 1024;
const MAX_PACKETS: u32 = 4096;
const MAX_NODES: u32 = 1024;

/// Why the discipline is not there.
#[derive(Debug, thiserror::Error)]
pub enum NetError {
    /// The kernel refused it.
    #[error("the kernel refused to {step} the queueing discipline: {source}")]
    Kernel {
        /// What was being done.
        step: &'static str,
        /// What the kernel said.
        source: libbpf_rs::Error,
    },
    /// So many links are more than there may be.
    #[error("{0} links are not possible: 1 to {MAX_LINKS} are")]
    Links(u32),
    /// A link that sends nothing.
    #[error("a link's rate must be more than 0")]
    NoRate,
}

fn refused(step: &'static str) -> impl FnOnce(libbpf_rs::Error) -> NetError {
    move |source| NetError::Kernel { step, source }
}

/// What is to be deleted may not be there.
fn absent_is_fine(deleted: libbpf_rs::Result<()>) -> libbpf_rs::Result<()> {
    match deleted {
        Err(error) if error.kind() == libbpf_rs::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// The discipline in the kernel. When this is dropped it goes on where it is, and can be put on no other
/// device.
pub struct Discipline {
    skel: QdiscSkel<'static>,
    _link: Link,
}

impl Discipline {
    /// Makes the kind known to the kernel, with room for so many links: queues of devices that have it.
    ///
    /// # Errors
    ///
    /// [`NetError`]; nothing is left in the kernel then.
    pub fn load(links: u32) -> Result<Self, NetError> {
        if !(1..=MAX_LINKS).contains(&links) {
            return Err(NetError::Links(links));
        }
        // A process loads one, once.
        let object = Box::leak(Box::new(MaybeUninit::uninit()));
        let mut open = QdiscSkelBuilder::default()
            .open(object)
            .map_err(refused("open"))?;
        let maps = &mut open.maps;
        let sizes = [
            (&mut maps.links, links),
            (&mut maps.slots, links * MAX_PACKETS),
            (&mut maps.leaves, links * MAX_NODES),
        ];
        for (map, entries) in sizes {
            map.set_max_entries(entries).map_err(refused("size"))?;
        }
        let mut skel = open.load().map_err(refused("load"))?;
        let link = skel
            .maps
            .andante_qdisc
            .attach_struct_ops()
            .map_err(refused("register"))?;
        Ok(Self { skel, _link: link })
    }

    /// What a device sends in a second, at most [bytes], from when the discipline is put on it. Without
    /// this its driver says when it may send.
    ///
    /// # Errors
    ///
    /// [`NetError`].
    pub fn set_rate(&self, ifindex: u32, rate: u64) -> Result<(), NetError> {
        if rate == 0 {
            return Err(NetError::NoRate);
        }
        (self.skel.maps.rates)
            .update(&ifindex.to_ne_bytes(), &rate.to_ne_bytes(), MapFlags::ANY)
            .map_err(refused("tell a rate to"))
    }

    /// So many bytes of a class leave the device before others' in every period; no bytes: its share alone.
    /// Whether others leave room for it is the caller's to know. It takes effect with the class's next
    /// packet.
    ///
    /// # Errors
    ///
    /// [`NetError`].
    pub fn set_promise(
        &self,
        cgroup_id: u64,
        ifindex: u32,
        bytes: u32,
        period: Duration,
    ) -> Result<(), NetError> {
        let promises = &self.skel.maps.promises;
        let key = [cgroup_id, u64::from(ifindex)]
            .map(u64::to_ne_bytes)
            .concat();
        let value = [period.as_nanos() as u64, u64::from(bytes)]
            .map(u64::to_ne_bytes)
            .concat();
        if bytes > 0 {
            return promises
                .update(&key, &value, MapFlags::ANY)
                .map_err(refused("tell a promise to"));
        }
        absent_is_fine(promises.delete(&key)).map_err(refused("tell a promise to"))
    }

    /// The weight of a class here, other than its `cpu.weight`; none: that again.
    ///
    /// # Errors
    ///
    /// [`NetError`].
    pub fn set_weight(&self, cgroup_id: u64, weight: Option<u32>) -> Result<(), NetError> {
        let (weights, key) = (&self.skel.maps.own_weights, cgroup_id.to_ne_bytes());
        match weight {
            Some(weight) => weights
                .update(&key, &weight.to_ne_bytes(), MapFlags::ANY)
                .map_err(refused("tell a weight to")),
            None => absent_is_fine(weights.delete(&key)).map_err(refused("tell a weight to")),
        }
    }
}
