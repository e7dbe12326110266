// SPDX-License-Identifier: GPL-2.0
//! The io controller of cgroups, handed on to every class: without it the kernel charges all requests to the root.
//!
//! A class hands controllers on to those below it (`cgroup.subtree_control`). Where one hands on any, the io controller is
//! handed on as well, now and whenever somebody begins to. Which were told to is written down before, so that it is
//! put back when the last disk is detached, by whatever process that is.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};

use crate::error::{DiskError, io_error};

const CONTROL: &str = "cgroup.subtree_control";
/// Locked by each process that serves a disk, together.
const USERS: &str = "users";
const KEPT: &str = "handing-on.json";

/// Of settings of the io controller, as a class has them from the kernel; and files that have no lines then.
const AS_BY_DEFAULT: [(&str, &[&str]); 5] = [
    ("io.max", &[]),
    ("io.latency", &[]),
    ("io.weight", &["default 100"]),
    ("io.bfq.weight", &["default 100"]),
    ("io.prio.class", &["no-change"]),
];

/// The io controller, as long as a disk is attached.
pub struct HandingOn {
    root: PathBuf,
    folder: PathBuf,
    changes: Inotify,
    // None: it has been let go.
    users: Option<Flock<fs::File>>,
}

impl HandingOn {
    /// Hands it on below `root`, where cgroups are mounted, with what was before in a folder of ours.
    ///
    /// # Errors
    /// [`DiskError`]
    pub fn begin(root: &Path, folder: &Path) -> Result<Self, DiskError> {
        let failed = || io_error(format!("write {}", folder.display()));
        fs::create_dir_all(folder).map_err(failed())?;
        let file = fs::File::create(folder.join(USERS)).map_err(failed())?;
        let users = Flock::lock(file, FlockArg::LockShared);
        let users = users.map_err(|(_, errno)| failed()(errno.into()))?;
        let changes = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC);
        let changes = changes.map_err(|errno| io_error("watch cgroups")(errno.into()))?;
        let handing_on = Self {
            root: root.to_owned(),
            folder: folder.to_owned(),
            changes,
            users: Some(users),
        };
        handing_on.look()?;
        Ok(handing_on)
    }

    /// Can be read when [`HandingOn::see`] is worth calling.
    #[must_use]
    pub fn changes(&self) -> BorrowedFd<'_> {
        self.changes.as_fd()
    }

    /// Looks again if there are classes that were not there, or hand on what they did not.
    ///
    /// # Errors
    /// [`DiskError`]
    pub fn see(&self) -> Result<(), DiskError> {
        let mut changed = false;
        while let Ok(events) = self.changes.read_events() {
            changed |= events.iter().any(|event| {
                let control = event.name.as_deref() == Some(CONTROL.as_ref());
                control || event.mask.contains(AddWatchFlags::IN_ISDIR)
            });
        }
        if changed { self.look() } else { Ok(()) }
    }

    fn look(&self) -> Result<(), DiskError> {
        // From the root down: a class hands on what it has.
        self.visit(&self.root)
            .map_err(io_error("hand on the io controller of cgroups"))
    }

    fn visit(&self, class: &Path) -> io::Result<()> {
        let flags = AddWatchFlags::IN_CREATE | AddWatchFlags::IN_MODIFY | AddWatchFlags::IN_ONLYDIR;
        // One that is gone, or that cannot be watched, has what it has.
        let _ = self.changes.add_watch(class, flags);
        let control = fs::read_to_string(class.join(CONTROL)).unwrap_or_default();
        let mut words = control.split_whitespace().peekable();
        let is_root = class == self.root;
        if words.peek().is_none() && !is_root {
            return self.visit_below(class);
        }
        if !words.any(|word| word == "io") {
            self.keep(class)?;
            // A class may be one that cannot; its requests are those of the one above then.
            let _ = fs::write(class.join(CONTROL), "+io");
        }
        self.visit_below(class)
    }

    fn visit_below(&self, class: &Path) -> io::Result<()> {
        for entry in fs::read_dir(class).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                self.visit(&entry.path())?;
            }
        }
        Ok(())
    }

    /// By path, with the inode: another class of that name has another.
    fn keep(&self, class: &Path) -> io::Result<()> {
        let Ok(inode) = class.metadata().map(|class| class.ino()) else {
            return Ok(());
        };
        let _alone = self.alone()?;
        let mut kept = read(&self.folder);
        kept.insert(class.to_owned(), inode);
        let new = self.folder.join("handing-on.new");
        fs::write(&new, serde_json::to_vec(&kept).expect("plain data"))?;
        fs::rename(new, self.folder.join(KEPT))
    }

    /// Nobody else reads and writes what is kept.
    fn alone(&self) -> io::Result<Flock<fs::File>> {
        let file = fs::File::create(self.folder.join("lock"))?;
        Flock::lock(file, FlockArg::LockExclusive).map_err(|(_, errno)| errno.into())
    }

    fn put_back(&mut self) {
        drop(self.users.take());
        let Ok(_alone) = self.alone() else { return };
        let Ok(file) = fs::File::create(self.folder.join(USERS)) else {
            return;
        };
        // Another serves a disk, and will do it. One that was killed has left it to whoever attaches or detaches next.
        let Ok(_last) = Flock::lock(file, FlockArg::LockExclusiveNonblock) else {
            return;
        };
        // From below.
        for (class, inode) in read(&self.folder).into_iter().rev() {
            let same = class.metadata().is_ok_and(|now| now.ino() == inode);
            if same && is_as_by_default_below(&class) {
                let _ = fs::write(class.join(CONTROL), "-io");
            }
        }
        let _ = fs::remove_file(self.folder.join(KEPT));
    }
}

impl Drop for HandingOn {
    fn drop(&mut self) {
        self.put_back();
    }
}

fn read(folder: &Path) -> BTreeMap<PathBuf, u64> {
    let bytes = fs::read(folder.join(KEPT)).unwrap_or_default();
    serde_json::from_slice(&bytes).unwrap_or_default()
}

/// Has nobody set anything meanwhile that would be lost? Classes below that hand it on themselves need it as well.
fn is_as_by_default_below(class: &Path) -> bool {
    let below = fs::read_dir(class).into_iter().flatten().flatten();
    let mut folders = below.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.all(|below| {
        let has = |name: &str| fs::read_to_string(below.path().join(name)).unwrap_or_default();
        let hands_on = has(CONTROL).split_whitespace().any(|word| word == "io");
        let mut settings = AS_BY_DEFAULT.iter();
        !hands_on
            && settings.all(|(name, known)| has(name).lines().all(|line| known.contains(&line)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Folders are no cgroups: a file has what was written to it last, which is what was asked for.
    #[test]
    fn it_is_handed_on_where_others_are_and_put_back() {
        let temporary = tempfile::tempdir().unwrap();
        let (root, folder) = (
            temporary.path().join("cgroup"),
            temporary.path().join("run"),
        );
        let class = |path: &str, controls: &str| {
            fs::create_dir_all(root.join(path)).unwrap();
            fs::write(root.join(path).join(CONTROL), controls).unwrap();
        };
        let of = |path: &str| fs::read_to_string(root.join(path).join(CONTROL)).unwrap();
        class("", "cpu memory");
        class("a", "cpu");
        class("a/leaf", "");
        class("has", "cpu io");
        let handing_on = HandingOn::begin(&root, &folder).unwrap();
        assert_eq!((of(""), of("a")), ("+io".into(), "+io".into()));
        assert_eq!((of("a/leaf"), of("has")), (String::new(), "cpu io".into()));
        // One that begins to hand on later, and a new one.
        class("a/leaf", "cpu");
        class("new", "memory");
        handing_on.see().unwrap();
        assert_eq!((of("a/leaf"), of("new")), ("+io".into(), "+io".into()));
        // Another disk is attached, and detached: the first has it still.
        drop(HandingOn::begin(&root, &folder).unwrap());
        assert_eq!(of("a"), "+io");
        // Somebody has set a limit meanwhile.
        fs::create_dir_all(root.join("new/limited")).unwrap();
        fs::write(root.join("new/limited/io.max"), "8:0 rbps=1\n").unwrap();
        drop(handing_on);
        assert_eq!(of("new"), "+io");
        assert_eq!((of("a/leaf"), of("a")), ("-io".into(), "-io".into()));
        // One below has it still, so the root does.
        assert_eq!((of("has"), of("")), ("cpu io".into(), "+io".into()));
    }
}
