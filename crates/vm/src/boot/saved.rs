//! Machines that were saved where a command, or what it has been made ready for, is still open: the
//! next run of another command goes on from there, and need not boot.
//!
//! ```text
//!   boot ─► /init: receive command ──► command makes ready ─► receive order ──► …
//!                  │ saved: what boots                        │ saved: and the command
//! ```
//!
//! A saved machine is what QEMU migrates: memory and devices, one file. Its name is a hash of all that
//! decides it: emulator, its command line, the RAM disk, the image, and for the second point the command.
//! It belongs to one boot of the host, too, since what is written is not waited for until it is on the
//! disk. Every run goes on from the file, that of the process too that has just saved it. With one CPU a
//! run is the same to the last digit if it is never saved (`tests/saved.rs`). With several, any two are that
//! go on from the same file, and not from two files: to halt the machine ends the turn of a virtual CPU, and it
//! is halted whenever the host comes to it. So figures are not taken from saved machines of several CPUs (the
//! laboratory's `may_save`), only bounds.
//!
//! Two ways that do not serve, which is why the guest counts while it is saved:
//! - *A device that halts the machine at an instruction* (pvpanic): the virtual CPU stands still before QEMU
//!   says that the machine does. If the main thread looks in between, it takes the machine to idle, and
//!   puts the clock forward to the next timer: in one of two or three tries.
//! - *A port that the guest reads the order from*: when that arrives depends on how fast the host is.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use nix::fcntl::{Flock, FlockArg};
use sha2::{Digest, Sha256};

use super::machine::{self, Files};
use super::{Boot, BootError, io_error};
use crate::cache::{Cache, CacheError};

/// Raised when what is saved changes, so that older ones are not taken.
const FORMAT: &str = "3";
/// The room on the disk for all saved machines [bytes]. `make test` saves some thirty, of 100 to 500 MB.
const KEPT_BYTES_MAX: u64 = 8 << 30;
/// Files left by a process that was killed are removed when they are older.
const LEFT_BEHIND: Duration = Duration::from_secs(3600);
/// The files' ending.
const ENDING: &str = "machine";

/// A point at which machines are saved.
#[derive(Debug, Clone)]
pub(super) struct Point {
    /// The thing that is open there: `command` or `order`.
    pub name: &'static str,
    /// A hash of all that decides a machine up to there.
    key: String,
}

/// The points of this run at which machines are saved, in order.
pub(super) fn points(boot: &Boot, initrd: &[u8], command: &[u8]) -> Result<Vec<Point>, BootError> {
    let mut hash = Sha256::new();
    let mut field = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    field(FORMAT.as_bytes());
    // Without it (in some container) the saved machine is kept for longer than it should.
    field(&fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default());
    let nowhere = Files::in_folder(Path::new("/"), Path::new("/console"));
    let qemu = machine::command(boot, &nowhere, None)?;
    for word in [qemu.get_program()].into_iter().chain(qemu.get_args()) {
        field(word.as_encoded_bytes());
    }
    let binary = boot.qemu.binary.as_path();
    for file in [Some(binary), Some(&boot.kernel.vmlinux), boot.image] {
        let Some(file) = file else { continue };
        let data = file.metadata().map_err(io_error(file))?;
        for number in [data.len() as i64, data.mtime(), data.mtime_nsec()] {
            field(&number.to_le_bytes());
        }
    }
    field(initrd);
    let mut points = Vec::new();
    let mut point = |name, hash: &Sha256| {
        let key = crate::hex(&hash.clone().finalize()[..12]);
        points.push(Point { name, key });
    };
    point("command", &hash);
    if boot.order.as_ref().is_some_and(|order| order.save) {
        hash.update(command);
        point("order", &hash);
    }
    Ok(points)
}

/// The folder of the cache with the saved machines.
#[derive(Debug)]
pub(super) struct Store {
    folder: PathBuf,
}

/// The place of one saved machine, for this process alone.
#[derive(Debug)]
pub(super) struct Place {
    folder: PathBuf,
    /// Where it is, or will be.
    pub file: PathBuf,
    _held: Flock<File>,
}

impl Store {
    pub(super) fn open(cache: &Cache) -> Result<Self, CacheError> {
        let folder = cache.folder("machines")?;
        Ok(Self { folder })
    }

    /// Waits until nobody else makes or begins with this machine.
    pub(super) fn hold(&self, point: &Point) -> io::Result<Place> {
        let lock = lock(
            &self.folder,
            point.name,
            &point.key,
            FlockArg::LockExclusive,
        )?;
        let name = format!("{}-{}.{ENDING}", point.name, point.key);
        Ok(Place {
            folder: self.folder.clone(),
            file: self.folder.join(name),
            _held: lock,
        })
    }
}

/// One lock for all whose keys begin alike, so that there are not ever more lock files. Those of the two
/// points are apart: who makes a machine of the second holds one of the first.
fn lock(folder: &Path, point: &str, key: &str, how: FlockArg) -> io::Result<Flock<File>> {
    let file = File::create(folder.join(format!("{point}-{}.lock", &key[..2])))?;
    Flock::lock(file, how).map_err(|(_, errno)| errno.into())
}

impl Place {
    /// Whether the machine is there; it then counts as used now.
    pub(super) fn is_taken(&self) -> bool {
        let touched = File::options().append(true).open(&self.file);
        touched
            .and_then(|file| file.set_modified(SystemTime::now()))
            .is_ok()
    }

    /// A file to save the machine to.
    pub(super) fn staging(&self) -> io::Result<tempfile::TempPath> {
        let mut builder = tempfile::Builder::new();
        let file = builder.prefix(".new-").tempfile_in(&self.folder)?;
        Ok(file.into_temp_path())
    }

    /// Puts the machine that has been saved there, and makes room if there are too many.
    pub(super) fn fill(&self, staged: tempfile::TempPath) -> io::Result<()> {
        staged.persist(&self.file).map_err(|error| error.error)?;
        make_room(&self.folder, &self.file, KEPT_BYTES_MAX)
    }

    /// Removes the machine.
    pub(super) fn clear(&self) {
        // It may be gone already.
        let _ = fs::remove_file(&self.file);
    }
}

/// Removes what was used longest ago, but for `new` and what is in use, until the rest is within the bound.
fn make_room(folder: &Path, new: &Path, bytes_max: u64) -> io::Result<()> {
    let mut kept = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        // Another process may have removed it just now.
        let Ok(data) = path.metadata() else { continue };
        let used = data.modified()?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with(".new-") && used.elapsed().is_ok_and(|age| age > LEFT_BEHIND) {
            let _ = fs::remove_file(&path);
        } else if path.extension().is_some_and(|ending| ending == ENDING) {
            kept.push((used, data.blocks() * 512, path));
        }
    }
    kept.sort();
    let mut bytes: u64 = kept.iter().map(|(_, bytes, _)| bytes).sum();
    for (_, size, path) in kept {
        if bytes <= bytes_max {
            break;
        }
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let Some((point, key)) = name.split_once('-') else {
            continue;
        };
        let free = || lock(folder, point, key, FlockArg::LockExclusiveNonblock);
        if path != new && free().is_ok_and(|_held| fs::remove_file(&path).is_ok()) {
            bytes -= size;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store() -> (tempfile::TempDir, Store) {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path()).unwrap();
        let store = Store::open(&cache).unwrap();
        (folder, store)
    }

    fn point(name: &'static str, key: &str) -> Point {
        Point {
            name,
            key: key.to_owned(),
        }
    }

    fn filled(store: &Store, point: &Point, bytes: usize, seconds_ago: u64) -> PathBuf {
        let place = store.hold(point).unwrap();
        assert!(!place.is_taken());
        let staged = place.staging().unwrap();
        fs::write(&staged, vec![1; bytes]).unwrap();
        place.fill(staged).unwrap();
        assert!(place.is_taken());
        let file = File::options().append(true).open(&place.file).unwrap();
        let used = SystemTime::now() - Duration::from_secs(seconds_ago);
        file.set_modified(used).unwrap();
        place.file.clone()
    }

    #[test]
    fn what_was_used_longest_ago_goes_first_but_not_what_is_in_use() {
        let (_folder, store) = store();
        let points = ["aa1", "bb2", "cc3", "dd4"].map(|key| point("order", key));
        let ages = [30, 40, 20, 10];
        let files = [0, 1, 2, 3].map(|i| filled(&store, &points[i], 1 << 20, ages[i]));
        let left = || files.iter().map(|file| file.exists()).collect::<Vec<_>>();
        let _held = store.hold(&points[1]).unwrap();
        make_room(&store.folder, &files[3], 5 << 19).unwrap();
        assert_eq!(left(), [false, true, false, true]);
        make_room(&store.folder, &files[3], 0).unwrap();
        assert_eq!(left(), [false, true, false, true], "the new one stays");
    }

    #[test]
    fn one_that_was_refused_is_gone() {
        let (_folder, store) = store();
        let point = point("command", "aa1");
        filled(&store, &point, 1, 0);
        let place = store.hold(&point).unwrap();
        place.clear();
        assert!(!place.is_taken());
    }
}
