//! Packages of another suite, through the machine's own apt, without touching the system.
//!
//! apt runs on a private state: its own source list, package lists and download folder inside the
//! cache. Mirror and keyring are those of the machine's configuration, proxy and credentials stay
//! in force, and nothing is ever installed: packages are downloaded and unpacked into the cache.

mod sources;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use etc_os_release::OsRelease;

use crate::cache::{Cache, CacheError};

/// Why a package could not be had.
#[derive(Debug, thiserror::Error)]
pub enum AptError {
    /// A program of apt or dpkg is not there.
    #[error(
        "{program} cannot be run ({source}), by which {what} is fetched on Debian and Ubuntu: {mend}"
    )]
    NoApt {
        /// The program.
        program: &'static str,
        /// What was to be fetched.
        what: &'static str,
        /// What to do elsewhere.
        mend: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// apt's configuration has no source for this release's own archive.
    #[error(
        "apt has no source for the main component of {suite}, from which {what} could be fetched: add one to its source list, or {mend}"
    )]
    NoArchive {
        /// The release's code name.
        suite: String,
        /// What was to be fetched.
        what: &'static str,
        /// What to do instead.
        mend: &'static str,
    },
    /// A command of apt or dpkg failed.
    #[error("{command} failed: {message}; check the network and apt's configuration, or {mend}")]
    Failed {
        /// The command, without its options.
        command: String,
        /// Its own error message.
        message: String,
        /// What to do instead.
        mend: &'static str,
    },
    /// The cache cannot be used.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// A file of the private state or of apt's configuration cannot be used.
    #[error("apt's private state cannot be set up: {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// What is fetched, for error messages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Purpose {
    /// Names the private state's folder.
    pub name: &'static str,
    /// The thing, as in "fetching {what}".
    pub what: &'static str,
    /// How to do without, as in "or {mend}".
    pub mend: &'static str,
}

/// The distribution of this machine, from os-release(5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Release {
    /// Such as "debian".
    pub id: String,
    /// Such as "bookworm".
    pub codename: String,
}

impl Release {
    pub(crate) fn of_this_machine() -> Self {
        Self::of(OsRelease::open().ok().as_ref())
    }

    fn of(read: Option<&OsRelease>) -> Self {
        let codename = read.and_then(OsRelease::version_codename);
        Self {
            id: read.map(OsRelease::id).unwrap_or_default().to_owned(),
            // Debian's testing and unstable have no code name of their own here.
            codename: codename.unwrap_or("unstable").to_owned(),
        }
    }
}

/// A private apt state.
#[derive(Debug)]
pub(crate) struct Apt {
    root: PathBuf,
    purpose: Purpose,
}

impl Apt {
    /// Sets up a state that reads `suites` from the mirror of this machine's own archive.
    pub(crate) fn open(
        cache: &Cache,
        release: &Release,
        suites: &[String],
        purpose: Purpose,
    ) -> Result<Self, AptError> {
        let apt = Self {
            root: cache.folder(&format!("apt/{}", purpose.name))?,
            purpose,
        };
        for folder in ["lists/partial", "archives/partial", "sources"] {
            cache.folder(&format!("apt/{}/{folder}", purpose.name))?;
        }
        let sources = apt.machine_sources()?;
        let own = [&release.codename, "unstable", "sid", "testing", "stable"];
        let archive = sources::archive(&sources, &own).ok_or_else(|| AptError::NoArchive {
            suite: release.codename.clone(),
            what: purpose.what,
            mend: purpose.mend,
        })?;
        apt.write("sources/andante.sources", &archive.derive(suites))?;
        apt.write("apt.conf", &apt.configuration())?;
        Ok(apt)
    }

    /// The machine's sources, at the places its own configuration names.
    fn machine_sources(&self) -> Result<Vec<sources::Source>, AptError> {
        let mut command = Command::new("apt-config");
        command.args(["shell", "LIST", "Dir::Etc::sourcelist/f"]);
        command.args(["PARTS", "Dir::Etc::sourceparts/d"]);
        let answer = self.run("apt-config", command)?;
        let answer = String::from_utf8_lossy(&answer.stdout);
        let path = |name: &str| {
            answer
                .lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix("='"))
                .map(|rest| PathBuf::from(rest.trim_end_matches('\'')))
                .unwrap_or_default()
        };
        let (list, parts) = (path("LIST"), path("PARTS"));
        sources::read(&list, &parts).map_err(|source| AptError::Io { path: list, source })
    }

    /// The list of sources that names the suites, for programs that read one themselves.
    pub(crate) fn sources(&self) -> PathBuf {
        self.root.join("sources/andante.sources")
    }

    /// Settings on top of the machine's own. The hooks are cleared because they would act on the
    /// system; the pinning because it is meant for what is installed.
    fn configuration(&self) -> String {
        let root = self.root.display();
        format!(
            "Dir::State::lists \"{root}/lists\";\n\
             Dir::Cache \"{root}\";\n\
             Dir::Cache::archives \"archives\";\n\
             Dir::Etc::sourcelist \"/dev/null\";\n\
             Dir::Etc::sourceparts \"{root}/sources\";\n\
             Dir::Etc::preferences \"/dev/null\";\n\
             Dir::Etc::preferencesparts \"/dev/null\";\n\
             Debug::NoLocking \"true\";\n\
             APT::Sandbox::User \"root\";\n\
             Acquire::Languages \"none\";\n\
             #clear APT::Update::Pre-Invoke;\n\
             #clear APT::Update::Post-Invoke;\n\
             #clear APT::Update::Post-Invoke-Success;\n\
             #clear DPkg::Pre-Install-Pkgs;\n\
             #clear DPkg::Post-Invoke;\n"
        )
    }

    fn write(&self, name: &str, text: &str) -> Result<(), AptError> {
        let path = self.root.join(name);
        fs::write(&path, text).map_err(|source| AptError::Io { path, source })
    }

    /// Fetches the package lists. A suite that the mirror does not carry is passed over as long
    /// as another one has packages.
    pub(crate) fn update(&self) -> Result<(), AptError> {
        let updated = self.apt("apt-get", &["update", "--quiet"]);
        if updated.is_err() && !self.names("")?.is_empty() {
            return Ok(());
        }
        updated.map(drop)
    }

    /// The names of all packages that begin with `prefix`.
    pub(crate) fn names(&self, prefix: &str) -> Result<Vec<String>, AptError> {
        // Installed packages are left out: only what the suites offer can be downloaded.
        let no_status = "Dir::State::status=/dev/null";
        let answer = self.apt("apt-cache", &["-o", no_status, "pkgnames", prefix])?;
        let answer = String::from_utf8_lossy(&answer.stdout);
        Ok(answer.lines().map(str::to_owned).collect())
    }

    /// Downloads packages and unpacks them into `root`.
    pub(crate) fn unpack(&self, packages: &[&str], root: &Path) -> Result<(), AptError> {
        let folder = crate::cache::staging(&self.root)?;
        let mut command = self.command("apt-get", &["download", "--quiet"]);
        command.args(packages).current_dir(folder.path());
        self.run("apt-get", command)?;
        unpack_folder(folder.path(), root, self.purpose)
    }

    /// Downloads a package from `suite` with those of its dependencies that are not installed, and
    /// unpacks all of them into `root`.
    pub(crate) fn unpack_with_dependencies(
        &self,
        package: &str,
        suite: &str,
        root: &Path,
    ) -> Result<(), AptError> {
        let folder = crate::cache::staging(&self.root)?;
        let partial = folder.path().join("partial");
        fs::create_dir(&partial).map_err(|source| AptError::Io {
            path: partial,
            source,
        })?;
        let archives = format!("Dir::Cache::archives={}", folder.path().display());
        let mut command = self.command("apt-get", &["-o", &archives, "--download-only"]);
        command.args(["--no-install-recommends", "--yes", "--quiet"]);
        command.args(["--target-release", suite, "install", package]);
        self.run("apt-get", command)?;
        unpack_folder(folder.path(), root, self.purpose)
    }

    fn command(&self, program: &'static str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        // Given as an option, because it must come after the machine's own configuration.
        command.arg("-c").arg(self.root.join("apt.conf"));
        command.args(arguments).env("LC_ALL", "C.UTF-8");
        command
    }

    fn apt(&self, program: &'static str, arguments: &[&str]) -> Result<Output, AptError> {
        self.run(program, self.command(program, arguments))
    }

    fn run(&self, program: &'static str, command: Command) -> Result<Output, AptError> {
        run(program, command, self.purpose)
    }
}

/// Unpacks every `.deb` file of a folder into `root`.
pub(crate) fn unpack_folder(folder: &Path, root: &Path, purpose: Purpose) -> Result<(), AptError> {
    let entries = fs::read_dir(folder).map_err(|source| AptError::Io {
        path: folder.to_owned(),
        source,
    })?;
    for package in entries.flatten().map(|entry| entry.path()) {
        if package.extension().is_some_and(|e| e == "deb") {
            let mut command = Command::new("dpkg-deb");
            command.arg("-x").arg(&package).arg(root);
            run("dpkg-deb", command, purpose)?;
        }
    }
    Ok(())
}

fn run(program: &'static str, mut command: Command, purpose: Purpose) -> Result<Output, AptError> {
    let Purpose { what, mend, .. } = purpose;
    let output = command.output().map_err(|source| AptError::NoApt {
        program,
        what,
        mend,
        source,
    })?;
    if output.status.success() {
        return Ok(output);
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    let message = complaint
        .lines()
        .find(|line| line.starts_with("E: "))
        .or_else(|| complaint.lines().last())
        .unwrap_or("no message");
    Err(AptError::Failed {
        command: program.to_owned(),
        message: message.trim_start_matches("E: ").to_owned(),
        mend,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn os_release_names_the_distribution() {
        let of = |text: &str| Release::of(OsRelease::from_reader(text.as_bytes()).ok().as_ref());
        let release = of("NAME=\"Debian\"\nVERSION_CODENAME=bookworm\nID=debian\n");
        assert_eq!(release.id, "debian");
        assert_eq!(release.codename, "bookworm");
        assert_eq!(of("ID=debian").codename, "unstable");
    }
}
