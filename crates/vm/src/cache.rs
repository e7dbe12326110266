//! The folder where kernels, an emulator and root images are kept between runs.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};

/// Everything that was fetched or built once and is worth keeping.
///
/// The folder may be deleted at any time: the next run makes it again.
#[derive(Debug, Clone)]
pub struct Cache {
    root: PathBuf,
}

/// The cache folder cannot be used.
#[derive(Debug, thiserror::Error)]
#[error(
    "the cache folder {path} cannot be used ({source}); set ANDANTE_CACHE_DIR to a folder that can be written"
)]
pub struct CacheError {
    /// The folder or file that failed.
    pub path: PathBuf,
    /// What the system said.
    pub source: io::Error,
}

impl Cache {
    /// Opens the user's cache: `ANDANTE_CACHE_DIR`, else `andante` in `XDG_CACHE_HOME`, else in
    /// `~/.cache`.
    pub fn open() -> Result<Self, CacheError> {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let root = variable("ANDANTE_CACHE_DIR")
            .map(PathBuf::from)
            .or_else(|| variable("XDG_CACHE_HOME").map(|home| Path::new(&home).join("andante")))
            .or_else(|| variable("HOME").map(|home| Path::new(&home).join(".cache/andante")))
            .unwrap_or_else(|| std::env::temp_dir().join("andante-cache"));
        Self::at(root)
    }

    /// Opens the cache in the given folder, which is made if it does not exist.
    pub fn at(root: impl Into<PathBuf>) -> Result<Self, CacheError> {
        let path = root.into();
        match fs::create_dir_all(&path).and_then(|()| path.canonicalize()) {
            Ok(root) => Ok(Self { root }),
            Err(source) => Err(CacheError { path, source }),
        }
    }

    /// A folder of the cache, made if it does not exist.
    pub fn folder(&self, name: &str) -> Result<PathBuf, CacheError> {
        let path = self.root.join(name);
        match fs::create_dir_all(&path) {
            Ok(()) => Ok(path),
            Err(source) => Err(CacheError { path, source }),
        }
    }

    /// Waits until no other process works on the part called `name`, and holds it until the guard
    /// is dropped. Two commands started at once then fetch a kernel once.
    pub(crate) fn lock(&self, name: &str) -> Result<Flock<File>, CacheError> {
        let path = self.root.join(format!("{name}.lock"));
        File::create(&path)
            .and_then(|file| {
                Flock::lock(file, FlockArg::LockExclusive)
                    .map_err(|(_, errno)| io::Error::from(errno))
            })
            .map_err(|source| CacheError { path, source })
    }
}

/// A new temporary folder inside `parent`, so that a rename out of it is atomic.
pub(crate) fn staging(parent: &Path) -> Result<tempfile::TempDir, CacheError> {
    tempfile::Builder::new()
        .prefix(".new-")
        .tempdir_in(parent)
        .map_err(|source| CacheError {
            path: parent.to_owned(),
            source,
        })
}
