// SPDX-License-Identifier: GPL-2.0
//! `andante disk reserve`, `release` and `weigh`: what classes have of a disk.

use std::path::PathBuf;

use andante_admission::Duration;
use andante_admission::disk::{DiskAnswer, DiskRefusal, DiskTerms};
use andante_disk::{release, reserve, weigh};
use andante_sched::class::ClassPath;
use andante_sched::text::shown;
use andante_terminal::exit::Status;
use andante_terminal::output;
use anyhow::Result;
use clap::Args;

use crate::commands::net::class_at;

/// Promise a class so much of a disk: it is read or written before others'.
///
/// The promise is a budget of bytes in every period. It is admitted only if all that is promised of the disk is kept
/// with it, whatever way the arm has to go, and a fifth of its time is left to others; else the nearest that would be is told.
/// Beyond the budget the class has its share.
#[derive(Args)]
#[command(after_long_help = "\
The device must have been attached with --order cello. A program that asks once in every period is in time. One that asks at any \
other time may find a request of others begun, which cannot be called back: how late it may be then is said.

Asked again, a class has the new promise and not the old one. It holds until it is released or the device is detached.

Examples:
  sudo andante disk reserve /dev/ublkb0 /user.slice/film 64K/33.3ms
  sudo andante disk release /dev/ublkb0 /user.slice/film")]
pub struct Reserve {
    /// The device, or what it is attached to.
    #[arg(value_name = "DEVICE|FILE")]
    device: PathBuf,
    /// The path of the class's cgroup.
    #[arg(value_parser = ClassPath::parse)]
    class: ClassPath,
    /// How much in which period: 64K/33.3ms.
    #[arg(value_name = "BYTES/PERIOD")]
    terms: DiskTerms,
    /// Print the answer as JSON.
    #[arg(long)]
    json: bool,
}

/// End what a class is promised of a disk.
#[derive(Args)]
#[command(after_help = "Example:\n  sudo andante disk release /dev/ublkb0 /user.slice/film")]
pub struct Release {
    /// The device, or what it is attached to.
    #[arg(value_name = "DEVICE|FILE")]
    device: PathBuf,
    /// The path of the class's cgroup.
    #[arg(value_parser = ClassPath::parse)]
    class: ClassPath,
}

/// Give a class a weight of a disk other than that of the CPU.
#[derive(Args)]
#[command(after_help = "\
Examples:
  sudo andante disk weigh /dev/ublkb0 /backup 10
  sudo andante disk weigh /dev/ublkb0 /backup cpu          as it has of the CPU again")]
pub struct Weigh {
    /// The device, or what it is attached to.
    #[arg(value_name = "DEVICE|FILE")]
    device: PathBuf,
    /// The path of the class's cgroup.
    #[arg(value_parser = ClassPath::parse)]
    class: ClassPath,
    /// 1 to 10000, 100 being usual; or `cpu`: that of the CPU.
    #[arg(value_name = "WEIGHT|cpu", value_parser = weight)]
    weight: Weight,
}

#[derive(Debug, Clone, Copy)]
struct Weight(Option<u32>);

fn weight(text: &str) -> Result<Weight, String> {
    let no = || format!("`{text}` is no weight: give 1 to 10000, or `cpu` for that of the CPU");
    if text == "cpu" {
        return Ok(Weight(None));
    }
    let weight: u32 = text.parse().map_err(|_| no())?;
    match weight {
        1..=10_000 => Ok(Weight(Some(weight))),
        _ => Err(no()),
    }
}

impl Reserve {
    /// Does it.
    pub fn run(self) -> Result<Status> {
        let (cgroup, paths) = class_at(&self.class)?;
        let path = self.class.to_text();
        let there = |id| paths.contains_key(&id);
        let answer = reserve(&self.device, cgroup, &path, self.terms, there)?;
        if self.json {
            output::print_json(&answer)?;
        }
        let device = self.device.display().to_string();
        let (class, device, terms) = (shown(&path), shown(&device), self.terms);
        let (text, status) = match &answer {
            DiskAnswer::Admitted { late_at_most_ns } => (
                format!(
                    "{class} is promised {terms} of {device}.\n{}",
                    worth(*late_at_most_ns)
                ),
                Status::Ok,
            ),
            DiskAnswer::Refused(refusal) => (
                offers(&class, &device, terms, refusal),
                Status::ContractRefused,
            ),
        };
        if !self.json {
            output::print(&text)?;
        }
        Ok(status)
    }
}

/// The worth of a promise where no request is expected.
fn worth(late_at_most_ns: u64) -> String {
    match late_at_most_ns {
        0 => String::new(),
        ns => format!(
            "  In time if it asks once in every period; at any other time it may wait for a request that was begun, up to {} \
             longer.\n",
            Duration(ns.next_multiple_of(1_000_000))
        ),
    }
}

/// Why not, and what would do.
fn offers(class: &str, device: &str, asked: DiskTerms, refusal: &DiskRefusal) -> String {
    let held = f64::from(refusal.held_per_mille) / 10.0;
    let mut text = format!(
        "{class} cannot be promised {asked} of {device}, of whose time {held:.0} % is promised.\n"
    );
    let DiskTerms { bytes, period_ns } = asked;
    let offers = [
        (refusal.most_bytes).map(|bytes| DiskTerms { bytes, period_ns }),
        (refusal.shortest_period_ns).map(|period_ns| DiskTerms { bytes, period_ns }),
    ];
    if offers.iter().all(Option::is_none) {
        text += "  Nothing would be admitted beside what is promised there: a release, or longer periods, make room.\n";
    }
    for offer in offers.into_iter().flatten() {
        text += &format!("  {offer} would be admitted.\n");
    }
    text
}

impl Release {
    /// Does it.
    pub fn run(self) -> Result<Status> {
        let (cgroup, paths) = class_at(&self.class)?;
        let had = release(&self.device, cgroup, |id| paths.contains_key(&id))?;
        let (class, device) = (self.class.to_string(), self.device.display().to_string());
        let (class, device) = (shown(&class), shown(&device));
        if !had {
            output::warn(&format!("{class} is promised nothing of {device}"));
            return Ok(Status::UnknownContract);
        }
        output::print(&format!("{class} has its share of {device}.\n"))?;
        Ok(Status::Ok)
    }
}

impl Weigh {
    /// Does it.
    pub fn run(self) -> Result<Status> {
        let (cgroup, paths) = class_at(&self.class)?;
        let path = self.class.to_text();
        let there = |id| paths.contains_key(&id);
        weigh(&self.device, cgroup, &path, self.weight.0, there)?;
        let device = self.device.display().to_string();
        let (class, device) = (shown(&path), shown(&device));
        output::print(&match self.weight.0 {
            Some(weight) => format!("{class} has the weight {weight} of {device}.\n"),
            None => format!("{class} has the weight of {device} that it has of the CPU.\n"),
        })?;
        Ok(Status::Ok)
    }
}
