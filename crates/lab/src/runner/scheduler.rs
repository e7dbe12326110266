//! The scheduler under test: put in charge, watched, and put out again.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use andante_sched::Policy;
use andante_sim::PolicyKind;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::Setup;
use super::process::last_line;
use super::tuning::ByHand;
use crate::error::LabError;
use crate::scenario::Workload;
use crate::{clock, stop};

/// A large scheduler takes more than a minute of virtual time to be verified.
const LOAD_TIMEOUT_S: f64 = 300.0;
/// How long a scheduler may take to leave after SIGTERM.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(2);
const STATE_FILE: &str = "/sys/kernel/sched_ext/state";

/// Which scheduler to run a scenario under.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// Ours.
    Andante,
    /// Ours with plain DWCS: contracts are given without admission.
    Dwcs,
    /// A historical policy in the kernel, for all tasks.
    Historical(Policy),
    /// The kernel's own, over the scenario's classes and weights.
    Eevdf,
    /// The kernel's own with nothing configured: the classes have no weights, and no part in
    /// scheduling. What a machine does as it comes.
    Stock,
    /// The kernel's own over the classes and weights, tuned by hand for the programs that the scenario
    /// marks as `tuned`.
    ByHand(ByHand),
    /// Every task in one class, under this policy: only in the simulator.
    Policy(PolicyKind),
    /// Resource containers, one for each class, as published (`true`: turns end at clock ticks) or
    /// exact: only in the simulator.
    Containers(bool),
    /// A program that loads a sched_ext scheduler and stays until SIGTERM.
    Program(PathBuf),
}

/// The historical policies of a kernel, as results call them.
const HISTORICAL: [(&str, Policy); Policy::ALL.len()] = [
    ("andante-svr4-ts", Policy::Svr4Ts),
    ("andante-svr4-rt", Policy::Svr4Rt),
    ("andante-svr4-new", Policy::Svr4New),
    ("andante-linux-2.2", Policy::Linux22),
    ("andante-fifo", Policy::Fifo),
    ("andante-rr", Policy::RoundRobin),
];

impl Choice {
    /// Names of those that a kernel has without further programs.
    pub const OF_KERNEL: [&'static str; 15] = {
        let by_hand = ByHand::ALL;
        [
            "andante",
            "eevdf",
            "stock",
            by_hand[0].0,
            by_hand[1].0,
            by_hand[2].0,
            by_hand[3].0,
            by_hand[4].0,
            HISTORICAL[0].0,
            HISTORICAL[1].0,
            HISTORICAL[2].0,
            HISTORICAL[3].0,
            HISTORICAL[4].0,
            HISTORICAL[5].0,
            "andante-dwcs",
        ]
    };

    /// The one that Andante brings along or every kernel has, of a kernel's or of the simulator's.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "andante" => Some(Self::Andante),
            "andante-dwcs" => Some(Self::Dwcs),
            "eevdf" => Some(Self::Eevdf),
            "stock" => Some(Self::Stock),
            "containers" => Some(Self::Containers(false)),
            "containers-ticked" => Some(Self::Containers(true)),
            _ => {
                let historical = HISTORICAL.iter().find(|(known, _)| *known == name);
                ByHand::named(name)
                    .map(Self::ByHand)
                    .or_else(|| PolicyKind::named(name).map(Self::Policy))
                    .or_else(|| historical.map(|(_, policy)| Self::Historical(*policy)))
            }
        }
    }

    /// Reads one of [`Choice::OF_KERNEL`], the name of a simulated policy, or the path of a program.
    ///
    /// # Errors
    /// If it is none of these.
    pub fn parse(name: &str) -> Result<Self, LabError> {
        if let Some(known) = Self::named(name) {
            return Ok(known);
        }
        match fs::canonicalize(name) {
            Ok(file) if file.is_file() => Ok(Self::Program(file)),
            _ => Err(LabError::NoScheduler {
                name: name.to_owned(),
            }),
        }
    }

    /// What a kernel has of a policy that the simulator gives to all tasks.
    pub fn of_kernel(simulated: PolicyKind) -> Self {
        match simulated {
            PolicyKind::Sfq => Self::Andante,
            PolicyKind::Fair => Self::Stock,
            PolicyKind::Fifo => Self::Historical(Policy::Fifo),
            PolicyKind::RoundRobin => Self::Historical(Policy::RoundRobin),
            PolicyKind::Svr4 => Self::Historical(Policy::Svr4Ts),
            PolicyKind::Svr4New => Self::Historical(Policy::Svr4New),
            PolicyKind::Linux22 => Self::Historical(Policy::Linux22),
        }
    }

    /// Whether contracts can be had under it.
    pub fn keeps_contracts(&self) -> bool {
        matches!(self, Self::Andante | Self::Dwcs)
    }

    /// As results call it.
    pub fn name(&self) -> String {
        match self {
            Self::Andante => "andante".to_owned(),
            Self::Dwcs => "andante-dwcs".to_owned(),
            Self::Historical(policy) => format!("andante-{}", policy.name()),
            Self::Eevdf => "eevdf".to_owned(),
            Self::Stock => "stock".to_owned(),
            Self::ByHand(by_hand) => by_hand.name().to_owned(),
            Self::Policy(kind) => kind.name().to_owned(),
            Self::Containers(false) => "containers".to_owned(),
            Self::Containers(true) => "containers-ticked".to_owned(),
            Self::Program(file) => file.file_name().map_or_else(
                || file.display().to_string(),
                |n| n.to_string_lossy().into_owned(),
            ),
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
        workload: &Workload,
        setup: &Setup,
    ) -> Result<Option<Self>, LabError> {
        let mut command = match choice {
            Choice::Andante => {
                let mut command = Command::new(&setup.andante);
                command.args(["run", "--quiet"]);
                if let Some(percent) = workload.learn_percent {
                    command.arg(format!("--learn={percent}"));
                }
                if !workload.binding {
                    command.arg("--no-binding");
                }
                if let Some(percent) = workload.leave_percent {
                    command.args(["--leave", &percent.to_string()]);
                }
                command
            }
            Choice::Dwcs => {
                let mut command = Command::new(&setup.andante);
                command.args(["run", "--quiet", "--policy", "dwcs"]);
                if let Some(percent) = workload.leave_percent {
                    command.args(["--leave", &percent.to_string()]);
                }
                command
            }
            Choice::Historical(policy) => {
                let mut command = Command::new(&setup.andante);
                command.args(["run", "--quiet", "--policy", policy.name()]);
                command
            }
            Choice::Program(file) => Command::new(file),
            Choice::Policy(_) | Choice::Containers(_) => {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::scheduler_title;

    #[test]
    fn each_historical_policy_has_a_name() {
        for (name, policy) in HISTORICAL {
            let choice = Choice::parse(name).unwrap();
            assert_eq!(choice, Choice::Historical(policy));
            assert_eq!(choice.name(), name);
            assert!(Choice::OF_KERNEL.contains(&name));
        }
    }

    #[test]
    fn each_scheduler_that_is_at_hand_has_a_title() {
        for name in Choice::OF_KERNEL {
            assert_eq!(Choice::named(name).unwrap().name(), name);
            assert_ne!(scheduler_title(name), name);
        }
        assert_eq!(Choice::named("scx_bpfland"), None);
    }
}
