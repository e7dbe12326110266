//! Programs that are nothing but their memory: what they do is to touch it.
//!
//! The player shows frames by their time. For each it touches another part of its own memory and of a file that it maps as
//! a library, so that it goes through both in [`FRAMES`] frames. A page that has been taken from it comes back at the price
//! of a request to a device, and a hundred of them take longer than a frame.

use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::ptr;

use andante_job::stop;

use super::player::{Shown, pace};
use super::{Order, Samples};
use crate::clock::{NS_PER_S, now_ns, sleep_until};

/// Frames in which a player touches everything once: five seconds of thirty a second.
const FRAMES: usize = 150;
/// Of x86's and most others' page tables [bytes].
const PAGE_BYTES: usize = 4096;
/// A hog touches so many pages,
const TOUCHES: u64 = 16;
/// and sleeps for so long [ns], so that memory and not the CPU is what there is too little of.
const SLEEP_NS: u64 = 200_000;

/// Mapped memory, which goes with this.
struct Mapping {
    begin: *mut u8,
    pages: usize,
}

impl Mapping {
    /// Memory of the program's own.
    fn anonymous(bytes: u64) -> io::Result<Self> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        Self::new(bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1)
    }

    /// The file as a library is mapped: whoever else maps it has the same memory.
    fn library(file: &Path, bytes: u64) -> io::Result<Self> {
        let file = File::open(file)?;
        let mapping = Self::new(bytes, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd())?;
        Ok(mapping)
    }

    fn new(bytes: u64, access: i32, flags: i32, file: i32) -> io::Result<Self> {
        let pages = (bytes as usize).div_ceil(PAGE_BYTES);
        let length = pages * PAGE_BYTES;
        // SAFETY: the kernel chooses the place, so that nothing of ours lies there.
        let begin = unsafe { libc::mmap(ptr::null_mut(), length, access, flags, file, 0) };
        match begin {
            libc::MAP_FAILED => Err(io::Error::last_os_error()),
            begin => Ok(Self {
                begin: begin.cast(),
                pages,
            }),
        }
    }

    fn at(&self, page: usize) -> *mut u8 {
        assert!(page < self.pages, "page {page} of {}", self.pages);
        // SAFETY: the page is one of those that are mapped.
        unsafe { self.begin.add(page * PAGE_BYTES) }
    }

    fn read(&self, page: usize) {
        // SAFETY: it may be read as long as it is mapped, and nothing of ours refers to it.
        unsafe { ptr::read_volatile(self.at(page)) };
    }

    fn write(&self, page: usize) {
        let at = self.at(page);
        // SAFETY: as above; only memory of one's own is written.
        unsafe { ptr::write_volatile(at, ptr::read_volatile(at).wrapping_add(1)) };
    }

    /// Gives each page a content that is no other's: the kernel keeps no page of zeros in swap.
    fn fill(&self) {
        /// Knuth's, for a hash by multiplication.
        const FACTOR: u32 = 2_654_435_761;
        for page in 0..self.pages {
            let number = (page as u32).wrapping_mul(FACTOR) | 1;
            // SAFETY: as above; a page begins at a multiple of four.
            unsafe { ptr::write_volatile(self.at(page).cast(), number) };
        }
    }

    fn read_all(&self) {
        (0..self.pages).for_each(|page| self.read(page));
    }

    /// Tells the kernel that what is touched next says nothing of what is touched afterwards: pages of a library
    /// lie there in the order in which it was linked, and are used in another.
    fn in_any_order(&self) {
        let length = self.pages * PAGE_BYTES;
        // SAFETY: advice changes no content.
        unsafe { libc::madvise(self.begin.cast(), length, libc::MADV_RANDOM) };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it was mapped by `new`, and nothing refers to it.
        unsafe { libc::munmap(self.begin.cast(), self.pages * PAGE_BYTES) };
    }
}

/// Keeps all memory of this process, now and later, where it is.
pub(super) fn lock() -> io::Result<()> {
    // SAFETY: no pointers.
    match unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Shows `fps` frames a second once everything has been touched and `wait_s` have passed, until SIGTERM.
pub(super) fn player(
    order: &Order,
    fps: f64,
    anonymous_bytes: u64,
    wait_s: f64,
) -> io::Result<Samples> {
    let begun_ns = now_ns();
    let own = Mapping::anonymous(anonymous_bytes)?;
    own.fill();
    let touched_ns = now_ns();
    let library = order.library()?;
    let read_ns = now_ns();
    library.iter().for_each(Mapping::in_any_order);
    let ready_ns = now_ns() + (wait_s * NS_PER_S) as u64;
    while now_ns() < ready_ns && !stop::requested() {
        sleep_until(ready_ns);
    }
    let mut turns = [Turn::default(), Turn::default()];
    let mut shown = Shown::new(order, fps);
    let paced = pace(order, fps, true, |frame, release_ns| {
        turns[0].next(&own, Mapping::write);
        if let Some(library) = &library {
            turns[1].next(library, Mapping::read);
        }
        shown.note(release_ns(frame), now_ns());
        ControlFlow::Continue(())
    });
    Ok(Samples {
        due: Some(paced.due()),
        dropped_ns: paced.dropped_ns,
        first_touch_ns: Some(touched_ns - begun_ns),
        first_read_ns: library.map(|_| read_ns - touched_ns),
        ..shown.samples()
    })
}

/// Where a player is in its memory.
#[derive(Default)]
struct Turn {
    page: usize,
}

impl Turn {
    /// Touches what belongs to the next frame.
    fn next(&mut self, memory: &Mapping, touch: fn(&Mapping, usize)) {
        for _ in 0..memory.pages.div_ceil(FRAMES) {
            touch(memory, self.page);
            self.page = (self.page + 1) % memory.pages;
        }
    }
}

/// Touches pages at random, until SIGTERM; an iteration is one of them.
pub(super) fn hog(order: &Order, bytes: u64) -> io::Result<Samples> {
    let own = Mapping::anonymous(bytes)?;
    own.fill();
    let mut iterations = 0;
    // A linear congruential generator; its upper bits are the better ones.
    let mut state = u64::from(order.number) + 1;
    while !stop::requested() {
        for _ in 0..TOUCHES {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            own.write((state >> 33) as usize % own.pages);
        }
        let done_ns = now_ns();
        if order.measures(done_ns) {
            iterations += TOUCHES;
        }
        sleep_until(done_ns + SLEEP_NS);
    }
    Ok(Samples {
        iterations: Some(iterations),
        ..Samples::default()
    })
}

/// Reads its library once and keeps it mapped, until SIGTERM.
pub(super) fn reader(order: &Order) -> io::Result<Samples> {
    /// It is woken by the signal.
    const LONG_NS: u64 = 3_600_000_000_000;
    let begun_ns = now_ns();
    let library = order.library()?;
    let read_ns = now_ns() - begun_ns;
    while !stop::requested() {
        sleep_until(now_ns() + LONG_NS);
    }
    Ok(Samples {
        first_read_ns: library.map(|_| read_ns),
        ..Samples::default()
    })
}

impl Order {
    /// The library that it maps, if it maps one, read once.
    fn library(&self) -> io::Result<Option<Mapping>> {
        let (Some(file), Some(bytes)) = (&self.library, self.kind.library_bytes()) else {
            return Ok(None);
        };
        let library = Mapping::library(file, bytes)?;
        library.read_all();
        Ok(Some(library))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_player_goes_through_all_of_its_memory_in_its_frames() {
        let own = Mapping::anonymous(60 << 20).unwrap();
        let mut turn = Turn::default();
        let mut frames = 0;
        while frames == 0 || turn.page != 0 && frames < 10_000 {
            let before = turn.page;
            turn.next(&own, Mapping::write);
            frames += 1;
            if turn.page < before {
                break;
            }
        }
        assert!((FRAMES - 2..=FRAMES).contains(&frames), "{frames}");
        // SAFETY: it is mapped, and nobody else writes.
        let touched = (0..own.pages).filter(|page| unsafe { *own.at(*page) } > 0);
        assert_eq!(touched.count(), own.pages);
    }

    #[test]
    fn no_page_is_one_of_zeros() {
        let own = Mapping::anonymous(1 << 20).unwrap();
        own.fill();
        // SAFETY: as above.
        let number = |page| unsafe { own.at(page).cast::<u32>().read() };
        assert!((0..own.pages).all(|page| number(page) != 0));
        assert_ne!(number(0), number(1));
    }
}
