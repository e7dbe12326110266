// SPDX-License-Identifier: GPL-2.0
//! The page of a thread: made here, kept at hand by the kernel, mapped by the program.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::Ordering;

use andante_session::page::{BYTES, MAGIC, Page, VERSION};
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};

/// One that is mapped in this process, until this is dropped: the kernel keeps the memory itself.
pub struct Made {
    file: File,
    mapped: Mapped,
}

struct Mapped(NonNull<Page>);

/// Makes one, with its first words written. Nobody can make it shorter, so that to read it never fails.
///
/// # Errors
/// There is no memory, or no descriptor.
pub fn make(session: u32, thread: u32) -> io::Result<Made> {
    let fd = memfd_create(
        c"andante-page",
        MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING,
    )?;
    let file = File::from(fd);
    file.set_len(BYTES as u64)?;
    let seals = SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SEAL;
    fcntl(&file, FcntlArg::F_ADD_SEALS(seals))?;
    // SAFETY: a fresh mapping of a file that is as long, and stays so.
    let mapped = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            BYTES,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        )
    };
    if mapped == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    let mapped = Mapped(NonNull::new(mapped.cast()).expect("a mapping is not at address 0"));
    // SAFETY: the memory is mapped, zero, aligned to its own size, and the page's words are atomic.
    let page = unsafe { mapped.0.as_ref() };
    page.session.store(session, Ordering::Relaxed);
    page.thread.store(thread, Ordering::Relaxed);
    page.version.store(VERSION, Ordering::Relaxed);
    page.magic.store(MAGIC, Ordering::Release);
    Ok(Made { file, mapped })
}

impl Made {
    /// Where it is mapped.
    pub fn address(&self) -> *const u8 {
        self.mapped.0.as_ptr().cast()
    }

    /// The file, to be passed on; it is mapped here no more.
    pub fn into_fd(self) -> OwnedFd {
        self.file.into()
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: it was mapped by `make`, so long, and nothing of it is lent any more.
        unsafe { libc::munmap(self.0.as_ptr().cast(), BYTES) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_says_whose_it_is_and_keeps_its_length() {
        let made = make(7, 3).unwrap();
        // SAFETY: it is mapped as long as `made` is there.
        let page = unsafe { made.mapped.0.as_ref() };
        assert_eq!(page.magic.load(Ordering::Acquire), MAGIC);
        assert_eq!(page.session.load(Ordering::Relaxed), 7);
        assert_eq!(page.thread.load(Ordering::Relaxed), 3);
        let file = File::from(made.into_fd());
        assert!(file.set_len(0).is_err(), "a reader would get SIGBUS");
        assert_eq!(file.metadata().unwrap().len(), BYTES as u64);
    }
}
