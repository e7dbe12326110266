//! `andante man`: manual pages, generated from the same texts as `--help`.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, CommandFactory};

use crate::exit::Status;
use crate::{Cli, output};

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

impl Man {
    /// Prints or writes the pages.
    pub fn run(self) -> Result<Status> {
        if let Some(directory) = self.dir {
            fs::create_dir_all(&directory)
                .and_then(|()| clap_mangen::generate_to(Cli::command(), &directory))
                .with_context(|| format!("could not write pages to {}", directory.display()))?;
        } else {
            let mut page = Vec::new();
            clap_mangen::Man::new(Cli::command()).render(&mut page)?;
            output::print(&String::from_utf8(page)?)?;
        }
        Ok(Status::Ok)
    }
}
