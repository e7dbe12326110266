//! `andante-lab`, the laboratory's command line: runs scenarios and papers, sweeps families, records figures.
//!
//! The work is done below, each crate over those before it: `andante_result` (what a run leaves),
//! `andante_scenario` (what to run), `andante_job` (one piece of it), `andante_judge` and `andante_report`;
//! `andante_programs` and `andante_runner` carry a job out on a kernel, `andante_simulated` in the simulator;
//! `andante_experiment` has either done for a whole scenario. `andante_sweep`, `andante_paper`,
//! `andante_costs` and `andante_recorded` each ask for many.
//!
//! `andante lab` starts this program, and `andante` knows nothing of it but its name. A virtual machine is
//! given both.

mod commands;
mod exit;
mod frames;

use std::process::ExitCode;

use andante_terminal::output;
use clap::{CommandFactory, Parser};

/// Does what the command line says.
pub fn main() -> ExitCode {
    match commands::Lab::parse().run() {
        Ok(status) => status.into(),
        Err(error) => {
            output::error(&error);
            exit::status_of(&error).into()
        }
    }
}

/// The command line, for those who check what pages show of it.
pub fn command() -> clap::Command {
    commands::Lab::command()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_line_is_consistent() {
        super::command().debug_assert();
    }
}
