// SPDX-License-Identifier: GPL-2.0
//! All that is to be seen to while a disk is served, except serving it.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::attach::Attached;
use crate::error::{DiskError, io_error};
use crate::handing_on::HandingOn;
use crate::kept::Following;
use crate::users;

/// How often failed requests are told of, and ending is tried again: what somebody who waits for it does not notice.
const LOOK: Duration = Duration::from_secs(1);

/// An event of which a user should hear.
#[derive(Debug)]
pub enum Event<'a> {
    /// Requests have failed since the last time that it was said.
    Failed {
        /// So many.
        requests: u64,
        /// The last one's reason.
        error: io::Error,
        /// And its place.
        sector: u64,
    },
    /// It is to end, and cannot yet: somebody has the device.
    InUse(&'a DiskError),
    /// Somebody has made it swap, which was undone; or could not be.
    Swap(PathBuf, io::Result<()>),
    /// New classes do not have the io controller.
    NotHandedOn(&'a DiskError),
}

/// Serves until the disk is detached, or until `asked` can be read and nobody has it open; then removes it.
///
/// # Errors
/// The server has failed; the device is there then, and waits for another.
pub fn attend(
    mut attached: Attached,
    classes: Option<&HandingOn>,
    following: Option<&Following>,
    asked: BorrowedFd<'_>,
    mut hear: impl FnMut(Event<'_>),
) -> Result<(), DiskError> {
    // Tells by POLLPRI that there is other swap than before.
    let swaps = File::open("/proc/swaps").ok();
    let mut told = 0;
    let mut ending = None;
    loop {
        let ready = wait(
            &attached,
            classes,
            following,
            ending.is_none().then_some(asked),
            swaps.as_ref(),
        )?;
        if ready.ended {
            break;
        }
        if ready.swaps {
            undo_swap(&attached, &mut hear);
        }
        if let (true, Some(Err(error))) = (ready.classes, classes.map(HandingOn::see)) {
            hear(Event::NotHandedOn(&error));
        }
        if let (true, Some(following)) = (ready.settings, following) {
            following.see();
        }
        tell_failed(&attached, &mut told, &mut hear);
        let again = ending.is_some_and(|tried: Instant| tried.elapsed() >= LOOK);
        if ready.asked || again {
            match attached.stop() {
                Err(error) if ready.asked => hear(Event::InUse(&error)),
                _ => {}
            }
            ending = Some(Instant::now());
        }
    }
    tell_failed(&attached, &mut told, &mut hear);
    attached.end()
}

#[derive(Default)]
struct Ready {
    ended: bool,
    asked: bool,
    swaps: bool,
    classes: bool,
    settings: bool,
}

fn wait(
    attached: &Attached,
    classes: Option<&HandingOn>,
    following: Option<&Following>,
    asked: Option<BorrowedFd<'_>>,
    swaps: Option<&File>,
) -> Result<Ready, DiskError> {
    let of = |fd| PollFd::new(fd, PollFlags::POLLIN);
    // Nothing is asked of what is not there.
    let no = || PollFd::new(attached.ended(), PollFlags::empty());
    let mut fds = [
        of(attached.ended()),
        asked.map_or_else(no, of),
        swaps.map_or_else(no, |file| PollFd::new(file.as_fd(), PollFlags::POLLPRI)),
        classes.map_or_else(no, |classes| of(classes.changes())),
        following.map_or_else(no, |following| of(following.changes())),
    ];
    match poll(
        &mut fds,
        PollTimeout::try_from(LOOK).unwrap_or(PollTimeout::MAX),
    ) {
        Err(Errno::EINTR) => return Ok(Ready::default()),
        Err(errno) => return Err(io_error("wait")(errno.into())),
        Ok(_) => {}
    }
    let is = |at: usize, flags: PollFlags| fds[at].revents().is_some_and(|is| is.intersects(flags));
    Ok(Ready {
        ended: is(0, PollFlags::POLLIN | PollFlags::POLLHUP),
        asked: asked.is_some() && is(1, PollFlags::POLLIN | PollFlags::POLLHUP),
        swaps: swaps.is_some() && is(2, PollFlags::POLLPRI),
        classes: classes.is_some() && is(3, PollFlags::POLLIN),
        settings: following.is_some() && is(4, PollFlags::POLLIN),
    })
}

fn tell_failed(attached: &Attached, told: &mut u64, hear: &mut impl FnMut(Event<'_>)) {
    let errors = attached.counts().errors();
    if errors > *told {
        let (number, sector) = attached.counts().last_error();
        hear(Event::Failed {
            requests: errors - *told,
            error: io::Error::from_raw_os_error(number),
            sector,
        });
        *told = errors;
    }
}

/// A page that has to be written to make room for one who writes it would wait for itself. The kernel lets nobody forbid
/// it; but there is hardly anything in a swap yet that has only begun.
fn undo_swap(attached: &Attached, hear: &mut impl FnMut(Event<'_>)) {
    while let Some(path) = attached.number().and_then(users::swap_on) {
        let done = swapoff(&path);
        let failed = done.is_err();
        hear(Event::Swap(path, done));
        if failed {
            return;
        }
    }
}

fn swapoff(path: &Path) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: the kernel reads a string that ends.
    match unsafe { libc::swapoff(path.as_ptr()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
