// SPDX-License-Identifier: GPL-2.0
//! Devices of ours, whoever serves them: found, stopped and removed.

use std::io;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use crate::abi::{self, DeviceInfo};
use crate::backing;
use crate::control::{Control, numbers};
use crate::error::{DiskError, io_error};
use crate::kept;
use crate::note::{self, Note};
use crate::{SECTOR, users};

/// `"An"` above the 48 bits of a backing's identity.
pub(crate) const MARK: u64 = 0x416e << 48;
/// Between tries, where the kernel tells of no end [ms]: what an answer of a disk takes.
pub(crate) const TRY_AGAIN: Duration = Duration::from_millis(5);

pub(crate) fn block_device(device: u32) -> String {
    format!("/dev/ublkb{device}")
}

/// Its number, if it is there (`st_rdev`).
pub(crate) fn number_of(device: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/sys/block/ublkb{device}/dev")).ok()?;
    let (major, minor) = text.trim().split_once(':')?;
    Some(libc::makedev(major.parse().ok()?, minor.parse().ok()?))
}

/// Stops a device that nobody has.
pub(crate) fn stop(control: &mut Control, device: u32, force: bool) -> Result<(), DiskError> {
    let in_use = |by| DiskError::InUse {
        device: block_device(device),
        by,
    };
    if !force && let Some(by) = number_of(device).and_then(users::of_device) {
        return Err(in_use(Some(by)));
    }
    match control.stop(device, force) {
        Err(error) if error.raw_os_error() == Some(libc::EBUSY) => Err(in_use(None)),
        done => done.map_err(io_error(format!("stop {}", block_device(device)))),
    }
}

/// Has the process that serves this device end so: it must have the file of requests open.
pub(crate) fn serves(info: &DeviceInfo) -> bool {
    let open = std::fs::read_dir(format!("/proc/{}/fd", info.server));
    let node = format!("/dev/ublkc{}", info.device);
    let mut links = open.into_iter().flatten().flatten();
    links.any(|fd| std::fs::read_link(fd.path()).is_ok_and(|link| link == Path::new(&node)))
}

/// The device of what is at that path: itself, or what it is attached as.
pub(crate) fn find(control: &mut Control, path: &Path) -> Result<Option<DeviceInfo>, DiskError> {
    let name = path.file_name().and_then(|name| name.to_str());
    let device = name.and_then(|name| name.strip_prefix("ublkb")?.parse().ok());
    let identity = backing::identity_of(path).ok();
    for number in numbers() {
        let Ok(info) = control.info(number) else {
            continue;
        };
        let its = identity.is_some_and(|identity| info.own_flags == MARK | identity);
        if its || (is_ours(&info) && device == Some(number)) {
            return Ok(Some(info));
        }
    }
    Ok(None)
}

/// The number of a device that is attached, named by its path or its backing's, and what tells it from others.
pub(crate) fn known(path: &Path) -> Result<(u32, u64), DiskError> {
    let mut control = Control::open()?;
    let info = find(&mut control, path)?;
    let info = info.ok_or_else(|| DiskError::NotAttached(path.display().to_string()))?;
    Ok((info.device, info.own_flags))
}

fn is_ours(info: &DeviceInfo) -> bool {
    info.own_flags >> 48 == MARK >> 48
}

/// Takes a device off, by its own path or that of its backing, and waits until it is gone. By force also if it is in use,
/// or if requests wait that nobody will serve.
///
/// # Errors
/// [`DiskError`]; it is as before then.
pub fn detach(path: &Path, force: bool) -> Result<String, DiskError> {
    let mut control = Control::open()?;
    let found = find(&mut control, path)?;
    let info = found.ok_or_else(|| DiskError::NotAttached(path.display().to_string()))?;
    let device = info.device;
    let served = serves(&info);
    if info.state != abi::DEAD {
        let stopped = stop(&mut control, device, force);
        match stopped {
            Err(DiskError::InUse { .. }) if !served => {
                return Err(DiskError::Waiting {
                    device: block_device(device),
                });
            }
            stopped => stopped?,
        }
    }
    note::remove(device);
    kept::remove(device);
    // Its server removes it, if it lives.
    let removed = match served {
        true => gone(&mut control, &info),
        false => delete(&mut control, device),
    };
    removed.map_err(io_error(format!("remove {}", block_device(device))))?;
    Ok(block_device(device))
}

/// Removes it, unless somebody else has.
pub(crate) fn delete(control: &mut Control, device: u32) -> io::Result<()> {
    match control.delete(device) {
        Err(error) if error.raw_os_error() != Some(libc::ENODEV) => Err(error),
        _ => Ok(()),
    }
}

/// Waits until a server has removed its device; if that ends without it is removed here.
fn gone(control: &mut Control, info: &DeviceInfo) -> io::Result<()> {
    loop {
        match control.info(info.device) {
            Ok(now) if now.own_flags == info.own_flags => {}
            // It is gone, or the number is another's.
            _ => return Ok(()),
        }
        if !serves(info) {
            return delete(control, info.device);
        }
        std::thread::sleep(TRY_AGAIN);
    }
}

/// A device that was attached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Found {
    /// Its block device.
    pub device: String,
    /// Its size [bytes].
    pub bytes: u64,
    /// Requests that are known at once.
    pub requests: u16,
    /// The process that serves it; none: it was killed, and requests wait.
    pub server: Option<i32>,
    /// How it is served, if that was written down.
    #[serde(flatten)]
    pub note: Option<Note>,
}

/// All devices that were attached.
///
/// # Errors
/// [`DiskError`]: the caller is not root, or there is no ublk.
pub fn found() -> Result<Vec<Found>, DiskError> {
    let mut control = Control::open()?;
    let mut all = Vec::new();
    for number in numbers() {
        let Ok(info) = control.info(number) else {
            continue;
        };
        if !is_ours(&info) || info.state == abi::DEAD {
            continue;
        }
        let served = serves(&info);
        let sectors = control.params(number).map(|params| params.basic.sectors);
        all.push(Found {
            device: block_device(number),
            bytes: sectors.unwrap_or(0) * SECTOR,
            requests: info.depth,
            server: served.then_some(info.server),
            note: note::read(number, info.own_flags),
        });
    }
    Ok(all)
}
