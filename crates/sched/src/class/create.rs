//! Making classes.

use std::fs;

use crate::leaf_policy::LeafPolicy;

use super::undo::{Step, Undo};
use super::{ClassError, ClassPath, Kind, Tree, checked_weight, write};

/// How often `--adopt` looks again for processes that were forked while it moved the others.
const ADOPT_ROUNDS: usize = 32;

/// How a class is to be made; the default is an ordinary class of weight 100.
#[derive(Debug, Clone, Copy, Default)]
pub struct NewClass {
    /// `cpu.weight`, 1 to 10000; none leaves the kernel's 100.
    pub weight: Option<i64>,
    /// How its tasks are ordered; none: by nice values.
    pub policy: Option<LeafPolicy>,
    /// Move the tasks of the class above into it, if that class holds any.
    pub adopt: bool,
    /// Make it threaded, so that the class above keeps its tasks.
    pub threaded: bool,
}

impl Tree {
    /// Makes a class (QLinux: mknod), and the classes above it that are missing; returns what was
    /// made, parents before children.
    ///
    /// # Errors
    /// [`ClassError::Exists`], [`ClassError::BadWeight`],
    /// [`ClassError::ParentHoldsTasks`], [`ClassError::NotThreaded`]; whatever was made or moved
    /// until then is taken back.
    pub fn create(&self, path: &ClassPath, new: &NewClass) -> Result<Vec<ClassPath>, ClassError> {
        let weight = new.weight.map(checked_weight).transpose()?;
        if self.exists(path) {
            return Err(ClassError::Exists(path.clone()));
        }
        let (there, missing): (Vec<_>, Vec<_>) =
            path.ancestry().partition(|class| self.exists(class));
        let parent = there.last().cloned().unwrap_or_else(ClassPath::root);
        let threaded = self.must_be_threaded(path, &parent, new)?;

        let mut undo = Undo::default();
        for class in &missing {
            self.make(class, threaded, &mut undo)?;
        }
        if new.adopt && !threaded && self.kind(&parent)? != Kind::Root {
            self.adopt(&parent, path, &mut undo)?;
        }
        self.hand_cpu_down_to(path, &mut undo)?;
        if let Some(weight) = weight {
            write(
                &self.directory(path).join("cpu.weight"),
                &weight.to_string(),
            )
            .map_err(|error| ClassError::from_io("set the weight of", path, error))?;
        }
        if let Some(policy) = new.policy {
            policy
                .keep(&self.directory(path))
                .map_err(|error| ClassError::from_io("set the policy of", path, error))?;
        }
        undo.keep();
        Ok(missing)
    }

    /// Whether a new class below `parent` has to be threaded; an error if there can be none.
    fn must_be_threaded(
        &self,
        path: &ClassPath,
        parent: &ClassPath,
        new: &NewClass,
    ) -> Result<bool, ClassError> {
        match self.kind(parent)? {
            Kind::Invalid => return Err(ClassError::Invalid(parent.clone())),
            Kind::Threaded | Kind::ThreadRoot => return Ok(true),
            Kind::Root => return Ok(new.threaded),
            Kind::Domain => {}
        }
        let count = self.own_tasks(parent)?.len();
        if count > 0 && !new.adopt && !new.threaded {
            let (path, parent) = (path.clone(), parent.clone());
            return Err(ClassError::ParentHoldsTasks {
                path,
                parent,
                count,
            });
        }
        Ok(new.threaded)
    }

    fn make(&self, class: &ClassPath, threaded: bool, undo: &mut Undo) -> Result<(), ClassError> {
        let directory = self.directory(class);
        fs::create_dir(&directory).map_err(|error| ClassError::from_io("create", class, error))?;
        undo.push(Step::RemoveDirectory(directory.clone()));
        if threaded {
            write(&directory.join("cgroup.type"), "threaded").map_err(|error| {
                match error.raw_os_error() {
                    Some(libc::EOPNOTSUPP) => ClassError::NotThreaded(class.clone()),
                    _ => ClassError::from_io("make threaded", class, error),
                }
            })?;
        }
        Ok(())
    }

    /// Moves every process of `parent` to `path`, the new class below it.
    fn adopt(
        &self,
        parent: &ClassPath,
        path: &ClassPath,
        undo: &mut Undo,
    ) -> Result<(), ClassError> {
        let target = self.directory(path).join("cgroup.procs");
        for _ in 0..ADOPT_ROUNDS {
            let tasks = self.own_tasks(parent)?;
            if tasks.is_empty() {
                return Ok(());
            }
            for pid in tasks {
                match write(&target, &pid.to_string()) {
                    Ok(()) => undo.push(Step::MoveBack {
                        pid,
                        to: self.directory(parent),
                    }),
                    Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                    Err(error) => return Err(ClassError::from_io("move tasks to", path, error)),
                }
            }
        }
        let (path, parent) = (path.clone(), parent.clone());
        let count = self.own_tasks(&parent)?.len();
        Err(ClassError::ParentHoldsTasks {
            path,
            parent,
            count,
        })
    }

    /// Sees to it that every class above `path` hands out `cpu`, which makes `path` a class.
    pub(super) fn hand_cpu_down_to(
        &self,
        path: &ClassPath,
        undo: &mut Undo,
    ) -> Result<(), ClassError> {
        for class in path.ancestry().take(path.depth()) {
            if self.hands_out(&class, "cpu") {
                continue;
            }
            let count = self.own_tasks(&class)?.len();
            let refused = || {
                let (path, parent) = (path.clone(), class.clone());
                ClassError::ParentHoldsTasks {
                    path,
                    parent,
                    count,
                }
            };
            // The kernel would accept this and make every ordinary child invalid.
            if count > 0 && self.kind(&class)? == Kind::Domain {
                return Err(refused());
            }
            let directory = self.directory(&class);
            write(&directory.join("cgroup.subtree_control"), "+cpu").map_err(
                |error| match error.raw_os_error() {
                    Some(libc::EBUSY) => refused(),
                    Some(libc::EOPNOTSUPP) => ClassError::Invalid(class.clone()),
                    Some(libc::ENOENT) => ClassError::NoCpuController,
                    _ => ClassError::from_io("hand the cpu controller out in", &class, error),
                },
            )?;
            undo.push(Step::KeepCpuBack(directory));
        }
        Ok(())
    }
}
