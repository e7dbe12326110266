// SPDX-License-Identifier: GPL-2.0
//! The thread that serves, and its needs of the kernel, so that it waits for nobody who waits for it.

use std::io;

/// Above every task that is not real-time, and below all that are: a request takes microseconds of the CPU.
const PRIORITY: i32 = 1;
/// Where that is refused.
const LEAST_NICE: i32 = -20;

/// `include/uapi/linux/prctl.h`
const PR_SET_IO_FLUSHER: i32 = 57;

/// For the calling thread, and for those that the kernel makes for its ring.
///
/// # Errors
/// The kernel does not let it be one that memory is cleaned through (it lacks `CAP_SYS_RESOURCE`): then it could wait
/// for itself.
pub(crate) fn take() -> io::Result<()> {
    // What it allocates must not be made free by writing to its own device.
    // SAFETY: no pointers.
    if unsafe { libc::prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let parameter = libc::sched_param {
        sched_priority: PRIORITY,
    };
    // SAFETY: the kernel reads the variable.
    if unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameter) } != 0 {
        // A group of real-time tasks may have no time; served late is better than not.
        // SAFETY: no pointers.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, LEAST_NICE) };
    }
    Ok(())
}

/// Locks all memory of the process, present and future: a page that is read from a disk, or written to one to make room,
/// may be on the one that is served.
///
/// # Errors
/// The kernel's.
pub fn lock_memory() -> io::Result<()> {
    let all =
        nix::sys::mman::MlockAllFlags::MCL_CURRENT | nix::sys::mman::MlockAllFlags::MCL_FUTURE;
    Ok(nix::sys::mman::mlockall(all)?)
}
