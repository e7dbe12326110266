// SPDX-License-Identifier: GPL-2.0
//! `andante wake`: asks for the pages of a program that goes on.

use andante_daemon::{Reply, Request};
use andante_terminal::exit::Status;
use andante_terminal::output;
use anyhow::Result;
use clap::Args;

use super::contracts;

/// Bring back what a program had in memory, before it waits for it page by page.
///
/// A program that was paused may find its memory in the swap: then each access waits for a disk. This asks for all of
/// it at once, as much as there is room for. Programs with reserved memory are watched, and asked for without this when
/// they go on.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  andante wake $(pidof mpv)            before the film goes on
  sudo andante wake $(pidof blender)

See `andante reserve --memory`, so that it is not taken in the first place.")]
pub struct Wake {
    /// The process.
    #[arg(value_name = "PID", value_parser = clap::value_parser!(i32).range(1..))]
    pid: i32,
    /// Print the answer as JSON.
    #[arg(long)]
    json: bool,
}

impl Wake {
    /// Asks.
    pub fn run(self) -> Result<Status> {
        let reply = contracts::ask(&Request::Wake { pid: self.pid })?;
        if self.json {
            output::print_json(&reply)?;
        } else if let Reply::Woken { pid } = reply {
            output::print(&format!("what process {pid} had in memory is asked for\n"))?;
        }
        Ok(Status::Ok)
    }
}
