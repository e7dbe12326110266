//! Memory for structures that only the core knows the inside of.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;

/// A structure of the core's.
pub(crate) enum Raw {}

/// Zeroed memory of `size` > 0 bytes, aligned for any structure of the core.
pub(crate) fn allocate(size: usize) -> NonNull<Raw> {
    let layout = layout(size);
    assert!(size > 0, "the core has no structure without a size");
    // SAFETY: the size is not zero.
    let memory = unsafe { alloc_zeroed(layout) }.cast::<Raw>();
    NonNull::new(memory).unwrap_or_else(|| handle_alloc_error(layout))
}

/// Gives it back.
///
/// # Safety
/// `raw` is from [`allocate`] with this size, and not used any more.
pub(crate) unsafe fn release(raw: NonNull<Raw>, size: usize) {
    // SAFETY: as the caller promises.
    unsafe { dealloc(raw.as_ptr().cast(), layout(size)) }
}

fn layout(size: usize) -> Layout {
    Layout::from_size_align(size, 64).expect("a size the C compiler found possible")
}
