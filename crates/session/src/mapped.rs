// SPDX-License-Identifier: GPL-2.0
//! A page in this process's memory: the daemon maps one while it makes it, the program as long as its thread
//! takes part.

use std::fs::File;
use std::io;
use std::ops::Deref;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;

use crate::page::{BYTES, Page};

/// A page that is mapped until this is dropped.
#[derive(Debug)]
pub struct Mapped(NonNull<Page>);

// SAFETY: every word of a page is atomic, and the mapping stays where it is.
unsafe impl Send for Mapped {}
// SAFETY: as above.
unsafe impl Sync for Mapped {}

impl Mapped {
    /// Maps the page in this file, shared. It is the caller's to know that the file is as long, and stays so:
    /// to touch a page beyond its end is the program's end.
    ///
    /// # Errors
    /// There is no memory, or the file cannot be mapped.
    pub fn of(file: &File) -> io::Result<Self> {
        // SAFETY: a fresh mapping, which overlays nothing.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        NonNull::new(at.cast())
            .map(Self)
            .ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

impl Deref for Mapped {
    type Target = Page;

    #[inline]
    fn deref(&self) -> &Page {
        // SAFETY: it is mapped, so long, aligned to its own size, as long as this is there.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: it was mapped by `of`, and nothing of it is lent any more.
        unsafe { libc::munmap(self.0.as_ptr().cast(), BYTES) };
    }
}
