// SPDX-License-Identifier: GPL-2.0
//! A daemon for programs in C, C++ and Python: the real one, before a machine and a kernel that do as they are told.

#![allow(dead_code)] // each test uses some of it

use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use andante_daemon::fakes::{self, FakeKernel, World};

/// No program here takes a tenth of it.
const PATIENCE: Duration = Duration::from_secs(120);

/// A daemon in a thread of its own, which sees the machine's real threads.
pub struct Served {
    pub socket: PathBuf,
    _folder: tempfile::TempDir,
    daemon: fakes::Served,
}

impl Served {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let mut host = World::new(4).host;
        host.has_real_threads = true;
        Self {
            daemon: fakes::Served::at(&path, host),
            socket: path,
            _folder: folder,
        }
    }

    pub fn end(self) -> FakeKernel {
        self.daemon.end()
    }
}

/// Whether a program that a test needs is installed; else the test is skipped, and says so.
pub fn has(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    if !found {
        eprintln!("skipped: {program} is not installed");
    }
    found
}

/// This crate's folder.
pub fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A folder with the shared library under all its names, and what is compiled.
pub struct Workshop {
    folder: tempfile::TempDir,
}

impl Workshop {
    pub fn new() -> Self {
        // Cargo puts it beside the tests.
        let tests = std::env::current_exe().unwrap();
        Self::with(&tests.parent().unwrap().join("libandante.so"))
    }

    /// The same, with another one.
    pub fn with(library: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        assert!(library.exists(), "{}", library.display());
        for name in ["libandante.so", "libandante.so.0"] {
            symlink(library, folder.path().join(name)).unwrap();
        }
        Self { folder }
    }

    pub fn library(&self) -> PathBuf {
        self.folder.path().join("libandante.so.0")
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Compiles; what the compiler says if it does not.
    pub fn try_compile(
        &self,
        compiler: &str,
        source: &Path,
        flags: &[&str],
    ) -> Result<PathBuf, String> {
        let stem = source.file_stem().unwrap().to_str().unwrap();
        let mut hash = DefaultHasher::new();
        flags.hash(&mut hash);
        let name = format!("{stem}-{:x}", hash.finish());
        let out = self.folder.path().join(name);
        let output = Command::new(compiler)
            .args([
                "-Wall",
                "-Wextra",
                "-Werror",
                "-pedantic-errors",
                "-O1",
                "-g",
            ])
            .arg("-I")
            .arg(here().join("include"))
            .arg("-o")
            .arg(&out)
            .arg(source)
            .args(flags)
            .output()
            .map_err(|error| format!("{compiler}: {error}"))?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        output.status.success().then_some(out).ok_or(said)
    }

    pub fn compile(&self, compiler: &str, source: &Path, flags: &[&str]) -> PathBuf {
        let compiled = self.try_compile(compiler, source, flags);
        compiled.unwrap_or_else(|said| panic!("{said}"))
    }

    /// A C program of `tests/programs`, linked with the library.
    pub fn program(&self, name: &str, flags: &[&str]) -> PathBuf {
        let linked = self.linked();
        let mut all = vec!["-std=c99", "-D_GNU_SOURCE"];
        all.extend_from_slice(flags);
        all.extend(linked.iter().map(String::as_str));
        self.compile("gcc", &source(name), &all)
    }

    pub fn linked(&self) -> [String; 4] {
        let folder = self.folder.path().display();
        [
            format!("-L{folder}"),
            format!("-Wl,-rpath,{folder}"),
            "-landante".to_owned(),
            "-lpthread".to_owned(),
        ]
    }
}

pub fn source(name: &str) -> PathBuf {
    here().join("tests/programs").join(name)
}

/// Runs it before this socket, and sees that it ends.
pub fn run(program: &Path, arguments: &[&str], socket: &Path, more: &[(&str, &str)]) -> Output {
    let child = Command::new(program)
        .args(arguments)
        .env("ANDANTE_SOCKET", socket)
        .envs(more.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{}: {error}", program.display()));
    let id = i32::try_from(child.id()).unwrap();
    let (ended, is_over) = mpsc::channel::<()>();
    let guard = thread::spawn(move || {
        if is_over.recv_timeout(PATIENCE) == Err(mpsc::RecvTimeoutError::Timeout) {
            // SAFETY: the call takes numbers; the child is waited for below, so that it is no other's.
            unsafe { libc::kill(id, libc::SIGKILL) };
        }
    });
    let output = child.wait_with_output().unwrap();
    drop(ended);
    guard.join().unwrap();
    output
}

/// The same; it must end well. What it has written.
pub fn passes(program: &Path, arguments: &[&str], socket: &Path, more: &[(&str, &str)]) -> String {
    let output = run(program, arguments, socket, more);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(
        output.status.success(),
        "{} {arguments:?}: {}\n{out}{err}",
        program.display(),
        output.status
    );
    out
}

/// Waits until it is so.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < PATIENCE, "{what}");
        thread::sleep(Duration::from_millis(1));
    }
}
