//! Disks in memory, and access to them without the page cache.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use io_uring::types::Fd;
use io_uring::{IoUring, opcode};

use andante_disk::{Attached, DiskError, Fifo, NoClasses, Wanted, attach, open};

/// What all offsets and lengths here are multiples of [bytes].
pub const PAGE: usize = 4096;

/// Memory that is aligned to pages.
pub struct Memory {
    bytes: Vec<u8>,
    at: usize,
    len: usize,
}

impl Memory {
    pub fn new(len: usize) -> Self {
        let bytes = vec![0; len + PAGE];
        let at = bytes.as_ptr().align_offset(PAGE);
        Self { bytes, at, len }
    }
}

impl std::ops::Deref for Memory {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[self.at..self.at + self.len]
    }
}

impl std::ops::DerefMut for Memory {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.at..self.at + self.len]
    }
}

/// A disk, or file, without the page cache.
pub struct Direct(pub File);

impl Direct {
    pub fn open(path: impl AsRef<Path>, flags: i32) -> Self {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_DIRECT | flags)
            .open(path.as_ref());
        Self(file.unwrap_or_else(|error| panic!("{}: {error}", path.as_ref().display())))
    }

    pub fn read(&self, offset: u64, len: usize) -> Memory {
        let mut memory = Memory::new(len);
        self.0.read_exact_at(&mut memory, offset).expect("reads");
        memory
    }

    pub fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut memory = Memory::new(bytes.len());
        memory.copy_from_slice(bytes);
        self.0.write_all_at(&memory, offset)
    }

    /// So that it is safe when it is answered, by the write alone (FUA): the kernel flushes after others that are to be safe.
    pub fn write_safely(&self, offset: u64, bytes: &[u8]) {
        let mut memory = Memory::new(bytes.len());
        memory.copy_from_slice(bytes);
        let mut ring = IoUring::new(1).expect("a ring");
        let fd = Fd(self.0.as_raw_fd());
        let write = opcode::Write::new(fd, memory.as_ptr(), bytes.len() as u32)
            .offset(offset)
            .rw_flags(libc::RWF_DSYNC)
            .build();
        // SAFETY: the memory lives until it is written.
        unsafe { ring.submission().push(&write) }.expect("the ring is empty");
        ring.submit_and_wait(1).expect("is submitted");
        let answer = ring.completion().next().expect("an answer").result();
        assert_eq!(answer, bytes.len() as i32);
    }

    fn forget(&self, request: libc::Ioctl, offset: u64, bytes: u64) -> io::Result<()> {
        let range = [offset, bytes];
        // SAFETY: the kernel reads two numbers.
        match unsafe { libc::ioctl(self.0.as_raw_fd(), request, &raw const range) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// `BLKDISCARD`
    pub fn discard(&self, offset: u64, bytes: u64) -> io::Result<()> {
        self.forget(0x1277, offset, bytes)
    }

    /// `BLKZEROOUT`
    pub fn zero(&self, offset: u64, bytes: u64) -> io::Result<()> {
        self.forget(0x127f, offset, bytes)
    }
}

/// Numbers that are the same in each run (Knuth's MMIX).
pub struct Drawn(pub u64);

impl Drawn {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// First come, first served.
pub fn attached(path: &Path) -> Result<Attached, DiskError> {
    attach(open(path)?, Fifo::new(32), NoClasses, Wanted::default())
}

pub fn run(program: &str, arguments: &[&str]) {
    let status = Command::new(program).args(arguments).status();
    let status = status.unwrap_or_else(|error| panic!("{program}: {error}"));
    assert!(status.success(), "{program} {arguments:?}: {status}");
}

/// A file system in memory, at that path.
pub fn tmpfs(at: &str) -> PathBuf {
    std::fs::create_dir_all(at).unwrap();
    run("busybox", &["mount", "-t", "tmpfs", "none", at]);
    at.into()
}

pub fn file_of(path: &Path, bytes: u64) {
    File::create(path).unwrap().set_len(bytes).unwrap();
}
