//! Tasks: what the machine keeps of each.

use andante_core_sys::{Parameters, Rule};

use crate::Ns;
use crate::channel::ChannelId;
use crate::contracted::ContractId;
use crate::hierarchy::ClassId;
use crate::program::Program;

/// A task, numbered in the order of creation; ties go to the lower number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub u32);

/// Tasks that are told of and measured together: a program with the children it forks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstanceId(pub u32);

/// How a task is to be scheduled. Children inherit it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// Its class.
    pub class: ClassId,
    /// Nice value, -20 to 19.
    pub nice: i32,
    /// CPUs it may run on, one bit each; never 0.
    pub affinity: u64,
    /// What the historical policies know beside the nice value.
    pub priority: Priority,
    /// The contract it runs under, where there are contracts. Children do not inherit it.
    pub contract: Option<ContractId>,
}

/// A task's standing under the historical policies; see [`Parameters`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Priority {
    /// What the user asked for, or the real-time level.
    pub level: i32,
    /// In the real-time class.
    pub real_time: bool,
    /// With a quantum, where the real-time class has one only for those who want it.
    pub round_robin: bool,
}

impl Spec {
    /// An ordinary task of `class`, on any CPU.
    pub fn of(class: ClassId) -> Self {
        Self {
            class,
            nice: 0,
            affinity: u64::MAX,
            priority: Priority::default(),
            contract: None,
        }
    }

    pub(crate) fn parameters(&self) -> Parameters {
        Parameters {
            weight: self.weight(),
            nice: self.nice,
            priority: self.priority.level,
            real_time: self.priority.real_time,
            round_robin: self.priority.round_robin,
        }
    }

    /// The kernel's weight of a nice value: 1024 at 0, a factor of 1.25 per step.
    pub fn weight(&self) -> u32 {
        const WEIGHTS: [u32; 40] = [
            88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100,
            4904, 3906, 3121, 2501, 1991, 1586, 1277, 1024, 820, 655, 526, 423, 335, 272, 215, 172,
            137, 110, 87, 70, 56, 45, 36, 29, 23, 18, 15,
        ];
        WEIGHTS[(self.nice.clamp(-20, 19) + 20) as usize]
    }
}

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
