//! `andante`: the command line. Each subcommand is a file in `commands`; this one only joins them.

mod commands;
#[cfg(test)]
mod documentation;
mod live;
mod network;
mod shares;
mod tree;

use std::process::ExitCode;

use andante_terminal::{exit, output};
use clap::Parser;

use commands::Command;

/// Keeps media in time on a busy Linux machine.
///
/// Andante schedules the CPUs by a tree of classes. A class is a cgroup; its weight says what it
/// gets relative to its siblings. Programs need no change.
#[derive(Parser)]
#[command(name = "andante", version, after_help = FIRST_STEPS, after_long_help = exit::help(FIRST_STEPS))]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const FIRST_STEPS: &str = "\
First steps:
  andante doctor                       can this machine run it?
  sudo andante run                     put it in charge of the CPUs; ^C gives them back
  sudo andante exec --class film --weight 800 -- mpv film.mkv
  sudo andante exec --reserve 9ms/33ms -- mpv film.mkv
  andante top                          watch who gets what
  andante lab run film-make            see a film kept smooth, in a virtual machine";

fn main() -> ExitCode {
    let outcome = Cli::parse().command.run();
    match outcome {
        Ok(status) => status.into(),
        Err(error) => {
            output::error(&error);
            exit::status_of(&error).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }
}
