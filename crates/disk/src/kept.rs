// SPDX-License-Identifier: GPL-2.0
//! Settings of classes on a device, beside their weights of the CPU: told by commands, followed by its server.
//!
//! It is in a file, in the place of the machine's that ends with it: so it holds however often the server is killed, and
//! commands need no server to be there. A command changes it as a whole, and one at a time; the server reads it again
//! when it has been changed.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use andante_admission::disk::{DiskAnswer, DiskContract, DiskFigures, DiskSystem, DiskTerms};
use nix::fcntl::{Flock, FlockArg};
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use serde::{Deserialize, Serialize};

use crate::cello::{Promise, Setting, Settings};
use crate::devices::known;
use crate::error::{DiskError, io_error};
use crate::note::RUN;

/// The settings of a class on a device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassOnDisk {
    /// The path of its cgroup, when it was set.
    pub path: String,
    /// Its part of the disk, before others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promised: Option<DiskTerms>,
    /// A weight other than that of the CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
}

impl ClassOnDisk {
    fn setting(&self) -> Setting {
        Setting {
            promise: self.promised.map(|terms| Promise {
                bytes: terms.bytes,
                period_ns: terms.period_ns,
            }),
            weight: self.weight,
        }
    }
}

/// All that is set on a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// By which one that is out of date is told: another device had that number.
    identity: u64,
    /// The figures that contracts are admitted against; none: its order knows no contracts.
    pub figures: Option<DiskFigures>,
    /// By cgroup.
    pub classes: BTreeMap<u64, ClassOnDisk>,
}

fn path(device: u32) -> PathBuf {
    Path::new(RUN).join(format!("ublkb{device}.classes.json"))
}

fn read(device: u32, identity: u64) -> Option<Kept> {
    let kept: Kept = serde_json::from_slice(&fs::read(path(device)).ok()?).ok()?;
    (kept.identity == identity).then_some(kept)
}

/// Another file takes the place of the one that there was, so that nobody reads half of one.
fn write(device: u32, kept: &Kept) -> Result<(), DiskError> {
    let path = path(device);
    let fresh = path.with_extension("new");
    let bytes = serde_json::to_vec(kept).expect("plain data");
    fs::write(&fresh, bytes)
        .and_then(|()| fs::rename(&fresh, &path))
        .map_err(io_error(format!("write {}", path.display())))
}

pub(crate) fn remove(device: u32) {
    let _ = fs::remove_file(path(device));
}

/// A server begins to serve the device, whose figures these are: what was set for classes stays.
pub(crate) fn begin(
    device: u32,
    identity: u64,
    figures: Option<DiskFigures>,
) -> Result<Kept, DiskError> {
    let _alone = alone()?;
    let kept = Kept {
        identity,
        figures,
        classes: read(device, identity).map_or_else(BTreeMap::new, |kept| kept.classes),
    };
    write(device, &kept)?;
    Ok(kept)
}

/// One command at a time.
fn alone() -> Result<Flock<fs::File>, DiskError> {
    let failed = || io_error(format!("write {RUN}"));
    fs::create_dir_all(RUN).map_err(failed())?;
    let file = fs::File::create(Path::new(RUN).join("commands")).map_err(failed())?;
    let locked = Flock::lock(file, FlockArg::LockExclusive);
    locked.map_err(|(_, errno)| failed()(errno.into()))
}

/// All settings on a device, named by its path or that of its backing.
///
/// # Errors
/// [`DiskError`]: there is no such device.
pub fn kept(device: &Path) -> Result<Kept, DiskError> {
    let (number, identity) = known(device)?;
    read(number, identity).ok_or_else(|| DiskError::NotOrdered(device.display().to_string()))
}

/// Changes it; those of cgroups that `is_there` does not know are forgotten.
fn change<T>(
    device: &Path,
    is_there: impl Fn(u64) -> bool,
    change: impl FnOnce(&mut Kept) -> Result<T, DiskError>,
) -> Result<T, DiskError> {
    let _alone = alone()?;
    let (number, _) = known(device)?;
    let mut all = kept(device)?;
    all.classes.retain(|cgroup, _| is_there(*cgroup));
    let result = change(&mut all)?;
    all.classes
        .retain(|_, class| class.promised.is_some() || class.weight.is_some());
    write(number, &all)?;
    Ok(result)
}

/// Promises a class a part of a device, if there is room for it beside what others were promised.
///
/// # Errors
/// [`DiskError`]: there is no such device, or nothing of the kind can be asked.
pub fn reserve(
    device: &Path,
    cgroup: u64,
    class: &str,
    terms: DiskTerms,
    is_there: impl Fn(u64) -> bool,
) -> Result<DiskAnswer, DiskError> {
    change(device, is_there, |kept| {
        let figures = kept.figures;
        let figures = figures.ok_or_else(|| DiskError::NotOrdered(device.display().to_string()))?;
        let mut system = DiskSystem::new(figures);
        for (other, had) in &kept.classes {
            if let (Some(terms), true) = (had.promised, *other != cgroup) {
                system.hold(DiskContract {
                    name: had.path.clone(),
                    terms,
                });
            }
        }
        let asked = DiskContract {
            name: class.to_owned(),
            terms,
        };
        let answer = system.ask(&asked).map_err(DiskError::Contract)?;
        if let DiskAnswer::Admitted { .. } = answer {
            let had = kept.classes.entry(cgroup).or_default();
            class.clone_into(&mut had.path);
            had.promised = Some(terms);
        }
        Ok(answer)
    })
}

/// Ends what a class was promised of a device; whether it was promised anything.
///
/// # Errors
/// [`DiskError`]: there is no such device.
pub fn release(
    device: &Path,
    cgroup: u64,
    is_there: impl Fn(u64) -> bool,
) -> Result<bool, DiskError> {
    change(device, is_there, |kept| {
        let class = kept.classes.get_mut(&cgroup);
        Ok(class.is_some_and(|class| class.promised.take().is_some()))
    })
}

/// Gives a class a weight of its own on a device; none: that of the CPU holds again.
///
/// # Errors
/// [`DiskError`]: there is no such device.
pub fn weigh(
    device: &Path,
    cgroup: u64,
    class: &str,
    weight: Option<u32>,
    is_there: impl Fn(u64) -> bool,
) -> Result<(), DiskError> {
    change(device, is_there, |kept| {
        let had = kept.classes.entry(cgroup).or_default();
        class.clone_into(&mut had.path);
        had.weight = weight;
        Ok(())
    })
}

/// Has the order follow what commands set.
pub struct Following {
    device: u32,
    identity: u64,
    changes: Inotify,
    settings: Arc<Settings>,
}

impl Following {
    pub(crate) fn begin(
        device: u32,
        identity: u64,
        figures: Option<DiskFigures>,
        settings: Arc<Settings>,
    ) -> Result<Self, DiskError> {
        let changes = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC);
        let changes = changes.map_err(|errno| io_error("watch settings")(errno.into()))?;
        let kept = begin(device, identity, figures)?;
        let watched = changes.add_watch(RUN, AddWatchFlags::IN_MOVED_TO);
        watched.map_err(|errno| io_error("watch settings")(io::Error::from(errno)))?;
        let following = Self {
            device,
            identity,
            changes,
            settings,
        };
        following.take(&kept);
        // What has been set between the two is seen here.
        following.see();
        Ok(following)
    }

    fn take(&self, kept: &Kept) {
        let all = kept.classes.iter();
        self.settings
            .set(all.map(|(id, class)| (*id, class.setting())).collect());
    }

    /// Can be read when [`Following::see`] is worth calling.
    #[must_use]
    pub fn changes(&self) -> BorrowedFd<'_> {
        self.changes.as_fd()
    }

    /// Reads again what is set.
    pub fn see(&self) {
        while self.changes.read_events().is_ok() {}
        if let Some(kept) = read(self.device, self.identity) {
            self.take(&kept);
        }
    }
}
