// SPDX-License-Identifier: GPL-2.0
//! A child of `fork` has its parent's pages mapped, and shares its connection. Neither is the child's: what it
//! wrote there would be taken for the parent's word. So each child is of another *generation*, which costs a
//! load to compare, and whatever is of an older one is left alone.

use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

static GENERATION: AtomicU32 = AtomicU32::new(0);
static WATCHED: Once = Once::new();

extern "C" fn in_child() {
    GENERATION.fetch_add(1, Relaxed);
}

/// From now on forks are seen. Those by a bare `clone` are not: libc does not see them either.
pub fn watch() {
    WATCHED.call_once(|| {
        // SAFETY: the handler only adds to a number, which is allowed in a child of any program. The library
        // is never unloaded (build.rs). It fails for want of memory alone; then `Shared` still asks for the pid.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}

/// That of this process.
pub fn generation() -> u32 {
    GENERATION.load(Relaxed)
}
