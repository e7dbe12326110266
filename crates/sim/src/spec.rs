//! Tasks, classes and contracts by their numbers, and how a task is to be scheduled.

use andante_core_sys::Parameters;

/// A task, numbered in the order of creation; ties go to the lower number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub u32);

/// Tasks that are told of and measured together: a program with the children it forks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstanceId(pub u32);

/// A class, numbered in the order of creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassId(pub usize);

/// A contract, in the order of creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContractId(pub usize);

/// How a task is to be scheduled. Children inherit it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// Its class.
    pub class: ClassId,
    /// Nice value, -20 to 19.
    pub nice: i32,
    /// CPUs it may run on, one bit each; never 0.
    pub affinity: u64,
    /// Its priority under SCHED_FIFO; 0: it is an ordinary task. Only a [`Kernel`](crate::Kernel)
    /// has real-time tasks.
    pub fifo: u32,
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
            fifo: 0,
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

/// How a class orders its own tasks, as its scheduler is told (`struct an_policy_call`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeafPolicy {
    /// `enum an_policy_kind`; 0: as every class does that was given none.
    pub kind: u32,
    /// Quantum, or relative deadline [ns]; 0: the policy's own.
    pub quantum_ns: u64,
    /// Under SVR4 negative nice values are levels of the class RT.
    pub nice_is_real_time: bool,
}

/// What a class may use of the CPUs (`cpu.max`, `cpu.max.burst`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bandwidth {
    /// CPU time in every period [µs]; none: as much as it wants.
    pub quota_us: Option<u64>,
    /// [µs]
    pub period_us: u64,
    /// What may be left from earlier periods [µs].
    pub burst_us: u64,
}
