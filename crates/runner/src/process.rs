//! One instance of one program: started in its class, signalled, and waited for.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};

use andante_job::LabError;
use andante_programs::clock;
use andante_scenario::Program;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::network;
use super::tuning::Scheduling;

/// CPU time as `/proc/PID/stat` counts it [ns]; `USER_HZ` is 100 on every Linux.
const TICK_NS: u64 = 10_000_000;

/// A program with its arguments, and what it finds in its environment beside the usual.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct CommandLine {
    pub argv: Vec<String>,
    pub environment: Vec<(&'static str, String)>,
}

impl From<Vec<String>> for CommandLine {
    fn from(argv: Vec<String>) -> Self {
        Self {
            argv,
            ..Self::default()
        }
    }
}

/// How to start a program.
pub(super) struct Start<'a> {
    pub command: CommandLine,
    pub program: &'a Program,
    pub scheduling: Scheduling,
    /// The class's `cgroup.procs`.
    pub procs_file: PathBuf,
    /// The network that it enters; none: it stays in the machine's own.
    pub network: Option<File>,
    /// Where it works; made if need be.
    pub folder: PathBuf,
}

/// How a process ended.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Ended {
    /// When it was noticed [ns of CLOCK_MONOTONIC].
    pub at_ns: u64,
    /// Whether it exited with status 0.
    pub success: bool,
    /// `with status 2`, `by signal 9`.
    pub how: String,
    /// CPU time of its whole life, children it waited for included [ns].
    pub cpu_ns: u64,
    /// Page faults in that time for which something had to be read.
    pub major_faults: u64,
}

/// A started process, the leader of a process group of its own.
pub(super) struct Process {
    pid: Pid,
    /// Where a synthetic program waits for its order; none if it has had it.
    input: Option<ChildStdin>,
    /// Standard output and error.
    pub output: PathBuf,
    /// Set once it has ended.
    pub ended: Option<Ended>,
}

impl Process {
    /// Starts it in its class.
    ///
    /// # Errors
    /// One that names the program if it cannot be executed.
    pub fn start(start: &Start<'_>) -> Result<Self, LabError> {
        let Start {
            command: CommandLine { argv, environment },
            program,
            scheduling,
            procs_file,
            network,
            folder,
        } = start;
        fs::create_dir_all(folder).map_err(|e| LabError::file("create", folder, e))?;
        let output = folder.join("output");
        let log = File::create(&output).map_err(|e| LabError::file("create", &output, e))?;
        let log_too = log
            .try_clone()
            .map_err(|e| LabError::file("open", &output, e))?;
        let procs = OpenOptions::new().write(true).open(procs_file);
        let procs = procs.map_err(|e| LabError::file("open", procs_file, e))?;
        let cpus = program
            .affinity
            .as_ref()
            .map(|cpus| cpu_set(cpus))
            .transpose();
        let cpus = cpus.map_err(|e| LabError::io("build a CPU mask", e))?;
        let scheduling = *scheduling;
        let network = network.as_ref().map(AsRawFd::as_raw_fd);

        let mut command = Command::new(&argv[0]);
        command
            .args(&argv[1..])
            .current_dir(folder)
            .process_group(0);
        command
            .env("HOME", folder)
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(match program.kind.is_real() {
                true => Stdio::null(),
                false => Stdio::piped(),
            })
            .stdout(log)
            .stderr(log_too);
        // SAFETY: only system calls that are safe between fork and exec.
        unsafe {
            command.pre_exec(move || {
                // In its class before its first instruction.
                if libc::write(procs.as_raw_fd(), c"0".as_ptr().cast(), 1) != 1 {
                    return Err(std::io::Error::last_os_error());
                }
                if let Some(cpus) = &cpus {
                    sched_setaffinity(Pid::from_raw(0), cpus)?;
                }
                // The file is open until the child has been started.
                network.map_or(Ok(()), network::enter)?;
                scheduling.apply()?;
                // Nothing may be left if this process is killed.
                nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
                Ok(())
            });
        }
        let mut child = command.spawn().map_err(|error| LabError::ProgramFailed {
            name: program.name.clone(),
            reason: format!("`{}` cannot be started: {error}", argv[0]),
        })?;
        Ok(Self {
            pid: Pid::from_raw(child.id() as i32),
            input: child.stdin.take(),
            output,
            ended: None,
        })
    }

    /// Its id, until it has ended.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Tells it what to do, if it waits for that.
    ///
    /// # Errors
    /// If it has ended already.
    pub fn order(&mut self, order: &str) -> std::io::Result<()> {
        match self.input.take() {
            Some(mut input) => input.write_all(order.as_bytes()),
            None => Ok(()),
        }
    }

    /// Signals the whole process group.
    pub fn signal(&self, signal: Signal) {
        if self.ended.is_none() {
            // It may just have ended; then there is nothing to signal.
            let _ = killpg(self.pid, signal);
        }
    }

    /// Notes if it has ended; returns whether it has.
    pub fn reap(&mut self) -> bool {
        if self.ended.is_none() {
            let mut status = 0;
            // SAFETY: all-zero is a valid rusage.
            let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
            // SAFETY: both pointers are to live variables.
            let pid =
                unsafe { libc::wait4(self.pid.as_raw(), &mut status, libc::WNOHANG, &mut usage) };
            if pid == self.pid.as_raw() {
                self.ended = Some(describe(status, &usage));
            }
        }
        self.ended.is_some()
    }

    /// CPU time so far, of all threads and, if it may have any, of the children waited for [ns].
    /// Those take far longer to find out, and meanwhile no program runs on this CPU.
    pub fn cpu_ns(&self, has_children: bool) -> u64 {
        if let Some(ended) = &self.ended {
            return ended.cpu_ns;
        }
        let own_ns = clock::process_cpu_ns(self.pid).unwrap_or(0);
        match has_children {
            true => own_ns + self.children_cpu_ns(),
            false => own_ns,
        }
    }

    fn children_cpu_ns(&self) -> u64 {
        // cutime and cstime are fields 16 and 17.
        let fields = self.stat().into_iter().skip(13).take(2);
        fields
            .filter_map(|field| field.parse::<u64>().ok())
            .sum::<u64>()
            * TICK_NS
    }

    /// Page faults so far for which something had to be read, of all threads and of children waited for.
    pub fn major_faults(&self) -> u64 {
        if let Some(ended) = &self.ended {
            return ended.major_faults;
        }
        // majflt and cmajflt are fields 12 and 13.
        let fields = self.stat().into_iter().skip(9).take(2);
        fields.filter_map(|field| field.parse::<u64>().ok()).sum()
    }

    /// Whether its main thread sleeps, and can be woken: one that waits for its children does. One that the
    /// scheduler has lost does not, for it wants to run.
    pub fn is_asleep(&self) -> bool {
        self.stat().first().is_some_and(|state| state == "S")
    }

    /// What the kernel says of it, from the third field on: the name, the second, may hold spaces.
    fn stat(&self) -> Vec<String> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid)).unwrap_or_default();
        let fields = stat.rsplit(')').next().unwrap_or_default();
        fields.split_whitespace().map(str::to_owned).collect()
    }
}

fn cpu_set(cpus: &[u32]) -> nix::Result<CpuSet> {
    let mut set = CpuSet::new();
    cpus.iter().try_for_each(|cpu| set.set(*cpu as usize))?;
    Ok(set)
}

fn describe(status: libc::c_int, usage: &libc::rusage) -> Ended {
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
    let exited = libc::WIFEXITED(status);
    Ended {
        at_ns: clock::now_ns(),
        success: exited && libc::WEXITSTATUS(status) == 0,
        how: if exited {
            format!("with status {}", libc::WEXITSTATUS(status))
        } else {
            format!("by signal {}", libc::WTERMSIG(status))
        },
        cpu_ns: ns(usage.ru_utime) + ns(usage.ru_stime),
        major_faults: usage.ru_majflt as u64,
    }
}

/// The last line with anything on it, for messages.
pub(super) fn last_line(file: &Path) -> Option<String> {
    let text = String::from_utf8_lossy(&fs::read(file).ok()?).into_owned();
    // Players rewrite their status line with carriage returns.
    text.split(['\n', '\r'])
        .map(str::trim)
        .rfind(|line| !line.is_empty())
        .map(str::to_owned)
}
