//! The class tree: `core/tree.h` and `core/hsfq.h`.

use std::ffi::c_int;
use std::ptr::NonNull;

use crate::raw::{Raw, allocate, release};

/// A class, by the index of its leaf. 0 is none.
pub type Leaf = u32;

unsafe extern "C" {
    fn an_sys_tree_size() -> usize;
    fn an_sys_tree_init(tree: *mut Raw, quantum_ns: u64, cpus: u32);
    fn an_sys_class_create(tree: *mut Raw, parent: Leaf, weight: u32) -> Leaf;
    fn an_sys_class_remove(tree: *mut Raw, leaf: Leaf) -> c_int;
    fn an_sys_class_set_weight(tree: *mut Raw, leaf: Leaf, weight: u32);
    fn an_sys_class_service_ns(tree: *mut Raw, leaf: Leaf) -> u64;
    fn an_sys_ready(tree: *mut Raw) -> u32;
    fn an_sys_queue_add(tree: *mut Raw, leaf: Leaf);
    fn an_sys_queue_withdraw(tree: *mut Raw, leaf: Leaf);
    fn an_sys_pick(tree: *mut Raw) -> Leaf;
    fn an_sys_continue(tree: *mut Raw, leaf: Leaf) -> bool;
    fn an_sys_stop(tree: *mut Raw, leaf: Leaf, service_ns: u64);
    fn an_sys_unpick(tree: *mut Raw, leaf: Leaf);
    fn an_sys_serve_unpicked(tree: *mut Raw, leaf: Leaf);
    fn an_sys_preempt_after_ns(tree: *mut Raw, woken: Leaf, serving: Leaf) -> u64;
}

/// A class tree that shares CPUs by hierarchical start-time fair queueing.
#[derive(Debug)]
pub struct Tree {
    raw: NonNull<Raw>,
}

// SAFETY: the tree is plain data without ties to a thread; all changes go through `&mut`.
unsafe impl Send for Tree {}

macro_rules! calls {
    ($($(#[$about:meta])* $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? = $call:ident;)*) => {
        $($(#[$about])*
        pub fn $name(&mut self $(, $argument: $type)*) $(-> $result)? {
            // SAFETY: `raw` is an initialised tree that nobody else refers to during the call.
            unsafe { $call(self.raw.as_ptr() $(, $argument)*) }
        })*
    };
}

impl Tree {
    /// The class of everything unclassified: the root's own leaf.
    pub const ROOT: Leaf = 2;

    /// An empty tree for `cpus` CPUs, whose picks are expected to use `quantum_ns` [ns].
    pub fn new(quantum_ns: u64, cpus: u32) -> Self {
        // SAFETY: the core says how much it needs, and initialises it.
        unsafe {
            let raw = allocate(an_sys_tree_size());
            an_sys_tree_init(raw.as_ptr(), quantum_ns, cpus);
            Self { raw }
        }
    }

    /// A class below that of `parent`; none when there is no room or it would lie too deep.
    pub fn create(&mut self, parent: Leaf, weight: u32) -> Option<Leaf> {
        // SAFETY: see `calls`.
        let leaf = unsafe { an_sys_class_create(self.raw.as_ptr(), parent, weight) };
        (leaf != 0).then_some(leaf)
    }

    /// Removes a class; false when it has children or queued tasks, or is the root's.
    pub fn remove(&mut self, leaf: Leaf) -> bool {
        // SAFETY: see `calls`.
        unsafe { an_sys_class_remove(self.raw.as_ptr(), leaf) == 0 }
    }

    /// The leaf whose task is to run next, none if no leaf has one.
    pub fn pick(&mut self) -> Option<Leaf> {
        // SAFETY: see `calls`.
        let leaf = unsafe { an_sys_pick(self.raw.as_ptr()) };
        (leaf != 0).then_some(leaf)
    }

    calls! {
        /// The weight of a class among its siblings, from the next charge on.
        set_weight(leaf: Leaf, weight: u32) = an_sys_class_set_weight;
        /// CPU time that the class and those below it have been charged [ns].
        service_ns(leaf: Leaf) -> u64 = an_sys_class_service_ns;
        /// Leaves that may be picked.
        ready() -> u32 = an_sys_ready;
        /// A task has been queued in the leaf.
        queue_add(leaf: Leaf) = an_sys_queue_add;
        /// A queued task left the leaf without having been picked.
        queue_withdraw(leaf: Leaf) = an_sys_queue_withdraw;
        /// Takes another task of the leaf within the same quantum; false: there is none.
        continue_with(leaf: Leaf) -> bool = an_sys_continue;
        /// The quantum that a CPU was picked for is over, after `service_ns`.
        stop(leaf: Leaf, service_ns: u64) = an_sys_stop;
        /// Gives a pick back.
        unpick(leaf: Leaf) = an_sys_unpick;
        /// A task of the leaf runs on a CPU without having been picked.
        serve_unpicked(leaf: Leaf) = an_sys_serve_unpicked;
        /// How much of its quantum the task in service should have before the woken one [ns].
        preempt_after_ns(woken: Leaf, serving: Leaf) -> u64 = an_sys_preempt_after_ns;
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        // SAFETY: allocated by `new` with this size.
        unsafe { release(self.raw, an_sys_tree_size()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// algorithms: root{S1 w2 {a w1, b w3}, S2 w6 {c w1}}, 1600 equal quanta.
    #[test]
    fn the_golden_tree_shares_exactly() {
        const QUANTUM_NS: u64 = 1_000_000;
        let mut tree = Tree::new(QUANTUM_NS, 1);
        let s1 = tree.create(Tree::ROOT, 2).unwrap();
        let s2 = tree.create(Tree::ROOT, 6).unwrap();
        let leaves = [
            tree.create(s1, 1).unwrap(),
            tree.create(s1, 3).unwrap(),
            tree.create(s2, 1).unwrap(),
        ];
        for leaf in leaves {
            tree.queue_add(leaf);
        }
        for _ in 0..1600 {
            let leaf = tree.pick().unwrap();
            tree.queue_add(leaf);
            tree.stop(leaf, QUANTUM_NS);
        }
        let quanta = leaves.map(|leaf| tree.service_ns(leaf) / QUANTUM_NS);
        assert_eq!(quanta, [100, 300, 1200]);
        assert!(!tree.remove(s1), "it has children");
        assert!(!tree.remove(leaves[0]), "it has a task");
    }
}
