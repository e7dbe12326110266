//! Kernels that are installed, as distributions lay them out: `lib/modules/RELEASE` has the modules and,
//! on Arch and Fedora, `vmlinuz` beside them. There they serve the laboratory where no apt can fetch one.

use std::fs;
use std::path::{Path, PathBuf};

/// Where distributions install their kernels.
pub(super) const FOLDER: &str = "/usr/lib/modules";

/// A kernel as it is installed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Installed {
    /// As `uname -r` says it.
    pub release: String,
    /// The packed kernel.
    pub vmlinuz: PathBuf,
    /// The folder with its modules.
    pub modules: PathBuf,
    /// The build configuration.
    pub config: Option<PathBuf>,
}

impl Installed {
    /// The kernel whose modules lie in `folder`, if its `vmlinuz` lies there too.
    pub(super) fn at(folder: &Path) -> Option<Self> {
        let vmlinuz = folder.join("vmlinuz");
        let whole = vmlinuz.is_file() && folder.join("kernel").is_dir();
        let release = folder.file_name()?.to_string_lossy().into_owned();
        let config = Some(folder.join("config")).filter(|file| file.is_file());
        whole.then(|| Self {
            release,
            vmlinuz,
            modules: folder.to_owned(),
            config,
        })
    }

    /// All kernels below `folder`, the newest first.
    pub(super) fn all(folder: &Path) -> Vec<Self> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut all: Vec<_> = entries
            .filter_map(|entry| Self::at(&entry.path()))
            .collect();
        all.sort_by_key(|one| std::cmp::Reverse(numbers(&one.release)));
        all
    }
}

/// The numbers of a release, so that 6.18 comes after 6.9.
fn numbers(release: &str) -> Vec<u64> {
    let parts = release.split(|c: char| !c.is_ascii_digit());
    parts.filter_map(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn installed_kernels_come_newest_first_and_whole_ones_only() {
        let modules = tempfile::tempdir().unwrap();
        for (release, whole) in [
            ("6.9.1-arch1-1", true),
            ("6.18.2-arch1-1", true),
            ("7.2.13-200.fc44.x86_64", true),
            ("7.3.0-arch1-1", false),
        ] {
            let folder = modules.path().join(release);
            fs::create_dir_all(folder.join("kernel")).unwrap();
            if whole {
                fs::write(folder.join("vmlinuz"), "").unwrap();
            }
        }
        let all = Installed::all(modules.path());
        let releases: Vec<_> = all.iter().map(|one| one.release.as_str()).collect();
        assert_eq!(
            releases,
            ["7.2.13-200.fc44.x86_64", "6.18.2-arch1-1", "6.9.1-arch1-1"]
        );
        assert_eq!(all[0].config, None);
        assert!(Installed::all(Path::new("/no/such/folder")).is_empty());
    }
}
