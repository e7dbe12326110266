//! The scheduler under test: put in charge, watched, and put out again.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use andante_job::{LabError, stop};
use andante_programs::clock;
use andante_scenario::Workload;
use andante_scenario::choice::Choice;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use super::Setup;
use super::process::last_line;

/// A large scheduler takes more than a minute of virtual time to be verified.
const LOAD_TIMEOUT_S: f64 = 300.0;
/// How long a scheduler may take to leave after SIGTERM.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(2);
const STATE_FILE: &str = "/sys/kernel/sched_ext/state";

/// What Andante is told when it is loaded: all that this depends on of a workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Loading {
    learn_percent: Option<u32>,
    learn_memory_percent: Option<u32>,
    domain_cpus: Option<u32>,
    binding: bool,
    leave_percent: Option<u32>,
    /// As `--events` has them.
    events: Option<String>,
}

impl Loading {
    /// What `workload` says.
    pub fn of(workload: &Workload) -> Self {
        Self {
            learn_percent: workload.learn_percent,
            learn_memory_percent: workload.learn_memory_percent,
            domain_cpus: workload.domain_cpus,
            binding: workload.binding,
            leave_percent: workload.contracts.leave_percent,
            events: workload.contracts.events.map(|rules| rules.to_string()),
        }
    }

    /// Says what holds for all contracts.
    fn of_contracts(&self, command: &mut Command) {
        if let Some(percent) = self.leave_percent {
            command.args(["--leave", &percent.to_string()]);
        }
        if let Some(rules) = &self.events {
            command.arg(format!("--events={rules}"));
        }
    }
}

/// A scheduler in charge; dropping it puts the stock scheduler back.
pub(super) struct InCharge {
    name: String,
    child: Child,
    output: PathBuf,
    /// From its start to its being in charge [ms].
    pub load_ms: f64,
}

impl InCharge {
    /// Starts the scheduler and waits until it is in charge; none for the stock scheduler.
    ///
    /// # Errors
    /// If another one is loaded, or if it ends or takes too long.
    pub fn start(
        choice: &Choice,
        loading: &Loading,
        setup: &Setup,
    ) -> Result<Option<Self>, LabError> {
        let mut command = match choice {
            Choice::Andante => {
                let mut command = Command::new(&setup.andante);
                command.args(["run", "--quiet"]);
                if let Some(percent) = loading.learn_percent {
                    command.arg(format!("--learn={percent}"));
                }
                if let Some(percent) = loading.learn_memory_percent {
                    command.arg(format!("--learn-memory={percent}"));
                }
                if let Some(cpus) = loading.domain_cpus {
                    command.args(["--domain-cpus", &cpus.to_string()]);
                }
                if !loading.binding {
                    command.arg("--no-binding");
                }
                loading.of_contracts(&mut command);
                command
            }
            Choice::Dwcs => {
                let mut command = Command::new(&setup.andante);
                command.args(["run", "--quiet", "--policy", "dwcs"]);
                loading.of_contracts(&mut command);
                command
            }
            Choice::Historical(policy) => {
                let mut command = Command::new(&setup.andante);
                command.args(["run", "--quiet", "--policy", policy.name()]);
                command
            }
            Choice::Program(file) => Command::new(file),
            Choice::Policy(_) | Choice::Containers(_) | Choice::Servers => {
                unreachable!("refused before anything is run")
            }
            Choice::Eevdf | Choice::Stock | Choice::ByHand(_) => {
                return match state().as_deref() {
                    None | Some("disabled") => Ok(None),
                    Some(state) => Err(other_in_charge(&choice.name(), state)),
                };
            }
        };
        let name = choice.name();
        match state().as_deref() {
            Some("disabled") => {}
            Some(state) => return Err(other_in_charge(&name, state)),
            None => {
                let reason =
                    "this kernel has no sched_ext; use `--on vm`, which brings one".to_owned();
                return Err(LabError::SchedulerFailed { name, reason });
            }
        }
        let output = setup.folder.join("scheduler.out");
        let log = fs::File::create(&output).map_err(|e| LabError::file("create", &output, e))?;
        let log_too = log
            .try_clone()
            .map_err(|e| LabError::file("open", &output, e))?;
        command.stdin(Stdio::null()).stdout(log).stderr(log_too);
        let start_ns = clock::now_ns();
        let child = command.spawn().map_err(|error| LabError::SchedulerFailed {
            name: name.clone(),
            reason: format!(
                "{} cannot be started: {error}",
                command.get_program().display()
            ),
        })?;
        let mut started = Self {
            name,
            child,
            output,
            load_ms: 0.0,
        };
        started.wait_until_in_charge(start_ns)?;
        Ok(Some(started))
    }

    /// Of its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    fn wait_until_in_charge(&mut self, start_ns: u64) -> Result<(), LabError> {
        loop {
            let elapsed_ns = clock::now_ns() - start_ns;
            if state().as_deref() == Some("enabled") {
                self.load_ms = elapsed_ns as f64 / 1e6;
                return Ok(());
            }
            let ended = self.child.try_wait().map_err(|e| LabError::io("wait", e))?;
            let fail = |reason| {
                Err(LabError::SchedulerFailed {
                    name: self.name.clone(),
                    reason,
                })
            };
            if let Some(status) = ended {
                return fail(
                    self.last_words()
                        .unwrap_or_else(|| format!("it ended with {status}")),
                );
            }
            if elapsed_ns as f64 / clock::NS_PER_S > LOAD_TIMEOUT_S {
                return fail(format!("it was not loaded within {LOAD_TIMEOUT_S} s"));
            }
            if stop::requested() {
                return Err(LabError::Interrupted);
            }
            std::thread::sleep(POLL);
        }
    }

    /// Why the scheduler is no longer in charge; none while it is.
    pub fn ejected(&mut self) -> Option<String> {
        match state().as_deref() {
            Some("enabled") => None,
            state => Some(self.last_words().unwrap_or_else(|| {
                format!(
                    "the kernel's sched_ext state is `{}`",
                    state.unwrap_or("unknown")
                )
            })),
        }
    }

    fn last_words(&self) -> Option<String> {
        last_line(&self.output)
    }
}

impl Drop for InCharge {
    fn drop(&mut self) {
        let _ = kill(Pid::from_raw(self.child.id() as i32), Signal::SIGTERM);
        let start = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) {
            if start.elapsed() > LEAVE_TIMEOUT {
                // The kernel puts the stock scheduler back when the program's files are closed.
                let _ = self.child.kill();
                let _ = self.child.wait();
                break;
            }
            std::thread::sleep(POLL);
        }
    }
}

/// `disabled`, `enabled`, or on the way; none if the kernel has no sched_ext.
fn state() -> Option<String> {
    fs::read_to_string(STATE_FILE)
        .ok()
        .map(|text| text.trim().to_owned())
}

fn other_in_charge(name: &str, state: &str) -> LabError {
    let ops = fs::read_to_string("/sys/kernel/sched_ext/root/ops").unwrap_or_default();
    let reason = format!(
        "another scheduler ({}) is {state}: end the program that loaded it",
        if ops.trim().is_empty() {
            "unknown"
        } else {
            ops.trim()
        }
    );
    LabError::SchedulerFailed {
        name: name.to_owned(),
        reason,
    }
}
