// SPDX-License-Identifier: GPL-2.0
//! What this machine has for packets to leave by the classes, by the devices that most leave by.

use crate::device::{Device, Nature, by_default};
use crate::netlink::{Gso, Netlink};
use crate::support::has_bpf_qdiscs;

/// One thing that was looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What it is.
    pub title: &'static str,
    /// Whether it is there.
    pub found: bool,
    /// What exactly was seen.
    pub detail: String,
    /// What to do about it; none if it was found.
    pub mend: Option<String>,
}

/// Looks at this machine.
pub fn examine() -> Vec<Finding> {
    let mut findings = vec![kernel(has_bpf_qdiscs())];
    for device in by_default().iter().filter_map(|name| Device::of(name)) {
        findings.push(limits(&device));
        let gso = Netlink::open().and_then(|mut kernel| kernel.gso(device.ifindex));
        findings.extend(gso.ok().flatten().map(|gso| segments(&device, gso)));
    }
    findings
}

fn kernel(has_bpf_qdiscs: bool) -> Finding {
    let title = "queueing in BPF";
    match has_bpf_qdiscs {
        true => found(title, "the kernel has queueing disciplines in BPF"),
        false => Finding {
            title,
            found: false,
            detail: "the kernel has no queueing disciplines in BPF: packets leave as ever"
                .to_owned(),
            mend: Some("boot Linux 6.17 or newer with CONFIG_NET_SCH_BPF".to_owned()),
        },
    }
}

fn limits(device: &Device) -> Finding {
    let title = "byte limits (BQL)";
    let name = &device.name;
    if device.limits {
        return found(title, format!("{name} says when it may send"));
    }
    let detail = match device.nature {
        Nature::Wireless => format!("{name} is wireless, and its packets wait behind its queue"),
        Nature::Bridge => format!("{name} is a bridge, and hands every packet on at once"),
        Nature::Other => format!("{name} does not say when it may send"),
    };
    Finding {
        title,
        found: false,
        detail,
        mend: Some(format!(
            "say what it sends: andante net attach {name} --rate RATE"
        )),
    }
}

/// Segments are never in the way: they are bounded where that is needed, and the rate is known.
fn segments(device: &Device, gso: Gso) -> Finding {
    let title = "segments (GSO)";
    let name = &device.name;
    let size = gso.max_size.max(gso.ipv4_max_size);
    let Some(rate) = device.speed else {
        let detail =
            format!("{name}: up to {size} bytes; it does not tell its speed, a rate bounds them");
        return found(title, detail);
    };
    let ms = f64::from(size) * 1000.0 / rate.bytes() as f64;
    let bounded = if ms > 1.0 {
        ", attaching bounds them"
    } else {
        ""
    };
    found(
        title,
        format!("{name}: up to {size} bytes, which take {ms:.1} ms of {rate}{bounded}"),
    )
}

fn found(title: &'static str, detail: impl Into<String>) -> Finding {
    Finding {
        title,
        found: true,
        detail: detail.into(),
        mend: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(limits: bool, speed: &str) -> Device {
        Device {
            name: "eth0".into(),
            ifindex: 2,
            packet: 1514,
            queues: 1,
            limits,
            speed: speed.parse().ok(),
            nature: Nature::Other,
        }
    }

    #[test]
    fn what_is_missing_has_a_mend() {
        for finding in [kernel(false), limits(&device(false, ""))] {
            assert!(!finding.found && finding.mend.is_some(), "{finding:?}");
        }
        for finding in [kernel(true), limits(&device(true, ""))] {
            assert!(finding.found && finding.mend.is_none(), "{finding:?}");
        }
    }

    #[test]
    fn segments_say_how_long_they_take() {
        let gso = Gso {
            max_size: 65536,
            ipv4_max_size: 65536,
        };
        let detail = |speed| segments(&device(true, speed), gso).detail;
        assert!(detail("100mbit").contains("5.2 ms of 100mbit, attaching bounds them"));
        assert!(detail("1gbit").ends_with("0.5 ms of 1gbit"));
        assert!(detail("").contains("does not tell its speed"));
    }
}
