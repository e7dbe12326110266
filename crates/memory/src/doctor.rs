// SPDX-License-Identifier: GPL-2.0
//! This machine's means of reserving memory.

use std::path::Path;

use crate::machine::{Machine, has_controller};
use crate::sysctl::{BOOST, MOVES_LOCKED, Sysctl};

/// One thing that was looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Its name.
    pub title: &'static str,
    /// Whether it is there.
    pub found: bool,
    /// Exactly that which was seen.
    pub detail: String,
    /// The mend; none if it was found.
    pub mend: Option<String>,
}

/// Looks at this machine, whose classes are below this folder.
pub fn examine(root: &Path) -> Vec<Finding> {
    let controller = match has_controller(root) {
        Ok(()) => finding(
            "memory controller",
            "memory is counted for classes apart",
            None,
        ),
        Err(error) => {
            let mend = "boot without cgroup_disable=memory, and with cgroup v2 alone";
            return vec![finding("memory controller", &error.to_string(), Some(mend))];
        }
    };
    let moved = "the kernel moves them, and may lose some: libraries that others have read first are not held for good";
    let raised =
        "the kernel raises them when memory is short: so much is kept free that nobody has";
    vec![
        controller,
        reclaiming(root),
        owners(),
        setting("locked pages", MOVES_LOCKED, moved),
        setting("watermarks", BOOST, raised),
        swap(),
    ]
}

/// A setting of the kernel, and what it does where it cannot be changed.
fn setting(title: &'static str, name: &str, unchanged: &str) -> Finding {
    let sysctl = Sysctl::of_kernel();
    if sysctl.is_right(name) || sysctl.can_be_changed(name) {
        let detail = "they stay where they are while memory is reserved";
        return finding(title, detail, None);
    }
    let mend = format!("sysctl vm.{name}=0, or run andante outside the container");
    finding(title, unchanged, Some(&mend))
}

fn reclaiming(root: &Path) -> Finding {
    let title = "memory.reclaim";
    let exists = root.join("memory.reclaim").exists();
    let below = std::fs::read_dir(root).into_iter().flatten().flatten();
    let mut below = below.map(|entry| entry.path().join("memory.reclaim"));
    match exists || below.any(|file| file.exists()) {
        true => finding(title, "what is not lent can be kept free", None),
        false => finding(
            title,
            "the kernel cannot be told to take memory: all that is reserved and unused is lent",
            Some("boot Linux 5.19 or newer"),
        ),
    }
}

fn owners() -> Finding {
    let title = "owners of pages";
    match Path::new("/proc/kpagecgroup").exists() {
        true => finding(
            title,
            "libraries that others have read first can be held",
            None,
        ),
        false => finding(
            title,
            "the kernel does not say whose a page is: libraries that others have read first may be taken",
            Some("boot a kernel with CONFIG_PROC_PAGE_MONITOR"),
        ),
    }
}

fn swap() -> Finding {
    let title = "swap";
    match Machine::now().map_or(0, |machine| machine.swap) {
        0 => finding(
            title,
            "there is none: only pages of files can be taken from anybody for a reservation",
            Some("give the machine swap, such as zram"),
        ),
        bytes => finding(
            title,
            &format!("{} of it", andante_admission::Size(bytes)),
            None,
        ),
    }
}

fn finding(title: &'static str, detail: &str, mend: Option<&str>) -> Finding {
    Finding {
        title,
        found: mend.is_none(),
        detail: detail.to_owned(),
        mend: mend.map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_has_a_mend() {
        let folder = tempfile::tempdir().unwrap();
        let found = examine(folder.path());
        assert_eq!(found.len(), 1, "without it nothing else matters");
        assert!(!found[0].found && found[0].mend.is_some());
        std::fs::write(folder.path().join("cgroup.controllers"), "cpu memory\n").unwrap();
        let found = examine(folder.path());
        assert!(found[0].found && found.len() == 6);
        assert!(found.iter().all(|one| one.found != one.mend.is_some()));
    }
}
