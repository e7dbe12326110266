// SPDX-License-Identifier: GPL-2.0
//! The page of a thread: made here, kept at hand by the kernel, mapped by the program.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;

use andante_session::Mapped;
use andante_session::page::{BYTES, MAGIC, Page, VERSION};
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};

/// One that is mapped in this process, until this is dropped: the kernel keeps the memory itself.
pub struct Made {
    file: File,
    page: Mapped,
}

/// Makes one, with its first words written. Nobody can make it shorter, so that to read it never fails.
///
/// # Errors
/// There is no memory, or no descriptor.
pub fn make(session: u32, thread: u32, sink: u32) -> io::Result<Made> {
    let fd = memfd_create(
        c"andante-page",
        MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING,
    )?;
    let file = File::from(fd);
    file.set_len(BYTES as u64)?;
    let seals = SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SEAL;
    fcntl(&file, FcntlArg::F_ADD_SEALS(seals))?;
    let page = Mapped::of(&file)?;
    page.session.store(session, Ordering::Relaxed);
    page.thread.store(thread, Ordering::Relaxed);
    page.sink.store(sink, Ordering::Relaxed);
    page.version.store(VERSION, Ordering::Relaxed);
    page.magic.store(MAGIC, Ordering::Release);
    Ok(Made { file, page })
}

impl Made {
    /// Where it is mapped.
    pub fn address(&self) -> *const u8 {
        std::ptr::from_ref::<Page>(&self.page).cast()
    }

    /// The file, to be passed on, and the page as it is mapped here.
    pub fn into_parts(self) -> (OwnedFd, Mapped) {
        (self.file.into(), self.page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_says_whose_it_is_and_keeps_its_length() {
        let made = make(7, 3, 5).unwrap();
        let page = &made.page;
        assert_eq!(page.magic.load(Ordering::Acquire), MAGIC);
        assert_eq!(page.session.load(Ordering::Relaxed), 7);
        assert_eq!(page.thread.load(Ordering::Relaxed), 3);
        assert_eq!(page.sink.load(Ordering::Relaxed), 5);
        let file = File::from(made.into_parts().0);
        assert!(file.set_len(0).is_err(), "a reader would get SIGBUS");
        assert_eq!(file.metadata().unwrap().len(), BYTES as u64);
    }
}
