// SPDX-License-Identifier: GPL-2.0
//! Who is at the other end of the socket, by the kernel's word.

use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};

use crate::accounts::Accounts;
use crate::books::Caller;

/// Most groups that a user can be in (`NGROUPS_MAX` of the kernel).
const MAX_GROUPS: usize = 65_536;

/// The process at the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// Its rights.
    pub caller: Caller,
    /// Its number as we see it; 0: we cannot.
    pub pid: i32,
}

impl Peer {
    /// Who connected, as it was then. The kernel answers at once: nothing is looked up by name.
    pub fn of(stream: &UnixStream, accounts: &Accounts) -> Option<Self> {
        let credentials = getsockopt(stream, PeerCredentials).ok()?;
        let uid = credentials.uid();
        let in_group = || {
            let mut groups = groups(stream).into_iter().chain([credentials.gid()]);
            groups.any(|group| accounts.is_privileged(group))
        };
        Some(Self {
            caller: Caller {
                uid,
                account: accounts.of(uid),
                privileged: uid == 0 || in_group(),
            },
            pid: credentials.pid(),
        })
    }

    /// Whether processes have other numbers for it than for us, or it has ended and nobody knows.
    pub fn is_in_container(&self) -> bool {
        has_other_numbers(self.pid)
    }
}

/// The supplementary groups that the peer had when it connected (`SO_PEERGROUPS`).
fn groups(stream: &UnixStream) -> Vec<libc::gid_t> {
    let mut groups: Vec<libc::gid_t> = vec![0; 64];
    loop {
        let mut size = (groups.len() * size_of::<libc::gid_t>()) as libc::socklen_t;
        // SAFETY: the buffer is as long as said, and the kernel writes no more than that; the
        // descriptor is open as long as the stream is.
        let failed = unsafe {
            libc::getsockopt(
                stream.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PEERGROUPS,
                groups.as_mut_ptr().cast(),
                &raw mut size,
            )
        };
        let needed = size as usize / size_of::<libc::gid_t>();
        if failed == 0 {
            groups.truncate(needed);
            return groups;
        }
        // ERANGE tells how many there are.
        if needed <= groups.len() || needed > MAX_GROUPS {
            return Vec::new();
        }
        groups.resize(needed, 0);
    }
}

/// Whether a process has a number of its own elsewhere: that is, lives in a pid namespace below ours, which
/// the number zero (we cannot even see it) and a process that has ended may have done.
fn has_other_numbers(pid: i32) -> bool {
    // Bytes: its name, on the first line, may be cut within a character.
    let Ok(status) = fs::read(format!("/proc/{pid}/status")) else {
        return true;
    };
    let mut lines = status.split(|&byte| byte == b'\n');
    let numbers = lines.find_map(|line| line.strip_prefix(b"NSpid:"));
    let words = |numbers: &[u8]| String::from_utf8_lossy(numbers).split_whitespace().count();
    pid == 0 || numbers.is_some_and(|numbers| words(numbers) > 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_groups_are_those_of_the_peer() {
        let (one, _other) = UnixStream::pair().unwrap();
        let mut own: Vec<_> = nix::unistd::getgroups().unwrap().into_iter().collect();
        own.sort_by_key(|group| group.as_raw());
        let mut found = groups(&one);
        found.sort_unstable();
        let own: Vec<_> = own.into_iter().map(nix::unistd::Gid::as_raw).collect();
        assert_eq!(found, own);
    }

    #[test]
    fn our_own_namespace_is_ours() {
        let pid = i32::try_from(std::process::id()).unwrap();
        let nested = fs::read_to_string("/proc/self/status").unwrap();
        let nested = nested
            .lines()
            .find(|line| line.starts_with("NSpid:"))
            .unwrap();
        assert_eq!(
            has_other_numbers(pid),
            nested.split_whitespace().count() > 2
        );
        assert!(has_other_numbers(0));
    }
}
