//! From a command line to a process that is in its class and under its contracts before it becomes
//! the program.
//!
//! ```text
//!     child                                  thread of ours          network, daemon
//!     joins the class
//!     says its id ───── joined pipe ───────► reserves for it ──────► yes or no
//!     waits     ◄────── go pipe ───────────  says go, or hangs up
//!     executes the program
//! ```
//!
//! The thread is there because starting a program waits until it has been executed.

use std::fs::OpenOptions;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command};
use std::thread;

use andante_daemon::{Ask, Holder, Reply, Request, Terms, name_after};
use andante_sched::class::{ClassError, ClassPath, Tree};
use andante_terminal::exit::{Refusal, Status};
use andante_terminal::output;
use anyhow::Result;

use super::super::contracts;
use super::invoker::Invoker;
use super::memory::{self, Reserved};
use super::network::{self, Network};
use crate::commands::memory::Wanted;

/// The contracts that the program must have before it runs: with one missing it does not.
pub struct Promises {
    /// Of the CPU, under this name.
    pub cpu: Option<(Terms, Option<String>)>,
    /// Of the network.
    pub network: Option<Network>,
    /// Of memory, for this class.
    pub memory: Option<(Wanted, ClassPath)>,
}

impl Promises {
    fn any(&self) -> bool {
        self.cpu.is_some() || self.network.is_some() || self.memory.is_some()
    }
}

/// Promises that end with the program; they are released when this is dropped.
#[derive(Default)]
pub struct Held {
    network: Option<network::Held>,
    memory: Option<Reserved>,
}

/// What became of a start.
pub enum Started {
    /// The program runs, with this.
    Running(Child, Held),
    /// A contract was refused, which has been told; nothing runs.
    Refused,
}

/// Starts the program, by these words; its contract is named after it unless that has a name.
///
/// # Errors
/// It cannot join the class, nobody can be asked for a contract, or it cannot be executed; nothing
/// runs then, and no contract is left.
pub fn start(
    words: &[String],
    named_after: &str,
    class: Option<(&Tree, &ClassPath)>,
    promises: Promises,
    invoker: Option<Invoker>,
) -> Result<Started> {
    let procs = class.map(open_class).transpose()?;
    let (joined, tell) = io::pipe()?;
    let (wait, go) = io::pipe()?;
    let (program, arguments) = words.split_first().expect("clap requires one");
    let mut command = Command::new(program);
    command.args(arguments);
    prepare(
        &mut command,
        procs,
        tell,
        promises.any().then_some((wait, go.as_raw_fd())),
    );
    if let Some(invoker) = invoker {
        invoker.take_over(&mut command)?;
    }
    let name = Path::new(named_after).file_name().unwrap_or_default();
    let name = name.to_string_lossy().into_owned();
    let asking = thread::spawn(move || reserve(joined, go, promises, &name));
    let started = command.spawn();
    // With it goes our end of the pipe that the thread reads.
    drop(command);
    let asked = asking.join().expect("it does not panic")?;
    match (asked, started) {
        (Asked::NotJoined, Err(error)) => match class {
            Some((_, class)) => Err(ClassError::from_move(class, 0, error).into()),
            None => Err(error.into()),
        },
        (Asked::Refused, _) => Ok(Started::Refused),
        (Asked::Go(held), Ok(child)) => Ok(Started::Running(child, held)),
        (Asked::NotJoined, Ok(child)) => Ok(Started::Running(child, Held::default())),
        (Asked::Go(_), Err(error)) => Err(not_started(program, &error).into()),
    }
}

fn open_class((tree, class): (&Tree, &ClassPath)) -> Result<OwnedFd> {
    tree.check_may_hold_tasks(class)?;
    let procs = tree.directory(class).join("cgroup.procs");
    let opened = OpenOptions::new().write(true).open(procs);
    Ok(opened
        .map_err(|error| ClassError::from_move(class, 0, error))?
        .into())
}

/// What the child does before it becomes the program. With `wait` (and the other end of it, which
/// the child must close, or it would wait for itself) it goes on when it is told to.
fn prepare(
    command: &mut Command,
    procs: Option<OwnedFd>,
    tell: PipeWriter,
    wait: Option<(PipeReader, i32)>,
) {
    // SAFETY: between fork and exec the closure only reads, writes and closes open files and asks
    // for its id, all of which is async-signal-safe; it allocates nothing and takes no lock.
    unsafe {
        command.pre_exec(move || {
            if let Some(procs) = &procs {
                nix::unistd::write(procs, b"0")?;
            }
            nix::unistd::write(&tell, &libc::getpid().to_ne_bytes())?;
            let Some((wait, go)) = &wait else {
                return Ok(());
            };
            libc::close(*go);
            match nix::unistd::read(wait, &mut [0])? {
                0 => Err(io::Error::from_raw_os_error(libc::ECANCELED)),
                _ => Ok(()),
            }
        });
    }
}

/// What the thread has found.
enum Asked {
    /// The child ended before it had joined its class.
    NotJoined,
    /// A contract was refused.
    Refused,
    /// The child may go on, if it has to wait at all.
    Go(Held),
}

/// Waits until the child has joined its class, and gets it its contracts. Hanging up (dropping `go`)
/// ends the child, and with it what it has got by then.
fn reserve(
    mut joined: PipeReader,
    mut go: PipeWriter,
    promises: Promises,
    program: &str,
) -> Result<Asked> {
    let mut pid = [0; size_of::<i32>()];
    if joined.read_exact(&mut pid).is_err() {
        return Ok(Asked::NotJoined);
    }
    let pid = i32::from_ne_bytes(pid);
    if !promises.any() {
        return Ok(Asked::Go(Held::default()));
    }
    let mut held = Held::default();
    if let Some(network) = promises.network {
        held.network = network.ask(pid.unsigned_abs())?;
        if held.network.is_none() {
            return Ok(Asked::Refused);
        }
    }
    if let Some((wanted, class)) = promises.memory {
        held.memory = memory::reserve(wanted, class, pid)?;
        if held.memory.is_none() {
            return Ok(Asked::Refused);
        }
    }
    if let Some(wanted) = promises.cpu
        && !reserve_cpu(pid, wanted, program)?
    {
        return Ok(Asked::Refused);
    }
    go.write_all(b"+")?;
    Ok(Asked::Go(held))
}

/// Gets the process its contract of the CPU; whether that was granted. If not, it has been told.
fn reserve_cpu(pid: i32, (terms, name): (Terms, Option<String>), program: &str) -> Result<bool> {
    let ask = Ask {
        holder: Holder::Process(pid),
        terms,
        // It is not called that itself before it is executed.
        name: name.or_else(|| Some(name_after(program, pid))),
    };
    match contracts::ask(&Request::Reserve(ask))? {
        Reply::Reserved(answer) => {
            for warning in contracts::warnings(&answer) {
                output::warn(&warning);
            }
            Ok(true)
        }
        Reply::Refused(answer) => {
            output::complain(&contracts::refused(&answer, &terms.contract(program)));
            Ok(false)
        }
        _ => Err(Refusal::new(Status::Failure, "Andante answered something else").into()),
    }
}

fn not_started(program: &str, error: &io::Error) -> Refusal {
    match error.kind() {
        io::ErrorKind::NotFound => Refusal::new(
            Status::NotFound,
            format!("there is no program {program}: check its name and your PATH"),
        ),
        _ => Refusal::new(
            Status::NotExecutable,
            format!(
                "{program} could not be started ({}): check that it is executable",
                error.kind()
            ),
        ),
    }
}
