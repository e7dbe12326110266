// SPDX-License-Identifier: GPL-2.0
//! Whom a user id is counted with, and which group is privileged: read from files now and then, and never
//! while somebody waits for an answer.
//!
//! Through user namespaces one person may have processes under 65,536 ids and more, the subordinate ones
//! that `/etc/subuid` gives [subuid(5)]. For limits they are all that person's. A directory service (NSS)
//! may take seconds to answer, or never do, so it is asked before anybody is served, and not again:
//! what changes in the files later is read from them alone.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::unistd::{Group, User};

/// Whose members may reserve for everybody, if there is such a group.
const GROUP: &str = "andante";

/// Who is counted with whom, and who is privileged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Accounts {
    /// The group [`GROUP`], by the file and by the directory service.
    groups: Vec<u32>,
    /// Subordinate ids, and whose they are.
    ranges: Vec<Range>,
}

/// Ids that belong to another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range {
    first: u32,
    count: u32,
    owner: u32,
}

impl Accounts {
    /// The id that this one's limits are: its own, or that of whom it is subordinate to.
    pub fn of(&self, uid: u32) -> u32 {
        let holds = |range: &&Range| uid >= range.first && uid - range.first < range.count;
        self.ranges
            .iter()
            .find(holds)
            .map_or(uid, |range| range.owner)
    }

    /// Whether the group's members may reserve for everybody.
    pub fn is_privileged(&self, gid: u32) -> bool {
        self.groups.contains(&gid)
    }

    /// Reads the texts of the files. `known` are users whom only a directory service knows, and `group`
    /// the one that it named.
    fn read(texts: &Texts, known: &HashMap<String, u32>, group: Option<u32>) -> Self {
        let mut groups: Vec<u32> = records(&texts.group)
            .filter(|fields| fields.first() == Some(&GROUP))
            .filter_map(|fields| fields.get(2)?.parse().ok())
            .collect();
        groups.extend(group);
        let users: HashMap<&str, u32> = records(&texts.passwd)
            .filter_map(|fields| Some((*fields.first()?, fields.get(2)?.parse().ok()?)))
            .collect();
        let mut strangers = HashMap::new();
        let ranges = records(&texts.subuid).filter_map(|fields| {
            let [owner, first, count] = fields.as_slice() else {
                return None;
            };
            let (first, count): (u32, u32) = (first.parse().ok()?, count.parse().ok()?);
            let known = users.get(owner).or_else(|| known.get(*owner)).copied();
            let owner = known
                .or_else(|| owner.parse().ok())
                // A name that nobody knows: all of its ranges are still one person's.
                .unwrap_or_else(|| *strangers.entry(owner.to_string()).or_insert(first));
            // Root's subordinate ids are those of containers, and no longer root.
            (owner != 0).then_some(Range {
                first,
                count,
                owner,
            })
        });
        Self {
            ranges: ranges.collect(),
            groups,
        }
    }
}

/// The lines of a file whose fields are divided by colons.
fn records(text: &str) -> impl Iterator<Item = Vec<&str>> {
    let lines = text.lines().map(str::trim);
    lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| line.split(':').map(str::trim).collect())
}

/// What the files say.
#[derive(Debug, Default)]
struct Texts {
    passwd: String,
    group: String,
    subuid: String,
}

/// The files, and what tells one state of them from another.
#[derive(Debug)]
pub struct AccountFiles {
    folder: PathBuf,
    seen: [Option<Stamp>; 3],
    known: HashMap<String, u32>,
    group: Option<u32>,
}

/// Of a file: device, inode, length, time of its last change [s, ns].
type Stamp = (u64, u64, u64, i64, i64);

const FILES: [&str; 3] = ["passwd", "group", "subuid"];

impl AccountFiles {
    /// The files of this machine, and what its directory service says beside them: that may take a while.
    pub fn open() -> (Self, Accounts) {
        let (mut files, _) = Self::in_folder(Path::new("/etc"));
        let texts = files.texts();
        let named = |name: &str| Some((name.to_owned(), User::from_name(name).ok()??.uid.as_raw()));
        files.known = records(&texts.subuid)
            .filter_map(|fields| named(fields.first()?))
            .collect();
        let in_file = records(&texts.group).any(|fields| fields.first() == Some(&GROUP));
        if !in_file {
            let found = Group::from_name(GROUP).ok().flatten();
            files.group = found.map(|group| group.gid.as_raw());
        }
        let accounts = Accounts::read(&texts, &files.known, files.group);
        (files, accounts)
    }

    /// Files in another folder, and no directory service.
    pub fn in_folder(folder: &Path) -> (Self, Accounts) {
        let mut files = Self {
            folder: folder.to_owned(),
            seen: [None; 3],
            known: HashMap::new(),
            group: None,
        };
        files.seen = files.stamps();
        let accounts = Accounts::read(&files.texts(), &files.known, files.group);
        (files, accounts)
    }

    /// What they say now, if one of them has changed. Nobody is asked who could take long to answer.
    pub fn changed(&mut self) -> Option<Accounts> {
        let stamps = self.stamps();
        if stamps == self.seen {
            return None;
        }
        self.seen = stamps;
        Some(Accounts::read(&self.texts(), &self.known, self.group))
    }

    fn stamps(&self) -> [Option<Stamp>; 3] {
        FILES.map(|name| {
            let found = fs::metadata(self.folder.join(name)).ok()?;
            let (s, ns) = (found.mtime(), found.mtime_nsec());
            Some((found.dev(), found.ino(), found.size(), s, ns))
        })
    }

    fn texts(&self) -> Texts {
        // A name that is no UTF-8 is nobody's who could be meant here.
        let text = |name: &str| {
            let bytes = fs::read(self.folder.join(name)).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let [passwd, group, subuid] = FILES.map(text);
        Texts {
            passwd,
            group,
            subuid,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\nanna:x:1000:1000::/home/anna:/bin/sh\n";

    fn read(subuid: &str) -> Accounts {
        let texts = Texts {
            passwd: PASSWD.into(),
            group: "audio:x:29:\nandante:x:990:anna\n".into(),
            subuid: subuid.into(),
        };
        Accounts::read(&texts, &HashMap::from([("ldap".into(), 5000)]), None)
    }

    #[test]
    fn subordinate_ids_are_their_owners() {
        let accounts =
            read("# comment\nanna:100000:65536\n1001:200000:10\nldap:300000:1\nroot:400000:5\n");
        for (uid, account) in [
            (1000, 1000),
            (99_999, 99_999),
            (100_000, 1000),
            (165_535, 1000),
            (165_536, 165_536),
            (200_009, 1001),
            (200_010, 200_010),
            (300_000, 5000),
            (400_000, 400_000), // a container's root, which is not root
            (0, 0),
            (u32::MAX, u32::MAX),
        ] {
            assert_eq!(accounts.of(uid), account, "{uid}");
        }
    }

    #[test]
    fn ranges_of_one_unknown_name_are_one_account() {
        let accounts = read("who:100000:10\nwho:200000:10\n\nbroken\nanna:x:1\nanna:1:\n");
        assert_eq!(accounts.of(200_005), accounts.of(100_003));
        assert_eq!(accounts.of(1), 1);
    }

    #[test]
    fn the_group_is_found_by_name() {
        let accounts = read("");
        assert!(accounts.is_privileged(990));
        assert!(!accounts.is_privileged(29) && !accounts.is_privileged(1000));
    }

    #[test]
    fn files_are_read_again_when_they_change_and_not_before() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("passwd"), PASSWD).unwrap();
        let (mut files, accounts) = AccountFiles::in_folder(folder.path());
        assert_eq!(accounts.of(100_000), 100_000);
        assert_eq!(files.changed(), None);
        fs::write(folder.path().join("subuid"), "anna:100000:65536\n").unwrap();
        assert_eq!(files.changed().unwrap().of(100_000), 1000);
        assert_eq!(files.changed(), None);
        fs::remove_file(folder.path().join("subuid")).unwrap();
        assert_eq!(files.changed().unwrap().of(100_000), 100_000);
    }
}
