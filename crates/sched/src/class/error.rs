//! What can go wrong with a class, each in one sentence with its mend.

use std::io;

use super::ClassPath;
use crate::text::shown;

/// Why a class operation was refused; nothing has been changed then.
#[derive(Debug, thiserror::Error)]
pub enum ClassError {
    /// No class has this path.
    #[error("there is no class {0}: `andante class list` shows the classes there are")]
    Unknown(ClassPath),
    /// A class with this path exists already.
    #[error("class {0} exists already: change its weight with `andante class set {0} --weight N`")]
    Exists(ClassPath),
    /// The text is no path of a class.
    #[error(
        "`{}` is not a class path because {why}: write it like /media/film",
        shown(given)
    )]
    BadPath {
        /// What was given.
        given: String,
        /// The rule it breaks.
        why: &'static str,
    },
    /// The weight is out of range.
    #[error(
        "weight {0} is out of range: give a whole number from 1 to 10000 (a new class has 100)"
    )]
    BadWeight(i64),
    /// A class with children was to have a policy.
    #[error(
        "class {path} has classes below it, such as {example}: a policy orders the tasks of a leaf, so set it there"
    )]
    PolicyOfInner {
        /// The class.
        path: ClassPath,
        /// One directly below it.
        example: ClassPath,
    },
    /// The root class cannot be treated like this.
    #[error("the root class / {what}: name a class below it")]
    IsRoot {
        /// What is true of the root.
        what: &'static str,
    },
    /// The class still holds tasks.
    #[error(
        "class {path} still holds {count} task(s), the first being {first} ({}): \
         move them with `andante class move PID… OTHER`, or end them",
        shown(example)
    )]
    HoldsTasks {
        /// The class.
        path: ClassPath,
        /// Threads in it.
        count: usize,
        /// The id of one of them.
        first: i32,
        /// The name of that one.
        example: String,
    },
    /// The class still holds other classes.
    #[error(
        "class {path} still holds {count} class(es), the first being {example}: remove them first"
    )]
    HoldsChildren {
        /// The class.
        path: ClassPath,
        /// Classes directly below it.
        count: usize,
        /// The first of them.
        example: ClassPath,
    },
    /// A class that holds processes was to get children.
    #[error(
        "class {parent} holds {count} task(s), and cgroup v2 lets a class with tasks have no children: \
         create {path} with --adopt to move those tasks into it, or with --threaded to keep them where they are"
    )]
    ParentHoldsTasks {
        /// The class asked for.
        path: ClassPath,
        /// The class above that holds tasks.
        parent: ClassPath,
        /// Threads in it.
        count: usize,
    },
    /// A class with children was to hold processes.
    #[error(
        "class {0} has children, and cgroup v2 lets such a class hold no tasks of its own: \
         move them to a class below it, for example one made with `andante class create {0}/rest`"
    )]
    InnerClass(ClassPath),
    /// The class can hold nothing because of what its parent is.
    #[error(
        "class {0} can hold no tasks because a class above it does: \
         move those tasks to a class of their own, then try again"
    )]
    Invalid(ClassPath),
    /// A threaded class was asked for where the kernel allows none.
    #[error(
        "class {0} cannot be threaded because its parent hands out memory or io, or has ordinary classes with tasks: \
         create it with --adopt instead"
    )]
    NotThreaded(ClassPath),
    /// The process is a thread of the kernel.
    #[error(
        "process {pid} ({}) is a kernel thread, which cannot be moved: name a process of your own",
        shown(name)
    )]
    KernelThread {
        /// Its process id.
        pid: i32,
        /// Its name.
        name: String,
    },
    /// No process has this id.
    #[error("there is no process {0}: `ps -e` shows the processes there are")]
    NoProcess(i32),
    /// The caller may not do this.
    #[error(
        "not permitted to {what} {path}: run as root, or use a class below a cgroup delegated to you"
    )]
    NotPermitted {
        /// What was tried.
        what: &'static str,
        /// The class it was tried on.
        path: ClassPath,
    },
    /// Only version 1 hierarchies have the `cpu` controller.
    #[error(
        "this machine runs cgroup v1, where classes cannot be told apart: \
         boot with systemd.unified_cgroup_hierarchy=1 on the kernel command line"
    )]
    CgroupV1,
    /// No cgroup v2 hierarchy is mounted.
    #[error("cgroup v2 is not mounted: run `mount -t cgroup2 none /sys/fs/cgroup` as root")]
    NoCgroup2,
    /// Version 2 is mounted without `cpu`.
    #[error(
        "cgroup v2 has no cpu controller here: remove cgroup_disable=cpu from the kernel command line, \
         or use a kernel with CONFIG_FAIR_GROUP_SCHED"
    )]
    NoCpuController,
    /// Anything else the kernel said.
    #[error("could not {what} {path}: {source}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// The class it was tried on.
        path: ClassPath,
        /// What the kernel said.
        source: io::Error,
    },
}

impl ClassError {
    /// Translates what the kernel said when process `pid` (0: the caller) was moved to `path`.
    pub fn from_move(path: &ClassPath, pid: i32, source: io::Error) -> Self {
        match source.raw_os_error() {
            Some(libc::ESRCH) => Self::NoProcess(pid),
            Some(libc::EBUSY) => Self::InnerClass(path.clone()),
            Some(libc::EOPNOTSUPP) => Self::Invalid(path.clone()),
            _ => Self::from_io("move a process to", path, source),
        }
    }

    /// Translates what the kernel said when `what` was tried on the class at `path`.
    pub(super) fn from_io(what: &'static str, path: &ClassPath, source: io::Error) -> Self {
        let path = path.clone();
        match source.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Self::NotPermitted { what, path }
            }
            // The directory went away, or its files did while one was open (ENODEV).
            io::ErrorKind::NotFound => Self::Unknown(path),
            _ if source.raw_os_error() == Some(libc::ENODEV) => Self::Unknown(path),
            _ => Self::Io { what, path, source },
        }
    }
}
