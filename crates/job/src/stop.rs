//! The wish to end: SIGTERM or SIGINT sets a flag that loops look at.

use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

static REQUESTED: AtomicBool = AtomicBool::new(false);

extern "C" fn note(_: libc::c_int) {
    REQUESTED.store(true, Ordering::Relaxed);
}

/// Takes `signals` as the wish to end; system calls they interrupt return.
pub fn on(signals: &[Signal]) -> nix::Result<()> {
    // No SA_RESTART: sleeps and reads must return.
    let action = SigAction::new(SigHandler::Handler(note), SaFlags::empty(), SigSet::empty());
    for signal in signals {
        // SAFETY: the handler only stores to an atomic.
        unsafe { sigaction(*signal, &action) }?;
    }
    Ok(())
}

/// Whether one of the signals has arrived.
pub fn requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}

/// Sets the flag as a signal would; for tests.
pub fn set(requested: bool) {
    REQUESTED.store(requested, Ordering::Relaxed);
}
