// SPDX-License-Identifier: GPL-2.0
//! `andante net`: packets leave by the classes, and come in by them.

mod receive;
mod weight;

mod budget;
mod reserve;
mod table;

use std::collections::HashMap;
use std::path::PathBuf;

use andante_net::{Attached, Rate, Seen, Wanted};
use andante_sched::class::{ClassError, ClassPath};
use andante_sched::class_paths;
use andante_sched::text::shown;
use andante_terminal::exit::Status;
use andante_terminal::output::{self, GOOD, paint};
use anyhow::Result;
use clap::{Args, Subcommand};
use serde::Serialize;

use self::reserve::{Release, Reserve};
use self::table::render;
use super::run::config;

pub use self::budget::{Asked, Budget};
pub use self::reserve::offers;

/// Let packets leave by the classes and be worked on by them, and see what each has sent.
///
/// A device that is attached sends the packets of each class by its weight, as its tasks run. A packet
/// is of the class of the cgroup whose process opened its socket; forwarded packets and the kernel's own are
/// of the root's. In a class connections take turns. It needs Linux 6.17 or newer, and holds until it is
/// detached, whether or not `andante run` is there.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  sudo andante net attach eth0                  as fast as its driver can
  sudo andante net attach eth0 --rate 10mbit    no faster, so that packets wait here and nowhere else
  sudo andante net status
  sudo andante net weight eth0 /film 300        another weight than that of the CPU
  sudo andante net reserve eth0 /film 2mbit/10ms
  sudo andante net receive eth0 --class /film   packets that come are the work of a class
  sudo andante net detach eth0
  sudo systemctl enable --now andante-net@eth0  from boot on")]
pub struct Net {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    Attach(Attach),
    Detach(Detach),
    Reserve(Reserve),
    Release(Release),
    Weight(weight::Weight),
    Receive(receive::Receive),
    Restore(receive::Restore),
    Status(Show),
}

/// Let a device's packets leave by the classes.
///
/// What was there before comes back when it is detached. The kernel's own queueing discipline is
/// replaced without a question, one that somebody has put there is not.
#[derive(Args)]
#[command(after_long_help = "\
Without a rate the driver says when it may send (byte queue limits, BQL). Most wired devices have them; veth, \
tun, bridges and wireless devices have not, and need a rate. Where the narrowest place of the way is behind the \
device (a modem, a radio link), give a little less than that has: packets wait where the queue is, and only \
here by the classes.

Segments of TCP that are larger than the device sends in a millisecond are bounded to that, or to two packets, \
if the rate is given or the device tells its speed: one segment has to wait for another.

A rate is given in bit, kbit, mbit, gbit or tbit. What no option says is read from /etc/andante.toml:
  [net.eth0]
  rate = \"10mbit\"
  replace = true
  [net.eth0.weights]
  \"/film\" = 300

Attached again, a device takes what is said anew. Packets that wait then are lost.

Examples:
  sudo andante net attach eth0
  sudo andante net attach wlan0 --rate 40mbit
  sudo andante net attach eth0 --replace        another discipline was put there by hand")]
struct Attach {
    /// The device.
    device: String,
    /// What it is to send, at most: 10mbit.
    #[arg(long, value_name = "RATE")]
    rate: Option<Rate>,
    /// Replace a queueing discipline that somebody has put there.
    #[arg(long)]
    replace: bool,
    /// Read this file for what no option says, and not /etc/andante.toml and /etc/andante.d.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// Take devices back: what was there before comes back.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  sudo andante net detach eth0\n  sudo andante net detach --all"
)]
struct Detach {
    /// The device.
    #[arg(required_unless_present = "all")]
    device: Option<String>,
    /// All devices that are attached.
    #[arg(long, conflicts_with = "device")]
    all: bool,
}

/// Show the devices that are attached, what each class has sent, and what was dropped as it came.
#[derive(Args)]
#[command(after_long_help = "\
A WEIGHT with * is one of the device alone (`andante net weight`). WAIT are packets that wait now; P50 and P99 how long \
packets waited here, half of them and 99 of 100, as the next higher power of two. LATE were dropped since their flow's \
queue stood for too long (CoDel), by which a sender learns to send less; CROWDED for want of room. Counts begin when the \
device is attached or the class is seen for the first time. --json has them exactly.

Examples:
  sudo andante net status
  sudo andante net status --json | jq '.devices[0].classes'")]
struct Show {
    /// Print the data as JSON.
    #[arg(long)]
    json: bool,
}

impl Net {
    /// Does it.
    pub fn run(self) -> Result<Status> {
        match self.action {
            Action::Attach(action) => action.run(),
            Action::Detach(action) => action.run(),
            Action::Reserve(action) => action.run(),
            Action::Release(action) => action.run(),
            Action::Weight(action) => action.run(),
            Action::Receive(action) => action.run(),
            Action::Restore(action) => action.run(),
            Action::Status(action) => action.run(),
        }
    }
}

impl Attach {
    fn run(self) -> Result<Status> {
        let (choices, _) = config::from_files(self.config.as_deref())?;
        let said = choices.net.get(&self.device).cloned().unwrap_or_default();
        let wanted = Wanted {
            rate: self.rate.or(said.attach.rate),
            replace: self.replace || said.attach.replace,
        };
        let done = andante_net::attach(&self.device, wanted)?;
        output::print(&told(&done))?;
        weight::weigh_all(&self.device, &said.weights)?;
        Ok(Status::Ok)
    }
}

/// What was done, in a sentence for each thing.
fn told(done: &Attached) -> String {
    let Attached {
        device,
        queues,
        former,
    } = done;
    let rate = match former.rate {
        Some(rate) => format!("{rate} at most"),
        None => "as fast as its driver can".to_owned(),
    };
    let queues = match queues {
        1 => String::new(),
        queues => format!(", from {queues} queues"),
    };
    let mut text = format!(
        "{}: packets leave by the classes, {rate}{queues}.\n",
        paint(GOOD, shown(&device.name)),
    );
    if let Some((before, bounded)) = former.gso {
        text += &format!(
            "Segments are of {} bytes at most, and were of {}.\n",
            bounded.max_size, before.max_size
        );
    }
    if let Some(kind) = &former.kind {
        text += &format!(
            "It replaces {}, which comes back with it detached.\n",
            shown(kind)
        );
    }
    text
}

impl Detach {
    fn run(self) -> Result<Status> {
        let devices = match self.device {
            Some(device) => vec![device],
            None => andante_net::attached()?,
        };
        for name in devices {
            let done = andante_net::detach(&name)?;
            let device = shown(&done.device);
            output::print(&format!("{device} is as it was before.\n"))?;
            if let Some(kind) = done.lost {
                let kind = shown(&kind);
                output::warn(&format!(
                    "{device} had the queueing discipline {kind}, which does not come back without its \
                     options: `tc qdisc` puts it there"
                ));
            }
        }
        Ok(Status::Ok)
    }
}

/// The cgroup of the class at that path, and all paths.
pub fn class_at(path: &ClassPath) -> Result<(u64, HashMap<u64, String>)> {
    let paths = class_paths()?;
    let text = path.to_text();
    let found = paths.iter().find(|(_, known)| **known == text);
    let id = found.map(|(id, _)| *id);
    let id = id.ok_or_else(|| ClassError::Unknown(path.clone()))?;
    Ok((id, paths))
}

/// A class of a device.
#[derive(Debug, Serialize)]
struct Row {
    /// Its path; none: its cgroup is gone.
    class: Option<String>,
    #[serde(flatten)]
    seen: andante_net::Class,
}

/// A device.
#[derive(Debug, Serialize)]
struct Device {
    #[serde(flatten)]
    seen: Seen,
    classes: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Report {
    devices: Vec<Device>,
    /// Devices whose packets are placed (`andante net receive`).
    receive: Vec<receive::Placed>,
}

impl Device {
    fn of(mut seen: Seen, paths: &HashMap<u64, String>) -> Self {
        let classes = std::mem::take(&mut seen.classes);
        let row = |seen: andante_net::Class| Row {
            class: match seen.cgroup_id {
                0 => Some("/".to_owned()),
                id => paths.get(&id).cloned(),
            },
            seen,
        };
        let mut classes: Vec<_> = classes.into_iter().map(row).collect();
        classes.sort_by(|a, b| a.class.cmp(&b.class));
        Self { seen, classes }
    }
}

impl Show {
    fn run(self) -> Result<Status> {
        let seen = andante_net::seen()?;
        let paths = match seen.is_empty() {
            true => HashMap::new(),
            false => class_paths()?,
        };
        let devices: Vec<_> = seen
            .into_iter()
            .map(|one| Device::of(one, &paths))
            .collect();
        let receive = receive::placed()?;
        if self.json {
            output::print_json(&Report { devices, receive })?;
        } else {
            output::print(&render(&devices, &receive))?;
        }
        Ok(Status::Ok)
    }
}

#[cfg(test)]
mod tests {
    use andante_net::{Delay, Promised};
    use unicode_width::UnicodeWidthStr;

    use super::*;

    fn seen() -> Seen {
        let class = |cgroup_id, weight, packets| andante_net::Class {
            cgroup_id,
            weight: Some(weight),
            packets,
            delay: (packets > 0).then_some(Delay {
                p50_below_us: 512,
                p99_below_us: 4096,
            }),
            ..Default::default()
        };
        Seen {
            device: "eth0".into(),
            rate_bits: Some(10_000_000),
            largest_segment: Some(3348),
            replaced: None,
            queues: 1,
            waiting: 3,
            classes: vec![
                class(0, 100, 0),
                class(7, 300, 12),
                class(8, 0, 1),
                class(9, 1, 0),
            ],
        }
    }

    fn device() -> Device {
        let paths = [(7, "/film".to_owned()), (8, "/batch".to_owned())];
        Device::of(seen(), &paths.into())
    }

    #[test]
    fn classes_have_their_paths_and_columns_are_aligned() {
        let text = render(&[device()], &[]);
        let text = anstream::adapter::strip_str(&text).to_string();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "eth0: 10mbit at most, 3 packets wait");
        let first = |at: usize| lines[at].split_whitespace().take(2).collect::<Vec<_>>();
        assert_eq!(first(2), ["(gone)", "1"]);
        assert_eq!(first(3), ["/", "-"]);
        assert_eq!(first(4), ["/batch", "idle"]);
        assert_eq!(first(5), ["/film", "300"]);
        assert!(lines[5].contains("<512 µs <4.10 ms"), "{text}");
        assert!(
            lines[1..]
                .iter()
                .all(|line| line.width() == lines[1].width()),
            "{text}"
        );
    }

    #[test]
    fn the_longest_figures_fit_eighty_columns() {
        let mut device = device();
        device.seen.classes = Vec::new();
        let long = &mut device.classes[3];
        long.class = Some("/user.slice/user-1000.slice/film".into());
        let most = 999_500_000_000;
        long.seen = andante_net::Class {
            cgroup_id: 7,
            weight: Some(10_000),
            waiting: 4096,
            packets: most,
            bytes: most,
            dropped_late: most,
            dropped_crowded: most,
            promised: Some(Promised {
                bytes: 4_000_000_000,
                period_ns: 4_290_000_000,
            }),
            promised_bytes: most,
            promised_until: Some(andante_net::Process {
                pid: u32::MAX,
                started: 0,
            }),
            delay: Some(Delay {
                p50_below_us: 1 << 20,
                p99_below_us: 1 << 32,
            }),
            ..Default::default()
        };
        let text = anstream::adapter::strip_str(&render(&[device], &[])).to_string();
        let widths: Vec<_> = text.lines().map(UnicodeWidthStr::width).collect();
        assert!(widths.iter().all(|width| *width <= 80), "{text}");
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[5], "/user.slice/user-1000.slice/film");
        assert_eq!(lines[6].width(), lines[4].width(), "{text}");
        assert!(lines[7].starts_with("  promised 7.459gbit/4.29s"), "{text}");
        assert_eq!(lines[8], "  until 4294967295 ends", "{text}");
    }

    #[test]
    fn json_has_the_path_beside_what_was_counted() {
        let json = serde_json::to_value(device()).unwrap();
        assert_eq!(json["rate_bits"], 10_000_000);
        let film = &json["classes"][3];
        assert_eq!(film["class"], "/film");
        assert_eq!(film["packets"], 12);
        assert_eq!(film["delay"]["p99_below_us"], 4096);
        assert_eq!(json["classes"][0]["class"], serde_json::Value::Null);
    }

    #[test]
    fn a_device_that_lost_the_discipline_says_the_way_out() {
        let mut lost = seen();
        lost.queues = 0;
        let text = render(&[Device::of(lost, &HashMap::new())], &[]);
        assert!(text.contains("andante net detach"), "{text}");
        assert!(render(&[], &[]).contains("andante net attach DEVICE"));
    }
}
