//! Running a command in the guest, from the initial RAM disk to its exit status.

mod guest;
mod machine;
mod tail;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, thread, time::Instant};

use crate::kernel::Kernel;
use crate::modules::ModuleError;
use crate::qemu::Qemu;
use crate::tree::{Content, TreeError};
use machine::{Files, Running};
use tail::Tail;

/// A file put into the guest's initial RAM disk.
#[derive(Debug, Clone)]
pub struct InitrdFile {
    /// Its absolute path in the guest; `/andante/…` is seen on every root.
    pub guest: PathBuf,
    /// Its content.
    pub content: Content,
    /// Its permission bits.
    pub mode: u32,
}

/// Which virtual CPUs are near one another, by their numbers; each part is some of the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Topology {
    /// Threads of one core.
    pub threads_of_core: u32,
    /// CPUs that share the last cache; 0: all.
    pub cpus_of_cache: u32,
    /// CPUs of a node, which has its part of the memory; 0: all.
    pub cpus_of_node: u32,
}

impl Default for Topology {
    fn default() -> Self {
        Self {
            threads_of_core: 1,
            cpus_of_cache: 0,
            cpus_of_node: 0,
        }
    }
}

/// One run of the virtual machine: it boots, runs one command as root, and switches off.
#[derive(Debug, Clone)]
pub struct Boot<'a> {
    /// The kernel.
    pub kernel: &'a Kernel,
    /// The emulator; it must have been found for at least so many CPUs.
    pub qemu: &'a Qemu,
    /// Virtual CPUs, at least 1. All share one instruction per virtual nanosecond.
    pub cpus: u32,
    /// Which of them are near one another.
    pub topology: Topology,
    /// Memory [MiB]. The image does not count.
    pub memory_mib: u32,
    /// The root file system; without one the RAM disk is the root. What the guest writes there
    /// is thrown away.
    pub image: Option<&'a Path>,
    /// Seed of another order of the files in the RAM disk; none: by path.
    pub layout: Option<u64>,
    /// Files of the RAM disk.
    pub initrd_files: Vec<InitrdFile>,
    /// Executables of the host, put into `/andante/bin` (which ends the guest's PATH) with their
    /// shared libraries.
    pub programs: Vec<PathBuf>,
    /// The command with its arguments. Its output goes to the console; for data it opens
    /// `/dev/virtio-ports/andante.out`, for progress lines `/dev/virtio-ports/andante.progress`.
    pub command: Vec<String>,
    /// How long the run may take on the host before it is stopped.
    pub timeout: Duration,
    /// Where the console's text is kept.
    pub console_log: PathBuf,
}

/// What happens while the machine runs; lines come without their line ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// A line of the console: the kernel's messages and the command's output.
    Console(&'a str),
    /// A line that the guest wrote to its progress port.
    Progress(&'a str),
}

/// What a run left.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The command's exit status as a shell gives it.
    pub exit_status: i32,
    /// All bytes that the guest wrote to its output port.
    pub output: Vec<u8>,
    /// The guest's uptime when the command ended, virtual time [s].
    pub virtual_s: f64,
}

/// Why a run has no outcome.
#[derive(Debug, thiserror::Error)]
pub enum BootError {
    /// No static busybox to start the guest with.
    #[error(
        "no static busybox is on this machine, and the guest needs one: install the package busybox-static"
    )]
    NoBusybox,
    /// QEMU cannot be started.
    #[error(
        "QEMU ({program}) cannot be started: {source}; install it anew, or delete it from the cache"
    )]
    Start {
        /// The program.
        program: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// QEMU ended by itself with an error, or was killed.
    #[error("QEMU failed ({status}): {message}")]
    Qemu {
        /// How it ended.
        status: String,
        /// Its last words.
        message: String,
    },
    /// The guest's kernel crashed.
    #[error(
        "the guest's kernel crashed ({message}); the whole console is in {log}, its end is:\n{tail}"
    )]
    Panic {
        /// The kernel's line.
        message: String,
        /// The console log.
        log: PathBuf,
        /// Its last lines.
        tail: String,
    },
    /// The guest switched off without running the command to its end.
    #[error(
        "the guest ended before its command did; the whole console is in {log}, its end is:\n{tail}"
    )]
    NoStatus {
        /// The console log.
        log: PathBuf,
        /// Its last lines.
        tail: String,
    },
    /// The run took too long.
    #[error("the guest was stopped after {} s; it hangs, or needs a longer time limit; the whole console is in {log}, its end is:\n{tail}", timeout.as_secs())]
    Timeout {
        /// The limit.
        timeout: Duration,
        /// The console log.
        log: PathBuf,
        /// Its last lines.
        tail: String,
    },
    /// A file of the host cannot be taken into the guest.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// A kernel module cannot be had.
    #[error(transparent)]
    Module(#[from] ModuleError),
    /// A file of the run cannot be used.
    #[error("{path} cannot be used for running the virtual machine: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// How often the host looks at what the guest wrote.
const LOOK_EVERY: Duration = Duration::from_millis(50);

impl Boot<'_> {
    /// Boots, runs the command and waits for its end. `on_event` is called as lines appear.
    ///
    /// The guest cannot tell how fast the host is or who listens: its ports are files, which take
    /// everything at once, so the run's course depends on nothing but its input. QEMU dies with
    /// the calling thread.
    pub fn run(&self, on_event: &mut dyn FnMut(Event)) -> Result<Outcome, BootError> {
        let folder = tempfile::Builder::new()
            .prefix("andante-vm-")
            .tempdir()
            .map_err(io_error(&std::env::temp_dir()))?;
        let files = Files::in_folder(folder.path(), &self.console_log);
        let initrd = guest::initrd(self)?;
        fs::write(&files.initrd, initrd).map_err(io_error(&files.initrd))?;
        for file in [&files.console, &files.progress] {
            fs::write(file, "").map_err(io_error(file))?;
        }

        let mut console = Tail::open(&files.console)?;
        let mut progress = Tail::open(&files.progress)?;
        let mut running = Running::start(self, &files)?;
        let deadline = Instant::now() + self.timeout;
        loop {
            let ended = running.ended()?;
            console.lines(&mut |line| on_event(Event::Console(line)))?;
            progress.lines(&mut |line| on_event(Event::Progress(line)))?;
            if let Some(status) = ended {
                return self.outcome(&files, status);
            }
            if Instant::now() >= deadline {
                drop(running);
                return Err(BootError::Timeout {
                    timeout: self.timeout,
                    log: self.console_log.clone(),
                    tail: last_lines(&files.console),
                });
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    fn outcome(
        &self,
        files: &Files,
        status: std::process::ExitStatus,
    ) -> Result<Outcome, BootError> {
        if !status.success() {
            let said = fs::read_to_string(&files.stderr).unwrap_or_default();
            return Err(BootError::Qemu {
                status: status.to_string(),
                message: said.lines().last().unwrap_or("no message").to_owned(),
            });
        }
        let (log, tail) = (self.console_log.clone(), last_lines(&files.console));
        let report = fs::read_to_string(&files.status).map_err(io_error(&files.status))?;
        if let Some((exit_status, virtual_s)) = parse_status(&report) {
            let output = fs::read(&files.output).map_err(io_error(&files.output))?;
            return Ok(Outcome {
                exit_status,
                output,
                virtual_s,
            });
        }
        let console = fs::read(&files.console).map_err(io_error(&files.console))?;
        let console = String::from_utf8_lossy(&console);
        Err(match console.split("Kernel panic - ").nth(1) {
            Some(rest) => BootError::Panic {
                message: rest.lines().next().unwrap_or_default().trim().to_owned(),
                log,
                tail,
            },
            None => BootError::NoStatus { log, tail },
        })
    }
}

/// What /init says last: the exit status and the uptime.
fn parse_status(report: &str) -> Option<(i32, f64)> {
    let (exit_status, virtual_s) = report.trim().split_once(' ')?;
    Some((exit_status.parse().ok()?, virtual_s.parse().ok()?))
}

fn last_lines(console: &Path) -> String {
    const LINES: usize = 12;
    let text = fs::read(console).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> BootError {
    let path = path.to_owned();
    move |source| BootError::Io { path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_is_read_only_when_complete() {
        assert_eq!(parse_status("3 1.62\n"), Some((3, 1.62)));
        assert_eq!(parse_status(""), None);
        assert_eq!(parse_status("3"), None);
    }

    #[test]
    fn only_the_end_of_a_long_console_is_quoted() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let text: String = (0..100).map(|n| format!("line {n}\r\n")).collect();
        fs::write(file.path(), text).unwrap();
        let tail = last_lines(file.path());
        assert!(tail.starts_with("line 88\nline 89") && tail.ends_with("line 99"));
    }
}
