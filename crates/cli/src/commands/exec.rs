//! `andante exec`: starts a program in a class.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};

use andante_sched::class::{ClassError, ClassPath, NewClass, Tree};
use anyhow::Result;
use clap::Args;
use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::low_level::siginfo::{Cause, Origin};

use crate::exit::{Refusal, Status};
use crate::output;

/// Start a program in a class.
///
/// The class is created if it is missing, with the classes above it, and what was created is removed
/// again when the program has ended and nothing else runs in it. A class that exists keeps existing;
/// --weight changes its weight. Signals are passed on, and the program's exit status is returned.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  sudo andante exec --class film --weight 800 -- mpv film.mkv
  sudo andante exec --class build -- make -j8

Without root, classes below a cgroup delegated to you can be used. Under systemd:
  systemd-run --user --scope -- andante exec \\
    --class /user.slice/user-$UID.slice/user@$UID.service/app.slice/film -- mpv film.mkv")]
pub struct Exec {
    /// The class to start it in, for example /media/film.
    #[arg(long, value_name = "PATH", value_parser = ClassPath::parse)]
    class: ClassPath,
    /// The class's weight, 1 to 10000.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    weight: Option<i64>,
    /// The program and its arguments.
    #[arg(
        value_name = "CMD",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    command: Vec<String>,
}

impl Exec {
    /// Starts the program, waits for it, and tidies up.
    pub fn run(self) -> Result<Status> {
        let tree = Tree::open()?;
        let made = if tree.exists(&self.class) {
            if let Some(weight) = self.weight {
                tree.set_weight(&self.class, weight)?;
            }
            Vec::new()
        } else {
            let new = NewClass {
                weight: self.weight,
                ..NewClass::default()
            };
            tree.create(&self.class, &new)?
        };
        let outcome = self.start_and_wait(&tree);
        for class in made.iter().rev() {
            if let Err(error) = tree.remove(class) {
                output::note(&format!(
                    "{class} was made for this program and stays, because {error}"
                ));
                break;
            }
        }
        outcome.map(status)
    }

    fn start_and_wait(&self, tree: &Tree) -> Result<ExitStatus> {
        tree.check_may_hold_tasks(&self.class)?;
        // Before the program starts, so that its end cannot be missed.
        let forwarded = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGCHLD];
        let mut signals = SignalsInfo::<WithOrigin>::new(forwarded)?;
        let mut child = self.start(tree)?;
        for origin in &mut signals {
            if origin.signal == SIGCHLD {
                if let Some(status) = child.try_wait()? {
                    return Ok(status);
                }
            } else if is_for_us_alone(&origin) {
                pass_on(&child, origin.signal)?;
            }
        }
        Ok(child.wait()?)
    }

    /// Starts the program, which joins the class by itself before it becomes the program, so that
    /// not an instruction of it runs elsewhere.
    fn start(&self, tree: &Tree) -> Result<Child> {
        let procs = tree.directory(&self.class).join("cgroup.procs");
        let procs: OwnedFd = OpenOptions::new()
            .write(true)
            .open(procs)
            .map_err(|error| ClassError::from_move(&self.class, 0, error))?
            .into();
        // Tells a failure to join from a failure to execute.
        let (mut joined, tell) = io::pipe()?;
        let (program, arguments) = self.command.split_first().expect("clap requires one");
        let mut command = Command::new(program);
        command.args(arguments);
        // SAFETY: between fork and exec the closure only writes to two open files, which is
        // async-signal-safe; it allocates nothing and takes no lock.
        unsafe {
            command.pre_exec(move || {
                nix::unistd::write(&procs, b"0")?;
                nix::unistd::write(&tell, b"+")?;
                Ok(())
            });
        }
        let started = command.spawn();
        drop(command);
        let error = match started {
            Ok(child) => return Ok(child),
            Err(error) => error,
        };
        if joined.read(&mut [0])? == 0 {
            return Err(ClassError::from_move(&self.class, 0, error).into());
        }
        Err(match error.kind() {
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
        .into())
    }
}

/// Whether a signal was sent to us and not to the program as well. What is typed on the terminal
/// (^C, ^\) comes from the kernel and reaches both.
fn is_for_us_alone(origin: &Origin) -> bool {
    !matches!(origin.cause, Cause::Kernel)
}

/// Sends a signal to the program. It has not been waited for yet, so its id is still its own.
fn pass_on(child: &Child, number: i32) -> Result<()> {
    let pid = Pid::from_raw(i32::try_from(child.id())?);
    match signal::kill(pid, Signal::try_from(number)?) {
        // Changed its user, or has just ended: nothing more can be done.
        Ok(()) | Err(nix::errno::Errno::EPERM | nix::errno::Errno::ESRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The program's status as a shell would report it: 128 and the signal for one that was killed.
fn status(ended: ExitStatus) -> Status {
    let code = ended
        .code()
        .or_else(|| ended.signal().map(|signal| 128 + signal));
    Status::Program(
        code.and_then(|code| u8::try_from(code).ok())
            .unwrap_or(u8::MAX),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_killed_program_is_reported_as_a_shell_does() {
        assert_eq!(status(ExitStatus::from_raw(3 << 8)), Status::Program(3));
        assert_eq!(status(ExitStatus::from_raw(15)), Status::Program(143));
    }
}
