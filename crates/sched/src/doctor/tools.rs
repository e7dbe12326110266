//! The laboratory's needs on this machine: a kernel to boot, and the programs that it starts.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use super::distribution::{Distribution, Package};
use super::{Check, Need, Obstacle};

/// A program, what the laboratory does with it, and the package that brings it.
struct Tool {
    program: &'static str,
    purpose: &'static str,
    package: Package,
}

const TOOLS: &[Tool] = &[
    Tool {
        program: "qemu-system-x86_64",
        purpose: "runs a kernel in virtual time",
        package: Package {
            debian: "qemu-system-x86",
            arch: "qemu-base",
            fedora: "qemu-system-x86-core",
        },
    },
    Tool {
        program: "busybox",
        purpose: "the shell of the root image",
        package: Package {
            debian: "busybox-static",
            arch: "busybox",
            fedora: "busybox",
        },
    },
    Tool {
        program: "mke2fs",
        purpose: "makes the root image",
        package: Package::of_all("e2fsprogs"),
    },
    Tool {
        program: "ffmpeg",
        purpose: "encodes the film",
        // Fedora's own encodes no H.264 by libx264; RPM Fusion's package of this name does.
        package: Package::of_all("ffmpeg"),
    },
    Tool {
        program: "mpv",
        purpose: "plays the film",
        package: Package::of_all("mpv"),
    },
    Tool {
        program: "Xvfb",
        purpose: "is the display of the film",
        package: Package {
            debian: "xvfb",
            arch: "xorg-server-xvfb",
            fedora: "xorg-x11-server-Xvfb",
        },
    },
    Tool {
        program: "gcc",
        purpose: "compiles beside the film",
        package: Package::of_all("gcc"),
    },
    Tool {
        program: "make",
        purpose: "drives the compilation",
        package: Package::of_all("make"),
    },
];

/// The variable that names a folder with a kernel to boot.
const KERNEL_FOLDER: &str = "ANDANTE_KERNEL_DIR";

/// Looks for a kernel to boot and for every program.
pub(super) fn laboratory(distribution: Distribution) -> Vec<Check> {
    let named = env::var_os(KERNEL_FOLDER).filter(|folder| !folder.is_empty());
    let apt = find("apt-get").is_some() && find("dpkg-deb").is_some();
    let kernel = kernel(
        distribution,
        named.map(PathBuf::from).as_deref(),
        apt,
        Path::new("/usr/lib/modules"),
    );
    let tools = TOOLS.iter().map(|tool| tool.check(distribution));
    std::iter::once(kernel).chain(tools).collect()
}

/// Where the laboratory's kernel comes from: a folder that is named, apt, or the kernels installed in
/// `modules`. That is all that it needs apt for.
fn kernel(distribution: Distribution, named: Option<&Path>, apt: bool, modules: &Path) -> Check {
    let title = "a kernel to boot";
    if let Some(folder) = named {
        let detail = format!("in {}, by {KERNEL_FOLDER}", folder.display());
        return Check::found(title, Need::Laboratory, detail);
    }
    if apt {
        let detail = "apt finds one with sched_ext; nothing is installed";
        return Check::found(title, Need::Laboratory, detail);
    }
    let entries = fs::read_dir(modules).into_iter().flatten().flatten();
    let mut folders = entries.map(|entry| entry.path());
    match folders.find(|folder| folder.join("vmlinuz").is_file()) {
        Some(_) => {
            let detail = format!(
                "of those installed in {}; there is no apt",
                modules.display()
            );
            Check::found(title, Need::Laboratory, detail)
        }
        None => Check::missing(
            title,
            Need::Laboratory,
            Obstacle::MissingTool,
            format!(
                "there is no apt to fetch one, and none is installed in {}",
                modules.display()
            ),
            format!(
                "install {}, or name a folder with one in {KERNEL_FOLDER}",
                distribution.kernels()
            ),
        ),
    }
}

impl Tool {
    fn check(&self, distribution: Distribution) -> Check {
        match find(self.program) {
            Some(file) => {
                let detail = format!("{}, {}", file.display(), self.purpose);
                Check::found(self.program, Need::Laboratory, detail)
            }
            None => Check::missing(
                self.program,
                Need::Laboratory,
                Obstacle::MissingTool,
                format!("not installed, {}", self.purpose),
                distribution.install(self.package),
            ),
        }
    }
}

/// Where the program is; a user's PATH often lacks the administrator's directories.
fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let administrators = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    env::split_paths(&path)
        .chain(administrators)
        .map(|directory| directory.join(program))
        .find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_and_missing_ones_name_their_package() {
        assert!(find("sh").is_some());
        let none = Tool {
            program: "no-such-program",
            purpose: "nothing",
            package: Package::of_all("some-package"),
        };
        let check = none.check(Distribution::Debian);
        assert!(!check.found);
        assert_eq!(check.mend.as_deref(), Some("apt install some-package"));
    }

    #[test]
    fn a_kernel_comes_from_the_named_folder_or_apt_or_what_is_installed() {
        let modules = tempfile::tempdir().unwrap();
        let of = |named, apt| kernel(Distribution::Arch, named, apt, modules.path());
        assert!(of(Some(Path::new("/k")), false).detail.contains("in /k"));
        assert!(of(None, true).detail.contains("apt finds"));
        let none = of(None, false);
        assert!(!none.found);
        let mend = none.mend.unwrap();
        assert!(mend.contains("Arch's `linux`"), "{mend}");
        assert!(mend.contains(KERNEL_FOLDER), "{mend}");
        let installed = modules.path().join("7.2.13-arch1");
        fs::create_dir(&installed).unwrap();
        assert!(!of(None, false).found, "modules without a kernel");
        fs::write(installed.join("vmlinuz"), "").unwrap();
        assert!(of(None, false).found);
    }
}
