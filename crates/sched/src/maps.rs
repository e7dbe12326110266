//! The maps of the loaded scheduler, from any process that may read them.
//!
//! They are found by name among the kernel's maps rather than pinned in a file system, so that a
//! scheduler that was killed leaves nothing behind that could be taken for one that runs.

use std::marker::PhantomData;
use std::ops::Range;

use libbpf_rs::query::{MapInfo, MapInfoIter};
use libbpf_rs::{MapCore, MapFlags, MapHandle};

use crate::error::StateError;
use crate::skel::types;

/// Variables of a BPF object as the skeleton declares them: integers, and what is made of them.
///
/// # Safety
/// Any bytes are a valid value, and the alignment is 8 at most but for the sake of whole cache lines.
pub(crate) unsafe trait Plain {}

// SAFETY: the generator makes them of integers and arrays of integers.
unsafe impl Plain for types::bss {}
// SAFETY: as above.
unsafe impl Plain for types::bss_contracts {}
// SAFETY: as above.
unsafe impl Plain for types::an_tree {}
// SAFETY: as above.
unsafe impl Plain for types::bss_bandwidths {}
// SAFETY: as above.
unsafe impl Plain for types::bss_policies {}
// SAFETY: as above, and unions of such.
unsafe impl Plain for types::task_state {}

/// A copy of such variables, aligned to 8 bytes.
pub(crate) struct Variables<T> {
    words: Vec<u64>,
    of: PhantomData<T>,
}

impl<T: Plain> Variables<T> {
    /// Those of the map of this name, which holds nothing else.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn read(map: &str) -> Result<Self, StateError> {
        Self::all_of(&find(map, size_of::<T>())?)
    }

    /// All that this map holds, under its only key.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn all_of(map: &MapHandle) -> Result<Self, StateError> {
        Self::at(map, &0u32.to_ne_bytes())?.ok_or(StateError::NotLoaded)
    }

    /// What a map keeps under `key`, if anything.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn at(map: &impl MapCore, key: &[u8]) -> Result<Option<Self>, StateError> {
        const { assert!(align_of::<T>() <= 8) };
        let Some(words) = words_at(map, key)? else {
            return Ok(None);
        };
        if words.len() * 8 < size_of::<T>() {
            return Err(StateError::OtherBuild);
        }
        Ok(Some(Self::of(words)))
    }

    /// These bytes of those that are mapped at `from`, and zeros for all others.
    ///
    /// # Safety
    /// They are mapped, as long as this takes; somebody may write them meanwhile.
    pub unsafe fn mapped(from: *const T, parts: &[Range<usize>]) -> Self {
        const { assert!(align_of::<T>() <= 8) };
        // Pages of zeros that nobody touches take neither time nor memory.
        let mut words = vec![0_u64; size_of::<T>().div_ceil(8)];
        for part in parts {
            for at in part.start / 8..part.end.div_ceil(8).min(words.len()) {
                // SAFETY: it is within what is mapped: pages are longer than what fills up the last word.
                words[at] = unsafe { from.cast::<u64>().add(at).read_volatile() };
            }
        }
        Self::of(words)
    }

    /// The elements of an array that is all that a map holds ([`bytes_of`]).
    pub fn each_of(bytes: &[u8]) -> Vec<Self> {
        let elements = bytes.chunks_exact(size_of::<T>());
        elements.map(|bytes| Self::of(words(bytes))).collect()
    }

    fn of(words: Vec<u64>) -> Self {
        let of = PhantomData;
        Self { words, of }
    }

    /// The variables, to change the copy.
    pub fn get_mut(&mut self) -> &mut T {
        // SAFETY: as in `get`; the words are this copy's alone.
        unsafe { &mut *self.words.as_mut_ptr().cast::<T>() }
    }

    /// The variables.
    pub fn get(&self) -> &T {
        // SAFETY: the words cover the type (`at`), are aligned to 8 bytes, as it is, and it is valid
        // whatever they are (`Plain`).
        unsafe { &*self.words.as_ptr().cast::<T>() }
    }
}

/// All that this map holds, under its only key. A class tree is more than a million bytes: a caller that wants
/// it to be of one instant leaves everything else for later.
///
/// # Errors
/// [`StateError`].
pub(crate) fn bytes_of(map: &MapHandle) -> Result<Vec<u8>, StateError> {
    let bytes = map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY)?;
    bytes.ok_or(StateError::NotLoaded)
}

/// What a map keeps under `key`, if anything.
fn words_at(map: &impl MapCore, key: &[u8]) -> Result<Option<Vec<u64>>, StateError> {
    let bytes = map.lookup(key, MapFlags::ANY)?;
    Ok(bytes.map(|bytes| words(&bytes)))
}

/// In words; zeros fill up the last one. The loop is one that compilers unroll.
pub(crate) fn words(bytes: &[u8]) -> Vec<u64> {
    let (whole, rest) = bytes.as_chunks::<8>();
    let mut words: Vec<u64> = whole.iter().copied().map(u64::from_ne_bytes).collect();
    if !rest.is_empty() {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        words.push(u64::from_ne_bytes(last));
    }
    words
}

/// The newest map of this name; it has the highest id and comes last.
pub(crate) fn newest(name: &str) -> Option<MapInfo> {
    MapInfoIter::default()
        .filter(|info| info.name.to_string_lossy() == name)
        .last()
}

/// The newest map of this name, whose values have this size, but for what fills up the last word.
///
/// # Errors
/// There is none, or this user may not look, or it is another build's.
pub(crate) fn find(name: &str, value_size: usize) -> Result<MapHandle, StateError> {
    let Some(info) = newest(name) else {
        // Without the right to list maps the list is empty, as if there were none.
        // SAFETY: geteuid cannot fail and touches no memory of ours.
        let root = unsafe { libc::geteuid() } == 0;
        return Err(if root {
            StateError::NotLoaded
        } else {
            StateError::NotPermitted
        });
    };
    if (info.value_size as usize).next_multiple_of(8) != value_size {
        return Err(StateError::OtherBuild);
    }
    Ok(MapHandle::from_map_id(info.id)?)
}
