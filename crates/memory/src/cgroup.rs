// SPDX-License-Identifier: GPL-2.0
//! The kernel's files on the memory of a class, read and written. All amounts are in bytes.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// A cgroup, by its folder.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cgroup(PathBuf);

/// The memory that a class uses, and the price at which it gets it. Counters are since the class was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stat {
    /// Memory of programs' own: heaps and stacks.
    pub anonymous: u64,
    /// Pages of files, memory that is shared among them.
    pub file: u64,
    /// Memory that programs share, of `file`: it goes to the swap as `anonymous` does.
    pub shared_memory: u64,
    /// Pages of files that some program has mapped.
    pub mapped: u64,
    /// Pages that are locked.
    pub unevictable: u64,
    /// The kernel's own for the class.
    pub kernel: u64,
    /// Accesses that had to wait for a disk or the swap.
    pub major_faults: u64,
    /// Pages that had been taken away, and were needed again.
    pub refaults: u64,
}

impl Cgroup {
    /// The class with this folder.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self(folder.into())
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.0
    }

    /// Whether it is there, and its memory is counted.
    pub fn counts(&self) -> bool {
        self.file("memory.min").exists()
    }

    /// Its memory now, all classes below it included.
    ///
    /// # Errors
    /// It is gone, or its memory is not counted.
    pub fn current(&self) -> io::Result<u64> {
        self.number("memory.current")
    }

    /// The part of it in the swap.
    ///
    /// # Errors
    /// As above, or the kernel has no swap.
    pub fn swapped(&self) -> io::Result<u64> {
        self.number("memory.swap.current")
    }

    /// The amount that the kernel takes from it in no case.
    ///
    /// # Errors
    /// As above.
    pub fn protected(&self) -> io::Result<u64> {
        self.number("memory.min")
    }

    /// The most that it may have at all; `u64::MAX` without a limit.
    ///
    /// # Errors
    /// As above.
    pub fn limit(&self) -> io::Result<u64> {
        self.number("memory.max")
    }

    /// The most that it may have without being slowed down; `u64::MAX` without a limit.
    ///
    /// # Errors
    /// As above.
    pub fn soft_limit(&self) -> io::Result<u64> {
        self.number("memory.high")
    }

    /// Sets what the kernel takes from it in no case.
    ///
    /// # Errors
    /// As above, or it is not permitted.
    pub fn set_protected(&self, bytes: u64) -> io::Result<()> {
        fs::write(self.file("memory.min"), bytes.to_string())
    }

    /// Its memory, by kinds.
    ///
    /// # Errors
    /// As above.
    pub fn stat(&self) -> io::Result<Stat> {
        Ok(parse_stat(&fs::read_to_string(self.file("memory.stat"))?))
    }

    /// For how long some program of the class has waited for memory [µs].
    ///
    /// # Errors
    /// As above, or the kernel does not tell (`psi=0`).
    pub fn stalled_us(&self) -> io::Result<u64> {
        let text = fs::read_to_string(self.file("memory.pressure"))?;
        let some = text.lines().find(|line| line.starts_with("some "));
        let total = some.and_then(|line| line.split("total=").nth(1));
        let total = total.and_then(|total| total.trim().parse().ok());
        total.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
    }

    /// CPU time that it has used [µs].
    ///
    /// # Errors
    /// It is gone.
    pub fn cpu_us(&self) -> io::Result<u64> {
        let text = fs::read_to_string(self.file("cpu.stat"))?;
        Ok(value(&text, "usage_usec").unwrap_or(0))
    }

    /// How often one of its programs was killed for want of memory.
    ///
    /// # Errors
    /// As above.
    pub fn killed(&self) -> io::Result<u64> {
        let text = fs::read_to_string(self.file("memory.events"))?;
        Ok(value(&text, "oom_kill").unwrap_or(0))
    }

    /// Takes so much of it, from what was used longest ago; `swappiness` says of what kind: `Some(0)` pages of
    /// files alone, `Some(u8::MAX)` programs' own memory alone. Waits until it is done, and takes less if there is
    /// not so much.
    ///
    /// # Errors
    /// It is gone, the kernel knows no `memory.reclaim` (5.19 and newer do), or could not take all of it.
    pub fn reclaim(&self, bytes: u64, swappiness: Option<u8>) -> io::Result<()> {
        let order = match swappiness {
            None => bytes.to_string(),
            // `max`, of 6.14 and newer, is the programs' own memory alone; 200 is nearly that.
            Some(u8::MAX) => format!("{bytes} swappiness=max"),
            Some(swappiness) => format!("{bytes} swappiness={swappiness}"),
        };
        let file = self.file("memory.reclaim");
        match fs::write(&file, order) {
            Err(error)
                if swappiness == Some(u8::MAX) && error.kind() == io::ErrorKind::InvalidInput =>
            {
                fs::write(file, format!("{bytes} swappiness=200"))
            }
            done => done,
        }
    }

    /// Its processes, those of classes below it included.
    pub fn processes(&self) -> Vec<i32> {
        let mut found = Vec::new();
        self.each(&mut |cgroup| {
            let text = fs::read_to_string(cgroup.file("cgroup.procs")).unwrap_or_default();
            found.extend(text.lines().filter_map(|line| line.parse::<i32>().ok()));
        });
        found
    }

    /// The inode numbers of its folder and of all folders below, by which the kernel tells whose a page is.
    pub fn inodes(&self) -> Vec<u64> {
        let mut found = Vec::new();
        self.each(&mut |cgroup| {
            found.extend(inode(&cgroup.0));
        });
        found
    }

    /// It and all below it.
    fn each(&self, visit: &mut dyn FnMut(&Self)) {
        visit(self);
        let Ok(entries) = fs::read_dir(&self.0) else {
            return;
        };
        for entry in entries.flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                Self(entry.path()).each(visit);
            }
        }
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn number(&self, name: &str) -> io::Result<u64> {
        number(&fs::read_to_string(self.file(name))?)
    }

    /// One of its numbers, to be read often.
    ///
    /// # Errors
    /// As above.
    pub(crate) fn open(&self, name: &str) -> io::Result<Counter> {
        Ok(Counter(File::open(self.file(name))?))
    }
}

/// A file that holds a number. To open it takes longer than to read it.
#[derive(Debug)]
pub(crate) struct Counter(File);

impl Counter {
    /// The number now.
    pub fn read(&self) -> io::Result<u64> {
        let mut buffer = [0; 32];
        let length = self.0.read_at(&mut buffer, 0)?;
        number(std::str::from_utf8(&buffer[..length]).map_err(io::Error::other)?)
    }
}

fn number(text: &str) -> io::Result<u64> {
    match text.trim() {
        "max" => Ok(u64::MAX),
        number => number.parse().map_err(io::Error::other),
    }
}

/// By which a folder is told from another of its name.
pub(crate) fn inode(folder: &Path) -> io::Result<u64> {
    use std::os::unix::fs::MetadataExt;
    Ok(fs::metadata(folder)?.ino())
}

/// The number behind a word at the beginning of a line.
pub(crate) fn value(text: &str, word: &str) -> Option<u64> {
    let mut lines = text.lines();
    lines.find_map(|line| {
        let (key, value) = line.split_once([' ', ':'])?;
        (key == word).then(|| value.split_whitespace().next()?.parse().ok())?
    })
}

fn parse_stat(text: &str) -> Stat {
    let of = |word| value(text, word).unwrap_or(0);
    Stat {
        anonymous: of("anon"),
        file: of("file"),
        shared_memory: of("shmem"),
        mapped: of("file_mapped"),
        unevictable: of("unevictable"),
        kernel: of("kernel"),
        major_faults: of("pgmajfault"),
        refaults: of("workingset_refault_anon") + of("workingset_refault_file"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_words_are_read() {
        let text = "anon 4096\nfile 8192\nkernel 16384\nshmem 1024\nfile_mapped 2048\nunevictable 512\n\
                    workingset_refault_anon 3\nworkingset_refault_file 4\npgmajfault 5\n";
        let stat = parse_stat(text);
        assert_eq!(
            (stat.anonymous, stat.file, stat.kernel),
            (4096, 8192, 16384)
        );
        assert_eq!((stat.refaults, stat.major_faults), (7, 5));
        assert_eq!(value("MemTotal:  512 kB\n", "MemTotal"), Some(512));
    }

    #[test]
    fn a_class_is_read_from_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let cgroup = Cgroup::new(folder.path());
        assert!(!cgroup.counts() && cgroup.current().is_err());
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write("memory.min", "4096\n");
        write("memory.max", "max\n");
        write(
            "memory.pressure",
            "some avg10=0.00 avg60=0.00 avg300=0.00 total=17\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=3\n",
        );
        assert_eq!(cgroup.protected().unwrap(), 4096);
        assert_eq!(cgroup.limit().unwrap(), u64::MAX);
        assert_eq!(cgroup.stalled_us().unwrap(), 17);
        fs::create_dir(folder.path().join("below")).unwrap();
        fs::write(folder.path().join("below/cgroup.procs"), "3\n").unwrap();
        write("cgroup.procs", "1\n2\n");
        let mut processes = cgroup.processes();
        processes.sort_unstable();
        assert_eq!(processes, [1, 2, 3]);
        assert_eq!(cgroup.inodes().len(), 2);
        let counter = cgroup.open("memory.min").unwrap();
        assert_eq!(counter.read().unwrap(), 4096);
        write("memory.min", "8192\n");
        assert_eq!(counter.read().unwrap(), 8192);
    }
}
