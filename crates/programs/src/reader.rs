//! A program that reads from the scenario's disk, past the page cache: a film, a copy, or a program that starts.
//!
//! ```text
//!   due i                due i+1 = deadline of i
//!   |----[ read ]--done i----|----[ read ]---…
//! ```
//!
//! A film's read is **late** if it is done after the next was due, and those that were due meanwhile are **skipped**, as in
//! the simulator (`andante_sim::disk`).

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::ptr::NonNull;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use andante_job::stop;
use andante_scenario::{IoClass, ReadPattern};
use andante_sim::Random;

use super::{Order, Samples, preallocated, record};
use crate::clock::{now_ns, sleep_until};

/// Of each thread no more reads than this are timed [1/s]: a channel of flash serves fewer, 80 µs and 4 KiB at 100 MB/s each.
const MOST_PER_S: f64 = 12_000.0;
/// And of all threads together no more than of so many channels: what is timed is in memory.
const CHANNELS: f64 = 8.0;

/// What is read, see [`andante_scenario::Kind::Reader`].
pub(super) struct Reading {
    pub pattern: ReadPattern,
    pub bytes: u64,
    pub depth: u32,
    pub think_ms: f64,
    pub io_class: Option<IoClass>,
}

/// The disk, and what all threads of the program know.
struct Disk<'a> {
    order: &'a Order,
    reading: &'a Reading,
    file: File,
    /// Its size [bytes].
    size: u64,
    /// How far reads on the way have come [bytes].
    next: AtomicU64,
    random: Mutex<Random>,
}

pub(super) fn run(order: &Order, reading: &Reading) -> io::Result<Samples> {
    let path = order.disk.as_ref();
    let path = path.ok_or_else(|| io::Error::other("there is no disk"))?;
    let mut file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_DIRECT)
        .open(path)?;
    let size = file.seek(SeekFrom::End(0))?;
    let seed = match reading.pattern {
        // Instances read at other places.
        ReadPattern::Anywhere { seed } => u64::from(seed) + u64::from(order.number),
        _ => 0,
    };
    reading.io_class.map_or(Ok(()), ask)?;
    let disk = Disk {
        order,
        reading,
        file,
        size,
        next: AtomicU64::new(reading.begins()),
        random: Mutex::new(Random::new(seed)),
    };
    if let ReadPattern::Periodic { every_ms, .. } = reading.pattern {
        return disk.periodic((every_ms * 1e6).round() as u64);
    }
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..reading.depth)
            .map(|_| scope.spawn(|| disk.on_and_on()))
            .collect();
        let mut samples = disk.on_and_on()?;
        for other in others {
            let Ok(theirs) = other.join() else {
                return Err(io::Error::other("a thread of it has panicked"));
            };
            samples.join(theirs?);
        }
        Ok(samples)
    })
}

impl Reading {
    fn begins(&self) -> u64 {
        match self.pattern {
            ReadPattern::Periodic { at, .. } | ReadPattern::Sequential { at } => at,
            ReadPattern::Anywhere { .. } => 0,
        }
    }
}

/// Asks the kernel for this class for the calling thread, and those that it begins.
fn ask(class: IoClass) -> io::Result<()> {
    /// `IOPRIO_WHO_PROCESS`
    const THREAD: libc::c_int = 1;
    /// `IOPRIO_CLASS_SHIFT`
    const SHIFT: u32 = 13;
    // The level within the class, of 0 to 7: the usual one, and of the first class the first.
    let priority: libc::c_int = match class {
        IoClass::RealTime => 1 << SHIFT,
        IoClass::BestEffort => 2 << SHIFT | 4,
        IoClass::Idle => 3 << SHIFT,
    };
    // SAFETY: no pointers.
    match unsafe { libc::syscall(libc::SYS_ioprio_set, THREAD, 0, priority) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

impl Disk<'_> {
    /// A read each time it is due.
    fn periodic(&self, every_ns: u64) -> io::Result<Samples> {
        let order = self.order;
        let mut samples = Taken::new(order, 1e9 / every_ns as f64);
        let (mut late, mut skipped, mut due) = (0, 0, 0);
        let memory = Memory::of(self.reading.bytes)?;
        // Those of the measurement are due at the same instants whenever it was started.
        let ahead = order.begin_ns.saturating_sub(now_ns()) / every_ns;
        let mut due_ns = order.begin_ns - ahead * every_ns;
        loop {
            while now_ns() < due_ns && !stop::requested() {
                sleep_until(due_ns);
            }
            if stop::requested() {
                break;
            }
            self.read(&memory)?;
            let done_ns = now_ns();
            let missed = missed(done_ns - due_ns, every_ns);
            if order.measures(due_ns) {
                due += 1;
                late += u64::from(missed > 0);
                skipped += missed.saturating_sub(1);
            }
            samples.note(due_ns, done_ns, self.reading.bytes);
            due_ns += missed.max(1) * every_ns;
        }
        Ok(Samples {
            due: Some(due + skipped),
            late: Some(late),
            skipped: Some(skipped),
            ..samples.samples()
        })
    }

    /// A read as soon as one is done, and the program has thought.
    fn on_and_on(&self) -> io::Result<Samples> {
        let think_ns = (self.reading.think_ms * 1e6).round() as u64;
        let part = (CHANNELS / f64::from(self.reading.depth)).min(1.0);
        let mut samples = Taken::new(self.order, MOST_PER_S * part);
        let memory = Memory::of(self.reading.bytes)?;
        while !stop::requested() {
            let begun_ns = now_ns();
            self.read(&memory)?;
            let done_ns = now_ns();
            samples.note(begun_ns, done_ns, self.reading.bytes);
            if think_ns > 0 {
                sleep_until(done_ns + think_ns);
            }
        }
        Ok(samples.samples())
    }

    /// The next place.
    fn place(&self) -> u64 {
        let bytes = self.reading.bytes;
        let last = self.size - bytes;
        match self.reading.pattern {
            ReadPattern::Anywhere { .. } => {
                let mut random = self.random.lock().expect("nobody panics with it");
                random.below(self.size / bytes) * bytes
            }
            _ => {
                // At the end of the disk it begins again.
                let begin = self.reading.begins();
                let way = (last - begin) / bytes + 1;
                let number = self.next.fetch_add(bytes, Ordering::Relaxed) - begin;
                begin + number / bytes % way * bytes
            }
        }
    }

    fn read(&self, memory: &Memory) -> io::Result<()> {
        let (bytes, at) = (memory.bytes, self.place());
        // SAFETY: the memory is so long, and nobody looks at it.
        let read = unsafe {
            let to = memory.at.as_ptr().cast();
            libc::pread64(self.file.as_raw_fd(), to, bytes, at as i64)
        };
        match read {
            -1 => match io::Error::last_os_error() {
                // It is to end.
                error if error.kind() == io::ErrorKind::Interrupted => Ok(()),
                error => Err(error),
            },
            read if read as usize == bytes => Ok(()),
            read => Err(io::Error::other(format!(
                "read {read} of {bytes} bytes at {at}"
            ))),
        }
    }
}

/// The reads that have become due since this one was, which took so long.
fn missed(delay_ns: u64, every_ns: u64) -> u64 {
    delay_ns.saturating_sub(1) / every_ns
}

/// What one thread has measured.
struct Taken<'a> {
    order: &'a Order,
    latency_ns: Vec<f64>,
    reads: u64,
    bytes: u64,
}

impl<'a> Taken<'a> {
    fn new(order: &'a Order, per_s: f64) -> Self {
        Self {
            order,
            latency_ns: preallocated(order.capacity(per_s), f64::NAN),
            reads: 0,
            bytes: 0,
        }
    }

    /// A read that began, or was due, then.
    fn note(&mut self, begun_ns: u64, done_ns: u64, bytes: u64) {
        if self.order.measures(begun_ns) {
            record(&mut self.latency_ns, (done_ns - begun_ns) as f64);
        }
        if self.order.measures(done_ns) {
            self.reads += 1;
            self.bytes += bytes;
        }
    }

    fn samples(self) -> Samples {
        Samples {
            iterations: Some(self.reads),
            read_bytes: Some(self.bytes),
            latency_ns: self.latency_ns,
            ..Samples::default()
        }
    }
}

impl Samples {
    /// Adds those of another thread that does the same.
    fn join(&mut self, other: Self) {
        let add = |to: &mut Option<u64>, more: Option<u64>| {
            *to = Some(to.unwrap_or(0) + more.unwrap_or(0))
        };
        add(&mut self.iterations, other.iterations);
        add(&mut self.read_bytes, other.read_bytes);
        self.latency_ns.extend(other.latency_ns);
    }
}

/// Memory that a disk can write to by itself: whole pages.
struct Memory {
    at: NonNull<libc::c_void>,
    bytes: usize,
}

impl Memory {
    fn of(bytes: u64) -> io::Result<Self> {
        let bytes = bytes as usize;
        let (read_write, own) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE,
        );
        // SAFETY: a new mapping, of which nothing else knows.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), bytes, read_write, own, -1, 0) };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let at = NonNull::new(at).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { at, bytes })
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: it was mapped so, and nothing refers to it any more.
        unsafe { libc::munmap(self.at.as_ptr(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_is_late_once_the_next_was_due() {
        assert_eq!(missed(1, 10), 0);
        assert_eq!(missed(10, 10), 0, "in time to the nanosecond");
        assert_eq!(missed(11, 10), 1, "late, and the next begins at once");
        assert_eq!(missed(20, 10), 1);
        assert_eq!(missed(21, 10), 2, "late, and one is skipped");
    }
}
