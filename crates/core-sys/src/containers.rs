//! Resource containers: `core/papers/containers.h`.

use std::ptr::NonNull;

use crate::raw::{Raw, allocate, release};

/// A container, by index. 0 is none.
pub type Container = u32;

/// How a container gets its part of what its parent has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContainerShare {
    /// So much of it, in 1/10000: a guarantee.
    Fixed(u32),
    /// By weight with its kind, of what nobody else took.
    Shared(u32),
}

unsafe extern "C" {
    fn an_sys_containers_size() -> usize;
    fn an_sys_containers_init(containers: *mut Raw, round_ns: u64, tick_ns: u64);
    fn an_sys_containers_create(c: *mut Raw, parent: Container, kind: u32, share: u32)
    -> Container;
    fn an_sys_containers_queue_add(containers: *mut Raw, id: Container);
    fn an_sys_containers_queue_remove(containers: *mut Raw, id: Container);
    fn an_sys_containers_pick(containers: *mut Raw) -> Container;
    fn an_sys_containers_charge(containers: *mut Raw, id: Container, ran_ns: u64);
    fn an_sys_containers_slice_ns(containers: *mut Raw, id: Container) -> u64;
    fn an_sys_containers_tick(containers: *mut Raw, id: Container) -> bool;
}

/// A tree of containers, served on one CPU a round at a time.
#[derive(Debug)]
pub struct Containers {
    raw: NonNull<Raw>,
}

// SAFETY: plain data without ties to a thread; all changes go through `&mut`.
unsafe impl Send for Containers {}

impl Containers {
    /// The container that has everything.
    pub const ROOT: Container = 1;
    /// `AN_CONTAINERS_ROUND_NS`.
    pub const ROUND_NS: u64 = 50_000_000;
    /// `AN_CONTAINERS_TICK_NS`.
    pub const TICK_NS: u64 = 10_000_000;

    /// A tree of the root alone. With a `tick_ns` an allotment ends at the tick that finds it used
    /// up, with 0 to the nanosecond.
    pub fn new(round_ns: u64, tick_ns: u64) -> Self {
        // SAFETY: the core says how much it needs, and initialises it.
        unsafe {
            let raw = allocate(an_sys_containers_size());
            an_sys_containers_init(raw.as_ptr(), round_ns, tick_ns);
            Self { raw }
        }
    }

    /// A container below `parent`; none if its share is not to be had, or there is no room.
    pub fn create(&mut self, parent: Container, share: ContainerShare) -> Option<Container> {
        let (kind, share) = match share {
            ContainerShare::Fixed(part) => (0, part),
            ContainerShare::Shared(weight) => (1, weight),
        };
        // SAFETY: `raw` is initialised and nobody else refers to it; so below.
        let id = unsafe { an_sys_containers_create(self.raw.as_ptr(), parent, kind, share) };
        (id != 0).then_some(id)
    }

    /// A task of the container begins to want to run.
    pub fn queue_add(&mut self, id: Container) {
        // SAFETY: see `create`.
        unsafe { an_sys_containers_queue_add(self.raw.as_ptr(), id) }
    }

    /// A task of the container wants to run no more; it has been charged.
    pub fn queue_remove(&mut self, id: Container) {
        // SAFETY: see `create`.
        unsafe { an_sys_containers_queue_remove(self.raw.as_ptr(), id) }
    }

    /// Whose turn it is.
    pub fn pick(&mut self) -> Option<Container> {
        // SAFETY: see `create`.
        let id = unsafe { an_sys_containers_pick(self.raw.as_ptr()) };
        (id != 0).then_some(id)
    }

    /// A task of the container has run for so long [ns].
    pub fn charge(&mut self, id: Container, ran_ns: u64) {
        // SAFETY: see `create`.
        unsafe { an_sys_containers_charge(self.raw.as_ptr(), id, ran_ns) }
    }

    /// How long a task of the container may run in one go [ns].
    pub fn slice_ns(&mut self, id: Container) -> u64 {
        // SAFETY: see `create`.
        unsafe { an_sys_containers_slice_ns(self.raw.as_ptr(), id) }
    }

    /// The clock strikes while the container is served: true if its allotment is over.
    pub fn tick(&mut self, id: Container) -> bool {
        // SAFETY: see `create`.
        unsafe { an_sys_containers_tick(self.raw.as_ptr(), id) }
    }
}

impl Drop for Containers {
    fn drop(&mut self) {
        // SAFETY: allocated by `new` with this size.
        unsafe { release(self.raw, an_sys_containers_size()) }
    }
}
