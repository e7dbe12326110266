//! The machine: time, CPUs, and tasks that wait for each other.
//!
//! Time jumps from one instant at which something happens to the next. Within an instant, first
//! everything that makes tasks runnable happens, then the CPUs whose task has come to an end or
//! whose slice is over are seen to, then CPUs pick; each in the order of the numbers involved. So a
//! wake-up that falls on the end of a quantum is seen by the pick at that end.

mod cpus;
mod happenings;
mod tasks;

use crate::agenda::Agenda;
use crate::channel::{Channel, ChannelId};
use crate::program::{NewTask, Program, Record, Step, World};
use crate::random::Random;
use crate::scheduler::Scheduler;
use crate::spec::{InstanceId, Spec, TaskId};
use crate::task::{Life, State, Task, Wait};
use crate::trace::{Ran, Trace};
use crate::{NS_PER_S, Ns};

/// Steps without work that a program may take in one go.
const MAX_IDLE_STEPS: u32 = 100_000;
/// CPUs looked at for one whose task should make way for a woken one.
const WAKE_SCAN_CPUS: usize = 16;
/// No instant: nothing is going to happen.
const NEVER: Ns = Ns::MAX;

/// Costs of running beside the work [ns], where nothing else costs. Charged to the task that comes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Costs {
    /// A switch to another task.
    pub switch_ns: Ns,
    /// Coming from another CPU, on top of that.
    pub migration_ns: Ns,
    /// Timers expire at multiples of this; 0 and 1: to the nanosecond.
    pub timer_resolution_ns: Ns,
    /// A decision, for each level of the tree down to the class chosen, where there are classes.
    pub level_ns: Ns,
}

/// Interrupts that take a CPU away from whoever has it.
#[derive(Debug, Clone, PartialEq)]
pub struct Interrupts {
    /// Which CPU.
    pub cpu: usize,
    /// Mean time from one to the next [ns].
    pub gap_ns: Ns,
    /// How long each takes [ns].
    pub cost_ns: Ns,
    /// At random instants (a Poisson process) of this seed; none: at even distances.
    pub seed: Option<u64>,
}

/// What has been used so far [ns].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Usage {
    /// By each instance.
    pub instances: Vec<Ns>,
    /// By each instance for its own work: the same without the [`Costs`].
    pub work: Vec<Ns>,
    /// By the tasks of each class, not counting classes below it.
    pub classes: Vec<Ns>,
    /// By nobody, summed over the CPUs.
    pub idle: Ns,
    /// By interrupts.
    pub stolen: Ns,
}

#[derive(Debug, Clone, Copy)]
enum Event {
    Timer { task: TaskId, number: u32 },
    Start { index: u32 },
    Suspend(InstanceId),
    Resume(InstanceId),
    Kill(InstanceId),
    Interrupt { source: u32 },
    Raise { source: u32 },
    Tick,
    Age,
}

/// Events from elsewhere for an instance.
struct EventSource {
    sink: InstanceId,
    instants: Box<dyn Iterator<Item = Ns> + Send>,
}

#[derive(Debug, Default)]
struct Cpu {
    current: Option<TaskId>,
    /// Its service is accounted up to here; later than now while an interrupt has the CPU.
    since_ns: Ns,
    /// The slice's end.
    until_ns: Ns,
    /// When it is to be looked at: its task has come to an end, or its slice.
    end_ns: Ns,
    /// Interrupts have it until here.
    stolen_until_ns: Ns,
    must_pick: bool,
    busy_ns: Ns,
    stolen_ns: Ns,
}

enum After {
    Works,
    Blocks,
    Exits,
}

/// N CPUs, what runs on them, and what decides.
pub struct Machine<S> {
    now_ns: Ns,
    events: Agenda<Event>,
    cpus: Vec<Cpu>,
    tasks: Vec<Task>,
    /// Of the same tasks.
    lives: Vec<Life>,
    channels: Vec<Channel>,
    to_start: Vec<Option<NewTask>>,
    interrupts: Vec<(Interrupts, Random)>,
    sources: Vec<EventSource>,
    /// Timers set so far; tells one that is not waited for any more.
    timers: u32,
    records: Vec<Record>,
    instance_ns: Vec<Ns>,
    work_ns: Vec<Ns>,
    class_ns: Vec<Ns>,
    costs: Costs,
    scheduler: S,
    trace: Trace,
}

impl<S: Scheduler> Machine<S> {
    /// A machine of 1 to 64 CPUs. What happens from `keep_from_ns` to `keep_until_ns` is kept in
    /// full in the trace.
    pub fn new(cpus: usize, costs: Costs, scheduler: S, keep: std::ops::Range<Ns>) -> Self {
        assert!((1..=64).contains(&cpus), "a machine has 1 to 64 CPUs");
        let idle = || Cpu {
            end_ns: NEVER,
            ..Cpu::default()
        };
        let mut machine = Self {
            now_ns: 0,
            events: Agenda::new(),
            cpus: std::iter::repeat_with(idle).take(cpus).collect(),
            tasks: Vec::new(),
            lives: Vec::new(),
            channels: Vec::new(),
            to_start: Vec::new(),
            interrupts: Vec::new(),
            sources: Vec::new(),
            timers: 0,
            records: Vec::new(),
            instance_ns: Vec::new(),
            work_ns: Vec::new(),
            class_ns: Vec::new(),
            costs,
            scheduler,
            trace: Trace::keep(keep.start, keep.end),
        };
        if machine.scheduler.tick_ns() > 0 {
            machine.at(machine.scheduler.tick_ns(), Event::Tick);
        }
        if machine.scheduler.age_ns() > 0 {
            machine.at(machine.scheduler.age_ns(), Event::Age);
        }
        machine
    }

    /// A pipe that holds so many bytes.
    pub fn channel(&mut self, capacity: u32) -> ChannelId {
        self.filled_channel(capacity, 0)
    }

    /// A pipe that holds so many bytes, `filled` of which are in it from the beginning.
    pub fn filled_channel(&mut self, capacity: u32, filled: u32) -> ChannelId {
        self.channels.push(Channel::new(capacity, filled));
        ChannelId(self.channels.len() as u32 - 1)
    }

    /// Something to measure, so far without tasks.
    pub fn instance(&mut self) -> InstanceId {
        self.records.push(Record::default());
        self.instance_ns.push(0);
        self.work_ns.push(0);
        InstanceId(self.records.len() as u32 - 1)
    }

    /// A task of `instance` that begins at `at_ns`.
    pub fn start(
        &mut self,
        at_ns: Ns,
        instance: InstanceId,
        spec: Spec,
        program: impl Program + 'static,
    ) {
        self.start_boxed(at_ns, instance, spec, Box::new(program));
    }

    pub(crate) fn start_boxed(
        &mut self,
        at_ns: Ns,
        instance: InstanceId,
        spec: Spec,
        program: Box<dyn Program>,
    ) {
        let index = self.to_start.len() as u32;
        self.to_start.push(Some(NewTask {
            program,
            spec,
            instance,
            parent: None,
            paid: true,
            thread: false,
        }));
        self.at(at_ns, Event::Start { index });
    }

    /// The instance's tasks do not run from `at_ns` on (SIGSTOP).
    pub fn suspend(&mut self, at_ns: Ns, instance: InstanceId) {
        self.at(at_ns, Event::Suspend(instance));
    }

    /// They may again (SIGCONT).
    pub fn resume(&mut self, at_ns: Ns, instance: InstanceId) {
        self.at(at_ns, Event::Resume(instance));
    }

    /// They end (SIGKILL).
    pub fn kill(&mut self, at_ns: Ns, instance: InstanceId) {
        self.at(at_ns, Event::Kill(instance));
    }

    /// Adds a source of interrupts; the first comes after one gap.
    pub fn interrupt(&mut self, interrupts: Interrupts) {
        let seed = interrupts.seed.unwrap_or(0);
        self.interrupts.push((interrupts, Random::new(seed)));
        self.next_interrupt(self.interrupts.len() as u32 - 1);
    }

    /// At each of these instants, which never go back, the first task of `sink` has an event.
    pub fn raise(&mut self, sink: InstanceId, instants: impl Iterator<Item = Ns> + Send + 'static) {
        let instants = Box::new(instants);
        self.sources.push(EventSource { sink, instants });
        self.next_event(self.sources.len() as u32 - 1);
    }

    /// Lets time pass until `end_ns`, everything at that instant included.
    pub fn run_until(&mut self, end_ns: Ns) {
        loop {
            let next_ns = self.next_ns();
            if next_ns > end_ns {
                break;
            }
            self.now_ns = self.now_ns.max(next_ns);
            self.happen();
            for cpu in 0..self.cpus.len() {
                if self.cpus[cpu].end_ns <= self.now_ns {
                    self.comes_to_end(cpu);
                }
            }
            for cpu in 0..self.cpus.len() {
                if self.cpus[cpu].must_pick {
                    self.pick(cpu);
                }
            }
        }
        self.now_ns = self.now_ns.max(end_ns);
        for cpu in 0..self.cpus.len() {
            self.settle(cpu);
        }
    }

    /// Now.
    pub fn now_ns(&self) -> Ns {
        self.now_ns
    }

    /// What an instance has done.
    pub fn record(&self, instance: InstanceId) -> &Record {
        &self.records[instance.0 as usize]
    }

    /// Priority among all of the instance's first task that has not ended; 0 if there is none, or
    /// the scheduler knows no levels.
    pub fn level(&self, instance: InstanceId) -> u32 {
        let alive = |task: &Task| task.instance == instance && task.state != State::Dead;
        let first = self.tasks.iter().position(alive);
        first.map_or(0, |index| self.scheduler.level(TaskId(index as u32)))
    }

    /// Which instance a task belongs to.
    pub fn instance_of(&self, task: TaskId) -> InstanceId {
        self.tasks[task.0 as usize].instance
    }

    /// Whether any task of the instance has not ended, or is yet to start.
    pub fn lives(&self, instance: InstanceId) -> bool {
        let alive = |task: &Task| task.instance == instance && task.state != State::Dead;
        self.tasks.iter().any(alive)
            || self
                .to_start
                .iter()
                .flatten()
                .any(|new| new.instance == instance)
    }

    /// What has been used so far.
    pub fn usage(&self) -> Usage {
        let busy: Ns = self.cpus.iter().map(|cpu| cpu.busy_ns).sum();
        let stolen: Ns = self.cpus.iter().map(|cpu| cpu.stolen_ns).sum();
        Usage {
            instances: self.instance_ns.clone(),
            work: self.work_ns.clone(),
            classes: self.class_ns.clone(),
            idle: (self.now_ns * self.cpus.len() as Ns).saturating_sub(busy + stolen),
            stolen,
        }
    }

    /// What was decided.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Who decides.
    pub fn scheduler(&self) -> &S {
        &self.scheduler
    }

    /// Who decides; to change a weight, for example.
    pub fn scheduler_mut(&mut self) -> &mut S {
        &mut self.scheduler
    }
}

impl<S> std::fmt::Debug for Machine<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let at_s = self.now_ns as f64 / NS_PER_S as f64;
        write!(
            f,
            "{} CPUs, {} tasks at {at_s} s",
            self.cpus.len(),
            self.tasks.len()
        )
    }
}
