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

mod candidates;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::apt::{Apt, AptError, Purpose, Release, unpack_folder};
use crate::cache::{Cache, CacheError, staging};
use crate::vmlinux;
use andante_btf::{self as btf, BtfError, BtfVerdict, ESSENTIAL_KFUNCS};
use candidates::{Candidate, candidates, suites};

const PURPOSE: Purpose = Purpose {
    name: "kernel",
    what: "a Linux kernel",
    mend: "set ANDANTE_KERNEL_DIR to a folder with the .deb files of one usable kernel",
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
/// apt; the newest, or the newest of the version that `ANDANTE_KERNEL` asks for, such as 6.18 (then the
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
        self.through_apt(cache, &kernels, &asked, progress)
    }

    /// The kernel whose packages lie in `folder`.
    fn in_folder(
        &self,
        folder: &Path,
        kernels: &Path,
        progress: &dyn Fn(&str),
    ) -> Result<Kernel, KernelError> {
        let home = kernels.join(format!("folder-{}", fingerprint(folder)?));
        if !home.exists() {
            progress(&format!("unpacking the kernel in {}", folder.display()));
            let new = staging(kernels)?;
            let root = make_folder(&new.path().join("root"))?;
            unpack_folder(folder, &root, PURPOSE)?;
            extract(new.path())?;
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
    extract(new.path())?;
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
        extract(home)?;
    }
    locate(home)?.ok_or_else(|| KernelError::Incomplete {
        path: home.to_owned(),
        missing: "modules",
    })
}

/// Writes `vmlinux` and `btf` beside the unpacked packages.
fn extract(home: &Path) -> Result<(), KernelError> {
    let packed =
        find_file(&home.join("root"), "vmlinuz")?.ok_or_else(|| KernelError::Incomplete {
            path: home.to_owned(),
            missing: "vmlinuz",
        })?;
    let image = fs::read(&packed).map_err(io_error(&packed))?;
    let elf = vmlinux::unpack(&image).map_err(io_error(&packed))?;
    let btf = vmlinux::btf(&elf).map_err(io_error(&packed))?;
    for (name, content) in [("btf", btf.unwrap_or_default()), ("vmlinux", elf)] {
        let path = home.join(name);
        fs::write(&path, content).map_err(io_error(&path))?;
    }
    Ok(())
}

/// Keeps of a rejected kernel only what a later probe needs.
fn discard_image(home: &Path) -> Result<(), KernelError> {
    let (root, vmlinux) = (home.join("root"), home.join("vmlinux"));
    if root.exists() {
        fs::remove_dir_all(&root).map_err(io_error(&root))?;
        fs::remove_file(&vmlinux).map_err(io_error(&vmlinux))?;
    }
    Ok(())
}

/// The parts of an unpacked kernel; `None` while its modules are not there.
fn locate(home: &Path) -> Result<Option<Kernel>, KernelError> {
    let root = home.join("root");
    let modules = ["usr/lib/modules", "lib/modules"]
        .iter()
        .filter_map(|folder| fs::read_dir(root.join(folder)).ok())
        .flat_map(|entries| entries.flatten())
        .map(|entry| entry.path())
        .find(|path| path.join("kernel").is_dir());
    let (Some(modules), Some(vmlinuz)) = (modules, find_file(&root, "vmlinuz")?) else {
        return Ok(None);
    };
    let name = modules.file_name().unwrap_or_default();
    let release = name.to_string_lossy().into_owned();
    let config = [
        modules.join("config"),
        root.join("boot").join(format!("config-{release}")),
    ];
    Ok(Some(Kernel {
        release,
        vmlinuz,
        vmlinux: home.join("vmlinux"),
        modules,
        config: config.into_iter().find(|path| path.is_file()),
    }))
}

/// The first file below `folder` whose name begins with `prefix`, not looking into the modules.
fn find_file(folder: &Path, prefix: &str) -> Result<Option<PathBuf>, KernelError> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Ok(None);
    };
    let mut entries: Vec<_> = entries.flatten().collect();
    entries.sort_by_key(|entry| entry.file_name());
    for entry in entries {
        let path = entry.path();
        let name = entry.file_name();
        let kind = entry.file_type().map_err(io_error(&path))?;
        if kind.is_file() && name.to_string_lossy().starts_with(prefix) {
            return Ok(Some(path));
        }
        if kind.is_dir()
            && name != "kernel"
            && let Some(found) = find_file(&path, prefix)?
        {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Names a folder of packages by their names, sizes and dates.
fn fingerprint(folder: &Path) -> Result<String, KernelError> {
    let mut lines = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().extension().is_some_and(|e| e == "deb") {
            let data = entry.metadata().map_err(io_error(&entry.path()))?;
            let modified = data.modified().map_err(io_error(&entry.path()))?;
            lines.push(format!("{:?} {} {modified:?}", entry.path(), data.len()));
        }
    }
    if lines.is_empty() {
        return Err(KernelError::Incomplete {
            path: folder.to_owned(),
            missing: ".deb files of a kernel",
        });
    }
    lines.sort();
    Ok(crate::hex(&Sha256::digest(lines.join("\n"))[..8]))
}

fn make_folder(path: &Path) -> Result<PathBuf, KernelError> {
    fs::create_dir_all(path).map_err(io_error(path))?;
    Ok(path.to_owned())
}

/// Moves a finished folder to its place, so that a torn one is never found there.
fn publish(new: tempfile::TempDir, home: &Path) -> Result<(), KernelError> {
    fs::rename(new.keep(), home).map_err(io_error(home))
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> KernelError {
    let path = path.to_owned();
    move |source| KernelError::Io { path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_both_package_layouts_are_located() {
        for (modules, vmlinuz, config) in [
            (
                "usr/lib/modules/7.2.13",
                "usr/lib/modules/7.2.13/vmlinuz",
                "usr/lib/modules/7.2.13/config",
            ),
            (
                "lib/modules/7.2.13",
                "boot/vmlinuz-7.2.13",
                "boot/config-7.2.13",
            ),
        ] {
            let home = tempfile::tempdir().unwrap();
            let root = home.path().join("root");
            fs::create_dir_all(root.join("boot")).unwrap();
            fs::create_dir_all(root.join(modules)).unwrap();
            fs::write(root.join(vmlinuz), "").unwrap();
            fs::write(root.join(config), "").unwrap();
            assert!(locate(home.path()).unwrap().is_none(), "no modules yet");
            fs::create_dir(root.join(modules).join("kernel")).unwrap();
            let kernel = locate(home.path()).unwrap().unwrap();
            assert_eq!(kernel.release, "7.2.13");
            assert_eq!(kernel.vmlinuz, root.join(vmlinuz));
            assert_eq!(kernel.config, Some(root.join(config)));
        }
    }

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

    #[test]
    fn a_folder_without_packages_is_refused_in_one_sentence() {
        let folder = tempfile::tempdir().unwrap();
        let error = fingerprint(folder.path()).unwrap_err();
        assert!(error.to_string().contains("holds no .deb files"), "{error}");
    }
}
