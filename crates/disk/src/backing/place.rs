// SPDX-License-Identifier: GPL-2.0
//! A file, or a block device.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use io_uring::opcode::{Fallocate, Fsync, ReadFixed, UringCmd16, WriteFixed};
use io_uring::squeue::Flags;
use io_uring::types::{Fixed, FsyncFlags};
use nix::fcntl::{Flock, FlockArg};

use super::{Backing, Discard, Service, Shape};
use crate::SECTOR;
use crate::error::{DiskError, io_error};
use crate::order::{Request, What};
use crate::users;

/// `BLOCK_URING_CMD_DISCARD` of `include/uapi/linux/blkdev.h`: `_IO(0x12, 0)`.
const BLOCK_DISCARD: u32 = 0x12 << 8;
/// The least that file systems give space in, where they do not say [bytes].
const PAGE: u32 = 4096;
/// The most of a request that discards [sectors]: 1 GiB, which a file system punches in one transaction or a few.
const MOST_DISCARDED: u32 = 1 << 21;

/// A file or a block device, which this process alone has.
pub struct Place {
    path: PathBuf,
    file: Opened,
    shape: Shape,
    punches: bool,
}

enum Opened {
    /// Open exclusively (`O_EXCL`).
    Device(File),
    /// Locked (`flock(2)`).
    File(Flock<File>),
}

impl AsFd for Opened {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Device(file) => file.as_fd(),
            Self::File(file) => file.as_fd(),
        }
    }
}

impl Place {
    /// Opens it, so that nobody else can.
    ///
    /// The kernel keeps it from others until the last request of a process to it is done, even if that process was killed
    /// before. So once it is open here, nothing that a former server has begun can come after what this one does.
    ///
    /// # Errors
    /// [`DiskError`]: it is in use, or unfit.
    pub fn open(path: &Path) -> Result<Self, DiskError> {
        let path = &path.canonicalize().map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => DiskError::NotFound(path.to_owned()),
            _ => io_error(format!("find {}", path.display()))(source),
        })?;
        let metadata = path
            .metadata()
            .map_err(io_error(format!("look at {}", path.display())))?;
        if metadata.file_type().is_block_device() {
            Self::device(path, metadata.rdev())
        } else if metadata.is_file() {
            Self::regular(path)
        } else {
            Err(DiskError::NoBacking(path.clone()))
        }
    }

    fn device(path: &Path, number: u64) -> Result<Self, DiskError> {
        let file = open(path, libc::O_EXCL).map_err(|error| match error.raw_os_error() {
            Some(libc::EBUSY) => DiskError::BackingInUse {
                path: path.to_owned(),
                by: users::of_device(number),
            },
            _ => unopened(path, error),
        })?;
        let sysfs = Sysfs::of(number);
        let sectors = sysfs.number(&sysfs.own, "size");
        let logical = sysfs.queue("logical_block_size").unwrap_or(512) as u32;
        let most = |name| {
            let bytes: u64 = sysfs.queue(name).unwrap_or(0);
            (bytes / SECTOR).min(MOST_DISCARDED.into()) as u32
        };
        let (max_sectors, max_zeroes_sectors) =
            (most("discard_max_bytes"), most("write_zeroes_max_bytes"));
        let discard = (max_sectors > 0 || max_zeroes_sectors > 0).then(|| Discard {
            granularity: (sysfs.queue("discard_granularity").unwrap_or(0) as u32).max(logical),
            alignment: sysfs.number(&sysfs.own, "discard_alignment").unwrap_or(0) as u32,
            max_sectors,
            max_zeroes_sectors,
        });
        let shape = Shape {
            sectors: sectors.unwrap_or(0),
            logical_block: logical,
            physical_block: sysfs.queue("physical_block_size").unwrap_or(0) as u32,
            memory_alignment: sysfs.queue("dma_alignment").unwrap_or(511) as u32 + 1,
            rotational: sysfs.queue("rotational") == Some(1),
            discard,
            identity: device_identity(number, &sysfs),
        };
        Self::checked(path, Opened::Device(file), shape, false)
    }

    fn regular(path: &Path) -> Result<Self, DiskError> {
        // Before it is opened: a swap file cannot be written to.
        let in_use = |by| DiskError::BackingInUse {
            path: path.to_owned(),
            by,
        };
        if let Some(by) = users::of_file(path) {
            return Err(in_use(Some(by)));
        }
        let file = open(path, 0).map_err(|error| unopened(path, error))?;
        let locked = Flock::lock(file, FlockArg::LockExclusiveNonblock);
        let file = locked.map_err(|(_, errno)| match errno {
            nix::errno::Errno::EWOULDBLOCK => in_use(None),
            errno => io_error(format!("lock {}", path.display()))(errno.into()),
        })?;
        let look = || io_error(format!("look at {}", path.display()));
        let metadata = file.metadata().map_err(look())?;
        let (memory, offset) = direct_alignment(&file).map_err(look())?;
        if offset == 0 {
            return Err(DiskError::NotDirect(path.to_owned()));
        }
        let logical = offset.max(SECTOR as u32);
        let (punches, zeroes) = forgets(&file, metadata.size());
        let sysfs = Sysfs::of(metadata.dev());
        let shape = Shape {
            sectors: metadata.size() / SECTOR,
            logical_block: logical,
            physical_block: (metadata.blksize() as u32).clamp(logical, PAGE.max(logical)),
            memory_alignment: memory,
            // A file system may be on no disk that we know of.
            rotational: sysfs.queue("rotational") == Some(1),
            discard: punches.then_some(Discard {
                granularity: (metadata.blksize() as u32).max(logical),
                alignment: 0,
                max_sectors: MOST_DISCARDED,
                max_zeroes_sectors: if zeroes { MOST_DISCARDED } else { 0 },
            }),
            identity: file_identity(&metadata),
        };
        if !metadata.size().is_multiple_of(SECTOR) {
            return Err(DiskError::OddSize {
                path: path.to_owned(),
                bytes: metadata.size(),
                of: SECTOR,
            });
        }
        Self::checked(path, Opened::File(file), shape, punches)
    }

    fn checked(
        path: &Path,
        file: Opened,
        mut shape: Shape,
        punches: bool,
    ) -> Result<Self, DiskError> {
        if shape.sectors == 0 {
            return Err(DiskError::Empty(path.to_owned()));
        }
        let block = u64::from(shape.logical_block);
        if block > PAGE.into() {
            return Err(DiskError::LargeBlocks {
                path: path.to_owned(),
                bytes: block,
            });
        }
        if !(shape.sectors * SECTOR).is_multiple_of(block) {
            return Err(DiskError::OddSize {
                path: path.to_owned(),
                bytes: shape.sectors * SECTOR,
                of: block,
            });
        }
        shape.physical_block = shape.physical_block.max(shape.logical_block);
        shape.memory_alignment = shape.memory_alignment.min(shape.logical_block);
        Ok(Self {
            path: path.to_owned(),
            file,
            shape,
            punches,
        })
    }

    /// Where it is, without links.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn is_device(&self) -> bool {
        matches!(self.file, Opened::Device(_))
    }

    /// Discards; or zeroes, which a file system does as well by forgetting.
    fn forget(&self, request: &Request, file: Fixed) -> io_uring::squeue::Entry {
        let (offset, bytes) = (request.offset(), request.bytes());
        if self.is_device() && request.what == What::Discard {
            // The length is where other entries have their third address, which begins the command's bytes.
            let mut command = [0; 16];
            command[..8].copy_from_slice(&bytes.to_ne_bytes());
            return UringCmd16::new(file, BLOCK_DISCARD)
                .cmd(command)
                .addr(Some(offset))
                .build()
                // Without waiting the kernel refuses it where device mapper or the like is below.
                .flags(Flags::ASYNC);
        }
        let punch = match request.what {
            What::Discard => true,
            _ => self.punches && !request.keep_place,
        };
        let mode = match punch {
            true => libc::FALLOC_FL_PUNCH_HOLE,
            false => libc::FALLOC_FL_ZERO_RANGE,
        };
        Fallocate::new(file, bytes)
            .offset(offset)
            .mode(mode | libc::FALLOC_FL_KEEP_SIZE)
            .build()
    }
}

impl Backing for Place {
    fn shape(&self) -> Shape {
        self.shape
    }

    fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    fn serve(&mut self, request: &Request, file: Fixed, _now_ns: u64) -> Service {
        // The server bounds requests to MAX_BYTES.
        let bytes = request.bytes() as u32;
        let entry = match request.what {
            What::Read => ReadFixed::new(file, std::ptr::null_mut(), bytes, request.tag.0)
                .offset(request.offset())
                .ioprio(request.ioprio)
                .build(),
            What::Write => WriteFixed::new(file, std::ptr::null(), bytes, request.tag.0)
                .offset(request.offset())
                .ioprio(request.ioprio)
                .rw_flags(if request.fua { libc::RWF_DSYNC } else { 0 })
                .build(),
            What::Flush => Fsync::new(file).flags(FsyncFlags::DATASYNC).build(),
            What::Discard | What::Zeroes => self.forget(request, file),
        };
        Service {
            entry: Some(entry),
            held: false,
        }
    }
}

fn open(path: &Path, flags: i32) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(flags | libc::O_DIRECT | libc::O_CLOEXEC)
        .open(path)
}

fn unopened(path: &Path, error: io::Error) -> DiskError {
    match error.raw_os_error() {
        Some(libc::EINVAL) => DiskError::NotDirect(path.to_owned()),
        Some(libc::EROFS | libc::EACCES | libc::EPERM) => DiskError::NotWritable(path.to_owned()),
        _ => io_error(format!("open {}", path.display()))(error),
    }
}

/// What memory and offsets are to be aligned to without the page cache [bytes]; 0: it cannot be gone around.
fn direct_alignment(file: &File) -> io::Result<(u32, u32)> {
    // SAFETY: all-zero is a valid statx.
    let mut found: libc::statx = unsafe { std::mem::zeroed() };
    // SAFETY: the path is empty and ends, and the kernel writes one statx.
    let done = unsafe {
        libc::statx(
            file.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            libc::STATX_DIOALIGN,
            &raw mut found,
        )
    };
    if done != 0 {
        return Err(io::Error::last_os_error());
    }
    match found.stx_mask & libc::STATX_DIOALIGN != 0 {
        true => Ok((found.stx_dio_mem_align, found.stx_dio_offset_align)),
        // It could be opened so, and pages are aligned to anything that a file system has asked for.
        false => Ok((PAGE, PAGE)),
    }
}

/// Can holes be made in it, and zeroes be written without their bytes? Behind its end there is nothing to lose.
fn forgets(file: &File, size: u64) -> (bool, bool) {
    let offset = size.next_multiple_of(PAGE.into()) as i64;
    let can = |mode: i32| {
        let mode = mode | libc::FALLOC_FL_KEEP_SIZE;
        // SAFETY: no pointers.
        unsafe { libc::fallocate(file.as_raw_fd(), mode, offset, PAGE.into()) == 0 }
    };
    let zeroes = can(libc::FALLOC_FL_ZERO_RANGE);
    // What that has taken is given back.
    (can(libc::FALLOC_FL_PUNCH_HOLE), zeroes)
}

/// 48 bits of these numbers, which every version of this program finds alike (FNV-1a, and the rest folded in).
fn identity(of: [u64; 4]) -> u64 {
    let bytes = of.into_iter().flat_map(u64::to_le_bytes);
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash >> 48) ^ (hash & 0xffff_ffff_ffff)
}

/// Another disk of the same number has another sequence number.
fn device_identity(number: u64, sysfs: &Sysfs) -> u64 {
    let sequence = sysfs.number(&sysfs.whole, "diskseq").unwrap_or(0);
    identity([0, number, sequence, 0])
}

/// Another file of the same inode number has been made at another time.
fn file_identity(metadata: &Metadata) -> u64 {
    let made = metadata.created().ok();
    let made = made.and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
    let made = made.map_or(0, |since| since.as_nanos() as u64);
    identity([1, metadata.dev(), metadata.ino(), made])
}

/// What the kernel says of a block device.
struct Sysfs {
    own: PathBuf,
    /// Of the whole disk, if this is a partition.
    whole: PathBuf,
}

impl Sysfs {
    fn of(number: u64) -> Self {
        let (major, minor) = (libc::major(number), libc::minor(number));
        let link = format!("/sys/dev/block/{major}:{minor}");
        let own = Path::new(&link)
            .canonicalize()
            .unwrap_or_else(|_| link.into());
        let whole = match (own.join("partition").exists(), own.parent()) {
            (true, Some(parent)) => parent.to_owned(),
            _ => own.clone(),
        };
        Self { own, whole }
    }

    fn number(&self, folder: &Path, name: &str) -> Option<u64> {
        let text = std::fs::read_to_string(folder.join(name)).ok()?;
        text.trim().parse().ok()
    }

    fn queue(&self, name: &str) -> Option<u64> {
        self.number(&self.whole.join("queue"), name)
    }
}

/// The identity of what is at that path, without opening it.
pub(crate) fn identity_of(path: &Path) -> io::Result<u64> {
    let metadata = path.metadata()?;
    Ok(match metadata.file_type().is_block_device() {
        true => device_identity(metadata.rdev(), &Sysfs::of(metadata.rdev())),
        false => file_identity(&metadata),
    })
}
