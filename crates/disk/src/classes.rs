// SPDX-License-Identifier: GPL-2.0
//! The class of each request, from the kernel: `bpf/disk.bpf.c`, loaded and read.

use std::mem::MaybeUninit;
use std::ptr::addr_of_mut;
use std::sync::Arc;

use libbpf_rs::Link;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};

use crate::MAX_TAGS;
use crate::cello::{MOST_STEPS, Paths, Step};
use crate::error::{DiskError, io_error};
use crate::order::Tag;

#[allow(missing_docs, clippy::all, clippy::undocumented_unsafe_blocks)]
mod skel {
    include!(concat!(env!("OUT_DIR"), "/disk.skel.rs"));
}

use skel::types::{an_sender, bss};
use skel::{DiskSkel, DiskSkelBuilder};

/// Tells the class of a request, by its tag.
pub trait Classes {
    /// Its cgroup, and what was asked for with `ioprio_set(2)`.
    fn of(&self, tag: Tag) -> (u64, u16);

    /// The block device is there, and this is its number (`st_rdev`).
    fn device_is(&self, _number: u64) {}
}

/// Nobody tells.
#[derive(Clone, Copy)]
pub struct NoClasses;

impl Classes for NoClasses {
    fn of(&self, _tag: Tag) -> (u64, u16) {
        (0, 0)
    }
}

/// The kernel tells, as long as this lives.
pub struct Senders {
    /// Memory that the program in the kernel writes, or reads.
    shared: *mut bss,
    _link: Link,
    _skel: DiskSkel<'static>,
}

// SAFETY: what is shared is only read and written as volatile, and the rest is only dropped.
unsafe impl Send for Senders {}
// SAFETY: as above.
unsafe impl Sync for Senders {}

impl Senders {
    /// Loads the program.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn load() -> Result<Arc<Self>, DiskError> {
        let failed = |error: libbpf_rs::Error| {
            let source = std::io::Error::other(error);
            io_error("see the classes of requests")(source)
        };
        // Kept by whoever borrows from it: some bytes for each device.
        let object = Box::leak(Box::new(MaybeUninit::uninit()));
        let open = DiskSkelBuilder::default().open(object).map_err(failed)?;
        let mut skel = open.load().map_err(failed)?;
        let link = skel.progs.issued.attach().map_err(failed)?;
        let shared = skel.maps.bss_data.as_deref_mut();
        let shared = std::ptr::from_mut(shared.expect("the program has variables"));
        Ok(Arc::new(Self {
            shared,
            _link: link,
            _skel: skel,
        }))
    }

    /// Where the sender of a request is told of. It is written before the request comes, and not again until that is
    /// answered.
    fn place(&self, tag: Tag) -> *const an_sender {
        assert!(tag.0 <= MAX_TAGS);
        // SAFETY: it is mapped as long as the skeleton is there, and has room for more than MAX_TAGS.
        unsafe { (&raw const (*self.shared).senders[usize::from(tag.0)]).cast() }
    }
}

impl Classes for Arc<Senders> {
    fn of(&self, tag: Tag) -> (u64, u16) {
        let sender = self.place(tag);
        // SAFETY: as below, of two numbers of it.
        unsafe {
            let class = (&raw const (*sender).cgroup_id).read_volatile();
            (class, (&raw const (*sender).ioprio).read_volatile() as u16)
        }
    }

    fn device_is(&self, number: u64) {
        // SAFETY: as above. The major number is what the program asks for first, so it comes last.
        unsafe {
            addr_of_mut!((*self.shared).first_minor).write_volatile(libc::minor(number));
            addr_of_mut!((*self.shared).major).write_volatile(libc::major(number));
        }
    }
}

impl Paths for Arc<Senders> {
    fn path(&self, tag: Tag, steps: &mut [Step; MOST_STEPS]) -> usize {
        let sender = self.place(tag);
        // SAFETY: as above; as many as are told of are read, of those that there is room for.
        let count = unsafe { (&raw const (*sender).steps).read_volatile() } as usize;
        let count = count.min(MOST_STEPS);
        for (at, step) in steps[..count].iter_mut().enumerate() {
            // SAFETY: as above.
            let told = unsafe { (&raw const (*sender).step[at]).read_volatile() };
            *step = Step {
                cgroup: told.cgroup_id,
                weight: told.weight,
            };
        }
        count
    }
}
