// SPDX-License-Identifier: GPL-2.0
//! Joins a backing to a device, and takes it off again.
//!
//! ```text
//!                 add, set params, start                     stop, delete
//!      (nothing) ───────────────────────► live ◄──────┐ ─────────────────► (nothing)
//!                                          │          │ recover: attach again
//!                                          └─► quiesced
//!                                    server killed
//! ```
//!
//! The kernel keeps which backing a device is of, in a number of 64 bits for servers' own use: a mark, and the backing's
//! identity. Whoever has the backing open exclusively is its only server, so nothing else is locked.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use andante_admission::disk::DiskFigures;
use nix::fcntl::OFlag;

use crate::abi::{self, DeviceInfo, Params};
use crate::backing::{Backing, Place, Shape};
use crate::cello::Settings;
use crate::classes::Classes;
use crate::control::{Control, numbers};
use crate::counts::Counts;
use crate::devices::{MARK, TRY_AGAIN, block_device, delete, find, number_of, serves, stop};
use crate::error::{DiskError, io_error};
use crate::kept::{self, Following};
use crate::note::{self, Note};
use crate::order::Order;
use crate::server::{Descriptors, Server};
use crate::{MAX_BYTES, MAX_TAGS, SECTOR, precedence};

/// A device node that is not there by then does not come.
const NODE: Duration = Duration::from_secs(5);
/// The kernel lets go of a killed server within the time of its longest request: twice the block layer's own limit, 30 s.
const LET_GO: Duration = Duration::from_secs(60);

/// How a device is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// Requests that are known at once, at most [`MAX_TAGS`]; what more programs send waits outside of the order.
    pub tags: u16,
}

impl Default for Wanted {
    fn default() -> Self {
        Self { tags: MAX_TAGS }
    }
}

/// A device that this process serves.
pub struct Attached {
    device: u32,
    identity: u64,
    recovered: bool,
    counts: Arc<Counts>,
    control: Control,
    // Closed at the end, when the device may be removed.
    file: Arc<OwnedFd>,
    ended: OwnedFd,
    thread: Option<JoinHandle<io::Result<()>>>,
}

/// Opens a backing for [`attach`]. Where a former server of it was killed, waits until what that had begun is done.
///
/// # Errors
/// [`DiskError`]: it is in use, or unfit.
pub fn open(path: &Path) -> Result<Place, DiskError> {
    if !nix::unistd::geteuid().is_root() {
        return Err(DiskError::NotRoot);
    }
    let begin = Instant::now();
    loop {
        let error = match Place::open(path) {
            Err(error @ DiskError::BackingInUse { .. }) => error,
            opened => return opened,
        };
        let Some(info) = Control::open().and_then(|mut control| find(&mut control, path))? else {
            return Err(error);
        };
        if serves(&info) {
            return Err(DiskError::Attached {
                path: path.to_owned(),
                device: block_device(info.device),
                server: info.server,
            });
        }
        if begin.elapsed() > LET_GO {
            return Err(error);
        }
        std::thread::sleep(TRY_AGAIN);
    }
}

/// Has a thread serve the backing in that order, as a new device, or as the one that a former server has left.
///
/// # Errors
/// [`DiskError`]; a new device is not there then, and one that was left still waits.
pub fn attach<B, O, C>(
    backing: B,
    order: O,
    classes: C,
    wanted: Wanted,
) -> Result<Attached, DiskError>
where
    B: Backing + Send + 'static,
    O: Order + Send + 'static,
    C: Classes + Clone + Send + 'static,
{
    let mut control = Control::open()?;
    if !control.has(abi::ZERO_COPY | abi::AUTO_BUFFERS) {
        return Err(DiskError::OldUblk);
    }
    let shape = backing.shape();
    let left = left(&mut control, &shape)?;
    let recovered = left.is_some();
    let info = match left {
        Some(info) => recover(&mut control, &shape, info)?,
        None => add(&mut control, &shape, wanted)?,
    };
    let device = info.device;
    let begun = begin(control, backing, order, classes, info, recovered);
    begun.inspect_err(|_| {
        if !recovered && let Ok(mut control) = Control::open() {
            let _ = control.delete(device);
        }
    })
}

/// The device of a former server, if there is one that can be taken over. One that was never started is removed.
fn left(control: &mut Control, shape: &Shape) -> Result<Option<DeviceInfo>, DiskError> {
    for device in numbers() {
        let Ok(info) = control.info(device) else {
            continue;
        };
        if info.own_flags != MARK | shape.identity {
            continue;
        }
        if info.state != abi::DEAD {
            return Ok(Some(info));
        }
        let deleted = delete(control, device);
        deleted.map_err(io_error("remove a device that was left half made"))?;
    }
    Ok(None)
}

fn add(control: &mut Control, shape: &Shape, wanted: Wanted) -> Result<DeviceInfo, DiskError> {
    let mut info = DeviceInfo {
        queues: 1,
        depth: wanted.tags.clamp(1, MAX_TAGS),
        max_io_bytes: MAX_BYTES,
        device: abi::ANY_DEVICE,
        server: std::process::id() as i32,
        flags: abi::USER_RECOVERY
            | abi::USER_RECOVERY_REISSUE
            | abi::ZERO_COPY
            | abi::AUTO_BUFFERS
            | (if control.has(abi::SAFE_STOP) {
                abi::SAFE_STOP
            } else {
                0
            }),
        own_flags: MARK | shape.identity,
        ..Default::default()
    };
    let added = control.add(&mut info);
    added.map_err(io_error("make a block device"))?;
    let told = control.set_params(info.device, params(shape));
    if let Err(error) = told {
        let _ = control.delete(info.device);
        return Err(io_error("tell the kernel what the block device is like")(
            error,
        ));
    }
    Ok(info)
}

fn params(shape: &Shape) -> Params {
    let shift = |bytes: u32| bytes.ilog2() as u8;
    let mut params = Params {
        types: abi::BASIC | abi::DMA_ALIGN,
        dma_mask: shape.memory_alignment - 1,
        ..Default::default()
    };
    // The backing may have a cache of its own, and need not.
    let arm = if shape.rotational { abi::ROTATIONAL } else { 0 };
    params.basic = abi::BasicParams {
        attributes: abi::VOLATILE_CACHE | abi::FUA | arm,
        logical_shift: shift(shape.logical_block),
        physical_shift: shift(shape.physical_block),
        optimal_shift: shift(shape.physical_block),
        minimal_shift: shift(shape.physical_block),
        max_sectors: MAX_BYTES / SECTOR as u32,
        sectors: shape.sectors,
        ..Default::default()
    };
    if let Some(discard) = shape.discard {
        params.types |= abi::DISCARD;
        params.discard = abi::DiscardParams {
            alignment: discard.alignment,
            granularity: discard.granularity,
            max_sectors: discard.max_sectors,
            max_zeroes_sectors: discard.max_zeroes_sectors,
            max_segments: 1,
            reserved: 0,
        };
    }
    params
}

fn recover(
    control: &mut Control,
    shape: &Shape,
    info: DeviceInfo,
) -> Result<DeviceInfo, DiskError> {
    let device = info.device;
    let failed = || io_error(format!("take over {}", block_device(device)));
    let params = control.params(device).map_err(failed())?;
    if params.basic.sectors != shape.sectors {
        return Err(DiskError::OtherSize {
            device: block_device(device),
            sectors: params.basic.sectors,
        });
    }
    patiently(|| control.start_recovery(device)).map_err(failed())?;
    control.info(device).map_err(failed())
}

/// Tries as long as the kernel has not let go of a former server.
fn patiently<T>(mut what: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let begin = Instant::now();
    loop {
        match what() {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) && begin.elapsed() < LET_GO => {
                std::thread::sleep(TRY_AGAIN);
            }
            done => return done,
        }
    }
}

fn begin<B, O, C>(
    mut control: Control,
    backing: B,
    order: O,
    classes: C,
    info: DeviceInfo,
    recovered: bool,
) -> Result<Attached, DiskError>
where
    B: Backing + Send + 'static,
    O: Order + Send + 'static,
    C: Classes + Clone + Send + 'static,
{
    let device = info.device;
    let node = format!("/dev/ublkc{device}");
    let file = open_node(&node).map_err(io_error(format!("open {node}")))?;
    let descriptors = Descriptors::map(&file, info.depth);
    let descriptors = descriptors.map_err(io_error(format!("map requests of {node}")))?;
    let file = Arc::new(OwnedFd::from(file));
    let counts = Arc::new(Counts::default());
    let pipe = nix::unistd::pipe2(OFlag::O_CLOEXEC);
    let (ended, end) = pipe.map_err(|errno| io_error("make a pipe")(errno.into()))?;
    let thread = {
        let (file, counts, classes) = (Arc::clone(&file), Arc::clone(&counts), classes.clone());
        let tags = info.depth;
        spawn(move |ready| {
            // Closed with the thread, however that ends.
            let _end = end;
            precedence::take()?;
            let server = Server::new(backing, order, classes, counts, &file, descriptors, tags);
            let mut server = server?;
            server.fetch_all()?;
            let _ = ready.send(());
            server.run()
        })
    };
    let thread = thread.map_err(io_error(format!("serve {node}")))?;
    let known = || {
        number_of(device)
            .into_iter()
            .for_each(|number| classes.device_is(number))
    };
    // What has waited is handed over at once.
    known();
    let own = std::process::id();
    let started = match recovered {
        true => control.end_recovery(device, own),
        false => control.start(device, own),
    };
    started.map_err(io_error(format!("start {}", block_device(device))))?;
    known();
    // Its order is ours: another before it would only hide requests. A kernel without others has no such file.
    let scheduler = format!("/sys/block/ublkb{device}/queue/scheduler");
    let _ = std::fs::write(scheduler, "none");
    Ok(Attached {
        device,
        identity: info.own_flags,
        recovered,
        counts,
        control,
        file,
        ended,
        thread: Some(thread),
    })
}

/// A thread that serves; returns when it says that it is ready, or why it will not be.
fn spawn(
    serve: impl FnOnce(&Sender<()>) -> io::Result<()> + Send + 'static,
) -> io::Result<JoinHandle<io::Result<()>>> {
    let (ready, is_ready) = channel();
    // The memory of threads is locked as a whole, and this one needs little.
    let thread = std::thread::Builder::new()
        .name("andante-disk".into())
        .stack_size(256 << 10)
        .spawn(move || serve(&ready))?;
    if is_ready.recv().is_ok() {
        return Ok(thread);
    }
    match thread.join() {
        Ok(Err(error)) => Err(error),
        _ => Err(io::Error::other("its thread has ended")),
    }
}

/// It is there a moment after the kernel has made it, and another's for a moment after that was killed.
fn open_node(node: &str) -> io::Result<File> {
    let begin = Instant::now();
    loop {
        let opened = OpenOptions::new().read(true).write(true).open(node);
        let again = |error: &io::Error| {
            error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::EBUSY)
        };
        match opened {
            Err(error) if again(&error) && begin.elapsed() < NODE => {
                std::thread::sleep(TRY_AGAIN);
            }
            opened => return opened,
        }
    }
}

impl Attached {
    /// Its block device.
    #[must_use]
    pub fn path(&self) -> String {
        block_device(self.device)
    }

    /// The number of its block device (`st_rdev`).
    #[must_use]
    pub fn number(&self) -> Option<u64> {
        number_of(self.device)
    }

    /// Whether it is one that a former server has left.
    #[must_use]
    pub fn recovered(&self) -> bool {
        self.recovered
    }

    /// The requests that were served.
    #[must_use]
    pub fn counts(&self) -> Arc<Counts> {
        Arc::clone(&self.counts)
    }

    /// Has an order follow what commands set for classes on this device: contracts, admitted against these figures, and
    /// weights.
    ///
    /// # Errors
    /// [`DiskError`]: it cannot be kept, or watched.
    pub fn follow(
        &self,
        figures: Option<DiskFigures>,
        settings: Arc<Settings>,
    ) -> Result<Following, DiskError> {
        Following::begin(self.device, self.identity, figures, settings)
    }

    /// Writes down for people how it is served.
    pub fn note(&self, note: &Note) {
        note::write(self.device, self.identity, note);
    }

    /// Can be read when it is served no longer, as it is when somebody has detached it.
    #[must_use]
    pub fn ended(&self) -> BorrowedFd<'_> {
        self.ended.as_fd()
    }

    /// Takes it off, unless somebody has it open. Dirty pages of it are written first.
    ///
    /// # Errors
    /// [`DiskError::InUse`]; it is served then as before.
    pub fn stop(&mut self) -> Result<(), DiskError> {
        stop(&mut self.control, self.device, false)
    }

    /// Waits until it is served no longer, and removes it.
    ///
    /// # Errors
    /// The server has failed; the device is there then, and waits for another.
    pub fn end(mut self) -> Result<(), DiskError> {
        let thread = self.thread.take().expect("it is joined here alone");
        let failed = || io_error(format!("serve {}", block_device(self.device)));
        match thread.join() {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Err(failed()(error)),
            Err(_) => return Err(failed()(io::Error::other("its thread has panicked"))),
        }
        note::remove(self.device);
        kept::remove(self.device);
        // As long as the file is open no other device can have its number.
        let deleted = delete(&mut self.control, self.device);
        drop(self.file);
        deleted.map_err(io_error("remove the device"))
    }
}
