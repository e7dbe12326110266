//! The subcommands, one file each.

mod admit;
mod class;
mod completions;
pub mod contracts;
mod disk;
mod doctor;
mod exec;
mod lab;
mod man;
pub mod memory;
mod metrics;
mod net;
mod reserve;
mod run;
mod status;
mod top;
mod why;

use andante_terminal::exit::Status;
use anyhow::Result;
use clap::Subcommand;

/// What the user asked for.
#[derive(Subcommand)]
pub enum Command {
    Run(run::Run),
    Status(status::Status),
    Top(top::Top),
    Class(class::Class),
    Admit(admit::Admit),
    Reserve(reserve::Reserve),
    Exec(exec::Exec),
    Doctor(doctor::Doctor),
    Lab(lab::Lab),
    Paper(lab::Paper),
    Why(why::Why),
    Metrics(metrics::Metrics),
    Net(net::Net),
    Disk(disk::Disk),
    Wake(memory::Wake),
    Completions(completions::Completions),
    #[command(hide = true)]
    KeepMemory(memory::Keep),
    Man(man::Man),
}

impl Command {
    /// Does it.
    pub fn run(self) -> Result<Status> {
        match self {
            Self::Run(command) => command.run(),
            Self::Status(command) => command.run(),
            Self::Top(command) => command.run(),
            Self::Class(command) => command.run(),
            Self::Admit(command) => command.run(),
            Self::Reserve(command) => command.run(),
            Self::Exec(command) => command.run(),
            Self::Doctor(command) => command.run(),
            Self::Lab(command) => command.run(),
            Self::Paper(command) => command.run(),
            Self::Why(command) => command.run(),
            Self::Metrics(command) => command.run(),
            Self::Net(command) => command.run(),
            Self::Disk(command) => command.run(),
            Self::Wake(command) => command.run(),
            Self::Completions(command) => command.run(),
            Self::KeepMemory(command) => command.run(),
            Self::Man(command) => command.run(),
        }
    }
}
