// SPDX-License-Identifier: GPL-2.0
//! The page of a thread, mapped.

use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::Ordering;

use andante_session::page::{BYTES, MAGIC, Page, VERSION};

use crate::error::Error;
use crate::fork;

/// A page that is mapped until this is dropped.
#[derive(Debug)]
pub struct Mapped {
    map: andante_session::Mapped,
    /// Of the process that has mapped it.
    generation: u32,
}

impl Mapped {
    /// Maps what has come from the daemon. A file that is shorter, or could be made so, is none: to touch
    /// it might be the program's end.
    pub fn of(fd: OwnedFd) -> Result<Self, Error> {
        let file = File::from(fd);
        let length = file
            .metadata()
            .map_err(Error::system("look at the page"))?
            .len();
        // SAFETY: the call takes a descriptor and a command.
        let seals = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) };
        if length < BYTES as u64 || seals < 0 || seals & libc::F_SEAL_SHRINK == 0 {
            return Err(Error::BadPage);
        }
        let mapped = Self {
            map: andante_session::Mapped::of(&file).map_err(Error::system("map the page"))?,
            generation: fork::generation(),
        };
        let page = mapped.page()?;
        let known = page.magic.load(Ordering::Acquire) == MAGIC
            && page.version.load(Ordering::Relaxed) == VERSION;
        if known {
            Ok(mapped)
        } else {
            Err(Error::BadPage)
        }
    }

    /// The page, for the process that has mapped it. Its children have it mapped too, and must not touch it.
    ///
    /// # Errors
    /// [`Error::Forked`].
    #[inline]
    pub fn page(&self) -> Result<&Page, Error> {
        if self.generation != fork::generation() {
            return Err(Error::Forked);
        }
        Ok(&self.map)
    }
}
