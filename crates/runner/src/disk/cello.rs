//! Andante's own order over the disk: a second device above the first, and what classes are promised of it.

use std::io;
use std::path::Path;
use std::process::Command;

use andante_admission::disk::DiskTerms;
use andante_job::LabError;
use andante_scenario::{Disk, DriveKind, Workload};

use super::{Server, Setup};
use crate::classes::Classes;

const NS_PER_MINUTE: f64 = 60e9;

/// Has Andante serve the disk's requests in its order.
pub(super) fn begin(disk: &Disk, below: &Path, setup: &Setup) -> Result<Server, LabError> {
    let mut command = Command::new(&setup.andante);
    command
        .args(["disk", "attach", "--order", "cello"])
        .args(known(disk))
        .arg(below);
    Server::start(&mut command, "have andante order the disk's requests")
}

/// Promises classes the part of the device that the scenario reserves for them, and gives them their weights.
pub(super) fn share(
    device: &Path,
    workload: &Workload,
    classes: &Classes,
    setup: &Setup,
) -> Result<(), LabError> {
    let tell = |what: &str, class: &str, how: &str| {
        let failed = |error| LabError::io(format!("{what} a part of the disk for {class}"), error);
        let output = Command::new(&setup.andante)
            .args(["disk", what])
            .arg(device)
            .args([class, how])
            .output()
            .map_err(failed)?;
        if output.status.success() {
            return Ok(());
        }
        let said = [output.stderr, output.stdout].concat();
        let said = String::from_utf8_lossy(&said).trim().to_owned();
        Err(failed(io::Error::other(said)))
    };
    for class in &workload.classes {
        let path = classes.path_of(&class.path);
        if let Some(weight) = class.disk.weight {
            tell("weigh", &path, &weight.to_string())?;
        }
        if let Some(reserved) = class.disk.reserved {
            let terms = DiskTerms {
                bytes: u32::try_from(reserved.bytes).unwrap_or(u32::MAX),
                period_ns: reserved.period_ns,
            };
            tell("reserve", &path, &terms.to_string())?;
        }
    }
    Ok(())
}

/// The figures of the disk that Andante is told.
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
