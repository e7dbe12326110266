//! A machine made ready for a workload, on which its programs are started.

use std::path::Path;

use andante_job::LabError;
use andante_scenario::choice::Choice;
use andante_scenario::{Program, Workload};

use super::Setup;
use super::classes::Classes;
use super::network::Networks;
use super::process::{CommandLine, Process, Start};
use super::tuning::Scheduling;

/// A machine made ready for a workload.
pub(super) struct Prepared<'a> {
    pub workload: &'a Workload,
    pub choice: &'a Choice,
    pub setup: &'a Setup,
    pub classes: &'a Classes,
    pub networks: &'a Networks,
    /// The disk that programs read.
    pub disk: Option<&'a Path>,
    /// See [`andante_programs::work`].
    pub steps_per_ms: f64,
}

impl Prepared<'_> {
    /// The address of the network that the program of this name is in.
    pub fn address_of(&self, name: &str) -> String {
        let mut programs = self.workload.programs.iter();
        let program = programs.find(|program| program.name == name);
        let network = program.and_then(|program| program.network.as_deref());
        self.networks.address(network)
    }

    /// Starts `command` as `program` says, to work in `folder`.
    pub fn spawn(
        &self,
        program: &Program,
        command: CommandLine,
        folder: &Path,
    ) -> Result<Process, LabError> {
        let procs_file = self.classes.procs_file_of(program);
        Process::start(&Start {
            command,
            program,
            scheduling: Scheduling::of(self.choice, program),
            procs_file,
            network: self.networks.of(program)?,
            folder: folder.to_owned(),
        })
    }
}
