// SPDX-License-Identifier: GPL-2.0
//! Putting the discipline on a device, and taking it off.

use std::fs::File;
use std::path::Path;

use netlink_packet_route::tc::TcHandle;
use nix::fcntl::{Flock, FlockArg};

use crate::KIND;
use crate::Rate;
use crate::device::{Device, name_of};
use crate::discipline::Discipline;
use crate::error::{NetError, file, netlink};
use crate::kept::{Former, Kept};
use crate::netlink::{Gso, Netlink, Qdisc};
use crate::support::has_bpf_qdiscs;

/// Two who attach at once would give the kernel the same kind twice.
const LOCK: &str = "/run/andante-net.lock";

/// How a device is to be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wanted {
    /// What it is to send, at most; none: as its driver says.
    pub rate: Option<Rate>,
    /// Another discipline may be replaced, if somebody has put it there.
    pub replace: bool,
}

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attached {
    /// The device as it is.
    pub device: Device,
    /// Queues that have the discipline: one with a rate, and all with none.
    pub queues: u16,
    /// What was there before.
    pub former: Former,
}

/// What was undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detached {
    /// What the device is called.
    pub device: String,
    /// A discipline that somebody had put there, and that did not come back.
    pub lost: Option<String>,
}

/// Puts the discipline on a device, anew if it is there.
///
/// # Errors
///
/// [`NetError`]; the device is as it was before then, or as if the discipline had been taken off.
pub fn attach(name: &str, wanted: Wanted) -> Result<Attached, NetError> {
    root()?;
    let _alone = alone()?;
    let device = Device::of(name).ok_or_else(|| NetError::NoDevice(name.to_owned()))?;
    if !has_bpf_qdiscs() {
        return Err(NetError::OldKernel);
    }
    Kept::is_possible()?;
    let mut at = At::open(&device.name, device.ifindex)?;
    at.check(&device, wanted)?;
    Kept::forget_those_that_are_gone()?;
    at.take_off()?;
    let former = Former {
        rate: wanted.rate,
        kind: at.root()?.filter(by_somebody).map(|root| root.kind),
        gso: at.bounded_gso(&device, wanted.rate)?,
    };
    let queues = places(&device, wanted.rate);
    let done = at.put_on(&former, queues);
    if done.is_err() {
        at.undo(&former);
    }
    done.map(|()| Attached {
        device,
        queues: queues.unwrap_or(1),
        former,
    })
}

/// Takes the discipline off a device; what was there before comes back.
///
/// # Errors
///
/// [`NetError`].
pub fn detach(name: &str) -> Result<Detached, NetError> {
    root()?;
    let _alone = alone()?;
    Kept::forget_those_that_are_gone()?;
    let device = Device::of(name).ok_or_else(|| NetError::NoDevice(name.to_owned()))?;
    let mut at = At::open(&device.name, device.ifindex)?;
    if !at.kept.exists() && !at.is_there()? {
        return Err(NetError::NotAttached(name.to_owned()));
    }
    let lost = at.take_off()?;
    Ok(Detached {
        device: device.name,
        lost,
    })
}

/// Names of the devices that have the discipline.
///
/// # Errors
///
/// [`NetError`].
pub fn attached() -> Result<Vec<String>, NetError> {
    root()?;
    let kept = Kept::all()?;
    Ok(kept.iter().filter_map(|one| name_of(one.ifindex)).collect())
}

/// The same, for those as well who may not see more of them than that.
///
/// # Errors
///
/// [`NetError`].
pub fn attached_for_all_to_see() -> Result<Vec<String>, NetError> {
    let asked = Netlink::open().and_then(|mut kernel| kernel.devices_with(KIND));
    let asked = asked.map_err(netlink("tell the queueing disciplines of", "all devices"))?;
    Ok(asked.into_iter().filter_map(name_of).collect())
}

pub(crate) fn root() -> Result<(), NetError> {
    match nix::unistd::geteuid().is_root() {
        true => Ok(()),
        false => Err(NetError::NotRoot),
    }
}

/// Nobody else attaches or detaches as long as this is there.
pub(crate) fn alone() -> Result<Flock<File>, NetError> {
    let path = Path::new(LOCK);
    let lock = File::create(path).map_err(file(path))?;
    Flock::lock(lock, FlockArg::LockExclusive).map_err(|(_, errno)| file(path)(errno.into()))
}

/// The kernel gives no number to what it puts on a device by itself.
fn by_somebody(root: &Qdisc) -> bool {
    root.handle != 0
}

/// The queues that have a discipline each; none: the whole device has one, since its rate is one.
fn places(device: &Device, rate: Option<Rate>) -> Option<u16> {
    (rate.is_none() && device.queues > 1).then_some(device.queues)
}

/// TCP takes so much off `gso_max_size` before it fills a segment (`MAX_TCP_HEADER` of `include/net/tcp.h`, with
/// the longest headers that a kernel is built for) [bytes].
const MAX_TCP_HEADER: u64 = 320;

/// The largest segment that a device of this rate is to be given: what it sends in a millisecond, and two packets
/// at least, with which most of what segments save is saved.
fn largest_segment(packet: u32, rate: Rate) -> u32 {
    let bytes = rate.bytes_in_ms().max(2 * u64::from(packet)) + MAX_TCP_HEADER;
    bytes.min(u64::from(u32::MAX)) as u32
}

/// A device, and what is known of it.
struct At<'a> {
    name: &'a str,
    netlink: Netlink,
    kept: Kept,
}

impl<'a> At<'a> {
    fn open(name: &'a str, ifindex: u32) -> Result<Self, NetError> {
        Ok(Self {
            name,
            netlink: Netlink::open().map_err(netlink("be asked about", name))?,
            kept: Kept::of(ifindex)?,
        })
    }

    fn qdiscs(&mut self) -> Result<Vec<Qdisc>, NetError> {
        let seen = self.netlink.qdiscs(self.kept.ifindex);
        seen.map_err(netlink("tell the queueing disciplines of", self.name))
    }

    fn root(&mut self) -> Result<Option<Qdisc>, NetError> {
        let seen = self.netlink.root(self.kept.ifindex);
        seen.map_err(netlink("tell the queueing disciplines of", self.name))
    }

    /// Is the discipline on the device, or on a queue of it?
    fn is_there(&mut self) -> Result<bool, NetError> {
        Ok(self.qdiscs()?.iter().any(|qdisc| qdisc.kind == KIND))
    }

    /// Refuses what cannot be, before anything is changed.
    fn check(&mut self, device: &Device, wanted: Wanted) -> Result<(), NetError> {
        if wanted.rate.is_none() && !device.limits {
            return Err(NetError::NoRate {
                device: device.name.clone(),
                nature: device.nature,
            });
        }
        if wanted.replace || self.is_there()? {
            return Ok(());
        }
        match self.root()?.filter(by_somebody) {
            Some(Qdisc { kind, .. }) => Err(NetError::Taken {
                device: device.name.clone(),
                kind,
            }),
            None => Ok(()),
        }
    }

    /// What segments are, and what they are to be, if that is less.
    fn bounded_gso(
        &mut self,
        device: &Device,
        rate: Option<Rate>,
    ) -> Result<Option<(Gso, Gso)>, NetError> {
        let Some(rate) = rate.or(device.speed) else {
            return Ok(None);
        };
        let seen = self.netlink.gso(self.kept.ifindex);
        let seen = seen.map_err(netlink("tell the segments of", self.name))?;
        let most = largest_segment(device.packet, rate);
        Ok(seen.and_then(|gso| {
            let bounded = Gso {
                max_size: gso.max_size.min(most),
                ipv4_max_size: gso.ipv4_max_size.min(most),
            };
            (bounded != gso).then_some((gso, bounded))
        }))
    }

    /// Puts it there. What was there is kept first, so that it can be restored whatever happens then.
    fn put_on(&mut self, former: &Former, queues: Option<u16>) -> Result<(), NetError> {
        let ifindex = self.kept.ifindex;
        let mut discipline = Discipline::load(queues.unwrap_or(1).into())?;
        if let Some(rate) = former.rate {
            discipline.set_rate(ifindex, rate)?;
        }
        self.kept.begin(former)?;
        discipline.pin(&self.kept)?;
        if let Some((_, bounded)) = former.gso {
            let told = self.netlink.set_gso(ifindex, bounded);
            told.map_err(netlink("bound the segments of", self.name))?;
        }
        let put = discipline.put(ifindex, queues);
        put.map_err(netlink("put the queueing discipline on", self.name))
    }

    /// It could not be put there. What cannot be undone is no more important than why it was to be.
    fn undo(&mut self, former: &Former) {
        let _ = self.take_off();
        let left = self.root().map(|root| root.filter(by_somebody));
        if let (Some(kind), Ok(None)) = (&former.kind, left) {
            let _ = self.netlink.put(self.kept.ifindex, TcHandle::ROOT, kind);
        }
    }

    /// Takes it off, if it is there, and restores what is kept. Returns what somebody had put there and what
    /// could not be put there again.
    fn take_off(&mut self) -> Result<Option<String>, NetError> {
        let ifindex = self.kept.ifindex;
        let former = self.kept.former();
        let was_there = self.is_there()?;
        if was_there {
            let taken = self.netlink.take_root(ifindex);
            taken.map_err(netlink("take the queueing discipline off", self.name))?;
        }
        let kind = former.as_ref().and_then(|former| former.kind.clone());
        let lost = kind
            .filter(|kind| was_there && self.netlink.put(ifindex, TcHandle::ROOT, kind).is_err());
        if let Some((before, bounded)) = former.and_then(|former| former.gso) {
            let step = "restore the segments of";
            let now = self.netlink.gso(ifindex);
            // Unless somebody has changed them since.
            if now.map_err(netlink(step, self.name))? == Some(bounded) {
                let told = self.netlink.set_gso(ifindex, before);
                told.map_err(netlink(step, self.name))?;
            }
        }
        self.kept.end()?;
        Ok(lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Nature;

    fn device(queues: u16) -> Device {
        Device {
            name: "eth0".into(),
            ifindex: 2,
            packet: 1514,
            queues,
            limits: true,
            speed: None,
            nature: Nature::Other,
        }
    }

    #[test]
    fn a_rate_is_the_whole_devices_and_limits_are_each_queues() {
        let rate = "10mbit".parse().ok();
        assert_eq!(places(&device(1), None), None);
        assert_eq!(places(&device(4), None), Some(4));
        assert_eq!(places(&device(4), rate), None);
    }

    #[test]
    fn segments_last_a_millisecond_or_are_of_two_packets() {
        for (rate, bytes) in [
            ("1mbit", 3028),
            ("10mbit", 3028),
            ("100mbit", 12_500),
            ("1gbit", 125_000),
        ] {
            let most = largest_segment(1514, rate.parse().unwrap());
            assert_eq!(most, bytes + 320, "{rate}");
        }
        assert_eq!(
            largest_segment(65_549, "10tbit".parse().unwrap()),
            1_250_000_320
        );
    }
}
