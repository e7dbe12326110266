//! `andante completions`: completion scripts for shells.

use andante_terminal::exit::Status;
use andante_terminal::pages::{self, Shell};
use anyhow::Result;
use clap::{Args, CommandFactory};

use crate::Cli;

/// Print a completion script for a shell.
#[derive(Args)]
#[command(after_help = "\
Examples:
  andante completions bash > /etc/bash_completion.d/andante
  andante completions fish > ~/.config/fish/completions/andante.fish")]
pub struct Completions {
    /// The shell to print it for.
    shell: Shell,
}

impl Completions {
    /// Prints the script.
    pub fn run(self) -> Result<Status> {
        pages::print_completions(Cli::command(), self.shell)?;
        Ok(Status::Ok)
    }
}
