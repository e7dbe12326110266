//! Running a command in the guest, from the initial RAM disk to its exit status.

mod guest;
mod machine;
mod monitor;
mod saved;
mod session;
mod tail;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::cache::{Cache, CacheError};
use crate::kernel::Kernel;
use crate::modules::ModuleError;
use crate::qemu::Qemu;
use crate::tree::{Content, TreeError};
use machine::Files;
use session::{Begun, Session, Trouble};

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

/// Device mapper's name for the device that the image is below, if there is swap.
pub const ROOT_NAME: &str = "andante-root";
/// And that of the swap, if there is any.
pub const SWAP_NAME: &str = "andante-swap";
/// The file of the latter in the guest: the second device that `/init` has device mapper make.
pub const SWAP_DEVICE: &str = "/dev/dm-1";

/// What makes time pass in the machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Timing {
    /// Instructions: each takes a virtual nanosecond, and virtual CPUs run in turns, one at a time. Two runs
    /// are the same, but two CPUs are hardly ever inside the same callback.
    #[default]
    Virtual,
    /// The host's clock: every virtual CPU is a thread of the host. They really run at once, as far as the host
    /// has CPUs for them, and are halted anywhere else, so that races happen; no time says anything.
    Parallel,
}

/// Files that a command receives after it has made the machine ready, by `/andante/init receive order`.
#[derive(Debug, Clone, Default)]
pub struct Order {
    /// The files.
    pub files: Vec<InitrdFile>,
    /// Whether what the command did until then is worth being saved, so that the next run of the same
    /// command with other files goes on from there.
    pub save: bool,
}

/// One run of the virtual machine: it boots, runs one command as root, and switches off.
#[derive(Debug, Clone)]
pub struct Boot<'a> {
    /// The kernel.
    pub kernel: &'a Kernel,
    /// The emulator; it must have been found for at least so many CPUs.
    pub qemu: &'a Qemu,
    /// Virtual CPUs, at least 1. In virtual time all share one instruction per nanosecond.
    pub cpus: u32,
    /// What makes time pass there. Machines in the host's time are not saved.
    pub timing: Timing,
    /// Which of them are near one another.
    pub topology: Topology,
    /// Two network cards (module `virtio_net`) and a cable between them. The first takes one packet in a
    /// millisecond from its driver, which says when it may send, as that of a slow card does.
    pub cards: bool,
    /// Memory [MiB]. The image does not count.
    pub memory_mib: u32,
    /// The root file system; without one the RAM disk is the root. What the guest writes there
    /// is thrown away.
    pub image: Option<&'a Path>,
    /// A device of so many MiB to swap to, a multiple of 2 ([`SWAP_DEVICE`]). It and the image are then each
    /// below a device whose requests can be made to take longer (dm-delay: [`SWAP_NAME`], [`ROOT_NAME`]).
    /// They take no time at first. Needs an image that is not a system, and `dmsetup` among the programs.
    pub swap_mib: Option<u32>,
    /// The image is a whole system ([`crate::build_system`]): its own first process starts it, and the
    /// command runs as a service of it, when all others have been started.
    pub system: bool,
    /// Seed of another order of the files in the RAM disk; none: by path.
    pub layout: Option<u64>,
    /// Files of the RAM disk: few, since machines with others cannot be the same.
    pub initrd_files: Vec<InitrdFile>,
    /// Files that come with the command, up to 250 KiB; best in `/andante`.
    pub files: Vec<InitrdFile>,
    /// Kernel modules beside those that every machine has; what they depend on is taken too.
    pub modules: Vec<&'static str>,
    /// Executables of the host, put into `/andante/bin` (which ends the guest's PATH) with their
    /// shared libraries.
    pub programs: Vec<PathBuf>,
    /// The command with its arguments. Its output goes to the console; for data it opens
    /// `/dev/virtio-ports/andante.out`, for progress lines `/dev/virtio-ports/andante.progress`.
    pub command: Vec<String>,
    /// What the command receives later; none: it does not ask for it.
    pub order: Option<Order>,
    /// Where machines are saved, from which the next runs go on; none: every run boots.
    pub saved: Option<&'a Cache>,
    /// How long the run may take on the host before it is stopped.
    pub timeout: Duration,
    /// Where the console's text is kept; `andante-console.log` among the temporary files, if nothing is said.
    pub console_log: PathBuf,
}

/// What happens while the machine runs; lines come without their line ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// A line of the console: the kernel's messages and the command's output.
    Console(&'a str),
    /// A line that the guest wrote to its progress port.
    Progress(&'a str),
    /// Why a saved machine is not used: another is made, or the run boots.
    Note(&'a str),
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
    /// What is given with the command is too long.
    #[error(
        "{bytes} bytes of files are too many to be given to a machine that is up (at most {bytes_max}): leave some of them out, or put them into its RAM disk"
    )]
    TooMuch {
        /// How long it is.
        bytes: usize,
        /// How long it may be.
        bytes_max: usize,
    },
    /// The folder of saved machines cannot be used.
    #[error(transparent)]
    Cache(#[from] CacheError),
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

impl<'a> Boot<'a> {
    /// The usual machine: one CPU, 512 MiB, the RAM disk as its root; five minutes for the command.
    pub fn of<Word: AsRef<str>>(kernel: &'a Kernel, qemu: &'a Qemu, command: &[Word]) -> Self {
        Self {
            kernel,
            qemu,
            cpus: 1,
            timing: Timing::default(),
            topology: Topology::default(),
            cards: false,
            memory_mib: 512,
            image: None,
            swap_mib: None,
            system: false,
            layout: None,
            initrd_files: Vec::new(),
            files: Vec::new(),
            modules: Vec::new(),
            programs: Vec::new(),
            command: command
                .iter()
                .map(|word| word.as_ref().to_owned())
                .collect(),
            order: None,
            saved: None,
            timeout: Duration::from_secs(300),
            console_log: std::env::temp_dir().join("andante-console.log"),
        }
    }

    /// Boots, runs the command and waits for its end. `on_event` is called as lines appear.
    ///
    /// The guest cannot tell how fast the host is or who listens: its ports are files, which take
    /// everything at once, so the run's course depends on nothing but its input. QEMU dies with
    /// the calling thread.
    pub fn run(&self, on_event: &mut dyn FnMut(Event)) -> Result<Outcome, BootError> {
        let deadline = Instant::now() + self.timeout;
        let folder = tempfile::Builder::new()
            .prefix("andante-vm-")
            .tempdir()
            .map_err(io_error(&std::env::temp_dir()))?;
        let files = Files::in_folder(folder.path(), &self.console_log);
        let initrd = guest::initrd(self)?;
        fs::write(&files.initrd, &initrd).map_err(io_error(&files.initrd))?;
        let given = guest::given(self)?;
        for (file, content) in files.given.iter().zip(&given) {
            fs::write(file, content).map_err(io_error(file))?;
        }
        let session = Session {
            boot: self,
            files: &files,
            deadline,
        };
        if let (Some(cache), Timing::Virtual) = (self.saved, self.timing) {
            let points = saved::points(self, &initrd, &given[0])?;
            match session.go_on(cache, &points, on_event) {
                Ok(Begun::Ended(outcome)) => return Ok(outcome),
                Ok(Begun::Running(mut running)) => return running.wait_for_end(on_event),
                Err(Trouble::Boot(error)) => return Err(error),
                Err(Trouble::Save(reason) | Trouble::Refused(reason)) => {
                    let note = format!("it boots, since no saved machine can be had: {reason}");
                    on_event(Event::Note(&note));
                }
            }
        }
        session.start(None)?.wait_for_end(on_event)
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
