// SPDX-License-Identifier: GPL-2.0
//! `andante-bus`: answers what programs ask for their threads over D-Bus, by Andante's means.
//!
//! Programs that play sound or games ask for more than others get at one of two places, and have done so for years:
//! RealtimeKit1 on the system bus (the desktop's portal passes on to it what programs in sandboxes ask for) and
//! GameMode on the session's. They are answered here, so that no program has to be changed. D-Bus is not let into
//! the service that runs as root: this program has no privilege but to speak for others at the daemon's socket.
//!
//! ```text
//!    pipewire ──MakeThreadRealtime──► realtime ──┐
//!                  (system bus)                  ├─► spokesman ──socket──► andante run
//!    a game ────RegisterGame────────► gamemode ──┘   what stands,           a session for
//!                  (session bus)                     said anew if           the process
//!                                                    the daemon returns
//! ```

mod gamemode;
mod process;
mod rate;
mod realtime;
mod refusal;
mod serve;
mod spokesman;
mod wire;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory, Parser};

/// Where the daemon listens unless somebody says otherwise.
const SOCKET: &str = "/run/andante.sock";

/// Answers what programs ask over D-Bus for their threads.
///
/// A thread that asks is said to be waited for: Andante serves it in time as far as what is learnt may go, and takes
/// nothing from anybody that was promised something. It does not become a real-time thread.
#[derive(Parser)]
#[command(name = "andante-bus", version, after_help = HELP)]
struct Cli {
    #[command(flatten)]
    bus: Bus,
    /// Where the daemon listens; without this ANDANTE_SOCKET says it, or else it is /run/andante.sock.
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Say who asks for what.
    #[arg(long, short)]
    verbose: bool,
}

#[derive(Args)]
#[group(required = true, multiple = false)]
struct Bus {
    /// Answer as org.freedesktop.RealtimeKit1 on the system bus, for programs of all users. To speak for others
    /// at the daemon's socket this needs root or the group andante.
    #[arg(long)]
    system: bool,
    /// Answer as com.feralinteractive.GameMode on the session bus, for games of one user. No privilege is needed.
    #[arg(long)]
    session: bool,
    /// Print the manual page: man andante-bus shows it where this is installed.
    #[arg(long)]
    man: bool,
}

const HELP: &str = "\
As services both are started by systemd; see dist/bus, and the page bus.md of the documentation.
By hand:
  andante-bus --session &
  gamemoderun glxgears                  a game asks; `andante status` names it until it ends
  sudo andante-bus --system &
  systemctl --user restart pipewire     sound asks when it starts

Where another program has the name already (gamemoded, rtkit-daemon) that one keeps it, and this
one waits until it gives the name up. While Andante is not loaded requests are refused with a
sentence. What was asked for before is said anew when it is back.

Exit status:
  0  ended by SIGTERM or ^C, or the page was printed
  1  the bus is gone, or failed
  2  the command line is wrong
  3  the bus does not let this user have the name
  4  there is no such bus";

/// How the command ended, as a script sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    Ended = 0,
    Failed = 1,
    NotPermitted = 3,
    NoBus = 4,
}

/// Of the manual: programs that the system starts.
const SECTION: &str = "8";

fn main() -> ExitCode {
    let cli = Cli::parse();
    if cli.bus.man {
        let page = clap_mangen::Man::new(Cli::command()).section(SECTION);
        return match page.render(&mut std::io::stdout()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::from(Status::Failed as u8),
        };
    }
    let kind = match cli.bus.system {
        true => serve::Kind::System,
        false => serve::Kind::Session,
    };
    let named = || std::env::var_os("ANDANTE_SOCKET").map(PathBuf::from);
    let socket = cli.socket.or_else(named).unwrap_or_else(|| SOCKET.into());
    let ended = serve::run(kind, &socket, cli.verbose);
    match ended {
        Ok(()) => ExitCode::from(Status::Ended as u8),
        Err(end) => {
            eprintln!("error: {end}");
            ExitCode::from(end.status() as u8)
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_manual_has_every_option() {
        let mut page = Vec::new();
        let man = clap_mangen::Man::new(super::Cli::command()).section(super::SECTION);
        man.render(&mut page).unwrap();
        let page = String::from_utf8(page).unwrap();
        assert!(page.contains(".TH andante-bus 8"), "{page}");
        for option in ["system", "session", "socket", "verbose"] {
            assert!(
                page.contains(&format!("\\-\\-{option}")),
                "{option}: {page}"
            );
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }
}
