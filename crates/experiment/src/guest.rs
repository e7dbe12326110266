//! The laboratory's side in the virtual machine: a hidden subcommand that the guest's init runs as
//! root. It carries out one case under one scheduler and sends the result to the host.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use andante_job::LabError;
use andante_job::progress::At;
use andante_programs::assets;
use andante_result::SchedulerResult;
use andante_runner as runner;
use andante_runner::{Loading, Ready, Setup};
use andante_scenario::choice::Choice;
use andante_scenario::{DrawId, Scenario, Workload, perturb};
use serde::{Deserialize, Serialize};

const OUTPUT_PORT: &str = "/dev/virtio-ports/andante.out";
const PROGRESS_PORT: &str = "/dev/virtio-ports/andante.progress";
/// Fetches what lies there then; see the virtual machine's first program.
const RECEIVE: [&str; 3] = ["/andante/init", "receive", "order"];
/// The order of a machine that is ready (JSON), in the guest.
pub(crate) const ORDER_FILE: &str = "/andante/order.json";
/// In memory, so that no run waits for a disk.
const FOLDER: &str = "/tmp/andante";

/// What the host asks for first: all that the machine is made ready by.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ReadyOrder {
    /// `andante`, `eevdf`, `stock`, or the path of a program.
    pub scheduler: String,
    /// How it is loaded.
    pub loading: Loading,
}

/// What the host asks for of a machine that is ready; it may have been saved in the meantime.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct GuestOrder {
    /// The scenario's file.
    pub scenario: PathBuf,
    /// Lines of TOML laid over it.
    pub set: Vec<String>,
    /// Which of its cases.
    pub case: Option<String>,
    /// `andante`, `eevdf`, `stock`, or the path of a program.
    pub scheduler: String,
    /// Which of its perturbations.
    pub perturbation: Option<DrawId>,
    /// Whether virtual CPUs are threads of the host.
    pub parallel: bool,
}

/// What the host is sent.
#[derive(Debug, Serialize, Deserialize)]
pub enum GuestReply {
    /// The figures.
    Result(SchedulerResult),
    /// There are none.
    Failed {
        /// The scenario's program that is the cause, if one is.
        program: Option<String>,
        /// What happened.
        reason: String,
    },
}

impl GuestReply {
    /// What a reply that is no result means to the host.
    pub fn into_error(self) -> LabError {
        match self {
            Self::Failed {
                program: Some(name),
                reason,
            } => LabError::ProgramFailed { name, reason },
            Self::Failed {
                program: None,
                reason,
            } => LabError::NoResult { reason },
            Self::Result(_) => LabError::NoResult {
                reason: "it was not asked for this result".to_owned(),
            },
        }
    }
}

/// Makes the machine ready as `order` (JSON) says, receives what is to be done there, does it and sends the
/// reply; returns the exit status.
pub fn guest_main(order: &str) -> i32 {
    send(&carry_out(order).map_or_else(failed, GuestReply::Result))
}

/// The reply in which there are no figures.
pub fn failed(error: LabError) -> GuestReply {
    match error {
        LabError::ProgramFailed { name, reason } => GuestReply::Failed {
            program: Some(name),
            reason,
        },
        error => GuestReply::Failed {
            program: None,
            reason: error.to_string(),
        },
    }
}

/// Sends a reply to the host; returns the exit status.
pub fn send(reply: &impl Serialize) -> i32 {
    let json = serde_json::to_vec(reply).expect("replies are plain data");
    match OpenOptions::new()
        .write(true)
        .open(OUTPUT_PORT)
        .and_then(|mut p| p.write_all(&json))
    {
        Ok(()) => 0,
        Err(error) => {
            eprintln!(
                "{OUTPUT_PORT} cannot be written: {error}; this is only for use in the laboratory's virtual machine"
            );
            1
        }
    }
}

fn carry_out(order: &str) -> Result<SchedulerResult, LabError> {
    let order: ReadyOrder = read_json(order)?;
    let mut port = OpenOptions::new()
        .write(true)
        .open(Path::new(PROGRESS_PORT))
        .ok();
    let mut say = |progress: At| {
        if let Some(port) = &mut port {
            // Progress is a courtesy: a run does not fail for it.
            let _ = writeln!(port, "{}", format_progress(&progress));
        }
    };
    let choice = Choice::parse(&order.scheduler)?;
    let ready = Ready::make(&choice, &order.loading, &setup()?, &mut say)?;
    let (workload, choice, setup) = read_order(&received()?)?;
    runner::run_on(ready, &workload, &choice, &setup, &mut say)
}

/// The order that the host has for the machine when it is ready.
fn received() -> Result<GuestOrder, LabError> {
    let [program, arguments @ ..] = RECEIVE;
    let status = std::process::Command::new(program).args(arguments).status();
    let status = status.map_err(|e| LabError::io("receive the laboratory's order", e))?;
    if !status.success() {
        let reason =
            format!("the laboratory's order cannot be received: {program} ended with {status}");
        return Err(LabError::NoResult { reason });
    }
    let text = std::fs::read_to_string(ORDER_FILE);
    read_json(&text.map_err(|e| LabError::file("read", ORDER_FILE, e))?)
}

fn read_json<'a, Order: Deserialize<'a>>(text: &'a str) -> Result<Order, LabError> {
    serde_json::from_str(text).map_err(|error| LabError::io("read the laboratory's order", error))
}

/// Where a case runs.
fn setup() -> Result<Setup, LabError> {
    let lab = std::env::current_exe().map_err(|e| LabError::io("find this binary", e))?;
    Ok(Setup {
        base_class: "/".to_owned(),
        folder: FOLDER.into(),
        assets: assets::IN_GUEST.into(),
        parallel: false,
        andante: lab.with_file_name("andante"),
        lab,
    })
}

/// The workload, scheduler and place that an order names.
pub fn read_order(order: &GuestOrder) -> Result<(Workload, Choice, Setup), LabError> {
    let scenario = Scenario::load(&order.scenario, &order.set)?;
    let mut cases = scenario.cases.into_iter();
    let case = cases.find(|case| case.name == order.case);
    let case = case.ok_or_else(|| LabError::NoScenario {
        name: format!(
            "{}/{}",
            scenario.key,
            order.case.as_deref().unwrap_or_default()
        ),
        hint: "the host asked for a case that the scenario does not have".to_owned(),
    })?;
    let workload = match order.perturbation {
        Some(id) => perturb::perturbed(&case.workload, id),
        None => case.workload,
    };
    let setup = Setup {
        parallel: order.parallel,
        ..setup()?
    };
    Ok((workload, Choice::parse(&order.scheduler)?, setup))
}

/// `3.500 measuring`, or `- booting` outside a measurement.
fn format_progress(progress: &At) -> String {
    match progress.at_s {
        Some(at_s) => format!("{at_s:.3} {}", progress.phase),
        None => format!("- {}", progress.phase),
    }
}

/// The other way round.
pub(crate) fn parse_progress(line: &str) -> At {
    let (at_s, phase) = line.split_once(' ').unwrap_or(("-", line));
    At {
        phase: phase.to_owned(),
        at_s: at_s.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_survives_the_port() {
        for (phase, at_s) in [("measuring", Some(-1.25)), ("filling the caches", None)] {
            let progress = At {
                phase: phase.to_owned(),
                at_s,
            };
            assert_eq!(parse_progress(&format_progress(&progress)), progress);
        }
    }
}
