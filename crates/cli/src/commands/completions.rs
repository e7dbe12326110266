//! `andante completions`: completion scripts for shells.

use anyhow::Result;
use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::exit::Status;
use crate::{Cli, output};

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
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "andante", &mut script);
        output::print(&String::from_utf8(script)?)?;
        Ok(Status::Ok)
    }
}
