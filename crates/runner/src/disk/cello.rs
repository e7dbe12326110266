//! Andante's own order over the disk: a second device above the first, and what classes are promised of it.

use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use andante_admission::disk::DiskTerms;
use andante_job::LabError;
use andante_scenario::{Disk, DriveKind, Workload};

use super::{Setup, end};
use crate::classes::Classes;

const NS_PER_MINUTE: f64 = 60e9;

/// The device above; it is taken off when this is dropped.
pub(super) struct Ordered {
    process: Child,
    /// Its block device.
    pub device: PathBuf,
}

impl Ordered {
    /// Has Andante serve the disk's requests in its order.
    pub fn begin(disk: &Disk, below: &Path, setup: &Setup) -> Result<Self, LabError> {
        let failed = |error| LabError::io("have andante order the disk's requests", error);
        let process = Command::new(&setup.andante)
            .args(["disk", "attach", "--order", "cello"])
            .args(known(disk))
            .arg(below)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn();
        let mut process = process.map_err(failed)?;
        let output = process.stdout.take().expect("it is piped");
        let mut line = String::new();
        let read = BufReader::new(output).read_line(&mut line).map_err(failed);
        let device = line.split_whitespace().next().unwrap_or_default();
        let ordered = Self {
            process,
            device: PathBuf::from(device),
        };
        read?;
        if device.is_empty() {
            // It has said why on the console.
            return Err(failed(io::Error::other("it said nothing")));
        }
        Ok(ordered)
    }

    /// Promises classes what the scenario reserves for them, and gives them their weights.
    pub fn share(
        &self,
        workload: &Workload,
        classes: &Classes,
        setup: &Setup,
    ) -> Result<(), LabError> {
        for class in &workload.classes {
            let path = classes.path_of(&class.path);
            if let Some(weight) = class.disk.weight {
                self.tell(setup, "weigh", &path, &weight.to_string())?;
            }
            if let Some(reserved) = class.disk.reserved {
                let terms = DiskTerms {
                    bytes: u32::try_from(reserved.bytes).unwrap_or(u32::MAX),
                    period_ns: reserved.period_ns,
                };
                self.tell(setup, "reserve", &path, &terms.to_string())?;
            }
        }
        Ok(())
    }

    fn tell(&self, setup: &Setup, what: &str, class: &str, how: &str) -> Result<(), LabError> {
        let failed = |error| LabError::io(format!("{what} a part of the disk for {class}"), error);
        let output = Command::new(&setup.andante)
            .args(["disk", what])
            .arg(&self.device)
            .args([class, how])
            .output()
            .map_err(failed)?;
        if output.status.success() {
            return Ok(());
        }
        let said = [output.stderr, output.stdout].concat();
        Err(failed(io::Error::other(
            String::from_utf8_lossy(&said).trim().to_owned(),
        )))
    }
}

impl Drop for Ordered {
    fn drop(&mut self) {
        end(&mut self.process);
    }
}

/// What Andante is told of the disk.
fn known(disk: &Disk) -> Vec<String> {
    let time = |ns: u64| format!("{ns}ns");
    let options = match disk.drive {
        DriveKind::Hdd {
            seek_ns,
            stroke_ns,
            turn_ns,
            rate,
            ..
        } => vec![
            ("--arm", "true".to_owned()),
            ("--seek", time(seek_ns)),
            ("--stroke", time(stroke_ns)),
            (
                "--turns-per-minute",
                (NS_PER_MINUTE / turn_ns as f64).round().to_string(),
            ),
            ("--rate", rate.to_string()),
        ],
        DriveKind::Flash {
            channels,
            read_ns,
            rate,
            ..
        } => vec![
            ("--arm", "false".to_owned()),
            ("--seek", time(read_ns)),
            ("--rate", (rate * u64::from(channels)).to_string()),
            ("--depth", disk.tags.to_string()),
        ],
    };
    let pairs = options.into_iter();
    pairs
        .flat_map(|(option, value)| [option.to_owned(), value])
        .collect()
}
