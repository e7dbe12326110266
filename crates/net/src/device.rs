// SPDX-License-Identifier: GPL-2.0
//! A network device, as far as it matters whether and where its packets can be scheduled.

use std::ffi::CString;
use std::fs;
use std::path::{Path, PathBuf};

use crate::Rate;

/// Where the kernel tells of devices.
const DEVICES: &str = "/sys/class/net";

/// A device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// What it is called.
    pub name: String,
    /// Its number.
    pub ifindex: u32,
    /// The largest packet that it sends, with its Ethernet header [bytes].
    pub packet: u32,
    /// Queues that it sends from.
    pub queues: u16,
    /// Whether its driver says when it may send (byte queue limits).
    pub limits: bool,
    /// What its driver says that it sends.
    pub speed: Option<Rate>,
    /// What it is, if that explains why there are no limits.
    pub nature: Nature,
}

/// What a device is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nature {
    /// Packets of radio wait in the kernel's own queues behind this one.
    Wireless,
    /// A bridge, which hands packets on to its ports.
    Bridge,
    /// Anything else.
    Other,
}

/// Of Ethernet.
const HEADER: u32 = 14;

impl Device {
    /// The device of this name in this network namespace, if there is one.
    pub fn of(name: &str) -> Option<Self> {
        let c_name = CString::new(name).ok()?;
        // SAFETY: the pointer is to a string that ends with a 0.
        let ifindex = unsafe { libc::if_nametoindex(c_name.as_ptr()) };
        // A path of more than one component names no device.
        let single = Path::new(name).components().count() == 1;
        (ifindex != 0 && single).then(|| Self::read(&Path::new(DEVICES).join(name), name, ifindex))
    }

    fn read(folder: &Path, name: &str, ifindex: u32) -> Self {
        let queues = queues(folder);
        let has = |part: &str| folder.join(part).exists();
        Self {
            name: name.to_owned(),
            ifindex,
            packet: number(&folder.join("mtu")).unwrap_or(1500) as u32 + HEADER,
            queues: u16::try_from(queues.len()).unwrap_or(u16::MAX).max(1),
            limits: limits(folder, &queues),
            // [Mbit/s]; it is negative, or cannot be read, where it is not known.
            speed: number(&folder.join("speed")).and_then(|speed| Rate::of_bytes(speed * 125_000)),
            nature: if has("wireless") || has("phy80211") {
                Nature::Wireless
            } else if has("bridge") {
                Nature::Bridge
            } else {
                Nature::Other
            },
        }
    }
}

fn queues(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.join("queues")).into_iter().flatten();
    entries
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("tx-"))
        .map(|entry| entry.path())
        .collect()
}

/// Devices without a queue of their own have no folder of limits. Others have one whether or not their driver
/// says what it has sent; where it does, a limit has grown with the first packets, or these are on their way.
fn limits(folder: &Path, queues: &[PathBuf]) -> bool {
    let of = |queue: &PathBuf, what: &str| number(&queue.join("byte_queue_limits").join(what));
    let has_one = |queue: &PathBuf| of(queue, "limit").is_some();
    let uses_it = |queue: &PathBuf| of(queue, "limit") > Some(0) || of(queue, "inflight") > Some(0);
    let sent = number(&folder.join("statistics/tx_packets")).unwrap_or(0);
    queues.iter().any(has_one) && (sent == 0 || queues.iter().any(uses_it))
}

fn number(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// What a device of this name is called now; none: there is none with this number.
pub(crate) fn name_of(ifindex: u32) -> Option<String> {
    let mut name = [0; libc::IF_NAMESIZE];
    // SAFETY: the kernel writes at most IF_NAMESIZE bytes there, which end with a 0.
    let found = unsafe { libc::if_indextoname(ifindex, name.as_mut_ptr()) };
    if found.is_null() {
        return None;
    }
    let bytes = name.map(|c| c as u8);
    let end = bytes.iter().position(|c| *c == 0)?;
    Some(String::from_utf8_lossy(&bytes[..end]).into_owned())
}

/// Names of the devices that packets leave by for which nothing else is said.
pub fn by_default() -> Vec<String> {
    let table = |file: &str| fs::read_to_string(file).unwrap_or_default();
    let mut names = default_routes(&table("/proc/net/route"), &table("/proc/net/ipv6_route"));
    names.sort();
    names.dedup();
    names
}

/// `/proc/net/route` has the device first and then where to; `/proc/net/ipv6_route` where to, the length of
/// its prefix, and the device last.
fn default_routes(ipv4: &str, ipv6: &str) -> Vec<String> {
    let words =
        |line: &str| -> Vec<String> { line.split_whitespace().map(str::to_owned).collect() };
    let ipv4 = ipv4.lines().map(words).filter_map(|line| match &line[..] {
        [device, to, ..] if to == "00000000" => Some(device.clone()),
        _ => None,
    });
    let ipv6 = ipv6.lines().map(words).filter_map(|line| match &line[..] {
        // The kernel has one that rejects, on the loopback device.
        [to, length, .., device] if length == "00" && device != "lo" => {
            to.chars().all(|c| c == '0').then(|| device.clone())
        }
        _ => None,
    });
    ipv4.chain(ipv6).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &Path, file: &str, text: &str) {
        let path = folder.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn a_driver_has_limits_if_one_has_grown() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let limits = || Device::read(folder, "eth0", 2).limits;
        write(folder, "queues/tx-0/tx_timeout", "0\n");
        write(folder, "queues/rx-0/rps_cpus", "0\n");
        assert!(!limits(), "a device without a queue");
        write(folder, "queues/tx-0/byte_queue_limits/limit", "0\n");
        write(folder, "queues/tx-1/byte_queue_limits/limit", "0\n");
        assert!(limits(), "nothing was sent yet");
        write(folder, "statistics/tx_packets", "17\n");
        assert!(!limits(), "packets were sent, and no limit has grown");
        write(folder, "queues/tx-1/byte_queue_limits/inflight", "90\n");
        assert!(limits(), "the first packet has not left yet");
        write(folder, "queues/tx-1/byte_queue_limits/inflight", "0\n");
        assert!(!limits());
        write(folder, "queues/tx-1/byte_queue_limits/limit", "3028\n");
        assert!(limits());
        assert_eq!(Device::read(folder, "eth0", 2).queues, 2);
    }

    #[test]
    fn speed_and_nature_are_the_kernels_words() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        write(folder, "speed", "-1\n");
        write(folder, "mtu", "9000\n");
        let device = Device::read(folder, "eth0", 2);
        assert_eq!((device.speed, device.packet), (None, 9014));
        assert_eq!((device.queues, device.nature), (1, Nature::Other));
        write(folder, "speed", "100\n");
        write(folder, "phy80211/index", "0\n");
        let device = Device::read(folder, "wlan0", 2);
        assert_eq!(device.speed, "100mbit".parse().ok());
        assert_eq!(device.nature, Nature::Wireless);
    }

    #[test]
    fn names_that_are_no_devices_find_none() {
        for name in [
            "",
            "no-such-device",
            "../net/lo",
            "lo/",
            "a\0b",
            "a-name-that-is-too-long",
        ] {
            assert_eq!(Device::of(name), None, "{name}");
        }
        assert_eq!(Device::of("lo").unwrap().ifindex, 1);
        assert_eq!(name_of(1).as_deref(), Some("lo"));
    }

    #[test]
    fn default_routes_name_their_devices() {
        let ipv4 =
            "Iface\tDestination\tGateway\neth0\t00000000\t0102A8C0\neth1\t0002A8C0\t00000000\n";
        let zeros = "0".repeat(32);
        let ipv6 = format!(
            "{zeros} 00 {zeros} 00 fe80 0 0 0 3 wlan0\n{zeros} 00 {zeros} 00 {zeros} 0 0 0 200200 lo\n\
             fe80{} 40 {zeros} 00 {zeros} 100 1 0 1 eth1\n",
            "0".repeat(28)
        );
        assert_eq!(default_routes(ipv4, &ipv6), ["eth0", "wlan0"]);
    }
}
