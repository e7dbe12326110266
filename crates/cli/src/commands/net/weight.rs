// SPDX-License-Identifier: GPL-2.0
//! `andante net weight`: weights that classes have on a device alone.

use std::collections::BTreeMap;

use andante_sched::class::{ClassError, ClassPath, Tree, WEIGHT_MAX, WEIGHT_MIN};
use andante_sched::text::shown;
use andante_terminal::exit::{Refusal, Status};
use andante_terminal::output;
use anyhow::Result;
use clap::Args;

use super::class_at;

/// Give a class a weight on a device other than the CPU's.
///
/// It holds at once, and until the device is detached or the class is gone. Without it packets go by the weight that
/// the class has of the CPU (`andante class set`).
#[derive(Args)]
#[command(
    override_usage = "andante net weight <DEVICE> <CLASS> <WEIGHT|default>\n       \
                      andante net weight --all <CLASS> <WEIGHT|default>",
    after_long_help = "\
The class is the path of its cgroup, the weight a number from 1 to 10000, or `default`: that of the CPU holds again. \
Weights that hold from the beginning are in /etc/andante.toml, where `andante net attach` reads it:
  [net.eth0.weights]
  \"/user.slice/film\" = 300
A class that is not there when the device is attached has the weight of the CPU until it is given another.

Examples:
  sudo andante net weight eth0 /user.slice/film 300
  sudo andante net weight --all /backup 10
  sudo andante net weight eth0 /user.slice/film default"
)]
pub(super) struct Weight {
    /// On all devices that are attached.
    #[arg(long)]
    all: bool,
    /// The device, unless it is all; the path of the class's cgroup; its weight, or `default`.
    #[arg(required = true, num_args = 2..=3, value_names = ["DEVICE", "CLASS", "WEIGHT"])]
    words: Vec<String>,
}

impl Weight {
    pub(super) fn run(self) -> Result<Status> {
        let (device, class, weight) = told(self.all, &self.words)?;
        let devices = match device {
            Some(device) => vec![device],
            None => andante_net::attached()?,
        };
        if devices.is_empty() {
            let message = "Andante is on no network device: sudo andante net attach DEVICE";
            return Err(Refusal::new(Status::NoDevice, message).into());
        }
        for device in devices {
            weigh(&device, &class, weight)?;
            let (device, class) = (shown(&device), class.to_string());
            let class = shown(&class);
            output::print(&match weight {
                Some(weight) => format!("{class} has the weight {weight} on {device}.\n"),
                None => format!("{class} has the weight on {device} that it has of the CPU.\n"),
            })?;
        }
        Ok(Status::Ok)
    }
}

/// The device, or none for all; the class; its weight, or none for that of the CPU.
fn told(all: bool, words: &[String]) -> Result<(Option<String>, ClassPath, Option<u32>)> {
    let (device, class, weight) = match (all, words) {
        (true, [class, weight]) => (None, class, weight),
        (false, [device, class, weight]) => (Some(device.clone()), class, weight),
        _ => {
            let message = "say a device or --all, a class and its weight: \
                           andante net weight eth0 /film 300";
            return Err(Refusal::new(Status::Usage, message).into());
        }
    };
    let class = ClassPath::parse(class)?;
    if class.is_root() {
        let what = "has no weight";
        return Err(ClassError::IsRoot { what }.into());
    }
    if weight == "default" {
        return Ok((device, class, None));
    }
    let Ok(weight) = weight.parse() else {
        let message = format!(
            "`{}` is no weight: give a number, or `default`",
            shown(weight)
        );
        return Err(Refusal::new(Status::Usage, message).into());
    };
    match u32::try_from(weight) {
        Ok(weight) if (WEIGHT_MIN..=WEIGHT_MAX).contains(&weight) => {
            Ok((device, class, Some(weight)))
        }
        _ => Err(ClassError::BadWeight(weight).into()),
    }
}

fn weigh(device: &str, class: &ClassPath, weight: Option<u32>) -> Result<()> {
    let (cgroup_id, paths) = class_at(class)?;
    // Without a weight of the CPU's its packets are those of the class above.
    if Tree::open()?.show(class)?.weight.is_none() {
        let message = format!(
            "{class} has no weight of the CPU, and its packets are of the class above: \
             `andante class set {class} --weight 100` makes it one"
        );
        return Err(Refusal::new(Status::UnknownClass, message).into());
    }
    Ok(andante_net::weigh(device, cgroup_id, weight, &paths)?)
}

/// The weights of a file hold from the beginning on, as far as the classes are there.
pub(super) fn weigh_all(device: &str, weights: &BTreeMap<ClassPath, u32>) -> Result<()> {
    for (class, weight) in weights {
        match weigh(device, class, Some(*weight)) {
            Ok(()) => {}
            Err(error) if Status::UnknownClass == andante_terminal::exit::status_of(&error) => {
                let device = shown(device);
                output::warn(&format!(
                    "{class} is to have the weight {weight} on {device}, and is no class yet: when it is, \
                     `andante net weight {device} {class} {weight}`"
                ));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn a_device_or_all_of_them_and_a_weight_or_the_cpus() {
        let film = ClassPath::parse("/film").unwrap();
        let (device, class, weight) = told(false, &words("eth0 film 300")).unwrap();
        assert_eq!((device.as_deref(), weight), (Some("eth0"), Some(300)));
        assert_eq!(class, film);
        let (device, class, weight) = told(true, &words("/film default")).unwrap();
        assert_eq!((device, class, weight), (None, film, None));
    }

    #[test]
    fn mistakes_are_told_by_their_kind() {
        for (all, text, status) in [
            (true, "eth0 /film 300", Status::Usage),
            (false, "/film 300", Status::Usage),
            (false, "eth0 /film much", Status::Usage),
            (false, "eth0 / 300", Status::Usage),
            (false, "eth0 /film 0", Status::BadWeight),
            (false, "eth0 /film 10001", Status::BadWeight),
            (false, "eth0 /film -4", Status::BadWeight),
        ] {
            let error = told(all, &words(text)).unwrap_err();
            assert_eq!(
                andante_terminal::exit::status_of(&error),
                status,
                "{text}: {error}"
            );
        }
    }
}
