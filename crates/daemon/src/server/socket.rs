// SPDX-License-Identifier: GPL-2.0
//! The file at which the daemon listens.

use std::fs::{self, Permissions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use nix::sys::socket::{Backlog, listen};

/// Where to listen and to ask: `$ANDANTE_SOCKET`, or `/run/andante.sock`.
pub fn socket_path() -> PathBuf {
    std::env::var_os("ANDANTE_SOCKET").map_or_else(|| "/run/andante.sock".into(), PathBuf::from)
}

/// Clients that the kernel lets wait to be accepted: they are in a row, whoever they are. Others wait in their own
/// connect(), where they keep nobody up. So few that the row is no part of the 20 ms within which everybody else is
/// answered under a flood: a turn takes 0.15 ms on a slow CPU of which the flood has half, and with 32 the median
/// answer took 5 ms there, all of it the row.
pub(in crate::server) const BACKLOG: i32 = 8;

/// A socket that everybody may connect to; what each may do is judged by request. Its file goes
/// when this is dropped.
#[derive(Debug)]
pub struct Socket {
    listener: UnixListener,
    path: PathBuf,
    /// Of the file, to tell it from another daemon's.
    inode: u64,
}

impl Socket {
    /// Listens at `path`. What a daemon that was killed has left there is replaced.
    ///
    /// # Errors
    /// Another daemon listens there ([`io::ErrorKind::AddrInUse`]), something else than a socket is
    /// there, or the file cannot be made.
    pub fn bind(path: &Path) -> io::Result<Self> {
        if let Ok(found) = fs::symlink_metadata(path) {
            if !found.file_type().is_socket() {
                let message = "there is something else than a socket";
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
            }
            if UnixStream::connect(path).is_ok() {
                let message = "another andante listens there";
                return Err(io::Error::new(io::ErrorKind::AddrInUse, message));
            }
            fs::remove_file(path)?;
        }
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let listener = UnixListener::bind(path)?;
        listen(&listener, Backlog::new(BACKLOG)?)?;
        listener.set_nonblocking(true)?;
        fs::set_permissions(path, Permissions::from_mode(0o666))?;
        Ok(Self {
            listener,
            path: path.to_owned(),
            inode: fs::symlink_metadata(path)?.ino(),
        })
    }

    /// The next client that waits, if any.
    ///
    /// # Errors
    /// It cannot be accepted now; most likely too many files are open.
    pub(super) fn accept(&self) -> io::Result<Option<UnixStream>> {
        match self.listener.accept() {
            Ok((stream, _)) => Ok(Some(stream)),
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock
                | io::ErrorKind::Interrupted
                | io::ErrorKind::ConnectionAborted => Ok(None),
                _ => Err(error),
            },
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let ours = fs::symlink_metadata(&self.path).is_ok_and(|found| found.ino() == self.inode);
        if ours {
            // If it stays, the next daemon removes it.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_daemon_at_a_time_and_no_file_is_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run/andante.sock");
        let socket = Socket::bind(&path).unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o666);
        let second = Socket::bind(&path).unwrap_err();
        assert_eq!(second.kind(), io::ErrorKind::AddrInUse);
        drop(socket);
        assert!(!path.exists());

        // As one that was killed leaves it: a file that nobody listens at.
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        drop(Socket::bind(&path).unwrap());

        fs::write(&path, "precious").unwrap();
        assert!(Socket::bind(&path).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    }
}
