// SPDX-License-Identifier: GPL-2.0
//! The most that classes without a reservation may have while memory is short (`memory.high`), and what they had before.
//!
//! Protected pages are not taken. But a program that asks for a page while none is free takes one from others first, and
//! that takes a film a tenth of a second and more. A class beyond its `memory.high` gives pages of its own instead, before
//! the machine has none left. So programs that want more wait, and those with a reservation do not: a firewall (Eswaran
//! and Rajkumar, 2005), which moves with what is used.
//!
//! The former amount is written down in a file before anything is changed, as in [`crate::protect`].

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::cgroup::{Cgroup, inode};
use crate::error::MemoryError;
use crate::kept;

/// How a class was before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Former {
    /// The inode of its folder: another class of that name has another.
    inode: u64,
    /// The most that it had [bytes]; `u64::MAX` without a limit.
    high: u64,
}

/// By the folders of classes.
type Classes = BTreeMap<PathBuf, Former>;

/// The limits of all classes that have one of ours.
#[derive(Debug)]
pub struct Firewall {
    file: PathBuf,
    classes: Classes,
    /// The amounts that we have set [bytes].
    set: BTreeMap<PathBuf, u64>,
}

impl Firewall {
    /// No class has a limit of ours. Limits that another has left in the file beside `kept` are lifted.
    ///
    /// # Errors
    /// The file cannot be read or removed.
    pub fn open(kept: &Path) -> Result<Self, MemoryError> {
        let file = of(kept);
        let mut firewall = Self {
            classes: kept::read(&file)?,
            file,
            set: BTreeMap::new(),
        };
        firewall.limit(&[])?;
        Ok(firewall)
    }

    /// From now on these classes may have no more than so much [bytes], and all others as much as before.
    ///
    /// # Errors
    /// The former amounts cannot be written down; then nothing is changed.
    pub fn limit(&mut self, wanted: &[(&Cgroup, u64)]) -> Result<(), MemoryError> {
        let mut now = Classes::new();
        for (cgroup, _) in wanted {
            if let Some(former) = self.former(cgroup) {
                now.insert(cgroup.folder().to_owned(), former);
            }
        }
        let is_other = now != self.classes;
        if is_other {
            kept::write_both(&self.file, &self.classes, &now)?;
        }
        for (folder, former) in &self.classes {
            let is_same = |inode| inode == former.inode;
            if !now.contains_key(folder) && inode(folder).is_ok_and(is_same) {
                // One that cannot be written is gone.
                let _ = set(folder, former.high);
                self.set.remove(folder);
            }
        }
        for (cgroup, bytes) in wanted {
            let folder = cgroup.folder();
            let Some(former) = now.get(folder) else {
                continue;
            };
            let bytes = former
                .high
                .min(bytes.next_multiple_of(crate::machine::page()));
            if self.set.get(folder) != Some(&bytes) && set(folder, bytes).is_ok() {
                self.set.insert(folder.to_owned(), bytes);
            }
        }
        self.classes = now;
        match is_other {
            true => kept::write(&self.file, &self.classes),
            false => Ok(()),
        }
    }

    /// How a class was before we have changed it; none: it is gone, or its memory is not counted. An amount that is not
    /// ours is what somebody else has set meanwhile.
    fn former(&self, cgroup: &Cgroup) -> Option<Former> {
        let folder = cgroup.folder();
        let inode = inode(folder).ok()?;
        let high = cgroup.soft_limit().ok()?;
        let known = self.classes.get(folder);
        let known =
            known.filter(|known| known.inode == inode && self.set.get(folder) == Some(&high));
        Some(known.copied().unwrap_or(Former { inode, high }))
    }
}

/// Lifts the limits that a process has left that is no more.
///
/// # Errors
/// As for [`Firewall::open`].
pub fn restore(kept: &Path) -> Result<(), MemoryError> {
    Firewall::open(kept).map(drop)
}

/// The most that classes had before they had a limit of ours, by their folders [bytes].
pub fn formerly(kept: &Path) -> BTreeMap<PathBuf, u64> {
    let ours: Classes = kept::read(&of(kept)).unwrap_or_default();
    let high = |(folder, former): (PathBuf, Former)| (folder, former.high);
    ours.into_iter().map(high).collect()
}

fn of(kept: &Path) -> PathBuf {
    kept.with_extension("high.json")
}

/// Does not wait until the class has given what it has beyond that: it does so itself when it goes on (Linux 6.16; older
/// kernels take it from the class at once, and we wait).
fn set(folder: &Path, bytes: u64) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let options = options.write(true).custom_flags(libc::O_NONBLOCK);
    let mut file = options.open(folder.join("memory.high"))?;
    let text = match bytes {
        u64::MAX => "max".to_owned(),
        bytes => bytes.to_string(),
    };
    file.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    struct Fake(tempfile::TempDir);

    impl Fake {
        fn new(classes: &[(&str, &str)]) -> Self {
            let folder = tempfile::tempdir().unwrap();
            for (class, high) in classes {
                fs::create_dir(folder.path().join(class)).unwrap();
                fs::write(folder.path().join(class).join("memory.high"), high).unwrap();
            }
            Self(folder)
        }

        fn class(&self, name: &str) -> Cgroup {
            Cgroup::new(self.0.path().join(name))
        }

        /// A file of the kernel's is cut when it is written, one of ours is not.
        fn high(&self, name: &str) -> String {
            let text = fs::read_to_string(self.0.path().join(name).join("memory.high")).unwrap();
            text.trim_end().to_owned()
        }

        fn kept(&self) -> PathBuf {
            self.0.path().join("memory.json")
        }

        fn firewall(&self) -> Firewall {
            Firewall::open(&self.kept()).unwrap()
        }
    }

    const MIB: u64 = 1 << 20;

    #[test]
    fn limits_come_move_and_go() {
        let fake = Fake::new(&[("a", "9999999999"), ("b", "8388608")]);
        let (a, b) = (fake.class("a"), fake.class("b"));
        let mut firewall = fake.firewall();
        assert!(formerly(&fake.kept()).is_empty());
        firewall
            .limit(&[(&a, 1100 * MIB), (&b, 1100 * MIB)])
            .unwrap();
        assert_eq!(fake.high("a"), (1100 * MIB).to_string());
        assert_eq!(fake.high("b"), "8388608", "it had less before");
        let before = [
            (a.folder().to_owned(), 9_999_999_999),
            (b.folder().to_owned(), 8 * MIB),
        ];
        assert_eq!(formerly(&fake.kept()), BTreeMap::from(before));
        firewall.limit(&[(&a, 1200 * MIB)]).unwrap();
        assert_eq!(fake.high("a"), (1200 * MIB).to_string());
        firewall.limit(&[]).unwrap();
        assert_eq!(fake.high("a"), "9999999999");
        assert!(!fake.kept().with_extension("high.json").exists());
    }

    #[test]
    fn what_somebody_else_sets_is_kept() {
        let fake = Fake::new(&[("a", "9999999999")]);
        let a = fake.class("a");
        let mut firewall = fake.firewall();
        firewall.limit(&[(&a, 2000 * MIB)]).unwrap();
        let theirs = (1500 * MIB).to_string();
        fs::write(a.folder().join("memory.high"), &theirs).unwrap();
        firewall.limit(&[(&a, 2000 * MIB)]).unwrap();
        assert_eq!(fake.high("a"), theirs);
        firewall.limit(&[]).unwrap();
        assert_eq!(fake.high("a"), theirs);
    }

    #[test]
    fn the_next_one_puts_back_what_is_left() {
        let fake = Fake::new(&[("a", "9999999999"), ("b", "9999999999")]);
        let (a, b) = (fake.class("a"), fake.class("b"));
        let mut killed = fake.firewall();
        killed.limit(&[(&a, 2000 * MIB), (&b, 2000 * MIB)]).unwrap();
        // Another class of that name.
        fs::rename(b.folder(), fake.class("c").folder()).unwrap();
        fs::create_dir(b.folder()).unwrap();
        fs::write(b.folder().join("memory.high"), "7").unwrap();
        drop(killed);
        restore(&fake.kept()).unwrap();
        assert_eq!(
            (fake.high("a").as_str(), fake.high("b").as_str()),
            ("9999999999", "7")
        );
        assert!(!fake.kept().with_extension("high.json").exists());
    }
}
