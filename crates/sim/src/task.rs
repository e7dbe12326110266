//! Tasks: what the machine keeps of each.

use andante_core_sys::Rule;

use crate::Ns;
use crate::channel::ChannelId;
use crate::program::Program;
use crate::spec::{InstanceId, Spec, TaskId};

/// Where a task is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Wants nothing: waits for `Task::wait`.
    Asleep,
    /// Wants to run.
    Queued,
    /// Runs on this CPU.
    Running(u8),
    /// Has ended.
    Dead,
}

/// What a task that is asleep waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// For nothing: it has work.
    Nothing,
    /// For the timer of this number.
    Timer(u32),
    /// For room in, or bytes from, a channel.
    Channel(ChannelId),
    /// For a child to end.
    Child,
}

/// What the machine looks at whenever it decides about a task: one cache line, since with many
/// tasks a decision costs what its cache misses cost. The rest is in [`Life`].
#[repr(align(64))]
pub(crate) struct Task {
    /// Work left of the present step [ns].
    pub work_ns: Ns,
    /// What a switch or a migration still costs before work goes on [ns].
    pub overhead_ns: Ns,
    /// CPUs it may run on, as its spec says.
    pub affinity: u64,
    /// None while it takes a step, and when it has ended.
    pub program: Option<Box<dyn Program>>,
    pub wait: Wait,
    pub instance: InstanceId,
    /// Its class, as its spec says.
    pub class: u16,
    pub state: State,
    pub last_cpu: u8,
    /// By which rule it was last chosen.
    pub rule: Rule,
    /// Suspended: does not run, whatever it waits for.
    pub stopped: bool,
    /// It has worked since it last slept: not sleeping is then the end of a job.
    pub worked: bool,
}

const _: () = assert!(size_of::<Task>() == 64);

/// What is looked at when a task forks or ends.
pub(crate) struct Life {
    pub spec: Spec,
    pub parent: Option<TaskId>,
    pub children_ended: u32,
}

impl Task {
    /// Asleep, on the CPU where it is to be looked for first.
    pub fn new(spec: &Spec, instance: InstanceId, last_cpu: u8, program: Box<dyn Program>) -> Self {
        Self {
            work_ns: 0,
            overhead_ns: 0,
            affinity: spec.affinity,
            program: Some(program),
            wait: Wait::Nothing,
            instance,
            class: u16::try_from(spec.class.0).expect("the tree has fewer classes"),
            state: State::Asleep,
            last_cpu,
            rule: Rule::SHARE,
            stopped: false,
            worked: false,
        }
    }

    pub fn may_run_on(&self, cpu: usize) -> bool {
        self.affinity & (1 << cpu) != 0
    }
}
