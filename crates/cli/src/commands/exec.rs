//! `andante exec`: starts a program in a class, under a contract.

mod invoker;
mod memory;
mod network;
mod scope;
mod start;

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};

use andante_admission::Size;
use andante_daemon::Terms;
use andante_sched::class::{ClassPath, NewClass, Tree};
use andante_terminal::exit::{Refusal, Status};
use andante_terminal::output;
use anyhow::Result;
use clap::{ArgGroup, Args};
use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::low_level::siginfo::{Cause, Origin};

use self::invoker::Invoker;
use self::network::Network;
use self::start::{Promises, Started};
use super::contracts::{Extras, Rate};
use super::memory::{Lend, Wanted};
use super::net::Asked;

/// Start a program in a class, or under a contract, or both.
///
/// The class is created if it is missing, with the classes above it, and what was created is removed
/// again when the program has ended and nothing else runs in it. A class that exists keeps existing;
/// --weight changes its weight. Signals are passed on, and the program's exit status is returned.
///
/// Called through sudo, doas or pkexec it runs the program as the user who called, with the environment
/// of his session, so that a player finds its display and its sound.
///
/// With --reserve the program has a contract before its first instruction, or is not started. The
/// contract is held by the process that is started and all its threads, not by its child processes:
/// where those do the work, reserve for their class instead (`andante reserve`).
///
/// With --reserve-net its class has a contract of the network as well (`andante net reserve`), until the program ends:
/// packets within it leave before others'. With --reserve-memory so much memory is there when the class needs it
/// (`andante reserve --memory`); without --class it gets one, beside that of its caller. The program is started if it gets
/// all that is asked for, and else gets none.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  sudo andante exec --class film --weight 800 -- mpv film.mkv
  sudo andante exec --class build -- make -j8
  sudo andante exec --reserve 9ms/33ms -- mpv film.mkv
  sudo andante exec --class film --reserve 20ms/33ms --tolerate 1/5 -- mpv film.mkv
  sudo andante exec --reserve-memory 200M -- mpv film.mkv
  sudo andante exec --class call --reserve 2ms/20ms --reserve-net 2mbit/10ms -- linphone

Without root, the class is a scope of your own systemd instance, and a tenth of the machine can be reserved:
  andante exec --class film --weight 300 -- mpv film.mkv

See `andante reserve --help` for what a contract is, and `andante net reserve --help` for those of the network.")]
#[command(group(ArgGroup::new("what").args(["class", "reserve", "reserve_memory"]).multiple(true).required(true)))]
pub struct Exec {
    /// The class to start it in, for example /media/film.
    #[arg(long, value_name = "PATH", value_parser = ClassPath::parse)]
    class: Option<ClassPath>,
    /// The class's weight, 1 to 10000.
    #[arg(
        long,
        value_name = "N",
        allow_negative_numbers = true,
        requires = "class"
    )]
    weight: Option<i64>,
    /// CPU time and period to reserve for it: 9ms/33ms.
    #[arg(long, value_name = "BUDGET/PERIOD")]
    reserve: Option<Rate>,
    /// How much of the network to reserve for its class in which period: 2mbit/10ms. Without a device
    /// it is the one that is attached (`andante net attach`), of several that of the default route.
    #[arg(long, value_name = "[DEV:]RATE/PERIOD", requires = "class")]
    reserve_net: Option<Asked>,
    /// How much memory to reserve for its class: 200M.
    #[arg(long, value_name = "SIZE")]
    reserve_memory: Option<Size>,
    /// Of the memory that its class does not use, the part that others have until it does; the rest is kept free. All
    /// of it, if nothing is said.
    #[arg(long, value_name = "PERCENT", requires = "reserve_memory")]
    lend: Option<Lend>,
    #[command(flatten)]
    extras: Extras,
    /// The class is the one that this process is in: we have called ourselves, in a scope.
    #[arg(long, hide = true, conflicts_with_all = ["class", "reserve_net", "as_root"])]
    here: bool,
    /// Called through sudo: run the program as root, not as the user who called.
    #[arg(long)]
    as_root: bool,
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
        let terms = match self.reserve {
            Some(rate) => Some(self.extras.terms(rate)?),
            None if self.extras.is_given() => {
                let message = "these are terms of a contract: add --reserve BUDGET/PERIOD";
                return Err(Refusal::new(Status::Usage, message).into());
            }
            None => None,
        };
        let memory = self.reserve_memory.map(|size| Wanted {
            size,
            lend: self.lend.unwrap_or_default(),
        });
        if self.here {
            let (tree, class) = memory::this_class()?;
            return self.start_and_wait(&self.command, Some((&tree, &class)), terms, None, memory);
        }
        let own = memory
            .map(|_| memory::own_class(&self.command[0]))
            .transpose()?;
        let Some(class) = self.class.as_ref().or(own.as_ref()) else {
            return self.start_and_wait(&self.command, None, terms, None, None);
        };
        // Before anything is changed: a user who is not root may ask for no such contract.
        let device = self.reserve_net.as_ref().map(Asked::device).transpose()?;
        let tree = Tree::open()?;
        let made = match self.make_class(&tree, class) {
            Ok(made) => made,
            Err(error) => {
                // Memory is a class's, and only in the scope is known which that is.
                let (inside, terms) = match memory {
                    Some(wanted) => (self.inside(wanted)?, None),
                    None => (self.command.clone(), terms),
                };
                let words = scope::instead(error, class, self.weight, &inside)?;
                return self.start_and_wait(&words, None, terms, None, None);
            }
        };
        let network = device.zip(self.reserve_net.as_ref());
        let network = network.map(|(device, asked)| Network::new(device, asked.budget, class));
        let outcome = network.transpose().and_then(|network| {
            let class = Some((&tree, class));
            self.start_and_wait(&self.command, class, terms, network, memory)
        });
        for class in made.iter().rev() {
            if let Err(error) = tree.remove(class) {
                output::note(&format!(
                    "{class} was made for this program and stays, because {error}"
                ));
                break;
            }
        }
        outcome
    }

    /// The command that does in a scope what is asked for, where that is the class.
    fn inside(&self, wanted: Wanted) -> Result<Vec<String>> {
        let own = std::env::current_exe()?.to_string_lossy().into_owned();
        let mut words = vec![own, "exec".into(), "--here".into()];
        words.extend(memory::options(wanted));
        words.extend(
            self.reserve
                .iter()
                .flat_map(|rate| ["--reserve".to_owned(), rate.to_string()]),
        );
        words.extend(self.extras.options());
        words.push("--".into());
        words.extend_from_slice(&self.command);
        Ok(words)
    }

    /// Sees to it that there is the class; returns those that had to be made.
    fn make_class(&self, tree: &Tree, class: &ClassPath) -> Result<Vec<ClassPath>> {
        if !tree.exists(class) {
            let new = NewClass {
                weight: self.weight,
                ..NewClass::default()
            };
            return Ok(tree.create(class, &new)?);
        }
        if let Some(weight) = self.weight {
            tree.set_weight(class, weight)?;
        }
        Ok(Vec::new())
    }

    fn start_and_wait(
        &self,
        words: &[String],
        class: Option<(&Tree, &ClassPath)>,
        terms: Option<Terms>,
        network: Option<Network>,
        memory: Option<Wanted>,
    ) -> Result<Status> {
        // Before the program starts, so that its end cannot be missed.
        let forwarded = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGCHLD];
        let mut signals = SignalsInfo::<WithOrigin>::new(forwarded)?;
        let invoker = match self.as_root {
            true => None,
            false => Invoker::find()?,
        };
        let name = || self.extras.name.clone();
        let promises = Promises {
            cpu: terms.map(|terms| (terms, name())),
            network,
            memory: memory.zip(class.map(|(_, class)| class.clone())),
        };
        // The contracts of the network and of memory are released when this returns.
        let (mut child, _held) =
            match start::start(words, &self.command[0], class, promises, invoker)? {
                Started::Running(child, held) => (child, held),
                Started::Refused => return Ok(Status::ContractRefused),
            };
        for origin in &mut signals {
            if origin.signal == SIGCHLD {
                if let Some(ended) = child.try_wait()? {
                    return Ok(status(ended));
                }
            } else if is_for_us_alone(&origin) {
                pass_on(&child, origin.signal)?;
            }
        }
        Ok(status(child.wait()?))
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
