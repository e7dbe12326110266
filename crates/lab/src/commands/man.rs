//! `andante-lab man`: its manual pages.

use std::path::PathBuf;

use andante_terminal::exit::Status;
use andante_terminal::pages;
use anyhow::Result;
use clap::Args;

/// Print the manual page, or write one page per subcommand.
#[derive(Args)]
#[command(after_help = "\
Examples:
  andante-lab man | man -l -
  sudo andante-lab man --dir /usr/local/share/man/man1")]
pub struct Man {
    /// Write every page into this directory, which is made if missing.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

impl Man {
    /// Prints or writes the pages.
    pub fn run(self) -> Result<Status> {
        match self.dir {
            Some(folder) => pages::write_manual(crate::command(), &[], &folder)?,
            None => pages::print_manual(crate::command())?,
        }
        Ok(Status::Ok)
    }
}
