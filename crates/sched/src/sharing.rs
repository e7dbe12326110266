// SPDX-License-Identifier: GPL-2.0
//! Cgroups that share their parent's class, because the class table is full (`bpf/classes.h`).

use libbpf_rs::{MapCore, MapFlags, MapHandle, ProgramInput};
use serde::{Deserialize, Serialize};

use crate::error::StateError;
use crate::loader::Scheduler;
use crate::maps;
use crate::state;

/// Places in the class table; a class takes one, and one more if it has children (`AN_MAX_NODES`, of which
/// nobody has the first).
pub const MAX_CLASSES: u32 = 8191;
/// Cgroups that are looked at in a call: as many as there may be classes, some milliseconds.
const LOOK_AT: usize = MAX_CLASSES as usize;
/// The map's name, as the kernel keeps it.
const MAP: &str = "class_sharing";

/// `AN_CLASS_PARENT_SHARES` and `AN_CLASS_NO_ROOM` of `bpf/intf.h`.
const PARENT_SHARES: i32 = -11;
const NO_ROOM: i32 = -28;

/// How full the class table is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sharing {
    /// Cgroups that share their parent's class now: their weights do nothing.
    pub shared: u64,
    /// Places in the table.
    pub places: u32,
}

impl Sharing {
    /// So many share.
    pub(crate) fn of(shared: u64) -> Self {
        Self {
            shared,
            places: MAX_CLASSES,
        }
    }

    /// What is to be said of it, and what mends it; none if no cgroup shares.
    pub fn warning(&self) -> Option<(String, String)> {
        let (count, share, their) = match self.shared {
            0 => return None,
            1 => (
                "1 cgroup".to_owned(),
                "shares its parent's class, and its weight does",
                "it",
            ),
            many => (
                format!("{many} cgroups"),
                "share their parents' classes, and their weights do",
                "each",
            ),
        };
        Some((
            format!(
                "{count} {share} nothing: all {} places for classes are taken",
                self.places
            ),
            format!(
                "remove cgroups that nobody needs: {their} gets a class of its own within seconds"
            ),
        ))
    }
}

/// How many cgroups share their parent's class.
///
/// # Errors
/// [`StateError`].
pub fn sharing() -> Result<Sharing, StateError> {
    Ok(Sharing::of(state::counted()?.classes_shared))
}

/// Whether the cgroup of this id shares its parent's class.
///
/// # Errors
/// [`StateError`].
pub fn shares_class(cgroup_id: u64) -> Result<bool, StateError> {
    let map: MapHandle = maps::find(MAP, 8)?;
    Ok(map
        .lookup(&cgroup_id.to_ne_bytes(), MapFlags::ANY)?
        .is_some())
}

impl Scheduler {
    /// Gives cgroups that share their parent's class one of their own, as long as there is room, and `most` of
    /// them; how many have got one.
    pub fn own_classes(&mut self, most: usize) -> usize {
        let shared = self.object.variables().map_or(0, |variables| {
            // SAFETY: the pointer is to the mapped section, which lives as long as the skeleton. The kernel
            // writes it at any time, hence the volatile read.
            unsafe { (&raw const (*variables).stats.classes_shared).read_volatile() }
        });
        if shared == 0 || !self.has_place() {
            return 0;
        }
        let ids = self.object.class_sharing().keys().take(LOOK_AT);
        let id = |key: Vec<u8>| key.try_into().map(u64::from_ne_bytes).ok();
        let mut ids: Vec<u64> = ids.filter_map(id).collect();
        // Parents were made before their children.
        ids.sort_unstable();
        let mut given = 0;
        for id in ids {
            match self.own_class(id) {
                Some(0) => given += 1,
                Some(PARENT_SHARES) => {}
                Some(NO_ROOM) | Some(_) | None => break,
            }
            if given == most {
                break;
            }
        }
        given
    }

    /// Whether the table has a free place at all.
    fn has_place(&self) -> bool {
        self.object.tree().is_some_and(|tree| {
            // SAFETY: as above.
            let read = |field: *const u32| unsafe { field.read_volatile() };
            // SAFETY: no reference is made, and the pointers are into the section.
            let (free, unused) =
                unsafe { (&raw const (*tree).free_next, &raw const (*tree).unused) };
            read(free) != 0 || read(unused) <= MAX_CLASSES
        })
    }

    /// What the program answers.
    fn own_class(&mut self, cgroup_id: u64) -> Option<i32> {
        let section = self.object.contracts_mut()?;
        // SAFETY: the pointer is to the mapped section. Only this process writes there.
        unsafe { (&raw mut (*section).contract_call.cgroup_id).write_volatile(cgroup_id) };
        let program = self.object.class_program();
        let ran = program.test_run(ProgramInput::default()).ok()?;
        Some(ran.return_value as i32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skel::types;

    #[test]
    fn the_table_has_the_kernels_length() {
        // Of the type: a tree is too large for a test's stack.
        fn length<const N: usize>(_: impl Fn(types::an_tree) -> [types::an_node; N]) -> usize {
            N
        }
        assert_eq!(length(|tree| tree.nodes), MAX_CLASSES as usize + 1);
    }

    #[test]
    fn a_full_table_is_told_with_its_mend() {
        let sharing = |shared| Sharing {
            shared,
            places: MAX_CLASSES,
        };
        assert_eq!(sharing(0).warning(), None);
        let (cause, mend) = sharing(1).warning().unwrap();
        assert!(
            cause.starts_with("1 cgroup shares its parent's class"),
            "{cause}"
        );
        assert!(mend.contains("remove cgroups"), "{mend}");
        let (cause, _) = sharing(210).warning().unwrap();
        assert!(
            cause.starts_with("210 cgroups share") && cause.contains("8191"),
            "{cause}"
        );
    }
}
