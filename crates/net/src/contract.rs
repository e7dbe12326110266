// SPDX-License-Identifier: GPL-2.0
//! Contracts of a device: so many bytes of a class leave before others' in every period.
//!
//! They are in a map that is pinned beside what else is kept of the device, and looked at by the discipline with
//! the weights of a class. So they hold until the device is detached, whoever has ended meanwhile; but one that ends
//! with a process is none from when that has ended, for the discipline and for us.

use std::collections::HashMap;

use andante_admission::link::{Link, LinkAnswer, LinkContract, LinkSystem};
use libbpf_rs::{MapCore, MapFlags, MapHandle};

use crate::attach::{alone, attached, root};
use crate::device::{Device, by_default};
use crate::error::{NetError, netlink, refused};
use crate::kept::{Former, Kept};
use crate::netlink::Netlink;
use crate::process::Process;
use crate::seen::ROOT_CGROUP;

/// Of every link so much is left to those without contracts [1/1000]; as of every CPU.
const LEFT_FOR_OTHERS_PER_MILLE: u32 = 200;

/// What a class is promised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
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
/// promised. It holds until it is released, or until that process ends. Without one it takes the place of what the
/// class was promised before. Contracts of classes and processes that are gone end.
///
/// # Errors
///
/// [`NetError`]; nothing has changed then.
pub fn reserve(
    device: &str,
    class: Holder<'_>,
    promised: Promised,
    until: Option<Process>,
    paths: &HashMap<u64, String>,
) -> Result<LinkAnswer, NetError> {
    root()?;
    let _alone = alone()?;
    let (kept, former) = kept(device)?;
    let map = map(&kept, device)?;
    let mut system = LinkSystem::new(link(device, &kept, &former)?)?;
    for (cgroup_id, held) in all(&map)? {
        match paths.get(&cgroup_id).filter(|_| held.holds()) {
            None => end(&map, kept.ifindex, cgroup_id)?,
            Some(path) if cgroup_id == class.cgroup_id => match until {
                None => {}
                Some(_) => return Err(NetError::promised(device, path)),
            },
            Some(path) => system.hold(contract(path, held.promised)),
        }
    }
    let answer = system.admit(contract(class.path, promised))?;
    if answer == LinkAnswer::Admitted {
        let key = key(kept.ifindex, class.cgroup_id);
        let value = Held { promised, until }.to_bytes();
        map.update(&key, &value, MapFlags::ANY)
            .map_err(refused("tell a contract to"))?;
    }
    Ok(answer)
}

/// Ends the contract of a class on a device, the root's by its cgroup or by 0; whether there was one.
///
/// # Errors
///
/// [`NetError`].
pub fn release(device: &str, cgroup_id: u64) -> Result<bool, NetError> {
    let cgroup_id = match cgroup_id {
        0 => ROOT_CGROUP,
        below => below,
    };
    release_if(device, cgroup_id, |_| true)
}

/// The same, but only of the contract that ends with this process.
///
/// # Errors
///
/// [`NetError`].
pub fn release_of(device: &str, cgroup_id: u64, process: Process) -> Result<bool, NetError> {
    release_if(device, cgroup_id, |held| held.until == Some(process))
}

fn release_if(
    device: &str,
    cgroup_id: u64,
    is_meant: impl Fn(&Held) -> bool,
) -> Result<bool, NetError> {
    root()?;
    let _alone = alone()?;
    let (kept, _) = kept(device)?;
    let map = map(&kept, device)?;
    let all = all(&map)?;
    let meant = all
        .iter()
        .find(|(id, held)| *id == cgroup_id && is_meant(held));
    match meant {
        None => Ok(false),
        Some((_, held)) => {
            let held = held.holds();
            end(&map, kept.ifindex, cgroup_id)?;
            Ok(held)
        }
    }
}

/// The contracts of classes, by their cgroups, and the processes with which they end.
pub(crate) fn promises(kept: &Kept, device: &str) -> Result<Vec<(u64, Held)>, NetError> {
    let mut all = all(&map(kept, device)?)?;
    all.retain(|(_, held)| held.holds());
    Ok(all)
}

/// The device that is meant where none is named: the only one that is attached, or of several that which packets
/// leave by for which nothing else is said.
///
/// # Errors
///
/// [`NetError::Nowhere`], [`NetError::Several`].
pub fn usual_device() -> Result<String, NetError> {
    usual(attached()?, &by_default())
}

fn usual(mut attached: Vec<String>, by_default: &[String]) -> Result<String, NetError> {
    let all = attached.clone();
    if all.len() > 1 {
        attached.retain(|device| by_default.contains(device));
    }
    match (attached.pop(), attached.is_empty()) {
        (Some(device), true) => Ok(device),
        _ if all.is_empty() => Err(NetError::Nowhere),
        _ => Err(NetError::Several(all)),
    }
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

fn map(kept: &Kept, device: &str) -> Result<MapHandle, NetError> {
    let map =
        MapHandle::from_pinned_path(kept.promises()).map_err(refused("show the contracts of"))?;
    match map.value_size() as usize == size_of::<[u64; WORDS]>() {
        true => Ok(map),
        false => Err(NetError::OtherBuild(device.to_owned())),
    }
}

fn key(ifindex: u32, cgroup_id: u64) -> Vec<u8> {
    [cgroup_id, u64::from(ifindex)]
        .map(u64::to_ne_bytes)
        .concat()
}

/// Those that are told to the discipline, whether or not they hold any more.
fn all(map: &MapHandle) -> Result<Vec<(u64, Held)>, NetError> {
    let mut all = Vec::new();
    for key in map.keys() {
        let value = map.lookup(&key, MapFlags::ANY);
        let Some(value) = value.map_err(refused("show the contracts of"))? else {
            continue; // ended meanwhile
        };
        let [cgroup_id, _] = words(&key);
        all.push((cgroup_id, Held::of_bytes(&value)));
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

/// Of `struct net_promise` (`bpf/qdisc.h`).
const WORDS: usize = 4;

/// A contract, as the discipline is told it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Held {
    pub promised: Promised,
    pub until: Option<Process>,
}

impl Held {
    /// No process of the first has the number 0.
    fn to_bytes(self) -> Vec<u8> {
        let Promised { bytes, period_ns } = self.promised;
        let (pid, started) = self
            .until
            .map_or((0, 0), |until| (until.pid, until.started));
        let words: [u64; WORDS] = [period_ns, bytes.into(), pid.into(), started];
        words.map(u64::to_ne_bytes).concat()
    }

    fn of_bytes(value: &[u8]) -> Self {
        let [period_ns, bytes, pid, started]: [u64; WORDS] = words(value);
        let (bytes, pid) = (bytes as u32, pid as u32);
        Self {
            promised: Promised { bytes, period_ns },
            until: (pid != 0).then_some(Process { pid, started }),
        }
    }

    /// It has not ended with its process.
    fn holds(&self) -> bool {
        self.until.is_none_or(Process::lives)
    }
}

/// Words, of which keys and values of the map are made.
fn words<const N: usize>(bytes: &[u8]) -> [u64; N] {
    let word = |at: usize| {
        let bytes = bytes
            .get(at * 8..at * 8 + 8)
            .and_then(|b| b.try_into().ok());
        bytes.map_or(0, u64::from_ne_bytes)
    };
    std::array::from_fn(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_is_told_is_what_is_read() {
        let promised = Promised {
            bytes: u32::MAX,
            period_ns: u64::from(u32::MAX),
        };
        let process = Process {
            pid: 7,
            started: 4711,
        };
        for until in [None, Some(process)] {
            let held = Held { promised, until };
            assert_eq!(Held::of_bytes(&held.to_bytes()), held);
        }
        let ended = Held {
            promised,
            until: Some(Process {
                pid: std::process::id(),
                started: 0,
            }),
        };
        assert!(!ended.holds(), "that was another process");
    }

    #[test]
    fn the_usual_device_is_the_only_one_or_that_of_the_default_route() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let found = |attached: &[&str], by_default: &[&str]| {
            let by_default: Vec<String> = names(by_default);
            usual(names(attached), &by_default).map_err(|error| error.to_string())
        };
        assert_eq!(found(&["eth1"], &["eth0"]), Ok("eth1".into()));
        assert_eq!(found(&["eth0", "eth1"], &["eth1"]), Ok("eth1".into()));
        let nowhere = found(&[], &["eth0"]).unwrap_err();
        assert!(nowhere.contains("andante net attach"), "{nowhere}");
        for by_default in [&[][..], &["wlan0"], &["eth0", "eth1"]] {
            let several = found(&["eth0", "eth1"], by_default).unwrap_err();
            assert!(several.contains("eth0 and eth1: say which"), "{several}");
        }
    }
}
