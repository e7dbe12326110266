//! A whole system as a root image: this machine's own distribution with systemd and the packages that
//! are asked for, installed by their maintainers' scripts as on anybody's machine.
//!
//! mmdebstrap makes it, from the archive that this machine's apt names; fakeroot keeps the owners of its
//! files on their way into an ext4 file system, so nobody has to be root. Unlike the images of programs
//! ([`crate::image`]) two of them are not the same byte by byte: what is measured in one is judged by
//! bounds, and no figure that is recorded belongs to one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};

use crate::apt::{Apt, AptError, Purpose, Release};
use crate::cache::{Cache, CacheError, staging};
use crate::qemu::in_path;

/// What every system has: the first process, a bus, sessions of users.
const BASE: [&str; 7] = [
    "systemd",
    "systemd-sysv",
    "dbus",
    "dbus-user-session",
    "libpam-systemd",
    "procps",
    "kmod",
];
/// What nobody reads in a machine that ends.
const LEFT_OUT: [&str; 3] = [
    "/usr/share/doc/*",
    "/usr/share/locale/*",
    "/usr/share/man/*",
];
/// Raised when the making of systems changes, so that older ones are not taken from the cache.
const FORMAT: &str = "1";
const PURPOSE: Purpose = Purpose {
    name: "system",
    what: "a system for the virtual machine",
    mend: "run the other tests, which need none",
};

/// Why there is no system.
#[derive(Debug, thiserror::Error)]
pub enum SystemError {
    /// A program that makes it is missing.
    #[error(
        "{program} is not installed, and making a system for the virtual machine needs it: install the package {package}"
    )]
    NoTool {
        /// The program.
        program: &'static str,
        /// The package that has it.
        package: &'static str,
    },
    /// A program that makes it failed.
    #[error("making a system for the virtual machine failed in {program}: {message}; try again when the network is there, or delete {cache} if its package lists are old", cache = cache.display())]
    Tool {
        /// The program.
        program: &'static str,
        /// The last lines that it said.
        message: String,
        /// The folder with apt's state.
        cache: PathBuf,
    },
    /// The archive is not known.
    #[error(transparent)]
    Apt(#[from] AptError),
    /// The cache cannot be used.
    #[error(transparent)]
    Cache(#[from] CacheError),
}

/// Makes the system with these packages, or takes it from the cache.
///
/// # Errors
/// If a tool is missing or fails, or the machine is not one of Debian's kind.
pub fn build_system(
    cache: &Cache,
    packages: &[&str],
    free_mib: u32,
    progress: &dyn Fn(&str),
) -> Result<PathBuf, SystemError> {
    let release = Release::of_this_machine();
    let include = [&BASE, packages].concat().join(",");
    let mut key = Sha256::new();
    for word in [FORMAT, &release.codename, &include, &free_mib.to_string()] {
        key.update(word.as_bytes());
        key.update([0]);
    }
    let key = crate::hex(&key.finalize()[..12]);
    let _held = cache.lock("systems")?;
    let systems = cache.folder("systems")?;
    let image = systems.join(format!("{key}.ext4"));
    if image.exists() {
        return Ok(image);
    }
    progress("installing a system for the virtual machine (mmdebstrap; a minute or two, once)");
    let own = [release.codename.clone()];
    let apt = Apt::open(cache, &release, &own, PURPOSE)?;
    let folder = staging(&systems)?;
    let tar = folder.path().join("system.tar");
    let mut mmdebstrap = tool("mmdebstrap", "mmdebstrap")?;
    mmdebstrap.args(["--quiet", "--variant=minbase"]);
    mmdebstrap.arg(format!("--include={include}"));
    for path in LEFT_OUT {
        mmdebstrap.arg(format!("--dpkgopt=path-exclude={path}"));
    }
    mmdebstrap
        .arg(&release.codename)
        .arg(&tar)
        .arg(apt.sources());
    run("mmdebstrap", &mut mmdebstrap, &systems)?;
    let made = folder.path().join("system.ext4");
    tool("mke2fs", "e2fsprogs")?;
    let mut into_image = tool("fakeroot", "fakeroot")?;
    into_image.args(["sh", "-euc", INTO_IMAGE, "sh"]);
    into_image.arg(&tar).arg(&made).arg(free_mib.to_string());
    run("mke2fs", &mut into_image, &systems)?;
    fs::rename(&made, &image).map_err(|source| CacheError {
        path: image.clone(),
        source,
    })?;
    Ok(image)
}

/// TAR IMAGE FREE_MIB. A block for the inode of each file and a tenth for extents and bitmaps; sizes of
/// NVDIMMs are multiples of 2 MiB.
const INTO_IMAGE: &str = r#"
root="${2%/*}/root"
mkdir "$root"
tar -C "$root" --exclude='./dev/*' -xf "$1"
rm "$1"
used_mib=$(du -sm --apparent-size "$root" | cut -f1)
files=$(find "$root" | wc -l)
size_mib=$(((used_mib + files / 256) * 11 / 10 + $3 + 16))
PATH=$PATH:/usr/sbin:/sbin
mke2fs -q -F -t ext4 -m 0 -O ^has_journal,^resize_inode -N $((files + 20000)) -d "$root" "$2" \
	$(((size_mib + 1) / 2 * 2))M
"#;

fn tool(program: &'static str, package: &'static str) -> Result<Command, SystemError> {
    let found = in_path(program).ok_or(SystemError::NoTool { program, package })?;
    let mut command = Command::new(found);
    command.env("LC_ALL", "C.UTF-8");
    Ok(command)
}

fn run(program: &'static str, command: &mut Command, cache: &Path) -> Result<(), SystemError> {
    let failed = |message: String| SystemError::Tool {
        program,
        message,
        cache: cache.to_owned(),
    };
    let output = command
        .output()
        .map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    const LINES: usize = 3;
    let said = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = said.lines().filter(|line| !line.is_empty()).collect();
    Err(failed(
        lines[lines.len().saturating_sub(LINES)..].join("; "),
    ))
}
