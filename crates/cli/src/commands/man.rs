//! `andante man`: manual pages, generated from the same texts as `--help`.

use std::path::PathBuf;

use andante_terminal::exit::Status;
use andante_terminal::pages;
use anyhow::Result;
use clap::{Args, CommandFactory};

use crate::Cli;

/// Print the manual page, or write one page per subcommand.
#[derive(Args)]
#[command(after_help = "\
Examples:
  andante man | man -l -
  sudo andante man --dir /usr/local/share/man/man1")]
pub struct Man {
    /// Write every page into this directory, which is made if missing.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Their pages are `andante-lab`'s.
const LABORATORY: [&str; 2] = ["lab", "paper"];

impl Man {
    /// Prints or writes the pages.
    pub fn run(self) -> Result<Status> {
        match self.dir {
            Some(folder) => pages::write_manual(Cli::command(), &LABORATORY, &folder)?,
            None => pages::print_manual(Cli::command())?,
        }
        Ok(Status::Ok)
    }
}
