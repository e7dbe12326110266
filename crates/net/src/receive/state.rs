// SPDX-License-Identifier: GPL-2.0
//! What a device was like before its packets were placed: kept in a file while they are, so that it can be
//! put back whatever becomes of the process.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::ReceiveError;
use super::device::Device;

/// Where the files are, one for each device.
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

    pub(super) fn is_in(&self, class: &Path) -> bool {
        let same = |folder: PathBuf| {
            let [of_thread, class] = [&folder, class].map(fs::canonicalize);
            matches!((of_thread, class), (Ok(one), Ok(other)) if one == other)
        };
        self.folder().is_some_and(same)
    }
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
        let device = match Device::named(&self.device) {
            Ok(device) if device.index == self.ifindex => device,
            // It is gone, and all that was set of it.
            _ => return Ok(()),
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
    _file: File,
}

impl Kept {
    /// Writes down what the device is like; if there is a file of a process that is dead, puts that back first.
    pub(super) fn of(device: &Device) -> Result<Self, ReceiveError> {
        let failed = |source| device.failed("write down what is set of", source);
        let path = Path::new(FOLDER).join(format!("{}.json", device.name));
        fs::create_dir_all(FOLDER).map_err(failed)?;
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(failed)?;
        if !lock(&file) {
            return Err(ReceiveError::Taken(device.name.clone()));
        }
        if let Some(left) = read(&mut file) {
            left.put_back()?;
        }
        let state = State::of(device)?;
        let text = serde_json::to_vec_pretty(&state).expect("plain data");
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| file.write_all(&text))
            .map_err(failed)?;
        Ok(Self {
            state,
            path,
            _file: file,
        })
    }

    pub(super) fn state(&self) -> &State {
        &self.state
    }

    pub(super) fn put_back(&self) -> Result<(), ReceiveError> {
        self.state.put_back()?;
        // Under the lock, so that nobody's else.
        let _ = fs::remove_file(&self.path);
        Ok(())
    }
}

/// Is it ours, until it is closed?
fn lock(file: &File) -> bool {
    // SAFETY: no pointers.
    unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) == 0 }
}

/// Nothing, of a file that is new or was not written to its end: then nothing had been changed.
fn read(file: &mut File) -> Option<State> {
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

/// Puts back what processes that are dead have left; returns the devices. Those whose process lives stay.
///
/// # Errors
///
/// [`ReceiveError`]: the first; the others are put back all the same.
pub fn restore() -> Result<Vec<String>, ReceiveError> {
    let (mut devices, mut first) = (Vec::new(), None);
    for entry in fs::read_dir(FOLDER).into_iter().flatten().flatten() {
        let path = entry.path();
        let Ok(mut file) = OpenOptions::new().read(true).write(true).open(&path) else {
            continue;
        };
        if !lock(&file) {
            continue;
        }
        let put_back = read(&mut file).map(|state| (state.put_back(), state.device));
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
