//! The scheduler's state in the process that has loaded it, where the kernel's variables are mapped: no map has to be
//! found among all that there are, and only what is in use is copied.

use std::mem::offset_of;
use std::ops::Range;

use crate::class::cgroup_root;
use crate::error::StateError;
use crate::explained::{self, Explained};
use crate::loader::Scheduler;
use crate::maps::Variables;
use crate::skel::types;
use crate::snapshot::Seen;
use crate::state::{State, cgroup_paths, monotonic_ns};
use crate::watched::{rhythm_ns, watched_in};

/// Of the table of contracts by leaf [bytes].
const LEAF_CONTRACTS: usize = {
    const fn size<T>(_: fn(&types::bss_contracts) -> &T) -> usize {
        size_of::<T>()
    }
    size(|of| &of.leaf_contracts)
};

impl Scheduler {
    /// All that is to be seen at this instant.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn seen(&self) -> Result<Seen, StateError> {
        let mapped = (self.object.tree(), self.object.variables());
        // Of several trees most of the copying is what it takes anyway.
        let (Some(tree), Some(variables), true) = (mapped.0, mapped.1, self.domains().count == 1)
        else {
            return Seen::now();
        };
        let begun_ns = monotonic_ns();
        // SAFETY: the skeleton has them mapped for as long as it lives.
        let (tree, stats) = unsafe {
            let stats = &raw const (*variables).stats;
            (tree_in_use(tree), stats.read_volatile())
        };
        let now_ns = begun_ns.midpoint(monotonic_ns());
        let unused = tree.get().unused as usize;
        let limited = tree.get().nodes[..unused]
            .iter()
            .any(|node| node.bandwidth != 0);
        let bandwidths = self.object.bandwidths().filter(|_| limited);
        let state = State {
            // SAFETY: as above.
            bandwidths: bandwidths.map(|from| unsafe {
                Variables::mapped(
                    from,
                    &[of_array::<types::an_bandwidth>(
                        offset_of!(types::bss_bandwidths, bandwidths.of),
                        unused,
                    )],
                )
            }),
            // SAFETY: as above.
            policies: self.object.policies().map(|from| unsafe {
                Variables::mapped(
                    from,
                    &[of_array::<types::an_leaf_policy>(
                        offset_of!(types::bss_policies, leaf_policies),
                        unused,
                    )],
                )
            }),
            tree,
            domains: 1,
        };
        let snapshot = state.snapshot(now_ns, &cgroup_paths(&cgroup_root()?));
        Ok(Seen::of(snapshot, &stats))
    }

    /// What was learnt of the threads of a process, or of one thread; none: there is no such process.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn explained(&self, pid: i32) -> Result<Option<Vec<Explained>>, StateError> {
        let Some(from) = self.object.contracts() else {
            return explained::explained(pid);
        };
        // SAFETY: the skeleton has them mapped for as long as it lives.
        let contracts = unsafe { contracts_in_use(from) };
        let watched = watched_in(self.object.task_states(), contracts.get(), pid)?;
        Ok(explained::of_all(watched))
    }

    /// The rhythm in which a thread wakes by itself [ns]; none: there is none, or no such thread. To ask for it takes some 15 µs.
    pub fn rhythm_ns(&self, tid: i32) -> Option<u32> {
        rhythm_ns(self.object.task_states(), tid).ok().flatten()
    }
}

/// The contracts that there have been, who holds them, and what all share.
///
/// # Safety
/// They are mapped.
unsafe fn contracts_in_use(from: *const types::bss_contracts) -> Variables<types::bss_contracts> {
    type Bss = types::bss_contracts;
    // SAFETY: the caller's word.
    unsafe {
        let unused = (&raw const (*from).contracts.unused).read_volatile() as usize;
        let one = |offset: usize| offset & !7..offset + 8;
        Variables::mapped(
            from,
            &[
                of_array::<types::an_contract>(offset_of!(Bss, contracts.contracts), unused),
                of_array::<types::an_holder>(offset_of!(Bss, holders), unused),
                offset_of!(Bss, leaf_contracts) & !7
                    ..offset_of!(Bss, leaf_contracts) + LEAF_CONTRACTS,
                one(offset_of!(Bss, contracts.learn_bound)),
            ],
        )
    }
}

/// The nodes that have been used, their cgroups, and what stands between.
///
/// # Safety
/// The tree is mapped.
unsafe fn tree_in_use(tree: *const types::an_tree) -> Variables<types::an_tree> {
    // SAFETY: the caller's word.
    unsafe {
        let unused = (&raw const (*tree).unused).read_volatile() as usize;
        Variables::mapped(
            tree,
            &[
                of_array::<types::an_node>(offset_of!(types::an_tree, nodes), unused),
                offset_of!(types::an_tree, quantum_ns)..offset_of!(types::an_tree, cgroup_id),
                of_array::<u64>(offset_of!(types::an_tree, cgroup_id), unused),
            ],
        )
    }
}

/// The bytes of the first elements of an array.
fn of_array<T>(offset: usize, elements: usize) -> Range<usize> {
    offset..offset + elements * size_of::<T>()
}
