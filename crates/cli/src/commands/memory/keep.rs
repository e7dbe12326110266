// SPDX-License-Identifier: GPL-2.0
//! `andante keep-memory`: what `andante run` starts beside itself. People do not call it.

use std::path::PathBuf;

use andante_memory::keeper;
use andante_terminal::exit::Status;
use anyhow::Result;
use clap::Args;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Look after reserved memory; `andante run` starts this for itself.
///
/// It reads what is reserved from its input, and ends with it; then memory.min is as it was before.
#[derive(Args)]
pub struct Keep {
    /// The root of the classes.
    #[arg(value_name = "ROOT")]
    root: PathBuf,
    /// The file with what is to be put back.
    #[arg(value_name = "FILE")]
    kept: PathBuf,
    /// Only put back what was left by one that was killed.
    #[arg(long)]
    restore: bool,
}

impl Keep {
    /// Stays until its input ends.
    pub fn run(self) -> Result<Status> {
        if self.restore {
            keeper::restore(&self.root, &self.kept)?;
            return Ok(Status::Ok);
        }
        // ^C reaches everybody in the terminal: the one that gives orders ends first, and this with it.
        let _signals = signal_hook::iterator::Signals::new([SIGHUP, SIGINT, SIGTERM])?;
        keeper::run(std::io::stdin(), std::io::stdout(), &self.root, &self.kept)?;
        Ok(Status::Ok)
    }
}
