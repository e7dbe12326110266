// SPDX-License-Identifier: GPL-2.0
//! Processes and threads, told apart from later ones of the same number.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::PathBuf;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A process that may end at any time.
pub struct Watched {
    fd: AsyncFd<OwnedFd>,
}

impl Watched {
    /// The process that has this number now.
    ///
    /// # Errors
    /// There is none.
    pub fn open(pid: i32) -> io::Result<Self> {
        // SAFETY: the call takes two numbers, and makes a descriptor that nobody else has.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: it was just made.
        let fd = unsafe { OwnedFd::from_raw_fd(fd as RawFd) };
        // SAFETY: the descriptor stays open as long as it is registered, since `AsyncFd` owns it from now on.
        let fd = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) };
        Ok(Self { fd: fd? })
    }

    /// Waits until it has ended.
    pub async fn ended(&self) {
        let _ = self.fd.readable().await;
    }
}

/// The process whose pidfd this is [`fdinfo` of proc(5)]; none: it has ended, or cannot be seen from here.
pub fn pid_of(pidfd: &impl AsRawFd) -> Option<i32> {
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd())).ok()?;
    let pid = info.lines().find_map(|line| line.strip_prefix("Pid:"))?;
    pid.trim().parse().ok().filter(|pid| *pid > 0)
}

/// When a thread of the process was started: with its number that tells it from another one. None: it has ended,
/// or `/proc` does not show it to us (`hidepid`).
pub fn started(pid: i32, tid: i32) -> Option<u64> {
    let stat = fs::read(format!("/proc/{pid}/task/{tid}/stat")).ok()?;
    // The name may contain brackets: the last one ends it. Behind it fields are counted from the third on.
    let end = stat.iter().rposition(|&byte| byte == b')')?;
    let rest = String::from_utf8_lossy(stat.get(end + 1..)?);
    rest.split_whitespace().nth(22 - 3)?.parse().ok()
}

/// What the process executes, as far as we may know.
pub fn executable(pid: i32) -> PathBuf {
    fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[tokio::test]
    async fn a_process_is_watched_until_it_ends() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let watched = Watched::open(pid).unwrap();
        assert_eq!(pid_of(watched.fd.get_ref()), Some(pid));
        assert!(started(pid, pid).is_some_and(|at| at > 0));
        assert_eq!(started(pid, 1), None);
        let early = tokio::time::timeout(std::time::Duration::from_millis(20), watched.ended());
        assert!(early.await.is_err());
        child.kill().unwrap();
        watched.ended().await;
        child.wait().unwrap();
        assert_eq!(pid_of(watched.fd.get_ref()), None);
        assert_eq!(started(pid, pid), None);
        assert!(Watched::open(i32::MAX).is_err());
    }
}
