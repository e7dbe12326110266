//! `andante-lab completions`: completion scripts for shells.

use andante_terminal::exit::Status;
use andante_terminal::pages::{self, Shell};
use anyhow::Result;
use clap::Args;

/// Print a completion script for a shell.
#[derive(Args)]
#[command(after_help = "\
Example:
  andante-lab completions bash > /etc/bash_completion.d/andante-lab")]
pub struct Completions {
    /// The shell to print it for.
    shell: Shell,
}

impl Completions {
    /// Prints the script.
    pub fn run(self) -> Result<Status> {
        pages::print_completions(crate::command(), self.shell)?;
        Ok(Status::Ok)
    }
}
