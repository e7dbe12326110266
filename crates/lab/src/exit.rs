//! Which of the laboratory's errors leads to which exit status.

use andante_job::LabError;
use andante_terminal::exit::{self, Status};

/// The status to leave with after an error.
pub(crate) fn status_of(error: &anyhow::Error) -> Status {
    match error.downcast_ref::<LabError>() {
        Some(error) => status_of_lab(error),
        None => exit::status_of(error),
    }
}

fn status_of_lab(error: &LabError) -> Status {
    match error {
        LabError::NoScenario { .. }
        | LabError::NoFamily { .. }
        | LabError::NoPaper { .. }
        | LabError::NoFigures { .. }
        | LabError::Scenario(_)
        | LabError::NoRoom { .. } => Status::BadScenario,
        LabError::NoContract { .. } => Status::ContractRefused,
        LabError::MissingTool { .. } => Status::MissingTool,
        LabError::NoScheduler(_)
        | LabError::NoReference { .. }
        | LabError::NotTuned { .. }
        | LabError::OnlyOnKernel { .. }
        | LabError::OnlyInVm { .. }
        | LabError::OnlySimulated { .. }
        | LabError::OnlyServers { .. }
        | LabError::OneCpu { .. }
        | LabError::Shell(_) => Status::Usage,
        LabError::Ejected { .. } => Status::Ejected,
        LabError::ProgramFailed { .. } => Status::ProgramFailed,
        LabError::ExpectationsFailed { .. }
        | LabError::PapersDeviate { .. }
        | LabError::FiguresDiffer { .. }
        | LabError::NotRecorded { .. } => Status::ExpectationFailed,
        LabError::NotRoot => Status::NotPermitted,
        LabError::Class(error) => error.into(),
        LabError::Kernel(_)
        | LabError::Qemu(_)
        | LabError::Image(_)
        | LabError::Boot(_)
        | LabError::NoResult { .. } => Status::NoMachine,
        LabError::BeganLate { .. }
        | LabError::SchedulerFailed { .. }
        | LabError::NotComputed { .. }
        | LabError::Broken { .. }
        | LabError::NoFilm { .. }
        | LabError::Cache(_)
        | LabError::Io { .. } => Status::Failure,
        LabError::Unfinished { source: cause, .. } | LabError::Draw { cause, .. } => {
            status_of_lab(cause)
        }
        LabError::Interrupted | LabError::SweepInterrupted { .. } => Status::Interrupted,
    }
}
