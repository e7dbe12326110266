// SPDX-License-Identifier: GPL-2.0
//! The object in the kernel.

use std::io;
use std::mem::MaybeUninit;

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Link, MapCore, MapFlags};
use netlink_packet_route::tc::TcHandle;

use crate::KIND;
use crate::Rate;
use crate::error::{NetError, refused};
use crate::kept::Kept;
use crate::netlink::Netlink;
use crate::skel::{OpenQdiscSkel, QdiscSkel, QdiscSkelBuilder};

/// `AN_MAX_LINKS`, `AN_MAX_PACKETS` and `AN_MAX_NODES` of `bpf/qdisc.h`.
pub(crate) const MAX_LINKS: u32 = 1024;
const MAX_PACKETS: u32 = 4096;
const MAX_NODES: u32 = 1024;

/// The kernel's own, with a child for each queue of a device.
const MQ: &str = "mq";

/// A discipline that the kernel knows. When this is dropped it goes on where it is, and can be put on no
/// other device.
pub struct Discipline {
    // Before the object that it is of.
    _link: Link,
    skel: QdiscSkel<'static>,
    _memory: Memory,
}

/// What the skeleton is in.
struct Memory(*mut MaybeUninit<libbpf_rs::OpenObject>);

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: it was a box (`Discipline::load`), and what referred to it was dropped before.
        drop(unsafe { Box::from_raw(self.0) });
    }
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
        // What the library would print is in the error, too.
        libbpf_rs::set_print(None);
        let memory = Memory(Box::into_raw(Box::new(MaybeUninit::uninit())));
        // SAFETY: the box is there until `memory` is dropped, which is after the skeleton.
        let object = unsafe { &mut *memory.0 };
        let mut open: OpenQdiscSkel<'static> = QdiscSkelBuilder::default()
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
        Ok(Self {
            _link: link,
            skel,
            _memory: memory,
        })
    }

    /// What a device sends in a second, at most, from when the discipline is put on it. Without this its
    /// driver says when it may send.
    ///
    /// # Errors
    ///
    /// [`NetError`].
    pub fn set_rate(&self, ifindex: u32, rate: Rate) -> Result<(), NetError> {
        (self.skel.maps.rates)
            .update(
                &ifindex.to_ne_bytes(),
                &rate.bytes().to_ne_bytes(),
                MapFlags::ANY,
            )
            .map_err(refused("tell a rate to"))
    }

    /// Puts it on a device: on the whole of it, or on each of its first queues, so many.
    ///
    /// # Errors
    ///
    /// What the kernel says. The kernel's own discipline may be there then.
    pub fn put(&self, ifindex: u32, queues: Option<u16>) -> io::Result<()> {
        let mut netlink = Netlink::open()?;
        let Some(queues) = queues else {
            return netlink.put(ifindex, TcHandle::ROOT, KIND);
        };
        // The kernel's own has no number by which its children could be named.
        netlink.put(ifindex, TcHandle::ROOT, MQ)?;
        let major = netlink.root(ifindex)?.map_or(0, |root| root.handle);
        let each = |minor| netlink.put(ifindex, TcHandle { major, minor }, KIND);
        let done = (1..=queues).try_for_each(each);
        if done.is_err() {
            self.take_off(ifindex)?;
        }
        done
    }

    /// Takes it off a device, where the kernel puts its own then.
    ///
    /// # Errors
    ///
    /// What the kernel says.
    pub fn take_off(&self, ifindex: u32) -> io::Result<()> {
        Netlink::open()?.take_root(ifindex)
    }

    /// The states of its links stay readable there, and what classes are promised and weigh can be told there.
    pub(crate) fn pin(&mut self, kept: &Kept) -> Result<(), NetError> {
        let maps = &mut self.skel.maps;
        let pinned = maps.links.pin(kept.links());
        pinned.map_err(refused("pin the links of"))?;
        let pinned = maps.promises.pin(kept.promises());
        pinned.map_err(refused("pin the contracts of"))?;
        let pinned = maps.own_weights.pin(kept.weights());
        pinned.map_err(refused("pin the weights of"))
    }
}
