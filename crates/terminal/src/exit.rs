//! Exit statuses: what each one means, and which error leads to which.

use std::process::ExitCode;

use andante_daemon::{ClientError, FaultKind};
use andante_disk::DiskError;
use andante_net::NetError;
use andante_net::receive::ReceiveError;
use andante_sched::class::ClassError;
use andante_sched::doctor::Obstacle;
use andante_sched::{LoadError, StateError};

/// How the command ended, as a script sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Everything was done.
    Ok,
    /// Something failed that has no status of its own.
    Failure,
    /// The command line was wrong.
    Usage,
    /// The caller lacks the privilege.
    NotPermitted,
    /// The kernel has no sched_ext.
    NoSchedExt,
    /// The kernel's type information is broken.
    BrokenBtf,
    /// The kernel was built with PREEMPT_RT, and refuses BPF timers.
    PreemptRt,
    /// Something else about this kernel or its command line stands in the way.
    UnfitKernel,
    /// A sched_ext scheduler is loaded already.
    OtherScheduler,
    /// Andante is not loaded.
    NotLoaded,
    /// The kernel ejected the scheduler.
    Ejected,
    /// There is no such class.
    UnknownClass,
    /// The class exists already.
    ClassExists,
    /// The class holds tasks or classes.
    ClassBusy,
    /// The weight is out of range.
    BadWeight,
    /// There is no such process.
    NoProcess,
    /// The process is a kernel thread.
    KernelThread,
    /// The machine runs cgroup v1, or version 2 is not mounted.
    CgroupV1,
    /// cgroup v2 has no cpu controller.
    NoCpuController,
    /// The scenario cannot be read or run.
    BadScenario,
    /// A scenario's expectation was not met.
    ExpectationFailed,
    /// A program the laboratory needs is not installed.
    MissingTool,
    /// The laboratory itself is not installed.
    NoLaboratory,
    /// A program of the scenario could not be started or ended early.
    ProgramFailed,
    /// The virtual machine could not be made or did not run to its end.
    NoMachine,
    /// A contract is refused.
    ContractRefused,
    /// The file of contracts cannot be read, or what is asked makes no sense.
    BadContracts,
    /// The holder has a contract already, or its name is taken.
    ContractExists,
    /// There is no such contract.
    UnknownContract,
    /// The configuration cannot be read, or makes no sense.
    BadConfig,
    /// Andante has no room: the caller asks for too much at once, or a table is full.
    NoRoom,
    /// There is no such device, or Andante is not on it.
    NoDevice,
    /// A network device has another queueing discipline, nobody knows what it sends, or its packets cannot be placed; a
    /// disk is in use, or cannot be attached.
    UnfitDevice,
    /// The program to execute could not be started.
    NotExecutable,
    /// The program to execute was not found.
    NotFound,
    /// Ended by ^C before it was done.
    Interrupted,
    /// The executed program's own status.
    Program(u8),
}

impl Status {
    /// Every status with a fixed number, and its meaning.
    const ALL: &[(Self, &str)] = &[
        (Self::Ok, "done"),
        (
            Self::Failure,
            "failed for a reason without a status of its own",
        ),
        (Self::Usage, "the command line is wrong"),
        (Self::NotPermitted, "not root, or not permitted"),
        (Self::NoSchedExt, "this kernel has no sched_ext"),
        (
            Self::BrokenBtf,
            "this kernel's type information (BTF) is broken or missing",
        ),
        (
            Self::UnfitKernel,
            "kernel too old, its BPF verifier at fault, BPF or its JIT off, or CPUs isolated",
        ),
        (
            Self::OtherScheduler,
            "a sched_ext scheduler is loaded already",
        ),
        (Self::NotLoaded, "Andante is not loaded"),
        (Self::Ejected, "the kernel ejected the scheduler"),
        (Self::UnknownClass, "there is no such class"),
        (Self::ClassExists, "the class exists already"),
        (Self::ClassBusy, "the class holds tasks or classes"),
        (Self::BadWeight, "weight outside 1 to 10000"),
        (Self::NoProcess, "there is no such process"),
        (
            Self::KernelThread,
            "a kernel thread cannot be moved, nor hold a contract",
        ),
        (
            Self::CgroupV1,
            "cgroup v1 only, or version 2 is not mounted",
        ),
        (Self::NoCpuController, "cgroup v2 has no cpu controller"),
        (
            Self::BadScenario,
            "the scenario, paper or file of figures cannot be read or run",
        ),
        (
            Self::ExpectationFailed,
            "an expectation of the scenario was not met, or figures are not as recorded or published",
        ),
        (
            Self::MissingTool,
            "a program the laboratory needs is not installed",
        ),
        (
            Self::ProgramFailed,
            "a program of the scenario could not be started or ended early",
        ),
        (
            Self::NoMachine,
            "the virtual machine could not be made or did not run to its end",
        ),
        (
            Self::ContractRefused,
            "a contract is refused; what would do instead is said",
        ),
        (
            Self::BadContracts,
            "a contract makes no sense, or the file of contracts cannot be read",
        ),
        (
            Self::ContractExists,
            "the holder has a contract already, or its name is taken",
        ),
        (Self::UnknownContract, "there is no such contract"),
        (
            Self::BadConfig,
            "the configuration cannot be read, or makes no sense",
        ),
        (
            Self::NoRoom,
            "Andante has no room: a table is full, or too much is asked at once",
        ),
        (
            Self::PreemptRt,
            "the kernel was built with PREEMPT_RT, and refuses BPF timers",
        ),
        (
            Self::NoLaboratory,
            "the laboratory (`andante-lab`) is not installed",
        ),
        (
            Self::NoDevice,
            "there is no such device, or Andante is not on it",
        ),
        (
            Self::UnfitDevice,
            "a device or file is another's already or unfit, nobody knows what it sends, or no thread takes its packets",
        ),
        (Self::NotExecutable, "exec: the program cannot be started"),
        (Self::NotFound, "exec: the program was not found"),
        (Self::Interrupted, "ended by ^C before it was done"),
    ];

    /// The number the shell sees.
    pub fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Failure => 1,
            Self::Usage => 2,
            Self::NotPermitted => 3,
            Self::NoSchedExt => 4,
            Self::BrokenBtf => 5,
            Self::UnfitKernel => 6,
            Self::OtherScheduler => 7,
            Self::NotLoaded => 8,
            Self::Ejected => 9,
            Self::UnknownClass => 10,
            Self::ClassExists => 11,
            Self::ClassBusy => 12,
            Self::BadWeight => 13,
            Self::NoProcess => 14,
            Self::KernelThread => 15,
            Self::CgroupV1 => 16,
            Self::NoCpuController => 17,
            Self::BadScenario => 18,
            Self::ExpectationFailed => 19,
            Self::MissingTool => 20,
            Self::ProgramFailed => 21,
            Self::NoMachine => 22,
            Self::ContractRefused => 23,
            Self::BadContracts => 24,
            Self::ContractExists => 25,
            Self::UnknownContract => 26,
            Self::BadConfig => 27,
            Self::NoRoom => 28,
            Self::PreemptRt => 29,
            Self::NoLaboratory => 30,
            Self::NoDevice => 31,
            Self::UnfitDevice => 32,
            Self::NotExecutable => 126,
            Self::NotFound => 127,
            Self::Interrupted => 130,
            Self::Program(code) => code,
        }
    }
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> Self {
        Self::from(status.code())
    }
}

impl From<Obstacle> for Status {
    fn from(obstacle: Obstacle) -> Self {
        match obstacle {
            Obstacle::OldKernel | Obstacle::NoBpf | Obstacle::IsolatedCpus => Self::UnfitKernel,
            Obstacle::NoSchedExt => Self::NoSchedExt,
            Obstacle::PreemptRt => Self::PreemptRt,
            Obstacle::BrokenBtf => Self::BrokenBtf,
            Obstacle::CgroupV1 => Self::CgroupV1,
            Obstacle::NoCpuController => Self::NoCpuController,
            Obstacle::OtherScheduler => Self::OtherScheduler,
            Obstacle::NotRoot => Self::NotPermitted,
            Obstacle::MissingTool => Self::MissingTool,
        }
    }
}

impl From<&ClassError> for Status {
    fn from(error: &ClassError) -> Self {
        match error {
            ClassError::Unknown(_) => Self::UnknownClass,
            ClassError::Exists(_) => Self::ClassExists,
            ClassError::BadPath { .. } | ClassError::IsRoot { .. } => Self::Usage,
            ClassError::BadWeight(_) => Self::BadWeight,
            ClassError::PolicyOfInner { .. }
            | ClassError::HoldsTasks { .. }
            | ClassError::HoldsChildren { .. }
            | ClassError::ParentHoldsTasks { .. }
            | ClassError::InnerClass(_)
            | ClassError::Invalid(_)
            | ClassError::NotThreaded(_) => Self::ClassBusy,
            ClassError::KernelThread { .. } => Self::KernelThread,
            ClassError::NoProcess(_) => Self::NoProcess,
            ClassError::NotPermitted { .. } => Self::NotPermitted,
            ClassError::CgroupV1 | ClassError::NoCgroup2 => Self::CgroupV1,
            ClassError::NoCpuController => Self::NoCpuController,
            ClassError::Io { .. } => Self::Failure,
        }
    }
}

impl From<&LoadError> for Status {
    fn from(error: &LoadError) -> Self {
        match error {
            LoadError::Verifier { .. } => Self::UnfitKernel,
            LoadError::EventsOfDomains(_) => Self::Usage,
            LoadError::TooManyCpus(_) | LoadError::Refused { .. } => Self::Failure,
        }
    }
}

impl From<&NetError> for Status {
    fn from(error: &NetError) -> Self {
        match error {
            NetError::NotRoot => Self::NotPermitted,
            NetError::OldKernel => Self::UnfitKernel,
            NetError::NoDevice(_) | NetError::NotAttached(_) | NetError::Nowhere => Self::NoDevice,
            NetError::Several(_) => Self::Usage,
            NetError::Promised { .. } => Self::ContractExists,
            NetError::NoProcess(_) => Self::NoProcess,
            NetError::NoRate { .. }
            | NetError::Taken { .. }
            | NetError::Links(_)
            | NetError::NoContracts(_) => Self::UnfitDevice,
            NetError::Contract(_) => Self::BadContracts,
            NetError::OtherBuild(_) => Self::OtherScheduler,
            NetError::NoBpfFs(_)
            | NetError::Contained
            | NetError::Kernel { .. }
            | NetError::Netlink { .. }
            | NetError::File { .. } => Self::Failure,
        }
    }
}

impl From<&ReceiveError> for Status {
    fn from(error: &ReceiveError) -> Self {
        match error {
            ReceiveError::NotRoot => Self::NotPermitted,
            ReceiveError::OldKernel(_) => Self::UnfitKernel,
            ReceiveError::NoDevice(_) => Self::NoDevice,
            ReceiveError::Down(_)
            | ReceiveError::NoNapi(_)
            | ReceiveError::NoThreads(_)
            | ReceiveError::Taken { .. }
            | ReceiveError::Driver { .. } => Self::UnfitDevice,
            ReceiveError::Class { .. } => Self::ClassBusy,
            ReceiveError::System { .. } | ReceiveError::Kernel { .. } => Self::Failure,
        }
    }
}

impl From<&DiskError> for Status {
    fn from(error: &DiskError) -> Self {
        match error {
            DiskError::NotRoot => Self::NotPermitted,
            DiskError::NoUblk | DiskError::OldUblk | DiskError::NoRings(_) => Self::UnfitKernel,
            DiskError::NotFound(_) | DiskError::NotAttached(_) => Self::NoDevice,
            DiskError::NoBacking(_)
            | DiskError::Empty(_)
            | DiskError::OddSize { .. }
            | DiskError::LargeBlocks { .. }
            | DiskError::NotDirect(_)
            | DiskError::NotWritable(_)
            | DiskError::BackingInUse { .. }
            | DiskError::Attached { .. }
            | DiskError::OtherSize { .. }
            | DiskError::InUse { .. }
            | DiskError::NotOrdered(_)
            | DiskError::Waiting { .. } => Self::UnfitDevice,
            DiskError::Contract(_) => Self::BadContracts,
            DiskError::Io { .. } => Self::Failure,
        }
    }
}

impl From<&StateError> for Status {
    fn from(error: &StateError) -> Self {
        match error {
            StateError::NotLoaded => Self::NotLoaded,
            StateError::NotPermitted => Self::NotPermitted,
            StateError::OtherBuild => Self::OtherScheduler,
            StateError::NoClasses(error) => error.into(),
            StateError::Read(_) => Self::Failure,
        }
    }
}

impl From<&ClientError> for Status {
    fn from(error: &ClientError) -> Self {
        match error {
            ClientError::NoDaemon(_) | ClientError::Historical(_) => Self::NotLoaded,
            ClientError::NotPermitted(_) => Self::NotPermitted,
            ClientError::Version(_) => Self::OtherScheduler,
            ClientError::Broken(_) => Self::Failure,
            ClientError::Fault(fault) => match fault.kind {
                FaultKind::BadTerms => Self::BadContracts,
                FaultKind::NotPermitted => Self::NotPermitted,
                FaultKind::NoProcess => Self::NoProcess,
                FaultKind::KernelThread => Self::KernelThread,
                FaultKind::Unschedulable => Self::ContractRefused,
                FaultKind::UnknownClass => Self::UnknownClass,
                FaultKind::Taken => Self::ContractExists,
                FaultKind::NoContract => Self::UnknownContract,
                FaultKind::Full | FaultKind::Busy => Self::NoRoom,
                FaultKind::BadRequest | FaultKind::Failed => Self::Failure,
            },
        }
    }
}

/// A refusal of the command line itself: one sentence, and the status to leave with.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    status: Status,
    message: String,
}

impl Refusal {
    /// Refuses with `message`, which names the cause and the mend.
    pub fn new(status: Status, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
        }
    }
}

/// The status to leave with after an error.
pub fn status_of(error: &anyhow::Error) -> Status {
    if let Some(refusal) = error.downcast_ref::<Refusal>() {
        refusal.status
    } else if let Some(error) = error.downcast_ref::<ClassError>() {
        error.into()
    } else if let Some(error) = error.downcast_ref::<LoadError>() {
        error.into()
    } else if let Some(error) = error.downcast_ref::<StateError>() {
        error.into()
    } else if let Some(error) = error.downcast_ref::<ClientError>() {
        error.into()
    } else if let Some(error) = error.downcast_ref::<NetError>() {
        error.into()
    } else if let Some(error) = error.downcast_ref::<ReceiveError>() {
        error.into()
    } else if let Some(error) = error.downcast_ref::<DiskError>() {
        error.into()
    } else {
        Status::Failure
    }
}

/// The table of statuses for `--help` and the manual page, after `before`. It is one for both commands:
/// `andante lab` ends as `andante-lab` does.
pub fn help(before: &str) -> String {
    let lines: Vec<_> = Status::ALL
        .iter()
        .map(|(status, meaning)| format!("  {:>3}  {meaning}", status.code()))
        .collect();
    format!("{before}\n\nExit status:\n{}", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_two_statuses_share_a_number() {
        let numbers: HashSet<_> = Status::ALL
            .iter()
            .map(|(status, _)| status.code())
            .collect();
        assert_eq!(numbers.len(), Status::ALL.len());
    }

    /// A loop of restarts fills the journal, and mends nothing.
    #[test]
    fn the_unit_is_not_restarted_for_what_a_restart_cannot_mend() {
        let unit = include_str!("../../../dist/andante.service");
        let line = unit
            .lines()
            .find_map(|line| line.strip_prefix("RestartPreventExitStatus="))
            .unwrap();
        let listed: HashSet<u8> = line
            .split_whitespace()
            .map(|n| n.parse().unwrap())
            .collect();
        let obstacles = [
            Obstacle::OldKernel,
            Obstacle::NoSchedExt,
            Obstacle::PreemptRt,
            Obstacle::BrokenBtf,
            Obstacle::NoBpf,
            Obstacle::CgroupV1,
            Obstacle::NoCpuController,
            Obstacle::IsolatedCpus,
            Obstacle::OtherScheduler,
            Obstacle::NotRoot,
        ];
        let statuses = obstacles.map(Status::from);
        for status in statuses.iter().chain(&[Status::Usage, Status::BadConfig]) {
            assert!(listed.contains(&status.code()), "{status:?}");
        }
        assert!(!listed.contains(&Status::Ejected.code()));
    }

    #[test]
    fn errors_keep_their_status_on_the_way_up() {
        let error = anyhow::Error::from(ClassError::BadWeight(0)).context("while creating");
        assert_eq!(status_of(&error), Status::BadWeight);
        let refusal = anyhow::Error::from(Refusal::new(Status::Ejected, "ejected"));
        assert_eq!(status_of(&refusal), Status::Ejected);
        let verifier = LoadError::Verifier {
            program: "andante_init".into(),
            words: "verifier bug".into(),
        };
        assert_eq!(status_of(&verifier.into()), Status::UnfitKernel);
    }
}
