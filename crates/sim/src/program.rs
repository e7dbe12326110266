//! What tasks do: a program is asked for its next step whenever it has finished one.

use crate::Ns;
use crate::channel::ChannelId;
use crate::spec::{InstanceId, Spec, TaskId};

/// What a task does next. Everything but computing takes no time of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Works for so long on a CPU at full speed.
    Compute(Ns),
    /// Works until it has used so much CPU time by its thread's clock, which goes on while the machine is
    /// slower, as that of a virtual CPU is while others are busy.
    ComputeByClock(Ns),
    /// Works for ever.
    ComputeForever,
    /// Sleeps to this instant; no sleep at all if it has passed.
    SleepUntil(Ns),
    /// Writes, and waits while there is no room.
    Send(ChannelId, u32),
    /// Reads, and waits until there is as much.
    Receive(ChannelId, u32),
    /// Sends a byte to `bell`, as a request over the connection to a server whose answers come over
    /// `answers`.
    Ask {
        /// What the server waits for.
        bell: ChannelId,
        /// Carries its answers.
        answers: ChannelId,
    },
    /// The server has taken the request from that connection; takes no time.
    Take {
        /// Carries the answers over that connection.
        answers: ChannelId,
    },
    /// Waits until a child has ended that it has not waited for.
    WaitForChild,
    /// Waits until its child executes a program, as one that has called vfork does.
    WaitForExec,
    /// Executes a program: the parent that waits for that goes on.
    Exec,
    /// Says in a session what this task does from now on.
    Declare(Cycle),
    /// A cycle of this task begins, which is due at this instant; it is said where it takes part in a session, and
    /// takes no time.
    Begin(Ns),
    /// An event for this task itself, to be delivered at this instant.
    RaiseAt(Ns),
    /// Ends.
    Exit,
}

/// What a task declares of itself in a session [ns]; 0: not said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cycle {
    /// From one piece of work to the next.
    pub period_ns: Ns,
    /// Until when each is to be done.
    pub deadline_ns: Ns,
    /// CPU time that each takes.
    pub budget_ns: Ns,
}

/// A program: a state machine over [`Step`]s.
pub trait Program: Send {
    /// Its next step, the last one being finished.
    fn step(&mut self, world: &mut World<'_>) -> Step;
}

impl Program for Box<dyn Program> {
    fn step(&mut self, world: &mut World<'_>) -> Step {
        (**self).step(world)
    }
}

impl<F: FnMut(&mut World<'_>) -> Step + Send> Program for F {
    fn step(&mut self, world: &mut World<'_>) -> Step {
        self(world)
    }
}

/// A task to be.
pub(crate) struct NewTask {
    pub program: Box<dyn Program>,
    pub spec: Spec,
    pub instance: InstanceId,
    pub parent: Option<TaskId>,
    /// What it takes to make it is counted elsewhere.
    pub paid: bool,
    /// It is a thread of its parent's process.
    pub thread: bool,
}

/// What a program sees of the machine, and may do in no time.
pub struct World<'a> {
    /// Now.
    pub now_ns: Ns,
    /// The task that the program is.
    pub task: TaskId,
    pub(crate) records: &'a mut [Record],
    pub(crate) parent: TaskId,
    pub(crate) instance: InstanceId,
    pub(crate) spec: &'a Spec,
    pub(crate) forked: &'a mut Vec<NewTask>,
}

impl World<'_> {
    /// What the program's instance has done.
    pub fn record(&mut self) -> &mut Record {
        self.record_of(self.instance)
    }

    /// What another instance has done: a server notes in it what it did for a client.
    pub fn record_of(&mut self, instance: InstanceId) -> &mut Record {
        &mut self.records[instance.0 as usize]
    }

    /// A child of this task that runs `program`, scheduled alike and measured with it.
    pub fn fork(&mut self, program: impl Program + 'static) {
        self.forked.push(NewTask {
            program: Box::new(program),
            spec: Spec {
                contract: None,
                ..self.spec.clone()
            },
            instance: self.instance,
            parent: Some(self.parent),
            paid: false,
            thread: false,
        });
    }

    /// A thread of this task's process, scheduled alike and measured with it.
    pub fn thread(&mut self, program: impl Program + 'static) {
        self.fork(program);
        if let Some(new) = self.forked.last_mut() {
            new.thread = true;
        }
    }

    /// Any program, by vfork: this task is to wait until that executes it ([`Step::WaitForExec`]). What that
    /// takes is a part of what the child takes to be loaded.
    pub fn spawn(&mut self, instance: InstanceId, spec: Spec, program: Box<dyn Program>) {
        self.forked.push(NewTask {
            program,
            spec,
            instance,
            parent: Some(self.parent),
            paid: true,
            thread: false,
        });
    }
}

/// What an instance has done: the raw data of its figures. Instants in ns since the machine began.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Record {
    /// When frames were shown.
    pub shown_ns: Vec<Ns>,
    /// When frames were given up.
    pub dropped_ns: Vec<Ns>,
    /// The release of every frame in `shown_ns`.
    pub released_ns: Vec<Ns>,
    /// From an event to the response [ns], with the instant of the event.
    pub latency_ns: Vec<(Ns, Ns)>,
    /// When units of work were finished.
    pub finished_ns: Vec<Ns>,
}
