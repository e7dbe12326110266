//! The disk scheduler: `core/disk.h`.

use std::ffi::c_int;
use std::ptr::NonNull;

use crate::raw::{Raw, allocate, release};
use crate::tree::{Leaf, Tree};

unsafe extern "C" {
    fn an_sys_disk_size() -> usize;
    fn an_sys_disk_init(disk: *mut Raw, model: *const DiskModel, mode: u32);
    fn an_sys_disk_class(disk: *mut Raw, parent: Leaf, weight: u32, manner: u32) -> Leaf;
    fn an_sys_disk_remove(disk: *mut Raw, leaf: Leaf) -> c_int;
    fn an_sys_disk_weigh(disk: *mut Raw, leaf: Leaf, weight: u32);
    fn an_sys_disk_promise(
        disk: *mut Raw,
        leaf: Leaf,
        bytes: u32,
        period_ns: u64,
        now_ns: u64,
    ) -> c_int;
    fn an_sys_disk_arrive(
        disk: *mut Raw,
        index: u32,
        leaf: Leaf,
        sector: u64,
        sectors: u32,
        now_ns: u64,
    );
    fn an_sys_disk_next(disk: *mut Raw, now_ns: u64) -> u32;
    fn an_sys_disk_waits_until_ns(disk: *const Raw) -> u64;
    fn an_sys_disk_done(disk: *mut Raw, index: u32, now_ns: u64);
    fn an_sys_disk_counts(disk: *mut Raw, leaf: Leaf, counts: *mut DiskCounts);
}

/// What is known of a disk: `struct an_disk_model`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskModel {
    /// Sectors of 512 bytes, more than 0.
    pub sectors: u64,
    /// What passes in a second [bytes/s], more than 0.
    pub rate: u64,
    /// The shortest seek; without an arm, the time until the first byte [ns].
    pub seek_ns: u64,
    /// What a seek over the whole disk takes beyond that [ns]; 0: there is no arm.
    pub stroke_ns: u64,
    /// A turn of the platters [ns]; 0: there are none.
    pub turn_ns: u64,
    /// Requests that it serves side by side, at least 1.
    pub at_once: u32,
    pad: u32,
}

impl DiskModel {
    /// A disk with an arm and platters, which serves one request at a time.
    pub fn platters(sectors: u64, rate: u64, seek_ns: u64, stroke_ns: u64, turn_ns: u64) -> Self {
        Self {
            sectors: sectors.max(1),
            rate: rate.max(1),
            seek_ns,
            stroke_ns,
            turn_ns,
            at_once: 1,
            pad: 0,
        }
    }

    /// A disk without an arm, which serves so many requests side by side.
    pub fn flash(sectors: u64, rate: u64, first_byte_ns: u64, at_once: u32) -> Self {
        Self {
            at_once: at_once.max(1),
            ..Self::platters(sectors, rate, first_byte_ns, 0, 0)
        }
    }
}

/// What the classes of a disk have shares of: `enum an_disk_mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DiskMode {
    /// The disk's time.
    #[default]
    Time = 0,
    /// What is read and written.
    Bytes = 1,
}

/// How a class has its requests placed: `enum an_manner`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Manner {
    /// One of the others, as its requests come.
    #[default]
    ByUse = 0,
    /// As early as contracts leave room for.
    Interactive = 1,
    /// Where the arm comes by.
    Throughput = 2,
}

/// What became of a class's requests: `struct an_disk_counts`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DiskCounts {
    /// Requests that were done.
    pub requests: u64,
    /// Read and written.
    pub bytes: u64,
    /// The disk's time [ns].
    pub time_ns: u64,
    /// Of the requests, those by contract.
    pub promised: u64,
    /// Of these, those after their deadline.
    pub late: u64,
}

/// The requests of one disk, each named by its giver: more than 0, and less than [`Disk::REQUESTS`].
#[derive(Debug)]
pub struct Disk {
    raw: NonNull<Raw>,
}

// SAFETY: plain data without ties to a thread; all changes go through `&mut`.
unsafe impl Send for Disk {}

impl Disk {
    /// The class of everything unclassified.
    pub const ROOT: Leaf = Tree::ROOT;
    /// Classes that there is room for, at most (`AN_MAX_NODES` of `disk.c`).
    pub const CLASSES: u32 = 1024;
    /// `AN_MAX_REQUESTS`.
    pub const REQUESTS: u32 = 1024;

    /// A disk without requests.
    pub fn new(model: &DiskModel, mode: DiskMode) -> Self {
        // SAFETY: the core says how much it needs, and initialises it.
        unsafe {
            let raw = allocate(an_sys_disk_size());
            an_sys_disk_init(raw.as_ptr(), model, mode as u32);
            Self { raw }
        }
    }

    /// A class below that of `parent`; none: there is no room, or it would lie too deep.
    pub fn create(&mut self, parent: Leaf, weight: u32, manner: Manner) -> Option<Leaf> {
        // SAFETY: `raw` is initialised, and nobody else refers to it during the call; so below.
        let leaf = unsafe { an_sys_disk_class(self.raw.as_ptr(), parent, weight, manner as u32) };
        (leaf != 0).then_some(leaf)
    }

    /// Removes the class, with its contract; false: it has requests, or classes below it, and stays.
    pub fn remove(&mut self, leaf: Leaf) -> bool {
        // SAFETY: see `create`.
        unsafe { an_sys_disk_remove(self.raw.as_ptr(), leaf) == 0 }
    }

    /// Gives the class another weight among its siblings, from the next charge on; 0: it is idle, as by `cpu.idle`.
    pub fn weigh(&mut self, leaf: Leaf, weight: u32) {
        // SAFETY: see `create`.
        unsafe { an_sys_disk_weigh(self.raw.as_ptr(), leaf, weight) }
    }

    /// Promises the class so many bytes in every period; false: that cannot be promised.
    pub fn promise(&mut self, leaf: Leaf, bytes: u32, period_ns: u64, now_ns: u64) -> bool {
        // SAFETY: see `create`.
        unsafe { an_sys_disk_promise(self.raw.as_ptr(), leaf, bytes, period_ns, now_ns) == 0 }
    }

    /// A request comes, for so many sectors; none: it is a flush.
    pub fn arrive(&mut self, index: u32, leaf: Leaf, sector: u64, sectors: u32, now_ns: u64) {
        // SAFETY: see `create`.
        unsafe { an_sys_disk_arrive(self.raw.as_ptr(), index, leaf, sector, sectors, now_ns) }
    }

    /// The request that goes to the disk now; none: nothing goes at present.
    pub fn next(&mut self, now_ns: u64) -> Option<u32> {
        // SAFETY: see `create`.
        let index = unsafe { an_sys_disk_next(self.raw.as_ptr(), now_ns) };
        (index != 0).then_some(index)
    }

    /// When to ask again though nothing comes and nothing is done [ns]; none: never.
    pub fn waits_until_ns(&self) -> Option<u64> {
        // SAFETY: see `create`.
        let until_ns = unsafe { an_sys_disk_waits_until_ns(self.raw.as_ptr()) };
        (until_ns != 0).then_some(until_ns)
    }

    /// A request that went to the disk is done.
    pub fn done(&mut self, index: u32, now_ns: u64) {
        // SAFETY: see `create`.
        unsafe { an_sys_disk_done(self.raw.as_ptr(), index, now_ns) }
    }

    /// What became of the class's requests.
    pub fn counts(&mut self, leaf: Leaf) -> DiskCounts {
        let mut counts = DiskCounts::default();
        // SAFETY: see `create`; the counts are the core's structure.
        unsafe { an_sys_disk_counts(self.raw.as_ptr(), leaf, &raw mut counts) }
        counts
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this size, and not used any more.
        unsafe { release(self.raw, an_sys_disk_size()) }
    }
}
