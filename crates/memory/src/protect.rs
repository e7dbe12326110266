// SPDX-License-Identifier: GPL-2.0
//! The amount that the kernel takes from a class in no case (`memory.min`): set for the class and for every class above it, and put
//! back as it was.
//!
//! The kernel grants a class no more than what the classes above it have. So each of them has what it had, and what
//! the reservations below it need in addition:
//!
//! ```text
//!     set(class) = max(reservation, former + sum over classes directly below of (set - former))
//! ```
//!
//! The former amount is written down in a file before anything is changed, so that it can be put back whatever
//! becomes of this process. Somebody else may change `memory.min` meanwhile, as systemd does for its units. Then what
//! that one has set is what was there before, ours is put on top of it again, and it is said.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::cgroup::{Cgroup, inode};
use crate::error::{MemoryError, file};
use crate::sysctl::Sysctl;
use crate::{firewall, kept};

/// A class, by its folder below the root; the root is empty.
pub type Relative = PathBuf;

/// How a class was before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Former {
    /// The inode of its folder: another class of that name has another.
    inode: u64,
    /// The amount that it had [bytes].
    min: u64,
    /// The amount that we have set [bytes].
    set: u64,
}

/// All that was changed, and is to be put back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Kept {
    classes: BTreeMap<Relative, Former>,
    /// Classes that were told to count the memory of those below them apart.
    handing_on: BTreeSet<Relative>,
    /// Settings of the kernel, as they were.
    #[serde(default)]
    settings: BTreeMap<String, String>,
}

/// Somebody else has changed what we had set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// The class.
    pub class: Relative,
    /// The amount that we had set [bytes].
    pub set: u64,
    /// The amount that was found [bytes].
    pub found: u64,
}

/// The protection of all reservations.
#[derive(Debug)]
pub struct Protection {
    root: PathBuf,
    file: PathBuf,
    sysctl: Sysctl,
    kept: Kept,
    wanted: BTreeMap<Relative, u64>,
}

impl Protection {
    /// Nothing is reserved. If another has left something to put back in this file, that is done first.
    ///
    /// # Errors
    /// The file cannot be read or removed.
    pub fn open(root: &Path, file: &Path, sysctl: Sysctl) -> Result<Self, MemoryError> {
        let mut protection = Self {
            root: root.to_owned(),
            file: file.to_owned(),
            sysctl,
            kept: kept::read(file)?,
            wanted: BTreeMap::new(),
        };
        protection.set(BTreeMap::new())?;
        Ok(protection)
    }

    /// The root of all classes.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The sum that is protected in the classes directly below the root, without ours [bytes].
    pub fn protected_by_others(&self) -> u64 {
        let all = crate::machine::protected(&self.root);
        let directly =
            (self.kept.classes.iter()).filter(|(class, _)| class.components().count() == 1);
        let ours = directly.map(|(_, former)| former.set.saturating_sub(former.min));
        all.saturating_sub(ours.sum())
    }

    /// Protects exactly these from now on, so many bytes each; classes that are gone are left out.
    ///
    /// # Errors
    /// The former amounts cannot be written down, or a class cannot be protected: then the others are, and those
    /// that were before.
    pub fn set(&mut self, mut wanted: BTreeMap<Relative, u64>) -> Result<(), MemoryError> {
        self.forget_those_gone();
        // The kernel counts in pages, and what it says is to be what was set.
        let page = crate::machine::page();
        wanted
            .values_mut()
            .for_each(|bytes| *bytes = bytes.next_multiple_of(page));
        let before = std::mem::replace(&mut self.wanted, wanted);
        match self.apply() {
            Ok(()) => Ok(()),
            Err(error) => {
                self.wanted = before;
                let _ = self.apply();
                Err(error)
            }
        }
    }

    /// Sees what others have changed meanwhile, and puts ours on top of it.
    pub fn look(&mut self) -> Vec<Changed> {
        self.forget_those_gone();
        let mut changed = Vec::new();
        for (class, former) in &mut self.kept.classes {
            let Ok(found) = Cgroup::new(self.root.join(class)).protected() else {
                continue;
            };
            if found != former.set {
                changed.push(Changed {
                    class: class.clone(),
                    set: former.set,
                    found,
                });
                former.min = found;
                former.set = found;
            }
        }
        if !changed.is_empty() {
            // If it cannot be now, it is tried when there is another change.
            let _ = self.apply();
        }
        changed
    }

    /// Makes the files say what is wanted.
    fn apply(&mut self) -> Result<(), MemoryError> {
        let wanted: Vec<_> = self.wanted.keys().cloned().collect();
        for class in &wanted {
            for above in class.ancestors().skip(1) {
                self.kept_of_handing_on(above);
            }
            for class in class.ancestors().filter(|class| !is_root(class)) {
                self.kept_of(class);
            }
        }
        let former = |class: &Path| self.kept.classes.get(class).map_or(0, |kept| kept.min);
        let targets = targets(&self.wanted, &former);
        if !wanted.is_empty() {
            // One that somebody has changed meanwhile is as it is now afterwards.
            self.kept.settings.extend(self.sysctl.wrong());
        }
        self.write_down(&targets)?;
        // Where one cannot be written, doctor says so; all else is protected as well.
        for (name, before) in &self.kept.settings {
            let _ = match wanted.is_empty() {
                true => self.sysctl.put_back(name, before),
                false => self.sysctl.set(name),
            };
        }
        if wanted.is_empty() {
            self.kept.settings.clear();
        }
        self.hand_on()?;
        let mut failed = None;
        for (class, former) in &self.kept.classes {
            let target = targets.get(class).copied().unwrap_or(former.min);
            let cgroup = Cgroup::new(self.root.join(class));
            // One that is gone needs nothing.
            if cgroup.protected().is_ok_and(|min| min != target)
                && let Err(error) = cgroup.set_protected(target)
            {
                // All others are protected, or put back, all the same.
                failed.get_or_insert(file(&cgroup.file("memory.min"))(error));
            }
        }
        if let Some(error) = failed {
            return Err(error);
        }
        self.kept
            .classes
            .retain(|class, _| targets.contains_key(class));
        self.hand_on_no_more();
        self.write_down(&targets)
    }

    /// Notes what a class has before it is changed for the first time.
    fn kept_of(&mut self, class: &Path) {
        if self.kept.classes.contains_key(class) {
            return;
        }
        let folder = self.root.join(class);
        let Ok(inode) = inode(&folder) else { return };
        // Without the controller it has nothing.
        let min = Cgroup::new(folder).protected().unwrap_or(0);
        let former = Former {
            inode,
            min,
            set: min,
        };
        self.kept.classes.insert(class.to_owned(), former);
    }

    fn kept_of_handing_on(&mut self, class: &Path) {
        if !hands_on(&self.root.join(class)) {
            self.kept.handing_on.insert(class.to_owned());
        }
    }

    /// Has the classes above reservations count the memory of those below them apart, from the root down.
    fn hand_on(&mut self) -> Result<(), MemoryError> {
        for class in self.handing_on_now() {
            let folder = self.root.join(&class);
            if hands_on(&folder) || !folder.exists() {
                continue;
            }
            let control = folder.join("cgroup.subtree_control");
            let done = match fs::write(&control, "+memory") {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                    Err(MemoryError::Busy(folder))
                }
                done => done.map_err(file(&control)),
            };
            if done.is_err() {
                // Nothing of it is to be put back, and it must keep nothing else from that.
                self.kept.handing_on.remove(&class);
                return done;
            }
        }
        Ok(())
    }

    /// The classes above reservations.
    fn handing_on_now(&self) -> BTreeSet<Relative> {
        let above = self
            .wanted
            .keys()
            .flat_map(|class| class.ancestors().skip(1));
        above.map(Path::to_owned).collect()
    }

    /// Takes that back where no reservation needs it, and nobody has set anything of the classes below meanwhile.
    fn hand_on_no_more(&mut self) {
        let needed = self.handing_on_now();
        let unneeded: Vec<_> = self.kept.handing_on.difference(&needed).cloned().collect();
        let formerly = firewall::formerly(&self.file);
        // From below: a class hands on what it is given.
        for class in unneeded.into_iter().rev() {
            let folder = self.root.join(&class);
            if !folder.exists() || is_as_by_default_below(&folder, &formerly) {
                let _ = fs::write(folder.join("cgroup.subtree_control"), "-memory");
            }
            self.kept.handing_on.remove(&class);
        }
    }

    fn forget_those_gone(&mut self) {
        let root = &self.root;
        let same = |class: &Relative, former: &Former| {
            inode(&root.join(class)).is_ok_and(|inode| inode == former.inode)
        };
        self.kept
            .classes
            .retain(|class, former| same(class, former));
        self.kept
            .handing_on
            .retain(|class| root.join(class).exists());
        self.wanted.retain(|class, _| root.join(class).exists());
    }

    /// Before anything is changed, with what it will be.
    fn write_down(&mut self, targets: &BTreeMap<Relative, u64>) -> Result<(), MemoryError> {
        for (class, former) in &mut self.kept.classes {
            if let Some(target) = targets.get(class) {
                former.set = *target;
            }
        }
        kept::write(&self.file, &self.kept)
    }
}

/// Puts back what a process has left that is no more, if anything.
///
/// # Errors
/// As for [`Protection::open`].
pub fn restore(root: &Path, file: &Path) -> Result<(), MemoryError> {
    Protection::open(root, file, Sysctl::of_kernel()).map(drop)
}

/// The amount that each class is to have: those with a reservation, and those above them.
fn targets(
    wanted: &BTreeMap<Relative, u64>,
    former: &dyn Fn(&Path) -> u64,
) -> BTreeMap<Relative, u64> {
    let mut classes: Vec<&Path> = (wanted.keys())
        .flat_map(|class| class.ancestors())
        .filter(|class| !is_root(class))
        .collect();
    // The deepest first.
    classes.sort_by_key(|class| (std::cmp::Reverse(class.components().count()), *class));
    classes.dedup();
    let mut targets: BTreeMap<Relative, u64> = BTreeMap::new();
    for class in classes {
        let directly = |(below, _): &(&Relative, &u64)| below.parent() == Some(class);
        let more = targets
            .iter()
            .filter(directly)
            .map(|(below, set)| set.saturating_sub(former(below)));
        let below: u64 = more.sum();
        let own = wanted.get(class).copied().unwrap_or(0);
        targets.insert(
            class.to_owned(),
            own.max(former(class).saturating_add(below)),
        );
    }
    targets
}

fn is_root(class: &Path) -> bool {
    class.as_os_str().is_empty()
}

fn hands_on(folder: &Path) -> bool {
    let names = fs::read_to_string(folder.join("cgroup.subtree_control")).unwrap_or_default();
    names.split_whitespace().any(|name| name == "memory")
}

/// Whether nothing was set of the memory of the classes directly below.
fn is_as_by_default_below(folder: &Path, limited: &BTreeMap<PathBuf, u64>) -> bool {
    const DEFAULT: [(&str, &str); 4] = [
        ("memory.min", "0"),
        ("memory.low", "0"),
        ("memory.max", "max"),
        ("memory.swap.max", "max"),
    ];
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.all(|entry| {
        let path = entry.path();
        let all = DEFAULT.iter().all(|(name, default)| {
            let text = fs::read_to_string(path.join(name));
            text.map_or(true, |text| text.trim() == *default)
        });
        let now = || Cgroup::new(&path).soft_limit().unwrap_or(u64::MAX);
        all && limited.get(&path).copied().unwrap_or_else(now) == u64::MAX
    })
}

#[cfg(test)]
mod tests;
