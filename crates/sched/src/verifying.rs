//! Which of the programs the kernel's verifier is at, while another thread loads them.
//!
//! libbpf loads an object's programs in their order, in one call, and tells nobody how far it is. Each that has
//! been verified is one more open file of this process, though.

use std::fs;
use std::path::Path;
use std::sync::Mutex;

use libbpf_rs::OpenObject;

/// What a program's file is called where open files are listed.
const PROGRAM_FILE: &str = "anon_inode:bpf-prog";

/// The programs that are being loaded, in order; empty while none are.
static PROGRAMS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// A program that is being verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verifying {
    /// Its name.
    pub name: String,
    /// The first is 1.
    pub number: usize,
    /// How many there are.
    pub of: usize,
}

/// The program that is being verified at the moment; none if nothing is being loaded, or all are verified.
pub fn verifying() -> Option<Verifying> {
    let programs = PROGRAMS.lock().ok()?;
    at(&programs, verified(Path::new("/proc/self/fd"))?)
}

/// This object's programs will be loaded now.
pub(crate) fn begins(object: &OpenObject) {
    if let Ok(mut programs) = PROGRAMS.lock() {
        let loaded = object.progs().filter(|program| program.autoload());
        *programs = loaded
            .map(|program| program.name().to_string_lossy().into_owned())
            .collect();
    }
}

/// All of them are loaded, or one was refused.
pub(crate) fn ends() {
    if let Ok(mut programs) = PROGRAMS.lock() {
        programs.clear();
    }
}

fn at(programs: &[String], verified: usize) -> Option<Verifying> {
    programs.get(verified).map(|name| Verifying {
        name: name.clone(),
        number: verified + 1,
        of: programs.len(),
    })
}

/// Programs among the open files that are listed in this folder.
fn verified(files: &Path) -> Option<usize> {
    let files = fs::read_dir(files).ok()?.flatten();
    let targets = files.filter_map(|file| fs::read_link(file.path()).ok());
    Some(
        targets
            .filter(|target| target == Path::new(PROGRAM_FILE))
            .count(),
    )
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn the_program_after_those_that_are_open_is_being_verified() {
        let folder = tempfile::tempdir().unwrap();
        let file = |fd: &str, target: &str| symlink(target, folder.path().join(fd)).unwrap();
        file("0", "/dev/null");
        file("3", "anon_inode:bpf-map");
        assert_eq!(verified(folder.path()), Some(0));
        file("4", PROGRAM_FILE);
        file("5", PROGRAM_FILE);
        assert_eq!(verified(folder.path()), Some(2));
        let programs = ["a", "b", "c"].map(str::to_owned);
        let third = at(&programs, 2).unwrap();
        assert_eq!((third.name.as_str(), third.number, third.of), ("c", 3, 3));
        assert_eq!(at(&programs, 3), None, "all are verified");
        assert_eq!(at(&[], 0), None, "nothing is being loaded");
    }
}
