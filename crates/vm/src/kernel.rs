//! Finding a kernel that can run a sched_ext scheduler.
//!
//! Distributions rotate their kernels and some builds are broken (see [`andante_btf`]), so no
//! version is pinned: the kernels that apt offers are probed, newest first, and the first usable
//! one is taken. The BTF of every probed kernel stays in the cache, so that a kernel is downloaded
//! for a look at most once, and a usable kernel is found again without any network.
//!
//! In the cache a kernel is a folder:
//! ```text
//! kernels/RELEASE/btf       the type information, of rejected kernels too
//! kernels/RELEASE/vmlinux   the uncompressed kernel
//! kernels/RELEASE/root/     the unpacked packages: vmlinuz, modules, configuration
//! ```
//! Where there is no apt, the kernels that are installed are probed instead (`installed`); of them only the
//! first two files lie in the cache.

mod candidates;
mod files;
mod installed;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::apt::{Apt, AptError, Purpose, Release, unpack_folder};
use crate::cache::{Cache, CacheError, staging};
use andante_btf::{self as btf, BtfError, BtfVerdict, ESSENTIAL_KFUNCS};
use candidates::{Candidate, candidates, suites};
use files::{
    discard_image, extract, extract_packages, fingerprint, fingerprint_of, io_error, locate,
    make_folder, publish,
};
use installed::Installed;

const PURPOSE: Purpose = Purpose {
    name: "kernel",
    what: "a Linux kernel",
    mend: "set ANDANTE_KERNEL_DIR to a folder with the .deb files of one usable kernel, or to the folder lib/modules/RELEASE of one that is installed",
};

/// A kernel to boot.
#[derive(Debug, Clone)]
pub struct Kernel {
    /// As `uname -r` says it.
    pub release: String,
    /// The packed kernel.
    pub vmlinuz: PathBuf,
    /// The uncompressed kernel, an ELF file. It boots a second sooner, since nothing has to be
    /// unpacked in virtual time.
    pub vmlinux: PathBuf,
    /// The folder `…/lib/modules/RELEASE`.
    pub modules: PathBuf,
    /// The build configuration, which libbpf wants to see as `/boot/config-RELEASE`.
    pub config: Option<PathBuf>,
}

/// Why there is no kernel.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// The machine is not an x86-64.
    #[error(
        "the virtual machine needs an x86-64 host, and this is {0}: run the laboratory on an x86-64 machine"
    )]
    Architecture(&'static str),
    /// The archive offers no kernel that is new enough.
    #[error("apt offers no kernel from 6.16 on; {}", PURPOSE.mend)]
    NoneOffered,
    /// It offers none of the version that is asked for.
    #[error(
        "apt offers no kernel {version} (the newest of each that it offers: {offered}); ask for one of these in ANDANTE_KERNEL, or {}",
        PURPOSE.mend
    )]
    NotOffered {
        /// As asked for.
        version: String,
        /// One of each of the versions.
        offered: String,
    },
    /// Every kernel offered was probed and rejected.
    #[error("none of the kernels apt offers is usable ({tried}); {}", PURPOSE.mend)]
    NoneUsable {
        /// The releases.
        tried: String,
    },
    /// There is no apt, and no kernel that is installed is usable.
    #[error(
        "there is no apt to fetch a kernel with, and none that is installed in {folder} is usable ({tried}); {}",
        PURPOSE.mend
    )]
    NoneInstalled {
        /// Where installed kernels were looked for.
        folder: &'static str,
        /// Each with its reason.
        tried: String,
    },
    /// A kernel was probed and is not usable.
    #[error("kernel {release} cannot be used because {reason}; {}", PURPOSE.mend)]
    Rejected {
        /// As `uname -r` says it.
        release: String,
        /// A clause.
        reason: String,
    },
    /// A package's content is not as expected.
    #[error("{path} holds no {missing}; {}", PURPOSE.mend)]
    Incomplete {
        /// Where the packages came from.
        path: PathBuf,
        /// What was looked for.
        missing: &'static str,
    },
    /// Packages could not be fetched or unpacked.
    #[error(transparent)]
    Apt(#[from] AptError),
    /// A kernel's BTF cannot be read.
    #[error(transparent)]
    Btf(#[from] BtfError),
    /// The cache cannot be used.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// A kernel file cannot be read or written.
    #[error(
        "the kernel file {path} cannot be used: {source}; if it lies in the cache, delete it and try again"
    )]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Finds a usable kernel: in `ANDANTE_KERNEL_DIR` if that is set, else in the cache, else through
/// apt, or among those that are installed where there is no apt; the newest, or the newest of the version that `ANDANTE_KERNEL` asks for, such as 6.18 (then the
/// folder only if its kernel is of that). `progress` is told what is going on, a line at a time.
pub fn find_kernel(cache: &Cache, progress: &dyn Fn(&str)) -> Result<Kernel, KernelError> {
    KernelSearch::default().find(cache, progress)
}

/// What a kernel must be able to do, and where it may come from.
#[derive(Debug, Clone, Copy)]
pub struct KernelSearch<'a> {
    /// Kernel functions that the scheduler calls.
    pub kfuncs: &'a [&'a str],
    /// Ask apt for newer kernels even if a usable one is cached.
    pub refresh: bool,
    /// Of which kind it must be.
    pub kind: Kind,
}

/// For whom a kernel is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// For everybody.
    Common,
    /// With PREEMPT_RT, for those whom interrupts keep waiting.
    RealTime,
}

impl Kind {
    /// The variable that names a folder with the packages of one.
    fn variable(self) -> &'static str {
        match self {
            Self::Common => "ANDANTE_KERNEL_DIR",
            Self::RealTime => "ANDANTE_RT_KERNEL_DIR",
        }
    }
}

impl Default for KernelSearch<'_> {
    fn default() -> Self {
        Self {
            kfuncs: ESSENTIAL_KFUNCS,
            refresh: false,
            kind: Kind::Common,
        }
    }
}

impl KernelSearch<'_> {
    /// Finds a kernel, see [`find_kernel`].
    pub fn find(&self, cache: &Cache, progress: &dyn Fn(&str)) -> Result<Kernel, KernelError> {
        if std::env::consts::ARCH != "x86_64" {
            return Err(KernelError::Architecture(std::env::consts::ARCH));
        }
        let _held = cache.lock("kernels")?;
        let kernels = cache.folder("kernels")?;
        let asked = std::env::var("ANDANTE_KERNEL").unwrap_or_default();
        if let Some(folder) = std::env::var_os(self.kind.variable()).filter(|v| !v.is_empty()) {
            let found = self.in_folder(Path::new(&folder), &kernels, progress);
            match found {
                Ok(kernel) if !is_of(&kernel.release, &asked) => {}
                found => return found,
            }
        }
        if !self.refresh
            && let Some(kernel) = self.in_cache(&kernels, &asked)?
        {
            progress(&format!("kernel {}: from the cache", kernel.release));
            return Ok(kernel);
        }
        match self.through_apt(cache, &kernels, &asked, progress) {
            Err(KernelError::Apt(AptError::NoApt { .. })) => self.of_this_machine(&kernels, &asked),
            found => found,
        }
    }

    /// The newest usable kernel of this version that is installed.
    fn of_this_machine(&self, kernels: &Path, asked: &str) -> Result<Kernel, KernelError> {
        let mut tried = Vec::new();
        for one in Installed::all(Path::new(installed::FOLDER)) {
            if !is_of(&one.release, asked) {
                continue;
            }
            match self.probe_installed(one, kernels) {
                Err(KernelError::Rejected { release, reason }) => {
                    tried.push(format!("{release}: {reason}"));
                }
                found => return found,
            }
        }
        Err(KernelError::NoneInstalled {
            folder: installed::FOLDER,
            tried: match (tried.is_empty(), asked) {
                (false, _) => tried.join("; "),
                (true, "") => "there is none".to_owned(),
                (true, asked) => format!("there is no {asked}"),
            },
        })
    }

    /// The kernel as it is installed, unpacked into the cache once, if it is usable.
    fn probe_installed(&self, one: Installed, kernels: &Path) -> Result<Kernel, KernelError> {
        let known = fingerprint([one.vmlinuz.as_path()].into_iter())?;
        let home = kernels.join(format!("installed-{known}"));
        if !home.exists() {
            let new = staging(kernels)?;
            extract(&one.vmlinuz, new.path())?;
            publish(new, &home)?;
        }
        if let Some(reason) = self.probe(&home)?.reason() {
            let release = one.release;
            return Err(KernelError::Rejected { release, reason });
        }
        Ok(Kernel {
            release: one.release,
            vmlinuz: one.vmlinuz,
            vmlinux: home.join("vmlinux"),
            modules: one.modules,
            config: one.config,
        })
    }

    /// The kernel in `folder`: as it is installed, or as packages.
    fn in_folder(
        &self,
        folder: &Path,
        kernels: &Path,
        progress: &dyn Fn(&str),
    ) -> Result<Kernel, KernelError> {
        if let Some(one) = Installed::at(folder) {
            return self.probe_installed(one, kernels);
        }
        let home = kernels.join(format!("folder-{}", fingerprint_of(folder)?));
        if !home.exists() {
            progress(&format!("unpacking the kernel in {}", folder.display()));
            let new = staging(kernels)?;
            let root = make_folder(&new.path().join("root"))?;
            unpack_folder(folder, &root, PURPOSE)?;
            extract_packages(new.path())?;
            publish(new, &home)?;
        }
        let kernel = locate(&home)?;
        if let Some(reason) = self.probe(&home)?.reason() {
            let release = kernel.map_or_else(
                || format!("in {}", folder.display()),
                |kernel| kernel.release,
            );
            return Err(KernelError::Rejected { release, reason });
        }
        kernel.ok_or_else(|| KernelError::Incomplete {
            path: folder.to_owned(),
            missing: "modules",
        })
    }

    /// The newest usable kernel of this version that was completely fetched before.
    fn in_cache(&self, kernels: &Path, asked: &str) -> Result<Option<Kernel>, KernelError> {
        let names: Vec<String> = fs::read_dir(kernels)
            .map_err(io_error(kernels))?
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .map(|release| format!("linux-image-{release}"))
            .collect();
        let release = Release::of_this_machine();
        for candidate in candidates(&names, &release.id, self.kind) {
            let home = kernels.join(&candidate.release);
            let is_of = is_of(&candidate.release, asked);
            if is_of && home.join("vmlinux").exists() && self.probe(&home)?.usable {
                return locate(&home);
            }
        }
        Ok(None)
    }

    /// The newest usable kernel of this version that apt offers.
    fn through_apt(
        &self,
        cache: &Cache,
        kernels: &Path,
        asked: &str,
        progress: &dyn Fn(&str),
    ) -> Result<Kernel, KernelError> {
        let release = Release::of_this_machine();
        let apt = Apt::open(cache, &release, &suites(&release), PURPOSE)?;
        progress("asking apt which kernels there are");
        apt.update()?;
        let offered = candidates(&apt.names("linux-")?, &release.id, self.kind);
        if offered.is_empty() {
            return Err(KernelError::NoneOffered);
        }
        let of_asked = |candidate: &&Candidate| is_of(&candidate.release, asked);
        if !offered.iter().any(|candidate| of_asked(&candidate)) {
            return Err(KernelError::NotOffered {
                version: asked.to_owned(),
                offered: newest_of_each(&offered),
            });
        }
        let mut tried = Vec::new();
        for candidate in offered.iter().filter(of_asked) {
            match self.try_candidate(&apt, candidate, kernels, progress) {
                Ok(kernel) => return Ok(kernel),
                // Lists run ahead of or behind the pool they describe; another one may be there.
                Err(
                    error @ (KernelError::Rejected { .. }
                    | KernelError::Apt(AptError::Failed { .. })),
                ) => {
                    progress(&format!("passed over: {error}"));
                    tried.push(candidate.release.clone());
                }
                Err(error) => return Err(error),
            }
        }
        Err(KernelError::NoneUsable {
            tried: tried.join(", "),
        })
    }

    /// Fetches a kernel as far as needed to judge it, and wholly if it is usable.
    fn try_candidate(
        &self,
        apt: &Apt,
        candidate: &Candidate,
        kernels: &Path,
        progress: &dyn Fn(&str),
    ) -> Result<Kernel, KernelError> {
        let home = kernels.join(&candidate.release);
        if !home.exists() {
            progress(&format!("kernel {}: fetching it", candidate.release));
            fetch_image(apt, candidate, kernels, &home)?;
        }
        if let Some(reason) = self.probe(&home)?.reason() {
            discard_image(&home)?;
            return Err(KernelError::Rejected {
                release: candidate.release.clone(),
                reason,
            });
        }
        complete(apt, candidate, &home, progress)
    }

    fn probe(&self, home: &Path) -> Result<BtfVerdict, KernelError> {
        let path = home.join("btf");
        let bytes = fs::read(&path).map_err(io_error(&path))?;
        if bytes.is_empty() {
            // Built without BTF, hence without sched_ext, which depends on it.
            return Ok(BtfVerdict {
                usable: false,
                has_sched_ext: false,
                missing: self.kfuncs.iter().map(|k| k.to_string()).collect(),
                broken: Vec::new(),
            });
        }
        Ok(btf::probe(&bytes, self.kfuncs)?)
    }
}

/// Is this release of the version that is asked for? 7.2.13 is of 7.2 and of 7.2.13, not of 7.2.1; all are of
/// none.
fn is_of(release: &str, asked: &str) -> bool {
    let rest = release.strip_prefix(asked);
    rest.is_some_and(|rest| asked.is_empty() || !rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// Of each version, such as 7.2, the newest release; these come newest first.
fn newest_of_each(offered: &[Candidate]) -> String {
    let version = |release: &str| release.splitn(3, '.').take(2).collect::<Vec<_>>().join(".");
    let mut newest: Vec<&str> = Vec::new();
    for Candidate { release, .. } in offered {
        if newest
            .iter()
            .all(|known| version(known) != version(release))
        {
            newest.push(release);
        }
    }
    newest.join(", ")
}

/// Downloads only the package with `vmlinuz`, which is all a probe needs.
fn fetch_image(
    apt: &Apt,
    candidate: &Candidate,
    kernels: &Path,
    home: &Path,
) -> Result<(), KernelError> {
    let new = staging(kernels)?;
    let root = make_folder(&new.path().join("root"))?;
    apt.unpack(&[&candidate.image], &root)?;
    extract_packages(new.path())?;
    publish(new, home)
}

/// Makes a probed kernel ready to boot by adding its modules and its configuration.
fn complete(
    apt: &Apt,
    candidate: &Candidate,
    home: &Path,
    progress: &dyn Fn(&str),
) -> Result<Kernel, KernelError> {
    if locate(home)?.is_none() {
        progress(&format!(
            "kernel {}: fetching its modules",
            candidate.release
        ));
        let mut packages = vec![candidate.image.as_str()];
        packages.extend(candidate.others.iter().map(String::as_str));
        let root = make_folder(&home.join("root"))?;
        apt.unpack(&packages, &root)?;
        extract_packages(home)?;
    }
    locate(home)?.ok_or_else(|| KernelError::Incomplete {
        path: home.to_owned(),
        missing: "modules",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_of_its_version() {
        for asked in ["", "7", "7.2", "7.2.13", "7.2.13+deb14"] {
            assert!(is_of("7.2.13+deb14-cloud-amd64", asked), "{asked}");
        }
        for asked in ["7.2.1", "7.3", "6.18"] {
            assert!(!is_of("7.2.13+deb14-cloud-amd64", asked), "{asked}");
        }
        let offered = ["7.2.13+a", "7.2.11+a", "7.0.13+a", "6.18.15+a", "6.18.9+a"];
        let offered = offered.map(|release| Candidate {
            release: release.to_owned(),
            image: String::new(),
            others: Vec::new(),
        });
        assert_eq!(newest_of_each(&offered), "7.2.13+a, 7.0.13+a, 6.18.15+a");
    }

    /// As Arch and Fedora install it: `vmlinuz` beside the modules.
    #[test]
    #[ignore = "needs a kernel"]
    fn a_kernel_as_it_is_installed_is_usable() {
        let quiet = |_: &str| {};
        let cache = Cache::open().unwrap();
        let kernel = find_kernel(&cache, &quiet).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let modules = make_folder(&folder.path().join(&kernel.release)).unwrap();
        let link = |file: &Path, name: &str| {
            std::os::unix::fs::symlink(file, modules.join(name)).unwrap();
        };
        link(&kernel.vmlinuz, "vmlinuz");
        link(&kernel.modules.join("kernel"), "kernel");
        let kernels = make_folder(&folder.path().join("cache")).unwrap();
        let search = KernelSearch::default();
        let found = search.in_folder(&modules, &kernels, &quiet).unwrap();
        assert_eq!(found.release, kernel.release);
        assert_eq!(found.modules, modules);
        let same = |one: &Path, other: &Path| fs::read(one).unwrap() == fs::read(other).unwrap();
        assert!(same(&found.vmlinux, &kernel.vmlinux));
    }
}
