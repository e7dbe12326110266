// SPDX-License-Identifier: GPL-2.0
//! Contracts of a device: so many bytes of a class leave before others' in every period.
//!
//! They are in a map that is pinned beside what else is kept of the device, and looked at by the discipline with
//! the weights of a class. So they hold until the device is detached, whoever has ended meanwhile.

use std::collections::HashMap;

use andante_admission::link::{Link, LinkAnswer, LinkContract, LinkSystem};
use libbpf_rs::{MapCore, MapFlags, MapHandle};

use crate::attach::{alone, root};
use crate::device::Device;
use crate::error::{NetError, netlink, refused};
use crate::kept::{Former, Kept};
use crate::netlink::Netlink;

/// Of every link so much is left to those without contracts [1/1000]; as of every CPU.
const LEFT_FOR_OTHERS_PER_MILLE: u32 = 200;

/// What a class is promised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Promised {
    /// In every period [bytes on the link].
    pub bytes: u32,
    /// The period [ns].
    pub period_ns: u64,
}

/// A class, as contracts name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holder<'a> {
    /// Its cgroup.
    pub cgroup_id: u64,
    /// Its path.
    pub path: &'a str,
}

/// Promises a class so much on a device, if there is room beside what `paths` (of cgroups, by their ids) are
/// promised; what it was promised before ends then. Contracts of classes that are gone end.
///
/// # Errors
///
/// [`NetError`]; nothing has changed then.
pub fn reserve(
    device: &str,
    class: Holder<'_>,
    promised: Promised,
    paths: &HashMap<u64, String>,
) -> Result<LinkAnswer, NetError> {
    root()?;
    let _alone = alone()?;
    let (kept, former) = kept(device)?;
    let map = map(&kept)?;
    let link = link(device, &kept, &former)?;
    let mut system = LinkSystem::new(link)?;
    for (cgroup_id, held) in all(&map)? {
        match paths.get(&cgroup_id) {
            None => end(&map, kept.ifindex, cgroup_id)?,
            Some(_) if cgroup_id == class.cgroup_id => {}
            Some(path) => system.hold(contract(path, held)),
        }
    }
    let answer = system.admit(contract(class.path, promised))?;
    if answer == LinkAnswer::Admitted {
        let value = [promised.period_ns, u64::from(promised.bytes)].map(u64::to_ne_bytes);
        map.update(
            &key(kept.ifindex, class.cgroup_id),
            &value.concat(),
            MapFlags::ANY,
        )
        .map_err(refused("tell a contract to"))?;
    }
    Ok(answer)
}

/// Ends the contract of a class on a device; whether there was one.
///
/// # Errors
///
/// [`NetError`].
pub fn release(device: &str, cgroup_id: u64) -> Result<bool, NetError> {
    root()?;
    let _alone = alone()?;
    let (kept, _) = kept(device)?;
    let map = map(&kept)?;
    let had = all(&map)?.iter().any(|(id, _)| *id == cgroup_id);
    end(&map, kept.ifindex, cgroup_id)?;
    Ok(had)
}

/// What classes are promised, by their cgroups.
pub(crate) fn promises(kept: &Kept) -> Result<HashMap<u64, Promised>, NetError> {
    Ok(all(&map(kept)?)?.into_iter().collect())
}

fn contract(path: &str, promised: Promised) -> LinkContract {
    LinkContract {
        name: path.to_owned(),
        bytes: promised.bytes,
        period_ns: promised.period_ns,
    }
}

pub(crate) fn kept(device: &str) -> Result<(Kept, Former), NetError> {
    let found = Device::of(device).ok_or_else(|| NetError::NoDevice(device.to_owned()))?;
    let kept = Kept::of(found.ifindex)?;
    let former = kept
        .former()
        .ok_or_else(|| NetError::NotAttached(device.to_owned()))?;
    Ok((kept, former))
}

/// The link: its largest packet is the largest segment that it is given.
fn link(device: &str, kept: &Kept, former: &Former) -> Result<Link, NetError> {
    let rate = former
        .rate
        .ok_or_else(|| NetError::NoContracts(device.to_owned()))?;
    let gso = Netlink::open().and_then(|mut kernel| kernel.gso(kept.ifindex));
    let gso = gso.map_err(netlink("tell the segments of", device))?;
    let packet = Device::of(device).map_or(0, |device| device.packet);
    let largest = gso.map_or(packet, |gso| {
        gso.max_size.max(gso.ipv4_max_size).max(packet)
    });
    Ok(Link {
        rate: rate.bytes(),
        largest,
        left_for_others_per_mille: LEFT_FOR_OTHERS_PER_MILLE,
    })
}

fn map(kept: &Kept) -> Result<MapHandle, NetError> {
    MapHandle::from_pinned_path(kept.promises()).map_err(refused("show the contracts of"))
}

fn key(ifindex: u32, cgroup_id: u64) -> Vec<u8> {
    [cgroup_id, u64::from(ifindex)]
        .map(u64::to_ne_bytes)
        .concat()
}

fn all(map: &MapHandle) -> Result<Vec<(u64, Promised)>, NetError> {
    let mut all = Vec::new();
    for key in map.keys() {
        let value = map.lookup(&key, MapFlags::ANY);
        let Some(value) = value.map_err(refused("show the contracts of"))? else {
            continue; // ended meanwhile
        };
        let [period_ns, bytes] = words(&value);
        let [cgroup_id, _] = words(&key);
        all.push((
            cgroup_id,
            Promised {
                bytes: bytes as u32,
                period_ns,
            },
        ));
    }
    all.sort_unstable_by_key(|(cgroup_id, _)| *cgroup_id);
    Ok(all)
}

fn end(map: &MapHandle, ifindex: u32, cgroup_id: u64) -> Result<(), NetError> {
    match map.delete(&key(ifindex, cgroup_id)) {
        Err(error) if error.kind() != libbpf_rs::ErrorKind::NotFound => {
            Err(refused("end a contract of")(error))
        }
        _ => Ok(()),
    }
}

/// Two words, of which keys and values of the map are made.
fn words(bytes: &[u8]) -> [u64; 2] {
    let word = |at: usize| {
        let bytes = bytes
            .get(at * 8..at * 8 + 8)
            .and_then(|b| b.try_into().ok());
        bytes.map_or(0, u64::from_ne_bytes)
    };
    [word(0), word(1)]
}
