// SPDX-License-Identifier: GPL-2.0
//! What a device was like before its packets were placed: kept in a file while they are, so that it can be
//! put back whatever becomes of the process.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, fcntl};
use serde::{Deserialize, Serialize};

use super::device::Device;
use super::{Hook, Order, ReceiveError};
use crate::device::name_of;
use crate::kept::namespace;

/// Where the files are, one for each device: NAMESPACE-IFINDEX.json, as each network namespace has devices of
/// its own.
const FOLDER: &str = "/run/andante/net";
const CGROUPS: &str = "/sys/fs/cgroup";

/// A thread that takes packets, before we moved it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thread {
    /// Which.
    pub pid: i32,
    /// The path of its cgroup, below the root; nothing, if that could not be read.
    pub cgroup: Option<String>,
    /// How nice it was.
    pub nice: i32,
}

impl Thread {
    pub(super) fn of(pid: i32) -> Self {
        let told = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        let cgroup = told.lines().find_map(|line| line.strip_prefix("0::"));
        Self {
            pid,
            cgroup: cgroup.map(str::to_owned),
            // SAFETY: no pointers.
            nice: unsafe { libc::getpriority(libc::PRIO_PROCESS, pid.cast_unsigned()) },
        }
    }

    fn folder(&self) -> Option<PathBuf> {
        let cgroup = self.cgroup.as_ref()?;
        Some(Path::new(CGROUPS).join(cgroup.trim_start_matches('/')))
    }

    /// Threads that take packets end when their device goes down.
    pub(super) fn is_there(&self) -> bool {
        Path::new(&format!("/proc/{}", self.pid)).exists()
    }

    pub(super) fn is_in(&self, class: &Path) -> bool {
        let same = |folder: PathBuf| {
            let [of_thread, class] = [&folder, class].map(fs::canonicalize);
            matches!((of_thread, class), (Ok(one), Ok(other)) if one == other)
        };
        self.folder().is_some_and(same)
    }
}

/// The changes made to a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placed {
    /// The class that does the work: the folder of its cgroup.
    pub class: PathBuf,
    /// When it does.
    pub order: Order,
    /// Where packets are dropped early.
    pub hook: Hook,
    /// The kernel's number of the map of what was dropped early, which ends with the process.
    pub dropped: Option<u32>,
    /// The process.
    pub pid: u32,
}

/// A device, before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// Its name, then.
    pub device: String,
    /// Its number: another of that name has another.
    pub ifindex: u32,
    /// Was it done by threads? As the kernel writes it.
    pub threaded: String,
    /// Were packets put together? Nothing: it could not be asked.
    pub gro: Option<bool>,
    /// The threads that there were.
    pub threads: Vec<Thread>,
}

impl State {
    fn of(device: &Device) -> Result<Self, ReceiveError> {
        let threads = device.threads()?;
        Ok(Self {
            device: device.name.clone(),
            ifindex: device.index,
            threaded: device.threaded()?,
            gro: device.gro()?,
            threads: threads.into_iter().map(Thread::of).collect(),
        })
    }

    fn put_back(&self) -> Result<(), ReceiveError> {
        // It may be called otherwise by now. If it is gone, so is all that was set of it.
        let named = name_of(self.ifindex).and_then(|name| Device::named(&name).ok());
        let Some(device) = named else {
            return Ok(());
        };
        let now = device.threads()?;
        // Those that stay, on kernels where threads do, belong to nobody.
        for pid in now {
            let before = self.threads.iter().find(|thread| thread.pid == pid);
            let folder = before.and_then(Thread::folder);
            let folder = folder.unwrap_or_else(|| CGROUPS.into());
            move_thread(pid, &folder)
                .or_else(|_| move_thread(pid, Path::new(CGROUPS)))
                .and_then(|()| set_nice(pid, before.map_or(0, |thread| thread.nice)))
                .map_err(|source| device.failed("put back the threads of", source))?;
        }
        if device.threaded()? != self.threaded {
            device.set_threaded(&self.threaded)?;
        }
        match self.gro {
            Some(gro) if device.gro()? != Some(gro) => device.set_gro(gro),
            _ => Ok(()),
        }
    }
}

/// A thread that has just been made may not be moved (EINVAL) until it has run for the first time.
const RUNS: Duration = Duration::from_secs(1);

pub(super) fn move_thread(pid: i32, class: &Path) -> io::Result<()> {
    let begun = Instant::now();
    loop {
        match fs::write(class.join("cgroup.procs"), pid.to_string()) {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) && begun.elapsed() < RUNS => {
                thread::sleep(Duration::from_millis(1));
            }
            moved => return moved,
        }
    }
}

pub(super) fn set_nice(pid: i32, nice: i32) -> io::Result<()> {
    // SAFETY: no pointers.
    match unsafe { libc::setpriority(libc::PRIO_PROCESS, pid.cast_unsigned(), nice) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A state in its file, which is locked while this lives.
pub(super) struct Kept {
    state: State,
    path: PathBuf,
    file: File,
}

impl Kept {
    /// Writes down what the device is like; if there is a file of a process that is dead, puts that back first.
    pub(super) fn of(device: &Device) -> Result<Self, ReceiveError> {
        let failed = |source| device.failed("write down what is set of", source);
        let name = format!("{}{}.json", ours().map_err(failed)?, device.index);
        let path = Path::new(FOLDER).join(name);
        fs::create_dir_all(FOLDER).map_err(failed)?;
        let mut file = loop {
            let mut file = opened(&path, true).map_err(failed)?;
            if !lock(&file) {
                let (device, placed) = (device.name.clone(), read(&mut file).1);
                let pid = placed.map(|placed| placed.pid);
                return Err(ReceiveError::Taken { device, pid });
            }
            // Its former holder may have removed it since it was opened.
            if file.metadata().is_ok_and(|file| file.nlink() > 0) {
                break file;
            }
        };
        if let Some(left) = read(&mut file).0 {
            left.put_back()?;
        }
        let state = State::of(device)?;
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| line(&mut file, &state))
            .map_err(failed)?;
        Ok(Self { state, path, file })
    }

    /// Adds what has been made of it. What was there before is never written over as long as it holds.
    pub(super) fn tell(&mut self, placed: &Placed) -> io::Result<()> {
        line(&mut self.file, placed)
    }

    pub(super) fn put_back(self) -> Result<(), ReceiveError> {
        self.state.put_back()?;
        // Under the lock, so that nobody's else.
        let _ = fs::remove_file(&self.path);
        Ok(())
    }
}

/// How files of this network namespace begin.
fn ours() -> io::Result<String> {
    let number = namespace().map_err(io::Error::other)?;
    Ok(format!("{number}-"))
}

fn opened(path: &Path, create: bool) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(create)
        .truncate(false)
        .mode(0o600)
        .open(path)
}

/// A lock of a whole file, for the one who has it open.
fn whole() -> libc::flock {
    // SAFETY: all of it may be zero: from the beginning, to the end, of no process.
    let zero: libc::flock = unsafe { std::mem::zeroed() };
    libc::flock {
        l_type: libc::F_WRLCK as _,
        l_whence: libc::SEEK_SET as _,
        ..zero
    }
}

/// Is it ours, until it is closed?
fn lock(file: &File) -> bool {
    fcntl(file, FcntlArg::F_OFD_SETLK(&whole())).is_ok()
}

/// Has anybody locked it? Asking does not lock it for a moment, by which somebody who begins then would be refused.
fn is_locked(file: &File) -> bool {
    let mut lock = whole();
    let asked = fcntl(file, FcntlArg::F_OFD_GETLK(&mut lock));
    asked.is_ok() && i32::from(lock.l_type) != libc::F_UNLCK
}

fn line(file: &mut File, data: &impl Serialize) -> io::Result<()> {
    let mut text = serde_json::to_string(data)?;
    text.push('\n');
    file.write_all(text.as_bytes())
}

/// The former state, and the changes made to it. Nothing, of a line that is not there to its end: then nothing
/// had been changed, or was not told.
fn read(file: &mut File) -> (Option<State>, Option<Placed>) {
    let mut text = String::new();
    let _ = file.read_to_string(&mut text);
    parsed(&text)
}

fn parsed(text: &str) -> (Option<State>, Option<Placed>) {
    let mut lines = text.lines();
    let mut next = || lines.next().unwrap_or_default();
    let (state, placed) = (next(), next());
    (
        serde_json::from_str(state).ok(),
        serde_json::from_str(placed).ok(),
    )
}

/// The files of this network namespace.
fn files() -> Vec<PathBuf> {
    let Ok(ours) = ours() else {
        return Vec::new();
    };
    let entries = fs::read_dir(FOLDER).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(&ours))
        .map(|entry| entry.path())
        .collect()
}

/// A device that a file tells of.
pub(super) struct Found {
    pub(super) state: State,
    pub(super) placed: Option<Placed>,
    /// Whether the process is there that has placed it.
    pub(super) lives: bool,
}

/// All that files of this network namespace tell of.
pub(super) fn found() -> Vec<Found> {
    let look = |path: PathBuf| {
        let mut file = opened(&path, false).ok()?;
        let lives = is_locked(&file);
        let (state, placed) = read(&mut file);
        // A device that is gone has nothing to put back.
        let state = state.filter(|state| name_of(state.ifindex).is_some())?;
        Some(Found {
            state,
            placed,
            lives,
        })
    };
    files().into_iter().filter_map(look).collect()
}

/// Puts back what processes that are dead have left; returns the devices. Those whose process lives stay.
///
/// # Errors
///
/// [`ReceiveError`]: the first; the others are put back all the same.
pub fn restore() -> Result<Vec<String>, ReceiveError> {
    crate::attach::root().map_err(|_| ReceiveError::NotRoot)?;
    let (mut devices, mut first) = (Vec::new(), None);
    for path in files() {
        let Ok(mut file) = opened(&path, false) else {
            continue;
        };
        if !lock(&file) {
            continue;
        }
        let put_back = read(&mut file)
            .0
            .map(|state| (state.put_back(), state.device));
        match put_back {
            Some((Err(error), _)) => {
                first.get_or_insert(error);
                continue;
            }
            Some((Ok(()), device)) => devices.push(device),
            None => {}
        }
        let _ = fs::remove_file(&path);
    }
    devices.sort();
    first.map_or(Ok(devices), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> State {
        State {
            device: "eth0".into(),
            ifindex: 2,
            threaded: "0".into(),
            gro: None,
            threads: vec![Thread {
                pid: 7,
                cgroup: Some("/".into()),
                nice: 0,
            }],
        }
    }

    fn placed() -> Placed {
        Placed {
            class: "/sys/fs/cgroup/film".into(),
            order: Order::Last,
            hook: Hook::Ingress,
            dropped: Some(3),
            pid: 12,
        }
    }

    #[test]
    fn what_was_before_is_read_however_far_the_rest_was_written() {
        let mut file = tempfile::tempfile().unwrap();
        line(&mut file, &state()).unwrap();
        let first = file.metadata().unwrap().len() as usize;
        line(&mut file, &placed()).unwrap();
        file.rewind().unwrap();
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(parsed(&text), (Some(state()), Some(placed())));
        for written in first..text.len() - 1 {
            assert_eq!(parsed(&text[..written]), (Some(state()), None), "{written}");
        }
        for written in 0..first - 1 {
            assert_eq!(parsed(&text[..written]), (None, None), "{written}");
        }
    }

    #[test]
    fn a_lock_is_seen_by_others_and_ends_with_its_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let [one, other] = [(), ()].map(|()| opened(file.path(), false).unwrap());
        assert!(!is_locked(&other));
        assert!(lock(&one));
        assert!(is_locked(&other) && !lock(&other));
        drop(one);
        assert!(!is_locked(&other) && lock(&other));
    }
}
