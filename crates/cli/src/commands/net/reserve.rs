// SPDX-License-Identifier: GPL-2.0
//! `andante net reserve` and `release`: contracts of classes on a device.

use andante_admission::link::{LinkAnswer, LinkRefusal};
use andante_net::{Holder, Promised, Rate};
use andante_sched::class::ClassPath;
use andante_sched::text::shown;
use andante_terminal::exit::Status;
use andante_terminal::output;
use anyhow::Result;
use clap::Args;

use super::{Budget, class_at};

/// Promise a class so much of a device: its packets leave before others'.
///
/// The promise is a budget of bytes in every period, headers included, and a packet within it waits for one that
/// was begun at most. What the class sends beyond has its share. It is admitted only if all that is promised on
/// the device is kept with it, and a fifth is left to others; else the nearest that would be is told.
#[derive(Args)]
#[command(after_long_help = "\
The device must have been attached with a rate. The budget is what the rate gives in the period: 2mbit/10ms is 2500 \
bytes in every 10 ms. Asked again, a class has the new promise and not the old one. It holds until it is released or the \
device is detached.

Examples:
  sudo andante net reserve eth0 /user.slice/film 2mbit/10ms
  sudo andante net reserve eth0 /call 200kbit/20ms
  sudo andante net release eth0 /call")]
pub struct Reserve {
    /// The device.
    device: String,
    /// The path of the class's cgroup.
    #[arg(value_parser = ClassPath::parse)]
    class: ClassPath,
    /// How much in which period: 2mbit/10ms.
    #[arg(value_name = "RATE/PERIOD")]
    budget: Budget,
    /// Print the answer as JSON.
    #[arg(long)]
    json: bool,
}

/// End what a class is promised of a device.
#[derive(Args)]
#[command(after_help = "Example:\n  sudo andante net release eth0 /call")]
pub struct Release {
    /// The device.
    device: String,
    /// The path of the class's cgroup.
    #[arg(value_parser = ClassPath::parse)]
    class: ClassPath,
}

impl Reserve {
    /// Does it.
    pub fn run(self) -> Result<Status> {
        let (cgroup_id, paths) = class_at(&self.class)?;
        let path = self.class.to_text();
        let holder = Holder {
            cgroup_id,
            path: &path,
        };
        let answer = andante_net::reserve(&self.device, holder, self.budget.0, None, &paths)?;
        if self.json {
            output::print_json(&answer)?;
        }
        let (class, device) = (shown(&path), shown(&self.device));
        let LinkAnswer::Refused(refusal) = answer else {
            if !self.json {
                output::print(&format!(
                    "{class} is promised {} of {device}.\n",
                    self.budget
                ))?;
            }
            return Ok(Status::Ok);
        };
        if !self.json {
            output::print(&offers(&class, &device, self.budget, &refusal))?;
        }
        Ok(Status::ContractRefused)
    }
}

/// Why not, and what would do.
pub fn offers(class: &str, device: &str, asked: Budget, refusal: &LinkRefusal) -> String {
    let Promised { bytes, period_ns } = asked.0;
    let held = Rate::of_bytes(refusal.held_rate);
    let held = held.map_or("nothing".to_owned(), |rate| rate.to_string());
    let mut text =
        format!("{class} cannot be promised {asked} of {device}, of which {held} is promised.\n");
    let offers = [
        refusal
            .most_bytes
            .map(|bytes| Promised { bytes, period_ns }),
        refusal
            .shortest_period_ns
            .map(|period_ns| Promised { bytes, period_ns }),
    ];
    if offers.iter().all(Option::is_none) {
        text += "  Nothing would be admitted beside what is promised there: a release, or longer periods, make room.\n";
    }
    for offer in offers.into_iter().flatten() {
        text += &format!("  {} would be admitted.\n", Budget(offer));
    }
    text
}

impl Release {
    /// Does it.
    pub fn run(self) -> Result<Status> {
        let (cgroup_id, _) = class_at(&self.class)?;
        let had = andante_net::release(&self.device, cgroup_id)?;
        let (class, device) = (self.class.to_string(), shown(&self.device));
        let class = shown(&class);
        if !had {
            output::warn(&format!("{class} is promised nothing of {device}"));
            return Ok(Status::UnknownContract);
        }
        output::print(&format!("{class} has its share of {device}.\n"))?;
        Ok(Status::Ok)
    }
}
