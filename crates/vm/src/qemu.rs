//! Finding an emulator.
//!
//! Any QEMU runs one virtual CPU in virtual time. With several, versions before 8.1 let one of them
//! run for up to 100 virtual milliseconds alone, which no scheduler can be measured on. Nor are machines
//! whose virtual CPUs are threads of the host run on those: all that is said of them was tried with newer
//! ones. Where the
//! system's QEMU does not do, a newer one is fetched through apt into the cache; nothing is
//! installed.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::apt::{Apt, AptError, Purpose, Release};
use crate::boot::Timing;
use crate::cache::{Cache, CacheError, staging};

const PROGRAM: &str = "qemu-system-x86_64";

/// The first version whose virtual CPUs take turns in small steps under `-icount`.
const FIRST_FAIR: (u32, u32) = (8, 1);

const PURPOSE: Purpose = Purpose {
    name: "qemu",
    what: "QEMU",
    mend: "install QEMU 8.1 or newer (qemu-system-x86_64)",
};

/// An emulator that can be started.
#[derive(Debug, Clone)]
pub struct Qemu {
    /// The program.
    pub binary: PathBuf,
    /// Major and minor version.
    pub version: (u32, u32),
    /// The folder its packages were unpacked into; `None` for an installed one.
    unpacked: Option<PathBuf>,
}

/// Why there is no emulator.
#[derive(Debug, thiserror::Error)]
pub enum QemuError {
    /// A program was found that does not answer like QEMU.
    #[error("{program} does not run as QEMU: {answer}; install qemu-system-x86_64 anew")]
    Unusable {
        /// The program.
        program: PathBuf,
        /// What it printed.
        answer: String,
    },
    /// What apt offers is too old as well.
    #[error(
        "{} QEMU 8.1 or newer, and apt offers only {}.{}; install a newer qemu-system-x86_64, or {}",
        needing(*cpus, *timing), version.0, version.1, instead(*timing)
    )]
    TooOld {
        /// Virtual CPUs asked for.
        cpus: u32,
        /// And what was to make time pass.
        timing: Timing,
        /// The best version found.
        version: (u32, u32),
    },
    /// QEMU could not be fetched.
    #[error(transparent)]
    Apt(#[from] AptError),
    /// The cache cannot be used.
    #[error(transparent)]
    Cache(#[from] CacheError),
}

fn needing(cpus: u32, timing: Timing) -> String {
    match timing {
        Timing::Virtual => format!("{cpus} virtual CPUs need"),
        Timing::Parallel => "virtual CPUs that are threads of the host need".to_owned(),
    }
}

fn instead(timing: Timing) -> &'static str {
    match timing {
        Timing::Virtual => "use one CPU",
        Timing::Parallel => "run it in virtual time, without --parallel",
    }
}

/// Finds a QEMU that keeps virtual time with so many CPUs: the system's own if it does, else one
/// fetched into the cache.
pub fn find_qemu(cache: &Cache, cpus: u32, progress: &dyn Fn(&str)) -> Result<Qemu, QemuError> {
    find_qemu_for(cache, cpus, Timing::Virtual, progress)
}

/// The same for what is to make time pass in the machine.
pub fn find_qemu_for(
    cache: &Cache,
    cpus: u32,
    timing: Timing,
    progress: &dyn Fn(&str),
) -> Result<Qemu, QemuError> {
    let any_will_do = cpus == 1 && timing == Timing::Virtual;
    let suits = |qemu: &Qemu| any_will_do || qemu.version >= FIRST_FAIR;
    if let Some(binary) = in_path(PROGRAM) {
        let qemu = Qemu::identify(binary, None)?;
        if suits(&qemu) {
            return Ok(qemu);
        }
    }
    let _held = cache.lock("qemu")?;
    let home = cache.folder("qemu")?.join("root");
    if !home.exists() {
        progress("fetching QEMU through apt (it is not installed, only unpacked)");
        fetch(cache, &home)?;
    }
    let qemu = Qemu::identify(home.join("usr/bin").join(PROGRAM), Some(home))?;
    if suits(&qemu) {
        Ok(qemu)
    } else {
        Err(QemuError::TooOld {
            cpus,
            timing,
            version: qemu.version,
        })
    }
}

fn fetch(cache: &Cache, home: &Path) -> Result<(), QemuError> {
    let release = Release::of_this_machine();
    let backports = format!("{}-backports", release.codename);
    let suites = [release.codename.clone(), backports.clone()];
    let apt = Apt::open(cache, &release, &suites, PURPOSE)?;
    apt.update()?;
    let new = staging(&cache.folder("qemu")?)?;
    // apt refuses a suite without a single package, as backports are of a young release.
    apt.unpack_with_dependencies("qemu-system-x86", &backports, new.path())
        .or_else(|_| {
            apt.unpack_with_dependencies("qemu-system-x86", &release.codename, new.path())
        })?;
    fs::rename(new.keep(), home).map_err(|source| {
        QemuError::Cache(CacheError {
            path: home.to_owned(),
            source,
        })
    })
}

impl Qemu {
    /// Asks the program for its version.
    fn identify(binary: PathBuf, unpacked: Option<PathBuf>) -> Result<Self, QemuError> {
        let mut qemu = Self {
            binary,
            version: (0, 0),
            unpacked,
        };
        let answer = match qemu.command().arg("--version").output() {
            Ok(output) => [output.stdout, output.stderr].concat(),
            Err(error) => error.to_string().into_bytes(),
        };
        let answer = String::from_utf8_lossy(&answer);
        match parse_version(&answer) {
            Some(version) => {
                qemu.version = version;
                Ok(qemu)
            }
            None => Err(QemuError::Unusable {
                program: qemu.binary,
                answer: answer.lines().next().unwrap_or("no answer").to_owned(),
            }),
        }
    }

    /// A command that starts it, with the paths to its libraries and firmware.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.binary);
        if let Some(root) = &self.unpacked {
            let libraries = root.join("usr/lib/x86_64-linux-gnu");
            let mut path = OsString::from(&libraries);
            if let Some(inherited) = std::env::var_os("LD_LIBRARY_PATH") {
                path.push(":");
                path.push(inherited);
            }
            command.env("LD_LIBRARY_PATH", path);
            command.env("QEMU_MODULE_DIR", libraries.join("qemu"));
            for firmware in ["usr/share/qemu", "usr/share/seabios"] {
                command.arg("-L").arg(root.join(firmware));
            }
        }
        command
    }
}

/// The program's full path, as a shell would find it.
pub(crate) fn in_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // mke2fs and its kin lie in folders that an ordinary user's path may lack.
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .map(|folder| folder.join(program))
        .find(|candidate| candidate.is_file())
}

/// "QEMU emulator version 10.0.2 (Debian …)" is (10, 0).
fn parse_version(answer: &str) -> Option<(u32, u32)> {
    let number = answer.split("version ").nth(1)?;
    let mut parts = number.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_and_compared() {
        let old = parse_version("QEMU emulator version 7.2.22 (Debian 1:7.2)\nCopyright").unwrap();
        let new = parse_version("QEMU emulator version 10.0.2 (Debian 1:10)\n").unwrap();
        assert!(old < FIRST_FAIR && new >= FIRST_FAIR);
        assert_eq!(parse_version("command not found"), None);
    }

    #[test]
    fn who_has_an_old_one_is_told_what_to_do() {
        let told = |timing| {
            QemuError::TooOld {
                cpus: 4,
                timing,
                version: (7, 2),
            }
            .to_string()
        };
        let (virtually, parallel) = (told(Timing::Virtual), told(Timing::Parallel));
        assert!(virtually.contains("4 virtual CPUs") && virtually.ends_with("or use one CPU"));
        assert!(parallel.contains("offers only 7.2") && parallel.ends_with("without --parallel"));
    }

    #[test]
    fn programs_are_found_in_the_path() {
        assert!(in_path("sh").is_some());
        assert!(in_path("no-such-program").is_none());
    }
}
