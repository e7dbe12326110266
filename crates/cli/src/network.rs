// SPDX-License-Identifier: GPL-2.0
//! The network's traffic and contracts, for the commands that show the CPU's classes and contracts.

use std::collections::HashMap;

use andante_net::{NetError, Process, Promised, Seen};
use andante_sched::class::{ClassError, ClassPath};
use andante_sched::text::shown;
use andante_sched::{class_paths, monotonic_ns};
use serde::{Deserialize, Serialize};

use crate::shares::Row;

/// One look at the devices that are attached.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Look {
    /// When [ns of CLOCK_MONOTONIC].
    pub now_ns: u64,
    /// The devices.
    pub devices: Vec<Seen>,
}

impl Look {
    /// The state now; none where no device is attached, or for a user who may not see it.
    pub fn now() -> Option<Self> {
        Self::or_why_not().ok().flatten()
    }

    /// The state now, none where no device is attached.
    ///
    /// # Errors
    ///
    /// Devices are attached and cannot be seen: why, in a sentence.
    pub fn or_why_not() -> Result<Option<Self>, String> {
        let devices = match andante_net::seen() {
            Ok(devices) => devices,
            Err(NetError::NotRoot) => {
                let attached = andante_net::attached_for_all_to_see().unwrap_or_default();
                return match attached.is_empty() {
                    true => Ok(None),
                    false => Err(only_root(&attached)),
                };
            }
            Err(error) => return Err(error.to_string()),
        };
        Ok((!devices.is_empty()).then(|| Self {
            now_ns: monotonic_ns(),
            devices,
        }))
    }

    fn class(&self, device: &str, cgroup_id: u64) -> Option<&andante_net::Class> {
        let device = self.devices.iter().find(|seen| seen.device == device)?;
        (device.classes.iter()).find(|class| class.cgroup_id == cgroup_id)
    }

    /// So much of a count in a second since that look, in which the class had so many; a device that was attached
    /// since, or anew, counts from 0.
    fn rate(&self, before: &Self, now: u64, earlier: Option<u64>) -> f64 {
        let length_ns = self.now_ns.saturating_sub(before.now_ns).max(1);
        let more = now.checked_sub(earlier.unwrap_or(0)).unwrap_or(now);
        more as f64 * 1e9 / length_ns as f64
    }

    /// The rate at which each row's class, with those below it, has sent since that look, on all devices [bytes/s].
    pub fn sent(&self, before: &Self, rows: &[Row]) -> HashMap<(u64, bool), u64> {
        let mut own: HashMap<u64, f64> = HashMap::new();
        for device in &self.devices {
            for class in &device.classes {
                let earlier = before.class(&device.device, class.cgroup_id);
                let sent = self.rate(before, class.bytes, earlier.map(|earlier| earlier.bytes));
                *own.entry(class.cgroup_id).or_default() += sent;
            }
        }
        let of = |row: &Row| match row.class.path.as_str() {
            "/" => own.get(&0).copied(),
            _ => own.get(&row.class.cgroup_id).copied(),
        };
        let mut sums = vec![0.0; rows.len()];
        let mut above: Vec<usize> = Vec::new();
        for (at, row) in rows.iter().enumerate() {
            let sent = of(row).unwrap_or(0.0);
            above.retain(|&one| rows[one].class.depth < row.class.depth);
            sums[at] += sent;
            // The row of a class's own tasks is a part of it.
            if !row.class.own {
                above.iter().for_each(|&one| sums[one] += sent);
                above.push(at);
            }
        }
        // Of the whole are also classes that the CPU has no room for.
        if let Some(root) = rows.iter().position(|row| row.class.depth == 0) {
            sums[root] = own.values().sum();
        }
        let sums = sums.into_iter().map(|sum| sum as u64);
        rows.iter().map(|row| row.class.key()).zip(sums).collect()
    }

    /// The contracts, with what was sent by them since that look.
    pub fn contracts(
        &self,
        before: Option<&Self>,
        path: impl Fn(u64) -> Option<String>,
    ) -> Vec<Contract> {
        let of = |device: &Seen, class: &andante_net::Class| {
            let earlier = |before: &Self| {
                let earlier = before.class(&device.device, class.cgroup_id);
                earlier.map(|earlier| earlier.promised_bytes)
            };
            let path = match class.cgroup_id {
                0 => Some("/".to_owned()),
                id => path(id),
            };
            Some(Contract {
                name: format!("{}:{}", device.device, path.as_deref().unwrap_or(GONE)),
                device: device.device.clone(),
                class: path,
                cgroup_id: class.cgroup_id,
                promised: class.promised?,
                until: class.promised_until,
                sent_bytes: class.promised_bytes,
                sent_rate: before
                    .map(|before| self.rate(before, class.promised_bytes, earlier(before)) as u64),
            })
        };
        let classes = self.devices.iter().flat_map(|device| {
            let classes = device.classes.iter();
            classes.filter_map(move |class| of(device, class))
        });
        classes.collect()
    }
}

/// A contract of a class on a device, and its use so far.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Contract {
    /// The device and the class's path, as `andante reserve --release` takes them.
    pub name: String,
    /// The device.
    pub device: String,
    /// The class's path; none: it is gone.
    pub class: Option<String>,
    /// The class's cgroup; 0: the root.
    pub cgroup_id: u64,
    /// Its terms.
    #[serde(flatten)]
    pub promised: Promised,
    /// The process that it ends with; none: it ends when it is released.
    pub until: Option<Process>,
    /// Bytes of the class that were sent by contract.
    pub sent_bytes: u64,
    /// ... between two looks [bytes/s]; none after one look only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent_rate: Option<u64>,
}

/// In the place of the path of a class that is gone.
pub const GONE: &str = "(gone)";

/// For a user who may not see the contracts of devices that are attached.
fn only_root(attached: &[String]) -> String {
    let devices: Vec<_> = attached.iter().map(|device| shown(device)).collect();
    format!(
        "Andante is on {}, where only root sees contracts: use sudo",
        devices.join(" and ")
    )
}

impl Contract {
    /// Ends it.
    ///
    /// # Errors
    ///
    /// [`NetError`].
    pub fn release(&self) -> Result<(), NetError> {
        // One that has ended meanwhile is as good.
        andante_net::release(&self.device, self.cgroup_id).map(|_| ())
    }

    /// Whether a user means its holder by this text: the path of its class, or the process that it ends with.
    fn is_held_by(&self, text: &str) -> bool {
        let of_class =
            |path: &String| ClassPath::parse(text).is_ok_and(|given| given.to_text() == *path);
        let of_process = |until: Process| text.parse() == Ok(until.pid);
        self.class.as_ref().is_some_and(of_class) || self.until.is_some_and(of_process)
    }
}

fn called(mut contracts: Vec<Contract>, text: &str) -> Vec<Contract> {
    let named = contracts.iter().any(|one| one.name == text);
    contracts.retain(|one| match named {
        true => one.name == text,
        false => one.is_held_by(text),
    });
    contracts
}

/// The contracts that a user may see, as commands print them.
#[derive(Debug, Default, Serialize)]
pub struct Contracts {
    /// All of them; none for a user who may not see them, or where no device is attached.
    network: Option<Vec<Contract>>,
    /// Why they cannot be seen, where a device is attached.
    #[serde(rename = "network_unseen")]
    pub unseen: Option<String>,
}

impl Contracts {
    /// Those there are, with what was sent by them since that look.
    ///
    /// # Errors
    ///
    /// Classes cannot be read.
    pub fn now(before: Option<&Look>) -> Result<Self, ClassError> {
        let mut contracts = Self::default();
        match Look::or_why_not() {
            Ok(None) => {}
            Ok(Some(look)) => {
                let paths = class_paths()?;
                let all = look.contracts(before, |id| paths.get(&id).cloned());
                contracts.network = Some(all);
            }
            Err(why) => contracts.unseen = Some(why),
        }
        Ok(contracts)
    }

    /// The line that says why they cannot be seen; empty, if they can.
    pub fn why_unseen(&self) -> String {
        let line = |why: &String| format!("{why}\n");
        self.unseen.as_ref().map(line).unwrap_or_default()
    }

    /// Those that can be seen.
    pub fn all(&self) -> &[Contract] {
        self.network.as_deref().unwrap_or_default()
    }

    /// Those that a user may mean by this text: the one of that name, or else all whose holder it names.
    pub fn called(self, text: &str) -> Vec<Contract> {
        called(self.network.unwrap_or_default(), text)
    }
}

/// A process with its name, as a contract's holder.
pub fn program(process: Process) -> String {
    let found = i32::try_from(process.pid)
        .ok()
        .and_then(andante_sched::class::process);
    match found {
        Some(found) => format!("{} ({})", shown(&found.name), process.pid),
        None => process.pid.to_string(),
    }
}

/// A number in three digits, in the largest unit of which there is one; units are a thousand each.
fn in_three_digits(number: u64, units: &[&str]) -> String {
    let mut scaled = number as f64;
    let mut units = units.iter();
    let mut unit = units.next().unwrap_or(&"");
    // A figure that would be rounded to a thousand is one of the next unit.
    while scaled >= 999.5 {
        match units.next() {
            Some(next) => (scaled, unit) = (scaled / 1000.0, next),
            None => break,
        }
    }
    let decimals = match scaled {
        _ if scaled == scaled.trunc() => 0,
        0.0..9.995 => 2,
        9.995..99.95 => 1,
        _ => 0,
    };
    format!("{scaled:.decimals$}{unit}")
}

/// Bits in a second, for people: `1.25mbit`.
pub fn rate(bytes: u64) -> String {
    in_three_digits(
        bytes.saturating_mul(8),
        &["bit", "kbit", "mbit", "gbit", "tbit"],
    )
}

/// Bytes, for people: `1.25 MB`.
pub fn amount(bytes: u64) -> String {
    in_three_digits(bytes, &[" B", " kB", " MB", " GB", " TB", " PB"])
}

/// A count, for people: `1.25M`.
pub fn count(number: u64) -> String {
    in_three_digits(number, &["", "k", "M", "G", "T"])
}

/// A time, for people: `16.4 ms`.
pub fn time_us(us: u64) -> String {
    in_three_digits(us, &[" µs", " ms", " s"])
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::shares;
    use crate::shares::tests::class;
    use andante_sched::Snapshot;

    /// A device on which class `a` of these tests has sent so much, a tenth of it by contract, and the root 100.
    pub fn look(now_ns: u64, bytes: u64) -> Look {
        let of = |cgroup_id, bytes| andante_net::Class {
            cgroup_id,
            bytes,
            ..Default::default()
        };
        let promised = Promised {
            bytes: 2500,
            period_ns: 10_000_000,
        };
        let a = andante_net::Class {
            promised: Some(promised),
            promised_bytes: bytes / 10,
            ..of(class("/a", 1, 0).cgroup_id, bytes)
        };
        Look {
            now_ns,
            devices: vec![Seen {
                device: "eth0".into(),
                rate_bits: Some(10_000_000),
                largest_segment: None,
                replaced: None,
                queues: 1,
                waiting: 0,
                classes: vec![of(0, 100), of(class("/a/x", 1, 0).cgroup_id, bytes), a],
            }],
        }
    }

    #[test]
    fn a_class_has_sent_what_those_below_it_have() {
        let mut classes = vec![
            class("/", 1, 0),
            class("/a", 1, 0),
            class("/a/x", 1, 0),
            class("/b", 1, 0),
        ];
        let mut own = class("/a", 1, 0);
        (own.own, own.depth) = (true, 2);
        classes.insert(2, own);
        let snapshot = Snapshot {
            now_ns: 0,
            cpus: 1,
            domains: 1,
            classes,
        };
        let rows = shares::between(&snapshot, &snapshot);
        let (before, after) = (look(0, 1000), look(2_000_000_000, 9000));
        let sent = after.sent(&before, &rows);
        let sent: Vec<_> = rows.iter().map(|row| sent[&row.class.key()]).collect();
        assert_eq!(sent, [8000, 8000, 4000, 4000, 0]);
        // It was attached anew.
        let anew = look(2_000_000_000, 500).sent(&before, &rows);
        assert_eq!(anew[&rows[2].class.key()], 250);
    }

    #[test]
    fn contracts_have_what_was_sent_by_them() {
        let (before, after) = (look(0, 1000), look(2_000_000_000, 9000));
        let path = |_| Some("/a".to_owned());
        let contracts = after.contracts(Some(&before), path);
        let [one] = &contracts[..] else {
            panic!("{contracts:?}");
        };
        assert_eq!((one.sent_bytes, one.sent_rate), (900, Some(400)));
        assert_eq!(after.contracts(None, path)[0].sent_rate, None);
        let json = serde_json::to_value(one).unwrap();
        assert_eq!(
            (&json["class"], &json["bytes"]),
            (&"/a".into(), &2500.into())
        );
    }

    #[test]
    fn a_contract_is_called_by_its_name_or_by_who_holds_it() {
        let of = |device: &str, path: &'static str, pid: Option<u32>| {
            let mut one = look(0, 1000).contracts(None, |_| Some(path.to_owned()));
            one[0].name = format!("{device}:{path}");
            one[0].until = pid.map(|pid| Process { pid, started: 1 });
            one.remove(0)
        };
        let all = [
            of("eth0", "/a", None),
            of("eth1", "/a", Some(7)),
            of("eth0", "/7", Some(8)),
        ];
        for (text, meant) in [
            ("eth0:/a", &[0][..]),
            ("/a", &[0, 1]),
            ("a/", &[0, 1]),
            ("7", &[1, 2]),
            ("8", &[2]),
            ("eth0", &[]),
            ("eth2:/a", &[]),
            ("", &[]),
        ] {
            let expected: Vec<_> = meant.iter().map(|at| all[*at].clone()).collect();
            assert_eq!(called(all.to_vec(), text), expected, "{text}");
        }
        let gone = look(0, 1000).contracts(None, |_| None).remove(0);
        assert_eq!(gone.name, "eth0:(gone)");
        assert_eq!(called(vec![gone.clone()], "eth0:(gone)"), [gone]);
    }

    #[test]
    fn numbers_have_three_digits() {
        for (bytes, shown) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1 kB"),
            (1234, "1.23 kB"),
            (9999, "10.0 kB"),
            (99_949, "99.9 kB"),
            (999_499, "999 kB"),
            (999_500, "1.00 MB"),
            (1_234_567_890, "1.23 GB"),
        ] {
            assert_eq!(amount(bytes), shown, "{bytes}");
        }
        assert_eq!(
            (rate(153_750).as_str(), rate(0).as_str()),
            ("1.23mbit", "0bit")
        );
        assert_eq!(
            (count(12).as_str(), count(1_234_567).as_str()),
            ("12", "1.23M")
        );
        assert_eq!(
            (time_us(512).as_str(), time_us(4096).as_str()),
            ("512 µs", "4.10 ms")
        );
    }
}
