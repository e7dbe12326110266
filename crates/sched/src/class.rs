//! Class operations: the classes that the scheduler serves are the cgroups of version 2.
//!
//! A class is a directory of the cgroup file system whose parent hands out the `cpu` controller
//! (`+cpu` in the parent's `cgroup.subtree_control`); its weight is the directory's `cpu.weight`.
//! Nothing here talks to the scheduler: it hears of every change from the kernel, and the stock
//! scheduler honours the same weights while Andante is not loaded.
//!
//! QLinux's node calls map onto [`Tree`]: mknod is [`Tree::create`], rmnod [`Tree::remove`],
//! admin [`Tree::set_weight`], move and join [`Tree::place`], parse [`ClassPath::parse`].
//!
//! # What cgroup v2 allows
//! The root may hold processes beside child classes. Any other class is, by default, either a leaf
//! that holds processes or an inner class that holds none. The exception is a *threaded* subtree:
//! below a class that holds processes, children whose `cgroup.type` is `threaded` are allowed as
//! long as no domain controller (memory, io) is handed out there. The kernel turns a class into the
//! root of such a subtree silently as soon as `+cpu` is written to a class with processes, and its
//! other children become `domain invalid`: directories that can never hold a process. So every
//! operation here looks first, and refuses rather than letting that happen.

mod create;
mod error;
mod mount;
mod path;
mod place;
mod undo;

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::leaf_policy::LeafPolicy;
use crate::text;

pub use create::NewClass;
pub use error::ClassError;
pub use mount::cgroup_root;
pub use path::ClassPath;
pub use place::{Process, process};

/// The least weight a class can have.
pub const WEIGHT_MIN: u32 = 1;
/// The greatest weight a class can have.
pub const WEIGHT_MAX: u32 = 10_000;
/// The weight a class has until it is given another.
pub const WEIGHT_DEFAULT: u32 = 100;

/// The tree of classes: a mounted cgroup v2 hierarchy with the `cpu` controller.
#[derive(Debug, Clone)]
pub struct Tree {
    root: PathBuf,
}

/// What the kernel says of one class.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClassInfo {
    /// Where it is in the tree.
    pub path: ClassPath,
    /// `cpu.weight`; none for the root and for a cgroup whose parent does not hand out `cpu`,
    /// which the scheduler counts as part of its parent.
    pub weight: Option<u32>,
    /// How its own tasks are ordered, if it was given a policy; by nice values otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<LeafPolicy>,
    /// Threads in the class itself, its descendants not counted.
    pub tasks: usize,
    /// Classes directly below.
    pub children: usize,
    /// Whether it is part of a threaded subtree, where inner classes may hold tasks.
    pub threaded: bool,
    /// CPU time used by the class and its descendants since it was made [µs].
    pub cpu_us: u64,
}

/// How `cgroup.type` describes a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The root of the hierarchy, which has no type and is free of the rules.
    Root,
    /// An ordinary class.
    Domain,
    /// A class that is the root of a threaded subtree.
    ThreadRoot,
    /// A member of a threaded subtree.
    Threaded,
    /// Below a thread root without being threaded: can hold nothing.
    Invalid,
}

impl Tree {
    /// The tree of this machine.
    ///
    /// # Errors
    /// [`ClassError::NoCgroup2`], [`ClassError::CgroupV1`] and [`ClassError::NoCpuController`] say
    /// what this machine lacks.
    pub fn open() -> Result<Self, ClassError> {
        Ok(Self {
            root: cgroup_root()?,
        })
    }

    /// The directory that stands for `path`, whether or not it exists.
    pub fn directory(&self, path: &ClassPath) -> PathBuf {
        let relative = path.relative();
        let literal = self.root.join(&relative);
        // Units of systemd have names with `\xNN` in them; a byte may be meant as well.
        match text::to_bytes(&relative) {
            Some(bytes) if !literal.exists() => {
                let bytes = self.root.join(OsStr::from_bytes(&bytes));
                if bytes.exists() { bytes } else { literal }
            }
            _ => literal,
        }
    }

    /// Whether there is a class at `path`.
    pub fn exists(&self, path: &ClassPath) -> bool {
        self.directory(path).is_dir()
    }

    /// What the kernel says of the class at `path`.
    ///
    /// # Errors
    /// [`ClassError::Unknown`] if there is none.
    pub fn show(&self, path: &ClassPath) -> Result<ClassInfo, ClassError> {
        let directory = self.existing(path)?;
        let kind = self.kind(path)?;
        Ok(ClassInfo {
            path: path.clone(),
            weight: read_number(&directory.join("cpu.weight")),
            policy: LeafPolicy::of(&directory),
            tasks: self.own_tasks(path)?.len(),
            children: self.children(path)?.len(),
            threaded: matches!(kind, Kind::ThreadRoot | Kind::Threaded),
            cpu_us: cpu_us(&directory),
        })
    }

    /// `path` and everything below it, parents before children, siblings by name.
    ///
    /// # Errors
    /// [`ClassError::Unknown`] if there is no such class. Classes that disappear while the tree is
    /// being read are left out.
    pub fn list(&self, path: &ClassPath) -> Result<Vec<ClassInfo>, ClassError> {
        let mut found = vec![self.show(path)?];
        for child in self.children(path)? {
            match self.list(&child) {
                Ok(classes) => found.extend(classes),
                Err(ClassError::Unknown(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    /// What the weights give the class while all of its siblings, and those of its ancestors, want
    /// to run [ratio of the parent's share, multiplied up to the root].
    ///
    /// # Errors
    /// [`ClassError::Unknown`] if there is no such class.
    pub fn share_asked(&self, path: &ClassPath) -> Result<f64, ClassError> {
        self.existing(path)?;
        let mut share = 1.0;
        for class in path.ancestry().skip(1) {
            let weight = |class: &ClassPath| read_number(&self.directory(class).join("cpu.weight"));
            // Without a weight of its own it runs as part of its parent.
            let Some(own) = weight(&class) else { continue };
            let parent = class.parent().unwrap_or_else(ClassPath::root);
            let all: u32 = self.children(&parent)?.iter().filter_map(weight).sum();
            share *= f64::from(own) / f64::from(all.max(own));
        }
        Ok(share)
    }

    /// Gives the class a new weight, in force from its next quantum on (QLinux: admin).
    ///
    /// A cgroup that is not yet a class is made one by handing `cpu` down to it.
    ///
    /// # Errors
    /// [`ClassError::BadWeight`] outside 1 to 10000, [`ClassError::IsRoot`], and
    /// [`ClassError::Unknown`]; nothing is changed then.
    pub fn set_weight(&self, path: &ClassPath, weight: i64) -> Result<(), ClassError> {
        let weight = checked_weight(weight)?;
        let directory = self.existing(path)?;
        if path.is_root() {
            return Err(ClassError::IsRoot {
                what: "has no weight",
            });
        }
        let mut undo = undo::Undo::default();
        self.hand_cpu_down_to(path, &mut undo)?;
        write(&directory.join("cpu.weight"), &weight.to_string())
            .map_err(|error| ClassError::from_io("set the weight of", path, error))?;
        undo.keep();
        Ok(())
    }

    /// Orders the tasks of a class by this policy, as long as there is the class. The scheduler that is loaded
    /// has to be told (`andante-daemon` does that); one that is loaded later looks by itself.
    ///
    /// # Errors
    /// [`ClassError::PolicyOfInner`] if there are classes below it, [`ClassError::IsRoot`] and
    /// [`ClassError::Unknown`]; nothing is changed then.
    pub fn set_policy(&self, path: &ClassPath, policy: LeafPolicy) -> Result<(), ClassError> {
        let directory = self.existing(path)?;
        if path.is_root() {
            return Err(ClassError::IsRoot {
                what: "has classes below it, and policies are for leaves",
            });
        }
        if let Some(example) = self.children(path)?.into_iter().next() {
            let path = path.clone();
            return Err(ClassError::PolicyOfInner { path, example });
        }
        let mut undo = undo::Undo::default();
        self.hand_cpu_down_to(path, &mut undo)?;
        policy
            .keep(&directory)
            .map_err(|error| ClassError::from_io("set the policy of", path, error))?;
        undo.keep();
        Ok(())
    }

    /// The policies that classes were given: of the ids of their cgroups, parents first.
    pub fn policies(&self) -> Vec<(u64, LeafPolicy)> {
        LeafPolicy::kept_below(&self.root)
    }

    /// Removes an empty class (QLinux: rmnod).
    ///
    /// # Errors
    /// [`ClassError::HoldsTasks`] and [`ClassError::HoldsChildren`] while it is not empty,
    /// [`ClassError::IsRoot`], and [`ClassError::Unknown`].
    pub fn remove(&self, path: &ClassPath) -> Result<(), ClassError> {
        let directory = self.existing(path)?;
        if path.is_root() {
            return Err(ClassError::IsRoot {
                what: "cannot be removed",
            });
        }
        let children = self.children(path)?;
        if let Some(example) = children.first() {
            let (path, example) = (path.clone(), example.clone());
            return Err(ClassError::HoldsChildren {
                path,
                count: children.len(),
                example,
            });
        }
        self.refuse_if_it_holds_tasks(path)?;
        fs::remove_dir(&directory).map_err(|error| {
            // A task may have arrived since we looked.
            if error.kind() == io::ErrorKind::ResourceBusy
                && let Err(holds) = self.refuse_if_it_holds_tasks(path)
            {
                return holds;
            }
            ClassError::from_io("remove", path, error)
        })
    }

    fn refuse_if_it_holds_tasks(&self, path: &ClassPath) -> Result<(), ClassError> {
        let tasks = self.own_tasks(path)?;
        let Some(&first) = tasks.first() else {
            return Ok(());
        };
        let example = process(first).map(|found| found.name).unwrap_or_default();
        Err(ClassError::HoldsTasks {
            path: path.clone(),
            count: tasks.len(),
            first,
            example,
        })
    }

    /// The class's directory.
    fn existing(&self, path: &ClassPath) -> Result<PathBuf, ClassError> {
        let directory = self.directory(path);
        if directory.is_dir() {
            Ok(directory)
        } else {
            Err(ClassError::Unknown(path.clone()))
        }
    }

    /// The classes directly below `path`, by name.
    fn children(&self, path: &ClassPath) -> Result<Vec<ClassPath>, ClassError> {
        let failed = |error| ClassError::from_io("list", path, error);
        let mut found = Vec::new();
        for entry in fs::read_dir(self.directory(path)).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if entry.file_type().map_err(failed)?.is_dir() {
                found.push(path.child(&text::from_bytes(entry.file_name().as_bytes())));
            }
        }
        found.sort();
        Ok(found)
    }

    /// The threads in the class itself. `cgroup.procs` will not do: it cannot be read in a threaded
    /// class, and in the root of a threaded subtree it lists the descendants' processes too.
    fn own_tasks(&self, path: &ClassPath) -> Result<Vec<i32>, ClassError> {
        let text = fs::read_to_string(self.directory(path).join("cgroup.threads"))
            .map_err(|error| ClassError::from_io("read", path, error))?;
        Ok(text.lines().filter_map(|line| line.parse().ok()).collect())
    }

    fn kind(&self, path: &ClassPath) -> Result<Kind, ClassError> {
        match fs::read_to_string(self.directory(path).join("cgroup.type")) {
            Ok(text) => Ok(match text.trim() {
                "threaded" => Kind::Threaded,
                "domain threaded" => Kind::ThreadRoot,
                "domain invalid" => Kind::Invalid,
                _ => Kind::Domain,
            }),
            // Only the root of the whole hierarchy lacks the file; a container's root has it.
            Err(_) if self.exists(path) => Ok(Kind::Root),
            Err(_) => Err(ClassError::Unknown(path.clone())),
        }
    }

    /// Whether the class hands the controller out to its children.
    fn hands_out(&self, path: &ClassPath, controller: &str) -> bool {
        fs::read_to_string(self.directory(path).join("cgroup.subtree_control"))
            .is_ok_and(|text| text.split_whitespace().any(|name| name == controller))
    }
}

/// Writes one value to a control file. Unlike `fs::write`, it neither creates nor truncates.
pub(crate) fn write(file: &Path, value: &str) -> io::Result<()> {
    io::Write::write_all(
        &mut fs::OpenOptions::new().write(true).open(file)?,
        value.as_bytes(),
    )
}

fn checked_weight(weight: i64) -> Result<u32, ClassError> {
    u32::try_from(weight)
        .ok()
        .filter(|weight| (WEIGHT_MIN..=WEIGHT_MAX).contains(weight))
        .ok_or(ClassError::BadWeight(weight))
}

fn read_number(file: &Path) -> Option<u32> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

fn cpu_us(directory: &Path) -> u64 {
    let text = fs::read_to_string(directory.join("cpu.stat")).unwrap_or_default();
    let usage = text
        .lines()
        .find_map(|line| line.strip_prefix("usage_usec "));
    usage.and_then(|value| value.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_outside_the_kernels_range_are_refused() {
        for bad in [0, -1, 10_001, i64::MAX] {
            assert!(
                matches!(checked_weight(bad), Err(ClassError::BadWeight(given)) if given == bad)
            );
        }
        assert_eq!(checked_weight(1).unwrap(), WEIGHT_MIN);
        assert_eq!(checked_weight(10_000).unwrap(), WEIGHT_MAX);
    }
}
