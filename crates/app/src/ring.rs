// SPDX-License-Identifier: GPL-2.0
//! The ring by which a thread is told of its events: a BPF ring buffer of a page, which the kernel writes
//! (`andante/page.h`). One page that we write says how far it has been read; behind it, to be read only, are one
//! that says how far it is written, and the data, which is mapped twice, so that nothing is cut at its end.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use andante_session::page::SERVICES;

use crate::error::Error;

/// In the length of a record: it is being written still.
const BUSY: u32 = 1 << 31;
/// In the length of a record: it is none.
const DISCARDED: u32 = 1 << 30;
/// What goes before each record [bytes]; their lengths are multiples of this.
const HEADER: usize = 8;

/// A ring that is mapped until this is dropped.
#[derive(Debug)]
pub struct Ring {
    fd: OwnedFd,
    /// How far it has been read [bytes].
    read: Mapping,
    /// How far it is written, and from the second page on what is there.
    written: Mapping,
    page: usize,
}

impl Ring {
    /// Maps what has come from the daemon.
    pub fn of(fd: OwnedFd) -> Result<Self, Error> {
        // SAFETY: the call takes a number.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
        let failed = Error::system("map the ring");
        let both = libc::PROT_READ | libc::PROT_WRITE;
        let read = Mapping::of(&fd, 0, page, both).map_err(&failed)?;
        let written = Mapping::of(&fd, page, 3 * page, libc::PROT_READ).map_err(&failed)?;
        Ok(Self {
            fd,
            read,
            written,
            page,
        })
    }

    /// Services of the notices that have come since this was last asked, a bit each. One thread at a time.
    pub fn take(&self) -> u32 {
        // SAFETY: both are mapped, aligned to a page, and written by the kernel in one piece.
        let (read, written) = unsafe {
            (
                self.read.0.cast::<AtomicUsize>().as_ref(),
                self.written.0.cast::<AtomicUsize>().as_ref(),
            )
        };
        let mut at = read.load(Ordering::Relaxed);
        let mut services = 0;
        // Never more than a ring of this size can hold, whatever its words say.
        while (1..=self.page).contains(&written.load(Ordering::Acquire).wrapping_sub(at)) {
            let (length, service) = self.record(at);
            if length & BUSY != 0 {
                break; // it is told when that is done
            }
            if length & DISCARDED == 0 && (service as usize) < SERVICES {
                services |= 1 << service;
            }
            let bytes = (length & !(BUSY | DISCARDED)) as usize;
            at = at.wrapping_add(HEADER + bytes.next_multiple_of(HEADER));
        }
        read.store(at, Ordering::Release);
        services
    }

    /// The length and the service of the record there.
    fn record(&self, at: usize) -> (u32, u32) {
        let offset = self.page + at % self.page / HEADER * HEADER;
        // SAFETY: the first of its words are within the second page, and the others in the third at most; they are
        // aligned, and the kernel writes each in one piece.
        unsafe {
            let record = self.written.0.as_ptr().add(offset).cast::<AtomicU32>();
            let length = (*record).load(Ordering::Acquire);
            (length, (*record.add(HEADER / 4)).load(Ordering::Relaxed))
        }
    }
}

/// For poll and epoll.
impl AsRawFd for Ring {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

/// So many bytes of a file, mapped.
#[derive(Debug)]
struct Mapping(NonNull<u8>, usize);

// SAFETY: what is there is read and written as atomics only, and stays where it is.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    fn of(fd: &OwnedFd, offset: usize, length: usize, protection: i32) -> io::Result<Self> {
        // SAFETY: a fresh mapping, which overlays nothing.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                protection,
                libc::MAP_SHARED,
                fd.as_raw_fd(),
                offset as libc::off_t,
            )
        };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let at = NonNull::new(at.cast());
        at.map(|at| Self(at, length))
            .ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it was mapped by `of`, and nothing of it is lent any more.
        unsafe { libc::munmap(self.0.as_ptr().cast(), self.1) };
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    use super::*;

    /// A file that is laid out as a ring is, but for its second half, which is the first once more.
    fn ring(records: &[(u32, u32)]) -> (Ring, File) {
        let file = tempfile::tempfile().unwrap();
        file.set_len(4 * 4096).unwrap();
        for (index, (length, service)) in records.iter().enumerate() {
            let words = [length.to_ne_bytes(), [0; 4], service.to_ne_bytes(), [0; 4]];
            file.write_all_at(&words.concat(), 8192 + 16 * index as u64)
                .unwrap();
        }
        let written = (16 * records.len()).to_ne_bytes();
        file.write_all_at(&written, 4096).unwrap();
        (Ring::of(file.try_clone().unwrap().into()).unwrap(), file)
    }

    #[test]
    fn notices_are_taken_once_and_none_before_it_is_written() {
        let (ring, file) = ring(&[
            (8, 2),
            (8, 0),
            (8 | DISCARDED, 3),
            (8, 77),
            (8 | BUSY, 1),
            (8, 3),
        ]);
        assert_eq!(ring.take(), 0b101);
        assert_eq!(ring.take(), 0);
        file.write_all_at(&8u32.to_ne_bytes(), 8192 + 4 * 16)
            .unwrap();
        assert_eq!(ring.take(), 0b1010);
        assert_eq!(ring.take(), 0);
    }
}
