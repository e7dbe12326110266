//! Memory that a process shares with its children.

use std::num::NonZeroUsize;
use std::ptr::NonNull;

use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// Elements whose all-zero bytes are a value, in memory of their own.
pub(super) struct Shared<T: Copy> {
    memory: NonNull<T>,
    len: usize,
}

impl<T: Copy> Shared<T> {
    /// Zeros that children see and change as well.
    pub fn among_children(len: usize) -> nix::Result<Self> {
        Self::map(len, MapFlags::MAP_SHARED)
    }

    /// Zeros that are this process's alone, of pages that nobody has touched.
    pub fn private(len: usize) -> nix::Result<Self> {
        Self::map(len, MapFlags::MAP_PRIVATE)
    }

    fn map(len: usize, flags: MapFlags) -> nix::Result<Self> {
        let bytes = NonZeroUsize::new(len * size_of::<T>()).ok_or(nix::Error::EINVAL)?;
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: new memory that nobody else refers to.
        let memory = unsafe { mmap_anonymous(None, bytes, access, flags) }?;
        Ok(Self {
            memory: memory.cast(),
            len,
        })
    }

    /// The elements. Another process may change them at any time, so they are read after it has ended
    /// or said that it is done.
    pub fn get(&mut self) -> &mut [T] {
        // SAFETY: `len` elements are mapped at the start of a page, all-zero or written as values of
        // this type, and live as long as this.
        unsafe { std::slice::from_raw_parts_mut(self.memory.as_ptr(), self.len) }
    }
}

impl<T: Copy> Drop for Shared<T> {
    fn drop(&mut self) {
        // SAFETY: mapped with this length in `map`; nobody refers to it any more.
        let _ = unsafe { munmap(self.memory.cast(), self.len * size_of::<T>()) };
    }
}
